//! Functions of the multi-function unit, bit for bit as an H200 gives them.
//!
//! The unit interpolates: the top bits of the reduced argument pick a segment, the rest t goes into
//! c0 + c1 t + c2 t^2, of which the low digits are cut off. Its squarer leaves out the partial products below a
//! certain weight, which is why [`square`] is not a multiplication. Other generations have the same functions with
//! the same error bounds; that their low bits agree is not known.

mod tables;
mod tanh;

use lanescope_ir::op::float::{HalfFormat, Special};
use tables::Segment;

use super::round::{NAN32, flush};
use super::{LaneFunction, Out};

const SIGN: u32 = 0x8000_0000;
const INFINITY: u32 = 0x7f80_0000;

/// One function in f32, or one word of an f64.
#[derive(Clone, Copy)]
pub(super) struct Mufu(pub(super) Special);

impl LaneFunction for Mufu {
    const SRC: usize = 1;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        Out::word(special(self.0, s[0]))
    }
}

/// One function in a 16-bit format: the f32 function, cut off.
#[derive(Clone, Copy)]
pub(super) struct MufuHalf {
    pub(super) function: Special,
    pub(super) high: bool,
    pub(super) format: HalfFormat,
}

impl LaneFunction for MufuHalf {
    const SRC: usize = 1;
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let a = if self.high { s[0] >> 16 } else { s[0] & 0xffff };
        Out::word(match self.format {
            HalfFormat::F16 => {
                let wide = half::f16::from_bits(a as u16).to_f32().to_bits();
                cut_to_f16(special(self.function, wide))
            }
            HalfFormat::Bf16 => special(self.function, a << 16) >> 16,
        })
    }
}

pub(super) fn special(function: Special, a: u32) -> u32 {
    match function {
        Special::Rcp => reciprocal(a),
        Special::Rsq => reciprocal_root(a),
        Special::Sqrt => root(a),
        Special::Lg2 => logarithm(a),
        Special::Ex2 => power(a),
        Special::Sin => wave(a, 0),
        Special::Cos => wave(a, 1),
        Special::Tanh => tanh::tanh(a),
        Special::Rcp64High => reciprocal_high(a),
        Special::Rsq64High => reciprocal_root_high(a),
    }
}

/// The square of the lowest `BITS` bits of `t` in units of 2^`CUT`, without the partial products below that.
#[inline(always)]
fn square<const BITS: u32, const CUT: u32>(t: u32) -> i64 {
    let mut sum = 0u64;
    // A row holds t's bit i times the bits below it (twice) and itself; its highest weight is 2 i.
    for i in CUT.div_ceil(2)..BITS {
        let row = (u64::from(t & ((1 << i) - 1)) << (i + 1)) + (1 << (2 * i));
        sum += if t >> i & 1 == 1 { row >> CUT } else { 0 };
    }
    sum as i64
}

/// c0 + c1 t + c2 t^2 of a 23-bit argument whose lowest `BITS` bits are t.
#[inline(always)]
fn interpolate<const BITS: u32, const CUT: u32>(table: &[Segment], x: u32) -> i64 {
    let t = x & ((1 << BITS) - 1);
    // 128 segments of 16 bits or 64 of 17: the index is always inside.
    let (c0, c1, c2) = table[(x >> BITS) as usize & (table.len() - 1)];
    c0 + i64::from(c1) * i64::from(t) + i64::from(c2) * square::<BITS, CUT>(t)
}

/// 64 segments.
#[inline(always)]
fn interpolate64(table: &[Segment; 64], x: u32) -> i64 {
    interpolate::<17, 19>(table, x)
}

#[inline(always)]
fn is_nan(a: u32) -> bool {
    a & !SIGN > INFINITY
}

/// `value` * 2^-`scale`, cut off to 24 digits; `value` is positive.
#[inline(always)]
fn cut_to_f32(value: u64, scale: i32) -> u32 {
    if value == 0 {
        return 0;
    }
    let top = 63 - value.leading_zeros() as i32;
    let digits = if top >= 23 { value >> (top - 23) } else { value << (23 - top) };
    (((top - scale + 127) as u32) << 23).wrapping_add(digits as u32 & 0x7f_ffff)
}

/// An f32 cut off to f16: what is too large becomes infinity, a NaN all ones.
fn cut_to_f16(a: u32) -> u32 {
    let (sign, magnitude) = (a >> 16 & 0x8000, a & !SIGN);
    sign | match magnitude {
        0x7f80_0001.. => return 0x7fff,
        0x4780_0000.. => 0x7c00,
        0x3880_0000.. => (magnitude - 0x3800_0000) >> 13,
        _ => (f32::from_bits(magnitude) * 16_777_216.0) as u32,
    }
}

/// 1/m - 1/2 of the mantissa's m in 1..2, in units of 2^-24.
#[inline(always)]
fn reciprocal_digits(mantissa: u32) -> u32 {
    (interpolate::<16, 17>(&tables::RCP, mantissa) >> 15) as u32
}

fn reciprocal(a: u32) -> u32 {
    let (sign, exponent) = (a & SIGN, a >> 23 & 0xff);
    if is_nan(a) {
        return NAN32;
    }
    match exponent {
        0 => sign | INFINITY,
        255 => sign,
        // Only 1/2^126 is not subnormal among these.
        253.. => sign | if a << 9 == 0 && exponent == 253 { 0x80_0000 } else { 0 },
        _ => sign | (((253 - exponent) << 23) + reciprocal_digits(a & 0x7f_ffff)),
    }
}

/// 1/sqrt(m) - 1/2 of m in 1..2 (`odd`) or 2..4, in units of 2^-24.
#[inline(always)]
fn reciprocal_root_digits(mantissa: u32, odd: bool) -> u32 {
    if odd && mantissa == 0 {
        return 0x80_0000;
    }
    let table = if odd { &tables::RSQ_ODD } else { &tables::RSQ_EVEN };
    (interpolate64(table, mantissa) >> 17) as u32
}

fn reciprocal_root(a: u32) -> u32 {
    let (sign, exponent) = (a & SIGN, a >> 23 & 0xff);
    if is_nan(a) || (sign != 0 && exponent != 0) {
        return NAN32;
    }
    match exponent {
        0 => sign | INFINITY,
        255 => 0,
        _ => {
            let odd = exponent & 1 == 1;
            let half = exponent.div_ceil(2);
            ((190 - half) << 23) + reciprocal_root_digits(a & 0x7f_ffff, odd)
        }
    }
}

fn root(a: u32) -> u32 {
    let (sign, exponent) = (a & SIGN, a >> 23 & 0xff);
    if exponent == 0 {
        return sign;
    }
    if is_nan(a) || sign != 0 {
        return NAN32;
    }
    if exponent == 255 {
        return INFINITY;
    }
    let table = if exponent & 1 == 1 { &tables::SQRT_ODD } else { &tables::SQRT_EVEN };
    let digits = (interpolate64(table, a & 0x7f_ffff) >> 17) as u32;
    ((exponent.div_ceil(2) + 63) << 23) + digits
}

fn logarithm(a: u32) -> u32 {
    let (sign, exponent, mantissa) = (a & SIGN, a >> 23 & 0xff, a & 0x7f_ffff);
    if exponent == 0 {
        return SIGN | INFINITY;
    }
    if is_nan(a) || sign != 0 {
        return NAN32;
    }
    if exponent == 255 {
        return INFINITY;
    }
    if a == 1f32.to_bits() {
        return 0;
    }
    let value = (i64::from(exponent as i32 - 127) << 36) + (interpolate64(&tables::LG2, mantissa) >> 2);
    // Negative results are complemented, not negated.
    if value < 0 { SIGN | cut_to_f32(!value as u64, 36) } else { cut_to_f32(value as u64, 36) }
}

fn power(a: u32) -> u32 {
    if is_nan(a) {
        return NAN32;
    }
    let negative = a & SIGN != 0;
    // Cut off to 23 binary places; from 2^9 on the result is out of range anyway.
    let magnitude = f32::from_bits(flush(a)).abs().min(512.0);
    let fixed = (f64::from(magnitude) * 8_388_608.0) as i64;
    let whole = fixed & 0x7f_ffff == 0;
    let fixed = match (negative, whole) {
        (false, _) => fixed,
        (true, true) => -fixed,
        (true, false) => !fixed,
    };
    let (exponent, fraction) = ((fixed >> 23) as i32, fixed as u32 & 0x7f_ffff);
    match exponent {
        128.. => INFINITY,
        ..-126 => 0,
        _ if whole => ((exponent + 127) as u32) << 23,
        _ => (((exponent + 127) as u32) << 23) + (interpolate64(&tables::EX2, fraction) >> 15) as u32,
    }
}

/// sin(2 pi (a + ahead/4)).
fn wave(a: u32, ahead: u32) -> u32 {
    let exponent = a >> 23 & 0xff;
    if exponent == 255 {
        return NAN32;
    }
    let significand = a & 0x7f_ffff | 0x80_0000;
    // 25 binary places: two say which quarter, 23 where in it.
    let fixed = match exponent {
        0 => 0,
        1..=125 => significand.checked_shr(125 - exponent).unwrap_or(0),
        _ => significand.checked_shl(exponent - 125).unwrap_or(0),
    };
    let quarter = (fixed >> 23) + ahead;
    let place = fixed & 0x7f_ffff;
    // The cosine is even.
    let sign = if ahead == 0 { a & SIGN } else { 0 } ^ (quarter >> 1 & 1) << 31;
    let odd = quarter & 1 == 1;
    let value = match (place, odd) {
        (0, true) => 1 << 38,
        (0, false) => 0,
        (_, odd) => interpolate64(&tables::SIN, if odd { place ^ 0x7f_ffff } else { place }).clamp(0, 1 << 38),
    };
    sign | cut_to_f32(value as u64, 38)
}

const INFINITY_HIGH: u32 = 0x7ff0_0000;

fn reciprocal_high(a: u32) -> u32 {
    let (sign, exponent, mantissa) = (a & SIGN, a >> 20 & 0x7ff, a & 0xf_ffff);
    match exponent {
        0 => sign | INFINITY_HIGH,
        0x7ff if mantissa != 0 => NAN32,
        0x7ff => sign,
        2045.. => sign | if mantissa == 0 && exponent == 2045 { 0x10_0000 } else { 0 },
        _ => sign | (((2045 - exponent) << 20) + (reciprocal_digits(mantissa << 3) >> 3)),
    }
}

pub(super) fn reciprocal_root_high(a: u32) -> u32 {
    let (sign, exponent, mantissa) = (a & SIGN, a >> 20 & 0x7ff, a & 0xf_ffff);
    match exponent {
        0 => sign | INFINITY_HIGH,
        0x7ff if mantissa != 0 => NAN32,
        _ if sign != 0 => NAN32,
        0x7ff => 0,
        _ => {
            let odd = exponent & 1 == 1;
            let half = exponent.div_ceil(2);
            ((1534 - half) << 20) + (reciprocal_root_digits(mantissa << 3, odd) >> 3)
        }
    }
}
