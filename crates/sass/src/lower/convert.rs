//! Lowering of conversions.

mod pack;

use lanescope_ir::op::convert::{ConvertFn, Float, Integer};
use lanescope_ir::op::float::{HalfFormat, Rounding};
use lanescope_ir::op::{LaneFn, LaneOp};
use lanescope_ir::{Op, Src};

use super::float::{expect, half_source, rounding, unknown};
use super::operands::{Cx, Lowered, refuse};
use crate::isa::inst::Sign;

pub(super) fn lower(cx: &Cx) -> Option<Lowered<Op>> {
    let op = match cx.inst.mnemonic {
        "I2F" | "UI2F" => from_int(cx),
        "I2FP" | "UI2FP" => from_word(cx),
        "F2I" | "UF2I" => to_int(cx),
        "F2F" | "UF2F" => float_to_float(cx),
        "FRND" | "UFRND" => to_integral(cx),
        "F2FP" | "UF2FP" => pack::floats(cx),
        "F2IP" | "UF2IP" => pack::to_ints(cx),
        "I2IP" | "UI2IP" => pack::ints(cx),
        _ => return None,
    };
    Some(op.map(Op::Lane))
}

/// The float format that modifier `name` says, if it is one.
fn float(name: &str) -> Option<Float> {
    match name {
        "F16" => Some(Float::Half(HalfFormat::F16)),
        "BF16" => Some(Float::Half(HalfFormat::Bf16)),
        "F32" => Some(Float::F32),
        "F64" => Some(Float::F64),
        _ => None,
    }
}

/// The integer format that modifier `name` says, if it is one.
fn integer(name: &str) -> Option<Integer> {
    let (signed, bits) = match name.split_at_checked(1)? {
        ("S", bits) => (true, bits),
        ("U", bits) => (false, bits),
        _ => return None,
    };
    match bits {
        "8" | "16" | "32" | "64" => bits.parse().ok().map(|bits| Integer { bits, signed }),
        _ => None,
    }
}

/// Rounding to an integer, as SASS names it.
fn integer_rounding(name: &str) -> Option<Rounding> {
    match name {
        "FLOOR" => Some(Rounding::Down),
        "CEIL" => Some(Rounding::Up),
        "TRUNC" => Some(Rounding::Zero),
        _ => None,
    }
}

/// Operand 1 in float format `format`.
fn float_source(cx: &Cx, format: Float) -> Lowered<[Src; 2]> {
    Ok(match format {
        Float::F64 => cx.dsrc(1)?,
        Float::F32 => [cx.fsrc(1)?, Src::ZERO],
        Float::Half(_) => [half_source(cx, 1)?, Src::ZERO],
    })
}

/// An operation with operand 0 as its result, of 64 bits if `wide`.
fn operation(cx: &Cx, f: ConvertFn, wide: bool, src: [Src; 2]) -> Lowered<LaneOp> {
    let mut op = LaneOp::new(LaneFn::Convert(f));
    op.dst = if wide { cx.dst64(0)? } else { [cx.dst(0)?, None] };
    op.src[..2].copy_from_slice(&src);
    Ok(op)
}

fn from_int(cx: &Cx) -> Lowered<LaneOp> {
    expect(cx, 2)?;
    let mut from = Integer { bits: 32, signed: true };
    let (mut to, mut round) = (Float::F32, Rounding::Nearest);
    for name in &cx.inst.mods {
        match (float(name), integer(name), rounding(name)) {
            (Some(f), ..) => to = f,
            (_, Some(i), _) => from = i,
            (_, _, Some(r)) => round = r,
            _ => return unknown(name),
        }
    }
    let (low, sign, abs, suffix) = cx.raw(1)?;
    if sign != Sign::None || abs {
        return refuse("operand 1 is not a plain integer");
    }
    let shift = match (suffix, from.bits) {
        ("", _) => 0,
        ("B1", 8) => 8,
        ("B2", 8) => 16,
        ("B3", 8) => 24,
        ("H1", 16) => 16,
        _ => return refuse(format!("operand 1 has suffix .{suffix}")),
    };
    let src = if from.bits == 64 { cx.raw64(1)?.0 } else { [low, Src::ZERO] };
    operation(cx, ConvertFn::FromInt { from, shift, to, round }, to == Float::F64, src)
}

fn from_word(cx: &Cx) -> Lowered<LaneOp> {
    expect(cx, 2)?;
    let (mut from, mut round) = (None, Rounding::Nearest);
    for name in &cx.inst.mods {
        match *name {
            "F32" => {}
            "S32" => from = Some(Integer { bits: 32, signed: true }),
            "U32" => from = Some(Integer { bits: 32, signed: false }),
            "RZ" => round = Rounding::Zero,
            _ => return unknown(name),
        }
    }
    let Some(from) = from else { return refuse("no integer format") };
    let (src, sign, abs, suffix) = cx.raw(1)?;
    if sign != Sign::None || abs || !suffix.is_empty() {
        return refuse("operand 1 is not a plain integer");
    }
    operation(cx, ConvertFn::FromInt { from, shift: 0, to: Float::F32, round }, false, [src, Src::ZERO])
}

fn to_int(cx: &Cx) -> Lowered<LaneOp> {
    expect(cx, 2)?;
    let mut to = Integer { bits: 32, signed: true };
    let (mut from, mut round, mut ftz, mut nan_to_zero) = (Float::F32, Rounding::Nearest, false, false);
    for name in &cx.inst.mods {
        match (float(name), integer(name), integer_rounding(name)) {
            (Some(f), ..) => from = f,
            (_, Some(i), _) => to = i,
            (_, _, Some(r)) => round = r,
            _ if *name == "FTZ" => ftz = true,
            _ if *name == "NTZ" => nan_to_zero = true,
            _ => return unknown(name),
        }
    }
    let f = ConvertFn::ToInt { from, to, round, ftz, nan_to_zero };
    operation(cx, f, to.bits == 64, float_source(cx, from)?)
}

fn float_to_float(cx: &Cx) -> Lowered<LaneOp> {
    expect(cx, 2)?;
    let (mut formats, mut round, mut ftz) = ([None; 2], Rounding::Nearest, false);
    for name in &cx.inst.mods {
        match (float(name), rounding(name)) {
            (Some(f), _) if formats[0].is_none() => formats[0] = Some(f),
            (Some(f), _) if formats[1].is_none() => formats[1] = Some(f),
            (_, Some(r)) => round = r,
            _ if *name == "FTZ" => ftz = true,
            _ => return unknown(name),
        }
    }
    let [Some(to), Some(from)] = formats else { return refuse("not two formats") };
    let f = ConvertFn::FloatToFloat { from, to, round, ftz };
    operation(cx, f, to == Float::F64, float_source(cx, from)?)
}

fn to_integral(cx: &Cx) -> Lowered<LaneOp> {
    expect(cx, 2)?;
    let (mut format, mut round, mut ftz) = (Float::F32, Rounding::Nearest, false);
    for name in &cx.inst.mods {
        match (float(name), integer_rounding(name)) {
            (Some(f), _) => format = f,
            (_, Some(r)) => round = r,
            _ if *name == "FTZ" => ftz = true,
            _ => return unknown(name),
        }
    }
    let f = ConvertFn::RoundToIntegral { format, round, ftz };
    operation(cx, f, format == Float::F64, float_source(cx, format)?)
}
