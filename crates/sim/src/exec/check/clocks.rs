//! Which accesses are ordered: vector clocks.
//!
//! Between warps a clock for each warp, which barriers of the block bring together; within a warp a clock for each lane,
//! which operations that wait for lanes bring together. An access remembers the time of its own warp and lane; another
//! thread comes after it if it has heard of a later time.
//!
//! A barrier is complete when somebody goes on behind it. By then all who take part have arrived, so that is when their
//! clocks are joined.

use std::collections::BTreeMap;

use crate::memory::words::lanes;

const LANES: usize = 32;

/// When an access was: the warp's time and the lane's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Time {
    warp: u32,
    lane: u32,
}

/// Lanes that wait at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    Lanes(u32),
    Block(u32),
}

struct WarpClock {
    /// What it knows of each warp's time; its own is its time.
    of_warps: Vec<u32>,
    /// What each lane knows of each lane's time.
    of_lanes: [[u32; LANES]; LANES],
    /// Where lanes wait, if they do.
    waits: [Option<Wait>; LANES],
    waiting: u32,
}

/// The clocks of a block.
pub(crate) struct Clocks {
    warps: Vec<WarpClock>,
    /// Arrivals at each barrier: the clocks that were brought.
    arrivals: BTreeMap<u32, Vec<u32>>,
}

impl Clocks {
    pub(crate) fn new(warps: usize) -> Clocks {
        let clock = |w: usize| {
            let mut of_warps = vec![0; warps];
            of_warps[w] = 1;
            let mut of_lanes = [[0; LANES]; LANES];
            (0..LANES).for_each(|l| of_lanes[l][l] = 1);
            WarpClock { of_warps, of_lanes, waits: [None; LANES], waiting: 0 }
        };
        Clocks { warps: (0..warps).map(clock).collect(), arrivals: BTreeMap::new() }
    }

    /// The present for a lane.
    pub(crate) fn now(&self, warp: u32, lane: u32) -> Time {
        let Some(w) = self.warps.get(warp as usize) else { return Time::default() };
        let own = w.of_lanes.get(lane as usize).and_then(|l| l.get(lane as usize)).copied().unwrap_or(0);
        Time { warp: w.of_warps.get(warp as usize).copied().unwrap_or(0), lane: own }
    }

    /// Whether what thread `a` did at `then` comes before what thread `b` does now. Threads are warp and lane.
    pub(crate) fn before(&self, a: (u32, u32), then: Time, b: (u32, u32)) -> bool {
        if a == b {
            return true;
        }
        let Some(w) = self.warps.get(b.0 as usize) else { return true };
        if w.of_warps.get(a.0 as usize).is_some_and(|&t| t > then.warp) {
            return true;
        }
        a.0 == b.0 && w.of_lanes.get(b.1 as usize).and_then(|l| l.get(a.1 as usize)).is_some_and(|&t| t > then.lane)
    }

    /// Lanes wait for each other, at once: all of them are here.
    pub(crate) fn join_lanes(&mut self, warp: u32, mask: u32) {
        let Some(w) = self.warps.get_mut(warp as usize) else { return };
        if mask.count_ones() < 2 {
            return;
        }
        let mut joined = [0; LANES];
        for l in lanes(mask) {
            w.of_lanes[l][l] += 1;
            joined.iter_mut().zip(&w.of_lanes[l]).for_each(|(j, t)| *j = (*j).max(*t));
        }
        for l in lanes(mask) {
            w.of_lanes[l] = joined;
        }
        // Their own times must differ from what others have heard.
        for l in lanes(mask) {
            w.of_lanes[l][l] += 1;
        }
    }

    /// Lanes arrive at an operation that waits for lanes.
    pub(crate) fn wait_lanes(&mut self, warp: u32, mask: u32, inst: u32) {
        let Some(w) = self.warps.get_mut(warp as usize) else { return };
        lanes(mask).for_each(|l| w.waits[l] = Some(Wait::Lanes(inst)));
        w.waiting |= mask;
    }

    /// Lanes arrive at a barrier of the block; they wait unless they only say that they were there.
    pub(crate) fn arrive(&mut self, warp: u32, mask: u32, id: u32, waits: bool) {
        let Some(w) = self.warps.get_mut(warp as usize) else { return };
        if let Some(own) = w.of_warps.get_mut(warp as usize) {
            *own += 1;
        }
        let brought = self.arrivals.entry(id).or_insert_with(|| vec![0; w.of_warps.len()]);
        brought.iter_mut().zip(&w.of_warps).for_each(|(b, t)| *b = (*b).max(*t));
        if let Some(own) = w.of_warps.get_mut(warp as usize) {
            *own += 1;
        }
        if waits {
            lanes(mask).for_each(|l| w.waits[l] = Some(Wait::Block(id)));
            w.waiting |= mask;
        }
    }

    /// Lanes go on: what they waited for is complete.
    pub(crate) fn go_on(&mut self, warp: u32, mask: u32) {
        loop {
            let Some(w) = self.warps.get(warp as usize) else { return };
            let Some(lane) = lanes(w.waiting & mask).next() else { return };
            match w.waits[lane] {
                Some(Wait::Lanes(inst)) => self.lanes_met(warp, inst),
                Some(Wait::Block(id)) => self.barrier_opened(id),
                None => {}
            }
            if let Some(w) = self.warps.get_mut(warp as usize) {
                w.waiting &= !(1 << lane);
                w.waits[lane] = None;
            }
        }
    }

    fn lanes_met(&mut self, warp: u32, inst: u32) {
        let Some(w) = self.warps.get_mut(warp as usize) else { return };
        let met = lanes(w.waiting).filter(|&l| w.waits[l] == Some(Wait::Lanes(inst))).fold(0u32, |m, l| m | 1 << l);
        for l in lanes(met) {
            w.waits[l] = None;
        }
        w.waiting &= !met;
        self.join_lanes(warp, met);
    }

    fn barrier_opened(&mut self, id: u32) {
        let brought = self.arrivals.remove(&id).unwrap_or_default();
        for warp in 0..self.warps.len() {
            let w = &mut self.warps[warp];
            let out = lanes(w.waiting).filter(|&l| w.waits[l] == Some(Wait::Block(id))).fold(0u32, |m, l| m | 1 << l);
            if out == 0 {
                continue;
            }
            w.of_warps.iter_mut().zip(&brought).for_each(|(t, b)| *t = (*t).max(*b));
            for l in lanes(out) {
                w.waits[l] = None;
            }
            w.waiting &= !out;
            // A barrier of the block brings the lanes of each warp together too.
            self.join_lanes(warp as u32, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn barriers_order_warps_and_nothing_else_does() {
        let mut c = Clocks::new(2);
        let then = c.now(0, 3);
        assert!(!c.before((0, 3), then, (1, 3)));
        c.arrive(0, u32::MAX, 0, true);
        c.arrive(1, u32::MAX, 0, true);
        assert!(!c.before((0, 3), then, (1, 3)));
        c.go_on(1, u32::MAX);
        assert!(c.before((0, 3), then, (1, 3)) && c.before((0, 3), then, (0, 4)));
        // What comes after the barrier is not before anything of the other warp.
        let later = c.now(0, 3);
        assert!(!c.before((0, 3), later, (1, 0)) && !c.before((1, 0), c.now(1, 0), (0, 3)));
    }

    #[test]
    fn an_arrival_without_waiting_orders_one_way() {
        let mut c = Clocks::new(2);
        let (a, b) = (c.now(0, 0), c.now(1, 0));
        c.arrive(0, u32::MAX, 1, false);
        c.arrive(1, u32::MAX, 1, true);
        c.go_on(1, u32::MAX);
        assert!(c.before((0, 0), a, (1, 0)) && !c.before((1, 0), b, (0, 0)));
    }

    #[test]
    fn lanes_are_ordered_by_what_makes_them_wait() {
        let mut c = Clocks::new(1);
        let then = c.now(0, 1);
        assert!(!c.before((0, 1), then, (0, 2)) && c.before((0, 1), then, (0, 1)));
        c.wait_lanes(0, 0b0010, 7);
        c.wait_lanes(0, 0b0100, 7);
        c.go_on(0, 0b0110);
        assert!(c.before((0, 1), then, (0, 2)) && !c.before((0, 1), then, (0, 3)));
        let now = c.now(0, 1);
        assert!(!c.before((0, 1), now, (0, 2)));
        c.join_lanes(0, 0b1110);
        assert!(c.before((0, 1), now, (0, 3)));
    }
}
