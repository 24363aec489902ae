//! Barriers of the block, with what may keep threads away from them.

use lanescope_ir::op::warp::{BlockBarrierMode, WarpOp};
use lanescope_ir::op::{Src, SrcKind};
use lanescope_ir::{Op, PredSrc};

use super::cx::{Cx, Parting, Step};
use crate::uniformity::{Level, Operand, Origin};

/// One barrier instruction that waits.
pub(super) struct Barrier<'a> {
    pub(super) at: u32,
    /// Its number, if that is known.
    id: Option<u32>,
    guard: PredSrc,
    /// What may keep threads away.
    pub(super) partings: Vec<Parting<'a>>,
}

/// How two arms of a branch meet barriers.
pub(super) enum Arms {
    /// Another barrier of the same number is on the other side.
    Both(u32),
    /// Only this side has one.
    One,
}

/// All barriers that threads can get to.
pub(super) fn barriers<'a>(c: &Cx<'a>) -> Vec<Barrier<'a>> {
    let mut list = Vec::new();
    for (at, inst) in (0u32..).zip(&c.kernel.instructions) {
        let Op::Warp(WarpOp::BlockBarrier { mode, id, threads, .. }) = &inst.op else { continue };
        if *mode == BlockBarrierMode::Arrive || !c.alive(at) {
            continue;
        }
        // A barrier with a count of threads is for some warps only; it must be met by whole warps.
        let counted = threads.is_some();
        let guard = c.guard(at);
        let partings =
            c.partings(at).into_iter().chain(guard).filter(|p| p.splits_warps() || !counted && by_index(p)).collect();
        list.push(Barrier { at, id: number(c, at, *id), guard: inst.guard, partings });
    }
    list
}

/// Whether a branch parts whole warps by their index: nothing else that is the same in a warp need differ in the block.
fn by_index(p: &Parting<'_>) -> bool {
    p.branch.level > Level::Block && matches!(p.branch.origin(), Origin::Thread(_))
}

fn number(c: &Cx<'_>, at: u32, id: Src) -> Option<u32> {
    match id.kind {
        SrcKind::Imm(v) => Some(v),
        SrcKind::Slot(s) => c.uniformity.operand(at, Operand::Slot(s))?.constant,
        SrcKind::Const { .. } => None,
    }
}

/// Whether the other side of `p` has a barrier of the same number as `b`.
pub(super) fn arms(c: &Cx<'_>, all: &[Barrier<'_>], b: &Barrier<'_>, p: &Parting<'_>) -> Arms {
    let cfg = &c.structure.cfg;
    let other = all.iter().find(|o| {
        if o.at == b.at || o.id != b.id {
            return false;
        }
        if p.branch.inst == b.at {
            // `@P0 BAR.SYNC` and `@!P0 BAR.SYNC`.
            return o.guard == b.guard.not();
        }
        let decider = cfg.block(p.branch.inst);
        let sides = cfg.block(o.at).map(|block| c.control.deciders(block)).unwrap_or_default();
        let here = cfg.block(b.at).map(|block| c.control.deciders(block)).unwrap_or_default();
        let of =
            |list: &[(u32, u32)]| -> Vec<u32> { list.iter().filter(|d| Some(d.0) == decider).map(|d| d.1).collect() };
        let (theirs, ours) = (of(&sides), of(&here));
        !theirs.is_empty() && theirs.iter().all(|s| !ours.contains(s))
    });
    other.map_or(Arms::One, |o| Arms::Both(o.at))
}

/// The witness of a finding about a barrier.
pub(super) fn witness(c: &Cx<'_>, b: &Barrier<'_>, p: &Parting<'_>, other: Option<u32>) -> Vec<Step> {
    let mut steps = vec![Step { inst: b.at, note: "waits for all threads of the block".to_owned() }];
    steps.extend(other.map(|inst| Step { inst, note: "waits for them too, on the other side".to_owned() }));
    steps.extend(c.because(p));
    steps
}
