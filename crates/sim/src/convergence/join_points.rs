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
use lanescope_ir::{Instruction, Kernel, Op};

/// No such instruction.
pub(super) const NONE: u32 = u32::MAX;
/// Instructions between a WARPSYNC and the exchange it prepares, at most.
const NEAR: usize = 8;

#[derive(Debug, Default)]
struct Tables {
    /// For each branch, where its lanes meet.
    join: Vec<u32>,
    /// For each WARPSYNC, whether the lanes go on to exchange values.
    exchange: Vec<bool>,
}

/// What a model that joins at post-dominators knows about a kernel.
#[derive(Clone, Debug, Default)]
pub struct JoinPoints(Arc<Tables>);

impl JoinPoints {
    /// Finds the join of every branch of a kernel.
    pub fn new(kernel: &Kernel) -> JoinPoints {
        let n = kernel.instructions.len();
        let mut tables = Tables { join: vec![NONE; n], exchange: vec![false; n] };
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
        for (at, inst) in kernel.instructions.iter().enumerate() {
            if matches!(inst.op, Op::Control(ControlOp::WarpSync { .. })) {
                tables.exchange[at] = exchanges(&kernel.instructions[at + 1..]);
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

    /// Whether lanes that pass the WARPSYNC at `pc` go on to exchange values, so that they must do so as one group.
    pub(super) fn exchange(&self, pc: u32) -> bool {
        self.0.exchange.get(pc as usize).copied().unwrap_or(false)
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

/// Whether the first operation of `code` that is not a lane's own is one across lanes.
fn exchanges(code: &[Instruction]) -> bool {
    let op = code.iter().take(NEAR).map(|i| &i.op).find(|op| !matches!(op, Op::Lane(_) | Op::Nop));
    matches!(
        op,
        Some(
            Op::Warp(
                WarpOp::Shuffle { .. }
                    | WarpOp::Vote { .. }
                    | WarpOp::Match { .. }
                    | WarpOp::Reduce { .. }
                    | WarpOp::Broadcast { .. }
                    | WarpOp::Elect { .. }
                    | WarpOp::ActiveMask { .. }
                    | WarpOp::Mma(_)
                    | WarpOp::Transpose { .. }
            ) | Op::Memory(MemoryOp::LoadMatrix { .. } | MemoryOp::StoreMatrix { .. })
        )
    )
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
