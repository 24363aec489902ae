//! Exchanges in which lanes take part that stand at different instructions: a shuffle in each arm of a branch, say. And
//! exchanges of the lanes of one mask in a group that has lanes of several.
//!
//! Once their lanes are together, the groups go on one after the other, each with the instruction that it stands at. What
//! they give to the exchange is taken before the first of them runs and writes to its registers.

use lanescope_ir::op::warp::WarpOp;

use super::BlockCx;
use super::program::{Kind, WarpInst};
use super::tile::Tile;
use super::warp::Across;
use crate::convergence::{Convergence, Group};
use crate::rows::Row;

/// Sources that an operation across lanes has at most.
const SOURCES: usize = 3;

/// One exchange.
#[derive(Clone)]
pub(crate) struct Meeting {
    /// Lanes that take part.
    pub(crate) lanes: u32,
    /// Of these, lanes that have not executed their instruction yet.
    left: u32,
    /// Sources, each lane's of its own instruction.
    pub(crate) src: [Row; SOURCES],
    pub(crate) psrc: [u32; SOURCES],
}

impl Meeting {
    /// Executes the instruction for lanes that may take part in one of `meetings`.
    #[cold]
    pub(crate) fn run(meetings: &mut Vec<Meeting>, across: &mut Across<'_>, op: &WarpInst) {
        let exec = across.exec;
        let mut alone = exec;
        for m in meetings.iter_mut() {
            across.exec = exec & m.left;
            alone &= !m.left;
            m.left &= !across.exec;
            across.meeting = Some(m.clone());
            across.run(op);
        }
        meetings.retain(|m| m.left != 0);
        (across.meeting, across.exec) = (None, alone);
        across.run(op);
    }
}

impl<C: Convergence> Tile<C> {
    /// After an operation that may have let lanes of a warp go: takes down what they give to each other.
    pub(crate) fn meet(&mut self, block: &BlockCx<'_>, warp: u32) {
        for groups in self.warps[warp as usize].conv.met() {
            let meeting = self.gather(block, warp, &groups);
            if meeting.left != 0 {
                self.warps[warp as usize].meetings.push(meeting);
            }
        }
    }

    // Only warps of 32 lanes have exchanges: one row.
    fn gather(&self, block: &BlockCx<'_>, warp: u32, groups: &[Group]) -> Meeting {
        let program = block.cx.program;
        let mut m = Meeting { lanes: 0, left: 0, src: [Row::ZERO; SOURCES], psrc: [0; SOURCES] };
        for g in groups {
            let Some(inst) = program.insts.get(g.pc as usize) else { continue };
            let Kind::Warp(op) = &inst.kind else { continue };
            // A shuffle reaches all lanes of its group, whatever their masks; that is how the hardware does it.
            if groups.len() == 1 && matches!(op.op, WarpOp::Shuffle { .. }) {
                continue;
            }
            let lanes = g.mask.0 as u32 & self.file.pred(&inst.guard, warp);
            m.lanes |= lanes;
            for (to, from) in m.src.iter_mut().zip(&op.src) {
                let row = self.file.read(program.layout.constants(), from, warp);
                crate::memory::words::lanes(lanes).for_each(|l| to.0[l] = row.0[l]);
            }
            for (to, from) in m.psrc.iter_mut().zip(&op.psrc) {
                *to |= self.file.pred(from, warp) & lanes;
            }
        }
        m.left = m.lanes;
        m
    }
}
