//! Groups that go round a loop while other lanes of their warp wait.
//!
//! A group that comes back to a place with the registers it had there before can only be let out by others, for all it
//! does next depends on memory. So it may be waiting for lanes of its own warp. On models that promise progress it gives
//! way then; on a reconvergence stack nobody of its warp can help it. If that is so for every warp that can still run, in
//! this block and in all others, nothing will ever change.

use lanescope_ir::LaneMask;

use super::block::Block;
use super::tile::{Env, Issue, Tile};
use super::{BlockCx, rows};
use crate::convergence::{Convergence, Spins};
use crate::error::SimError;
use crate::rows::{LANES, Row, RowFile};

/// Jumps back after which a group gives way whatever it does.
const LONG: u64 = 1 << 20;
/// Jumps back by a part of a group, in loops inside its loop, after which that part counts as a group of its own on a
/// stack. Where groups give way it does at once: there it matters more to find a cycle soon than to find all.
const PARTS: u64 = 1 << 10;
/// Warp instructions of the block during which nothing changes for any of its warps if it is stuck: several turns of each.
const STUCK: u64 = 1 << 16;
/// Times round before the first snapshot, which most divergent loops do not reach with the same lanes.
const FIRST: u64 = 2;

/// The state of one warp at some jump back, to compare with.
///
/// A snapshot is taken at the 2nd, 4th, 8th ... jump back of one group, so that a cycle of any length is found.
#[derive(Clone, Default)]
pub(crate) struct Watch {
    mask: u64,
    at: u32,
    head: u32,
    /// Jumps back by these lanes.
    rounds: u64,
    /// Jumps back since by a part of them.
    parts: u64,
    /// Jumps back by any lanes since the last that gave way.
    all: u64,
    /// When the snapshot was taken, and when to take the next.
    taken: u64,
    retake: u64,
    /// Length of the cycle that was found; 0 if none. Then when the state should be the same again, and the block's clock when it first was.
    period: u64,
    due: u64,
    since: u64,
    /// And when it last was.
    seen: u64,
    stores: u64,
    rows: Vec<Row>,
    preds: Vec<u32>,
    /// A register of some row that differed.
    hint: usize,
}

impl Watch {
    /// For the next block.
    pub(crate) fn clear(&mut self) {
        (self.mask, self.parts, self.all, self.period) = (0, 0, 0, 0);
    }

    /// The lanes of `mask` have jumped back from `at` to `head`. Whether nothing has changed.
    fn step(
        &mut self,
        (at, head): (u32, u32),
        mask: u64,
        stores: u64,
        clock: u64,
        file: &Registers<'_>,
        patient: bool,
    ) -> bool {
        if mask != self.mask {
            self.parts += 1;
            if patient && mask & !self.mask == 0 && self.parts < PARTS {
                return false;
            }
            (self.mask, self.rounds, self.taken, self.retake, self.period) = (mask, 0, 0, FIRST, 0);
        }
        self.parts = 0;
        self.rounds += 1;
        if self.taken != 0 && at == self.at && stores == self.stores && self.same(file) {
            if self.period == 0 {
                (self.period, self.since) = (self.rounds - self.taken, clock);
            }
            (self.due, self.seen) = (self.rounds + self.period, clock);
            return true;
        }
        if self.period != 0 && self.rounds >= self.due {
            (self.period, self.retake) = (0, self.rounds);
        }
        if self.period == 0 && self.rounds >= self.retake {
            (self.at, self.head, self.stores) = (at, head, stores);
            (self.taken, self.retake) = (self.rounds, self.rounds.saturating_mul(2));
            self.rows.clear();
            self.rows.extend(file.registers().copied());
            self.preds.clear();
            self.preds.extend(file.predicates());
        }
        false
    }

    /// From when to when nothing has changed for the lanes of `mask` and those they have come apart from, if they are in a cycle.
    fn unchanged(&self, mask: u64) -> Option<(u64, u64)> {
        (self.period != 0 && mask & !self.mask == 0).then_some((self.since, self.seen))
    }

    fn same(&mut self, file: &Registers<'_>) -> bool {
        let equal = |at: usize, a: &Row, b: &Row| {
            let mask = file.lanes(self.mask, at);
            a.0.iter().zip(&b.0).enumerate().all(|(l, (a, b))| a == b || mask >> l & 1 == 0)
        };
        if let (Some(a), Some(b)) = (self.rows.get(self.hint), file.register(self.hint))
            && !equal(self.hint, a, b)
        {
            return false;
        }
        let mut rows = self.rows.iter().zip(file.registers()).enumerate();
        if let Some((differs, _)) = rows.find(|&(at, (a, b))| !equal(at, a, b)) {
            self.hint = differs;
            return false;
        }
        let mut preds = self.preds.iter().zip(file.predicates()).enumerate();
        preds.all(|(at, (a, b))| (a ^ b) & file.lanes(self.mask, at) == 0)
    }
}

/// The registers of one warp: those of its rows of lanes by turns.
struct Registers<'a> {
    file: &'a RowFile,
    /// Its first row, and how many it has.
    first: u32,
    rows: u32,
}

impl<'a> Registers<'a> {
    /// Lanes of the warp that are in entry `at` of the lists below.
    fn lanes(&self, mask: u64, at: usize) -> u32 {
        (mask >> (at % self.rows as usize * LANES)) as u32
    }
    fn row(&self, at: usize) -> (u32, u32) {
        (at as u32 / self.rows, self.first + at as u32 % self.rows)
    }
    fn register(&self, at: usize) -> Option<&'a Row> {
        let (slot, row) = self.row(at);
        self.file.register(slot, row)
    }
    fn registers(&self) -> impl Iterator<Item = &'a Row> {
        (0..).map_while(|at| self.register(at))
    }
    fn predicates(&self) -> impl Iterator<Item = u32> {
        (0..).map_while(|at| {
            let (pred, row) = self.row(at);
            self.file.predicate(pred, row)
        })
    }
}

impl<C: Convergence> Tile<C> {
    /// After the flow operation at `at` by the group `r`: whether it goes round a loop in vain.
    #[inline]
    pub(crate) fn look_for_spin(&mut self, env: &Env<'_>, at: u32, r: Issue) {
        let w = &self.warps[r.warp as usize];
        let matters = w.parked || C::SPINS == Spins::Stuck;
        if matters && w.mask == r.active && w.pc <= at {
            self.back(*env.clock, at, r);
        }
    }

    fn back(&mut self, clock: u64, at: u32, r: Issue) {
        let w = &mut self.warps[r.warp as usize];
        let Some(watch) = self.watches.get_mut(r.warp as usize) else { return };
        let patient = C::SPINS == Spins::Stuck;
        let rows = rows::<C>() as u32;
        let file = Registers { file: &self.file, first: r.warp * rows, rows };
        let unchanged = watch.step((at, w.pc), r.active, w.stores, clock, &file, patient);
        watch.all += 1;
        if C::SPINS == Spins::GiveWay && (unchanged || watch.all >= LONG) {
            watch.all = 0;
            w.conv.set_pc(w.pc);
            w.conv.give_way();
            w.refresh();
        }
    }
}

impl<C: Convergence> Block<C> {
    /// Whether all warps that can run go round in vain, some of them while other lanes of the warp wait: if all other blocks
    /// have ended or are so too, nothing will ever change.
    pub(crate) fn stuck(&self, b: &BlockCx<'_>) -> Option<SimError> {
        if C::SPINS != Spins::Stuck {
            return None;
        }
        let (mut start, mut seen, mut found) = (self.resumed, u64::MAX, None);
        for tile in &self.tiles {
            for ((w, watch), i) in
                tile.warps.iter().zip(&tile.watches).zip(tile.first..).filter(|((w, _), _)| w.mask != 0)
            {
                let (from, to) = watch.unchanged(w.mask)?;
                (start, seen) = (from.max(start), to.min(seen));
                if w.parked && found.is_none() {
                    found = Some((i, watch));
                }
            }
        }
        let (warp, watch) = found?;
        if self.clock < start + STUCK || seen < start + STUCK / 2 {
            return None;
        }
        let position = |inst| Box::new(b.position(warp, LaneMask(watch.mask), inst));
        let (first, last) = (position(watch.head), position(watch.at));
        let mut waiting = self.positions(b);
        waiting.retain(|p| p.warp == warp && !first.lanes.contains(p.lanes));
        Some(SimError::SpinDeadlock { block: b.id, first, last, waiting })
    }
}
