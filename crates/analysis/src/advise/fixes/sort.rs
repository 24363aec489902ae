//! Order the items by their key, so that neighbours do the same.

use super::{Candidate, draft, range};
use crate::advise::cost;
use crate::advise::cx::{Cx, Ordered};
use crate::advise::{Confidence, KeyKind, Method, WORTH_IT};

/// Sorts proposed at most.
const SORTS: usize = 3;
/// Share of the launch that a better but less practical key must save on top.
const BETTER: f64 = 0.05;

pub(super) fn find(cx: &Cx<'_>, out: &mut Vec<Candidate>) {
    let mut taken: Vec<&Ordered> = Vec::new();
    let before = cx.before() as f64;
    // Where the thread's index alone decides, there are no data to sort.
    let data = cx.causes.iter().any(|c| {
        let by_thread = matches!(c.keyed.key.as_ref().map(|k| k.kind), Some(KeyKind::Thread { .. }) | None);
        !by_thread && c.keyed.lanes as f64 >= WORTH_IT * cx.input.analysis.losses.slots as f64
    });
    // Data that are there before the launch first, then what only a run shows; of each the cheapest.
    let mut list: Vec<&Ordered> = cx.orders.iter().collect();
    list.sort_by_key(|o| (practical(o.key.kind), o.price));
    for o in list.into_iter().filter(|o| o.key.kind != KeyKind::Work || data) {
        let better = |t: &&Ordered| (t.price as f64) - (o.price as f64) > BETTER * before;
        if taken.len() < SORTS && taken.iter().all(better) && (o.price as f64) < before {
            taken.push(o);
        }
    }
    for o in taken {
        let by_trips = matches!(o.key.kind, KeyKind::Trips { .. } | KeyKind::Difference { .. } | KeyKind::Work)
            || cx.causes.iter().any(|c| c.in_loop.is_some() && c.keyed.cause.inst() == o.at);
        let method = if by_trips { Method::SortByTrips } else { Method::SortByKey };
        let mut fix = draft(cx, method, o.price, Confidence::Modelled);
        let known = !matches!(o.key.kind, KeyKind::Trips { .. } | KeyKind::Work | KeyKind::Way { .. });
        fix.title = format!("sort by {}", o.key.words);
        fix.what_to_do = format!(
            "Before the launch, order the items by {}, so that the threads of a warp do about the same.",
            o.key.words
        );
        if !known {
            fix.caveats.push(
                "The key is only known once the items have run: take it from the last launch, from a cheap estimate, or \
                 from a first pass."
                    .into(),
            );
        }
        let (low, high) = range(&o.key);
        fix.cost = cost::sort(cx, cx.items(), low, high);
        fix.key = Some(o.key.clone());
        fix.at = o.at;
        out.push(Candidate { fix, order: Some(o.order.clone()) });
    }
}

/// How practical a key is: lower is better.
pub(in crate::advise) fn practical(kind: KeyKind) -> u32 {
    match kind {
        KeyKind::Load { .. } | KeyKind::Difference { .. } => 0,
        KeyKind::Way { .. } => 1,
        KeyKind::Trips { .. } => 2,
        KeyKind::Work | KeyKind::Thread { .. } => 3,
    }
}
