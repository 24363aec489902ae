//! `partial-warp`.

use lanescope_ir::Finding;
use lanescope_ir::finding::Evidence;

use super::{Context, Rule};
use crate::attribution::Cause;
use crate::words;

/// Blocks that do not fill their last warp.
pub(super) const RULE: Rule = Rule {
    name: "partial-warp",
    summary: "the number of threads of a block is no multiple of the warp size",
    page: "\
Hardware runs whole warps. A block of 180 threads takes six warps, and the last one runs every instruction with 20
of 32 lanes. Besides the cost, code that assumes whole warps (shuffles with the full mask, blockDim.x / 32 warps)
is wrong there.

What helps: round the block size up to a multiple of 32 and let the extra threads carry a neutral value.

Evidence: threads_of_block, lanes_of_last_warp, lost_lane_slots, share_of_slots, warp_instructions.",
    check,
};

fn check(c: &Context<'_>, out: &mut Vec<Finding>) {
    for total in c.analysis.losses.causes.iter().filter(|t| t.cause == Cause::PartialWarp) {
        let (severity, cost) = c.cost(total);
        let threads: u64 = c.profile.shape.block.iter().map(|&d| u64::from(d)).product();
        let width = u64::from(c.profile.shape.warp_size.max(1));
        let last = match threads % width {
            0 => width,
            some => some,
        };
        let mut evidence =
            vec![("threads_of_block", Evidence::Count(threads)), ("lanes_of_last_warp", Evidence::Count(last))];
        evidence.extend(c.evidence(total));
        out.push(Finding {
            rule: RULE.name,
            severity,
            inst: None,
            message: format!(
                "A block has {} threads, so its last warp has {last} of {width} lanes. {cost}.",
                words::count(threads)
            ),
            evidence,
        });
    }
}
