//! Shifts, fields, counts, bytes.

use lanescope_ir::Src;
use lanescope_ir::op::LaneFn;
use lanescope_ir::op::int::{Funnel, IntFn, Prmt};

use super::{dst, is_integer, sources, wide};
use crate::lower::cx::Cx;
use crate::lower::fail::Lowered;
use crate::lower::forms;
use crate::tree::Type;

pub(in crate::lower) fn lower(c: &mut Cx<'_, '_>) -> Lowered<()> {
    match c.mods.name {
        "shl" | "shr" => shift(c),
        "shf" => funnel(c),
        "bfe" | "bfi" => field(c),
        "bfind" => find(c),
        "clz" | "popc" | "brev" => count(c),
        "prmt" => permute(c),
        "szext" | "bmsk" => extend(c),
        "fns" => nth(c),
        _ => dot(c),
    }
}

fn shift(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    c.mods.finish(&[])?;
    c.expect(3)?;
    let left = c.mods.name == "shl";
    let known = matches!(ty, Type::B16 | Type::B32 | Type::B64) || (!left && is_integer(ty));
    if !known {
        return c.mods.bad_type(ty);
    }
    let d = dst(c, ty)?;
    let a = c.src(c.operand(1)?, ty)?;
    let n = c.word(2, Type::U32)?;
    let signed = ty.is_signed();
    match (left, ty.bits()) {
        (true, 64) => wide(c, IntFn::Shl64, d, &[a[0], a[1], n]),
        (false, 64) => wide(c, IntFn::Shr64 { signed }, d, &[a[0], a[1], n]),
        (true, _) => c.int(IntFn::Shl, d[0], &[a[0], n]),
        (false, _) => {
            // From 16 on all bits of an extended 16-bit number are zero, or its sign.
            let a = c.extended(a[0], ty);
            c.int(if signed { IntFn::ShrS } else { IntFn::ShrU }, d[0], &[a, n]);
        }
    }
    Ok(())
}

fn funnel(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    let right = c.mods.take("r");
    if !right && !c.mods.take("l") {
        return c.error(c.mods.span, "`shf` needs `.l` or `.r`");
    }
    let wrap = c.mods.take("wrap");
    if !wrap && !c.mods.take("clamp") {
        return c.error(c.mods.span, "`shf` needs `.wrap` or `.clamp`");
    }
    c.mods.finish(&["l", "r", "wrap", "clamp"])?;
    if ty != Type::B32 {
        return c.mods.bad_type(ty);
    }
    let (d, [a, b]) = {
        c.expect(4)?;
        (dst(c, ty)?, [c.word(1, ty)?, c.word(2, ty)?])
    };
    let n = c.word(3, Type::U32)?;
    let f = Funnel { right, high: !right, wrap, wide: false, signed: false };
    c.int(IntFn::Funnel(f), d[0], &[a, n, b]);
    Ok(())
}

fn field(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    c.mods.finish(&[])?;
    let insert = c.mods.name == "bfi";
    let known = if insert { matches!(ty, Type::B32 | Type::B64) } else { is_integer(ty) && ty.bits() >= 32 };
    if !known {
        return c.mods.bad_type(ty);
    }
    c.expect(if insert { 5 } else { 4 })?;
    let d = dst(c, ty)?;
    let a = c.src(c.operand(1)?, ty)?;
    let signed = ty.is_signed();
    if insert {
        let b = c.src(c.operand(2)?, ty)?;
        let (at, len) = (c.word(3, Type::U32)?, c.word(4, Type::U32)?);
        forms::field(c, 3)?;
        forms::field(c, 4)?;
        if ty.bits() == 64 {
            wide(c, IntFn::Bfi64, d, &[a[0], a[1], b[0], b[1], at, len]);
        } else {
            c.int(IntFn::Bfi, d[0], &[a[0], b[0], at, len]);
        }
        return Ok(());
    }
    let (at, len) = (c.word(2, Type::U32)?, c.word(3, Type::U32)?);
    forms::field(c, 2)?;
    forms::field(c, 3)?;
    if ty.bits() == 64 {
        wide(c, IntFn::Bfe64 { signed }, d, &[a[0], a[1], at, len]);
    } else {
        c.int(IntFn::Bfe { signed }, d[0], &[a[0], at, len]);
    }
    Ok(())
}

fn find(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    let shift = c.mods.take("shiftamt");
    c.mods.finish(&["shiftamt"])?;
    if !is_integer(ty) || ty.bits() < 32 {
        return c.mods.bad_type(ty);
    }
    let [a] = sources(c, ty)?;
    let d = dst(c, Type::U32)?;
    let signed = ty.is_signed();
    let f = if ty.bits() == 64 { IntFn::Flo64 { signed, shift } } else { IntFn::Flo { signed, shift } };
    c.int(f, d[0], &a[..2]);
    Ok(())
}

fn count(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    c.mods.finish(&[])?;
    if !matches!(ty, Type::B32 | Type::B64) {
        return c.mods.bad_type(ty);
    }
    let [a] = sources(c, ty)?;
    let name = c.mods.name;
    let d = dst(c, if name == "brev" { ty } else { Type::U32 })?;
    let f = match (name, ty) {
        ("clz", Type::B32) => IntFn::Clz,
        ("clz", _) => IntFn::Clz64,
        ("popc", Type::B32) => IntFn::Popc,
        ("popc", _) => IntFn::Popc64,
        (_, Type::B32) => IntFn::Brev,
        _ => IntFn::Brev64,
    };
    c.apply(LaneFn::Int(f), [d[0], d[1]], &a[..2]);
    Ok(())
}

fn permute(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    let mode = c.mods.find(|m| {
        Some(match m {
            "f4e" => Prmt::F4e,
            "b4e" => Prmt::B4e,
            "rc8" => Prmt::Rc8,
            "ecl" => Prmt::Ecl,
            "ecr" => Prmt::Ecr,
            "rc16" => Prmt::Rc16,
            _ => return None,
        })
    });
    c.mods.finish(&["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"])?;
    if ty != Type::B32 {
        return c.mods.bad_type(ty);
    }
    let [a, b, select] = sources(c, ty)?;
    let d = dst(c, ty)?;
    c.int(IntFn::Prmt(mode.unwrap_or(Prmt::Index)), d[0], &[a[0], select[0], b[0]]);
    Ok(())
}

fn extend(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    let wrap = c.mods.take("wrap");
    if !wrap && !c.mods.take("clamp") {
        return c.error(c.mods.span, format!("`{}` needs `.wrap` or `.clamp`", c.mods.name));
    }
    c.mods.finish(&["wrap", "clamp"])?;
    let mask = c.mods.name == "bmsk";
    if !(mask && ty == Type::B32 || !mask && matches!(ty, Type::U32 | Type::S32)) {
        return c.mods.bad_type(ty);
    }
    c.expect(3)?;
    let d = dst(c, ty)?;
    let (a, n) = (c.word(1, if mask { Type::U32 } else { ty })?, c.word(2, Type::U32)?);
    let f = if mask { IntFn::Bmsk { wrap } } else { IntFn::Sgxt { signed: ty.is_signed(), wrap } };
    c.int(f, d[0], &[a, n]);
    Ok(())
}

fn nth(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    c.mods.finish(&[])?;
    if ty != Type::B32 {
        return c.mods.bad_type(ty);
    }
    c.expect(4)?;
    let d = dst(c, ty)?;
    let s: [Src; 3] = [c.word(1, ty)?, c.word(2, Type::B32)?, c.word(3, Type::S32)?];
    c.int(IntFn::Fns, d[0], &s);
    Ok(())
}

/// `dp4a`, `dp2a`
fn dot(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let [a, b] = c.mods.two_types()?;
    let word = |ty| matches!(ty, Type::U32 | Type::S32);
    if !word(a) || !word(b) {
        return c.mods.bad_type(if word(a) { b } else { a });
    }
    let (high, low) = (c.mods.take("hi"), c.mods.take("lo"));
    c.mods.finish(&["hi", "lo"])?;
    let f = match (c.mods.name, high || low) {
        ("dp4a", false) => IntFn::Dp4a { a: a.is_signed(), b: b.is_signed() },
        ("dp2a", true) => IntFn::Dp2a { a: a.is_signed(), b: b.is_signed(), high },
        _ => {
            return c.error(c.mods.span, format!("`{}` needs `.lo` or `.hi` if and only if it is `dp2a`", c.mods.name));
        }
    };
    c.expect(4)?;
    let sum = if a.is_signed() || b.is_signed() { Type::S32 } else { Type::U32 };
    let d = dst(c, sum)?;
    let s = [c.word(1, a)?, c.word(2, b)?, c.word(3, sum)?];
    c.int(f, d[0], &s);
    Ok(())
}
