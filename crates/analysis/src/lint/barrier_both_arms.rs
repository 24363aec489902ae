//! `barrier-both-arms`.

use std::collections::HashSet;

use lanescope_ir::Severity;
use lanescope_ir::finding::Evidence;

use super::LintRule;
use super::barriers::{Arms, arms, barriers, witness};
use super::cx::Cx;

/// A barrier in each arm of a branch that splits warps.
pub(super) const RULE: LintRule = LintRule {
    name: "barrier-both-arms",
    summary: "each arm of a branch that splits warps has its own __syncthreads",
    page: "\
`__syncthreads()` is one place that all threads of the block come to. Two calls in two arms of a branch that lanes of one
warp take differently are two barriers. From Volta on the hardware counts an arrival for the warp whenever any group of
its lanes issues the barrier: the first arm's lanes then count for the whole warp, the barrier opens before the second
arm's lanes have come, and their arrival counts for the next one. Results can be right by luck; a checker reports an error
for each thread, and older GPUs and other vendors hang.

A compiler can make this of a single barrier behind the branch, by copying the code behind it into both arms. Then the
machine code shows it and the source does not.

What helps: one barrier, behind the branch.

Evidence: branch_pc, other_barrier_pc.",
    check: Some(check),
};

fn check(c: &mut Cx<'_>) {
    let all = barriers(c);
    let mut reported: HashSet<u32> = HashSet::new();
    for b in &all {
        for p in b.partings.iter().filter(|p| p.splits_warps() && !p.leaves) {
            let Arms::Both(other) = arms(c, &all, b, p) else { continue };
            c.speak([b.at, other]);
            if !reported.insert(p.branch.inst) || reported.contains(&other) {
                continue;
            }
            // Guards name each other.
            reported.insert(b.at);
            let pc = |i: u32| Evidence::Count(c.kernel.instructions.get(i as usize).map_or(0, |i| i.pc).into());
            let evidence = vec![("branch_pc", pc(p.branch.inst)), ("other_barrier_pc", pc(other))];
            let message = format!(
                "The barrier at {} and the one at {} are in different arms of {} at {}, which splits warps: {}. Lanes of \
                 one warp wait at two barriers, and each counts for the whole warp.",
                c.place(b.at),
                c.place(other),
                c.text(p.branch.inst),
                c.place(p.branch.inst),
                c.split(p),
            );
            let steps = witness(c, b, p, Some(other));
            c.report(RULE.name, Severity::Error, b.at, message, steps, evidence);
        }
    }
}
