//! Convergence barriers: Volta and later.
//!
//! A warp has one running group, a stack of parked groups, a pool of lanes that could run (`pool.rs`), and lanes that wait.
//! The rules, each measured on an H200:
//! - At a divergent branch the side with fewer lanes runs first, the fall-through side at a tie; the other side is pushed
//!   on the stack. Just before, adjacent entries of the stack that stand at one position merge, if both were parked as taken
//!   sides or both as fall-through sides. A memory instruction, as the profiler instruments it, merges such entries of the
//!   whole stack, adjacent or not.
//! - When the running group waits, gives way or exits, the top of the stack runs; if the stack is empty, a group of the pool.
//! - BSYNC holds its lanes until every lane of the barrier is at a BSYNC of it, has exited, or has waited at a WARPSYNC or
//!   given way (YIELD, NANOSLEEP) and not run since. Then the barrier is empty. If the last arrival completes it, the lanes
//!   that wait at the same BSYNC go on at once as one group. If a BREAK completes it, the lanes that waited go on top of the
//!   stack; in any other case they go to the pool.
//! - WARPSYNC lets the lanes pass whose mask lies within the group; the others wait for lanes of the same mask at the same
//!   instruction, and go to the pool when the mask is complete. WARPSYNC.COLLECTIVE matches across instructions: the code up to
//!   ENDCOLLECTIVE runs once for each mask, where the last arrival stands, and the last arrivals go on first.
//! - What waits is released when the warp next picks a group, not earlier.
//! - Lanes that have exited are never waited for. A group at a barrier of the block holds the whole warp.

mod held;
mod parked;

use self::held::{Held, HeldList, Hold};
use self::parked::{ParkedStack, Side};
use super::collective::Collective;
use super::indirect;
use super::pool::Pool;
use super::{Convergence, Group, Reason, SyncMode, SyncPart, Waiting, YieldKind};
use lanescope_ir::LaneMask;
use lanescope_ir::op::control::ControlOp;

const BARRIERS: usize = 16;

const EVERYBODY: LaneMask = LaneMask(u64::MAX);

fn bit(bar: u8) -> u16 {
    1u16.checked_shl(u32::from(bar)).unwrap_or(0)
}

/// The convergence state of one warp on Volta and later.
///
/// The lists never hold more than one entry for each lane; they are empty, and nothing is allocated, until the warp diverges.
#[derive(Clone)]
pub struct Barrier {
    running: Group,
    live: LaneMask,
    exited: LaneMask,
    stack: ParkedStack,
    held: HeldList,
    pool: Pool,
    collective: Collective,
    /// Groups that a completed WARPSYNC.EXCLUSIVE let go; each runs by itself.
    exclusive: Vec<Group>,
    barriers: [LaneMask; BARRIERS],
    /// Barriers that lanes have left by BREAK since the last pick, a bit each.
    broken: u16,
}

impl Barrier {
    /// If nobody runs, picks who does.
    #[inline]
    fn schedule(&mut self) {
        if self.running.mask.is_empty() {
            self.pick();
        }
    }

    fn pick(&mut self) {
        if self.held.iter().any(|h| h.hold == Hold::Block) {
            return;
        }
        self.settle();
        if let Some(group) = self.collective.next() {
            self.running = group;
        } else if let Some(top) = self.stack.pop() {
            self.running = top;
            self.pool.unmark(top.mask);
        } else if !self.exclusive.is_empty() {
            self.running = self.exclusive.remove(0);
            self.pool.unmark(self.running.mask);
        } else if let Some(group) = self.pool.pick().or_else(|| self.forgotten()) {
            self.running = group;
        }
    }

    /// Nobody can run: lanes at a BSYNC whose barrier waits for nobody, although it does not name them (any more), go on;
    /// failing that, lanes at a BSYNC that waits only for lanes in a collective WARPSYNC, and failing that, those that
    /// came last to a BSYNC that waits only for lanes at others. The second happens when some lanes of a loop have
    /// yielded, the others pass its BSYNC and take the same barrier register again, the third when lanes that yield let
    /// the other arm of a branch run, which uses the same registers: an H200 ends such kernels, in which order is not
    /// known.
    fn forgotten(&mut self) -> Option<Group> {
        let collective = self.held.lanes(|h| matches!(h.hold, Hold::Collective { .. }));
        let waits_for = |h: &Held, excused: LaneMask| match h.hold {
            Hold::Barrier(bar) if (self.barrier_missing(bar) - excused).is_empty() => Some(bar),
            _ => None,
        };
        let first = |excused| self.held.iter().find_map(|h| waits_for(h, excused));
        if let Some(bar) = first(LaneMask::EMPTY).or_else(|| first(collective)) {
            self.clear_barrier(bar);
            for w in self.held.take(EVERYBODY, |w| w.hold == Hold::Barrier(bar)) {
                self.pool.add(Group { pc: w.next, mask: w.lanes });
            }
            return self.pool.pick();
        }
        let blocked = self.held.lanes(|h| matches!(h.hold, Hold::Barrier(_) | Hold::Collective { .. }));
        let (bar, pc) = self.held.iter().rev().find_map(|h| waits_for(h, blocked).map(|bar| (bar, h.pc)))?;
        for w in self.held.take(EVERYBODY, |w| w.hold == Hold::Barrier(bar) && w.pc == pc) {
            self.break_from(bar, w.lanes);
            self.pool.add(Group { pc: w.next, mask: w.lanes });
        }
        self.pool.pick()
    }

    /// Makes room for a group that a divergent branch parks.
    fn diverge(&mut self) {
        self.stack.merge_adjacent();
        self.pool.diverged();
    }

    /// Takes `lanes` out of the running group, whose others go on at `next`. `None` if there are none.
    fn take(&mut self, lanes: LaneMask, next: u32) -> Option<LaneMask> {
        let taken = self.running.mask & lanes;
        self.running = Group { pc: next, mask: self.running.mask - taken };
        (!taken.is_empty()).then_some(taken)
    }

    fn hold(&mut self, pc: u32, lanes: LaneMask, next: u32, hold: Hold) {
        if let Some(lanes) = self.take(lanes, next) {
            self.held.push(Held { lanes, pc, next, hold });
        }
    }

    /// Releases whatever the current state no longer holds.
    #[inline]
    fn settle(&mut self) {
        if !self.held.is_empty() {
            while let Some(h) = self.held.iter().copied().find(|h| self.is_open(h)) {
                self.open(&h);
            }
        }
        self.broken = 0;
    }

    fn is_open(&self, h: &Held) -> bool {
        match h.hold {
            Hold::Barrier(bar) => !(h.lanes & self.barrier(bar)).is_empty() && self.barrier_missing(bar).is_empty(),
            Hold::WarpSync { .. } | Hold::Collective { .. } => self.sync_missing(h).is_empty(),
            Hold::Block => false,
        }
    }

    fn open(&mut self, h: &Held) {
        match h.hold {
            Hold::Barrier(bar) => {
                let broken = self.broken & bit(bar) != 0;
                let mut groups: Vec<Group> = Vec::new();
                for w in self.pass_barrier(bar, LaneMask::EMPTY) {
                    match groups.iter_mut().find(|g| g.pc == w.next) {
                        Some(g) => g.mask = g.mask | w.lanes,
                        None => groups.push(Group { pc: w.next, mask: w.lanes }),
                    }
                }
                for group in groups {
                    if broken {
                        self.stack.push(group, Side::FallThrough);
                    } else {
                        self.pool.add(group);
                    }
                }
            }
            Hold::WarpSync { exclusive, .. } => {
                let together = self.held.take(EVERYBODY, |w| h.matches(w));
                let mask = together.iter().fold(LaneMask::EMPTY, |m, w| m | w.lanes);
                let group = Group { pc: h.next, mask };
                if exclusive {
                    self.exclusive.push(group);
                } else {
                    self.pool.add(group);
                }
            }
            Hold::Collective { .. } => {
                let together = self.held.take(EVERYBODY, |w| h.matches(w));
                let mut all = LaneMask::EMPTY;
                for (i, w) in together.iter().enumerate() {
                    if let Hold::Collective { resume, .. } = w.hold {
                        self.collective.enter(w.lanes, resume, i + 1 == together.len());
                    }
                    all = all | w.lanes;
                }
                if let Some(last) = together.last() {
                    self.collective.body(Group { pc: last.next, mask: all });
                }
            }
            Hold::Block => {}
        }
    }

    /// Empties `bar` and takes those who pass off the list: its lanes, and those that have just arrived. Others wait on: a
    /// function that saved the barrier uses it for itself while lanes of its caller wait there, and restores it for them.
    fn pass_barrier(&mut self, bar: u8, arriving: LaneMask) -> Vec<Held> {
        let who = self.barrier(bar) | arriving;
        self.clear_barrier(bar);
        self.held.take(who, |h| h.hold == Hold::Barrier(bar))
    }

    /// Lanes that keep `bar` closed.
    fn barrier_missing(&self, bar: u8) -> LaneMask {
        let excused = self.held.lanes(|h| match h.hold {
            Hold::Barrier(b) => b == bar,
            Hold::WarpSync { .. } => true,
            Hold::Collective { .. } | Hold::Block => false,
        });
        (self.barrier(bar) & self.live) - excused - self.pool.marked()
    }

    /// Lanes for which the WARPSYNC of `h` waits.
    fn sync_missing(&self, h: &Held) -> LaneMask {
        match h.hold {
            Hold::WarpSync { wanted, .. } | Hold::Collective { wanted, .. } => {
                (wanted & self.live) - self.held.lanes(|w| h.matches(w))
            }
            Hold::Barrier(_) | Hold::Block => LaneMask::EMPTY,
        }
    }

    fn clear_barrier(&mut self, bar: u8) {
        if let Some(b) = self.barriers.get_mut(usize::from(bar)) {
            *b = LaneMask::EMPTY;
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
            stack: ParkedStack::default(),
            held: HeldList::default(),
            pool: Pool::new(),
            collective: Collective::default(),
            exclusive: Vec::new(),
            barriers: [LaneMask::EMPTY; BARRIERS],
            broken: 0,
        }
    }

    fn reset(&mut self, lanes: LaneMask, entry: u32) {
        self.running = Group { pc: entry, mask: lanes };
        self.live = lanes;
        self.exited = LaneMask::EMPTY;
        self.stack.clear();
        self.held.clear();
        self.pool.reset();
        self.collective.clear();
        self.exclusive.clear();
        self.barriers = [LaneMask::EMPTY; BARRIERS];
        self.broken = 0;
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
        self.stack.len() > 0
    }

    #[inline]
    fn set_pc(&mut self, pc: u32) {
        self.running.pc = pc;
    }

    #[inline]
    fn memory_issued(&mut self) {
        if self.stack.len() > 1 {
            self.stack.merge_all();
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
        self.diverge();
        if taken.mask.count() < rest.mask.count() {
            self.running = taken;
            self.stack.push(rest, Side::FallThrough);
        } else {
            self.running = rest;
            self.stack.push(taken, Side::Taken);
        }
        true
    }

    fn indirect(&mut self, targets: &[Group], next: u32) -> bool {
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
        if groups.len() > 1 {
            self.diverge();
            indirect::order(&mut groups);
        }
        let Some((&first, others)) = groups.split_first() else { return false };
        self.running = first;
        for &group in others.iter().rev() {
            self.stack.push(group, Side::Taken);
        }
        !others.is_empty()
    }

    fn exit(&mut self, lanes: LaneMask, next: u32) -> bool {
        let Some(gone) = self.take(lanes, next) else { return false };
        let split = !self.running.mask.is_empty();
        self.live = self.live - gone;
        self.exited = self.exited | gone;
        self.collective.forget(gone);
        self.schedule();
        split
    }

    #[inline]
    fn sync_set(&mut self, bar: u8, lanes: LaneMask) {
        if let Some(b) = self.barriers.get_mut(usize::from(bar)) {
            *b = *b | (lanes & self.running.mask);
        }
    }

    fn sync(&mut self, bar: u8, lanes: LaneMask, next: u32) {
        let pc = self.running.pc;
        if self.held.is_empty() && lanes.contains(self.running.mask) {
            // The usual case: nobody waits yet.
            if ((self.barrier(bar) & self.live) - self.running.mask - self.pool.marked()).is_empty() {
                self.clear_barrier(bar);
                self.running.pc = next;
                return;
            }
        }
        let arriving = self.running.mask & lanes;
        self.hold(pc, lanes, next, Hold::Barrier(bar));
        if !arriving.is_empty() && self.barrier_missing(bar).is_empty() {
            for w in self.pass_barrier(bar, arriving) {
                if w.pc == pc {
                    self.running.mask = self.running.mask | w.lanes;
                } else {
                    self.pool.add(Group { pc: w.next, mask: w.lanes });
                }
            }
        }
        self.schedule();
    }

    fn break_from(&mut self, bar: u8, lanes: LaneMask) {
        self.set_barrier(bar, self.barrier(bar) - lanes);
        self.broken |= bit(bar);
    }

    fn barrier(&self, bar: u8) -> LaneMask {
        self.barriers.get(usize::from(bar)).copied().unwrap_or_default()
    }

    fn set_barrier(&mut self, bar: u8, mask: LaneMask) {
        if let Some(b) = self.barriers.get_mut(usize::from(bar)) {
            *b = mask;
        }
    }

    fn is_converged(&self, mask: LaneMask) -> bool {
        self.running.mask.contains(mask & self.live)
    }

    fn warp_sync(&mut self, parts: &[SyncPart], mode: SyncMode, next: u32) {
        let Group { pc, mask: group } = self.running;
        let within = |p: &SyncPart| group.contains(p.wanted & self.live);
        let alone: Vec<Group> =
            parts.iter().filter(|p| within(p)).map(|p| Group { pc: next, mask: p.lanes & group }).collect();
        if mode == SyncMode::Join && alone.len() == parts.len() {
            self.running.pc = next;
            return;
        }
        let passes: Vec<bool> = parts.iter().map(within).collect();
        for (p, passes) in parts.iter().zip(passes) {
            match mode {
                SyncMode::Collective { resume } => {
                    self.hold(pc, p.lanes, next, Hold::Collective { wanted: p.wanted, resume });
                }
                SyncMode::Join | SyncMode::Exclusive if passes => {}
                SyncMode::Join | SyncMode::Exclusive => {
                    let exclusive = mode == SyncMode::Exclusive;
                    if !exclusive {
                        self.pool.mark(p.lanes & self.running.mask);
                    }
                    self.hold(pc, p.lanes, next, Hold::WarpSync { wanted: p.wanted, exclusive });
                }
            }
        }
        self.running.pc = next;
        if mode == SyncMode::Exclusive {
            for later in alone.into_iter().skip(1) {
                if let Some(mask) = self.take(later.mask, next) {
                    self.collective.body(Group { pc: next, mask });
                }
            }
        }
        self.schedule();
    }

    fn end_collective(&mut self, next: u32) {
        let (now, later) = self.collective.leave(self.running.mask, next);
        let mut now = now.into_iter();
        self.running = now.next().unwrap_or(Group { pc: next, mask: LaneMask::EMPTY });
        for group in now.chain(later) {
            self.pool.add(group);
        }
        self.schedule();
    }

    fn yield_now(&mut self, kind: YieldKind, next: u32) {
        self.running.pc = next;
        if self.running.mask == self.live {
            self.pool.pass(self.live);
            return;
        }
        let group = self.running;
        self.running.mask = LaneMask::EMPTY;
        match kind {
            YieldKind::Yield => self.pool.add_yielded(group),
            YieldKind::Sleep => self.pool.add_sleeping(group),
        }
        self.schedule();
    }

    fn wait_block(&mut self, lanes: LaneMask, next: u32) {
        let Group { pc, mask } = self.running;
        if (lanes & mask).is_empty() {
            self.running.pc = next;
            return;
        }
        self.hold(pc, mask, next, Hold::Block);
    }

    fn block_waiting(&self) -> LaneMask {
        self.held.lanes(|h| h.hold == Hold::Block)
    }

    fn release_block(&mut self, lanes: LaneMask) {
        for w in self.held.take(EVERYBODY, |w| w.hold == Hold::Block && !(w.lanes & lanes).is_empty()) {
            let group = Group { pc: w.next, mask: w.lanes };
            if self.running.mask.is_empty() {
                self.running = group;
            } else {
                self.pool.add(group);
            }
        }
    }

    fn waiting(&self) -> Vec<Waiting> {
        let why = |h: &Held| match h.hold {
            Hold::Barrier(bar) => Reason::Barrier { bar, missing: self.barrier_missing(bar) },
            Hold::WarpSync { .. } | Hold::Collective { .. } => Reason::WarpSync { missing: self.sync_missing(h) },
            Hold::Block => Reason::Block,
        };
        self.held.iter().map(|h| Waiting { lanes: h.lanes, pc: h.pc, why: why(h) }).collect()
    }

    fn parked(&self) -> Vec<Group> {
        let stack = self.stack.groups();
        let late = self.exclusive.iter().rev().copied();
        self.pool.groups().into_iter().chain(late).chain(stack).chain(self.collective.waiting()).collect()
    }
}
