//! f16 and bf16 values as f64, and back with one rounding.
//!
//! Widening is exact. Sums and products in f64 are either exact or made odd: [`sum`] gives the exact sum
//! rounded to odd at 53 bits, i.e. an inexact result has its last bit set. Rounding that to nearest at 24 bits or
//! fewer is the same as rounding the exact sum, because 53 >= 24 + 2: an odd last bit can neither be a value of
//! the narrow format nor a midpoint between two of them, and it lies on the right side of both.
//! Products of 11- or 8-bit significands have at most 22 bits and exponents from -266 to 256, so they are exact.

/// NaN results have these bits in both formats.
pub(super) const NAN: u16 = 0x7fff;

/// Significand bits behind the point.
const fn fraction(bf: bool) -> u32 {
    if bf { 7 } else { 10 }
}

/// Bits of infinity.
pub(super) const fn infinity(bf: bool) -> u16 {
    if bf { 0x7f80 } else { 0x7c00 }
}

#[inline(always)]
pub(super) fn is_nan<const BF: bool>(x: u16) -> bool {
    x & 0x7fff > infinity(BF)
}

/// Subnormals become zero with their sign.
#[inline(always)]
pub(super) fn flush<const BF: bool>(x: u16, ftz: bool) -> u16 {
    let tiny = x & 0x7fff < 1 << fraction(BF);
    if ftz & tiny { x & 0x8000 } else { x }
}

/// Whether `x` (exact, or rounded to odd), rounded to the format's digits with any exponent, is below the smallest normal
/// number.
#[inline(always)]
pub(super) fn is_tiny<const BF: bool>(x: f64) -> bool {
    let digits = u64::from(fraction(BF)) + 1;
    let exponent: u64 = if BF { 1023 - 126 } else { 1023 - 14 };
    // Half a unit in the last digit below that number everything rounds to it.
    let nearly = f64::from_bits(exponent << 52) * (1.0 - f64::from_bits((1023 - digits - 1) << 52));
    x.abs() < nearly
}

/// Exactly.
#[inline(always)]
pub(super) fn widen<const BF: bool>(x: u16) -> f64 {
    let sign = u32::from(x & 0x8000) << 16;
    let magnitude = u32::from(x & 0x7fff);
    let value = if BF {
        f32::from_bits(magnitude << 16)
    } else {
        // Shifted into f32's fields the exponent is 112 too small, for subnormals too.
        let scaled = f32::from_bits(magnitude << 13) * f32::from_bits((112 + 127) << 23);
        let special = f32::from_bits(magnitude << 13 | 0x7f80_0000);
        if magnitude >= 0x7c00 { special } else { scaled }
    };
    f64::from(f32::from_bits(value.to_bits() | sign))
}

/// The sum rounded to odd (see above).
#[inline(always)]
pub(super) fn sum(a: f64, b: f64) -> f64 {
    let s = a + b;
    // The exact error of the rounded sum; NaN where an operand is not finite.
    let b_part = s - a;
    let error = (a - (s - b_part)) + (b - b_part);
    let bits = s.to_bits();
    let inexact = error != 0.0 && s.is_finite();
    let away = (error < 0.0) == (s < 0.0);
    let odd = if away { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    f64::from_bits(if inexact & (bits & 1 == 0) { odd } else { bits })
}

/// Rounded to nearest even.
#[inline(always)]
pub(super) fn narrow<const BF: bool>(x: f64) -> u16 {
    // Adding 1.5 * 2^52 times the last place of the result rounds to a multiple of that place.
    let smallest: i64 = if BF { -133 } else { -24 };
    let exponent = (x.to_bits() >> 52 & 0x7ff) as i64 - 1023;
    let place = (exponent - i64::from(fraction(BF))).clamp(smallest, 200);
    let magic = f64::from_bits(((place + 52 + 1023) as u64) << 52 | 1 << 51);
    let magnitude = x.abs();
    let rounded = ((magnitude + magic) - magic) as f32;
    let bits = if BF {
        (rounded.to_bits() >> 16) as u16
    } else {
        ((rounded * f32::from_bits((127 - 112) << 23)).to_bits() >> 13) as u16
    };
    // Halfway from the largest value to the next power of two everything becomes infinite.
    let limit = if BF { f64::from_bits((127 + 1023) << 52) * (2.0 - 1.0 / 256.0) } else { 65520.0 };
    let bits = if magnitude >= limit { infinity(BF) } else { bits };
    let sign = (x.to_bits() >> 48) as u16 & 0x8000;
    if x.is_nan() { NAN } else { bits | sign }
}
