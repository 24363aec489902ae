//! Convergence barriers: Volta and later.
//!
//! The rules, as measured on an H200:
//! - At a divergent branch the side with fewer lanes runs first, the fall-through side at a tie; the other side is pushed
//!   on the stack of parked groups. When the running group blocks or exits, the top of the stack runs.
//! - Adjacent entries of the stack that one branch pushed for the same position merge just before a divergence pushes another
//!   entry, and when the running group issues a memory instruction; never otherwise. Hence arrivals at BSYNC and EXIT are
//!   counted as hardware counts them.
//! - BSYNC holds its group until every lane recorded in the barrier has arrived, has exited, was removed by BREAK or has
//!   yielded; then all that arrived go on as one group.

use super::indirect;
use super::{Convergence, Group, Reason, SyncMode, SyncPart, Waiting, YieldKind};
use lanescope_ir::LaneMask;
use lanescope_ir::op::control::ControlOp;

const BARRIERS: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Hold {
    Barrier(u8),
    WarpSync { wanted: LaneMask, mode: SyncMode },
    Block,
}

/// Lanes that cannot run, and where they go on.
#[derive(Clone, Copy)]
struct Held {
    lanes: LaneMask,
    pc: u32,
    next: u32,
    hold: Hold,
}

/// A group that can run but does not.
#[derive(Clone, Copy)]
struct Parked {
    group: Group,
    /// The instruction that parked it. Groups of different origin do not merge.
    from: u32,
}

/// A group that arrived at WARPSYNC.COLLECTIVE and goes on by itself afterwards.
#[derive(Clone, Copy)]
struct Member {
    lanes: LaneMask,
    resume: u32,
}

/// The convergence state of one warp on Volta and later.
///
/// The lists never hold more than one entry for each lane; they are empty, and nothing is allocated, until the warp diverges.
#[derive(Clone)]
pub struct Barrier {
    running: Group,
    live: LaneMask,
    exited: LaneMask,
    /// Parked lanes that gave way at a YIELD.
    yielded: LaneMask,
    parked: Vec<Parked>,
    held: Vec<Held>,
    members: Vec<Member>,
    barriers: [LaneMask; BARRIERS],
}

impl Barrier {
    /// Runs the top of the stack if nobody runs.
    fn schedule(&mut self) {
        if self.running.mask.is_empty()
            && let Some(top) = self.parked.pop()
        {
            self.running = top.group;
            self.yielded = self.yielded - top.group.mask;
        }
    }

    fn merge_parked(&mut self) {
        if self.parked.len() < 2 {
            return;
        }
        self.parked.dedup_by(|above, below| {
            let same = above.group.pc == below.group.pc && above.from == below.from;
            if same {
                below.group.mask = below.group.mask | above.group.mask;
            }
            same
        });
    }

    /// Takes `lanes` out of the running group, whose others go on at `next`. `None` if there are none.
    fn take(&mut self, lanes: LaneMask, next: u32) -> Option<LaneMask> {
        let taken = self.running.mask & lanes;
        self.running = Group { pc: next, mask: self.running.mask - taken };
        (!taken.is_empty()).then_some(taken)
    }

    /// Makes a released group run: at once if nobody runs, else when the running group stops.
    fn resume(&mut self, group: Group, from: u32) {
        if group.mask.is_empty() {
            return;
        }
        if self.running.mask.is_empty() {
            self.running = group;
        } else {
            self.parked.push(Parked { group, from });
        }
    }

    /// Releases whatever the current state no longer holds.
    #[inline]
    fn settle(&mut self) {
        if !self.held.is_empty() {
            self.settle_held();
        }
    }

    fn settle_held(&mut self) {
        while let Some(hold) = self.held.iter().map(|h| h.hold).find(|&h| self.is_open(h)) {
            self.open(hold);
        }
    }

    fn is_open(&self, hold: Hold) -> bool {
        match hold {
            Hold::Barrier(bar) => self.barrier_missing(bar).is_empty(),
            Hold::WarpSync { wanted, .. } => self.sync_missing(wanted).is_empty(),
            Hold::Block => false,
        }
    }

    fn open(&mut self, hold: Hold) {
        if let Hold::WarpSync { mode: SyncMode::Collective { resume }, .. } = hold {
            let entering = self.held_at(|h| h == hold);
            self.forget_members(entering);
            let members = self.held.iter().filter(|h| h.hold == hold).map(|h| Member { lanes: h.lanes, resume });
            self.members.extend(members);
        }
        let passed = self.release(hold, LaneMask(u64::MAX));
        if let Hold::Barrier(bar) = hold
            && let Some(b) = self.barriers.get_mut(usize::from(bar))
        {
            *b = *b - passed;
        }
    }

    /// Lets the lanes of `lanes` that wait for `hold` go on, as one group for each position. Returns them.
    fn release(&mut self, hold: Hold, lanes: LaneMask) -> LaneMask {
        let mut groups: Vec<(Group, u32)> = Vec::new();
        let mut passed = LaneMask::EMPTY;
        self.held.retain_mut(|h| {
            let go = h.lanes & lanes;
            if h.hold != hold || go.is_empty() {
                return true;
            }
            passed = passed | go;
            match groups.iter_mut().find(|(g, _)| g.pc == h.next) {
                Some((g, _)) => g.mask = g.mask | go,
                None => groups.push((Group { pc: h.next, mask: go }, h.pc)),
            }
            h.lanes = h.lanes - go;
            !h.lanes.is_empty()
        });
        for (group, from) in groups {
            self.resume(group, from);
        }
        passed
    }

    /// `lanes` are no longer inside a collective region.
    fn forget_members(&mut self, lanes: LaneMask) {
        self.members.retain_mut(|m| {
            m.lanes = m.lanes - lanes;
            !m.lanes.is_empty()
        });
    }

    fn held_at(&self, is: impl Fn(Hold) -> bool) -> LaneMask {
        self.held.iter().filter(|h| is(h.hold)).fold(LaneMask::EMPTY, |m, h| m | h.lanes)
    }

    fn barrier_missing(&self, bar: u8) -> LaneMask {
        let arrived = self.held_at(|h| h == Hold::Barrier(bar));
        (self.barrier(bar) & self.live) - arrived - self.yielded
    }

    fn sync_missing(&self, wanted: LaneMask) -> LaneMask {
        let arrived = self.held_at(|h| matches!(h, Hold::WarpSync { wanted: w, .. } if w == wanted));
        (wanted & self.live) - arrived
    }

    fn hold(&mut self, lanes: LaneMask, next: u32, hold: Hold) {
        let pc = self.running.pc;
        if let Some(lanes) = self.take(lanes, next) {
            self.held.push(Held { lanes, pc, next, hold });
        }
    }
}

impl Convergence for Barrier {
    type Plan = ();

    fn new(_plan: &(), lanes: LaneMask, entry: u32) -> Self {
        Barrier {
            running: Group { pc: entry, mask: lanes },
            live: lanes,
            exited: LaneMask::EMPTY,
            yielded: LaneMask::EMPTY,
            parked: Vec::new(),
            held: Vec::new(),
            members: Vec::new(),
            barriers: [LaneMask::EMPTY; BARRIERS],
        }
    }

    fn reset(&mut self, lanes: LaneMask, entry: u32) {
        self.running = Group { pc: entry, mask: lanes };
        self.live = lanes;
        self.exited = LaneMask::EMPTY;
        self.yielded = LaneMask::EMPTY;
        self.parked.clear();
        self.held.clear();
        self.members.clear();
        self.barriers = [LaneMask::EMPTY; BARRIERS];
    }

    fn supports(_op: &ControlOp) -> bool {
        true
    }

    #[inline]
    fn current(&self) -> Option<Group> {
        (!self.running.mask.is_empty()).then_some(self.running)
    }

    #[inline]
    fn live(&self) -> LaneMask {
        self.live
    }

    fn exited(&self) -> LaneMask {
        self.exited
    }

    #[inline]
    fn has_parked(&self) -> bool {
        !self.parked.is_empty()
    }

    #[inline]
    fn set_pc(&mut self, pc: u32) {
        self.running.pc = pc;
    }

    #[inline]
    fn memory_issued(&mut self) {
        if self.parked.len() > 1 {
            self.merge_parked();
        }
    }

    #[inline]
    fn branch(&mut self, taken: LaneMask, target: u32, next: u32) -> bool {
        let Group { pc: from, mask: all } = self.running;
        let taken = Group { pc: target, mask: taken & all };
        let rest = Group { pc: next, mask: all - taken.mask };
        if taken.mask.is_empty() {
            self.running = rest;
            return false;
        }
        if rest.mask.is_empty() {
            self.running = taken;
            return false;
        }
        self.merge_parked();
        let (first, second) = if taken.mask.count() < rest.mask.count() { (taken, rest) } else { (rest, taken) };
        self.parked.push(Parked { group: second, from });
        self.running = first;
        true
    }

    fn indirect(&mut self, targets: &[Group], next: u32) -> bool {
        let from = self.running.pc;
        let mut groups: Vec<Group> = Vec::with_capacity(targets.len() + 1);
        let mut rest = self.running.mask;
        let leftover = Group { pc: next, mask: rest - targets.iter().fold(LaneMask::EMPTY, |m, t| m | t.mask) };
        for t in targets.iter().chain([&leftover]) {
            let mask = t.mask & rest;
            rest = rest - mask;
            match groups.iter_mut().find(|g| g.pc == t.pc) {
                _ if mask.is_empty() => {}
                Some(g) => g.mask = g.mask | mask,
                None => groups.push(Group { pc: t.pc, mask }),
            }
        }
        let Some((&first, others)) = groups.split_first() else { return false };
        if others.is_empty() {
            self.running = first;
            return false;
        }
        self.merge_parked();
        indirect::order(&mut groups);
        self.running = groups[0];
        self.parked.extend(groups.iter().skip(1).rev().map(|&group| Parked { group, from }));
        true
    }

    fn exit(&mut self, lanes: LaneMask, next: u32) -> bool {
        let Some(gone) = self.take(lanes, next) else { return false };
        let split = !self.running.mask.is_empty();
        self.live = self.live - gone;
        self.exited = self.exited | gone;
        if !self.members.is_empty() {
            self.forget_members(gone);
        }
        self.settle();
        self.schedule();
        split
    }

    #[inline]
    fn sync_set(&mut self, bar: u8, lanes: LaneMask) {
        self.set_barrier(bar, lanes);
    }

    fn sync(&mut self, bar: u8, lanes: LaneMask, next: u32) {
        if lanes.contains(self.running.mask) && self.barrier(bar) & self.live == self.running.mask {
            self.running.pc = next;
            self.set_barrier(bar, LaneMask::EMPTY);
            return;
        }
        self.hold(lanes, next, Hold::Barrier(bar));
        self.settle();
        self.schedule();
    }

    fn break_from(&mut self, bar: u8, lanes: LaneMask) {
        self.set_barrier(bar, self.barrier(bar) - lanes);
    }

    fn barrier(&self, bar: u8) -> LaneMask {
        self.barriers.get(usize::from(bar)).copied().unwrap_or_default()
    }

    #[inline]
    fn set_barrier(&mut self, bar: u8, mask: LaneMask) {
        if let Some(b) = self.barriers.get_mut(usize::from(bar)) {
            *b = mask;
            self.settle();
        }
    }

    fn is_converged(&self, mask: LaneMask) -> bool {
        self.running.mask.contains(mask & self.live)
    }

    fn warp_sync(&mut self, parts: &[SyncPart], mode: SyncMode, next: u32) {
        // Plain masks that the group satisfies by itself do not split it, even if they differ from lane to lane.
        if mode == SyncMode::Join && parts.iter().all(|p| self.is_converged(p.wanted)) {
            self.running.pc = next;
            return;
        }
        let pc = self.running.pc;
        for p in parts {
            self.running.pc = pc;
            self.hold(p.lanes, next, Hold::WarpSync { wanted: p.wanted, mode });
        }
        self.running.pc = next;
        self.settle();
        self.schedule();
    }

    fn end_collective(&mut self, next: u32) {
        let Group { pc: from, mask: inside } = self.running;
        let leaving: Vec<Group> = self
            .members
            .iter()
            .map(|m| Group { pc: m.resume, mask: m.lanes & inside })
            .filter(|g| !g.mask.is_empty())
            .collect();
        self.forget_members(inside);
        let known = leaving.iter().fold(LaneMask::EMPTY, |m, g| m | g.mask);
        self.running = Group { pc: next, mask: inside - known };
        for group in leaving.into_iter().rev() {
            self.resume(group, from);
        }
    }

    fn yield_now(&mut self, kind: YieldKind, next: u32) {
        let from = self.running.pc;
        self.running.pc = next;
        let gives_way = self.running;
        if self.parked.is_empty() && self.held.is_empty() {
            return;
        }
        self.running.mask = LaneMask::EMPTY;
        if kind == YieldKind::Yield {
            self.yielded = self.yielded | gives_way.mask;
            self.settle();
        }
        self.parked.insert(0, Parked { group: gives_way, from });
        self.schedule();
    }

    fn wait_block(&mut self, lanes: LaneMask, next: u32) {
        self.hold(lanes, next, Hold::Block);
        self.schedule();
    }

    fn block_waiting(&self) -> LaneMask {
        self.held_at(|h| h == Hold::Block)
    }

    fn release_block(&mut self, lanes: LaneMask) {
        self.release(Hold::Block, lanes);
    }

    fn waiting(&self) -> Vec<Waiting> {
        let why = |h: &Held| match h.hold {
            Hold::Barrier(bar) => Reason::Barrier { bar, missing: self.barrier_missing(bar) },
            Hold::WarpSync { wanted, .. } => Reason::WarpSync { missing: self.sync_missing(wanted) },
            Hold::Block => Reason::Block,
        };
        self.held.iter().map(|h| Waiting { lanes: h.lanes, pc: h.pc, why: why(h) }).collect()
    }

    fn parked(&self) -> Vec<Group> {
        self.parked.iter().map(|p| p.group).collect()
    }
}
