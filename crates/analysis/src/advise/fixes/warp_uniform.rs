//! Lanes of a warp take turns at one lock or one word: let one lane do it for all.

use std::collections::HashSet;

use lanescope_ir::Op;
use lanescope_ir::op::memory::MemoryOp;

use super::{Candidate, blocks_of, draft, place, uneven, whole};
use crate::advise::cx::Cx;
use crate::advise::{Confidence, Method};
use crate::slice::SourceKind;

/// A ballot, a count, the choice of a lane, a shuffle of the result.
const EXTRA: f64 = 4.0;

pub(super) fn find(cx: &Cx<'_>, out: &mut Vec<Candidate>) {
    let s = &cx.input.analysis.structure;
    for (cause, l) in uneven(cx) {
        let inside = blocks_of(cx, l);
        let Some(atomic) = inside
            .iter()
            .filter_map(|&b| s.cfg.blocks.get(b as usize))
            .flat_map(|b| b.instructions())
            .find(|&i| same_word(cx, i))
        else {
            continue;
        };
        if !cause.slice.sources.iter().any(|s| matches!(s.kind, SourceKind::Atomic { .. })) {
            continue;
        }
        let header = s.loops.list[l as usize].header;
        let issues = |b: u32| cx.model.identity().issues.get(b as usize).copied().unwrap_or(0.0);
        if issues(header) <= 0.0 {
            continue;
        }
        // One turn for each warp that comes there, and what is around the loop once: nobody is late any more.
        let all: Vec<u32> = (0..cx.model.threads() as u32).collect();
        let grouping = cx.model.grouping(&all);
        let come = |b: u32| {
            let row = cx.model.executions(b);
            grouping.warps().filter(|w| w.iter().any(|&t| row.get(t as usize) > Some(&0))).count() as f64
        };
        let share = cx.model.threads() as f64 / cx.input.threads.of.max(1) as f64;
        let once: f64 = (0..s.cfg.blocks.len() as u32).map(|b| come(b) * cx.model.length(b)).sum();
        let predicted = whole((once + come(header) * EXTRA) / share);
        if predicted >= cx.before() {
            continue;
        }
        let mut fix = draft(cx, Method::WarpUniform, predicted, Confidence::Estimate);
        fix.title = "one lane for the whole warp".into();
        fix.what_to_do = format!(
            "All lanes of a warp want the same word at {}, and one wins in each turn. Let the warp agree first (a ballot), \
             and one lane do it for all of them; or use one atomic addition instead of the lock.",
            place(cx, atomic)
        );
        fix.at = cause.keyed.cause.inst();
        out.push(Candidate { fix, order: None });
        return;
    }
}

/// Whether an instruction is an atomic on one word for all threads.
fn same_word(cx: &Cx<'_>, inst: u32) -> bool {
    let op = cx.input.kernel.instructions.get(inst as usize).map(|i| &i.op);
    if !matches!(op, Some(Op::Memory(MemoryOp::Atomic { .. }))) {
        return false;
    }
    let Some(access) = cx.input.threads.accesses.iter().find(|a| a.inst == inst) else { return false };
    let words: HashSet<u64> =
        access.threads.iter().filter(|t| t.count > 0).flat_map(|t| [t.low, t.high]).take(1 << 16).collect();
    words.len() == 1
}
