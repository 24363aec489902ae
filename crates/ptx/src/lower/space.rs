//! Generic addresses: `cvta`, `isspacep`.

use lanescope_ir::op::int::{BoolOp, Cmp, IntFn};
use lanescope_ir::op::memory::Space as IrSpace;
use lanescope_ir::op::{LaneFn, LaneOp};
use lanescope_ir::{Pred, PredSrc, Slot, Src};

use super::cx::{Cx, Words};
use super::fail::{Lowered, unsupported};
use super::launch;
use super::mov::symbol;
use crate::tree::{OperandKind, Space, Target, Type};

/// `cvta`
pub(super) fn convert_address(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let back = c.mods.take("to");
    let ty = c.mods.ty()?;
    let space = c.mods.find(space);
    c.mods.finish(&["to", "const", "global", "local", "shared", "param"])?;
    c.expect(2)?;
    if ty != Type::U64 {
        return unsupported("32-bit addresses");
    }
    let Some(space) = space else { return c.error(c.mods.span, "`cvta` needs a state space") };
    let (to, from) = (c.operand(0)?, c.operand(1)?);
    let d = c.dst(to, ty)?;
    let s = match from.kind {
        OperandKind::Symbol { .. } if back => {
            return c.error(from.span, "a generic address in a register is needed here");
        }
        OperandKind::Symbol { target, offset } => {
            if !matches!(target, Target::Function(_)) {
                let (variable, _) = c.variable(target, from.span)?;
                if variable.space != space {
                    let message = format!("`{}` lies in .{}", variable.name, variable.space.name());
                    return c.error(from.span, message);
                }
            }
            symbol(c, ty, to, from, target, offset)?;
            match d {
                [Some(lo), Some(hi), ..] => [Src::slot(lo), Src::slot(hi)],
                _ => return Ok(()),
            }
        }
        _ => {
            let s = c.src(from, ty)?;
            [s[0], s[1]]
        }
    };
    let window = match space {
        Space::Shared => Some(launch::SHARED_WINDOW_HI),
        Space::Local => Some(launch::LOCAL_WINDOW_HI),
        Space::Param if c.is_kernel() => return kernel_parameter(c, back, d, s),
        Space::Param => Some(launch::LOCAL_WINDOW_HI),
        _ => None,
    };
    let high = match (window, back) {
        (None, _) => s[1],
        (Some(_), true) => Src::ZERO,
        (Some(offset), false) => Src::constant(0, offset),
    };
    c.apply(LaneFn::Int(IntFn::Mov64), [d[0], d[1]], &[s[0], high]);
    Ok(())
}

/// Parameters are in a constant bank, which generic addresses do not reach: there is a copy of them in the frame.
fn kernel_parameter(c: &mut Cx<'_, '_>, back: bool, d: [Option<Slot>; 4], s: [Src; 2]) -> Lowered<()> {
    let Some(copy) = c.frame().parameters else { return unsupported("addresses of kernel parameters") };
    let distance = c.kernel_bottom().wrapping_add(copy).wrapping_sub(launch::PARAM_BASE);
    let (distance, high) =
        if back { (distance.wrapping_neg(), Src::ZERO) } else { (distance, Src::constant(0, launch::LOCAL_WINDOW_HI)) };
    c.int(IntFn::Add, d[0], &[s[0], Src::imm(distance)]);
    c.int(IntFn::Mov, d[1], &[high]);
    Ok(())
}

/// A state space as a modifier, `::` parts left out.
pub(super) fn space(modifier: &str) -> Option<Space> {
    Some(match modifier {
        "const" => Space::Const,
        "global" => Space::Global,
        "local" => Space::Local,
        "shared" | "shared::cta" | "shared::cluster" => Space::Shared,
        "param" | "param::entry" | "param::func" => Space::Param,
        _ => return None,
    })
}

/// `isspacep`
pub(super) fn is_in_space(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let space = c.mods.find(space);
    c.mods.finish(&["const", "global", "local", "shared", "param"])?;
    c.expect(2)?;
    let p = c.pdst(c.operand(0)?)?;
    // Of `.shared` it may be a register of 32 bits, whose upper half is zero.
    let operand = c.operand(1)?;
    let wide = space != Some(Space::Shared) || c.register_type(operand).is_none_or(|ty| ty.bits() != 32);
    let mut s = c.src(operand, if wide { Type::U64 } else { Type::U32 })?;
    if !wide {
        s[1] = lanescope_ir::Src::ZERO;
    }
    let found = match space {
        Some(Space::Const) => return in_constants(c, p, s),
        Some(Space::Param) => return in_parameters(c, p, s),
        Some(Space::Shared) => IrSpace::Shared,
        Some(Space::Local) => IrSpace::Local,
        Some(_) => IrSpace::Global,
        None => return c.error(c.mods.span, "`isspacep` needs a state space"),
    };
    let addr = lanescope_ir::op::memory::Addr {
        base: s[0],
        base_hi: Some(s[1]),
        uniform: None,
        signed: false,
        scale: 0,
        offset: 0,
    };
    // Constants lie among global variables here, parameters in local memory.
    let other = c.temp_pred();
    match found {
        IrSpace::Global => in_constants(c, Some(other), s)?,
        IrSpace::Local => in_parameters(c, Some(other), s)?,
        _ => {
            c.memory(lanescope_ir::op::memory::MemoryOp::QuerySpace { space: found, pdst: p, dst: None, addr });
            return Ok(());
        }
    }
    let inside = c.temp_pred();
    c.memory(lanescope_ir::op::memory::MemoryOp::QuerySpace { space: found, pdst: Some(inside), dst: None, addr });
    let mut op = LaneOp::new(LaneFn::Int(IntFn::Plop3 { lut: [0xc0, 0] }));
    op.pdst[0] = p;
    op.psrc[0] = PredSrc::of(inside);
    op.psrc[1] = PredSrc::of(other).not();
    c.lane(op);
    Ok(())
}

/// Whether a generic address is one of constants.
fn in_constants(c: &mut Cx<'_, '_>, p: Option<Pred>, s: Words) -> Lowered<()> {
    let std::ops::Range { start, end } = c.plan.constants;
    let above = c.temp_pred();
    for (cmp, limit, with, to) in [(Cmp::Ge, start, PredSrc::TRUE, Some(above)), (Cmp::Lt, end, PredSrc::of(above), p)]
    {
        let mut op = LaneOp::new(LaneFn::Int(IntFn::SetJoin64 { cmp, signed: false, op: BoolOp::And }));
        op.src[..4].copy_from_slice(&[s[0], s[1], Src::imm(limit as u32), Src::imm((limit >> 32) as u32)]);
        op.psrc[0] = with;
        op.pdst[0] = to;
        c.lane(op);
    }
    Ok(())
}

/// Whether a generic address is one of the copy that the kernel's parameters have.
fn in_parameters(c: &mut Cx<'_, '_>, p: Option<Pred>, s: Words) -> Lowered<()> {
    let frame = &c.plan.frames[0];
    let start = c.kernel_bottom().saturating_add(frame.parameters.unwrap_or(0));
    let end = start.saturating_add(frame.parameters.map_or(0, |_| frame.signature.size));
    let (window, above) = (c.temp_pred(), c.temp_pred());
    for (cmp, a, b, with, to) in [
        (Cmp::Eq, s[1], Src::constant(0, launch::LOCAL_WINDOW_HI), PredSrc::TRUE, Some(window)),
        (Cmp::Ge, s[0], Src::imm(start), PredSrc::of(window), Some(above)),
        (Cmp::Lt, s[0], Src::imm(end), PredSrc::of(above), p),
    ] {
        let f = IntFn::SetJoin { cmp, signed: false, op: BoolOp::And, extended: false };
        let mut op = LaneOp::new(LaneFn::Int(f));
        op.src[..2].copy_from_slice(&[a, b]);
        op.psrc[0] = with;
        op.pdst[0] = to;
        c.lane(op);
    }
    Ok(())
}
