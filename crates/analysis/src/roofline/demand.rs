//! What a launch asks of the machine.

use std::hash::{DefaultHasher, Hash, Hasher};

use lanescope_ir::counts::BlockWork;
use lanescope_ir::op::memory::MemoryOp;
use lanescope_ir::{Kernel, Op, Profile};

use super::{Chain, PipeWork, pipe};

/// What a launch asks of the machine: made from a profile, or from what a fix is expected to leave of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demand {
    /// Warp instructions issued.
    pub warp_instructions: u64,
    /// Warp instructions of the warp that issues most, if it is known.
    pub longest_warp: Option<u64>,
    /// 32-byte sectors of global memory, summed over the issues of all instructions ("L2 Theoretical Sectors Global").
    pub sectors: u64,
    /// Sectors that the same lanes would need with neighbouring addresses.
    pub sectors_ideal: u64,
    /// Of `sectors`, those that a modelled first-level cache does not have, if one was modelled: each block with its share
    /// of an SM's.
    pub sectors_missed: Option<u64>,
    /// Of those, stores and atomics, which pass it by.
    pub sectors_passed: u64,
    /// Bytes of global memory that the launch touches at all, by whole sectors, if it is known.
    pub distinct_bytes: Option<u64>,
    /// Issues of instructions that access global memory.
    pub memory_requests: u64,
    /// Passes through shared memory.
    pub shared_wavefronts: u64,
    /// Passes that would be needed without bank conflicts.
    pub shared_wavefronts_ideal: u64,
    /// Warp instructions by execution unit.
    pub pipes: PipeWork,
    /// Pace of a warp that runs alone.
    pub chain: Chain,
    /// How many sectors were missed by how many loads: see [`lanescope_ir::Reach::misses`].
    pub misses: Vec<(u32, u64)>,
    /// A number for the code: launches of the same code have the same one.
    pub code: u64,
    /// What each block does, in linear order, if it is known.
    pub blocks: Vec<BlockWork>,
    /// What the longest warp of each block takes against `blocks` and `longest_warp`: 1 for a launch that was run. For one
    /// that is predicted, how much shorter it may get at best, and at worst.
    pub warp_scale: Scale,
}

/// A factor at best and at worst.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// At best: the smaller one.
    pub best: f64,
    /// At worst.
    pub worst: f64,
}

impl Default for Scale {
    fn default() -> Scale {
        Scale { best: 1.0, worst: 1.0 }
    }
}

impl Demand {
    /// The demand that a profile counted. What it does not hold (longest warp, distinct bytes, blocks) is left open.
    pub fn new(kernel: &Kernel, profile: &Profile) -> Demand {
        let mut hasher = DefaultHasher::new();
        (&kernel.name, &kernel.text).hash(&mut hasher);
        let mut d = Demand { chain: Chain::new(kernel, profile), code: hasher.finish(), ..Demand::default() };
        let mut missed = 0u64;
        for (at, c) in profile.counts.iter().enumerate() {
            d.warp_instructions = d.warp_instructions.saturating_add(c.inst_executed);
            d.sectors = d.sectors.saturating_add(c.sectors);
            d.sectors_ideal = d.sectors_ideal.saturating_add(c.sectors_ideal);
            missed = missed.saturating_add(c.sectors_missed);
            if !matches!(kernel.instructions.get(at).map(|i| &i.op), Some(Op::Memory(MemoryOp::Load { .. }))) {
                d.sectors_passed = d.sectors_passed.saturating_add(c.sectors_missed);
            }
            d.shared_wavefronts = d.shared_wavefronts.saturating_add(c.shared_wavefronts);
            d.shared_wavefronts_ideal = d.shared_wavefronts_ideal.saturating_add(c.shared_wavefronts_ideal);
            if c.sectors > 0 {
                d.memory_requests = d.memory_requests.saturating_add(c.inst_executed);
            }
            d.pipes.add(pipe(kernel, at as u32), c.inst_executed);
        }
        if let Some(reach) = &profile.reach {
            d.longest_warp = Some(reach.longest_warp);
            d.distinct_bytes = Some(reach.touched_sectors.saturating_mul(32));
            d.sectors_missed = reach.l1_bytes.map(|_| missed);
            d.misses.clone_from(&reach.misses);
            d.blocks.clone_from(&reach.blocks);
        }
        d
    }

    /// The same demand with another number of warp instructions, for a fix that is predicted and not run: what is
    /// issued shrinks or grows in proportion in each block, what memory has to deliver stays. The longest warp may shrink
    /// as well, or not: other neighbours do not take a turn from a lane that needs a thousand.
    #[must_use]
    pub fn with_warp_instructions(&self, warp_instructions: u64) -> Demand {
        if self.warp_instructions == 0 {
            return Demand { warp_instructions, ..self.clone() };
        }
        let factor = warp_instructions as f64 / self.warp_instructions as f64;
        let scale = |n: u64| (n as f64 * factor).round() as u64;
        let blocks = self.blocks.iter().map(|b| BlockWork { inst_executed: scale(b.inst_executed), ..*b });
        Demand {
            warp_instructions,
            memory_requests: scale(self.memory_requests),
            shared_wavefronts: scale(self.shared_wavefronts),
            shared_wavefronts_ideal: scale(self.shared_wavefronts_ideal),
            pipes: self.pipes.scaled(factor),
            blocks: blocks.collect(),
            warp_scale: Scale { best: factor.min(1.0), worst: factor.max(1.0) },
            ..self.clone()
        }
    }

    /// The share of sectors that neighbouring addresses would not need: 0 if all accesses are coalesced.
    pub fn scattered(&self) -> f64 {
        if self.sectors == 0 { 0.0 } else { 1.0 - self.sectors_ideal as f64 / self.sectors as f64 }
    }
}
