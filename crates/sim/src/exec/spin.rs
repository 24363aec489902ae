//! Groups that go round a loop while other lanes of their warp wait.
//!
//! A group that comes back to a place with the registers it had there before can only be let out by others, for all it
//! does next depends on memory. So it may be waiting for lanes of its own warp. On models that promise progress it gives
//! way then; on a reconvergence stack nobody of its warp can help it.

use lanescope_ir::LaneMask;

use super::BlockCx;
use super::tile::{Env, Tile};
use crate::convergence::{Convergence, Spins};
use crate::error::SimError;
use crate::rows::{Row, RowFile, Run};

/// Times round after which a group gives way whatever it does.
const LONG: u64 = 1 << 20;
/// Warp instructions of the block during which nothing changes for lanes that are stuck. Long enough for the other warps and
/// blocks to have had several turns.
const STUCK: u64 = 4 << 20;
/// Times round before the first snapshot, which most divergent loops do not reach with the same lanes.
const FIRST: u64 = 2;

/// The state of one warp at some jump back, to compare with.
///
/// A snapshot is taken at the 2nd, 4th, 8th ... jump back of one group, so that a cycle of any length is found.
#[derive(Clone, Default)]
pub(crate) struct Watch {
    mask: u32,
    at: u32,
    /// Jumps back by these lanes.
    rounds: u64,
    /// When the snapshot was taken, and when to take the next.
    taken: u64,
    retake: u64,
    /// Length of the cycle that was found; 0 if none. Then when the state should be the same again, and the block's clock when it first was.
    period: u64,
    due: u64,
    since: u64,
    stores: u64,
    rows: Vec<Row>,
    preds: Vec<u32>,
    /// A register that differed.
    hint: usize,
}

impl Watch {
    /// For the next block.
    pub(crate) fn clear(&mut self) {
        self.mask = 0;
    }

    /// The lanes of `mask` have jumped back at `at`. For how long nothing has changed, if so.
    fn step(&mut self, at: u32, mask: u32, stores: u64, clock: u64, file: &RowFile, warp: u32) -> Option<u64> {
        if mask != self.mask {
            (self.mask, self.rounds, self.taken, self.retake, self.period) = (mask, 0, 0, FIRST, 0);
        }
        self.rounds += 1;
        if self.taken != 0 && at == self.at && stores == self.stores && self.same(file, warp) {
            if self.period == 0 {
                (self.period, self.since) = (self.rounds - self.taken, clock);
            }
            self.due = self.rounds + self.period;
            return Some(clock - self.since);
        }
        if self.period != 0 && self.rounds >= self.due {
            (self.period, self.retake) = (0, self.rounds);
        }
        if self.period == 0 && self.rounds >= self.retake {
            (self.at, self.stores, self.taken, self.retake) = (at, stores, self.rounds, self.rounds.saturating_mul(2));
            self.rows.clear();
            self.rows.extend(file.registers(warp).copied());
            self.preds.clear();
            self.preds.extend(file.predicates(warp));
        }
        None
    }

    fn same(&mut self, file: &RowFile, warp: u32) -> bool {
        let mask = self.mask;
        let equal = |a: &Row, b: &Row| a.0.iter().zip(&b.0).enumerate().all(|(l, (a, b))| a == b || mask >> l & 1 == 0);
        if let (Some(a), Some(b)) = (self.rows.get(self.hint), file.register(self.hint as u32, warp))
            && !equal(a, b)
        {
            return false;
        }
        if let Some(differs) = self.rows.iter().zip(file.registers(warp)).position(|(a, b)| !equal(a, b)) {
            self.hint = differs;
            return false;
        }
        self.preds.iter().zip(file.predicates(warp)).all(|(a, b)| (a ^ b) & mask == 0)
    }
}

impl<C: Convergence> Tile<C> {
    /// After the flow operation at `at` by the group `r`: whether it goes round a loop in vain.
    #[inline]
    pub(crate) fn look_for_spin(&mut self, env: &Env<'_>, at: u32, r: Run) -> Result<(), SimError> {
        let w = &self.warps[r.warp as usize];
        if w.parked && w.mask == r.active && w.pc <= at { self.back(env.block, *env.clock, at, r) } else { Ok(()) }
    }

    fn back(&mut self, block: &BlockCx<'_>, clock: u64, at: u32, r: Run) -> Result<(), SimError> {
        let w = &mut self.warps[r.warp as usize];
        let Some(watch) = self.watches.get_mut(r.warp as usize) else { return Ok(()) };
        let unchanged = watch.step(at, r.active, w.stores, clock, &self.file, r.warp);
        match C::SPINS {
            Spins::Ignored => {}
            Spins::GiveWay => {
                if unchanged.is_some() || watch.rounds.is_multiple_of(LONG) {
                    w.conv.set_pc(w.pc);
                    w.conv.give_way();
                    w.refresh();
                }
            }
            Spins::Stuck => {
                if unchanged.is_some_and(|n| n >= STUCK) {
                    let lanes = LaneMask(r.active.into());
                    let position = |inst| Box::new(block.position(self.first + r.warp, lanes, inst));
                    let (first, last) = (position(w.pc), position(at));
                    return Err(SimError::SpinDeadlock { block: block.id, first, last, waiting: Vec::new() });
                }
            }
        }
        Ok(())
    }
}
