//! Moves and selections.

use lanescope_ir::op::LaneOp;
use lanescope_ir::op::int::IntFn;

use super::{apart64, count, known, op};
use crate::lower::operands::{Cx, Lowered};

/// `.SPILL` says why the value is moved. A third operand would be a mask of lanes, which is refused.
pub(super) fn mov(cx: &Cx) -> Lowered<LaneOp> {
    known(cx, &["64", "SPILL"])?;
    count(cx, 2)?;
    if cx.has("64") {
        let (src, _) = plain64(cx, 1)?;
        let mut op = op(IntFn::Mov64, src);
        op.dst = cx.dst64(0)?;
        return Ok(op);
    }
    let mut op = op(IntFn::Mov, [cx.src(1)?]);
    op.dst[0] = cx.dst(0)?;
    Ok(op)
}

pub(super) fn sel(cx: &Cx) -> Lowered<LaneOp> {
    known(cx, &["64"])?;
    count(cx, 4)?;
    let mut op = if cx.has("64") {
        let (([a, b], _), ([c, d], _)) = (plain64(cx, 1)?, plain64(cx, 2)?);
        let mut op = op(IntFn::Sel64, [a, b, c, d]);
        op.dst = cx.dst64(0)?;
        op
    } else {
        let mut op = op(IntFn::Sel, [cx.src(1)?, cx.src(2)?]);
        op.dst[0] = cx.dst(0)?;
        op
    };
    op.psrc[0] = cx.psrc(3)?;
    Ok(op)
}

fn plain64(cx: &Cx, i: usize) -> Lowered<([lanescope_ir::Src; 2], bool)> {
    match apart64(cx, i, false)? {
        (src, false) => Ok((src, false)),
        _ => crate::lower::operands::refuse(format!("sign of operand {i}")),
    }
}
