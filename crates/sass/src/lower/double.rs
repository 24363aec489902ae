//! Lowering of the double family.

use lanescope_ir::op::double::DoubleFn;
use lanescope_ir::op::float::{Combine, Compare, Rounding};
use lanescope_ir::op::{LaneFn, LaneOp};
use lanescope_ir::{Op, PredSrc};

use super::float::{combination, expect, relation, rounding, unknown};
use super::operands::{Cx, Lowered, refuse};

pub(super) fn lower(cx: &Cx) -> Option<Lowered<Op>> {
    let op = match cx.inst.mnemonic {
        "DADD" => arithmetic(cx, 2, DoubleFn::Add),
        "DMUL" => arithmetic(cx, 2, DoubleFn::Mul),
        "DFMA" => arithmetic(cx, 3, DoubleFn::Fma),
        "DSETP" => compare(cx),
        _ => return None,
    };
    Some(op.map(Op::Lane))
}

fn arithmetic(cx: &Cx, sources: usize, f: fn(Rounding) -> DoubleFn) -> Lowered<LaneOp> {
    expect(cx, sources + 1)?;
    let mut round = Rounding::Nearest;
    for name in &cx.inst.mods {
        match rounding(name) {
            Some(r) => round = r,
            None => return unknown(name),
        }
    }
    let mut op = LaneOp::new(LaneFn::Double(f(round)));
    op.dst = cx.dst64(0)?;
    for (i, words) in op.src.chunks_exact_mut(2).enumerate().take(sources) {
        words.copy_from_slice(&cx.dsrc(i + 1)?);
    }
    Ok(op)
}

fn compare(cx: &Cx) -> Lowered<LaneOp> {
    expect(cx, 5)?;
    let (mut found, mut combine, mut smaller) = (None, Combine::And, None);
    for name in &cx.inst.mods {
        match (*name, relation(name), combination(name)) {
            (_, Some(r), _) => found = Some(r),
            (_, _, Some(c)) => combine = c,
            ("MIN", ..) => smaller = Some(true),
            ("MAX", ..) => smaller = Some(false),
            _ => return unknown(name),
        }
    }
    let psrc = cx.psrc(4)?;
    let f = match (found, smaller) {
        (Some(relation), None) => DoubleFn::Compare(Compare { relation, combine }),
        (None, Some(smaller)) if psrc == PredSrc::TRUE && combine == Combine::And => DoubleFn::Prefer { smaller },
        (None, Some(_)) => return refuse("MIN or MAX combined with a predicate"),
        _ => return refuse("no comparison"),
    };
    let mut op = LaneOp::new(LaneFn::Double(f));
    op.pdst = [cx.pdst(0)?, cx.pdst(1)?];
    op.src[..2].copy_from_slice(&cx.dsrc(2)?);
    op.src[2..4].copy_from_slice(&cx.dsrc(3)?);
    op.psrc[0] = psrc;
    Ok(op)
}
