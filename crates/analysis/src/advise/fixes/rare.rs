//! A kernel of its own for the few items that take a long path.

use lanescope_ir::AccessProfile;

use super::{Candidate, draft, place};
use crate::advise::cx::{Caused, Cx};
use crate::advise::{Confidence, Method, cost};
use crate::attribution::Cause;
use crate::whatif::Grouping;
use crate::words;

/// Share of the items up to which a path is rare.
const RARE: f64 = 0.25;
/// Work of an item on the long path, as a multiple of the others'.
const LONG: f64 = 1.5;

pub(super) fn find(cx: &Cx<'_>, out: &mut Vec<Candidate>) {
    if cx.together() {
        return;
    }
    let causes = cx.causes.iter().filter(|c| matches!(c.keyed.cause, Cause::Branch(_) | Cause::Exit(_)));
    let Some((cause, rare, predicted)) = causes.filter_map(|c| one(cx, c)).min_by_key(|x| x.2) else { return };
    if predicted >= cx.before() {
        return;
    }
    let mut fix = draft(cx, Method::RareKernel, predicted, Confidence::Modelled);
    let at = cause.keyed.cause.inst();
    let n = rare.len() as u64;
    let items = words::count(n);
    fix.title = format!("a kernel of its own for the {items} items that go on");
    fix.what_to_do = format!(
        "Only {items} of {} items take the long way at {}. List their indices in a first pass, and launch the long way for \
         those alone, one thread each.",
        words::count(cx.items()),
        at.map(|i| place(cx, i)).unwrap_or_default()
    );
    fix.cost = cost::split(cx, cx.items());
    fix.key.clone_from(&cause.keyed.key);
    fix.at = at;
    out.push(Candidate { fix, order: None });
}

/// Whether what these threads do can be left out: if they leave, they have written nothing and helped nobody.
fn idle(cx: &Cx<'_>, threads: &[u32]) -> bool {
    let writes =
        |a: &AccessProfile| a.writes && threads.iter().any(|&t| a.threads.get(t as usize).is_some_and(|x| x.count > 0));
    !cx.input.threads.accesses.iter().any(writes)
}

/// The few threads that take the side with more work, and the price of giving them warps of their own.
fn one<'c>(cx: &'c Cx<'_>, cause: &'c Caused) -> Option<(&'c Caused, Vec<u32>, u64)> {
    let mut ways: Vec<i64> = cause.need.iter().flatten().copied().collect();
    ways.sort_unstable();
    ways.dedup();
    let [low, high] = ways.as_slice() else { return None };
    let of = |way: i64| -> Vec<u32> {
        (0u32..).zip(&cause.need).filter(|(_, n)| **n == Some(way)).map(|(t, _)| t).collect()
    };
    let work = cx.model.work();
    let mean = |threads: &[u32]| {
        threads.iter().filter_map(|&t| work.get(t as usize)).sum::<f64>() / threads.len().max(1) as f64
    };
    let (a, b) = (of(*low), of(*high));
    let (few, many) = if a.len() < b.len() { (a, b) } else { (b, a) };
    let rare = few.len() as f64 <= RARE * (few.len() + many.len()) as f64;
    if !rare || mean(&few) < LONG * mean(&many) || (matches!(cause.keyed.cause, Cause::Exit(_)) && !idle(cx, &many)) {
        return None;
    }
    let mut g = Grouping::default();
    // Items that leave at once need no launch at all; those with another way keep theirs.
    if let Cause::Branch(_) = cause.keyed.cause {
        let few: std::collections::HashSet<u32> = few.iter().copied().collect();
        g = cx.without(&|t| few.contains(&t));
    }
    g.fill(&few, cx.model.width());
    let price = cx.model.price(&g).warp_instructions;
    Some((cause, few, price))
}
