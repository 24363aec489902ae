//! Shifts and scaled sums.

use lanescope_ir::op::LaneOp;
use lanescope_ir::op::int::{Funnel, IntFn, LeaCarry};
use lanescope_ir::{PredSrc, Src};

use super::{apart, constant, count, known, op, results, signed};
use crate::lower::operands::{Cx, Lowered, refuse};

/// `d, [carry,] a, b, [high word of a,] shift [, carry in]`
pub(super) fn lea(cx: &Cx) -> Lowered<LaneOp> {
    known(cx, &["HI", "X", "SX32"])?;
    let (high, x, sign_extend) = (cx.has("HI"), cx.has("X"), cx.has("SX32"));
    let (carry, _, first) = results(cx, 1, 1)?;
    let words = if high && !sign_extend { 3 } else { 2 };
    count(cx, first + words + 1 + usize::from(x))?;
    let ((a, minus_a), (b, minus_b)) = (apart(cx, first, x)?, apart(cx, first + 1, x)?);
    let a_high = if words == 3 { cx.src(first + 2)? } else { Src::ZERO };
    let shift = match u8::try_from(cx.int(first + words)?) {
        Ok(n @ 0..=31) => n,
        _ => return refuse("shift amount"),
    };
    let carry_in = if x { cx.psrc(first + words + 1)? } else { PredSrc::FALSE };
    let simple = carry[0].is_none() && !sign_extend;
    let mut op = if simple && !high && !x {
        // -(a << n) is (-a) << n.
        op(IntFn::Lea { shift }, [signed(a, minus_a, false), signed(b, minus_b, false)])
    } else if simple && high && !minus_a {
        op(IntFn::LeaHiX { shift }, [a, signed(b, minus_b, x), a_high])
    } else {
        let lea = LeaCarry { shift, high, sign_extend, minus_a, minus_b, carry_in: x };
        op(IntFn::LeaCarry(lea), [a, b, a_high])
    };
    op.dst[0] = cx.dst(0)?;
    op.pdst = carry;
    if high || x || carry[0].is_some() || sign_extend {
        op.psrc[0] = carry_in;
    }
    Ok(op)
}

/// `d, low, amount, high`
pub(super) fn shf(cx: &Cx) -> Lowered<LaneOp> {
    known(cx, &["L", "R", "W", "S32", "U32", "S64", "U64", "HI"])?;
    count(cx, 4)?;
    let (lo, amount, hi) = (cx.src(1)?, cx.src(2)?, cx.src(3)?);
    let right = cx.has("R");
    let wide = cx.has("S64") || cx.has("U64");
    if right == cx.has("L") || !(wide || cx.has("S32") || cx.has("U32")) {
        return refuse("direction or type of the shift");
    }
    let f = Funnel { right, high: cx.has("HI"), wrap: cx.has("W"), wide, signed: cx.has("S32") || cx.has("S64") };
    // A fixed amount within the type's width is the same in both modes.
    let wrap = f.wrap && constant(amount).is_none_or(|n| n >= 32);
    // The word that the shift moves away from gets nothing from the other one.
    let mut op = match (right, f.high, wrap) {
        (true, true, false) if f.signed => op(IntFn::ShrS, [hi, amount]),
        (true, true, false) => op(IntFn::ShrU, [hi, amount]),
        (false, false, false) => op(IntFn::Shl, [lo, amount]),
        _ => op(IntFn::Funnel(f), [lo, amount, hi]),
    };
    op.dst[0] = cx.dst(0)?;
    Ok(op)
}
