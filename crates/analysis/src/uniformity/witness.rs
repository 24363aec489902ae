//! Chains of instructions from a decision back to what makes lanes differ, or to what they share.

use std::collections::HashSet;

use lanescope_ir::op::SrcKind;
use lanescope_ir::op::effects::Visit;
use lanescope_ir::op::memory::MemoryOp;
use lanescope_ir::op::warp::{SpecialReg, WarpOp};
use lanescope_ir::{Op, Pred, Slot, Src};

use super::solve::{MEETS, OLD, START, Solver, Val};
use super::value::{LeafKey, Tab, Value};
use super::{Origin, Step, What, Witness};

/// Values looked at for one witness.
const NODES: usize = 256;
/// Instructions looked at to find the argument of an address.
const LOOK: usize = 96;

/// The witness of an instruction that decides.
pub(super) fn decision(solver: &Solver, at: u32, uniform: bool) -> Witness {
    let first = Step { inst: at, what: What::Decides };
    let reads = solver.record.as_ref().and_then(|r| r.get(at as usize)).map_or(&[][..], |l| l);
    follow(solver, vec![first], choose(solver, at, reads, uniform))
}

/// The witness of one register that an instruction reads.
pub(super) fn operand(solver: &Solver, at: u32, r: u32) -> Witness {
    let reads = solver.record.as_ref().and_then(|r| r.get(at as usize)).map_or(&[][..], |l| l);
    match reads.iter().find(|v| v.0 == r) {
        Some(&(r, v)) => follow(solver, Vec::new(), vec![(r & !OLD, v)]),
        None => Witness { steps: Vec::new(), origin: Origin::Undefined },
    }
}

fn same(solver: &Solver, at: u32, v: Val) -> bool {
    let block = solver.s.cfg.block(at).unwrap_or(0) as usize;
    solver.sets.get(block).is_some_and(|set| solver.d.level(v.value, set).is_some())
}

/// Operands to follow: those that differ, or, if none does, those that are no plain numbers.
fn choose(solver: &Solver, at: u32, reads: &[(u32, Val)], uniform: bool) -> Vec<(u32, Val)> {
    let differ: Vec<(u32, Val)> =
        reads.iter().filter(|(_, v)| !same(solver, at, *v)).map(|&(r, v)| (r & !OLD, v)).collect();
    if !differ.is_empty() || !uniform {
        return differ;
    }
    let open = |v: &Val| !matches!(v.value, Value::Words(0, Tab::Const(_)) | Value::Undef);
    reads.iter().filter(|(_, v)| open(v)).map(|&(r, v)| (r & !OLD, v)).collect()
}

/// The shortest chain from some operands to an origin.
fn follow(solver: &Solver, first: Vec<Step>, starts: Vec<(u32, Val)>) -> Witness {
    let slots = solver.net.slots;
    let what =
        |r: u32| if r < slots { What::Register(Slot(r as u16)) } else { What::Predicate(Pred((r - slots) as u16)) };
    // Nodes in the order they are found: register, value, the node before.
    let mut nodes: Vec<(u32, Val, usize)> = starts.into_iter().map(|(r, v)| (r, v, usize::MAX)).collect();
    let mut seen: HashSet<(u32, u32)> = HashSet::new();
    let chain = |nodes: &[(u32, Val, usize)], end: usize, origin: Origin| {
        let mut steps = Vec::new();
        let mut at = Some(end);
        while let Some(&(r, v, before)) = at.and_then(|i| nodes.get(i)) {
            if v.site != START && v.site & MEETS != 0 {
                let block = solver.s.cfg.blocks.get((v.site & !MEETS) as usize);
                steps.extend(block.map(|b| Step { inst: b.first, what: What::Join }));
            } else if v.site != START {
                steps.push(Step { inst: v.site, what: what(r) });
            }
            at = Some(before);
        }
        let steps = first.iter().copied().chain(steps.into_iter().rev()).collect();
        Witness { steps, origin }
    };
    let mut met: Option<usize> = None;
    let mut at = 0;
    while let Some(&(r, v, _)) = nodes.get(at).filter(|_| at < NODES) {
        let fresh = seen.insert((v.site, r));
        if v.site == START {
            let known = matches!(v.value, Value::Words(..));
            return chain(&nodes, at, if known { Origin::Uniform } else { Origin::Undefined });
        }
        if !fresh {
            at += 1;
            continue;
        }
        if v.site & MEETS != 0 {
            let b = v.site & !MEETS;
            met = met.or(Some(at));
            match through(solver, b, r, v) {
                Ok(next) => nodes.extend(next.into_iter().map(|v| (r, v, at))),
                Err(origin) => return chain(&nodes, at, origin),
            }
        } else {
            let d = v.site;
            let Some(inst) = solver.kernel.instructions.get(d as usize) else { break };
            if let Some(origin) = source(solver, d, &inst.op, same(solver, d, v)) {
                return chain(&nodes, at, origin);
            }
            let reads = solver.record.as_ref().and_then(|r| r.get(d as usize)).map_or(&[][..], |l| l);
            let next = choose(solver, d, reads, true);
            if next.is_empty() {
                return chain(&nodes, at, origin_of(solver, d, &inst.op));
            }
            nodes.extend(next.into_iter().map(|(r, v)| (r, v, at)));
        }
        at += 1;
    }
    // A cycle: lanes differ because of where they meet, or share what goes round.
    let last = met.unwrap_or(0);
    let Some(&(_, v, _)) = nodes.get(last) else { return Witness { steps: first, origin: Origin::Uniform } };
    let block = v.site & !MEETS;
    let origin = if matches!(v.value, Value::Words(_, Tab::Const(_))) {
        Origin::Uniform
    } else {
        let first = solver.s.cfg.blocks.get(block as usize).map_or(0, |b| b.first);
        paths(solver, block, first).unwrap_or(Origin::Limit)
    };
    chain(&nodes, last, origin)
}

fn paths(solver: &Solver, b: u32, at: u32) -> Option<Origin> {
    let split = solver.apart.joins.get(b as usize)?.last()?;
    Some(Origin::Paths { branch: solver.apart.splits.get(*split as usize)?.inst, at })
}

/// From a block where values meet to those of them to follow.
fn through(solver: &Solver, b: u32, r: u32, v: Val) -> Result<Vec<Val>, Origin> {
    let mut incoming: Vec<Val> = Vec::new();
    for &(from, _) in solver.net.flows.get(b as usize).map_or(&[][..], |f| f) {
        let list = solver.net.live_out.get(from as usize).and_then(|l| l.binary_search(&r).ok());
        let out = solver.outs.get(from as usize).and_then(|o| o.as_ref());
        incoming.extend(list.zip(out).and_then(|(i, o)| o.get(i)).copied());
    }
    let set = solver.sets.get(b as usize);
    let flat = |v: &Val| set.is_some_and(|s| solver.d.level(v.value, s).is_some()) || v.value == Value::Undef;
    let at = solver.s.cfg.blocks.get(b as usize).map_or(0, |b| b.first);
    let differ: Vec<Val> = incoming.iter().copied().filter(|v| !flat(v)).collect();
    if !differ.is_empty() {
        return Ok(differ);
    }
    if !flat(&v) {
        let unknown = if solver.net.open.get(b as usize) == Some(&true) { Origin::Call(at) } else { Origin::Limit };
        return Err(paths(solver, b, at).unwrap_or(unknown));
    }
    let open: Vec<Val> =
        incoming.into_iter().filter(|v| !matches!(v.value, Value::Words(0, Tab::Const(_)) | Value::Undef)).collect();
    if open.is_empty() { Err(Origin::Uniform) } else { Ok(open) }
}

/// If the chain ends at this instruction: its origin.
fn source(solver: &Solver, d: u32, op: &Op, uniform: bool) -> Option<Origin> {
    if uniform && !matches!(op, Op::Lane(_)) {
        return Some(Origin::Uniform);
    }
    match op {
        Op::Lane(_) => None,
        _ => Some(origin_of(solver, d, op)),
    }
}

fn origin_of(solver: &Solver, d: u32, op: &Op) -> Origin {
    let block = solver.s.cfg.block(d).unwrap_or(0) as usize;
    match op {
        Op::Memory(MemoryOp::Load { .. }) => {
            let reads = solver.record.as_ref().and_then(|r| r.get(d as usize)).map_or(&[][..], |l| l);
            let apart = solver.apart.joined.get(block).copied().flatten();
            match apart {
                Some(branch) if reads.iter().all(|(_, v)| same(solver, d, *v)) => Origin::Apart { branch, inst: d },
                _ => Origin::Load { inst: d, param: param(solver, d) },
            }
        }
        Op::Memory(MemoryOp::Atomic { .. }) => Origin::Atomic { inst: d, param: param(solver, d) },
        Op::Memory(_) => Origin::Load { inst: d, param: None },
        Op::Warp(WarpOp::Special { reg, .. }) => {
            let clock = |r: &SpecialReg| {
                matches!(
                    r,
                    SpecialReg::ClockLo | SpecialReg::ClockHi | SpecialReg::GlobalTimerLo | SpecialReg::GlobalTimerHi
                )
            };
            if reg.iter().any(clock) { Origin::Clock(d) } else { Origin::Thread(d) }
        }
        Op::Warp(WarpOp::PackPreds { .. } | WarpOp::UnpackPreds { .. }) => Origin::Exchange(d),
        Op::Warp(_) => match solver.apart.joined.get(block).copied().flatten() {
            Some(branch) => Origin::Apart { branch, inst: d },
            None => Origin::Exchange(d),
        },
        Op::Unsupported(_) => Origin::Unsupported(d),
        Op::Control(_) => Origin::Call(d),
        Op::Lane(_) | Op::Nop => Origin::Uniform,
    }
}

/// The parameter that a word of a constant bank belongs to.
pub(super) fn parameter(solver: &Solver, bank: u8, offset: u32) -> Option<u32> {
    let (param_bank, base) = solver.kernel.param_base;
    let at = offset.checked_sub(base).filter(|_| bank == param_bank)?;
    solver.kernel.params.iter().find(|p| (p.offset..p.offset.saturating_add(p.size)).contains(&at)).map(|p| p.ordinal)
}

/// Parameters in the base of a value.
pub(super) fn parameters(solver: &Solver, v: Value) -> Vec<u32> {
    let Value::Words(lin, _) = v else { return Vec::new() };
    let key = |t: &(u32, u32)| match solver.d.leaves.get(t.0 as usize)?.key {
        LeafKey::Word(bank, offset) => parameter(solver, bank, offset),
        _ => None,
    };
    let mut list: Vec<u32> = solver.d.terms(lin).iter().filter_map(key).collect();
    list.sort_unstable();
    list.dedup();
    list
}

/// The pointer argument that an access goes through, looked for among the sums its address comes from.
pub(super) fn param(solver: &Solver, inst: u32) -> Option<u32> {
    struct Words(Vec<(u8, u32)>);
    impl Visit for Words {
        fn src(&mut self, s: &mut Src) {
            if let SrcKind::Const { bank, offset } = s.kind {
                self.0.push((bank, offset));
            }
        }
    }
    let wide = |ordinal: &u32| solver.kernel.params.iter().any(|p| p.ordinal == *ordinal && p.size >= 8);
    let mut queue = std::collections::VecDeque::from([inst]);
    let mut seen = HashSet::from([inst]);
    while let Some(at) = queue.pop_front() {
        if seen.len() > LOOK {
            break;
        }
        let Some(i) = solver.kernel.instructions.get(at as usize) else { continue };
        let access = matches!(i.op, Op::Memory(_));
        if access && at != inst {
            continue;
        }
        let mut words = Words(Vec::new());
        i.clone().visit(&mut words);
        let found = words.0.iter().filter_map(|&(b, o)| parameter(solver, b, o)).find(wide);
        if found.is_some() {
            return found;
        }
        for (r, v) in solver.record.as_ref().and_then(|r| r.get(at as usize)).map_or(&[][..], |l| l) {
            if let Some(p) = parameters(solver, v.value).into_iter().find(wide) {
                return Some(p);
            }
            if v.site & MEETS == 0 && seen.insert(v.site) {
                queue.push_back(v.site);
            } else if v.site != START && v.site & MEETS != 0 {
                let sites = through(solver, v.site & !MEETS, *r & !OLD, *v).unwrap_or_default();
                queue.extend(sites.into_iter().map(|v| v.site).filter(|&s| s & MEETS == 0 && seen.insert(s)));
            }
        }
    }
    None
}
