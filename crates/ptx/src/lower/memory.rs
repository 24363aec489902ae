//! Loads, stores, copies; what only caches notice does nothing.

use lanescope_ir::op::LaneFn;
use lanescope_ir::op::int::IntFn;
use lanescope_ir::op::memory::{Addr, Amount, MemoryOp, Space as IrSpace, Width};
use lanescope_ir::{Op, PredSrc, Slot, Src};

use super::cx::{Cx, Dst, Words, words};
use super::fail::{Lowered, unsupported};
use super::space::space;
use crate::tree::{Component, Operand, OperandKind, Space, Type};

/// Modifiers that change neither values nor addresses here: every store is visible at once.
fn is_hint(m: &str) -> bool {
    const HINTS: &[&str] = &[
        "weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "mmio", "cta", "cluster", "gpu", "sys", "ca",
        "cg", "cs", "lu", "cv", "wb", "wt", "nc", "unified",
    ];
    HINTS.contains(&m) || m.starts_with("L1::") || m.starts_with("L2::") || m.starts_with("level::")
}

/// Drops hints.
pub(super) fn ignore_hints(c: &mut Cx<'_, '_>) {
    c.mods.ignore(is_hint);
}

/// The cache policy, operand `i`: there if and only if `.L2::cache_hint` says so. Caches are not looked at.
pub(super) fn cache_policy(c: &mut Cx<'_, '_>, i: usize) -> Lowered<()> {
    let hint = c.mods.take("L2::cache_hint");
    match c.ops.get(i) {
        Some(policy) if hint => c.src(policy, Type::B64).map(|_| ()),
        Some(policy) => {
            c.error(policy.span, format!("`{}` takes a cache policy with `.L2::cache_hint` only", c.mods.name))
        }
        None if hint => c.error(c.span, "`.L2::cache_hint` needs a cache policy"),
        None => Ok(()),
    }
}

/// The number of elements.
fn vector(c: &mut Cx<'_, '_>) -> usize {
    c.mods
        .find(|m| match m {
            "v2" => Some(2),
            "v4" => Some(4),
            "v8" => Some(8),
            _ => None,
        })
        .unwrap_or(1)
}

/// The elements of a vector operand, as operands.
fn elements(c: &Cx<'_, '_>, operand: &Operand, n: usize) -> Lowered<Vec<Operand>> {
    let list: Vec<Operand> = match operand.kind {
        OperandKind::Vector(list) => c.body.list(list).to_vec(),
        OperandKind::Register(register) if n > 1 && usize::from(c.register(register).vector) == n => {
            let parts = [Component::X, Component::Y, Component::Z, Component::W];
            let element =
                |&component| Operand { kind: OperandKind::Element { register, component }, span: operand.span };
            parts.iter().take(n).map(element).collect()
        }
        _ => vec![*operand],
    };
    if list.len() != n {
        return c.error(operand.span, format!("`{}` needs {n} elements here, not {}", c.mods.text, list.len()));
    }
    Ok(list)
}

/// The width of an access of so many bytes.
fn width(bytes: usize) -> Option<Width> {
    Some(match bytes {
        4 => Width::B32,
        8 => Width::B64,
        16 => Width::B128,
        32 => Width::B256,
        _ => return None,
    })
}

/// The width of one element of less than a word.
fn narrow(ty: Type) -> Width {
    match (ty.bits(), ty.is_signed()) {
        (8, false) => Width::U8,
        (8, true) => Width::S8,
        (_, false) => Width::U16,
        (_, true) => Width::S16,
    }
}

fn is_memory_type(ty: Type) -> bool {
    matches!(ty.bits(), 8 | 16 | 32 | 64 | 128)
}

/// `ld`, `ldu`
pub(super) fn load(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    let n = vector(c);
    let space = c.mods.find(space);
    cache_policy(c, 2)?;
    ignore_hints(c);
    c.mods.finish(&["v2", "v4", "v8", "global", "shared", "local", "const", "param"])?;
    c.expect_between(2, 3)?;
    if !is_memory_type(ty) || ty.is_float() && ty == Type::Tf32 {
        return c.mods.bad_type(ty);
    }
    let place = c.address_of(1, space)?;
    let operand = c.operand(0)?;
    let mut dst: Vec<Dst> = Vec::new();
    for element in elements(c, operand, n)? {
        dst.push(c.dst_wide(&element, ty, true)?);
    }
    let bytes = ty.bytes() as usize * n;
    if ty.bits() < 32 && n > 1 {
        return load_small(c, ty, &dst, bytes, place.space, place.addr);
    }
    let each = words(ty);
    let mut out = [None; 8];
    if ty.bits() < 32 {
        out[0] = dst[0][0];
        read(c, place.space, narrow(ty), out, place.addr);
    } else {
        let Some(width) = width(bytes).filter(|w| w.slots() <= 8) else { return c.mods.bad_type(ty) };
        for (i, d) in dst.iter().enumerate() {
            out[each * i..each * (i + 1)].copy_from_slice(&d[..each]);
        }
        read(c, place.space, width, out, place.addr);
    }
    widen(c, ty, &dst, each);
    Ok(())
}

/// Reads; parameters at fixed places are constants.
fn read(c: &mut Cx<'_, '_>, space: IrSpace, width: Width, dst: [Option<Slot>; 8], addr: Addr) {
    let fixed = u32::try_from(addr.offset).ok().filter(|at| at % 4 == 0 && addr.base == Src::ZERO);
    match (space, width, fixed) {
        (IrSpace::Const(bank), Width::B32, Some(at)) => c.int(IntFn::Mov, dst[0], &[Src::constant(bank, at)]),
        (IrSpace::Const(bank), Width::B64, Some(at)) => {
            let s = [Src::constant(bank, at), Src::constant(bank, at + 4)];
            c.apply(LaneFn::Int(IntFn::Mov64), [dst[0], dst[1]], &s);
        }
        _ => c.memory(MemoryOp::Load { space, width, dst, addr, valid: PredSrc::TRUE }),
    }
}

/// Extends what was loaded into registers wider than its type.
fn widen(c: &mut Cx<'_, '_>, ty: Type, dst: &[Dst], each: usize) {
    for d in dst {
        let Some(low) = d[0] else { continue };
        for high in d.iter().skip(each.max(1)).flatten() {
            if ty.is_signed() {
                let top = d[each - 1].unwrap_or(low);
                c.int(IntFn::ShrS, Some(*high), &[Src::slot(top), Src::imm(31)]);
            } else {
                c.int(IntFn::Mov, Some(*high), &[Src::ZERO]);
            }
        }
    }
}

/// Elements of less than a word: one access, then taken apart.
fn load_small(c: &mut Cx<'_, '_>, ty: Type, dst: &[Dst], bytes: usize, space: IrSpace, addr: Addr) -> Lowered<()> {
    let access = if bytes == 2 { Some(Width::U16) } else { width(bytes) };
    let Some(width) = access.filter(|w| w.slots() <= 4) else { return c.mods.bad_type(ty) };
    let mut out = [None; 8];
    for slot in out.iter_mut().take(width.slots()) {
        *slot = Some(c.temp());
    }
    read(c, space, width, out, addr);
    let each = 32 / ty.bits() as usize;
    for (i, d) in dst.iter().enumerate() {
        if let (Some(to), Some(word)) = (d[0], out[i / each]) {
            let at = (i % each) as u32 * ty.bits();
            let field = [Src::slot(word), Src::imm(at), Src::imm(ty.bits())];
            c.int(IntFn::Bfe { signed: ty.is_signed() }, Some(to), &field);
        }
    }
    widen(c, ty, dst, 1);
    Ok(())
}

/// `st`
pub(super) fn store(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    let n = vector(c);
    let space = c.mods.find(space);
    if c.mods.has("async") || c.mods.has("bulk") {
        return unsupported("asynchronous store");
    }
    cache_policy(c, 2)?;
    ignore_hints(c);
    c.mods.finish(&["v2", "v4", "v8", "global", "shared", "local", "param"])?;
    c.expect_between(2, 3)?;
    if !is_memory_type(ty) {
        return c.mods.bad_type(ty);
    }
    let place = c.address_of(0, space)?;
    if matches!(place.space, IrSpace::Const(_)) {
        return c.error(c.operand(0)?.span, "kernel parameters and constants cannot be written");
    }
    let operand = c.operand(1)?;
    let mut values: Vec<Words> = Vec::new();
    for element in elements(c, operand, n)? {
        values.push(c.src_wide(&element, ty, true)?);
    }
    let each = words(ty);
    let bytes = ty.bytes() as usize * n;
    let mut src = [Src::ZERO; 8];
    let access = if ty.bits() >= 32 {
        for (i, v) in values.iter().enumerate().take(8 / each) {
            src[each * i..each * (i + 1)].copy_from_slice(&v[..each]);
        }
        width(bytes)
    } else if n == 1 {
        src[0] = values[0][0];
        Some(narrow(ty))
    } else {
        pack_small(c, ty, &values, &mut src);
        if bytes == 2 { Some(Width::U16) } else { width(bytes).filter(|w| w.slots() <= 4) }
    };
    let Some(width) = access else { return c.mods.bad_type(ty) };
    c.memory(MemoryOp::Store { space: place.space, width, src, addr: place.addr });
    Ok(())
}

/// Puts elements of less than a word together.
fn pack_small(c: &mut Cx<'_, '_>, ty: Type, values: &[Words], out: &mut [Src; 8]) {
    let each = 32 / ty.bits() as usize;
    for (word, group) in out.iter_mut().zip(values.chunks(each)) {
        let t = c.temp();
        c.int(IntFn::Mov, Some(t), &[group[0][0]]);
        for (i, value) in group.iter().enumerate().skip(1) {
            let at = Src::imm(i as u32 * ty.bits());
            c.int(IntFn::Bfi, Some(t), &[value[0], Src::slot(t), at, Src::imm(ty.bits())]);
        }
        *word = Src::slot(t);
    }
}

/// `cp.async`: the copy is done at once, so that waiting for it is nothing.
pub(super) fn copy_async(c: &mut Cx<'_, '_>) -> Lowered<()> {
    if !c.mods.take("async") {
        return unsupported("bulk copy");
    }
    if c.mods.has("bulk") || c.mods.has("mbarrier") {
        return unsupported("asynchronous copy");
    }
    if let Some(what) = c.mods.find(|m| matches!(m, "commit_group" | "wait_group" | "wait_all").then_some(m)) {
        c.mods.finish(&[])?;
        c.expect(usize::from(what == "wait_group"))?;
        if what == "wait_group" && c.operand(0)?.kind.integer().is_none() {
            return c.error(c.operand(0)?.span, "the number of groups must be a constant");
        }
        c.emit(Op::Nop);
        return Ok(());
    }
    if let Some(ty) = c.mods.types().first() {
        return c.error(c.mods.span, format!("`cp.async` has no type, and here is `.{}`", ty.name()));
    }
    let whole = c.mods.take("cg");
    if !whole && !c.mods.take("ca") {
        return c.error(c.mods.span, "`cp.async` needs `.ca` or `.cg`");
    }
    let hint = c.mods.take("L2::cache_hint");
    c.mods.ignore(|m| m.starts_with("L2::"));
    if !(c.mods.take("shared") || c.mods.take("shared::cta")) || !c.mods.take("global") {
        return unsupported("asynchronous copy");
    }
    c.mods.finish(&[])?;
    c.expect_between(3, 5)?;
    let (to, from) = (c.address_of(0, Some(Space::Shared))?, c.address_of(1, Some(Space::Global))?);
    let width = match c.operand(2)?.kind.integer() {
        Some(16) => Width::B128,
        _ if whole => return c.error(c.operand(2)?.span, "the size must be 16 with `.cg`"),
        Some(4) => Width::B32,
        Some(8) => Width::B64,
        _ => return c.error(c.operand(2)?.span, "the size must be 4, 8 or 16"),
    };
    bracketed(c, 0)?;
    bracketed(c, 1)?;
    let (mut valid, mut amount) = (PredSrc::TRUE, Amount::All);
    match c.ops.get(3) {
        // Where it holds, the source counts as zeros.
        Some(operand) if c.register_type(operand) == Some(Type::Pred) => valid = c.psrc(operand)?.not(),
        Some(operand) if !(hint && c.ops.len() == 4) => {
            if operand.kind.integer().is_some_and(|size| size > u64::from(width.bytes())) {
                return c.error(operand.span, "no more can be copied than the size");
            }
            amount = Amount::First(c.src(operand, Type::U32)?[0]);
        }
        _ => {}
    }
    match c.ops.get(if c.ops.len() == 5 { 4 } else { 3 }) {
        Some(policy) if hint => drop(c.src(policy, Type::B64)?),
        Some(policy) if c.ops.len() == 5 => {
            return c.error(policy.span, "`cp.async` takes a cache policy with `.L2::cache_hint` only");
        }
        None if hint => return c.error(c.span, "`.L2::cache_hint` needs a cache policy"),
        _ => {}
    }
    c.memory(MemoryOp::Copy { width, to: to.addr, from: from.addr, valid, amount });
    Ok(())
}

/// Refuses `array[1]` where only `[array+4]` is an address.
pub(super) fn bracketed(c: &Cx<'_, '_>, i: usize) -> Lowered<()> {
    let operand = c.operand(i)?;
    if operand.span.text(c.module.source).starts_with('[') {
        return Ok(());
    }
    c.error(operand.span, "an address in brackets is needed here")
}

/// `createpolicy`: a number that only caches look at.
pub(super) fn policy(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let d = c.dst(c.operand(0)?, Type::B64)?;
    c.apply(LaneFn::Int(IntFn::Mov64), [d[0], d[1]], &[Src::ZERO; 2]);
    Ok(())
}

/// `mapa`, `getctarank`: every block is a cluster of its own.
pub(super) fn cluster_address(c: &mut Cx<'_, '_>) -> Lowered<()> {
    c.only_own_cluster()?;
    let ty = c.mods.ty()?;
    c.mods.find(space);
    c.mods.finish(&[])?;
    if c.mods.name == "getctarank" {
        c.expect(2)?;
        let d = c.dst(c.operand(0)?, Type::U32)?;
        c.int(IntFn::Mov, d[0], &[Src::ZERO]);
        return Ok(());
    }
    c.expect(3)?;
    let d = c.dst(c.operand(0)?, ty)?;
    let operand = c.operand(1)?;
    let s = match operand.kind {
        OperandKind::Symbol { target, offset } => {
            let (_, place) = c.variable(target, operand.span)?;
            let address = place.addr.offset.wrapping_add(i64::from(offset));
            [Src::imm(address as u32), Src::ZERO, Src::ZERO, Src::ZERO]
        }
        _ => c.src(operand, ty)?,
    };
    c.apply(LaneFn::Int(if ty.bits() == 64 { IntFn::Mov64 } else { IntFn::Mov }), [d[0], d[1]], &s[..2]);
    Ok(())
}
