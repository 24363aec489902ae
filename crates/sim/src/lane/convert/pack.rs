//! Two values in one word.

use lanescope_ir::op::convert::{Float8, Integer};
use lanescope_ir::op::float::HalfFormat;

use super::ints::ToInt;
use crate::lane::round::{Exact, Format};
use crate::lane::{LaneFunction, Out};

/// How an f32 becomes a half.
#[derive(Clone, Copy)]
pub(super) struct ToHalf {
    pub(super) format: HalfFormat,
    pub(super) zero: bool,
    pub(super) relu: bool,
    pub(super) finite: bool,
}

impl ToHalf {
    #[inline(always)]
    fn convert(self, x: u32) -> u32 {
        let magnitude = x & 0x7fff_ffff;
        let (r, infinity) = match self.format {
            HalfFormat::F16 => (to_f16(magnitude, self.zero), 0x7c00),
            HalfFormat::Bf16 => {
                let carry = if self.zero { 0 } else { 0x7fff + (magnitude >> 16 & 1) };
                ((magnitude + carry) >> 16, 0x7f80)
            }
        };
        let r = if self.finite & (r >= infinity) { infinity - 1 } else { r };
        let r = if self.relu & (x >> 31 == 1) { 0 } else { r | x >> 16 & 0x8000 };
        if magnitude > 0x7f80_0000 { 0x7fff } else { r }
    }
}

/// The f16 of a positive f32, towards zero or to nearest.
#[inline(always)]
fn to_f16(x: u32, zero: bool) -> u32 {
    let value = f32::from_bits(x);
    let carry = if zero { 0 } else { 0xfff + (x >> 13 & 1) };
    let normal = x.wrapping_add(carry).wrapping_sub(0x3800_0000) >> 13;
    // 2^-24, the smallest f16, is the last digit of 0.5: adding 0.5 rounds to it.
    let tiny = if zero { (value * 16_777_216.0) as u32 } else { (value + 0.5).to_bits().wrapping_sub(0x3f00_0000) };
    let small = if x < 0x3880_0000 { tiny } else { normal };
    let large = if zero & (x != 0x7f80_0000) { 0x7bff } else { 0x7c00 };
    if x >= 0x4780_0000 { large } else { small }
}

/// Two f32 to a pair of halves.
#[derive(Clone, Copy)]
pub(super) struct PackHalf(pub(super) ToHalf);

impl LaneFunction for PackHalf {
    const SRC: usize = 2;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        Out::word(self.0.convert(s[0]) << 16 | self.0.convert(s[1]))
    }
}

/// One f32 to the low half, the high half from elsewhere.
#[derive(Clone, Copy)]
pub(super) struct MergeHalf(pub(super) ToHalf);

impl LaneFunction for MergeHalf {
    const SRC: usize = 2;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        Out::word(s[1] & 0xffff_0000 | self.0.convert(s[0]))
    }
}

/// The 8-bit float nearest to `x`, the largest number if that is too small.
fn to_float8(x: f32, format: Float8, relu: bool) -> u32 {
    let (mantissa, min_exponent, largest) = match format {
        Float8::E4m3 => (3, -6, 448.0f32),
        Float8::E5m2 => (2, -14, 57344.0f32),
    };
    if x.is_nan() {
        return 0x7f;
    }
    if relu && x.is_sign_negative() {
        return 0;
    }
    let magnitude = x.abs().min(largest);
    let exponent = ((magnitude.to_bits() >> 23) as i32 - 127).max(min_exponent);
    // A multiple of the last digit's weight; the product is exact or, far below the smallest number, harmlessly not.
    let digits = (f64::from(magnitude) * f64::from(mantissa - exponent).exp2()).round_ties_even() as u32;
    let sign = if x.is_sign_negative() { 0x80 } else { 0 };
    sign | ((((exponent - min_exponent) as u32) << mantissa) + digits)
}

/// Two f32 to 8-bit floats.
#[derive(Clone, Copy)]
pub(super) struct PackFloat8 {
    pub(super) format: Float8,
    pub(super) relu: bool,
}

impl LaneFunction for PackFloat8 {
    const SRC: usize = 3;
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let one = |x| to_float8(f32::from_bits(x), self.format, self.relu);
        Out::word(s[2] << 16 | one(s[0]) << 8 | one(s[1]))
    }
}

/// Two f16 to 8-bit floats.
#[derive(Clone, Copy)]
pub(super) struct PackFloat8FromHalf {
    pub(super) format: Float8,
    pub(super) relu: bool,
}

impl LaneFunction for PackFloat8FromHalf {
    const SRC: usize = 2;
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let one = |x: u32| to_float8(half::f16::from_bits(x as u16).to_f32(), self.format, self.relu);
        Out::word(s[1] << 16 | one(s[0] >> 16) << 8 | one(s[0]))
    }
}

/// The f16 that an 8-bit float is.
fn from_float8(x: u32, format: Float8) -> u32 {
    match format {
        Float8::E5m2 => {
            if x & 0x7f > 0x7c {
                0x7fff
            } else {
                x << 8
            }
        }
        Float8::E4m3 => {
            if x & 0x7f == 0x7f {
                return 0x7fff;
            }
            let field = x >> 3 & 15;
            let significand = u128::from(x & 7 | u32::from(field != 0) << 3);
            let exact = Exact { negative: x & 0x80 != 0, exponent: field.max(1) as i32 - 10, significand };
            exact.round(Format::F16, Default::default()) as u32
        }
    }
}

/// Two 8-bit floats to f16.
#[derive(Clone, Copy)]
pub(super) struct UnpackFloat8 {
    pub(super) relu: bool,
    pub(super) format: Float8,
    pub(super) shift: u8,
}

impl LaneFunction for UnpackFloat8 {
    const SRC: usize = 1;
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let x = s[0].checked_shr(u32::from(self.shift)).unwrap_or(0);
        let one = |x: u32| {
            let r = from_float8(x & 0xff, self.format);
            if self.relu && r & 0x8000 != 0 { 0 } else { r }
        };
        Out::word(one(x >> 8) << 16 | one(x))
    }
}

/// Places two clamped results and, for bytes, what was there.
fn place(a: u32, b: u32, c: u32, bits: u8) -> u32 {
    if bits == 16 { a << 16 | b & 0xffff } else { c << 16 | (a & 0xff) << 8 | b & 0xff }
}

/// Two integers clamped.
#[derive(Clone, Copy)]
pub(super) struct PackInt(pub(super) Integer);

impl LaneFunction for PackInt {
    const SRC: usize = 3;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let bits = self.0.bits.clamp(1, 16);
        let (low, high) =
            if self.0.signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
        let one = |x: u32| (x as i32).clamp(low, high) as u32;
        Out::word(place(one(s[0]), one(s[1]), s[2], self.0.bits))
    }
}

/// Two f32 to bytes.
#[derive(Clone, Copy)]
pub(super) struct PackToInt(pub(super) ToInt);

impl LaneFunction for PackToInt {
    const SRC: usize = 3;
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let one = |x: u32| self.0.convert(u64::from(x)) as u32;
        Out::word(place(one(s[0]), one(s[1]), s[2], 8))
    }
}
