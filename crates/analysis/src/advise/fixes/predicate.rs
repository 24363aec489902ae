//! Both sides are short: compute both and keep one, without a branch.

use lanescope_ir::Op;

use super::{Candidate, draft, issued, place, whole};
use crate::advise::cx::Cx;
use crate::advise::{Confidence, Method};
use crate::attribution::Cause;

/// Instructions of both sides together that are still short.
const SHORT: f64 = 14.0;

pub(super) fn find(cx: &Cx<'_>, out: &mut Vec<Candidate>) {
    let s = &cx.input.analysis.structure;
    let mut best: Option<(u32, u64)> = None;
    for cause in &cx.causes {
        let Cause::Branch(inst) = cause.keyed.cause else { continue };
        let Some(counts) = cx.input.profile.branches.iter().find(|b| b.inst == inst) else { continue };
        let region = s.region(inst);
        let Some(end) = region.rejoins_at.and_then(|i| s.cfg.block(i)) else { continue };
        let arms: Vec<u32> = region.blocks.iter().copied().filter(|&b| b != end).collect();
        let loops =
            |b: &u32| s.loops.innermost.get(*b as usize) != s.cfg.block(inst).map(|i| &s.loops.innermost[i as usize]);
        let steering = |i: u32| matches!(op(cx, i), Some(Op::Control(_)));
        let plain = |i: u32| steering(i) || matches!(op(cx, i), Some(Op::Lane(_) | Op::Nop));
        let all: Vec<u32> =
            arms.iter().filter_map(|&b| s.cfg.blocks.get(b as usize)).flat_map(|b| b.instructions()).collect();
        let work = all.iter().filter(|i| !steering(**i)).count() as f64;
        // Sides that lead back to the branch are no sides.
        let again = s.cfg.block(inst).is_none_or(|b| arms.contains(&b));
        if again || arms.is_empty() || arms.iter().any(loops) || work > SHORT || !all.iter().all(|&i| plain(i)) {
            continue;
        }
        // Gone: what the arms issued, the barrier's two instructions, the branch itself. New: both sides, every time.
        let ends = cx.model.identity().issues.get(end as usize).copied().unwrap_or(0.0);
        let executed = counts.executed as f64;
        let now = issued(cx, &arms) + ends + 2.0 * executed;
        let after = executed * work;
        let predicted = whole(cx.before() as f64 - now + after);
        if predicted < cx.before() && best.is_none_or(|b| predicted < b.1) {
            best = Some((inst, predicted));
        }
    }
    let Some((inst, predicted)) = best else { return };
    let mut fix = draft(cx, Method::Predicate, predicted, Confidence::Estimate);
    fix.title = "compute both sides and select".into();
    fix.what_to_do = format!(
        "The sides of the branch at {} are short: compute both for all lanes and select the result (`c ? a : b` of values \
         that are already computed).",
        place(cx, inst)
    );
    fix.at = Some(inst);
    out.push(Candidate { fix, order: None });
}

fn op<'c>(cx: &'c Cx<'_>, i: u32) -> Option<&'c Op> {
    cx.input.kernel.instructions.get(i as usize).map(|i| &i.op)
}
