//! What a launch is bound by, in one word and in a sentence.

use super::{Bound, Roofline, Scenario};
use crate::words;

/// How much larger the first of two times must be for the second not to matter.
const CLEAR: f64 = 1.15;

/// The largest part of one scenario.
fn part(s: &Scenario) -> Bound {
    let parts = [(s.issue_s, Bound::Issue), (s.memory_s, Bound::Memory), (s.latency_s, Bound::Latency)];
    let mut parts = parts.to_vec();
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    if s.launch_s > parts[0].0 {
        Bound::LaunchTooSmall
    } else if parts[0].0 < CLEAR * parts[1].0 {
        Bound::Balanced
    } else {
        parts[0].1
    }
}

pub(super) fn bound(r: &Roofline, grid: u64) -> Bound {
    let found: Vec<Bound> = r.scenarios.iter().map(part).collect();
    let first = found[0];
    if found.iter().all(|&b| b == first) {
        return match first {
            Bound::Latency if grid < u64::from(r.gpu.sms) => Bound::LaunchTooSmall,
            other => other,
        };
    }
    if found.iter().all(|b| matches!(b, Bound::LaunchTooSmall | Bound::Latency)) && grid < u64::from(r.gpu.sms) {
        return Bound::LaunchTooSmall;
    }
    // What the middle of each range says, if it says so clearly.
    let middle = Scenario {
        issue_s: r.issue_s.middle(),
        memory_s: r.memory_s.middle(),
        latency_s: r.latency_s.middle(),
        launch_s: super::limits::LAUNCH_S[0],
        ..Scenario::default()
    };
    part(&middle)
}

pub(super) fn words(r: &Roofline, grid: u64) -> String {
    let gpu = r.gpu.with_article();
    let sms = r.gpu.sms;
    match r.bound {
        Bound::Issue => format!(
            "Issue-bound on {gpu}: its time is that of its warp instructions, so what saves warp instructions saves time."
        ),
        Bound::Memory => format!(
            "Memory-bound on {gpu}: memory takes longer than the instructions, so fewer warp instructions gain little. Look \
             at bytes and coalescing first."
        ),
        Bound::Latency => match long_warp(r) {
            Some((longest, mean)) => format!(
                "Latency-bound on {gpu}: it ends with its longest warp, which issues {} instructions (mean {}). Regrouping \
                 lanes cannot shorten that warp; splitting or sharing the long items can.",
                words::count(longest),
                words::count(mean)
            ),
            None => format!(
                "Latency-bound on {gpu}: its warps wait for results, and {} resident warps an SM are too few to hide that. \
                 More warps or more independent work in each help; fewer instructions as far as they shorten its longest warp.",
                r.occupancy.warps_per_sm
            ),
        },
        Bound::LaunchTooSmall if grid < u64::from(sms) => {
            let small = format!(
                "Too small for {gpu}: {} {} on {sms} SMs.",
                words::count(grid),
                if grid == 1 { "block" } else { "blocks" }
            );
            match r.demand.longest_warp {
                Some(n) => format!("{small} It takes as long as its longest warp ({} instructions).", words::count(n)),
                None => small,
            }
        }
        Bound::LaunchTooSmall => {
            format!(
                "Too small for {gpu}: the launch itself takes longer than its work. A branch is not what it waits for."
            )
        }
        Bound::Balanced => format!(
            "Balanced on {gpu}: instructions, memory and latency are too close to say which one bounds it; a fix of one \
             gains until the next one does."
        ),
    }
}

/// The longest warp and the mean, if the longest is much longer.
fn long_warp(r: &Roofline) -> Option<(u64, u64)> {
    let longest = r.demand.longest_warp?;
    let blocks = r.demand.blocks.len() as u64;
    let total: u64 = r.demand.blocks.iter().map(|b| b.warp_instructions).sum();
    let mean = total.checked_div(blocks)?;
    (longest >= 3 * mean.max(1)).then_some((longest, mean))
}
