//! Comparisons.

use lanescope_ir::PredSrc;
use lanescope_ir::op::LaneOp;
use lanescope_ir::op::int::{BoolOp, Cmp, IntFn};

use super::{apart64, count, op};
use crate::lower::operands::{Cx, Lowered, refuse};

/// `q, q, a, b, p [, comparison of the low words]`
pub(super) fn isetp(cx: &Cx) -> Lowered<LaneOp> {
    let (mut cmp, mut join, mut signed, mut wide, mut extended) = (None, None, true, false, false);
    for &m in &cx.inst.mods {
        match m {
            "F" => cmp = Some(Cmp::False),
            "LT" => cmp = Some(Cmp::Lt),
            "EQ" => cmp = Some(Cmp::Eq),
            "LE" => cmp = Some(Cmp::Le),
            "GT" => cmp = Some(Cmp::Gt),
            "NE" => cmp = Some(Cmp::Ne),
            "GE" => cmp = Some(Cmp::Ge),
            "T" => cmp = Some(Cmp::True),
            "AND" => join = Some(BoolOp::And),
            "OR" => join = Some(BoolOp::Or),
            "XOR" => join = Some(BoolOp::Xor),
            "U32" => signed = false,
            "S64" => wide = true,
            "U64" => (signed, wide) = (false, true),
            "EX" => extended = true,
            _ => return refuse(format!("modifier .{m}")),
        }
    }
    let (Some(cmp), Some(join)) = (cmp, join) else { return refuse("comparison without operator") };
    if extended && wide {
        return refuse("extended 64-bit comparison");
    }
    count(cx, 5 + usize::from(extended))?;
    let (q, p) = ([cx.pdst(0)?, cx.pdst(1)?], cx.psrc(4)?);
    let mut op = if wide {
        let ((a, a_neg), (b, b_neg)) = (apart64(cx, 2, false)?, apart64(cx, 3, false)?);
        if a_neg || b_neg {
            return refuse("sign of a compared value");
        }
        op(IntFn::SetJoin64 { cmp, signed, op: join }, [a[0], a[1], b[0], b[1]])
    } else {
        let (a, b) = (cx.src(2)?, cx.src(3)?);
        if !extended && join == BoolOp::And && p == PredSrc::TRUE && q[1].is_none() {
            op(IntFn::Set { cmp, signed }, [a, b])
        } else {
            // The constant comparisons do not look at the low words.
            let low_matters = extended && !matches!(cmp, Cmp::False | Cmp::True);
            op(IntFn::SetJoin { cmp, signed, op: join, extended: low_matters }, [a, b])
        }
    };
    op.pdst = q;
    op.psrc[0] = p;
    if extended {
        op.psrc[1] = cx.psrc(5)?;
    }
    Ok(op)
}
