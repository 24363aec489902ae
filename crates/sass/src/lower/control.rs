//! Branches, convergence, calls and exit.

use lanescope_ir::op::control::{ControlOp, Decision, Indirect, WarpSyncMode};
use lanescope_ir::{BarrierReg, InstId, Op, PredSrc, Src, SrcMod};

use super::operands::{Cx, Lowered, Target, refuse, slot, slot_at, src};
use crate::isa::inst::{File, Operand, Sign};

pub(super) fn lower(cx: &Cx) -> Option<Lowered<Op>> {
    let op = match cx.inst.mnemonic {
        "NOP" | "WARPGROUP" | "SETCTAID" | "PMTRIG" | "USETMAXREG" | "ACQBULK" | "PREEXIT" => return Some(Ok(Op::Nop)),
        "BRA" => branch(cx),
        "JMP" => jump(cx),
        "BRX" | "BRXU" => indirect_branch(cx, true),
        "JMX" | "JMXU" => indirect_branch(cx, false),
        "CALL" => call(cx),
        "RET" => ret(cx),
        "EXIT" => exit(cx),
        "BSSY" => region(cx),
        "BSYNC" => barrier_op(cx, |bar, cond| ControlOp::Sync { bar, cond }),
        "BREAK" => barrier_op(cx, |bar, cond| ControlOp::Break { bar, cond }),
        "BMOV" => barrier_move(cx),
        "WARPSYNC" => warp_sync(cx),
        "ENDCOLLECTIVE" => simple(cx, ControlOp::EndCollective),
        "YIELD" => simple(cx, ControlOp::Yield),
        "NANOSLEEP" => Ok(ControlOp::Sleep),
        "BPT" => Ok(if cx.has("TRAP") { ControlOp::Trap } else { ControlOp::Breakpoint }),
        "UCGABAR_ARV" | "UCGABAR_WAIT" => refuse("cluster barrier"),
        _ => return None,
    };
    Some(op.map(Op::Control))
}

/// A leading second predicate, and the position of the operand after it.
fn second(cx: &Cx) -> Lowered<(PredSrc, usize)> {
    if cx.is_pred(0) { Ok((cx.psrc(0)?, 1)) } else { Ok((PredSrc::TRUE, 0)) }
}

fn only(cx: &Cx, known: &[&str]) -> Lowered<()> {
    match cx.inst.mods.iter().find(|m| !known.contains(m)) {
        Some(m) => refuse(format!("modifier .{m}")),
        None => Ok(()),
    }
}

fn simple(cx: &Cx, op: ControlOp) -> Lowered<ControlOp> {
    if cx.is_empty() { Ok(op) } else { refuse("a second predicate") }
}

/// The instruction at section-relative offset operand `i`.
fn target(cx: &Cx, i: usize) -> Lowered<InstId> {
    let offset = cx.int(i)?;
    match cx.resolve(cx.section_base.wrapping_add_signed(offset)) {
        Some(Target::Code(id)) => Ok(id),
        _ => refuse(format!("a target outside the code: {offset:#x}")),
    }
}

/// A mask in a register, `~` allowed; `~URZ` and `~RZ` are all lanes.
fn mask(cx: &Cx, i: usize) -> Lowered<Option<Src>> {
    let r = cx.reg(i)?;
    let s = src(slot(r.file, r.index));
    match r.sign {
        Sign::None => Ok(Some(s)),
        Sign::Not if r.index == 255 => Ok(None),
        Sign::Not => Ok(Some(s.with(SrcMod::Not))),
        Sign::Neg => refuse("a negated lane mask"),
    }
}

fn decision(cx: &Cx) -> Decision {
    match (cx.has("U"), cx.has("ANY")) {
        (_, true) => Decision::Any,
        (true, false) => Decision::All,
        (false, false) => Decision::Lanes,
    }
}

fn branch(cx: &Cx) -> Lowered<ControlOp> {
    only(cx, &["U", "DIV", "CONV", "ANY"])?;
    let (cond, at) = second(cx)?;
    if cx.has("DIV") || cx.has("CONV") {
        let (mask, at) = match cx.operand(at)? {
            Operand::Reg(_) => (mask(cx, at)?, at + 1),
            _ => (None, at),
        };
        let target = target(cx, at)?;
        return Ok(if cx.has("DIV") {
            ControlOp::BranchDivergent { target, mask, cond }
        } else {
            ControlOp::BranchConverged { target, mask, cond }
        });
    }
    Ok(ControlOp::Branch { target: target(cx, at)?, cond, decision: decision(cx) })
}

fn jump(cx: &Cx) -> Lowered<ControlOp> {
    only(cx, &["U", "ANY"])?;
    let (cond, at) = second(cx)?;
    match cx.resolve(cx.int(at)? as u64) {
        Some(Target::Code(target)) => Ok(ControlOp::Branch { target, cond, decision: decision(cx) }),
        _ => refuse("a jump to an address outside the code"),
    }
}

/// Register pair operand `i` as an indirect target relative to `base`.
fn pair(cx: &Cx, i: usize, base: u64) -> Lowered<Indirect> {
    let r = cx.reg(i)?;
    if r.sign != Sign::None || !matches!(r.suffix, "" | "64") {
        return refuse("a modified target register");
    }
    Ok(Indirect { reg: [src(slot(r.file, r.index)), src(slot_at(r.file, r.index, 1))], base })
}

fn optional_int(cx: &Cx, i: usize) -> Lowered<i64> {
    if cx.len() > i { cx.int(i) } else { Ok(0) }
}

/// BRX prints the raw displacement from the next instruction; JMX an absolute one.
fn indirect_branch(cx: &Cx, relative: bool) -> Lowered<ControlOp> {
    only(cx, &["U"])?;
    let (cond, at) = second(cx)?;
    let displacement = optional_int(cx, at + 1)?;
    let from = if relative { cx.section_base.wrapping_add(u64::from(cx.inst.pc) + 16) } else { 0 };
    Ok(ControlOp::BranchIndirect { target: pair(cx, at, from.wrapping_add_signed(displacement))?, cond })
}

fn call(cx: &Cx) -> Lowered<ControlOp> {
    only(cx, &["REL", "ABS", "NOINC"])?;
    if !cx.has("NOINC") {
        return refuse("CALL without .NOINC");
    }
    let (cond, at) = second(cx)?;
    let relative = cx.has("REL");
    if matches!(cx.operand(at)?, Operand::Reg(_)) {
        let offset = optional_int(cx, at + 1)?;
        // The relative form prints its displacement as a section offset already.
        let base = if relative { cx.section_base.wrapping_add_signed(offset) } else { offset as u64 };
        return Ok(ControlOp::CallIndirect { target: pair(cx, at, base)?, cond });
    }
    let offset = cx.int(at)?;
    let address = if relative { cx.section_base.wrapping_add_signed(offset) } else { offset as u64 };
    match cx.resolve(address) {
        Some(Target::Code(target)) => Ok(ControlOp::Call { target, cond }),
        Some(Target::External(name)) => {
            Ok(ControlOp::CallExternal { name: name.to_owned(), cond, args: Vec::new(), result: None })
        }
        None => refuse(format!("a call of {offset:#x}, where there is no code")),
    }
}

fn ret(cx: &Cx) -> Lowered<ControlOp> {
    only(cx, &["REL", "ABS", "NODEC"])?;
    if !cx.has("NODEC") {
        return refuse("RET without .NODEC");
    }
    let (cond, at) = second(cx)?;
    let offset = optional_int(cx, at + 1)?;
    let base = if cx.has("REL") { cx.section_base.wrapping_add_signed(offset) } else { offset as u64 };
    Ok(ControlOp::Return { target: pair(cx, at, base)?, cond })
}

fn exit(cx: &Cx) -> Lowered<ControlOp> {
    only(cx, &["KEEPREFCOUNT", "PREEMPTED", "NO_ATEXIT"])?;
    Ok(ControlOp::Exit { cond: second(cx)?.0 })
}

fn barrier_reg(cx: &Cx, i: usize) -> Lowered<BarrierReg> {
    match cx.operand(i)? {
        Operand::Barrier(b) => Ok(BarrierReg(b & 15)),
        _ => refuse(format!("operand {i} is not a convergence barrier")),
    }
}

fn region(cx: &Cx) -> Lowered<ControlOp> {
    only(cx, &["RELIABLE", "RECONVERGENT"])?;
    let (cond, at) = second(cx)?;
    Ok(ControlOp::SyncSet { bar: barrier_reg(cx, at)?, target: target(cx, at + 1)?, cond })
}

fn barrier_op(cx: &Cx, op: fn(BarrierReg, PredSrc) -> ControlOp) -> Lowered<ControlOp> {
    only(cx, &["RELIABLE", "RECONVERGENT"])?;
    let (cond, at) = second(cx)?;
    Ok(op(barrier_reg(cx, at)?, cond))
}

fn barrier_move(cx: &Cx) -> Lowered<ControlOp> {
    only(cx, &["32", "CLEAR"])?;
    match (cx.operand(0)?, cx.operand(1)?) {
        (Operand::Reg(r), Operand::Barrier(_)) if r.file == File::Vector => {
            Ok(ControlOp::BarrierRead { dst: cx.dst(0)?, bar: barrier_reg(cx, 1)?, clear: cx.has("CLEAR") })
        }
        (Operand::Barrier(_), _) => Ok(ControlOp::BarrierWrite { bar: barrier_reg(cx, 0)?, src: cx.src(1)? }),
        _ => refuse("BMOV of warp state other than a convergence barrier"),
    }
}

fn warp_sync(cx: &Cx) -> Lowered<ControlOp> {
    only(cx, &["ALL", "COLLECTIVE", "EXCLUSIVE"])?;
    let (cond, at) = second(cx)?;
    let collective = cx.has("COLLECTIVE");
    let all = cx.has("ALL");
    let lanes = if all { Src::imm(u32::MAX) } else { cx.src(at)? };
    let next = if all { at } else { at + 1 };
    let mode = if collective {
        WarpSyncMode::Collective(lanes, target(cx, next)?)
    } else if cx.len() > next {
        return refuse("WARPSYNC with a target but not collective");
    } else if cx.has("EXCLUSIVE") {
        WarpSyncMode::Exclusive(lanes)
    } else if all {
        WarpSyncMode::All
    } else {
        WarpSyncMode::Mask(lanes)
    };
    Ok(ControlOp::WarpSync { mode, cond })
}
