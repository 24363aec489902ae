//! Whether the turns of a loop could be shared out among lanes.
//!
//! They can if no turn uses what the one before computed, other than counters that grow by a fixed step and sums (or
//! products, minima ...) that the loop only adds to. Then lane k of a group takes turns k, k + width ..., and the group
//! adds up its sums at the end. Stores and atomics do not stand in the way here: whether their order matters the code does
//! not tell, and the advice says so.

use std::collections::{BTreeMap, BTreeSet};

use lanescope_ir::op::control::ControlOp;
use lanescope_ir::op::double::DoubleFn;
use lanescope_ir::op::effects::Access;
use lanescope_ir::op::float::FloatFn;
use lanescope_ir::op::int::IntFn;
use lanescope_ir::op::{LaneFn, LaneOp};
use lanescope_ir::{Op, Slot, Src, SrcMod};

use super::Slicer;
use super::defs::{Reg, registers};
use crate::regions::Structure;

/// Instructions of a loop that is looked at.
const INSTRUCTIONS: usize = 4096;

/// What one turn of a loop has to do with the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turns {
    /// Nothing but counters and sums.
    Independent {
        /// Sums, products and the like that must be joined at the end.
        sums: u32,
    },
    /// This instruction uses what an earlier turn computed.
    Carried {
        /// The instruction.
        inst: u32,
    },
    /// Whether there is another turn depends on what was loaded in this one.
    EndsByData {
        /// The load.
        inst: u32,
    },
    /// Lanes talk to each other, or to the block, at this instruction.
    Talks {
        /// The instruction.
        inst: u32,
    },
    /// The loop is too large to look at, or calls functions.
    Unknown,
}

impl Slicer<'_> {
    /// Looks at loop `index` of `s.loops.list`.
    pub fn turns(&self, s: &Structure, index: u32) -> Turns {
        let inside: Vec<u32> = (0u32..)
            .zip(&s.cfg.blocks)
            .filter(|(b, _)| s.loops.contains(index, *b))
            .flat_map(|(_, block)| block.instructions())
            .collect();
        if inside.len() > INSTRUCTIONS {
            return Turns::Unknown;
        }
        for &at in &inside {
            match self.kernel.instructions.get(at as usize).map(|i| &i.op) {
                Some(Op::Warp(w)) if !matches!(w, lanescope_ir::op::warp::WarpOp::Special { .. }) => {
                    return Turns::Talks { inst: at };
                }
                Some(Op::Control(
                    ControlOp::Call { .. } | ControlOp::CallIndirect { .. } | ControlOp::CallExternal { .. },
                )) => {
                    return Turns::Unknown;
                }
                None | Some(Op::Unsupported(_)) => return Turns::Unknown,
                _ => {}
            }
        }
        // From each instruction to those of the loop whose result it reads, with whether it is of an earlier turn.
        let mut from: BTreeMap<u32, Vec<(u32, bool)>> = BTreeMap::new();
        for &at in &inside {
            let mut list = Vec::new();
            for reg in registers(self.kernel, at, Access::Read) {
                for d in self.defs.reaching(at, reg).from {
                    if inside.binary_search(&d).is_ok() {
                        list.push((d, d >= at));
                    }
                }
            }
            from.insert(at, list);
        }
        let cycles = cycles(&from);
        let mut kinds: BTreeMap<u32, (u32, Cycle)> = BTreeMap::new();
        let mut sums = 0;
        for (id, cycle) in (0u32..).zip(&cycles) {
            let kind = self.cycle(cycle);
            match kind {
                Cycle::Counter => {}
                Cycle::Sum => sums += 1,
                Cycle::Other(inst) => return Turns::Carried { inst },
            }
            cycle.iter().for_each(|&i| {
                kinds.insert(i, (id, kind));
            });
        }
        for (&at, reads) in &from {
            for (d, earlier) in reads {
                match kinds.get(d) {
                    // Within its own cycle.
                    Some((id, _)) if kinds.get(&at).is_some_and(|k| k.0 == *id) => {}
                    Some((_, Cycle::Counter)) => {}
                    // A sum that something else in the loop looks at.
                    Some(_) => return Turns::Carried { inst: at },
                    None if *earlier => return Turns::Carried { inst: at },
                    None => {}
                }
            }
        }
        for &at in &inside {
            if let Some(inst) = self.leaves(s, index, at).then(|| self.loaded(&from, at)).flatten() {
                return Turns::EndsByData { inst };
            }
        }
        Turns::Independent { sums }
    }

    /// Whether an instruction may leave the loop.
    fn leaves(&self, s: &Structure, index: u32, at: u32) -> bool {
        let Some(block) = s.cfg.block(at) else { return false };
        s.cfg.blocks.get(block as usize).is_some_and(|b| b.last() == at)
            && s.cfg.graph.successors(block).iter().any(|&n| !s.loops.contains(index, n))
    }

    /// A memory operation of the loop that an instruction's operands come from.
    fn loaded(&self, from: &BTreeMap<u32, Vec<(u32, bool)>>, at: u32) -> Option<u32> {
        let mut seen = BTreeSet::from([at]);
        let mut stack = vec![at];
        while let Some(at) = stack.pop() {
            for (d, _) in from.get(&at).into_iter().flatten() {
                if matches!(self.kernel.instructions.get(*d as usize).map(|i| &i.op), Some(Op::Memory(_))) {
                    return Some(*d);
                }
                if seen.insert(*d) {
                    stack.push(*d);
                }
            }
        }
        None
    }

    /// What a cycle of instructions does to the register that goes round.
    fn cycle(&self, cycle: &BTreeSet<u32>) -> Cycle {
        let mut written: BTreeSet<Slot> = BTreeSet::new();
        for &at in cycle {
            for r in registers(self.kernel, at, Access::Write) {
                if let Reg::Slot(s) = r {
                    written.insert(s);
                }
            }
        }
        let mut fixed = true;
        for &at in cycle {
            let inst = self.kernel.instructions.get(at as usize);
            let Some(Op::Lane(op)) = inst.map(|i| &i.op) else { return Cycle::Other(at) };
            let Some(step) = step(op, &written) else { return Cycle::Other(at) };
            // A predicate that is not a carry makes the step depend on the lane.
            let guarded = inst.is_some_and(|i| !i.guard.is_true());
            fixed &= step && !guarded && self.others_are_uniform(at, op, &written);
        }
        if fixed { Cycle::Counter } else { Cycle::Sum }
    }

    fn others_are_uniform(&self, at: u32, op: &LaneOp, written: &BTreeSet<Slot>) -> bool {
        let other = |s: &&Src| s.read().is_some_and(|r| !written.contains(&r));
        op.src.iter().filter(other).all(|s| s.read().is_none_or(|r| self.level(at, Reg::Slot(r)).is_none()))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cycle {
    /// Grows by the same step in every lane.
    Counter,
    /// Collects something, in an order that does not matter but for rounding.
    Sum,
    /// Anything else, seen at this instruction.
    Other(u32),
}

/// Whether an operation adds to (`true`), or otherwise collects into (`false`), a register of `round` that it reads once.
fn step(op: &LaneOp, round: &BTreeSet<Slot>) -> Option<bool> {
    let goes = |i: usize| op.src[i].read().is_some_and(|r| round.contains(&r));
    let times = (0..6).filter(|&i| goes(i)).count();
    if (0..6).any(|i| goes(i) && op.src[i].modifier != SrcMod::None) {
        return None;
    }
    let once = times == 1;
    // In which sources the collected value may stand.
    let among = |allowed: &[usize]| once && allowed.iter().any(|&i| goes(i));
    // Both words of a pair.
    let pair = |low: usize| times <= 2 && (0..6).filter(|&i| goes(i)).all(|i| i == low || i == low + 1);
    match op.f {
        LaneFn::Int(f) => match f {
            IntFn::Mov => among(&[0]).then_some(true),
            IntFn::Mov64 => pair(0).then_some(true),
            IntFn::Add => among(&[0, 1]).then_some(true),
            IntFn::Add3 | IntFn::Add3X | IntFn::Add3XCarry => among(&[0, 1, 2]).then_some(true),
            IntFn::Add3Carry { neg } => (0..3).any(|i| once && goes(i) && !neg[i]).then_some(true),
            IntFn::Add64 { neg } => ((pair(0) && !neg[0]) || (pair(2) && !neg[1])).then_some(true),
            IntFn::Lea { .. } => among(&[1]).then_some(true),
            IntFn::Mad | IntFn::MadX => among(&[2]).then_some(true),
            IntFn::MadWide { neg_c: false, .. } => pair(2).then_some(true),
            IntFn::Mad64 => pair(4).then_some(true),
            IntFn::Min { .. } | IntFn::Max { .. } | IntFn::MinMax { .. } | IntFn::And | IntFn::Or | IntFn::Xor => {
                among(&[0, 1]).then_some(false)
            }
            _ => None,
        },
        LaneFn::Float(f) => match f {
            FloatFn::Add(_) | FloatFn::Mul { .. } | FloatFn::MinMax { .. } => among(&[0, 1]).then_some(false),
            FloatFn::Fma { .. } => among(&[2]).then_some(false),
            _ => None,
        },
        LaneFn::Double(f) => match f {
            DoubleFn::Add(..) | DoubleFn::Mul(..) | DoubleFn::MinMax { .. } => (pair(0) || pair(2)).then_some(false),
            DoubleFn::Fma(..) => pair(4).then_some(false),
            _ => None,
        },
        _ => None,
    }
}

/// Sets of instructions that depend on themselves through an earlier turn: strongly connected parts with a cycle.
fn cycles(from: &BTreeMap<u32, Vec<(u32, bool)>>) -> Vec<BTreeSet<u32>> {
    let nodes: Vec<u32> = from.keys().copied().collect();
    let number = |inst: u32| nodes.binary_search(&inst).ok();
    let edges: Vec<Vec<usize>> = from.values().map(|l| l.iter().filter_map(|(d, _)| number(*d)).collect()).collect();
    // Tarjan's algorithm with its own stack.
    let n = nodes.len();
    let (mut index, mut low) = (vec![usize::MAX; n], vec![0; n]);
    let (mut on, mut stack, mut next) = (vec![false; n], Vec::new(), 0);
    let mut out = Vec::new();
    for root in 0..n {
        if index[root] != usize::MAX {
            continue;
        }
        let mut work = vec![(root, 0)];
        while let Some((v, at)) = work.pop() {
            if at == 0 {
                (index[v], low[v]) = (next, next);
                next += 1;
                stack.push(v);
                on[v] = true;
            }
            if let Some(&w) = edges[v].get(at) {
                work.push((v, at + 1));
                if index[w] == usize::MAX {
                    work.push((w, 0));
                } else if on[w] {
                    low[v] = low[v].min(index[w]);
                }
                continue;
            }
            if let Some(&(parent, _)) = work.last() {
                low[parent] = low[parent].min(low[v]);
            }
            if low[v] == index[v] {
                let mut part = BTreeSet::new();
                while let Some(w) = stack.pop() {
                    on[w] = false;
                    part.insert(nodes[w]);
                    if w == v {
                        break;
                    }
                }
                if part.len() > 1 || edges[v].contains(&v) {
                    out.push(part);
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_go_round() {
        let from = BTreeMap::from([
            (1, vec![(1, true)]),
            (2, vec![(1, false)]),
            (3, vec![(5, true), (2, false)]),
            (4, vec![(3, false)]),
            (5, vec![(4, false)]),
        ]);
        let mut found = cycles(&from);
        found.sort();
        assert_eq!(found, [BTreeSet::from([1]), BTreeSet::from([3, 4, 5])]);
    }
}
