//! `lock-after-join`.

use lanescope_ir::finding::Evidence;
use lanescope_ir::op::control::ControlOp;
use lanescope_ir::op::effects::Access;
use lanescope_ir::op::int::{Cmp, IntFn};
use lanescope_ir::op::memory::{Addr, AtomOp, MemoryOp, Space};
use lanescope_ir::op::{LaneFn, Src, SrcKind};
use lanescope_ir::{Op, Severity, Slot};

use super::LintRule;
use super::cx::{Cx, Parting, Step};
use crate::uniformity::{Level, Operand, Origin, Verdict, What};

/// Blocks behind a loop that are searched for the release.
const BEHIND: usize = 64;

/// A lock that is released only after the spinning lanes have rejoined.
pub(super) const RULE: LintRule = LintRule {
    name: "lock-after-join",
    summary: "lanes of one warp spin for a lock that the winner releases only behind the loop's join",
    page: "\
`while (atomicCAS(lock, 0, 1) != 0) { }` and then, behind the loop, the work and the release. Lanes of one warp that want
the same lock join behind the loop: the winner waits there for the losers, and the losers spin for the lock that the
winner holds. Before Volta this hangs for certain. From Volta on it ends only because the compiler puts a YIELD into the
loop, which lets the winner go on without the others; that is forward progress as documented since compute capability
7.0, and 32 lanes still take the lock one after the other.

What helps, the best first: let one lane of the warp take the lock for all (`if (lane == 0)`), with what the others add
combined before; use a plain atomic on the data; or take, work and release inside one body of the loop, so that nobody
waits for a lane that holds the lock.

Evidence: yield_in_loop, release_pc.",
    check: Some(check),
};

fn check(c: &mut Cx<'_>) {
    for trips in &c.uniformity.loops {
        let Some(l) = c.structure.loops.list.get(trips.index as usize) else { continue };
        if !c.alive(trips.header) {
            continue;
        }
        let body: Vec<u32> = (0..c.structure.cfg.blocks.len() as u32)
            .filter(|&b| c.structure.loops.contains(trips.index, b))
            .flat_map(|b| c.structure.cfg.blocks[b as usize].instructions())
            .collect();
        let Some((lock, addr)) = lock(c, &body) else { continue };
        // The loop goes on until the atomic says so.
        let exits = trips.exits.iter().filter_map(|&e| c.uniformity.branches.get(e as usize));
        let waits = |b: &&crate::uniformity::Branch| {
            matches!(b.origin(), Origin::Atomic { inst, .. } if inst == lock)
                && b.level > Level::Warp
                && b.verdict != Verdict::Never
        };
        let Some(exit) = exits.into_iter().find(waits) else { continue };
        // Somebody must wait behind the loop.
        let region = c.structure.region(exit.inst);
        let Some(join) = region.rejoins_at else { continue };
        if one_lane(c, lock) || own_locks(c, lock, &addr) {
            continue;
        }
        let Some(release) = release(c, trips.index, l.header, lock, &addr) else { continue };
        // Released before the place where lanes wait for each other: nobody holds the lock there.
        let before = |b: u32| region.blocks.contains(&b) && (c.is_sass() && release < join || !c.is_sass());
        if c.structure.cfg.block(release).is_some_and(before) {
            continue;
        }
        let is_yield = |i: &u32| {
            let inst = c.kernel.instructions.get(*i as usize);
            inst.is_some_and(|i| matches!(i.op, Op::Control(ControlOp::Yield | ControlOp::Sleep)))
        };
        let yields = body.iter().any(is_yield);
        let after = match (c.is_sass(), yields) {
            (true, true) => "from Volta on it ends only thanks to the YIELD in the loop",
            (true, false) => "there is no YIELD in the loop, so it hangs from Volta on too",
            (false, _) => "from Volta on it ends only if the compiler puts a YIELD into the loop",
        };
        let message = format!(
            "Lanes spin at {} for the lock that {} at {} takes; the winner releases it at {}, behind the place where it \
             waits for the losers. Before Volta this hangs; {after}. Let one lane take the lock for its warp, or release \
             it inside the loop.",
            c.place(exit.inst),
            c.text(lock),
            c.place(lock),
            c.place(release),
        );
        let mut witness = vec![
            Step { inst: lock, note: "takes the lock: one lane at a time".to_owned() },
            Step { inst: exit.inst, note: "the others go round again".to_owned() },
        ];
        witness.push(Step { inst: join, note: "here the winner waits for the others".to_owned() });
        witness.push(Step { inst: release, note: "releases the lock".to_owned() });
        let pc = c.kernel.instructions.get(release as usize).map_or(0, |i| i.pc);
        let evidence =
            vec![("yield_in_loop", Evidence::Count(u64::from(yields))), ("release_pc", Evidence::Count(pc.into()))];
        c.report(RULE.name, Severity::Error, exit.inst, message, witness, evidence);
    }
}

/// The atomic of a loop that does nothing else to memory.
fn lock(c: &Cx<'_>, body: &[u32]) -> Option<(u32, Addr)> {
    let mut found = None;
    for &at in body {
        match &c.kernel.instructions.get(at as usize)?.op {
            Op::Memory(MemoryOp::Atomic { space, op, dst, pdst, addr, src, compare, .. }) => {
                // A lock goes from one fixed value to another; what swaps a value that it has read or computed is no lock.
                let fixed = |s: Src| match s.kind {
                    SrcKind::Imm(_) => true,
                    SrcKind::Slot(slot) => {
                        c.uniformity.operand(at, Operand::Slot(slot)).is_some_and(|a| a.constant.is_some())
                    }
                    SrcKind::Const { .. } => false,
                };
                let swaps = match op {
                    AtomOp::Cas | AtomOp::CasSpin => fixed(compare[0]) && fixed(src[0]),
                    AtomOp::Exch | AtomOp::Or | AtomOp::Max => fixed(src[0]),
                    _ => false,
                };
                let takes = swaps && *space != Space::Local && (dst.iter().any(Option::is_some) || pdst.is_some());
                // A second atomic may be the release.
                if !takes || found.replace((at, *addr)).is_some() {
                    return None;
                }
            }
            Op::Memory(MemoryOp::Store { space, .. }) if *space != Space::Local => return None,
            Op::Control(ControlOp::Call { .. } | ControlOp::CallIndirect { .. } | ControlOp::CallExternal { .. }) => {
                return None;
            }
            _ => {}
        }
    }
    found
}

/// Whether only one lane of a warp comes to the lock.
fn one_lane(c: &Cx<'_>, lock: u32) -> bool {
    let known = c.uniformity.lanes(lock);
    if !known.is_empty() && known.iter().all(|l| (l.there & c.existing(l.warp)).count() <= 1) {
        return true;
    }
    c.partings(lock).iter().any(|p| elects(c, p))
}

/// Whether a branch lets one lane through at most: `lane == leader` with a leader that is the same for the warp, or ELECT.
fn elects(c: &Cx<'_>, p: &Parting<'_>) -> bool {
    let decides = p.branch.witness.steps.iter().filter(|s| matches!(s.what, What::Predicate(_)));
    for step in decides {
        let Some(inst) = c.kernel.instructions.get(step.inst as usize) else { continue };
        match &inst.op {
            Op::Warp(lanescope_ir::op::warp::WarpOp::Elect { .. }) => return true,
            Op::Lane(op) => {
                let equal = match op.f {
                    LaneFn::Int(IntFn::Set { cmp, .. } | IntFn::SetJoin { cmp, .. }) => {
                        matches!(cmp, Cmp::Eq | Cmp::Ne)
                    }
                    _ => false,
                };
                let level = |i: usize| match op.src.get(i).map(|s| s.kind) {
                    Some(SrcKind::Slot(s)) => c.uniformity.operand(step.inst, Operand::Slot(s)).map(|a| a.level),
                    Some(_) => Some(Level::Grid),
                    None => None,
                };
                let pair = (level(0), level(1));
                let one =
                    |a: Option<Level>, b: Option<Level>| a == Some(Level::Lanes) && b.is_some_and(|b| b <= Level::Warp);
                if equal && (one(pair.0, pair.1) || one(pair.1, pair.0)) {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

/// Whether each lane has a lock of its own.
fn own_locks(c: &Cx<'_>, lock: u32, addr: &Addr) -> bool {
    let Some(slot) = addr.base.read() else { return false };
    let Some(a) = c.uniformity.operand(lock, Operand::Slot(slot)) else { return false };
    a.level == Level::Lanes
        && !a.lanes.is_empty()
        && a.lanes.iter().all(|(_, l)| {
            let mut values: Vec<u32> = l.to_vec();
            values.sort_unstable();
            values.dedup();
            values.len() == l.len()
        })
}

/// The first instruction behind the loop that gives the lock back.
fn release(c: &Cx<'_>, index: u32, header: u32, lock: u32, addr: &Addr) -> Option<u32> {
    let cfg = &c.structure.cfg;
    let mut seen = Vec::new();
    let mut open: Vec<u32> = (0..cfg.blocks.len() as u32)
        .filter(|&b| c.structure.loops.contains(index, b))
        .flat_map(|b| cfg.graph.successors(b).to_vec())
        .filter(|&s| !c.structure.loops.contains(index, s))
        .collect();
    open.sort_unstable();
    open.dedup();
    open.reverse();
    while let Some(b) = open.pop() {
        if b == header || seen.contains(&b) || c.structure.loops.contains(index, b) || seen.len() > BEHIND {
            continue;
        }
        seen.push(b);
        let Some(block) = cfg.blocks.get(b as usize) else { continue };
        for at in block.instructions() {
            let gives = match c.kernel.instructions.get(at as usize).map(|i| &i.op) {
                Some(Op::Memory(MemoryOp::Atomic { addr: a, .. } | MemoryOp::Store { addr: a, .. })) => {
                    same(c, (lock, addr), (at, a))
                }
                _ => false,
            };
            if gives {
                return Some(at);
            }
        }
        open.extend(cfg.graph.successors(b).iter().rev().filter(|&&s| s < cfg.entry()));
    }
    None
}

/// Whether two addresses are the same place: the same registers and offset, or the same argument with the same offset.
fn same(c: &Cx<'_>, a: (u32, &Addr), b: (u32, &Addr)) -> bool {
    if a.1.offset != b.1.offset {
        return false;
    }
    let once = |slot: Slot| {
        let mut writes = 0;
        for i in &c.kernel.instructions {
            i.for_each_slot(|s, access| writes += usize::from(s == slot && access == Access::Write));
        }
        writes == 1
    };
    if a.1.base == b.1.base && a.1.uniform == b.1.uniform && a.1.base.read().is_some_and(once) {
        return true;
    }
    let params = |at: u32, x: &Addr| {
        let slot = x.base.read()?;
        let answer = c.uniformity.operand(at, Operand::Slot(slot))?;
        (answer.level <= Level::Warp && !answer.params.is_empty()).then_some(answer.params)
    };
    matches!((params(a.0, a.1), params(b.0, b.1)), (Some(x), Some(y)) if x == y)
}
