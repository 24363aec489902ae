//! What a launch costs on a given GPU, and whether a fix can be worth it: check the roofline before spending a week on a
//! branch.
//!
//! A [`Demand`] says what a launch asks of the machine: warp instructions, sectors, passes through shared memory, the work
//! of each block and of its longest warp. A [`Gpu`] says what the machine gives. From both, [`roofline`] works out how long
//! the launch takes if each resource were the only limit, how long with all of them, and which one it is. [`gain`] compares
//! two demands: before and after a fix.
//!
//! All times are estimates. They are ranges: how far away the data is and how well the machine is used no counter of ours
//! says, so each figure is worked out for the best and the worst case ([`Scenario`]). Nothing is fitted to a kernel; what
//! is measured of the machine stands in [`limits`]. `docs/roofline.md` has the formulas.

mod chain;
mod demand;
mod gain;
mod gpu;
pub mod limits;
mod occupancy;
mod pipes;
mod queue;
mod times;
mod verdict;

pub use chain::Chain;
pub use demand::{Demand, Scale};
pub use gain::{Gain, gain, gain_between};
pub use gpu::{Gpu, Lanes};
pub use occupancy::{Limit, Occupancy, occupancy};
pub use pipes::{Pipe, PipeWork, pipe};
pub use times::{Bound, Roofline, Scenario, roofline};

/// From `low` to `high`. Times in seconds, speed-ups as ratios (2.0: twice as fast).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Range {
    /// Least.
    pub low: f64,
    /// Most.
    pub high: f64,
}

impl Range {
    /// A range of one value.
    pub const fn exactly(x: f64) -> Range {
        Range { low: x, high: x }
    }
    /// The smallest range with all of these in it; of nothing, zero.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Range {
        let mut values = values.into_iter();
        let Some(first) = values.next() else { return Range::default() };
        values.fold(Range::exactly(first), |r, x| Range { low: r.low.min(x), high: r.high.max(x) })
    }
    /// Whether `x` lies in it, ends included.
    pub fn contains(&self, x: f64) -> bool {
        self.low <= x && x <= self.high
    }
    /// The geometric middle: as far from both ends, as ratios go.
    pub fn middle(&self) -> f64 {
        (self.low * self.high).max(0.0).sqrt()
    }
}
