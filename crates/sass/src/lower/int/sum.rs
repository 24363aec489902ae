//! Sums.

use lanescope_ir::Src;
use lanescope_ir::op::LaneOp;
use lanescope_ir::op::int::IntFn;
use lanescope_ir::{Pred, PredSrc};

use super::{apart, apart64, count, known, op, results, signed};
use crate::lower::operands::{Cx, Lowered, refuse};

/// `d, [carry, [carry,]] a, b, c [, carry in, carry in]`
pub(super) fn iadd3(cx: &Cx) -> Lowered<LaneOp> {
    known(cx, &["X", "64"])?;
    let (mut carry, n, first) = results(cx, 1, 2)?;
    // Up to sm_90 one carry prints alone, whichever of the two it is; the encoding tells.
    if n == 1 && cx.inst.raw >> 81 & 7 == 7 {
        carry = [None, carry[0]];
    }
    if cx.has("64") {
        return iadd3_wide(cx, carry, first);
    }
    let x = cx.has("X");
    count(cx, first + 3 + if x { 2 } else { 0 })?;
    let terms = [apart(cx, first, x)?, apart(cx, first + 1, x)?, apart(cx, first + 2, x)?];
    if terms[0].1 && terms[1].1 {
        // The hardware calls this illegal.
        return refuse("signs of the first two terms");
    }
    let carry_in = if x { Some([cx.psrc(first + 3)?, cx.psrc(first + 4)?]) } else { None };
    let mut op = total(terms, carry, carry_in);
    op.dst[0] = cx.dst(0)?;
    Ok(op)
}

/// The sum of up to three terms (source, subtracted or inverted) with carries out and in.
fn total(terms: [(Src, bool); 3], carry: [Option<Pred>; 2], carry_in: Option<[PredSrc; 2]>) -> LaneOp {
    let with_signs = terms.map(|(src, flip)| signed(src, flip, carry_in.is_some()));
    let mut op = match carry_in {
        None if carry == [None; 2] => return plain(with_signs),
        None => op(IntFn::Add3Carry { neg: terms.map(|(_, neg)| neg) }, terms.map(|(src, _)| src)),
        Some(_) if carry == [None; 2] => op(IntFn::Add3X, with_signs),
        Some(_) => op(IntFn::Add3XCarry, with_signs),
    };
    op.pdst = carry;
    if let Some([p, q]) = carry_in {
        op.psrc[0] = p;
        op.psrc[1] = q;
    }
    op
}

/// A sum without carries; terms that are zero are left out.
pub(super) fn plain(terms: [Src; 3]) -> LaneOp {
    let mut left = terms.into_iter().filter(|t| *t != Src::ZERO && !is_minus_zero(*t));
    match (left.next(), left.next(), left.next()) {
        (Some(a), Some(b), Some(c)) => op(IntFn::Add3, [a, b, c]),
        (Some(a), Some(b), None) => op(IntFn::Add, [a, b]),
        (a, _, _) => op(IntFn::Mov, [a.unwrap_or(Src::ZERO)]),
    }
}

fn is_minus_zero(t: Src) -> bool {
    t == Src::ZERO.with(lanescope_ir::SrcMod::Neg)
}

fn iadd3_wide(cx: &Cx, carry: [Option<Pred>; 2], first: usize) -> Lowered<LaneOp> {
    if cx.has("X") || carry != [None; 2] {
        return refuse("64-bit sum with carries");
    }
    count(cx, first + 3)?;
    let (a, b, c) = (apart64(cx, first, false)?, apart64(cx, first + 1, false)?, apart64(cx, first + 2, false)?);
    let neg = [a.1, b.1, c.1];
    let mut op = if c.0 == [Src::ZERO; 2] {
        op(IntFn::Add64 { neg: [neg[0], neg[1]] }, [a.0[0], a.0[1], b.0[0], b.0[1]])
    } else {
        op(IntFn::Add3Wide { neg }, [a.0[0], a.0[1], b.0[0], b.0[1], c.0[0], c.0[1]])
    };
    op.dst = cx.dst64(0)?;
    Ok(op)
}

/// `d, [carry,] a, b [, carry in]`
pub(super) fn iadd(cx: &Cx) -> Lowered<LaneOp> {
    known(cx, &["X", "64"])?;
    let (carry, _, first) = results(cx, 1, 1)?;
    let x = cx.has("X");
    count(cx, first + 2 + usize::from(x))?;
    if cx.has("64") {
        let (a, b) = (apart64(cx, first, x)?, apart64(cx, first + 1, x)?);
        let (neg, src) = ([a.1, b.1], [a.0[0], a.0[1], b.0[0], b.0[1]]);
        let mut op = if x || carry != [None; 2] {
            let mut op = op(IntFn::Add64Carry { neg, x }, src);
            op.pdst[0] = carry[0];
            if x {
                op.psrc[0] = cx.psrc(first + 2)?;
            }
            op
        } else {
            op(IntFn::Add64 { neg }, src)
        };
        op.dst = cx.dst64(0)?;
        return Ok(op);
    }
    let terms = [apart(cx, first, x)?, apart(cx, first + 1, x)?, (Src::ZERO, false)];
    let carry_in = if x { Some([cx.psrc(first + 2)?, PredSrc::FALSE]) } else { None };
    let mut op = total(terms, carry, carry_in);
    op.dst[0] = cx.dst(0)?;
    Ok(op)
}

pub(super) fn viadd(cx: &Cx) -> Lowered<LaneOp> {
    count(cx, 3)?;
    let (a, b) = (apart(cx, 1, false)?, apart(cx, 2, false)?);
    let mut op = match cx.inst.mods.as_slice() {
        [] => plain([signed(a.0, a.1, false), signed(b.0, b.1, false), Src::ZERO]),
        ["16x2"] if !a.1 && !b.1 => op(IntFn::Add16x2, [a.0, b.0]),
        ["S32", "ISAT"] if !a.1 => op(IntFn::AddSat { neg: b.1 }, [a.0, b.0]),
        mods => return refuse(format!("modifiers .{} with these signs", mods.join("."))),
    };
    op.dst[0] = cx.dst(0)?;
    Ok(op)
}

pub(super) fn iabs(cx: &Cx) -> Lowered<LaneOp> {
    known(cx, &[])?;
    count(cx, 2)?;
    let mut op = op(IntFn::Abs, [cx.src(1)?]);
    op.dst[0] = cx.dst(0)?;
    Ok(op)
}

pub(super) fn absdiff(cx: &Cx) -> Lowered<LaneOp> {
    known(cx, &["U32"])?;
    three(cx, IntFn::AbsDiff { signed: !cx.has("U32") })
}

pub(super) fn absdiff4(cx: &Cx) -> Lowered<LaneOp> {
    known(cx, &["U8", "ACC"])?;
    let signed = !cx.has("U8");
    if cx.has("ACC") {
        return three(cx, IntFn::AbsDiff4Acc { signed });
    }
    // The third source is not used then.
    let mut op = three(cx, IntFn::AbsDiff4 { signed })?;
    op.src[2] = Src::ZERO;
    Ok(op)
}

/// `d, a, b, c` with plain sources.
fn three(cx: &Cx, f: IntFn) -> Lowered<LaneOp> {
    count(cx, 4)?;
    let mut op = op(f, [cx.src(1)?, cx.src(2)?, cx.src(3)?]);
    op.dst[0] = cx.dst(0)?;
    Ok(op)
}
