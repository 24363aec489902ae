//! How many warps can be resident on an SM, and what limits them.

use lanescope_ir::{Kernel, LaunchShape};

use super::Gpu;

/// Registers are given to a warp in pieces of so many (all machines of Pascal and later).
const REGISTER_UNIT: u32 = 256;
/// Shared memory that machine code of sm_90 and later counts in its own size already, in bytes.
const COUNTED: u32 = 1024;

/// What limits the number of resident warps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// The SM's warp slots (or threads).
    Warps,
    /// The SM's block slots.
    Blocks,
    /// Registers.
    Registers,
    /// Shared memory.
    Shared,
    /// The grid has fewer blocks than would fit.
    Grid,
    /// A block does not fit at all: it cannot be launched on this GPU.
    DoesNotFit,
}

impl Limit {
    /// In a sentence: "limited by ...".
    pub fn name(self) -> &'static str {
        match self {
            Limit::Warps => "the SM's warp slots",
            Limit::Blocks => "the SM's block slots",
            Limit::Registers => "registers",
            Limit::Shared => "shared memory",
            Limit::Grid => "the size of the grid",
            Limit::DoesNotFit => "the size of a block, which does not fit on an SM",
        }
    }

    /// As JSON has it.
    pub fn key(self) -> &'static str {
        match self {
            Limit::Warps => "warps",
            Limit::Blocks => "blocks",
            Limit::Registers => "registers",
            Limit::Shared => "shared",
            Limit::Grid => "grid",
            Limit::DoesNotFit => "does-not-fit",
        }
    }
}

/// Resident warps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Occupancy {
    /// Blocks that fit on an SM, however many the grid has.
    pub fits: u32,
    /// Blocks resident on an SM at most.
    pub blocks_per_sm: u32,
    /// Warps resident on an SM at most.
    pub warps_per_sm: u32,
    /// Of so many slots.
    pub of: u32,
    /// What allows no more.
    pub limit: Limit,
    /// How often all SMs are filled to get through the grid: below 1, some of them are not.
    pub waves: f64,
    /// Whether the registers of a thread are known. They are not at the level of PTX; then they limit nothing.
    pub registers_known: bool,
}

/// Shared memory of a block without what the system keeps, in bytes.
pub(super) fn shared_of_block(kernel: &Kernel, dynamic_shared: u32) -> u32 {
    let sm: u32 = kernel.arch.trim_start_matches("sm_").trim_end_matches(['a', 'f']).parse().unwrap_or(0);
    let counted = if sm >= 90 { COUNTED } else { 0 };
    kernel.shared_size.saturating_sub(counted).saturating_add(dynamic_shared)
}

/// Works it out as the driver does (`cuOccupancyMaxActiveBlocksPerMultiprocessor`), for the GPU's limits.
pub fn occupancy(kernel: &Kernel, shape: &LaunchShape, dynamic_shared: u32, gpu: &Gpu) -> Occupancy {
    let threads: u64 = shape.block.iter().map(|&d| u64::from(d)).product();
    let grid: u64 = shape.grid.iter().fold(1u64, |a, &d| a.saturating_mul(d.into()));
    let width = u64::from(shape.warp_size.max(1));
    let warps = u32::try_from(threads.div_ceil(width)).unwrap_or(u32::MAX).max(1);
    let shared = shared_of_block(kernel, dynamic_shared);
    let all = [
        (by_warps(threads, warps, gpu), Limit::Warps),
        (gpu.blocks_per_sm, Limit::Blocks),
        (by_registers(kernel.registers, warps, gpu), Limit::Registers),
        (by_shared(shared, gpu), Limit::Shared),
    ];
    let (fits, mut limit) = all.into_iter().min_by_key(|x| x.0).unwrap_or((0, Limit::DoesNotFit));
    if fits == 0 {
        limit = Limit::DoesNotFit;
    }
    let waves = if fits == 0 { f64::INFINITY } else { grid as f64 / (f64::from(fits) * f64::from(gpu.sms.max(1))) };
    let per_sm = u32::try_from(grid.div_ceil(gpu.sms.max(1).into())).unwrap_or(u32::MAX);
    if per_sm < fits {
        limit = Limit::Grid;
    }
    let blocks_per_sm = fits.min(per_sm);
    Occupancy {
        fits,
        blocks_per_sm,
        warps_per_sm: blocks_per_sm.saturating_mul(warps),
        of: gpu.warps_per_sm,
        limit,
        waves,
        registers_known: kernel.registers != 0,
    }
}

fn by_warps(threads: u64, warps: u32, gpu: &Gpu) -> u32 {
    let by_threads = u64::from(gpu.threads_per_sm) / threads.max(1).next_multiple_of(32);
    (gpu.warps_per_sm / warps).min(u32::try_from(by_threads).unwrap_or(u32::MAX))
}

/// Registers belong to the schedulers: each has a part of the file, and whole warps.
fn by_registers(registers: u32, warps: u32, gpu: &Gpu) -> u32 {
    if registers == 0 {
        return u32::MAX;
    }
    let warp = registers.saturating_mul(32).checked_next_multiple_of(REGISTER_UNIT).unwrap_or(u32::MAX);
    let schedulers = gpu.schedulers.max(1);
    (gpu.registers_per_sm / schedulers / warp).saturating_mul(schedulers) / warps
}

fn by_shared(shared: u32, gpu: &Gpu) -> u32 {
    if shared > gpu.shared_per_block {
        return 0;
    }
    let block = shared.saturating_add(gpu.shared_reserved);
    let block = block.checked_next_multiple_of(gpu.shared_unit.max(1)).unwrap_or(u32::MAX);
    gpu.shared_per_sm.checked_div(block).unwrap_or(u32::MAX)
}
