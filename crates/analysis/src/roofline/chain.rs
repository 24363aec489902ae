//! How long one warp takes alone: each instruction waits for what it reads.
//!
//! Machines of Volta and later issue a warp's instructions in order. An instruction waits until its sources are there; so a
//! block of straight code has a length in cycles that follows from its dependences and the latencies of [`super::limits`]. It
//! is worked out once with all loads found in the first-level cache and once with each of them `MISS` cycles later: the
//! difference says how much of that wait other instructions of the same warp fill.

use std::collections::HashMap;

use lanescope_ir::op::effects::Access;
use lanescope_ir::op::memory::{MemoryOp, Space};
use lanescope_ir::op::warp::WarpOp;
use lanescope_ir::{Kernel, Op, Pred, Profile, Slot};

use super::limits::latency;
use super::pipes::{Pipe, mnemonic, pipe};
use crate::cfg::{Block, Cfg};

/// The delay that is tried: how much of it shows does not depend much on it, once it is long.
const MISS: f64 = 400.0;

/// Pace of a warp that runs alone.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Chain {
    /// Cycles an instruction takes on average, its latency included, with all loads found in the first-level cache.
    pub cycles_per_inst: f64,
    /// The part of a load's further delay that the warp cannot fill with its own work, 0 to 1.
    pub exposed: f64,
}

impl Chain {
    /// Averages over what a profile counted.
    pub fn new(kernel: &Kernel, profile: &Profile) -> Chain {
        let cfg = Cfg::new(kernel);
        let runs = |b: u32| {
            let first = cfg.blocks.get(b as usize).map_or(0, |b| b.first);
            profile.counts.get(first as usize).map_or(0, |c| c.inst_executed)
        };
        let back = cfg.graph.reversed();
        let infos: Vec<Info> = (0..kernel.instructions.len() as u32).map(|i| Info::new(kernel, i)).collect();
        let (mut insts, mut near, mut far, mut delayed) = (0.0, 0.0, 0.0, 0.0);
        for (b, block) in cfg.blocks.iter().enumerate() {
            let n = runs(b as u32) as f64;
            if n == 0.0 {
                continue;
            }
            // What runs before it most often leaves its loads under way.
            let before = back.successors(b as u32).iter().copied().filter(|&p| runs(p) > 0).max_by_key(|&p| runs(p));
            let before = before.and_then(|p| cfg.blocks.get(p as usize));
            let hit = length(&infos, before, block, 0.0);
            let loads = block.instructions().filter(|&i| infos[i as usize].waits).count() as f64;
            insts += n * f64::from(block.len);
            near += n * hit;
            if loads > 0.0 || before.is_some() {
                far += n * (length(&infos, before, block, MISS) - hit);
                delayed += n * loads * MISS;
            }
        }
        Chain {
            cycles_per_inst: if insts > 0.0 { near / insts } else { 1.0 },
            exposed: if delayed > 0.0 { (far / delayed).clamp(0.0, 1.0) } else { 1.0 },
        }
    }
}

/// What the clock needs to know of an instruction.
struct Info {
    reads: Vec<u32>,
    writes: Vec<u32>,
    latency: f64,
    /// Cycles until the next instruction can be issued.
    step: f64,
    /// Whether its result comes from global or local memory.
    waits: bool,
}

impl Info {
    fn new(kernel: &Kernel, inst: u32) -> Info {
        let i = &kernel.instructions[inst as usize];
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        let mut note = |key: u32, access| match access {
            Access::Read => reads.push(key),
            Access::Write => writes.push(key),
        };
        i.for_each_slot(|Slot(s), a| note(u32::from(s), a));
        i.for_each_pred(|Pred(p), a| note(1 << 16 | u32::from(p), a));
        let waits = matches!(
            &i.op,
            Op::Memory(
                MemoryOp::Load { space: Space::Global | Space::Generic | Space::Local, .. } | MemoryOp::Atomic { .. }
            )
        );
        let latency = match &i.op {
            Op::Memory(MemoryOp::Load { space: Space::Shared, .. } | MemoryOp::LoadMatrix { .. }) => latency::SHARED,
            Op::Memory(MemoryOp::Load { space: Space::Const(_), .. }) => latency::CONSTANT,
            Op::Memory(MemoryOp::Atomic { space: Space::Shared, .. }) => latency::SHARED,
            Op::Memory(_) => latency::L1,
            Op::Warp(WarpOp::Shuffle { .. }) => latency::SHUFFLE,
            Op::Warp(WarpOp::Special { .. }) if mnemonic(kernel, inst).starts_with("S2") => latency::SPECIAL,
            Op::Warp(WarpOp::Mma(_)) => latency::TENSOR,
            Op::Control(_) => 0.0,
            _ => match pipe(kernel, inst) {
                Pipe::Xu => latency::XU,
                Pipe::Fp64 => latency::FP64,
                _ => latency::ALU,
            },
        };
        let step = if matches!(i.op, Op::Control(_)) { latency::BRANCH } else { 1.0 };
        Info { reads, writes, latency, step, waits }
    }
}

/// Cycles from the first issue of `block` to that of whatever follows, with `before` run first.
fn length(infos: &[Info], before: Option<&Block>, block: &Block, miss: f64) -> f64 {
    let mut ready: HashMap<u32, f64> = HashMap::new();
    let mut now = 0.0f64;
    let mut run = |block: &Block| {
        let start = now;
        for i in block.instructions() {
            let info = &infos[i as usize];
            let at = info.reads.iter().chain(&info.writes).filter_map(|k| ready.get(k)).fold(now, |a, &b| a.max(b));
            let result = at + info.latency + if info.waits { miss } else { 0.0 };
            for &w in &info.writes {
                ready.insert(w, result);
            }
            now = at + info.step;
        }
        now - start
    };
    if let Some(before) = before {
        run(before);
    }
    run(block)
}
