//! Operations that are one function: every row must come out as measured.

use lanescope_ir::op::LaneFn;
use lanescope_ir::op::convert::{ConvertFn, Float, Float8, Integer};
use lanescope_ir::op::double::{DoubleFn, Signs};
use lanescope_ir::op::float::{Arith, Combine, Compare, FloatFn, HalfFormat, Relation, Rounding, Special};
use lanescope_sim::lane::eval;

use crate::rows::{Operation, operations};

fn rounding(part: &str) -> Option<Rounding> {
    Some(match part {
        "rn" | "rni" => Rounding::Nearest,
        "rz" | "rzi" => Rounding::Zero,
        "rm" | "rmi" => Rounding::Down,
        "rp" | "rpi" => Rounding::Up,
        _ => return None,
    })
}

fn relation(part: &str) -> Option<Relation> {
    const NAMES: [(&str, u8); 14] = [
        ("lt", 1),
        ("eq", 2),
        ("le", 3),
        ("gt", 4),
        ("ne", 5),
        ("ge", 6),
        ("num", 7),
        ("nan", 8),
        ("ltu", 9),
        ("equ", 10),
        ("leu", 11),
        ("gtu", 12),
        ("neu", 13),
        ("geu", 14),
    ];
    NAMES.iter().find(|n| n.0 == part).map(|n| Relation(n.1))
}

fn float(part: &str) -> Option<Float> {
    Some(match part {
        "f16" => Float::Half(HalfFormat::F16),
        "bf16" => Float::Half(HalfFormat::Bf16),
        "f32" => Float::F32,
        "f64" => Float::F64,
        _ => return None,
    })
}

fn integer(part: &str) -> Option<Integer> {
    let signed = part.starts_with('s');
    let bits = part.strip_prefix(['s', 'u'])?.parse().ok()?;
    Some(Integer { bits, signed })
}

/// The function of a PTX operation, and the sign to flip of the second source.
fn function(name: &str) -> Option<(LaneFn, bool)> {
    let parts: Vec<&str> = name.split('.').collect();
    let kind = *parts.last()?;
    let has = |p: &str| parts.contains(&p);
    let round = parts.iter().find_map(|p| rounding(p)).unwrap_or_default();
    let arith = Arith { round, ftz: has("ftz"), sat: has("sat") };
    let relation = parts.get(1).and_then(|p| relation(p));
    let subtract = parts[0] == "sub";
    let signs = Signs { magnitude: 0, negate: if subtract { 2 } else { 0 } };
    let f = match (parts[0], kind) {
        ("add" | "sub", "f32") => LaneFn::Float(FloatFn::Add(arith)),
        ("add" | "sub", "f64") => LaneFn::Double(DoubleFn::Add(round, signs)),
        ("mul", "f32") => LaneFn::Float(FloatFn::Mul { arith, scale: 0, zero_wins: false }),
        ("mul", "f64") => LaneFn::Double(DoubleFn::Mul(round, signs)),
        ("fma", "f32") => LaneFn::Float(FloatFn::Fma { arith, zero_wins: false }),
        ("fma", "f64") => LaneFn::Double(DoubleFn::Fma(round, Signs::default())),
        ("min" | "max", "f32") => {
            LaneFn::Float(FloatFn::MinMax { ftz: has("ftz"), nan: has("NaN"), xorsign_abs: has("xorsign") })
        }
        ("min" | "max", "f64") => LaneFn::Double(DoubleFn::MinMax { smaller: parts[0] == "min" }),
        ("setp", "f32") => {
            let compare = Compare { relation: relation?, combine: Combine::And };
            LaneFn::Float(FloatFn::Compare { compare, ftz: has("ftz") })
        }
        ("setp", "f64") => LaneFn::Double(DoubleFn::Compare(Compare { relation: relation?, combine: Combine::And })),
        ("cvt", _) => LaneFn::Convert(conversion(name, &parts, round)?),
        // The bare functions: the ones that ptxas scales are checked through its code.
        ("rcp", "f32") if has("ftz") => LaneFn::Float(FloatFn::Special(Special::Rcp)),
        ("rsqrt", "f32") if has("ftz") => LaneFn::Float(FloatFn::Special(Special::Rsq)),
        ("sqrt", "f32") if has("ftz") => LaneFn::Float(FloatFn::Special(Special::Sqrt)),
        ("lg2", "f32") if has("ftz") => LaneFn::Float(FloatFn::Special(Special::Lg2)),
        ("ex2", "f32") if has("ftz") => LaneFn::Float(FloatFn::Special(Special::Ex2)),
        ("tanh", "f32") => LaneFn::Float(FloatFn::Special(Special::Tanh)),
        ("ex2", "f16") => {
            LaneFn::Float(FloatFn::SpecialHalf { function: Special::Ex2, high: false, format: HalfFormat::F16 })
        }
        ("tanh", "f16") => {
            LaneFn::Float(FloatFn::SpecialHalf { function: Special::Tanh, high: false, format: HalfFormat::F16 })
        }
        _ => return None,
    };
    Some((f, subtract && kind == "f32"))
}

fn conversion(name: &str, parts: &[&str], round: Rounding) -> Option<ConvertFn> {
    let ftz = parts.contains(&"ftz");
    let relu = parts.contains(&"relu");
    match name {
        "cvt.rn.satfinite.e4m3x2.f32" => return Some(ConvertFn::PackFloat8 { format: Float8::E4m3, relu }),
        "cvt.rn.satfinite.e5m2x2.f32" => return Some(ConvertFn::PackFloat8 { format: Float8::E5m2, relu }),
        "cvt.rn.f16x2.e4m3x2" => return Some(ConvertFn::UnpackFloat8 { relu: false, format: Float8::E4m3, shift: 0 }),
        "cvt.rn.f16x2.e5m2x2" => return Some(ConvertFn::UnpackFloat8 { relu: false, format: Float8::E5m2, shift: 0 }),
        // bf16 is the high half of an f32: a shift, no conversion.
        "cvt.f32.bf16" => return None,
        _ => {}
    }
    let (to, from) = (parts[parts.len() - 2], parts[parts.len() - 1]);
    if parts[1] == "pack" {
        return Some(ConvertFn::PackInt { to: integer(parts[3])? });
    }
    if let (Some(half), "f32") = (to.strip_suffix("x2"), from) {
        let Some(Float::Half(format)) = float(half) else { return None };
        return Some(ConvertFn::PackHalf { format, round, relu, finite: false });
    }
    if parts.contains(&"sat") {
        return None;
    }
    Some(match (float(to), float(from), integer(to), integer(from)) {
        (Some(to), _, _, Some(from)) => ConvertFn::FromInt { from, shift: 0, to, round },
        (_, Some(from), Some(to), _) => {
            // The narrow and 32-bit conversions are printed with .NTZ, the others are not.
            let nan_to_zero = to.bits < 64 && from != Float::F64;
            ConvertFn::ToInt { from, to, round, ftz, nan_to_zero }
        }
        (Some(Float::Half(HalfFormat::Bf16)), Some(Float::F32), ..) => {
            ConvertFn::MergeHalf { format: HalfFormat::Bf16, round, relu, finite: false }
        }
        (Some(format), Some(from), ..) if format == from && name.contains('i') => {
            ConvertFn::RoundToIntegral { format, round, ftz }
        }
        (Some(to), Some(from), ..) => ConvertFn::FloatToFloat { from, to, round, ftz },
        _ => return None,
    })
}

fn compute(operation: &Operation, f: &LaneFn, negate: bool, row: &[u64]) -> u64 {
    let mut s = [0; 6];
    let mut next = 0;
    for (i, (&value, &width)) in row.iter().zip(&operation.widths).enumerate() {
        let value = if negate && i == 1 { value ^ 1 << (width * 8 - 1) } else { value };
        s[next] = value as u32;
        if width == 8 {
            s[next + 1] = (value >> 32) as u32;
        }
        next += width.div_ceil(4);
    }
    let smaller = operation.name.starts_with("min");
    let is_min_max = smaller || operation.name.starts_with("max");
    let out = eval(f, s, [!is_min_max || smaller, true, true]);
    if operation.name.starts_with("setp") {
        return u64::from(out.p[0]);
    }
    let wide = u64::from(out.d[1]) << 32 | u64::from(out.d[0]);
    match operation.output.as_str() {
        "s8" | "u8" => wide & 0xff,
        "s16" | "u16" | "b16" | "f16" | "bf16" => wide & 0xffff,
        "s64" | "u64" | "f64" => wide,
        _ => wide & 0xffff_ffff,
    }
}

#[test]
fn as_measured() {
    let (mut operations_seen, mut rows, mut wrong) = (0, 0, Vec::new());
    for operation in operations() {
        let Some((f, negate)) = function(&operation.name) else { continue };
        operations_seen += 1;
        rows += operation.rows.len();
        let bad: Vec<String> = operation
            .rows
            .iter()
            .filter_map(|row| {
                let (inputs, expected) = row.split_at(row.len() - 1);
                let got = compute(&operation, &f, negate, inputs);
                (got != expected[0]).then(|| format!("{inputs:x?} gave {got:x}, measured {:x}", expected[0]))
            })
            .collect();
        if !bad.is_empty() {
            wrong.push(format!(
                "{}: {} rows, first: {}",
                operation.name,
                bad.len(),
                bad[..bad.len().min(3)].join("; ")
            ));
        }
    }
    assert!(wrong.is_empty(), "{operations_seen} operations, {rows} rows:\n{}", wrong.join("\n"));
}
