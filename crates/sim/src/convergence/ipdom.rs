//! Joins at immediate post-dominators: for PTX, which names no reconvergence point.
//!
//! A divergent branch opens a join at its immediate post-dominator ([`JoinPoints`]). The side with fewer lanes runs
//! first, the fall-through side at a tie, the targets of an indirect branch in the order measured for the hardware;
//! the others wait on a stack. Lanes that reach their innermost join wait for the others of that branch and then run
//! next, before anything that waits on the stack. Lanes that exit are waited for nowhere. A call opens a join at its
//! return, which lanes reach by returning, so that recursion does not meet its own callers.
//!
//! [`Ipdom`] adds what PTX promises since Volta, that every thread makes progress though its warp has diverged:
//! - Lanes that wait at a WARPSYNC do not keep others from running, whatever their place on the stack. Once its lanes are
//!   there, those at one instruction go on as one group. If an exchange (shuffle, vote ...) follows, lanes meet at
//!   instructions that differ in their operands only, and exchange with all of them: [`Convergence::met`].
//! - A group that goes round a loop without any change, sleeps, or has gone round for very long gives way. It runs again
//!   after the others have. If nobody else can run, the lanes of the newest join go on without those that are missing: the
//!   owner of a lock that waits behind the loop in which the others spin.
//! - The same happens when all lanes wait for each other at WARPSYNCs and joins: PTX knows no joins that could block.
//!
//! A group at a barrier of the block holds its whole warp, as on the hardware.

use super::join_points::{JoinPoints, NONE};
use super::joins::{Joins, Path};
use super::{Convergence, Group, Reason, Spins, SyncMode, SyncPart, Waiting, YieldKind, indirect};
use lanescope_ir::LaneMask;
use lanescope_ir::op::control::{ControlOp, WarpSyncMode};

/// Joins at immediate post-dominators, with progress for every lane: PTX since Volta.
pub type Ipdom = PostDominator<true>;

/// The same for warps of 64 lanes.
pub type WideIpdom = PostDominator<true, 64>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Hold {
    WarpSync { wanted: LaneMask, exchange: Option<u32> },
    Block,
}

/// Lanes that cannot run, and where they go on.
#[derive(Clone, Copy)]
struct Held {
    lanes: LaneMask,
    pc: u32,
    next: u32,
    join: u32,
    hold: Hold,
}

impl Held {
    /// Whether both wait for the same.
    fn meets(&self, other: &Held) -> bool {
        self.hold == other.hold
    }
}

const NOBODY: Path = Path { pc: 0, mask: LaneMask::EMPTY, join: NONE, spun: false };

/// Joins at immediate post-dominators. `TURNS`: whether groups give way to others; `LANES`: lanes of a warp.
///
/// Nothing is allocated until the warp diverges or calls.
#[derive(Clone)]
pub struct PostDominator<const TURNS: bool, const LANES: u32 = 32> {
    points: JoinPoints,
    running: Path,
    /// Where the running group reaches its innermost join.
    stop: u32,
    live: LaneMask,
    exited: LaneMask,
    /// The last runs next.
    stack: Vec<Path>,
    held: Vec<Held>,
    joins: Joins,
    met: Vec<Vec<Group>>,
}

impl<const TURNS: bool, const LANES: u32> PostDominator<TURNS, LANES> {
    fn run(&mut self, path: Path) {
        self.running = Path { spun: false, ..path };
        self.stop = self.joins.place(path.join);
    }

    fn halt(&mut self) {
        self.running.mask = LaneMask::EMPTY;
        self.stop = NONE;
    }

    /// If nobody runs, picks who does. The others have a reason to try again: the group that ran has come further.
    fn schedule(&mut self) {
        if self.running.mask.is_empty() {
            self.stack.iter_mut().for_each(|p| p.spun = false);
            self.pick();
        }
    }

    fn pick(&mut self) {
        let held = |hold: fn(&Hold) -> bool| self.held.iter().any(|h| hold(&h.hold));
        if held(|h| *h == Hold::Block) || !TURNS && held(|h| *h != Hold::Block) {
            self.halt();
            return;
        }
        let fresh = self.stack.iter().rposition(|p| !p.spun).map(|at| self.stack.remove(at));
        let split = || TURNS.then(|| self.joins.split_newest()).flatten();
        let Some(path) = fresh.or_else(split).or_else(|| self.stack.pop()) else {
            self.halt();
            return;
        };
        if !path.spun {
            self.run(path);
            return;
        }
        self.stack.iter_mut().for_each(|p| p.spun = false);
        self.run(path);
    }

    /// Takes `lanes` out of the running group, whose others go on at `next`.
    fn take(&mut self, lanes: LaneMask, next: u32) -> LaneMask {
        let taken = self.running.mask & lanes;
        self.running.mask = self.running.mask - taken;
        self.running.pc = next;
        taken
    }

    /// The running group goes on as `groups`, in this order; the last is empty or falls through.
    fn spread(&mut self, groups: &[Path]) -> bool {
        let Some((&first, others)) = groups.split_first() else { return false };
        self.stack.extend(others.iter().rev());
        self.run(first);
        !others.is_empty()
    }

    /// Targets with their lanes, those of the group that are in none at `next`.
    fn groups(&self, targets: &[Group], next: u32) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::with_capacity(targets.len() + 1);
        let mut rest = self.running.mask;
        let left = Group { pc: next, mask: rest - targets.iter().fold(LaneMask::EMPTY, |m, t| m | t.mask) };
        for t in targets.iter().chain([&left]) {
            let mask = t.mask & rest;
            rest = rest - mask;
            match groups.iter_mut().find(|g| g.pc == t.pc) {
                _ if mask.is_empty() => {}
                Some(g) => g.mask = g.mask | mask,
                None => groups.push(Group { pc: t.pc, mask }),
            }
        }
        indirect::order(&mut groups);
        groups
    }

    /// The join that a branch at the running group's instruction opens.
    fn open(&mut self) -> u32 {
        let Path { pc, mask, join, .. } = self.running;
        match self.points.join(pc) {
            NONE => join,
            // The group is on its way there already.
            meet if meet == self.joins.place(join) => join,
            meet => self.joins.open(meet, mask, join, false),
        }
    }

    /// Lets the lanes of complete WARPSYNCs go.
    fn settle(&mut self) {
        let syncs = |h: &Held| matches!(h.hold, Hold::WarpSync { .. });
        while let Some(h) = self.held.iter().find(|h| syncs(h) && self.missing(h).is_empty()).copied() {
            let (go, stay): (Vec<Held>, Vec<Held>) = self.held.iter().partition(|o| o.meets(&h));
            self.held = stay;
            let mut paths: Vec<Path> = Vec::new();
            let mut done = Vec::new();
            for g in &go {
                let own = Path { pc: g.next, mask: g.lanes, join: g.join, spun: false };
                let Some(p) = paths.iter_mut().find(|p| p.pc == g.next) else {
                    paths.push(own);
                    continue;
                };
                // Lanes of several branches: they go on to the join that they have in common.
                let common = self.joins.common(p.join, g.join);
                self.joins.leave(p.join, common, p.mask, &mut done);
                self.joins.leave(g.join, common, g.lanes, &mut done);
                *p = Path { mask: p.mask | g.lanes, join: common, ..own };
            }
            if paths.len() > 1 && matches!(h.hold, Hold::WarpSync { exchange: Some(_), .. }) {
                self.met.push(paths.iter().map(|p| Group { pc: p.pc, mask: p.mask }).collect());
            }
            self.stack.append(&mut done);
            self.stack.append(&mut paths);
        }
    }

    fn missing(&self, h: &Held) -> LaneMask {
        match h.hold {
            Hold::WarpSync { wanted, .. } => {
                let here = self.held.iter().filter(|o| o.meets(h)).fold(LaneMask::EMPTY, |m, o| m | o.lanes);
                (wanted & self.live) - here
            }
            Hold::Block => LaneMask::EMPTY,
        }
    }
}

impl<const TURNS: bool, const LANES: u32> Convergence for PostDominator<TURNS, LANES> {
    type Plan = JoinPoints;

    const LANES: u32 = LANES;

    const CALLS: bool = true;
    const MEETS: bool = true;
    const SPINS: Spins = if TURNS { Spins::GiveWay } else { Spins::Stuck };

    fn new(plan: &JoinPoints, lanes: LaneMask, entry: u32) -> Self {
        PostDominator {
            points: plan.clone(),
            running: Path { pc: entry, mask: lanes, ..NOBODY },
            stop: NONE,
            live: lanes,
            exited: LaneMask::EMPTY,
            stack: Vec::new(),
            held: Vec::new(),
            joins: Joins::default(),
            met: Vec::new(),
        }
    }

    fn reset(&mut self, lanes: LaneMask, entry: u32) {
        self.running = Path { pc: entry, mask: lanes, ..NOBODY };
        self.stop = NONE;
        self.live = lanes;
        self.exited = LaneMask::EMPTY;
        self.stack.clear();
        self.held.clear();
        self.joins.clear();
        self.met.clear();
    }

    fn supports(op: &ControlOp) -> bool {
        match op {
            ControlOp::Branch { .. }
            | ControlOp::BranchIndirect { .. }
            | ControlOp::Call { .. }
            | ControlOp::CallIndirect { .. }
            | ControlOp::CallExternal { .. }
            | ControlOp::Return { .. }
            | ControlOp::Exit { .. }
            | ControlOp::Yield
            | ControlOp::Sleep
            | ControlOp::Trap
            | ControlOp::Breakpoint => true,
            ControlOp::WarpSync { mode, .. } => matches!(mode, WarpSyncMode::Mask(_) | WarpSyncMode::All),
            _ => false,
        }
    }

    #[inline]
    fn current(&self) -> Option<Group> {
        (!self.running.mask.is_empty()).then_some(Group { pc: self.running.pc, mask: self.running.mask })
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
        self.running.mask != self.live
    }

    #[inline]
    fn set_pc(&mut self, pc: u32) {
        self.running.pc = pc;
    }

    #[inline]
    fn stop_pc(&self) -> Option<u32> {
        (self.stop != NONE).then_some(self.stop)
    }

    fn arrive(&mut self) {
        let Path { mask, join, .. } = self.running;
        match self.joins.arrive(join, mask) {
            Some(path) => self.run(path),
            None => {
                self.halt();
                self.schedule();
            }
        }
    }

    fn memory_issued(&mut self) {}

    fn branch(&mut self, taken: LaneMask, target: u32, next: u32) -> bool {
        let Path { mask: all, join, .. } = self.running;
        let taken = taken & all;
        let rest = all - taken;
        if taken.is_empty() || rest.is_empty() {
            let pc = if rest.is_empty() { target } else { next };
            self.run(Path { pc, mask: all, join, spun: false });
            return false;
        }
        let join = self.open();
        let taken = Path { pc: target, mask: taken, join, spun: false };
        let rest = Path { pc: next, mask: rest, join, spun: false };
        let (first, second) = if taken.mask.count() < rest.mask.count() { (taken, rest) } else { (rest, taken) };
        self.spread(&[first, second])
    }

    fn indirect(&mut self, targets: &[Group], next: u32) -> bool {
        let groups = self.groups(targets, next);
        let join = if groups.len() > 1 { self.open() } else { self.running.join };
        let paths: Vec<Path> = groups.into_iter().map(|g| Path { pc: g.pc, mask: g.mask, join, spun: false }).collect();
        self.spread(&paths)
    }

    fn call(&mut self, targets: &[Group], next: u32) -> bool {
        let all = self.running.mask;
        let callers = targets.iter().fold(LaneMask::EMPTY, |m, t| m | t.mask) & all;
        if callers.is_empty() {
            self.running.pc = next;
            return false;
        }
        let outside = self.running.join;
        let join = self.joins.open(next, all, outside, true);
        if join == outside {
            return self.indirect(targets, next);
        }
        // Lanes that do not call are back already.
        self.joins.arrive(join, all - callers);
        self.running.mask = callers;
        let paths: Vec<Path> = self
            .groups(targets, next)
            .into_iter()
            .map(|g| Path { pc: g.pc, mask: g.mask, join, spun: false })
            .collect();
        self.spread(&paths) || callers != all
    }

    fn ret(&mut self, targets: &[Group], next: u32) -> bool {
        let Path { join, mask: all, .. } = self.running;
        let call = self.joins.call(join);
        let mut done = Vec::new();
        let mut others = Vec::new();
        for t in targets {
            let lanes = t.mask & all;
            match call {
                Some((call, pc)) if pc == t.pc && !lanes.is_empty() => {
                    self.joins.leave(join, call, lanes, &mut done);
                    done.extend(self.joins.arrive(call, lanes));
                    self.take(lanes, next);
                }
                _ => others.push(Group { pc: t.pc, mask: lanes }),
            }
        }
        let split = self.running.mask != all && !self.running.mask.is_empty();
        self.stack.append(&mut done);
        if self.running.mask.is_empty() {
            self.halt();
            self.schedule();
            return split;
        }
        let paths: Vec<Path> = self
            .groups(&others, next)
            .into_iter()
            .map(|g| Path { pc: g.pc, mask: g.mask, join, spun: false })
            .collect();
        self.spread(&paths) || split
    }

    fn exit(&mut self, lanes: LaneMask, next: u32) -> bool {
        let join = self.running.join;
        let gone = self.take(lanes, next);
        if gone.is_empty() {
            return false;
        }
        let split = !self.running.mask.is_empty();
        self.live = self.live - gone;
        self.exited = self.exited | gone;
        let mut done = Vec::new();
        self.joins.leave(join, NONE, gone, &mut done);
        self.stack.append(&mut done);
        self.settle();
        self.schedule();
        split
    }

    fn sync_set(&mut self, _bar: u8, _lanes: LaneMask) {}
    fn sync(&mut self, _bar: u8, _lanes: LaneMask, next: u32) {
        self.running.pc = next;
    }
    fn break_from(&mut self, _bar: u8, _lanes: LaneMask) {}
    fn barrier(&self, _bar: u8) -> LaneMask {
        LaneMask::EMPTY
    }
    fn set_barrier(&mut self, _bar: u8, _mask: LaneMask) {}

    fn is_converged(&self, mask: LaneMask) -> bool {
        self.running.mask.contains(mask & self.live)
    }

    fn warp_sync(&mut self, parts: &[SyncPart], _mode: SyncMode, next: u32) {
        let Path { pc, mask: group, join, .. } = self.running;
        let exchange = self.points.exchange(pc);
        let live = self.live;
        let here = |p: &&SyncPart| group.contains(p.wanted & live);
        if exchange.is_some() && parts.iter().filter(here).count() > 1 {
            // The lanes of each mask exchange among themselves, though all go on as one group.
            self.met.extend(parts.iter().filter(here).map(|p| vec![Group { pc: next, mask: p.lanes }]));
        }
        for p in parts.iter().filter(|p| !here(p)) {
            let lanes = self.take(p.lanes, next);
            if !lanes.is_empty() {
                self.held.push(Held { lanes, pc, next, join, hold: Hold::WarpSync { wanted: p.wanted, exchange } });
            }
        }
        self.running.pc = next;
        if self.running.mask != group {
            self.settle();
            self.schedule();
        }
    }

    fn end_collective(&mut self, next: u32) {
        self.running.pc = next;
    }

    fn met(&mut self) -> Vec<Vec<Group>> {
        std::mem::take(&mut self.met)
    }

    fn yield_now(&mut self, _kind: YieldKind, next: u32) {
        self.running.pc = next;
        self.give_way();
    }

    fn give_way(&mut self) {
        if !TURNS || self.running.mask == self.live {
            return;
        }
        let own = Path { spun: true, ..self.running };
        self.halt();
        match self.stack.iter_mut().find(|p| p.spun && p.pc == own.pc && p.join == own.join) {
            Some(p) => p.mask = p.mask | own.mask,
            None => self.stack.insert(0, own),
        }
        self.pick();
    }

    fn wait_block(&mut self, lanes: LaneMask, next: u32) {
        let Path { pc, mask, join, .. } = self.running;
        if (lanes & mask).is_empty() {
            self.running.pc = next;
            return;
        }
        self.halt();
        self.held.push(Held { lanes: mask, pc, next, join, hold: Hold::Block });
    }

    fn block_waiting(&self) -> LaneMask {
        self.held.iter().filter(|h| h.hold == Hold::Block).fold(LaneMask::EMPTY, |m, h| m | h.lanes)
    }

    fn release_block(&mut self, lanes: LaneMask) {
        let (go, stay): (Vec<Held>, Vec<Held>) =
            self.held.iter().partition(|h| h.hold == Hold::Block && !(h.lanes & lanes).is_empty());
        self.held = stay;
        for h in go {
            let path = Path { pc: h.next, mask: h.lanes, join: h.join, spun: false };
            if self.running.mask.is_empty() {
                self.run(path);
            } else {
                self.stack.push(path);
            }
        }
    }

    fn waiting(&self) -> Vec<Waiting> {
        let held = self.held.iter().map(|h| {
            let why = match h.hold {
                Hold::WarpSync { .. } => Reason::WarpSync { missing: self.missing(h) },
                Hold::Block => Reason::Block,
            };
            Waiting { lanes: h.lanes, pc: h.pc, why }
        });
        let joins = self.joins.waiting().map(|(pc, lanes)| Waiting { lanes, pc, why: Reason::Join });
        held.chain(joins).collect()
    }

    fn parked(&self) -> Vec<Group> {
        self.stack.iter().map(|p| Group { pc: p.pc, mask: p.mask }).collect()
    }
}
