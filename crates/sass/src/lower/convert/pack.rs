//! Lowering of the conversions that put two values in one register.

use lanescope_ir::Src;
use lanescope_ir::op::convert::{ConvertFn, Float8, Tf32Rounding};
use lanescope_ir::op::float::{HalfFormat, Rounding};
use lanescope_ir::op::{LaneFn, LaneOp};

use super::{integer, integer_rounding};
use crate::isa::inst::{Operand, Sign};
use crate::lower::float::{expect, rounding, unknown};
use crate::lower::operands::{Cx, Lowered, refuse};

/// A float format in F2FP's modifiers; the first is the result's.
#[derive(Clone, Copy, PartialEq)]
enum Narrow {
    Half(HalfFormat),
    Eight(Float8),
    Tf32,
}

/// Where the results go.
#[derive(Clone, Copy, PartialEq)]
enum Layout {
    PackAb,
    MergeC,
    PackAbMergeC,
    UnpackB,
    UnpackBMergeC,
}

fn operation(cx: &Cx, f: ConvertFn, src: [Src; 3]) -> Lowered<LaneOp> {
    let mut op = LaneOp::new(LaneFn::Convert(f));
    op.dst[0] = cx.dst(0)?;
    op.src[..3].copy_from_slice(&src);
    Ok(op)
}

/// F2FP.
pub(super) fn floats(cx: &Cx) -> Lowered<LaneOp> {
    let (mut formats, mut from_f32, mut layout) = ([None; 2], false, None);
    let (mut round, mut relu, mut finite) = (Rounding::Nearest, false, false);
    for name in &cx.inst.mods {
        let format = match *name {
            "F16" => Narrow::Half(HalfFormat::F16),
            "BF16" => Narrow::Half(HalfFormat::Bf16),
            "E4M3" => Narrow::Eight(Float8::E4m3),
            "E5M2" => Narrow::Eight(Float8::E5m2),
            "TF32" => Narrow::Tf32,
            other => {
                match other {
                    "F32" => from_f32 = true,
                    "RELU" => relu = true,
                    "SATFINITE" => finite = true,
                    "PACK_AB" => layout = Some(Layout::PackAb),
                    "MERGE_C" => layout = Some(Layout::MergeC),
                    "PACK_AB_MERGE_C" => layout = Some(Layout::PackAbMergeC),
                    "UNPACK_B" => layout = Some(Layout::UnpackB),
                    "UNPACK_B_MERGE_C" => layout = Some(Layout::UnpackBMergeC),
                    _ => match rounding(other) {
                        Some(r @ (Rounding::Nearest | Rounding::Zero)) => round = r,
                        _ => return unknown(other),
                    },
                }
                continue;
            }
        };
        match &mut formats {
            [first @ None, _] => *first = Some(format),
            [_, second @ None] => *second = Some(format),
            _ => return unknown(name),
        }
    }
    // Before sm_89 the f32 source and the f16 result are not printed.
    let to_half = match formats {
        [Some(Narrow::Half(format)), None] => Some(format),
        [None, None] => Some(HalfFormat::F16),
        _ => None,
    };
    let nearest = round == Rounding::Nearest;
    match (layout, to_half, formats) {
        // One value; what would be merged is nothing.
        (Some(Layout::MergeC), _, [Some(Narrow::Tf32), None]) if from_f32 && !finite => {
            expect(cx, 3)?;
            if !matches!(cx.operand(2)?, Operand::Reg(r) if r.index == 255) {
                return refuse("operand 2 is not RZ");
            }
            let round = if nearest { Tf32Rounding::Nearest } else { Tf32Rounding::Zero };
            operation(cx, ConvertFn::ToTf32 { round, relu, finite }, [cx.fsrc(1)?, Src::ZERO, Src::ZERO])
        }
        (Some(Layout::PackAb), Some(format), _) => {
            expect(cx, 3)?;
            let f = ConvertFn::PackHalf { format, round, relu, finite };
            operation(cx, f, [cx.fsrc(1)?, cx.fsrc(2)?, Src::ZERO])
        }
        (Some(Layout::MergeC), Some(format), _) => {
            expect(cx, 3)?;
            let f = ConvertFn::MergeHalf { format, round, relu, finite };
            operation(cx, f, [cx.fsrc(1)?, cx.src(2)?, Src::ZERO])
        }
        (Some(Layout::PackAbMergeC), _, [Some(Narrow::Eight(format)), None]) if from_f32 && finite && nearest => {
            expect(cx, 4)?;
            operation(cx, ConvertFn::PackFloat8 { format, relu }, [cx.fsrc(1)?, cx.fsrc(2)?, cx.src(3)?])
        }
        (Some(Layout::UnpackBMergeC), _, [Some(Narrow::Eight(format)), Some(Narrow::Half(HalfFormat::F16))])
            if finite && nearest =>
        {
            // sm_120 names the register that is not read, too.
            let at = match cx.operand(1)? {
                Operand::Reg(r) if cx.len() == 4 && r.index == 255 => 2,
                _ => 1,
            };
            expect(cx, at + 2)?;
            operation(cx, ConvertFn::PackFloat8FromHalf { format, relu }, [cx.src(at)?, cx.src(at + 1)?, Src::ZERO])
        }
        (Some(Layout::UnpackB), _, [Some(Narrow::Half(HalfFormat::F16)), Some(Narrow::Eight(format))])
            if !finite && nearest =>
        {
            expect(cx, 2)?;
            let (src, sign, abs, suffix) = cx.raw(1)?;
            let shift = match suffix {
                "" => 0,
                "H1" => 16,
                _ => return refuse(format!("operand 1 has suffix .{suffix}")),
            };
            if sign != Sign::None || abs {
                return refuse("operand 1 is not a plain source");
            }
            operation(cx, ConvertFn::UnpackFloat8 { relu, format, shift }, [src, Src::ZERO, Src::ZERO])
        }
        _ => refuse("this conversion"),
    }
}

/// F2IP.
pub(super) fn to_ints(cx: &Cx) -> Lowered<LaneOp> {
    expect(cx, 4)?;
    let (mut to, mut round, mut nan_to_zero) = (None, Rounding::Nearest, false);
    for name in &cx.inst.mods {
        match (*name, integer(name), integer_rounding(name)) {
            ("F32", ..) => {}
            ("NTZ", ..) => nan_to_zero = true,
            (_, Some(i), _) if i.bits == 8 => to = Some(i),
            (_, _, Some(r)) => round = r,
            _ => return unknown(name),
        }
    }
    let Some(to) = to else { return refuse("no integer format") };
    let f = ConvertFn::PackToInt { to, round, nan_to_zero };
    operation(cx, f, [cx.fsrc(1)?, cx.fsrc(2)?, cx.src(3)?])
}

/// I2IP.
pub(super) fn ints(cx: &Cx) -> Lowered<LaneOp> {
    expect(cx, 4)?;
    let (mut to, mut saturates) = (None, false);
    for name in &cx.inst.mods {
        match (*name, integer(name)) {
            ("S32", _) => {}
            ("SAT", _) => saturates = true,
            (_, Some(i)) if i.bits <= 16 => to = Some(i),
            _ => return unknown(name),
        }
    }
    let Some(to) = to else { return refuse("no integer format") };
    if !saturates {
        return refuse("I2IP without .SAT");
    }
    // A 16-bit result fills the register, so that the third source must be absent.
    if to.bits == 16 && !matches!(cx.operand(3)?, Operand::Reg(r) if r.index == 255) {
        return refuse("operand 3 is not RZ");
    }
    operation(cx, ConvertFn::PackInt { to }, [cx.src(1)?, cx.src(2)?, cx.src(3)?])
}
