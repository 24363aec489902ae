//! Where a branch keeps lanes apart.
//!
//! From Volta on lanes rejoin where the code says so: at the `BSYNC` whose barrier a `BSSY` set before the
//! branch. The region of a branch is therefore every block that can run between the branch and that `BSYNC`,
//! the `BSYNC` included, since each group that arrives issues it. A `BREAK` in the region lets lanes skip that
//! `BSYNC`; then the next barrier around it counts. Without any barrier lanes stay apart to the end. Code of
//! other kinds (PTX) names no such place; there the region ends before the immediate post-dominator.
//!
//! Calls are followed into the callee and returns back to the callers, without mixing up the two directions.

use std::collections::HashMap;

use lanescope_ir::op::control::{ControlOp, WarpSyncMode};
use lanescope_ir::{BarrierReg, Kernel, Op};

use crate::cfg::{Cfg, is_conditional};
use crate::dom::Dominators;
use crate::graph::Graph;
use crate::loops::Loops;

/// Work limit of following returns, in blocks; past it a callee's returns lead nowhere.
const RETURN_LIMIT: usize = 20_000_000;

/// Everything the analyses derive from the code alone.
#[derive(Clone, Debug)]
pub struct Structure {
    /// Blocks and edges.
    pub cfg: Cfg,
    /// Dominators from the virtual entry.
    pub dom: Dominators,
    /// Post-dominators: dominators of the reversed graph from the virtual exit.
    pub postdom: Dominators,
    /// Natural loops.
    pub loops: Loops,
    /// Call edges with one more node for each callee's return.
    up: Graph,
    down: Graph,
    barriers: Vec<Barrier>,
    by_block: HashMap<u32, Vec<usize>>,
    /// For each block, the nearest block that dominates it (perhaps itself) and sets a barrier.
    above: Vec<Option<u32>>,
    /// Whether the code names its reconvergence points at all.
    explicit: bool,
    /// Whether all groups rejoin at the end of this block (`WARPSYNC.ALL`).
    joins: Vec<bool>,
    breaks: HashMap<u32, Vec<BarrierReg>>,
}

/// A `BSSY` and the block that ends with its `BSYNC`.
#[derive(Clone, Copy, Debug)]
struct Barrier {
    at: u32,
    reg: BarrierReg,
    end: u32,
}

/// The blocks in which lanes that parted at a branch are apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its blocks, ascending.
    pub blocks: Vec<u32>,
    /// The instruction where lanes rejoin, if there is one.
    pub rejoins_at: Option<u32>,
}

impl Structure {
    /// Analyses `kernel`.
    pub fn new(kernel: &Kernel) -> Structure {
        let cfg = Cfg::new(kernel);
        let dom = Dominators::new(&cfg.graph, cfg.entry());
        let postdom = Dominators::new(&cfg.graph.reversed(), cfg.exit());
        let loops = Loops::new(&cfg, &dom);
        let (up, down) = call_graphs(kernel, &cfg);
        let mut syncs: HashMap<u32, BarrierReg> = HashMap::new();
        let mut breaks: HashMap<u32, Vec<BarrierReg>> = HashMap::new();
        let mut joins = vec![false; cfg.graph.len()];
        let mut explicit = kernel.arch.starts_with("sm_");
        for (at, inst) in kernel.instructions.iter().enumerate() {
            let block = cfg.block_of[at];
            match &inst.op {
                Op::Control(ControlOp::Sync { bar, .. }) => {
                    syncs.insert(at as u32, *bar);
                    explicit = true;
                }
                Op::Control(ControlOp::Break { bar, .. }) => breaks.entry(block).or_default().push(*bar),
                Op::Control(ControlOp::WarpSync { mode: WarpSyncMode::All, .. }) if !is_conditional(inst) => {
                    joins[block as usize] = true;
                }
                _ => {}
            }
        }
        let mut barriers = Vec::new();
        let mut by_block: HashMap<u32, Vec<usize>> = HashMap::new();
        for (at, inst) in kernel.instructions.iter().enumerate() {
            let Op::Control(ControlOp::SyncSet { bar, target, .. }) = &inst.op else { continue };
            // The target is the instruction after BSYNC, or BSYNC itself.
            let end = [target.0.checked_sub(1), Some(target.0)].into_iter().flatten();
            let Some(end) = end.into_iter().find(|e| syncs.get(e) == Some(bar)) else { continue };
            by_block.entry(cfg.block_of[at]).or_default().push(barriers.len());
            barriers.push(Barrier { at: at as u32, reg: *bar, end });
        }
        let mut above = vec![None; cfg.graph.len()];
        for b in cfg.graph.preorder(cfg.entry()).0 {
            above[b as usize] =
                if by_block.contains_key(&b) { Some(b) } else { dom.idom(b).and_then(|d| above[d as usize]) };
        }
        Structure { cfg, dom, postdom, loops, up, down, barriers, by_block, above, explicit, joins, breaks }
    }

    /// Where lanes that part at instruction `branch` are apart.
    pub fn region(&self, branch: u32) -> Region {
        let Some(block) = self.cfg.block(branch) else { return Region { blocks: vec![], rejoins_at: None } };
        if !self.explicit {
            let stop = self.postdom.idom(block).filter(|&b| b != self.cfg.exit());
            let blocks = self.reach(block, stop, None);
            return Region { blocks, rejoins_at: stop.and_then(|b| Some(self.cfg.blocks.get(b as usize)?.first)) };
        }
        for barrier in self.open_barriers(block, branch) {
            let end = self.cfg.block_of[barrier.end as usize];
            let blocks = self.reach(block, None, Some(end));
            let escapes = blocks.iter().any(|b| self.breaks.get(b).is_some_and(|regs| regs.contains(&barrier.reg)));
            if !escapes && blocks.binary_search(&end).is_ok() {
                return Region { blocks, rejoins_at: Some(barrier.end) };
            }
        }
        Region { blocks: self.reach(block, None, None), rejoins_at: None }
    }

    /// Every block that can run after `branch`.
    pub fn after(&self, branch: u32) -> Vec<u32> {
        self.cfg.block(branch).map(|b| self.walk(b, &|_| false, &|_| false)).unwrap_or_default()
    }

    /// The outermost loop that a successor of `block` leaves, if one does.
    pub fn leaves_loop(&self, block: u32) -> Option<u32> {
        let outside = |l: &u32| self.cfg.graph.successors(block).iter().any(|&s| !self.loops.contains(*l, s));
        self.loops.around(block).filter(outside).last()
    }

    /// Barriers that are set and not yet waited for at `branch`, innermost first.
    fn open_barriers(&self, block: u32, branch: u32) -> impl Iterator<Item = Barrier> + '_ {
        let above = |b: u32| self.above.get(b as usize).copied().flatten();
        std::iter::successors(above(block), move |&b| self.dom.idom(b).and_then(above))
            .filter_map(|b| self.by_block.get(&b))
            .flat_map(|list| list.iter().rev())
            .map(|&i| self.barriers[i])
            .filter(move |b| {
                let end = self.cfg.block_of[b.end as usize];
                let closed = end != block && self.dom.dominates(end, block);
                (self.cfg.block_of[b.at as usize] != block || b.at < branch) && !closed
            })
    }

    /// Blocks that run after `block` before all lanes are together again: up to but without `before`, up to
    /// and with `through`.
    fn reach(&self, block: u32, before: Option<u32>, through: Option<u32>) -> Vec<u32> {
        self.walk(block, &|b| before == Some(b), &|b| through == Some(b) || self.joins.get(b as usize) == Some(&true))
    }

    fn walk(&self, block: u32, skip: &dyn Fn(u32) -> bool, stop: &dyn Fn(u32) -> bool) -> Vec<u32> {
        let blocks = self.cfg.blocks.len() as u32;
        let mut seen = vec![false; self.up.len()];
        let mut list = Vec::new();
        let mut stack: Vec<u32> = Vec::new();
        let visit = |b: u32, seen: &mut Vec<bool>, list: &mut Vec<u32>, stack: &mut Vec<u32>| {
            if !seen[b as usize] && !skip(b) {
                seen[b as usize] = true;
                list.push(b);
                if !stop(b) {
                    stack.push(b);
                }
            }
        };
        // First out of callees into callers, then from everything so reached into callees.
        self.up.successors(block).iter().for_each(|&s| visit(s, &mut seen, &mut list, &mut stack));
        while let Some(b) = stack.pop() {
            self.up.successors(b).iter().for_each(|&s| visit(s, &mut seen, &mut list, &mut stack));
        }
        stack.extend(list.iter().filter(|&&b| !stop(b)));
        while let Some(b) = stack.pop() {
            self.down.successors(b).iter().for_each(|&s| visit(s, &mut seen, &mut list, &mut stack));
        }
        list.retain(|&b| b < blocks);
        list.sort_unstable();
        list
    }
}

/// Two graphs over blocks: edges inside functions with returns to the callers, and with calls of callees.
/// Each callee has one more node that its returns lead to.
fn call_graphs(kernel: &Kernel, cfg: &Cfg) -> (Graph, Graph) {
    let inner: Vec<(u32, u32)> = cfg.graph.edges().filter(|e| e.0 != cfg.entry()).collect();
    let (mut up, mut down) = (inner.clone(), inner);
    down.extend(&cfg.calls);
    let mut callees: Vec<u32> = cfg.calls.iter().map(|c| c.1).collect();
    callees.sort_unstable();
    callees.dedup();
    let mut nodes = cfg.graph.len();
    let mut work = 0;
    let mut node_of = HashMap::new();
    for &callee in &callees {
        if work > RETURN_LIMIT {
            break;
        }
        let (body, _) = cfg.graph.preorder(callee);
        work += body.len();
        for b in body {
            let Some(block) = cfg.blocks.get(b as usize) else { continue };
            let last = kernel.instructions.get(block.last() as usize).map(|i| &i.op);
            if let Some(Op::Control(ControlOp::Return { .. })) = last {
                up.push((b, nodes as u32));
            }
        }
        node_of.insert(callee, nodes as u32);
        nodes += 1;
    }
    for &(caller, callee) in &cfg.calls {
        if let Some(&node) = node_of.get(&callee) {
            up.extend(cfg.graph.successors(caller).iter().map(|&s| (node, s)));
        }
    }
    (Graph::new(nodes, &up), Graph::new(nodes, &down))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Builder;

    #[test]
    fn region_ends_with_its_bsync() {
        let mut k = Builder::new();
        // 0 bssy, 1 @P0 bra 4, 2 nop, 3 bra 5, 4 nop, 5 bsync, 6 nop, 7 exit
        k.bssy(0, 6).bra_if(0, 4).nop().bra(5).nop().bsync(0).nop().exit();
        let s = Structure::new(&k.kernel());
        let r = s.region(1);
        assert_eq!(r.rejoins_at, Some(5));
        assert_eq!(r.blocks, [1, 2, 3]);
        assert_eq!(s.after(1), [1, 2, 3, 4]);
    }

    #[test]
    fn an_exit_on_the_way_does_not_hide_the_bsync() {
        let mut k = Builder::new();
        k.bssy(0, 5).bra_if(0, 4).nop().exit().bsync(0).nop().exit();
        let s = Structure::new(&k.kernel());
        assert_eq!(s.region(1).rejoins_at, Some(4));
    }

    #[test]
    fn break_widens_the_region() {
        use lanescope_ir::{PredSrc, op::control::ControlOp};
        let mut k = Builder::new();
        let brk = Op::Control(ControlOp::Break { bar: BarrierReg(1), cond: PredSrc::TRUE });
        // 0 bssy B0, 1 bssy B1, 2 bra 5, 3 break B1, 4 bra 6, 5 bsync B1, 6 bsync B0, 7 exit
        k.bssy(0, 7).bssy(1, 6).bra_if(0, 5).push(PredSrc::TRUE, brk, "BREAK B1").bra(6).bsync(1).bsync(0).exit();
        assert_eq!(Structure::new(&k.kernel()).region(2).rejoins_at, Some(6));
    }

    #[test]
    fn without_barriers_lanes_stay_apart() {
        let mut k = Builder::new();
        k.bra_if(0, 2).nop().nop().exit();
        let mut kernel = k.kernel();
        assert_eq!(Structure::new(&kernel).region(0).blocks, [1, 2]);
        kernel.arch = "ptx".into();
        let r = Structure::new(&kernel).region(0);
        assert_eq!((r.blocks, r.rejoins_at), (vec![1], Some(2)));
    }

    #[test]
    fn callees_belong_to_the_region_and_returns_go_to_their_callers() {
        let mut k = Builder::new();
        // 0 bssy B0, 1 @P0 bra 3, 2 call 6, 3 bsync, 4 call 8, 5 exit | 6 @P1 bra 7, 7 ret | 8 nop, 9 ret
        k.bssy(0, 4).bra_if(0, 3).call(6).bsync(0).call(8).exit().bra_if(1, 7).ret().nop().ret();
        let s = Structure::new(&k.kernel());
        let first = |r: Region| r.blocks.iter().map(|&b| s.cfg.blocks[b as usize].first).collect::<Vec<_>>();
        assert_eq!(first(s.region(1)), [2, 3, 6, 7]);
        // From inside the callee: back to the caller's BSYNC; no barrier dominates it, so to the end.
        assert_eq!(first(s.region(6)), [3, 4, 5, 7, 8]);
    }

    #[test]
    fn latch_leaves_its_loop() {
        let mut k = Builder::new();
        k.nop().nop().bra_if(0, 1).exit();
        let s = Structure::new(&k.kernel());
        assert_eq!(s.leaves_loop(1), Some(0));
        assert_eq!(s.leaves_loop(0), None);
    }
}
