//! `uniform-branch`.

use lanescope_ir::finding::Evidence;
use lanescope_ir::{BranchKind, Finding, Severity};

use super::{Context, Rule};
use crate::cfg::is_conditional;
use crate::words;

/// A branch that never split.
pub(super) const RULE: Rule = Rule {
    name: "uniform-branch",
    summary: "a branch at which the lanes of every warp agreed in this launch",
    page: "\
The code allows lanes to part here, but with this data they never did: all lanes of a warp went the same way each
time. Such a branch costs one instruction. A switch on a value that all threads load from the same address, a loop
with a fixed number of turns or a binary search of fixed depth are of this kind: there is nothing to fix or to sort.

This is an observation about one launch, not a proof for all inputs.

Evidence: executed.",
    check,
};

fn check(c: &Context<'_>, out: &mut Vec<Finding>) {
    for b in c.profile.branches.iter().filter(|b| b.executed > 0 && b.divergent == 0 && b.kind != BranchKind::Exit) {
        let conditional = c.kernel.instructions.get(b.inst as usize).is_some_and(is_conditional);
        if !conditional && b.kind == BranchKind::Branch {
            continue;
        }
        out.push(Finding {
            rule: RULE.name,
            severity: Severity::Info,
            inst: Some(b.inst),
            message: format!(
                "`{}` at {} was executed {} and never split a warp.",
                words::text(c.kernel, b.inst),
                words::place(c.kernel, b.inst),
                words::times(b.executed),
            ),
            evidence: vec![("executed", Evidence::Count(b.executed))],
        });
    }
}
