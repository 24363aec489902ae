//! `barrier-after-exit`.

use std::collections::HashSet;

use lanescope_ir::Severity;
use lanescope_ir::finding::Evidence;

use super::LintRule;
use super::barriers::{barriers, witness};
use super::cx::Cx;

/// A barrier behind an exit of some threads.
pub(super) const RULE: LintRule = LintRule {
    name: "barrier-after-exit",
    summary: "some threads of the block return before a __syncthreads",
    page: "\
The contract of `__syncthreads()` is that all threads of the block come to it. Hardware from Volta on does not wait for
threads that have exited, so an early return before it does not hang there; it does on other vendors' GPUs and in
emulators. What goes wrong everywhere is the data: the threads that left have not done their share, and what they should
have written to shared memory before the barrier is read by the others after it.

What helps: keep all threads to the last barrier and guard the work, not the barrier: `if (i < n) s[t] = x[i];`.

An error if lanes of one warp leave while others stay; a warning if whole warps leave.

Evidence: exit_pc.",
    check: Some(check),
};

fn check(c: &mut Cx<'_>) {
    let mut reported: HashSet<u32> = HashSet::new();
    for b in &barriers(c) {
        if c.spoken(b.at) {
            continue;
        }
        for p in b.partings.iter().filter(|p| p.leaves) {
            if !reported.insert(p.branch.inst) {
                continue;
            }
            let pc = c.kernel.instructions.get(p.branch.inst as usize).map_or(0, |i| i.pc);
            let severity = if p.splits_warps() { Severity::Error } else { Severity::Warning };
            let message = format!(
                "Threads leave at {}, {}, before the barrier {} at {}: {}. From Volta on nobody waits for them, but what \
                 they should have done before the barrier is not done; elsewhere the barrier hangs. Guard the work, not \
                 the barrier.",
                c.text(p.branch.inst),
                c.place(p.branch.inst),
                c.text(b.at),
                c.place(b.at),
                if p.splits_warps() { c.split(p) } else { "whole warps are missing".to_owned() },
            );
            let steps = witness(c, b, p, None);
            c.report(RULE.name, severity, b.at, message, steps, vec![("exit_pc", Evidence::Count(pc.into()))]);
        }
    }
}
