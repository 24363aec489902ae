//! Long items go their own way, so that short ones do not wait for them.

use std::collections::HashSet;

use super::{Candidate, draft, place, sub_warp, uneven, whole};
use crate::advise::cx::Cx;
use crate::advise::keys::Values;
use crate::advise::{Confidence, Method, cost};
use crate::slice::Turns;
use crate::whatif::stable_order;
use crate::words;

/// Limits tried for what counts as long.
const LIMITS: usize = 24;
/// Share of the items that may be called a tail.
const TAIL: f64 = 0.25;

pub(super) fn find(cx: &Cx<'_>, out: &mut Vec<Candidate>) {
    let Some((cause, l)) = uneven(cx).next() else { return };
    let need: Vec<(u32, i64)> = (0u32..).zip(&cause.need).filter_map(|(t, n)| Some((t, (*n)?))).collect();
    let mut trips: Vec<i64> = need.iter().map(|n| n.1).collect();
    trips.sort_unstable();
    let few = trips.len() - (trips.len() as f64 * TAIL) as usize;
    // Where the tail could start: the different trip counts of the longest items.
    let mut limits: Vec<i64> = trips.iter().skip(few.saturating_sub(1)).copied().collect();
    limits.dedup();
    limits.pop();
    let step = limits.len().div_ceil(LIMITS).max(1);
    let at = cause.keyed.cause.inst();
    let shares = (!cause.voted && !cx.together()).then(|| sub_warp::Shared::new(cx, cause, l)).flatten();
    let mut best: Option<(u64, i64, u64)> = None;
    for &limit in limits.iter().step_by(step) {
        let long: Vec<u32> = need.iter().filter(|n| n.1 > limit).map(|n| n.0).collect();
        let price = match &shares {
            Some(s) => {
                let is_long: HashSet<u32> = long.iter().copied().collect();
                let short = cx.model.price(&cx.without(&|t| is_long.contains(&t))).warp_instructions;
                short.saturating_add(whole(s.price(cx, &long, cx.model.width())))
            }
            None => cx.price(&split(cx, &cause.need, limit)),
        };
        if best.is_none_or(|b| price < b.0) {
            best = Some((price, limit, long.len() as u64));
        }
    }
    let Some((predicted, limit, long)) = best.filter(|b| b.0 < cx.before()) else { return };
    let confidence = if shares.is_some() { Confidence::Estimate } else { Confidence::Modelled };
    let mut fix = draft(cx, Method::SplitTail, predicted, confidence);
    let longer = format!("{} items with more than {} turns", words::count(long), words::count(limit.unsigned_abs()));
    fix.title = format!("split off the {longer}");
    fix.what_to_do = match &shares {
        Some(_) => format!(
            "Let the kernel skip the {longer} and give each of them a warp of its own (another kernel, or a second phase): \
             lanes take every {}th turn of the loop and join their sums at the end.",
            cx.model.width()
        ),
        None => format!(
            "Put the {longer} behind the others, in warps of their own: one pass over the items is enough, no sort is needed."
        ),
    };
    fix.cost = cost::split(cx, cx.items());
    fix.key.clone_from(&cause.keyed.key);
    fix.at = at;
    if let Some(at) = at
        && let Turns::Carried { inst } | Turns::EndsByData { inst } = cx.slicer.turns(&cx.input.analysis.structure, l)
    {
        fix.caveats.push(format!(
            "A warp cannot share out one long item of the loop at {} as it is: each turn needs what the one before \
             computed (`{}`).",
            place(cx, at),
            words::text(cx.input.kernel, inst)
        ));
    }
    let order = shares.is_none().then(|| split(cx, &cause.need, limit));
    out.push(Candidate { fix, order });
}

/// Items with at most so many turns first, then the others, each in their old order.
fn split(cx: &Cx<'_>, need: &[Option<i64>], limit: i64) -> Vec<u32> {
    let long: Values = need.iter().map(|n| n.map(|n| i64::from(n > limit))).collect();
    stable_order(&cx.sortable(&long))
}
