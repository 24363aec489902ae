//! Buffers in another order, and back.

use super::layout::{Layout, entry, name};
use crate::advise::Argument;

/// Why the data cannot be moved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// What a buffer holds cannot be told.
    #[error("{argument}: {why}")]
    Unclear {
        /// The argument.
        argument: String,
        /// Why.
        why: String,
    },
    /// A thread that changes places has no bytes there, or they lie outside.
    #[error("{argument}: the bytes of thread {thread} are not known or lie outside of the buffer")]
    Outside {
        /// The argument.
        argument: String,
        /// The thread's position.
        thread: usize,
    },
    /// Offsets that fall.
    #[error("{argument}: the segment of thread {thread} ends before it starts")]
    Falls {
        /// The argument.
        argument: String,
        /// The thread's position.
        thread: usize,
    },
    /// Offsets that do not fit their type any more.
    #[error("{argument}: the new offsets do not fit into {size} bytes")]
    Overflow {
        /// The argument.
        argument: String,
        /// Bytes of an entry.
        size: u32,
    },
    /// No buffer holds anything of a thread's own.
    #[error("no buffer holds anything that belongs to one thread")]
    NothingToMove,
}

/// The buffers for a launch in which position p does what thread `order[p]` did. `None` where nothing changes.
///
/// # Errors
/// A buffer whose layout is not clear, or threads whose bytes cannot be found.
pub fn permute(arguments: &[Argument<'_>], layouts: &[Layout], order: &[u32]) -> Result<Vec<Option<Vec<u8>>>, Refusal> {
    let moves = |l: &Layout| matches!(l, Layout::Items { .. } | Layout::Offsets { .. } | Layout::Segments { .. });
    for (i, layout) in layouts.iter().enumerate() {
        if let Layout::Unclear(why) = layout {
            return Err(Refusal::Unclear { argument: name(arguments, i), why: why.clone() });
        }
    }
    if !layouts.iter().any(moves) {
        return Err(Refusal::NothingToMove);
    }
    let mut out = Vec::with_capacity(arguments.len());
    for (i, layout) in layouts.iter().enumerate() {
        let data = arguments.get(i).and_then(|a| a.buffer).map_or(&[][..], |b| b.data);
        let moved = match layout {
            Layout::Items { base, pieces } => {
                let mut new = data.to_vec();
                for (p, &t) in order.iter().enumerate().filter(|(p, t)| *p != **t as usize) {
                    let t = t as usize;
                    for &piece in pieces {
                        let (to, from) = (range(base, p, piece, data.len()), range(base, t, piece, data.len()));
                        let outside = |thread| Refusal::Outside { argument: name(arguments, i), thread };
                        let (to, from) = (to.ok_or_else(|| outside(p))?, from.ok_or_else(|| outside(t))?);
                        new[to].copy_from_slice(&data[from]);
                    }
                }
                Some(new)
            }
            Layout::Offsets { size, .. } => {
                let rows = rows(arguments, layouts, i)?;
                let mut new = data.to_vec();
                let fail = || Refusal::Overflow { argument: name(arguments, i), size: *size };
                for (at, value) in new_offsets(&rows, order, i, arguments)? {
                    let at = usize::try_from(at).map_err(|_| fail())?;
                    let room = new.get_mut(at..at + *size as usize).ok_or_else(fail)?;
                    match size {
                        4 => room.copy_from_slice(&i32::try_from(value).map_err(|_| fail())?.to_le_bytes()),
                        _ => room.copy_from_slice(&value.to_le_bytes()),
                    }
                }
                Some(new)
            }
            Layout::Segments { offsets, size, start } => {
                let rows = rows(arguments, layouts, *offsets)?;
                Some(shift(data, &rows, order, *size, *start, false, &|thread| Refusal::Outside {
                    argument: name(arguments, i),
                    thread,
                })?)
            }
            _ => None,
        };
        out.push(moved);
    }
    Ok(out)
}

/// The bytes of argument `index` after a permuted run, moved back to where the original launch has them.
///
/// # Errors
/// As [`permute`].
pub fn restore(
    arguments: &[Argument<'_>],
    layouts: &[Layout],
    order: &[u32],
    index: usize,
    after: &[u8],
) -> Result<Vec<u8>, Refusal> {
    let outside = |thread| Refusal::Outside { argument: name(arguments, index), thread };
    match layouts.get(index) {
        Some(Layout::Items { base, pieces }) => {
            let mut old = after.to_vec();
            for (p, &t) in order.iter().enumerate().filter(|(p, t)| *p != **t as usize) {
                let t = t as usize;
                for &piece in pieces {
                    let (from, to) = (range(base, p, piece, after.len()), range(base, t, piece, after.len()));
                    let (from, to) = (from.ok_or_else(|| outside(p))?, to.ok_or_else(|| outside(t))?);
                    old[to].copy_from_slice(&after[from]);
                }
            }
            Ok(old)
        }
        // The kernel only reads them.
        Some(Layout::Offsets { .. }) => {
            Ok(arguments.get(index).and_then(|a| a.buffer).map_or_else(|| after.to_vec(), |b| b.data.to_vec()))
        }
        Some(Layout::Segments { offsets, size, start }) => {
            let rows = rows(arguments, layouts, *offsets)?;
            shift(after, &rows, order, *size, *start, true, &outside)
        }
        _ => Ok(after.to_vec()),
    }
}

fn range(base: &[Option<i64>], thread: usize, piece: (i64, u64), len: usize) -> Option<std::ops::Range<usize>> {
    let at = base.get(thread).copied().flatten()?.checked_add(piece.0)?;
    let from = usize::try_from(at).ok()?;
    let to = from.checked_add(usize::try_from(piece.1).ok()?)?;
    (to <= len).then_some(from..to)
}

/// A thread's row: where its offset lies, and its segment in elements.
struct Row {
    thread: usize,
    at: i64,
    first: i64,
    end: i64,
}

/// Rows in the order of their offsets.
fn rows(arguments: &[Argument<'_>], layouts: &[Layout], offsets: usize) -> Result<Vec<Row>, Refusal> {
    let argument = || name(arguments, offsets);
    let Some(Layout::Offsets { base, size }) = layouts.get(offsets) else {
        return Err(Refusal::Unclear { argument: argument(), why: "it holds no offsets".into() });
    };
    let data = arguments.get(offsets).and_then(|a| a.buffer).map_or(&[][..], |b| b.data);
    let mut rows = Vec::new();
    for (thread, at) in base.iter().enumerate().filter_map(|(t, b)| Some((t, (*b)?))) {
        let outside = || Refusal::Outside { argument: argument(), thread };
        let first = entry(data, at, *size).ok_or_else(outside)?;
        let end = entry(data, at + i64::from(*size), *size).ok_or_else(outside)?;
        if end < first {
            return Err(Refusal::Falls { argument: argument(), thread });
        }
        rows.push(Row { thread, at, first, end });
    }
    rows.sort_by_key(|r| r.at);
    Ok(rows)
}

/// For each place in the new order: the row it holds, as an index into `rows`.
fn placed(rows: &[Row], order: &[u32]) -> Option<Vec<usize>> {
    let of: std::collections::HashMap<usize, usize> = rows.iter().enumerate().map(|(i, r)| (r.thread, i)).collect();
    rows.iter().map(|r| of.get(&(*order.get(r.thread)? as usize)).copied()).collect()
}

/// Where which offset goes: byte offset and value.
fn new_offsets(
    rows: &[Row],
    order: &[u32],
    index: usize,
    arguments: &[Argument<'_>],
) -> Result<Vec<(i64, i64)>, Refusal> {
    let thread = rows.first().map_or(0, |r| r.thread);
    let outside = || Refusal::Outside { argument: name(arguments, index), thread };
    let placed = placed(rows, order).ok_or_else(outside)?;
    let mut at = rows.first().map_or(0, |r| r.first);
    let mut out = Vec::with_capacity(rows.len() + 1);
    for (slot, from) in rows.iter().zip(&placed) {
        out.push((slot.at, at));
        at = rows.get(*from).and_then(|r| at.checked_add(r.end - r.first)).ok_or_else(outside)?;
    }
    // The last row's end stays what it was: the rows have only changed places.
    Ok(out)
}

/// Moves segments to their new places, or back.
fn shift(
    data: &[u8],
    rows: &[Row],
    order: &[u32],
    size: u64,
    start: i64,
    back: bool,
    outside: &dyn Fn(usize) -> Refusal,
) -> Result<Vec<u8>, Refusal> {
    let thread = rows.first().map_or(0, |r| r.thread);
    let placed = placed(rows, order).ok_or_else(|| outside(thread))?;
    let bytes = |from: i64, to: i64| -> Option<std::ops::Range<usize>> {
        let of = |n: i64| usize::try_from(i128::from(start) + i128::from(n) * i128::from(size)).ok();
        let (a, b) = (of(from)?, of(to)?);
        (a <= b && b <= data.len()).then_some(a..b)
    };
    let mut out = data.to_vec();
    let mut at = rows.first().map_or(0, |r| r.first);
    for &from in &placed {
        let Some(r) = rows.get(from) else { continue };
        let end = at + (r.end - r.first);
        let (old, new) = (bytes(r.first, r.end), bytes(at, end));
        let (old, new) = (old.ok_or_else(|| outside(r.thread))?, new.ok_or_else(|| outside(r.thread))?);
        let (to, from) = if back { (old, new) } else { (new, old) };
        out[to].copy_from_slice(&data[from]);
        at = end;
    }
    Ok(out)
}
