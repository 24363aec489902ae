//! One loop of two nested ones: lanes rejoin once, and not after every turn of the outer loop.

use super::{Candidate, blocks_of, draft, issued, place, uneven, whole};
use crate::advise::cx::Cx;
use crate::advise::{Confidence, Method};
use lanescope_ir::Op;
use lanescope_ir::op::control::ControlOp;

/// Instructions that choose, in each turn, whether the outer loop goes on: the old test as a predicate, a select, a
/// conditional count, a move.
const CHOOSE: f64 = 4.0;

pub(super) fn find(cx: &Cx<'_>, out: &mut Vec<Candidate>) {
    let s = &cx.input.analysis.structure;
    for (cause, l) in uneven(cx) {
        let Some(parent) = s.loops.list.get(l as usize).and_then(|x| x.parent) else { continue };
        let (inner, outer) = (blocks_of(cx, l), blocks_of(cx, parent));
        let talks = |b: &u32| {
            s.cfg.blocks.get(*b as usize).is_some_and(|b| {
                b.instructions().any(|i| match cx.input.kernel.instructions.get(i as usize).map(|i| &i.op) {
                    Some(Op::Warp(_)) => true,
                    Some(Op::Control(c)) => matches!(
                        c,
                        ControlOp::Call { .. } | ControlOp::CallIndirect { .. } | ControlOp::CallExternal { .. }
                    ),
                    _ => false,
                })
            })
        };
        if outer.iter().any(talks) {
            continue;
        }
        let header = s.loops.list[l as usize].header;
        let issues = |b: u32| cx.model.identity().issues.get(b as usize).copied().unwrap_or(0.0);
        if issues(header) <= 0.0 {
            continue;
        }
        // One turn of the inner loop, and once a turn what is around it, predicated; the outer loop's own branch and the
        // barrier are gone.
        let turn = issued(cx, &inner) / issues(header);
        let around: f64 = outer
            .iter()
            .filter(|b| inner.binary_search(b).is_err())
            .map(|&b| {
                let block = s.cfg.blocks.get(b as usize);
                let steers = block.map_or(0, |b| {
                    b.instructions()
                        .filter(|&i| {
                            matches!(cx.input.kernel.instructions.get(i as usize).map(|i| &i.op), Some(Op::Control(_)))
                        })
                        .count()
                });
                (cx.model.length(b) - steers as f64).max(0.0)
            })
            .sum();
        let all: Vec<u32> = (0..cx.model.threads() as u32).collect();
        // A turn of the outer loop takes a flat turn even if the inner loop is passed by.
        let (row, around_row) =
            (cx.model.executions(header), cx.model.executions(s.loops.list[parent as usize].header));
        let latches = &s.loops.list[parent as usize].latches;
        let entered = latches.iter().all(|&latch| s.dom.dominates(header, latch));
        let flat = |t: u32| {
            let of = |row: &[u32]| row.get(t as usize).map_or(0.0, |&n| f64::from(n));
            if entered { of(row) } else { of(row) + of(around_row) }
        };
        let turns: f64 = cx.model.grouping(&all).warps().map(|w| w.iter().map(|&t| flat(t)).fold(0.0, f64::max)).sum();
        let share = cx.model.threads() as f64 / cx.input.threads.of.max(1) as f64;
        let rest = cx.before() as f64 - issued(cx, &outer);
        let predicted = whole(rest + turns / share * (turn + around + CHOOSE));
        if predicted >= cx.before() {
            continue;
        }
        let mut fix = draft(cx, Method::Flatten, predicted, Confidence::Estimate);
        let at = cause.keyed.cause.inst();
        fix.title = "make one loop of the two nested ones".into();
        fix.what_to_do = format!(
            "Merge the inner loop at {} into the loop around it: each turn does one inner turn, and a lane that is through \
             with it goes on to its next outer turn at once (by predicates), instead of waiting for the others.",
            at.map(|i| place(cx, i)).unwrap_or_default()
        );
        fix.key.clone_from(&cause.keyed.key);
        fix.at = at;
        out.push(Candidate { fix, order: None });
        return;
    }
}
