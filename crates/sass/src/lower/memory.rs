//! Loads, stores and atomics.

use lanescope_ir::op::memory::{Addr, Amount, AtomOp, AtomType, MemoryOp, Space, Width};
use lanescope_ir::{Op, PredSrc, Slot, Src};

use super::operands::{Cx, Lowered, refuse, slot, slot_at, src};
use crate::isa::inst::{Bank, File, Operand, Sign};

pub(super) fn lower(cx: &Cx) -> Option<Lowered<Op>> {
    Some(match cx.inst.mnemonic {
        "LDG" => load(cx, Space::Global),
        "LD" => load(cx, Space::Generic),
        "LDS" => load(cx, Space::Shared),
        "LDL" => load(cx, Space::Local),
        "LDC" | "LDCU" | "ULDC" => load_constant(cx),
        "STG" => store(cx, Space::Global),
        "ST" => store(cx, Space::Generic),
        "STS" => store(cx, Space::Shared),
        "STL" => store(cx, Space::Local),
        "ATOM" => atomic(cx, Space::Generic, true),
        "ATOMG" => atomic(cx, Space::Global, true),
        "ATOMS" => atomic(cx, Space::Shared, true),
        "RED" => atomic(cx, if cx.sm < 90 { Space::Generic } else { Space::Global }, false),
        "REDG" => atomic(cx, Space::Global, false),
        "QSPC" => query_space(cx),
        "LDGSTS" => copy(cx),
        // Every store is visible to every thread at once here, and caches are not modelled.
        "MEMBAR" | "ERRBAR" | "CGAERRBAR" | "CCTL" | "CCTLL" | "CCTLT" | "FENCE" | "PREFETCH" => Ok(Op::Nop),
        // Copies are done at once, so that waiting for them is nothing.
        "DEPBAR" | "LDGDEPBAR" => Ok(Op::Nop),
        _ => return None,
    })
}

/// Modifiers without effect on values: caching, scope, prefetch, `.E` (64-bit addresses, handled apart).
fn is_hint(m: &str) -> bool {
    matches!(
        m,
        "E" | "EF"
            | "EL"
            | "LU"
            | "EU"
            | "NA"
            | "CONSTANT"
            | "STRONG"
            | "WEAK"
            | "SM"
            | "GPU"
            | "SYS"
            | "CTA"
            | "VC"
            | "PRIVATE"
            | "LTC64B"
            | "LTC128B"
            | "LTC256B"
            | "MMIO"
            | "ORDERED"
            | "RELAXED"
            | "U"
            | "LTO"
            | "ENL2"
            | "LTCALLBYTES"
    )
}

fn width_of(m: &str) -> Option<Width> {
    Some(match m {
        "U8" => Width::U8,
        "S8" => Width::S8,
        "U16" => Width::U16,
        "S16" => Width::S16,
        "32" => Width::B32,
        "64" => Width::B64,
        "128" => Width::B128,
        "256" => Width::B256,
        _ => return None,
    })
}

/// Width of a load or store; modifiers that are neither a width nor a hint are refused.
fn width(cx: &Cx) -> Lowered<Width> {
    let mut width = Width::B32;
    for m in &cx.inst.mods {
        match width_of(m) {
            Some(w) => width = w,
            None if is_hint(m) => {}
            None => return refuse(format!("modifier .{m}")),
        }
    }
    Ok(width)
}

/// Address of a global or generic access: with `.E` a bare register is a 64-bit pair.
fn global_addr(cx: &Cx, i: usize) -> Lowered<Addr> {
    let mut addr = cx.addr(i, true)?;
    if cx.has("E")
        && let Some((r, "")) = cx.mem(i)?.reg
    {
        addr.base_hi = Some(src(slot_at(File::Vector, r, 1)));
    }
    Ok(addr)
}

fn address(cx: &Cx, i: usize, space: Space) -> Lowered<Addr> {
    match space {
        Space::Global | Space::Generic => global_addr(cx, i),
        _ => cx.addr(i, false),
    }
}

fn destinations(cx: &Cx, i: usize, n: usize) -> Lowered<[Option<Slot>; 8]> {
    let r = cx.reg(i)?;
    let mut dst = [None; 8];
    for (k, d) in dst.iter_mut().enumerate().take(n) {
        *d = slot_at(r.file, r.index, k as u8);
    }
    Ok(dst)
}

/// The `n` registers from operand `i` on; a constant or immediate only as a single word.
fn sources<const N: usize>(cx: &Cx, i: usize, n: usize) -> Lowered<[Src; N]> {
    let mut out = [Src::ZERO; N];
    let r = cx.reg(i)?;
    if r.sign != Sign::None || r.abs || !r.suffix.is_empty() {
        return refuse(format!("operand {i} is not a plain register"));
    }
    for (k, s) in out.iter_mut().enumerate().take(n) {
        *s = src(slot_at(r.file, r.index, k as u8));
    }
    Ok(out)
}

fn load(cx: &Cx, space: Space) -> Lowered<Op> {
    let width = width(cx)?;
    if cx.is_pred(0) {
        return refuse("a load with a predicate result");
    }
    if width == Width::B256 {
        // sm_100 and later: two destination quads, then the address.
        let (lo, hi) = (cx.reg(0)?, cx.reg(1)?);
        let mut dst = [None; 8];
        for k in 0..4u8 {
            dst[usize::from(k)] = slot_at(lo.file, lo.index, k);
            dst[usize::from(k) + 4] = slot_at(hi.file, hi.index, k);
        }
        if cx.len() > 3 {
            return refuse("a 256-bit load with a byte mask");
        }
        return Ok(Op::Memory(MemoryOp::Load {
            space,
            width,
            dst,
            addr: address(cx, 2, space)?,
            valid: PredSrc::TRUE,
        }));
    }
    let dst = destinations(cx, 0, width.slots())?;
    let addr = address(cx, 1, space)?;
    let valid = if cx.len() > 2 { cx.psrc(2)? } else { PredSrc::TRUE };
    Ok(Op::Memory(MemoryOp::Load { space, width, dst, addr, valid }))
}

fn store(cx: &Cx, space: Space) -> Lowered<Op> {
    let width = width(cx)?;
    let addr = address(cx, 0, space)?;
    if width == Width::B256 {
        let lo: [Src; 4] = sources(cx, 1, 4)?;
        let hi: [Src; 4] = sources(cx, 2, 4)?;
        if cx.len() > 3 {
            return refuse("a 256-bit store with a byte mask");
        }
        let mut out = [Src::ZERO; 8];
        out[..4].copy_from_slice(&lo);
        out[4..].copy_from_slice(&hi);
        return Ok(Op::Memory(MemoryOp::Store { space, width, src: out, addr }));
    }
    if cx.len() > 2 {
        return refuse("a store with more than an address and a value");
    }
    Ok(Op::Memory(MemoryOp::Store { space, width, src: sources(cx, 1, width.slots())?, addr }))
}

/// LDGSTS: global memory to shared memory.
fn copy(cx: &Cx) -> Lowered<Op> {
    let (mut width, mut amount) = (Width::B32, Amount::All);
    for m in &cx.inst.mods {
        match (width_of(m), *m) {
            (Some(w @ (Width::B32 | Width::B64 | Width::B128)), _) => width = w,
            (_, "ZFILL") => amount = Amount::Offset,
            (_, "BYPASS" | "ACCESS") => {}
            (None, m) if is_hint(m) => {}
            (_, m) => return refuse(format!("modifier .{m}")),
        }
    }
    let valid = match cx.len() {
        2 => PredSrc::TRUE,
        3 => cx.psrc(2)?,
        _ => return refuse("a copy with more operands than expected"),
    };
    Ok(Op::Memory(MemoryOp::Copy { width, to: cx.addr(0, false)?, from: global_addr(cx, 1)?, valid, amount }))
}

fn load_constant(cx: &Cx) -> Lowered<Op> {
    let width = width(cx)?;
    if cx.len() > 2 {
        return refuse("a constant load with more than a destination and a bank");
    }
    let Operand::Const(c) = cx.operand(1)? else { return refuse("a constant load through a descriptor") };
    let Bank::Index(bank) = c.bank else { return refuse("a bindless constant bank") };
    if c.sign != Sign::None || c.abs || !c.suffix.is_empty() {
        return refuse("a modified constant");
    }
    let index = match (c.reg, c.ureg) {
        (None, None) => Src::ZERO,
        (Some((r, "")), None) => src(slot(File::Vector, r)),
        (None, Some((u, ""))) => src(slot(File::Uniform, u)),
        _ => return refuse("a constant index with a suffix"),
    };
    let addr = Addr { base: index, base_hi: None, uniform: None, signed: false, scale: 0, offset: c.offset };
    let dst = destinations(cx, 0, width.slots())?;
    Ok(Op::Memory(MemoryOp::Load { space: Space::Const(bank), width, dst, addr, valid: PredSrc::TRUE }))
}

/// Operation and type of an atomic from its modifiers.
fn atomic_kind(cx: &Cx) -> Lowered<(AtomOp, AtomType)> {
    // REDUX-like forms print nothing for ADD in some tables; nvdisasm always prints the operation of these.
    let mut op = None;
    let (mut wide, mut quad, mut signed, mut ftz, mut spin) = (false, false, false, false, false);
    let mut float = None;
    for m in &cx.inst.mods {
        match *m {
            "ADD" => op = Some(AtomOp::Add),
            "MIN" => op = Some(AtomOp::Min),
            "MAX" => op = Some(AtomOp::Max),
            "INC" if cx.has("POPC") => op = Some(AtomOp::PopcInc),
            "INC" => op = Some(AtomOp::Inc),
            "DEC" => op = Some(AtomOp::Dec),
            "AND" => op = Some(AtomOp::And),
            "OR" => op = Some(AtomOp::Or),
            "XOR" => op = Some(AtomOp::Xor),
            "EXCH" => op = Some(AtomOp::Exch),
            "CAS" => op = Some(AtomOp::Cas),
            "CAST" => op = Some(AtomOp::CasSpin),
            "SPIN" => spin = true,
            "POPC" | "32" | "RN" => {}
            "U32" => {}
            "S32" => signed = true,
            "64" | "U64" => wide = true,
            "S64" => (wide, signed) = (true, true),
            "128" => quad = true,
            "F32" => float = Some(AtomType::F32 { ftz: false }),
            "F64" => float = Some(AtomType::F64),
            "F16x2" => float = Some(AtomType::F16x2),
            "F16x4" => float = Some(AtomType::F16x4),
            "F16x8" => float = Some(AtomType::F16x8),
            "BF16x4" => float = Some(AtomType::Bf16x4),
            "BF16x8" => float = Some(AtomType::Bf16x8),
            "F32x2" => float = Some(AtomType::F32x2 { ftz: false }),
            "F32x4" => float = Some(AtomType::F32x4 { ftz: false }),
            "BF16x2" | "BF16_V2" => float = Some(AtomType::Bf16x2),
            "FTZ" => ftz = true,
            m if is_hint(m) => {}
            m => return refuse(format!("modifier .{m}")),
        }
    }
    let Some(op) = op else { return refuse("an atomic without an operation") };
    if (op == AtomOp::CasSpin) != spin {
        return refuse("CAST without SPIN");
    }
    let ty = match float {
        Some(AtomType::F32 { .. }) => AtomType::F32 { ftz },
        Some(AtomType::F32x2 { .. }) => AtomType::F32x2 { ftz },
        Some(AtomType::F32x4 { .. }) => AtomType::F32x4 { ftz },
        Some(t) => t,
        None if quad => AtomType::B128,
        None => match (wide, signed) {
            (false, false) => AtomType::U32,
            (false, true) => AtomType::S32,
            (true, false) => AtomType::U64,
            (true, true) => AtomType::S64,
        },
    };
    if quad && !matches!(op, AtomOp::Exch | AtomOp::Cas | AtomOp::CasSpin) {
        return refuse("a 128-bit atomic other than exchange and compare-and-swap");
    }
    Ok((op, ty))
}

fn atomic(cx: &Cx, space: Space, returns: bool) -> Lowered<Op> {
    let (op, ty) = atomic_kind(cx)?;
    let mut at = 0;
    let mut pdst = None;
    let mut dst = [None; 4];
    if returns {
        if cx.is_pred(at) {
            pdst = cx.pdst(at)?;
            at += 1;
        }
        // `ATOMS.CAST.SPIN P0, [R2], ...` (sm_100 and later) has no register.
        if matches!(cx.operand(at)?, Operand::Reg(_)) {
            let d = destinations(cx, at, ty.slots())?;
            dst.copy_from_slice(&d[..4]);
            at += 1;
        }
    }
    let addr = address(cx, at, space)?;
    at += 1;
    let mut compare = [Src::ZERO; 4];
    let mut value = [Src::ZERO; 4];
    match op {
        AtomOp::PopcInc => {}
        AtomOp::Cas | AtomOp::CasSpin => {
            compare = sources(cx, at, ty.slots())?;
            value = sources(cx, at + 1, ty.slots())?;
            at += 2;
        }
        _ => {
            value = sources(cx, at, ty.slots())?;
            at += 1;
        }
    }
    if at != cx.len() {
        return refuse("an atomic with more operands than expected");
    }
    Ok(Op::Memory(MemoryOp::Atomic { space, op, ty, dst, pdst, addr, src: value, compare }))
}

fn query_space(cx: &Cx) -> Lowered<Op> {
    // Every block is a cluster of its own, so that the cluster's shared memory (`.D`) is the block's.
    let space = if cx.has("S") || cx.has("D") {
        Space::Shared
    } else if cx.has("L") {
        Space::Local
    } else if cx.has("G") {
        Space::Global
    } else {
        return refuse(format!("QSPC of space .{}", cx.inst.mods.join(".")));
    };
    Ok(Op::Memory(MemoryOp::QuerySpace { space, pdst: cx.pdst(0)?, dst: cx.dst(1)?, addr: global_addr(cx, 2)? }))
}
