//! Several lanes, or a whole warp, share one item: each takes every n-th turn of its loop.

use super::{Candidate, blocks_of, draft, place, uneven, whole};
use crate::advise::cx::{Caused, Cx};
use crate::advise::{Confidence, Method};
use crate::slice::Turns;
use crate::words;

/// Instructions to find a lane's part of an item and to let one lane write the result.
const EXTRA: f64 = 6.0;

/// A loop whose turns lanes can share.
pub(super) struct Shared {
    need: Vec<Option<i64>>,
    sums: u32,
    /// Warp instructions of one turn.
    turn: f64,
    /// Warp instructions of a warp outside the loop.
    rest: f64,
}

impl Shared {
    pub(super) fn new(cx: &Cx<'_>, cause: &Caused, l: u32) -> Option<Shared> {
        let s = &cx.input.analysis.structure;
        // A loop inside another rejoins in each turn of it; sharing it out is another thing.
        if s.loops.list.get(l as usize)?.parent.is_some() {
            return None;
        }
        let Turns::Independent { sums } = cx.slicer.turns(s, l) else { return None };
        let header = s.loops.list.get(l as usize)?.header;
        let inside = blocks_of(cx, l);
        let issues = &cx.model.identity().issues;
        let turns = issues.get(header as usize).copied().filter(|&t| t > 0.0)?;
        let turn = super::issued(cx, &inside) / turns;
        // Outside, a warp issues each block once that any of its lanes needs.
        let rest: f64 = (0..s.cfg.blocks.len() as u32)
            .filter(|b| inside.binary_search(b).is_err() && issues.get(*b as usize).is_some_and(|&i| i > 0.0))
            .map(|b| cx.model.length(b))
            .sum();
        Some(Shared { need: cause.need.clone(), sums, turn, rest })
    }

    /// Warp instructions if `width` lanes share each of these items.
    pub(super) fn price(&self, cx: &Cx<'_>, items: &[u32], width: u32) -> f64 {
        let per_warp = (cx.model.width() / width.max(1)).max(1) as usize;
        let steps = f64::from(u32::BITS - 1 - width.max(1).leading_zeros());
        // Each step of joining a sum is an exchange and an addition.
        let around = self.rest + EXTRA + 2.0 * steps * f64::from(self.sums);
        let turns = |t: &u32| {
            let n = self.need.get(*t as usize).copied().flatten().unwrap_or(0).max(0);
            n.unsigned_abs().div_ceil(width.max(1).into())
        };
        items.chunks(per_warp).map(|w| around + self.turn * w.iter().map(turns).max().unwrap_or(0) as f64).sum()
    }
}

pub(super) fn find(cx: &Cx<'_>, out: &mut Vec<Candidate>) {
    if cx.together() {
        return;
    }
    let Some((cause, l)) = uneven(cx).find(|c| !c.0.voted) else { return };
    let Some(shared) = Shared::new(cx, cause, l) else { return };
    let items: Vec<u32> = (0u32..).zip(&cause.need).filter(|(_, n)| n.is_some()).map(|(t, _)| t).collect();
    let total: i64 = cause.need.iter().flatten().sum();
    let mean = total as f64 / items.len().max(1) as f64;
    let full = cx.model.width();
    let widths: Vec<(u32, u64)> = std::iter::successors(Some(2u32), |w| Some(w * 2))
        .take_while(|&w| w <= full)
        .map(|w| (w, whole(shared.price(cx, &items, w))))
        .collect();
    let Some(&(best, _)) = widths.iter().min_by_key(|w| w.1) else { return };
    for (width, predicted) in widths.into_iter().filter(|w| w.0 == best || w.0 == full) {
        let method = if width == full { Method::WarpPerItem } else { Method::SubWarp(width) };
        let mut fix = draft(cx, method, predicted, Confidence::Estimate);
        fix.title = if width == full { "a warp for each item".into() } else { format!("{width} lanes for each item") };
        let lanes =
            if width == full { "the lanes of a warp".to_owned() } else { format!("{width} neighbouring lanes") };
        fix.what_to_do = format!(
            "Let {lanes} share one item: in the loop at {} each takes every {width}th turn{}.",
            cause.keyed.cause.inst().map(|i| place(cx, i)).unwrap_or_default(),
            if shared.sums > 0 { ", and shuffles join the sums after it" } else { "" },
        );
        if mean < f64::from(width) / 2.0 {
            fix.caveats.push(format!(
                "An item has {} turns on average: most of {width} lanes would find nothing to do.",
                words::lanes(mean)
            ));
        }
        if shared.sums > 0 {
            fix.caveats.push("Sums of floating-point numbers are rounded in another order.".into());
        }
        fix.at = cause.keyed.cause.inst();
        fix.key.clone_from(&cause.keyed.key);
        out.push(Candidate { fix, order: None });
    }
}
