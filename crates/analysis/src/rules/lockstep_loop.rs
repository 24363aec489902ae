//! `lockstep-loop`.

use lanescope_ir::finding::Evidence;
use lanescope_ir::op::warp::WarpOp;
use lanescope_ir::{Finding, Op, Pred, Severity};

use super::{Context, Rule};
use crate::words;

/// A loop that goes on while any lane of the warp wants to.
pub(super) const RULE: Rule = Rule {
    name: "lockstep-loop",
    summary: "a loop whose condition is a vote: it turns as often as its busiest lane, and no counter shows it",
    page: "\
Tensor languages turn `while (any lane still has work)` into a vote and a uniform branch. No branch splits and all
lanes stay active, so every lane counter looks perfect; yet lanes that are done go round with their results masked
away. The cost is the same as that of unequal trips, plus a vote in every turn.

What helps: sort or bucket the items by trip count. An exit per lane saves only the vote.

Evidence: warp_turns, vote_pc.",
    check,
};

fn check(c: &Context<'_>, out: &mut Vec<Finding>) {
    let s = &c.analysis.structure;
    for stat in &c.analysis.loops {
        let Some(l) =
            s.loops.list.iter().find(|l| s.cfg.blocks.get(l.header as usize).is_some_and(|b| b.first == stat.header))
        else {
            continue;
        };
        for &latch in &l.latches {
            let Some(block) = s.cfg.blocks.get(latch as usize) else { continue };
            let branch = block.last();
            let Some(pred) = c.kernel.instructions.get(branch as usize).and_then(|i| i.guard.pred) else { continue };
            let Some(vote) = last_vote(c, block.first, branch, pred) else { continue };
            out.push(Finding {
                rule: RULE.name,
                severity: Severity::Info,
                inst: Some(branch),
                message: format!(
                    "The loop that ends at {} goes on while `{}` says that any lane wants to: all lanes turn as often \
                     as the busiest one ({} warp turns), with finished lanes masked. Lane counters do not show this loss.",
                    words::place(c.kernel, branch),
                    words::text(c.kernel, vote),
                    words::count(stat.warp_turns),
                ),
                evidence: vec![
                    ("warp_turns", Evidence::Count(stat.warp_turns)),
                    ("vote_pc", Evidence::Count(c.kernel.instructions.get(vote as usize).map_or(0, |i| i.pc.into()))),
                ],
            });
        }
    }
}

/// The vote in `first..branch` that `pred` comes from, if the last write to it is one.
fn last_vote(c: &Context<'_>, first: u32, branch: u32, pred: Pred) -> Option<u32> {
    for at in (first..branch).rev() {
        let inst = c.kernel.instructions.get(at as usize)?;
        let mut writes = false;
        inst.for_each_pred(|p, access| writes |= p == pred && access == lanescope_ir::op::effects::Access::Write);
        if writes {
            return matches!(inst.op, Op::Warp(WarpOp::Vote { .. })).then_some(at);
        }
    }
    None
}
