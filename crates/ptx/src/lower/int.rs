//! Integer and bit instructions.

mod bits;
mod sum;

use lanescope_ir::op::int::{IntFn, Packing};
use lanescope_ir::op::{LaneFn, LaneOp};
use lanescope_ir::{PredSrc, Src, SrcMod};

use super::cx::{Cx, Dst, Words};
use super::fail::Lowered;
use crate::tree::Type;

pub(super) use bits::lower as bits;
pub(super) use sum::{carry, product, sum};

/// Destination words of operand 0.
pub(super) fn dst(c: &Cx<'_, '_>, ty: Type) -> Lowered<Dst> {
    c.dst(c.operand(0)?, ty)
}

/// Words of the sources from operand 1 on.
pub(super) fn sources<const N: usize>(c: &Cx<'_, '_>, ty: Type) -> Lowered<[Words; N]> {
    c.expect(N + 1)?;
    let mut out = [[Src::ZERO; 4]; N];
    for (i, words) in out.iter_mut().enumerate() {
        *words = c.src(c.operand(i + 1)?, ty)?;
    }
    Ok(out)
}

/// A 64-bit result.
pub(super) fn wide(c: &mut Cx<'_, '_>, f: IntFn, d: Dst, s: &[Src]) {
    c.apply(LaneFn::Int(f), [d[0], d[1]], s);
}

fn is_integer(ty: Type) -> bool {
    matches!(ty, Type::U16 | Type::S16 | Type::U32 | Type::S32 | Type::U64 | Type::S64)
}

fn is_bits(ty: Type) -> bool {
    matches!(ty, Type::B16 | Type::B32 | Type::B64)
}

/// `div`, `rem`
pub(super) fn divide(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    if !is_integer(ty) {
        return c.mods.bad_type(ty);
    }
    c.mods.finish(&[])?;
    let (d, [a, b]) = (dst(c, ty)?, sources(c, ty)?);
    let signed = ty.is_signed();
    let rem = c.mods.name == "rem";
    if ty.bits() == 64 {
        let f = if rem { IntFn::Rem64 { signed } } else { IntFn::Div64 { signed } };
        wide(c, f, d, &[a[0], a[1], b[0], b[1]]);
    } else {
        let f = if rem { IntFn::Rem { signed } } else { IntFn::Div { signed } };
        let (a, b) = (c.extended(a[0], ty), c.extended(b[0], ty));
        c.int(f, d[0], &[a, b]);
    }
    Ok(())
}

/// `abs`, `neg`
pub(super) fn sign(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    if !matches!(ty, Type::S16 | Type::S32 | Type::S64) {
        return c.mods.bad_type(ty);
    }
    c.mods.finish(&[])?;
    let (d, [a]) = (dst(c, ty)?, sources(c, ty)?);
    match (c.mods.name, ty.bits()) {
        ("abs", 64) => wide(c, IntFn::Abs64, d, &a),
        ("abs", _) => {
            let a = c.extended(a[0], ty);
            c.int(IntFn::Abs, d[0], &[a]);
        }
        (_, 64) => wide(c, IntFn::Add64 { neg: [false, true] }, d, &[Src::ZERO, Src::ZERO, a[0], a[1]]),
        _ => c.int(IntFn::Mov, d[0], &[a[0].with(SrcMod::Neg)]),
    }
    Ok(())
}

/// `min`, `max`
pub(super) fn extreme(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    let packed = matches!(ty, Type::U16x2 | Type::S16x2);
    if !is_integer(ty) && !packed {
        return c.mods.bad_type(ty);
    }
    let relu = c.mods.take("relu");
    c.mods.finish(&["relu"])?;
    c.expect(3)?;
    let signed = matches!(ty, Type::S16 | Type::S32 | Type::S64 | Type::S16x2);
    let smaller = c.mods.name == "min";
    let d = dst(c, ty)?;
    let (a, b) = (c.src(c.operand(1)?, ty)?, c.src(c.operand(2)?, ty)?);
    if ty.bits() == 64 {
        let mut op = LaneOp::new(LaneFn::Int(IntFn::MinMax64 { signed }));
        op.dst = [d[0], d[1]];
        op.src[..4].copy_from_slice(&[a[0], a[1], b[0], b[1]]);
        op.psrc[0] = if smaller { PredSrc::TRUE } else { PredSrc::FALSE };
        c.lane(op);
        return Ok(());
    }
    let ext = if packed { Type::B32 } else { ty };
    let (a, b) = (c.extended(a[0], ext), c.extended(b[0], ext));
    let packing = if packed { Packing::Two } else { Packing::One };
    let f = match relu || packed {
        true => IntFn::MinMax { signed, packing, relu },
        false if smaller => IntFn::Min { signed },
        false => IntFn::Max { signed },
    };
    let mut op = LaneOp::new(LaneFn::Int(f));
    op.dst[0] = d[0];
    op.src[..2].copy_from_slice(&[a, b]);
    op.psrc[0] = if smaller { PredSrc::TRUE } else { PredSrc::FALSE };
    c.lane(op);
    Ok(())
}

/// `and`, `or`, `xor`, `not`, `cnot`
pub(super) fn logic(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    c.mods.finish(&[])?;
    let name = c.mods.name;
    if ty == Type::Pred {
        return predicates(c, name);
    }
    if !is_bits(ty) {
        return c.mods.bad_type(ty);
    }
    let d = dst(c, ty)?;
    if name == "not" || name == "cnot" {
        let [a] = sources(c, ty)?;
        match (name, ty.bits()) {
            ("not", 64) => wide(c, IntFn::Lop64 { lut: 0x0f }, d, &[a[0], a[1]]),
            ("not", _) => c.int(IntFn::Mov, d[0], &[a[0].with(SrcMod::Not)]),
            (_, 64) => wide(c, IntFn::Cnot64, d, &a),
            _ => {
                let a = c.extended(a[0], ty);
                c.int(IntFn::Cnot, d[0], &[a]);
            }
        }
        return Ok(());
    }
    let [a, b] = sources(c, ty)?;
    let (f, lut) = match name {
        "and" => (IntFn::And, 0xc0),
        "or" => (IntFn::Or, 0xfc),
        _ => (IntFn::Xor, 0x3c),
    };
    if ty.bits() == 64 {
        wide(c, IntFn::Lop64 { lut }, d, &[a[0], a[1], b[0], b[1]]);
    } else {
        c.int(f, d[0], &[a[0], b[0]]);
    }
    Ok(())
}

fn predicates(c: &mut Cx<'_, '_>, name: &str) -> Lowered<()> {
    // Tables at 4 a + 2 b + c.
    let (n, lut) = match name {
        "and" => (2, 0xc0),
        "or" => (2, 0xfc),
        "xor" => (2, 0x3c),
        "not" => (1, 0x0f),
        "mov" => (1, 0xf0),
        _ => return c.mods.bad_type(Type::Pred),
    };
    c.expect(n + 1)?;
    let mut op = LaneOp::new(LaneFn::Int(IntFn::Plop3 { lut: [lut, 0] }));
    op.pdst[0] = c.pdst(c.operand(0)?)?;
    for i in 0..n {
        op.psrc[i] = c.psrc(c.operand(i + 1)?)?;
    }
    c.lane(op);
    Ok(())
}

/// `mov.pred`
pub(super) fn move_predicate(c: &mut Cx<'_, '_>) -> Lowered<()> {
    predicates(c, "mov")
}

/// `lop3`
pub(super) fn lop3(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    let join = c.mods.find(|m| match m {
        "and" => Some(true),
        "or" => Some(false),
        _ => None,
    });
    if ty != Type::B32 {
        return c.mods.bad_type(ty);
    }
    c.mods.finish(&["and", "or"])?;
    c.expect(if join.is_some() { 6 } else { 5 })?;
    let lut = match c.operand(4)?.kind.integer() {
        Some(value) => value as u8,
        None => return c.error(c.operand(4)?.span, "the table must be a constant"),
    };
    let (to, p) = c.pair(c.operand(0)?);
    let f = match join {
        Some(and) => IntFn::Lop3Pred { lut, and },
        None => IntFn::Lop3 { lut },
    };
    let mut op = LaneOp::new(LaneFn::Int(f));
    op.dst[0] = c.dst(to, ty)?[0];
    for i in 0..3 {
        op.src[i] = c.word(i + 1, ty)?;
    }
    if join.is_some() {
        if let Some(p) = p {
            op.pdst[0] = c.pdst(p)?;
        }
        op.psrc[0] = c.psrc(c.operand(5)?)?;
    }
    c.lane(op);
    Ok(())
}
