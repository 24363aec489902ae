//! What each buffer holds, by the addresses that threads gave.

use lanescope_ir::{AccessProfile, ThreadAccess};

use super::Piece;
use super::fit::{Linear, Places};
use crate::advise::places::{argument, locate};
use crate::advise::{Argument, Input};
use crate::slice::{Slice, SourceKind};

/// Pieces of a thread's bytes at most.
const PIECES: usize = 4096;
/// Threads times pieces at most.
const ALL: usize = 1 << 24;

/// What a buffer holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A scalar, or a buffer that nobody touched.
    Untouched,
    /// Bytes of each thread's own: at its base plus each piece.
    Items {
        /// Byte offset of each thread's base in the buffer; `None` if it is not known.
        base: Vec<Option<i64>>,
        /// Offset from the base, and length.
        pieces: Vec<Piece>,
    },
    /// Where each thread's segment of other buffers starts; the next thread's start is its end.
    Offsets {
        /// Byte offset of each thread's own entry, for those that read one.
        base: Vec<Option<i64>>,
        /// Bytes of an entry: 4 or 8.
        size: u32,
    },
    /// Segments that the offsets in another argument delimit.
    Segments {
        /// The argument with the offsets.
        offsets: usize,
        /// Bytes of one element that offsets count.
        size: u64,
        /// Byte offset of element 0.
        start: i64,
    },
    /// Reached through data, or the same for all: stays as it is.
    Stays,
    /// Cannot be told; why.
    Unclear(String),
}

impl Layout {
    /// In a few words.
    pub fn words(&self) -> String {
        match self {
            Layout::Untouched => "not touched".into(),
            Layout::Items { pieces, .. } => {
                let bytes: u64 = pieces.iter().map(|p| p.1).sum();
                match pieces.len() {
                    1 => format!("{bytes} bytes a thread"),
                    n => format!("{bytes} bytes a thread in {n} places"),
                }
            }
            Layout::Offsets { .. } => "where each thread's segment starts".into(),
            Layout::Segments { offsets, .. } => format!("segments that argument {offsets} delimits"),
            Layout::Stays => "reached through data, or shared: stays".into(),
            Layout::Unclear(why) => why.clone(),
        }
    }

    /// Bytes that move if all threads change places.
    pub fn moved(&self, buffer: u64) -> u64 {
        match self {
            Layout::Items { base, pieces } => {
                let one: u64 = pieces.iter().map(|p| p.1).sum();
                (base.iter().flatten().count() as u64).saturating_mul(one).min(buffer)
            }
            Layout::Offsets { .. } | Layout::Segments { .. } => buffer,
            _ => 0,
        }
    }
}

/// What an instruction's accesses to one buffer look like.
struct Seen<'a> {
    access: &'a AccessProfile,
    address: Slice,
}

impl Seen<'_> {
    fn has(&self, wanted: impl Fn(SourceKind) -> bool) -> bool {
        self.address.sources.iter().any(|s| wanted(s.kind))
    }
    fn by_thread(&self) -> bool {
        self.has(|k| k == SourceKind::Thread)
    }
    /// Whether its address depends on something that is not the thread's index.
    fn by_data(&self) -> bool {
        !self.address.whole || self.has(|k| k != SourceKind::Thread)
    }
}

/// The layout of each argument.
pub fn layouts(input: &Input<'_>, address: &dyn Fn(u32) -> Slice) -> Vec<Layout> {
    let n = input.arguments.len();
    let mut seen: Vec<Vec<Seen<'_>>> = (0..n).map(|_| Vec::new()).collect();
    let mut mixed: Vec<bool> = vec![false; n];
    for access in &input.threads.accesses {
        let mut used: Vec<usize> = Vec::new();
        for t in access.threads.iter().filter(|t| t.count > 0) {
            for a in [t.low, t.high] {
                match locate(input.arguments, a) {
                    Some((i, ..)) if !used.contains(&i) => used.push(i),
                    _ => {}
                }
            }
        }
        match used.as_slice() {
            [one] => seen[*one].push(Seen { access, address: address(access.inst) }),
            many => many.iter().for_each(|&i| mixed[i] = true),
        }
    }
    let places = Places::new(input.profile.shape, input.threads.threads);
    let mut list: Vec<Layout> = (0..n)
        .map(|i| match input.arguments[i].buffer {
            _ if mixed[i] => Layout::Unclear("one instruction reaches it and other buffers".into()),
            Some(b) if !seen[i].is_empty() => one(&places, b.address, b.data.len() as u64, &seen[i]),
            _ => Layout::Untouched,
        })
        .collect();
    for i in 0..n {
        if list[i] == Layout::Stays
            && let Some(found) = segments(input, &list, &seen, i)
        {
            list[i] = found;
        }
    }
    // Offsets that delimit nothing are shared data that neighbours read.
    for i in 0..n {
        let used = list.iter().any(|l| matches!(l, Layout::Segments { offsets, .. } if *offsets == i));
        if matches!(list[i], Layout::Offsets { .. }) && !used {
            list[i] = Layout::Unclear(format!(
                "neighbouring threads read the same elements of {}",
                argument(input.arguments, i)
            ));
        }
    }
    list
}

/// Relative to a buffer: what one thread did there.
fn spans(address: u64, t: &ThreadAccess, bytes: u32) -> Option<(i128, i128, i128)> {
    let base = i128::from(address);
    let of = |a: u64| i128::from(a) - base;
    (t.count > 0).then(|| (of(t.first), of(t.low), of(t.high) + i128::from(bytes)))
}

fn one(places: &Places, address: u64, size: u64, seen: &[Seen<'_>]) -> Layout {
    let own: Vec<&Seen<'_>> = seen.iter().filter(|s| s.by_thread()).collect();
    if own.is_empty() {
        return Layout::Stays;
    }
    let span = |s: &Seen<'_>, p: usize| spans(address, s.access.threads.get(p)?, s.access.bytes);
    // The base: the linear function that the first address of most threads follows.
    let mut fits: Vec<(usize, Linear)> = Vec::new();
    for s in own.iter().filter(|s| !s.by_data() || own.len() == 1) {
        let threads = s.access.threads.iter().filter(|t| t.count > 0).count();
        if let Some(f) = places.fit(&|p| span(s, p).map(|x| x.0)) {
            fits.push((threads, f));
        }
    }
    fits.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.constant.cmp(&b.1.constant)));
    let threads = seen.iter().map(|s| s.access.threads.len()).max().unwrap_or(0);
    let touched = |p: usize| own.iter().any(|s| span(s, p).is_some());
    let base: Vec<Option<i64>> = match fits.first() {
        Some((_, f)) => (0..threads).map(|p| i64::try_from(places.at(f, p)).ok()).collect(),
        // No line: each thread's lowest address, if the thread's index alone decides it.
        None if own.iter().all(|s| !s.by_data()) => (0..threads)
            .map(|p| own.iter().filter_map(|s| span(s, p)).map(|x| x.1).min().and_then(|x| i64::try_from(x).ok()))
            .collect(),
        None => return Layout::Stays,
    };
    let at = |p: usize| base.get(p).copied().flatten().map(i128::from);
    let mut pieces: Vec<(i128, i128)> = Vec::new();
    for s in &own {
        pieces.extend(of_instruction(s.access, threads, &|p| span(s, p), &at));
        if pieces.len() > PIECES {
            let (low, high) = envelope(&pieces);
            pieces = vec![(low, high)];
        }
    }
    merge(&mut pieces);
    let owners: Vec<(usize, i128)> = (0..threads).filter(|&p| touched(p)).filter_map(|p| Some((p, at(p)?))).collect();
    if seen.iter().any(|s| !s.by_thread()) {
        return Layout::Unclear("threads reach it by their own index and through data as well".into());
    }
    match disjoint(&owners, &pieces) {
        Some(true) => {
            let whole = whole_rows(&owners, &pieces, size).unwrap_or(pieces);
            let pieces = whole.iter().filter_map(|&(a, b)| Some((i64::try_from(a).ok()?, u64::try_from(b - a).ok()?)));
            Layout::Items { base, pieces: pieces.collect() }
        }
        Some(false) => offsets(&own, &owners, &pieces, base),
        None => Layout::Unclear("too many pieces a thread to tell whether threads share any".into()),
    }
}

/// The bytes an instruction reaches from a thread's base: one piece for each address if they are the same for all
/// threads, else all between the lowest and the highest.
fn of_instruction(
    access: &AccessProfile,
    threads: usize,
    span: &dyn Fn(usize) -> Option<(i128, i128, i128)>,
    base: &dyn Fn(usize) -> Option<i128>,
) -> Vec<(i128, i128)> {
    let bytes = i128::from(access.bytes);
    let mut first: Option<i128> = None;
    let mut stride: Option<i64> = None;
    let (mut same, mut most) = (true, 1u32);
    let (mut low, mut high) = (i128::MAX, i128::MIN);
    for p in 0..threads {
        let (Some((f, l, h)), Some(b), Some(t)) = (span(p), base(p), access.threads.get(p)) else { continue };
        low = low.min(l - b);
        high = high.max(h - b);
        same &= *first.get_or_insert(f - b) == f - b && (t.regular || t.count < 2);
        if t.count > 1 {
            same &= *stride.get_or_insert(t.stride) == t.stride;
        }
        most = most.max(t.count);
    }
    let Some(first) = first.filter(|_| low < high) else { return Vec::new() };
    let stride = i128::from(stride.unwrap_or(0));
    if same && (most as usize) <= PIECES {
        let count = if stride == 0 { 1 } else { most };
        return (0..i128::from(count)).map(|k| (first + k * stride, first + k * stride + bytes)).collect();
    }
    vec![(low, high)]
}

fn envelope(pieces: &[(i128, i128)]) -> (i128, i128) {
    let low = pieces.iter().map(|p| p.0).min().unwrap_or(0);
    (low, pieces.iter().map(|p| p.1).max().unwrap_or(low))
}

/// Sorts, and joins what touches or overlaps.
fn merge(pieces: &mut Vec<(i128, i128)>) {
    pieces.sort_unstable();
    let mut out: Vec<(i128, i128)> = Vec::with_capacity(pieces.len());
    for &(a, b) in pieces.iter() {
        match out.last_mut() {
            Some(last) if a <= last.1 => last.1 = last.1.max(b),
            _ => out.push((a, b)),
        }
    }
    *pieces = out;
}

/// Whether no two threads own the same byte; `None` if there are too many to look at.
fn disjoint(owners: &[(usize, i128)], pieces: &[(i128, i128)]) -> Option<bool> {
    if owners.len().checked_mul(pieces.len())? > ALL {
        return None;
    }
    let mut all: Vec<(i128, i128)> =
        owners.iter().flat_map(|(_, b)| pieces.iter().map(move |(from, to)| (b + from, b + to))).collect();
    all.sort_unstable();
    Some(all.windows(2).all(|w| w[0].1 <= w[1].0))
}

/// If each thread has one piece and all lie at the same distance: the whole distance, so that rows move whole.
fn whole_rows(owners: &[(usize, i128)], pieces: &[(i128, i128)], size: u64) -> Option<Vec<(i128, i128)>> {
    let [(from, _)] = pieces else { return None };
    let mut bases: Vec<i128> = owners.iter().map(|o| o.1).collect();
    bases.sort_unstable();
    let gap = bases.windows(2).map(|w| w[1] - w[0]).min()?;
    let even = bases.windows(2).all(|w| (w[1] - w[0]) % gap == 0);
    let fits = bases.first()? + from >= 0 && bases.last()? + from + gap <= i128::from(size);
    (gap > 0 && even && fits).then(|| vec![(*from, from + gap)])
}

/// Neighbours that share an element each: where segments start.
fn offsets(own: &[&Seen<'_>], owners: &[(usize, i128)], pieces: &[(i128, i128)], base: Vec<Option<i64>>) -> Layout {
    let shared = || Layout::Unclear("neighbouring threads touch the same elements".into());
    let (Some(bytes), [(from, to)]) = (own.first().map(|s| s.access.bytes), pieces) else { return shared() };
    let reads = own.iter().all(|s| !s.access.writes && (s.access.bytes == bytes || s.access.bytes == 2 * bytes));
    // One instruction may read both entries.
    let size = i128::from(bytes).min((to - from) / 2);
    let mut bases: Vec<i128> = owners.iter().map(|o| o.1).collect();
    bases.sort_unstable();
    let steps = bases.windows(2).all(|w| w[1] - w[0] == size);
    if !reads || !matches!(size, 4 | 8) || to - from != 2 * size || !steps {
        return shared();
    }
    let owner: std::collections::HashSet<usize> = owners.iter().map(|o| o.0).collect();
    let from = i64::try_from(*from).unwrap_or(0);
    let base = base.into_iter().enumerate().map(|(p, b)| b.filter(|_| owner.contains(&p)).map(|b| b + from)).collect();
    Layout::Offsets { base, size: size as u32 }
}

/// The integer at a byte offset.
pub(super) fn entry(data: &[u8], at: i64, size: u32) -> Option<i64> {
    let at = usize::try_from(at).ok()?;
    let bytes = data.get(at..at.checked_add(size as usize)?)?;
    Some(match size {
        4 => i64::from(i32::from_le_bytes(bytes.try_into().ok()?)),
        _ => i64::from_le_bytes(bytes.try_into().ok()?),
    })
}

/// Whether argument `i` holds the segments that some offsets delimit.
fn segments(input: &Input<'_>, list: &[Layout], seen: &[Vec<Seen<'_>>], i: usize) -> Option<Layout> {
    let buffer = input.arguments.get(i)?.buffer?;
    let uses = seen.get(i)?;
    let loads: Vec<u32> = uses.iter().flat_map(|s| s.address.loads().collect::<Vec<_>>()).collect();
    for (j, layout) in list.iter().enumerate() {
        let Layout::Offsets { base, size } = layout else { continue };
        let of_it = |load: &u32| seen[j].iter().any(|s| s.access.inst == *load);
        if loads.is_empty() || !loads.iter().all(of_it) {
            continue;
        }
        let data = input.arguments.get(j)?.buffer?.data;
        let row = |p: usize| {
            let at = base.get(p).copied().flatten()?;
            Some((i128::from(entry(data, at, *size)?), i128::from(entry(data, at + i64::from(*size), *size)?)))
        };
        if let Some((size, start)) = delimited(buffer.address, uses, input.threads.threads, &row) {
            return Some(Layout::Segments { offsets: j, size, start });
        }
    }
    None
}

/// Size of an element and place of element 0, if each thread stays within its segment.
fn delimited(
    address: u64,
    uses: &[Seen<'_>],
    threads: usize,
    row: &dyn Fn(usize) -> Option<(i128, i128)>,
) -> Option<(u64, i64)> {
    // The lowest byte of each thread, and one past its highest.
    let span = |p: usize| {
        let all = || uses.iter().filter_map(|s| spans(address, s.access.threads.get(p)?, s.access.bytes));
        Some((all().map(|x| x.1).min()?, all().map(|x| x.2).max()?))
    };
    let mut points = (0..threads).filter_map(|p| Some((row(p)?, span(p)?)));
    let (r0, s0) = points.next()?;
    let other = points.find(|(r, s)| r.0 != r0.0 && s.0 != s0.0);
    let size = match other {
        Some((r, s)) => {
            let (rise, run) = (s.0 - s0.0, r.0 - r0.0);
            (rise % run == 0).then_some(rise / run)?
        }
        None => i128::from(uses.first()?.access.bytes),
    };
    let start = s0.0 - size * r0.0;
    let inside = |p: usize| match (row(p), span(p)) {
        (Some(r), Some(s)) => start + size * r.0 <= s.0 && s.1 <= start + size * r.1,
        (None, Some(_)) => false,
        _ => true,
    };
    (size > 0 && (0..threads).all(inside)).then_some(())?;
    Some((u64::try_from(size).ok()?, i64::try_from(start).ok()?))
}

/// Names of arguments that were looked at, for messages.
pub(super) fn name(arguments: &[Argument<'_>], i: usize) -> String {
    argument(arguments, i)
}
