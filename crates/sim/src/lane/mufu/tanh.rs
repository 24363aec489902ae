//! The hyperbolic tangent: interpolated from 2^-8 to 8, with segments that grow with the argument.

use super::tables;
use super::{NAN32, SIGN, cut_to_f32, is_nan, square};

/// For each biased exponent from 119 on: how many digits of the mantissa are not looked at, and the first segment.
const BINADES: [(u8, u8); 11] =
    [(6, 0), (6, 1), (6, 2), (5, 3), (5, 5), (4, 7), (4, 11), (4, 15), (3, 19), (2, 27), (3, 43)];

/// tanh(a).
pub(super) fn tanh(a: u32) -> u32 {
    let (sign, exponent) = (a & SIGN, a >> 23 & 0xff);
    if is_nan(a) {
        return NAN32;
    }
    if exponent < 119 {
        return a;
    }
    let Some(&(dropped, first)) = BINADES.get(exponent as usize - 119) else { return sign | 1f32.to_bits() };
    let place = (a & 0x7f_ffff) >> dropped;
    let t = place & 0x1_ffff;
    let Some(&(c0, c1, c2)) = tables::TANH.get(usize::from(first) + (place >> 17) as usize) else { return NAN32 };
    let value = c0 + i64::from(c1) * i64::from(t) + i64::from(c2) * square::<17, 19>(t);
    sign | cut_to_f32(value.max(0) as u64, 40)
}
