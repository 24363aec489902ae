//! Verdicts from the fixpoint.

use std::sync::Arc;

use lanescope_ir::op::control::{ControlOp, Decision};
use lanescope_ir::{InstId, Kernel, LaneMask, Op, PredSrc};

use super::eval::{In, Place};
use super::solve::Solver;
use super::step::never_returns;
use super::value::{Set, Value};
use super::{Branch, Kind, Level, LoopTrips, Origin, Verdict, WarpLanes, Witness};
use crate::cfg::{condition, is_conditional};
use crate::regions::Structure;

/// What an instruction decides, if it does.
fn kind(op: &ControlOp, conditional: bool) -> Option<Kind> {
    match op {
        ControlOp::BranchIndirect { .. } | ControlOp::CallIndirect { .. } | ControlOp::Return { .. } => {
            Some(Kind::Indirect)
        }
        _ if !conditional => None,
        ControlOp::Branch { .. } | ControlOp::BranchDivergent { .. } | ControlOp::BranchConverged { .. } => {
            Some(Kind::Branch)
        }
        ControlOp::Exit { .. } => Some(Kind::Exit),
        ControlOp::Call { .. } => Some(Kind::Indirect),
        ControlOp::Sync { .. } | ControlOp::WarpSync { .. } | ControlOp::Trap => Some(Kind::Predicated),
        _ => None,
    }
}

/// A verdict for each instruction that decides.
pub(super) fn branches(solver: &mut Solver) -> Vec<Branch> {
    let (kernel, s) = (Arc::clone(&solver.kernel), Arc::clone(&solver.s));
    let (kernel, s) = (&*kernel, &*s);
    let traps = trap_blocks(kernel, s);
    let mut list = Vec::new();
    for (at, inst) in kernel.instructions.iter().enumerate() {
        let Op::Control(op) = &inst.op else { continue };
        let Some(kind) = kind(op, is_conditional(inst)) else { continue };
        let at = at as u32;
        let block = s.cfg.block(at).unwrap_or(0);
        let last = s.cfg.blocks.get(block as usize).is_some_and(|b| b.last() == at);
        let whole_group = matches!(op, ControlOp::BranchDivergent { .. })
            || matches!(op, ControlOp::Branch { decision: Decision::All | Decision::Any, .. });
        let sides: Vec<bool> = match op {
            ControlOp::Branch { target, .. } => [s.cfg.block(target.0), s.cfg.block(at + 1)]
                .into_iter()
                .flatten()
                .map(|b| traps.get(b as usize).copied().unwrap_or(false))
                .collect(),
            _ => Vec::new(),
        };
        let (level, verdict, witness) = judge(solver, at, block, whole_group);
        list.push(Branch {
            inst: at,
            kind,
            level,
            verdict,
            whole_group,
            guards_trap: matches!(op, ControlOp::Trap) || sides.iter().any(|&t| t) && sides.iter().any(|&t| !t),
            leaves_loop: if last { s.leaves_loop(block) } else { None },
            witness,
        });
    }
    list
}

fn judge(solver: &mut Solver, at: u32, block: u32, whole_group: bool) -> (Level, Verdict, Witness) {
    let nothing = |origin| Witness { steps: Vec::new(), origin };
    if solver.lost {
        let verdict = if whole_group { Verdict::Never } else { Verdict::Unknown };
        return (Level::Divergent, verdict, nothing(Origin::Limit));
    }
    if solver.reached.get(block as usize) != Some(&true) {
        return (Level::Grid, Verdict::Unreachable, nothing(Origin::Uniform));
    }
    let kernel = Arc::clone(&solver.kernel);
    let Some(inst) = kernel.instructions.get(at as usize) else {
        return (Level::Divergent, Verdict::Unknown, nothing(Origin::Limit));
    };
    let Op::Control(op) = &inst.op else { return (Level::Divergent, Verdict::Unknown, nothing(Origin::Limit)) };
    let set = solver.sets[block as usize].clone();
    solver.d.ways = solver.ways[block as usize];
    let guard = read(solver, at, inst.guard, &set);
    let cond = read(solver, at, condition(op), &set);
    let c = solver.both(guard, cond, &Place { inst: at, block, set: &set });
    let mut level = c.level;
    if let ControlOp::BranchIndirect { target, .. }
    | ControlOp::CallIndirect { target, .. }
    | ControlOp::Return { target, .. } = op
    {
        for s in target.reg {
            let part = match s.read() {
                Some(slot) => word(solver, at, slot.0.into(), &set).level,
                None => Some(Level::Grid),
            };
            level = level.and_then(|l| Some(l.max(part?)));
        }
    }
    let witness = super::witness::decision(solver, at, level.is_some());
    if whole_group {
        return (level.unwrap_or(Level::Divergent), Verdict::Never, witness);
    }
    if let Some(level) = level {
        return (level, Verdict::Never, witness);
    }
    if let Value::Mono(scope) = c.value {
        return (Level::Lanes, Verdict::Boundary(scope), witness);
    }
    let indirect = matches!(kind(op, true), Some(Kind::Indirect)) && !matches!(op, ControlOp::Call { .. });
    if let (Some(holds), false) = (solver.d.holds(c.value, &set), indirect) {
        let lanes = warps(solver.d.block_known, &holds, &set);
        let split = lanes.into_iter().filter(|l| !l.taken.is_empty() && l.taken != l.there).collect();
        return (Level::Lanes, Verdict::Lanes(split), witness);
    }
    let verdict = match witness.origin {
        Origin::Load { .. } | Origin::Atomic { .. } | Origin::Exchange(_) | Origin::Apart { .. } => Verdict::Data,
        Origin::Thread(_) if !solver.d.block_known && !solver.words.linear => Verdict::Shape,
        Origin::Paths { .. } => Verdict::Paths,
        _ => Verdict::Unknown,
    };
    (Level::Divergent, verdict, witness)
}

/// Sets of threads as lanes of warps.
pub(super) fn warps(known: bool, taken: &[u32], there: &[u32]) -> Vec<WarpLanes> {
    let lanes = |w: u32| LaneMask(w.into());
    let one = |(w, (&taken, &there)): (usize, (&u32, &u32))| WarpLanes {
        warp: known.then_some(w as u32),
        taken: lanes(taken),
        there: lanes(there),
    };
    taken.iter().zip(there).enumerate().map(one).collect()
}

/// A recorded register.
pub(super) fn word(solver: &Solver, at: u32, r: u32, set: &Set) -> In {
    let list = solver.record.as_ref().and_then(|r| r.get(at as usize));
    let value = list.and_then(|l| l.iter().find(|v| v.0 == r)).map_or(Value::Divergent, |v| v.1.value);
    solver.d.input(value, set)
}

fn read(solver: &mut Solver, at: u32, p: PredSrc, set: &Set) -> In {
    let Some(pred) = p.pred else { return In::number((!p.negated).into()) };
    let i = word(solver, at, solver.net.slots + u32::from(pred.0), set);
    if !p.negated {
        return i;
    }
    let value = solver.d.negated(i.value);
    solver.d.input(value, set)
}

/// Blocks from which lanes only get to a trap or a failed assertion.
fn trap_blocks(kernel: &Kernel, s: &Structure) -> Vec<bool> {
    let cfg = &s.cfg;
    let mut traps = super::apart::trapping(kernel, s);
    for _ in 0..4 {
        let before = traps.clone();
        for (b, block) in cfg.blocks.iter().enumerate() {
            for at in block.instructions() {
                let Some(inst) = kernel.instructions.get(at as usize).filter(|i| i.guard.is_true()) else { continue };
                traps[b] |= match &inst.op {
                    Op::Control(ControlOp::CallExternal { name, cond, .. }) => cond.is_true() && never_returns(name),
                    Op::Control(ControlOp::Call { target: InstId(t), cond }) => {
                        cond.is_true() && cfg.block(*t).is_some_and(|t| before.get(t as usize) == Some(&true))
                    }
                    _ => false,
                };
            }
        }
        // Backwards, to blocks that lead nowhere else.
        let back = cfg.graph.reversed();
        let mut stack: Vec<u32> = (0..traps.len() as u32).filter(|&b| traps[b as usize]).collect();
        while let Some(b) = stack.pop() {
            for &p in back.successors(b) {
                let all = cfg.graph.successors(p).iter().all(|&t| traps.get(t as usize) == Some(&true));
                if let Some(t) = traps.get_mut(p as usize)
                    && all
                    && !std::mem::replace(t, true)
                {
                    stack.push(p);
                }
            }
        }
        if traps == before {
            break;
        }
    }
    traps
}

/// Trips of loops, from the branches that leave them.
pub(super) fn loops(s: &Structure, branches: &[Branch]) -> Vec<LoopTrips> {
    let mut list: Vec<LoopTrips> = s
        .loops
        .list
        .iter()
        .enumerate()
        .map(|(i, l)| LoopTrips {
            index: i as u32,
            header: s.cfg.blocks.get(l.header as usize).map_or(0, |b| b.first),
            exits: Vec::new(),
            level: Level::Grid,
        })
        .collect();
    for (i, branch) in branches.iter().enumerate() {
        let Some(block) = s.cfg.block(branch.inst) else { continue };
        if branch.guards_trap || s.cfg.blocks.get(block as usize).is_none_or(|b| b.last() != branch.inst) {
            continue;
        }
        for l in s.loops.around(block) {
            let outside = s.cfg.graph.successors(block).iter().any(|&t| !s.loops.contains(l, t));
            let Some(trips) = list.get_mut(l as usize).filter(|_| outside) else { continue };
            trips.exits.push(i as u32);
            let level = match branch.verdict {
                Verdict::Unreachable => Level::Grid,
                Verdict::Never => branch.level.min(Level::Warp),
                Verdict::Boundary(_) | Verdict::Lanes(_) => Level::Lanes,
                _ => Level::Divergent,
            };
            trips.level = trips.level.max(level);
        }
    }
    list
}
