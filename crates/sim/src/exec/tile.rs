//! Some warps of a block that run in lockstep.
//!
//! Lockstep is only an order of execution: warps that stand at the same instruction execute it one after the other in one
//! dispatch, up to the next instruction that may send them different ways. The lowest position goes first, so that warps
//! gather again behind branches; every so often the warp that has waited longest goes first, so that none starves while
//! another spins. Eight warps a tile keep the hot registers in the first-level cache.
//!
//! A warp of 64 lanes is two rows of 32 that share one convergence state and are always executed together, one after the
//! other: what works on rows does not know of it.

use std::cell::Cell;

use lanescope_ir::{BlockWork, LaneMask};

use super::barrier::Barriers;
use super::check::Checker;
use super::counters::Counters;
use super::flow;
use super::meeting::Meeting;
use super::mem::Access;
use super::poison::Poison;
use super::printed::Printed;
use super::program::{BarrierInst, Inst, Kind, NONE};
use super::record::BlockRecord;
use super::spin::Watch;
use super::trace::Tracer;
use super::warp::Across;
use super::{BlockCx, Where, rows};
use crate::convergence::{Convergence, Spins};
use crate::error::SimError;
use crate::launch::WarpSum;
use crate::memory::l1::L1;
use crate::memory::local::Local;
use crate::memory::words::lanes;
use crate::rows::{LANES, PredOperand, Row, RowFile, Run, add};

/// Every so many choices the warp that has waited longest goes first.
const FAIR: u64 = 64;

/// One warp.
pub(crate) struct Warp<C> {
    pub(crate) conv: C,
    /// Position of the running group.
    pub(crate) pc: u32,
    /// Its lanes; none if nobody can run.
    pub(crate) mask: u64,
    /// Lanes that exist.
    pub(crate) lanes: u64,
    pub(crate) missing: u32,
    pub(crate) exited: u32,
    /// Whether there are groups besides the running one.
    pub(crate) parked: bool,
    /// When it ran last.
    stamp: u64,
    /// Instructions it has issued, and the lanes that took part, summed over them.
    pub(crate) issued: u64,
    worked: u64,
    /// Stores and reductions it has issued, for models on which spinning lanes are stuck.
    pub(crate) stores: u64,
    /// Loads and atomics that had to wait for a sector that the first-level cache did not have: small, and large.
    pub(crate) waits: [u64; 2],
    /// Result of the last reducing block barrier.
    pub(crate) result: u32,
    /// Exchanges of lanes at different instructions that are under way.
    pub(crate) meetings: Vec<Meeting>,
}

impl<C: Convergence> Warp<C> {
    fn new(plan: &C::Plan, lanes: u64) -> Warp<C> {
        let mut w = Warp {
            conv: C::new(plan, LaneMask(lanes), 0),
            pc: 0,
            mask: 0,
            lanes,
            missing: C::LANES - lanes.count_ones(),
            exited: 0,
            parked: false,
            stamp: 0,
            issued: 0,
            worked: 0,
            stores: 0,
            waits: [0; 2],
            result: 0,
            meetings: Vec::new(),
        };
        w.refresh();
        w
    }

    /// Takes over who runs from the convergence state.
    pub(crate) fn refresh(&mut self) {
        loop {
            (self.pc, self.mask) = match self.conv.current() {
                Some(g) => (g.pc, g.mask.0),
                None => (0, 0),
            };
            if self.mask == 0 || self.conv.stop_pc() != Some(self.pc) {
                break;
            }
            self.conv.arrive();
        }
        self.parked = self.conv.has_parked();
    }

    /// The running group goes on elsewhere as it is.
    pub(crate) fn go(&mut self, pc: u32) {
        self.pc = pc;
        if self.conv.stop_pc() == Some(pc) {
            self.conv.set_pc(pc);
            self.refresh();
        }
    }
}

/// Some lanes of one warp that issue an instruction together.
#[derive(Clone, Copy)]
pub(crate) struct Issue {
    /// Index of the warp in its tile.
    pub(crate) warp: u32,
    /// The lanes.
    pub(crate) active: u64,
}

/// Trips of one loop by the lanes of one row.
#[derive(Clone)]
pub(crate) struct LoopState {
    /// Lanes that come back to the header.
    pub(crate) back: u32,
    /// Trips that the lanes of `mask` have made together and that `trips` does not have yet.
    mask: u32,
    pending: u32,
    trips: Row,
}

impl Default for LoopState {
    fn default() -> LoopState {
        LoopState { back: 0, mask: 0, pending: 0, trips: Row::ZERO }
    }
}

impl LoopState {
    fn settle(&mut self) {
        if self.pending != 0 {
            add(&mut self.trips, self.mask, std::mem::take(&mut self.pending));
        }
    }
}

/// What a tile works on besides its own.
pub(crate) struct Env<'a> {
    pub(crate) block: &'a BlockCx<'a>,
    pub(crate) shared: &'a [Cell<u32>],
    pub(crate) barriers: &'a mut Barriers,
    pub(crate) counters: &'a mut Counters,
    /// Issues of the block.
    pub(crate) clock: &'a mut u64,
    pub(crate) hint: &'a mut usize,
    pub(crate) printed: &'a mut Printed,
    /// What the block has done.
    pub(crate) work: &'a mut BlockWork,
    /// Its first-level cache, if it is modelled.
    pub(crate) l1: Option<&'a mut [L1; 2]>,
    pub(crate) trace: Option<&'a mut Tracer>,
    pub(crate) poison: Option<&'a mut Poison>,
    pub(crate) record: Option<&'a mut BlockRecord>,
    pub(crate) check: Option<&'a mut Checker>,
}

/// Warps in lockstep.
pub(crate) struct Tile<C> {
    pub(crate) file: RowFile,
    pub(crate) warps: Vec<Warp<C>>,
    /// Index of the first warp in the block.
    pub(crate) first: u32,
    pub(crate) local: Vec<Local>,
    /// For each loop and row.
    pub(crate) loops: Vec<LoopState>,
    stamp: u64,
    runs: Vec<Run>,
    /// For each warp, if the model looks for spinning lanes.
    pub(crate) watches: Vec<Watch>,
}

impl<C: Convergence> Tile<C> {
    pub(crate) fn new(block: &BlockCx<'_>, plan: &C::Plan, first: u32, lanes: &[u64]) -> Tile<C> {
        let cx = block.cx;
        let n = lanes.len() * rows::<C>();
        let loops = cx.program.loops.headers.len();
        let mut tile = Tile {
            file: RowFile::new(&cx.program.layout, n as u32),
            warps: lanes.iter().map(|&l| Warp::new(plan, l)).collect(),
            first,
            local: (0..n).map(|_| Local::new(cx.kernel.local_size)).collect(),
            loops: vec![LoopState::default(); loops * n],
            stamp: 0,
            runs: Vec::with_capacity(n),
            watches: if C::SPINS == Spins::Ignored { Vec::new() } else { vec![Watch::default(); lanes.len()] },
        };
        tile.set_registers(block);
        tile
    }

    fn set_registers(&mut self, block: &BlockCx<'_>) {
        for w in 0..(self.warps.len() * rows::<C>()) as u32 {
            if let Some((slot, value)) = block.cx.program.stack_pointer {
                self.file.write(slot, w, u32::MAX, &Row::splat(value));
            }
            for &p in &block.cx.program.true_preds {
                self.file.write_pred(p, w, u32::MAX, u32::MAX);
            }
        }
    }

    /// For the next block.
    pub(crate) fn clear(&mut self, block: &BlockCx<'_>) {
        self.file.clear();
        self.set_registers(block);
        self.local.iter_mut().for_each(Local::clear);
        self.loops.fill(LoopState::default());
        self.watches.iter_mut().for_each(Watch::clear);
        self.stamp = 0;
        for w in &mut self.warps {
            w.conv.reset(LaneMask(w.lanes), 0);
            (w.exited, w.stamp, w.result, w.issued, w.worked, w.waits) = (0, 0, 0, 0, 0, [0; 2]);
            w.meetings.clear();
            w.refresh();
        }
    }

    /// Whether some warp can run.
    pub(crate) fn can_run(&self) -> bool {
        self.warps.iter().any(|w| w.mask != 0)
    }

    /// Fills `runs` with the rows of the warps that go next, all at the same position, which is returned.
    fn choose(&mut self) -> Option<u32> {
        let fair = self.stamp % FAIR == FAIR - 1;
        let mut pc = u32::MAX;
        let mut oldest = u64::MAX;
        for w in self.warps.iter().filter(|w| w.mask != 0) {
            if fair && w.stamp < oldest {
                (oldest, pc) = (w.stamp, w.pc);
            } else if !fair {
                pc = pc.min(w.pc);
            }
        }
        self.stamp += 1;
        self.runs.clear();
        for (i, w) in self.warps.iter_mut().enumerate() {
            if w.mask != 0 && w.pc == pc {
                w.stamp = self.stamp;
                for row in 0..rows::<C>() {
                    let active = (w.mask >> (row * LANES)) as u32;
                    self.runs.push(Run { warp: (i * rows::<C>() + row) as u32, active });
                }
            }
        }
        (!self.runs.is_empty()).then_some(pc)
    }

    /// Runs until nobody can or about `budget` warp instructions are issued.
    pub(crate) fn run(&mut self, env: &mut Env<'_>, budget: u64) -> Result<(), SimError> {
        let until = env.clock.saturating_add(budget);
        while *env.clock < until {
            let Some(pc) = self.choose() else { break };
            let runs = std::mem::take(&mut self.runs);
            let done = self.straight(env, pc, &runs);
            self.runs = runs;
            done?;
        }
        Ok(())
    }

    /// Executes the straight run at `pc` for some warps, and the flow operation that ends it.
    fn straight(&mut self, env: &mut Env<'_>, pc: u32, runs: &[Run]) -> Result<(), SimError> {
        let program = env.block.cx.program;
        let Some(head) = program.insts.get(pc as usize) else {
            let inst = (program.insts.len() as u32).saturating_sub(1);
            let at = Where { inst, index: 0, warp: self.first, base: 0 };
            return Err(SimError::PastEnd { site: Box::new(env.block.site(at)) });
        };
        if head.header != NONE {
            self.enter_loop(env, head.header, runs);
        }
        let end = head.end;
        let length = u64::from(end - pc);
        let (mut lanes, mut missing, mut exited) = (0, 0, 0);
        for r in runs.iter().step_by(rows::<C>()) {
            let w = &mut self.warps[r.warp as usize / rows::<C>()];
            let active = u64::from(w.mask.count_ones());
            w.issued += length;
            w.worked += length * active;
            lanes += active;
            missing += u64::from(w.missing);
            exited += u64::from(w.exited);
        }
        let issues = (runs.len() / rows::<C>()) as u64;
        env.counters.issue(pc, end, issues, lanes, missing, exited);
        if let (Some(record), Some(recorder)) = (env.record.as_deref_mut(), env.block.cx.recorder) {
            record.issue(recorder, pc, end, self.first * rows::<C>() as u32, runs);
        }
        if env.trace.is_some() || env.poison.is_some() || env.check.is_some() || env.record.is_some() {
            self.body::<true>(env, pc, end, runs)?;
        } else {
            self.body::<false>(env, pc, end, runs)?;
        }
        *env.clock += length * issues;
        Ok(())
    }

    fn body<const WATCHED: bool>(
        &mut self,
        env: &mut Env<'_>,
        pc: u32,
        end: u32,
        runs: &[Run],
    ) -> Result<(), SimError> {
        let program = env.block.cx.program;
        let constants = program.layout.constants();
        let insts = &program.insts[pc as usize..end as usize];
        for (at, inst) in (pc..).zip(insts) {
            if WATCHED {
                self.watch(env, at, inst, runs)?;
            }
            match &inst.kind {
                Kind::Nop => {
                    if inst.guarded {
                        self.count_guard(env, at, inst, runs);
                    }
                }
                Kind::Lane(op) => {
                    let on = op.run(&mut self.file, constants, runs);
                    if inst.guarded {
                        env.counters.on[at as usize] += on;
                    }
                }
                Kind::Select(op, predicate, index) => {
                    self.count_select(env, inst, predicate, *index, runs);
                    let on = op.run(&mut self.file, constants, runs);
                    if inst.guarded {
                        env.counters.on[at as usize] += on;
                    }
                }
                Kind::Flow(op) => {
                    for r in runs.iter().step_by(rows::<C>()) {
                        let issue = self.issue(r);
                        flow::run(self, env, at, inst, op, issue)?;
                        if C::MEETS && op.frees() {
                            self.meet(env.block, issue.warp);
                        }
                        if C::SPINS != Spins::Ignored {
                            self.look_for_spin(env, at, issue);
                        }
                        if WATCHED
                            && let Some(trace) = env.trace.as_deref_mut()
                            && trace.wants(self.first + issue.warp)
                        {
                            let w = &self.warps[issue.warp as usize];
                            trace.after(self.first + issue.warp, at, w.pc, LaneMask(w.mask), &w.conv);
                        }
                    }
                    return Ok(());
                }
                _ => {
                    for r in runs {
                        self.single(env, at, at - pc, inst, *r)?;
                    }
                }
            }
            if WATCHED {
                self.note_results(env, at, runs);
            }
        }
        let last = &program.insts[end as usize - 1];
        let back = last.latch != NONE && program.loops.headers[last.latch as usize] == end;
        for r in runs.iter().step_by(rows::<C>()) {
            let issue = self.issue(r);
            if back {
                self.come_back(last.latch, issue.warp, issue.active);
            }
            self.warps[issue.warp as usize].go(end);
        }
        Ok(())
    }

    /// The group whose first row a run is.
    #[inline]
    fn issue(&self, first: &Run) -> Issue {
        let warp = first.warp / rows::<C>() as u32;
        // Of a warp with one row the run has all lanes.
        let active = if rows::<C>() == 1 { first.active.into() } else { self.warps[warp as usize].mask };
        Issue { warp, active }
    }

    /// A source predicate's lanes in a warp.
    #[inline]
    pub(crate) fn pred(&self, op: &PredOperand, warp: u32) -> u64 {
        if rows::<C>() == 1 {
            return self.file.pred(op, warp).into();
        }
        u64::from(self.file.pred(op, 2 * warp)) | u64::from(self.file.pred(op, 2 * warp + 1)) << LANES
    }

    /// Where a row of a run is.
    fn place(&self, at: u32, r: Run) -> Where {
        let n = rows::<C>() as u32;
        Where { inst: at, index: r.warp, warp: self.first + r.warp / n, base: r.warp % n * LANES as u32 }
    }

    /// Lanes of a warp are on their way back to the header of a loop.
    #[inline]
    pub(crate) fn come_back(&mut self, index: u32, warp: u32, lanes: u64) {
        let n = rows::<C>();
        let at = index as usize * self.warps.len() * n + warp as usize * n;
        for row in 0..n {
            self.loops[at + row].back |= (lanes >> (row * LANES)) as u32;
        }
    }

    fn count_guard(&self, env: &mut Env<'_>, at: u32, inst: &Inst, runs: &[Run]) {
        for r in runs {
            env.counters.on[at as usize] += u64::from((r.active & self.file.pred(&inst.guard, r.warp)).count_ones());
        }
    }

    fn count_select(&self, env: &mut Env<'_>, inst: &Inst, predicate: &PredOperand, index: u32, runs: &[Run]) {
        let Some(count) = env.counters.selects.get_mut(index as usize) else { return };
        for warp in runs.chunks(rows::<C>()) {
            let mut any = false;
            for r in warp {
                let exec = r.active & self.file.pred(&inst.guard, r.warp);
                let holds = exec & self.file.pred(predicate, r.warp);
                any |= exec != 0;
                count[1] += u64::from(holds.count_ones());
                count[2] += u64::from((exec & !holds).count_ones());
            }
            count[0] += u64::from(any);
        }
    }

    /// An instruction that is executed warp by warp.
    fn single(&mut self, env: &mut Env<'_>, at: u32, offset: u32, inst: &Inst, r: Run) -> Result<(), SimError> {
        let exec = r.active & self.file.pred(&inst.guard, r.warp);
        if inst.guarded {
            env.counters.on[at as usize] += u64::from(exec.count_ones());
        }
        let place = self.place(at, r);
        let w = &mut self.warps[r.warp as usize / rows::<C>()];
        match &inst.kind {
            Kind::Memory(m) => {
                let before = env.counters.traffic[at as usize].sectors;
                let missed = env.l1.as_ref().map_or([0; 2], |l1| [l1[0].missed, l1[1].missed]);
                Access {
                    block: env.block,
                    file: &mut self.file,
                    local: &mut self.local[r.warp as usize],
                    shared: env.shared,
                    at: place,
                    traffic: &mut env.counters.traffic[at as usize],
                    l1: env.l1.as_deref_mut(),
                    hint: env.hint,
                }
                .run(m, r.active, exec, inst.uniform)?;
                env.work.sectors += env.counters.traffic[at as usize].sectors - before;
                if let Some([small, large]) = &env.l1 {
                    let new = [small.missed - missed[0], large.missed - missed[1]];
                    env.counters.missed[at as usize] += new[0];
                    env.work.sectors_missed += new[0];
                    for (waits, new) in w.waits.iter_mut().zip(new) {
                        *waits += u64::from(new != 0 && m.returns());
                    }
                }
                if C::SPINS == Spins::Stuck && m.changes_memory() {
                    w.stores += 1;
                }
                if w.parked && m.merges {
                    w.conv.memory_issued();
                    w.parked = w.conv.has_parked();
                }
            }
            Kind::Warp(op) => {
                let mut across = Across {
                    block: env.block,
                    file: &mut self.file,
                    at: place,
                    active: r.active,
                    exec,
                    uniform: inst.uniform,
                    clock: *env.clock + u64::from(offset),
                    result: w.result,
                    meeting: None,
                };
                if C::MEETS && !w.meetings.is_empty() {
                    Meeting::run(&mut w.meetings, &mut across, op);
                } else {
                    across.run(op);
                }
            }
            Kind::Barrier(op) => {
                let mask = |m: u32| LaneMask(m.into());
                match op {
                    BarrierInst::Set(bar, cond) => {
                        let exec = exec & self.file.pred(cond, r.warp);
                        if exec != 0 {
                            w.conv.sync_set(*bar, mask(exec));
                        }
                    }
                    BarrierInst::Break(bar, cond) => {
                        let exec = exec & self.file.pred(cond, r.warp);
                        if exec != 0 {
                            // Lanes that wait at the barrier may be let go.
                            w.conv.set_pc(at);
                            w.conv.break_from(*bar, mask(exec));
                            w.parked = w.conv.has_parked();
                        }
                    }
                    BarrierInst::Read { dst, bar, clear } => {
                        if exec != 0 {
                            let value = w.conv.barrier(*bar).0 as u32;
                            self.file.write(*dst, r.warp, exec, &Row::splat(value));
                            if *clear {
                                w.conv.set_barrier(*bar, LaneMask::EMPTY);
                            }
                        }
                    }
                    BarrierInst::Write { bar, src } => {
                        if exec != 0 {
                            let row = self.file.read(env.block.cx.program.layout.constants(), src, r.warp);
                            let lane = exec.trailing_zeros() as usize;
                            w.conv.set_barrier(*bar, mask(row.0[lane]));
                        }
                    }
                }
            }
            Kind::Unsupported => {
                if exec != 0 && env.poison.is_none() {
                    return Err(env.block.unsupported(place));
                }
            }
            Kind::Nop | Kind::Lane(_) | Kind::Select(..) | Kind::Flow(_) => {}
        }
        Ok(())
    }

    /// Traces the instruction, follows unknown values, checks synchronisation.
    #[cold]
    fn watch(&mut self, env: &mut Env<'_>, at: u32, inst: &Inst, runs: &[Run]) -> Result<(), SimError> {
        for r in runs {
            let place = self.place(at, *r);
            if let Some(trace) = env.trace.as_deref_mut()
                && trace.wants(place.warp)
                && place.base == 0
            {
                let issue = self.issue(r);
                let exec = issue.active & self.pred(&inst.guard, issue.warp);
                trace.step(
                    place.warp,
                    at,
                    LaneMask(issue.active),
                    LaneMask(exec),
                    &self.warps[issue.warp as usize].conv,
                );
            }
            if let Some(poison) = env.poison.as_deref_mut() {
                let exec = r.active & self.file.pred(&inst.guard, r.warp);
                poison.step(env.block, &self.file, place, inst, r.active, exec)?;
            }
            if let Some(check) = env.check.as_deref_mut() {
                let exec = r.active & self.file.pred(&inst.guard, r.warp);
                check.step(env.block, &self.file, place, inst, r.active, exec);
            }
        }
        if let (Some(record), Some(recorder)) = (env.record.as_deref_mut(), env.block.cx.recorder) {
            let first = self.first * rows::<C>() as u32;
            record.before(env.block, recorder, &self.file, at, first, runs);
        }
        Ok(())
    }

    /// Records what the instruction wrote.
    fn note_results(&mut self, env: &mut Env<'_>, at: u32, runs: &[Run]) {
        let (Some(record), Some(recorder)) = (env.record.as_deref_mut(), env.block.cx.recorder) else { return };
        let first = self.first * rows::<C>() as u32;
        let poison = env.poison.as_deref();
        // A row's number among those of its block, as the poison names it.
        let name = |row: u32| row / rows::<C>() as u32 * (LaneMask::MAX / LANES as u32) + row % rows::<C>() as u32;
        let unknown = |slot, row| poison.map_or(0, |p| p.of_register(slot, name(row)));
        record.after(recorder, &self.file, at, first, runs, unknown);
    }

    /// Counts trips: lanes that do not come from the loop's own back edge enter it anew.
    fn enter_loop(&mut self, env: &mut Env<'_>, index: u32, runs: &[Run]) {
        let n = self.warps.len() * rows::<C>();
        for r in runs {
            let state = &mut self.loops[index as usize * n + r.warp as usize];
            let entering = r.active & !state.back;
            state.back &= !r.active;
            if entering == 0 && r.active == state.mask {
                state.pending = state.pending.saturating_add(1);
                continue;
            }
            state.settle();
            for l in lanes(entering) {
                let trips = std::mem::take(&mut state.trips.0[l]);
                if trips != 0 {
                    env.counters.trips[index as usize].add(trips);
                }
            }
            (state.mask, state.pending) = (r.active, 1);
        }
    }

    /// The block has ended: what its warps and loops have counted goes to `counters`.
    pub(crate) fn finish(&mut self, block: u64, counters: &mut Counters) {
        for (i, w) in self.warps.iter().enumerate() {
            let lost = (w.issued * u64::from(w.lanes.count_ones())).saturating_sub(w.worked);
            let warp = self.first + i as u32;
            counters.warp(WarpSum { block, warp, inst_executed: w.issued, lost });
        }
        let n = self.warps.len() * rows::<C>();
        for (i, state) in self.loops.iter_mut().enumerate() {
            state.settle();
            for t in state.trips.0.iter().filter(|t| **t != 0) {
                counters.trips[i / n].add(*t);
            }
            *state = LoopState::default();
        }
    }
}
