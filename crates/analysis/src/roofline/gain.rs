//! What a fix can bring.

use lanescope_ir::{Kernel, LaunchShape};

use super::{Bound, Demand, Gpu, Range, Roofline, roofline};
use crate::words;

/// How much faster a launch can get. An estimate.
#[derive(Clone, Debug, PartialEq)]
pub struct Gain {
    /// Time before over time after, in the least and in the most favourable case.
    pub speedup: Range,
    /// The most that can be hoped for: the upper end of `speedup`, never below 1.
    pub at_most: f64,
    /// That in words: `memory-bound on an H200: this gains at most 3 %`.
    pub words: String,
}

/// Compares two demands of the same launch shape.
pub fn gain(
    before: &Demand,
    after: &Demand,
    kernel: &Kernel,
    shape: &LaunchShape,
    dynamic_shared: u32,
    gpu: &Gpu,
) -> Gain {
    let of = |d| roofline(d, kernel, shape, dynamic_shared, gpu);
    gain_between(&of(before), &of(after))
}

/// Compares two launches on the same GPU, which may have different kernels and shapes.
pub fn gain_between(before: &Roofline, after: &Roofline) -> Gain {
    let ratio = |b: f64, a: f64| if a > 0.0 { b / a } else { 1.0 };
    let speedup = Range::of(before.scenarios.iter().zip(&after.scenarios).map(|(b, a)| ratio(b.time_s, a.time_s)));
    let at_most = speedup.high.max(1.0);
    let percent = words::percent(at_most - 1.0);
    let words = match before.bound {
        Bound::Memory => format!("memory-bound on {}: this gains at most {percent}", before.gpu.name),
        bound => format!("{} on {}: this gains at most {percent}", bound.name(), before.gpu.name),
    };
    Gain { speedup, at_most, words }
}
