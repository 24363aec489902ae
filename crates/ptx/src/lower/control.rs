//! Branches, calls and returns.

use lanescope_ir::op::LaneFn;
use lanescope_ir::op::control::{ControlOp, Decision, Indirect};
use lanescope_ir::op::int::{Cmp, IntFn};
use lanescope_ir::op::memory::{Addr, MemoryOp, Space as IrSpace, Width};
use lanescope_ir::op::{LaneOp, SrcMod};
use lanescope_ir::{InstId, Op, PredSrc, Slot, Src};

use super::cx::{Cx, Fix, RETURN, STACK};
use super::fail::{Lowered, unsupported};
use super::plan::call_signature;
use crate::tree::{FunctionKind, Operand, OperandKind, RegisterId, Space, TableKind, Target, Type};

/// The bank of the tables of indirect branches.
pub(super) const TABLE_BANK: u8 = 4;
/// A target that is put in when everything has its place.
const LATER: InstId = InstId(0);

/// `bra`
pub(super) fn branch(c: &mut Cx<'_, '_>) -> Lowered<()> {
    // A promise that all lanes go the same way; nothing depends on it.
    c.mods.take("uni");
    c.mods.finish(&["uni"])?;
    c.expect(1)?;
    let operand = c.operand(0)?;
    match operand.kind {
        OperandKind::Symbol { target: Target::Label(label), offset: 0 } => {
            c.control(
                ControlOp::Branch { target: LATER, cond: PredSrc::TRUE, decision: Decision::Lanes },
                Some(Fix::Label(label)),
            );
            Ok(())
        }
        _ => c.error(operand.span, "a label is needed here"),
    }
}

/// `brx.idx`
pub(super) fn branch_indexed(c: &mut Cx<'_, '_>) -> Lowered<()> {
    c.mods.ignore(|m| matches!(m, "idx" | "uni"));
    c.mods.finish(&["idx", "uni"])?;
    c.expect(2)?;
    let index = c.word(0, Type::U32)?;
    let operand = c.operand(1)?;
    let table = match operand.kind {
        OperandKind::Symbol { target: Target::Table(table), .. } => c.body.tables.get(table.index()),
        _ => None,
    };
    let Some(TableKind::Branch(targets)) = table.map(|t| &t.kind) else {
        return c.error(operand.span, "a list of branch targets is needed here");
    };
    let targets: Vec<_> = targets.iter().flatten().copied().collect();
    let start = c.pool.tables.len() as u32;
    c.pool.tables.extend(targets.iter().map(|_| 0));
    let to = [c.temp(), c.temp()];
    let at = c.temp();
    // Outside of the table there is no code: address 0.
    let inside = c.temp_pred();
    let mut op = LaneOp::new(LaneFn::Int(IntFn::Set { cmp: Cmp::Lt, signed: false }));
    op.pdst[0] = Some(inside);
    op.src[..2].copy_from_slice(&[index, Src::imm(targets.len() as u32)]);
    c.lane(op);
    c.int(IntFn::Shl, Some(at), &[index, Src::imm(3)]);
    let mut dst = [None; 8];
    (dst[0], dst[1]) = (Some(to[0]), Some(to[1]));
    let addr = Addr {
        base: Src::slot(at),
        base_hi: None,
        uniform: None,
        signed: false,
        scale: 0,
        offset: 8 * i64::from(start),
    };
    let (space, width) = (IrSpace::Const(TABLE_BANK), Width::B64);
    c.memory(MemoryOp::Load { space, width, dst, addr, valid: PredSrc::of(inside) });
    c.branches.push((c.steps.len() as u32, start, targets));
    let target = Indirect { reg: to.map(Src::slot), base: 0 };
    c.control(ControlOp::BranchIndirect { target, cond: PredSrc::TRUE }, None);
    Ok(())
}

/// `exit`, and `ret` in a kernel
pub(super) fn exit(c: &mut Cx<'_, '_>) -> Lowered<()> {
    c.expect(0)?;
    c.control(ControlOp::Exit { cond: PredSrc::TRUE }, None);
    Ok(())
}

/// `ret`
pub(super) fn ret(c: &mut Cx<'_, '_>) -> Lowered<()> {
    c.mods.take("uni");
    c.mods.finish(&["uni"])?;
    if c.is_kernel() {
        return exit(c);
    }
    c.expect(0)?;
    if c.guard.is_true() {
        leave(c)
    } else {
        // What returning takes may change the guard.
        c.control(
            ControlOp::Branch { target: LATER, cond: PredSrc::TRUE, decision: Decision::Lanes },
            Some(Fix::Epilogue),
        );
        Ok(())
    }
}

/// What a function does first.
pub(super) fn enter(c: &mut Cx<'_, '_>) {
    let frame = c.frame();
    if c.is_kernel() {
        if let Some(slot) = c.bottom {
            c.int(IntFn::Mov, Some(slot), &[Src::slot(STACK)]);
        }
        if let Some(copy) = frame.parameters {
            for at in (0..frame.signature.size).step_by(4) {
                let value = Src::constant(0, super::launch::PARAM_BASE + at);
                let addr = c.frame_addr(copy + at);
                c.store(Width::B32, &[value], addr);
            }
        }
        return;
    }
    if frame.size != 0 {
        c.int(IntFn::Add, Some(STACK), &[Src::slot(STACK), Src::imm(frame.size.wrapping_neg())]);
    }
    // Saved relative to the stack pointer, which is the frame's bottom now.
    let bottom = c.bottom.take();
    if let Some(at) = frame.saves {
        let mut at = at;
        if let Some(slot) = bottom {
            let addr = c.frame_addr(at);
            c.store(Width::B32, &[Src::slot(slot)], addr);
            at += 4;
        }
        for register in 0..c.body.registers.len() {
            let addr = c.frame_addr(at);
            at += c.spill(RegisterId(register as u32), addr, false);
        }
    }
    if let Some(at) = frame.return_address {
        let addr = c.frame_addr(at);
        c.store(Width::B64, &RETURN.map(Src::slot), addr);
    }
    c.bottom = bottom;
    if let Some(slot) = bottom {
        c.int(IntFn::Mov, Some(slot), &[Src::slot(STACK)]);
    }
    let function = c.function;
    for (i, param) in function.params.iter().enumerate() {
        if let (Some(register), Some(&(offset, _))) = (param.register, frame.signature.params.get(i)) {
            let addr = c.frame_addr(frame.size + offset);
            carry(c, register, addr, true);
        }
    }
}

/// Moves a register of its own size between memory and its slots.
fn carry(c: &mut Cx<'_, '_>, register: RegisterId, addr: Addr, load: bool) {
    let ty = c.register(register).ty;
    let operand = Operand { kind: OperandKind::Register(register), span: c.span };
    let width = match ty {
        Type::Pred => None,
        ty if ty.bits() == 8 => Some(Width::U8),
        ty if ty.bits() == 16 => Some(Width::U16),
        _ => None,
    };
    let Some(width) = width else {
        c.spill(register, addr, load);
        return;
    };
    if load {
        if let Ok(d) = c.dst(&operand, ty) {
            c.load(width, &[d[0]], addr);
        }
    } else if let Ok(s) = c.src(&operand, ty) {
        c.store(width, &[s[0]], addr);
    }
}

/// What a function does last.
pub(super) fn leave(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let frame = c.frame();
    let function = c.function;
    for (i, result) in function.returns.iter().enumerate() {
        if let (Some(register), Some(&(offset, _))) = (result.register, frame.signature.returns.get(i)) {
            let addr = c.frame_addr(frame.size + offset);
            carry(c, register, addr, false);
        }
    }
    let bottom = c.bottom.take();
    if let Some(slot) = bottom {
        c.int(IntFn::Mov, Some(STACK), &[Src::slot(slot)]);
    }
    if let Some(at) = frame.return_address {
        let addr = c.frame_addr(at);
        c.load(Width::B64, &RETURN.map(Some), addr);
    }
    if let Some(at) = frame.saves {
        let mut at = at;
        if let Some(slot) = bottom {
            let addr = c.frame_addr(at);
            c.load(Width::B32, &[Some(slot)], addr);
            at += 4;
        }
        for register in 0..c.body.registers.len() {
            let addr = c.frame_addr(at);
            at += c.spill(RegisterId(register as u32), addr, true);
        }
    }
    if frame.size != 0 {
        c.int(IntFn::Add, Some(STACK), &[Src::slot(STACK), Src::imm(frame.size)]);
    }
    c.bottom = bottom;
    let target = Indirect { reg: RETURN.map(Src::slot), base: 0 };
    c.control(ControlOp::Return { target, cond: PredSrc::TRUE }, None);
    Ok(())
}

/// `call`
pub(super) fn call(c: &mut Cx<'_, '_>) -> Lowered<()> {
    c.mods.take("uni");
    c.mods.finish(&["uni"])?;
    let (body, instruction) = (c.body, c.instruction);
    let Some(call) = body.call_of(instruction) else { return c.error(c.span, "this call cannot be read") };
    let Some(signature) = call_signature(c.module, body, instruction) else {
        return c.error(c.span, "a call through a register needs a prototype or a list of targets");
    };
    for (what, have, want) in [
        ("results", call.results.len(), signature.returns.len()),
        ("arguments", call.arguments.len(), signature.params.len()),
    ] {
        if have != want {
            return c.error(c.span, format!("this call has {have} {what}, where the function has {want}"));
        }
    }
    for (operand, &(offset, size)) in call.arguments.iter().zip(&signature.params) {
        pass(c, operand, offset, size, false)?;
    }
    match call.target.kind {
        OperandKind::Symbol { target: Target::Function(function), .. }
            if c.module.functions.get(function.index()).is_some_and(|f| f.kind == FunctionKind::Entry) =>
        {
            return c.error(call.target.span, "a kernel cannot be called");
        }
        OperandKind::Symbol { target: Target::Function(function), .. } => match c.plan.place_of(function) {
            Some(place) => {
                back(c);
                c.control(ControlOp::Call { target: LATER, cond: PredSrc::TRUE }, Some(Fix::Function(place)));
            }
            None => {
                let name = c.module.functions.get(function.index()).map_or("?", |f| f.name).to_owned();
                external(c, name, &signature);
            }
        },
        _ => {
            let target = c.src(call.target, Type::U64)?;
            back(c);
            let target = Indirect { reg: [target[0], target[1]], base: 0 };
            c.control(ControlOp::CallIndirect { target, cond: PredSrc::TRUE }, None);
        }
    }
    for (operand, &(offset, size)) in call.results.iter().zip(&signature.returns) {
        pass(c, operand, offset, size, true)?;
    }
    Ok(())
}

/// A call of a function that has no code here. What the engine knows is given its arguments; their place in memory is read
/// back, as the function would.
fn external(c: &mut Cx<'_, '_>, name: String, signature: &super::plan::Signature) {
    let known = matches!(name.as_str(), "vprintf" | "__assertfail");
    let sizes = || signature.params.iter().chain(&signature.returns).map(|p| p.1);
    let (mut args, mut result) = (Vec::new(), None);
    if known && sizes().all(|n| matches!(n, 4 | 8)) {
        for &(offset, size) in &signature.params {
            let words = [c.temp(), c.temp()];
            let addr = c.outgoing_addr(offset);
            let width = if size == 8 { Width::B64 } else { Width::B32 };
            c.load(width, &words.map(Some)[..width.slots()], addr);
            let high = if size == 8 { Src::slot(words[1]) } else { Src::ZERO };
            args.push([Src::slot(words[0]), high]);
        }
        result = signature.returns.first().map(|_| c.temp());
    }
    c.control(ControlOp::CallExternal { name, cond: PredSrc::TRUE, args, result }, None);
    if let (Some(slot), Some(&(offset, _))) = (result, signature.returns.first()) {
        let addr = c.outgoing_addr(offset);
        c.store(Width::B32, &[Src::slot(slot)], addr);
    }
}

/// Sets the return address to the step after the next.
fn back(c: &mut Cx<'_, '_>) {
    let address = c.code_address(c.steps.len() + 2);
    let s = [Src::imm(address as u32), Src::imm((address >> 32) as u32)];
    c.apply(LaneFn::Int(IntFn::Mov64), RETURN.map(Some), &s);
}

/// Copies an argument to the outgoing area, or a result from there.
fn pass(c: &mut Cx<'_, '_>, operand: &Operand, offset: u32, size: u32, result: bool) -> Lowered<()> {
    let outgoing = c.outgoing_addr(offset);
    match operand.kind {
        OperandKind::Sink => return Ok(()),
        OperandKind::Register(register) => {
            let have = c.register(register).ty;
            let bytes = if have == Type::Pred { 4 } else { have.bytes() };
            if bytes != size {
                let message = format!("this register has {bytes} bytes, where the function has {size}");
                return c.error(operand.span, message);
            }
            carry(c, register, outgoing, result);
            return Ok(());
        }
        OperandKind::Symbol { target, offset: 0 } => {
            let (variable, place) = c.variable(target, operand.span)?;
            if variable.space != Space::Param {
                return c.error(operand.span, "a register or a .param variable is needed here");
            }
            let have = variable.size().unwrap_or(u64::MAX);
            if have < u64::from(size) {
                return c.error(
                    operand.span,
                    format!("`{}` has {have} bytes, where the function has {size}", variable.name),
                );
            }
            let align = variable.alignment();
            let (from, to) = if result { (outgoing, place.addr) } else { (place.addr, outgoing) };
            let source = if result { IrSpace::Local } else { place.space };
            copy(c, source, from, to, size, align);
            return Ok(());
        }
        _ if result => return c.error(operand.span, "a register or a .param variable is needed here"),
        _ => {}
    }
    let (ty, width) = match size {
        1 => (Type::B8, Width::U8),
        2 => (Type::B16, Width::U16),
        4 => (Type::B32, Width::B32),
        8 => (Type::B64, Width::B64),
        _ => return c.error(operand.span, "a constant of this size cannot be passed"),
    };
    let ty = match operand.kind {
        OperandKind::F32(_) if size == 4 => Type::F32,
        OperandKind::F64(_) if size == 8 => Type::F64,
        OperandKind::F64(_) if size == 4 => Type::F32,
        _ => ty,
    };
    let s = c.src(operand, ty)?;
    c.store(width, &s[..width.slots()], outgoing);
    Ok(())
}

/// Copies `size` bytes to local memory in the widest pieces that the alignment allows.
fn copy(c: &mut Cx<'_, '_>, space: IrSpace, from: Addr, to: Addr, size: u32, align: u32) {
    let mut at = 0;
    let words: [Slot; 4] = [c.temp(), c.temp(), c.temp(), c.temp()];
    while at < size {
        let left = size - at;
        let width = [Width::B128, Width::B64, Width::B32, Width::U16, Width::U8]
            .into_iter()
            .find(|w| w.bytes() <= left && align.is_multiple_of(w.bytes()))
            .unwrap_or(Width::U8);
        let mut dst = [None; 8];
        let mut src = [Src::ZERO; 8];
        for i in 0..width.slots() {
            dst[i] = Some(words[i]);
            src[i] = Src::slot(words[i]);
        }
        let shifted = |addr: Addr| Addr { offset: addr.offset + i64::from(at), ..addr };
        c.memory(MemoryOp::Load { space, width, dst, addr: shifted(from), valid: PredSrc::TRUE });
        c.memory(MemoryOp::Store { space: IrSpace::Local, width, src, addr: shifted(to) });
        at += width.bytes();
    }
}

/// `alloca`, `stacksave`, `stackrestore`
pub(super) fn stack(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    c.mods.finish(&[])?;
    if ty.bits() != 64 && ty.bits() != 32 {
        return c.mods.bad_type(ty);
    }
    match c.mods.name {
        "stacksave" => {
            c.expect(1)?;
            let d = c.dst(c.operand(0)?, ty)?;
            c.apply(LaneFn::Int(IntFn::Mov64), [d[0], d[1]], &[Src::slot(STACK), Src::ZERO]);
        }
        "stackrestore" => {
            c.expect(1)?;
            let s = c.src(c.operand(0)?, ty)?;
            c.int(IntFn::Mov, Some(STACK), &[s[0]]);
        }
        _ => {
            c.expect_between(2, 3)?;
            let d = c.dst(c.operand(0)?, ty)?;
            let size = c.src(c.operand(1)?, ty)?[0];
            let align = match c.ops.get(2).map(|o| o.kind.integer()) {
                None => 8,
                Some(Some(value)) if value.is_power_of_two() && value <= 1 << 23 => value as u32,
                Some(_) => return c.error(c.span, "the alignment must be a power of two"),
            };
            // The outgoing area stays at the stack's bottom.
            let outgoing = c.frame().outgoing;
            let minus = match size.kind {
                lanescope_ir::op::SrcKind::Imm(value) => Src::imm(value.wrapping_neg()),
                _ => size.with(SrcMod::Neg),
            };
            let t = c.temp();
            c.int(IntFn::Add3, Some(t), &[Src::slot(STACK), minus, Src::imm(outgoing)]);
            c.int(IntFn::And, Some(t), &[Src::slot(t), Src::imm(align.max(16).wrapping_neg())]);
            c.int(IntFn::Add, Some(STACK), &[Src::slot(t), Src::imm(outgoing.wrapping_neg())]);
            c.apply(LaneFn::Int(IntFn::Mov64), [d[0], d[1]], &[Src::slot(t), Src::ZERO]);
        }
    }
    Ok(())
}

/// `trap`, `brkpt`, `nanosleep`, `pmevent`
pub(super) fn simple(c: &mut Cx<'_, '_>) -> Lowered<()> {
    if matches!(c.mods.name, "trap" | "brkpt") {
        c.expect(0)?;
    }
    match c.mods.name {
        "trap" => c.control(ControlOp::Trap, None),
        "brkpt" => c.control(ControlOp::Breakpoint, None),
        "nanosleep" => {
            c.expect(1)?;
            c.word(0, Type::U32)?;
            c.control(ControlOp::Sleep, None);
        }
        "pmevent" => {
            c.expect(1)?;
            match c.operand(0)?.kind.integer() {
                Some(0..16) => c.emit(Op::Nop),
                Some(_) if c.mods.has("mask") => c.emit(Op::Nop),
                _ => return c.error(c.span, "`pmevent` takes the number of an event, 0 to 15"),
            }
        }
        _ => return unsupported("control"),
    }
    Ok(())
}
