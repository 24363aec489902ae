//! `divergent-branch`.

use lanescope_ir::Finding;
use lanescope_ir::finding::Evidence;

use super::{Context, Rule};
use crate::attribution::{Cause, CauseTotal};
use crate::lines::{Place, place};
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

Evidence: branches, executed, divergent, lanes_taken, lanes_not_taken, lost_lane_slots, share_of_slots, warp_instructions.",
    check,
};

fn check(c: &Context<'_>, out: &mut Vec<Finding>) {
    // A switch or a chain of conditions is one line and several branches: one finding.
    let mut groups: Vec<(Place, Vec<(u32, &CauseTotal)>)> = Vec::new();
    for total in &c.analysis.losses.causes {
        let Cause::Branch(inst) = total.cause else { continue };
        let place = match place(c.kernel, &c.analysis.structure, inst) {
            Place::Block(_) => Place::Block(inst),
            line => line,
        };
        match groups.iter_mut().find(|g| g.0 == place) {
            Some(g) => g.1.push((inst, total)),
            None => groups.push((place, vec![(inst, total)])),
        }
    }
    for (_, branches) in groups {
        let Some(&(first, largest)) = branches.first() else { continue };
        let mut sum = *largest;
        let (mut executed, mut divergent, mut taken, mut passed) = (0u64, 0u64, 0u64, 0u64);
        for (i, (inst, total)) in branches.iter().enumerate() {
            if i > 0 {
                sum.lanes = sum.lanes.saturating_add(total.lanes);
                sum.warp_instructions += total.warp_instructions;
            }
            let Some(b) = c.branch(*inst) else { continue };
            executed = executed.saturating_add(b.executed);
            divergent = divergent.saturating_add(b.divergent);
            taken = taken.saturating_add(b.lanes_taken);
            passed = passed.saturating_add(b.lanes_not_taken);
        }
        let (severity, cost) = c.cost(&sum);
        let splits = format!("split {} of {} groups", words::count(divergent), words::count(executed));
        let message = match branches.len() {
            1 => format!("`{}` at {} {splits}. {cost}.", words::text(c.kernel, first), words::place(c.kernel, first)),
            n => format!(
                "{} diverges at {n} branches (a switch, or a chain of conditions), `{}` the costliest; together they \
                 {splits}. {cost}.",
                words::at_line(c.kernel, first).unwrap_or_else(|| words::place(c.kernel, first)),
                words::text(c.kernel, first),
            ),
        };
        let mut evidence = vec![
            ("branches", Evidence::Count(branches.len() as u64)),
            ("executed", Evidence::Count(executed)),
            ("divergent", Evidence::Count(divergent)),
            ("lanes_taken", Evidence::Count(taken)),
            ("lanes_not_taken", Evidence::Count(passed)),
        ];
        evidence.extend(c.evidence(&sum));
        out.push(Finding { rule: RULE.name, severity, inst: Some(first), message, evidence });
    }
}
