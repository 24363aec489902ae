//! Lowering of the two-at-a-time f32 operations of sm_100.

use lanescope_ir::Src;
use lanescope_ir::op::float::FloatFn;
use lanescope_ir::op::{LaneFn, LaneOp};

use super::{arith, expect};
use crate::isa::inst::{Operand, Sign};
use crate::lower::operands::{Cx, Lowered, fmod, refuse, slot_at, src};

pub(super) fn lower(cx: &Cx) -> Lowered<LaneOp> {
    let arith = arith(cx, |_| false)?;
    if arith.sat {
        return super::unknown("SAT");
    }
    let (f, sources) = match cx.inst.mnemonic {
        "FADD2" => (FloatFn::Add2(arith), 2),
        "FMUL2" => (FloatFn::Mul2(arith), 2),
        _ => (FloatFn::Fma2(arith), 3),
    };
    expect(cx, sources + 1)?;
    let mut op = LaneOp::new(LaneFn::Float(f));
    op.dst = cx.dst64(0)?;
    for (i, two) in op.src.chunks_exact_mut(2).enumerate().take(sources) {
        two.copy_from_slice(&pair(cx, i + 1)?);
    }
    Ok(op)
}

/// The two f32 of operand `i`: a pair of registers in either order, or one value for both.
fn pair(cx: &Cx, i: usize) -> Lowered<[Src; 2]> {
    match cx.operand(i)? {
        Operand::Float { bits, suffix: "", .. } => Ok([Src::imm(bits); 2]),
        Operand::Reg(r) if r.sign != Sign::Not => {
            let modified = |plus| src(slot_at(r.file, r.index, plus)).with(fmod(r.sign, r.abs));
            match r.suffix {
                "F32x2.HI_LO" => Ok([modified(0), modified(1)]),
                "F32x2.LO_HI" => Ok([modified(1), modified(0)]),
                "F32" => Ok([modified(0); 2]),
                other => refuse(format!("operand {i} has suffix .{other}")),
            }
        }
        _ => refuse(format!("operand {i} is not a pair of f32")),
    }
}
