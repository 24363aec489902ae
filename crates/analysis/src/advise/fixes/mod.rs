//! Candidate fixes: one file each. A finder looks at what the launch did and adds what could be done, with its price; it
//! adds nothing where the fix does not apply. A new fix goes into [`FINDERS`] and nowhere else.

mod aligned;
mod ballot;
mod bucket;
mod flatten;
mod predicate;
mod rare;
mod sort;
mod split_tail;
mod sub_warp;
mod warp_uniform;

use super::cx::{Caused, Cx};
use super::{Confidence, Fix, FixCost, Key, Method};
use crate::words;

/// A fix and, if it only changes the places of threads, the order: position p plays thread `order[p]`.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) fix: Fix,
    pub(super) order: Option<Vec<u32>>,
}

pub(super) use sort::practical;

type Finder = fn(&Cx<'_>, &mut Vec<Candidate>);

/// All finders.
const FINDERS: &[Finder] = &[
    sort::find,
    bucket::find,
    split_tail::find,
    sub_warp::find,
    flatten::find,
    aligned::find,
    rare::find,
    predicate::find,
    ballot::find,
    warp_uniform::find,
];

/// Everything that could be done.
pub(super) fn find(cx: &Cx<'_>) -> Vec<Candidate> {
    let mut list = Vec::new();
    for finder in FINDERS {
        finder(cx, &mut list);
    }
    list
}

/// A fix without a price of its own yet.
fn draft(cx: &Cx<'_>, method: Method, predicted: u64, confidence: Confidence) -> Fix {
    Fix {
        method,
        title: String::new(),
        what_to_do: String::new(),
        key: None,
        before: cx.before(),
        predicted,
        confirmed: None,
        cost: FixCost::default(),
        speedup: None,
        confidence,
        at: None,
        caveats: Vec::new(),
    }
}

/// Lowest and highest value of a key.
fn range(key: &Key) -> (i64, i64) {
    (key.histogram.first().map_or(0, |b| b.low), key.histogram.last().map_or(0, |b| b.high))
}

/// Loops in which lanes make unequal numbers of turns, the most expensive first, with the cause.
fn uneven<'c>(cx: &'c Cx<'_>) -> impl Iterator<Item = (&'c Caused, u32)> + 'c {
    let mut seen = std::collections::HashSet::new();
    cx.causes.iter().filter_map(|c| Some((c, c.in_loop?))).filter(move |c| seen.insert(c.1))
}

/// Blocks of a loop.
fn blocks_of(cx: &Cx<'_>, l: u32) -> Vec<u32> {
    let s = &cx.input.analysis.structure;
    (0..s.cfg.blocks.len() as u32).filter(|&b| s.loops.contains(l, b)).collect()
}

/// Warp instructions that the launch issued in some blocks.
fn issued(cx: &Cx<'_>, blocks: &[u32]) -> f64 {
    let issues = &cx.model.identity().issues;
    blocks.iter().map(|&b| issues.get(b as usize).copied().unwrap_or(0.0) * cx.model.length(b)).sum()
}

/// A whole number of warp instructions.
fn whole(x: f64) -> u64 {
    if x.is_finite() { x.round().max(0.0) as u64 } else { u64::MAX }
}

/// `kernel.cu:9 (pc 0x02c0)`.
fn place(cx: &Cx<'_>, inst: u32) -> String {
    words::place(cx.input.kernel, inst)
}
