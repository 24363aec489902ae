//! `atom` and `red`.

use lanescope_ir::op::float::HalfFormat;
use lanescope_ir::op::int::{IntFn, Prmt};
use lanescope_ir::op::memory::{Addr, AtomOp, AtomType, MemoryOp, Space as IrSpace};
use lanescope_ir::{Slot, Src};

use super::cx::{Cx, Dst, Words};
use super::fail::{Lowered, unsupported};
use super::memory::{bracketed, cache_policy, ignore_hints};
use super::space::space;
use crate::tree::{Operand, OperandKind, Type};

fn operation(m: &str) -> Option<AtomOp> {
    Some(match m {
        "add" => AtomOp::Add,
        "min" => AtomOp::Min,
        "max" => AtomOp::Max,
        "inc" => AtomOp::Inc,
        "dec" => AtomOp::Dec,
        "and" => AtomOp::And,
        "or" => AtomOp::Or,
        "xor" => AtomOp::Xor,
        "exch" => AtomOp::Exch,
        "cas" => AtomOp::Cas,
        _ => return None,
    })
}

pub(super) fn lower(c: &mut Cx<'_, '_>) -> Lowered<()> {
    if c.mods.has("async") {
        return unsupported("asynchronous reduction");
    }
    let returns = c.mods.name == "atom";
    let ty = c.mods.ty()?;
    let Some(op) = c.mods.find(operation) else { return c.error(c.mods.span, "an atomic needs an operation") };
    let space = c.mods.find(space);
    let n = c.mods.find(|m| match m {
        "v2" => Some(2),
        "v4" => Some(4),
        "v8" => Some(8),
        _ => None,
    });
    c.mods.take("noftz");
    let first = usize::from(returns);
    let most = first + if op == AtomOp::Cas { 3 } else { 2 };
    cache_policy(c, most)?;
    ignore_hints(c);
    c.mods.finish(&["add", "min", "max", "inc", "dec", "and", "or", "xor", "exch", "cas", "noftz"])?;
    c.expect_between(most, most + 1)?;
    bracketed(c, first)?;
    let place = c.address_of(first, space)?;
    let n = n.unwrap_or(1);
    let members = |c: &Cx<'_, '_>, operand: &Operand| -> Lowered<Vec<Operand>> {
        let list = match operand.kind {
            OperandKind::Vector(list) => c.body.list(list).to_vec(),
            OperandKind::Sink => vec![*operand; n],
            _ => vec![*operand],
        };
        if list.len() == n { Ok(list) } else { c.error(operand.span, format!("{n} elements are needed here")) }
    };
    let to = if returns { Some(members(c, c.operand(0)?)?) } else { None };
    let values = members(c, c.operand(first + 1)?)?;
    if n > 1 && n.is_multiple_of(2) && matches!(ty, Type::F16 | Type::Bf16) {
        return pairs(c, op, ty, place.space, place.addr, to.as_deref(), &values);
    }
    for i in 0..n {
        let dst = match &to {
            Some(list) => c.dst(&list[i], ty)?,
            None => [None; 4],
        };
        let b = c.src(&values[i], ty)?;
        let (b, compare) = match op {
            // The comparison's value comes first.
            AtomOp::Cas => (c.src(c.operand(first + 2)?, ty)?, b),
            _ => (b, [Src::ZERO; 4]),
        };
        let addr = Addr { offset: place.addr.offset + (i * ty.bytes() as usize) as i64, ..place.addr };
        one(c, op, ty, place.space, addr, dst, b, compare)?;
    }
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "the parts of one atomic")]
fn one(
    c: &mut Cx<'_, '_>,
    op: AtomOp,
    ty: Type,
    space: IrSpace,
    addr: Addr,
    dst: Dst,
    src: Words,
    compare: Words,
) -> Lowered<()> {
    let bits = matches!(op, AtomOp::And | AtomOp::Or | AtomOp::Xor | AtomOp::Exch | AtomOp::Cas);
    let kind = match (ty, bits) {
        (Type::B32 | Type::U32 | Type::S32 | Type::F32, true) | (Type::U32, false) => AtomType::U32,
        (Type::B64 | Type::U64 | Type::S64 | Type::F64, true) | (Type::U64, false) => AtomType::U64,
        (Type::B128, true) if matches!(op, AtomOp::Exch | AtomOp::Cas) => AtomType::B128,
        (Type::S32, false) if !matches!(op, AtomOp::Inc | AtomOp::Dec) => AtomType::S32,
        (Type::S64, false) if !matches!(op, AtomOp::Inc | AtomOp::Dec) => AtomType::S64,
        // The memory system flushes subnormals; a shared addition is a loop around the processor's own, which does not.
        (Type::F32, false) if op == AtomOp::Add => AtomType::F32 { ftz: space != IrSpace::Shared },
        (Type::F64, false) if op == AtomOp::Add => AtomType::F64,
        (Type::F16x2, false) => AtomType::F16x2,
        (Type::Bf16x2, false) => AtomType::Bf16x2,
        (Type::F16, false) if op == AtomOp::Add => return half(c, HalfFormat::F16, space, addr, dst, src),
        (Type::Bf16, false) if op == AtomOp::Add => return half(c, HalfFormat::Bf16, space, addr, dst, src),
        (Type::B16, true) if matches!(op, AtomOp::Exch | AtomOp::Cas) => AtomType::B16,
        _ => return c.mods.bad_type(ty),
    };
    if matches!(kind, AtomType::U64) && matches!(op, AtomOp::Inc | AtomOp::Dec) {
        return c.mods.bad_type(ty);
    }
    c.memory(MemoryOp::Atomic { space, op, ty: kind, dst, pdst: None, addr, src, compare });
    Ok(())
}

/// A vector of 16-bit floats, which is aligned: two at a time.
fn pairs(
    c: &mut Cx<'_, '_>,
    op: AtomOp,
    ty: Type,
    space: IrSpace,
    addr: Addr,
    to: Option<&[Operand]>,
    values: &[Operand],
) -> Lowered<()> {
    if !matches!(op, AtomOp::Add | AtomOp::Min | AtomOp::Max) {
        return c.mods.bad_type(ty);
    }
    let kind = if ty == Type::F16 { AtomType::F16x2 } else { AtomType::Bf16x2 };
    let join = Src::imm(0x5410);
    let mut results = Vec::new();
    for (i, pair) in values.chunks(2).enumerate() {
        let [low, high] = pair else { continue };
        let (low, high) = (c.src(low, ty)?[0], c.src(high, ty)?[0]);
        let both = c.temp();
        c.int(IntFn::Prmt(Prmt::Index), Some(both), &[low, join, high]);
        let old = to.map(|_| c.temp());
        let addr = Addr { offset: addr.offset + 4 * i as i64, ..addr };
        let src = [Src::slot(both), Src::ZERO, Src::ZERO, Src::ZERO];
        let dst = [old, None, None, None];
        let compare = [Src::ZERO; 4];
        c.memory(MemoryOp::Atomic { space, op, ty: kind, dst, pdst: None, addr, src, compare });
        results.extend(old);
    }
    // Only now, since a destination may be a register of the address or a later value.
    for (pair, old) in to.unwrap_or(&[]).chunks(2).zip(results) {
        for (operand, shift) in pair.iter().zip([0, 16]) {
            let d = c.dst(operand, ty)?[0];
            c.int(IntFn::ShrU, d, &[Src::slot(old), Src::imm(shift)]);
        }
    }
    Ok(())
}

/// A 16-bit addition: of the pair of which it is one half, with -0 in the other, which changes no number there.
fn half(c: &mut Cx<'_, '_>, format: HalfFormat, space: IrSpace, addr: Addr, dst: Dst, src: Words) -> Lowered<()> {
    let (low, high) = (c.temp(), c.temp());
    let offset = [Src::imm(addr.offset as u32), Src::imm((addr.offset >> 32) as u32)];
    let base_hi = addr.base_hi.unwrap_or(Src::ZERO);
    let sum = IntFn::Add64 { neg: [false; 2] };
    let words: [Option<Slot>; 2] = [Some(low), Some(high)];
    c.apply(lanescope_ir::op::LaneFn::Int(sum), words, &[addr.base, base_hi, offset[0], offset[1]]);
    let (shift, value, word) = (c.temp(), c.temp(), c.temp());
    c.int(IntFn::And, Some(shift), &[Src::slot(low), Src::imm(2)]);
    c.int(IntFn::Shl, Some(shift), &[Src::slot(shift), Src::imm(3)]);
    c.int(IntFn::And, Some(low), &[Src::slot(low), Src::imm(!3)]);
    c.int(IntFn::Bfi, Some(value), &[src[0], Src::imm(0x8000_8000), Src::slot(shift), Src::imm(16)]);
    let wide = matches!(space, IrSpace::Global | IrSpace::Generic);
    let base_hi = wide.then_some(Src::slot(high));
    let addr = Addr { base: Src::slot(low), base_hi, uniform: None, signed: false, scale: 0, offset: 0 };
    let ty = if format == HalfFormat::F16 { AtomType::F16x2 } else { AtomType::Bf16x2 };
    let old = [dst[0].map(|_| word), None, None, None];
    let src = [Src::slot(value), Src::ZERO, Src::ZERO, Src::ZERO];
    c.memory(MemoryOp::Atomic { space, op: AtomOp::Add, ty, dst: old, pdst: None, addr, src, compare: [Src::ZERO; 4] });
    if dst[0].is_some() {
        c.int(IntFn::ShrU, dst[0], &[Src::slot(word), Src::slot(shift)]);
    }
    Ok(())
}
