//! Conversions between formats.
//!
//! Values of 64 bits are pairs of words, low first. Narrow integers sit in the low end of their word, sign- or
//! zero-extended as results; of a source only the bits of its format are looked at.

use super::float::{HalfFormat, Rounding};

/// A floating format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Float {
    /// 16 bits, in the low half.
    Half(HalfFormat),
    /// 32 bits.
    F32,
    /// 64 bits, two words.
    F64,
}

/// An integer format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Integer {
    /// 8, 16, 32 or 64.
    pub bits: u8,
    /// Two's complement.
    pub signed: bool,
}

/// An 8-bit floating format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Float8 {
    /// 4 bits of exponent, 3 of mantissa, no infinity.
    E4m3,
    /// 5 bits of exponent, 2 of mantissa.
    E5m2,
}

/// How f32 becomes tf32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tf32Rounding {
    /// To nearest, ties to even.
    Nearest,
    /// To nearest, ties away from zero.
    Away,
    /// Towards zero.
    Zero,
}

/// Conversions. The source starts at `src[0]`, the result at `dst[0]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ConvertFn {
    /// Integer to float. `I2F`, `I2FP`, `cvt.rn.f32.s32`. Overflow (to f16) gives infinity when rounding to nearest.
    FromInt {
        /// Source format.
        from: Integer,
        /// Bit at which a narrow source starts (`.B1` is 8, `.H1` is 16).
        shift: u8,
        /// Result format.
        to: Float,
        /// Rounding.
        round: Rounding,
    },
    /// Float to integer, clamped to the format's range. `F2I`, `cvt.rzi.s32.f32`.
    /// A NaN gives the word (or for 64 bits the pair) with the format's top bit set alone, or 0 if `nan_to_zero`.
    ToInt {
        /// Source format.
        from: Float,
        /// Result format.
        to: Integer,
        /// Rounding to an integer.
        round: Rounding,
        /// Flush subnormal sources.
        ftz: bool,
        /// NaN gives 0 (`.NTZ`).
        nan_to_zero: bool,
    },
    /// Float to float. `F2F`, `cvt.rn.f16.f32`. NaNs: to and from f64 the sign and the top of the mantissa are kept
    /// and the NaN made quiet, except from f32 with `ftz`; otherwise all ones but the sign.
    FloatToFloat {
        /// Source format.
        from: Float,
        /// Result format.
        to: Float,
        /// Rounding.
        round: Rounding,
        /// Flush subnormal f32 sources and results.
        ftz: bool,
    },
    /// To an integral value in the same format. `FRND`, `cvt.rni.f32.f32`.
    RoundToIntegral {
        /// Format.
        format: Float,
        /// Rounding.
        round: Rounding,
        /// Flush subnormal sources.
        ftz: bool,
    },
    /// Two f32 to halves: `src[0]` to the high half, `src[1]` to the low one. `F2FP.F16.F32.PACK_AB`, `cvt.rn.f16x2.f32`.
    PackHalf {
        /// Format of both.
        format: HalfFormat,
        /// To nearest, or towards zero.
        round: Rounding,
        /// Negative results become +0; a NaN stays.
        relu: bool,
        /// Infinities and what would overflow become the largest number of their sign.
        finite: bool,
    },
    /// One f32 (`src[0]`) to a half in the low half; the high half is that of `src[1]`. `F2FP.BF16.F32.MERGE_C`.
    MergeHalf {
        /// Format.
        format: HalfFormat,
        /// To nearest, or towards zero.
        round: Rounding,
        /// Negative results become +0; a NaN stays.
        relu: bool,
        /// As for `PackHalf`.
        finite: bool,
    },
    /// Two f32 to 8 bits each, to nearest, overflow giving the largest number: `src[0]` to bits 8..16, `src[1]` to
    /// bits 0..8; bits 16..32 are the low half of `src[2]`. `F2FP.SATFINITE.E4M3.F32.PACK_AB_MERGE_C`.
    PackFloat8 {
        /// Format of both.
        format: Float8,
        /// Negative results become +0.
        relu: bool,
    },
    /// Two f16 (low and high half of `src[0]`) to 8 bits each, in bits 0..8 and 8..16; bits 16..32 are the low half of `src[1]`.
    PackFloat8FromHalf {
        /// Format of both results.
        format: Float8,
        /// Negative results become +0.
        relu: bool,
    },
    /// Two 8-bit floats in bits 0..8 and 8..16 of `src[0]` to two f16. `F2FP.F16.E4M3.UNPACK_B`.
    UnpackFloat8 {
        /// Negative results become +0; a NaN stays.
        relu: bool,
        /// Format of both sources.
        format: Float8,
        /// Bit at which they start: 0 or 16.
        shift: u8,
    },
    /// Two signed 32-bit integers clamped to `to` (8 or 16 bits): `src[0]` becomes the upper and `src[1]` the lower.
    /// For 8 bits, bits 16..32 are the low half of `src[2]`. `I2IP.S8.S32.SAT`, `cvt.pack.sat.s8.s32.b32`.
    PackInt {
        /// Result format.
        to: Integer,
    },
    /// Two f32 to 8-bit integers, placed as by `PackInt`. `F2IP.U8.F32.NTZ`.
    PackToInt {
        /// Result format, 8 bits.
        to: Integer,
        /// Rounding to an integer.
        round: Rounding,
        /// NaN gives 0.
        nan_to_zero: bool,
    },
    /// Integer to integer: clamped to the result's range if `saturate`, else cut off. The result is extended to a word,
    /// or to two if it has 64 bits. PTX `cvt.sat.u8.s32`.
    IntToInt {
        /// Source format.
        from: Integer,
        /// Result format.
        to: Integer,
        /// Clamp.
        saturate: bool,
    },
    /// f32 to tf32, its low 13 bits zero. NaNs become `0x7fffe000`, except that with ties away from zero, for which
    /// there is no instruction, they only lose those bits. PTX `cvt.rna.tf32.f32`.
    ToTf32 {
        /// Rounding.
        round: Tf32Rounding,
        /// Negative results become +0.
        relu: bool,
        /// From infinity on one unit of the last place is subtracted from the magnitude: with ties away from zero.
        finite: bool,
    },
}
