//! Basic blocks of a section. The exit is one more node.

use lanescope_ir::flow::{Flow, FlowCode};

use super::tokens::Tokens;
use crate::graph::Graph;

/// Blocks in code order with the edges between them.
pub(super) struct Blocks {
    firsts: Vec<u32>,
    insts: u32,
    /// Edges, the exit being the last node.
    pub graph: Graph,
}

impl Blocks {
    pub(super) fn new(code: &FlowCode, tokens: &Tokens) -> Blocks {
        let n = code.insts.len();
        let mut leader = vec![false; n + 1];
        leader[0] = true;
        for &entry in &code.entries {
            leader[(entry as usize).min(n)] = true;
        }
        let mut steps = Vec::new();
        for at in 0..n {
            steps.clear();
            let ends = steps_of(code, tokens, at, &mut steps);
            leader[at + 1] |= ends;
            for &to in steps.iter().flatten().filter(|&&to| to as usize != at + 1) {
                leader[(to as usize).min(n)] = true;
            }
            if let Flow::Push(_, Some(label)) = code.insts[at].flow {
                leader[(label as usize).min(n)] = true;
            }
        }
        let mut firsts = Vec::new();
        let mut block_of = Vec::with_capacity(n);
        for (at, &starts) in leader.iter().enumerate().take(n) {
            if starts {
                firsts.push(at as u32);
            }
            block_of.push(firsts.len() as u32 - 1);
        }
        let exit = firsts.len() as u32;
        let mut blocks = Blocks { firsts, insts: n as u32, graph: Graph::new(0, &[]) };
        let mut edges = Vec::new();
        for block in 0..exit {
            steps.clear();
            steps_of(code, tokens, blocks.last(block) as usize, &mut steps);
            for to in &steps {
                edges.push((block, to.and_then(|t| block_of.get(t as usize).copied()).unwrap_or(exit)));
            }
        }
        // What cannot reach the exit gets an edge to it, so that post-dominators are defined everywhere. From the
        // back, so that an endless loop is left at its end.
        let back = Graph::new(exit as usize + 1, &edges).reversed();
        let mut reaches = vec![false; exit as usize + 1];
        mark(&back, exit, &mut reaches);
        for block in (0..exit).rev() {
            if !reaches[block as usize] {
                edges.push((block, exit));
                mark(&back, block, &mut reaches);
            }
        }
        blocks.graph = Graph::new(exit as usize + 1, &edges);
        blocks
    }

    /// Number of blocks.
    pub(super) fn len(&self) -> u32 {
        self.firsts.len() as u32
    }

    /// The node where everything ends.
    pub(super) fn exit(&self) -> u32 {
        self.len()
    }

    /// First instruction of a block.
    pub(super) fn first(&self, block: u32) -> u32 {
        self.firsts.get(block as usize).copied().unwrap_or(self.insts)
    }

    /// Last instruction of a block.
    pub(super) fn last(&self, block: u32) -> u32 {
        self.first(block + 1).saturating_sub(1)
    }

    /// Instructions of a block.
    pub(super) fn range(&self, block: u32) -> std::ops::Range<u32> {
        self.first(block)..self.first(block + 1)
    }

    /// The block of an instruction.
    pub(super) fn of(&self, inst: u32) -> u32 {
        (self.firsts.partition_point(|&f| f <= inst) as u32).saturating_sub(1)
    }
}

fn mark(graph: &Graph, from: u32, seen: &mut [bool]) {
    let mut stack = vec![from];
    while let Some(node) = stack.pop() {
        if !std::mem::replace(&mut seen[node as usize], true) {
            stack.extend(graph.successors(node).iter().filter(|&&s| !seen[s as usize]));
        }
    }
}

/// Appends where control goes after `at` (`None` is the exit); true if a block ends here.
fn steps_of(code: &FlowCode, tokens: &Tokens, at: usize, out: &mut Vec<Option<u32>>) -> bool {
    let inst = code.insts[at];
    let next = Some(at as u32 + 1).filter(|&n| (n as usize) < code.insts.len());
    let passes = inst.conditional || inst.never;
    match inst.flow {
        Flow::Next | Flow::Open(..) | Flow::Break(_) | Flow::Overwrite(_) | Flow::Push(..) => {
            out.push(next);
            return false;
        }
        Flow::Wait(_) => {
            out.push(next);
            return true;
        }
        Flow::Branch(to) | Flow::GroupBranch(to) if !inst.never => out.push(to),
        Flow::Test(to) if !inst.never => out.extend([to, next]),
        Flow::Indirect(first, count) if !inst.never => match code.targets_of(first, count) {
            [] => out.push(None),
            targets => out.extend(targets.iter().map(|&t| Some(t))),
        },
        Flow::Leave if !inst.never => out.push(None),
        Flow::Pop(token) if !inst.never => out.push(tokens.target(at as u32, token)),
        _ => {}
    }
    if passes && !out.contains(&next) {
        out.push(next);
    }
    true
}
