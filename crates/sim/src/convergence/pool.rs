//! Lanes that could run but are on no stack: those that gave way, and those that something other than their own arrival released.
//!
//! Each lane of the pool has its own position; lanes that stand at the same one when one of them is picked go on as one group.

use super::Group;
use lanescope_ir::LaneMask;

const LANES: usize = 64;

/// Picks after which a sleeping group counts as awake although others could still run. A sleep has a length in time, which does
/// not exist here; without a bound a group that waits for the sleeper by yielding in a loop would never let it run.
const SLEEP: u32 = 64;

#[derive(Clone, Copy)]
struct Sleeper {
    lanes: LaneMask,
    wakes: u32,
}

#[derive(Clone)]
pub(super) struct Pool {
    /// Lanes that may be picked.
    ready: LaneMask,
    /// Lanes that gave way and stand back for one pick.
    yielded: LaneMask,
    /// Oldest first.
    asleep: Vec<Sleeper>,
    /// Lanes that gave way, or waited at a WARPSYNC, and have not run since: no barrier waits for them.
    marked: LaneMask,
    /// Where the search for the next lane starts.
    pointer: u32,
    picks: u32,
    pc: [u32; LANES],
}

impl Pool {
    pub(super) fn new() -> Self {
        Pool {
            ready: LaneMask::EMPTY,
            yielded: LaneMask::EMPTY,
            asleep: Vec::new(),
            marked: LaneMask::EMPTY,
            pointer: 0,
            picks: 0,
            pc: [0; LANES],
        }
    }

    pub(super) fn reset(&mut self) {
        self.ready = LaneMask::EMPTY;
        self.yielded = LaneMask::EMPTY;
        self.asleep.clear();
        self.marked = LaneMask::EMPTY;
        self.pointer = 0;
        self.picks = 0;
    }

    pub(super) fn marked(&self) -> LaneMask {
        self.marked
    }

    fn place(&mut self, group: Group) {
        for lane in group.mask.lanes() {
            if let Some(pc) = self.pc.get_mut(lane as usize) {
                *pc = group.pc;
            }
        }
    }

    fn position(&self, lane: u32) -> u32 {
        self.pc.get(lane as usize).copied().unwrap_or_default()
    }

    /// Released lanes.
    pub(super) fn add(&mut self, group: Group) {
        self.place(group);
        self.ready = self.ready | group.mask;
    }

    /// Lanes that executed YIELD.
    pub(super) fn add_yielded(&mut self, group: Group) {
        self.place(group);
        self.yielded = self.yielded | group.mask;
        self.marked = self.marked | group.mask;
    }

    /// Lanes that executed NANOSLEEP.
    pub(super) fn add_sleeping(&mut self, group: Group) {
        self.place(group);
        self.marked = self.marked | group.mask;
        self.asleep.push(Sleeper { lanes: group.mask, wakes: self.picks.wrapping_add(SLEEP) });
    }

    /// No barrier waits for `lanes` until they run again.
    pub(super) fn mark(&mut self, lanes: LaneMask) {
        self.marked = self.marked | lanes;
    }

    /// `lanes` run now.
    pub(super) fn unmark(&mut self, lanes: LaneMask) {
        self.marked = self.marked - lanes;
    }

    /// A divergent branch parked a group: whoever gave way is an ordinary member of the pool from now on.
    pub(super) fn diverged(&mut self) {
        self.pointer = 0;
        if self.marked.is_empty() {
            self.flush();
            return;
        }
        let asleep = self.asleep.iter().fold(LaneMask::EMPTY, |m, s| m | s.lanes);
        self.marked = self.marked - self.ready - self.yielded - asleep;
        self.flush();
    }

    fn flush(&mut self) {
        self.ready = self.ready | self.yielded;
        self.yielded = LaneMask::EMPTY;
    }

    /// All live lanes gave way together, so that they are picked again at once.
    pub(super) fn pass(&mut self, lanes: LaneMask) {
        if let Some(lead) = self.lead(lanes) {
            self.pointer = lead + 1;
        }
    }

    /// The first of `lanes` at or after the pointer, cyclically.
    fn lead(&self, lanes: LaneMask) -> Option<u32> {
        (lanes - LaneMask::first(self.pointer)).lowest().or(lanes.lowest())
    }

    /// The next group to run.
    pub(super) fn pick(&mut self) -> Option<Group> {
        self.picks = self.picks.wrapping_add(1);
        let picks = self.picks;
        let mut awake = LaneMask::EMPTY;
        self.asleep.retain(|s| {
            let over = picks.wrapping_sub(s.wakes) < u32::MAX / 2;
            if over {
                awake = awake | s.lanes;
            }
            !over
        });
        self.ready = self.ready | awake;
        if self.ready.is_empty() {
            self.flush();
        }
        if self.ready.is_empty() && !self.asleep.is_empty() {
            self.ready = self.asleep.remove(0).lanes;
        }
        let lead = self.lead(self.ready)?;
        let pc = self.position(lead);
        let group =
            self.ready.lanes().filter(|&l| self.position(l) == pc).fold(LaneMask::EMPTY, |m, l| m | LaneMask::lane(l));
        self.pointer = lead + 1;
        self.ready = self.ready - group;
        self.unmark(group);
        self.flush();
        Some(Group { pc, mask: group })
    }

    /// The lanes by position, for reports.
    pub(super) fn groups(&self) -> Vec<Group> {
        let all = self.asleep.iter().fold(self.ready | self.yielded, |m, s| m | s.lanes);
        let mut groups: Vec<Group> = Vec::new();
        for lane in all.lanes() {
            let pc = self.position(lane);
            match groups.iter_mut().find(|g| g.pc == pc) {
                Some(g) => g.mask = g.mask | LaneMask::lane(lane),
                None => groups.push(Group { pc, mask: LaneMask::lane(lane) }),
            }
        }
        groups
    }
}
