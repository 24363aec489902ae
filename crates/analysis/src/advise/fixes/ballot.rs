//! Skip guarded code when no lane of the warp wants it. It can lose: a rare lane among 32 is not rare.

use lanescope_ir::{Op, PredSrc};

use super::{Candidate, draft, place, whole};
use crate::advise::cx::Cx;
use crate::advise::{Confidence, Method};
use crate::words;

/// Guarded instructions in a row that are worth a look.
const LENGTH: usize = 4;
/// The vote, and the branch.
const VOTE: f64 = 2.0;

pub(super) fn find(cx: &Cx<'_>, out: &mut Vec<Candidate>) {
    let s = &cx.input.analysis.structure;
    let counts = &cx.input.profile.counts;
    let mut best: Option<(u32, usize, f64, f64)> = None;
    for (b, block) in (0u32..).zip(&s.cfg.blocks) {
        for (first, length) in runs(cx, block.instructions()) {
            let Some(c) = counts.get(first as usize).filter(|c| c.inst_executed > 0 && length >= LENGTH) else {
                continue;
            };
            let off = nobody(cx, b, first, length).unwrap_or_else(|| {
                // Lanes that choose independently, as many as a group has.
                let on = c.thread_inst_executed_pred_on as f64 / c.thread_inst_executed.max(1) as f64;
                let lanes = c.thread_inst_executed as f64 / c.inst_executed as f64;
                c.inst_executed as f64 * (1.0 - on).powf(lanes)
            });
            let saved = off * length as f64 - c.inst_executed as f64 * VOTE;
            if best.is_none_or(|x| saved > x.2) {
                best = Some((first, length, saved, off / c.inst_executed as f64));
            }
        }
    }
    let Some((inst, length, saved, share)) = best else { return };
    let mut fix = draft(cx, Method::BallotSkip, whole(cx.before() as f64 - saved), Confidence::Estimate);
    fix.title = format!("skip {length} guarded instructions when no lane wants them");
    fix.what_to_do = format!(
        "Ask with a ballot before {} whether any lane wants the {length} guarded instructions there, and branch around them \
         if none does: that is so in {} of the cases.",
        place(cx, inst),
        words::percent(share)
    );
    if saved < 0.0 {
        fix.caveats.push("The vote and the branch cost more than the skipped instructions save.".into());
    }
    fix.at = Some(inst);
    out.push(Candidate { fix, order: None });
}

/// Runs of instructions under the same guard that do not steer: first instruction and length.
fn runs(cx: &Cx<'_>, range: std::ops::Range<u32>) -> Vec<(u32, usize)> {
    let mut list: Vec<(u32, usize, PredSrc)> = Vec::new();
    for i in range {
        let Some(inst) = cx.input.kernel.instructions.get(i as usize) else { continue };
        let plain = inst.guard.pred.is_some() && !matches!(inst.op, Op::Control(_) | Op::Warp(_));
        match list.last_mut() {
            Some(last) if plain && last.2 == inst.guard && last.0 + last.1 as u32 == i => last.1 += 1,
            _ if plain => list.push((i, 1, inst.guard)),
            _ => {}
        }
    }
    list.into_iter().map(|(i, n, _)| (i, n)).collect()
}

/// Issues in which no lane of the group wants them, if a memory access among them tells who did and each thread comes
/// there at most once.
fn nobody(cx: &Cx<'_>, block: u32, first: u32, length: usize) -> Option<f64> {
    let row = cx.model.executions(block);
    if row.iter().any(|&n| n > 1) {
        return None;
    }
    let access = cx.input.threads.accesses.iter().find(|a| (first..first + length as u32).contains(&a.inst))?;
    let all: Vec<u32> = (0..cx.model.threads() as u32).collect();
    let of = |t: &u32| access.threads.get(*t as usize).map_or(0, |a| a.count);
    let there = |t: &u32| row.get(*t as usize).is_some_and(|&n| n > 0);
    let none = cx.model.grouping(&all).warps().filter(|w| w.iter().any(there) && w.iter().all(|t| of(t) == 0)).count();
    Some(none as f64 * cx.input.threads.of as f64 / cx.model.threads().max(1) as f64)
}
