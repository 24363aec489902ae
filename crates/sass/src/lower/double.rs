//! Lowering of the double family.

use lanescope_ir::op::double::{DoubleFn, Signs};
use lanescope_ir::op::float::{Combine, Compare, Rounding};
use lanescope_ir::op::{LaneFn, LaneOp};
use lanescope_ir::{Op, PredSrc, Src};

use super::float::{combination, expect, relation, rounding, unknown};
use super::operands::{Cx, Lowered, refuse};
use crate::isa::inst::Sign;

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

fn arithmetic(cx: &Cx, sources: usize, f: fn(Rounding, Signs) -> DoubleFn) -> Lowered<LaneOp> {
    expect(cx, sources + 1)?;
    let mut round = Rounding::Nearest;
    for name in &cx.inst.mods {
        match rounding(name) {
            Some(r) => round = r,
            None => return unknown(name),
        }
    }
    let (mut src, mut signs) = ([Src::ZERO; 6], Signs::default());
    for (i, words) in src.chunks_exact_mut(2).enumerate().take(sources) {
        let (raw, sign, abs) = cx.raw64(i + 1)?;
        match sign {
            Sign::None => {}
            Sign::Neg => signs.negate |= 1 << i,
            Sign::Not => return refuse(format!("operand {} is not an f64", i + 1)),
        }
        signs.magnitude |= u8::from(abs) << i;
        words.copy_from_slice(&raw);
    }
    let mut op = LaneOp::new(LaneFn::Double(f(round, signs)));
    op.dst = cx.dst64(0)?;
    op.src = src;
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
