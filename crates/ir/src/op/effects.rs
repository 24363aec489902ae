//! Which registers and predicates an instruction reads and writes: for the verifier, slices, unknown-value
//! tracking and slot renumbering.

use super::control::{ControlOp, Indirect, WarpSyncMode};
use super::memory::{Addr, Amount, MemoryOp};
use super::warp::WarpOp;
use super::{Op, PredSrc, Src, SrcKind};
use crate::ids::{Pred, Slot};
use crate::kernel::Instruction;

/// Read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The value is read.
    Read,
    /// The value is written (perhaps not in all lanes).
    Write,
}

/// What a walk over an instruction's operands visits. Methods do nothing unless overridden.
pub trait Visit {
    /// A source word.
    fn src(&mut self, _: &mut Src) {}
    /// A destination word.
    fn dst(&mut self, _: &mut Option<Slot>) {}
    /// A source predicate.
    fn psrc(&mut self, _: &mut PredSrc) {}
    /// A destination predicate.
    fn pdst(&mut self, _: &mut Option<Pred>) {}
}

fn address(a: &mut Addr, v: &mut impl Visit) {
    v.src(&mut a.base);
    if let Some(hi) = &mut a.base_hi {
        v.src(hi);
    }
    if let Some((lo, hi)) = &mut a.uniform {
        v.src(lo);
        v.src(hi);
    }
}

fn indirect(t: &mut Indirect, v: &mut impl Visit) {
    t.reg.iter_mut().for_each(|s| v.src(s));
}

fn memory(op: &mut MemoryOp, v: &mut impl Visit) {
    match op {
        MemoryOp::Load { width, dst, addr, valid, .. } => {
            address(addr, v);
            v.psrc(valid);
            dst.iter_mut().take(width.slots()).for_each(|d| v.dst(d));
        }
        MemoryOp::Store { width, src, addr, .. } => {
            address(addr, v);
            src.iter_mut().take(width.slots()).for_each(|s| v.src(s));
        }
        MemoryOp::Atomic { dst, pdst, addr, src, compare, .. } => {
            address(addr, v);
            src.iter_mut().chain(compare).for_each(|s| v.src(s));
            dst.iter_mut().for_each(|d| v.dst(d));
            v.pdst(pdst);
        }
        MemoryOp::Copy { to, from, valid, amount, .. } => {
            address(to, v);
            address(from, v);
            v.psrc(valid);
            if let Amount::First(bytes) = amount {
                v.src(bytes);
            }
        }
        MemoryOp::LoadMatrix { dst, addr, .. } => {
            address(addr, v);
            dst.iter_mut().for_each(|d| v.dst(d));
        }
        MemoryOp::StoreMatrix { src, addr, .. } => {
            address(addr, v);
            src.iter_mut().for_each(|s| v.src(s));
        }
        MemoryOp::QuerySpace { pdst, dst, addr, .. } => {
            address(addr, v);
            v.dst(dst);
            v.pdst(pdst);
        }
    }
}

fn warp(op: &mut WarpOp, v: &mut impl Visit) {
    match op {
        WarpOp::Special { dst, .. } | WarpOp::CodeAddress { dst, .. } => dst.iter_mut().for_each(|d| v.dst(d)),
        WarpOp::Shuffle { dst, pdst, src, lane, clamp, .. } => {
            v.src(src);
            v.src(lane);
            v.src(clamp);
            v.dst(dst);
            v.pdst(pdst);
        }
        WarpOp::Vote { dst, pdst, src, .. } => {
            v.psrc(src);
            v.dst(dst);
            v.pdst(pdst);
        }
        WarpOp::Match { dst, pdst, src, .. } => {
            src.iter_mut().for_each(|s| v.src(s));
            v.dst(dst);
            v.pdst(pdst);
        }
        WarpOp::Reduce { dst, pdst, src, .. } => {
            v.src(src);
            v.dst(dst);
            v.pdst(pdst);
        }
        WarpOp::Broadcast { dst, pdst, src } => {
            src.iter_mut().for_each(|s| v.src(s));
            dst.iter_mut().for_each(|d| v.dst(d));
            v.pdst(pdst);
        }
        WarpOp::Elect { src, dst, pdst } => {
            v.psrc(src);
            v.dst(dst);
            v.pdst(pdst);
        }
        WarpOp::BarrierResult { dst, pdst } => {
            v.dst(dst);
            v.pdst(pdst);
        }
        WarpOp::Mma(op) => {
            op.a.iter_mut().chain(&mut op.b).chain(&mut op.c).for_each(|s| v.src(s));
            op.d.iter_mut().for_each(|d| v.dst(d));
        }
        WarpOp::Transpose { dst, src } => {
            v.src(src);
            v.dst(dst);
        }
        WarpOp::ActiveMask { dst } => v.dst(dst),
        WarpOp::PackPreds { dst, preds, merge, mask, .. } => {
            preds.iter_mut().for_each(|p| v.psrc(p));
            v.src(merge);
            v.src(mask);
            v.dst(dst);
        }
        WarpOp::UnpackPreds { preds, src, mask, .. } => {
            v.src(src);
            v.src(mask);
            preds.iter_mut().for_each(|p| v.pdst(p));
        }
        WarpOp::BlockBarrier { id, threads, pred, .. } => {
            v.src(id);
            if let Some(t) = threads {
                v.src(t);
            }
            v.psrc(pred);
        }
    }
}

fn control(op: &mut ControlOp, v: &mut impl Visit) {
    match op {
        ControlOp::Branch { cond, .. }
        | ControlOp::Call { cond, .. }
        | ControlOp::Exit { cond }
        | ControlOp::SyncSet { cond, .. }
        | ControlOp::Sync { cond, .. }
        | ControlOp::Break { cond, .. } => v.psrc(cond),
        ControlOp::BranchDivergent { mask, cond, .. } | ControlOp::BranchConverged { mask, cond, .. } => {
            v.psrc(cond);
            if let Some(m) = mask {
                v.src(m);
            }
        }
        ControlOp::BranchIndirect { target, cond }
        | ControlOp::CallIndirect { target, cond }
        | ControlOp::Return { target, cond } => {
            v.psrc(cond);
            indirect(target, v);
        }
        ControlOp::CallExternal { cond, args, result, .. } => {
            v.psrc(cond);
            args.iter_mut().flatten().for_each(|s| v.src(s));
            v.dst(result);
        }
        ControlOp::BarrierRead { dst, .. } => v.dst(dst),
        ControlOp::BarrierWrite { src, .. } => v.src(src),
        ControlOp::WarpSync { mode, cond } => {
            v.psrc(cond);
            match mode {
                WarpSyncMode::Mask(m) | WarpSyncMode::Collective(m, _) | WarpSyncMode::Exclusive(m) => v.src(m),
                WarpSyncMode::All => {}
            }
        }
        ControlOp::EndCollective | ControlOp::Yield | ControlOp::Sleep | ControlOp::Trap | ControlOp::Breakpoint => {}
    }
}

impl Instruction {
    /// Visits every operand, guard first, sources before destinations.
    pub fn visit(&mut self, v: &mut impl Visit) {
        v.psrc(&mut self.guard);
        match &mut self.op {
            Op::Nop => {}
            Op::Lane(op) => {
                op.src.iter_mut().for_each(|s| v.src(s));
                op.psrc.iter_mut().for_each(|p| v.psrc(p));
                op.dst.iter_mut().for_each(|d| v.dst(d));
                op.pdst.iter_mut().for_each(|p| v.pdst(p));
            }
            Op::Memory(op) => memory(op, v),
            Op::Warp(op) => warp(op, v),
            Op::Control(op) => control(op, v),
            Op::Unsupported(u) => {
                for s in &mut u.dst {
                    let mut d = Some(*s);
                    v.dst(&mut d);
                    *s = d.unwrap_or(*s);
                }
                for p in &mut u.pdst {
                    let mut d = Some(*p);
                    v.pdst(&mut d);
                    *p = d.unwrap_or(*p);
                }
            }
        }
    }

    /// Calls `f` for every register read or written.
    pub fn for_each_slot(&self, f: impl FnMut(Slot, Access)) {
        struct Slots<F>(F);
        impl<F: FnMut(Slot, Access)> Visit for Slots<F> {
            fn src(&mut self, s: &mut Src) {
                if let SrcKind::Slot(s) = s.kind {
                    (self.0)(s, Access::Read);
                }
            }
            fn dst(&mut self, d: &mut Option<Slot>) {
                if let Some(d) = *d {
                    (self.0)(d, Access::Write);
                }
            }
        }
        self.clone().visit(&mut Slots(f));
    }

    /// Calls `f` for every predicate read or written.
    pub fn for_each_pred(&self, f: impl FnMut(Pred, Access)) {
        struct Preds<F>(F);
        impl<F: FnMut(Pred, Access)> Visit for Preds<F> {
            fn psrc(&mut self, p: &mut PredSrc) {
                if let Some(p) = p.pred {
                    (self.0)(p, Access::Read);
                }
            }
            fn pdst(&mut self, p: &mut Option<Pred>) {
                if let Some(p) = *p {
                    (self.0)(p, Access::Write);
                }
            }
        }
        self.clone().visit(&mut Preds(f));
    }
}
