//! What each thread of a launch does, recorded: executions of basic blocks, addresses, values.
//!
//! A block in flight has a [`BlockRecord`] of its own; when it ends, it is copied to the block's place in the launch's
//! [`ThreadProfile`]. So nothing depends on which block ended first or on which core it ran.

use std::sync::Mutex;

use lanescope_analysis::Cfg;
use lanescope_ir::op::memory::{AtomType, MemoryOp, Space};
use lanescope_ir::op::warp::WarpOp;
use lanescope_ir::{
    AccessProfile, Kernel, Op, Slot, ThreadAccess, ThreadProfile, ThreadValue, ValueProfile, op::effects,
};

use super::BlockCx;
use super::mem;
use super::program::{Kind, MemInst, MemKind, NONE, Pieces};
use crate::error::SimError;
use crate::launch::ThreadRequest;
use crate::memory::words::lanes;
use crate::rows::{LANES, Row, RowFile, Run};

/// Bytes of the records unless told.
const DEFAULT_BYTES: u64 = 1 << 30;

/// What is recorded of one instruction.
#[derive(Clone, Copy)]
struct Wanted {
    /// Index of its accesses, or [`NONE`].
    access: u32,
    /// Index of its values.
    value: u32,
}

/// What is recorded of a launch, and the records of the blocks that have ended.
pub(crate) struct Recorder {
    /// Blocks of the grid that are recorded: the first ones.
    first_blocks: u64,
    block_threads: usize,
    rows: usize,
    /// First instructions of the basic blocks, ascending.
    blocks: Vec<u32>,
    /// For each instruction, the number of basic blocks that start before it.
    before: Vec<u32>,
    wanted: Vec<Wanted>,
    /// Low and high register of the values, [`NONE`] for a value of one word.
    registers: Vec<[u32; 2]>,
    /// For each value that was asked for, its index in `registers`.
    asked: Vec<u32>,
    profile: Mutex<ThreadProfile>,
}

/// Records of the block of the grid that is in flight. Indices: what, row of lanes in the block, lane.
#[derive(Default)]
pub(crate) struct BlockRecord {
    rows: usize,
    executions: Vec<Row>,
    /// Basic blocks that were executed.
    entered: Vec<bool>,
    /// Empty for an instruction that was not executed yet.
    accesses: Vec<Vec<ThreadAccess>>,
    values: Vec<ThreadValue>,
    /// Lanes of each run that execute the instruction whose values are wanted.
    exec: Vec<u32>,
}

/// Global memory that an instruction may access: bytes of a lane, whether it reads, whether it writes.
fn global(op: &MemoryOp) -> Option<(u32, bool, bool)> {
    let (space, bytes, reads, writes) = match op {
        MemoryOp::Load { space, width, .. } => (*space, width.bytes(), true, false),
        MemoryOp::Store { space, width, .. } => (*space, width.bytes(), false, true),
        MemoryOp::Atomic { space, ty: AtomType::B16, .. } => (*space, 2, true, true),
        MemoryOp::Atomic { space, ty, .. } => (*space, ty.slots() as u32 * 4, true, true),
        MemoryOp::Copy { width, .. } => (Space::Global, width.bytes(), true, false),
        MemoryOp::LoadMatrix { space, .. } => (*space, 16, true, false),
        MemoryOp::StoreMatrix { space, .. } => (*space, 16, false, true),
        MemoryOp::QuerySpace { .. } => return None,
    };
    matches!(space, Space::Global | Space::Generic).then_some((bytes, reads, writes))
}

/// Registers of an instruction's first result, low word first.
fn result(op: &Op) -> Option<[Option<Slot>; 2]> {
    let pair = |d: &[Option<Slot>], words: usize| {
        let first = d.iter().take(words.max(1)).position(Option::is_some)?;
        // The high word of a pair alone is a value of its own.
        Some([d[first], if first == 0 && words > 1 { d.get(1).copied().flatten() } else { None }])
    };
    match op {
        Op::Lane(op) => pair(&op.dst, 2),
        Op::Memory(MemoryOp::Load { width, dst, .. }) => pair(dst, width.slots()),
        Op::Memory(MemoryOp::Atomic { ty, dst, .. }) => pair(dst, ty.slots()),
        Op::Memory(MemoryOp::LoadMatrix { dst, .. }) => pair(dst, 1),
        Op::Memory(MemoryOp::QuerySpace { dst, .. }) => pair(&[*dst], 1),
        Op::Warp(WarpOp::Special { dst, .. } | WarpOp::CodeAddress { dst, .. }) => pair(dst, 2),
        Op::Warp(_) => {
            let mut first = None;
            let inst =
                lanescope_ir::Instruction { pc: 0, guard: lanescope_ir::PredSrc::TRUE, uniform: false, op: op.clone() };
            inst.for_each_slot(|s, a| {
                if a == effects::Access::Write {
                    first.get_or_insert(s);
                }
            });
            first.map(|s| [Some(s), None])
        }
        _ => None,
    }
}

impl Recorder {
    /// For a launch of `total` blocks of `block_threads` threads each, in `rows` rows of lanes.
    pub(crate) fn new(
        kernel: &Kernel,
        request: &ThreadRequest,
        total: u64,
        block_threads: u32,
        rows: usize,
    ) -> Result<Recorder, SimError> {
        let cfg = Cfg::new(kernel);
        let blocks: Vec<u32> = cfg.blocks.iter().map(|b| b.first).collect();
        let n = kernel.instructions.len();
        let before = (0..=n as u32).map(|i| blocks.partition_point(|&b| b < i) as u32).collect();
        let mut wanted = vec![Wanted { access: NONE, value: NONE }; n];
        let mut accesses = Vec::new();
        for (at, inst) in kernel.instructions.iter().enumerate() {
            if let Op::Memory(op) = &inst.op
                && let Some((bytes, reads, writes)) = global(op)
            {
                wanted[at].access = accesses.len() as u32;
                accesses.push(AccessProfile { inst: at as u32, bytes, reads, writes, threads: Vec::new() });
            }
        }
        let mut registers = Vec::new();
        let mut asked = Vec::with_capacity(request.values.len());
        for &inst in &request.values {
            let bad = |why| Err(SimError::CannotRecord { inst, why });
            let Some(i) = kernel.instructions.get(inst as usize) else {
                return bad("the kernel has no such instruction");
            };
            let w = &mut wanted[inst as usize];
            if w.value == NONE {
                let Some([Some(low), high]) = result(&i.op) else {
                    return bad("it writes no register");
                };
                w.value = registers.len() as u32;
                registers.push([low.0.into(), high.map_or(NONE, |s| s.0.into())]);
            }
            asked.push(w.value);
        }
        let of_thread = 4 * blocks.len()
            + accesses.len() * size_of::<ThreadAccess>()
            + (registers.len() + asked.len()) * size_of::<ThreadValue>();
        let max = if request.max_bytes == 0 { DEFAULT_BYTES } else { request.max_bytes };
        let of_block = (of_thread as u64 * u64::from(block_threads)).max(1);
        let first_blocks = total.min(max / of_block);
        let threads = first_blocks as usize * block_threads as usize;
        let profile = ThreadProfile {
            threads,
            of: total.saturating_mul(block_threads.into()),
            block_threads,
            executions: vec![vec![0; threads]; blocks.len()],
            blocks: blocks.clone(),
            accesses,
            values: registers
                .iter()
                .map(|_| ValueProfile { inst: NONE, threads: vec![ThreadValue::default(); threads] })
                .collect(),
        };
        Ok(Recorder {
            first_blocks,
            block_threads: block_threads as usize,
            rows,
            blocks,
            before,
            wanted,
            registers,
            asked,
            profile: Mutex::new(profile),
        })
    }

    /// Bytes of the record of a block in flight at most.
    pub(crate) fn bytes(&self) -> u64 {
        let accesses = self.wanted.iter().filter(|w| w.access != NONE).count();
        let lane = 4 * self.blocks.len()
            + accesses * size_of::<ThreadAccess>()
            + self.registers.len() * size_of::<ThreadValue>();
        (lane * LANES * self.rows) as u64
    }

    /// Makes a record ready for a block of the grid; `None` for a block that is not recorded.
    pub(crate) fn start(&self, linear: u64, idle: Option<Box<BlockRecord>>) -> Option<Box<BlockRecord>> {
        if linear >= self.first_blocks {
            return None;
        }
        let mut record = idle.unwrap_or_else(|| {
            Box::new(BlockRecord {
                rows: self.rows,
                executions: vec![Row::ZERO; self.blocks.len() * self.rows],
                entered: vec![false; self.blocks.len()],
                accesses: vec![Vec::new(); self.wanted.iter().filter(|w| w.access != NONE).count()],
                values: vec![ThreadValue::default(); self.registers.len() * self.rows * LANES],
                exec: Vec::new(),
            })
        });
        for (block, entered) in record.entered.iter_mut().enumerate() {
            if std::mem::take(entered) {
                record.executions[block * self.rows..][..self.rows].fill(Row::ZERO);
            }
        }
        record.accesses.iter_mut().for_each(|a| a.fill(ThreadAccess::default()));
        record.values.fill(ThreadValue::default());
        Some(record)
    }

    /// A block of the grid has ended: copies its record to its place.
    pub(crate) fn finish(&self, linear: u64, record: &BlockRecord) {
        let mut profile = self.profile.lock().unwrap_or_else(|e| e.into_inner());
        let profile = &mut *profile;
        let n = self.block_threads;
        let at = linear as usize * n;
        for (block, to) in profile.executions.iter_mut().enumerate().filter(|(b, _)| record.entered[*b]) {
            let rows = &record.executions[block * self.rows..][..self.rows];
            let from = rows.iter().flat_map(|r| &r.0);
            to[at..at + n].iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        }
        for (to, from) in profile.accesses.iter_mut().zip(&record.accesses) {
            if from.iter().all(|a| a.count == 0) {
                continue;
            }
            if to.threads.is_empty() {
                to.threads = vec![ThreadAccess::default(); profile.threads];
            }
            to.threads[at..at + n].copy_from_slice(&from[..n]);
        }
        for (to, from) in profile.values.iter_mut().zip(record.values.chunks(self.rows * LANES)) {
            to.threads[at..at + n].copy_from_slice(&from[..n]);
        }
    }

    /// All blocks have ended.
    pub(crate) fn profile(self, request: &ThreadRequest) -> ThreadProfile {
        let mut profile = self.profile.into_inner().unwrap_or_else(|e| e.into_inner());
        profile.accesses.retain(|a| !a.threads.is_empty());
        let mut values = std::mem::take(&mut profile.values);
        for (i, (&value, &inst)) in self.asked.iter().zip(&request.values).enumerate() {
            let Some(made) = values.get_mut(value as usize) else { continue };
            let threads = if self.asked[i + 1..].contains(&value) {
                made.threads.clone()
            } else {
                std::mem::take(&mut made.threads)
            };
            profile.values.push(ValueProfile { inst, threads });
        }
        profile
    }
}

impl BlockRecord {
    /// The instructions `from..to` are issued by the lanes of `runs`, whose tile starts at row `first` of the block.
    pub(crate) fn issue(&mut self, recorder: &Recorder, from: u32, to: u32, first: u32, runs: &[Run]) {
        let (a, b) = (recorder.before[from as usize], recorder.before[to as usize]);
        for block in a..b {
            self.entered[block as usize] = true;
            let rows = &mut self.executions[block as usize * self.rows..][..self.rows];
            for r in runs {
                let row = &mut rows[(first + r.warp) as usize];
                for (l, n) in row.0.iter_mut().enumerate() {
                    *n = n.saturating_add(r.active >> l & 1);
                }
            }
        }
    }

    /// The instruction is about to be executed.
    pub(crate) fn before(
        &mut self,
        block: &BlockCx<'_>,
        recorder: &Recorder,
        file: &RowFile,
        at: u32,
        first: u32,
        runs: &[Run],
    ) {
        let inst = &block.cx.program.insts[at as usize];
        let wanted = recorder.wanted[at as usize];
        if wanted.access != NONE
            && let Kind::Memory(m) = &inst.kind
        {
            for r in runs {
                let exec = r.active & file.pred(&inst.guard, r.warp);
                if exec != 0 {
                    self.access(block, file, wanted.access, m, first + r.warp, r.warp, exec);
                }
            }
        }
        if wanted.value != NONE {
            self.exec.clear();
            // The guard may be among the results.
            self.exec.extend(runs.iter().map(|r| r.active & file.pred(&inst.guard, r.warp)));
        }
    }

    /// The instruction has been executed. `unknown` gives the lanes of a register whose value is not known.
    pub(crate) fn after(
        &mut self,
        recorder: &Recorder,
        file: &RowFile,
        at: u32,
        first: u32,
        runs: &[Run],
        unknown: impl Fn(u32, u32) -> u32,
    ) {
        let value = recorder.wanted[at as usize].value;
        if value == NONE {
            return;
        }
        let [low, high] = recorder.registers[value as usize];
        for (i, r) in runs.iter().enumerate() {
            let row = first + r.warp;
            let known = !unknown(low, row) & if high == NONE { !0 } else { !unknown(high, row) };
            let exec = self.exec.get(i).copied().unwrap_or(0) & known;
            let Some(lo) = file.register(low, r.warp) else { continue };
            let hi = if high == NONE { None } else { file.register(high, r.warp) };
            let to = &mut self.values[(value as usize * self.rows + row as usize) * LANES..][..LANES];
            for l in lanes(exec) {
                let value = u64::from(lo.0[l]) | hi.map_or(0, |hi| u64::from(hi.0[l]) << 32);
                let v = &mut to[l];
                if v.count == 0 {
                    v.first = value;
                }
                v.count = v.count.saturating_add(1);
                v.changed |= value != v.first;
                v.last = value;
            }
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn access(
        &mut self,
        block: &BlockCx<'_>,
        file: &RowFile,
        index: u32,
        m: &MemInst,
        row: u32,
        index_in_tile: u32,
        exec: u32,
    ) {
        let constants = block.cx.program.layout.constants();
        let mut at = mem::addresses(file, block, &m.addr, true, index_in_tile);
        let mut mask = exec;
        if m.space == Space::Generic {
            let (shared, local) = mem::windows(&at, mask);
            mask &= !(shared | local);
        }
        match &m.kind {
            MemKind::Load { valid, .. } => mask &= file.pred(valid, index_in_tile),
            MemKind::Copy(c) => {
                mask &= file.pred(&c.valid, index_in_tile);
                match &c.pieces {
                    Pieces::Whole => {}
                    Pieces::First(n) => {
                        let n = file.read(constants, n, index_in_tile);
                        mask = lanes(mask).filter(|&l| n.0[l] != 0).fold(0, |m, l| m | 1 << l);
                    }
                    Pieces::Offset => at.iter_mut().for_each(|a| *a -= *a % u64::from(c.width.bytes())),
                }
            }
            MemKind::Tiles(t) => {
                // It does nothing unless all lanes execute it, and has an address for each row of its tiles.
                mask &= if exec == u32::MAX { u32::MAX >> (LANES - 8 * usize::from(t.count.clamp(1, 4))) } else { 0 };
            }
            MemKind::Store { .. } | MemKind::Atomic { .. } | MemKind::Query { .. } => {}
        }
        if mask == 0 {
            return;
        }
        let all = &mut self.accesses[index as usize];
        if all.is_empty() {
            all.resize(self.rows * LANES, ThreadAccess::default());
        }
        let to = &mut all[row as usize * LANES..][..LANES];
        for l in lanes(mask) {
            note(&mut to[l], at[l]);
        }
    }
}

/// One more access of a thread.
fn note(t: &mut ThreadAccess, address: u64) {
    match t.count {
        0 => *t = ThreadAccess { count: 1, regular: true, first: address, low: address, high: address, stride: 0 },
        u32::MAX => {}
        n => {
            if n == 1 {
                t.stride = address.wrapping_sub(t.first) as i64;
            } else if t.regular {
                t.regular = address == t.first.wrapping_add((t.stride as u64).wrapping_mul(n.into()));
            }
            t.count = n + 1;
        }
    }
    if t.count != 0 {
        t.low = t.low.min(address);
        t.high = t.high.max(address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides() {
        let mut t = ThreadAccess::default();
        for a in [100, 96, 92, 88] {
            note(&mut t, a);
        }
        assert_eq!(t, ThreadAccess { count: 4, regular: true, first: 100, low: 88, high: 100, stride: -4 });
        note(&mut t, 88);
        assert_eq!(t, ThreadAccess { count: 5, regular: false, first: 100, low: 88, high: 100, stride: -4 });
        let mut t = ThreadAccess::default();
        note(&mut t, 8);
        note(&mut t, 8);
        assert_eq!(t, ThreadAccess { count: 2, regular: true, first: 8, low: 8, high: 8, stride: 0 });
    }
}
