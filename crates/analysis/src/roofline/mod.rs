//! What a launch costs on a given GPU, and whether a fix can be worth it: check the roofline before spending a week on a
//! branch.
//!
//! A [`Demand`] says what a launch asks of the machine: warp instructions, sectors, passes through shared memory, the work
//! of its longest warp. A [`Gpu`] says what the machine gives. From both, [`roofline`] works out how long the launch takes
//! if each resource were the only limit, and which one is. [`gain`] compares two demands: before and after a fix.
//!
//! All times are estimates. They are ranges: which caches hold the data, and how much of the latency is hidden, no counter
//! of ours says, so each figure is worked out for the best and for the worst case. `docs/roofline.md` has the formulas.

mod demand;
mod gain;
mod gpu;
mod occupancy;
mod times;

pub use demand::Demand;
pub use gain::{Gain, gain, gain_between};
pub use gpu::Gpu;
pub use occupancy::{Limit, Occupancy, occupancy};
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
}
