//! What one instruction does to the abstract state.

use std::sync::Arc;

use lanescope_ir::op::control::ControlOp;
use lanescope_ir::op::memory::{Addr, MemoryOp, Space, Width};
use lanescope_ir::op::warp::{ShuffleMode, SpecialReg, VoteMode, WarpOp};
use lanescope_ir::op::{Op, SrcKind};
use lanescope_ir::{Pred, Slot, Src};

use super::Level;
use super::eval::{In, Place};
use super::solve::{Solver, Val};
use super::value::{Leaf, LeafKey, Set, Value, meet, single};

/// Destinations and what they get.
type Writes = Vec<(u32, Value)>;

impl Solver {
    /// A source word.
    pub(super) fn source(&mut self, s: Src, set: &[u32]) -> In {
        let value = match s.kind {
            SrcKind::Imm(n) => Value::number(n),
            SrcKind::Slot(slot) => self.cur.get(slot.index()).map_or(Value::Divergent, |v| v.value),
            SrcKind::Const { bank, offset } => self.words.word(&mut self.d, bank, offset),
        };
        let i = self.d.input(value, set);
        self.d.modified(i, s.modifier, set)
    }

    /// Executes instruction `at` of block `b`, where the threads of `set` can be.
    pub(super) fn step(&mut self, at: u32, b: u32, set: &Set) {
        let kernel = Arc::clone(&self.kernel);
        let Some(inst) = kernel.instructions.get(at as usize) else { return };
        let guard = self.predicate(inst.guard, set);
        if guard.value.constant() == Some(0) {
            return;
        }
        let executing = match self.d.holds(guard.value, set) {
            Some(holds) => meet(set, &holds, true),
            None => set.clone(),
        };
        let place = Place { inst: at, block: b, set: &executing };
        let mut writes = Writes::new();
        match &inst.op {
            Op::Nop => {}
            Op::Lane(op) => {
                let src = op.src.map(|s| self.source(s, &executing));
                let psrc = op.psrc.map(|p| self.predicate(p, &executing));
                let (words, preds) = self.d.lane(op, &src, &psrc, &place);
                words.into_iter().zip(op.dst).for_each(|(v, d)| self.word(&mut writes, d, v));
                preds.into_iter().zip(op.pdst).for_each(|(v, p)| self.pred(&mut writes, p, v));
            }
            Op::Memory(op) => self.memory(op, &place, &mut writes),
            Op::Warp(op) => self.warp(op, &place, &mut writes),
            Op::Control(ControlOp::BarrierRead { dst, .. }) => {
                let v = self.issue(&place, 0, u32::MAX);
                self.word(&mut writes, *dst, v);
            }
            Op::Control(ControlOp::CallExternal { name, result, .. }) => {
                if !never_returns(name) {
                    self.forget(at);
                }
                result.iter().for_each(|d| self.word(&mut writes, Some(*d), Value::Divergent));
            }
            Op::Control(_) => {}
            Op::Unsupported(u) => {
                u.dst.iter().for_each(|d| self.word(&mut writes, Some(*d), Value::Divergent));
                u.pdst.iter().for_each(|p| self.pred(&mut writes, Some(*p), Value::Divergent));
            }
        }
        for (out, (r, new)) in writes.into_iter().enumerate() {
            let out = out as u8;
            let uniform = self.uniform.has(r);
            let mut new = new;
            let hidden = !matches!(new, Value::Words(..)) || self.d.level(new, &executing).is_none();
            if inst.uniform && hidden || new == Value::Divergent && single(&executing) {
                let max = if r >= self.net.slots { 1 } else { u32::MAX };
                new = self.leaf(LeafKey::Result(at, 32 + out), &place, Level::Warp, false, max, inst.uniform);
            }
            let old = self.cur.get(r as usize).map_or(Value::Undef, |v| v.value);
            let mut value = self.blend(guard, old, new, &place, set, 64 + out, uniform, r);
            if !uniform && self.late(b, value) {
                value = Value::Divergent;
            }
            if let Some(cur) = self.cur.get_mut(r as usize) {
                *cur = Val { value, site: at };
            }
        }
    }

    fn word(&self, writes: &mut Writes, d: Option<Slot>, v: Value) {
        if let Some(d) = d {
            writes.push((d.0.into(), v));
        }
    }

    fn pred(&self, writes: &mut Writes, p: Option<Pred>, v: Value) {
        if let Some(p) = p {
            writes.push((self.net.slots + u32::from(p.0), v));
        }
    }

    fn leaf(&mut self, key: LeafKey, place: &Place, level: Level, fixed: bool, max: u32, issue: bool) -> Value {
        self.d.leaf(Leaf { key, level, fixed, block: place.block, max, align: 0, issue })
    }

    /// A result that lanes which execute together share, and that another issue may find different.
    fn issue(&mut self, place: &Place, out: u8, max: u32) -> Value {
        let uniform = self.kernel.instructions.get(place.inst as usize).is_some_and(|i| i.uniform);
        if !uniform && self.apart.joined.get(place.block as usize).is_some_and(Option::is_some) {
            return Value::Divergent;
        }
        self.leaf(LeafKey::Result(place.inst, out), place, Level::Warp, false, max, true)
    }

    /// After something that may change any register.
    fn forget(&mut self, at: u32) {
        for v in &mut self.cur {
            *v = Val { value: Value::Divergent, site: at };
        }
    }

    /// What a guarded write leaves.
    #[allow(clippy::too_many_arguments)] // One place calls it.
    fn blend(
        &mut self,
        guard: In,
        old: Value,
        new: Value,
        place: &Place,
        set: &Set,
        out: u8,
        uniform: bool,
        r: u32,
    ) -> Value {
        if guard.value.constant() == Some(1) || old == new && matches!(new, Value::Words(..)) {
            return new;
        }
        let max = if r >= self.net.slots { 1 } else { u32::MAX };
        let (a, b) = (self.d.input(new, place.set), self.d.input(old, set));
        if let Some(v) = self.d.select(guard, a, b) {
            return v;
        }
        let key = LeafKey::Guarded(place.inst, out);
        let old_level = if old == Value::Undef { Some(Level::Grid) } else { b.level };
        match (guard.level, a.level, old_level) {
            (Some(g), Some(n), Some(o)) => {
                let fixed = guard.fixed && a.fixed && b.fixed;
                self.leaf(key, place, g.max(n).max(o), fixed, max, false)
            }
            _ if uniform => self.leaf(key, place, Level::Warp, false, max, true),
            _ => Value::Divergent,
        }
    }

    /// How far an address is the same.
    fn address(&mut self, a: &Addr, set: &[u32]) -> (Option<Level>, bool, Option<i64>) {
        let mut parts = vec![self.source(a.base, set)];
        parts.extend(a.base_hi.map(|s| self.source(s, set)));
        if let Some((lo, hi)) = a.uniform {
            parts.push(self.source(lo, set));
            parts.push(self.source(hi, set));
        }
        let level = parts.iter().try_fold(Level::Grid, |l, p| Some(l.max(p.level?)));
        let fixed = parts.iter().all(|p| p.fixed);
        let low = |i: usize| parts.get(i).and_then(|p| p.value.constant()).map(i64::from);
        let uniform = if a.uniform.is_some() { low(usize::from(a.base_hi.is_some()) + 1) } else { Some(0) };
        let constant =
            low(0).zip(uniform).and_then(|(b, u)| b.checked_shl(a.scale.into())?.checked_add(u)?.checked_add(a.offset));
        (level, fixed, constant)
    }

    /// A word of global memory. If nothing writes to the argument it belongs to, all warps find the same in one place.
    fn loaded(&mut self, addr: &Addr, place: &Place, out: u8, max: u32, level: Level) -> Value {
        let v = self.issue(place, out, max);
        let Some(written) = &self.written else { return v };
        let base = match addr.base.kind {
            SrcKind::Slot(slot) => self.cur.get(slot.index()).map_or(Value::Divergent, |v| v.value),
            SrcKind::Const { .. } => return v,
            SrcKind::Imm(_) => return v,
        };
        let pointers =
            super::witness::parameters(self, base).into_iter().filter(|&p| self.is_pointer(p)).collect::<Vec<_>>();
        match (v, &pointers[..]) {
            (Value::Words(..), [p]) if !written.contains(p) => {
                self.leaf(LeafKey::Fixed(place.inst, out), place, level, false, max, true)
            }
            _ => v,
        }
    }

    fn is_pointer(&self, ordinal: u32) -> bool {
        self.kernel.params.iter().any(|p| p.ordinal == ordinal && p.size >= 8)
    }

    fn memory(&mut self, op: &MemoryOp, place: &Place, writes: &mut Writes) {
        match op {
            MemoryOp::Load { space, width, dst, addr, valid } => {
                let (level, fixed, constant) = self.address(addr, place.set);
                let valid = self.predicate(*valid, place.set);
                let max = match width {
                    Width::U8 => 0xff,
                    Width::U16 => 0xffff,
                    _ => u32::MAX,
                };
                for (i, d) in dst.iter().take(width.slots()).enumerate() {
                    let v = match (space, level.zip(valid.level)) {
                        (Space::Const(bank), Some((level, l2))) => {
                            let at = constant.and_then(|c| u32::try_from(c + 4 * i as i64).ok());
                            let word = matches!(width, Width::B32 | Width::B64 | Width::B128 | Width::B256);
                            match at.filter(|a| word && a.is_multiple_of(4) && valid.value.constant() == Some(1)) {
                                Some(at) => self.words.word(&mut self.d, *bank, at),
                                None => {
                                    let key = LeafKey::Result(place.inst, i as u8);
                                    self.leaf(key, place, level.max(l2), fixed && valid.fixed, max, false)
                                }
                            }
                        }
                        (Space::Shared, Some(_)) => self.issue(place, i as u8, max),
                        (Space::Global, Some((level, l2))) => self.loaded(addr, place, i as u8, max, level.max(l2)),
                        (Space::Generic, Some((level, l2))) if self.no_local_pointers => {
                            self.loaded(addr, place, i as u8, max, level.max(l2))
                        }
                        _ => Value::Divergent,
                    };
                    self.word(writes, *d, v);
                }
            }
            MemoryOp::Store { .. } | MemoryOp::Copy { .. } | MemoryOp::StoreMatrix { .. } => {}
            MemoryOp::LoadMatrix { dst, .. } => dst.iter().for_each(|d| self.word(writes, *d, Value::Divergent)),
            MemoryOp::Atomic { dst, pdst, .. } => {
                dst.iter().for_each(|d| self.word(writes, *d, Value::Divergent));
                self.pred(writes, *pdst, Value::Divergent);
            }
            MemoryOp::QuerySpace { pdst, dst, addr, .. } => {
                let (level, fixed, _) = self.address(addr, place.set);
                for (i, preds) in [false, true].into_iter().enumerate() {
                    let v = match level {
                        Some(level) => self.leaf(LeafKey::Result(place.inst, i as u8), place, level, fixed, 1, false),
                        None => Value::Divergent,
                    };
                    if preds {
                        self.pred(writes, *pdst, v);
                    } else {
                        self.word(writes, *dst, v);
                    }
                }
            }
        }
    }

    fn warp(&mut self, op: &WarpOp, place: &Place, writes: &mut Writes) {
        let set = place.set;
        match op {
            WarpOp::Special { dst, reg } => {
                for (i, (d, reg)) in dst.iter().zip(reg).enumerate() {
                    let v = match reg {
                        SpecialReg::ClockLo
                        | SpecialReg::ClockHi
                        | SpecialReg::GlobalTimerLo
                        | SpecialReg::GlobalTimerHi => self.issue(place, i as u8, u32::MAX),
                        _ => self.words.special(&mut self.d, *reg),
                    };
                    self.word(writes, *d, v);
                }
            }
            WarpOp::Shuffle { mode, dst, pdst, lane, clamp, .. } => {
                let (lane, clamp) = (self.source(*lane, set), self.source(*clamp, set));
                // From one lane for all, whose number is in range.
                let fixed = *mode == ShuffleMode::Idx
                    && lane.level.is_some()
                    && clamp.value.constant().is_some_and(|c| c & 0x1f1f == 0x1f);
                let v = if fixed { self.issue(place, 0, u32::MAX) } else { Value::Divergent };
                self.word(writes, *dst, v);
                let v = if fixed { Value::number(1) } else { self.in_range(*mode, lane, clamp) };
                self.pred(writes, *pdst, v);
            }
            WarpOp::Vote { mode, dst, pdst, src } => {
                let p = self.predicate(*src, set);
                let ballot = self.issue(place, 0, u32::MAX);
                self.word(writes, *dst, ballot);
                let known = match (mode, p.value.constant()) {
                    (VoteMode::All | VoteMode::Any, Some(x)) => Some(Value::number(x)),
                    (VoteMode::Eq, _) if p.level.is_some() => Some(Value::number(1)),
                    // The same for all: so is the outcome.
                    (VoteMode::All | VoteMode::Any, None) if p.level.is_some() => Some(p.value),
                    _ => None,
                };
                let v = known.unwrap_or_else(|| self.issue(place, 1, 1));
                self.pred(writes, *pdst, v);
            }
            WarpOp::Match { all, dst, pdst, src } => {
                let same = src.iter().all(|s| self.source(*s, set).level.is_some());
                let v = if *all || same { self.issue(place, 0, u32::MAX) } else { Value::Divergent };
                self.word(writes, *dst, v);
                let v = match (*all, same) {
                    (true, false) => self.issue(place, 1, 1),
                    _ => Value::number(1),
                };
                self.pred(writes, *pdst, v);
            }
            WarpOp::Reduce { dst, pdst, .. } => {
                let v = self.issue(place, 0, u32::MAX);
                self.word(writes, *dst, v);
                let v = self.issue(place, 1, 1);
                self.pred(writes, *pdst, v);
            }
            WarpOp::Broadcast { dst, pdst, src } => {
                let mut same = true;
                for (i, (d, s)) in dst.iter().zip(src).enumerate() {
                    let s = self.source(*s, set);
                    same &= s.level.is_some();
                    let flat = matches!(s.value, Value::Words(_, super::value::Tab::Const(_)));
                    let v = match s.level {
                        Some(_) if flat => s.value,
                        Some(level) if matches!(s.value, Value::Words(..)) => {
                            self.leaf(LeafKey::Result(place.inst, i as u8), place, level, s.fixed, u32::MAX, false)
                        }
                        _ => self.leaf(LeafKey::Result(place.inst, i as u8), place, Level::Warp, false, u32::MAX, true),
                    };
                    self.word(writes, *d, v);
                }
                self.pred(writes, *pdst, if same { Value::number(0) } else { Value::Divergent });
            }
            WarpOp::Elect { dst, pdst, .. } => {
                let v = self.issue(place, 0, u32::MAX);
                self.word(writes, *dst, v);
                self.pred(writes, *pdst, Value::Divergent);
            }
            WarpOp::Mma(op) => op.d.iter().for_each(|d| self.word(writes, *d, Value::Divergent)),
            WarpOp::Transpose { dst, .. } => self.word(writes, *dst, Value::Divergent),
            WarpOp::ActiveMask { dst } => {
                let v = self.issue(place, 0, u32::MAX);
                self.word(writes, *dst, v);
            }
            WarpOp::PackPreds { dst, preds, merge, mask, .. } => {
                let mask = self.source(*mask, set);
                let chosen = mask.value.constant().unwrap_or(0xff);
                let mut inputs = vec![self.source(*merge, set), mask];
                for (i, p) in preds.iter().enumerate() {
                    if chosen >> i & 1 != 0 {
                        inputs.push(self.predicate(*p, set));
                    }
                }
                let v = self.d.opaque(place, 0, &inputs, u32::MAX);
                self.word(writes, *dst, v);
            }
            WarpOp::UnpackPreds { preds, byte, src, mask } => {
                let (src, mask) = (self.source(*src, set), self.source(*mask, set));
                for (i, p) in preds.iter().enumerate() {
                    let bit = u32::from(*byte % 4) * 8 + i as u32;
                    let v = match mask.value.constant() {
                        Some(m) if m >> i & 1 == 0 => continue,
                        Some(_) => match src.value {
                            Value::Words(0, tab) => self.d.table(0, |d, t| d.at(tab, t) >> bit & 1),
                            _ => self.d.opaque(place, 8 + i as u8, &[src], 1),
                        },
                        None => {
                            let old = p.map_or(Value::Undef, |p| {
                                self.cur
                                    .get((self.net.slots + u32::from(p.0)) as usize)
                                    .map_or(Value::Divergent, |v| v.value)
                            });
                            let old = self.d.input(old, set);
                            self.d.opaque(place, 8 + i as u8, &[src, mask, old], 1)
                        }
                    };
                    self.pred(writes, *p, v);
                }
            }
            WarpOp::BlockBarrier { .. } => {}
            WarpOp::BarrierResult { dst, pdst } => {
                let v = self.issue(place, 0, u32::MAX);
                self.word(writes, *dst, v);
                let v = self.issue(place, 1, 1);
                self.pred(writes, *pdst, v);
            }
            WarpOp::CodeAddress { dst, addr } => {
                self.word(writes, dst[0], Value::number(*addr as u32));
                self.word(writes, dst[1], Value::number((*addr >> 32) as u32));
            }
        }
    }

    /// The predicate of a shuffle: whether the source lane is in range.
    fn in_range(&mut self, mode: ShuffleMode, lane: In, clamp: In) -> Value {
        let (Value::Words(0, lane), Value::Words(0, clamp)) = (lane.value, clamp.value) else {
            return Value::Divergent;
        };
        self.d.table(0, |d, t| {
            let (l, b, c) = (t as u32 % 32, d.at(lane, t) & 31, d.at(clamp, t));
            let (limit, segment) = (c & 31, c >> 8 & 31);
            let (min, max) = (l & segment, l & segment | limit & !segment);
            let inside = match mode {
                ShuffleMode::Up => i64::from(l) - i64::from(b) >= i64::from(max),
                ShuffleMode::Down => l + b <= max,
                ShuffleMode::Bfly => l ^ b <= max,
                ShuffleMode::Idx => (min | b & !segment) <= max,
            };
            inside.into()
        })
    }
}

/// Functions that end the launch.
pub(super) fn never_returns(name: &str) -> bool {
    matches!(name, "__assertfail" | "abort" | "__trap" | "exit")
}
