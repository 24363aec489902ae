//! Operations across the lanes of a warp and the warps of a block.
//!
//! A `.sync` instruction waits for the lanes of its mask: a WARPSYNC stands before it. So it does before a barrier of the
//! block, which the machine counts by warps: lanes that come late must not miss it. ptxas puts one there as well.

use lanescope_ir::op::control::{ControlOp, WarpSyncMode};
use lanescope_ir::op::warp::{BlockBarrierMode, ReduceOp, ShuffleMode, VoteMode, WarpOp};
use lanescope_ir::{Op, PredSrc, Src};

use super::cx::Cx;
use super::fail::Lowered;
use crate::tree::{Type, Version};

/// Waits for the lanes of `mask`.
pub(super) fn wait(c: &mut Cx<'_, '_>, mask: Src) {
    c.control(ControlOp::WarpSync { mode: WarpSyncMode::Mask(mask), cond: PredSrc::TRUE }, None);
}

/// Waits for all lanes.
fn wait_all(c: &mut Cx<'_, '_>) {
    c.control(ControlOp::WarpSync { mode: WarpSyncMode::All, cond: PredSrc::TRUE }, None);
}

/// From sm_70 and PTX 6.4 on, lanes that take part in an exchange are named.
fn named(c: &Cx<'_, '_>, sync: bool) -> Lowered<()> {
    let late = c.module.version.is_some_and(|version| version >= Version { major: 6, minor: 4 });
    if !sync && late && c.module.target().is_some_and(|sm| sm >= 70) {
        return c.error(c.mods.span, format!("`{}` needs `.sync` and a mask from sm_70 on", c.mods.name));
    }
    Ok(())
}

/// `shfl`
pub(super) fn shuffle(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    let sync = c.mods.take("sync");
    named(c, sync)?;
    let mode = c.mods.find(|m| {
        Some(match m {
            "up" => ShuffleMode::Up,
            "down" => ShuffleMode::Down,
            "bfly" => ShuffleMode::Bfly,
            "idx" => ShuffleMode::Idx,
            _ => return None,
        })
    });
    c.mods.finish(&["sync", "up", "down", "bfly", "idx"])?;
    c.expect(if sync { 5 } else { 4 })?;
    let Some(mode) = mode else { return c.error(c.mods.span, "`shfl` needs `.up`, `.down`, `.bfly` or `.idx`") };
    if ty.bits() != 32 {
        return c.mods.bad_type(ty);
    }
    let (d, p) = c.pair(c.operand(0)?);
    let dst = c.dst(d, ty)?[0];
    let pdst = match p {
        Some(p) => c.pdst(p)?,
        None => None,
    };
    let (src, lane, clamp) = (c.word(1, ty)?, c.word(2, Type::B32)?, c.word(3, Type::B32)?);
    if sync {
        let mask = c.word(4, Type::U32)?;
        wait(c, mask);
    }
    c.warp(WarpOp::Shuffle { mode, dst, pdst, src, lane, clamp });
    Ok(())
}

/// `vote`
pub(super) fn vote(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    let sync = c.mods.take("sync");
    named(c, sync)?;
    let what = c.mods.find(|m| matches!(m, "all" | "any" | "uni" | "ballot").then_some(m));
    c.mods.finish(&["sync", "all", "any", "uni", "ballot"])?;
    c.expect(if sync { 3 } else { 2 })?;
    let src = c.psrc(c.operand(1)?)?;
    let mut op = WarpOp::Vote { mode: VoteMode::All, dst: None, pdst: None, src };
    if let WarpOp::Vote { mode, dst, pdst, .. } = &mut op {
        match (what, ty) {
            (Some("ballot"), Type::B32) => *dst = c.dst(c.operand(0)?, ty)?[0],
            (Some("all"), Type::Pred) => *pdst = c.pdst(c.operand(0)?)?,
            (Some("any"), Type::Pred) => (*mode, *pdst) = (VoteMode::Any, c.pdst(c.operand(0)?)?),
            (Some("uni"), Type::Pred) => (*mode, *pdst) = (VoteMode::Eq, c.pdst(c.operand(0)?)?),
            _ => return c.error(c.mods.span, "a vote is `.ballot.b32`, `.all.pred`, `.any.pred` or `.uni.pred`"),
        }
    }
    if sync {
        let mask = c.word(2, Type::U32)?;
        wait(c, mask);
    }
    c.warp(op);
    Ok(())
}

/// `match`
pub(super) fn matching(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    let all = c.mods.take("all");
    c.mods.take("any");
    c.mods.take("sync");
    c.mods.finish(&["all", "any", "sync"])?;
    c.expect(3)?;
    if !matches!(ty, Type::B32 | Type::B64) {
        return c.mods.bad_type(ty);
    }
    let (d, p) = c.pair(c.operand(0)?);
    let dst = c.dst(d, Type::B32)?[0];
    let pdst = match p {
        Some(p) if !all => return c.error(p.span, "only `match.all` tells whether all are equal"),
        Some(p) => c.pdst(p)?,
        None => None,
    };
    let s = c.src(c.operand(1)?, ty)?;
    let mask = c.word(2, Type::U32)?;
    wait(c, mask);
    c.warp(WarpOp::Match { all, dst, pdst, src: [s[0], s[1]] });
    Ok(())
}

/// `redux`
pub(super) fn reduce(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let ty = c.mods.ty()?;
    c.mods.take("sync");
    let (abs, nan) = (c.mods.take("abs"), c.mods.take("NaN"));
    let op = c.mods.find(|m| matches!(m, "add" | "min" | "max" | "and" | "or" | "xor").then_some(m));
    c.mods.finish(&["sync", "add", "min", "max", "and", "or", "xor", "abs", "NaN"])?;
    c.expect(3)?;
    let signed = ty == Type::S32;
    let op = match (op, ty) {
        (Some("add"), Type::U32 | Type::S32) => ReduceOp::Add,
        (Some("min"), Type::U32 | Type::S32) => ReduceOp::Min { signed },
        (Some("max"), Type::U32 | Type::S32) => ReduceOp::Max { signed },
        (Some("and"), Type::B32) => ReduceOp::And,
        (Some("or"), Type::B32) => ReduceOp::Or,
        (Some("xor"), Type::B32) => ReduceOp::Xor,
        (Some("min"), Type::F32) => ReduceOp::FMin { abs, nan },
        (Some("max"), Type::F32) => ReduceOp::FMax { abs, nan },
        _ => return c.mods.bad_type(ty),
    };
    let dst = c.dst(c.operand(0)?, ty)?[0];
    let src = c.word(1, ty)?;
    let mask = c.word(2, Type::U32)?;
    wait(c, mask);
    c.warp(WarpOp::Reduce { op, dst, pdst: None, src });
    Ok(())
}

/// `activemask`
pub(super) fn active(c: &mut Cx<'_, '_>) -> Lowered<()> {
    c.expect(1)?;
    let dst = c.dst(c.operand(0)?, Type::B32)?[0];
    c.warp(WarpOp::ActiveMask { dst });
    Ok(())
}

/// `elect`
pub(super) fn elect(c: &mut Cx<'_, '_>) -> Lowered<()> {
    c.mods.take("sync");
    c.mods.finish(&["sync"])?;
    c.expect(2)?;
    let (d, Some(p)) = c.pair(c.operand(0)?) else {
        return c.error(c.operand(0)?.span, "`elect` needs a predicate as its second result");
    };
    let dst = c.dst(d, Type::B32)?[0];
    let pdst = c.pdst(p)?;
    let mask = c.word(1, Type::U32)?;
    wait(c, mask);
    c.warp(WarpOp::Elect { src: PredSrc::TRUE, dst, pdst });
    Ok(())
}

/// `bar`, `barrier`
pub(super) fn barrier(c: &mut Cx<'_, '_>) -> Lowered<()> {
    if c.mods.take("warp") {
        c.mods.take("sync");
        c.mods.finish(&["sync"])?;
        c.expect(1)?;
        let mask = c.word(0, Type::U32)?;
        wait(c, mask);
        return Ok(());
    }
    if c.mods.take("cluster") {
        return cluster(c);
    }
    c.mods.ignore(|m| matches!(m, "cta" | "aligned"));
    let (arrive, red) = (c.mods.take("arrive"), c.mods.take("red"));
    c.mods.take("sync");
    let op = c.mods.find(|m| matches!(m, "popc" | "and" | "or").then_some(m));
    c.mods.finish(&["sync", "arrive", "red", "popc", "and", "or"])?;
    if !red {
        c.expect_between(1, 2)?;
        let id = number(c, 0)?;
        let threads = if c.ops.len() > 1 { Some(threads(c, 1)?) } else { None };
        if arrive && threads.is_none() {
            return c.error(c.span, "an arrival needs the number of threads");
        }
        let mode = if arrive { BlockBarrierMode::Arrive } else { BlockBarrierMode::Sync };
        wait_all(c);
        c.warp(WarpOp::BlockBarrier { mode, id, threads, pred: PredSrc::TRUE });
        return Ok(());
    }
    c.expect_between(3, 4)?;
    let last = c.ops.len() - 1;
    let id = number(c, 1)?;
    let threads = if last == 3 { Some(threads(c, 2)?) } else { None };
    let pred = c.psrc(c.operand(last)?)?;
    let (mode, dst, pdst) = match op {
        Some("popc") => (BlockBarrierMode::RedPopc, c.dst(c.operand(0)?, Type::U32)?[0], None),
        Some("and") => (BlockBarrierMode::RedAnd, None, c.pdst(c.operand(0)?)?),
        Some("or") => (BlockBarrierMode::RedOr, None, c.pdst(c.operand(0)?)?),
        _ => return c.error(c.mods.span, "a barrier reduction is `.popc`, `.and` or `.or`"),
    };
    wait_all(c);
    c.warp(WarpOp::BlockBarrier { mode, id, threads, pred });
    c.warp(WarpOp::BarrierResult { dst, pdst });
    Ok(())
}

/// The number of a barrier.
fn number(c: &Cx<'_, '_>, i: usize) -> Lowered<Src> {
    let operand = c.operand(i)?;
    match operand.kind.integer() {
        Some(16..) => c.error(operand.span, "barriers have the numbers 0 to 15"),
        _ => c.word(i, Type::U32),
    }
}

/// How many threads wait at a barrier.
fn threads(c: &Cx<'_, '_>, i: usize) -> Lowered<Src> {
    let operand = c.operand(i)?;
    match operand.kind.integer() {
        Some(threads) if threads % 32 != 0 => {
            c.error(operand.span, "whole warps wait at a barrier: a multiple of 32 threads")
        }
        _ => c.word(i, Type::U32),
    }
}

/// Every block is a cluster of its own: to have arrived is nothing, to wait is a barrier of the block, since every
/// thread arrives before it waits. It has the last barrier's number, which compilers do not hand out.
fn cluster(c: &mut Cx<'_, '_>) -> Lowered<()> {
    c.only_own_cluster()?;
    c.expect(0)?;
    let wait = c.mods.take("wait");
    c.mods.ignore(|m| matches!(m, "arrive" | "aligned" | "release" | "acquire" | "relaxed"));
    c.mods.finish(&["arrive", "wait", "aligned"])?;
    if wait {
        let (mode, id) = (BlockBarrierMode::Sync, Src::imm(15));
        wait_all(c);
        c.warp(WarpOp::BlockBarrier { mode, id, threads: None, pred: PredSrc::TRUE });
    } else {
        c.emit(Op::Nop);
    }
    Ok(())
}
