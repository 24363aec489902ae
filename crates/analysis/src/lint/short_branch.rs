//! `short-branch`.

use lanescope_ir::Severity;
use lanescope_ir::finding::Evidence;

use super::LintRule;
use super::arms::arms;
use super::cx::{Cx, Step, chain};
use crate::uniformity::Level;

/// Instructions of both sides together that ptxas still predicates.
const SHORT: u64 = 7;

/// A branch of PTX that machine code will not have.
pub(super) const RULE: LintRule = LintRule {
    name: "short-branch",
    summary: "a branch of PTX around so little that ptxas will predicate it",
    page: "\
PTX shows a branch; machine code will not. For a few instructions ptxas computes with a guard or a select, and no warp
splits: what is left of the branch is the guarded instructions themselves, issued once for all lanes.

There is nothing to fix. To see what became of it, check or run the machine code: give the .cu file, a cubin, or the PTX
with --via ptxas.

Evidence: instructions.",
    check: Some(check),
};

fn check(c: &mut Cx<'_>) {
    if c.is_sass() {
        return;
    }
    for branch in &c.uniformity.branches {
        let Some((jump, fall)) = arms(c, branch).filter(|_| branch.level > Level::Warp) else { continue };
        let len = jump.len + fall.len;
        if len == 0 || len > SHORT || !jump.pure || !fall.pure || jump.loops || fall.loops {
            continue;
        }
        let message = format!(
            "{} at {} is around {len} instructions: ptxas will predicate it, and no warp splits.",
            c.text(branch.inst),
            c.place(branch.inst),
        );
        let mut witness = vec![Step { inst: branch.inst, note: format!("{len} instructions on both sides") }];
        witness.extend(chain(c.kernel, branch).into_iter().skip(1).take(4));
        c.report(
            RULE.name,
            Severity::Info,
            branch.inst,
            message,
            witness,
            vec![("instructions", Evidence::Count(len))],
        );
    }
}
