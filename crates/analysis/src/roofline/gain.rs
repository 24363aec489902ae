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
    // A demand that stays the same takes the same time.
    let between = if before.demand == after.demand { 0.0 } else { limits::BETWEEN - 1.0 };
    // Launches of the same code are on the same side of what is not known; of different code each may be on its own.
    let same = before.demand.code == after.demand.code;
    let pairs = before.scenarios.iter().flat_map(|b| after.scenarios.iter().map(move |a| (b, a)));
    let pairs = pairs.filter(|(b, a)| !same || (b.far, b.worst) == (a.far, a.worst));
    let ends = pairs.flat_map(|(b, a)| {
        let issue = (b.issue_s / b.time_s.max(f64::MIN_POSITIVE)).max(a.issue_s / a.time_s.max(f64::MIN_POSITIVE));
        let off = 1.0 + between * issue.clamp(0.0, 1.0);
        let ratio = ratio(b.time_s, a.time_s);
        [ratio / off, ratio * off]
    });
    let speedup = Range::of(ends);
    let at_most = speedup.high.max(1.0);
    Gain { speedup, at_most, words: words(before, speedup) }
}

fn words(before: &Roofline, speedup: Range) -> String {
    let place = before.bound.on(&before.gpu);
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
