//! Convergence barriers: Volta and later.
//!
//! The rules, each measured on an H200 unless marked:
//! - At a divergent branch the side with fewer lanes runs first, the fall-through side at a tie; the other side is pushed
//!   on the stack of parked groups. When the running group blocks or exits, the top of the stack runs.
//! - Adjacent entries of the stack with the same position merge just before a divergence pushes another entry, and when the
//!   running group issues a memory instruction; never otherwise. Hence arrivals at BSYNC and EXIT are counted as hardware does.
//! - BSYNC holds its group until every lane recorded in the barrier has arrived, has exited, was removed by BREAK or has
//!   executed YIELD since it last arrived at a BSYNC; then all that arrived go on as one group.

use super::list::List;
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

/// A group that arrived at WARPSYNC.COLLECTIVE and goes on by itself afterwards.
#[derive(Clone, Copy)]
struct Member {
    lanes: LaneMask,
    resume: u32,
}

/// The convergence state of one warp on Volta and later.
#[derive(Clone)]
pub struct Barrier {
    running: Group,
    live: LaneMask,
    exited: LaneMask,
    yielded: LaneMask,
    parked: List<Group>,
    held: List<Held>,
    members: List<Member>,
    barriers: [LaneMask; BARRIERS],
}

impl Barrier {
    /// Runs the top of the stack if nobody runs.
    fn schedule(&mut self) {
        if self.running.mask.is_empty()
            && let Some(group) = self.parked.pop()
        {
            self.running = group;
        }
    }

    fn merge_parked(&mut self) {
        if self.parked.len() < 2 {
            return;
        }
        let mut merged = List::new(self.parked[0]);
        for &group in self.parked.iter() {
            match merged.last_mut() {
                Some(top) if top.pc == group.pc => top.mask = top.mask | group.mask,
                _ => merged.push(group),
            }
        }
        self.parked = merged;
    }

    /// Splits off `lanes` of the running group, the others staying in it at `next`. Returns those that left.
    fn take(&mut self, lanes: LaneMask, next: u32) -> Option<Group> {
        let group = Group { pc: self.running.pc, mask: self.running.mask & lanes };
        self.running = Group { pc: next, mask: self.running.mask - lanes };
        (!group.mask.is_empty()).then_some(group)
    }

    /// Makes a released group run: at once if nobody runs, else when the running group stops.
    fn resume(&mut self, group: Group) {
        if group.mask.is_empty() {
            return;
        }
        if self.running.mask.is_empty() {
            self.running = group;
        } else {
            self.parked.push(group);
        }
    }

    /// Releases whatever the current state no longer holds.
    fn settle(&mut self) {
        while !self.held.is_empty() && self.release_one() {}
    }

    fn release_one(&mut self) -> bool {
        for i in 0..self.held.len() {
            let hold = self.held[i].hold;
            match hold {
                Hold::Barrier(bar) => {
                    if self.barrier_missing(bar).is_empty() {
                        self.open_barrier(bar);
                        return true;
                    }
                }
                Hold::WarpSync { wanted, mode } => {
                    if self.sync_missing(wanted).is_empty() {
                        self.open_sync(wanted, mode);
                        return true;
                    }
                }
                Hold::Block => {}
            }
        }
        false
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

    /// Lanes held as `is` says, as one group for each position they go on at.
    fn collect(&mut self, is: impl Fn(Hold) -> bool) -> List<Group> {
        let mut groups: List<Group> = List::new(Group { pc: 0, mask: LaneMask::EMPTY });
        self.held.retain(|h| {
            if !is(h.hold) {
                return true;
            }
            match groups.iter_mut().find(|g| g.pc == h.next) {
                Some(g) => g.mask = g.mask | h.lanes,
                None => groups.push(Group { pc: h.next, mask: h.lanes }),
            }
            false
        });
        groups
    }

    fn open_barrier(&mut self, bar: u8) {
        let groups = self.collect(|h| h == Hold::Barrier(bar));
        let mut passed = LaneMask::EMPTY;
        for &group in groups.iter() {
            passed = passed | group.mask;
            self.resume(group);
        }
        if let Some(b) = self.barriers.get_mut(usize::from(bar)) {
            *b = *b - passed;
        }
    }

    fn open_sync(&mut self, wanted: LaneMask, mode: SyncMode) {
        let is = |h: Hold| h == Hold::WarpSync { wanted, mode };
        if let SyncMode::Collective { resume } = mode {
            for h in self.held.iter().filter(|h| is(h.hold)) {
                self.members.push(Member { lanes: h.lanes, resume });
            }
        }
        let groups = self.collect(is);
        for &group in groups.iter() {
            self.resume(group);
        }
    }
}

impl Convergence for Barrier {
    type Plan = ();

    fn new(_plan: &(), lanes: LaneMask, entry: u32) -> Self {
        let nobody = Group { pc: 0, mask: LaneMask::EMPTY };
        Barrier {
            running: Group { pc: entry, mask: lanes },
            live: lanes,
            exited: LaneMask::EMPTY,
            yielded: LaneMask::EMPTY,
            parked: List::new(nobody),
            held: List::new(Held { lanes: LaneMask::EMPTY, pc: 0, next: 0, hold: Hold::Block }),
            members: List::new(Member { lanes: LaneMask::EMPTY, resume: 0 }),
            barriers: [LaneMask::EMPTY; BARRIERS],
        }
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
        let all = self.running.mask;
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
        self.parked.push(second);
        self.running = first;
        true
    }

    fn indirect(&mut self, targets: &[Group], next: u32) -> bool {
        let mut left: List<Group> = List::new(self.running);
        let mut rest = self.running.mask;
        for t in targets {
            let mask = t.mask & rest;
            if !mask.is_empty() {
                left.push(Group { pc: t.pc, mask });
                rest = rest - mask;
            }
        }
        if !rest.is_empty() {
            match left.iter_mut().find(|g| g.pc == next) {
                Some(g) => g.mask = g.mask | rest,
                None => left.push(Group { pc: next, mask: rest }),
            }
        }
        if left.len() < 2 {
            if let Some(group) = left.pop() {
                self.running = group;
            }
            return false;
        }
        self.merge_parked();
        let order = indirect_order(left);
        for &group in order.iter().skip(1).rev() {
            self.parked.push(group);
        }
        self.running = order[0];
        true
    }

    fn exit(&mut self, lanes: LaneMask, next: u32) -> bool {
        let gone = lanes & self.running.mask;
        self.running = Group { pc: next, mask: self.running.mask - gone };
        self.live = self.live - gone;
        self.exited = self.exited | gone;
        self.yielded = self.yielded - gone;
        self.settle();
        let split = !gone.is_empty() && !self.running.mask.is_empty();
        self.schedule();
        split
    }

    #[inline]
    fn sync_set(&mut self, bar: u8, lanes: LaneMask) {
        self.set_barrier(bar, lanes);
    }

    fn sync(&mut self, bar: u8, lanes: LaneMask, next: u32) {
        let Some(group) = self.take(lanes, next) else { return };
        self.yielded = self.yielded - group.mask;
        self.held.push(Held { lanes: group.mask, pc: group.pc, next, hold: Hold::Barrier(bar) });
        self.settle();
        self.schedule();
    }

    fn break_from(&mut self, bar: u8, lanes: LaneMask) {
        self.set_barrier(bar, self.barrier(bar) - lanes);
        self.settle();
    }

    fn barrier(&self, bar: u8) -> LaneMask {
        self.barriers.get(usize::from(bar)).copied().unwrap_or_default()
    }

    #[inline]
    fn set_barrier(&mut self, bar: u8, mask: LaneMask) {
        if let Some(b) = self.barriers.get_mut(usize::from(bar)) {
            *b = mask;
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
            if let Some(group) = self.take(p.lanes, next) {
                self.held.push(Held { lanes: group.mask, pc, next, hold: Hold::WarpSync { wanted: p.wanted, mode } });
            }
        }
        self.running.pc = next;
        self.settle();
        self.schedule();
    }

    fn end_collective(&mut self, next: u32) {
        let inside = self.running.mask;
        let mut leaving: List<Group> = List::new(self.running);
        self.members.retain(|m| {
            let lanes = m.lanes & inside;
            if !lanes.is_empty() {
                leaving.push(Group { pc: m.resume, mask: lanes });
                m.lanes = m.lanes - lanes;
            }
            !m.lanes.is_empty()
        });
        let known = leaving.iter().fold(LaneMask::EMPTY, |m, g| m | g.mask);
        self.running = Group { pc: next, mask: inside - known };
        for &group in leaving.iter().rev() {
            self.resume(group);
        }
        self.schedule();
    }

    fn yield_now(&mut self, kind: YieldKind, next: u32) {
        self.running.pc = next;
        if kind == YieldKind::Yield {
            self.yielded = self.yielded | self.running.mask;
            self.settle();
        }
    }

    fn wait_block(&mut self, lanes: LaneMask, next: u32) {
        if let Some(group) = self.take(lanes, next) {
            self.held.push(Held { lanes: group.mask, pc: group.pc, next, hold: Hold::Block });
        }
        self.schedule();
    }

    fn block_waiting(&self) -> LaneMask {
        self.held_at(|h| h == Hold::Block)
    }

    fn release_block(&mut self, lanes: LaneMask) {
        let mut groups: List<Group> = List::new(self.running);
        self.held.retain(|h| {
            let go = h.lanes & lanes;
            if h.hold != Hold::Block || go.is_empty() {
                return true;
            }
            match groups.iter_mut().find(|g| g.pc == h.next) {
                Some(g) => g.mask = g.mask | go,
                None => groups.push(Group { pc: h.next, mask: go }),
            }
            h.lanes = h.lanes - go;
            !h.lanes.is_empty()
        });
        for &group in groups.iter() {
            self.resume(group);
        }
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
        self.parked.to_vec()
    }
}

/// The order in which the targets of an indirect branch run: the target of the lowest lane is split from the rest, the smaller
/// of the two runs first (at a tie the lowest lane's), and the rest is split again in the same way.
fn indirect_order(groups: List<Group>) -> List<Group> {
    let mut order = List::new(groups[0]);
    let mut last: List<Group> = List::new(groups[0]);
    let mut left = groups;
    left.sort_by_key(|g| g.mask.0.trailing_zeros());
    let mut start = 0;
    while start < left.len() {
        let size = left[start].mask.count();
        let rest: u32 = left[start + 1..].iter().map(|g| g.mask.count()).sum();
        if start + 1 < left.len() && rest < size {
            last.push(left[start]);
        } else {
            order.push(left[start]);
        }
        start += 1;
    }
    while let Some(group) = last.pop() {
        order.push(group);
    }
    order
}
