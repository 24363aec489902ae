//! Unknown values: what comes from instructions that are not implemented, and where it goes.
//!
//! A slow companion of execution, used only for kernels with such instructions and only on request. Before an instruction
//! is executed its unknown sources make its results unknown, lane by lane where the operation keeps lanes apart. An unknown
//! value that would decide a branch, an address or whether memory is written stops the launch.

use std::collections::{BTreeMap, BTreeSet};

use lanescope_ir::Op;
use lanescope_ir::op::effects::Access;
use lanescope_ir::op::memory::{Addr, AtomType, MemoryOp, Space};
use lanescope_ir::op::warp::WarpOp;

use super::program::{Inst, Kind, MemKind};
use super::{BlockCx, Where, mem};
use crate::error::SimError;
use crate::launch::UnknownBytes;
use crate::memory::GlobalMemory;
use crate::memory::words::lanes;
use crate::rows::RowFile;

/// Which memory an address belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Global,
    Shared,
    /// Of one thread: its row of lanes in the block, and the lane.
    Local(u32, u32),
}

/// What is unknown at the moment.
#[derive(Default)]
pub(crate) struct Poison {
    /// Lanes of each register and row of lanes of the block.
    slots: BTreeMap<(u16, u32), u32>,
    preds: BTreeMap<(u16, u32), u32>,
    bytes: BTreeSet<(Place, u64)>,
}

impl Poison {
    /// A new block: only global memory lasts.
    pub(crate) fn clear(&mut self) {
        self.slots.clear();
        self.preds.clear();
        self.bytes.retain(|(place, _)| *place == Place::Global);
    }

    fn set(map: &mut BTreeMap<(u16, u32), u32>, key: (u16, u32), lanes: u32, unknown: u32) {
        let now = map.get(&key).copied().unwrap_or(0) & !lanes | unknown & lanes;
        if now == 0 {
            map.remove(&key);
        } else {
            map.insert(key, now);
        }
    }

    /// The instruction is about to be executed.
    pub(crate) fn step(
        &mut self,
        block: &BlockCx<'_>,
        file: &RowFile,
        at: Where,
        inst: &Inst,
        active: u32,
        exec: u32,
    ) -> Result<(), SimError> {
        let source = &block.cx.kernel.instructions[at.inst as usize];
        let (slots, preds, warp) = (&self.slots, &self.preds, at.row());
        let unknown_pred = |p: u16| preds.get(&(p, warp)).copied().unwrap_or(0);
        let mut from = 0;
        source.for_each_slot(|s, a| {
            if a == Access::Read {
                from |= slots.get(&(s.0, warp)).copied().unwrap_or(0);
            }
        });
        let guard = source.guard.pred.map_or(0, |p| unknown_pred(p.0)) & active;
        let mut from_preds = 0;
        source.for_each_pred(|p, a| {
            if a == Access::Read {
                from_preds |= unknown_pred(p.0);
            }
        });
        let stop = |what, lanes: u32| {
            Err(SimError::UnknownValue { site: Box::new(block.site(at)), what, lanes: at.lanes(lanes) })
        };
        // Lanes that may execute: an unknown guard may hold.
        let may = if source.uniform && exec | guard != 0 { u32::MAX } else { exec | guard };
        let spread = |m: u32| if source.uniform && m != 0 { u32::MAX } else { m };
        let mut result = spread((from | from_preds) & may | guard);
        match &source.op {
            Op::Nop => return Ok(()),
            Op::Lane(_) => {}
            Op::Unsupported(u) => {
                if u.has_effects {
                    return Ok(());
                }
                result = may;
            }
            Op::Control(_) => {
                let bad = (from | from_preds) & active;
                return if bad != 0 { stop("a branch or a wait", bad) } else { Ok(()) };
            }
            Op::Warp(op) => {
                let bad = (from | from_preds) & active;
                match op {
                    WarpOp::BlockBarrier { .. } if bad != 0 => return stop("a block barrier", bad),
                    WarpOp::Special { .. } | WarpOp::PackPreds { .. } | WarpOp::UnpackPreds { .. } => {}
                    _ if bad != 0 => result = u32::MAX,
                    _ => result = 0,
                }
            }
            Op::Memory(op) => result = self.memory(block, file, at, inst, op, exec, guard, result)?,
        }
        let write = if matches!(source.op, Op::Warp(_)) && source.uniform { u32::MAX } else { may };
        let (slots, preds) = (&mut self.slots, &mut self.preds);
        source.for_each_slot(|s, a| {
            if a == Access::Write {
                Self::set(slots, (s.0, warp), write, result);
            }
        });
        source.for_each_pred(|p, a| {
            if a == Access::Write {
                Self::set(preds, (p.0, warp), write, result);
            }
        });
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn memory(
        &mut self,
        block: &BlockCx<'_>,
        file: &RowFile,
        at: Where,
        inst: &Inst,
        op: &MemoryOp,
        exec: u32,
        guard: u32,
        result: u32,
    ) -> Result<u32, SimError> {
        let stop = |what, lanes: u32| {
            Err(SimError::UnknownValue { site: Box::new(block.site(at)), what, lanes: at.lanes(lanes) })
        };
        let Kind::Memory(m) = &inst.kind else { return Ok(result) };
        let (MemoryOp::Load { addr, .. }
        | MemoryOp::Store { addr, .. }
        | MemoryOp::Atomic { addr, .. }
        | MemoryOp::Copy { from: addr, .. }
        | MemoryOp::LoadMatrix { addr, .. }
        | MemoryOp::StoreMatrix { addr, .. }
        | MemoryOp::QuerySpace { addr, .. }) = op;
        let unknown = |addr: &Addr| {
            let parts = [Some(addr.base), addr.base_hi, addr.uniform.map(|u| u.0), addr.uniform.map(|u| u.1)];
            let slots = parts.into_iter().flatten().filter_map(|s| s.read());
            slots.fold(0, |m, s| m | self.slots.get(&(s.0, at.row())).copied().unwrap_or(0))
        };
        let mut address = unknown(addr);
        if let MemoryOp::Copy { to, .. } = op {
            address |= unknown(to);
        }
        if address & exec != 0 {
            return stop("an address", address & exec);
        }
        if guard != 0 {
            return stop("whether memory is accessed", guard);
        }
        let wide = matches!(m.space, Space::Global | Space::Generic);
        let addresses = mem::addresses(file, block, &m.addr, wide, at.index);
        let place = |l: usize| -> Option<(Place, u64)> {
            let a = addresses[l];
            let thread = Place::Local(at.row(), l as u32);
            Some(match m.space {
                Space::Global => (Place::Global, a),
                Space::Shared => (Place::Shared, a),
                Space::Local => (thread, a),
                Space::Generic => match (a >> 32) as u32 {
                    crate::launch::SHARED_WINDOW_HI => (Place::Shared, a & u64::from(u32::MAX)),
                    crate::launch::LOCAL_WINDOW_HI => (thread, a & u64::from(u32::MAX)),
                    _ => (Place::Global, a),
                },
                Space::Const(_) => return None,
            })
        };
        let bytes = match &m.kind {
            MemKind::Load { width, .. } | MemKind::Store { width, .. } => width.bytes(),
            MemKind::Atomic { ty: AtomType::B16, .. } => 2,
            MemKind::Atomic { ty, .. } => ty.slots() as u32 * 4,
            MemKind::Query { .. } => return Ok(result),
            MemKind::Copy(c) => {
                let to = mem::addresses(file, block, &c.to, false, at.index);
                for l in lanes(exec) {
                    let there = |b: u64| self.bytes.contains(&(Place::Global, addresses[l].saturating_add(b)));
                    let size = u64::from(c.width.bytes());
                    // Whether and how much is copied may depend on an unknown value.
                    let bad: Vec<bool> = (0..size).map(|b| result >> l & 1 != 0 || there(b)).collect();
                    for (b, bad) in bad.into_iter().enumerate() {
                        self.set_byte((Place::Shared, to[l].saturating_add(b as u64)), bad);
                    }
                }
                return Ok(0);
            }
            MemKind::Tiles(t) => {
                // Every lane gets something from many lanes' rows.
                let rows = lanes(exec).take(8 * usize::from(t.count));
                let bytes = |l: usize| {
                    let first = place(l);
                    (0..16).filter_map(move |b| first.map(|(p, a)| (p, a.saturating_add(b))))
                };
                let bytes: Vec<_> = rows.flat_map(bytes).collect();
                if t.src.is_some() {
                    bytes.into_iter().for_each(|b| self.set_byte(b, result != 0));
                    return Ok(0);
                }
                let any = result != 0 || bytes.iter().any(|b| self.bytes.contains(b));
                return Ok(if any { u32::MAX } else { 0 });
            }
        };
        let mut unknown = result;
        for l in lanes(exec) {
            let Some((p, a)) = place(l) else { continue };
            let range = (p, a)..(p, a.saturating_add(bytes.into()));
            let there = self.bytes.range(range).next().is_some();
            match &m.kind {
                MemKind::Load { .. } => unknown |= u32::from(there) << l,
                MemKind::Store { .. } | MemKind::Atomic { .. } => {
                    let atomic = matches!(m.kind, MemKind::Atomic { .. });
                    let bad = result >> l & 1 != 0 || (atomic && there);
                    for b in a..a.saturating_add(bytes.into()) {
                        if bad {
                            self.bytes.insert((p, b));
                        } else {
                            self.bytes.remove(&(p, b));
                        }
                    }
                    unknown |= u32::from(bad) << l;
                }
                MemKind::Query { .. } | MemKind::Copy(_) | MemKind::Tiles(_) => {}
            }
        }
        Ok(unknown)
    }

    /// Lanes of a row of the block whose value in a register is unknown.
    pub(crate) fn of_register(&self, slot: u32, row: u32) -> u32 {
        self.slots.get(&(slot as u16, row)).copied().unwrap_or(0)
    }

    fn set_byte(&mut self, at: (Place, u64), unknown: bool) {
        if unknown {
            self.bytes.insert(at);
        } else {
            self.bytes.remove(&at);
        }
    }

    /// Unknown bytes of global memory, by buffer.
    pub(crate) fn unknown(&self, memory: &GlobalMemory) -> Vec<UnknownBytes> {
        let mut out: Vec<UnknownBytes> = Vec::new();
        for &(_, a) in self.bytes.iter().filter(|(p, _)| *p == Place::Global) {
            let Some(r) = memory.find(a, 1, 0).map(|i| &memory.regions[i]) else { continue };
            if out.last().is_none_or(|u| u.address != r.base) {
                out.push(UnknownBytes { buffer: r.name.clone(), address: r.base, ranges: Vec::new() });
            }
            let Some(u) = out.last_mut() else { continue };
            let off = a - r.base;
            match u.ranges.last_mut() {
                Some(last) if last.1 == off => last.1 = off + 1,
                _ => u.ranges.push((off, off + 1)),
            }
        }
        out
    }
}
