//! What the candidate fixes look at: causes with their keys, and prices.

use std::collections::HashSet;

use lanescope_ir::Op;
use lanescope_ir::op::memory::{MemoryOp, Space};
use lanescope_ir::op::warp::WarpOp;

use super::keys::{self, Keyed, Values, keyed};
use super::permute::{Layout, layouts};
use super::{Input, Key, KeyKind, KeyedCause};
use crate::attribution::Cause;
use crate::slice::{Slice, Slicer};
use crate::whatif::{Grouping, Known, WhatIf, WhatIfError, stable_order};

/// Causes looked at, the most expensive first.
const CAUSES: usize = 24;

/// A cause with what decides there.
#[derive(Debug)]
pub(super) struct Caused {
    pub(super) keyed: KeyedCause,
    pub(super) slice: Slice,
    /// What each thread does there: turns, or a number for its way.
    pub(super) need: Values,
    /// The key's values.
    pub(super) values: Option<Values>,
    /// The loop whose turns it is about, as an index into `Structure::loops.list`.
    pub(super) in_loop: Option<u32>,
    /// A vote decides: no lane is lost to counters.
    pub(super) voted: bool,
}

/// An order of the threads with what it is by.
#[derive(Clone, Debug)]
pub(super) struct Ordered {
    pub(super) key: Key,
    pub(super) values: Values,
    pub(super) order: Vec<u32>,
    pub(super) price: u64,
    /// The branch it is about.
    pub(super) at: Option<u32>,
}

pub(super) struct Cx<'a> {
    pub(super) input: &'a Input<'a>,
    pub(super) model: WhatIf,
    pub(super) causes: Vec<Caused>,
    /// Threads that take part.
    pub(super) live: Vec<bool>,
    pub(super) slicer: Slicer<'a>,
    /// Orders by each key and by pairs of them, the cheapest first.
    pub(super) orders: Vec<Ordered>,
    /// What each argument holds.
    pub(super) layouts: Vec<Layout>,
}

impl<'a> Cx<'a> {
    pub(super) fn new(input: &'a Input<'a>) -> Result<Cx<'a>, WhatIfError> {
        let s = &input.analysis.structure;
        let slicer = Slicer::new(input.kernel, s, input.uniformity);
        let live = keys::live(input.threads);
        let mut locksteps = Vec::new();
        for stat in &input.analysis.lockstep {
            let slice = Slice { inst: stat.lockstep.branch, ..slicer.slice(stat.lockstep.vote) };
            if let Some(found) = keys::lockstep(input, &slicer, stat.lockstep.header, &slice) {
                locksteps.push((found, slice));
            }
        }
        let mut own: Vec<(u32, Vec<u32>)> = locksteps.iter().flat_map(|l| l.0.blocks.clone()).collect();
        let mut executions = input.threads.executions.clone();
        for (b, need) in &own {
            if let Some(row) = executions.get_mut(*b as usize) {
                row.clone_from(need);
            }
        }
        let width = f64::from(input.profile.shape.warp_size.max(1));
        let mut causes = Vec::new();
        for (l, slice) in locksteps {
            let cause = Cause::Trips { branch: l.branch, header: l.header };
            let block = s.cfg.block(l.header);
            let need = l.own.iter().zip(&live).map(|(&n, &live)| live.then_some(n.into())).collect();
            let warp_instructions = l.wasted as f64 / width;
            causes.push(Caused {
                keyed: KeyedCause { cause, lanes: l.wasted, warp_instructions, key: Some(l.key.key) },
                slice,
                need,
                values: Some(l.key.values),
                in_loop: s.loops.list.iter().position(|x| Some(x.header) == block).map(|i| i as u32),
                voted: true,
            });
        }
        let mut steady = Vec::new();
        for total in input.analysis.losses.causes.iter().take(CAUSES) {
            causes.push(caused(input, &slicer, &executions, &live, total, &mut steady));
        }
        for c in &causes {
            if let (Some(branch), Some(values)) = (c.keyed.cause.inst(), &c.values)
                && let Some(blocks) = keys::once_for_each(input, branch, values)
            {
                steady.push((blocks.iter().map(|b| b.0).collect(), classes(values)));
                own.extend(blocks);
            }
        }
        let known = Known { own, steady };
        let model = WhatIf::new(input.kernel, s, input.profile, input.threads, known)?;
        causes.sort_by(|a, b| b.keyed.lanes.cmp(&a.keyed.lanes).then(a.keyed.cause.cmp(&b.keyed.cause)));
        let layouts = layouts(input, &|inst| slicer.address(inst));
        let mut cx = Cx { input, model, causes, live, slicer, orders: Vec::new(), layouts };
        cx.orders = cx.find_orders();
        Ok(cx)
    }

    /// Warp instructions of the launch as it ran.
    pub(super) fn before(&self) -> u64 {
        self.model.measured()
    }

    pub(super) fn price(&self, order: &[u32]) -> u64 {
        self.model.price(&self.model.grouping(order)).warp_instructions
    }

    /// Threads that take part.
    pub(super) fn items(&self) -> u64 {
        self.live.iter().filter(|l| **l).count() as u64
    }

    /// The warps of the launch as it ran without some threads.
    pub(super) fn without(&self, leave: &dyn Fn(u32) -> bool) -> Grouping {
        let all: Vec<u32> = (0..self.model.threads() as u32).collect();
        let mut g = Grouping::default();
        for warp in self.model.grouping(&all).warps() {
            let stay: Vec<u32> = warp.iter().copied().filter(|&t| !leave(t)).collect();
            g.push(&stay);
        }
        g
    }

    /// Whether lanes of a warp, or threads of a block, pass values to each other: they cannot be taken apart.
    pub(super) fn together(&self) -> bool {
        self.input.kernel.instructions.iter().any(|i| match &i.op {
            Op::Warp(w) => !matches!(w, WarpOp::Special { .. } | WarpOp::Vote { .. } | WarpOp::ActiveMask { .. }),
            Op::Memory(MemoryOp::Store { space, .. }) => *space == Space::Shared,
            Op::Memory(MemoryOp::Copy { .. } | MemoryOp::LoadMatrix { .. } | MemoryOp::StoreMatrix { .. }) => true,
            _ => false,
        })
    }

    /// Values by which all live threads can be sorted: those without one come first.
    pub(super) fn sortable(&self, values: &Values) -> Values {
        values.iter().zip(&self.live).map(|(v, &live)| live.then(|| v.unwrap_or(i64::MIN))).collect()
    }

    /// Orders by each different key, by the pair of the best two, and by all work.
    fn find_orders(&self) -> Vec<Ordered> {
        let mut list: Vec<Ordered> = Vec::new();
        let mut seen: HashSet<Vec<u32>> = HashSet::new();
        let mut add = |keyed: Keyed, at: Option<u32>, list: &mut Vec<Ordered>| {
            let order = stable_order(&self.sortable(&keyed.values));
            if seen.insert(order.clone()) {
                let price = self.price(&order);
                list.push(Ordered { key: keyed.key, values: keyed.values, order, price, at });
            }
        };
        for c in &self.causes {
            let at = c.keyed.cause.inst();
            if matches!(c.keyed.key.as_ref().map(|k| k.kind), Some(KeyKind::Thread { .. })) {
                continue;
            }
            if let (Some(key), Some(values)) = (&c.keyed.key, &c.values) {
                add(Keyed { key: key.clone(), values: values.clone() }, at, &mut list);
            }
        }
        list.sort_by_key(|o| o.price);
        if let [a, b, ..] = list.as_slice() {
            let pair = pair(a, b);
            let at = a.at;
            add(pair, at, &mut list);
        }
        if !self.causes.is_empty() {
            let work = self.model.work().into_iter().map(|w| Some(w as i64)).collect();
            add(keyed(KeyKind::Work, "the instructions that each item takes".into(), work), None, &mut list);
        }
        list.sort_by_key(|o| o.price);
        list
    }

    /// Bytes that have to move if all items change places.
    pub(super) fn moved_bytes(&self) -> u64 {
        let of = |i: usize| self.input.arguments.get(i).and_then(|a| a.buffer).map_or(0, |b| b.data.len() as u64);
        self.layouts.iter().enumerate().map(|(i, l)| l.moved(of(i))).fold(0, u64::saturating_add)
    }
}

/// A key by two, the first deciding first. Its values are ranks.
fn pair(a: &Ordered, b: &Ordered) -> Keyed {
    let both: Vec<Option<(Option<i64>, Option<i64>)>> =
        a.values.iter().zip(&b.values).map(|(a, b)| (a.is_some() || b.is_some()).then_some((*a, *b))).collect();
    let mut ranks: Vec<_> = both.iter().flatten().copied().collect();
    ranks.sort_unstable();
    ranks.dedup();
    let values = both.iter().map(|v| v.and_then(|v| ranks.binary_search(&v).ok()).map(|r| r as i64)).collect();
    // As practical as the less practical of the two.
    let kind =
        if super::fixes::practical(b.key.kind) > super::fixes::practical(a.key.kind) { b.key.kind } else { a.key.kind };
    keyed(kind, format!("{}, then {}", a.key.words, b.key.words), values)
}

/// Values as classes: threads without one are a class of their own.
fn classes(values: &Values) -> Vec<u32> {
    let mut sorted: Vec<Option<i64>> = values.clone();
    sorted.sort_unstable();
    sorted.dedup();
    values.iter().map(|v| sorted.binary_search(v).unwrap_or(0) as u32).collect()
}

fn caused(
    input: &Input<'_>,
    slicer: &Slicer<'_>,
    executions: &[Vec<u32>],
    live: &[bool],
    total: &crate::attribution::CauseTotal,
    steady: &mut Vec<(Vec<u32>, Vec<u32>)>,
) -> Caused {
    let s = &input.analysis.structure;
    let slice = total.cause.inst().map(|i| slicer.slice(i)).unwrap_or_default();
    let need = keys::need(input, executions, total.cause, live);
    let found = need.as_ref().and_then(|need| keys::find(input, slicer, total.cause, &slice, need));
    let explained = |k: &Keyed| !matches!(k.key.kind, KeyKind::Way { .. } | KeyKind::Trips { .. });
    let found = match (found, &need) {
        (Some(k), _) if explained(&k) => Some(k),
        (found, Some(need)) => match keys::steady(input, slicer, executions, total.cause, &slice, need) {
            Some((key, blocks)) => {
                steady.push((blocks, classes(&key.values)));
                Some(key)
            }
            None => found,
        },
        (found, None) => found,
    };
    let (key, values) = found.map_or((None, None), |k| (Some(k.key), Some(k.values)));
    let header = match total.cause {
        Cause::Trips { header, .. } => s.cfg.block(header),
        _ => None,
    };
    Caused {
        keyed: KeyedCause { cause: total.cause, lanes: total.lanes, warp_instructions: total.warp_instructions, key },
        slice,
        need: need.unwrap_or_default(),
        values,
        in_loop: header.and_then(|h| s.loops.list.iter().position(|l| l.header == h)).map(|i| i as u32),
        voted: false,
    }
}
