//! `barrier-in-divergent-code`.

use std::collections::HashSet;

use lanescope_ir::Severity;
use lanescope_ir::finding::Evidence;

use super::LintRule;
use super::barriers::{Arms, arms, barriers, witness};
use super::cx::Cx;

/// A barrier that only some threads come to.
pub(super) const RULE: LintRule = LintRule {
    name: "barrier-in-divergent-code",
    summary: "a __syncthreads that only some threads of the block come to",
    page: "\
`__syncthreads()` waits for all threads of the block that have not exited. In a branch that depends on the thread's index,
or in a loop whose turns differ between threads, some do not come.

What happens depends on who is missing. If whole warps are missing, the others wait for ever, or until the missing ones
come to another barrier, which then opens at the wrong place. If only some lanes of a warp are missing, hardware from
Volta on counts the warp as arrived and the barrier does not protect what it should: data is read before it is written.
Before Volta, and on other vendors' GPUs, it hangs.

What helps: take the barrier out of the branch and guard only the work; make the number of turns the same for the block
(run to a bound rounded up, and guard the body); for some warps only, use a named barrier with a count.

Evidence: branch_pc.",
    check: Some(check),
};

fn check(c: &mut Cx<'_>) {
    let all = barriers(c);
    let mut reported: HashSet<u32> = HashSet::new();
    for b in &all {
        if c.spoken(b.at) {
            continue;
        }
        for p in b.partings.iter().filter(|p| !p.leaves) {
            if matches!(arms(c, &all, b, p), Arms::Both(_)) || !reported.insert(p.branch.inst) {
                continue;
            }
            let pc = c.kernel.instructions.get(p.branch.inst as usize).map_or(0, |i| i.pc);
            let who = match (p.splits_warps(), p.branch.leaves_loop.is_some()) {
                (true, true) => format!("threads of one warp leave the loop after unequal turns ({})", c.split(p)),
                (true, false) => format!("it splits warps: {}", c.split(p)),
                (false, true) => "warps leave the loop after unequal turns".to_owned(),
                (false, false) => "some warps of the block do not come".to_owned(),
            };
            let message = format!(
                "The barrier {} at {} is reached only through {} at {}, and {who}. It waits for threads that do not come, \
                 or opens without them.",
                c.text(b.at),
                c.place(b.at),
                c.text(p.branch.inst),
                c.place(p.branch.inst),
            );
            let steps = witness(c, b, p, None);
            c.speak([b.at]);
            let evidence = vec![("branch_pc", Evidence::Count(pc.into()))];
            c.report(RULE.name, Severity::Error, b.at, message, steps, evidence);
            break;
        }
    }
}
