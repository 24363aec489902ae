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

/// Longest chain.
const STEPS: usize = 48;
/// Instructions looked at to find the argument of an address.
const LOOK: usize = 96;

/// The witness of an instruction that decides.
pub(super) fn decision(solver: &Solver, at: u32, uniform: bool) -> Witness {
    let first = Step { inst: at, what: What::Decides };
    let reads = solver.record.as_ref().and_then(|r| r.get(at as usize)).map_or(&[][..], |l| l);
    match choose(solver, at, reads, uniform) {
        Some((r, v)) => follow(solver, vec![first], r, v),
        None => Witness { steps: vec![first], origin: Origin::Uniform },
    }
}

/// The witness of one register that an instruction reads.
pub(super) fn operand(solver: &Solver, at: u32, r: u32) -> Witness {
    let reads = solver.record.as_ref().and_then(|r| r.get(at as usize)).map_or(&[][..], |l| l);
    match reads.iter().find(|v| v.0 == r) {
        Some(&(r, v)) => follow(solver, Vec::new(), r, v),
        None => Witness { steps: Vec::new(), origin: Origin::Undefined },
    }
}

fn same(solver: &Solver, at: u32, v: Val) -> bool {
    let block = solver.s.cfg.block(at).unwrap_or(0) as usize;
    solver.sets.get(block).is_some_and(|set| solver.d.level(v.value, set).is_some())
}

/// The operand to follow: the first that differs, or, of those that are the same, the first that is not a number.
fn choose(solver: &Solver, at: u32, reads: &[(u32, Val)], uniform: bool) -> Option<(u32, Val)> {
    let differs = reads.iter().find(|(_, v)| !same(solver, at, *v)).map(|&(r, v)| (r & !OLD, v));
    if differs.is_some() || !uniform {
        return differs;
    }
    reads.iter().find(|(_, v)| !matches!(v.value, Value::Words(0, Tab::Const(_)) | Value::Undef)).map(|&(r, v)| (r & !OLD, v))
}

fn follow(solver: &Solver, mut steps: Vec<Step>, mut r: u32, mut v: Val) -> Witness {
    let slots = solver.net.slots;
    let what = |r: u32| if r < slots { What::Register(Slot(r as u16)) } else { What::Predicate(Pred((r - slots) as u16)) };
    let mut seen = HashSet::new();
    let done = |steps: Vec<Step>, origin| Witness { steps, origin };
    while steps.len() < STEPS {
        if v.site == START {
            let known = matches!(v.value, Value::Words(..));
            return done(steps, if known { Origin::Uniform } else { Origin::Undefined });
        }
        if !seen.insert((v.site, r)) {
            break;
        }
        if v.site & MEETS != 0 {
            let b = v.site & !MEETS;
            let Some(first) = solver.s.cfg.blocks.get(b as usize).map(|b| b.first) else { break };
            steps.push(Step { inst: first, what: What::Join });
            match through(solver, b, r, v, &seen) {
                Ok(next) => v = next,
                Err(origin) => return done(steps, origin),
            }
            continue;
        }
        let d = v.site;
        steps.push(Step { inst: d, what: what(r) });
        let Some(inst) = solver.kernel.instructions.get(d as usize) else { break };
        let uniform = same(solver, d, v);
        if let Some(origin) = source(solver, d, &inst.op, uniform) {
            return done(steps, origin);
        }
        let reads = solver.record.as_ref().and_then(|r| r.get(d as usize)).map_or(&[][..], |l| l);
        match choose(solver, d, reads, true) {
            Some((next, val)) => (r, v) = (next, val),
            None => return done(steps, origin_of(solver, d, &inst.op)),
        }
    }
    let origin = if same_value(solver, v) { Origin::Uniform } else { last_resort(solver, &steps) };
    done(steps, origin)
}

fn same_value(solver: &Solver, v: Val) -> bool {
    matches!(v.value, Value::Words(_, Tab::Const(_))) || solver.d.level(v.value, &solver.d.existing).is_some()
}

/// A cycle: the lanes differ because of where they meet.
fn last_resort(solver: &Solver, steps: &[Step]) -> Origin {
    for step in steps.iter().rev().filter(|s| s.what == What::Join) {
        let block = solver.s.cfg.block(step.inst).unwrap_or(0);
        if let Some(origin) = paths(solver, block, step.inst) {
            return origin;
        }
    }
    Origin::Limit
}

fn paths(solver: &Solver, b: u32, at: u32) -> Option<Origin> {
    let split = solver.apart.joins.get(b as usize)?.last()?;
    Some(Origin::Paths { branch: solver.apart.splits.get(*split as usize)?.inst, at })
}

/// From a block where values meet to the one of them to follow.
fn through(solver: &Solver, b: u32, r: u32, v: Val, seen: &HashSet<(u32, u32)>) -> Result<Val, Origin> {
    let mut incoming: Vec<Val> = Vec::new();
    for &(from, _) in solver.net.flows.get(b as usize).map_or(&[][..], |f| f) {
        let list = solver.net.live_out.get(from as usize).and_then(|l| l.binary_search(&r).ok());
        let out = solver.outs.get(from as usize).and_then(|o| o.as_ref());
        incoming.extend(list.zip(out).and_then(|(i, o)| o.get(i)).copied());
    }
    let set = solver.sets.get(b as usize);
    let flat = |v: &Val| set.is_some_and(|s| solver.d.level(v.value, s).is_some()) || v.value == Value::Undef;
    let fresh = |v: &&Val| !seen.contains(&(v.site, r));
    let at = solver.s.cfg.blocks.get(b as usize).map_or(0, |b| b.first);
    if let Some(next) = incoming.iter().filter(fresh).find(|v| !flat(v)) {
        return Ok(*next);
    }
    if !flat(&v) {
        if let Some(origin) = paths(solver, b, at) {
            return Err(origin);
        }
        if solver.net.open.get(b as usize) == Some(&true) {
            return Err(Origin::Call(at));
        }
        return Err(Origin::Limit);
    }
    match incoming.iter().filter(fresh).find(|v| !matches!(v.value, Value::Words(0, Tab::Const(_)))) {
        Some(next) => Ok(*next),
        None => Err(Origin::Uniform),
    }
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
        for (_, v) in solver.record.as_ref().and_then(|r| r.get(at as usize)).map_or(&[][..], |l| l) {
            if let Some(p) = parameters(solver, v.value).into_iter().find(wide) {
                return Some(p);
            }
            let sites = if v.site & MEETS != 0 && v.site != START { meeting(solver, *v) } else { vec![v.site] };
            queue.extend(sites.into_iter().filter(|&s| s & MEETS == 0 && seen.insert(s)));
        }
    }
    None
}

/// Instructions whose values meet in a block; which register it is does not matter much here.
fn meeting(_solver: &Solver, _v: Val) -> Vec<u32> {
    Vec::new()
}
