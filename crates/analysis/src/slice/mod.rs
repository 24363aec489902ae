//! From a decision back to the data that make it: a backward slice of a branch's condition.
//!
//! The walk follows values only, from the branch's predicates through whatever computes them, and only those that differ
//! between lanes. It ends at loads, atomics, exchanges between lanes and the thread's index: the [`Source`]s. On its way
//! it notes the numbers that comparisons look at ([`Slice::values`]), since `material & 7` may be the better key than the
//! word it was loaded from. Which of these really decides is found from the values that threads got when the launch ran.

pub(crate) mod defs;
mod turns;

use std::collections::{HashSet, VecDeque};

use lanescope_ir::op::effects::Access;
use lanescope_ir::op::memory::{MemoryOp, Space};
use lanescope_ir::op::warp::{SpecialReg, WarpOp};
use lanescope_ir::{Kernel, Op};

use crate::regions::Structure;
use crate::uniformity::{Level, Operand, Origin, Uniformity};
use defs::{Defs, Reg, registers};
pub use turns::Turns;

/// Instructions that one slice may hold.
const NODES: usize = 512;
/// Branches that led to a value through the paths lanes took, at most.
const PATHS: usize = 8;

/// What kind of end a slice has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceKind {
    /// A load from global memory; the argument (ordinal) it reads, if that is known.
    Load {
        /// The argument.
        param: Option<u32>,
    },
    /// A load from shared or local memory.
    Private,
    /// The result of an atomic.
    Atomic {
        /// The argument.
        param: Option<u32>,
    },
    /// The thread's index or lane number.
    Thread,
    /// A value from other lanes.
    Exchange,
    /// A clock.
    Clock,
    /// Something that is not followed: a call, a register nobody wrote, an instruction without a meaning here.
    Unknown,
}

/// Where a slice ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    /// Kind.
    pub kind: SourceKind,
    /// The instruction.
    pub inst: u32,
}

/// What a decision rests on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// The decision.
    pub inst: u32,
    /// Where the data come from, nearest first.
    pub sources: Vec<Source>,
    /// Instructions that compute a number which a comparison looks at and which differs between lanes, nearest first.
    pub values: Vec<u32>,
    /// Whether the decision is a vote: it goes by what any lane wants.
    pub voted: bool,
    /// Whether the slice is whole: nothing was left out for its size.
    pub whole: bool,
}

impl Slice {
    /// Global loads among the sources.
    pub fn loads(&self) -> impl Iterator<Item = u32> + '_ {
        self.sources.iter().filter(|s| matches!(s.kind, SourceKind::Load { .. })).map(|s| s.inst)
    }

    /// Whether nothing but the thread's index decides.
    pub fn by_thread_alone(&self) -> bool {
        self.whole && !self.sources.is_empty() && self.sources.iter().all(|s| s.kind == SourceKind::Thread)
    }
}

/// Takes slices of one kernel.
pub struct Slicer<'a> {
    kernel: &'a Kernel,
    uniformity: &'a Uniformity,
    defs: Defs<'a>,
}

impl std::fmt::Debug for Slicer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slicer").field("kernel", &self.kernel.name).finish_non_exhaustive()
    }
}

impl<'a> Slicer<'a> {
    /// Prepares slices of `kernel`.
    pub fn new(kernel: &'a Kernel, s: &'a Structure, uniformity: &'a Uniformity) -> Slicer<'a> {
        Slicer { kernel, uniformity, defs: Defs::new(kernel, s) }
    }

    /// The slice of the decision at `inst`: a branch, a predicated EXIT, a branch through a register.
    pub fn slice(&self, inst: u32) -> Slice {
        let mut out = Slice { inst, whole: true, ..Slice::default() };
        let mut todo = vec![inst];
        let mut asked = HashSet::new();
        while let Some(at) = todo.pop() {
            if !asked.insert(at) || asked.len() > PATHS {
                continue;
            }
            let before = out.sources.len();
            self.follow(at, registers(self.kernel, at, Access::Read), &mut out);
            // Lanes differ only in the way they came: ask the branch that parted them.
            if out.sources.len() == before
                && let Some(Origin::Paths { branch, .. }) = self.uniformity.branch(at).map(|b| b.origin())
            {
                todo.push(branch);
            }
        }
        out
    }

    /// What the address of a memory access rests on.
    pub fn address(&self, inst: u32) -> Slice {
        let mut out = Slice { inst, whole: true, ..Slice::default() };
        let addr = match self.kernel.instructions.get(inst as usize).map(|i| &i.op) {
            Some(Op::Memory(
                MemoryOp::Load { addr, .. }
                | MemoryOp::Store { addr, .. }
                | MemoryOp::Atomic { addr, .. }
                | MemoryOp::LoadMatrix { addr, .. }
                | MemoryOp::StoreMatrix { addr, .. }
                | MemoryOp::Copy { from: addr, .. },
            )) => addr,
            _ => return Slice { inst, ..Slice::default() },
        };
        let parts = [Some(addr.base), addr.base_hi, addr.uniform.map(|u| u.0), addr.uniform.map(|u| u.1)];
        let regs = parts.into_iter().flatten().filter_map(|s| s.read()).map(Reg::Slot).collect();
        self.follow(inst, regs, &mut out);
        out
    }

    /// Follows the registers `start` that `decision` reads.
    fn follow(&self, decision: u32, start: Vec<Reg>, out: &mut Slice) {
        let mut seen = HashSet::from([decision]);
        let mut queue = VecDeque::from([(decision, start)]);
        while let Some((at, regs)) = queue.pop_front() {
            let comparison = at != decision && self.compares(at);
            for reg in regs {
                let Some(level) = self.level(at, reg) else { continue };
                let reaching = self.defs.reaching(at, reg);
                if reaching.open {
                    out.note(Source { kind: SourceKind::Unknown, inst: at });
                }
                for &d in &reaching.from {
                    if comparison && matches!(reg, Reg::Slot(_)) && self.gives_a_number(d) && !out.values.contains(&d) {
                        out.values.push(d);
                    }
                    if !seen.insert(d) {
                        continue;
                    }
                    if let Some(source) = self.source(d) {
                        out.note(source);
                    } else if level == Level::Lanes && self.defs_are_uniform(d) {
                        out.note(Source { kind: SourceKind::Thread, inst: d });
                    } else if seen.len() > NODES {
                        out.whole = false;
                    } else {
                        out.voted |= self.votes(d);
                        queue.push_back((d, registers(self.kernel, d, Access::Read)));
                    }
                }
            }
        }
    }

    /// How far an operand is the same; `None` if it is the same in the warp.
    fn level(&self, at: u32, reg: Reg) -> Option<Level> {
        let operand = match reg {
            Reg::Slot(s) => Operand::Slot(s),
            Reg::Pred(p) => Operand::Pred(p),
        };
        let level = self.uniformity.operand(at, operand).map_or(Level::Divergent, |a| a.level);
        // What a vote gives is the same for all, and yet the lanes' own wishes decide it.
        let voted = || self.defs.reaching(at, reg).from.iter().any(|&d| self.votes(d));
        (level > Level::Warp || voted()).then_some(level)
    }

    /// An instruction without any operand that differs: nothing to follow.
    fn defs_are_uniform(&self, at: u32) -> bool {
        registers(self.kernel, at, Access::Read).into_iter().all(|r| self.level(at, r).is_none())
    }

    fn votes(&self, at: u32) -> bool {
        matches!(self.kernel.instructions.get(at as usize).map(|i| &i.op), Some(Op::Warp(WarpOp::Vote { .. })))
    }

    /// Whether it turns numbers into a predicate, or looks a target up by a number.
    fn compares(&self, at: u32) -> bool {
        match self.kernel.instructions.get(at as usize).map(|i| &i.op) {
            Some(Op::Lane(op)) => {
                op.pdst.iter().any(Option::is_some)
                    && op.src.iter().any(|s| s.read().is_some())
                    && op.dst.iter().all(Option::is_none)
            }
            Some(Op::Memory(MemoryOp::Load { space: Space::Const(_), .. })) => true,
            _ => false,
        }
    }

    /// Whether it writes a register, as recording its values needs.
    fn gives_a_number(&self, at: u32) -> bool {
        registers(self.kernel, at, Access::Write).iter().any(|r| matches!(r, Reg::Slot(_)))
    }

    /// The end of the slice that this instruction is, if it is one.
    fn source(&self, at: u32) -> Option<Source> {
        let kind = match &self.kernel.instructions.get(at as usize)?.op {
            Op::Memory(MemoryOp::Load { space: Space::Const(_), .. }) => return None,
            Op::Memory(MemoryOp::Load { space: Space::Global | Space::Generic, .. }) => {
                SourceKind::Load { param: self.uniformity.accessed(at) }
            }
            Op::Memory(MemoryOp::Atomic { space: Space::Global | Space::Generic, .. }) => {
                SourceKind::Atomic { param: self.uniformity.accessed(at) }
            }
            Op::Memory(_) => SourceKind::Private,
            Op::Warp(WarpOp::Special { reg, .. }) => {
                use SpecialReg as S;
                let clock = |r: &S| matches!(r, S::ClockLo | S::ClockHi | S::GlobalTimerLo | S::GlobalTimerHi);
                if reg.iter().any(clock) { SourceKind::Clock } else { SourceKind::Thread }
            }
            Op::Warp(WarpOp::Vote { .. } | WarpOp::PackPreds { .. } | WarpOp::UnpackPreds { .. }) => return None,
            Op::Warp(_) => SourceKind::Exchange,
            Op::Control(_) | Op::Unsupported(_) => SourceKind::Unknown,
            Op::Lane(_) | Op::Nop => return None,
        };
        Some(Source { kind, inst: at })
    }
}

impl Slice {
    fn note(&mut self, source: Source) {
        if !self.sources.contains(&source) {
            self.sources.push(source);
        }
    }
}

#[cfg(test)]
mod tests;
