//! Operations across lanes, special registers, block barriers.

use lanescope_ir::op::warp::{BlockBarrierMode, ReduceOp, ShuffleMode, SpecialReg, VoteMode, WarpOp};
use lanescope_ir::{Op, PredSrc, Src};

use super::operands::{Cx, Lowered, refuse};
use crate::isa::inst::{File, Operand, Sign};

pub(super) fn lower(cx: &Cx) -> Option<Lowered<Op>> {
    Some(
        match cx.inst.mnemonic {
            "S2R" | "S2UR" | "CS2R" | "CS2UR" => special(cx),
            "SHFL" => shuffle(cx),
            "VOTE" | "VOTEU" => vote(cx),
            "MATCH" => matching(cx),
            "REDUX" | "CREDUX" => reduce(cx),
            "R2UR" => broadcast(cx),
            "ELECT" => elect(cx),
            "P2R" | "UP2UR" => pack(cx),
            "R2P" | "UR2UP" => unpack(cx),
            "BAR" => barrier(cx),
            "B2R" => barrier_result(cx),
            "LEPC" => code_address(cx),
            _ => return None,
        }
        .map(Op::Warp),
    )
}

/// Refuses modifiers that are not in `known`.
fn only(cx: &Cx, known: &[&str]) -> Lowered<()> {
    match cx.inst.mods.iter().find(|m| !known.contains(m)) {
        Some(m) => refuse(format!("modifier .{m}")),
        None => Ok(()),
    }
}

fn special_reg(name: &str) -> Lowered<[SpecialReg; 2]> {
    use SpecialReg as S;
    let lo = match name {
        "SR_TID.X" => S::Tid(0),
        "SR_TID.Y" => S::Tid(1),
        "SR_TID.Z" => S::Tid(2),
        "SR_TID" => S::TidPacked,
        "SR_CTAID.X" => S::CtaId(0),
        "SR_CTAID.Y" => S::CtaId(1),
        "SR_CTAID.Z" => S::CtaId(2),
        "SR_LANEID" => S::LaneId,
        "SR_EQMASK" => S::LaneMaskEq,
        "SR_LTMASK" => S::LaneMaskLt,
        "SR_LEMASK" => S::LaneMaskLe,
        "SR_GTMASK" => S::LaneMaskGt,
        "SR_GEMASK" => S::LaneMaskGe,
        "SR_CLOCKLO" => return Ok([S::ClockLo, S::ClockHi]),
        "SR_CLOCKHI" => S::ClockHi,
        "SR_GLOBALTIMERLO" => return Ok([S::GlobalTimerLo, S::GlobalTimerHi]),
        "SR_GLOBALTIMERHI" => S::GlobalTimerHi,
        "SR_VIRTID" => S::VirtId,
        "SR_VIRTCFG" => S::VirtCfg,
        "SR_VIRTUALSMID" => S::SmId,
        "SR_SWINHI" => S::SharedWindowHi,
        "SR_SMEMSZ" => S::SharedSize,
        "SR_CgaCtaId" => S::ClusterCtaId,
        "SR_CgaSize" => S::ClusterSize,
        // The lowest offset that a stack may reach, which unoptimised code compares: a thread's memory begins at 0 here.
        "SR_LMEMHIOFF" | "SRZ" => S::Zero,
        _ => return refuse(format!("special register {name}")),
    };
    Ok([lo, S::Zero])
}

fn special(cx: &Cx) -> Lowered<WarpOp> {
    only(cx, &["32", "64"])?;
    let reg = special_reg(cx.literal(1)?)?;
    // CS2R reads 64 bits unless it says .32; S2R reads 32.
    let wide = cx.inst.mnemonic.starts_with("CS2") && !cx.has("32");
    let dst = if wide { cx.dst64(0)? } else { [cx.dst(0)?, None] };
    Ok(WarpOp::Special { dst, reg })
}

fn shuffle(cx: &Cx) -> Lowered<WarpOp> {
    only(cx, &["IDX", "UP", "DOWN", "BFLY"])?;
    let mode = match cx.inst.mods.as_slice() {
        ["IDX"] => ShuffleMode::Idx,
        ["UP"] => ShuffleMode::Up,
        ["DOWN"] => ShuffleMode::Down,
        ["BFLY"] => ShuffleMode::Bfly,
        _ => return refuse("a shuffle without a mode"),
    };
    Ok(WarpOp::Shuffle {
        mode,
        dst: cx.dst(1)?,
        pdst: cx.pdst(0)?,
        src: cx.src(2)?,
        lane: cx.src(3)?,
        clamp: cx.src(4)?,
    })
}

fn vote(cx: &Cx) -> Lowered<WarpOp> {
    only(cx, &["ALL", "ANY", "EQ"])?;
    let mode = match cx.inst.mods.as_slice() {
        ["ALL"] => VoteMode::All,
        ["ANY"] => VoteMode::Any,
        ["EQ"] => VoteMode::Eq,
        _ => return refuse("a vote without a mode"),
    };
    let mut at = 0;
    let mut dst = None;
    if !cx.is_pred(at) {
        dst = cx.dst(at)?;
        at += 1;
    }
    Ok(WarpOp::Vote { mode, dst, pdst: cx.pdst(at)?, src: cx.psrc(at + 1)? })
}

fn matching(cx: &Cx) -> Lowered<WarpOp> {
    only(cx, &["ALL", "ANY", "U32", "U64"])?;
    let at = usize::from(cx.is_pred(0));
    let pdst = if at == 1 { cx.pdst(0)? } else { None };
    let value = if cx.has("U64") { cx.raw64(at + 1)?.0 } else { [cx.src(at + 1)?, Src::ZERO] };
    Ok(WarpOp::Match { all: cx.has("ALL"), dst: cx.dst(at)?, pdst, src: value })
}

fn reduce(cx: &Cx) -> Lowered<WarpOp> {
    only(cx, &["SUM", "MIN", "MAX", "AND", "OR", "XOR", "S32", "U32", "F32", "NAN", "ABS", "FMIN", "FMAX"])?;
    let signed = cx.has("S32");
    let nan = cx.has("NAN");
    let abs = cx.has("ABS");
    let float = cx.has("F32") || cx.has("FMIN") || cx.has("FMAX");
    let op = match (float, cx.has("MIN") || cx.has("FMIN"), cx.has("MAX") || cx.has("FMAX")) {
        (true, true, _) => ReduceOp::FMin { abs, nan },
        (true, _, true) => ReduceOp::FMax { abs, nan },
        (true, ..) => return refuse("a float reduction that is neither minimum nor maximum"),
        (false, true, _) => ReduceOp::Min { signed },
        (false, _, true) => ReduceOp::Max { signed },
        (false, ..) if cx.has("SUM") => ReduceOp::Add,
        (false, ..) if cx.has("OR") => ReduceOp::Or,
        (false, ..) if cx.has("XOR") => ReduceOp::Xor,
        // The default prints nothing.
        (false, ..) => ReduceOp::And,
    };
    let at = usize::from(cx.is_pred(0));
    let pdst = if at == 1 { cx.pdst(0)? } else { None };
    if pdst.is_some() {
        return refuse("a reduction with a predicate result");
    }
    Ok(WarpOp::Reduce { op, dst: cx.dst(at)?, pdst, src: cx.src(at + 1)? })
}

fn broadcast(cx: &Cx) -> Lowered<WarpOp> {
    only(cx, &["BROADCAST", "FILL"])?;
    let at = usize::from(cx.is_pred(0));
    let pdst = if at == 1 { cx.pdst(0)? } else { None };
    Ok(WarpOp::Broadcast { dst: [cx.dst(at)?, None], pdst, src: [cx.src(at + 1)?, Src::ZERO] })
}

fn elect(cx: &Cx) -> Lowered<WarpOp> {
    only(cx, &[])?;
    // The candidates are a predicate, or a mask in a uniform register: `~URZ` is every lane.
    let candidates = match cx.operand(2)? {
        Operand::Pred(_) => cx.psrc(2)?,
        Operand::Reg(r) if r.index == 255 && r.sign == Sign::Not => PredSrc::TRUE,
        _ => return refuse("ELECT among the lanes of a register mask"),
    };
    Ok(WarpOp::Elect { src: candidates, dst: cx.dst(1)?, pdst: cx.pdst(0)? })
}

/// Byte selector of P2R/R2P: `.B1` and the like, on the mnemonic or on the register.
fn byte(token: &str) -> Option<u8> {
    match token {
        "" | "B0" => Some(0),
        "B1" => Some(1),
        "B2" => Some(2),
        "B3" => Some(3),
        _ => None,
    }
}

fn file(cx: &Cx) -> File {
    if cx.inst.mnemonic.starts_with('U') { File::Uniform } else { File::Vector }
}

fn pack(cx: &Cx) -> Lowered<WarpOp> {
    let token = cx.inst.mods.first().copied().unwrap_or("");
    let Some(byte) = byte(token) else { return refuse(format!("modifier .{token}")) };
    let mut preds = [PredSrc::FALSE; 8];
    for (i, p) in preds.iter_mut().enumerate().take(7) {
        *p = super::operands::pred(file(cx), i as u8).map_or(PredSrc::FALSE, PredSrc::of);
    }
    // PR's bit 7 is PT.
    preds[7] = PredSrc::TRUE;
    Ok(WarpOp::PackPreds { dst: cx.dst(0)?, preds, byte, merge: cx.src(2)?, mask: cx.src(3)? })
}

fn unpack(cx: &Cx) -> Lowered<WarpOp> {
    only(cx, &[])?;
    let (value, sign, abs, suffix) = cx.raw(1)?;
    let Some(byte) = byte(suffix) else { return refuse(format!("suffix .{suffix}")) };
    if sign != Sign::None || abs {
        return refuse("a signed register of predicates");
    }
    let mut preds = [None; 8];
    for (i, p) in preds.iter_mut().enumerate().take(7) {
        *p = super::operands::pred(file(cx), i as u8);
    }
    let mask = if cx.len() > 2 { cx.src(2)? } else { Src::imm(0x7f) };
    Ok(WarpOp::UnpackPreds { preds, byte, src: value, mask })
}

fn barrier(cx: &Cx) -> Lowered<WarpOp> {
    only(cx, &["SYNC", "ARV", "RED", "AND", "OR", "POPC", "DEFER_BLOCKING"])?;
    let mode = if cx.has("SYNC") {
        BlockBarrierMode::Sync
    } else if cx.has("ARV") {
        BlockBarrierMode::Arrive
    } else if cx.has("RED") {
        if cx.has("POPC") {
            BlockBarrierMode::RedPopc
        } else if cx.has("AND") {
            BlockBarrierMode::RedAnd
        } else if cx.has("OR") {
            BlockBarrierMode::RedOr
        } else {
            return refuse("a barrier reduction without an operation");
        }
    } else {
        return refuse("a barrier form other than SYNC, ARV and RED");
    };
    let mut pred = PredSrc::TRUE;
    let mut n = cx.len();
    if n > 1 && cx.is_pred(n - 1) {
        pred = cx.psrc(n - 1)?;
        n -= 1;
    }
    let (id, threads) = match n {
        1 => match cx.operand(0)? {
            // One register holds both: the barrier's number in bits 3:0, the thread count in bits 27:16.
            Operand::Reg(_) => return refuse("a barrier whose number and thread count share a register"),
            _ => (cx.src(0)?, None),
        },
        2 => (cx.src(0)?, Some(cx.src(1)?)),
        _ => return refuse("a barrier with more than a number and a thread count"),
    };
    Ok(WarpOp::BlockBarrier { mode, id, threads, pred })
}

fn barrier_result(cx: &Cx) -> Lowered<WarpOp> {
    only(cx, &["RESULT"])?;
    if !cx.has("RESULT") {
        return refuse("B2R other than .RESULT");
    }
    let pdst = if cx.len() > 1 { cx.pdst(1)? } else { None };
    Ok(WarpOp::BarrierResult { dst: cx.dst(0)?, pdst })
}

fn code_address(cx: &Cx) -> Lowered<WarpOp> {
    only(cx, &[])?;
    // Without a target it gives its own address (code that follows adds the distance to the return point).
    let offset = if cx.len() > 1 { cx.int(1)? } else { i64::from(cx.inst.pc) };
    let addr = cx.section_base.wrapping_add_signed(offset);
    Ok(WarpOp::CodeAddress { dst: cx.dst64(0)?, addr })
}
