//! What a fix can bring.

use lanescope_ir::{Kernel, LaunchShape};

use super::{Demand, Gpu, Range, Roofline, limits, roofline};
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
    let same = Range::of(before.scenarios.iter().zip(&after.scenarios).map(|(b, a)| ratio(b.time_s, a.time_s)));
    // A demand that stays the same takes the same time.
    let off = if before.demand == after.demand { 1.0 } else { limits::BETWEEN };
    let speedup = Range { low: same.low / off, high: same.high * off };
    let at_most = speedup.high.max(1.0);
    Gain { speedup, at_most, words: words(before, speedup) }
}

fn words(before: &Roofline, speedup: Range) -> String {
    let place = format!("{} on {}", before.bound.name(), before.gpu.with_article());
    let gain = match speedup {
        Range { low, high } if high < 1.005 && low < 0.9 => {
            format!("this gains nothing, and may take {:.1} times as long", 1.0 / low)
        }
        Range { high, .. } if high < 1.005 => "this gains nothing".to_owned(),
        Range { high, .. } if high < 1.5 => {
            format!("this gains at most {}", words::percent(high - 1.0))
        }
        Range { low, high } => format!("this makes it {low:.1} to {high:.1} times as fast"),
    };
    format!("{place}: {gain}")
}
