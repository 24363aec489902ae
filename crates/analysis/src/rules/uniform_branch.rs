//! `uniform-branch`.

use lanescope_ir::finding::Evidence;
use lanescope_ir::{BranchCounts, BranchKind, Finding, Severity};

use super::{Context, Rule};
use crate::cfg::is_conditional;
use crate::lines::{Place, place};
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

Evidence: branches, executed.",
    check,
};

fn check(c: &Context<'_>, out: &mut Vec<Finding>) {
    let mut groups: Vec<(Place, Vec<&BranchCounts>)> = Vec::new();
    for b in c.profile.branches.iter().filter(|b| b.executed > 0 && b.divergent == 0 && b.kind != BranchKind::Exit) {
        let conditional = c.kernel.instructions.get(b.inst as usize).is_some_and(is_conditional);
        if !conditional && b.kind == BranchKind::Branch {
            continue;
        }
        let place = match place(c.kernel, &c.analysis.structure, b.inst) {
            Place::Block(_) => Place::Block(b.inst),
            line => line,
        };
        match groups.iter_mut().find(|g| g.0 == place) {
            Some(g) => g.1.push(b),
            None => groups.push((place, vec![b])),
        }
    }
    for (_, branches) in groups {
        let Some(first) = branches.first() else { continue };
        let executed = branches.iter().fold(0u64, |n, b| n.saturating_add(b.executed));
        let what = match branches.len() {
            1 => format!("`{}` at {} was", words::text(c.kernel, first.inst), words::place(c.kernel, first.inst)),
            n => {
                let place = words::at_line(c.kernel, first.inst).unwrap_or_else(|| words::place(c.kernel, first.inst));
                format!("The {n} branches at {place} were")
            }
        };
        out.push(Finding {
            rule: RULE.name,
            severity: Severity::Info,
            inst: Some(first.inst),
            message: format!("{what} executed {} and never split a warp.", words::times(executed)),
            evidence: vec![
                ("branches", Evidence::Count(branches.len() as u64)),
                ("executed", Evidence::Count(executed)),
            ],
        });
    }
}
