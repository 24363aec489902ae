//! Products.

use lanescope_ir::op::LaneOp;
use lanescope_ir::op::int::IntFn;
use lanescope_ir::{PredSrc, Src, SrcMod};

use super::{apart64, constant, count, known, op, results};
use crate::isa::inst::Operand;
use crate::lower::operands::{Cx, Lowered, refuse};

/// `d, [carry,] a, b, c [, carry in]`. `.MOV`, `.SHL` and `.IADD` only say what the operands amount to.
pub(super) fn imad(cx: &Cx) -> Lowered<LaneOp> {
    known(cx, &["U32", "MOV", "SHL", "IADD", "X", "WIDE", "HI"])?;
    let (carry, _, first) = results(cx, 1, 1)?;
    let x = cx.has("X");
    count(cx, first + 3 + usize::from(x))?;
    let carry_in = if x { cx.psrc(first + 3)? } else { PredSrc::FALSE };
    let (a, b) = (cx.src(first)?, cx.src(first + 1)?);
    if !cx.has("WIDE") && !cx.has("HI") {
        if carry[0].is_some() {
            return refuse("carry of a 32-bit product");
        }
        let c = cx.src(first + 2)?;
        let wanted = if x { SrcMod::Not } else { SrcMod::Neg };
        if c.modifier != SrcMod::None && c.modifier != wanted {
            return refuse("sign of the addend");
        }
        let mut op = low(a, b, c, x);
        if x {
            op.psrc[0] = carry_in;
        }
        op.dst[0] = cx.dst(0)?;
        return Ok(op);
    }
    if a.modifier != SrcMod::None || b.modifier != SrcMod::None {
        return refuse("sign of a factor");
    }
    let signed = !cx.has("U32");
    if let Operand::Int(v) = cx.operand(first + 2)?
        && v != 0
    {
        return refuse("immediate 64-bit addend");
    }
    let (mut c, mut neg_c) = apart64(cx, first + 2, x)?;
    if x && neg_c {
        c = c.map(|word| word.with(SrcMod::Not));
        neg_c = false;
    }
    let high = cx.has("HI");
    let f = match (high, x || carry[0].is_some()) {
        (false, false) => IntFn::MadWide { signed, neg_c },
        (false, true) => IntFn::MadWideCarry { signed, neg_c },
        (true, false) => IntFn::MadHi { signed, neg_c },
        (true, true) => IntFn::MadHiCarry { signed, neg_c },
    };
    let mut op = op(f, [a, b, c[0], c[1]]);
    op.pdst = carry;
    if x || carry[0].is_some() {
        op.psrc[0] = carry_in;
    }
    if high {
        op.dst[0] = cx.dst(0)?;
    } else {
        op.dst = cx.dst64(0)?;
    }
    Ok(op)
}

/// The low word of `a * b + c`, cheaper where a factor is zero, one or a power of two.
fn low(a: Src, b: Src, c: Src, x: bool) -> LaneOp {
    let zero = constant(a) == Some(0) || constant(b) == Some(0);
    let mut op = match constant(b) {
        _ if x && zero => op(IntFn::Add3X, [c, Src::ZERO, Src::ZERO]),
        Some(1) if x => op(IntFn::Add3X, [a, c, Src::ZERO]),
        _ if x => return op(IntFn::MadX, [a, b, c]),
        _ if zero => return super::sum::plain([c, Src::ZERO, Src::ZERO]),
        Some(1) => return super::sum::plain([a, c, Src::ZERO]),
        Some(n) if n.is_power_of_two() => return op(IntFn::Lea { shift: n.trailing_zeros() as u8 }, [a, c]),
        _ => return op(IntFn::Mad, [a, b, c]),
    };
    op.psrc[1] = PredSrc::FALSE;
    op
}

pub(super) fn idp(cx: &Cx) -> Lowered<LaneOp> {
    count(cx, 4)?;
    let f = match cx.inst.mods.as_slice() {
        ["4A", a @ ("S8" | "U8"), b @ ("S8" | "U8")] => IntFn::Dp4a { a: *a == "S8", b: *b == "S8" },
        ["2A", half @ ("LO" | "HI"), a @ ("S16" | "U16"), b @ ("S8" | "U8")] => {
            IntFn::Dp2a { a: *a == "S16", b: *b == "S8", high: *half == "HI" }
        }
        mods => return refuse(format!("modifiers .{}", mods.join("."))),
    };
    let mut op = op(f, [cx.src(1)?, cx.src(2)?, cx.src(3)?]);
    op.dst[0] = cx.dst(0)?;
    Ok(op)
}

/// `d, a, b, c`, all 64-bit.
pub(super) fn clmad(cx: &Cx) -> Lowered<LaneOp> {
    count(cx, 4)?;
    let high = match cx.inst.mods.as_slice() {
        ["LO"] => false,
        ["HI"] => true,
        mods => return refuse(format!("modifiers .{}", mods.join("."))),
    };
    let terms = [apart64(cx, 1, false)?, apart64(cx, 2, false)?, apart64(cx, 3, false)?];
    if terms.iter().any(|t| t.1) {
        return refuse("sign of a polynomial");
    }
    let [([a, b], _), ([c, d], _), ([e, f], _)] = terms;
    let mut op = op(IntFn::ClMad { high }, [a, b, c, d, e, f]);
    op.dst = cx.dst64(0)?;
    Ok(op)
}
