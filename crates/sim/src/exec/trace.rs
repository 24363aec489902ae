//! Steps of one warp, recorded.

use lanescope_ir::LaneMask;

use crate::convergence::Convergence;
use crate::launch::{Trace, TraceEvent, TraceStep};

/// Records the steps of one warp of one block.
pub(crate) struct Tracer {
    warp: u32,
    max: usize,
    pub(crate) trace: Trace,
    next: u64,
}

impl Tracer {
    pub(crate) fn new(warp: u32, max: usize, lanes: u64) -> Tracer {
        Tracer { warp, max, trace: Trace { lanes: LaneMask(lanes), ..Trace::default() }, next: 0 }
    }

    pub(crate) fn wants(&self, warp: u32) -> bool {
        warp == self.warp
    }

    /// The running group is about to issue `inst`.
    pub(crate) fn step<C: Convergence>(&mut self, inst: u32, active: LaneMask, executing: LaneMask, conv: &C) {
        let step = self.next;
        self.next += 1;
        if self.trace.steps.len() >= self.max {
            self.trace.cut = true;
            return;
        }
        let parked = conv.parked().into_iter().map(|g| (g.pc, g.mask));
        let waiting = conv.waiting().into_iter().map(|w| (w.pc, w.lanes));
        let others = parked.chain(waiting).collect();
        self.trace.steps.push(TraceStep { step, inst, active, executing, others, event: TraceEvent::Step });
    }

    /// What the flow operation just recorded did: the running group is now `mask` at `pc`.
    pub(crate) fn after<C: Convergence>(&mut self, inst: u32, pc: u32, now: LaneMask, conv: &C) {
        let Some(last) = self.trace.steps.last_mut().filter(|s| s.step + 1 == self.next && s.inst == inst) else {
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
