//! f16 and bf16 arithmetic, one or two at a time.

use lanescope_ir::op::half::{Arith, Format, HalfFn, Select};
use lanescope_ir::op::{LaneFn, LaneOp};
use lanescope_ir::{PredSrc, Slot, Src, SrcMod};

use super::cx::Cx;
use super::fail::Lowered;
use super::float::changed;
use super::int::{dst, sources};
use crate::tree::Type;

/// The format of a 16-bit type or of two of them.
pub(super) fn format(ty: Type) -> Option<Format> {
    match ty {
        Type::F16 | Type::F16x2 => Some(Format::F16),
        Type::Bf16 | Type::Bf16x2 => Some(Format::Bf16),
        _ => None,
    }
}

fn arith(format: Format) -> Arith {
    Arith { format, ftz: false, sat: false, relu: false, select: [Select::Both; 3] }
}

fn half(c: &mut Cx<'_, '_>, f: HalfFn, d: Option<Slot>, s: &[Src]) {
    c.apply(LaneFn::Half(f), [d, None], s);
}

/// -0 in both halves: what leaves every number as it is when added.
const MINUS_ZERO: Src = Src::imm(0x8000_8000);

/// `add`, `sub`, `mul`, `fma`
pub(super) fn arithmetic(c: &mut Cx<'_, '_>, format: Format) -> Lowered<()> {
    let ty = c.mods.ty()?;
    let arith = Arith { ftz: c.mods.take("ftz"), sat: c.mods.take("sat"), relu: c.mods.take("relu"), ..arith(format) };
    c.mods.take("rn");
    let oob = c.mods.name == "fma" && c.mods.take("oob");
    c.mods.finish(&["rn", "ftz", "sat", "relu"])?;
    let d = dst(c, ty)?[0];
    match c.mods.name {
        "add" | "sub" => {
            let [a, b] = sources(c, ty)?;
            let b = if c.mods.name == "sub" { changed(b[0], SrcMod::HNeg) } else { b[0] };
            half(c, HalfFn::Add(arith), d, &[a[0], b]);
        }
        "mul" => {
            let [a, b] = sources(c, ty)?;
            half(c, HalfFn::Mul(arith), d, &[a[0], b[0]]);
        }
        _ => {
            let [a, b, e] = sources(c, ty)?;
            let f = if oob { HalfFn::FmaOob(arith) } else { HalfFn::Fma(arith) };
            half(c, f, d, &[a[0], b[0], e[0]]);
        }
    }
    Ok(())
}

/// `abs`, `neg`
pub(super) fn sign(c: &mut Cx<'_, '_>, format: Format) -> Lowered<()> {
    let ty = c.mods.ty()?;
    let arith = Arith { ftz: c.mods.take("ftz"), ..arith(format) };
    c.mods.finish(&["ftz"])?;
    let d = dst(c, ty)?[0];
    let [a] = sources(c, ty)?;
    let a = changed(a[0], if c.mods.name == "neg" { SrcMod::HNeg } else { SrcMod::HAbs });
    half(c, HalfFn::Add(arith), d, &[a, MINUS_ZERO]);
    Ok(())
}

/// `min`, `max`
pub(super) fn extreme(c: &mut Cx<'_, '_>, format: Format) -> Lowered<()> {
    let ty = c.mods.ty()?;
    let (ftz, propagate) = (c.mods.take("ftz"), c.mods.take("NaN"));
    let (xorsign, abs) = (c.mods.take("xorsign"), c.mods.take("abs"));
    c.mods.finish(&["ftz", "NaN", "xorsign", "abs"])?;
    c.expect(3)?;
    if xorsign != abs {
        return c.error(c.mods.span, "`.xorsign` and `.abs` go together");
    }
    let select = [Select::Both; 3];
    let mut op = LaneOp::new(LaneFn::Half(HalfFn::MinMax { format, ftz, propagate, xorsign, three: false, select }));
    op.dst[0] = dst(c, ty)?[0];
    for i in 0..c.ops.len() - 1 {
        op.src[i] = c.word(i + 1, ty)?;
    }
    op.psrc[0] = if c.mods.name == "min" { PredSrc::TRUE } else { PredSrc::FALSE };
    c.lane(op);
    Ok(())
}

/// `d`, clamped to 0..1 or with negative numbers made zero.
pub(super) fn clamp(c: &mut Cx<'_, '_>, format: Format, d: Option<Slot>, sat: bool, relu: bool) {
    let Some(slot) = d else { return };
    half(c, HalfFn::Add(Arith { sat, relu, ..arith(format) }), d, &[Src::slot(slot), MINUS_ZERO]);
}
