//! Shared-memory writes that another lane of the same warp reads with no synchronisation between.
//!
//! Only what can be proved is a pair: both addresses are known for each lane, either as numbers or as the same register
//! plus known offsets, and a path leads from the store to the load on which nothing makes the warp wait for its lanes.

use std::collections::HashSet;

use lanescope_ir::op::control::ControlOp;
use lanescope_ir::op::effects::Access;
use lanescope_ir::op::memory::{Addr, MemoryOp, Space};
use lanescope_ir::op::warp::WarpOp;
use lanescope_ir::op::{Src, SrcKind};
use lanescope_ir::{LaneMask, Op, Slot};

use super::cx::Cx;
use crate::uniformity::{Level, Operand};

/// Stores looked at, and instructions on the ways from one of them.
const STORES: usize = 256;
const WAYS: usize = 20_000;

/// A store and a load.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) store: u32,
    pub(super) load: u32,
    /// The warp of which this is told; `None`: every warp.
    pub(super) warp: Option<u32>,
    /// Lanes that read what others wrote.
    pub(super) readers: LaneMask,
    /// Those others.
    pub(super) writers: LaneMask,
    /// Lanes that execute the store, and the load.
    pub(super) storing: LaneMask,
    pub(super) loading: LaneMask,
}

/// Addresses of the lanes of one warp.
struct Addresses {
    /// Registers whose common value is added; empty if the addresses are numbers.
    keys: Vec<Slot>,
    of: [u32; 32],
}

/// A shared-memory access.
struct Site {
    at: u32,
    bytes: u32,
    addr: Addr,
}

fn site(c: &Cx<'_>, at: u32, store: bool) -> Option<Site> {
    match &c.kernel.instructions.get(at as usize)?.op {
        Op::Memory(MemoryOp::Store { space: Space::Shared, width, addr, .. }) if store => {
            Some(Site { at, bytes: width.bytes(), addr: *addr })
        }
        Op::Memory(MemoryOp::Load { space: Space::Shared, width, addr, .. }) if !store => {
            Some(Site { at, bytes: width.bytes(), addr: *addr })
        }
        _ => None,
    }
}

/// All pairs, in code order of the stores.
pub(super) fn pairs(c: &Cx<'_>) -> Vec<Pair> {
    let mut found = Vec::new();
    let stores = (0..c.kernel.instructions.len() as u32).filter(|&at| c.alive(at)).filter_map(|at| site(c, at, true));
    for store in stores.take(STORES) {
        for (load, rewritten) in reached(c, store.at) {
            let Some(load) = site(c, load, false) else { continue };
            for warp in warps(c, store.at, load.at) {
                found.extend(pair(c, &store, &load, warp, &rewritten));
            }
        }
    }
    found
}

/// The warps that can be told apart at two instructions.
fn warps(c: &Cx<'_>, a: u32, b: u32) -> Vec<Option<u32>> {
    let mut list: Vec<Option<u32>> = [a, b]
        .into_iter()
        .flat_map(|i| c.uniformity.lanes(i))
        .map(|l| l.warp)
        .chain(c.uniformity.existing().into_iter().map(|e| e.0))
        .collect();
    list.sort_unstable();
    list.dedup();
    list.truncate(32);
    list
}

/// The lanes of a warp that execute an instruction: those that can be there, less those that its guard is known to stop.
fn executing(c: &Cx<'_>, at: u32, warp: Option<u32>) -> LaneMask {
    let exist = c.existing(warp);
    let known = c.uniformity.lanes(at);
    let pick = |list: &[crate::uniformity::WarpLanes]| {
        let of = |w| list.iter().find(|l| l.warp == w).copied();
        of(warp).or_else(|| of(None))
    };
    let there = match (known.is_empty(), pick(&known)) {
        (true, _) => exist,
        (false, Some(l)) => l.there & exist,
        (false, None) => LaneMask::EMPTY,
    };
    let Some(inst) = c.kernel.instructions.get(at as usize) else { return there };
    let Some(pred) = inst.guard.pred else { return there };
    match c.uniformity.holds(at, Operand::Pred(pred)).as_deref().map(pick) {
        Some(Some(l)) if inst.guard.negated => there - l.taken,
        Some(Some(l)) => there & l.taken,
        _ => there,
    }
}

fn addresses(c: &Cx<'_>, s: &Site, warp: Option<u32>) -> Option<Addresses> {
    let mut out = Addresses { keys: Vec::new(), of: [0; 32] };
    let shift = u32::from(s.addr.scale);
    add(c, s.at, s.addr.base, shift, warp, &mut out)?;
    if let Some((low, _)) = s.addr.uniform {
        add(c, s.at, low, 0, warp, &mut out)?;
    }
    for a in &mut out.of {
        *a = a.wrapping_add(s.addr.offset as u32);
    }
    out.keys.sort_unstable();
    Some(out)
}

fn add(c: &Cx<'_>, at: u32, src: Src, shift: u32, warp: Option<u32>, out: &mut Addresses) -> Option<()> {
    let mut values = [0u32; 32];
    match src.kind {
        SrcKind::Imm(v) => values = [v; 32],
        SrcKind::Const { .. } => return None,
        SrcKind::Slot(slot) => {
            let a = c.uniformity.operand(at, Operand::Slot(slot))?;
            if let Some(v) = a.constant {
                values = [v; 32];
            } else if a.level <= Level::Warp {
                out.keys.push(slot);
            } else if a.level == Level::Lanes {
                let of = |w| a.lanes.iter().find(|l| l.0 == w);
                let lanes = of(warp).or_else(|| of(None))?;
                values.iter_mut().zip(&lanes.1).for_each(|(v, l)| *v = *l);
                if !a.exact {
                    out.keys.push(slot);
                }
            } else {
                return None;
            }
        }
    }
    for (o, v) in out.of.iter_mut().zip(values) {
        *o = o.wrapping_add(src.modifier.apply(v).checked_shl(shift)?);
    }
    Some(())
}

fn pair(c: &Cx<'_>, store: &Site, load: &Site, warp: Option<u32>, rewritten: &HashSet<Slot>) -> Option<Pair> {
    let (a, b) = (addresses(c, store, warp)?, addresses(c, load, warp)?);
    // Symbolic addresses can be compared if they are the same registers with the same content.
    if a.keys != b.keys || a.keys.iter().any(|k| rewritten.contains(k)) {
        return None;
    }
    let (storing, loading) = (executing(c, store.at, warp), executing(c, load.at, warp));
    let (mut readers, mut writers) = (LaneMask::EMPTY, LaneMask::EMPTY);
    // All lanes that store to one place store what all of them may read: only others read what is not theirs.
    let one_place = storing.lanes().all(|l| a.of[l as usize % 32] == a.of[storing.lowest().unwrap_or(0) as usize % 32]);
    for r in loading.lanes().take_while(|&l| l < 32) {
        let at = b.of[r as usize];
        for w in storing.lanes().take_while(|&l| l < 32) {
            let to = a.of[w as usize];
            let overlap = at.wrapping_sub(to) < store.bytes || to.wrapping_sub(at) < load.bytes;
            if overlap && w != r && !(one_place && storing.has(r)) {
                readers = readers | LaneMask::lane(r);
                writers = writers | LaneMask::lane(w);
            }
        }
    }
    let pair = Pair { store: store.at, load: load.at, warp, readers, writers, storing, loading };
    (!readers.is_empty()).then_some(pair)
}

/// The loads of shared memory that can be reached from a store while nothing makes the lanes of a warp wait for each other,
/// and the registers that are written on the way.
fn reached(c: &Cx<'_>, store: u32) -> Vec<(u32, HashSet<Slot>)> {
    let cfg = &c.structure.cfg;
    let mut loads: Vec<(u32, HashSet<Slot>)> = Vec::new();
    let mut seen = HashSet::new();
    let Some(block) = cfg.block(store) else { return loads };
    let mut open = vec![(block, store + 1, HashSet::new())];
    let mut work = 0;
    while let Some((block, from, mut written)) = open.pop() {
        let Some(b) = cfg.blocks.get(block as usize) else { continue };
        let mut through = true;
        for i in from..b.first + b.len {
            work += 1;
            let Some(inst) = c.kernel.instructions.get(i as usize) else { break };
            if work > WAYS || stops(c, i) {
                through = false;
                break;
            }
            if site(c, i, false).is_some() {
                match loads.iter_mut().find(|l| l.0 == i) {
                    // Reached twice: only what holds on all the ways that were seen is taken for granted.
                    Some(l) => l.1.extend(&written),
                    None => loads.push((i, written.clone())),
                }
            }
            inst.for_each_slot(|s, a| {
                if a == Access::Write {
                    written.insert(s);
                }
            });
        }
        if through && work <= WAYS {
            for &next in cfg.graph.successors(block) {
                if let Some(first) = cfg.blocks.get(next as usize).map(|b| b.first)
                    && seen.insert(next)
                {
                    open.push((next, first, written.clone()));
                }
            }
        }
    }
    loads
}

/// Whether an instruction makes the lanes of a warp wait for each other, or leads out of what is followed here.
fn stops(c: &Cx<'_>, at: u32) -> bool {
    let Some(inst) = c.kernel.instructions.get(at as usize) else { return true };
    match &inst.op {
        Op::Warp(w) => matches!(
            w,
            WarpOp::BlockBarrier { .. }
                | WarpOp::Shuffle { .. }
                | WarpOp::Vote { .. }
                | WarpOp::Match { .. }
                | WarpOp::Reduce { .. }
        ),
        Op::Control(op) => matches!(
            op,
            ControlOp::WarpSync { .. }
                | ControlOp::BranchDivergent { .. }
                | ControlOp::BranchConverged { .. }
                | ControlOp::Call { .. }
                | ControlOp::CallIndirect { .. }
                | ControlOp::CallExternal { .. }
                | ControlOp::Return { .. }
                | ControlOp::Trap
        ),
        // What ptxas leaves of a `__syncwarp` where it has proved that the lanes are together.
        Op::Nop => c.is_sass() && c.kernel.text.get(at as usize).is_some_and(|t| t.trim() == "NOP"),
        Op::Unsupported(u) => u.has_effects,
        Op::Lane(_) | Op::Memory(_) => false,
    }
}
