//! The two sides of a branch, with their lengths.

use lanescope_ir::LaneMask;
use lanescope_ir::op::control::ControlOp;
use lanescope_ir::{Op, op::memory::MemoryOp};

use super::Input;
use super::cx::Cx;
use crate::uniformity::{Branch, Kind, Verdict};

/// One side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arm {
    /// Instructions in it, each counted once however often a loop repeats it.
    pub(super) len: u64,
    /// Whether it has a loop.
    pub(super) loops: bool,
    /// Whether it only computes: no stores, calls, waits or operations across lanes.
    pub(super) pure: bool,
    /// Its first instruction, if it has any.
    pub(super) first: Option<u32>,
}

/// The sides of branches, for reports.
pub struct Sides<'a>(Cx<'a>);

impl<'a> Sides<'a> {
    /// Looks at a kernel.
    pub fn new(input: &Input<'a>) -> Sides<'a> {
        Sides(Cx::new(input))
    }

    /// Instructions on the side that a branch jumps to and on the one that it falls into, and whether there are loops in
    /// them. Nothing for exits, loops and branches that guard a trap.
    pub fn lengths(&self, branch: &Branch) -> Option<(u64, u64, bool)> {
        let (jump, fall) = arms(&self.0, branch)?;
        Some((jump.len, fall.len, jump.loops || fall.loops))
    }
}

impl std::fmt::Debug for Sides<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Sides").field(&self.0.kernel.name).finish()
    }
}

/// The side that the branch jumps to and the one it falls into, for branches with two sides that stay in the kernel.
pub(super) fn arms(c: &Cx<'_>, branch: &Branch) -> Option<(Arm, Arm)> {
    let cfg = &c.structure.cfg;
    if branch.kind != Kind::Branch || branch.guards_trap || branch.leaves_loop.is_some() || !c.alive(branch.inst) {
        return None;
    }
    let block = cfg.block(branch.inst)?;
    let target = match c.kernel.instructions.get(branch.inst as usize).map(|i| &i.op) {
        Some(Op::Control(ControlOp::Branch { target, .. })) => cfg.block(target.0)?,
        _ => return None,
    };
    let falls = cfg.block(branch.inst + 1)?;
    (target != falls).then(|| (arm(c, block, target), arm(c, block, falls)))
}

fn arm(c: &Cx<'_>, block: u32, side: u32) -> Arm {
    let cfg = &c.structure.cfg;
    let mut arm = Arm { len: 0, loops: false, pure: true, first: None };
    let outer = c.structure.loops.innermost.get(block as usize).copied().flatten();
    for b in c.control.arm(block, side) {
        let Some(blk) = cfg.blocks.get(b as usize) else { continue };
        arm.len += u64::from(blk.len);
        arm.first = Some(arm.first.map_or(blk.first, |f| f.min(blk.first)));
        arm.loops |= c.structure.loops.innermost.get(b as usize).copied().flatten() != outer;
        arm.pure &= blk.instructions().all(|i| match c.kernel.instructions.get(i as usize).map(|i| &i.op) {
            Some(Op::Nop | Op::Lane(_) | Op::Memory(MemoryOp::Load { .. })) => true,
            Some(Op::Control(op)) => matches!(op, ControlOp::Branch { .. } | ControlOp::Sync { .. }),
            _ => false,
        });
    }
    arm
}

/// The lanes that jump, and those that could be there, if they are the same in every warp that splits.
pub(super) fn lanes(branch: &Branch) -> Option<(LaneMask, LaneMask)> {
    let Verdict::Lanes(list) = &branch.verdict else { return None };
    let first = list.first()?;
    list.iter().all(|l| (l.taken, l.there) == (first.taken, first.there)).then_some((first.taken, first.there))
}
