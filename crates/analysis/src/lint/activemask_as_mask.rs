//! `activemask-as-mask`.

use lanescope_ir::Severity;
use lanescope_ir::finding::Evidence;
use lanescope_ir::op::effects::Access;
use lanescope_ir::op::warp::WarpOp;
use lanescope_ir::{Op, Slot};

use super::LintRule;
use super::cx::{Cx, Step};
use super::syncs::Named;
use crate::uniformity::Verdict;

/// Instructions that are followed back from a mask.
const BACK: usize = 64;

/// `__activemask()` as the mask of a `_sync` operation.
pub(super) const RULE: LintRule = LintRule {
    name: "activemask-as-mask",
    summary: "`__activemask()` decides whom an operation across lanes waits for",
    page: "\
`__activemask()` tells which lanes execute that instruction together at that moment. It does not tell which lanes will
come: since Volta lanes that will take the same branch may still come one after the other, and then each group names
itself alone. A reduction then adds up parts of a warp, and a loop that waits for others to appear in the mask may never
end.

What helps: decide who takes part where all lanes are still together, `m = __ballot_sync(mask, condition)` before the
branch, and name `m` inside it.

Cooperative groups' `coalesced_threads()` does the same on purpose, for work that any group may do by itself; it is not
reported.

Evidence: activemask_pc.",
    check: Some(check),
};

fn check(c: &mut Cx<'_>) {
    for sync in c.syncs.clone() {
        let Named::Register(slot) = sync.named else { continue };
        if c.spoken(sync.op) || !c.alive(sync.at) {
            continue;
        }
        let Some(chain) = from_activemask(c, sync.at, slot) else { continue };
        let Some(&source) = chain.last() else { continue };
        if is_cooperative(c, source) || is_cooperative(c, sync.op) {
            continue;
        }
        // Where all lanes are together the answer is right.
        let partings = c.partings(source);
        let Some(parting) = partings.iter().rfind(|p| p.splits_warps()) else { continue };
        let exact = matches!(parting.branch.verdict, Verdict::Lanes(_));
        let message = format!(
            "The mask of the {} {} at {} comes from {} at {}, in code that only some lanes reach: it names the lanes that \
             happen to be together there, which need not be all that take the branch at {}. Take the mask before the \
             branch, with __ballot_sync.",
            sync.name(),
            c.text(sync.op),
            c.place(sync.op),
            c.text(source),
            c.place(source),
            c.place(parting.branch.inst),
        );
        let mut witness = vec![Step { inst: sync.op, note: "waits for the lanes of the mask".to_owned() }];
        witness.extend(
            chain.iter().map(|&i| Step {
                inst: i,
                note: if i == source { "asks who is here".to_owned() } else { String::new() },
            }),
        );
        witness.extend(c.because(parting));
        let pc = c.kernel.instructions.get(source as usize).map_or(0, |i| i.pc);
        c.speak([sync.op, sync.at]);
        let severity = if exact { Severity::Info } else { Severity::Warning };
        c.report(RULE.name, severity, sync.op, message, witness, vec![("activemask_pc", Evidence::Count(pc.into()))]);
    }
}

/// The instructions from a mask back to the `__activemask()` it comes from, if it does.
fn from_activemask(c: &Cx<'_>, at: u32, slot: Slot) -> Option<Vec<u32>> {
    let mut chain = Vec::new();
    let mut slot = slot;
    let mut at = at;
    for _ in 0..BACK {
        let write = last_write(c, at, slot)?;
        let inst = c.kernel.instructions.get(write as usize)?;
        chain.push(write);
        match &inst.op {
            Op::Warp(WarpOp::ActiveMask { .. }) => return Some(chain),
            // Machine code asks with a vote on the constant true, without waiting for anybody before.
            Op::Warp(WarpOp::Vote { src, dst: Some(d), .. }) if *d == slot && c.is_sass() => {
                let plain = src.is_true() && inst.guard.is_true();
                let waits = c.syncs.iter().any(|s| s.op == write && s.at != write);
                return (plain && !waits).then_some(chain);
            }
            // Copies.
            Op::Lane(_) | Op::Warp(WarpOp::Broadcast { .. }) => {
                let mut sources = Vec::new();
                inst.for_each_slot(|s, access| {
                    if access == Access::Read {
                        sources.push(s);
                    }
                });
                let [only] = sources.as_slice() else { return None };
                (slot, at) = (*only, write);
            }
            _ => return None,
        }
    }
    None
}

/// The only instruction that `slot` can come from at `at`, along a path without joins.
fn last_write(c: &Cx<'_>, at: u32, slot: Slot) -> Option<u32> {
    let cfg = &c.structure.cfg;
    let mut block = cfg.block(at)?;
    let mut end = at;
    for _ in 0..BACK {
        let b = cfg.blocks.get(block as usize)?;
        for i in (b.first..end).rev() {
            let mut writes = false;
            c.kernel.instructions.get(i as usize)?.for_each_slot(|s, a| writes |= s == slot && a == Access::Write);
            if writes {
                return Some(i);
            }
        }
        block = c.structure.dom.idom(block).filter(|&d| d < cfg.entry())?;
        end = cfg.blocks.get(block as usize).map(|b| b.first + b.len)?;
    }
    None
}

fn is_cooperative(c: &Cx<'_>, inst: u32) -> bool {
    let Some(location) = c.kernel.source.get(inst as usize) else { return false };
    let files = std::iter::once(location.file).chain(location.inlined_at.iter().map(|s| s.file));
    files.into_iter().any(|f| c.kernel.source.files.get(f as usize).is_some_and(|f| f.contains("cooperative_groups")))
}
