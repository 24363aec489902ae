//! `split-exit`.

use lanescope_ir::finding::Evidence;
use lanescope_ir::{Finding, Severity};

use super::{Context, Rule};
use crate::attribution::Cause;
use crate::words;

/// A predicated `EXIT` that takes some lanes of a warp.
pub(super) const RULE: Rule = Rule {
    name: "split-exit",
    summary: "a predicated EXIT at which some lanes of a warp leave and others go on",
    page: "\
`if (...) return;` usually becomes `@P0 EXIT`. Lanes that leave are gone for the rest of the kernel; the others
go on with fewer lanes. It is no branch, so profilers count no divergent branch here, however many lanes are lost.

A bounds check at the end of the grid splits one warp and costs nothing worth mentioning: leave it. If many warps
are split, the work is spread thinly over the threads: compact it first (collect the indices of the items that
need work, then launch over those), or sort by the condition so that whole warps leave.

Evidence: executed, split, lanes_left, lanes_stayed, lost_lane_slots, share_of_slots, warp_instructions.",
    check,
};

fn check(c: &Context<'_>, out: &mut Vec<Finding>) {
    for total in &c.analysis.losses.causes {
        let Cause::Exit(inst) = total.cause else { continue };
        let Some(b) = c.branch(inst) else { continue };
        let (severity, cost) = c.cost(total);
        let mut evidence = vec![
            ("executed", Evidence::Count(b.executed)),
            ("split", Evidence::Count(b.divergent)),
            ("lanes_left", Evidence::Count(b.lanes_taken)),
            ("lanes_stayed", Evidence::Count(b.lanes_not_taken)),
        ];
        evidence.extend(c.evidence(total));
        out.push(Finding {
            rule: RULE.name,
            severity,
            inst: Some(inst),
            message: format!(
                "At `{}`, {}, some lanes left and others stayed in {} of {} groups. {cost}.{}",
                words::text(c.kernel, inst),
                words::place(c.kernel, inst),
                words::count(b.divergent),
                words::count(b.executed),
                if severity == Severity::Info { " Not worth a fix." } else { "" },
            ),
            evidence,
        });
    }
}
