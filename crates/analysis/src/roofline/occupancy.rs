//! How many warps can be resident on an SM, and what limits them.

use lanescope_ir::{Kernel, LaunchShape};

use super::Gpu;

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
}

/// Resident warps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Occupancy {
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
}

/// Works it out as the occupancy calculator does.
pub fn occupancy(kernel: &Kernel, shape: &LaunchShape, dynamic_shared: u32, gpu: &Gpu) -> Occupancy {
    let threads: u64 = shape.block.iter().map(|&d| u64::from(d)).product();
    let blocks: u64 = shape.grid.iter().fold(1u64, |a, &d| a.saturating_mul(d.into()));
    let warps = u32::try_from(threads.div_ceil(32)).unwrap_or(u32::MAX).max(1);
    let per_warp = (kernel.registers.max(1) * 32).next_multiple_of(256);
    let sub = gpu.registers_per_sm / gpu.schedulers.max(1) / per_warp;
    let by_registers = sub.saturating_mul(gpu.schedulers) / warps;
    let shared = u64::from(kernel.shared_size) + u64::from(dynamic_shared) + u64::from(gpu.shared_reserved);
    let by_shared = u64::from(gpu.shared_per_sm) / shared.next_multiple_of(128).max(1);
    let by_shared = u32::try_from(by_shared).unwrap_or(u32::MAX);
    let by_warps = gpu.warps_per_sm / warps;
    let all = [
        (by_warps, Limit::Warps),
        (gpu.blocks_per_sm, Limit::Blocks),
        (by_registers, Limit::Registers),
        (by_shared, Limit::Shared),
    ];
    let (fits, mut limit) = all.into_iter().min_by_key(|x| x.0).unwrap_or((0, Limit::DoesNotFit));
    if fits == 0 {
        return Occupancy {
            blocks_per_sm: 0,
            warps_per_sm: 0,
            of: gpu.warps_per_sm,
            limit: Limit::DoesNotFit,
            waves: f64::INFINITY,
        };
    }
    let waves = blocks as f64 / (f64::from(fits) * f64::from(gpu.sms.max(1)));
    let per_sm = u32::try_from(blocks.div_ceil(gpu.sms.max(1).into())).unwrap_or(u32::MAX);
    if per_sm < fits {
        limit = Limit::Grid;
    }
    let resident = fits.min(per_sm);
    Occupancy { blocks_per_sm: resident, warps_per_sm: resident * warps, of: gpu.warps_per_sm, limit, waves }
}
