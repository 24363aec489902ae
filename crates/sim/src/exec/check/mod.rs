//! What is checked while a kernel runs: the twins of the static rules about synchronisation.
//!
//! A slow companion of execution, on request only. It sees each instruction before it is executed, with the lanes that
//! execute it, and keeps for each block who is ordered after whom ([`clocks`]), who touched which byte of shared memory
//! ([`shared`]) and who holds which lock ([`locks`]). It changes nothing in the run.
//!
//! Machine code names a mask only where the compiler could not prove that the lanes are together. A shuffle without one is
//! judged by whether the lanes that it reads are there.

mod clocks;
mod locks;
mod log;
mod shared;

use std::sync::Arc;

use lanescope_ir::op::control::{ControlOp, WarpSyncMode};
use lanescope_ir::op::warp::{BlockBarrierMode, WarpOp};
use lanescope_ir::{LaneMask, Op, Severity};

use super::program::{Address, Flow, Inst, Kind, MemInst, MemKind, SyncLanes};
use super::warp::shuffle_lane;
use super::{BlockCx, Where, mem};
use crate::launch::SHARED_WINDOW_HI;
use crate::memory::words::lanes;
use crate::rows::{Operand, Row, RowFile};
use clocks::Clocks;
use locks::Locks;
pub use log::CheckLog;
use log::{Found, Key, Seen};
use shared::{Access, Shared, What};

/// The lanes that the last operation to name any has named.
type Named = [Option<u32>; 32];

/// Watches one block.
pub(crate) struct Checker {
    found: Found,
    clocks: Clocks,
    shared: Shared,
    locks: Locks,
    named: Vec<Named>,
    /// Lanes of each warp that exist, and those that have left.
    existing: Vec<u32>,
    exited: Vec<u32>,
    issues: u64,
}

/// One issue.
struct Issue<'a> {
    block: &'a BlockCx<'a>,
    file: &'a RowFile,
    at: Where,
    exec: u32,
}

impl Issue<'_> {
    fn read(&self, op: &Operand) -> Row {
        self.file.read(self.block.cx.program.layout.constants(), op, self.at.index)
    }
    fn text(&self) -> String {
        let text = self.block.cx.kernel.text.get(self.at.inst as usize).map_or("", String::as_str);
        format!("`{text}`")
    }
    fn place(&self, inst: u32) -> String {
        lanescope_analysis::words::place(self.block.cx.kernel, inst)
    }
    fn block_name(&self) -> String {
        let [x, y, z] = self.block.id;
        match (y, z) {
            (0, 0) => format!("block {x}"),
            (_, 0) => format!("block {x},{y}"),
            _ => format!("block {x},{y},{z}"),
        }
    }
}

fn named_lanes(mask: u32) -> String {
    let noun = if mask.count_ones() == 1 { "lane" } else { "lanes" };
    format!("{noun} {}", LaneMask(mask.into()))
}

impl Checker {
    pub(crate) fn new(b: &BlockCx<'_>, existing: &[u32]) -> Checker {
        let n = existing.len();
        Checker {
            found: Found::new(),
            clocks: Clocks::new(n),
            shared: Shared::new(b.cx.shared_size),
            locks: Locks::new(b.cx.check.map_or_else(|| Arc::from([]), |log| log.loops(b.cx.kernel))),
            named: vec![[None; 32]; n],
            existing: existing.to_vec(),
            exited: vec![0; n],
            issues: 0,
        }
    }

    /// What was found so far; the checker starts anew.
    pub(crate) fn finish(&mut self, b: &BlockCx<'_>) -> Found {
        let existing = std::mem::take(&mut self.existing);
        std::mem::replace(self, Checker::new(b, &existing)).found
    }

    fn report(
        &mut self,
        i: &Issue<'_>,
        key: Key,
        severity: Severity,
        make: impl FnOnce() -> (String, Vec<(u32, String)>, Vec<(&'static str, String)>),
    ) {
        if let Some(seen) = self.found.get_mut(&key) {
            seen.times = seen.times.saturating_add(1);
            return;
        }
        if self.found.len() >= 1024 {
            return;
        }
        let (message, witness, evidence) = make();
        let block = i.block.linear;
        self.found.insert(key, Seen { severity, block, message, witness, evidence, times: 1 });
    }

    /// An instruction is about to be executed by the lanes `exec` of `active`.
    pub(crate) fn step(&mut self, block: &BlockCx<'_>, file: &RowFile, at: Where, inst: &Inst, active: u32, exec: u32) {
        self.issues += 1;
        let warp = at.warp;
        if self.named.get(warp as usize).is_none() {
            return;
        }
        self.clocks.go_on(warp, active);
        let mut i = Issue { block, file, at, exec };
        self.settle_lock(&i);
        let Some(source) = block.cx.kernel.instructions.get(at.inst as usize) else { return };
        match (&inst.kind, &source.op) {
            (Kind::Memory(m), _) => self.memory(&i, m),
            (Kind::Warp(_), Op::Warp(op)) => self.across(&i, op, inst),
            (Kind::Flow(flow), op) => {
                i.exec &= file.pred(&flow.cond, at.index);
                self.flow(&i, &flow.flow, op);
            }
            // What ptxas leaves of `__syncwarp` where it has proved that the lanes are together.
            (Kind::Nop, _) if block.cx.kernel.text.get(at.inst as usize).is_some_and(|t| t.trim() == "NOP") => {
                self.clocks.join_lanes(warp, active);
            }
            _ => {}
        }
    }

    fn flow(&mut self, i: &Issue<'_>, flow: &Flow, op: &Op) {
        let warp = i.at.warp;
        let w = warp as usize;
        match flow {
            Flow::Exit => self.exited[w] |= i.exec,
            Flow::WarpSync(sync) => {
                let masks = match sync {
                    SyncLanes::All => Row::splat(u32::MAX),
                    SyncLanes::Mask(m) | SyncLanes::Collective(m, _) | SyncLanes::Exclusive(m) => i.read(m),
                };
                let explicit = !matches!(op, Op::Control(ControlOp::WarpSync { mode: WarpSyncMode::All, .. }));
                for l in lanes(i.exec) {
                    self.named[w][l] = Some(masks.0[l]);
                }
                if explicit {
                    self.own_mask(i, &masks);
                }
                self.clocks.wait_lanes(warp, i.exec, i.at.inst);
            }
            Flow::BranchIf { mask, .. } => {
                let masks = mask.as_ref().map_or(Row::splat(u32::MAX), |m| i.read(m));
                for l in lanes(i.exec) {
                    self.named[w][l] = Some(masks.0[l]);
                }
            }
            Flow::BlockBarrier { mode, id, threads, .. } => {
                let lowest = (i.exec.trailing_zeros() % 32) as usize;
                if i.exec == 0 {
                    return;
                }
                let id = i.read(id).0[lowest];
                self.barrier(i, threads.is_some());
                self.clocks.arrive(warp, i.exec, id, *mode != BlockBarrierMode::Arrive);
            }
            // A mask is named for the code right behind.
            _ => lanes(i.exec).for_each(|l| self.named[w][l] = None),
        }
    }

    /// Lanes must be in the mask that they name.
    fn own_mask(&mut self, i: &Issue<'_>, masks: &Row) {
        let outside = lanes(i.exec).filter(|&l| masks.0[l] >> l & 1 == 0).fold(0u32, |m, l| m | 1 << l);
        if outside == 0 {
            return;
        }
        let mask = masks.0[outside.trailing_zeros() as usize % 32];
        let key = ("lane-not-in-mask", i.at.inst, i.at.inst);
        self.report(i, key, Severity::Error, || {
            let message = format!(
                "{} of {}, warp {}, {} {} at {} with the mask {mask:#010x}, which does not name {}.",
                capital(&named_lanes(outside)),
                i.block_name(),
                i.at.warp,
                if outside.count_ones() == 1 { "executes" } else { "execute" },
                i.text(),
                i.place(i.at.inst),
                if outside.count_ones() == 1 { "it" } else { "them" },
            );
            let witness = vec![(i.at.inst, format!("{} outside the mask {mask:#010x}", named_lanes(outside)))];
            (message, witness, vec![("lanes", LaneMask(outside.into()).to_string()), ("mask", format!("{mask:#010x}"))])
        });
    }

    fn across(&mut self, i: &Issue<'_>, op: &WarpOp, inst: &Inst) {
        match op {
            WarpOp::Shuffle { .. } => self.shuffle(i, op, inst),
            WarpOp::Vote { .. } | WarpOp::Match { .. } | WarpOp::Reduce { .. } => {}
            _ => return,
        }
        self.clocks.join_lanes(i.at.warp, i.exec);
    }

    /// A shuffle reads lanes that are not there.
    fn shuffle(&mut self, i: &Issue<'_>, op: &WarpOp, inst: &Inst) {
        let (WarpOp::Shuffle { mode, .. }, Kind::Warp(w)) = (op, &inst.kind) else { return };
        let [_, lane, clamp] = w.src.as_slice() else { return };
        let (lane, clamp) = (i.read(lane), i.read(clamp));
        let warp = i.at.warp as usize;
        let (mut readers, mut sources, mut unnamed) = (0u32, 0u32, false);
        for l in lanes(i.exec) {
            let (from, inside) = shuffle_lane(*mode, l as u32, lane.0[l], clamp.0[l]);
            if !inside || i.exec >> from & 1 != 0 {
                continue;
            }
            match self.named[warp][l] {
                // What lies outside the mask is undefined, and who names the lanes that are there knows it.
                Some(mask) if mask >> from & 1 == 0 => continue,
                Some(_) => {}
                None => unnamed = true,
            }
            readers |= 1 << l;
            sources |= 1 << from;
        }
        if readers == 0 {
            return;
        }
        let missing = sources & !self.existing[warp];
        let left = sources & self.exited[warp];
        let (rule, why) = if missing != 0 {
            ("partial-last-warp", "do not exist, since the block's last warp is not full")
        } else if left == sources {
            ("mask-absent-lanes", "have left")
        } else {
            ("mask-absent-lanes", "are not there")
        };
        let severity = if unnamed && missing == 0 { Severity::Warning } else { Severity::Error };
        self.report(i, (rule, i.at.inst, i.at.inst), severity, || {
            let message = format!(
                "In {}, warp {}, only {} execute {} at {}; {} among them read {}, but those {why}: what they get is undefined.",
                i.block_name(),
                i.at.warp,
                named_lanes(i.exec),
                i.text(),
                i.place(i.at.inst),
                named_lanes(readers),
                named_lanes(sources),
            );
            let witness = vec![(i.at.inst, format!("{} read {}", named_lanes(readers), named_lanes(sources)))];
            let evidence = vec![
                ("lanes_there", LaneMask(i.exec.into()).to_string()),
                ("lanes_that_read_absent_ones", LaneMask(readers.into()).to_string()),
            ];
            (message, witness, evidence)
        });
    }

    /// A barrier of the block is reached by part of a warp.
    fn barrier(&mut self, i: &Issue<'_>, counted: bool) {
        let w = i.at.warp as usize;
        let live = self.existing[w] & !self.exited[w];
        let elsewhere = live & !i.exec;
        if elsewhere != 0 {
            let key = ("barrier-in-divergent-code", i.at.inst, i.at.inst);
            self.report(i, key, Severity::Error, || {
                let message = format!(
                    "In {}, warp {}, only {} come to the barrier {} at {}; {} are elsewhere. The hardware counts the warp as \
                     arrived.",
                    i.block_name(),
                    i.at.warp,
                    named_lanes(i.exec),
                    i.text(),
                    i.place(i.at.inst),
                    named_lanes(elsewhere),
                );
                let witness = vec![(i.at.inst, format!("{} arrive, {} do not", named_lanes(i.exec), named_lanes(elsewhere)))];
                (message, witness, vec![("lanes", LaneMask(elsewhere.into()).to_string())])
            });
        }
        let left = self.exited[w];
        if left != 0 && !counted {
            let key = ("barrier-after-exit", i.at.inst, i.at.inst);
            self.report(i, key, Severity::Error, || {
                let message = format!(
                    "In {}, warp {}, {} had left when the others came to the barrier {} at {}: what they should have done \
                     before it is not done.",
                    i.block_name(),
                    i.at.warp,
                    named_lanes(left),
                    i.text(),
                    i.place(i.at.inst),
                );
                let witness = vec![(i.at.inst, format!("{} have left", named_lanes(left)))];
                (message, witness, vec![("lanes", LaneMask(left.into()).to_string())])
            });
        }
    }

    fn memory(&mut self, i: &Issue<'_>, m: &MemInst) {
        if i.exec == 0 {
            return;
        }
        match &m.kind {
            MemKind::Load { width, valid, .. } => {
                let exec = i.exec & i.file.pred(valid, i.at.index);
                self.touch(i, m, &m.addr, exec, width.bytes(), What::Read, false);
            }
            MemKind::Store { width, .. } => {
                self.touch(i, m, &m.addr, i.exec, width.bytes(), What::Write, false);
                self.release(i, m);
            }
            MemKind::Atomic { ty, .. } => {
                self.touch(i, m, &m.addr, i.exec, ty.slots() as u32 * 4, What::Write, true);
                self.release(i, m);
                let at = addresses(i, m, &m.addr);
                self.locks.attempt(&i.at, i.exec, m, &at, |op| i.read(op));
            }
            MemKind::Copy(c) => {
                let at = mem::addresses(i.file, i.block, &c.to, false, i.at.index);
                let exec = i.exec & i.file.pred(&c.valid, i.at.index);
                self.accesses(i, &at, exec, c.width.bytes(), What::Write, false);
            }
            MemKind::Tiles(t) => {
                let rows = lanes(i.exec).take(8 * usize::from(t.count)).fold(0u32, |m, l| m | 1 << l);
                let what = if t.src.is_some() { What::Write } else { What::Read };
                self.touch(i, m, &m.addr, rows, 16, what, false);
            }
            MemKind::Query { .. } => {}
        }
    }

    /// An access whose space the instruction tells.
    #[allow(clippy::too_many_arguments)]
    fn touch(&mut self, i: &Issue<'_>, m: &MemInst, a: &Address, exec: u32, bytes: u32, what: What, atomic: bool) {
        use lanescope_ir::op::memory::Space;
        let mut at = addresses(i, m, a);
        let exec = match m.space {
            Space::Shared => exec,
            Space::Generic => {
                let inside =
                    lanes(exec).filter(|&l| at[l] >> 32 == u64::from(SHARED_WINDOW_HI)).fold(0u32, |m, l| m | 1 << l);
                at = at.map(|a| a & u64::from(u32::MAX));
                inside
            }
            _ => return,
        };
        self.accesses(i, &at, exec, bytes, what, atomic);
    }

    fn accesses(&mut self, i: &Issue<'_>, at: &mem::Addresses, exec: u32, bytes: u32, what: What, atomic: bool) {
        let warp = i.at.warp;
        let mut unwritten = 0u32;
        for l in lanes(exec) {
            let lane = l as u32;
            let access = Access {
                inst: i.at.inst,
                thread: (warp, lane),
                time: self.clocks.now(warp, lane),
                issue: self.issues,
                atomic,
            };
            let v = self.shared.access(&self.clocks, at[l], bytes, access, what);
            unwritten |= u32::from(v.unwritten) << l;
            let Some(race) = v.race else { continue };
            let first = race.first;
            let key = ("shared-memory-race", i.at.inst, first.inst);
            let address = at[l];
            self.report(i, key, Severity::Error, || {
                let (f, s) = (verb(race.first_was), verb(what));
                let who = |t: shared::Thread| format!("lane {} of warp {}", t.1, t.0);
                let remedy = if first.thread.0 == warp { "__syncwarp" } else { "__syncthreads" };
                let message = format!(
                    "In {}, {} {f} shared memory at {address:#x} ({}, {}) and {} {s} it ({}, {}); nothing orders the two. \
                     {remedy}() between them does.",
                    i.block_name(),
                    who(first.thread),
                    format_args!("`{}`", i.block.cx.kernel.text.get(first.inst as usize).map_or("", String::as_str)),
                    i.place(first.inst),
                    who((warp, lane)),
                    i.text(),
                    i.place(i.at.inst),
                );
                let witness = vec![
                    (first.inst, format!("{} {f} {address:#x}", who(first.thread))),
                    (i.at.inst, format!("{} {s} {address:#x}", who((warp, lane)))),
                ];
                let evidence = vec![
                    ("address", format!("{address:#x}")),
                    ("first_thread", who(first.thread)),
                    ("second_thread", who((warp, lane))),
                ];
                (message, witness, evidence)
            });
        }
        if unwritten != 0 && what == What::Read {
            let key = ("unwritten-shared-read", i.at.inst, i.at.inst);
            let lowest = unwritten.trailing_zeros() as usize % 32;
            let address = at[lowest];
            self.report(i, key, Severity::Error, || {
                let message = format!(
                    "In {}, warp {warp}, {} {} shared memory that no thread of the block has written, from {address:#x} on, \
                     with {} at {}.",
                    i.block_name(),
                    named_lanes(unwritten),
                    if unwritten.count_ones() == 1 { "reads" } else { "read" },
                    i.text(),
                    i.place(i.at.inst),
                );
                let witness = vec![(i.at.inst, format!("{} read {address:#x} and on", named_lanes(unwritten)))];
                let evidence = vec![
                    ("address", format!("{address:#x}")),
                    ("bytes", bytes.to_string()),
                    ("lanes", LaneMask(unwritten.into()).to_string()),
                ];
                (message, witness, evidence)
            });
        }
    }

    /// The atomic that a warp executed last: did it take a lock?
    fn settle_lock(&mut self, i: &Issue<'_>) {
        let (file, index) = (i.file, i.at.index);
        self.locks.settle(&i.at, |slot| file.register(slot, index).copied(), |pred| file.predicate(pred, index));
    }

    /// A lane gives back a lock for which others of its warp spin.
    fn release(&mut self, i: &Issue<'_>, m: &MemInst) {
        let at = addresses(i, m, &m.addr);
        for l in lanes(i.exec) {
            let Some(held) = self.locks.release(&i.at, l as u32, at[l]) else { continue };
            if held.spinning == 0 {
                continue;
            }
            let key = ("lock-spin", i.at.inst, held.inst);
            self.report(i, key, Severity::Error, || {
                let message = format!(
                    "In {}, warp {}, lane {l} took the lock at {:#x} ({}) and releases it behind the loop, at {}, while {} \
                     still spin for it: before Volta the warp hangs; from Volta on only a YIELD in the loop lets lane {l} \
                     go on.",
                    i.block_name(),
                    i.at.warp,
                    at[l],
                    i.place(held.inst),
                    i.place(i.at.inst),
                    named_lanes(held.spinning),
                );
                let witness = vec![
                    (held.inst, format!("lane {l} takes the lock, {} do not get it", named_lanes(held.spinning))),
                    (i.at.inst, format!("lane {l} releases it")),
                ];
                let evidence =
                    vec![("winner", l.to_string()), ("spinning", LaneMask(held.spinning.into()).to_string())];
                (message, witness, evidence)
            });
        }
    }
}

fn verb(what: What) -> &'static str {
    match what {
        What::Read => "reads",
        What::Write => "writes",
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |c| c.to_uppercase().chain(chars).collect())
}

fn addresses(i: &Issue<'_>, m: &MemInst, a: &Address) -> mem::Addresses {
    use lanescope_ir::op::memory::Space;
    let wide = matches!(m.space, Space::Global | Space::Generic);
    mem::addresses(i.file, i.block, a, wide, i.at.index)
}
