//! Lowering of integers, bits, logic and predicates, vector and uniform.
//!
//! Every modifier must be one that the instruction's function accounts for ([`known`]); anything else is
//! refused by name. Trivial sums and products (`IMAD.MOV`, a zero addend, a two-input `LOP3`) become the
//! cheaper function with the same result.

mod bits;
mod compare;
mod logic;
mod minmax;
mod moves;
mod mul;
mod shift;
mod sum;

use lanescope_ir::op::int::IntFn;
use lanescope_ir::op::{LaneFn, LaneOp, SrcKind};
use lanescope_ir::{Op, Pred, Src, SrcMod};

use super::operands::{Cx, Lowered, refuse};
use crate::isa::inst::Sign;

pub(super) fn lower(cx: &Cx) -> Option<Lowered<Op>> {
    let op = match cx.inst.mnemonic {
        "MOV" | "UMOV" => moves::mov(cx),
        "SEL" | "USEL" => moves::sel(cx),
        "IADD3" | "UIADD3" => sum::iadd3(cx),
        "IADD" | "UIADD" => sum::iadd(cx),
        "VIADD" | "UVIADD" => sum::viadd(cx),
        "IABS" | "UIABS" => sum::iabs(cx),
        "VABSDIFF" => sum::absdiff(cx),
        "VABSDIFF4" => sum::absdiff4(cx),
        "IMAD" | "UIMAD" => mul::imad(cx),
        "IDP" => mul::idp(cx),
        "CLMAD" => mul::clmad(cx),
        "LEA" | "ULEA" => shift::lea(cx),
        "SHF" | "USHF" => shift::shf(cx),
        "LOP3" | "ULOP3" => logic::lop3(cx),
        "PLOP3" | "UPLOP3" => logic::plop3(cx),
        "ISETP" | "UISETP" => compare::isetp(cx),
        "IMNMX" | "UIMNMX" | "VIMNMX" | "UVIMNMX" => minmax::minmax(cx),
        "VIMNMX3" | "UVIMNMX3" => minmax::minmax3(cx),
        "VIADDMNMX" | "UVIADDMNMX" => minmax::addminmax(cx),
        "PRMT" | "UPRMT" => bits::prmt(cx),
        "POPC" | "UPOPC" => bits::popc(cx),
        "FLO" | "UFLO" => bits::flo(cx),
        "BREV" | "UBREV" => bits::brev(cx),
        "BMSK" | "UBMSK" => bits::bmsk(cx),
        "SGXT" | "USGXT" => bits::sgxt(cx),
        "I2I" | "UI2I" => bits::i2i(cx),
        "I2IP" | "UI2IP" => bits::i2ip(cx),
        _ => return None,
    };
    Some(op.map(Op::Lane))
}

/// Refuses every modifier that is not listed.
fn known(cx: &Cx, mods: &[&str]) -> Lowered<()> {
    match cx.inst.mods.iter().find(|m| !mods.contains(m)) {
        Some(m) => refuse(format!("modifier .{m}")),
        None => Ok(()),
    }
}

/// Refuses instructions with another number of operands.
fn count(cx: &Cx, n: usize) -> Lowered<()> {
    if cx.len() == n { Ok(()) } else { refuse(format!("{} operands", cx.len())) }
}

/// An operation with `N` sources.
fn op<const N: usize>(f: IntFn, src: [Src; N]) -> LaneOp {
    let mut op = LaneOp::new(LaneFn::Int(f));
    for (to, from) in op.src.iter_mut().zip(src) {
        *to = from;
    }
    op
}

/// Source `i` and whether it is subtracted (or inverted, with `not`): for functions that take signs apart.
fn apart(cx: &Cx, i: usize, not: bool) -> Lowered<(Src, bool)> {
    let (src, sign, abs, suffix) = cx.raw(i)?;
    if abs || !suffix.is_empty() {
        return refuse(format!("operand {i} is not a plain 32-bit source"));
    }
    match (sign, not) {
        (Sign::None, _) => Ok((src, false)),
        (Sign::Neg, false) | (Sign::Not, true) => Ok((src, true)),
        _ => refuse(format!("sign of operand {i}")),
    }
}

/// The 64-bit counterpart of [`apart`].
fn apart64(cx: &Cx, i: usize, not: bool) -> Lowered<([Src; 2], bool)> {
    let (src, sign, abs) = cx.raw64(i)?;
    if abs {
        return refuse(format!("magnitude of operand {i}"));
    }
    match (sign, not) {
        (Sign::None, _) => Ok((src, false)),
        (Sign::Neg, false) | (Sign::Not, true) => Ok((src, true)),
        _ => refuse(format!("sign of operand {i}")),
    }
}

/// A 32-bit source that was read apart, with its sign as a modifier again.
fn signed(src: Src, flip: bool, not: bool) -> Src {
    match (flip, not) {
        (false, _) => src,
        (true, false) => src.with(SrcMod::Neg),
        (true, true) => src.with(SrcMod::Not),
    }
}

/// The value of an unmodified immediate.
fn constant(src: Src) -> Option<u32> {
    match (src.kind, src.modifier) {
        (SrcKind::Imm(v), SrcMod::None) => Some(v),
        _ => None,
    }
}

/// Skips predicate results from operand `i` on: those of them that are not `PT`, and the next operand.
fn results(cx: &Cx, mut i: usize, max: usize) -> Lowered<([Option<Pred>; 2], usize, usize)> {
    let mut found = [None; 2];
    let mut n = 0;
    while n < max && cx.is_pred(i) {
        if let Some(slot) = found.get_mut(n) {
            *slot = cx.pdst(i)?;
        }
        n += 1;
        i += 1;
    }
    Ok((found, n, i))
}
