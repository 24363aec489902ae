//! The fused operation of a sum and a product.

use lanescope_ir::op::LaneFn;
use lanescope_ir::op::double::{DoubleFn, Signs};
use lanescope_ir::op::float::{Arith, FloatFn};
use lanescope_ir::op::half::{self, HalfFn, Select};
use lanescope_ir::op::int::IntFn;
use lanescope_ir::{Src, SrcMod};

use super::Fused;
use crate::lower::cx::{Cx, Words, words};
use crate::lower::fail::Lowered;
use crate::lower::float::changed;
use crate::lower::half::format;
use crate::lower::int::{dst, sources};
use crate::tree::Type;

/// Copies a product's operands, which are overwritten before its sum.
pub(in crate::lower) fn keep(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    let mut kept = sources(c, ty)?;
    for value in &mut kept {
        for word in value.iter_mut().take(words(ty)) {
            let slot = c.lasting();
            c.int(IntFn::Mov, Some(slot), &[*word]);
            *word = Src::slot(slot);
        }
    }
    if let Some(at) = c.origin {
        c.kept.insert(at, kept);
    }
    Ok(())
}

/// The sum at hand, with its product taken in.
pub(in crate::lower) fn fused(c: &mut Cx<'_, '_>, fused: Fused) -> Lowered<()> {
    let ty = c.mods.ty()?;
    let (ftz, sat) = (c.mods.take("ftz"), c.mods.take("sat"));
    c.mods.finish(&["ftz", "sat"])?;
    let subtracts = c.mods.name == "sub";
    let d = dst(c, ty)?;
    let [first, second]: [Words; 2] = sources(c, ty)?;
    let is_second = fused.operand == 2;
    let addend = if is_second { first } else { second };
    let negated = fused.negated != (subtracts && is_second);
    let addend_negated = subtracts && !is_second;
    let [a, b] = match c.kept.get(&fused.product) {
        Some(kept) => *kept,
        None => {
            let instruction = &c.body.instructions[fused.product as usize];
            let operands = c.body.operands_of(instruction);
            let [_, a, b] = operands else { return c.error(c.span, "a product with other than two operands") };
            [c.src(a, ty)?, c.src(b, ty)?]
        }
    };
    let sign = |x: Src, change: SrcMod, negated: bool| if negated { changed(x, change) } else { x };
    match (ty, format(ty)) {
        (Type::F64, _) => {
            if ftz || sat {
                return c.error(c.mods.span, "`.ftz` and `.sat` do not apply to `.f64`");
            }
            let signs = Signs { magnitude: 0, negate: u8::from(negated) | u8::from(addend_negated) << 2 };
            let f = DoubleFn::Fma(Default::default(), signs);
            c.apply(LaneFn::Double(f), [d[0], d[1]], &[a[0], a[1], b[0], b[1], addend[0], addend[1]]);
        }
        (_, Some(format)) => {
            let arith = half::Arith { format, ftz, sat, relu: false, select: [Select::Both; 3] };
            let (a, e) = (sign(a[0], SrcMod::HNeg, negated), sign(addend[0], SrcMod::HNeg, addend_negated));
            c.apply(LaneFn::Half(HalfFn::Fma(arith)), [d[0], None], &[a, b[0], e]);
        }
        _ => {
            let arith = Arith { round: Default::default(), ftz, sat };
            let (a, e) = (sign(a[0], SrcMod::FNeg, negated), sign(addend[0], SrcMod::FNeg, addend_negated));
            c.apply(LaneFn::Float(FloatFn::Fma { arith, zero_wins: false }), [d[0], None], &[a, b[0], e]);
        }
    }
    Ok(())
}
