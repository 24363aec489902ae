//! Leaders and natural loops of a kernel, as far as execution needs them.

use std::collections::HashMap;

use lanescope_ir::op::control::{ControlOp, WarpSyncMode};
use lanescope_ir::{Kernel, Op};

use super::program::NONE;

/// Fixed targets of an instruction, and whether execution also goes on behind it.
fn targets(kernel: &Kernel, at: usize) -> (Vec<u32>, bool) {
    let inst = &kernel.instructions[at];
    let always = |cond: &lanescope_ir::PredSrc| inst.guard.is_true() && cond.is_true();
    let Op::Control(op) = &inst.op else { return (vec![], true) };
    match op {
        ControlOp::Branch { target, cond, .. } => (vec![target.0], !always(cond)),
        ControlOp::BranchDivergent { target, .. } | ControlOp::BranchConverged { target, .. } => (vec![target.0], true),
        ControlOp::BranchIndirect { cond, .. } => {
            let mut all: Vec<u32> = kernel
                .targets
                .iter()
                .filter(|t| t.branch.index() == at)
                .flat_map(|t| t.targets.iter().map(|i| i.0))
                .filter(|&t| (t as usize) < kernel.instructions.len())
                .collect();
            all.sort_unstable();
            all.dedup();
            (all, !always(cond))
        }
        ControlOp::Exit { cond } | ControlOp::Return { cond, .. } => (vec![], !always(cond)),
        // A call comes back; what it calls is another graph.
        ControlOp::WarpSync { mode: WarpSyncMode::Collective(_, t), .. } => (vec![t.0], true),
        _ => (vec![], true),
    }
}

/// Whether lanes may arrive at an instruction other than from the one before it.
pub(crate) fn leaders(kernel: &Kernel) -> Vec<bool> {
    let mut leader = vec![false; kernel.instructions.len()];
    let mut mark = |at: u32| {
        if let Some(l) = leader.get_mut(at as usize) {
            *l = true;
        }
    };
    for (at, inst) in kernel.instructions.iter().enumerate() {
        targets(kernel, at).0.into_iter().for_each(&mut mark);
        if let Op::Control(ControlOp::Call { target, .. } | ControlOp::SyncSet { target, .. }) = &inst.op {
            mark(target.0);
        }
    }
    for f in &kernel.functions {
        mark(f.first.0);
    }
    leader
}

/// Steps that looking for loops may take in all.
const MAX_STEPS: u64 = 50_000_000;

/// Natural loops: headers and the branches back to them.
#[derive(Debug, Default)]
pub(crate) struct Loops {
    /// Header instruction of each loop.
    pub(crate) headers: Vec<u32>,
    header: Vec<u32>,
    latch: Vec<u32>,
}

impl Loops {
    /// Index of the loop that has this header.
    pub(crate) fn header(&self, at: u32) -> u32 {
        self.header.get(at as usize).copied().unwrap_or(NONE)
    }

    /// Index of the loop whose back edge this branch is.
    pub(crate) fn latch(&self, at: u32) -> u32 {
        self.latch.get(at as usize).copied().unwrap_or(NONE)
    }

    /// Finds them: branches to an instruction that dominates them.
    pub(crate) fn find(kernel: &Kernel) -> Loops {
        let graph = Graph::new(kernel);
        let mut steps = MAX_STEPS;
        let idom = graph.dominators(&mut steps);
        let n = kernel.instructions.len();
        let mut loops = Loops { headers: Vec::new(), header: vec![NONE; n], latch: vec![NONE; n] };
        for (from, block) in graph.blocks.iter().enumerate() {
            let last = block.end - 1;
            for &to in &block.next {
                let head = graph.blocks[to].start;
                // Only jumps can be back edges; falling through leads forward.
                if head > last as usize || !dominates(&idom, to, from, &mut steps) {
                    continue;
                }
                if loops.header[head] == NONE {
                    loops.header[head] = loops.headers.len() as u32;
                    loops.headers.push(head as u32);
                }
                loops.latch[last as usize] = loops.header[head];
            }
        }
        loops
    }
}

struct Node {
    start: usize,
    end: u32,
    next: Vec<usize>,
}

struct Graph {
    blocks: Vec<Node>,
    entries: Vec<usize>,
}

impl Graph {
    fn new(kernel: &Kernel) -> Graph {
        let n = kernel.instructions.len();
        let mut leader = leaders(kernel);
        for at in 0..n {
            let (to, falls) = targets(kernel, at);
            if (!to.is_empty() || !falls)
                && let Some(l) = leader.get_mut(at + 1)
            {
                *l = true;
            }
        }
        let starts: Vec<usize> = (0..n).filter(|&i| i == 0 || leader[i]).collect();
        let index: HashMap<usize, usize> = starts.iter().enumerate().map(|(i, &s)| (s, i)).collect();
        let mut blocks = Vec::new();
        for (i, &start) in starts.iter().enumerate() {
            let end = starts.get(i + 1).copied().unwrap_or(n);
            let (to, falls) = targets(kernel, end - 1);
            let mut next: Vec<usize> = to.iter().filter_map(|&t| index.get(&(t as usize)).copied()).collect();
            if falls && end < n {
                next.push(i + 1);
            }
            blocks.push(Node { start, end: end as u32, next });
        }
        // Functions and subroutines are entered from elsewhere.
        let mut entries: Vec<usize> =
            kernel.functions.iter().filter_map(|f| index.get(&f.first.index()).copied()).collect();
        for inst in &kernel.instructions {
            if let Op::Control(ControlOp::Call { target, .. }) = &inst.op {
                entries.extend(index.get(&target.index()));
            }
        }
        entries.sort_unstable();
        entries.dedup();
        Graph { blocks, entries }
    }

    /// Immediate dominator of each block; the root is `blocks.len()`. Blocks that are never reached have none.
    fn dominators(&self, steps: &mut u64) -> Vec<Option<usize>> {
        let n = self.blocks.len();
        let root = n;
        let mut order = Vec::new();
        let mut seen = vec![false; n];
        for &e in &self.entries {
            let mut stack = vec![(e, 0)];
            if std::mem::replace(&mut seen[e], true) {
                continue;
            }
            while let Some((b, i)) = stack.pop() {
                if let Some(&to) = self.blocks[b].next.get(i) {
                    stack.push((b, i + 1));
                    if !std::mem::replace(&mut seen[to], true) {
                        stack.push((to, 0));
                    }
                } else {
                    order.push(b);
                }
            }
        }
        let mut number = vec![0; n + 1];
        number[root] = n + 1;
        for (i, &b) in order.iter().enumerate() {
            number[b] = i;
        }
        let mut before = vec![Vec::new(); n];
        for &b in &order {
            for &to in &self.blocks[b].next {
                before[to].push(b);
            }
        }
        for &e in &self.entries {
            before[e].push(root);
        }
        let mut idom: Vec<Option<usize>> = vec![None; n + 1];
        idom[root] = Some(root);
        // Each round settles at least one more level of an irreducible graph; real code needs two or three. What is not
        // settled after many rounds has no loops that could be reported.
        for _ in 0..64 {
            let mut changed = false;
            for &b in order.iter().rev() {
                let mut new = None;
                for &p in before[b].iter().filter(|&&p| idom[p].is_some()) {
                    new = Some(match new {
                        None => p,
                        Some(q) => meet(&idom, &number, p, q, steps),
                    });
                }
                if idom[b] != new {
                    idom[b] = new;
                    changed = true;
                }
            }
            if *steps == 0 {
                break;
            }
            if !changed {
                return idom;
            }
        }
        vec![None; n + 1]
    }
}

fn meet(idom: &[Option<usize>], number: &[usize], mut a: usize, mut b: usize, steps: &mut u64) -> usize {
    while a != b && *steps > 0 {
        *steps -= 1;
        if number[a] < number[b] {
            a = idom[a].unwrap_or(b);
        } else {
            b = idom[b].unwrap_or(a);
        }
    }
    a
}

/// Walks up from `b`. Once all steps are used up, nothing dominates anything: loops of absurd code are not reported.
fn dominates(idom: &[Option<usize>], a: usize, mut b: usize, steps: &mut u64) -> bool {
    while *steps > 0 {
        *steps -= 1;
        if a == b {
            return idom[a].is_some();
        }
        match idom[b] {
            Some(d) if d != b => b = d,
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use lanescope_ir::kernel::Function;
    use lanescope_ir::{InstId, Instruction, PredSrc};

    use super::*;

    /// One instruction for each entry: a conditional branch to the number, or nothing.
    fn kernel(code: &[Option<u32>]) -> Kernel {
        let inst = |(i, target): (usize, &Option<u32>)| Instruction {
            pc: i as u32 * 16,
            guard: PredSrc::of(lanescope_ir::Pred(0)),
            uniform: false,
            op: match target {
                Some(t) => Op::Control(ControlOp::Branch { target: InstId(*t), cond: PredSrc::TRUE, uniform: false }),
                None => Op::Nop,
            },
        };
        Kernel {
            instructions: code.iter().enumerate().map(inst).collect(),
            functions: vec![Function {
                name: String::new(),
                base: 0,
                first: InstId(0),
                len: code.len() as u32,
                local: vec![],
            }],
            ..Kernel::default()
        }
    }

    #[test]
    fn nested_loops_and_jumps_back_that_are_none() {
        // 0 1 2 3:->2 4:->1 5
        let l = Loops::find(&kernel(&[None, None, None, Some(2), Some(1), None]));
        assert_eq!(l.headers, [2, 1]);
        assert_eq!((l.latch(3), l.latch(4), l.header(1), l.header(0)), (0, 1, 1, NONE));
        // 0:->3 skips to a block that jumps back to 2, which 0 does not need to pass.
        let l = Loops::find(&kernel(&[Some(4), None, None, Some(6), Some(2), None, None]));
        assert_eq!(l.headers, [0; 0]);
    }
}
