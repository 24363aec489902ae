//! The control-flow graph of a kernel: basic blocks and the edges between them.
//!
//! A block ends where lanes can part or join: after a branch, a call, an EXIT, a `BSYNC` or `WARPSYNC`, and
//! before every branch target. Calls fall through to the next instruction; the callee is a
//! root of its own; a call through registers may reach every function. Indirect branches follow their table, or leave to the virtual exit if they have none.
//! Every block is reachable from the virtual entry and reaches the virtual exit: code that no path reaches is
//! a root too, and an endless loop gets one edge to the exit, so that both dominator trees cover everything.

use std::collections::HashMap;

use lanescope_ir::op::control::{ControlOp, WarpSyncMode};
use lanescope_ir::{InstId, Instruction, Kernel, Op, PredSrc};

use crate::graph::Graph;

/// Edges of calls through registers at most, since each may reach every function.
const CALL_LIMIT: usize = 1 << 20;

/// A straight run of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// First instruction.
    pub first: u32,
    /// Number of instructions, at least 1.
    pub len: u32,
}

impl Block {
    /// Its last instruction.
    pub fn last(&self) -> u32 {
        self.first + self.len - 1
    }
    /// Its instructions.
    pub fn instructions(&self) -> std::ops::Range<u32> {
        self.first..self.first + self.len
    }
}

/// Blocks and edges. Block numbers ascend with the code; [`entry`](Cfg::entry) and [`exit`](Cfg::exit) are two
/// more nodes of the graph.
#[derive(Clone, Debug)]
pub struct Cfg {
    /// Blocks in code order.
    pub blocks: Vec<Block>,
    /// Edges between blocks, with the virtual entry and exit.
    pub graph: Graph,
    /// For each instruction, its block.
    pub block_of: Vec<u32>,
    /// Blocks entered by a call, with the block that calls: `(caller, callee)`, sorted.
    pub calls: Vec<(u32, u32)>,
    /// Blocks that the entry had to be linked to because nothing else leads there: the kernel's first, called
    /// functions, and code that cannot be reached.
    pub roots: Vec<u32>,
}

impl Cfg {
    /// Builds the graph.
    pub fn new(kernel: &Kernel) -> Cfg {
        let flow = Flow::new(kernel);
        let n = kernel.instructions.len();
        let mut leader = vec![false; n + 1];
        for f in &kernel.functions {
            leader[f.first.index().min(n)] = true;
        }
        leader[0] = true;
        let mut steps = Vec::new();
        for at in 0..n {
            steps.clear();
            let ends = flow.steps(at, &mut steps);
            if ends {
                leader[at + 1] = true;
            }
            for step in &steps {
                match *step {
                    Step::To(t) | Step::Call(t) if t as usize != at + 1 => leader[(t as usize).min(n)] = true,
                    _ => {}
                }
            }
        }
        let mut blocks: Vec<Block> = Vec::new();
        let mut block_of = Vec::with_capacity(n);
        for (at, &starts) in leader.iter().enumerate().take(n) {
            if starts {
                blocks.push(Block { first: at as u32, len: 0 });
            }
            block_of.push(blocks.len() as u32 - 1);
            if let Some(b) = blocks.last_mut() {
                b.len += 1;
            }
        }
        let exit = blocks.len() as u32 + 1;
        let mut edges = Vec::new();
        let mut calls = Vec::new();
        for (b, block) in blocks.iter().enumerate() {
            let b = b as u32;
            for at in block.instructions() {
                steps.clear();
                flow.steps(at as usize, &mut steps);
                let last = at == block.last();
                for step in &steps {
                    match *step {
                        Step::To(t) if last => edges.push((b, block_of.get(t as usize).copied().unwrap_or(exit))),
                        Step::Leave if last => edges.push((b, exit)),
                        Step::Call(t) => calls.extend(block_of.get(t as usize).map(|&c| (b, c))),
                        _ => {}
                    }
                }
            }
        }
        calls.sort_unstable();
        calls.dedup();
        let mut roots: Vec<u32> = if blocks.is_empty() { Vec::new() } else { vec![0] };
        roots.extend(calls.iter().map(|c| c.1));
        roots.sort_unstable();
        roots.dedup();
        let mut cfg = Cfg { blocks, graph: Graph::new(0, &[]), block_of, calls, roots };
        cfg.close(edges);
        cfg
    }

    /// The virtual entry.
    pub fn entry(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// The virtual exit.
    pub fn exit(&self) -> u32 {
        self.blocks.len() as u32 + 1
    }

    /// The block of an instruction.
    pub fn block(&self, inst: u32) -> Option<u32> {
        self.block_of.get(inst as usize).copied()
    }

    /// Blocks that block `b` calls.
    pub fn callees(&self, b: u32) -> impl Iterator<Item = u32> + '_ {
        let from = self.calls.partition_point(|c| c.0 < b);
        self.calls[from..].iter().take_while(move |c| c.0 == b).map(|c| c.1)
    }

    /// Adds the edges that make every block reachable from the entry and lead to the exit.
    fn close(&mut self, mut edges: Vec<(u32, u32)>) {
        let nodes = self.blocks.len() + 2;
        let (entry, exit) = (self.entry(), self.exit());
        let plain = Graph::new(nodes, &edges);
        let mut seen = vec![false; nodes];
        let mut all = self.roots.clone();
        for &root in &self.roots {
            mark(&plain, root, &mut seen);
        }
        for b in 0..self.blocks.len() as u32 {
            if !seen[b as usize] {
                all.push(b);
                mark(&plain, b, &mut seen);
            }
        }
        self.roots = all;
        let back = plain.reversed();
        let mut ends = vec![false; nodes];
        mark(&back, exit, &mut ends);
        // From the back, so that the edge leaves at the loop's end rather than in its middle.
        for b in (0..self.blocks.len() as u32).rev() {
            if !ends[b as usize] {
                edges.push((b, exit));
                mark(&back, b, &mut ends);
            }
        }
        edges.extend(self.roots.iter().map(|&r| (entry, r)));
        if self.blocks.is_empty() {
            edges.push((entry, exit));
        }
        self.graph = Graph::new(nodes, &edges);
    }
}

fn mark(graph: &Graph, from: u32, seen: &mut [bool]) {
    let mut stack = vec![from];
    while let Some(b) = stack.pop() {
        if !std::mem::replace(&mut seen[b as usize], true) {
            stack.extend(graph.successors(b).iter().filter(|&&s| !seen[s as usize]));
        }
    }
}

/// One way control goes on after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// At this instruction.
    To(u32),
    /// Into a function that will return behind the call.
    Call(u32),
    /// Out of the kernel or back to a caller.
    Leave,
}

struct Flow<'a> {
    kernel: &'a Kernel,
    tables: HashMap<u32, &'a [InstId]>,
    /// First instructions of functions that a call through registers may reach.
    callable: Vec<u32>,
    /// For each ENDCOLLECTIVE, where the groups of its WARPSYNC.COLLECTIVE go on.
    collective: HashMap<u32, Vec<u32>>,
}

impl<'a> Flow<'a> {
    fn new(kernel: &'a Kernel) -> Self {
        let tables = kernel.targets.iter().map(|t| (t.branch.0, t.targets.as_slice())).collect();
        let is_call = |i: &&Instruction| matches!(i.op, Op::Control(ControlOp::CallIndirect { .. }));
        let calls = kernel.instructions.iter().filter(is_call).count();
        let mut callable: Vec<u32> = kernel.functions.iter().skip(1).map(|f| f.first.0).collect();
        for f in &kernel.functions {
            let body = kernel.instructions.get(f.first.index()..f.first.index() + f.len as usize).unwrap_or(&[]);
            let start = |offset: u32| body.binary_search_by_key(&offset, |i| i.pc).ok();
            callable.extend(f.local.iter().filter_map(|l| Some(f.first.0 + start(l.1)? as u32)));
        }
        callable.sort_unstable();
        callable.dedup();
        callable.truncate(CALL_LIMIT / calls.max(1));
        let mut collective: HashMap<u32, Vec<u32>> = HashMap::new();
        let mut open: Vec<u32> = Vec::new();
        for (at, inst) in kernel.instructions.iter().enumerate() {
            match &inst.op {
                Op::Control(ControlOp::WarpSync { mode: WarpSyncMode::Collective(_, target), .. }) => {
                    open.push(target.0);
                }
                Op::Control(ControlOp::EndCollective) => {
                    collective.insert(at as u32, std::mem::take(&mut open));
                }
                _ => {}
            }
        }
        Flow { kernel, tables, callable, collective }
    }

    /// Appends where control goes after `at`; true if a block ends here.
    fn steps(&self, at: usize, out: &mut Vec<Step>) -> bool {
        let inst = &self.kernel.instructions[at];
        let next = at as u32 + 1;
        // A function's last instruction has no successor: what follows belongs to another function.
        let falls = if self.last_of_function(at) { Step::Leave } else { Step::To(next) };
        let Op::Control(op) = &inst.op else {
            out.push(falls);
            return false;
        };
        let some = may_pass(inst);
        match op {
            ControlOp::Branch { target, .. }
            | ControlOp::BranchDivergent { target, .. }
            | ControlOp::BranchConverged { target, .. } => {
                if takes(inst) {
                    out.push(Step::To(target.0));
                }
                if some {
                    out.push(falls);
                }
                true
            }
            ControlOp::BranchIndirect { .. } => {
                match self.tables.get(&(at as u32)) {
                    Some(targets) if !targets.is_empty() => out.extend(targets.iter().map(|t| Step::To(t.0))),
                    _ => out.push(Step::Leave),
                }
                if some {
                    out.push(falls);
                }
                true
            }
            ControlOp::Exit { .. } | ControlOp::Return { .. } | ControlOp::Trap => {
                if takes(inst) {
                    out.push(Step::Leave);
                }
                if some {
                    out.push(falls);
                }
                true
            }
            ControlOp::Call { target, .. } => {
                out.push(Step::Call(target.0));
                out.push(falls);
                true
            }
            ControlOp::CallIndirect { .. } => {
                // Any function but the kernel may have had its address taken.
                out.extend(self.callable.iter().map(|&f| Step::Call(f)));
                out.push(falls);
                true
            }
            ControlOp::Sync { .. } => {
                out.push(falls);
                true
            }
            ControlOp::WarpSync { mode, .. } => {
                out.push(falls);
                if let WarpSyncMode::Collective(_, target) = mode {
                    out.push(Step::To(target.0));
                }
                true
            }
            ControlOp::EndCollective => {
                match self.collective.get(&(at as u32)) {
                    Some(targets) if !targets.is_empty() => out.extend(targets.iter().map(|&t| Step::To(t))),
                    _ => out.push(falls),
                }
                true
            }
            _ => {
                out.push(falls);
                false
            }
        }
    }

    fn last_of_function(&self, at: usize) -> bool {
        let next = at + 1;
        next >= self.kernel.instructions.len()
            || self.kernel.functions.binary_search_by_key(&next, |f| f.first.index()).is_ok()
    }
}

/// The second predicate of a control operation that may leave lanes behind.
pub(crate) fn condition(op: &ControlOp) -> PredSrc {
    match op {
        ControlOp::Branch { cond, .. }
        | ControlOp::BranchDivergent { cond, .. }
        | ControlOp::BranchConverged { cond, .. }
        | ControlOp::BranchIndirect { cond, .. }
        | ControlOp::Call { cond, .. }
        | ControlOp::CallIndirect { cond, .. }
        | ControlOp::CallExternal { cond, .. }
        | ControlOp::Return { cond, .. }
        | ControlOp::Exit { cond }
        | ControlOp::Sync { cond, .. } => *cond,
        _ => PredSrc::TRUE,
    }
}

/// Whether some lane may go on at the next instruction.
fn may_pass(inst: &Instruction) -> bool {
    match &inst.op {
        Op::Control(ControlOp::BranchDivergent { .. } | ControlOp::BranchConverged { .. }) => true,
        Op::Control(op) => !(inst.guard.is_true() && condition(op).is_true()),
        _ => true,
    }
}

/// Whether some lane may do it at all: `@!PT` is never.
fn takes(inst: &Instruction) -> bool {
    let cond = match &inst.op {
        Op::Control(op) => condition(op),
        _ => PredSrc::TRUE,
    };
    inst.guard != PredSrc::FALSE && cond != PredSrc::FALSE
}

/// Whether an instruction decides per lane: it has a guard or a second predicate that is not constant.
pub fn is_conditional(inst: &Instruction) -> bool {
    may_pass(inst) && takes(inst)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Builder;

    #[test]
    fn if_else_with_reconvergence() {
        let mut k = Builder::new();
        k.bssy(0, 5).bra_if(0, 4).nop().bra(4).bsync(0).exit();
        let cfg = Cfg::new(&k.kernel());
        let firsts: Vec<_> = cfg.blocks.iter().map(|b| b.first).collect();
        assert_eq!(firsts, [0, 2, 4, 5]);
        assert_eq!(cfg.graph.successors(0), [2, 1]);
        assert_eq!(cfg.graph.successors(3), [cfg.exit()]);
        assert_eq!(cfg.roots, [0]);
    }

    #[test]
    fn calls_tables_and_endless_loops() {
        let mut k = Builder::new();
        k.call(4).brx(&[3, 2, 3]).exit().bra(3).nop().ret();
        let cfg = Cfg::new(&k.kernel());
        assert_eq!(cfg.blocks.iter().map(|b| b.first).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert_eq!(cfg.callees(0).collect::<Vec<_>>(), [4]);
        assert_eq!(cfg.graph.successors(1), [3, 2, 3]);
        // The endless loop `bra self` is given a way out.
        assert_eq!(cfg.graph.successors(3), [3, cfg.exit()]);
        assert_eq!(cfg.roots, [0, 4]);
    }

    #[test]
    fn guards_that_never_hold() {
        let mut k = Builder::new();
        k.never_bra(0).exit();
        let cfg = Cfg::new(&k.kernel());
        assert_eq!(cfg.graph.successors(0), [1]);
    }
}
