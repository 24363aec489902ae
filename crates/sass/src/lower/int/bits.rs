//! Bits and bytes.

use lanescope_ir::Src;
use lanescope_ir::op::LaneOp;
use lanescope_ir::op::int::{IntFn, Prmt, Small};

use super::{count, known, op, results};
use crate::isa::inst::Sign;
use crate::lower::operands::{Cx, Lowered, refuse};

/// `d, sources`, all plain.
fn simple<const N: usize>(cx: &Cx, f: IntFn) -> Lowered<LaneOp> {
    count(cx, N + 1)?;
    let mut src = [Src::ZERO; N];
    for (i, s) in src.iter_mut().enumerate() {
        *s = cx.src(i + 1)?;
    }
    let mut op = op(f, src);
    op.dst[0] = cx.dst(0)?;
    Ok(op)
}

pub(super) fn prmt(cx: &Cx) -> Lowered<LaneOp> {
    let mode = match cx.inst.mods.as_slice() {
        [] => Prmt::Index,
        ["F4E"] => Prmt::F4e,
        ["B4E"] => Prmt::B4e,
        ["RC8"] => Prmt::Rc8,
        ["ECL"] => Prmt::Ecl,
        ["ECR"] => Prmt::Ecr,
        ["RC16"] => Prmt::Rc16,
        mods => return refuse(format!("modifiers .{}", mods.join("."))),
    };
    simple::<3>(cx, IntFn::Prmt(mode))
}

pub(super) fn popc(cx: &Cx) -> Lowered<LaneOp> {
    known(cx, &[])?;
    simple::<1>(cx, IntFn::Popc)
}

pub(super) fn flo(cx: &Cx) -> Lowered<LaneOp> {
    known(cx, &["U32", "SH"])?;
    let (found, _, first) = results(cx, 1, 1)?;
    count(cx, first + 1)?;
    let mut op = op(IntFn::Flo { signed: !cx.has("U32"), shift: cx.has("SH") }, [cx.src(first)?]);
    op.pdst = found;
    op.dst[0] = cx.dst(0)?;
    Ok(op)
}

pub(super) fn brev(cx: &Cx) -> Lowered<LaneOp> {
    known(cx, &[])?;
    simple::<1>(cx, IntFn::Brev)
}

pub(super) fn bmsk(cx: &Cx) -> Lowered<LaneOp> {
    known(cx, &["W"])?;
    simple::<2>(cx, IntFn::Bmsk { wrap: cx.has("W") })
}

pub(super) fn sgxt(cx: &Cx) -> Lowered<LaneOp> {
    known(cx, &["W", "U32"])?;
    simple::<2>(cx, IntFn::Sgxt { signed: !cx.has("U32"), wrap: cx.has("W") })
}

fn small(name: &str) -> Option<Small> {
    let (signed, bits) = match name.split_at_checked(1)? {
        ("S", bits) => (true, bits),
        ("U", bits) => (false, bits),
        _ => return None,
    };
    Some(Small { bits: bits.parse().ok().filter(|b| [2, 4, 8, 16].contains(b))?, signed })
}

/// The narrow type of `.S8.S32.SAT`.
fn saturated_to(cx: &Cx) -> Lowered<Small> {
    match cx.inst.mods.as_slice() {
        [to, "S32", "SAT"] if let Some(to) = small(to) => Ok(to),
        mods => refuse(format!("modifiers .{}", mods.join("."))),
    }
}

pub(super) fn i2i(cx: &Cx) -> Lowered<LaneOp> {
    let to = saturated_to(cx)?;
    if to.bits < 8 {
        return refuse("I2I to less than a byte");
    }
    simple::<1>(cx, IntFn::Saturate(to))
}

pub(super) fn i2ip(cx: &Cx) -> Lowered<LaneOp> {
    let to = saturated_to(cx)?;
    count(cx, 4)?;
    // Above both results goes as much of the third source as fits: `.24` or `.28` says so for 4 and 2 bits.
    let (above, sign, abs, suffix) = cx.raw(3)?;
    if sign != Sign::None || abs || !matches!((to.bits, suffix), (8.., "") | (4, "24") | (2, "28")) {
        return refuse("operand 3 is not a plain source");
    }
    let mut op = op(IntFn::PackSaturate(to), [cx.src(1)?, cx.src(2)?, above]);
    op.dst[0] = cx.dst(0)?;
    if to.bits == 16 && op.src[2] != Src::ZERO {
        return refuse("a third source with two halves");
    }
    Ok(op)
}
