//! Which branches decide whether lanes get to a place.
//!
//! A block depends on a branch if one side of the branch always leads to it and another may not. That is asked of a graph
//! without the sides that only trap, so that a bounds check decides nothing; exits count as sides.

use std::collections::HashMap;

use lanescope_ir::op::control::ControlOp;
use lanescope_ir::{Instruction, Kernel, Op};

use crate::cfg::Cfg;
use crate::dom::Dominators;
use crate::graph::Graph;

/// Steps of the walk that finds dependences, at most.
const BUDGET: usize = 20_000_000;

/// Control dependences of a kernel.
pub(super) struct Control {
    /// For each block, the blocks whose branches decide it, with the side that leads there.
    deciders: Vec<Vec<(u32, u32)>>,
    /// Blocks from which every path traps.
    doomed: Vec<bool>,
    /// For each block, the first blocks of the functions it may be called in.
    roots: Vec<Vec<u32>>,
    /// For each called block, its callers.
    callers: HashMap<u32, Vec<u32>>,
}

/// A function that never returns: what follows a call of it is not reached.
fn is_failure(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["assert", "panic", "trap", "abort", "exception", "terminate", "unreachable", "bounds"]
        .iter()
        .any(|part| name.contains(part))
}

impl Control {
    pub(super) fn new(kernel: &Kernel, cfg: &Cfg) -> Control {
        let doomed = doomed(kernel, cfg);
        let edges: Vec<(u32, u32)> =
            cfg.graph.edges().filter(|&(_, b)| !doomed.get(b as usize).copied().unwrap_or(false)).collect();
        let graph = Graph::new(cfg.graph.len(), &edges);
        let postdom = Dominators::new(&graph.reversed(), cfg.exit());
        let mut deciders: Vec<Vec<(u32, u32)>> = vec![Vec::new(); cfg.blocks.len()];
        let mut budget = BUDGET;
        for b in 0..cfg.blocks.len() as u32 {
            let mut sides = graph.successors(b).to_vec();
            sides.sort_unstable();
            sides.dedup();
            if sides.len() < 2 {
                continue;
            }
            let stop = postdom.idom(b);
            for side in sides {
                let mut at = Some(side);
                while let Some(node) = at.filter(|n| Some(*n) != stop && *n != cfg.exit()) {
                    let Some(left) = budget.checked_sub(1) else { break };
                    budget = left;
                    if let Some(list) = deciders.get_mut(node as usize) {
                        list.push((b, side));
                    }
                    at = postdom.idom(node);
                }
            }
        }
        let mut roots: Vec<Vec<u32>> = vec![Vec::new(); cfg.blocks.len()];
        let mut callers: HashMap<u32, Vec<u32>> = HashMap::new();
        for &(caller, callee) in &cfg.calls {
            callers.entry(callee).or_default().push(caller);
        }
        let mut called: Vec<u32> = callers.keys().copied().collect();
        called.sort_unstable();
        for callee in called {
            let (body, _) = graph.preorder(callee);
            let Some(left) = budget.checked_sub(body.len()) else { break };
            budget = left;
            for b in body {
                if let Some(list) = roots.get_mut(b as usize) {
                    list.push(callee);
                }
            }
        }
        Control { deciders, doomed, roots, callers }
    }

    /// The blocks whose branches decide whether block `b` is reached, directly or through others, each with the side that
    /// leads there; callers' branches included.
    pub(super) fn deciders(&self, b: u32) -> Vec<(u32, u32)> {
        let mut found: Vec<(u32, u32)> = Vec::new();
        let mut seen = std::collections::HashSet::from([b]);
        let mut open = vec![b];
        while let Some(block) = open.pop() {
            for &(decider, side) in self.deciders.get(block as usize).into_iter().flatten() {
                if !found.contains(&(decider, side)) {
                    found.push((decider, side));
                }
                if seen.insert(decider) {
                    open.push(decider);
                }
            }
            for root in self.roots.get(block as usize).into_iter().flatten() {
                for &caller in self.callers.get(root).into_iter().flatten() {
                    if seen.insert(caller) {
                        open.push(caller);
                    }
                }
            }
        }
        found.sort_unstable();
        found
    }

    /// The blocks that run only if the branch of block `b` goes to `side`, those that depend on branches in them included.
    pub(super) fn arm(&self, b: u32, side: u32) -> Vec<u32> {
        let mut inside = vec![false; self.deciders.len()];
        let mut list: Vec<u32> = Vec::new();
        // A block's deciders that lie in the arm bring it in; each round adds a level of nesting.
        loop {
            let before = list.len();
            for (block, deciders) in self.deciders.iter().enumerate() {
                let brings = |d: &(u32, u32)| *d == (b, side) || d.0 != b && inside.get(d.0 as usize) == Some(&true);
                if !inside[block] && block as u32 != b && deciders.iter().any(brings) {
                    inside[block] = true;
                    list.push(block as u32);
                }
            }
            if list.len() == before {
                return list;
            }
        }
    }

    /// Whether every path from block `b` traps.
    pub(super) fn is_doomed(&self, b: u32) -> bool {
        self.doomed.get(b as usize).copied().unwrap_or(false)
    }
}

fn ends_in_failure(kernel: &Kernel, cfg: &Cfg, b: u32, doomed: &[bool]) -> bool {
    let Some(block) = cfg.blocks.get(b as usize) else { return false };
    let always = |i: &Instruction| i.guard.is_true();
    let body = block.instructions().filter_map(|i| kernel.instructions.get(i as usize));
    let fails = body.filter(|i| always(i)).any(|i| match &i.op {
        Op::Control(ControlOp::Trap) => true,
        Op::Control(ControlOp::CallExternal { name, cond, .. }) => cond.is_true() && is_failure(name),
        _ => false,
    });
    let calls_doomed = cfg.callees(b).any(|c| doomed.get(c as usize).copied().unwrap_or(false));
    let certain = matches!(
        kernel.instructions.get(block.last() as usize),
        Some(Instruction { guard, op: Op::Control(ControlOp::Call { cond, .. }), .. })
            if guard.is_true() && cond.is_true()
    );
    // A loop of one block with nothing in it never ends: what compilers put behind a failure.
    let endless = block.len == 1
        && matches!(kernel.instructions.get(block.first as usize), Some(Instruction { guard, op: Op::Control(
            ControlOp::Branch { target, cond, .. }), .. }) if guard.is_true() && cond.is_true() && target.0 == block.first);
    fails || endless || calls_doomed && certain
}

fn doomed(kernel: &Kernel, cfg: &Cfg) -> Vec<bool> {
    let mut doomed = vec![false; cfg.graph.len()];
    let back = cfg.graph.reversed();
    // Called functions become known to fail only after their own blocks: a few rounds settle chains of calls.
    for _ in 0..4 {
        let mut open: Vec<u32> = (0..cfg.blocks.len() as u32)
            .filter(|&b| !doomed[b as usize] && ends_in_failure(kernel, cfg, b, &doomed))
            .collect();
        if open.is_empty() {
            break;
        }
        open.iter().for_each(|&b| doomed[b as usize] = true);
        while let Some(b) = open.pop() {
            for &p in back.successors(b) {
                let all = cfg.graph.successors(p).iter().all(|&s| doomed[s as usize]);
                if (p as usize) < cfg.blocks.len() && !doomed[p as usize] && all {
                    doomed[p as usize] = true;
                    open.push(p);
                }
            }
        }
    }
    doomed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Builder;
    use lanescope_ir::PredSrc;

    #[test]
    fn arms_depend_on_their_branch_and_the_join_does_not() {
        let mut k = Builder::new();
        // 0 @P0 bra 3 | 1 nop 2 bra 4 | 3 nop | 4 nop 5 exit
        k.bra_if(0, 3).nop().bra(4).nop().nop().exit();
        let kernel = k.kernel();
        let cfg = Cfg::new(&kernel);
        let c = Control::new(&kernel, &cfg);
        let of = |i: u32| c.deciders(cfg.block(i).unwrap()).iter().map(|d| d.0).collect::<Vec<_>>();
        assert_eq!((of(1), of(3), of(4)), (vec![0], vec![0], vec![]));
    }

    #[test]
    fn exits_decide_and_traps_do_not() {
        let mut k = Builder::new();
        // 0 @P0 exit | 1 @P1 bra 4 | 2 nop 3 exit | 4 trap
        k.exit_if(0).bra_if(1, 4).nop().exit().push(PredSrc::TRUE, Op::Control(ControlOp::Trap), "BPT.TRAP");
        let kernel = k.kernel();
        let cfg = Cfg::new(&kernel);
        let c = Control::new(&kernel, &cfg);
        let block = |i: u32| cfg.block(i).unwrap();
        assert_eq!(c.deciders(block(2)).iter().map(|d| d.0).collect::<Vec<_>>(), [block(0)]);
        assert!(c.is_doomed(block(4)) && !c.is_doomed(block(2)));
    }

    #[test]
    fn bodies_of_loops_depend_on_the_latch() {
        let mut k = Builder::new();
        k.nop().bra_if(0, 0).exit();
        let kernel = k.kernel();
        let cfg = Cfg::new(&kernel);
        let c = Control::new(&kernel, &cfg);
        assert_eq!(c.deciders(0), [(0, 0)]);
        assert!(c.deciders(1).is_empty());
    }
}
