//! Arithmetic, minimum and maximum.

use lanescope_ir::op::half::{Arith, Format, HalfFn, Select};
use lanescope_ir::op::int::IntFn;
use lanescope_ir::op::{LaneFn, LaneOp, SrcKind};
use lanescope_ir::{PredSrc, Src, SrcMod};

use super::{Packed, end, format, known, no_single, op, packed, sources};
use crate::lower::operands::{Cx, Lowered, refuse};

fn arith(cx: &Cx, select: [Select; 3]) -> Lowered<Arith> {
    let a = Arith { format: format(cx), ftz: cx.has("FTZ"), sat: cx.has("SAT"), relu: cx.has("RELU"), select };
    if a.format == Format::Bf16 && (a.ftz || a.sat) {
        // The hardware calls these illegal.
        return refuse("bf16 with .FTZ or .SAT");
    }
    if a.sat && a.relu { refuse("saturation and .RELU") } else { Ok(a) }
}

pub(super) fn hadd2(cx: &Cx) -> Lowered<LaneOp> {
    known(cx, &["F32", "BF16_V2", "FTZ", "SAT"])?;
    let ([a, b], n) = sources::<2>(cx, 1)?;
    end(cx, n)?;
    let arith = arith(cx, [a.select, b.select, Select::Both])?;
    let mut op = if a.single {
        // One f32 becomes a 16-bit float; a sum with another value would need a wider adder.
        if !b.is_zero() || cx.has("F32") {
            return refuse("sum with an f32 source");
        }
        op(HalfFn::FromF32(arith), [a.src])
    } else {
        no_single(&[a, b])?;
        if cx.has("F32") {
            if arith.ftz || arith.sat {
                return refuse("f32 sum with .FTZ or .SAT");
            }
            let meant = |x: Packed| x.select != Select::Both || x.is_zero();
            if !meant(a) || !meant(b) {
                return refuse("f32 sum of packed sources");
            }
            op(HalfFn::AddToF32(arith), [a.src, b.src])
        } else {
            op(HalfFn::Add(arith), [a.src, b.src])
        }
    };
    op.dst[0] = cx.dst(0)?;
    Ok(op)
}

pub(super) fn hmul2(cx: &Cx) -> Lowered<LaneOp> {
    known(cx, &["BF16_V2", "FTZ", "SAT"])?;
    let ([a, b], n) = sources::<2>(cx, 1)?;
    end(cx, n)?;
    no_single(&[a, b])?;
    let arith = arith(cx, [a.select, b.select, Select::Both])?;
    let mut op = op(HalfFn::Mul(arith), [a.src, b.src]);
    op.dst[0] = cx.dst(0)?;
    Ok(op)
}

/// `.MMA` names the unit that does it.
pub(super) fn hfma2(cx: &Cx) -> Lowered<LaneOp> {
    known(cx, &["MMA", "BF16_V2", "OOB", "FTZ", "SAT", "RELU"])?;
    let ([a, b, c], n) = sources::<3>(cx, 1)?;
    // `.RELU` has a predicate field too, which does nothing when it is `PT`.
    if cx.len() != n + 1 || cx.psrc(n)? != PredSrc::TRUE {
        end(cx, n)?;
    }
    no_single(&[a, b, c])?;
    let arith = arith(cx, [a.select, b.select, c.select])?;
    let mut op = match moved(arith, a, b, c) {
        _ if cx.has("OOB") => op(HalfFn::FmaOob(arith), [a.src, b.src, c.src]),
        Some(value) => {
            let mut op = LaneOp::new(LaneFn::Int(IntFn::Mov));
            op.src[0] = Src::imm(value);
            op
        }
        None => op(HalfFn::Fma(arith), [a.src, b.src, c.src]),
    };
    op.dst[0] = cx.dst(0)?;
    Ok(op)
}

/// `-0 * 0 + c` is `c` for every number, including both zeros: the usual way to load a constant.
fn moved(arith: Arith, a: Packed, b: Packed, c: Packed) -> Option<u32> {
    let one_negative = (a.src.modifier == SrcMod::HNeg) != (b.src.modifier == SrcMod::HNeg);
    let plain = [a, b].iter().all(|x| matches!(x.src.modifier, SrcMod::None | SrcMod::HNeg) && x.is_zero());
    let SrcKind::Imm(value) = c.src.kind else { return None };
    let infinity = if arith.format == Format::Bf16 { 0x7f80 } else { 0x7c00 };
    let numbers = [value & 0x7fff, value >> 16 & 0x7fff].iter().all(|&x| x <= infinity);
    let unchanged = !arith.ftz && !arith.sat && !arith.relu;
    let as_it_is = c.src.modifier == SrcMod::None && c.select == Select::Both;
    (one_negative && plain && numbers && unchanged && as_it_is).then_some(value)
}

/// `d, a, b, [c,] p`: `p` selects the minimum.
pub(super) fn minmax(cx: &Cx) -> Lowered<LaneOp> {
    known(cx, &["BF16_V2", "FTZ", "NAN", "XORSIGN"])?;
    if cx.is_pred(1) {
        return refuse("predicate results");
    }
    if cx.has("FTZ") && format(cx) == Format::Bf16 {
        return refuse("bf16 with .FTZ");
    }
    let three = cx.inst.mnemonic == "VHMNMX";
    let ([a, b], mut n) = sources::<2>(cx, 1)?;
    let mut c = Packed { src: Src::ZERO, select: Select::Both, single: false };
    if three {
        let taken;
        (c, taken) = packed(cx, n)?;
        n += taken;
    }
    let p = cx.psrc(n)?;
    end(cx, n + 1)?;
    no_single(&[a, b, c])?;
    let mut src = [a.src, b.src, c.src];
    let xorsign = cx.has("XORSIGN");
    if xorsign {
        // The signs count before the magnitudes are taken, so the function takes these itself.
        for s in &mut src[..if three { 3 } else { 2 }] {
            if s.modifier != SrcMod::HAbs {
                return refuse("signs combined without magnitudes");
            }
            s.modifier = SrcMod::None;
        }
    }
    let select = [a.select, b.select, c.select];
    let f = HalfFn::MinMax { format: format(cx), ftz: cx.has("FTZ"), propagate: cx.has("NAN"), xorsign, three, select };
    let mut op = op(f, src);
    op.psrc[0] = p;
    op.dst[0] = cx.dst(0)?;
    Ok(op)
}
