//! Sums, products, carries.

use lanescope_ir::op::int::IntFn;
use lanescope_ir::op::{LaneFn, LaneOp};
use lanescope_ir::{Pred, PredSrc, Slot, Src, SrcMod};

use super::{dst, is_integer, sources, wide};
use crate::lower::cx::{CARRY, Cx};
use crate::lower::fail::{Lowered, unsupported};
use crate::tree::Type;

/// `add`, `sub` and `sad` of integers.
pub(in crate::lower) fn sum(c: &mut Cx<'_, '_>) -> Lowered<()> {
    if c.mods.has("cc") {
        return carry(c);
    }
    let ty = c.mods.ty()?;
    let sat = c.mods.take("sat");
    c.mods.finish(&["sat", "cc"])?;
    let sub = c.mods.name == "sub";
    let packed = matches!(ty, Type::U16x2 | Type::S16x2);
    if packed && !sub && !sat {
        let (d, [a, b]) = (dst(c, ty)?, sources(c, ty)?);
        c.int(IntFn::Add16x2, d[0], &[a[0], b[0]]);
        return Ok(());
    }
    if !is_integer(ty) || (sat && ty != Type::S32) {
        return c.mods.bad_type(ty);
    }
    let signed = ty.is_signed();
    if c.mods.name == "sad" {
        let (d, [a, b, e]) = (dst(c, ty)?, sources(c, ty)?);
        if ty.bits() == 64 {
            wide(c, IntFn::AbsDiff64 { signed }, d, &[a[0], a[1], b[0], b[1], e[0], e[1]]);
        } else {
            let (a, b) = (c.extended(a[0], ty), c.extended(b[0], ty));
            c.int(IntFn::AbsDiff { signed }, d[0], &[a, b, e[0]]);
        }
        return Ok(());
    }
    let (d, [a, b]) = (dst(c, ty)?, sources(c, ty)?);
    if ty.bits() == 64 {
        wide(c, IntFn::Add64 { neg: [false, sub] }, d, &[a[0], a[1], b[0], b[1]]);
    } else if sat {
        c.int(IntFn::AddSat { neg: sub }, d[0], &[a[0], b[0]]);
    } else {
        let b = if sub { b[0].with(SrcMod::Neg) } else { b[0] };
        c.int(IntFn::Add, d[0], &[a[0], b]);
    }
    Ok(())
}

/// What an extended-precision instruction does with the carry flag. After a subtraction the flag is the carry of the
/// sum with the inverted subtrahend: set if nothing was borrowed.
#[derive(Clone, Copy)]
struct Flags {
    reads: bool,
    writes: bool,
    subtract: bool,
}

/// `d = a ± b` of one word, the carry coming from `from` and going to `to`.
fn word(c: &mut Cx<'_, '_>, flags: Flags, d: Option<Slot>, a: Src, b: Src, from: Option<Pred>, to: Option<Pred>) {
    let f = match (from, to) {
        (None, _) => IntFn::Add3Carry { neg: [false, flags.subtract, false] },
        (Some(_), None) => IntFn::Add3X,
        (Some(_), Some(_)) => IntFn::Add3XCarry,
    };
    let mut op = LaneOp::new(LaneFn::Int(f));
    op.dst[0] = d;
    op.src[0] = a;
    op.src[1] = if from.is_some() && flags.subtract { inverted(b) } else { b };
    op.pdst[0] = to;
    op.psrc = [from.map_or(PredSrc::FALSE, PredSrc::of), PredSrc::FALSE, PredSrc::FALSE];
    c.lane(op);
}

fn inverted(b: Src) -> Src {
    match b.kind {
        lanescope_ir::op::SrcKind::Imm(value) => Src::imm(!value),
        _ => b.with(SrcMod::Not),
    }
}

/// `d = a ± b` with the flag, of a type.
fn extended(c: &mut Cx<'_, '_>, flags: Flags, ty: Type, d: [Option<Slot>; 2], a: [Src; 2], b: [Src; 2]) {
    let from = flags.reads.then_some(CARRY);
    let to = flags.writes.then_some(CARRY);
    if ty.bits() == 64 {
        let between = c.temp_pred();
        // The high words are read after the low result is written.
        let low = c.temp();
        word(c, flags, Some(low), a[0], b[0], from, Some(between));
        word(c, flags, d[1], a[1], b[1], Some(between), to);
        c.int(IntFn::Mov, d[0], &[Src::slot(low)]);
    } else {
        word(c, flags, d[0], a[0], b[0], from, to);
    }
}

/// `add.cc`, `addc`, `sub.cc`, `subc`
pub(in crate::lower) fn carry(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    let writes = c.mods.take("cc");
    c.mods.finish(&["cc"])?;
    if !is_integer(ty) || ty.bits() < 32 {
        return c.mods.bad_type(ty);
    }
    let name = c.mods.name;
    let flags = Flags { reads: name.ends_with('c'), writes, subtract: name.starts_with("sub") };
    let (d, [a, b]) = (dst(c, ty)?, sources(c, ty)?);
    extended(c, flags, ty, [d[0], d[1]], [a[0], a[1]], [b[0], b[1]]);
    Ok(())
}

/// `mul`, `mad`, `madc`, `mul24`, `mad24` of integers.
pub(in crate::lower) fn product(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    let part = c.mods.find(|m| matches!(m, "lo" | "hi" | "wide").then_some(m));
    let sat = c.mods.take("sat");
    let writes = c.mods.take("cc");
    c.mods.finish(&["lo", "hi", "wide", "sat", "cc"])?;
    let name = c.mods.name;
    let add = name.starts_with("mad");
    c.expect(if add { 4 } else { 3 })?;
    let Some(part) = part else {
        return c.error(c.mods.span, format!("`{name}` of integers needs `.lo`, `.hi` or `.wide`"));
    };
    if !is_integer(ty) {
        return c.mods.bad_type(ty);
    }
    let signed = ty.is_signed();
    let (a, b) = (c.src(c.operand(1)?, ty)?, c.src(c.operand(2)?, ty)?);
    let result = match (part, ty) {
        ("wide", Type::U16) => Type::U32,
        ("wide", Type::S16) => Type::S32,
        ("wide", Type::U32) => Type::U64,
        ("wide", Type::S32) => Type::S64,
        ("wide", _) => return c.mods.bad_type(ty),
        _ => ty,
    };
    let d = dst(c, result)?;
    let e = if add { c.src(c.operand(3)?, result)? } else { [Src::ZERO; 4] };
    if name.ends_with("24") {
        if ty.bits() != 32 || part == "wide" || (sat && !(signed && part == "hi")) {
            return c.mods.bad_type(ty);
        }
        c.int(IntFn::Mad24 { signed, high: part == "hi", sat }, d[0], &[a[0], b[0], e[0]]);
        return Ok(());
    }
    if writes || name == "madc" {
        if ty.bits() < 32 || part == "wide" || sat {
            return c.mods.bad_type(ty);
        }
        let flags = Flags { reads: name == "madc", writes, subtract: false };
        let t = [c.temp(), c.temp()];
        multiply(c, ty, part, t.map(Some), a, b, [Src::ZERO; 4]);
        extended(c, flags, ty, [d[0], d[1]], t.map(Src::slot), [e[0], e[1]]);
        return Ok(());
    }
    if sat {
        if !(add && part == "hi" && ty == Type::S32) {
            return unsupported("a saturating product");
        }
        c.int(IntFn::MadHiSat, d[0], &[a[0], b[0], e[0]]);
        return Ok(());
    }
    multiply(c, ty, part, [d[0], d[1]], a, b, e);
    Ok(())
}

/// `d = a * b + e`, the part of it.
fn multiply(c: &mut Cx<'_, '_>, ty: Type, part: &str, d: [Option<Slot>; 2], a: [Src; 4], b: [Src; 4], e: [Src; 4]) {
    let signed = ty.is_signed();
    match (ty.bits(), part) {
        (64, "lo") => wide(c, IntFn::Mad64, [d[0], d[1], None, None], &[a[0], a[1], b[0], b[1], e[0], e[1]]),
        (64, _) => wide(c, IntFn::MadHi64 { signed }, [d[0], d[1], None, None], &[a[0], a[1], b[0], b[1], e[0], e[1]]),
        (_, "lo") => c.int(IntFn::Mad, d[0], &[a[0], b[0], e[0]]),
        (32, "hi") => c.int(IntFn::MadHi { signed, neg_c: false }, d[0], &[a[0], b[0], Src::ZERO, e[0]]),
        (32, _) => {
            let f = IntFn::MadWide { signed, neg_c: false };
            wide(c, f, [d[0], d[1], None, None], &[a[0], b[0], e[0], e[1]]);
        }
        (_, part) => {
            let (a, b) = (c.extended(a[0], ty), c.extended(b[0], ty));
            if part == "wide" {
                c.int(IntFn::Mad, d[0], &[a, b, e[0]]);
            } else {
                let t = c.temp();
                c.int(IntFn::Mad, Some(t), &[a, b]);
                c.int(if signed { IntFn::ShrS } else { IntFn::ShrU }, Some(t), &[Src::slot(t), Src::imm(16)]);
                c.int(IntFn::Add, d[0], &[Src::slot(t), e[0]]);
            }
        }
    }
}
