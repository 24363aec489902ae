//! Operations that may end the running group: branches, exits, waits.

use std::collections::BTreeMap;

use lanescope_ir::LaneMask;
use lanescope_ir::op::control::Decision;

use super::barrier::Arrival;
use super::program::{Flow, FlowInst, Inst, NONE, SyncLanes, Transfer};
use super::tile::{Env, Issue, Tile};
use super::{Where, rows};
use crate::convergence::{Convergence, Group, Spins, SyncMode, SyncPart, YieldKind};
use crate::error::SimError;
use crate::memory::words::lanes;
use crate::rows::{LANES, Operand, Row};

/// Executes the flow operation at `at` for one warp.
#[inline]
pub(crate) fn run<C: Convergence>(
    tile: &mut Tile<C>,
    env: &mut Env<'_>,
    at: u32,
    inst: &Inst,
    op: &FlowInst,
    r: Issue,
) -> Result<(), SimError> {
    let guard = r.active & tile.pred(&inst.guard, r.warp);
    if inst.guarded {
        env.counters.on[at as usize] += u64::from(guard.count_ones());
    }
    let exec = guard & tile.pred(&op.cond, r.warp);
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
            w.conv.branch(LaneMask(exec), target, next);
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
    r: Issue,
    exec: u64,
) -> Result<(), SimError> {
    let next = at + 1;
    let constants = env.block.cx.program.layout.constants();
    let n = rows::<C>() as u32;
    let place = Where { inst: at, index: r.warp * n, warp: tile.first + r.warp, base: 0 };
    let read = |op: &Operand, row: u32| -> Row { tile.file.read(constants, op, r.warp * n + row) };
    // The value in the lowest lane.
    let lowest = exec.trailing_zeros() % C::LANES;
    let word = |op: &Operand| read(op, lowest / LANES as u32).0[lowest as usize % LANES];
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
            w.conv.call(&[Group { pc: *target, mask: LaneMask(exec) }], next);
        }
        Flow::BranchIf { target, mask: wanted, converged } => {
            let wanted = wanted.as_ref().map_or(u32::MAX, &word);
            // The lanes whose guard holds must be all of the mask. BRA.DIV takes the whole group along if they are not.
            let together = LaneMask(exec).contains(LaneMask(wanted.into()) & w.conv.live());
            if together != *converged {
                w.go(next);
            } else if exec == r.active || !*converged {
                w.go(*target);
            } else {
                w.conv.branch(LaneMask(exec), *target, next);
                w.refresh();
            }
            return Ok(());
        }
        Flow::Indirect { lo, hi, base, how } => {
            // By target; few are expected.
            let mut by_target: BTreeMap<u32, u64> = BTreeMap::new();
            for row in 0..n {
                let (lo, hi) = (read(lo, row), read(hi, row));
                let first = row * LANES as u32;
                for l in lanes((exec >> first) as u32) {
                    let lane = first + l as u32;
                    let address = (u64::from(lo.0[l]) | u64::from(hi.0[l]) << 32).wrapping_add(*base);
                    let kernel = env.block.cx.kernel;
                    let Some(target) = kernel.at_address(address) else {
                        if let Some((_, name)) = kernel.externals.iter().find(|e| e.0 == address) {
                            return Err(SimError::ExternalCall { site: site(), name: name.clone() });
                        }
                        return Err(SimError::BadTarget { site: site(), lane, address });
                    };
                    *by_target.entry(target.0).or_default() |= 1 << lane;
                }
            }
            let stay = r.active & !exec;
            let split = by_target.len() + usize::from(stay != 0) > 1;
            if op.counter != NONE {
                env.counters.tally(op.counter, exec.count_ones(), stay.count_ones(), split);
                if split {
                    let groups = by_target.values().chain((stay != 0).then_some(&stay));
                    groups.for_each(|g| env.counters.split(op.counter, g.count_ones()));
                }
            }
            if inst.latch != NONE {
                let header = env.block.cx.program.loops.headers[inst.latch as usize];
                tile.come_back(inst.latch, r.warp, by_target.get(&header).copied().unwrap_or(0));
            }
            let w = &mut tile.warps[r.warp as usize];
            match by_target.first_key_value() {
                Some((&target, _)) if !split && (*how == Transfer::Jump || !C::CALLS) => {
                    w.go(target);
                    return Ok(());
                }
                _ => {
                    let groups: Vec<Group> =
                        by_target.iter().map(|(&pc, &m)| Group { pc, mask: LaneMask(m) }).collect();
                    match how {
                        Transfer::Jump => w.conv.indirect(&groups, next),
                        Transfer::Call => w.conv.call(&groups, next),
                        Transfer::Return => w.conv.ret(&groups, next),
                    };
                }
            }
            w.refresh();
            return Ok(());
        }
        Flow::External(call) => {
            super::external::run(tile, env, place, call, exec)?;
            tile.warps[r.warp as usize].go(next);
            return Ok(());
        }
        Flow::Exit => {
            let stay = r.active & !exec;
            if op.counter != NONE {
                env.counters.branch(op.counter, exec.count_ones(), stay.count_ones(), exec != 0 && stay != 0);
            }
            if exec == 0 {
                w.go(next);
                return Ok(());
            }
            w.conv.exit(LaneMask(exec), next);
            w.exited += exec.count_ones();
            env.barriers.exit(place.warp, exec);
        }
        Flow::Sync(bar) => w.conv.sync(*bar, LaneMask(exec), next),
        Flow::WarpSync(sync) => {
            let (operand, mode) = match sync {
                SyncLanes::All => (None, SyncMode::Join),
                SyncLanes::Mask(m) => (Some(m), SyncMode::Join),
                SyncLanes::Collective(m, t) => (Some(m), SyncMode::Collective { resume: *t }),
                SyncLanes::Exclusive(m) => (Some(m), SyncMode::Exclusive),
            };
            let mut parts: Vec<SyncPart> = Vec::new();
            match operand {
                // Before Volta a barrier of the block is all that there is, and a path that comes late misses it.
                None if C::SPINS == Spins::Stuck => {}
                None => parts.push(SyncPart { lanes: LaneMask(exec), wanted: LaneMask::first(C::LANES) }),
                Some(m) => {
                    // Masks have 32 bits: code with them is for warps of 32.
                    let row = read(m, 0);
                    for l in lanes(exec as u32) {
                        let wanted = LaneMask(row.0[l].into());
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
        Flow::Trap => return Err(SimError::Trap { site: site(), lanes: LaneMask(exec) }),
        Flow::Refuse => return Err(env.block.unsupported(place)),
        Flow::BlockBarrier { mode, id, threads, pred } => {
            let id = word(id);
            let threads = threads.as_ref().map(&word);
            let pred = tile.pred(pred, r.warp);
            let arrival = Arrival { warp: place.warp, lanes: exec, pred, mode: *mode, threads };
            if let Err(what) = env.barriers.arrive(id, &arrival) {
                return Err(SimError::BadBarrier { site: site(), what });
            }
            let w = &mut tile.warps[r.warp as usize];
            if *mode == lanescope_ir::op::warp::BlockBarrierMode::Arrive {
                w.go(next);
                return Ok(());
            }
            w.conv.wait_block(LaneMask(exec), next);
            w.refresh();
            return Ok(());
        }
    }
    w.refresh();
    Ok(())
}
