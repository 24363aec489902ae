//! The ways values flow between blocks: branches, calls, returns; and which registers are live.

use std::collections::HashMap;

use lanescope_ir::op::control::{ControlOp, WarpSyncMode};
use lanescope_ir::op::effects::Access;
use lanescope_ir::{InstId, Kernel, Op};

use crate::cfg::Cfg;

/// Blocks of callees walked at most.
const CALL_WORK: usize = 4_000_000;
/// Bits of the liveness sets at most.
const LIVE_BITS: u64 = 1 << 31;

/// How a block's state reaches another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// A branch or falling through.
    Plain,
    /// Into a callee.
    Call,
    /// Past a call: registers that the callee leaves alone. The callee.
    Around(u32),
    /// Out of a callee: registers that it writes. The callee and the block that called.
    Return(u32, u32),
    /// Past a call of which nothing is known.
    Clobber,
}

/// A set of small numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Bits(pub(super) Vec<u64>);

impl Bits {
    pub(super) fn new(n: usize) -> Bits {
        Bits(vec![0; n.div_ceil(64)])
    }
    pub(super) fn has(&self, i: u32) -> bool {
        self.0.get(i as usize / 64).is_some_and(|w| w >> (i % 64) & 1 != 0)
    }
    /// Whether it was new.
    pub(super) fn add(&mut self, i: u32) -> bool {
        let Some(w) = self.0.get_mut(i as usize / 64) else { return false };
        let old = *w;
        *w |= 1 << (i % 64);
        old != *w
    }
    fn unite(&mut self, o: &Bits) -> bool {
        let mut new = false;
        for (a, b) in self.0.iter_mut().zip(&o.0) {
            new |= b & !*a != 0;
            *a |= b;
        }
        new
    }
    pub(super) fn list(&self) -> impl Iterator<Item = u32> + '_ {
        self.0
            .iter()
            .enumerate()
            .flat_map(|(i, &w)| (0..64).filter(move |b| w >> b & 1 != 0).map(move |b| i as u32 * 64 + b))
    }
}

/// The flow between blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Net {
    /// Slots, then predicates.
    pub(super) regs: usize,
    pub(super) slots: u32,
    /// Branches and falling through, also past calls.
    pub(super) succ: Vec<Vec<u32>>,
    /// Callees of a block.
    pub(super) calls: Vec<Vec<u32>>,
    /// Where a block that returns goes on.
    pub(super) returns: Vec<Vec<u32>>,
    /// What flows into a block.
    pub(super) flows: Vec<Vec<(u32, Way)>>,
    /// Blocks to look at again when one changes.
    pub(super) affects: Vec<Vec<u32>>,
    /// Registers a callee writes; `None`: any.
    pub(super) writes: HashMap<u32, Option<Bits>>,
    /// Entries of functions that unknown callers may call.
    pub(super) open: Vec<bool>,
    /// Position in reverse postorder.
    pub(super) order: Vec<u32>,
    /// Live registers at the start and at the end of each block, ascending.
    pub(super) live_in: Vec<Vec<u32>>,
    pub(super) live_out: Vec<Vec<u32>>,
    /// Something jumps to a place that is not known, or the kernel is too large.
    pub(super) lost: bool,
}

fn last<'k>(kernel: &'k Kernel, cfg: &Cfg, b: u32) -> Option<&'k Op> {
    Some(&kernel.instructions.get(cfg.blocks.get(b as usize)?.last() as usize)?.op)
}

impl Net {
    pub(super) fn new(kernel: &Kernel, cfg: &Cfg) -> Net {
        let n = cfg.blocks.len();
        let (slots, preds) = (u32::from(kernel.slots), u32::from(kernel.preds));
        let mut net = Net {
            regs: (slots + preds) as usize,
            slots,
            succ: vec![Vec::new(); n],
            calls: vec![Vec::new(); n],
            returns: vec![Vec::new(); n],
            flows: vec![Vec::new(); n],
            affects: vec![Vec::new(); n],
            open: vec![false; n],
            live_in: vec![Vec::new(); n],
            live_out: vec![Vec::new(); n],
            ..Net::default()
        };
        for b in 0..n as u32 {
            let mut next: Vec<u32> = cfg.graph.successors(b).iter().copied().filter(|&s| (s as usize) < n).collect();
            next.sort_unstable();
            next.dedup();
            net.succ[b as usize] = next;
            net.calls[b as usize] = cfg.callees(b).collect();
        }
        net.link(kernel, cfg);
        net.number();
        net.live(kernel, cfg);
        net
    }

    fn link(&mut self, kernel: &Kernel, cfg: &Cfg) {
        let n = self.succ.len();
        let tables: Vec<u32> = kernel.targets.iter().filter(|t| !t.targets.is_empty()).map(|t| t.branch.0).collect();
        let mut work = 0;
        let mut bodies: HashMap<u32, Vec<u32>> = HashMap::new();
        for b in 0..n as u32 {
            for &callee in &self.calls[b as usize] {
                if work < CALL_WORK {
                    bodies.entry(callee).or_insert_with(|| {
                        let body = self.body(callee);
                        work += body.len();
                        body
                    });
                }
            }
        }
        self.lost |= work >= CALL_WORK;
        self.summaries(kernel, cfg, &bodies);
        let mut returns_of: HashMap<u32, Vec<u32>> = HashMap::new();
        let mut called = vec![false; n];
        for (&callee, body) in &bodies {
            body.iter().for_each(|&b| called[b as usize] = true);
            let ends = |b: &&u32| matches!(last(kernel, cfg, **b), Some(Op::Control(ControlOp::Return { .. })));
            returns_of.insert(callee, body.iter().filter(ends).copied().collect());
        }
        for b in 0..n as u32 {
            let op = last(kernel, cfg, b);
            let next = self.succ[b as usize].clone();
            match op {
                Some(Op::Control(ControlOp::Call { .. })) => {
                    for &callee in &self.calls[b as usize].clone() {
                        self.flow(b, callee, Way::Call);
                        for &s in &next {
                            self.flow(b, s, Way::Around(callee));
                            for &r in returns_of.get(&callee).map_or(&[][..], |r| r) {
                                self.flow(r, s, Way::Return(callee, b));
                                if !self.returns[r as usize].contains(&s) {
                                    self.returns[r as usize].push(s);
                                }
                            }
                        }
                    }
                }
                Some(Op::Control(ControlOp::CallIndirect { .. })) => {
                    for &callee in &self.calls[b as usize].clone() {
                        self.open[callee as usize] = true;
                    }
                    next.iter().for_each(|&s| self.flow(b, s, Way::Clobber));
                }
                Some(Op::Control(ControlOp::CallExternal { .. })) => {}
                Some(Op::Control(ControlOp::BranchIndirect { .. })) => {
                    let at = cfg.blocks.get(b as usize).map_or(0, |b| b.last());
                    self.lost |= !tables.contains(&at);
                    next.iter().for_each(|&s| self.flow(b, s, Way::Plain));
                }
                Some(Op::Control(ControlOp::Return { .. })) => {
                    self.lost |= !called[b as usize];
                    next.iter().for_each(|&s| self.flow(b, s, Way::Plain));
                }
                Some(Op::Control(ControlOp::Trap)) | None => {
                    next.iter().for_each(|&s| self.flow(b, s, Way::Plain));
                }
                Some(_) => next.iter().for_each(|&s| self.flow(b, s, Way::Plain)),
            }
        }
        if work >= CALL_WORK {
            self.lost = true;
        }
    }

    fn flow(&mut self, from: u32, to: u32, way: Way) {
        if let Some(list) = self.flows.get_mut(to as usize) {
            list.push((from, way));
            self.affects[from as usize].push(to);
        }
    }

    /// Blocks of a function, calls not followed.
    fn body(&self, entry: u32) -> Vec<u32> {
        let mut seen = std::collections::HashSet::new();
        let mut stack = vec![entry];
        let mut list = Vec::new();
        while let Some(b) = stack.pop() {
            if seen.insert(b) {
                list.push(b);
                stack.extend(&self.succ[b as usize]);
            }
        }
        list
    }

    /// What each callee writes, its own callees included.
    fn summaries(&mut self, kernel: &Kernel, cfg: &Cfg, bodies: &HashMap<u32, Vec<u32>>) {
        let mut calls: Vec<(u32, u32)> = Vec::new();
        for (&callee, body) in bodies {
            let mut bits = Some(Bits::new(self.regs));
            for &b in body {
                let Some(block) = cfg.blocks.get(b as usize) else { continue };
                for at in block.instructions() {
                    let Some(inst) = kernel.instructions.get(at as usize) else { continue };
                    if let Some(bits) = &mut bits {
                        writes(inst, self.slots, |r| {
                            bits.add(r);
                        });
                    }
                    if let Op::Control(ControlOp::CallIndirect { .. } | ControlOp::CallExternal { .. }) = &inst.op {
                        bits = None;
                    }
                }
                calls.extend(self.calls[b as usize].iter().map(|&inner| (callee, inner)));
            }
            self.writes.insert(callee, bits);
        }
        let mut changed = true;
        while changed {
            changed = false;
            for &(outer, inner) in &calls {
                let add = self.writes.get(&inner).cloned().unwrap_or(None);
                let Some(entry) = self.writes.get_mut(&outer) else { continue };
                match (entry.as_mut(), add) {
                    (Some(bits), Some(add)) => changed |= bits.unite(&add),
                    (Some(_), None) => {
                        *entry = None;
                        changed = true;
                    }
                    (None, _) => {}
                }
            }
        }
    }

    /// Reverse postorder over all ways.
    fn number(&mut self) {
        let n = self.succ.len();
        self.order = vec![0; n];
        let mut seen = vec![false; n];
        let mut post = Vec::with_capacity(n);
        for root in 0..n {
            if seen[root] {
                continue;
            }
            seen[root] = true;
            let mut stack = vec![(root as u32, 0)];
            while let Some((b, at)) = stack.pop() {
                let next = self.succ[b as usize]
                    .get(at)
                    .or_else(|| self.calls[b as usize].get(at.wrapping_sub(self.succ[b as usize].len())));
                match next {
                    Some(&s) => {
                        stack.push((b, at + 1));
                        if !std::mem::replace(&mut seen[s as usize], true) {
                            stack.push((s, 0));
                        }
                    }
                    None => post.push(b),
                }
            }
        }
        // Roots come in code order: the kernel's own code first.
        for (i, &b) in post.iter().rev().enumerate() {
            self.order[b as usize] = i as u32;
        }
    }

    fn live(&mut self, kernel: &Kernel, cfg: &Cfg) {
        let n = self.succ.len();
        // Registers that some block reads before it writes them.
        let mut global = Bits::new(self.regs);
        let mut exposed: Vec<Vec<u32>> = Vec::with_capacity(n);
        let mut killed: Vec<Vec<u32>> = Vec::with_capacity(n);
        let mut stamp = vec![0u32; self.regs];
        for (b, block) in cfg.blocks.iter().enumerate() {
            let mark = b as u32 + 1;
            let (mut up, mut kill) = (Vec::new(), Vec::new());
            for at in block.instructions() {
                let Some(inst) = kernel.instructions.get(at as usize) else { continue };
                let mut read = |r: u32| {
                    if stamp.get(r as usize).is_some_and(|&s| s != mark) {
                        up.push(r);
                        global.add(r);
                    }
                };
                reads(inst, self.slots, &mut read);
                let partial = !inst.guard.is_true() || keeps(&inst.op);
                if partial {
                    writes(inst, self.slots, &mut read);
                } else {
                    writes(inst, self.slots, |r| {
                        if let Some(s) = stamp.get_mut(r as usize)
                            && *s != mark
                        {
                            *s = mark;
                            kill.push(r);
                        }
                    });
                }
            }
            exposed.push(up);
            killed.push(kill);
        }
        let names: Vec<u32> = global.list().collect();
        if n as u64 * names.len() as u64 > LIVE_BITS {
            self.lost = true;
            return;
        }
        let mut name = vec![u32::MAX; self.regs];
        names.iter().enumerate().for_each(|(i, &r)| name[r as usize] = i as u32);
        let set = |list: &[u32]| {
            let mut bits = Bits::new(names.len());
            list.iter().for_each(|&r| {
                bits.add(name[r as usize]);
            });
            bits
        };
        let mut ins: Vec<Bits> = exposed.iter().map(|l| set(l)).collect();
        let kills: Vec<Bits> = killed.iter().map(|l| set(l)).collect();
        let mut outs = vec![Bits::new(names.len()); n];
        let mut by_order: Vec<u32> = (0..n as u32).collect();
        by_order.sort_unstable_by_key(|&b| std::cmp::Reverse(self.order[b as usize]));
        let mut changed = true;
        while changed {
            changed = false;
            for &b in &by_order {
                let mut out = std::mem::take(&mut outs[b as usize]);
                let next = [&self.succ[b as usize], &self.calls[b as usize], &self.returns[b as usize]];
                let mut new = false;
                for &s in next.into_iter().flatten() {
                    new |= out.unite(&ins[s as usize]);
                }
                if new {
                    changed = true;
                    let (kill, up) = (&kills[b as usize], &mut ins[b as usize]);
                    for (i, w) in up.0.iter_mut().enumerate() {
                        *w |= out.0[i] & !kill.0[i];
                    }
                }
                outs[b as usize] = out;
            }
        }
        let list = |bits: &Bits| bits.list().filter_map(|i| names.get(i as usize).copied()).collect::<Vec<u32>>();
        self.live_in = ins.iter().map(list).collect();
        self.live_out = outs.iter().map(list).collect();
    }
}

/// Whether an operation leaves some of its destinations as they were in lanes that execute it.
fn keeps(op: &Op) -> bool {
    matches!(op, Op::Warp(lanescope_ir::op::warp::WarpOp::UnpackPreds { .. }))
}

/// Registers an instruction reads, as numbers: slots, then predicates.
pub(super) fn reads(inst: &lanescope_ir::Instruction, slots: u32, mut f: impl FnMut(u32)) {
    inst.for_each_slot(|s, a| {
        if a == Access::Read {
            f(s.0.into());
        }
    });
    inst.for_each_pred(|p, a| {
        if a == Access::Read {
            f(slots + u32::from(p.0));
        }
    });
}

/// Registers it writes.
pub(super) fn writes(inst: &lanescope_ir::Instruction, slots: u32, mut f: impl FnMut(u32)) {
    inst.for_each_slot(|s, a| {
        if a == Access::Write {
            f(s.0.into());
        }
    });
    inst.for_each_pred(|p, a| {
        if a == Access::Write {
            f(slots + u32::from(p.0));
        }
    });
}

/// Registers that the code between WARPSYNC.COLLECTIVE and ENDCOLLECTIVE writes, the first instructions of these
/// pieces, and where lanes go on behind them. Empty if there are fewer than two, which then cannot be mixed up.
pub(super) fn collectives(kernel: &Kernel, regs: usize, slots: u32) -> (Bits, Vec<u32>, Vec<InstId>) {
    let mut written = Bits::new(regs);
    let (mut starts, mut targets) = (Vec::new(), Vec::new());
    let mut inside = false;
    for (at, inst) in kernel.instructions.iter().enumerate() {
        match &inst.op {
            Op::Control(ControlOp::WarpSync { mode: WarpSyncMode::Collective(_, target), .. }) => {
                inside = true;
                starts.push(at as u32 + 1);
                targets.push(*target);
            }
            Op::Control(ControlOp::EndCollective) => inside = false,
            _ if inside => writes(inst, slots, |r| {
                written.add(r);
            }),
            _ => {}
        }
    }
    if starts.len() < 2 { (Bits::new(regs), Vec::new(), Vec::new()) } else { (written, starts, targets) }
}
