//! Multiplication of tiles, and tiles in shared memory.
//!
//! `.aligned` promises that the whole warp executes the instruction: it waits for all its lanes first. The chip that
//! `.target` names says how products of floats are added up.

use lanescope_ir::op::float::Rounding;
use lanescope_ir::op::memory::{MemoryOp, Space as IrSpace};
use lanescope_ir::op::tensor::{Chip, Element, Mma, Shape, Sum};
use lanescope_ir::op::warp::WarpOp;
use lanescope_ir::{Slot, Src};

use super::cx::Cx;
use super::fail::{Lowered, unsupported};
use super::warp::wait;
use crate::tree::{Operand, OperandKind, Space, Type};

/// `m16n8k16` and the like.
fn shape(m: &str) -> Option<Shape> {
    let (m, rest) = m.strip_prefix('m')?.split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    let shape = Shape { m: m.parse().ok()?, k: k.parse().ok()? };
    (n.parse() == Ok(Shape::N)).then_some(shape)
}

fn element(ty: Type) -> Option<Element> {
    Some(match ty {
        Type::F16 => Element::F16,
        Type::Bf16 => Element::Bf16,
        Type::Tf32 => Element::Tf32,
        Type::E4m3 => Element::E4m3,
        Type::E5m2 => Element::E5m2,
        Type::F64 => Element::F64,
        Type::S8 | Type::S4 => Element::Int { bits: ty.bits() as u8, signed: true },
        Type::U8 | Type::U4 => Element::Int { bits: ty.bits() as u8, signed: false },
        Type::B1 => Element::Bit,
        _ => return None,
    })
}

/// The newest architecture that `.target` names.
fn chip(c: &Cx<'_, '_>) -> Chip {
    let number = |t: &&str| t.strip_prefix("sm_")?.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse().ok();
    Chip::of(c.module.targets.iter().filter_map(number).max().unwrap_or(0))
}

/// The words of a vector of registers, each of type `ty`.
fn sources(c: &Cx<'_, '_>, operand: &Operand, ty: Type) -> Lowered<Vec<Src>> {
    let mut out = Vec::new();
    for member in c.members(operand) {
        let words = c.src(member, ty)?;
        out.extend_from_slice(&words[..ty.bits().div_ceil(32) as usize]);
    }
    Ok(out)
}

fn destinations(c: &Cx<'_, '_>, operand: &Operand, ty: Type) -> Lowered<Vec<Option<Slot>>> {
    let mut out = Vec::new();
    for member in c.members(operand) {
        let words = c.dst(member, ty)?;
        out.extend_from_slice(&words[..ty.bits().div_ceil(32) as usize]);
    }
    Ok(out)
}

/// Waits for the whole warp.
fn whole_warp(c: &mut Cx<'_, '_>) {
    wait(c, Src::imm(u32::MAX));
}

/// `mma`
pub(super) fn multiply(c: &mut Cx<'_, '_>) -> Lowered<()> {
    if c.mods.has("sp") || c.mods.has("sp::ordered_metadata") {
        return unsupported("sparse tensor core");
    }
    if c.mods.has("block_scale") {
        return unsupported("tensor core with scaled blocks");
    }
    let [d_type, a_type, b_type, c_type] = c.mods.types()[..] else {
        return c.error(c.mods.span, format!("`{}` needs 4 types and has {}", c.mods.text, c.mods.types().len()));
    };
    let shape = c.mods.find(shape);
    // Of the other layouts there is only one shape, which is not here.
    let by_rows_and_columns = c.mods.take("row") & c.mods.take("col");
    c.mods.ignore(|m| matches!(m, "row" | "col"));
    let saturate = c.mods.take("satfinite");
    let round = c.mods.rounding().unwrap_or(Rounding::Nearest);
    let xor = c.mods.take("xor");
    c.mods.ignore(|m| matches!(m, "sync" | "aligned" | "and" | "popc" | "kind::f8f6f4"));
    c.mods.finish(&["sync", "aligned", "row", "col", "satfinite", "xor", "and", "popc"])?;
    c.expect(4)?;
    let (Some(a), Some(b)) = (element(a_type), element(b_type)) else {
        return unsupported("tensor core of this type");
    };
    let Some(shape) = shape else { return unsupported("tensor core of this shape") };
    if !by_rows_and_columns || (shape.m == 8 && a == Element::F16) {
        // m8n8k4 of f16 has a layout of its own, by quarters of the warp.
        return unsupported("tensor core of sm_70");
    }
    let sum = match (c_type, d_type) {
        (Type::F16, Type::F16) => chip(c).sum(a, true),
        (Type::F32, Type::F32) => chip(c).sum(a, false),
        (Type::F64, Type::F64) => Some(Sum::Double(round)),
        (Type::S32, Type::S32) if a == Element::Bit => Some(Sum::Bits { xor }),
        (Type::S32, Type::S32) => Some(Sum::Int { saturate }),
        _ => return unsupported("tensor core with C and D of two types"),
    };
    let Some(sum) = sum else { return unsupported("8-bit floats on a chip that multiplies them as f16") };
    let ty = if a == Element::F64 { Type::F64 } else { Type::B32 };
    let c_type = if c_type == Type::F16 { Type::B32 } else { c_type };
    let op = Mma {
        shape,
        a_type: a,
        b_type: b,
        sum,
        d: destinations(c, c.operand(0)?, c_type)?,
        a: sources(c, c.operand(1)?, ty)?,
        b: sources(c, c.operand(2)?, ty)?,
        c: sources(c, c.operand(3)?, c_type)?,
    };
    if !op.is_consistent() {
        return c.error(c.span, format!("`{}` has no form with these types and numbers of registers", c.mods.text));
    }
    whole_warp(c);
    c.warp(WarpOp::Mma(Box::new(op)));
    Ok(())
}

/// `.sync.aligned`, which no instruction of a whole warp is without.
fn aligned(c: &mut Cx<'_, '_>) -> Lowered<()> {
    if c.mods.take("sync") && c.mods.take("aligned") {
        return Ok(());
    }
    c.error(c.mods.span, format!("`{}` needs `.sync.aligned`", c.mods.name))
}

/// The modifiers of `ldmatrix` and `stmatrix`: number of tiles, whether transposed, state space.
fn tiles(c: &mut Cx<'_, '_>) -> Lowered<(u8, bool, Option<Space>)> {
    let ty = c.mods.ty()?;
    if ty != Type::B16 || !c.mods.take("m8n8") {
        return unsupported("tiles of 8-bit elements");
    }
    let transposed = c.mods.take("trans");
    let space = (c.mods.take("shared") || c.mods.take("shared::cta")).then_some(Space::Shared);
    let count = c.mods.find(|m| match m {
        "x1" => Some(1),
        "x2" => Some(2),
        "x4" => Some(4),
        _ => None,
    });
    aligned(c)?;
    c.mods.finish(&["sync", "aligned", "trans", "shared", "x1", "x2", "x4"])?;
    c.expect(2)?;
    match count {
        Some(count) => Ok((count, transposed, space)),
        None => c.error(c.mods.span, format!("`{}` needs `.x1`, `.x2` or `.x4`", c.mods.name)),
    }
}

/// The operand with the tiles' words, which must be as many as there are tiles.
fn words<'m>(c: &Cx<'m, '_>, i: usize, count: u8) -> Lowered<&'m [Operand]> {
    let operand = c.operand(i)?;
    let members = match operand.kind {
        OperandKind::Vector(list) => c.body.list(list),
        _ => std::slice::from_ref(operand),
    };
    if members.len() == usize::from(count) {
        return Ok(members);
    }
    c.error(operand.span, format!("`{}` needs {count} registers here, not {}", c.mods.text, members.len()))
}

/// `ldmatrix`
pub(super) fn load(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let (count, transposed, space) = tiles(c)?;
    let mut dst = [None; 4];
    for (d, member) in dst.iter_mut().zip(words(c, 0, count)?) {
        *d = c.dst(member, Type::B32)?[0];
    }
    let space = space.or_else(|| narrow(c, 1));
    let place = c.address_of(1, space)?;
    in_shared(c, place.space)?;
    whole_warp(c);
    c.memory(MemoryOp::LoadMatrix { space: place.space, count, transposed, dst, addr: place.addr });
    Ok(())
}

/// `stmatrix`
pub(super) fn store(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let (count, transposed, space) = tiles(c)?;
    let mut src = [Src::ZERO; 4];
    for (s, member) in src.iter_mut().zip(words(c, 1, count)?) {
        *s = c.src(member, Type::B32)?[0];
    }
    let space = space.or_else(|| narrow(c, 0));
    let place = c.address_of(0, space)?;
    in_shared(c, place.space)?;
    whole_warp(c);
    c.memory(MemoryOp::StoreMatrix { space: place.space, count, transposed, src, addr: place.addr });
    Ok(())
}

/// An address of 32 bits is one of shared memory.
fn narrow(c: &Cx<'_, '_>, i: usize) -> Option<Space> {
    let OperandKind::Address(id) = c.ops.get(i)?.kind else { return None };
    let OperandKind::Register(register) = c.body.address(id).base else { return None };
    (c.register(register).ty.bits() == 32).then_some(Space::Shared)
}

fn in_shared(c: &Cx<'_, '_>, space: IrSpace) -> Lowered<()> {
    if matches!(space, IrSpace::Shared | IrSpace::Generic) {
        return Ok(());
    }
    c.error(c.span, format!("`{}` works on shared memory", c.mods.name))
}

/// `movmatrix`
pub(super) fn transpose(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    let trans = c.mods.take("trans");
    let shape = c.mods.take("m8n8");
    aligned(c)?;
    c.mods.finish(&["sync", "aligned", "m8n8", "trans"])?;
    c.expect(2)?;
    if ty != Type::B16 || !trans || !shape {
        return c.error(c.mods.span, "`movmatrix` is `.sync.aligned.m8n8.trans.b16`");
    }
    let dst = c.dst(c.operand(0)?, Type::B32)?[0];
    let src = c.word(1, Type::B32)?;
    whole_warp(c);
    c.warp(WarpOp::Transpose { dst, src });
    Ok(())
}
