//! `mov`: copies, addresses, special registers, packing and unpacking.

use lanescope_ir::op::int::{IntFn, Prmt};
use lanescope_ir::op::warp::{SpecialReg, WarpOp};
use lanescope_ir::op::{LaneFn, LaneOp};
use lanescope_ir::{Slot, Src};

use super::cx::{Cx, Words, words};
use super::fail::{Lowered, unsupported};
use super::launch;
use crate::special::Special;
use crate::tree::{AddressId, Component, Operand, OperandKind, Space, Target, Type};

pub(super) fn lower(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    // `mov.v2.b32` moves whole vector registers.
    let vector = c.mods.find(|m| match m {
        "v2" => Some(2),
        "v4" => Some(4),
        "v8" => Some(8),
        _ => None,
    });
    c.mods.finish(&[])?;
    c.expect(2)?;
    let (to, from) = (c.operand(0)?, c.operand(1)?);
    if ty == Type::Pred {
        if let OperandKind::Special { register: Special::IsExplicitCluster, .. } = from.kind {
            let p = c.pdst(to)?;
            let mut op = LaneOp::new(LaneFn::Int(IntFn::Plop3 { lut: [0, 0] }));
            op.pdst[0] = p;
            c.lane(op);
            return Ok(());
        }
        return super::int::move_predicate(c);
    }
    if ty.bits() < 16 {
        return c.mods.bad_type(ty);
    }
    let packs = matches!(to.kind, OperandKind::Vector(_)) || matches!(from.kind, OperandKind::Vector(_));
    if packs && vector.is_none() && !matches!(ty, Type::B16 | Type::B32 | Type::B64 | Type::B128) {
        return c
            .error(c.mods.span, format!("`{}` moves no parts: they are bits, as `.b{}` is", c.mods.text, ty.bits()));
    }
    if let Some(n) = vector {
        return whole_vectors(c, ty, n, to, from);
    }
    match (to.kind, from.kind) {
        (OperandKind::Vector(_), _) => unpack(c, ty, to, from),
        (_, OperandKind::Vector(_)) => pack(c, ty, to, from),
        (_, OperandKind::Special { .. }) => {
            c.check_special(from, ty, false)?;
            let d = c.dst(to, ty)?;
            special(c, from, [d[0], d[1]])
        }
        (_, OperandKind::Symbol { target, offset }) => symbol(c, ty, to, from, target, offset),
        (_, OperandKind::Address(id)) if c.body.address(id).index.is_some() => element(c, ty, to, id),
        _ => {
            let d = c.dst(to, ty)?;
            let s = c.src(from, ty)?;
            copy(c, d, s, words(ty));
            Ok(())
        }
    }
}

/// `n` words. Two are moved as one, so that a pair may be swapped with itself.
fn copy(c: &mut Cx<'_, '_>, d: [Option<Slot>; 4], s: Words, n: usize) {
    if n == 1 {
        c.int(IntFn::Mov, d[0], &[s[0]]);
        return;
    }
    for i in (0..n).step_by(2) {
        c.apply(LaneFn::Int(IntFn::Mov64), [d[i], d[i + 1]], &[s[i], s[i + 1]]);
    }
}

/// Element `i` of an operand that is a vector of `n`.
fn nth(c: &Cx<'_, '_>, operand: &Operand, n: usize, i: usize) -> Option<Operand> {
    let part = [Component::X, Component::Y, Component::Z, Component::W];
    match operand.kind {
        OperandKind::Register(register) if i < 4 && usize::from(c.register(register).vector) == n => {
            Some(Operand { kind: OperandKind::Element { register, component: part[i] }, span: operand.span })
        }
        OperandKind::Special { register, component: None } if i < 4 => {
            Some(Operand { kind: OperandKind::Special { register, component: Some(part[i]) }, span: operand.span })
        }
        OperandKind::Vector(list) => c.body.list(list).get(i).copied(),
        _ => None,
    }
}

fn whole_vectors(c: &mut Cx<'_, '_>, ty: Type, n: usize, to: &Operand, from: &Operand) -> Lowered<()> {
    if let OperandKind::Special { .. } = from.kind {
        for i in 0..n {
            let (Some(to), Some(from)) = (nth(c, to, n, i), nth(c, from, n, i)) else {
                return c.error(c.span, "this move needs two vectors");
            };
            c.check_special(&from, ty, false)?;
            let d = c.dst(&to, ty)?;
            special(c, &from, [d[0], d[1]])?;
        }
        return Ok(());
    }
    let mut moves = Vec::new();
    for i in 0..n {
        let (Some(to), Some(from)) = (nth(c, to, n, i), nth(c, from, n, i)) else {
            return c.error(c.span, "this move needs two vectors");
        };
        moves.push((c.dst(&to, ty)?, c.src(&from, ty)?));
    }
    for (d, s) in moves {
        copy(c, d, s, words(ty));
    }
    Ok(())
}

/// The type of one of `n` parts of a value.
fn part(c: &Cx<'_, '_>, ty: Type, n: usize, operand: &Operand) -> Lowered<Type> {
    match ty.bits() as usize / n.max(1) {
        _ if !(ty.bits() as usize).is_multiple_of(n.max(1)) => {
            c.error(operand.span, format!("a `.{}` has no {n} parts", ty.name()))
        }
        8 => Ok(Type::B8),
        16 => Ok(Type::B16),
        32 => Ok(Type::B32),
        64 => Ok(Type::B64),
        _ => c.error(operand.span, format!("a `.{}` has no {n} parts", ty.name())),
    }
}

fn pack(c: &mut Cx<'_, '_>, ty: Type, to: &Operand, from: &Operand) -> Lowered<()> {
    let members = c.members(from);
    let part = part(c, ty, members.len(), from)?;
    let d = c.dst(to, ty)?;
    if let [member] = members {
        let s = c.src(member, ty)?;
        copy(c, d, s, words(ty));
        return Ok(());
    }
    let mut s = Vec::new();
    for member in members {
        s.push(c.src(member, part)?);
    }
    match part {
        Type::B64 => copy(c, d, [s[0][0], s[0][1], s[1][0], s[1][1]], 4),
        Type::B32 => {
            let mut all = [Src::ZERO; 4];
            for (word, member) in all.iter_mut().zip(&s) {
                *word = member[0];
            }
            copy(c, d, all, s.len());
        }
        Type::B16 => {
            let (count, mut all) = (s.len() / 2, [Src::ZERO; 4]);
            for (i, two) in s.chunks_exact(2).enumerate().take(4) {
                let to = if count == 1 { d[0] } else { Some(c.temp()) };
                c.int(IntFn::Prmt(Prmt::Index), to, &[two[0][0], Src::imm(0x5410), two[1][0]]);
                if let Some(to) = to {
                    all[i] = Src::slot(to);
                }
            }
            if count > 1 {
                copy(c, d, all, count);
            }
        }
        _ => {
            if s.len() > 4 {
                return unsupported("eight bytes in a vector");
            }
            let t = [c.temp(), c.temp()];
            for (i, two) in s.chunks_exact(2).enumerate().take(2) {
                c.int(IntFn::Prmt(Prmt::Index), Some(t[i]), &[two[0][0], Src::imm(0x40), two[1][0]]);
            }
            let high = if s.len() == 4 { Src::slot(t[1]) } else { Src::ZERO };
            c.int(IntFn::Prmt(Prmt::Index), d[0], &[Src::slot(t[0]), Src::imm(0x5410), high]);
        }
    }
    Ok(())
}

fn unpack(c: &mut Cx<'_, '_>, ty: Type, to: &Operand, from: &Operand) -> Lowered<()> {
    let members = c.members(to);
    let part = part(c, ty, members.len(), to)?;
    if let [member] = members {
        let (d, s) = (c.dst(member, ty)?, c.src(from, ty)?);
        copy(c, d, s, words(ty));
        return Ok(());
    }
    let s = match from.kind {
        OperandKind::Special { .. } => {
            c.check_special(from, ty, false)?;
            let t = [c.temp(), c.temp()];
            special(c, from, t.map(Some))?;
            [Src::slot(t[0]), Src::slot(t[1]), Src::ZERO, Src::ZERO]
        }
        _ => c.src(from, ty)?,
    };
    let mut d = Vec::new();
    for member in members {
        d.push(c.dst(member, part)?);
    }
    match part {
        Type::B64 => {
            for (i, d) in d.iter().enumerate().take(2) {
                c.apply(LaneFn::Int(IntFn::Mov64), [d[0], d[1]], &[s[2 * i], s[2 * i + 1]]);
            }
        }
        Type::B32 => {
            for (i, two) in d.chunks(2).enumerate().take(2) {
                let second = two.get(1).and_then(|d| d[0]);
                c.apply(LaneFn::Int(IntFn::Mov64), [two[0][0], second], &[s[2 * i], s[2 * i + 1]]);
            }
        }
        _ => {
            let each = 32 / part.bits() as usize;
            for (i, d) in d.iter().enumerate() {
                if d[0].is_none() {
                    continue;
                }
                let Some(&word) = s.get(i / each) else { continue };
                let shift = (i % each) as u32 * part.bits();
                if part == Type::B8 {
                    c.int(IntFn::Bfe { signed: false }, d[0], &[word, Src::imm(shift), Src::imm(8)]);
                } else if shift == 0 {
                    c.int(IntFn::Mov, d[0], &[word]);
                } else {
                    c.int(IntFn::ShrU, d[0], &[word, Src::imm(shift)]);
                }
            }
        }
    }
    Ok(())
}

/// The address of something.
pub(super) fn symbol(
    c: &mut Cx<'_, '_>,
    ty: Type,
    to: &Operand,
    from: &Operand,
    target: Target,
    offset: i32,
) -> Lowered<()> {
    let d = c.dst(to, ty)?;
    if ty.is_float() {
        return c.error(from.span, "an address is an integer");
    }
    if let Target::Function(function) = target {
        let Some(address) = c.plan.address_of(function) else {
            return c.error(from.span, "this function has no address");
        };
        let address = address.wrapping_add_signed(i64::from(offset));
        c.apply(LaneFn::Int(IntFn::Mov64), [d[0], d[1]], &[Src::imm(address as u32), Src::imm((address >> 32) as u32)]);
        return Ok(());
    }
    let (variable, place) = c.variable(target, from.span)?;
    if variable.space == Space::Global && ty.bits() < 64 && c.module.address_size == Some(64) {
        return c.error(c.mods.span, ".global addresses have 64 bits");
    }
    let address = place.addr.offset.wrapping_add(i64::from(offset)) as u64;
    match place.addr.base.read() {
        // In the frame.
        Some(_) => {
            c.int(IntFn::Add, d[0], &[place.addr.base, Src::imm(address as u32)]);
            if ty.bits() == 64 {
                c.int(IntFn::Mov, d[1], &[Src::ZERO]);
            }
        }
        None => {
            let s = [Src::imm(address as u32), Src::imm((address >> 32) as u32), Src::ZERO, Src::ZERO];
            copy(c, d, s, words(ty).min(2));
        }
    }
    Ok(())
}

/// The address of an element, `array[register]`.
fn element(c: &mut Cx<'_, '_>, ty: Type, to: &Operand, id: AddressId) -> Lowered<()> {
    let d = c.dst(to, ty)?;
    let OperandKind::Symbol { target, .. } = c.body.address(id).base else { return unsupported("this element") };
    let place = c.variable(target, c.body.address(id).base_span)?.0.space;
    if place == Space::Global && ty.bits() < 64 && c.module.address_size == Some(64) {
        return c.error(c.mods.span, ".global addresses have 64 bits");
    }
    let addr = c.address(id, Some(place))?.addr;
    let offset = [Src::imm(addr.offset as u32), Src::imm((addr.offset >> 32) as u32)];
    if ty.bits() == 64 {
        let high = addr.base_hi.unwrap_or(Src::ZERO);
        let sum = IntFn::Add64 { neg: [false; 2] };
        c.apply(LaneFn::Int(sum), [d[0], d[1]], &[addr.base, high, offset[0], offset[1]]);
    } else {
        c.int(IntFn::Add, d[0], &[addr.base, offset[0]]);
    }
    Ok(())
}

/// A special register; the second destination is the high word of a 64-bit one.
pub(super) fn special(c: &mut Cx<'_, '_>, operand: &Operand, d: [Option<Slot>; 2]) -> Lowered<()> {
    let OperandKind::Special { register, component } = operand.kind else { return Ok(()) };
    let axis = match component {
        None | Some(Component::X) => 0,
        Some(Component::Y) => 1,
        Some(Component::Z) => 2,
        // The fourth component of all of these is zero (or one).
        _ => 3,
    };
    let zero = SpecialReg::Zero;
    let axial = |make: fn(u8) -> SpecialReg| if axis < 3 { [make(axis), zero] } else { [zero, zero] };
    let constant = |c: &mut Cx<'_, '_>, value: Src| {
        c.apply(LaneFn::Int(IntFn::Mov64), d, &[value, Src::ZERO]);
        Ok(())
    };
    if matches!(
        register,
        Special::Clusterid
            | Special::Nclusterid
            | Special::ClusterCtaid
            | Special::ClusterCtarank
            | Special::ClusterNctaid
            | Special::ClusterNctarank
    ) {
        c.only_own_cluster()?;
    }
    let reg = match register {
        Special::Tid => axial(SpecialReg::Tid),
        Special::Ntid => axial(SpecialReg::NTid),
        Special::Ctaid | Special::Clusterid => axial(SpecialReg::CtaId),
        Special::Nctaid | Special::Nclusterid => axial(SpecialReg::NCtaId),
        Special::Laneid => [SpecialReg::LaneId, zero],
        Special::Warpid => [SpecialReg::WarpId, zero],
        Special::Nwarpid => [SpecialReg::NWarpId, zero],
        Special::Smid => [SpecialReg::SmId, zero],
        Special::Nsmid => [SpecialReg::NSmId, zero],
        Special::Gridid => [SpecialReg::GridId, zero],
        Special::LanemaskEq => [SpecialReg::LaneMaskEq, zero],
        Special::LanemaskLe => [SpecialReg::LaneMaskLe, zero],
        Special::LanemaskLt => [SpecialReg::LaneMaskLt, zero],
        Special::LanemaskGe => [SpecialReg::LaneMaskGe, zero],
        Special::LanemaskGt => [SpecialReg::LaneMaskGt, zero],
        Special::Clock => [SpecialReg::ClockLo, zero],
        Special::ClockHi => [SpecialReg::ClockHi, zero],
        Special::Clock64 => [SpecialReg::ClockLo, SpecialReg::ClockHi],
        Special::Globaltimer => [SpecialReg::GlobalTimerLo, SpecialReg::GlobalTimerHi],
        Special::GlobaltimerLo => [SpecialReg::GlobalTimerLo, zero],
        Special::GlobaltimerHi => [SpecialReg::GlobalTimerHi, zero],
        Special::TotalSmemSize | Special::AggrSmemSize => [SpecialReg::SharedSize, zero],
        // Nothing of shared memory is reserved here.
        Special::ReservedSmemOffsetBegin | Special::ReservedSmemOffsetEnd => [zero, zero],
        // Every block is a cluster of its own.
        Special::ClusterCtaid | Special::ClusterCtarank | Special::CurrentGraphExec => [zero, zero],
        Special::ClusterNctaid | Special::ClusterNctarank => return constant(c, Src::imm(1)),
        Special::DynamicSmemSize => return constant(c, Src::constant(0, launch::DYNAMIC_SHARED)),
        _ => return unsupported("performance counters and driver registers"),
    };
    c.warp(WarpOp::Special { dst: d, reg });
    Ok(())
}
