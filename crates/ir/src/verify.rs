//! Invariants of a [`Kernel`] that the engine and the analyses rely on.
//!
//! - Functions are sorted by `first` and by `base`, do not overlap and cover all instructions; the PCs of a
//!   function ascend.
//! - Every slot and predicate is below `slots` and `preds`; every target is an instruction.
//! - A multiplication of tiles has as many operands as its types and sizes want.
//! - `text` has one entry for each instruction, `source.of_inst` one or none at all.

use crate::kernel::Kernel;
use crate::op::Op;
use crate::op::control::{ControlOp, WarpSyncMode};
use crate::op::warp::WarpOp;

/// The first broken invariant, in words, or nothing.
pub fn verify(kernel: &Kernel) -> Result<(), String> {
    let n = kernel.instructions.len();
    if kernel.text.len() != n {
        return Err(format!("{} texts for {n} instructions", kernel.text.len()));
    }
    if !kernel.source.of_inst.is_empty() && kernel.source.of_inst.len() != n {
        return Err(format!("{} source locations for {n} instructions", kernel.source.of_inst.len()));
    }
    let mut next = 0usize;
    let mut base = 0u64;
    for f in &kernel.functions {
        if f.first.index() != next {
            return Err(format!("function {} starts at instruction {}, not at {next}", f.name, f.first.0));
        }
        if f.base < base {
            return Err(format!("function {} overlaps the one before it", f.name));
        }
        next += f.len as usize;
        let body =
            kernel.instructions.get(f.first.index()..next).ok_or_else(|| format!("function {} is cut off", f.name))?;
        if body.windows(2).any(|w| w[0].pc >= w[1].pc) {
            return Err(format!("PCs of {} do not ascend", f.name));
        }
        base = f.base + body.last().map_or(0, |i| u64::from(i.pc) + 1);
    }
    if next != n {
        return Err(format!("functions cover {next} of {n} instructions"));
    }
    for (at, inst) in kernel.instructions.iter().enumerate() {
        if let Some(t) = target(&inst.op)
            && t as usize >= n
        {
            return Err(format!("instruction {at} goes to {t}, past the end"));
        }
        let mut bad = None;
        inst.for_each_slot(|s, _| {
            if s.0 >= kernel.slots {
                bad = Some(format!("instruction {at} uses slot {}, of {}", s.0, kernel.slots));
            }
        });
        inst.for_each_pred(|p, _| {
            if p.0 >= kernel.preds {
                bad = Some(format!("instruction {at} uses predicate {}, of {}", p.0, kernel.preds));
            }
        });
        if let Some(bad) = bad {
            return Err(bad);
        }
        if let Op::Warp(WarpOp::Mma(op)) = &inst.op
            && !op.is_consistent()
        {
            return Err(format!("instruction {at} multiplies tiles whose operands do not fit"));
        }
    }
    Ok(())
}

fn target(op: &Op) -> Option<u32> {
    let Op::Control(c) = op else { return None };
    match c {
        ControlOp::Branch { target, .. }
        | ControlOp::BranchDivergent { target, .. }
        | ControlOp::BranchConverged { target, .. }
        | ControlOp::Call { target, .. }
        | ControlOp::SyncSet { target, .. }
        | ControlOp::WarpSync { mode: WarpSyncMode::Collective(_, target), .. } => Some(target.0),
        _ => None,
    }
}
