//! Lowering of MUFU.

use lanescope_ir::op::float::{FloatFn, HalfFormat, Special};
use lanescope_ir::op::{LaneFn, LaneOp};

use super::{expect, half_of, unknown};
use crate::lower::operands::{Cx, Lowered, refuse};

pub(super) fn lower(cx: &Cx) -> Lowered<LaneOp> {
    expect(cx, 2)?;
    let (mut function, mut format) = (None, None);
    for name in &cx.inst.mods {
        let f = match *name {
            "RCP" => Special::Rcp,
            "RSQ" => Special::Rsq,
            "SQRT" => Special::Sqrt,
            "LG2" => Special::Lg2,
            "EX2" => Special::Ex2,
            "SIN" => Special::Sin,
            "COS" => Special::Cos,
            "TANH" => Special::Tanh,
            "RCP64H" => Special::Rcp64High,
            "RSQ64H" => Special::Rsq64High,
            "F16" => {
                format = Some(HalfFormat::F16);
                continue;
            }
            "BF16" => {
                format = Some(HalfFormat::Bf16);
                continue;
            }
            _ => return unknown(name),
        };
        if function.replace(f).is_some() {
            return refuse("two functions in one");
        }
    }
    let Some(function) = function else { return refuse("no function") };
    let (f, src) = match format {
        None => (FloatFn::Special(function), cx.fsrc(1)?),
        Some(format) => match function {
            Special::Ex2 | Special::Tanh => {
                let (_, _, _, suffix) = cx.raw(1)?;
                let high = suffix == "H1";
                let src = half_of(cx, 1, if high { "H1" } else { "H0_H0" })?;
                (FloatFn::SpecialHalf { function, high, format }, src)
            }
            _ => return refuse("this function in 16 bits"),
        },
    };
    let mut op = LaneOp::new(LaneFn::Float(f));
    op.dst[0] = cx.dst(0)?;
    op.src[0] = src;
    Ok(op)
}
