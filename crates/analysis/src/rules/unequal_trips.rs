//! `unequal-trips`.

use lanescope_ir::Finding;
use lanescope_ir::finding::Evidence;

use super::{Context, Rule};
use crate::attribution::Cause;
use crate::words;

/// A loop whose lanes turn unequally often.
pub(super) const RULE: Rule = Rule {
    name: "unequal-trips",
    summary: "a loop in which lanes of one warp make different numbers of turns",
    page: "\
A warp goes round a loop as often as its busiest lane. Lanes that are done wait. The loop's lane efficiency is
the turns that lanes made divided by 32 times the turns that warps made.

What helps: give neighbouring threads equal work (sort or bucket by trip count), let several lanes share one
long item, let a free lane fetch the next item instead of waiting, or merge a nested loop into its outer loop so
that lanes rejoin once and not after every inner loop. Which one pays depends on the trip counts: one warp per
item wastes more than it saves if most items are short.

Evidence: executed, divergent, warp_turns, lane_turns, loop_lane_efficiency, trips_min, trips_max, trips_mean,
lost_lane_slots, share_of_slots, warp_instructions.",
    check,
};

fn check(c: &Context<'_>, out: &mut Vec<Finding>) {
    let width = f64::from(c.profile.shape.warp_size.max(1));
    for total in &c.analysis.losses.causes {
        let Cause::Trips { branch, header } = total.cause else { continue };
        let Some(b) = c.branch(branch) else { continue };
        let (severity, cost) = c.cost(total);
        let mut evidence = vec![("executed", Evidence::Count(b.executed)), ("divergent", Evidence::Count(b.divergent))];
        let mut turns = String::new();
        if let Some(l) = c.analysis.loops.iter().find(|l| l.header == header) {
            let efficiency = l.lane_turns as f64 / (width * l.warp_turns as f64);
            evidence.push(("warp_turns", Evidence::Count(l.warp_turns)));
            evidence.push(("lane_turns", Evidence::Count(l.lane_turns)));
            evidence.push(("loop_lane_efficiency", Evidence::Ratio(efficiency)));
            turns = format!(
                " Its warps make {} turns, its lanes {}: {} of {width} lanes busy on average.",
                words::count(l.warp_turns),
                words::count(l.lane_turns),
                words::lanes(efficiency * width),
            );
            if let Some(t) = l.trips {
                evidence.push(("trips_min", Evidence::Count(t.min)));
                evidence.push(("trips_max", Evidence::Count(t.max)));
                evidence.push(("trips_mean", Evidence::Ratio(t.mean)));
                turns.push_str(&format!(
                    " A thread turns {} to {} times, {} on average.",
                    words::count(t.min),
                    words::count(t.max),
                    words::lanes(t.mean)
                ));
            }
        }
        evidence.extend(c.evidence(total));
        out.push(Finding {
            rule: RULE.name,
            severity,
            inst: Some(branch),
            message: format!(
                "Lanes leave the loop at `{}`, {}, after unequal numbers of turns: {} of {} groups split there.{turns} \
                 {cost}.",
                words::text(c.kernel, branch),
                words::place(c.kernel, branch),
                words::count(b.divergent),
                words::count(b.executed),
            ),
            evidence,
        });
    }
}
