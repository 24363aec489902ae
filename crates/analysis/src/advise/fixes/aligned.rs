//! The thread's index alone decides: let whole warps take a side, not lanes.

use super::{Candidate, draft, place};
use crate::advise::cx::{Caused, Cx};
use crate::advise::{Confidence, KeyKind, Method, WORTH_IT};

pub(super) fn find(cx: &Cx<'_>, out: &mut Vec<Candidate>) {
    // A guard at the end of the grid splits one warp: nothing to align.
    let slots = cx.input.analysis.losses.slots as f64;
    let by_thread = |c: &&Caused| {
        let thread = matches!(c.keyed.key.as_ref().map(|k| k.kind), Some(KeyKind::Thread { .. }));
        thread && c.keyed.lanes as f64 >= WORTH_IT * slots
    };
    let Some(cause) = cx.causes.iter().find(by_thread) else { return };
    // Within each block: a thread's block does not change.
    let block = cx.input.threads.block_threads.max(1);
    let mut order: Vec<u32> = (0..cx.model.threads() as u32).collect();
    for threads in order.chunks_mut(block as usize) {
        threads.sort_by_key(|&t| cause.need.get(t as usize).copied().flatten());
    }
    let predicted = cx.price(&order);
    if predicted >= cx.before() {
        return;
    }
    let mut fix = draft(cx, Method::AlignedBranch, predicted, Confidence::Modelled);
    let at = cause.keyed.cause.inst();
    let width = cx.model.width();
    fix.title = format!("let whole warps choose (thread / {width})");
    fix.what_to_do = format!(
        "The thread's index alone decides at {}. Let warps take the sides, by `threadIdx.x / {width}` instead of the lane, and \
         give each thread the item that its new side works on.",
        at.map(|i| place(cx, i)).unwrap_or_default()
    );
    fix.caveats.push("Threads then work on other items: neighbouring threads may touch memory that lies apart.".into());
    fix.key.clone_from(&cause.keyed.key);
    fix.at = at;
    out.push(Candidate { fix, order: Some(order) });
}
