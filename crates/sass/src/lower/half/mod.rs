//! Lowering of packed f16 and bf16 instructions.
//!
//! Refused by name: `.FMZ` and `.OOB` (other rules for zero and for missing operands), f32 accumulation, and
//! predicate sources of `HFMA2`, none of which a compiler was seen to emit.

mod arith;
mod compare;

use lanescope_ir::op::half::{Format, HalfFn, Select};
use lanescope_ir::op::{LaneFn, LaneOp, SrcKind};
use lanescope_ir::{Op, Src, SrcMod};

use super::operands::{Cx, Lowered, refuse};
use crate::isa::inst::{FloatFormat, Operand, Sign};

pub(super) fn lower(cx: &Cx) -> Option<Lowered<Op>> {
    let op = match cx.inst.mnemonic {
        "HADD2" => arith::hadd2(cx),
        "HMUL2" => arith::hmul2(cx),
        "HFMA2" => arith::hfma2(cx),
        "HMNMX2" | "VHMNMX" => arith::minmax(cx),
        "HSETP2" => compare::hsetp2(cx),
        "HSET2" => compare::hset2(cx),
        _ => return None,
    };
    Some(op.map(Op::Lane))
}

fn op<const N: usize>(f: HalfFn, src: [Src; N]) -> LaneOp {
    let mut op = LaneOp::new(LaneFn::Half(f));
    for (to, from) in op.src.iter_mut().zip(src) {
        *to = from;
    }
    op
}

/// Refuses every modifier that is not listed.
fn known(cx: &Cx, mods: &[&str]) -> Lowered<()> {
    match cx.inst.mods.iter().find(|m| !mods.contains(m)) {
        Some(m) => refuse(format!("modifier .{m}")),
        None => Ok(()),
    }
}

fn format(cx: &Cx) -> Format {
    if cx.has("BF16_V2") || cx.has("BF16") { Format::Bf16 } else { Format::F16 }
}

/// A packed source with the halves meant.
#[derive(Clone, Copy)]
struct Packed {
    src: Src,
    select: Select,
    /// The source is one f32: suffix `.F32`.
    single: bool,
}

impl Packed {
    /// Zero in both halves, of either sign.
    fn is_zero(self) -> bool {
        self.src.kind == SrcKind::Imm(0)
    }
}

/// The source at operand `i` and the number of operands it takes: an immediate prints as its high and low half.
fn packed(cx: &Cx, i: usize) -> Lowered<(Packed, usize)> {
    if let Operand::Float { .. } | Operand::Int(_) = cx.operand(i)? {
        let value = half_immediate(cx, i)? << 16 | half_immediate(cx, i + 1)?;
        return Ok((Packed { src: Src::imm(value), select: Select::Both, single: false }, 2));
    }
    let (src, sign, abs, suffix) = cx.raw(i)?;
    let modifier = match (sign, abs) {
        (Sign::None, false) => SrcMod::None,
        (Sign::None, true) => SrcMod::HAbs,
        (Sign::Neg, false) => SrcMod::HNeg,
        (Sign::Neg, true) => SrcMod::HNegAbs,
        _ => return refuse(format!("sign of operand {i}")),
    };
    let (select, modifier) = match suffix {
        "" => (Select::Both, modifier),
        "H0_H0" => (Select::Low, modifier),
        "H1_H1" => (Select::High, modifier),
        // The high half is negated: a flip of bit 31.
        "H0_NH1" if modifier == SrcMod::None => (Select::Both, SrcMod::FNeg),
        "F32" if modifier == SrcMod::None => {
            return Ok((Packed { src, select: Select::Both, single: true }, 1));
        }
        _ => return refuse(format!("suffix .{suffix} of operand {i}")),
    };
    Ok((Packed { src: src.with(modifier), select, single: false }, 1))
}

/// One half of an immediate.
fn half_immediate(cx: &Cx, i: usize) -> Lowered<u32> {
    match cx.operand(i)? {
        Operand::Float { bits, format: FloatFormat::F16 | FloatFormat::Bf16, suffix: "" } if bits <= 0xffff => Ok(bits),
        _ => refuse(format!("operand {i} is not a 16-bit immediate")),
    }
}

/// The packed sources from operand `first` on, and what comes after them.
fn sources<const N: usize>(cx: &Cx, first: usize) -> Lowered<([Packed; N], usize)> {
    let mut found = [Packed { src: Src::ZERO, select: Select::Both, single: false }; N];
    let mut i = first;
    for f in &mut found {
        let (source, taken) = packed(cx, i)?;
        *f = source;
        i += taken;
    }
    Ok((found, i))
}

/// Refuses operands from `n` on.
fn end(cx: &Cx, n: usize) -> Lowered<()> {
    if cx.len() == n { Ok(()) } else { refuse(format!("{} operands", cx.len())) }
}

/// Refuses f32 sources.
fn no_single(sources: &[Packed]) -> Lowered<()> {
    if sources.iter().any(|s| s.single) { refuse("f32 source") } else { Ok(()) }
}
