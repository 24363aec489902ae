//! Barriers of a block (BAR).
//!
//! As measured, a barrier counts warps: one issue by any group of a warp is the arrival of that warp, 32 threads of a thread
//! count (or what the warp size is), however few its lanes. A barrier without a count is complete when every warp that has not exited has arrived.

use lanescope_ir::op::warp::BlockBarrierMode;

/// Number of barriers of a block.
pub(crate) const BARRIERS: usize = 16;

/// Lanes that a complete barrier lets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Release {
    pub(crate) warp: u32,
    pub(crate) lanes: u64,
    /// Result of a reducing barrier.
    pub(crate) result: Option<u32>,
}

#[derive(Clone, Default)]
struct State {
    /// Arrivals of each warp.
    arrived: Vec<u32>,
    /// Lanes of each warp that wait.
    waiting: Vec<u64>,
    expected: Option<u32>,
    reduce: Option<BlockBarrierMode>,
    held: u32,
    total: u32,
}

/// Lanes of one warp that reach a barrier.
pub(crate) struct Arrival {
    pub(crate) warp: u32,
    pub(crate) lanes: u64,
    /// Of these, lanes whose predicate holds.
    pub(crate) pred: u64,
    pub(crate) mode: BlockBarrierMode,
    pub(crate) threads: Option<u32>,
}

/// The barriers of one block.
pub(crate) struct Barriers {
    states: [State; BARRIERS],
    /// Lanes of each warp that have not exited.
    live: Vec<u64>,
    warp_size: u32,
    /// Lanes let go and not yet told so.
    pub(crate) released: Vec<Release>,
    used: bool,
}

impl Barriers {
    pub(crate) fn new(live: &[u64], warp_size: u32) -> Barriers {
        let state = State { arrived: vec![0; live.len()], waiting: vec![0; live.len()], ..State::default() };
        Barriers {
            states: std::array::from_fn(|_| state.clone()),
            live: live.to_vec(),
            warp_size,
            released: Vec::new(),
            used: false,
        }
    }

    /// For the next block.
    pub(crate) fn clear(&mut self, live: &[u64]) {
        self.live.copy_from_slice(live);
        self.released.clear();
        if std::mem::take(&mut self.used) {
            self.states.iter_mut().for_each(State::clear);
        }
    }

    /// Lanes exit: barriers may become complete.
    pub(crate) fn exit(&mut self, warp: u32, lanes: u64) {
        self.live[warp as usize] &= !lanes;
        if self.used {
            for id in 0..BARRIERS {
                self.check(id);
            }
        }
    }

    /// Lanes arrive. What is wrong with that, if anything.
    pub(crate) fn arrive(&mut self, id: u32, a: &Arrival) -> Result<(), String> {
        let Some(s) = self.states.get_mut(id as usize) else {
            return Err(format!("number {id}; there are {BARRIERS}"));
        };
        if let Some(t) = a.threads
            && (t == 0 || t % self.warp_size != 0)
        {
            let size = self.warp_size;
            return Err(format!(
                "barrier {id} for {t} threads, which is no positive multiple of the warp size ({size})"
            ));
        }
        let fresh = s.arrived.iter().all(|&l| l == 0);
        if fresh {
            s.expected = a.threads;
        } else if s.expected != a.threads {
            let name = |t: Option<u32>| t.map_or("all".to_owned(), |t| t.to_string());
            return Err(format!(
                "barrier {id} for {} threads, but others wait for {}",
                name(a.threads),
                name(s.expected)
            ));
        }
        self.used = true;
        let w = a.warp as usize;
        s.arrived[w] += 1;
        let reduces = matches!(a.mode, BlockBarrierMode::RedPopc | BlockBarrierMode::RedAnd | BlockBarrierMode::RedOr);
        if reduces {
            s.reduce = Some(a.mode);
            s.held += (a.pred & a.lanes).count_ones();
            s.total += a.lanes.count_ones();
        }
        if a.mode != BlockBarrierMode::Arrive {
            s.waiting[w] |= a.lanes;
        }
        self.check(id as usize);
        Ok(())
    }

    fn check(&mut self, id: usize) {
        let s = &mut self.states[id];
        if s.arrived.iter().all(|&l| l == 0) {
            return;
        }
        let complete = match s.expected {
            None => s.arrived.iter().zip(&self.live).all(|(&a, &l)| l == 0 || a != 0),
            Some(n) => s.arrived.iter().sum::<u32>().saturating_mul(self.warp_size) >= n,
        };
        if !complete {
            return;
        }
        let result = s.reduce.map(|mode| match mode {
            BlockBarrierMode::RedAnd => u32::from(s.held == s.total),
            BlockBarrierMode::RedOr => u32::from(s.held != 0),
            _ => s.held,
        });
        for (warp, &lanes) in s.waiting.iter().enumerate() {
            if lanes != 0 {
                self.released.push(Release { warp: warp as u32, lanes, result });
            }
        }
        s.clear();
    }

    /// The barrier at which lanes of a warp wait.
    pub(crate) fn waits_at(&self, warp: u32, lanes: u64) -> Option<u8> {
        self.states.iter().position(|s| s.waiting.get(warp as usize).is_some_and(|w| w & lanes != 0)).map(|i| i as u8)
    }
}

impl State {
    fn clear(&mut self) {
        self.arrived.fill(0);
        self.waiting.fill(0);
        (self.expected, self.reduce, self.held, self.total) = (None, None, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u64 = 0xffff_ffff;

    fn sync(warp: u32, lanes: u64, threads: Option<u32>) -> Arrival {
        Arrival { warp, lanes, pred: lanes & 1, mode: BlockBarrierMode::Sync, threads }
    }

    #[test]
    fn waits_for_all_warps_that_live() {
        let mut b = Barriers::new(&[ALL, 0xfffff, 0xf], 32);
        b.arrive(0, &sync(0, ALL, None)).unwrap();
        b.arrive(0, &sync(1, 0xff, None)).unwrap();
        b.exit(2, 0x7);
        assert!(b.released.is_empty());
        b.exit(2, 0x8);
        assert_eq!(b.released.len(), 2);
        assert_eq!(b.released[1], Release { warp: 1, lanes: 0xff, result: None });
    }

    #[test]
    fn thread_counts_take_warps_and_start_anew() {
        let mut b = Barriers::new(&[ALL, ALL, ALL], 32);
        b.arrive(3, &Arrival { mode: BlockBarrierMode::Arrive, ..sync(0, ALL, Some(64)) }).unwrap();
        b.arrive(3, &sync(2, 0xff, Some(64))).unwrap();
        assert_eq!(b.released, [Release { warp: 2, lanes: 0xff, result: None }]);
        b.arrive(3, &sync(1, ALL, Some(64))).unwrap();
        assert_eq!(b.released.len(), 1);
        assert_eq!(b.waits_at(1, 1), Some(3));
        assert!(b.arrive(3, &sync(0, 1, Some(96))).is_err());
        assert!(b.arrive(16, &sync(0, 1, None)).is_err());
        assert!(b.arrive(4, &sync(0, 1, Some(33))).is_err());
    }

    #[test]
    fn warps_of_64_count_64_threads() {
        let mut b = Barriers::new(&[u64::MAX, u64::MAX], 64);
        assert!(b.arrive(1, &sync(0, 1 << 40, Some(96))).is_err());
        b.arrive(1, &sync(0, 1 << 40, Some(128))).unwrap();
        assert!(b.released.is_empty());
        b.arrive(1, &sync(1, u64::MAX, Some(128))).unwrap();
        assert_eq!(b.released[0], Release { warp: 0, lanes: 1 << 40, result: None });
    }

    #[test]
    fn reductions() {
        let mut b = Barriers::new(&[0xf, 0xf], 32);
        for warp in 0..2 {
            b.arrive(0, &Arrival { pred: 3, mode: BlockBarrierMode::RedPopc, ..sync(warp, 0xf, None) }).unwrap();
        }
        assert_eq!(b.released[0].result, Some(4));
        for warp in 0..2 {
            b.arrive(0, &Arrival { pred: 0xf, mode: BlockBarrierMode::RedAnd, ..sync(warp, 0xf, None) }).unwrap();
        }
        assert_eq!(b.released[3].result, Some(1));
    }
}
