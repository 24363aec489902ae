//! Where lanes that a branch has parted are apart, and where they meet.
//!
//! For machine code lanes come together at the BSYNC of a barrier that is surely set when the branch runs, if nothing in
//! between lets lanes pass early (YIELD, a WARPSYNC, BREAK, a barrier register used otherwise), and at a WARPSYNC.ALL. For
//! PTX at the immediate post-dominator, if no lane can get stuck before it. Otherwise lanes may stay apart to the end.
//!
//! Within that region two lanes that stand in one place may have come by different ways. Labels find these places: each
//! side of the branch gets a label, labels spread along the edges, and a block that two labels reach is a join. Lanes
//! behind one label have the same history since the branch. Lanes behind a join have the same history since the join,
//! but need not be there at the same time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use lanescope_ir::op::control::{ControlOp, WarpSyncMode};
use lanescope_ir::op::int::IntFn;
use lanescope_ir::op::memory::MemoryOp;
use lanescope_ir::op::{LaneFn, SrcKind, SrcMod};
use lanescope_ir::{Kernel, Op};

use super::net::Net;
use crate::cfg::is_conditional;
use crate::dom::Dominators;
use crate::graph::Graph;
use crate::regions::Structure;

/// Steps of spreading labels and walking regions in all; past it nothing is taken to rejoin.
const WORK: usize = 20_000_000;
const NONE: u32 = u32::MAX;
/// A barrier register whose state differs between paths, or which is not set.
const CLOSED: u32 = u32::MAX - 1;
const BARRIERS: usize = 16;

/// A side of a split, by its first block, or a join; and whether it is a join.
type Label = (u32, bool);

/// A point where lanes part.
#[derive(Clone, Debug)]
pub(super) struct Split {
    /// The instruction.
    pub(super) inst: u32,
    /// Blocks that lanes may run before all have rejoined, ascending.
    pub(super) region: Vec<u32>,
}

/// Everything known about parted lanes.
#[derive(Clone, Debug, Default)]
pub(super) struct Apart {
    pub(super) splits: Vec<Split>,
    split_of: HashMap<u32, u32>,
    /// For each block, a split because of which lanes may be missing there.
    pub(super) apart: Vec<Option<u32>>,
    /// For each block, a split of which lanes of several sides may be there, not together.
    pub(super) joined: Vec<Option<u32>>,
    /// For each block, the splits whose lanes meet there with values of their own.
    pub(super) joins: Vec<Vec<u32>>,
    explicit: bool,
    /// Barriers that are surely set at the end of each block (before a BSYNC there), by register: the BSSY.
    open: Vec<[u32; BARRIERS]>,
    /// For each BSSY, the block that ends with its BSYNC.
    ends: HashMap<u32, (u32, u8)>,
    /// Blocks in which lanes may be let past a barrier early.
    leaky: Vec<bool>,
    /// Blocks in which all groups become one.
    gathers: Vec<bool>,
    /// For each BSSY, whether its BSYNC waits for all, as far as is known.
    tight: HashMap<u32, bool>,
    /// PTX: the block where lanes of a branch meet.
    meets: Vec<u32>,
    work: usize,
    /// The work limit was reached.
    pub(super) exhausted: bool,
}

impl Apart {
    pub(super) fn new(kernel: &Kernel, s: &Structure, net: &Net) -> Apart {
        let n = s.cfg.blocks.len();
        let mut a = Apart {
            apart: vec![None; n],
            joined: vec![None; n],
            joins: vec![Vec::new(); n],
            leaky: vec![false; n],
            gathers: vec![false; n],
            explicit: kernel.arch.starts_with("sm_"),
            meets: vec![NONE; n],
            ..Apart::default()
        };
        for (at, inst) in kernel.instructions.iter().enumerate() {
            let Some(block) = s.cfg.block(at as u32) else { continue };
            match &inst.op {
                Op::Control(ControlOp::Sync { .. }) => a.explicit = true,
                Op::Control(ControlOp::WarpSync { mode: WarpSyncMode::All, .. }) if !is_conditional(inst) => {
                    a.gathers[block as usize] = true;
                    a.leaky[block as usize] = true;
                }
                Op::Control(
                    ControlOp::WarpSync { .. } | ControlOp::Yield | ControlOp::Sleep | ControlOp::CallIndirect { .. },
                ) => a.leaky[block as usize] = true,
                _ => {}
            }
        }
        if a.explicit {
            a.barriers(kernel, s, net);
        } else {
            a.meeting_points(kernel, s);
            a.spins(kernel, s);
        }
        a
    }

    /// A must-analysis: which BSSY set each barrier register.
    fn barriers(&mut self, kernel: &Kernel, s: &Structure, net: &Net) {
        let n = s.cfg.blocks.len();
        let touched = touched(kernel, s, net);
        let mut ins = vec![[NONE; BARRIERS]; n];
        let mut outs = vec![[NONE; BARRIERS]; n];
        let mut before = vec![[CLOSED; BARRIERS]; n];
        let mut heap: BinaryHeap<Reverse<(u32, u32)>> = BinaryHeap::new();
        let mut queued = vec![true; n];
        for b in 0..n as u32 {
            heap.push(Reverse((net.order[b as usize], b)));
        }
        for &root in &s.cfg.roots {
            let called = net.flows.get(root as usize).is_some_and(|f| !f.is_empty());
            if let (false, Some(i)) = (called, ins.get_mut(root as usize)) {
                *i = [CLOSED; BARRIERS];
            }
        }
        while let Some(Reverse((_, b))) = heap.pop() {
            queued[b as usize] = false;
            let mut state = ins[b as usize];
            let Some(block) = s.cfg.blocks.get(b as usize) else { continue };
            for at in block.instructions() {
                let Some(inst) = kernel.instructions.get(at as usize) else { continue };
                if at == block.last() {
                    before[b as usize] = state;
                }
                let Op::Control(op) = &inst.op else { continue };
                let reg = |bar: &lanescope_ir::BarrierReg| usize::from(bar.0) % BARRIERS;
                match op {
                    ControlOp::SyncSet { bar, cond, .. } => {
                        state[reg(bar)] = if inst.guard.is_true() && cond.is_true() { at } else { CLOSED };
                    }
                    ControlOp::Sync { bar, .. }
                    | ControlOp::Break { bar, .. }
                    | ControlOp::BarrierWrite { bar, .. }
                    | ControlOp::BarrierRead { bar, clear: true, .. } => state[reg(bar)] = CLOSED,
                    _ => {}
                }
            }
            outs[b as usize] = state;
            let mut around = state;
            for &c in &net.calls[b as usize] {
                let bits = touched.get(&c).copied().unwrap_or(u16::MAX);
                (0..BARRIERS).filter(|i| bits >> i & 1 != 0).for_each(|i| around[i] = CLOSED);
            }
            let next = net.succ[b as usize].iter().map(|&t| (t, &around));
            let calls = net.calls[b as usize].iter().map(|&t| (t, &state));
            let edges: Vec<(u32, [u32; BARRIERS])> = next.chain(calls).map(|(t, s)| (t, *s)).collect();
            for (t, state) in edges {
                let mut changed = false;
                for (old, new) in ins[t as usize].iter_mut().zip(state) {
                    let met = if *old == NONE || *old == new {
                        new
                    } else if new == NONE {
                        *old
                    } else {
                        CLOSED
                    };
                    changed |= *old != met;
                    *old = met;
                }
                if changed && !std::mem::replace(&mut queued[t as usize], true) {
                    heap.push(Reverse((net.order[t as usize], t)));
                }
            }
        }
        self.open = before;
        for (at, inst) in kernel.instructions.iter().enumerate() {
            let Op::Control(ControlOp::SyncSet { bar, target, .. }) = &inst.op else { continue };
            let ends = [target.0.checked_sub(1), Some(target.0)].into_iter().flatten();
            let matching = |e: &u32| {
                kernel.instructions.get(*e as usize).is_some_and(|i| {
                    matches!(&i.op, Op::Control(ControlOp::Sync { bar: b, cond }) if b == bar && cond.is_true() && i.guard.is_true())
                })
            };
            if let Some(e) = ends.into_iter().find(matching)
                && let Some(end) = s.cfg.block(e)
            {
                self.ends.insert(at as u32, (end, bar.0));
            }
        }
    }

    /// Immediate post-dominators, paths on which lanes only leave left out.
    fn meeting_points(&mut self, kernel: &Kernel, s: &Structure) {
        let cfg = &s.cfg;
        let exit = cfg.exit();
        let op = |b: u32| kernel.instructions.get(cfg.blocks.get(b as usize)?.last() as usize).map(|i| &i.op);
        let ends = |b: u32| matches!(op(b), Some(Op::Control(ControlOp::Exit { .. } | ControlOp::Trap)));
        let leaves = only_leaving(kernel, s);
        let gone = |a: u32, b: u32| if b == exit { ends(a) } else { leaves.get(b as usize).copied().unwrap_or(false) };
        let mut edges = Vec::new();
        for a in 0..cfg.graph.len() as u32 {
            let next = cfg.graph.successors(a);
            let stays = next.iter().any(|&b| !gone(a, b));
            edges.extend(next.iter().filter(|&&b| !stays || !gone(a, b)).map(|&b| (a, b)));
        }
        let some = Dominators::new(&Graph::new(cfg.graph.len(), &edges).reversed(), exit);
        for b in 0..cfg.blocks.len() as u32 {
            let meet = some.idom(b).filter(|&j| j != exit).or_else(|| s.postdom.idom(b).filter(|&j| j != exit));
            self.meets[b as usize] = meet.unwrap_or(NONE);
        }
    }

    /// PTX: a group that goes round a loop without a change lets lanes that wait for it go on without it. A loop that
    /// steps a register by a constant in every turn always changes.
    fn spins(&mut self, kernel: &Kernel, s: &Structure) {
        let n = s.loops.list.len();
        let (mut waits, mut steps) = (vec![false; n], vec![false; n]);
        for (b, block) in s.cfg.blocks.iter().enumerate() {
            let code = kernel.instructions.get(block.first as usize..=block.last() as usize).unwrap_or(&[]);
            let memory = |i: &lanescope_ir::Instruction| {
                matches!(i.op, Op::Memory(MemoryOp::Load { .. } | MemoryOp::Atomic { .. }) | Op::Warp(_))
            };
            let step =
                |i: &lanescope_ir::Instruction| matches!(&i.op, Op::Lane(op) if i.guard.is_true() && is_step(op));
            let (wait, step) = (code.iter().any(memory), code.iter().any(step));
            if !wait && !step {
                continue;
            }
            for l in s.loops.around(b as u32) {
                let i = l as usize;
                waits[i] |= wait;
                steps[i] |= step && s.loops.list[i].latches.iter().all(|&latch| s.dom.dominates(b as u32, latch));
            }
        }
        for (l, _) in s.loops.list.iter().zip(waits.iter().zip(&steps)).filter(|(_, (w, s))| **w && !**s) {
            if let Some(leaky) = self.leaky.get_mut(l.header as usize) {
                *leaky = true;
            }
        }
        for &b in &s.loops.irreducible {
            if let Some(l) = self.leaky.get_mut(b as usize) {
                *l = true;
            }
        }
    }

    /// Marks `inst`, at the end of `block`, as a point where lanes part. Blocks whose state may change come back.
    pub(super) fn add(&mut self, s: &Structure, net: &Net, reached: &[bool], inst: u32, block: u32) -> Vec<u32> {
        if self.split_of.contains_key(&inst) {
            return Vec::new();
        }
        let id = self.splits.len() as u32;
        self.split_of.insert(inst, id);
        self.splits.push(Split { inst, region: Vec::new() });
        self.place(s, net, reached, id, block)
    }

    /// Whether lanes part at this instruction.
    pub(super) fn parts(&self, inst: u32) -> bool {
        self.split_of.contains_key(&inst)
    }

    /// All regions anew, as more code has turned out to be reachable.
    pub(super) fn again(&mut self, s: &Structure, net: &Net, reached: &[bool]) -> Vec<u32> {
        self.tight.clear();
        let mut changed = Vec::new();
        for id in 0..self.splits.len() as u32 {
            if let Some(block) = s.cfg.block(self.splits[id as usize].inst) {
                changed.extend(self.place(s, net, reached, id, block));
            }
        }
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    /// Whether a newly reached block can make a region wider.
    pub(super) fn matters(&self, block: u32) -> bool {
        !self.splits.is_empty() && self.leaky.get(block as usize) == Some(&true)
    }

    fn place(&mut self, s: &Structure, net: &Net, reached: &[bool], id: u32, block: u32) -> Vec<u32> {
        let Some(inst) = self.splits.get(id as usize).map(|s| s.inst) else { return Vec::new() };
        let area = self.area(s, net, reached, block);
        let labels = self.spread(net, &area, block);
        let mut changed = Vec::new();
        for (&b, &(label, join)) in &labels {
            let own = join && label == b;
            if own && !self.joins[b as usize].contains(&id) {
                self.joins[b as usize].push(id);
                changed.push(b);
            }
            if area.inside.contains_key(&b) {
                if self.apart[b as usize].is_none() {
                    self.apart[b as usize] = Some(inst);
                    changed.push(b);
                }
                if join && self.joined[b as usize].is_none() {
                    self.joined[b as usize] = Some(inst);
                    changed.push(b);
                }
            }
        }
        let mut region: Vec<u32> = area.inside.keys().copied().collect();
        region.sort_unstable();
        // A wider region taints more at the same joins.
        if self.splits[id as usize].region != region {
            changed.extend(labels.iter().filter(|l| l.1.1).map(|l| *l.0));
            self.splits[id as usize].region = region;
        }
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    fn area(&mut self, s: &Structure, net: &Net, reached: &[bool], block: u32) -> Area {
        if self.exhausted {
            return self.walk(net, block, &[], true);
        }
        if !self.explicit {
            let meet = self.meets[block as usize];
            let area = self.walk(net, block, &[meet], false);
            let leaks = area.inside.keys().any(|&b| self.leaky[b as usize] && reached.get(b as usize) == Some(&true));
            return if leaks { self.walk(net, block, &[], true) } else { area };
        }
        let mut open: Vec<(u32, u32)> = self
            .open
            .get(block as usize)
            .into_iter()
            .flatten()
            .filter_map(|&set| Some((set, self.ends.get(&set)?.0)))
            .collect();
        // The innermost first: its BSSY comes last.
        open.sort_unstable_by_key(|&(set, _)| Reverse(set));
        for (set, end) in open {
            if self.is_tight(s, net, reached, set, end) {
                let area = self.walk(net, block, &[end], true);
                if area.inside.contains_key(&end) {
                    return area;
                }
            }
        }
        self.walk(net, block, &[], true)
    }

    /// Whether all lanes of a barrier leave its BSYNC together.
    fn is_tight(&mut self, s: &Structure, net: &Net, reached: &[bool], set: u32, end: u32) -> bool {
        if let Some(&known) = self.tight.get(&set) {
            return known;
        }
        let bar = usize::from(self.ends.get(&set).map_or(0, |e| e.1)) % BARRIERS;
        let block = s.cfg.block(set).unwrap_or(NONE);
        // At its BSYNC the barrier is still this one.
        let mut ok = self.open.get(end as usize).is_some_and(|o| o[bar] == set);
        let area = self.walk(net, block, &[end], true);
        for &b in area.inside.keys() {
            if self.leaky[b as usize] && reached.get(b as usize) == Some(&true) {
                ok = false;
            }
        }
        // A hint to give way behind BSSY in its own block.
        if block != end && self.leaky.get(block as usize) == Some(&true) && !area.inside.contains_key(&block) {
            ok = false;
        }
        self.tight.insert(set, ok);
        ok
    }

    /// Blocks that can run after `block` up to the end of the blocks in `stops` (machine code), or up to their start
    /// (PTX). `up`: returns are followed to the callers.
    fn walk(&mut self, net: &Net, block: u32, stops: &[u32], up: bool) -> Area {
        let mut area = Area { inside: HashMap::new(), edges: Vec::new(), stop: stops.to_vec() };
        let at_start = !self.explicit;
        // Lanes that return to different places are in different callers.
        let up = up || net.returns.get(block as usize).is_some_and(|r| !r.is_empty());
        let mut stack: Vec<u32> = Vec::new();
        let mut first = Vec::new();
        next_of(net, block, up, true, &mut first);
        stack.extend(&first);
        let mut list = Vec::new();
        while let Some(b) = stack.pop() {
            self.work += 1;
            if at_start && stops.contains(&b) || area.inside.insert(b, false).is_some() {
                continue;
            }
            list.push(b);
            if !(stops.contains(&b) || self.gathers[b as usize]) {
                next_of(net, b, up, false, &mut stack);
            }
        }
        // Then into callees, without coming back up.
        for &b in &list {
            if !(stops.contains(&b) || self.gathers[b as usize]) {
                stack.extend(&net.calls[b as usize]);
            }
        }
        while let Some(b) = stack.pop() {
            self.work += 1;
            // A block that lanes also reach on their own way up stays one: they go on from its return.
            if at_start && stops.contains(&b) || area.inside.contains_key(&b) {
                continue;
            }
            area.inside.insert(b, true);
            stack.extend(&net.calls[b as usize]);
            stack.extend(&net.succ[b as usize]);
        }
        // A callee's return, where lanes of one call meet again.
        if !up {
            let ends: Vec<u32> = list.iter().flat_map(|&b| net.returns[b as usize].iter().copied()).collect();
            area.stop.extend(ends.into_iter().filter(|b| !area.inside.contains_key(b)));
        }
        area.edges = first;
        self.exhausted |= self.work > WORK;
        area
    }

    /// Labels of the blocks of an area and of those it stops at: the label, and whether it is that of a join.
    fn spread(&mut self, net: &Net, area: &Area, block: u32) -> HashMap<u32, Label> {
        let mut labels: HashMap<u32, Label> = HashMap::new();
        // What comes in from each predecessor.
        let mut incoming: HashMap<u32, Vec<(u32, Label)>> = HashMap::new();
        let mut heap: BinaryHeap<Reverse<(u32, u32)>> = BinaryHeap::new();
        let many = area.edges.len() > 1;
        for (i, &t) in area.edges.iter().enumerate() {
            // Two ways to one place, or a wait that some lanes pass: whoever is there may have come by either.
            let from = NONE - 1 - (i as u32).min(1 << 20);
            let label = if many { (t, false) } else { (t, true) };
            incoming.entry(t).or_default().push((from, label));
            heap.push(Reverse((net.order[t as usize], t)));
        }
        let mut next = Vec::new();
        while let Some(Reverse((_, b))) = heap.pop() {
            self.work += 1;
            if self.work > WORK {
                self.exhausted = true;
            }
            let Some(list) = incoming.get(&b) else { continue };
            let Some(&(_, one)) = list.first() else { continue };
            let old = labels.get(&b).copied();
            let label = if old == Some((b, true)) || list.iter().any(|l| l.1 != one) || self.exhausted {
                (b, true)
            } else {
                one
            };
            if old == Some(label) {
                continue;
            }
            labels.insert(b, label);
            let Some(&down) = area.inside.get(&b) else { continue };
            if area.stop.contains(&b) || self.gathers[b as usize] {
                continue;
            }
            next.clear();
            next_of(net, b, !down, false, &mut next);
            next.extend(&net.calls[b as usize]);
            if b == block {
                next.extend(&area.edges);
            }
            for &t in &next {
                if !area.inside.contains_key(&t) && !area.stop.contains(&t) {
                    continue;
                }
                let list = incoming.entry(t).or_default();
                match list.iter_mut().find(|l| l.0 == b) {
                    Some(l) => l.1 = label,
                    None => list.push((b, label)),
                }
                heap.push(Reverse((net.order[t as usize], t)));
            }
        }
        labels
    }
}

/// Blocks in which lanes are apart; true: only reached through calls. And where the walk stopped.
struct Area {
    inside: HashMap<u32, bool>,
    /// First blocks of the sides.
    edges: Vec<u32>,
    stop: Vec<u32>,
}

/// Where control goes after a block. `calls`: into callees as well.
fn next_of(net: &Net, b: u32, up: bool, calls: bool, out: &mut Vec<u32>) {
    out.extend(&net.succ[b as usize]);
    if up {
        out.extend(&net.returns[b as usize]);
    }
    if calls {
        out.extend(&net.calls[b as usize]);
    }
}

/// Barrier registers that a callee, or what it calls, uses.
fn touched(kernel: &Kernel, s: &Structure, net: &Net) -> HashMap<u32, u16> {
    let mut own: HashMap<u32, u16> = HashMap::new();
    let mut inner: Vec<(u32, u32)> = Vec::new();
    for &callee in net.writes.keys() {
        let (body, _) = s.cfg.graph.preorder(callee);
        let mut bits = 0;
        for b in body {
            let Some(block) = s.cfg.blocks.get(b as usize) else { continue };
            for at in block.instructions() {
                match kernel.instructions.get(at as usize).map(|i| &i.op) {
                    Some(Op::Control(
                        ControlOp::SyncSet { bar, .. }
                        | ControlOp::Sync { bar, .. }
                        | ControlOp::Break { bar, .. }
                        | ControlOp::BarrierWrite { bar, .. }
                        | ControlOp::BarrierRead { bar, .. },
                    )) => bits |= 1 << (bar.0 % 16),
                    Some(Op::Control(ControlOp::CallIndirect { .. })) => bits = u16::MAX,
                    _ => {}
                }
            }
            inner.extend(net.calls[b as usize].iter().map(|&c| (callee, c)));
        }
        own.insert(callee, bits);
    }
    let mut changed = true;
    while changed {
        changed = false;
        for &(a, b) in &inner {
            let add = own.get(&b).copied().unwrap_or(u16::MAX);
            if let Some(bits) = own.get_mut(&a) {
                changed |= *bits | add != *bits;
                *bits |= add;
            }
        }
    }
    own
}

/// Blocks that are nothing but an exit, and blocks from which every path ends in a trap.
pub(super) fn only_leaving(kernel: &Kernel, s: &Structure) -> Vec<bool> {
    let cfg = &s.cfg;
    let exit = cfg.exit();
    let mut leaves = trapping(kernel, s);
    for (b, block) in cfg.blocks.iter().enumerate() {
        let ends = cfg.graph.successors(b as u32).iter().all(|&t| t == exit);
        let code = kernel.instructions.get(block.first as usize..=block.last() as usize).unwrap_or(&[]);
        if let Some((last, before)) = code.split_last() {
            leaves[b] |= ends
                && matches!(last.op, Op::Control(ControlOp::Exit { .. }))
                && before.iter().all(|i| i.op == Op::Nop);
        }
    }
    leaves
}

/// Blocks from which every path ends in a trap.
pub(super) fn trapping(kernel: &Kernel, s: &Structure) -> Vec<bool> {
    let cfg = &s.cfg;
    let exit = cfg.exit();
    let mut traps = vec![false; cfg.blocks.len()];
    let mut open: Vec<usize> = (0..cfg.blocks.len() as u32).map(|b| cfg.graph.successors(b).len()).collect();
    let mut stack = Vec::new();
    for (b, block) in cfg.blocks.iter().enumerate() {
        let last = kernel.instructions.get(block.last() as usize).map(|i| &i.op);
        let ends = cfg.graph.successors(b as u32).iter().all(|&t| t == exit);
        if ends && matches!(last, Some(Op::Control(ControlOp::Trap))) {
            stack.push(b as u32);
        }
    }
    let back = cfg.graph.reversed();
    while let Some(b) = stack.pop() {
        if std::mem::replace(&mut traps[b as usize], true) {
            continue;
        }
        for &p in back.successors(b) {
            if let Some(open) = open.get_mut(p as usize) {
                *open = open.saturating_sub(1);
                if *open == 0 {
                    stack.push(p);
                }
            }
        }
    }
    traps
}

/// `r = r + constant`
fn is_step(op: &lanescope_ir::op::LaneOp) -> bool {
    let LaneFn::Int(IntFn::Add | IntFn::Add3 | IntFn::Add64 { .. }) = op.f else { return false };
    let Some(d) = op.dst[0] else { return false };
    let words = if matches!(op.f, LaneFn::Int(IntFn::Add64 { .. })) { [0, 2, 2] } else { [0, 1, 2] };
    let own = |i: usize| op.src[i].kind == SrcKind::Slot(d) && op.src[i].modifier == SrcMod::None;
    let number = |i: usize| matches!(op.src[i].kind, SrcKind::Imm(n) if n != 0);
    (own(0) && number(words[1]) || own(words[1]) && number(0))
        && (words[2] != 2 || words[1] == 2 || op.src[2] == lanescope_ir::Src::ZERO)
}
