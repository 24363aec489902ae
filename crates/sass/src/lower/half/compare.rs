//! Comparisons.

use lanescope_ir::op::LaneOp;
use lanescope_ir::op::half::{Compare, FloatCmp, HalfFn};
use lanescope_ir::op::int::BoolOp;

use super::{end, format, no_single, op, sources};
use crate::lower::operands::{Cx, Lowered, refuse};

/// Relation named by a modifier.
fn relation(name: &str) -> Option<FloatCmp> {
    let cmp = |less, equal, greater, unordered| FloatCmp { less, equal, greater, unordered };
    Some(match name {
        "F" => cmp(false, false, false, false),
        "LT" => cmp(true, false, false, false),
        "EQ" => cmp(false, true, false, false),
        "LE" => cmp(true, true, false, false),
        "GT" => cmp(false, false, true, false),
        "NE" => cmp(true, false, true, false),
        "GE" => cmp(false, true, true, false),
        "NUM" => cmp(true, true, true, false),
        "NAN" => cmp(false, false, false, true),
        "LTU" => cmp(true, false, false, true),
        "EQU" => cmp(false, true, false, true),
        "LEU" => cmp(true, true, false, true),
        "GTU" => cmp(false, false, true, true),
        "NEU" => cmp(true, false, true, true),
        "GEU" => cmp(false, true, true, true),
        "T" => cmp(true, true, true, true),
        _ => return None,
    })
}

/// The comparison of the sources from operand `first` on, its sources, and where the predicate stands.
fn compare(cx: &Cx, first: usize, others: &[&str]) -> Lowered<(Compare, [lanescope_ir::Src; 2], usize)> {
    let (mut cmp, mut join) = (None, None);
    for &m in &cx.inst.mods {
        match m {
            "AND" => join = Some(BoolOp::And),
            "OR" => join = Some(BoolOp::Or),
            "XOR" => join = Some(BoolOp::Xor),
            "BF16_V2" | "FTZ" => {}
            _ if others.contains(&m) => {}
            _ => match relation(m) {
                Some(r) => cmp = Some(r),
                None => return refuse(format!("modifier .{m}")),
            },
        }
    }
    let (Some(cmp), Some(join)) = (cmp, join) else { return refuse("comparison without operator") };
    let ([a, b], n) = sources::<2>(cx, first)?;
    no_single(&[a, b])?;
    end(cx, n + 1)?;
    let compare = Compare { format: format(cx), ftz: cx.has("FTZ"), cmp, op: join, select: [a.select, b.select] };
    Ok((compare, [a.src, b.src], n))
}

pub(super) fn hsetp2(cx: &Cx) -> Lowered<LaneOp> {
    let (compare, src, n) = compare(cx, 2, &["H_AND"])?;
    let mut op = op(if cx.has("H_AND") { HalfFn::SetPBoth(compare) } else { HalfFn::SetP(compare) }, src);
    op.pdst = [cx.pdst(0)?, cx.pdst(1)?];
    op.psrc[0] = cx.psrc(n)?;
    Ok(op)
}

pub(super) fn hset2(cx: &Cx) -> Lowered<LaneOp> {
    let (compare, src, n) = compare(cx, 1, &["BF"])?;
    let mut op = op(HalfFn::Set { compare, one: cx.has("BF") }, src);
    op.psrc[0] = cx.psrc(n)?;
    op.dst[0] = cx.dst(0)?;
    Ok(op)
}
