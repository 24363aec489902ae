//! Leaders and natural loops of a kernel, as far as execution needs them.
//!
//! Loops are those of the analysis; a lane's trips are counted where it passes the header.

use lanescope_analysis::{Cfg, Dominators};
use lanescope_ir::op::control::{ControlOp, WarpSyncMode};
use lanescope_ir::{Kernel, Op};

use super::program::NONE;

/// Fixed target of an instruction.
fn target(op: &ControlOp) -> Option<u32> {
    match op {
        ControlOp::Branch { target, .. }
        | ControlOp::BranchDivergent { target, .. }
        | ControlOp::BranchConverged { target, .. }
        | ControlOp::Call { target, .. }
        | ControlOp::SyncSet { target, .. }
        | ControlOp::WarpSync { mode: WarpSyncMode::Collective(_, target), .. } => Some(target.0),
        _ => None,
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
    for inst in &kernel.instructions {
        if let Op::Control(op) = &inst.op {
            target(op).into_iter().for_each(&mut mark);
        }
    }
    kernel.targets.iter().flat_map(|t| &t.targets).for_each(|t| mark(t.0));
    for f in &kernel.functions {
        mark(f.first.0);
    }
    leader
}

/// Natural loops: headers, and the instructions from which lanes come back to them.
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

    /// Index of the loop whose back edge starts at this instruction.
    pub(crate) fn latch(&self, at: u32) -> u32 {
        self.latch.get(at as usize).copied().unwrap_or(NONE)
    }

    /// Finds them.
    pub(crate) fn find(kernel: &Kernel) -> Loops {
        let n = kernel.instructions.len();
        let mut loops = Loops { headers: Vec::new(), header: vec![NONE; n], latch: vec![NONE; n] };
        if n == 0 {
            return loops;
        }
        let cfg = Cfg::new(kernel);
        let dom = Dominators::new(&cfg.graph, cfg.entry());
        for l in lanescope_analysis::Loops::new(&cfg, &dom).list {
            let Some(header) = cfg.blocks.get(l.header as usize) else { continue };
            let index = loops.headers.len() as u32;
            loops.headers.push(header.first);
            loops.header[header.first as usize] = index;
            for latch in l.latches.iter().filter_map(|&b| cfg.blocks.get(b as usize)) {
                loops.latch[latch.last() as usize] = index;
            }
        }
        loops
    }
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
                Some(t) => Op::Control(ControlOp::Branch {
                    target: InstId(*t),
                    cond: PredSrc::TRUE,
                    decision: lanescope_ir::op::control::Decision::Lanes,
                }),
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
        assert_eq!((l.latch(3), l.latch(4), l.header(2), l.header(1), l.header(0)), (0, 1, 0, 1, NONE));
        // 0:->3 skips to a block that jumps back to 2, which 0 does not need to pass.
        let l = Loops::find(&kernel(&[Some(4), None, None, Some(6), Some(2), None, None]));
        assert_eq!(l.headers, [0; 0]);
    }
}
