//! Comparisons and selections.

use lanescope_ir::op::double::DoubleFn;
use lanescope_ir::op::float::{Combine, Compare, FloatFn, Relation};
use lanescope_ir::op::half::{self, FloatCmp, HalfFn, Select};
use lanescope_ir::op::int::{BoolOp, Cmp, IntFn};
use lanescope_ir::op::{LaneFn, LaneOp};
use lanescope_ir::{Pred, PredSrc, Src};

use super::cx::Cx;
use super::fail::{Lowered, unsupported};
use super::forms;
use super::half::format;
use super::int::dst;
use crate::tree::Type;

/// A comparison by name: of integers, and as a set of relations (less 1, equal 2, greater 4, unordered 8) of floats.
#[derive(Clone, Copy)]
struct Test {
    int: Option<Cmp>,
    /// `lo`, `ls`, `hi`, `hs` compare as unsigned.
    unsigned: bool,
    relation: Option<u8>,
}

fn test(name: &str) -> Option<Test> {
    let (int, unsigned, relation) = match name {
        "eq" => (Some(Cmp::Eq), false, Some(2)),
        "ne" => (Some(Cmp::Ne), false, Some(5)),
        "lt" => (Some(Cmp::Lt), false, Some(1)),
        "le" => (Some(Cmp::Le), false, Some(3)),
        "gt" => (Some(Cmp::Gt), false, Some(4)),
        "ge" => (Some(Cmp::Ge), false, Some(6)),
        "lo" => (Some(Cmp::Lt), true, None),
        "ls" => (Some(Cmp::Le), true, None),
        "hi" => (Some(Cmp::Gt), true, None),
        "hs" => (Some(Cmp::Ge), true, None),
        "num" => (None, false, Some(7)),
        "nan" => (None, false, Some(8)),
        "ltu" => (None, false, Some(9)),
        "equ" => (None, false, Some(10)),
        "leu" => (None, false, Some(11)),
        "gtu" => (None, false, Some(12)),
        "neu" => (None, false, Some(13)),
        "geu" => (None, false, Some(14)),
        _ => return None,
    };
    Some(Test { int, unsigned, relation })
}

const NAMES: &[&str] = &[
    "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "num", "nan", "ltu", "equ", "leu", "gtu", "neu", "geu",
    "and", "or", "xor", "ftz",
];

/// The comparison of operands 1 and 2 joined with operand 3, without destinations.
fn comparison(c: &mut Cx<'_, '_>, ty: Type) -> Lowered<LaneOp> {
    let Some(test) = c.mods.find(test) else {
        return c.error(c.mods.span, format!("`{}` needs a comparison", c.mods.name));
    };
    let join = c.mods.find(|m| match m {
        "and" => Some(BoolOp::And),
        "or" => Some(BoolOp::Or),
        "xor" => Some(BoolOp::Xor),
        _ => None,
    });
    let ftz = c.mods.take("ftz");
    c.mods.finish(NAMES)?;
    c.expect(if join.is_some() { 4 } else { 3 })?;
    let with = if join.is_some() { c.psrc(c.operand(3)?)? } else { PredSrc::TRUE };
    let op = join.unwrap_or(BoolOp::And);
    let (a, b) = (c.src(c.operand(1)?, ty)?, c.src(c.operand(2)?, ty)?);
    let combine = match op {
        BoolOp::And => Combine::And,
        BoolOp::Or => Combine::Or,
        BoolOp::Xor => Combine::Xor,
    };
    let wrong = |c: &Cx<'_, '_>| c.error(c.mods.span, format!("this comparison does not exist for `.{}`", ty.name()));
    let mut lane = match ty {
        Type::F32 | Type::F64 => {
            let Some(relation) = test.relation else { return wrong(c) };
            let compare = Compare { relation: Relation(relation), combine };
            if ty == Type::F32 {
                let mut lane = LaneOp::new(LaneFn::Float(FloatFn::Compare { compare, ftz }));
                lane.src[..2].copy_from_slice(&[a[0], b[0]]);
                lane
            } else {
                let mut lane = LaneOp::new(LaneFn::Double(DoubleFn::Compare(compare)));
                lane.src[..4].copy_from_slice(&[a[0], a[1], b[0], b[1]]);
                lane
            }
        }
        Type::F16 | Type::Bf16 | Type::F16x2 | Type::Bf16x2 => {
            let (Some(r), Some(format)) = (test.relation, format(ty)) else { return wrong(c) };
            let cmp = FloatCmp { less: r & 1 != 0, equal: r & 2 != 0, greater: r & 4 != 0, unordered: r & 8 != 0 };
            // Of one number both halves are the low one, so that both predicates tell of it.
            let select = if matches!(ty, Type::F16 | Type::Bf16) { Select::Low } else { Select::Both };
            let compare = half::Compare { format, ftz, cmp, op, select: [select; 2] };
            let f = if select == Select::Low { HalfFn::SetPBoth(compare) } else { HalfFn::SetP(compare) };
            let mut lane = LaneOp::new(LaneFn::Half(f));
            lane.src[..2].copy_from_slice(&[a[0], b[0]]);
            lane
        }
        Type::B16 | Type::U16 | Type::S16 | Type::B32 | Type::U32 | Type::S32 | Type::B64 | Type::U64 | Type::S64 => {
            let Some(cmp) = test.int else { return wrong(c) };
            if ftz || (test.unsigned && ty.is_signed()) {
                return wrong(c);
            }
            let signed = ty.is_signed();
            if ty.bits() == 64 {
                let mut lane = LaneOp::new(LaneFn::Int(IntFn::SetJoin64 { cmp, signed, op }));
                lane.src[..4].copy_from_slice(&[a[0], a[1], b[0], b[1]]);
                lane
            } else {
                let f = IntFn::SetJoin { cmp, signed, op, extended: false };
                let mut lane = LaneOp::new(LaneFn::Int(f));
                lane.src[0] = c.extended(a[0], ty);
                lane.src[1] = c.extended(b[0], ty);
                lane
            }
        }
        _ => return c.mods.bad_type(ty),
    };
    lane.psrc[0] = with;
    Ok(lane)
}

/// `setp`
pub(super) fn setp(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    let mut lane = comparison(c, ty)?;
    let (p, q) = c.pair(c.operand(0)?);
    lane.pdst[0] = c.pdst(p)?;
    if let Some(q) = q {
        if matches!(ty, Type::F16 | Type::Bf16) {
            return c.error(q.span, "a comparison of `.f16` or `.bf16` has one result");
        }
        lane.pdst[1] = c.pdst(q)?;
    }
    // The plain comparison has a faster function.
    if let LaneFn::Int(IntFn::SetJoin { cmp, signed, .. }) = lane.f
        && lane.pdst[1].is_none()
        && lane.psrc[0].is_true()
    {
        lane.f = LaneFn::Int(IntFn::Set { cmp, signed });
    }
    c.lane(lane);
    Ok(())
}

/// `set`
pub(super) fn set(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let [to, from] = c.mods.two_types()?;
    forms::of(c, "setp", Some(from))?;
    let known = match from {
        Type::F16 => matches!(to, Type::U32 | Type::S32 | Type::U16 | Type::S16 | Type::F16 | Type::Bf16),
        Type::Bf16 => matches!(to, Type::U32 | Type::S32 | Type::U16 | Type::S16 | Type::Bf16),
        Type::F16x2 | Type::Bf16x2 => matches!(to, Type::U32 | Type::S32) || to == from,
        _ => matches!(to, Type::U32 | Type::S32 | Type::F32 | Type::F16 | Type::Bf16),
    };
    if !known {
        return c.mods.bad_type(to);
    }
    let mut lane = comparison(c, from)?;
    if let LaneFn::Half(HalfFn::SetP(compare) | HalfFn::SetPBoth(compare)) = lane.f
        && (format(to).is_some() || matches!(to, Type::U16 | Type::S16) || from.bits() == 32)
    {
        lane.f = LaneFn::Half(HalfFn::Set { compare, one: format(to).is_some() });
        lane.dst[0] = dst(c, to)?[0];
        c.lane(lane);
        return Ok(());
    }
    let one = match to {
        Type::U32 | Type::S32 => !0,
        Type::F32 => 1f32.to_bits(),
        Type::F16 => 0x3c00,
        Type::Bf16 => 0x3f80,
        _ => return c.mods.bad_type(to),
    };
    let d = dst(c, to)?[0];
    let p = c.temp_pred();
    lane.pdst[0] = Some(p);
    c.lane(lane);
    let mut select = LaneOp::new(LaneFn::Int(IntFn::Sel));
    select.dst[0] = d;
    select.src[0] = Src::imm(one);
    select.psrc[0] = PredSrc::of(p);
    c.lane(select);
    Ok(())
}

/// `d = p ? operand 1 : operand 2`
fn select(c: &mut Cx<'_, '_>, ty: Type, p: PredSrc) -> Lowered<()> {
    if matches!(ty.bits(), 0..16 | 128) {
        return c.mods.bad_type(ty);
    }
    let d = dst(c, ty)?;
    let (a, b) = (c.src(c.operand(1)?, ty)?, c.src(c.operand(2)?, ty)?);
    let mut op = LaneOp::new(LaneFn::Int(if ty.bits() == 64 { IntFn::Sel64 } else { IntFn::Sel }));
    op.dst = [d[0], d[1]];
    if ty.bits() == 64 {
        op.src[..4].copy_from_slice(&[a[0], a[1], b[0], b[1]]);
    } else {
        op.src[..2].copy_from_slice(&[a[0], b[0]]);
    }
    op.psrc[0] = p;
    c.lane(op);
    Ok(())
}

/// `selp`
pub(super) fn selp(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    c.mods.finish(&[])?;
    c.expect(4)?;
    let p = c.psrc(c.operand(3)?)?;
    select(c, ty, p)
}

/// `slct`: the first source if the third is not negative.
pub(super) fn slct(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let [ty, by] = c.mods.two_types()?;
    let ftz = by == Type::F32 && c.mods.take("ftz");
    c.mods.finish(&["ftz"])?;
    c.expect(4)?;
    forms::of(c, "selp", Some(ty))?;
    let p: Pred = c.temp_pred();
    let f = match by {
        Type::S32 => LaneFn::Int(IntFn::Set { cmp: Cmp::Ge, signed: true }),
        Type::F32 => {
            let relation = Relation(Relation::GT.0 | Relation::EQ.0);
            LaneFn::Float(FloatFn::Compare { compare: Compare { relation, combine: Combine::And }, ftz })
        }
        _ => return unsupported("slct by this type"),
    };
    let mut op = LaneOp::new(f);
    op.src[0] = c.word(3, by)?;
    op.pdst[0] = Some(p);
    c.lane(op);
    select(c, ty, PredSrc::of(p))
}
