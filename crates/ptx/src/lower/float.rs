//! f32 and f64 arithmetic and approximations.

use lanescope_ir::op::double::{DoubleFn, Signs};
use lanescope_ir::op::float::{Approx, Arith, FloatFn, HalfFormat, Kind, Rounding, Special};
use lanescope_ir::op::int::IntFn;
use lanescope_ir::op::{LaneFn, LaneOp};
use lanescope_ir::{PredSrc, Slot, Src, SrcMod};

use super::cx::Cx;
use super::fail::{Lowered, unsupported};
use super::int::{dst, sources};
use crate::tree::Type;

fn float(c: &mut Cx<'_, '_>, f: FloatFn, d: Option<Slot>, s: &[Src]) {
    c.apply(LaneFn::Float(f), [d, None], s);
}

fn double(c: &mut Cx<'_, '_>, f: DoubleFn, d: [Option<Slot>; 4], s: &[Src]) {
    c.apply(LaneFn::Double(f), [d[0], d[1]], s);
}

/// `x` with its sign changed, f64 high words and f32 alike.
pub(super) fn changed(x: Src, change: SrcMod) -> Src {
    match x.kind {
        lanescope_ir::op::SrcKind::Imm(value) => Src::imm(change.apply(value)),
        _ => x.with(change),
    }
}

/// `.ftz`, `.sat` and the rounding.
fn arith(c: &mut Cx<'_, '_>) -> Arith {
    let round = c.mods.rounding().unwrap_or_default();
    Arith { round, ftz: c.mods.take("ftz"), sat: c.mods.take("sat") }
}

const ARITH: &[&str] = &["rn", "rz", "rm", "rp", "ftz", "sat"];

/// `add`, `sub`, `mul`, `fma`, `mad`
pub(super) fn arithmetic(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    let arith = arith(c);
    c.mods.finish(ARITH)?;
    let name = c.mods.name;
    match ty {
        Type::F32 => {
            let d = dst(c, ty)?[0];
            match name {
                "add" | "sub" => {
                    let [a, b] = sources(c, ty)?;
                    let b = if name == "sub" { changed(b[0], SrcMod::FNeg) } else { b[0] };
                    float(c, FloatFn::Add(arith), d, &[a[0], b]);
                }
                "mul" => {
                    let [a, b] = sources(c, ty)?;
                    float(c, FloatFn::Mul { arith, scale: 0, zero_wins: false }, d, &[a[0], b[0]]);
                }
                _ => {
                    let [a, b, e] = sources(c, ty)?;
                    float(c, FloatFn::Fma { arith, zero_wins: false }, d, &[a[0], b[0], e[0]]);
                }
            }
        }
        Type::F64 => {
            if arith.ftz || arith.sat {
                return c.error(c.mods.span, "`.ftz` and `.sat` do not apply to `.f64`");
            }
            let d = dst(c, ty)?;
            let round = arith.round;
            match name {
                "add" | "sub" => {
                    let [a, b] = sources(c, ty)?;
                    let signs = Signs { magnitude: 0, negate: if name == "sub" { 2 } else { 0 } };
                    double(c, DoubleFn::Add(round, signs), d, &[a[0], a[1], b[0], b[1]]);
                }
                "mul" => {
                    let [a, b] = sources(c, ty)?;
                    double(c, DoubleFn::Mul(round, Signs::default()), d, &[a[0], a[1], b[0], b[1]]);
                }
                _ => {
                    let [a, b, e] = sources(c, ty)?;
                    double(c, DoubleFn::Fma(round, Signs::default()), d, &[a[0], a[1], b[0], b[1], e[0], e[1]]);
                }
            }
        }
        Type::F32x2 if !arith.sat => {
            let d = dst(c, ty)?;
            let d = [d[0], d[1]];
            match name {
                "add" | "sub" => {
                    let [a, b] = sources(c, ty)?;
                    let sign = if name == "sub" { SrcMod::FNeg } else { SrcMod::None };
                    let b = [changed(b[0], sign), changed(b[1], sign)];
                    c.apply(LaneFn::Float(FloatFn::Add2(arith)), d, &[a[0], a[1], b[0], b[1]]);
                }
                "mul" => {
                    let [a, b] = sources(c, ty)?;
                    c.apply(LaneFn::Float(FloatFn::Mul2(arith)), d, &[a[0], a[1], b[0], b[1]]);
                }
                _ => {
                    let [a, b, e] = sources(c, ty)?;
                    c.apply(LaneFn::Float(FloatFn::Fma2(arith)), d, &[a[0], a[1], b[0], b[1], e[0], e[1]]);
                }
            }
        }
        _ => return c.mods.bad_type(ty),
    }
    Ok(())
}

/// `abs`, `neg`: an addition of -0 with a changed sign, as SASS has it.
pub(super) fn sign(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    let arith = Arith { ftz: c.mods.take("ftz"), ..Arith::PLAIN };
    c.mods.finish(&["ftz"])?;
    let negate = c.mods.name == "neg";
    let d = dst(c, ty)?;
    let [a] = sources(c, ty)?;
    match ty {
        Type::F32 => {
            let a = changed(a[0], if negate { SrcMod::FNeg } else { SrcMod::FAbs });
            float(c, FloatFn::Add(arith), d[0], &[a, Src::imm(1 << 31)]);
        }
        Type::F64 => {
            let signs = Signs { magnitude: u8::from(!negate), negate: u8::from(negate) };
            let zero = [Src::ZERO, Src::imm(1 << 31)];
            double(c, DoubleFn::Add(Rounding::Nearest, signs), d, &[a[0], a[1], zero[0], zero[1]]);
        }
        _ => return c.mods.bad_type(ty),
    }
    Ok(())
}

/// `min`, `max`
pub(super) fn extreme(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    let (ftz, nan) = (c.mods.take("ftz"), c.mods.take("NaN"));
    let xorsign_abs = c.mods.take("xorsign");
    let abs = c.mods.take("abs");
    c.mods.finish(&["ftz", "NaN", "xorsign", "abs"])?;
    c.expect_between(3, 4)?;
    let three = c.ops.len() == 4;
    let smaller = c.mods.name == "min";
    let d = dst(c, ty)?;
    let (a, b) = (c.src(c.operand(1)?, ty)?, c.src(c.operand(2)?, ty)?);
    match ty {
        Type::F32 => {
            if abs != xorsign_abs && !three {
                return c.error(c.mods.span, "`.xorsign` and `.abs` go together");
            }
            if three && (abs || xorsign_abs) {
                return unsupported("minimum of three magnitudes");
            }
            let mut op = LaneOp::new(LaneFn::Float(if three {
                FloatFn::MinMax3 { ftz, nan }
            } else {
                FloatFn::MinMax { ftz, nan, xorsign_abs }
            }));
            op.dst[0] = d[0];
            op.src[0] = a[0];
            op.src[1] = b[0];
            if three {
                op.src[2] = c.word(3, ty)?;
            }
            op.psrc[0] = if smaller { PredSrc::TRUE } else { PredSrc::FALSE };
            c.lane(op);
        }
        Type::F64 => {
            if ftz || nan || xorsign_abs || three {
                return c.error(c.mods.span, "minima and maxima of `.f64` have no modifiers");
            }
            double(c, DoubleFn::MinMax { smaller }, d, &[a[0], a[1], b[0], b[1]]);
        }
        _ => return c.mods.bad_type(ty),
    }
    Ok(())
}

/// `div`, `rcp`, `sqrt`, `rsqrt`
pub(super) fn divide(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    let name = c.mods.name;
    let approx = c.mods.take("approx");
    let full = c.mods.take("full");
    let round = c.mods.rounding();
    let ftz = c.mods.take("ftz");
    c.mods.finish(&["approx", "full", "rn", "rz", "rm", "rp", "ftz"])?;
    if full && name != "div" {
        return c.error(c.mods.span, "only `div` has `.full`");
    }
    let inexact = approx || full || name == "rsqrt";
    let arith = Arith { round: round.unwrap_or_default(), ftz, sat: false };
    let d = dst(c, ty)?;
    let (a, b) = if name == "div" {
        let [a, b] = sources(c, ty)?;
        (a, b)
    } else {
        let [a] = sources(c, ty)?;
        (a, [Src::ZERO; 4])
    };
    match (ty, inexact) {
        (Type::F32, true) => {
            let function = match name {
                "div" if full => Approx::DivFull,
                "div" => Approx::Div,
                "rcp" => Approx::Rcp,
                "sqrt" => Approx::Sqrt,
                _ => Approx::Rsqrt,
            };
            float(c, FloatFn::Approx { function, ftz }, d[0], &[a[0], b[0]]);
        }
        (Type::F32, false) => match name {
            "div" => float(c, FloatFn::Div(arith), d[0], &[a[0], b[0]]),
            "rcp" => float(c, FloatFn::Div(arith), d[0], &[Src::imm(1f32.to_bits()), a[0]]),
            _ => float(c, FloatFn::Sqrt(arith), d[0], &[a[0]]),
        },
        (Type::F64, true) => match (name, ftz) {
            ("rcp", _) | ("rsqrt", true) => {
                let function = if name == "rcp" { Special::Rcp64High } else { Special::Rsq64High };
                let t = c.temp();
                float(c, FloatFn::Special(function), Some(t), &[a[1]]);
                c.apply(LaneFn::Int(IntFn::Mov64), [d[0], d[1]], &[Src::ZERO, Src::slot(t)]);
            }
            ("rsqrt", false) => double(c, DoubleFn::RsqrtApprox, d, &a),
            _ => return c.error(c.mods.span, format!("`{name}` of `.f64` has no approximation")),
        },
        (Type::F64, false) => {
            let one = (1f64.to_bits() >> 32) as u32;
            match name {
                "div" => double(c, DoubleFn::Div(arith.round), d, &[a[0], a[1], b[0], b[1]]),
                "rcp" => double(c, DoubleFn::Div(arith.round), d, &[Src::ZERO, Src::imm(one), a[0], a[1]]),
                _ => double(c, DoubleFn::Sqrt(arith.round), d, &a),
            }
        }
        _ => return c.mods.bad_type(ty),
    }
    Ok(())
}

/// `sin`, `cos`, `lg2`, `ex2`, `tanh`
pub(super) fn transcendental(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    let name = c.mods.name;
    c.mods.take("approx");
    let ftz = c.mods.take("ftz");
    c.mods.finish(&["approx", "ftz"])?;
    let d = dst(c, ty)?[0];
    let [a] = sources(c, ty)?;
    let a = a[0];
    let f = match (name, ty) {
        ("sin", Type::F32) => FloatFn::Approx { function: Approx::Sin, ftz },
        ("cos", Type::F32) => FloatFn::Approx { function: Approx::Cos, ftz },
        ("lg2", Type::F32) => FloatFn::Approx { function: Approx::Lg2, ftz },
        ("ex2", Type::F32) => FloatFn::Approx { function: Approx::Ex2, ftz },
        ("tanh", Type::F32) => FloatFn::Special(Special::Tanh),
        ("ex2" | "tanh", Type::F16 | Type::Bf16 | Type::F16x2 | Type::Bf16x2) => {
            let function = if name == "ex2" { Special::Ex2 } else { Special::Tanh };
            let format = if matches!(ty, Type::F16 | Type::F16x2) { HalfFormat::F16 } else { HalfFormat::Bf16 };
            FloatFn::SpecialHalf { function, high: false, format }
        }
        _ => return c.mods.bad_type(ty),
    };
    if matches!(ty, Type::F16x2 | Type::Bf16x2) {
        let (low, high) = (c.temp(), c.temp());
        c.int(IntFn::ShrU, Some(high), &[a, Src::imm(16)]);
        float(c, f, Some(high), &[Src::slot(high)]);
        float(c, f, Some(low), &[a]);
        c.int(IntFn::Prmt(lanescope_ir::op::int::Prmt::Index), d, &[Src::slot(low), Src::imm(0x5410), Src::slot(high)]);
    } else {
        float(c, f, d, &[a]);
    }
    Ok(())
}

/// `copysign`: the sign of the first source on the second.
pub(super) fn copysign(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    c.mods.finish(&[])?;
    let d = dst(c, ty)?;
    let [a, b] = sources(c, ty)?;
    let lut = IntFn::Lop3 { lut: 0xe2 };
    let sign = Src::imm(1 << 31);
    match ty {
        Type::F32 => c.int(lut, d[0], &[a[0], sign, b[0]]),
        Type::F64 => {
            let t = c.temp();
            c.int(lut, Some(t), &[a[1], sign, b[1]]);
            c.apply(LaneFn::Int(IntFn::Mov64), [d[0], d[1]], &[b[0], Src::slot(t)]);
        }
        _ => return c.mods.bad_type(ty),
    }
    Ok(())
}

/// `testp`
pub(super) fn test(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    let kind = c.mods.find(|m| {
        Some(match m {
            "finite" => Kind::Finite,
            "infinite" => Kind::Infinite,
            "number" => Kind::Number,
            "notanumber" => Kind::NotANumber,
            "normal" => Kind::Normal,
            "subnormal" => Kind::Subnormal,
            _ => return None,
        })
    });
    c.mods.finish(&["finite", "infinite", "number", "notanumber", "normal", "subnormal"])?;
    let Some(kind) = kind else { return c.error(c.mods.span, "`testp` needs a kind of number") };
    let f = match ty {
        Type::F32 => LaneFn::Float(FloatFn::Test(kind)),
        Type::F64 => LaneFn::Double(DoubleFn::Test(kind)),
        _ => return c.mods.bad_type(ty),
    };
    let [a] = sources(c, ty)?;
    let mut op = LaneOp::new(f);
    op.pdst[0] = c.pdst(c.operand(0)?)?;
    op.src[..2].copy_from_slice(&a[..2]);
    c.lane(op);
    Ok(())
}
