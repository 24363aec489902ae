//! One function on its way to steps: registers, operands, emission.
//!
//! Of a register of 16 bits or less only the low bits of its slot count; what looks at the rest extends it first.

mod address;
mod operand;

use std::collections::HashMap;

use lanescope_ir::op::control::ControlOp;
use lanescope_ir::op::int::IntFn;
use lanescope_ir::op::memory::{Addr, MemoryOp, Space as IrSpace};
use lanescope_ir::op::warp::WarpOp;
use lanescope_ir::op::{LaneFn, LaneOp};
use lanescope_ir::{Op, Pred, PredSrc, Slot, Src};

use super::check::Errors;
use super::contract::Contraction;
use super::fail::{Fail, Lowered};
use super::mods::Mods;
use super::plan::{Frame, Plan};
use crate::diagnostic::Diagnostic;
use crate::span::Span;
use crate::tree::{Body, Function, FunctionId, FunctionKind, Instruction, LabelId, Module, Operand, Type};

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
    pub(super) errors: Errors,
    /// Tables of indirect branches: the branch's step and its targets.
    pub(super) branches: Vec<(u32, u32, Vec<LabelId>)>,
    /// Sums that are fused with their products.
    pub(super) contraction: Contraction,
    /// Operands of products, kept for their sums.
    pub(super) kept: HashMap<u32, [Words; 2]>,
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
            errors: Errors::default(),
            branches: Vec::new(),
            contraction: Contraction::default(),
            kept: HashMap::new(),
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
        self.place == 0 && self.function.kind == FunctionKind::Entry
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

    /// A slot that nothing else uses.
    pub(super) fn lasting(&mut self) -> Slot {
        Slot(self.pool.slots(1))
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
}
