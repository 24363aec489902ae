//! Steps of warps, recorded.

use lanescope_ir::LaneMask;

use crate::convergence::Convergence;
use crate::launch::{Trace, TraceEvent, TraceRequest, TraceStep};

/// Records the steps of some warps of one block.
pub(crate) struct Tracer {
    warps: Vec<Recording>,
}

/// One warp.
struct Recording {
    max: usize,
    trace: Trace,
    next: u64,
}

impl Tracer {
    /// For those of `requests` that are about this block, if any. `lanes` says which lanes a warp has.
    pub(crate) fn new(block: u64, requests: &[TraceRequest], lanes: impl Fn(u32) -> u64) -> Option<Tracer> {
        let mut wanted: Vec<&TraceRequest> = requests.iter().filter(|r| r.block == block).collect();
        wanted.sort_by_key(|r| (r.warp, std::cmp::Reverse(r.max_steps)));
        wanted.dedup_by_key(|r| r.warp);
        let record = |r: &TraceRequest| Recording {
            max: r.max_steps,
            trace: Trace { block, warp: r.warp, lanes: LaneMask(lanes(r.warp)), ..Trace::default() },
            next: 0,
        };
        (!wanted.is_empty()).then(|| Tracer { warps: wanted.into_iter().map(record).collect() })
    }

    pub(crate) fn finish(self) -> impl Iterator<Item = Trace> {
        self.warps.into_iter().map(|r| r.trace)
    }

    fn of(&mut self, warp: u32) -> Option<&mut Recording> {
        self.warps.iter_mut().find(|r| r.trace.warp == warp)
    }

    pub(crate) fn wants(&self, warp: u32) -> bool {
        self.warps.iter().any(|r| r.trace.warp == warp)
    }

    /// The running group of `warp` is about to issue `inst`.
    pub(crate) fn step<C: Convergence>(
        &mut self,
        warp: u32,
        inst: u32,
        active: LaneMask,
        executing: LaneMask,
        conv: &C,
    ) {
        let Some(r) = self.of(warp) else { return };
        let step = r.next;
        r.next += 1;
        if r.trace.steps.len() >= r.max {
            r.trace.cut = true;
            return;
        }
        let parked = conv.parked().into_iter().map(|g| (g.pc, g.mask));
        let waiting = conv.waiting().into_iter().map(|w| (w.pc, w.lanes));
        let others = parked.chain(waiting).collect();
        r.trace.steps.push(TraceStep { step, inst, active, executing, others, event: TraceEvent::Step });
    }

    /// What the flow operation just recorded did: the running group of `warp` is now `now` at `pc`.
    pub(crate) fn after<C: Convergence>(&mut self, warp: u32, inst: u32, pc: u32, now: LaneMask, conv: &C) {
        let Some(r) = self.of(warp) else { return };
        let next = r.next;
        let Some(last) = r.trace.steps.last_mut().filter(|s| s.step + 1 == next && s.inst == inst) else {
            return;
        };
        let before = last.active;
        let left = before & conv.exited();
        let stays = now & before;
        last.event = if !left.is_empty() {
            TraceEvent::Exit { lanes: left }
        } else if now == before {
            if pc == inst + 1 { TraceEvent::Step } else { TraceEvent::Jump }
        } else if !(now - before).is_empty() && !stays.is_empty() {
            TraceEvent::Join { group: now }
        } else {
            let waiting = conv.waiting().iter().fold(LaneMask::EMPTY, |m, w| m | w.lanes);
            if (before & waiting).is_empty() { TraceEvent::Split { taken: last.executing } } else { TraceEvent::Wait }
        };
    }
}
