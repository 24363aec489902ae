//! Where the lanes of a divergent branch meet again, for code that does not say so.
//!
//! The place is the immediate post-dominator of the branch. A path on which lanes only leave (a branch to `exit`, a guarded
//! `exit`, code that ends in a trap) counts as no path, because nobody waits for lanes that have left; if nothing else
//! is left, or the remaining paths do not meet, all paths count.

use std::sync::Arc;

use lanescope_analysis::{Cfg, Dominators, Graph};
use lanescope_ir::op::control::ControlOp;
use lanescope_ir::op::memory::MemoryOp;
use lanescope_ir::op::warp::WarpOp;
use lanescope_ir::{Instruction, Kernel, Op, PredSrc, Slot, Src};

/// No such instruction.
pub(super) const NONE: u32 = u32::MAX;
/// Marks an exchange that is like no other.
const OWN: u32 = 1 << 31;
/// Instructions between a WARPSYNC and the exchange it prepares, at most.
const NEAR: usize = 8;

#[derive(Debug, Default)]
struct Tables {
    /// For each branch, where its lanes meet.
    join: Vec<u32>,
    /// For each WARPSYNC, which kind of exchange the lanes go on to; `NONE` if to none.
    exchange: Vec<u32>,
}

/// What a model that joins at post-dominators knows about a kernel.
#[derive(Clone, Debug, Default)]
pub struct JoinPoints(Arc<Tables>);

impl JoinPoints {
    /// Finds the join of every branch of a kernel.
    pub fn new(kernel: &Kernel) -> JoinPoints {
        let n = kernel.instructions.len();
        let mut tables = Tables { join: vec![NONE; n], exchange: vec![NONE; n] };
        if n == 0 {
            return JoinPoints::default();
        }
        let cfg = Cfg::new(kernel);
        let exit = cfg.exit();
        let all = Dominators::new(&cfg.graph.reversed(), exit);
        let some = Dominators::new(&staying(kernel, &cfg).reversed(), exit);
        for (b, block) in cfg.blocks.iter().enumerate() {
            let last = block.last() as usize;
            if kernel.instructions.get(last).is_some_and(splits) {
                let meet = |d: &Dominators| d.idom(b as u32).and_then(|j| cfg.blocks.get(j as usize));
                let join = meet(&some).or_else(|| meet(&all)).map_or(NONE, |j| j.first);
                tables.join[last] = join;
            }
        }
        let mut kinds = Vec::new();
        for (at, inst) in kernel.instructions.iter().enumerate() {
            if matches!(inst.op, Op::Control(ControlOp::WarpSync { .. })) {
                tables.exchange[at] = exchange(&kernel.instructions[at + 1..], at as u32, &mut kinds);
            }
        }
        JoinPoints(Arc::new(tables))
    }

    /// Where the lanes of the branch at `pc` meet; `NONE` if nowhere.
    pub(super) fn join(&self, pc: u32) -> u32 {
        self.0.join.get(pc as usize).copied().unwrap_or(NONE)
    }

    /// Where the lanes of the branch at `pc` meet, if they do.
    pub fn of(&self, pc: u32) -> Option<u32> {
        Some(self.join(pc)).filter(|&j| j != NONE)
    }

    /// Which exchange of values the lanes that pass the WARPSYNC at `pc` go on to, so that they must do so together; the
    /// same number for instructions that differ in their operands only. `None`: no exchange follows.
    pub(super) fn exchange(&self, pc: u32) -> Option<u32> {
        self.0.exchange.get(pc as usize).copied().filter(|&e| e != NONE)
    }
}

fn splits(inst: &Instruction) -> bool {
    matches!(
        inst.op,
        Op::Control(
            ControlOp::Branch { .. }
                | ControlOp::BranchIndirect { .. }
                | ControlOp::BranchDivergent { .. }
                | ControlOp::BranchConverged { .. }
        )
    )
}

/// The exchange that follows the WARPSYNC at `at`: the first operation of `code` that is not a lane's own, if it is one
/// across lanes. Only right behind the WARPSYNC can it be the same as another.
fn exchange(code: &[Instruction], at: u32, kinds: &mut Vec<WarpOp>) -> u32 {
    let op = code.iter().take(NEAR).enumerate().find(|(_, i)| !matches!(i.op, Op::Lane(_) | Op::Nop));
    if let Some((_, Instruction { op: Op::Memory(MemoryOp::LoadMatrix { .. } | MemoryOp::StoreMatrix { .. }), .. })) =
        op
    {
        return at | OWN;
    }
    let Some((distance, Instruction { op: Op::Warp(op), .. })) = op else { return NONE };
    let kind = match *op {
        WarpOp::Shuffle { mode, .. } => {
            WarpOp::Shuffle { mode, dst: None, pdst: None, src: Src::ZERO, lane: Src::ZERO, clamp: Src::ZERO }
        }
        // `.ballot` is the one with a word.
        WarpOp::Vote { mode, dst, .. } => {
            WarpOp::Vote { mode, dst: dst.map(|_| Slot(0)), pdst: None, src: PredSrc::TRUE }
        }
        WarpOp::Match { all, .. } => WarpOp::Match { all, dst: None, pdst: None, src: [Src::ZERO; 2] },
        WarpOp::Reduce { op, .. } => WarpOp::Reduce { op, dst: None, pdst: None, src: Src::ZERO },
        WarpOp::Elect { .. } => WarpOp::Elect { src: PredSrc::TRUE, dst: None, pdst: None },
        WarpOp::Broadcast { .. } | WarpOp::ActiveMask { .. } | WarpOp::Mma(_) | WarpOp::Transpose { .. } => {
            return at | OWN;
        }
        _ => return NONE,
    };
    if distance != 0 {
        return at | OWN;
    }
    let known = kinds.iter().position(|k| *k == kind).unwrap_or_else(|| {
        kinds.push(kind);
        kinds.len() - 1
    });
    known as u32
}

/// The graph without the edges on which lanes only leave.
fn staying(kernel: &Kernel, cfg: &Cfg) -> Graph {
    let exit = cfg.exit();
    let last = |b: u32| {
        let block = cfg.blocks.get(b as usize)?;
        kernel.instructions.get(block.last() as usize)
    };
    let exits = |b: u32| last(b).is_some_and(|i| matches!(i.op, Op::Control(ControlOp::Exit { .. } | ControlOp::Trap)));
    let leaves = leaving(kernel, cfg);
    let gone = |a: u32, b: u32| if b == exit { exits(a) } else { leaves.get(b as usize).copied().unwrap_or(false) };
    let mut edges = Vec::new();
    for a in 0..cfg.graph.len() as u32 {
        let next = cfg.graph.successors(a);
        let stays = next.iter().any(|&b| !gone(a, b));
        edges.extend(next.iter().filter(|&&b| !stays || !gone(a, b)).map(|&b| (a, b)));
    }
    Graph::new(cfg.graph.len(), &edges)
}

/// Blocks that are nothing but an exit, and blocks from which every path ends in a trap.
fn leaving(kernel: &Kernel, cfg: &Cfg) -> Vec<bool> {
    let exit = cfg.exit();
    let mut leaves = vec![false; cfg.blocks.len()];
    let mut open: Vec<u32> =
        cfg.blocks.iter().enumerate().map(|(b, _)| cfg.graph.successors(b as u32).len() as u32).collect();
    let mut trapped = Vec::new();
    for (b, block) in cfg.blocks.iter().enumerate() {
        let range = block.first as usize..=block.last() as usize;
        let Some((last, before)) = kernel.instructions.get(range).and_then(|c| c.split_last()) else { continue };
        let ends = cfg.graph.successors(b as u32).iter().all(|&s| s == exit);
        match last.op {
            Op::Control(ControlOp::Trap) if ends => trapped.push(b as u32),
            Op::Control(ControlOp::Exit { .. }) if ends => leaves[b] = before.iter().all(|i| i.op == Op::Nop),
            _ => {}
        }
    }
    let back = cfg.graph.reversed();
    while let Some(b) = trapped.pop() {
        if std::mem::replace(&mut leaves[b as usize], true) {
            continue;
        }
        for &p in back.successors(b) {
            if let Some(open) = open.get_mut(p as usize) {
                *open = open.saturating_sub(1);
                if *open == 0 {
                    trapped.push(p);
                }
            }
        }
    }
    leaves
}
