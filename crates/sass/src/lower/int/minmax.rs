//! Minimum and maximum.

use lanescope_ir::op::LaneOp;
use lanescope_ir::op::int::{IntFn, Packing};
use lanescope_ir::{Pred, PredSrc};

use super::{apart, apart64, count, known, op, results, signed};
use crate::lower::operands::{Cx, Lowered, refuse};

const TYPES: [&str; 7] = ["U32", "S32", "S16x2", "U16x2", "S64", "U64", "RELU"];

/// Signedness, packing and `.RELU`.
fn rule(cx: &Cx) -> Lowered<(bool, Packing, bool)> {
    known(cx, &TYPES)?;
    let signed = !(cx.has("U32") || cx.has("U16x2") || cx.has("U64"));
    let packing = if cx.has("S16x2") || cx.has("U16x2") { Packing::Two } else { Packing::One };
    let relu = cx.has("RELU");
    if relu && !signed {
        return refuse("unsigned .RELU");
    }
    Ok((signed, packing, relu))
}

/// Where the result and the first source are: results may be preceded or followed by predicates.
fn layout(cx: &Cx) -> Lowered<([Option<Pred>; 2], usize, usize)> {
    let (before, _, dst) = results(cx, 0, 2)?;
    let (after, _, first) = results(cx, dst + 1, 2)?;
    if before != [None; 2] {
        return refuse("predicate results of this kind");
    }
    Ok((after, dst, first))
}

/// The same where predicate results are not understood.
fn layout_without_preds(cx: &Cx) -> Lowered<(usize, usize)> {
    match layout(cx)? {
        ([None, None], dst, first) => Ok((dst, first)),
        _ => refuse("predicate results"),
    }
}

/// `d, a, b, p [, !PT]`; `p` selects the minimum.
pub(super) fn minmax(cx: &Cx) -> Lowered<LaneOp> {
    let (signed, packing, relu) = rule(cx)?;
    let (taken, dst, first) = layout(cx)?;
    if cx.len() == first + 4 {
        if cx.psrc(first + 3)? != PredSrc::FALSE {
            return refuse("second predicate source");
        }
    } else {
        count(cx, first + 3)?;
    }
    let p = cx.psrc(first + 2)?;
    if cx.has("S64") || cx.has("U64") {
        let ((a, a_neg), (b, b_neg)) = (apart64(cx, first, false)?, apart64(cx, first + 1, false)?);
        if a_neg || b_neg || relu || taken != [None; 2] {
            return refuse("64-bit minimum of this kind");
        }
        let mut op = op(IntFn::MinMax64 { signed }, [a[0], a[1], b[0], b[1]]);
        op.dst = cx.dst64(dst)?;
        op.psrc[0] = p;
        return Ok(op);
    }
    let src = [plain(cx, first)?, plain(cx, first + 1)?];
    let general = |pdst| {
        let psrc = [p, PredSrc::TRUE, PredSrc::TRUE];
        LaneOp { psrc, pdst, ..op(IntFn::MinMax { signed, packing, relu }, src) }
    };
    if relu && taken != [None; 2] {
        return refuse("predicate results with .RELU");
    }
    let mut op = match (packing, relu) {
        _ if taken != [None; 2] => general(taken),
        (Packing::One, false) if p == PredSrc::TRUE => op(IntFn::Min { signed }, src),
        (Packing::One, false) if p == PredSrc::FALSE => op(IntFn::Max { signed }, src),
        _ => general([None; 2]),
    };
    op.dst[0] = cx.dst(dst)?;
    Ok(op)
}

/// `d, a, b, c, p`
pub(super) fn minmax3(cx: &Cx) -> Lowered<LaneOp> {
    let (signed, packing, relu) = rule(cx)?;
    let (dst, first) = layout_without_preds(cx)?;
    count(cx, first + 4)?;
    let src = [plain(cx, first)?, plain(cx, first + 1)?, plain(cx, first + 2)?];
    let mut op = op(IntFn::MinMax3 { signed, packing, relu }, src);
    op.psrc[0] = cx.psrc(first + 3)?;
    op.dst[0] = cx.dst(dst)?;
    Ok(op)
}

/// `d, a, b, c, p`: of `a + b` and `c`
pub(super) fn addminmax(cx: &Cx) -> Lowered<LaneOp> {
    let (is_signed, packing, relu) = rule(cx)?;
    let (dst, first) = layout_without_preds(cx)?;
    count(cx, first + 4)?;
    let ((a, a_neg), (b, b_neg)) = (apart(cx, first, false)?, apart(cx, first + 1, false)?);
    if packing == Packing::Two && (a_neg || b_neg) {
        return refuse("sign of packed terms");
    }
    let src = [signed(a, a_neg, false), signed(b, b_neg, false), plain(cx, first + 2)?];
    let mut op = op(IntFn::AddMinMax { signed: is_signed, packing, relu }, src);
    op.psrc[0] = cx.psrc(first + 3)?;
    op.dst[0] = cx.dst(dst)?;
    Ok(op)
}

fn plain(cx: &Cx, i: usize) -> Lowered<lanescope_ir::Src> {
    match apart(cx, i, false)? {
        (src, false) => Ok(src),
        _ => refuse(format!("sign of operand {i}")),
    }
}
