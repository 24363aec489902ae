//! The fixpoint: values at the start and at the end of each block, the lanes that can be there, and the branches that part
//! lanes.
//!
//! It is optimistic: nothing is reachable and nothing parts lanes until shown. A block's state is computed anew from its
//! predecessors' each time; after many visits values only go up, so that it ends.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use lanescope_ir::op::control::{ControlOp, Decision};
use lanescope_ir::{Kernel, Op, PredSrc};

use super::apart::Apart;
use super::eval::{In, Place};
use super::net::{Bits, Net, Way, collectives};
use super::value::{Domain, Leaf, LeafKey, Set, Tab, Value, meet};
use super::{Facts, Level};
use crate::regions::Structure;

/// Visits of a block after which its values only go up, and after which what changes is given up.
const SLOW: u32 = 12;
const STOP: u32 = 48;
/// Rounds over all blocks because leaves promise less.
const ROUNDS: u32 = 200;

/// Marks a site that is a block where values meet, not an instruction.
pub(super) const MEETS: u32 = 1 << 31;
/// Marks a register of a record as what a guarded write may leave.
pub(super) const OLD: u32 = 1 << 31;
/// A value that the kernel started with.
pub(super) const START: u32 = u32::MAX;

/// A value and the instruction, or block, it comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Val {
    pub(super) value: Value,
    pub(super) site: u32,
}

/// An edge out of a block and the threads that take it.
pub(super) type Edge = (u32, Set);

pub(super) struct Solver {
    pub(super) kernel: Arc<Kernel>,
    pub(super) s: Arc<Structure>,
    pub(super) net: Net,
    pub(super) d: Domain,
    pub(super) apart: Apart,
    /// Values of the live registers at the start and at the end of each block.
    pub(super) ins: Vec<Vec<Val>>,
    pub(super) outs: Vec<Option<Vec<Val>>>,
    /// Threads that can be at the start of each block.
    pub(super) sets: Vec<Set>,
    pub(super) edges: Vec<Vec<Edge>>,
    pub(super) reached: Vec<bool>,
    visits: Vec<u32>,
    /// Current values of all registers, and the visit that set them.
    pub(super) cur: Vec<Val>,
    /// Registers that only the uniform datapath writes.
    pub(super) uniform: Bits,
    /// What pieces of collective code write, where they start, where they lead.
    mixed: (Bits, Vec<u32>, Vec<u32>),
    heap: BinaryHeap<Reverse<(u32, u32)>>,
    queued: Vec<bool>,
    again: bool,
    /// Words of constant banks.
    pub(super) words: super::launch::Words,
    /// Generic addresses cannot name memory of one thread.
    pub(super) no_local_pointers: bool,
    /// How far all threads come to a block by the same way.
    pub(super) ways: Vec<Level>,
    /// Pointer arguments through which the kernel writes, if that is known of all its writes.
    pub(super) written: Option<Vec<u32>>,
    /// Exits at which some lanes of a warp leave.
    pub(super) exits: Vec<u32>,
    /// Nothing can be said.
    pub(super) lost: bool,
    /// Reads of each instruction, once the fixpoint is there.
    pub(super) record: Option<Vec<Vec<(u32, Val)>>>,
}

impl Solver {
    pub(super) fn new(kernel: &Kernel, s: &Structure, facts: &Facts, stored: Option<Vec<u32>>) -> Solver {
        let d = super::launch::domain(kernel, facts);
        let net = Net::new(kernel, &s.cfg);
        let n = s.cfg.blocks.len();
        let apart = Apart::new(kernel, s, &net);
        let (written, starts, targets) = collectives(kernel, net.regs, net.slots);
        let block = |at: u32| s.cfg.block(at);
        let mixed = (
            written,
            starts.into_iter().filter_map(block).collect(),
            targets.into_iter().filter_map(|t| block(t.0)).collect(),
        );
        let undef = Val { value: Value::Undef, site: START };
        let lost = net.lost;
        let mut solver = Solver {
            cur: vec![undef; net.regs],
            ins: vec![Vec::new(); n],
            outs: vec![None; n],
            sets: vec![vec![0; d.existing.len()].into(); n],
            edges: vec![Vec::new(); n],
            reached: vec![false; n],
            visits: vec![0; n],
            uniform: uniform_registers(kernel, &net),
            heap: BinaryHeap::new(),
            queued: vec![false; n],
            again: false,
            ways: vec![Level::Grid; n],
            words: super::launch::Words::new(kernel, facts),
            no_local_pointers: no_local_pointers(kernel),
            written: stored,
            exits: Vec::new(),
            record: None,
            kernel: Arc::new(Kernel { text: Vec::new(), source: Default::default(), ..kernel.clone() }),
            s: Arc::new(s.clone()),
            net,
            d,
            apart,
            mixed,
            lost,
        };
        solver.run();
        solver
    }

    fn push(&mut self, b: u32) {
        if let Some(q) = self.queued.get_mut(b as usize)
            && !std::mem::replace(q, true)
        {
            self.heap.push(Reverse((self.net.order[b as usize], b)));
        }
    }

    fn run(&mut self) {
        if self.lost || self.s.cfg.blocks.is_empty() {
            return;
        }
        self.push(0);
        for b in 0..self.net.open.len() as u32 {
            if self.net.open[b as usize] {
                self.push(b);
            }
        }
        // Whether the joins have been looked at since anything changed: what they find depends on more than their predecessors.
        let mut settled = false;
        for _ in 0..ROUNDS {
            while let Some(Reverse((_, b))) = self.heap.pop() {
                self.queued[b as usize] = false;
                settled &= !self.visit(b);
                if self.apart.exhausted {
                    self.lost = true;
                    return;
                }
            }
            let weakened = std::mem::take(&mut self.d.weakened);
            if std::mem::take(&mut self.again) {
                for b in self.apart.again(&self.s, &self.net, &self.reached) {
                    self.push(b);
                }
            }
            if weakened {
                let all: Vec<u32> = (0..self.reached.len() as u32).filter(|&b| self.reached[b as usize]).collect();
                all.into_iter().for_each(|b| self.push(b));
            }
            if !std::mem::replace(&mut settled, true) {
                for b in 0..self.reached.len() as u32 {
                    if self.reached[b as usize] && !self.apart.joins[b as usize].is_empty() {
                        self.push(b);
                    }
                }
            } else if self.heap.is_empty() {
                self.finish();
                return;
            }
        }
        self.lost = true;
    }

    /// One more walk over all blocks that writes down what each instruction reads.
    fn finish(&mut self) {
        self.record = Some(vec![Vec::new(); self.kernel.instructions.len()]);
        for b in 0..self.reached.len() as u32 {
            if self.reached[b as usize] {
                self.d.ways = self.ways[b as usize];
                self.load(b);
                self.execute(b);
            }
        }
    }

    /// Computes a block anew; whether anything changed.
    fn visit(&mut self, b: u32) -> bool {
        self.d.ways = self.ways[b as usize];
        let Some((ins, set)) = self.enter(b) else { return false };
        if !std::mem::replace(&mut self.reached[b as usize], true) && self.apart.matters(b) {
            self.again = true;
        }
        self.visits[b as usize] = self.visits[b as usize].saturating_add(1);
        self.ins[b as usize] = ins;
        self.sets[b as usize] = set;
        self.load(b);
        let (out, edges) = self.execute(b);
        let changed = self.outs[b as usize].as_ref() != Some(&out) || self.edges[b as usize] != edges;
        self.outs[b as usize] = Some(out);
        self.edges[b as usize] = edges;
        if changed {
            for &t in &self.net.affects[b as usize].clone() {
                self.push(t);
            }
        }
        changed
    }

    fn load(&mut self, b: u32) {
        // Registers that are not live hold what some other block left; nobody reads it before it is written.
        for (&r, v) in self.net.live_in[b as usize].iter().zip(&self.ins[b as usize]) {
            if let Some(cur) = self.cur.get_mut(r as usize) {
                *cur = *v;
            }
        }
    }

    /// The threads that take a way into `b`, if any can.
    fn passes(&self, b: u32, from: u32, way: Way) -> Option<Set> {
        let edge = |from: u32, to: u32| self.edges.get(from as usize)?.iter().find(|e| e.0 == to).map(|e| e.1.clone());
        match way {
            Way::Plain | Way::Call | Way::Clobber => edge(from, b),
            // Behind a call, if it comes back, or if it was not made.
            Way::Around(callee) => {
                let set = edge(from, b)?;
                let made = self.kernel.instructions.get(self.s.cfg.blocks.get(from as usize)?.last() as usize)?;
                let certain = made.guard.is_true()
                    && matches!(&made.op, Op::Control(ControlOp::Call { cond, .. }) if cond.is_true());
                let back = self.net.flows[b as usize]
                    .iter()
                    .any(|&(r, w)| w == Way::Return(callee, from) && self.outs[r as usize].is_some());
                (!certain || back).then_some(set)
            }
            Way::Return(_, caller) => {
                self.outs.get(from as usize)?.as_ref()?;
                edge(caller, b)
            }
        }
    }

    /// Values and threads at the start of a block; `None` if nothing leads there yet.
    fn enter(&mut self, b: u32) -> Option<(Vec<Val>, Set)> {
        let flows = self.net.flows.get(b as usize)?.clone();
        let live = std::mem::take(&mut self.net.live_in[b as usize]);
        let unknown = self.net.open[b as usize];
        let start = b == 0;
        let mut set: Set = vec![0; self.d.existing.len()].into();
        if unknown || start {
            set = self.d.existing.clone();
        }
        let mut active: Vec<(u32, Way)> = Vec::new();
        for (from, way) in flows {
            if let Some(s) = self.passes(b, from, way) {
                set.iter_mut().zip(&s).for_each(|(a, b)| *a |= b);
                active.push((from, way));
            }
        }
        let mut ins = None;
        if unknown || start || !active.is_empty() {
            let mixed = self.mixed.1.contains(&b);
            let partly = self.mixed.2.contains(&b);
            let visits = self.visits[b as usize];
            let mut cursor = vec![0usize; active.len()];
            let mut list = Vec::with_capacity(live.len());
            let mut incoming: Vec<Val> = Vec::new();
            for (i, &r) in live.iter().enumerate() {
                incoming.clear();
                let mut any = unknown || mixed || partly && self.mixed.0.has(r);
                if start {
                    incoming.push(self.initial(r));
                }
                for (k, &(from, way)) in active.iter().enumerate() {
                    match way {
                        Way::Clobber => any = true,
                        Way::Around(c)
                            if self.net.writes.get(&c).is_none_or(|w| w.as_ref().is_none_or(|w| w.has(r))) =>
                        {
                            if self.may_skip(from) {
                                incoming.extend(self.out(from, r, &mut cursor[k]));
                            }
                            continue;
                        }
                        Way::Return(c, _)
                            if self.net.writes.get(&c).is_some_and(|w| w.as_ref().is_some_and(|w| !w.has(r))) =>
                        {
                            continue;
                        }
                        _ => {}
                    }
                    incoming.extend(self.out(from, r, &mut cursor[k]));
                }
                let old = self.ins[b as usize].get(i).copied();
                list.push(self.merge(b, r, &incoming, any, &set, old.filter(|_| visits > SLOW), visits));
            }
            ins = Some((list, set));
        }
        self.net.live_in[b as usize] = live;
        ins
    }

    fn may_skip(&self, from: u32) -> bool {
        let last = self.s.cfg.blocks.get(from as usize).and_then(|b| self.kernel.instructions.get(b.last() as usize));
        last.is_none_or(|i| {
            !(i.guard.is_true() && matches!(&i.op, Op::Control(ControlOp::Call { cond, .. }) if cond.is_true()))
        })
    }

    fn out(&self, from: u32, r: u32, cursor: &mut usize) -> Option<Val> {
        let list = self.net.live_out.get(from as usize)?;
        while list.get(*cursor).is_some_and(|&x| x < r) {
            *cursor += 1;
        }
        if list.get(*cursor) != Some(&r) {
            return None;
        }
        self.outs.get(from as usize)?.as_ref()?.get(*cursor).copied()
    }

    fn initial(&mut self, r: u32) -> Val {
        let k = Arc::clone(&self.kernel);
        let value = match k.stack_pointer {
            Some((slot, _)) if u32::from(slot.0) == r => self.d.launch(LeafKey::Stack, Level::Grid, u32::MAX),
            _ if k.true_preds.iter().any(|p| self.net.slots + u32::from(p.0) == r) => Value::number(1),
            _ => Value::Undef,
        };
        Val { value, site: START }
    }

    #[allow(clippy::too_many_arguments)] // One place calls it.
    fn merge(
        &mut self,
        b: u32,
        r: u32,
        incoming: &[Val],
        any: bool,
        set: &[u32],
        sticky: Option<Val>,
        visits: u32,
    ) -> Val {
        let meets = b | MEETS;
        let here = |value: Value| Val { value, site: meets };
        let uniform = self.uniform.has(r);
        let mut all = incoming.iter().map(|v| v.value).collect::<Vec<_>>();
        let Some(first) = incoming.first().copied() else {
            return here(if any { self.unknown(b, r, uniform) } else { Value::Undef });
        };
        let site = if incoming.iter().all(|v| v.site == first.site) { first.site } else { meets };
        if any {
            return here(self.unknown(b, r, uniform));
        }
        if let Some(old) = sticky {
            all.push(old.value);
        }
        let same = all.iter().all(|&v| v == first.value);
        let joins = self.apart.joins.get(b as usize).map_or(0, Vec::len);
        let lost = if joins > 0 {
            // Lanes meet here that have come by different ways.
            !same || matches!(first.value, Value::Mono(_)) || self.tainted(b, first.value)
        } else {
            false
        };
        let value = if lost {
            self.unknown(b, r, uniform)
        } else if same {
            return Val { value: first.value, site };
        } else {
            self.phi(b, r, &all, set, uniform)
        };
        match sticky {
            Some(old) if visits > STOP && old.value != value => here(self.unknown(b, r, uniform)),
            _ => here(value),
        }
    }

    /// Whether lanes of a split that meets in `b` may have computed this value at different times.
    fn tainted(&self, b: u32, v: Value) -> bool {
        let joins = &self.apart.joins[b as usize];
        let fresh = |leaf: &Leaf, j: u32| {
            let Some(split) = self.apart.splits.get(j as usize) else { return true };
            let inside = |b: u32| split.region.binary_search(&b).is_ok();
            if !inside(leaf.block) {
                return false;
            }
            // Where values meet nothing is computed if all that comes from within the region is what was there before.
            let LeafKey::Phi(at, r) = leaf.key else { return true };
            let find = |list: &[u32], values: &[Val]| Some(values.get(list.binary_search(&r).ok()?)?.value);
            let before = find(&self.net.live_in[at as usize], &self.ins[at as usize]);
            let from = self.s.cfg.block(split.inst);
            !self.net.flows[at as usize].iter().filter(|f| inside(f.0) || Some(f.0) == from).all(|&(from, way)| {
                let out = self.outs[from as usize].as_ref();
                way == Way::Plain
                    && out.is_none_or(|out| find(&self.net.live_out[from as usize], out) == before && before.is_some())
            })
        };
        !self.d.all_leaves(v, |leaf| leaf.fixed || joins.len() <= 16 && joins.iter().all(|&j| !fresh(leaf, j)))
    }

    /// Nothing known, but for a uniform register that it is one number.
    fn unknown(&mut self, b: u32, r: u32, uniform: bool) -> Value {
        if !uniform {
            return Value::Divergent;
        }
        let max = if r >= self.net.slots { 1 } else { u32::MAX };
        self.d.leaf(Leaf {
            key: LeafKey::Phi(b, r),
            level: Level::Warp,
            fixed: false,
            block: b,
            max,
            align: 0,
            issue: true,
        })
    }

    /// Different values of lanes that come the same way: whatever it is, it is one of them for all.
    fn phi(&mut self, b: u32, r: u32, all: &[Value], set: &[u32], uniform: bool) -> Value {
        let mut level = Level::Grid;
        let mut align = 32;
        let mut table: Option<Tab> = None;
        let mut flat = true;
        let mut shaped = true;
        for &v in all {
            let (lin, tab) = match v {
                Value::Undef => {
                    align = 0;
                    continue;
                }
                Value::Words(lin, tab) => (lin, tab),
                _ => return self.unknown(b, r, uniform),
            };
            let own = self.d.level(v, set);
            flat &= own.is_some();
            level = level.max(own.unwrap_or(self.d.base_level(lin)));
            let start = self.d.at(tab, 0);
            align = align.min(self.d.bounds(lin).0).min(start.trailing_zeros());
            let zeroed = match self.d.table(0, |d, i| d.at(tab, i).wrapping_sub(start)) {
                Value::Words(_, t) => t,
                _ => return self.unknown(b, r, uniform),
            };
            shaped &= *table.get_or_insert(zeroed) == zeroed;
        }
        if !flat && !shaped {
            return self.unknown(b, r, uniform);
        }
        let align = if shaped { align.min(31) as u8 } else { 0 };
        let max = if r >= self.net.slots && flat { 1 } else { u32::MAX };
        let base =
            self.d.leaf(Leaf { key: LeafKey::Phi(b, r), level, fixed: false, block: b, max, align, issue: false });
        match table {
            Some(t @ Tab::Full(_)) if shaped => {
                self.d.add_scaled(base, Value::Words(0, t), 1).unwrap_or(Value::Divergent)
            }
            _ => base,
        }
    }

    /// A predicate source.
    pub(super) fn predicate(&mut self, p: PredSrc, set: &[u32]) -> In {
        let value = match p.pred {
            None => Value::number((!p.negated).into()),
            Some(pred) => {
                let v =
                    self.cur.get((self.net.slots + u32::from(pred.0)) as usize).map_or(Value::Divergent, |v| v.value);
                if p.negated { self.d.negated(v) } else { v }
            }
        };
        self.d.input(value, set)
    }

    /// Both of two predicates.
    pub(super) fn both(&mut self, a: In, b: In, place: &Place) -> In {
        match (a.value.constant(), b.value.constant()) {
            (Some(1), _) => return b,
            (_, Some(1)) => return a,
            (Some(0), _) | (_, Some(0)) => return In::number(0),
            _ => {}
        }
        let value = match (a.value, b.value) {
            (Value::Words(0, x), Value::Words(0, y)) => self.d.table(0, |d, i| d.at(x, i) & d.at(y, i) & 1),
            (Value::Mono(m), _) if b.level.is_some() => Value::Mono(m),
            (_, Value::Mono(m)) if a.level.is_some() => Value::Mono(m),
            _ => match (a.level, b.level) {
                (Some(x), Some(y)) => self.d.leaf(Leaf {
                    key: LeafKey::Guarded(place.inst, 15),
                    level: x.max(y),
                    fixed: a.fixed && b.fixed,
                    block: place.block,
                    max: 1,
                    align: 0,
                    issue: false,
                }),
                _ => Value::Divergent,
            },
        };
        self.d.input(value, place.set)
    }

    /// Executes a block; its final values and the ways out.
    fn execute(&mut self, b: u32) -> (Vec<Val>, Vec<Edge>) {
        let Some(block) = self.s.cfg.blocks.get(b as usize).copied() else { return (Vec::new(), Vec::new()) };
        let set = self.sets[b as usize].clone();
        let kernel = Arc::clone(&self.kernel);
        let mut edges = Vec::new();
        for at in block.instructions() {
            let Some(inst) = kernel.instructions.get(at as usize) else { continue };
            if let Some(record) = &mut self.record {
                let mut list = Vec::new();
                super::net::reads(inst, self.net.slots, |r| {
                    if let (Some(v), false) = (self.cur.get(r as usize), list.iter().any(|l: &(u32, Val)| l.0 == r)) {
                        list.push((r, *v));
                    }
                });
                if !inst.guard.is_true() {
                    super::net::writes(inst, self.net.slots, |r| {
                        if let Some(v) = self.cur.get(r as usize) {
                            list.push((r | OLD, *v));
                        }
                    });
                }
                record[at as usize] = list;
            }
            if at == block.last() {
                edges = self.leave(b, at, &set);
            }
            self.step(at, b, &set);
        }
        let undef = Val { value: Value::Undef, site: START };
        let out =
            self.net.live_out[b as usize].iter().map(|&r| self.cur.get(r as usize).copied().unwrap_or(undef)).collect();
        (out, edges)
    }

    /// Threads come to what follows `b` the same way only this far.
    fn come(&mut self, b: u32, level: Level) {
        let level = level.max(self.ways[b as usize]);
        if level > Level::Grid {
            for &t in &self.net.affects[b as usize].clone() {
                if self.ways[t as usize] < level {
                    self.ways[t as usize] = level;
                    self.push(t);
                }
            }
        }
    }

    /// Whether lanes of several sides that run `b` one after the other may find different numbers in this value.
    pub(super) fn late(&self, b: u32, v: Value) -> bool {
        self.apart.joined[b as usize].is_some()
            && !self.d.all_leaves(v, |leaf| !leaf.issue || self.apart.joined[leaf.block as usize].is_none())
    }

    /// Ways out of a block, by its last instruction; finds out whether it parts lanes.
    fn leave(&mut self, b: u32, at: u32, set: &Set) -> Vec<Edge> {
        let (kernel, structure) = (Arc::clone(&self.kernel), Arc::clone(&self.s));
        let Some(inst) = kernel.instructions.get(at as usize) else { return Vec::new() };
        let next = self.net.succ[b as usize].clone();
        let every = |set: &Set| next.iter().map(|&t| (t, set.clone())).collect::<Vec<Edge>>();
        let Op::Control(op) = &inst.op else {
            self.come(b, Level::Grid);
            return every(set);
        };
        let place = Place { inst: at, block: b, set };
        let guard = self.predicate(inst.guard, set);
        let cond = crate::cfg::condition(op);
        let cond = self.predicate(cond, set);
        let c = self.both(guard, cond, &place);
        let splits = c.level.is_none();
        let late = self.late(b, c.value);
        // Lanes of several sides that run this one after the other may see different numbers and go different ways.
        let apart = self.apart.joined[b as usize].is_some();
        let here = |t: u32| structure.cfg.block(t);
        let falls = here(at + 1);
        let (taken, passed) = match self.d.holds(c.value, set) {
            Some(holds) => (holds.clone(), meet(set, &holds, false)),
            None => (set.clone(), set.clone()),
        };
        let some = |s: &Set| s.iter().any(|&w| w != 0);
        let mut parts = false;
        // Below this level threads go on the same way.
        let mut way = c.level.unwrap_or(Level::Warp);
        let edges = match op {
            ControlOp::Branch { target, decision, .. } => {
                let whole = *decision != Decision::Lanes;
                parts = splits && (!whole || apart) || late;
                let (taken, passed) = if whole && splits { (set.clone(), set.clone()) } else { (taken, passed) };
                let mut edges: Vec<Edge> = Vec::new();
                let sides = [(here(target.0), taken), (falls, passed)];
                for (t, s) in sides {
                    let Some(t) = t.filter(|t| next.contains(t) && some(&s)) else { continue };
                    match edges.iter_mut().find(|e| e.0 == t) {
                        Some(e) => e.1.iter_mut().zip(&s).for_each(|(a, b)| *a |= b),
                        None => edges.push((t, s)),
                    }
                }
                edges
            }
            ControlOp::BranchDivergent { target, .. } | ControlOp::BranchConverged { target, .. } => {
                let converged = matches!(op, ControlOp::BranchConverged { .. });
                parts = apart || converged && splits;
                // All lanes are here: nobody of the mask is missing, whoever it names.
                let together = self.apart.apart[b as usize].is_none();
                match (together && !splits, converged) {
                    (true, false) => every(set).into_iter().filter(|e| Some(e.0) == falls).collect(),
                    (true, true) if c.value.constant() == Some(1) => {
                        every(set).into_iter().filter(|e| Some(e.0) == here(target.0)).collect()
                    }
                    _ => every(set),
                }
            }
            ControlOp::BranchIndirect { target, .. }
            | ControlOp::CallIndirect { target, .. }
            | ControlOp::Return { target, .. } => {
                let lo = self.source(target.reg[0], set);
                let hi = self.source(target.reg[1], set);
                way = way.max(lo.level.unwrap_or(Level::Warp)).max(hi.level.unwrap_or(Level::Warp));
                parts = splits
                    || lo.level.is_none()
                    || hi.level.is_none()
                    || self.late(b, lo.value)
                    || self.late(b, hi.value);
                every(set)
            }
            ControlOp::Call { .. } | ControlOp::Sync { .. } => {
                parts = splits;
                every(set)
            }
            ControlOp::WarpSync { mode, .. } => {
                use lanescope_ir::op::control::WarpSyncMode as M;
                parts = splits;
                if let M::Mask(m) | M::Collective(m, _) | M::Exclusive(m) = mode {
                    parts |= self.source(*m, set).level.is_none();
                }
                every(set)
            }
            ControlOp::EndCollective => {
                parts = next.len() > 1;
                every(set)
            }
            ControlOp::Exit { .. } | ControlOp::Trap => {
                if splits && matches!(op, ControlOp::Exit { .. }) && !self.exits.contains(&at) {
                    self.exits.push(at);
                }
                way = Level::Grid;
                if some(&passed) { every(&passed) } else { Vec::new() }
            }
            _ => every(set),
        };
        let mut edges = edges;
        if edges.len() > 1 || matches!(op, ControlOp::Return { .. }) {
            self.come(b, way.min(Level::Warp));
        } else {
            self.come(b, Level::Grid);
        }
        for &callee in &self.net.calls[b as usize] {
            edges.push((callee, set.clone()));
        }
        if parts && !self.apart.parts(at) {
            for t in self.apart.add(&structure, &self.net, &self.reached, at, b) {
                self.push(t);
            }
        }
        edges
    }
}

/// Registers of the uniform datapath: every instruction that writes them writes all lanes.
fn uniform_registers(kernel: &Kernel, net: &Net) -> Bits {
    let (mut all, mut lanes) = (Bits::new(net.regs), Bits::new(net.regs));
    for inst in &kernel.instructions {
        let broadcast = matches!(&inst.op, Op::Warp(lanescope_ir::op::warp::WarpOp::Broadcast { .. }));
        let to = if inst.uniform || broadcast { &mut all } else { &mut lanes };
        super::net::writes(inst, net.slots, |r| {
            to.add(r);
        });
    }
    // R2UR's predicate is a lane's own.
    for inst in &kernel.instructions {
        if let Op::Warp(
            lanescope_ir::op::warp::WarpOp::Broadcast { pdst: Some(p), .. }
            | lanescope_ir::op::warp::WarpOp::Elect { pdst: Some(p), .. },
        ) = &inst.op
        {
            lanes.add(net.slots + u32::from(p.0));
        }
    }
    let mut only = Bits::new(net.regs);
    all.list().filter(|&r| !lanes.has(r)).for_each(|r| {
        only.add(r);
    });
    only
}

/// Whether no code makes a generic address of memory that each thread has for itself.
fn no_local_pointers(kernel: &Kernel) -> bool {
    if kernel.local_size == 0 && kernel.stack_pointer.is_none() {
        return true;
    }
    let window: &[u32] = match sm(&kernel.arch) {
        Some(100..) => &[0x2f8, 0x2fc],
        _ => &[0x20, 0x24],
    };
    let mut found = false;
    for inst in &kernel.instructions {
        struct Look<'a>(&'a [u32], bool);
        impl lanescope_ir::op::effects::Visit for Look<'_> {
            fn src(&mut self, s: &mut lanescope_ir::Src) {
                if let lanescope_ir::op::SrcKind::Const { bank: 0, offset } = s.kind {
                    self.1 |= self.0.contains(&offset);
                }
            }
        }
        let mut look = Look(window, false);
        inst.clone().visit(&mut look);
        found |= look.1;
        // A load of constants may read it too.
        if let Op::Memory(lanescope_ir::op::memory::MemoryOp::Load {
            space: lanescope_ir::op::memory::Space::Const(0),
            addr,
            ..
        }) = &inst.op
        {
            let near =
                (0..0x40).contains(&addr.offset) || window.iter().any(|w| (addr.offset - i64::from(*w)).abs() < 16);
            found |= near || addr.base.read().is_some();
        }
    }
    !found
}

/// The number of a machine architecture.
pub(super) fn sm(arch: &str) -> Option<u32> {
    arch.strip_prefix("sm_")?.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok()
}
