//! `lockstep-loop`.

use lanescope_ir::finding::Evidence;
use lanescope_ir::{Finding, Severity};

use super::{Context, Rule, severity};
use crate::words;

/// A loop that goes on while any lane of the warp wants to.
pub(super) const RULE: Rule = Rule {
    name: "lockstep-loop",
    summary: "a loop whose condition is a vote: it turns as often as its busiest lane, and no counter shows it",
    page: "\
Tensor languages turn `while (any lane still has work)` into a vote and a uniform branch. No branch splits and all
lanes stay active, so every lane counter looks perfect; yet lanes that are done go round, and a select or a guard
drops what they compute. The cost is the same as that of unequal trips, plus a vote in every turn.

The loop is found in the code: a branch that leaves it is decided by a vote, a ballot, a reduction or a reducing block
barrier over a predicate of the lanes. Selects and guards in its body that go by the same predicate are counted; they
tell the useful turns of lanes. Slots in which a lane worked for nothing are called discarded and are not among the
lost lane slots, for the lanes were active. Where the loop has branches of its own, their number is an estimate.

What helps: sort or bucket the items by trip count. An exit per lane saves only the vote.

Evidence: warp_turns, vote_pc; and if the loop has a select or a guard that tells: select_pc, lane_turns,
useful_lane_turns, useful_efficiency (useful turns of lanes over warp size times warp turns), discarded_lane_slots.",
    check,
};

fn check(c: &Context<'_>, out: &mut Vec<Finding>) {
    let width = c.profile.shape.warp_size.max(1);
    let pc = |inst: u32| Evidence::Count(c.kernel.instructions.get(inst as usize).map_or(0, |i| i.pc.into()));
    for stat in &c.analysis.lockstep {
        let l = &stat.lockstep;
        let vote = words::text(c.kernel, l.vote);
        let place = words::place(c.kernel, l.branch);
        let turns = c.profile.counts.get(l.header as usize).map_or(0, |c| c.inst_executed);
        let (turns, severity, cost, mut evidence) = match stat.useful {
            None => {
                let why = if l.discards.is_empty() {
                    "Nothing in it tells how many lanes still had work."
                } else {
                    "How many lanes still had work was not counted."
                };
                (turns, Severity::Info, why.to_owned(), Vec::new())
            }
            Some(u) => {
                let share = stat.discarded as f64 / c.analysis.losses.slots.max(1) as f64;
                let efficiency = u.efficiency(width);
                let text = format!(
                    "Of the {} lane slots of its {} warp turns {} did useful work ({:.6}), as `{}` tells: {}{} active lane \
                     slots ({} of all) computed what is thrown away.",
                    words::count(u64::from(width).saturating_mul(u.warp_turns)),
                    words::count(u.warp_turns),
                    words::count(u.useful),
                    efficiency,
                    words::text(c.kernel, u.inst),
                    if stat.estimate { "about " } else { "" },
                    words::count(stat.discarded),
                    words::share(stat.discarded, c.analysis.losses.slots),
                );
                let evidence = vec![
                    ("select_pc", pc(u.inst)),
                    ("lane_turns", Evidence::Count(u.lane_turns)),
                    ("useful_lane_turns", Evidence::Count(u.useful)),
                    ("useful_efficiency", Evidence::Ratio(efficiency)),
                    ("discarded_lane_slots", Evidence::Count(stat.discarded)),
                ];
                (u.warp_turns, severity(share), text, evidence)
            }
        };
        evidence.splice(0..0, [("warp_turns", Evidence::Count(turns)), ("vote_pc", pc(l.vote))]);
        out.push(Finding {
            rule: RULE.name,
            severity,
            inst: Some(l.branch),
            message: format!(
                "The loop that ends at {place} goes on while `{vote}` says that any lane wants to, so that all lanes \
                 turn as often as the busiest one; lane counters do not show this loss. {cost}"
            ),
            evidence,
        });
    }
}
