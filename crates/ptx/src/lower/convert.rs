//! `cvt`

mod rules;

use lanescope_ir::op::LaneFn;
use lanescope_ir::op::convert::{ConvertFn, Float, Float8, Integer, Tf32Rounding};
use lanescope_ir::op::double::DoubleFn;
use lanescope_ir::op::float::{Arith, FloatFn, HalfFormat, Rounding};
use lanescope_ir::op::half::Format;
use lanescope_ir::op::int::{IntFn, Small};
use lanescope_ir::{Slot, Src};

use super::cx::{Cx, Dst};
use super::fail::{Lowered, unsupported};
use super::half;
use super::int::dst;
use crate::tree::{OperandKind, Type};

fn integer(ty: Type) -> Option<Integer> {
    let bits = match ty {
        Type::U8 | Type::S8 => 8,
        Type::U16 | Type::S16 => 16,
        Type::U32 | Type::S32 => 32,
        Type::U64 | Type::S64 => 64,
        _ => return None,
    };
    Some(Integer { bits, signed: ty.is_signed() })
}

fn float(ty: Type) -> Option<Float> {
    Some(match ty {
        Type::F16 => Float::Half(HalfFormat::F16),
        Type::Bf16 => Float::Half(HalfFormat::Bf16),
        Type::F32 => Float::F32,
        Type::F64 => Float::F64,
        _ => return None,
    })
}

const KNOWN: &[&str] =
    &["rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", "rna", "ftz", "sat", "relu", "satfinite", "pack", "rs"];

/// What a conversion's modifiers say.
struct How {
    round: Option<Rounding>,
    /// To an integral number.
    integral: Option<Rounding>,
    /// `.rna`
    away: bool,
    ftz: bool,
    sat: bool,
    relu: bool,
    finite: bool,
}

pub(super) fn lower(c: &mut Cx<'_, '_>) -> Lowered<()> {
    if c.mods.take("pack") {
        return pack(c);
    }
    if c.mods.has("rs") {
        return unsupported("stochastic rounding");
    }
    let [to, from] = c.mods.two_types()?;
    let how = How {
        round: c.mods.rounding(),
        integral: c.mods.find(|m| {
            Some(match m {
                "rni" => Rounding::Nearest,
                "rzi" => Rounding::Zero,
                "rmi" => Rounding::Down,
                "rpi" => Rounding::Up,
                _ => return None,
            })
        }),
        away: c.mods.take("rna"),
        ftz: c.mods.take("ftz"),
        sat: c.mods.take("sat"),
        relu: c.mods.take("relu"),
        finite: c.mods.take("satfinite"),
    };
    c.mods.finish(KNOWN)?;
    if let Some(why) = rules::broken(to, from, &how) {
        return c.error(c.mods.span, why);
    }
    match (to, from) {
        (Type::F16x2 | Type::Bf16x2, _) | (_, Type::F16x2 | Type::Bf16x2) => return two(c, to, from, &how),
        (Type::E4m3x2 | Type::E5m2x2, Type::F32) => return two(c, to, from, &how),
        (Type::Tf32, Type::F32) => return tf32(c, &how),
        _ => {}
    }
    c.expect(2)?;
    let operand = c.operand(1)?;
    let source = if matches!(operand.kind, OperandKind::Special { .. }) {
        c.check_special(operand, from, true)?;
        if integer(to).is_none() {
            return c.error(operand.span, "special registers are converted to integers only");
        }
        let t = [c.temp(), c.temp()];
        super::mov::special(c, operand, [Some(t[0]), Some(t[1])])?;
        [Src::slot(t[0]), Src::slot(t[1]), Src::ZERO, Src::ZERO]
    } else {
        c.src_wide(operand, from, true)?
    };
    let source = &source[..2];
    let d = c.dst_wide(c.operand(0)?, to, true)?;
    match (integer(to), integer(from), float(to), float(from)) {
        (Some(t), Some(f), ..) => {
            let g = ConvertFn::IntToInt { from: f, to: t, saturate: how.sat };
            c.apply(LaneFn::Convert(g), [d[0], if t.bits == 64 { d[1] } else { None }], source);
        }
        (Some(t), _, _, Some(f)) => {
            let Some(round) = how.integral else {
                return c.error(c.mods.span, "a conversion to an integer needs `.rni`, `.rzi`, `.rmi` or `.rpi`");
            };
            // As an H200 does: narrow and 32-bit conversions give 0 for a NaN, the others do not.
            let nan_to_zero = t.bits < 64 && f != Float::F64;
            let g = ConvertFn::ToInt { from: f, to: t, round, ftz: how.ftz, nan_to_zero };
            c.apply(LaneFn::Convert(g), [d[0], if t.bits == 64 { d[1] } else { None }], source);
        }
        (_, Some(f), Some(t), _) => {
            let Some(round) = how.round else {
                return c.error(c.mods.span, "a conversion from an integer to a float needs a rounding");
            };
            c.apply(LaneFn::Convert(ConvertFn::FromInt { from: f, shift: 0, to: t, round }), [d[0], d[1]], source);
            saturate(c, to, d, how.sat, false);
        }
        (_, _, Some(t), Some(f)) => floats(c, (to, t), f, d, source, &how)?,
        _ => return c.mods.bad_type(if integer(to).is_some() || float(to).is_some() { from } else { to }),
    }
    // A register wider than the type holds the extended number.
    if to.bits() <= 32 && d[1].is_some() {
        let high = match d[0] {
            Some(low) if to.is_signed() => (IntFn::ShrS, [Src::slot(low), Src::imm(31)]),
            _ => (IntFn::Mov, [Src::ZERO; 2]),
        };
        c.int(high.0, d[1], &high.1);
    }
    Ok(())
}

/// Between floats of the same or of different formats.
fn floats(c: &mut Cx<'_, '_>, (to, t): (Type, Float), f: Float, d: Dst, source: &[Src], how: &How) -> Lowered<()> {
    let pair = [d[0], d[1]];
    let ftz = how.ftz;
    if t == f {
        if let Some(round) = how.integral {
            c.apply(LaneFn::Convert(ConvertFn::RoundToIntegral { format: t, round, ftz }), pair, source);
            saturate(c, to, d, how.sat, how.relu);
        } else if t == Float::F32 && (ftz || how.sat) {
            let arith = Arith { round: Rounding::Nearest, ftz, sat: how.sat };
            c.apply(LaneFn::Float(FloatFn::Add(arith)), pair, &[Src::ZERO, source[0]]);
        } else {
            c.apply(LaneFn::Int(if t == Float::F64 { IntFn::Mov64 } else { IntFn::Mov }), pair, source);
            saturate(c, to, d, how.sat, how.relu);
        }
        return Ok(());
    }
    let round = how.round.unwrap_or_default();
    match (t, f) {
        (Float::F32, Float::Half(HalfFormat::Bf16)) => c.int(IntFn::Shl, d[0], &[source[0], Src::imm(16)]),
        (Float::Half(format), Float::F32)
            if matches!(round, Rounding::Nearest | Rounding::Zero)
                && (format == HalfFormat::Bf16 || how.relu || how.finite) =>
        {
            let g = ConvertFn::MergeHalf { format, round, relu: how.relu, finite: how.finite };
            c.apply(LaneFn::Convert(g), pair, &[source[0], Src::ZERO]);
            saturate(c, to, d, how.sat, false);
            return Ok(());
        }
        _ => {
            // An H200 flushes no f32 that becomes 16 bits: rounded away from zero it gives the smallest number.
            let ftz = ftz && !matches!(t, Float::Half(_));
            c.apply(LaneFn::Convert(ConvertFn::FloatToFloat { from: f, to: t, round, ftz }), pair, source);
        }
    }
    if how.finite {
        return unsupported("satfinite of this conversion");
    }
    saturate(c, to, d, how.sat, how.relu);
    Ok(())
}

/// The result clamped to 0..1, or with negative numbers made zero.
fn saturate(c: &mut Cx<'_, '_>, to: Type, d: Dst, sat: bool, relu: bool) {
    if !sat && !relu {
        return;
    }
    match to {
        Type::F32 => {
            if let Some(slot) = d[0] {
                let arith = Arith { sat: true, ..Arith::PLAIN };
                c.apply(LaneFn::Float(FloatFn::Add(arith)), [d[0], None], &[Src::ZERO, Src::slot(slot)]);
            }
        }
        Type::F64 => {
            if let [Some(lo), Some(hi), ..] = d {
                let x = [Src::slot(lo), Src::slot(hi)];
                let one = Src::imm((1f64.to_bits() >> 32) as u32);
                let max = LaneFn::Double(DoubleFn::MinMax { smaller: false });
                let min = LaneFn::Double(DoubleFn::MinMax { smaller: true });
                c.apply(max, [d[0], d[1]], &[x[0], x[1], Src::ZERO, Src::ZERO]);
                c.apply(min, [d[0], d[1]], &[x[0], x[1], Src::ZERO, one]);
            }
        }
        _ => {
            let format = if to == Type::Bf16 { Format::Bf16 } else { Format::F16 };
            half::clamp(c, format, d[0], sat, relu);
        }
    }
}

/// Two numbers at a time.
fn two(c: &mut Cx<'_, '_>, to: Type, from: Type, how: &How) -> Lowered<()> {
    let d: [Option<Slot>; 4] = dst(c, to)?;
    let pair = [d[0], None];
    let half_format = |ty| match ty {
        Type::F16x2 => Some(HalfFormat::F16),
        Type::Bf16x2 => Some(HalfFormat::Bf16),
        _ => None,
    };
    let float8 = |ty| match ty {
        Type::E4m3x2 => Some(Float8::E4m3),
        Type::E5m2x2 => Some(Float8::E5m2),
        _ => None,
    };
    match (half_format(to), float8(to), from) {
        (Some(format), _, Type::F32) => {
            c.expect(3)?;
            let round = match how.round {
                Some(round @ (Rounding::Nearest | Rounding::Zero)) => round,
                _ => return c.error(c.mods.span, "this conversion needs `.rn` or `.rz`"),
            };
            let s = [c.word(1, from)?, c.word(2, from)?];
            let f = ConvertFn::PackHalf { format, round, relu: how.relu, finite: how.finite };
            c.apply(LaneFn::Convert(f), pair, &s);
        }
        (_, Some(format), Type::F32) => {
            c.expect(3)?;
            let s = [c.word(1, from)?, c.word(2, from)?, Src::ZERO];
            c.apply(LaneFn::Convert(ConvertFn::PackFloat8 { format, relu: how.relu }), pair, &s);
        }
        (_, Some(format), Type::F16x2) => {
            c.expect(2)?;
            let s = [c.word(1, from)?, Src::ZERO];
            c.apply(LaneFn::Convert(ConvertFn::PackFloat8FromHalf { format, relu: how.relu }), pair, &s);
        }
        (Some(HalfFormat::F16), _, Type::E4m3x2 | Type::E5m2x2) => {
            c.expect(2)?;
            let s = [c.word(1, from)?];
            if let Some(format) = float8(from) {
                c.apply(LaneFn::Convert(ConvertFn::UnpackFloat8 { relu: how.relu, format, shift: 0 }), pair, &s);
            }
        }
        _ => return unsupported("conversion of small floats"),
    }
    Ok(())
}

fn tf32(c: &mut Cx<'_, '_>, how: &How) -> Lowered<()> {
    c.expect(2)?;
    let d = dst(c, Type::Tf32)?[0];
    let a = c.word(1, Type::F32)?;
    let round = match (how.away, how.round) {
        (true, _) => Tf32Rounding::Away,
        (_, Some(Rounding::Nearest)) => Tf32Rounding::Nearest,
        (_, Some(Rounding::Zero)) => Tf32Rounding::Zero,
        _ => return c.error(c.mods.span, "a conversion to `.tf32` needs `.rna`, `.rn` or `.rz`"),
    };
    if how.finite && !how.away {
        // sm_100 has it in hardware, which was not measured.
        return unsupported("tf32 with .satfinite");
    }
    let f = ConvertFn::ToTf32 { round, relu: how.relu, finite: how.finite };
    c.apply(LaneFn::Convert(f), [d, None], &[a]);
    Ok(())
}

/// `cvt.pack`
fn pack(c: &mut Cx<'_, '_>) -> Lowered<()> {
    c.mods.take("sat");
    let small = c.mods.find(|m| match m {
        "u2" => Some((2, false)),
        "s2" => Some((2, true)),
        _ => None,
    });
    c.mods.finish(&["sat"])?;
    let types = c.mods.types().to_vec();
    let to = match (small, types.first()) {
        (Some(small), _) => Some(small),
        (None, Some(Type::U4)) => Some((4, false)),
        (None, Some(Type::S4)) => Some((4, true)),
        (None, Some(Type::U8)) => Some((8, false)),
        (None, Some(Type::S8)) => Some((8, true)),
        (None, Some(Type::U16)) => Some((16, false)),
        (None, Some(Type::S16)) => Some((16, true)),
        _ => None,
    };
    let Some((bits, signed)) = to else { return c.error(c.mods.span, "`cvt.pack` has no such result type") };
    let with = types.last() == Some(&Type::B32);
    c.expect(if with { 4 } else { 3 })?;
    let d = dst(c, Type::B32)?[0];
    let above = if with { c.word(3, Type::B32)? } else { Src::ZERO };
    let s = [c.word(1, Type::S32)?, c.word(2, Type::S32)?, above];
    c.int(IntFn::PackSaturate(Small { bits, signed }), d, &s);
    Ok(())
}
