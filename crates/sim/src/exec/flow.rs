//! Operations that may end the running group: branches, exits, waits.

use std::collections::BTreeMap;

use lanescope_ir::LaneMask;
use lanescope_ir::op::control::Decision;

use super::Where;
use super::barrier::Arrival;
use super::program::{Flow, FlowInst, Inst, NONE, SyncLanes, Transfer};
use super::tile::{Env, Tile};
use crate::convergence::{Convergence, Group, SyncMode, SyncPart, YieldKind};
use crate::error::SimError;
use crate::memory::words::lanes;
use crate::rows::{Operand, Run};

fn mask(m: u32) -> LaneMask {
    LaneMask(m.into())
}

/// Executes the flow operation at `at` for one warp.
#[inline]
pub(crate) fn run<C: Convergence>(
    tile: &mut Tile<C>,
    env: &mut Env<'_>,
    at: u32,
    inst: &Inst,
    op: &FlowInst,
    r: Run,
) -> Result<(), SimError> {
    let guard = r.active & tile.file.pred(&inst.guard, r.warp);
    if inst.guarded {
        env.counters.on[at as usize] += u64::from(guard.count_ones());
    }
    let exec = guard & tile.file.pred(&op.cond, r.warp);
    let next = at + 1;
    if let Flow::Branch(target, decision) = op.flow {
        let exec = match decision {
            Decision::Lanes => exec,
            Decision::All => {
                if exec == r.active {
                    exec
                } else {
                    0
                }
            }
            Decision::Any => {
                if exec != 0 {
                    r.active
                } else {
                    0
                }
            }
        };
        let w = &mut tile.warps[r.warp as usize];
        let stay = r.active & !exec;
        let split = exec != 0 && stay != 0;
        if op.counter != NONE {
            env.counters.branch(op.counter, exec.count_ones(), stay.count_ones(), split);
        }
        if !split {
            w.go(if exec != 0 { target } else { next });
        } else {
            w.conv.set_pc(at);
            w.conv.branch(mask(exec), target, next);
            w.refresh();
        }
        if inst.latch != NONE {
            let header = env.block.cx.program.loops.headers[inst.latch as usize];
            let back = if target == header { exec } else { 0 } | if next == header { stay } else { 0 };
            tile.come_back(inst.latch, r.warp, back);
        }
        return Ok(());
    }
    if inst.latch != NONE && env.block.cx.program.loops.headers[inst.latch as usize] == next {
        tile.come_back(inst.latch, r.warp, r.active);
    }
    if exec == 0 && !matches!(op.flow, Flow::EndCollective | Flow::Exit) {
        tile.warps[r.warp as usize].go(next);
        if op.counter != NONE {
            env.counters.branch(op.counter, 0, r.active.count_ones(), false);
        }
        return Ok(());
    }
    rare(tile, env, at, inst, op, r, exec)
}

fn rare<C: Convergence>(
    tile: &mut Tile<C>,
    env: &mut Env<'_>,
    at: u32,
    inst: &Inst,
    op: &FlowInst,
    r: Run,
    exec: u32,
) -> Result<(), SimError> {
    let next = at + 1;
    let constants = env.block.cx.program.layout.constants();
    let place = Where { inst: at, index: r.warp, warp: tile.first + r.warp };
    let lowest = (exec.trailing_zeros() % 32) as usize;
    let read = |op: &Operand| tile.file.read(constants, op, r.warp);
    let site = || Box::new(env.block.site(place));
    let w = &mut tile.warps[r.warp as usize];
    w.conv.set_pc(at);
    match &op.flow {
        Flow::Branch(..) => {}
        Flow::Call(target) => {
            let stay = r.active & !exec;
            if op.counter != NONE {
                env.counters.branch(op.counter, exec.count_ones(), stay.count_ones(), stay != 0);
            }
            w.conv.call(&[Group { pc: *target, mask: mask(exec) }], next);
        }
        Flow::BranchIf { target, mask: wanted, converged } => {
            let wanted = wanted.as_ref().map_or(u32::MAX, |m| read(m).0[lowest]);
            // The lanes whose guard holds must be all of the mask. BRA.DIV takes the whole group along if they are not.
            let together = mask(exec).contains(mask(wanted) & w.conv.live());
            if together != *converged {
                w.go(next);
            } else if exec == r.active || !*converged {
                w.go(*target);
            } else {
                w.conv.branch(mask(exec), *target, next);
                w.refresh();
            }
            return Ok(());
        }
        Flow::Indirect { lo, hi, base, how } => {
            let (lo, hi) = (read(lo), read(hi));
            // By target; few are expected.
            let mut by_target: BTreeMap<u32, u32> = BTreeMap::new();
            for l in lanes(exec) {
                let address = (u64::from(lo.0[l]) | u64::from(hi.0[l]) << 32).wrapping_add(*base);
                let kernel = env.block.cx.kernel;
                let Some(target) = kernel.at_address(address) else {
                    if let Some((_, name)) = kernel.externals.iter().find(|e| e.0 == address) {
                        return Err(SimError::ExternalCall { site: site(), name: name.clone() });
                    }
                    return Err(SimError::BadTarget { site: site(), lane: l as u32, address });
                };
                *by_target.entry(target.0).or_default() |= 1 << l;
            }
            let stay = r.active & !exec;
            let split = by_target.len() + usize::from(stay != 0) > 1;
            if op.counter != NONE {
                env.counters.branch(op.counter, exec.count_ones(), stay.count_ones(), split);
            }
            if inst.latch != NONE {
                let header = env.block.cx.program.loops.headers[inst.latch as usize];
                let warps = tile.loops.len() / env.counters.trips.len().max(1);
                let back = &mut tile.loops[inst.latch as usize * warps + r.warp as usize].back;
                *back |= by_target.get(&header).copied().unwrap_or(0);
            }
            match by_target.first_key_value() {
                Some((&target, _)) if !split && (*how == Transfer::Jump || !C::CALLS) => {
                    w.go(target);
                    return Ok(());
                }
                _ => {
                    let groups: Vec<Group> = by_target.iter().map(|(&pc, &m)| Group { pc, mask: mask(m) }).collect();
                    match how {
                        Transfer::Jump => w.conv.indirect(&groups, next),
                        Transfer::Call => w.conv.call(&groups, next),
                        Transfer::Return => w.conv.ret(&groups, next),
                    };
                }
            }
        }
        Flow::External(name) => return Err(SimError::ExternalCall { site: site(), name: name.clone() }),
        Flow::Exit => {
            let stay = r.active & !exec;
            if op.counter != NONE {
                env.counters.branch(op.counter, exec.count_ones(), stay.count_ones(), exec != 0 && stay != 0);
            }
            if exec == 0 {
                w.go(next);
                return Ok(());
            }
            w.conv.exit(mask(exec), next);
            w.exited += exec.count_ones();
            env.barriers.exit(place.warp, exec);
        }
        Flow::Sync(bar) => w.conv.sync(*bar, mask(exec), next),
        Flow::WarpSync(sync) => {
            let (operand, mode) = match sync {
                SyncLanes::All => (None, SyncMode::Join),
                SyncLanes::Mask(m) => (Some(m), SyncMode::Join),
                SyncLanes::Collective(m, t) => (Some(m), SyncMode::Collective { resume: *t }),
                SyncLanes::Exclusive(m) => (Some(m), SyncMode::Exclusive),
            };
            let mut parts: Vec<SyncPart> = Vec::new();
            match operand {
                None => parts.push(SyncPart { lanes: mask(exec), wanted: mask(u32::MAX) }),
                Some(m) => {
                    let row = read(m);
                    for l in lanes(exec) {
                        let wanted = mask(row.0[l]);
                        match parts.iter_mut().find(|p| p.wanted == wanted) {
                            Some(p) => p.lanes = p.lanes | LaneMask::lane(l as u32),
                            None => parts.push(SyncPart { lanes: LaneMask::lane(l as u32), wanted }),
                        }
                    }
                }
            }
            w.conv.warp_sync(&parts, mode, next);
        }
        Flow::EndCollective => w.conv.end_collective(next),
        Flow::Yield => w.conv.yield_now(YieldKind::Yield, next),
        Flow::Sleep => w.conv.yield_now(YieldKind::Sleep, next),
        Flow::Trap => return Err(SimError::Trap { site: site(), lanes: mask(exec) }),
        Flow::Refuse => return Err(env.block.unsupported(place)),
        Flow::BlockBarrier { mode, id, threads, pred } => {
            let id = read(id).0[lowest];
            let threads = threads.as_ref().map(|t| read(t).0[lowest]);
            let pred = tile.file.pred(pred, r.warp);
            let arrival = Arrival { warp: place.warp, lanes: exec, pred, mode: *mode, threads };
            if let Err(what) = env.barriers.arrive(id, &arrival) {
                return Err(SimError::BadBarrier { site: site(), what });
            }
            if *mode == lanescope_ir::op::warp::BlockBarrierMode::Arrive {
                w.go(next);
                return Ok(());
            }
            w.conv.wait_block(mask(exec), next);
        }
    }
    w.refresh();
    Ok(())
}
