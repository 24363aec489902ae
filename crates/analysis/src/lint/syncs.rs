//! Operations across the lanes of a warp, with the mask that they name.

use lanescope_ir::op::control::{ControlOp, WarpSyncMode};
use lanescope_ir::op::warp::{ShuffleMode, WarpOp};
use lanescope_ir::op::{Src, SrcKind};
use lanescope_ir::{Instruction, Kernel, LaneMask, Op, Slot};

use crate::regions::Structure;
use crate::uniformity::{Operand, Uniformity};

/// Instructions between a WARPSYNC and what it is for.
const AHEAD: usize = 32;

/// The lanes that an operation counts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// These, whatever happens.
    Lanes(LaneMask),
    /// What a register says at run time.
    Register(Slot),
    /// Machine code: whoever is there; the compiler has proved that those named are. PTX before `.sync`.
    Nobody,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A shuffle.
    Shuffle,
    /// A vote, match, reduction or election.
    Collective,
    /// `__syncwarp`.
    Sync,
}

/// One operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sync {
    /// The instruction that waits for the lanes, or the operation itself.
    pub(super) at: u32,
    /// The operation; `at` for `__syncwarp`.
    pub(super) op: u32,
    /// What it does.
    pub(super) kind: Kind,
    /// Whom it counts on.
    pub(super) named: Named,
}

impl Sync {
    /// In words.
    pub(super) fn name(&self) -> &'static str {
        match self.kind {
            Kind::Shuffle => "shuffle",
            Kind::Collective => "vote, match or reduction",
            Kind::Sync => "__syncwarp",
        }
    }
}

fn kind_of(op: &WarpOp) -> Option<Kind> {
    Some(match op {
        WarpOp::Shuffle { .. } => Kind::Shuffle,
        WarpOp::Vote { .. } | WarpOp::Match { .. } | WarpOp::Reduce { .. } | WarpOp::Elect { .. } => Kind::Collective,
        _ => return None,
    })
}

/// The mask that an instruction names, if it names one.
fn named(inst: &Instruction, at: u32, u: &Uniformity) -> Option<Named> {
    let mask = match &inst.op {
        Op::Control(ControlOp::WarpSync { mode, .. }) => match mode {
            WarpSyncMode::All => None,
            WarpSyncMode::Mask(m) | WarpSyncMode::Exclusive(m) => Some(*m),
            // The side path of a BRA.DIV, which is looked at itself.
            WarpSyncMode::Collective(..) => return None,
        },
        Op::Control(ControlOp::BranchDivergent { mask, .. } | ControlOp::BranchConverged { mask, .. }) => *mask,
        _ => return None,
    };
    Some(match mask {
        None => Named::Lanes(LaneMask::first(32)),
        Some(src) => value(src, at, u),
    })
}

fn value(src: Src, at: u32, u: &Uniformity) -> Named {
    let constant = match src.kind {
        SrcKind::Imm(v) => Some(v),
        SrcKind::Slot(s) => u.operand(at, Operand::Slot(s)).and_then(|a| a.constant),
        SrcKind::Const { .. } => None,
    };
    match (constant, src.kind) {
        (Some(v), _) => Named::Lanes(LaneMask(src.modifier.apply(v).into())),
        (None, SrcKind::Slot(s)) => Named::Register(s),
        (None, _) => Named::Nobody,
    }
}

/// All operations across lanes, in code order.
pub(super) fn syncs(kernel: &Kernel, structure: &Structure, u: &Uniformity) -> Vec<Sync> {
    let sass = kernel.arch.starts_with("sm_");
    let mut list = Vec::new();
    let mut covered = vec![false; kernel.instructions.len()];
    let collective = side_paths(kernel);
    for (at, inst) in (0u32..).zip(&kernel.instructions) {
        if let Some(named) = named(inst, at, u) {
            let mut op = None;
            let ahead = kernel.instructions.iter().enumerate().skip(at as usize + 1).take(if sass { AHEAD } else { 1 });
            let mut block_barrier = false;
            for (i, next) in ahead {
                match &next.op {
                    Op::Warp(WarpOp::BlockBarrier { .. }) if op.is_none() => {
                        block_barrier = true;
                        break;
                    }
                    Op::Warp(w) => {
                        if let Some(kind) = kind_of(w) {
                            covered[i] = true;
                            op = op.or(Some((i as u32, kind)));
                        }
                    }
                    Op::Control(
                        ControlOp::WarpSync { .. }
                        | ControlOp::BranchDivergent { .. }
                        | ControlOp::BranchConverged { .. }
                        | ControlOp::Exit { .. }
                        | ControlOp::Return { .. }
                        | ControlOp::Sync { .. },
                    ) => break,
                    // The call of a helper that does the shuffle, or a branch around it.
                    Op::Control(_) | Op::Lane(_) | Op::Memory(_) | Op::Nop | Op::Unsupported(_) => {}
                }
            }
            // A barrier of the block gathers the warp first; that is a matter of the barrier.
            if block_barrier {
                continue;
            }
            let (op, kind) = op.unwrap_or((at, Kind::Sync));
            list.push(Sync { at, op, kind, named });
        } else if let Op::Warp(w) = &inst.op
            && let Some(kind) = kind_of(w)
            && !covered[at as usize]
            && !collective[at as usize]
            && structure.cfg.block(at).is_some()
        {
            list.push(Sync { at, op: at, kind, named: Named::Nobody });
        }
    }
    list
}

/// Whether an instruction lies between WARPSYNC.COLLECTIVE and ENDCOLLECTIVE.
fn side_paths(kernel: &Kernel) -> Vec<bool> {
    let mut inside = false;
    let mut list = Vec::with_capacity(kernel.instructions.len());
    for inst in &kernel.instructions {
        match &inst.op {
            Op::Control(ControlOp::WarpSync { mode: WarpSyncMode::Collective(..), .. }) => inside = true,
            Op::Control(ControlOp::EndCollective) => inside = false,
            _ => {}
        }
        list.push(inside);
    }
    list
}

/// The operands of a shuffle.
#[derive(Clone, Copy)]
pub(super) struct Shuffle {
    pub(super) mode: ShuffleMode,
    lane: Src,
    clamp: Src,
    at: u32,
}

impl Shuffle {
    /// The shuffle at `at`, if it is one.
    pub(super) fn at(kernel: &Kernel, at: u32) -> Option<Shuffle> {
        match &kernel.instructions.get(at as usize)?.op {
            Op::Warp(WarpOp::Shuffle { mode, lane, clamp, .. }) => {
                Some(Shuffle { mode: *mode, lane: *lane, clamp: *clamp, at })
            }
            _ => None,
        }
    }

    /// What a lane of a warp gives as its lane operand and its clamp, if that is known.
    pub(super) fn operands(&self, u: &Uniformity, warp: Option<u32>, lane: u32) -> Option<(u32, u32)> {
        let read = |src: Src| -> Option<u32> {
            let raw = match src.kind {
                SrcKind::Imm(v) => v,
                SrcKind::Slot(s) => {
                    let a = u.operand(self.at, Operand::Slot(s))?;
                    match a.constant {
                        Some(v) => v,
                        None if a.exact => {
                            let of = |w| a.lanes.iter().find(|l| l.0 == w);
                            of(warp).or_else(|| of(None)).or(a.lanes.first())?.1.get(lane as usize).copied()?
                        }
                        None => return None,
                    }
                }
                SrcKind::Const { .. } => return None,
            };
            Some(src.modifier.apply(raw))
        };
        Some((read(self.lane)?, read(self.clamp)?))
    }
}
