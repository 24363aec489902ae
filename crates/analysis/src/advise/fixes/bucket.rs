//! A bucket for each value of the key, padded to whole warps, so that no warp holds two.

use super::{Candidate, draft};
use crate::advise::cx::Cx;
use crate::advise::{Confidence, KeyKind, Method, cost};
use crate::whatif::Grouping;

/// Values of a key that can have buckets.
const BUCKETS: u64 = 64;

pub(super) fn find(cx: &Cx<'_>, out: &mut Vec<Candidate>) {
    let given = |k: KeyKind| matches!(k, KeyKind::Load { .. } | KeyKind::Difference { .. } | KeyKind::Way { .. });
    if cx.together() {
        return;
    }
    let Some(best) = cx.orders.iter().find(|o| given(o.key.kind) && (2..=BUCKETS).contains(&o.key.distinct)) else {
        return;
    };
    let width = cx.model.width();
    let values = cx.sortable(&best.values);
    let mut threads: Vec<u32> = (0..cx.model.threads() as u32).filter(|&t| cx.live[t as usize]).collect();
    threads.sort_by_key(|&t| values[t as usize]);
    let mut g = Grouping::default();
    for bucket in threads.chunk_by(|a, b| values[*a as usize] == values[*b as usize]) {
        g.fill(bucket, width);
    }
    let padded = g.len() as u64 * u64::from(width) - threads.len() as u64;
    let mut fix = draft(cx, Method::BucketByKey, cx.model.price(&g).warp_instructions, Confidence::Modelled);
    if fix.predicted >= fix.before {
        return;
    }
    fix.title = format!("bucket by {}, padded to {width}", best.key.words);
    fix.what_to_do = format!(
        "Put the items into a bucket for each of the {} values, start each bucket at a multiple of {width}, and let the {padded} \
         places in between do nothing; or launch a kernel for each bucket, which then needs no branch at all.",
        best.key.distinct
    );
    fix.cost = cost::sort(cx, cx.items(), 0, best.key.distinct as i64 - 1);
    fix.key = Some(best.key.clone());
    fix.at = best.at;
    out.push(Candidate { fix, order: None });
}
