//! What a fix costs each time it is applied. Estimates: they depend on the sort or the compaction that is used.

use super::FixCost;
use super::cx::Cx;
use crate::words;

/// Bits that one pass of a radix sort sorts by.
const RADIX_BITS: u32 = 8;
/// Warp instructions that a pass issues for one warp of items: the default of `lanescope model sort`.
const PASS: u64 = 60;
/// Warp instructions for one warp of items to be counted, ranked and written to one of two lists.
const SPLIT: u64 = 14;
/// Bytes of an index and of a key.
const WORD: u64 = 4;

/// A radix sort of `items` by keys that span `low..=high`, and moving what belongs to them.
pub(super) fn sort(cx: &Cx<'_>, items: u64, low: i64, high: i64) -> FixCost {
    let span = u128::from(high.abs_diff(low));
    let bits = (128 - span.leading_zeros()).max(1);
    let passes = u64::from(bits.div_ceil(RADIX_BITS));
    let warps = items.div_ceil(cx.model.width().into());
    let moved = cx.moved_bytes();
    // Each pass reads and writes key and index; then the items move once.
    let bytes = passes.saturating_mul(items).saturating_mul(4 * WORD).saturating_add(2 * moved);
    FixCost {
        warp_instructions: warps.saturating_mul(passes).saturating_mul(PASS),
        bytes,
        words: format!(
            "a radix sort of {} items by {bits} {} in {passes} {}, and {} bytes of items to move",
            words::count(items),
            plural(u64::from(bits), "bit"),
            plural(passes, "pass"),
            words::count(moved),
        ),
    }
}

/// Two lists made of one: items with the rare property, and the others.
pub(super) fn split(cx: &Cx<'_>, items: u64) -> FixCost {
    let warps = items.div_ceil(cx.model.width().into());
    FixCost {
        warp_instructions: warps.saturating_mul(SPLIT),
        bytes: items.saturating_mul(3 * WORD),
        words: format!("a pass that lists {} items on one side or the other", words::count(items)),
    }
}

pub(super) fn plural(n: u64, word: &str) -> String {
    match (n, word.ends_with('s')) {
        (1, _) => word.to_owned(),
        (_, true) => format!("{word}es"),
        _ => format!("{word}s"),
    }
}
