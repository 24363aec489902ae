//! `tail-not-padded`.

use lanescope_ir::finding::Evidence;
use lanescope_ir::op::warp::{SpecialReg, WarpOp};
use lanescope_ir::{Op, Severity};

use super::LintRule;
use super::cx::{Cx, Step};
use crate::words;

/// A block that does not fill its last warp.
pub(super) const RULE: LintRule = LintRule {
    name: "tail-not-padded",
    summary: "the block has no multiple of 32 threads: its last warp is never full",
    page: "\
Hardware runs whole warps: a block of 180 threads takes six, and the last runs every instruction with 20 of 32 lanes. Code
that assumes whole warps (shuffles with the full mask, blockDim.x / 32 warps) is wrong there besides.

What helps: round the block up to a multiple of 32 and guard the loads and stores of the extra threads.

The figure assumes that all warps run the same instructions. It is shown if the block is known (--block, a launch file, or
a shape that the kernel requires).

Evidence: threads_of_block, lanes_of_last_warp, share_of_slots.",
    check: Some(check),
};

fn check(c: &mut Cx<'_>) {
    let Some(block) = c.facts.block.or(c.kernel.required_block) else { return };
    let threads: u64 = block.iter().map(|&d| u64::from(d)).product();
    let last = threads % 32;
    if threads == 0 || last == 0 {
        return;
    }
    let slots = threads.div_ceil(32) * 32;
    let lost = (slots - threads) as f64 / slots as f64;
    let reads_index = |i: &lanescope_ir::Instruction| {
        matches!(&i.op, Op::Warp(WarpOp::Special { reg, .. })
            if reg.iter().any(|r| matches!(r, SpecialReg::Tid(_) | SpecialReg::LaneId | SpecialReg::TidPacked)))
    };
    let Some(inst) = c.kernel.instructions.iter().position(reads_index) else { return };
    let message = format!(
        "A block has {threads} threads, so its last warp has {last} of 32 lanes: {} of all lane slots are empty.",
        words::percent(lost)
    );
    let witness = vec![Step { inst: inst as u32, note: format!("{last} of 32 lanes exist in the last warp") }];
    let evidence = vec![
        ("threads_of_block", Evidence::Count(threads)),
        ("lanes_of_last_warp", Evidence::Count(last)),
        ("share_of_slots", Evidence::Ratio(lost)),
    ];
    c.report(RULE.name, Severity::Info, inst as u32, message, witness, evidence);
}
