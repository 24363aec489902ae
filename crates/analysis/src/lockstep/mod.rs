//! Loops that a warp turns in lock-step: while any lane wants another turn, all take it, and what the others compute is
//! thrown away by selects or guards. No branch splits and no lane slot is empty, so lane counters show nothing.
//!
//! Such a loop is found in the code alone. A branch that leaves it is decided by a vote, a ballot, a reduction or a block
//! barrier that reduces; the predicate that lanes bring to it is their wish. Selects and guards of the loop's body that go
//! by the same predicate ([`literal`]) tell, when counted, how many lanes did useful work in a turn ([`useful`]).

mod literal;
#[cfg(test)]
mod tests;
mod useful;

use lanescope_ir::op::control::{ControlOp, Decision};
use lanescope_ir::op::float::FloatFn;
use lanescope_ir::op::int::{Cmp, IntFn};
use lanescope_ir::op::warp::{BlockBarrierMode, ReduceOp, VoteMode, WarpOp};
use lanescope_ir::op::{LaneFn, SrcKind};
use lanescope_ir::{Kernel, Op, Pred, PredSrc, Src};

use crate::cfg::condition;
use crate::regions::Structure;
use crate::slice::defs::{Defs, Reg};
use literal::{Literal, Reader, relation};
pub(crate) use useful::stats;
pub use useful::{LockstepStat, Useful};

/// Steps from a branch to its vote at most.
const DEPTH: u32 = 8;

/// A loop that turns while any lane wants to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lockstep {
    /// First instruction of its header.
    pub header: u32,
    /// The loop, as an index into [`Loops::list`](crate::Loops::list).
    pub index: u32,
    /// The branch that leaves it.
    pub branch: u32,
    /// Where lanes say whether they want another turn: a vote, a reduction, or the branch itself.
    pub vote: u32,
    /// Where results of lanes that do not want one are dropped.
    pub discards: Vec<Discard>,
}

/// An instruction that drops results of lanes that are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discard {
    /// The instruction.
    pub inst: u32,
    /// A select; otherwise an instruction whose guard is the lanes' wish.
    pub select: bool,
    /// What the select's predicate is in lanes that want the turn. True for a guard.
    pub kept: bool,
}

/// Selects of a kernel's loops that turn in lock-step, ascending: what a run must count for useful lanes to be known where
/// no guard tells.
pub fn selects(kernel: &Kernel) -> Vec<u32> {
    if exchanges(kernel) { selects_of(&find(kernel, &Structure::new(kernel))) } else { Vec::new() }
}

/// Whether some instruction could decide about a loop for several lanes.
fn exchanges(kernel: &Kernel) -> bool {
    kernel.instructions.iter().any(|i| match &i.op {
        Op::Warp(op) => matches!(op, WarpOp::Vote { .. } | WarpOp::Reduce { .. } | WarpOp::BarrierResult { .. }),
        Op::Control(ControlOp::Branch { decision, .. }) => *decision != Decision::Lanes,
        _ => false,
    })
}

fn selects_of(loops: &[Lockstep]) -> Vec<u32> {
    let mut list: Vec<u32> = loops.iter().flat_map(|l| &l.discards).filter(|d| d.select).map(|d| d.inst).collect();
    list.sort_unstable();
    list.dedup();
    list
}

/// Finds the loops of a kernel that turn in lock-step.
pub fn find(kernel: &Kernel, s: &Structure) -> Vec<Lockstep> {
    if s.loops.list.is_empty() || !exchanges(kernel) {
        return Vec::new();
    }
    let defs = Defs::new(kernel, s);
    let mut found: Vec<Lockstep> = Vec::new();
    for (b, block) in s.cfg.blocks.iter().enumerate() {
        let branch = block.last();
        let leaves = |l: &u32| s.cfg.graph.successors(b as u32).iter().any(|&t| !s.loops.contains(*l, t));
        for l in s.loops.around(b as u32).filter(leaves) {
            if found.iter().any(|f| f.index == l) {
                continue;
            }
            let reader = Reader { kernel, s, defs: &defs, l };
            let Some((vote, wish)) = reader.left_by(branch) else { continue };
            let header = s.loops.list.get(l as usize).and_then(|l| s.cfg.blocks.get(l.header as usize));
            let Some(header) = header.map(|b| b.first) else { continue };
            let discards = reader.discards(&wish);
            found.push(Lockstep { header, index: l, branch, vote, discards });
        }
    }
    found.sort_by_key(|f| f.index);
    found
}

impl Reader<'_> {
    /// The vote that decides whether branch `at` leaves the loop, and what lanes that want to stay bring to it.
    fn left_by(&self, at: u32) -> Option<(u32, Literal)> {
        let inst = self.kernel.instructions.get(at as usize)?;
        let Op::Control(op) = &inst.op else { return None };
        let target = match op {
            ControlOp::Branch { target, .. } => Some(target.0),
            ControlOp::Exit { .. } => None,
            _ => return None,
        };
        let goes_on = target.is_some_and(|t| self.inside(t));
        let cond = condition(op);
        let p = match (inst.guard.is_true(), cond.is_true()) {
            (false, true) => inst.guard,
            (true, false) => cond,
            _ => return None,
        };
        match op {
            ControlOp::Branch { decision: Decision::Any, .. } => {
                goes_on.then(|| self.literal(at, p)).flatten().map(|l| (at, l))
            }
            ControlOp::Branch { decision: Decision::All, .. } => {
                (!goes_on).then(|| self.literal(at, p)).flatten().map(|l| (at, l.not()))
            }
            _ => self.voted(at, if goes_on { p } else { p.not() }, DEPTH),
        }
    }

    /// Lanes stay while `p`, read at `at`, holds: from which vote does it come?
    fn voted(&self, at: u32, p: PredSrc, depth: u32) -> Option<(u32, Literal)> {
        let pred = p.pred?;
        let depth = depth.checked_sub(1)?;
        self.writers(at, Reg::Pred(pred)).into_iter().find_map(|d| match self.op(d)? {
            Op::Warp(WarpOp::Vote { mode: VoteMode::Any, pdst, src, .. }) if *pdst == Some(pred) && !p.negated => {
                Some((d, self.literal(d, *src)?))
            }
            Op::Warp(WarpOp::Vote { mode: VoteMode::All, pdst, src, .. }) if *pdst == Some(pred) && p.negated => {
                Some((d, self.literal(d, *src)?.not()))
            }
            Op::Warp(WarpOp::BarrierResult { pdst, .. }) if *pdst == Some(pred) => self.barrier(d, !p.negated),
            Op::Lane(op) => self.through(d, op, pred, p.negated, depth),
            _ => None,
        })
    }

    /// The same for a predicate that a lane function writes.
    fn through(
        &self,
        d: u32,
        op: &lanescope_ir::op::LaneOp,
        pred: Pred,
        negated: bool,
        depth: u32,
    ) -> Option<(u32, Literal)> {
        let which = op.pdst.iter().position(|q| *q == Some(pred))?;
        match op.f {
            LaneFn::Int(IntFn::Plop3 { lut }) => {
                let (p, inverted) = literal::copied(&op.psrc, lut[which.min(1)])?;
                self.voted(d, if inverted ^ negated { p.not() } else { p }, depth)
            }
            LaneFn::Int(IntFn::Set { cmp, signed } | IntFn::SetJoin { cmp, signed, extended: false, .. })
                if op.psrc[0].pred.is_none() =>
            {
                let cmp = if negated ^ (which == 1) { opposite(cmp) } else { cmp };
                let number = |s: Src| s.read().is_some();
                match (number(op.src[0]), number(op.src[1])) {
                    (true, false) => self.counted(d, op.src[0], cmp, signed, op.src[1], depth),
                    (false, true) => self.counted(d, op.src[1], turned(cmp), signed, op.src[0], depth),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Lanes stay while `number cmp other` holds, where `number` is the same for all: a ballot, a reduction.
    fn counted(&self, at: u32, number: Src, cmp: Cmp, signed: bool, other: Src, depth: u32) -> Option<(u32, Literal)> {
        let depth = depth.checked_sub(1)?;
        let (slot, limit) = (number.read()?, constant(other));
        // They stay while there is any.
        let any = limit.is_some_and(|c| !holds(cmp, signed, 0, c) && holds(cmp, signed, 1, c));
        self.writers(at, Reg::Slot(slot)).into_iter().find_map(|d| match self.op(d)? {
            Op::Warp(WarpOp::Vote { dst, src, .. }) if *dst == Some(slot) => {
                if any {
                    return Some((d, self.literal(d, *src)?));
                }
                let not_all = cmp == Cmp::Ne && limit == Some(u32::MAX);
                not_all.then(|| self.literal(d, *src)).flatten().map(|l| (d, l.not()))
            }
            Op::Warp(WarpOp::Reduce { op, dst, src, .. }) if *dst == Some(slot) => match op {
                ReduceOp::Or | ReduceOp::Add if any => Some((d, self.number(d, *src))),
                // The greatest is above the limit while any is.
                ReduceOp::Max { signed: s } if *s == signed && matches!(cmp, Cmp::Gt | Cmp::Ge) => {
                    Some((d, self.compared(d, *src, cmp, signed, at, other)))
                }
                ReduceOp::Max { .. } if any => Some((d, self.number(d, *src))),
                ReduceOp::Min { signed: s } if *s == signed && matches!(cmp, Cmp::Lt | Cmp::Le) => {
                    Some((d, self.compared(d, *src, cmp, signed, at, other)))
                }
                _ => None,
            },
            Op::Warp(WarpOp::BarrierResult { dst, .. }) if *dst == Some(slot) && any => self.barrier(d, true),
            Op::Warp(WarpOp::Broadcast { dst, src, .. }) if dst[0] == Some(slot) => {
                self.counted(d, src[0], cmp, signed, other, depth)
            }
            Op::Lane(op) if op.dst[0] == Some(slot) => match op.f {
                LaneFn::Int(IntFn::Mov) => self.counted(d, op.src[0], cmp, signed, other, depth),
                LaneFn::Int(IntFn::Popc) if any => self.counted(d, op.src[0], Cmp::Ne, false, Src::ZERO, depth),
                LaneFn::Int(IntFn::Sel) if any => self.voted(d, zero_one(op)?, depth),
                _ => None,
            },
            _ => None,
        })
    }

    /// The wish behind a number that is not zero in lanes that have it.
    fn number(&self, at: u32, src: Src) -> Literal {
        let made = src.read().and_then(|slot| match self.writers(at, Reg::Slot(slot))[..] {
            [d] => {
                let op = self.lane_op(d).filter(|op| op.f == LaneFn::Int(IntFn::Sel))?;
                self.literal(d, zero_one(op)?)
            }
            _ => None,
        });
        made.unwrap_or_else(|| self.nonzero(at, src))
    }

    /// The wish of threads at the last reducing block barrier before `at`.
    fn barrier(&self, at: u32, positive: bool) -> Option<(u32, Literal)> {
        let block = self.s.cfg.block(at).and_then(|b| self.s.cfg.blocks.get(b as usize))?;
        (block.first..at).rev().find_map(|d| match self.op(d)? {
            Op::Warp(WarpOp::BlockBarrier { mode, pred, .. }) => Some(match mode {
                BlockBarrierMode::RedOr | BlockBarrierMode::RedPopc if positive => Some((d, self.literal(d, *pred)?)),
                BlockBarrierMode::RedAnd if !positive => Some((d, self.literal(d, *pred)?.not())),
                _ => None,
            }),
            _ => None,
        })?
    }

    /// Selects and guards of the loop's own instructions that go by the wish.
    fn discards(&self, wish: &Literal) -> Vec<Discard> {
        let mut list = Vec::new();
        for (b, block) in self.s.cfg.blocks.iter().enumerate() {
            if self.s.loops.innermost.get(b).copied().flatten() != Some(self.l) {
                continue;
            }
            for at in block.instructions() {
                let Some(inst) = self.kernel.instructions.get(at as usize) else { continue };
                if matches!(inst.op, Op::Control(_) | Op::Warp(WarpOp::Vote { .. }) | Op::Nop) {
                    continue;
                }
                let guard = || self.literal(at, inst.guard).and_then(|l| wish.same(&l));
                let selects = || match &inst.op {
                    Op::Lane(op) if is_select(op.f) => self.literal(at, op.psrc[0]).and_then(|l| wish.same(&l)),
                    _ => None,
                };
                if let Some(kept) = selects() {
                    list.push(Discard { inst: at, select: true, kept });
                } else if guard() == Some(true) {
                    list.push(Discard { inst: at, select: false, kept: true });
                }
            }
        }
        list
    }
}

/// Whether a function's first predicate chooses between values.
fn is_select(f: LaneFn) -> bool {
    matches!(f, LaneFn::Int(IntFn::Sel | IntFn::Sel64) | LaneFn::Float(FloatFn::Select { .. }))
}

/// The predicate that a select makes a number of: not zero if it holds, else zero.
fn zero_one(op: &lanescope_ir::op::LaneOp) -> Option<PredSrc> {
    match (constant(op.src[0])?, constant(op.src[1])?) {
        (0, 0) => None,
        (_, 0) => Some(op.psrc[0]),
        (0, _) => Some(op.psrc[0].not()),
        _ => None,
    }
}

fn constant(s: Src) -> Option<u32> {
    match s.kind {
        SrcKind::Imm(x) => Some(s.modifier.apply(x)),
        _ => None,
    }
}

fn opposite(cmp: Cmp) -> Cmp {
    match cmp {
        Cmp::False => Cmp::True,
        Cmp::Lt => Cmp::Ge,
        Cmp::Eq => Cmp::Ne,
        Cmp::Le => Cmp::Gt,
        Cmp::Gt => Cmp::Le,
        Cmp::Ne => Cmp::Eq,
        Cmp::Ge => Cmp::Lt,
        Cmp::True => Cmp::False,
    }
}

/// The comparison with its operands exchanged.
fn turned(cmp: Cmp) -> Cmp {
    match cmp {
        Cmp::Lt => Cmp::Gt,
        Cmp::Le => Cmp::Ge,
        Cmp::Gt => Cmp::Lt,
        Cmp::Ge => Cmp::Le,
        same => same,
    }
}

fn holds(cmp: Cmp, signed: bool, a: u32, b: u32) -> bool {
    let order = if signed { (a as i32).cmp(&(b as i32)) } else { a.cmp(&b) };
    let bit = match order {
        std::cmp::Ordering::Less => 1,
        std::cmp::Ordering::Equal => 2,
        std::cmp::Ordering::Greater => 4,
    };
    relation(cmp) & bit != 0
}
