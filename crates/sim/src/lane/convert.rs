//! Functions of the convert family.
//!
//! The conversions that kernels are full of have their own functions; the rest share one for each kind, on exact numbers.

mod floats;
mod ints;
mod pack;

use lanescope_ir::op::convert::{ConvertFn, Float, Integer};
use lanescope_ir::op::float::{HalfFormat, Rounding};

use super::Bind;
use super::round::Format;

/// The layout of a format.
fn layout(f: Float) -> Format {
    match f {
        Float::Half(HalfFormat::F16) => Format::F16,
        Float::Half(HalfFormat::Bf16) => Format::BF16,
        Float::F32 => Format::F32,
        Float::F64 => Format::F64,
    }
}

pub(super) fn bind<B: Bind>(f: &ConvertFn, b: B) -> B::Output {
    const NEAREST: Rounding = Rounding::Nearest;
    const S32: Integer = Integer { bits: 32, signed: true };
    const U32: Integer = Integer { bits: 32, signed: false };
    match *f {
        ConvertFn::FromInt { from: S32, shift: 0, to: Float::F32, round: NEAREST } => b.bind(ints::WordToF32::<true>),
        ConvertFn::FromInt { from: U32, shift: 0, to: Float::F32, round: NEAREST } => b.bind(ints::WordToF32::<false>),
        ConvertFn::FromInt { from, shift, to: Float::F64, round } => {
            b.bind(ints::FromInt::<2> { from, shift, to: Format::F64, round })
        }
        ConvertFn::FromInt { from, shift, to, round } => {
            b.bind(ints::FromInt::<1> { from, shift, to: layout(to), round })
        }
        ConvertFn::ToInt {
            from: Float::F32,
            to: Integer { bits: 32, signed },
            round: Rounding::Zero,
            ftz: _,
            nan_to_zero: true,
        } => {
            if signed {
                b.bind(ints::F32ToWord::<true>)
            } else {
                b.bind(ints::F32ToWord::<false>)
            }
        }
        ConvertFn::ToInt { from, to, round, ftz, nan_to_zero } => {
            let f = ints::ToInt::new(layout(from), to, round, ftz, nan_to_zero);
            if to.bits == 64 { b.bind(ints::ToInt64(f)) } else { b.bind(f) }
        }
        ConvertFn::FloatToFloat { from: Float::F32, to: Float::F64, round: _, ftz } => b.bind(floats::Widen { ftz }),
        ConvertFn::FloatToFloat { from: Float::F64, to: Float::F32, round, ftz } => {
            b.bind(floats::Narrow { round, ftz })
        }
        ConvertFn::FloatToFloat { from, to: Float::F64, round, ftz } => {
            b.bind(floats::FloatToFloat::<2> { from: layout(from), to: Format::F64, round, ftz })
        }
        ConvertFn::FloatToFloat { from, to, round, ftz } => {
            b.bind(floats::FloatToFloat::<1> { from: layout(from), to: layout(to), round, ftz })
        }
        ConvertFn::RoundToIntegral { format: Float::F32, round, ftz } => b.bind(floats::Integral32 { round, ftz }),
        ConvertFn::RoundToIntegral { format: Float::F64, round, ftz } => b.bind(floats::Integral64 { round, ftz }),
        ConvertFn::RoundToIntegral { format: Float::Half(format), round, ftz } => {
            b.bind(floats::Integral16 { format: layout(Float::Half(format)), round, ftz })
        }
        ConvertFn::PackHalf { format, round, relu, finite } => {
            b.bind(pack::PackHalf(pack::ToHalf { format, zero: round == Rounding::Zero, relu, finite }))
        }
        ConvertFn::MergeHalf { format, round, relu, finite } => {
            b.bind(pack::MergeHalf(pack::ToHalf { format, zero: round == Rounding::Zero, relu, finite }))
        }
        ConvertFn::PackFloat8 { format, relu } => b.bind(pack::PackFloat8 { format, relu }),
        ConvertFn::PackFloat8FromHalf { format, relu } => b.bind(pack::PackFloat8FromHalf { format, relu }),
        ConvertFn::UnpackFloat8 { relu, format, shift } => b.bind(pack::UnpackFloat8 { relu, format, shift }),
        ConvertFn::PackInt { to } => b.bind(pack::PackInt(to)),
        ConvertFn::IntToInt { from, to, saturate } => {
            let f = ints::IntToInt { from, to, saturate };
            if to.bits == 64 { b.bind(ints::IntToInt64(f)) } else { b.bind(f) }
        }
        ConvertFn::ToTf32 { round, relu, finite } => b.bind(floats::ToTf32 { round, relu, finite }),
        ConvertFn::PackToInt { to, round, nan_to_zero } => {
            b.bind(pack::PackToInt(ints::ToInt::new(Format::F32, to, round, false, nan_to_zero)))
        }
    }
}
