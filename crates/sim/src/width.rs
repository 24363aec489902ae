//! Which kernels may run with warps of another size than the 32 lanes they know.
//!
//! What threads compute must not depend on the size. So a kernel that names sets of lanes in 32 bits, or moves values
//! between the lanes of a warp, is refused as a whole, also if it would not reach the instruction.

use lanescope_ir::op::control::{ControlOp, WarpSyncMode};
use lanescope_ir::op::memory::MemoryOp;
use lanescope_ir::op::warp::{SpecialReg, WarpOp};
use lanescope_ir::{Kernel, Op};

use crate::error::SimError;

/// Refuses kernels that cannot run with warps of `size` lanes.
pub(crate) fn permit(kernel: &Kernel, size: u32) -> Result<(), SimError> {
    let wrong = |inst: Option<u32>, why: String| {
        let kernel = kernel.name.clone();
        Err(SimError::WrongWarpSize { size, kernel, inst, why })
    };
    if !matches!(size, 32 | 64) {
        return wrong(None, "warps have 32 lanes, or 64".to_owned());
    }
    if size == 64 && kernel.arch.starts_with("sm_") {
        return wrong(None, format!("it is machine code of {}, compiled for warps of 32", kernel.arch));
    }
    if kernel.warp_size != 0 && kernel.warp_size != size {
        return wrong(None, format!("it was prepared for warps of {}", kernel.warp_size));
    }
    if size == 32 {
        return Ok(());
    }
    let found = kernel.instructions.iter().zip(0u32..).find_map(|(inst, at)| Some((at, needs_32(&inst.op)?)));
    let Some((at, why)) = found else { return Ok(()) };
    let text = kernel.text.get(at as usize).map_or("an instruction", String::as_str);
    wrong(Some(at), format!("`{text}` {why}"))
}

/// Why an operation needs warps of 32 lanes, if it does.
fn needs_32(op: &Op) -> Option<&'static str> {
    const MASK: &str = "has a set of lanes in 32 bits";
    const VALUES: &str = "moves values between the lanes of a warp of 32";
    match op {
        Op::Control(ControlOp::WarpSync { mode: WarpSyncMode::All, .. }) => None,
        Op::Control(ControlOp::WarpSync { .. }) => Some(MASK),
        Op::Memory(MemoryOp::LoadMatrix { .. } | MemoryOp::StoreMatrix { .. }) => Some(VALUES),
        Op::Control(_) | Op::Lane(_) | Op::Memory(_) | Op::Nop | Op::Unsupported(_) => None,
        Op::Warp(op) => match op {
            WarpOp::Special { reg, .. } => reg
                .iter()
                .any(|r| {
                    use SpecialReg as R;
                    matches!(r, R::LaneMaskEq | R::LaneMaskLt | R::LaneMaskLe | R::LaneMaskGt | R::LaneMaskGe)
                })
                .then_some(MASK),
            WarpOp::BlockBarrier { .. }
            | WarpOp::BarrierResult { .. }
            | WarpOp::CodeAddress { .. }
            | WarpOp::PackPreds { .. }
            | WarpOp::UnpackPreds { .. } => None,
            WarpOp::Vote { .. } | WarpOp::Match { .. } | WarpOp::ActiveMask { .. } | WarpOp::Elect { .. } => Some(MASK),
            _ => Some(VALUES),
        },
    }
}
