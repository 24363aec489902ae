//! Which data decide: the key of each cause, with a value for each thread.

use std::collections::{BTreeMap, HashMap};

use lanescope_ir::{Op, ThreadProfile};

use super::input::candidates;
use super::places::{accessed, element, ordered};
use super::{BINS, Input, Key, KeyBin, KeyKind, Number};
use crate::attribution::Cause;
use crate::slice::{Slice, Slicer};
use crate::words;

/// Values by which ways may be told apart at most, unless they are in order.
const CLASSES: usize = 256;

/// A number for each thread that has one.
pub(super) type Values = Vec<Option<i64>>;

/// A key with its values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Keyed {
    pub(super) key: Key,
    pub(super) values: Values,
}

/// What a thread does at a cause: turns of the loop, or which way it goes.
pub(super) fn need(input: &Input<'_>, executions: &[Vec<u32>], cause: Cause, live: &[bool]) -> Option<Values> {
    let s = &input.analysis.structure;
    let of = |b: u32, t: usize| executions.get(b as usize).and_then(|r| r.get(t)).copied().unwrap_or(0);
    match cause {
        Cause::Trips { header, .. } => {
            let header = s.cfg.block(header)?;
            Some((0..live.len()).map(|t| live[t].then(|| of(header, t).into())).collect())
        }
        Cause::Branch(inst) | Cause::Exit(inst) => {
            let block = s.cfg.block(inst)?;
            let back = s.cfg.graph.reversed();
            let only = |b: &u32| back.successors(*b) == [block] && (*b as usize) < s.cfg.blocks.len();
            let mut sides: Vec<u32> = s.cfg.graph.successors(block).iter().copied().filter(only).collect();
            if sides.is_empty() {
                sides = s.region(inst).blocks;
            }
            // Threads that did the same get the same number, in the order of what they did.
            let column = |t: usize| sides.iter().map(|&b| of(b, t)).collect::<Vec<u32>>();
            let columns: Vec<Option<Vec<u32>>> =
                (0..live.len()).map(|t| (of(block, t) > 0).then(|| column(t))).collect();
            if let [_] = sides.as_slice() {
                return Some(columns.into_iter().map(|c| c.and_then(|c| c.first().map(|&n| n.into()))).collect());
            }
            let mut ids: BTreeMap<&[u32], i64> = columns.iter().flatten().map(|c| (c.as_slice(), 0)).collect();
            ids.values_mut().zip(0..).for_each(|(v, i)| *v = i);
            Some(columns.iter().map(|c| c.as_ref().and_then(|c| ids.get(c.as_slice()).copied())).collect())
        }
        Cause::PartialWarp | Cause::Unknown => None,
    }
}

/// The values that an instruction gave, if it gave each thread one.
pub(super) fn fixed(input: &Input<'_>, inst: u32) -> Option<Values> {
    let profile = input.threads.values.iter().find(|v| v.inst == inst)?;
    if profile.threads.iter().any(|v| v.changed) || profile.threads.iter().all(|v| v.count == 0) {
        return None;
    }
    let (width, kind) = number(input, inst);
    Some(profile.threads.iter().map(|v| (v.count > 0).then(|| ordered(v.first, width, kind))).collect())
}

/// How the result of an instruction is to be read.
fn number(input: &Input<'_>, inst: u32) -> (u32, Number) {
    use lanescope_ir::op::LaneFn;
    let loaded = accessed(input.arguments, input.threads, inst).and_then(|i| input.arguments.get(i)?.buffer);
    if let Some(b) = loaded {
        let width = if b.element > 4 { 64 } else { 32 };
        // A load of less than a word extends it as the kernel wants it.
        return (width, if b.element < 4 { Number::Signed } else { b.kind });
    }
    match input.kernel.instructions.get(inst as usize).map(|i| &i.op) {
        Some(Op::Lane(op)) => match op.f {
            LaneFn::Float(_) => (32, Number::Float),
            LaneFn::Double(_) => (64, Number::Float),
            _ if op.dst.iter().all(Option::is_some) => (64, Number::Signed),
            _ => (32, Number::Signed),
        },
        _ => (32, Number::Signed),
    }
}

/// The key of a cause: the data that decide, or what the threads did if no data explain it.
pub(super) fn find(
    input: &Input<'_>,
    slicer: &Slicer<'_>,
    cause: Cause,
    slice: &Slice,
    need: &Values,
) -> Option<Keyed> {
    let trips = matches!(cause, Cause::Trips { .. });
    if slice.by_thread_alone() && !trips {
        let key = KeyKind::Thread { branch: slice.inst };
        return Some(keyed(key, "the thread's index alone".to_owned(), need.clone()));
    }
    let given: Vec<(u32, Values)> =
        candidates(slice).into_iter().filter_map(|inst| Some((inst, fixed(input, inst)?))).collect();
    // A difference that the kernel itself computes, perhaps less one, is told by its loads.
    let computed = |values: &Values| {
        let loads = || given.iter().filter(|g| slice.loads().any(|l| l == g.0));
        loads().flat_map(|a| loads().map(move |b| (a, b))).find_map(|((plus, a), (minus, b))| {
            let mut less = None;
            let mut same = |(v, (a, b)): (&Option<i64>, (&Option<i64>, &Option<i64>))| match (v, a, b) {
                (Some(v), Some(a), Some(b)) => {
                    let rest = a.wrapping_sub(*b).wrapping_sub(*v) as i32;
                    *less.get_or_insert(rest) == rest
                }
                _ => v.is_none(),
            };
            let exact = || a.iter().zip(b).map(|(a, b)| Some(a.as_ref()?.wrapping_sub(*b.as_ref()?))).collect();
            (plus != minus && values.iter().zip(a.iter().zip(b)).all(&mut same)).then(|| (*plus, *minus, exact()))
        })
    };
    for (inst, values) in &given {
        if explains(need, values, trips) {
            if let Some((plus, minus, exact)) = computed(values) {
                return Some(difference(input, slicer, plus, minus, exact));
            }
            let (kind, words) = loaded(input, slicer, slice, *inst);
            return Some(keyed(kind, words, values.clone()));
        }
    }
    let loads: Vec<&(u32, Values)> = given.iter().filter(|g| slice.loads().any(|l| l == g.0)).collect();
    for (plus, a) in &loads {
        for (minus, b) in &loads {
            let values: Values = a.iter().zip(b).map(|(a, b)| Some(a.as_ref()?.wrapping_sub(*b.as_ref()?))).collect();
            if plus != minus && trips && explains(need, &values, true) && rises(need, &values) {
                return Some(difference(input, slicer, *plus, *minus, values));
            }
        }
    }
    let place = |inst| words::place(input.kernel, inst);
    let (kind, mut text) = match cause {
        Cause::Trips { header, branch } => {
            (KeyKind::Trips { header }, format!("turns of the loop left at {}", place(branch)))
        }
        _ => (KeyKind::Way { branch: slice.inst }, format!("the way taken at {}", place(slice.inst))),
    };
    let from: Vec<String> = slice.loads().filter_map(|l| named(input, slicer, l)).collect();
    if let Some(first) = from.first() {
        text.push_str(&format!(", which {first} decides"));
        if from.len() > 1 {
            text.push_str(" among others");
        }
    }
    Some(keyed(kind, text, need.clone()))
}

/// A value that tells when a thread takes the arms of a branch in a loop, where counts do not: threads with equal values
/// take them equally often, and a warp issues them at most once for each value. With the blocks it holds for.
pub(super) fn steady(
    input: &Input<'_>,
    slicer: &Slicer<'_>,
    executions: &[Vec<u32>],
    cause: Cause,
    slice: &Slice,
    need: &Values,
) -> Option<(Keyed, Vec<u32>)> {
    let Cause::Branch(branch) = cause else { return None };
    let s = &input.analysis.structure;
    let around = s.loops.innermost.get(s.cfg.block(branch)? as usize).copied().flatten()?;
    let header = s.loops.list.get(around as usize)?.header;
    let inside = |b: &u32| *b != header && s.loops.contains(around, *b);
    let blocks: Vec<u32> = s.region(branch).blocks.into_iter().filter(inside).collect();
    // The arms: not where lanes meet again.
    let arms: Vec<u32> = blocks.iter().copied().filter(|&b| !joins(input, b)).collect();
    let issued = |b: u32| {
        let block = s.cfg.blocks.get(b as usize)?;
        let sum: u64 =
            block.instructions().filter_map(|i| input.profile.counts.get(i as usize)).map(|c| c.inst_executed).sum();
        Some(sum as f64 / f64::from(block.len.max(1)))
    };
    let share = input.threads.threads as f64 / input.threads.of.max(1) as f64;
    let measured: f64 = arms.iter().filter_map(|&b| issued(b)).sum::<f64>() * share;
    // What the warps would issue if threads with different values never went together.
    let apart = |class: &dyn Fn(usize) -> i64| -> f64 {
        let (block, width) =
            (input.threads.block_threads.max(1) as usize, input.profile.shape.warp_size.max(1) as usize);
        let all: Vec<usize> = (0..input.threads.threads).collect();
        let warps = all.chunks(block).flat_map(|b| b.chunks(width));
        let mut sum = 0.0;
        for warp in warps {
            let mut sorted = warp.to_vec();
            sorted.sort_by_key(|&t| class(t));
            for part in sorted.chunk_by(|a, b| class(*a) == class(*b)) {
                let most = |b: &u32| {
                    executions
                        .get(*b as usize)
                        .map_or(0, |r| part.iter().filter_map(|&t| r.get(t)).max().copied().unwrap_or(0))
                };
                sum += arms.iter().map(|b| f64::from(most(b))).sum::<f64>();
            }
        }
        sum
    };
    if apart(&|_| 0) > UNEXPLAINED * measured {
        return None;
    }
    let direct = candidates(slice);
    let indices: Vec<u32> = slice.loads().flat_map(|l| slicer.address(l).loads().collect::<Vec<_>>()).collect();
    for inst in direct.into_iter().chain(indices) {
        let Some(values) = fixed(input, inst) else { continue };
        let mut known: HashMap<i64, Option<i64>> = HashMap::new();
        let told = values.iter().zip(need).all(|(v, n)| v.is_none_or(|v| *known.entry(v).or_insert(*n) == *n));
        let some = (2..=values.len() / 2).contains(&known.len());
        if told && some && measured <= FITS * apart(&|t| values.get(t).copied().flatten().unwrap_or(i64::MIN)) {
            let (kind, words) = loaded(input, slicer, slice, inst);
            return Some((keyed(kind, words, values), blocks));
        }
    }
    None
}

/// Share of what was issued that counts alone explain at most, for there to be something to explain.
const UNEXPLAINED: f64 = 0.9;
/// Tolerance of what a value must account for.
const FITS: f64 = 1.02;

fn joins(input: &Input<'_>, block: u32) -> bool {
    use lanescope_ir::op::control::ControlOp;
    let last = input.analysis.structure.cfg.blocks.get(block as usize).map(|b| b.last() as usize);
    let op = last.and_then(|i| input.kernel.instructions.get(i)).map(|i| &i.op);
    matches!(op, Some(Op::Control(ControlOp::Sync { .. })))
}

/// The key that is the difference of two loads.
fn difference(input: &Input<'_>, slicer: &Slicer<'_>, plus: u32, minus: u32, values: Values) -> Keyed {
    let name = |inst| named(input, slicer, inst).unwrap_or_else(|| "?".into());
    let param = accessed(input.arguments, input.threads, plus).map(|p| p as u32);
    keyed(KeyKind::Difference { plus, minus, param }, format!("{} - {}", name(plus), name(minus)), values)
}

/// The element that a load reads, in words.
fn named(input: &Input<'_>, slicer: &Slicer<'_>, load: u32) -> Option<String> {
    element(input.arguments, input.threads, load, &|inst| slicer.address(inst).loads().collect())
}

/// The key that is an instruction's value.
fn loaded(input: &Input<'_>, slicer: &Slicer<'_>, slice: &Slice, inst: u32) -> (KeyKind, String) {
    let name = |load| named(input, slicer, load);
    let param = |load| accessed(input.arguments, input.threads, load).map(|p| p as u32);
    let loads = accessed(input.arguments, input.threads, inst).is_some();
    if loads || slice.loads().any(|l| l == inst) {
        let text = name(inst).unwrap_or_else(|| format!("the load at {}", words::place(input.kernel, inst)));
        return (KeyKind::Load { inst, param: param(inst) }, text);
    }
    let mut loads = slice.loads();
    let (first, more) = (loads.next(), loads.next().is_some());
    let mut text =
        format!("the value of `{}` at {}", words::text(input.kernel, inst), words::place(input.kernel, inst));
    if let Some(from) = first.and_then(name) {
        text.push_str(&format!(", computed from {from}{}", if more { " and others" } else { "" }));
    }
    (KeyKind::Load { inst: first.unwrap_or(inst), param: first.and_then(param) }, text)
}

pub(super) fn keyed(kind: KeyKind, words: String, values: Values) -> Keyed {
    let (distinct, histogram) = histogram(&values);
    Keyed { key: Key { kind, words, distinct, histogram }, values }
}

/// Whether what threads need is told by these values: equal values, equal needs; for loops (and with many values) in
/// order as well.
fn explains(need: &Values, values: &Values, ordered: bool) -> bool {
    let mut by_value: HashMap<i64, i64> = HashMap::new();
    for (n, v) in need.iter().zip(values) {
        match (n, v) {
            (Some(n), Some(v)) => {
                if *by_value.entry(*v).or_insert(*n) != *n {
                    return false;
                }
            }
            (Some(_), None) => return false,
            (None, _) => {}
        }
    }
    let mut list: Vec<(i64, i64)> = by_value.into_iter().collect();
    list.sort_unstable();
    let differ = list.windows(2).any(|w| w[0].1 != w[1].1);
    let monotone = || list.windows(2).all(|w| w[0].1 <= w[1].1) || list.windows(2).all(|w| w[0].1 >= w[1].1);
    differ && if ordered { monotone() } else { list.len() <= CLASSES && list.len() * 2 <= values.len() }
}

/// Whether more is needed where the value is larger.
fn rises(need: &Values, values: &Values) -> bool {
    let pairs = || need.iter().zip(values).filter_map(|(n, v)| Some(((*v)?, (*n)?)));
    match (pairs().min(), pairs().max()) {
        (Some(low), Some(high)) => low.1 <= high.1,
        _ => false,
    }
}

/// Different values, and threads by value.
fn histogram(values: &Values) -> (u64, Vec<KeyBin>) {
    let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
    for v in values.iter().flatten() {
        *counts.entry(*v).or_default() += 1;
    }
    let distinct = counts.len() as u64;
    if counts.len() <= BINS {
        return (distinct, counts.into_iter().map(|(v, threads)| KeyBin { low: v, high: v, threads }).collect());
    }
    let (Some((&low, _)), Some((&high, _))) = (counts.first_key_value(), counts.last_key_value()) else {
        return (0, Vec::new());
    };
    let span = i128::from(high) - i128::from(low) + 1;
    let start = |i: usize| (i128::from(low) + span * i as i128 / BINS as i128) as i64;
    let bins = (0..BINS).map(|i| {
        let (from, to) = (start(i), if i + 1 == BINS { high } else { start(i + 1).wrapping_sub(1) });
        KeyBin { low: from, high: to, threads: if from <= to { counts.range(from..=to).map(|c| c.1).sum() } else { 0 } }
    });
    (distinct, bins.filter(|b| b.low <= b.high).collect())
}

/// Threads that did something to memory, or all if none was seen to.
pub(super) fn live(threads: &ThreadProfile) -> Vec<bool> {
    let mut live = vec![false; threads.threads];
    for a in &threads.accesses {
        live.iter_mut().zip(&a.threads).for_each(|(l, t)| *l |= t.count > 0);
    }
    if live.iter().any(|&l| l) { live } else { vec![true; threads.threads] }
}

/// A loop whose lanes turn as often as the busiest, because a vote decides.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lockstep {
    /// The branch that leaves it, or goes round.
    pub(super) branch: u32,
    /// First instruction of the header.
    pub(super) header: u32,
    /// Turns that each thread needs.
    pub(super) own: Vec<u32>,
    /// Blocks of the loop with the executions that each thread needs.
    pub(super) blocks: Vec<(u32, Vec<u32>)>,
    /// Lane slots in which lanes went round for nothing.
    pub(super) wasted: u64,
    pub(super) key: Keyed,
}

/// A loop that votes, if some value tells how many turns each thread needs: the warp makes as many as its largest says.
pub(super) fn lockstep(input: &Input<'_>, slicer: &Slicer<'_>, header: u32, slice: &Slice) -> Option<Lockstep> {
    let s = &input.analysis.structure;
    let block = s.cfg.block(header)?;
    let turns = input.threads.executions.get(block as usize)?;
    let width = input.profile.shape.warp_size.max(1) as usize;
    for inst in candidates(slice) {
        let Some(values) = fixed(input, inst) else { continue };
        let Some((a, b)) = line(turns, &values, input.threads.block_threads as usize, width) else { continue };
        let own: Vec<u32> = turns
            .iter()
            .zip(&values)
            .map(|(&t, v)| v.map_or(t, |v| (a * i128::from(v) + b).clamp(0, t.into()) as u32))
            .collect();
        let l = s.loops.list.iter().position(|l| l.header == block)? as u32;
        let mut wasted = 0u64;
        let mut blocks = Vec::new();
        for b in (0..s.cfg.blocks.len() as u32).filter(|&b| s.loops.contains(l, b)) {
            let Some(row) = input.threads.executions.get(b as usize) else { continue };
            let need: Vec<u32> = (row.iter().zip(turns).zip(&own))
                .map(|((&n, &t), &o)| (u64::from(n) * u64::from(o)).div_ceil(u64::from(t.max(1))) as u32)
                .collect();
            let length = u64::from(s.cfg.blocks.get(b as usize).map_or(0, |b| b.len));
            let lost: u64 = row.iter().zip(&need).map(|(&n, &o)| u64::from(n.saturating_sub(o))).sum();
            wasted = wasted.saturating_add(lost.saturating_mul(length));
            blocks.push((b, need));
        }
        let (kind, words) = loaded(input, slicer, slice, inst);
        return Some(Lockstep { branch: slice.inst, header, own, blocks, wasted, key: keyed(kind, words, values) });
    }
    None
}

/// The loop around a branch, if its warps turn once for each different value among their lanes ("for each expert that a lane
/// wants"): executions of its blocks that each thread needs alone.
pub(super) fn once_for_each(input: &Input<'_>, branch: u32, values: &Values) -> Option<Vec<(u32, Vec<u32>)>> {
    let s = &input.analysis.structure;
    let around = s.loops.innermost.get(s.cfg.block(branch)? as usize).copied().flatten()?;
    let header = s.loops.list.get(around as usize)?.header;
    let turns = input.threads.executions.get(header as usize)?;
    let (block, width) = (input.threads.block_threads.max(1) as usize, input.profile.shape.warp_size.max(1) as usize);
    let mut some = false;
    for (t, v) in turns.chunks(block).zip(values.chunks(block)) {
        for (t, v) in t.chunks(width).zip(v.chunks(width)) {
            let mut different: Vec<i64> = v.iter().flatten().copied().collect();
            different.sort_unstable();
            different.dedup();
            let n = different.len() as u32;
            if t.iter().any(|&t| t != n) {
                return None;
            }
            some |= n > 1;
        }
    }
    let own = |b: u32| {
        let row = input.threads.executions.get(b as usize)?;
        // What every turn needs is needed once; what only some turns need is the thread's own.
        let times = row.iter().zip(turns).find(|(_, t)| **t > 0).map(|(n, t)| n / t)?;
        let every = row.iter().zip(turns).all(|(&n, &t)| n == times.saturating_mul(t));
        Some((b, if every { row.iter().map(|&n| if n > 0 { times } else { 0 }).collect() } else { row.clone() }))
    };
    some.then(|| (0..s.cfg.blocks.len() as u32).filter(|&b| s.loops.contains(around, b)).filter_map(own).collect())
}

/// `(a, b)` such that each warp makes `a * (its largest value) + b` turns, or none.
fn line(turns: &[u32], values: &Values, block: usize, width: usize) -> Option<(i128, i128)> {
    let mut points = Vec::new();
    for (t, v) in turns.chunks(block.max(1)).zip(values.chunks(block.max(1))) {
        for (t, v) in t.chunks(width).zip(v.chunks(width)) {
            if let (Some(&t), Some(v)) = (t.iter().max(), v.iter().flatten().max()) {
                points.push((i128::from(*v), i128::from(t)));
            }
        }
    }
    points.sort_unstable();
    points.dedup();
    let (&low, &high) = (points.iter().find(|p| p.1 > 0)?, points.last()?);
    let (run, rise) = (high.0 - low.0, high.1 - low.1);
    if run <= 0 || rise <= 0 || rise % run != 0 {
        return None;
    }
    let a = rise / run;
    let b = low.1 - a * low.0;
    points.iter().all(|p| (a * p.0 + b).max(0) == p.1).then_some((a, b))
}
