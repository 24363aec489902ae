//! Video instructions: `vadd`, `vmad`, `vset2`, `vabsdiff4` and so on.

use lanescope_ir::op::LaneFn;
use lanescope_ir::op::int::{Cmp, IntFn};
use lanescope_ir::op::video::{Mad, Packed, Part, Scalar, Second, VideoFn, VideoOp};
use lanescope_ir::{Slot, Src};

use super::cx::Cx;
use super::fail::{Lowered, unsupported};
use crate::tree::{Operand, OperandKind, Type};

fn compare(name: &str) -> Option<Cmp> {
    Some(match name {
        "eq" => Cmp::Eq,
        "ne" => Cmp::Ne,
        "lt" => Cmp::Lt,
        "le" => Cmp::Le,
        "gt" => Cmp::Gt,
        "ge" => Cmp::Ge,
        _ => return None,
    })
}

fn second(name: &str) -> Option<Second> {
    Some(match name {
        "add" => Second::Add,
        "min" => Second::Min,
        "max" => Second::Max,
        _ => return None,
    })
}

/// A register or a number, and what stands after the last dot of a register with a part.
struct Value<'a> {
    operand: Operand,
    part: Option<&'a str>,
    negated: bool,
}

fn value<'a>(c: &Cx<'_, 'a>, i: usize) -> Lowered<Value<'a>> {
    let operand = *c.operand(i)?;
    let part = || operand.span.text(c.module.source).rsplit('.').next();
    let (kind, part, negated) = match operand.kind {
        OperandKind::Element { register, .. } => (OperandKind::Register(register), part(), false),
        OperandKind::Negated { register, component: Some(_) } => (OperandKind::Register(register), part(), true),
        OperandKind::Negated { register, component: None } => (OperandKind::Register(register), None, true),
        kind => (kind, None, false),
    };
    Ok(Value { operand: Operand { kind, ..operand }, part, negated })
}

/// Refuses a sign where none belongs.
fn plain<'a>(c: &Cx<'_, 'a>, i: usize) -> Lowered<Value<'a>> {
    let v = value(c, i)?;
    if v.negated { c.error(v.operand.span, "only `vmad` takes a negated operand") } else { Ok(v) }
}

fn part(c: &Cx<'_, '_>, v: &Value<'_>) -> Lowered<Part> {
    let Some(name) = v.part else { return Ok(Part::WORD) };
    match name.as_bytes() {
        [b'b', digit @ b'0'..=b'3'] => Ok(Part { bits: 8, index: digit - b'0' }),
        [b'h', digit @ b'0'..=b'1'] => Ok(Part { bits: 16, index: digit - b'0' }),
        _ => c.error(v.operand.span, format!("`.{name}` is no part of a word: .b0 to .b3, .h0 and .h1 are")),
    }
}

/// The types of the result and both sources; `vset` has no type of its result.
fn signs(c: &Cx<'_, '_>, set: bool) -> Lowered<[bool; 3]> {
    let signed = |ty: Type| match ty {
        Type::U32 => Ok(false),
        Type::S32 => Ok(true),
        _ => c.mods.bad_type(ty),
    };
    match *c.mods.types() {
        // A second operation takes the type of the first source.
        [a, b] if set => Ok([signed(a)?, signed(a)?, signed(b)?]),
        [d, a, b] if !set => Ok([signed(d)?, signed(a)?, signed(b)?]),
        _ => {
            let wanted = if set { 2 } else { 3 };
            c.error(c.mods.span, format!("`{}` needs {wanted} types", c.mods.name))
        }
    }
}

fn emit(c: &mut Cx<'_, '_>, f: VideoFn, d: Option<Slot>, s: &[Src]) {
    c.apply(LaneFn::Int(IntFn::Video(f)), [d, None], s);
}

pub(super) fn lower(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let name = c.mods.name;
    let (stem, lanes) = match name.strip_suffix(['2', '4']) {
        Some(stem) if name.ends_with('2') => (stem, 2u8),
        Some(stem) => (stem, 4),
        None => (name, 1),
    };
    if stem == "vmad" && lanes == 1 {
        return product(c);
    }
    let shifts = matches!(stem, "vshl" | "vshr");
    let sat = stem != "vset" && c.mods.take("sat");
    let op = match stem {
        "vadd" => VideoOp::Add,
        "vsub" => VideoOp::Sub,
        "vabsdiff" => VideoOp::AbsDiff,
        "vmin" => VideoOp::Min,
        "vmax" => VideoOp::Max,
        "vavrg" if lanes > 1 => VideoOp::Average,
        "vset" => match c.mods.find(compare) {
            Some(cmp) => VideoOp::Set(cmp),
            None => return c.error(c.mods.span, "`vset` needs a comparison"),
        },
        "vshl" | "vshr" if lanes == 1 => {
            let wrap = c.mods.take("wrap");
            if !wrap && !c.mods.take("clamp") {
                return c.error(c.mods.span, format!("`{name}` needs `.clamp` or `.wrap`"));
            }
            if stem == "vshl" { VideoOp::Shl { wrap } } else { VideoOp::Shr { wrap } }
        }
        _ => return unsupported("video instruction"),
    };
    let then = if lanes == 1 { c.mods.find(second) } else { None };
    let accumulate = lanes > 1 && c.mods.take("add");
    c.mods.finish(&["sat", "add", "min", "max", "clamp", "wrap", "eq", "ne", "lt", "le", "gt", "ge"])?;
    let signed = signs(c, stem == "vset")?;
    if shifts && signed[2] {
        return c.error(c.mods.span, "the amount of a shift is `.u32`");
    }
    let d = plain(c, 0)?;
    if lanes == 1 {
        scalar(c, Scalar { op, signed, parts: [Part::WORD; 2], to: part(c, &d)?, sat, second: then }, &d)
    } else {
        let f = Packed { op, lanes, signed, select: [[0; 4]; 2], mask: 0, sat, accumulate };
        packed(c, f, &d)
    }
}

fn scalar(c: &mut Cx<'_, '_>, mut f: Scalar, d: &Value<'_>) -> Lowered<()> {
    let third = f.second.is_some() || f.to != Part::WORD;
    if f.second.is_some() && f.to != Part::WORD {
        return c.error(d.operand.span, "with a second operation the result is a whole word");
    }
    c.expect(if third { 4 } else { 3 })?;
    let mut s = [Src::ZERO; 3];
    for (i, word) in s.iter_mut().enumerate().take(2) {
        let v = plain(c, i + 1)?;
        f.parts[i] = part(c, &v)?;
        *word = c.src(&v.operand, Type::U32)?[0];
    }
    if third {
        s[2] = c.word(3, Type::U32)?;
    }
    let to = c.dst(&d.operand, Type::U32)?[0];
    emit(c, VideoFn::Scalar(f), to, &s);
    Ok(())
}

/// `vmad`
fn product(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let (sat, plus_one) = (c.mods.take("sat"), c.mods.take("po"));
    let shift = if c.mods.take("shr7") {
        7
    } else if c.mods.take("shr15") {
        15
    } else {
        0
    };
    c.mods.finish(&["sat", "po", "shr7", "shr15"])?;
    let signed = signs(c, false)?;
    c.expect(4)?;
    let to = c.dst(c.operand(0)?, Type::U32)?[0];
    let (a, b, e) = (value(c, 1)?, value(c, 2)?, value(c, 3)?);
    let minus_product = a.negated != b.negated;
    if plus_one && (a.negated || b.negated || e.negated) {
        return c.error(c.mods.span, "`.po` takes no negated operand");
    }
    if minus_product && e.negated {
        return c.error(c.mods.span, "either the product or the addend is negated");
    }
    let f = Mad {
        signed: [signed[1], signed[2]],
        parts: [part(c, &a)?, part(c, &b)?],
        minus_product,
        minus_addend: e.negated,
        plus_one,
        shift,
        sat,
    };
    if e.part.is_some() {
        return c.error(e.operand.span, "the addend is a whole word");
    }
    let s = [&a, &b, &e].map(|v| c.src(&v.operand, Type::U32));
    let [a, b, e] = s;
    emit(c, VideoFn::Mad(f), to, &[a?[0], b?[0], e?[0]]);
    Ok(())
}

/// The digits of a selection like `.h10`, lowest lane first.
fn digits(c: &Cx<'_, '_>, v: &Value<'_>, letter: char, most: u8) -> Lowered<Option<Vec<u8>>> {
    let Some(name) = v.part else { return Ok(None) };
    let digits: Vec<u8> = name.strip_prefix(letter).unwrap_or("").bytes().rev().map(|b| b.wrapping_sub(b'0')).collect();
    if digits.is_empty() || digits.iter().any(|&d| d > most) {
        return c.error(v.operand.span, format!("`.{name}` is no selection of `{}`", c.mods.name));
    }
    Ok(Some(digits))
}

fn packed(c: &mut Cx<'_, '_>, mut f: Packed, d: &Value<'_>) -> Lowered<()> {
    c.expect(4)?;
    let letter = if f.lanes == 2 { 'h' } else { 'b' };
    f.mask = match digits(c, d, letter, f.lanes - 1)? {
        Some(lanes) => lanes.iter().fold(0, |mask, lane| mask | 1 << lane),
        None => (1 << f.lanes) - 1,
    };
    let mut s = [Src::ZERO; 3];
    for (i, word) in s.iter_mut().enumerate().take(2) {
        let v = plain(c, i + 1)?;
        match digits(c, &v, letter, 2 * f.lanes - 1)? {
            Some(list) if list.len() == usize::from(f.lanes) => {
                f.select[i][..list.len()].copy_from_slice(&list);
            }
            Some(_) => return c.error(v.operand.span, format!("{} lanes are selected here", f.lanes)),
            None => {
                for lane in 0..f.lanes {
                    f.select[i][usize::from(lane)] = lane + f.lanes * i as u8;
                }
            }
        }
        *word = c.src(&v.operand, Type::U32)?[0];
    }
    s[2] = c.word(3, Type::U32)?;
    let to = c.dst(&d.operand, Type::U32)?[0];
    emit(c, VideoFn::Packed(f), to, &s);
    Ok(())
}
