//! `memory-bound`: what a roofline says about a launch that loses lanes.

use lanescope_ir::finding::Evidence;
use lanescope_ir::{Finding, Severity};

use super::{Rule, WORTH_IT};
use crate::Analysis;
use crate::roofline::{Bound, Gain, Roofline};
use crate::words;

/// Gain below which a fix of the branch is not worth a week.
const LITTLE: f64 = 1.1;

/// A launch that loses lanes and yet would gain little without the loss.
pub(super) const RULE: Rule = Rule {
    name: "memory-bound",
    summary: "lanes are lost, but something else bounds the launch: full warps would hardly make it faster",
    page: "\
A divergent branch costs issue slots. If memory, latency or the launch itself takes longer than the issue slots do, the loss
hides behind it, and fixing the branch gains little or nothing. So check the roofline before spending a week on a branch.

The finding compares the launch with one that needs no more warp instructions than full warps would, and leaves everything
else as it is: the most that any fix of divergence can bring. It is an estimate for one GPU (`--gpu NAME` chooses it); see
docs/roofline.md for what goes into it.

What helps instead depends on the bound. Memory: fewer bytes, coalesced accesses, better use of caches. Latency: more
independent work in each warp, more resident warps, shorter longest warps. A launch that is too small: more work a launch.

Evidence: bound, gpu, at_most, time_low_s, time_high_s.",
    check: |_, _| {},
};

/// The finding, if `gain` (what full warps would gain) is small although lanes are lost.
pub fn memory_bound(analysis: &Analysis, roofline: &Roofline, gain: &Gain) -> Option<Finding> {
    let losses = &analysis.losses;
    let lost = losses.lost as f64 / losses.slots.max(1) as f64;
    if lost < WORTH_IT || gain.at_most >= LITTLE || roofline.bound == Bound::Issue {
        return None;
    }
    let most = if gain.at_most < 1.005 {
        "nothing".to_owned()
    } else {
        format!("at most {}", words::percent(gain.at_most - 1.0))
    };
    Some(Finding {
        rule: RULE.name,
        severity: Severity::Info,
        inst: None,
        message: format!(
            "The launch is {}: although {} of its lane slots are lost, full warps would gain {most} (estimate).",
            roofline.bound.on(&roofline.gpu),
            words::percent(lost),
        ),
        evidence: vec![
            ("bound", Evidence::Text(roofline.bound.key().to_owned())),
            ("gpu", Evidence::Text(roofline.gpu.name.clone())),
            ("at_most", Evidence::Ratio(gain.at_most)),
            ("time_low_s", Evidence::Ratio(roofline.time_s.low)),
            ("time_high_s", Evidence::Ratio(roofline.time_s.high)),
        ],
    })
}
