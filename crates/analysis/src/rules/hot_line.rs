//! `hot-line`.

use lanescope_ir::finding::Evidence;
use lanescope_ir::{Finding, Severity};

use super::{Context, Rule};
use crate::words;

/// A line of a hot loop with few lanes.
pub(super) const RULE: Rule = Rule {
    name: "hot-line",
    summary: "a line in a hot loop that runs with fewer than 28 of 32 threads per instruction",
    page: "\
Lanes matter where the time goes. A loop is hot if it issues at least 5 % of the kernel's warp instructions; its
lines are flagged if fewer than 28 of 32 threads are active per instruction. The finding names the largest cause;
see that cause's rule for what helps.

Evidence: inst_executed, thread_inst_executed, threads_per_inst, lost_lane_slots.",
    check,
};

fn check(c: &Context<'_>, out: &mut Vec<Finding>) {
    let width = c.profile.shape.warp_size.max(1);
    for line in c.analysis.lines.iter().filter(|l| l.flagged) {
        let Some(&inst) =
            line.instructions.iter().find(|&&i| c.profile.counts.get(i as usize).is_some_and(|c| c.inst_executed > 0))
        else {
            continue;
        };
        out.push(Finding {
            rule: RULE.name,
            severity: Severity::Info,
            inst: Some(inst),
            message: format!(
                "{} is in a hot loop and runs with {} of {width} threads per instruction.",
                words::at_line(c.kernel, inst)
                    .unwrap_or_else(|| format!("The block at {}", words::place(c.kernel, inst))),
                words::lanes(line.threads_per_inst()),
            ),
            evidence: vec![
                ("inst_executed", Evidence::Count(line.inst_executed)),
                ("thread_inst_executed", Evidence::Count(line.thread_inst_executed)),
                ("threads_per_inst", Evidence::Ratio(line.threads_per_inst())),
                ("lost_lane_slots", Evidence::Count(line.lost)),
            ],
        });
    }
}
