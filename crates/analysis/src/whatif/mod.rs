//! What a launch would cost with its threads grouped into other warps, without running it again.
//!
//! A warp that is together in a block issues it as often as its busiest lane needs it. So with `n(t, b)`, how often
//! thread t executed block b, and `len(b)` its instructions, an assignment of threads to warps costs
//!
//! `sum over warps and blocks of len(b) * max over lanes n(t, b)`.
//!
//! That is exact where lanes part once. Three things make it more, and each has a second estimate ([`estimate`]):
//! lanes that came by different ways and have not rejoined issue a block apart ([`history`]); a nested loop rejoins after
//! every turn of the loop around it, so its warp pays for the busiest lane of each turn; an arm inside a loop is issued in
//! every turn in which any lane takes it, and if something is known that decides when ([`Known::steady`]), threads that it
//! tells apart take it at different times. Where between the two estimates a block lies, and by what factor it misses them,
//! is measured on the launch as it ran and kept for the other groupings. The unadjusted model of the launch as it ran
//! against what was counted is the model's stated error.

mod estimate;
mod grouping;
mod history;

use lanescope_ir::{Kernel, Profile, ThreadProfile};

use crate::regions::Structure;

use estimate::{Block, Estimates};
pub use grouping::{Grouping, stable_order};

/// Why a launch cannot be priced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WhatIfError {
    /// No thread was recorded.
    #[error("no thread of the launch was recorded")]
    NoThreads,
    /// The records are not about this kernel.
    #[error("the records have {found} basic blocks, the kernel has {expected}")]
    OtherKernel {
        /// In the records.
        found: usize,
        /// In the kernel.
        expected: usize,
    },
}

/// The price of one grouping.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Price {
    /// Warp instructions, adjusted by what the launch as it ran issued.
    pub warp_instructions: u64,
    /// Warp instructions by the formula alone.
    pub unadjusted: u64,
    /// Issues of each block, adjusted.
    pub issues: Vec<f64>,
}

/// What is known of threads beyond their counts.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Blocks whose executions are replaced by what each thread would need alone: `(block, by thread)`, for loops whose
    /// lanes all turn as often as the busiest.
    pub own: Vec<(u32, Vec<u32>)>,
    /// Blocks in loops that threads of the same class execute at the same times, and others at times of their own: blocks,
    /// and a class by thread.
    pub steady: Vec<(Vec<u32>, Vec<u32>)>,
}

/// Prices groupings of one launch.
#[derive(Debug)]
pub struct WhatIf {
    blocks: Vec<Block>,
    /// Blocks in an order in which each comes after those its estimate rests on.
    order: Vec<u32>,
    executions: Vec<Vec<u32>>,
    classes: history::Classes,
    /// For each block, its steady classes as an index into `steady`.
    steady_of: Vec<Option<u32>>,
    steady: Vec<Vec<u32>>,
    /// Recorded threads as a share of all.
    scale: f64,
    identity: Price,
    measured: u64,
    width: u32,
    block_threads: u32,
    threads: usize,
}

impl WhatIf {
    /// Prepares pricing.
    ///
    /// # Errors
    /// Records that are empty, or of another kernel.
    pub fn new(
        kernel: &Kernel,
        s: &Structure,
        profile: &Profile,
        threads: &ThreadProfile,
        known: Known,
    ) -> Result<WhatIf, WhatIfError> {
        let (found, expected) = (threads.executions.len(), s.cfg.blocks.len());
        if found != expected || threads.blocks.iter().zip(&s.cfg.blocks).any(|(a, b)| *a != b.first) {
            return Err(WhatIfError::OtherKernel { found, expected });
        }
        if threads.threads == 0 || threads.block_threads == 0 {
            return Err(WhatIfError::NoThreads);
        }
        let mut executions = threads.executions.clone();
        for (block, need) in known.own {
            if let Some(row) = executions.get_mut(block as usize)
                && need.len() == row.len()
            {
                *row = need;
            }
        }
        let classes = history::Classes::new(s, profile, &executions, threads.threads);
        let scale = threads.threads as f64 / (threads.of.max(1)) as f64;
        let blocks = estimate::blocks(kernel, s, profile, &executions, scale);
        let order = estimate::order(s, &blocks);
        let mut model = WhatIf {
            blocks,
            order,
            executions,
            classes,
            steady_of: vec![None; s.cfg.blocks.len()],
            steady: Vec::new(),
            scale,
            identity: Price::default(),
            measured: profile.totals().inst_executed,
            width: profile.shape.warp_size.max(1),
            block_threads: threads.block_threads,
            threads: threads.threads,
        };
        for (blocks, classes) in known.steady.into_iter().filter(|k| k.1.len() == threads.threads) {
            let id = model.steady.len() as u32;
            model.steady.push(classes);
            for b in blocks {
                if let Some(of @ None) = model.steady_of.get_mut(b as usize) {
                    *of = Some(id);
                }
            }
        }
        let identity = model.grouping(&grouping::identity(threads.threads));
        let mut calibrated = std::mem::take(&mut model.blocks);
        let estimates = model.estimates(&identity);
        model.identity = estimates.calibrate(&mut calibrated, &model.order, model.scale);
        model.blocks = calibrated;
        Ok(model)
    }

    /// The launch as it ran.
    pub fn identity(&self) -> &Price {
        &self.identity
    }

    /// Warp instructions that were counted.
    pub fn measured(&self) -> u64 {
        self.measured
    }

    /// Recorded threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Lanes of a warp.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Executions of a block, by thread.
    pub fn executions(&self, block: u32) -> &[u32] {
        self.executions.get(block as usize).map_or(&[], Vec::as_slice)
    }

    /// Instructions of a block that count.
    pub fn length(&self, block: u32) -> f64 {
        self.blocks.get(block as usize).map_or(0.0, |b| b.length)
    }

    /// The warps of the launch if position p is played by thread `order[p]`.
    pub fn grouping(&self, order: &[u32]) -> Grouping {
        Grouping::by_position(order, self.block_threads, self.width)
    }

    /// What a grouping costs. Threads may be missing; none may be in it twice.
    pub fn price(&self, grouping: &Grouping) -> Price {
        self.estimates(grouping).price(&self.blocks, &self.order, self.scale)
    }

    fn estimates<'a>(&'a self, grouping: &'a Grouping) -> Estimates<'a> {
        let steady = |b: u32| {
            let id = self.steady_of.get(b as usize).copied().flatten()?;
            self.steady.get(id as usize).map(Vec::as_slice)
        };
        let steady = (0..self.steady_of.len() as u32).map(steady).collect();
        Estimates::new(&self.executions, &self.classes, steady, grouping)
    }

    /// Instructions that each thread executed: its own work.
    pub fn work(&self) -> Vec<f64> {
        let mut sum = vec![0.0; self.threads];
        for (row, block) in self.executions.iter().zip(&self.blocks) {
            for (s, &n) in sum.iter_mut().zip(row) {
                *s += f64::from(n) * block.length;
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests;
