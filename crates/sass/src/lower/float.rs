//! Lowering of the float family: FADD to FCHK, MUFU, the packed FADD2, FMUL2, FFMA2, and the uniform twins.

mod packed;
mod special;

use lanescope_ir::op::float::{Arith, Combine, Compare, FloatFn, Relation, Rounding};
use lanescope_ir::op::{LaneFn, LaneOp};
use lanescope_ir::{Op, Src};

use super::operands::{Cx, Lowered, refuse};

pub(super) fn lower(cx: &Cx) -> Option<Lowered<Op>> {
    let op = match cx.inst.mnemonic {
        "FADD" | "UFADD" => add(cx),
        "FMUL" | "UFMUL" => mul(cx),
        "FFMA" | "UFFMA" => fma(cx),
        "FMNMX" | "UFMNMX" => min_max(cx),
        "FMNMX3" => min_max3(cx),
        "FSETP" | "UFSETP" => compare(cx),
        "FSET" | "UFSET" => compare_to_float(cx),
        "FSEL" | "UFSEL" => select(cx),
        "FCHK" => division_check(cx),
        "MUFU" => special::lower(cx),
        "FADD2" | "FMUL2" | "FFMA2" => packed::lower(cx),
        _ => return None,
    };
    Some(op.map(Op::Lane))
}

/// Refuses modifier `name`.
pub(super) fn unknown<T>(name: &str) -> Lowered<T> {
    refuse(format!("modifier .{name}"))
}

/// The rounding that modifier `name` says, if it is one.
pub(super) fn rounding(name: &str) -> Option<Rounding> {
    match name {
        "RN" => Some(Rounding::Nearest),
        "RZ" => Some(Rounding::Zero),
        "RM" => Some(Rounding::Down),
        "RP" => Some(Rounding::Up),
        _ => None,
    }
}

/// The relation that modifier `name` says, if it is one.
pub(super) fn relation(name: &str) -> Option<Relation> {
    const NAMES: [&str; 16] =
        ["F", "LT", "EQ", "LE", "GT", "NE", "GE", "NUM", "NAN", "LTU", "EQU", "LEU", "GTU", "NEU", "GEU", "T"];
    NAMES.iter().position(|n| *n == name).map(|i| Relation(i as u8))
}

/// How modifier `name` combines, if it says so.
pub(super) fn combination(name: &str) -> Option<Combine> {
    match name {
        "AND" => Some(Combine::And),
        "OR" => Some(Combine::Or),
        "XOR" => Some(Combine::Xor),
        _ => None,
    }
}

/// Checks the number of operands.
pub(super) fn expect(cx: &Cx, n: usize) -> Lowered<()> {
    if cx.len() == n { Ok(()) } else { refuse(format!("{} operands instead of {n}", cx.len())) }
}

/// The modifiers common to f32 arithmetic; `other` takes the rest and says whether it knew them.
fn arith(cx: &Cx, mut other: impl FnMut(&str) -> bool) -> Lowered<Arith> {
    let mut arith = Arith::PLAIN;
    for name in &cx.inst.mods {
        match (*name, rounding(name)) {
            (_, Some(round)) => arith.round = round,
            ("FTZ", _) => arith.ftz = true,
            ("SAT", _) => arith.sat = true,
            _ if other(name) => {}
            _ => return unknown(name),
        }
    }
    Ok(arith)
}

/// An operation with f32 sources `1..` of the instruction and destination 0.
fn with_sources(cx: &Cx, f: FloatFn, sources: usize) -> Lowered<LaneOp> {
    let mut op = LaneOp::new(LaneFn::Float(f));
    op.dst[0] = cx.dst(0)?;
    for (i, src) in op.src.iter_mut().enumerate().take(sources) {
        *src = cx.fsrc(i + 1)?;
    }
    Ok(op)
}

fn add(cx: &Cx) -> Lowered<LaneOp> {
    expect(cx, 3)?;
    let arith = arith(cx, |_| false)?;
    with_sources(cx, FloatFn::Add(arith), 2)
}

fn mul(cx: &Cx) -> Lowered<LaneOp> {
    expect(cx, 3)?;
    let (mut scale, mut zero_wins) = (0, false);
    let arith = arith(cx, |name| {
        match name {
            "D2" => scale = -1,
            "D4" => scale = -2,
            "D8" => scale = -3,
            "M2" => scale = 1,
            "M4" => scale = 2,
            "M8" => scale = 3,
            "FMZ" => zero_wins = true,
            _ => return false,
        }
        true
    })?;
    with_sources(cx, FloatFn::Mul { arith, scale, zero_wins }, 2)
}

fn fma(cx: &Cx) -> Lowered<LaneOp> {
    expect(cx, 4)?;
    let mut zero_wins = false;
    let arith = arith(cx, |name| {
        zero_wins |= name == "FMZ";
        name == "FMZ"
    })?;
    with_sources(cx, FloatFn::Fma { arith, zero_wins }, 3)
}

fn min_max(cx: &Cx) -> Lowered<LaneOp> {
    expect(cx, 4)?;
    let (mut ftz, mut nan, mut xorsign_abs) = (false, false, false);
    for name in &cx.inst.mods {
        match *name {
            "FTZ" => ftz = true,
            "NAN" => nan = true,
            "XORSIGN" => xorsign_abs = true,
            _ => return unknown(name),
        }
    }
    let mut op = with_sources(cx, FloatFn::MinMax { ftz, nan, xorsign_abs }, 2)?;
    if xorsign_abs {
        // The bars belong to the function, which needs the signs.
        for (i, src) in op.src.iter_mut().enumerate().take(2) {
            let (raw, sign, abs, suffix) = cx.raw(i + 1)?;
            if !abs || sign != crate::isa::inst::Sign::None || !suffix.is_empty() {
                return refuse("XORSIGN of anything but magnitudes");
            }
            *src = raw;
        }
    }
    op.psrc[0] = cx.psrc(3)?;
    Ok(op)
}

fn min_max3(cx: &Cx) -> Lowered<LaneOp> {
    expect(cx, 5)?;
    let (mut ftz, mut nan) = (false, false);
    for name in &cx.inst.mods {
        match *name {
            "FTZ" => ftz = true,
            "NAN" => nan = true,
            _ => return unknown(name),
        }
    }
    let mut op = with_sources(cx, FloatFn::MinMax3 { ftz, nan }, 3)?;
    op.psrc[0] = cx.psrc(4)?;
    Ok(op)
}

/// Relation, combination and flush of a comparison; `BF` is left to the caller.
fn comparison(cx: &Cx) -> Lowered<(Compare, bool, bool)> {
    let (mut found, mut combine, mut ftz, mut as_float) = (None, Combine::And, false, false);
    for name in &cx.inst.mods {
        match (*name, relation(name), combination(name)) {
            (_, Some(r), _) => found = Some(r),
            (_, _, Some(c)) => combine = c,
            ("FTZ", ..) => ftz = true,
            ("BF", ..) => as_float = true,
            _ => return unknown(name),
        }
    }
    match found {
        Some(relation) => Ok((Compare { relation, combine }, ftz, as_float)),
        None => refuse("no comparison"),
    }
}

fn compare(cx: &Cx) -> Lowered<LaneOp> {
    expect(cx, 5)?;
    let (compare, ftz, as_float) = comparison(cx)?;
    if as_float {
        return unknown("BF");
    }
    let mut op = LaneOp::new(LaneFn::Float(FloatFn::Compare { compare, ftz }));
    op.pdst = [cx.pdst(0)?, cx.pdst(1)?];
    op.src[0] = cx.fsrc(2)?;
    op.src[1] = cx.fsrc(3)?;
    op.psrc[0] = cx.psrc(4)?;
    Ok(op)
}

fn compare_to_float(cx: &Cx) -> Lowered<LaneOp> {
    expect(cx, 4)?;
    let (compare, ftz, as_float) = comparison(cx)?;
    if !as_float {
        return refuse("FSET without .BF");
    }
    let mut op = with_sources(cx, FloatFn::CompareToFloat { compare, ftz }, 2)?;
    op.psrc[0] = cx.psrc(3)?;
    Ok(op)
}

fn select(cx: &Cx) -> Lowered<LaneOp> {
    expect(cx, 4)?;
    let mut ftz = false;
    for name in &cx.inst.mods {
        match *name {
            "FTZ" => ftz = true,
            _ => return unknown(name),
        }
    }
    let mut op = with_sources(cx, FloatFn::Select { ftz }, 2)?;
    op.psrc[0] = cx.psrc(3)?;
    Ok(op)
}

fn division_check(cx: &Cx) -> Lowered<LaneOp> {
    expect(cx, 3)?;
    if let Some(name) = cx.inst.mods.first() {
        return unknown(name);
    }
    let mut op = LaneOp::new(LaneFn::Float(FloatFn::DivisionCheck));
    op.pdst[0] = cx.pdst(0)?;
    op.src[0] = cx.fsrc(1)?;
    op.src[1] = cx.fsrc(2)?;
    Ok(op)
}

/// A 16-bit source in the low half: `-` and `|..|` work on bit 15.
pub(super) fn half_source(cx: &Cx, i: usize) -> Lowered<Src> {
    half_of(cx, i, "H0_H0")
}

/// The same, of the half that `named` says if it is said at all.
fn half_of(cx: &Cx, i: usize, named: &str) -> Lowered<Src> {
    use crate::isa::inst::Sign;
    use lanescope_ir::SrcMod;
    let (src, sign, abs, suffix) = cx.raw(i)?;
    if !suffix.is_empty() && suffix != named {
        return refuse(format!("operand {i} has suffix .{suffix}"));
    }
    Ok(src.with(match (sign, abs) {
        (Sign::None, false) => SrcMod::None,
        (Sign::Neg, false) => SrcMod::HNeg,
        (Sign::None, true) => SrcMod::HAbs,
        (Sign::Neg, true) => SrcMod::HNegAbs,
        (Sign::Not, _) => return refuse(format!("operand {i} is not a plain half")),
    }))
}
