//! `divergent-branch`.

use lanescope_ir::Finding;
use lanescope_ir::finding::Evidence;

use super::{Context, Rule};
use crate::attribution::Cause;
use crate::words;

/// A branch that splits warps.
pub(super) const RULE: Rule = Rule {
    name: "divergent-branch",
    summary: "a branch that sends lanes of one warp both ways",
    page: "\
Lanes of a warp that disagree at a branch run both sides one after the other, each with the other side's lanes
idle, until they rejoin. The cost is the length of both sides, not the number of splits: a branch that splits
rarely around long code can cost more than one that always splits around two instructions.

What helps, in this order: make neighbouring threads agree (sort or bucket the data by whatever decides the
branch, or choose by warp instead of by lane); move work that both sides share out of the branch; shorten the
sides until the compiler predicates them. If the loss is under a few per cent, leave it.

Evidence: executed, divergent, lanes_taken, lanes_not_taken, lost_lane_slots, share_of_slots, warp_instructions.",
    check,
};

fn check(c: &Context<'_>, out: &mut Vec<Finding>) {
    for total in &c.analysis.losses.causes {
        let Cause::Branch(inst) = total.cause else { continue };
        let Some(b) = c.branch(inst) else { continue };
        let (severity, cost) = c.cost(total);
        let mut evidence = vec![
            ("executed", Evidence::Count(b.executed)),
            ("divergent", Evidence::Count(b.divergent)),
            ("lanes_taken", Evidence::Count(b.lanes_taken)),
            ("lanes_not_taken", Evidence::Count(b.lanes_not_taken)),
        ];
        evidence.extend(c.evidence(total));
        out.push(Finding {
            rule: RULE.name,
            severity,
            inst: Some(inst),
            message: format!(
                "`{}` at {} split {} of {} groups. {cost}.",
                words::text(c.kernel, inst),
                words::place(c.kernel, inst),
                words::count(b.divergent),
                words::count(b.executed),
            ),
            evidence,
        });
    }
}
