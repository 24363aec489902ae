//! Tensor cores: the forms whose operands are registers of one warp, and tiles in shared memory.

use lanescope_ir::op::float::Rounding;
use lanescope_ir::op::memory::{MemoryOp, Space};
use lanescope_ir::op::tensor::{Chip, Element, Mma, Shape, Sum};
use lanescope_ir::op::warp::WarpOp;
use lanescope_ir::{Op, Src};

use super::operands::{Cx, Lowered, refuse, slot_at, src};
use crate::isa::inst::{File, Sign};

pub(super) fn lower(cx: &Cx) -> Option<Lowered<Op>> {
    Some(match cx.inst.mnemonic {
        "HMMA" => floats(cx),
        "QMMA" => eight_bit_floats(cx),
        "IMMA" => integers(cx),
        "BMMA" => bits(cx),
        "DMMA" => doubles(cx),
        "LDSM" => load(cx),
        "STSM" => store(cx),
        "MOVM" => transpose(cx),
        _ => return None,
    })
}

/// `16816` and the like.
fn shape(m: &str) -> Option<Shape> {
    let (m, k) = match m {
        "884" | "8x8x4" => (8, 4),
        "1684" | "16x8x4" => (16, 4),
        "1688" | "16x8x8" => (16, 8),
        "16816" | "16x8x16" => (16, 16),
        "16832" => (16, 32),
        "16864" => (16, 64),
        "8816" => (8, 16),
        "8832" => (8, 32),
        "88128" => (8, 128),
        "168128" => (16, 128),
        "168256" => (16, 256),
        _ => return None,
    };
    Some(Shape { m, k })
}

/// The shape and the other modifiers.
fn modifiers<'a>(cx: &Cx<'a>) -> Lowered<(Shape, Vec<&'a str>)> {
    let mods = &cx.inst.mods;
    let Some(found) = mods.iter().find_map(|m| shape(m)) else {
        return refuse("a tensor-core shape that is not known");
    };
    Ok((found, mods.iter().copied().filter(|m| shape(m).is_none()).collect()))
}

/// Registers from operand `i` on; `layout` is the suffix that the operand may have.
fn registers(cx: &Cx, i: usize, n: usize, layout: &str) -> Lowered<Vec<Src>> {
    let r = cx.reg(i)?;
    if r.file != File::Vector || r.sign != Sign::None || r.abs || !(r.suffix.is_empty() || r.suffix == layout) {
        return refuse(format!("operand {i} is not a plain register"));
    }
    Ok((0..n).map(|k| src(slot_at(r.file, r.index, k as u8))).collect())
}

fn multiply(cx: &Cx, shape: Shape, a_type: Element, b_type: Element, sum: Sum) -> Lowered<Op> {
    let Some([a, b, c]) = Mma::words(shape, a_type, b_type, sum) else {
        return refuse("a tensor-core shape that does not go with its types");
    };
    if cx.len() != 4 {
        return refuse("a tensor-core operation with more than four operands");
    }
    let d = cx.reg(0)?;
    if d.file != File::Vector {
        return refuse("a uniform tensor-core result");
    }
    let op = Mma {
        shape,
        a_type,
        b_type,
        sum,
        d: (0..c).map(|k| slot_at(d.file, d.index, k as u8)).collect(),
        a: registers(cx, 1, a, "ROW")?,
        b: registers(cx, 2, b, "COL")?,
        c: registers(cx, 3, c, "")?,
    };
    Ok(Op::Warp(WarpOp::Mma(Box::new(op))))
}

fn multiply_floats(cx: &Cx, shape: Shape, a: Element, b: Element, half: bool) -> Lowered<Op> {
    match Chip::of(cx.sm).sum(a, half) {
        Some(sum) => multiply(cx, shape, a, b, sum),
        None => refuse("elements that this chip does not multiply"),
    }
}

fn floats(cx: &Cx) -> Lowered<Op> {
    let (shape, mods) = modifiers(cx)?;
    let (half, element) = match mods[..] {
        ["F16"] => (true, Element::F16),
        ["F32"] => (false, Element::F16),
        ["F32", "BF16"] => (false, Element::Bf16),
        ["F32", "TF32"] => (false, Element::Tf32),
        _ => return refuse(format!("modifiers .{}", mods.join("."))),
    };
    if shape.m == 8 {
        return refuse("the tensor core of sm_70");
    }
    multiply_floats(cx, shape, element, element, half)
}

fn eight_bit_floats(cx: &Cx) -> Lowered<Op> {
    let (shape, mods) = modifiers(cx)?;
    let element = |m: &str| match m {
        "E4M3" => Some(Element::E4m3),
        "E5M2" => Some(Element::E5m2),
        _ => None,
    };
    let [to @ ("F16" | "F32"), types @ ..] = &mods[..] else {
        return refuse(format!("modifiers .{}", mods.join(".")));
    };
    // The tables print both types as one modifier.
    let types: Vec<_> = types.iter().flat_map(|m| m.split('.')).map(element).collect();
    let [Some(a), Some(b)] = types[..] else { return refuse(format!("modifiers .{}", mods.join("."))) };
    multiply_floats(cx, shape, a, b, *to == "F16")
}

fn integers(cx: &Cx) -> Lowered<Op> {
    let (shape, mods) = modifiers(cx)?;
    let element = |m: &str| {
        let signed = match m.as_bytes().first() {
            Some(b'S') => true,
            Some(b'U') => false,
            _ => return None,
        };
        match &m[1..] {
            "8" => Some(Element::Int { bits: 8, signed }),
            "4" => Some(Element::Int { bits: 4, signed }),
            _ => None,
        }
    };
    let mut saturate = false;
    let mut types = Vec::new();
    for m in mods.iter().flat_map(|m| m.split('.')) {
        match element(m) {
            Some(e) => types.push(e),
            None if m == "SAT" => saturate = true,
            None => return refuse(format!("modifier .{m}")),
        }
    }
    let [a, b] = types[..] else { return refuse("a tensor-core operation without two types") };
    multiply(cx, shape, a, b, Sum::Int { saturate })
}

fn bits(cx: &Cx) -> Lowered<Op> {
    let (shape, mods) = modifiers(cx)?;
    let xor = match mods.iter().flat_map(|m| m.split('.')).collect::<Vec<_>>()[..] {
        ["AND", "POPC"] => false,
        ["XOR", "POPC"] => true,
        _ => return refuse(format!("modifiers .{}", mods.join("."))),
    };
    multiply(cx, shape, Element::Bit, Element::Bit, Sum::Bits { xor })
}

fn doubles(cx: &Cx) -> Lowered<Op> {
    let (shape, mods) = modifiers(cx)?;
    let round = match mods[..] {
        [] => Rounding::Nearest,
        ["RZ"] => Rounding::Zero,
        ["RM"] => Rounding::Down,
        ["RP"] => Rounding::Up,
        _ => return refuse(format!("modifiers .{}", mods.join("."))),
    };
    multiply(cx, shape, Element::F64, Element::F64, Sum::Double(round))
}

/// Number of tiles and whether they are transposed.
fn tiles(cx: &Cx) -> Lowered<(u8, bool)> {
    match cx.inst.mods[..] {
        ["16", layout @ ("M88" | "MT88")] => Ok((1, layout == "MT88")),
        ["16", layout @ ("M88" | "MT88"), "2"] => Ok((2, layout == "MT88")),
        ["16", layout @ ("M88" | "MT88"), "4"] => Ok((4, layout == "MT88")),
        _ => refuse(format!("tiles .{}", cx.inst.mods.join("."))),
    }
}

fn load(cx: &Cx) -> Lowered<Op> {
    let (count, transposed) = tiles(cx)?;
    if cx.len() != 2 {
        return refuse("a load of tiles with more than an address");
    }
    let r = cx.reg(0)?;
    let mut dst = [None; 4];
    for (k, d) in dst.iter_mut().enumerate().take(count.into()) {
        *d = slot_at(r.file, r.index, k as u8);
    }
    let addr = cx.addr(1, false)?;
    Ok(Op::Memory(MemoryOp::LoadMatrix { space: Space::Shared, count, transposed, dst, addr }))
}

fn store(cx: &Cx) -> Lowered<Op> {
    let (count, transposed) = tiles(cx)?;
    if cx.len() != 2 {
        return refuse("a store of tiles with more than an address and a value");
    }
    let addr = cx.addr(0, false)?;
    let mut words = [Src::ZERO; 4];
    for (to, from) in words.iter_mut().zip(registers(cx, 1, count.into(), "")?) {
        *to = from;
    }
    Ok(Op::Memory(MemoryOp::StoreMatrix { space: Space::Shared, count, transposed, src: words, addr }))
}

fn transpose(cx: &Cx) -> Lowered<Op> {
    if cx.inst.mods[..] != ["16", "MT88"] || cx.len() != 2 {
        return refuse(format!("a move of tiles .{}", cx.inst.mods.join(".")));
    }
    Ok(Op::Warp(WarpOp::Transpose { dst: cx.dst(0)?, src: registers(cx, 1, 1, "")?[0] }))
}
