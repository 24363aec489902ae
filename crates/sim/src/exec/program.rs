//! A kernel prepared for one launch: every operand resolved, every lane function bound.

use lanescope_ir::op::control::{ControlOp, Decision, Indirect, WarpSyncMode};
use lanescope_ir::op::memory::{Addr, Amount, AtomOp, AtomType, MemoryOp, Space, Width};
use lanescope_ir::op::warp::{BlockBarrierMode, WarpOp};
use lanescope_ir::{BranchKind, Kernel, Op, Pred, PredSrc, Slot, Src};

use super::loops::Loops;
use crate::convergence::Convergence;
use crate::error::SimError;
use crate::launch::Options;
use crate::memory::bank::Banks;
use crate::rows::{LaneInst, Layout, Operand, PredOperand};

/// No entry in a table.
pub(crate) const NONE: u32 = u32::MAX;

/// An address with its sources resolved.
pub(crate) struct Address {
    pub(crate) base: Operand,
    pub(crate) base_hi: Option<Operand>,
    pub(crate) uniform: Option<(Operand, Operand)>,
    pub(crate) signed: bool,
    pub(crate) scale: u32,
    pub(crate) offset: i64,
}

/// A memory operation.
pub(crate) enum MemKind {
    Load {
        width: Width,
        dst: [u32; 8],
        valid: PredOperand,
    },
    Store {
        width: Width,
        src: [Operand; 8],
    },
    Atomic {
        op: AtomOp,
        ty: AtomType,
        dst: [u32; 4],
        pdst: u32,
        src: [Operand; 4],
        compare: [Operand; 4],
        returns: bool,
        predicate: bool,
    },
    Query {
        pdst: u32,
        dst: u32,
    },
    Copy(CopyInst),
    Tiles(TilesInst),
}

/// A copy from global memory, whose address is the instruction's, to shared memory.
pub(crate) struct CopyInst {
    pub(crate) width: Width,
    pub(crate) to: Address,
    pub(crate) valid: PredOperand,
    pub(crate) pieces: Pieces,
}

/// How much is copied.
pub(crate) enum Pieces {
    Whole,
    First(Operand),
    Offset,
}

/// Tiles read from shared memory, or written to it if there are sources.
pub(crate) struct TilesInst {
    pub(crate) count: u8,
    pub(crate) transposed: bool,
    pub(crate) dst: [u32; 4],
    pub(crate) src: Option<[Operand; 4]>,
}

pub(crate) struct MemInst {
    pub(crate) kind: MemKind,
    pub(crate) space: Space,
    pub(crate) addr: Address,
    pub(crate) merges: bool,
}

impl MemInst {
    /// Whether it may change memory in a way that no register shows.
    pub(crate) fn changes_memory(&self) -> bool {
        matches!(
            self.kind,
            MemKind::Store { .. }
                | MemKind::Atomic { returns: false, .. }
                | MemKind::Copy(_)
                | MemKind::Tiles(TilesInst { src: Some(_), .. })
        )
    }

    /// Whether the warp may have to wait for a value from memory.
    pub(crate) fn returns(&self) -> bool {
        matches!(self.kind, MemKind::Load { .. } | MemKind::Atomic { returns: true, .. })
    }

    /// Whether groups that are parked at the same place merge when it is issued. As measured: all loads, stores and
    /// atomics except loads of constants and stores to local memory.
    fn merges(kind: &MemKind, space: Space) -> bool {
        !matches!(
            (kind, space),
            (MemKind::Query { .. }, _) | (_, Space::Const(_)) | (MemKind::Store { .. }, Space::Local)
        )
    }
}

/// An operation across lanes.
pub(crate) struct WarpInst {
    pub(crate) op: WarpOp,
    /// Sources in the order in which `op` lists them.
    pub(crate) src: Vec<Operand>,
    pub(crate) psrc: Vec<PredOperand>,
    pub(crate) dst: Vec<u32>,
    pub(crate) pdst: Vec<u32>,
}

/// For whom a WARPSYNC waits.
pub(crate) enum SyncLanes {
    All,
    Mask(Operand),
    Collective(Operand, u32),
    Exclusive(Operand),
}

/// Why lanes go to a place that a register names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transfer {
    Jump,
    Call,
    Return,
}

/// A call of a function that is not in the module.
pub(crate) struct External {
    pub(crate) name: String,
    pub(crate) args: Vec<[Operand; 2]>,
    pub(crate) result: u32,
}

/// An operation that may end the running group.
pub(crate) enum Flow {
    Branch(u32, Decision),
    /// A direct call, for models that follow calls.
    Call(u32),
    /// BRA.DIV and BRA.CONV.
    BranchIf {
        target: u32,
        mask: Option<Operand>,
        converged: bool,
    },
    Indirect {
        lo: Operand,
        hi: Operand,
        base: u64,
        how: Transfer,
    },
    External(External),
    Exit,
    Sync(u8),
    WarpSync(SyncLanes),
    EndCollective,
    Yield,
    Sleep,
    Trap,
    BlockBarrier {
        mode: BlockBarrierMode,
        id: Operand,
        threads: Option<Operand>,
        pred: PredOperand,
    },
    /// An instruction that is not implemented and has effects that cannot be skipped.
    Refuse,
}

/// An operation that steers the warp.
pub(crate) struct FlowInst {
    pub(crate) flow: Flow,
    pub(crate) cond: PredOperand,
    /// Index into the branch counters.
    pub(crate) counter: u32,
}

impl FlowInst {
    /// Whether lanes that wait at a WARPSYNC may go on after it.
    pub(crate) fn frees(&self) -> bool {
        matches!(self.flow, Flow::WarpSync(_) | Flow::Exit)
    }
}

/// An operation on barrier registers that leaves the group as it is.
pub(crate) enum BarrierInst {
    Set(u8, PredOperand),
    Break(u8, PredOperand),
    Read { dst: u32, bar: u8, clear: bool },
    Write { bar: u8, src: Operand },
}

/// What an instruction does.
pub(crate) enum Kind {
    Nop,
    Lane(LaneInst),
    /// A select whose lanes are counted, by index.
    Select(LaneInst, PredOperand, u32),
    Memory(Box<MemInst>),
    Warp(Box<WarpInst>),
    Barrier(BarrierInst),
    Flow(Box<FlowInst>),
    Unsupported,
}

pub(crate) struct Inst {
    pub(crate) kind: Kind,
    pub(crate) guard: PredOperand,
    /// Whether the guard is anything but the constant true.
    pub(crate) guarded: bool,
    pub(crate) uniform: bool,
    /// Index of the instruction after the last of the straight run that starts here; flow operations and the
    /// instructions before a leader end it.
    pub(crate) end: u32,
    /// The loop whose header it is.
    pub(crate) header: u32,
    /// The loop whose back edge starts here.
    pub(crate) latch: u32,
}

/// One entry of the branch counters.
pub(crate) struct BranchInfo {
    pub(crate) inst: u32,
    pub(crate) kind: BranchKind,
    /// Left out of the profile unless it split.
    pub(crate) only_if_split: bool,
}

/// The prepared kernel.
pub(crate) struct Program {
    pub(crate) insts: Vec<Inst>,
    pub(crate) layout: Layout,
    pub(crate) banks: Banks,
    pub(crate) branches: Vec<BranchInfo>,
    /// Selects that are counted, ascending.
    pub(crate) selects: Vec<u32>,
    pub(crate) loops: Loops,
    pub(crate) stack_pointer: Option<(u32, u32)>,
    pub(crate) true_preds: Vec<u32>,
    /// Some instruction is not implemented.
    pub(crate) has_unsupported: bool,
    /// A global atomic whose effect depends on the order of blocks.
    pub(crate) ordered: bool,
    /// Some instruction prints.
    pub(crate) prints: bool,
}

/// Resolves operands; a missing register makes the kernel invalid.
struct Resolver<'a> {
    layout: Layout,
    banks: &'a Banks,
    at: usize,
}

impl Resolver<'_> {
    fn bad(&self, what: &str) -> SimError {
        SimError::BadKernel(format!("instruction {}: {what}", self.at))
    }
    fn src(&mut self, s: Src) -> Result<Operand, SimError> {
        let banks = self.banks;
        self.layout
            .operand(s, &|b, o| banks.word(b, o))
            .ok_or_else(|| self.bad("a source register that does not exist"))
    }
    fn array<const N: usize>(&mut self, s: &[Src; N]) -> Result<[Operand; N], SimError> {
        let mut out = [self.src(Src::ZERO)?; N];
        for (o, s) in out.iter_mut().zip(s) {
            *o = self.src(*s)?;
        }
        Ok(out)
    }
    fn pred(&self, p: PredSrc) -> Result<PredOperand, SimError> {
        self.layout.pred(p).ok_or_else(|| self.bad("a predicate that does not exist"))
    }
    fn dst(&self, d: Option<Slot>) -> Result<u32, SimError> {
        self.layout.dst(d).ok_or_else(|| self.bad("a destination that does not exist"))
    }
    fn dsts<const N: usize>(&self, d: &[Option<Slot>; N]) -> Result<[u32; N], SimError> {
        let mut out = [0; N];
        for (o, d) in out.iter_mut().zip(d) {
            *o = self.dst(*d)?;
        }
        Ok(out)
    }
    fn pdst(&self, d: Option<Pred>) -> Result<u32, SimError> {
        self.layout.pdst(d).ok_or_else(|| self.bad("a destination predicate that does not exist"))
    }
    fn addr(&mut self, a: &Addr) -> Result<Address, SimError> {
        Ok(Address {
            base: self.src(a.base)?,
            base_hi: a.base_hi.map(|s| self.src(s)).transpose()?,
            uniform: a.uniform.map(|(l, h)| Ok::<_, SimError>((self.src(l)?, self.src(h)?))).transpose()?,
            signed: a.signed,
            scale: u32::from(a.scale.min(63)),
            offset: a.offset,
        })
    }
    fn bar(&self, b: lanescope_ir::BarrierReg) -> Result<u8, SimError> {
        if b.0 < 16 { Ok(b.0) } else { Err(self.bad("a convergence barrier above B15")) }
    }

    fn memory(&mut self, op: &MemoryOp) -> Result<MemInst, SimError> {
        let (kind, space, addr) = match op {
            MemoryOp::Load { space, width, dst, addr, valid } => {
                (MemKind::Load { width: *width, dst: self.dsts(dst)?, valid: self.pred(*valid)? }, *space, addr)
            }
            MemoryOp::Store { space, width, src, addr } => {
                (MemKind::Store { width: *width, src: self.array(src)? }, *space, addr)
            }
            MemoryOp::Atomic { space, op, ty, dst, pdst, addr, src, compare } => {
                let kind = MemKind::Atomic {
                    op: *op,
                    ty: *ty,
                    dst: self.dsts(dst)?,
                    pdst: self.pdst(*pdst)?,
                    src: self.array(src)?,
                    compare: self.array(compare)?,
                    returns: dst.iter().any(Option::is_some) || pdst.is_some(),
                    predicate: pdst.is_some(),
                };
                (kind, *space, addr)
            }
            MemoryOp::Copy { width, to, from, valid, amount } => {
                let pieces = match amount {
                    Amount::All => Pieces::Whole,
                    Amount::First(n) => Pieces::First(self.src(*n)?),
                    Amount::Offset => Pieces::Offset,
                };
                if !matches!(width, Width::B32 | Width::B64 | Width::B128) {
                    return Err(self.bad("a copy of a width that there is not"));
                }
                let copy = CopyInst { width: *width, to: self.addr(to)?, valid: self.pred(*valid)?, pieces };
                (MemKind::Copy(copy), Space::Global, from)
            }
            MemoryOp::LoadMatrix { space, count, transposed, dst, addr } => {
                let tiles = TilesInst { count: *count, transposed: *transposed, dst: self.dsts(dst)?, src: None };
                (MemKind::Tiles(tiles), *space, addr)
            }
            MemoryOp::StoreMatrix { space, count, transposed, src, addr } => {
                let src = Some(self.array(src)?);
                let tiles = TilesInst { count: *count, transposed: *transposed, dst: self.dsts(&[None; 4])?, src };
                (MemKind::Tiles(tiles), *space, addr)
            }
            MemoryOp::QuerySpace { space, pdst, dst, addr } => {
                (MemKind::Query { pdst: self.pdst(*pdst)?, dst: self.dst(*dst)? }, *space, addr)
            }
        };
        let merges = MemInst::merges(&kind, space);
        Ok(MemInst { kind, space, addr: self.addr(addr)?, merges })
    }

    fn warp(&mut self, op: &WarpOp) -> Result<WarpInst, SimError> {
        use lanescope_ir::op::effects::Visit;
        #[derive(Default)]
        struct All(Vec<Src>, Vec<PredSrc>, Vec<Option<Slot>>, Vec<Option<Pred>>);
        impl Visit for All {
            fn src(&mut self, s: &mut Src) {
                self.0.push(*s);
            }
            fn psrc(&mut self, p: &mut PredSrc) {
                self.1.push(*p);
            }
            fn dst(&mut self, d: &mut Option<Slot>) {
                self.2.push(*d);
            }
            fn pdst(&mut self, p: &mut Option<Pred>) {
                self.3.push(*p);
            }
        }
        let mut all = All::default();
        let mut whole =
            lanescope_ir::Instruction { pc: 0, guard: PredSrc::TRUE, uniform: false, op: Op::Warp(op.clone()) };
        whole.visit(&mut all);
        Ok(WarpInst {
            op: op.clone(),
            src: all.0.into_iter().map(|s| self.src(s)).collect::<Result<_, _>>()?,
            // The first is the guard.
            psrc: all.1.into_iter().skip(1).map(|p| self.pred(p)).collect::<Result<_, _>>()?,
            dst: all.2.into_iter().map(|d| self.dst(d)).collect::<Result<_, _>>()?,
            pdst: all.3.into_iter().map(|p| self.pdst(p)).collect::<Result<_, _>>()?,
        })
    }

    fn indirect(&mut self, t: &Indirect, how: Transfer) -> Result<Flow, SimError> {
        Ok(Flow::Indirect { lo: self.src(t.reg[0])?, hi: self.src(t.reg[1])?, base: t.base, how })
    }

    /// A control operation: what it is, and its second predicate.
    fn control(&mut self, op: &ControlOp) -> Result<Kind, SimError> {
        let (flow, cond) = match op {
            ControlOp::Branch { target, cond, decision } => (Flow::Branch(target.0, *decision), *cond),
            ControlOp::Call { target, cond } => (Flow::Branch(target.0, Decision::Lanes), *cond),
            ControlOp::BranchDivergent { target, mask, cond } => {
                let mask = mask.map(|m| self.src(m)).transpose()?;
                (Flow::BranchIf { target: target.0, mask, converged: false }, *cond)
            }
            ControlOp::BranchConverged { target, mask, cond } => {
                let mask = mask.map(|m| self.src(m)).transpose()?;
                (Flow::BranchIf { target: target.0, mask, converged: true }, *cond)
            }
            ControlOp::BranchIndirect { target, cond } => (self.indirect(target, Transfer::Jump)?, *cond),
            ControlOp::CallIndirect { target, cond } => (self.indirect(target, Transfer::Call)?, *cond),
            ControlOp::Return { target, cond } => (self.indirect(target, Transfer::Return)?, *cond),
            ControlOp::CallExternal { name, cond, args, result } => {
                let args = args.iter().map(|a| self.array(a)).collect::<Result<_, _>>()?;
                (Flow::External(External { name: name.clone(), args, result: self.dst(*result)? }), *cond)
            }
            ControlOp::Exit { cond } => (Flow::Exit, *cond),
            ControlOp::Sync { bar, cond } => (Flow::Sync(self.bar(*bar)?), *cond),
            ControlOp::WarpSync { mode, cond } => {
                let lanes = match mode {
                    WarpSyncMode::All => SyncLanes::All,
                    WarpSyncMode::Mask(m) => SyncLanes::Mask(self.src(*m)?),
                    WarpSyncMode::Collective(m, t) => SyncLanes::Collective(self.src(*m)?, t.0),
                    WarpSyncMode::Exclusive(m) => SyncLanes::Exclusive(self.src(*m)?),
                };
                (Flow::WarpSync(lanes), *cond)
            }
            ControlOp::EndCollective => (Flow::EndCollective, PredSrc::TRUE),
            ControlOp::Yield => (Flow::Yield, PredSrc::TRUE),
            ControlOp::Sleep => (Flow::Sleep, PredSrc::TRUE),
            ControlOp::Trap => (Flow::Trap, PredSrc::TRUE),
            ControlOp::Breakpoint => return Ok(Kind::Nop),
            ControlOp::SyncSet { bar, cond, .. } => {
                return Ok(Kind::Barrier(BarrierInst::Set(self.bar(*bar)?, self.pred(*cond)?)));
            }
            ControlOp::Break { bar, cond } => {
                return Ok(Kind::Barrier(BarrierInst::Break(self.bar(*bar)?, self.pred(*cond)?)));
            }
            ControlOp::BarrierRead { dst, bar, clear } => {
                return Ok(Kind::Barrier(BarrierInst::Read {
                    dst: self.dst(*dst)?,
                    bar: self.bar(*bar)?,
                    clear: *clear,
                }));
            }
            ControlOp::BarrierWrite { bar, src } => {
                return Ok(Kind::Barrier(BarrierInst::Write { bar: self.bar(*bar)?, src: self.src(*src)? }));
            }
        };
        Ok(Kind::Flow(Box::new(FlowInst { flow, cond: self.pred(cond)?, counter: NONE })))
    }

    fn kind(&mut self, inst: &lanescope_ir::Instruction) -> Result<Kind, SimError> {
        Ok(match &inst.op {
            Op::Nop => Kind::Nop,
            Op::Lane(op) => {
                let banks = self.banks;
                let made = LaneInst::new(&mut self.layout, op, inst.guard, inst.uniform, &|b, o| banks.word(b, o));
                Kind::Lane(made.ok_or_else(|| self.bad("a register that does not exist"))?)
            }
            Op::Memory(op) => Kind::Memory(Box::new(self.memory(op)?)),
            Op::Warp(WarpOp::BlockBarrier { mode, id, threads, pred }) => {
                let flow = Flow::BlockBarrier {
                    mode: *mode,
                    id: self.src(*id)?,
                    threads: threads.map(|t| self.src(t)).transpose()?,
                    pred: self.pred(*pred)?,
                };
                Kind::Flow(Box::new(FlowInst { flow, cond: self.pred(PredSrc::TRUE)?, counter: NONE }))
            }
            Op::Warp(op) => Kind::Warp(Box::new(self.warp(op)?)),
            Op::Control(op) => self.control(op)?,
            Op::Unsupported(u) if u.has_effects => {
                let cond = self.pred(PredSrc::TRUE)?;
                Kind::Flow(Box::new(FlowInst { flow: Flow::Refuse, cond, counter: NONE }))
            }
            Op::Unsupported(_) => Kind::Unsupported,
        })
    }
}

/// Whether a global atomic's effect depends on the order of blocks.
pub(crate) fn order_matters(op: AtomOp, ty: AtomType, returns: bool) -> bool {
    let integer = matches!(ty, AtomType::U32 | AtomType::S32 | AtomType::U64 | AtomType::S64);
    let commutes = matches!(
        op,
        AtomOp::Add | AtomOp::Min | AtomOp::Max | AtomOp::And | AtomOp::Or | AtomOp::Xor | AtomOp::PopcInc
    );
    returns || !integer || !commutes
}

/// What the engine cannot do of an instruction, if anything.
fn refusal<C: Convergence>(op: &Op) -> Option<String> {
    match op {
        Op::Control(c) if !C::supports(c) => Some("the convergence model does not know it".to_owned()),
        Op::Memory(MemoryOp::Atomic { op, ty, space, .. }) if !super::atomic::supported(*op, *ty) => {
            Some(format!("atomic {op:?} of {ty:?} in {space:?} memory"))
        }
        Op::Memory(
            MemoryOp::Store { space: Space::Const(_), .. } | MemoryOp::Atomic { space: Space::Const(_), .. },
        ) => Some("a write to a constant bank".to_owned()),
        Op::Warp(w) => super::warp::unsupported(w),
        _ => None,
    }
}

impl Program {
    pub(crate) fn new<C: Convergence>(
        kernel: &Kernel,
        bank0: &[u8],
        options: &Options,
    ) -> Result<(Program, Vec<Option<String>>), SimError> {
        let banks = Banks::new(bank0, &kernel.constants);
        let mut r = Resolver { layout: Layout::new(kernel.slots, kernel.preds), banks: &banks, at: 0 };
        let loops = if options.loops { Loops::find(kernel) } else { Loops::default() };
        let leaders = super::loops::leaders(kernel);
        let mut selects = options.selects.clone();
        selects.sort_unstable();
        selects.dedup();
        if let Some(&inst) = selects.iter().find(|&&i| kernel.instructions.get(i as usize).is_none()) {
            return Err(SimError::CannotRecord { inst, why: "the kernel has no such instruction" });
        }
        let mut insts = Vec::with_capacity(kernel.instructions.len());
        let mut branches = Vec::new();
        let mut refusals = vec![None; kernel.instructions.len()];
        let mut has_unsupported = false;
        let mut ordered = false;
        let mut prints = false;
        for (at, inst) in kernel.instructions.iter().enumerate() {
            r.at = at;
            let mut kind = r.kind(inst)?;
            if let Kind::Memory(m) = &mut kind {
                m.merges &= options.merge_at_memory;
            }
            if let Some(why) = refusal::<C>(&inst.op) {
                refusals[at] = Some(why);
                let cond = r.pred(PredSrc::TRUE)?;
                kind = Kind::Flow(Box::new(FlowInst { flow: Flow::Refuse, cond, counter: NONE }));
            }
            if let Ok(index) = selects.binary_search(&(at as u32)) {
                let predicate = match &inst.op {
                    Op::Lane(op) => r.pred(op.psrc[0])?,
                    _ => return Err(SimError::CannotRecord { inst: at as u32, why: "it is no select" }),
                };
                if let Kind::Lane(op) = kind {
                    kind = Kind::Select(op, predicate, index as u32);
                }
            }
            has_unsupported |= matches!(inst.op, Op::Unsupported(_));
            prints |= matches!(inst.op, Op::Control(ControlOp::CallExternal { .. }));
            if let Op::Memory(MemoryOp::Atomic { space: Space::Global, op, ty, dst, pdst, .. }) = &inst.op {
                ordered |= order_matters(*op, *ty, dst.iter().any(Option::is_some) || pdst.is_some());
            }
            if let (Kind::Flow(f), Op::Control(op)) = (&mut kind, &inst.op) {
                if C::CALLS
                    && let (Flow::Branch(target, _), ControlOp::Call { .. }) = (&f.flow, op)
                {
                    f.flow = Flow::Call(*target);
                }
                let conditional = |cond: &PredSrc| !inst.guard.is_true() || !cond.is_true();
                let info = match op {
                    ControlOp::Branch { cond, .. } if conditional(cond) => Some((BranchKind::Branch, false)),
                    ControlOp::Exit { cond } if conditional(cond) => Some((BranchKind::Exit, false)),
                    ControlOp::BranchIndirect { .. } | ControlOp::CallIndirect { .. } => {
                        Some((BranchKind::Indirect, false))
                    }
                    ControlOp::Return { .. } => Some((BranchKind::Indirect, true)),
                    ControlOp::Call { cond, .. } if conditional(cond) => Some((BranchKind::Branch, true)),
                    _ => None,
                };
                if let Some((kind, only_if_split)) = info {
                    f.counter = branches.len() as u32;
                    branches.push(BranchInfo { inst: at as u32, kind, only_if_split });
                }
            }
            insts.push(Inst {
                kind,
                guard: r.pred(inst.guard)?,
                guarded: !inst.guard.is_true(),
                uniform: inst.uniform,
                end: 0,
                header: loops.header(at as u32),
                latch: loops.latch(at as u32),
            });
        }
        let mut end = insts.len() as u32;
        for at in (0..insts.len()).rev() {
            if matches!(insts[at].kind, Kind::Flow(_)) || leaders.get(at + 1).copied().unwrap_or(true) {
                end = at as u32 + 1;
            }
            insts[at].end = end;
        }
        let stack_pointer = kernel.stack_pointer.map(|(s, v)| Ok::<_, SimError>((r.dst(Some(s))?, v))).transpose()?;
        let true_preds = kernel.true_preds.iter().map(|p| r.pdst(Some(*p))).collect::<Result<_, _>>()?;
        let layout = r.layout;
        let program = Program {
            insts,
            layout,
            banks,
            branches,
            selects,
            loops,
            stack_pointer,
            true_preds,
            has_unsupported,
            ordered,
            prints,
        };
        Ok((program, refusals))
    }
}
