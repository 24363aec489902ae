//! Which instructions a register's value can come from.

use std::collections::{HashMap, HashSet};

use lanescope_ir::op::control::ControlOp;
use lanescope_ir::op::effects::Access;
use lanescope_ir::{Kernel, Op, Pred, Slot};

use crate::graph::Graph;
use crate::regions::Structure;

/// Blocks that one question may walk through.
const WALK: usize = 4096;

/// A register of either kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Reg {
    Slot(Slot),
    Pred(Pred),
}

/// Where a value comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reaching {
    /// Instructions that write it, ascending.
    pub(crate) from: Vec<u32>,
    /// It may also come from elsewhere: the start of the kernel, a call, or too far away to look.
    pub(crate) open: bool,
}

/// Writers of all registers.
pub(crate) struct Defs<'a> {
    kernel: &'a Kernel,
    s: &'a Structure,
    back: Graph,
    /// For each register its writers, ascending.
    writers: HashMap<Reg, Vec<u32>>,
    /// For each block that is called, the blocks that call it.
    callers: HashMap<u32, Vec<u32>>,
    /// For each called block, the registers that its code writes.
    clobbers: HashMap<u32, HashSet<Reg>>,
}

/// Registers that an instruction reads or writes.
pub(crate) fn registers(kernel: &Kernel, at: u32, wanted: Access) -> Vec<Reg> {
    let mut list = Vec::new();
    let Some(inst) = kernel.instructions.get(at as usize) else { return list };
    inst.for_each_slot(|s, a| {
        if a == wanted {
            list.push(Reg::Slot(s));
        }
    });
    inst.for_each_pred(|p, a| {
        if a == wanted {
            list.push(Reg::Pred(p));
        }
    });
    list.sort_unstable();
    list.dedup();
    list
}

impl<'a> Defs<'a> {
    pub(crate) fn new(kernel: &'a Kernel, s: &'a Structure) -> Defs<'a> {
        let mut writers: HashMap<Reg, Vec<u32>> = HashMap::new();
        for at in 0..kernel.instructions.len() as u32 {
            for r in registers(kernel, at, Access::Write) {
                writers.entry(r).or_default().push(at);
            }
        }
        let mut callers: HashMap<u32, Vec<u32>> = HashMap::new();
        for &(from, to) in &s.cfg.calls {
            callers.entry(to).or_default().push(from);
        }
        let clobbers = callers
            .keys()
            .map(|&callee| {
                let body = s.cfg.graph.preorder(callee).0;
                let insts = body.iter().filter_map(|&b| s.cfg.blocks.get(b as usize)).flat_map(|b| b.instructions());
                (callee, insts.flat_map(|i| registers(kernel, i, Access::Write)).collect())
            })
            .collect();
        Defs { kernel, s, back: s.cfg.graph.reversed(), writers, callers, clobbers }
    }

    /// Instructions whose value of `reg` instruction `at` may read.
    pub(crate) fn reaching(&self, at: u32, reg: Reg) -> Reaching {
        let mut out = Reaching::default();
        let none = Vec::new();
        let writers = self.writers.get(&reg).unwrap_or(&none);
        let Some(block) = self.s.cfg.block(at) else { return out };
        let mut seen = HashSet::new();
        let mut stack = vec![(block, at)];
        while let Some((b, before)) = stack.pop() {
            let Some(first) = self.s.cfg.blocks.get(b as usize).map(|b| b.first) else { continue };
            if self.search(writers, first, before, &mut out.from) {
                continue;
            }
            if seen.len() > WALK {
                out.open = true;
                break;
            }
            let blocks = self.s.cfg.blocks.len() as u32;
            let mut entered = false;
            for &p in self.back.successors(b) {
                if p >= blocks {
                    continue;
                }
                entered = true;
                if !seen.insert(p) {
                    continue;
                }
                match self.called(p, reg) {
                    true => out.open = true,
                    false => stack.extend(self.s.cfg.blocks.get(p as usize).map(|x| (p, x.last() + 1))),
                }
            }
            for &caller in self.callers.get(&b).into_iter().flatten() {
                entered = true;
                if seen.insert(caller | 1 << 31) {
                    stack.extend(self.s.cfg.blocks.get(caller as usize).map(|x| (caller, x.last())));
                }
            }
            out.open |= !entered;
        }
        out.from.sort_unstable();
        out.from.dedup();
        out
    }

    /// Adds the writers in `first..before` that reach its end; whether the last of them always writes.
    fn search(&self, writers: &[u32], first: u32, before: u32, out: &mut Vec<u32>) -> bool {
        let end = writers.partition_point(|&w| w < before);
        for &w in writers[..end].iter().rev().take_while(|&&w| w >= first) {
            out.push(w);
            let certain = self.kernel.instructions.get(w as usize).is_some_and(|i| i.guard.is_true());
            if certain {
                return true;
            }
        }
        false
    }

    /// Whether a call at the end of block `b` may write `reg`.
    fn called(&self, b: u32, reg: Reg) -> bool {
        let last = self.s.cfg.blocks.get(b as usize).and_then(|b| self.kernel.instructions.get(b.last() as usize));
        match last.map(|i| &i.op) {
            Some(Op::Control(ControlOp::CallIndirect { .. } | ControlOp::CallExternal { .. })) => true,
            Some(Op::Control(ControlOp::Call { .. })) => {
                self.s.cfg.callees(b).any(|c| self.clobbers.get(&c).is_none_or(|set| set.contains(&reg)))
            }
            _ => false,
        }
    }
}
