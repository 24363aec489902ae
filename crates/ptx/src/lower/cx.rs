//! One function on its way to steps: registers, operands, emission.
//!
//! Of a register of 16 bits or less only the low bits of its slot count; what looks at the rest extends it first.

use lanescope_ir::op::control::ControlOp;
use lanescope_ir::op::convert::{ConvertFn, Integer};
use lanescope_ir::op::int::IntFn;
use lanescope_ir::op::memory::{Addr, MemoryOp, Space as IrSpace, Width};
use lanescope_ir::op::warp::WarpOp;
use lanescope_ir::op::{LaneFn, LaneOp};
use lanescope_ir::{Op, Pred, PredSrc, Slot, Src};

use super::fail::{Fail, Lowered, unsupported};
use super::launch;
use super::mods::Mods;
use super::plan::{CODE_BASE, CODE_STRIDE, Frame, Plan};
use crate::diagnostic::Diagnostic;
use crate::span::Span;
use crate::tree::{
    AddressId, Body, Component, Function, FunctionId, FunctionKind, Instruction, LabelId, Module, Operand, OperandKind,
    Register, RegisterId, Space, Target, Type, Variable,
};

/// Slots of the whole program: the stack pointer, the return address, then temporaries and registers.
pub(super) const STACK: Slot = Slot(0);
pub(super) const RETURN: [Slot; 2] = [Slot(1), Slot(2)];
/// The carry flag of the extended-precision instructions.
pub(super) const CARRY: Pred = Pred(0);
/// Slots that a program can have.
const MAX_SLOTS: u32 = 0xfff0;

/// What is handed out once for the whole program.
pub(super) struct Pool {
    pub(super) slots: u32,
    pub(super) preds: u32,
    /// Slots and predicates that live within one instruction.
    temps: Vec<Slot>,
    temp_preds: Vec<Pred>,
    /// Tables of indirect branches, as 64-bit code addresses.
    pub(super) tables: Vec<u64>,
    pub(super) exhausted: bool,
}

impl Pool {
    pub(super) fn new() -> Pool {
        Pool { slots: 3, preds: 1, temps: Vec::new(), temp_preds: Vec::new(), tables: Vec::new(), exhausted: false }
    }

    fn slots(&mut self, n: u32) -> u16 {
        if self.slots + n > MAX_SLOTS {
            self.exhausted = true;
            return 3;
        }
        self.slots += n;
        (self.slots - n) as u16
    }

    fn pred(&mut self) -> Pred {
        if self.preds >= MAX_SLOTS {
            self.exhausted = true;
            return Pred(0);
        }
        self.preds += 1;
        Pred((self.preds - 1) as u16)
    }
}

/// What a step refers to that is known only when everything has its place.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fix {
    /// A label of the function.
    Label(LabelId),
    /// The function's common way out.
    Epilogue,
    /// A function by its place in the order.
    Function(usize),
}

/// One step: an instruction to be.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) op: Op,
    pub(super) guard: PredSrc,
    pub(super) fix: Option<Fix>,
    /// The instruction it belongs to; `None` for what surrounds the body.
    pub(super) origin: Option<u32>,
}

/// Where a register lives.
#[derive(Clone, Copy, Debug)]
enum Home {
    Pred(Pred),
    /// First slot; the slots of an element and of the whole follow each other.
    Slots(u16),
}

/// Destination words of one value.
pub(super) type Dst = [Option<Slot>; 4];
/// Source words of one value.
pub(super) type Words = [Src; 4];

/// Where an address points.
pub(super) struct Place {
    pub(super) space: IrSpace,
    pub(super) addr: Addr,
}

/// One function being lowered.
pub(super) struct Cx<'m, 'a> {
    pub(super) module: &'m Module<'a>,
    pub(super) plan: &'m Plan,
    pub(super) pool: &'m mut Pool,
    /// Its place in the order; 0 is the kernel.
    pub(super) place: usize,
    pub(super) id: FunctionId,
    pub(super) function: &'m Function<'a>,
    pub(super) body: &'m Body<'a>,
    homes: Vec<Home>,
    /// The frame's bottom, where the stack pointer may have moved from it.
    pub(super) bottom: Option<Slot>,
    pub(super) steps: Vec<Step>,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// Tables of indirect branches: the branch's step and its targets.
    pub(super) branches: Vec<(u32, u32, Vec<LabelId>)>,
    // Of the instruction at hand:
    pub(super) mods: Mods<'a>,
    pub(super) ops: &'m [Operand],
    pub(super) span: Span,
    pub(super) instruction: &'m Instruction,
    pub(super) guard: PredSrc,
    pub(super) origin: Option<u32>,
    temps_used: usize,
    preds_used: usize,
}

/// Words of a type in registers.
pub(super) fn words(ty: Type) -> usize {
    ty.bits().div_ceil(32).max(1) as usize
}

impl<'m, 'a> Cx<'m, 'a> {
    pub(super) fn new(
        module: &'m Module<'a>,
        plan: &'m Plan,
        pool: &'m mut Pool,
        place: usize,
        function: &'m Function<'a>,
        body: &'m Body<'a>,
        instruction: &'m Instruction,
    ) -> Cx<'m, 'a> {
        let homes = body
            .registers
            .iter()
            .map(|r| match r.ty {
                Type::Pred => Home::Pred(pool.pred()),
                ty => Home::Slots(pool.slots(words(ty) as u32 * u32::from(r.vector.max(1)))),
            })
            .collect();
        let bottom = plan.frames[place].moves_stack.then(|| Slot(pool.slots(1)));
        Cx {
            module,
            plan,
            place,
            id: plan.functions[place],
            function,
            body,
            homes,
            bottom,
            steps: Vec::new(),
            diagnostics: Vec::new(),
            branches: Vec::new(),
            mods: Mods::new(module.opcode(instruction.opcode), instruction.span),
            ops: &[],
            span: instruction.span,
            instruction,
            guard: PredSrc::TRUE,
            origin: None,
            temps_used: 0,
            preds_used: 0,
            pool,
        }
    }

    pub(super) fn is_kernel(&self) -> bool {
        self.place == 0
    }

    pub(super) fn frame(&self) -> &'m Frame {
        &self.plan.frames[self.place]
    }

    /// Turns to the next instruction.
    pub(super) fn start(&mut self, at: u32, instruction: &'m Instruction) -> Lowered<()> {
        self.mods = Mods::new(self.module.opcode(instruction.opcode), instruction.span);
        self.ops = self.body.operands_of(instruction);
        self.span = instruction.span;
        self.instruction = instruction;
        self.origin = Some(at);
        self.temps_used = 0;
        self.preds_used = 0;
        self.guard = PredSrc::TRUE;
        if let Some(guard) = instruction.guard {
            match self.homes.get(guard.register.index()) {
                Some(&Home::Pred(p)) => self.guard = PredSrc { pred: Some(p), negated: guard.negated },
                _ => return self.error(self.span, "the guard is not a predicate"),
            }
        }
        Ok(())
    }

    pub(super) fn error<T>(&self, span: Span, message: impl Into<String>) -> Lowered<T> {
        Err(Fail::from(Diagnostic::error(span, message)))
    }

    // Emission

    pub(super) fn emit(&mut self, op: Op) {
        self.steps.push(Step { op, guard: self.guard, fix: None, origin: self.origin });
    }

    pub(super) fn lane(&mut self, op: LaneOp) {
        self.emit(Op::Lane(op));
    }

    /// A function of words to a word.
    pub(super) fn int(&mut self, f: IntFn, dst: Option<Slot>, sources: &[Src]) {
        self.apply(LaneFn::Int(f), [dst, None], sources);
    }

    /// A function of words.
    pub(super) fn apply(&mut self, f: LaneFn, dst: [Option<Slot>; 2], sources: &[Src]) {
        let mut op = LaneOp::new(f);
        op.dst = dst;
        for (to, from) in op.src.iter_mut().zip(sources) {
            *to = *from;
        }
        self.lane(op);
    }

    pub(super) fn memory(&mut self, op: MemoryOp) {
        self.emit(Op::Memory(op));
    }

    pub(super) fn warp(&mut self, op: WarpOp) {
        self.emit(Op::Warp(op));
    }

    pub(super) fn control(&mut self, op: ControlOp, fix: Option<Fix>) {
        self.steps.push(Step { op: Op::Control(op), guard: self.guard, fix, origin: self.origin });
    }

    /// A slot that lives until the instruction's end.
    pub(super) fn temp(&mut self) -> Slot {
        if self.temps_used == self.pool.temps.len() {
            let slot = Slot(self.pool.slots(1));
            self.pool.temps.push(slot);
        }
        self.temps_used += 1;
        self.pool.temps[self.temps_used - 1]
    }

    /// A predicate that lives until the instruction's end.
    pub(super) fn temp_pred(&mut self) -> Pred {
        if self.preds_used == self.pool.temp_preds.len() {
            let pred = self.pool.pred();
            self.pool.temp_preds.push(pred);
        }
        self.preds_used += 1;
        self.pool.temp_preds[self.preds_used - 1]
    }

    // Operands

    /// Operand `i`.
    pub(super) fn operand(&self, i: usize) -> Lowered<&'m Operand> {
        match self.ops.get(i) {
            Some(operand) => Ok(operand),
            None => self.error(self.span, format!("`{}` needs more than {} operands", self.mods.text, self.ops.len())),
        }
    }

    /// Refuses other numbers of operands.
    pub(super) fn expect(&self, n: usize) -> Lowered<()> {
        self.expect_between(n, n)
    }

    pub(super) fn expect_between(&self, least: usize, most: usize) -> Lowered<()> {
        let n = self.ops.len();
        if (least..=most).contains(&n) {
            return Ok(());
        }
        let wanted = if least == most { least.to_string() } else { format!("{least} to {most}") };
        let s = if most == 1 { "" } else { "s" };
        self.error(self.span, format!("`{}` takes {wanted} operand{s}, here are {n}", self.mods.text))
    }

    pub(super) fn register(&self, id: RegisterId) -> &'m Register<'a> {
        self.body.register(id)
    }

    /// The type of a register operand or of an element of it.
    pub(super) fn register_type(&self, operand: &Operand) -> Option<Type> {
        match operand.kind {
            OperandKind::Register(id) | OperandKind::Element { register: id, .. } | OperandKind::Not(id) => {
                Some(self.register(id).ty)
            }
            _ => None,
        }
    }

    /// Whether a register of type `have` can stand for a value of type `want`.
    fn fits(have: Type, want: Type, wider: bool) -> bool {
        if have == Type::Pred || want == Type::Pred {
            return have == want;
        }
        let number = |ty: Type| {
            matches!(ty, Type::U16 | Type::S16 | Type::U32 | Type::S32 | Type::U64 | Type::S64 | Type::U8 | Type::S8)
        };
        let size = if wider { have.bits() >= want.bits() } else { have.bits() == want.bits() };
        // Narrow integers share registers of any kind of bits; what is a float and what an integer must agree.
        size && !(number(have) && want.is_float() || have.is_float() && number(want))
    }

    fn check(&self, id: RegisterId, want: Type, wider: bool, span: Span) -> Lowered<()> {
        let register = self.register(id);
        if Self::fits(register.ty, want, wider) {
            return Ok(());
        }
        let message = format!(
            "`{}` has type `.{}`, where `{}` needs `.{}`",
            register.name,
            register.ty.name(),
            self.mods.text,
            want.name()
        );
        Err(Diagnostic::error(span, message).at(register.declaration, "declared here").into())
    }

    /// First slot and number of words of a register or of an element of a vector register.
    fn slots_of(&self, operand: &Operand, want: Type, wider: bool) -> Lowered<(u16, usize)> {
        let (id, component) = match operand.kind {
            OperandKind::Register(id) => (id, None),
            OperandKind::Element { register, component } => (register, Some(component)),
            _ => return self.error(operand.span, "a register is needed here"),
        };
        self.check(id, want, wider, operand.span)?;
        let register = self.register(id);
        let Some(&Home::Slots(first)) = self.homes.get(id.index()) else {
            return self.error(operand.span, format!("`{}` is a predicate", register.name));
        };
        let n = words(register.ty);
        let element = match component {
            None if register.vector > 1 => {
                return self
                    .error(operand.span, format!("`{}` is a vector; one element is needed here", register.name));
            }
            None | Some(Component::X) => 0,
            Some(Component::Y) => 1,
            Some(Component::Z) => 2,
            Some(Component::W) => 3,
            Some(_) => return unsupported("parts of registers in video instructions"),
        };
        if element > 0 && element >= usize::from(register.vector) {
            return self.error(operand.span, format!("`{}` has no such element", register.name));
        }
        Ok((first + (n * element) as u16, n))
    }

    /// Destination words of operand `i`; those of narrow types count in their low bits only.
    pub(super) fn dst(&self, operand: &Operand, ty: Type) -> Lowered<Dst> {
        self.dst_wide(operand, ty, false)
    }

    /// The same for instructions that may write wider registers than their type.
    pub(super) fn dst_wide(&self, operand: &Operand, ty: Type, wider: bool) -> Lowered<Dst> {
        let mut out = [None; 4];
        if operand.kind == OperandKind::Sink {
            return Ok(out);
        }
        let (first, n) = self.slots_of(operand, ty, wider)?;
        for (i, slot) in out.iter_mut().enumerate().take(n) {
            *slot = Some(Slot(first + i as u16));
        }
        Ok(out)
    }

    /// Destination predicate.
    pub(super) fn pdst(&self, operand: &Operand) -> Lowered<Option<Pred>> {
        match operand.kind {
            OperandKind::Sink => Ok(None),
            OperandKind::Register(id) => match self.homes.get(id.index()) {
                Some(&Home::Pred(p)) => Ok(Some(p)),
                _ => self.check(id, Type::Pred, false, operand.span).map(|()| None),
            },
            _ => self.error(operand.span, "a predicate register is needed here"),
        }
    }

    /// Source predicate, possibly negated, or a constant.
    pub(super) fn psrc(&self, operand: &Operand) -> Lowered<PredSrc> {
        let (id, negated) = match operand.kind {
            OperandKind::Register(id) => (id, false),
            OperandKind::Not(id) => (id, true),
            OperandKind::Integer { value, .. } => return Ok(if value != 0 { PredSrc::TRUE } else { PredSrc::FALSE }),
            _ => return self.error(operand.span, "a predicate is needed here"),
        };
        match self.homes.get(id.index()) {
            Some(&Home::Pred(p)) => Ok(PredSrc { pred: Some(p), negated }),
            _ => self.check(id, Type::Pred, false, operand.span).map(|()| PredSrc::TRUE),
        }
    }

    /// Source words of a value of type `ty`.
    pub(super) fn src(&self, operand: &Operand, ty: Type) -> Lowered<Words> {
        self.src_wide(operand, ty, false)
    }

    /// The same for instructions that may read wider registers than their type.
    pub(super) fn src_wide(&self, operand: &Operand, ty: Type, wider: bool) -> Lowered<Words> {
        let mut out = [Src::ZERO; 4];
        let value: u64 = match operand.kind {
            OperandKind::Register(_) | OperandKind::Element { .. } => {
                let (first, n) = self.slots_of(operand, ty, wider)?;
                for (i, src) in out.iter_mut().enumerate().take(n) {
                    *src = Src::slot(Slot(first + i as u16));
                }
                return Ok(out);
            }
            OperandKind::Integer { value, .. } => {
                if ty.is_float() {
                    return self.error(operand.span, "a floating-point number is needed here, not an integer");
                }
                value
            }
            OperandKind::F32(bits) => match ty {
                Type::F64 => f64::from(f32::from_bits(bits)).to_bits(),
                _ if ty.bits() == 32 => u64::from(bits),
                _ => {
                    return self
                        .error(operand.span, format!("a number of type `.f32` where `.{}` is needed", ty.name()));
                }
            },
            OperandKind::F64(bits) => match ty {
                Type::F32 => u64::from((f64::from_bits(bits) as f32).to_bits()),
                _ if ty.bits() == 64 => bits,
                _ => {
                    return self
                        .error(operand.span, format!("a number of type `.f64` where `.{}` is needed", ty.name()));
                }
            },
            OperandKind::WarpSize => 32,
            OperandKind::Sink => return self.error(operand.span, "`_` has no value"),
            OperandKind::Invalid => return self.error(operand.span, "this operand could not be read"),
            _ => {
                return self
                    .error(operand.span, format!("a register or a constant of type `.{}` is needed here", ty.name()));
            }
        };
        let value = if ty.bits() < 64 { value & ((1u64 << ty.bits()) - 1) } else { value };
        out[0] = Src::imm(value as u32);
        out[1] = Src::imm((value >> 32) as u32);
        if ty.bits() > 64 && matches!(operand.kind, OperandKind::Integer { unsigned: false, .. }) {
            let sign = if value >> 63 == 1 { !0 } else { 0 };
            (out[2], out[3]) = (Src::imm(sign), Src::imm(sign));
        }
        Ok(out)
    }

    /// One word of operand `i`.
    pub(super) fn word(&self, i: usize, ty: Type) -> Lowered<Src> {
        Ok(self.src(self.operand(i)?, ty)?[0])
    }

    /// `word` with its bits above type `ty` made those of the number.
    pub(super) fn extended(&mut self, word: Src, ty: Type) -> Src {
        let bits = ty.bits();
        if bits >= 32 {
            return word;
        }
        if let lanescope_ir::op::SrcKind::Imm(value) = word.kind {
            let spare = 32 - bits;
            let moved = value << spare;
            return Src::imm(if ty.is_signed() { (moved as i32 >> spare) as u32 } else { moved >> spare });
        }
        let to = self.temp();
        let from = Integer { bits: bits as u8, signed: ty.is_signed() };
        let f = ConvertFn::IntToInt { from, to: Integer { bits: 32, signed: ty.is_signed() }, saturate: false };
        self.apply(LaneFn::Convert(f), [Some(to), None], &[word]);
        Src::slot(to)
    }

    /// Members of `{a, b}`, or the operand itself.
    pub(super) fn members<'s>(&self, operand: &'s Operand) -> &'s [Operand]
    where
        'm: 's,
    {
        match operand.kind {
            OperandKind::Vector(list) => self.body.list(list),
            _ => std::slice::from_ref(operand),
        }
    }

    /// Both members of `a|b`; the second is a sink if there is one only.
    pub(super) fn pair(&self, operand: &'m Operand) -> (&'m Operand, Option<&'m Operand>) {
        if let OperandKind::Pair(list) = operand.kind
            && let [a, b] = self.body.list(list)
        {
            return (a, Some(b));
        }
        (operand, None)
    }

    // Addresses

    /// An address `offset` bytes into the frame (or beyond it: the caller's outgoing area).
    pub(super) fn frame_addr(&self, offset: u32) -> Addr {
        let (base, offset) = match self.bottom {
            Some(slot) => (Src::slot(slot), i64::from(offset)),
            None if self.is_kernel() => (Src::ZERO, i64::from(self.kernel_bottom()) + i64::from(offset)),
            None => (Src::slot(STACK), i64::from(offset)),
        };
        Addr { base, base_hi: None, uniform: None, signed: false, scale: 0, offset }
    }

    /// An address in the outgoing area.
    pub(super) fn outgoing_addr(&self, offset: u32) -> Addr {
        let mut addr = self.frame_addr(offset);
        if self.bottom.is_some() {
            addr.base = Src::slot(STACK);
        }
        addr
    }

    /// Refuses what concerns clusters if the kernel asks for clusters of several blocks: here each is one block.
    pub(super) fn only_own_cluster(&self) -> Lowered<()> {
        let kernel = self.plan.functions.first().and_then(|id| self.module.functions.get(id.index()));
        match kernel.and_then(|k| k.tuning.reqnctapercluster) {
            Some(shape) if shape.iter().any(|&n| n > 1) => unsupported("clusters of several blocks"),
            _ => Ok(()),
        }
    }

    /// Where the kernel's frame begins.
    pub(super) fn kernel_bottom(&self) -> u32 {
        self.plan.local_size.saturating_sub(self.plan.frames[0].size)
    }

    /// The variable that `target` names, and where it is.
    pub(super) fn variable(&self, target: Target, span: Span) -> Lowered<(&'m Variable<'a>, Place)> {
        let at = |space, address: u64| Place {
            space,
            addr: Addr {
                base: Src::ZERO,
                base_hi: None,
                uniform: None,
                signed: false,
                scale: 0,
                offset: address as i64,
            },
        };
        let space = |v: &Variable<'_>| match v.space {
            Space::Shared => IrSpace::Shared,
            _ => IrSpace::Global,
        };
        let gone = || self.error(span, "this has no address");
        match target {
            Target::Global(id) => {
                let Some(v) = self.module.variables.get(id.index()) else { return gone() };
                match self.plan.module.get(&id) {
                    Some(&address) => Ok((v, at(space(v), address))),
                    None if matches!(v.space, Space::Tex) || v.ty.bytes() == 0 => unsupported("texture"),
                    None => gone(),
                }
            }
            Target::Local(id) => {
                let Some(v) = self.body.variables.get(id.index()) else { return gone() };
                if let Some(&address) = self.plan.bodies.get(&(self.id, id)) {
                    return Ok((v, at(space(v), address)));
                }
                match self.frame().variables.get(&id) {
                    Some(&offset) => Ok((v, Place { space: IrSpace::Local, addr: self.frame_addr(offset) })),
                    None => gone(),
                }
            }
            Target::Parameter(i) | Target::Return(i) => {
                let is_param = matches!(target, Target::Parameter(_));
                let list = if is_param { &self.function.params } else { &self.function.returns };
                let signature = &self.frame().signature;
                let places = if is_param { &signature.params } else { &signature.returns };
                let (Some(v), Some(&(offset, _))) = (list.get(i as usize), places.get(i as usize)) else {
                    return gone();
                };
                if self.function.kind == FunctionKind::Entry {
                    return Ok((v, at(IrSpace::Const(0), u64::from(launch::PARAM_BASE + offset))));
                }
                let offset = self.frame().size.saturating_add(offset);
                Ok((v, Place { space: IrSpace::Local, addr: self.frame_addr(offset) }))
            }
            _ => self.error(span, "a variable is needed here"),
        }
    }

    /// The address `id` in state space `space`; without one it is generic, or that of the variable named.
    pub(super) fn address(&self, id: AddressId, space: Option<Space>) -> Lowered<Place> {
        let address = self.body.address(id);
        if address.rest.len != 0 {
            return self.error(address.base_span, "an address with more than one part");
        }
        let wanted = match space {
            None => IrSpace::Generic,
            Some(Space::Shared) => IrSpace::Shared,
            Some(Space::Local) => IrSpace::Local,
            Some(Space::Param) if self.is_kernel() => IrSpace::Const(0),
            // Parameters of functions lie on the stack.
            Some(Space::Param) => IrSpace::Local,
            Some(_) => IrSpace::Global,
        };
        let operand = Operand { kind: address.base, span: address.base_span };
        let plain = |base, base_hi, offset| Addr { base, base_hi, uniform: None, signed: false, scale: 0, offset };
        match address.base {
            OperandKind::Symbol { target, offset } => {
                let (variable, mut place) = self.variable(target, address.base_span)?;
                let is_param = variable.space == Space::Param;
                let agrees = match wanted {
                    IrSpace::Generic => true,
                    _ if space == Some(Space::Param) => is_param,
                    wanted => wanted == place.space && !is_param,
                };
                if !agrees {
                    let have = variable.space.name();
                    let message = format!("`{}` lies in .{have}, and `{}` does not", variable.name, self.mods.text);
                    return self.error(address.base_span, message);
                }
                place.addr.offset = place.addr.offset.wrapping_add(i64::from(offset)).wrapping_add(address.offset);
                Ok(place)
            }
            OperandKind::Integer { value, .. } => {
                Ok(Place { space: wanted, addr: plain(Src::ZERO, None, (value as i64).wrapping_add(address.offset)) })
            }
            OperandKind::Register(_) | OperandKind::Element { .. } => {
                let wide = self.register_type(&operand).is_some_and(|ty| ty.bits() == 64);
                let value = self.src(&operand, if wide { Type::B64 } else { Type::B32 })?;
                let wide_space = matches!(wanted, IrSpace::Global | IrSpace::Generic);
                let addr = plain(value[0], (wide && wide_space).then_some(value[1]), address.offset);
                Ok(Place { space: wanted, addr })
            }
            _ => self.error(address.base_span, "this is not an address"),
        }
    }

    /// The address operand `i`.
    pub(super) fn address_of(&self, i: usize, space: Option<Space>) -> Lowered<Place> {
        let operand = self.operand(i)?;
        match operand.kind {
            OperandKind::Address(id) => self.address(id, space),
            _ => self.error(operand.span, "an address in brackets is needed here"),
        }
    }

    /// Code address of a step of this function.
    pub(super) fn code_address(&self, step: usize) -> u64 {
        CODE_BASE + CODE_STRIDE * self.place as u64 + 16 * step as u64
    }

    /// Puts a register of 64 bits or less in a word of memory, or takes it from there.
    pub(super) fn spill(&mut self, register: RegisterId, addr: Addr, load: bool) -> u32 {
        let r = self.register(register);
        let n = words(r.ty) * usize::from(r.vector.max(1));
        match self.homes[register.index()] {
            Home::Pred(p) => {
                let temp = self.temp();
                if load {
                    self.load(Width::B32, &[Some(temp)], addr);
                    let mut op =
                        LaneOp::new(LaneFn::Int(IntFn::Set { cmp: lanescope_ir::op::int::Cmp::Ne, signed: false }));
                    op.pdst[0] = Some(p);
                    op.src[0] = Src::slot(temp);
                    self.lane(op);
                } else {
                    let mut op = LaneOp::new(LaneFn::Int(IntFn::Sel));
                    op.dst[0] = Some(temp);
                    op.src[0] = Src::imm(1);
                    op.psrc[0] = PredSrc::of(p);
                    self.lane(op);
                    self.store(Width::B32, &[Src::slot(temp)], addr);
                }
                4
            }
            Home::Slots(first) => {
                for i in 0..n {
                    let addr = Addr { offset: addr.offset + 4 * i as i64, ..addr };
                    let slot = Slot(first + i as u16);
                    if load {
                        self.load(Width::B32, &[Some(slot)], addr);
                    } else {
                        self.store(Width::B32, &[Src::slot(slot)], addr);
                    }
                }
                4 * n as u32
            }
        }
    }

    /// A load from local memory.
    pub(super) fn load(&mut self, width: Width, dst: &[Option<Slot>], addr: Addr) {
        let mut all = [None; 8];
        all[..dst.len().min(8)].copy_from_slice(&dst[..dst.len().min(8)]);
        self.memory(MemoryOp::Load { space: IrSpace::Local, width, dst: all, addr, valid: PredSrc::TRUE });
    }

    /// A store to local memory.
    pub(super) fn store(&mut self, width: Width, src: &[Src], addr: Addr) {
        let mut all = [Src::ZERO; 8];
        all[..src.len().min(8)].copy_from_slice(&src[..src.len().min(8)]);
        self.memory(MemoryOp::Store { space: IrSpace::Local, width, src: all, addr });
    }
}
