//! Exact counters, named as Nsight Compute names them.

use crate::threads::SelectCounts;

/// Counters of one instruction over a whole launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneCounts {
    /// Warp instructions issued: one for each group of lanes that issues it.
    pub inst_executed: u64,
    /// Active lanes, summed over issues.
    pub thread_inst_executed: u64,
    /// Active lanes whose guard holds, summed over issues.
    pub thread_inst_executed_pred_on: u64,
    /// Lanes of the issuing warps that never existed because the block's last warp is partial, summed over issues.
    pub lanes_missing: u64,
    /// Lanes that had exited before, summed over issues.
    pub lanes_exited: u64,
    /// Accesses of global memory: 32-byte sectors touched, summed over issues; 0 for others. Nsight's
    /// `memory_l2_theoretical_sectors_global`.
    pub sectors: u64,
    /// Sectors that the same lanes would touch with neighbouring addresses, at each issue at most those touched:
    /// min(touched, ceil(lanes whose guard holds * bytes / 32)). Nsight's `memory_l2_theoretical_sectors_global_ideal`.
    pub sectors_ideal: u64,
    /// Of `sectors`, those that a modelled first-level cache does not have, and all of stores and atomics: an estimate.
    /// 0 unless a cache was modelled.
    pub sectors_missed: u64,
    /// Shared memory: passes (Nsight's wavefronts) that its 32 banks of 4 bytes need, summed over issues; 0 for others. After
    /// published rules, in part assumptions: see `docs/report.md`.
    pub shared_wavefronts: u64,
    /// Passes that the same lanes and width need without a bank conflict.
    pub shared_wavefronts_ideal: u64,
}

/// What kind of split a counter belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BranchKind {
    /// A conditional branch.
    Branch,
    /// A predicated EXIT.
    Exit,
    /// BRX, or CALL/RET through registers.
    Indirect,
}

impl BranchKind {
    /// `branch`, `exit`, `indirect`.
    pub const fn name(self) -> &'static str {
        match self {
            BranchKind::Branch => "branch",
            BranchKind::Exit => "exit",
            BranchKind::Indirect => "indirect",
        }
    }
}

/// How lanes went at one branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchCounts {
    /// Index of the instruction in the kernel.
    pub inst: u32,
    /// Kind.
    pub kind: BranchKind,
    /// Groups that issued it.
    pub executed: u64,
    /// Of these, groups that split.
    pub divergent: u64,
    /// Lanes that took it.
    pub lanes_taken: u64,
    /// Lanes that fell through.
    pub lanes_not_taken: u64,
    /// Of the groups that split: `(lanes that took it, groups)`, ascending. Of an indirect branch `(lanes, groups into
    /// which lanes parted)`. Empty if that was not counted.
    pub lanes_histogram: Vec<(u32, u64)>,
}

/// Trip counts of a loop, per thread: `(trips, threads)` sorted by trips.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TripHistogram {
    /// Index of the loop's header instruction.
    pub header: u32,
    /// `(trips, entries of a thread with that many trips)`.
    pub trips: Vec<(u64, u64)>,
}

/// Shape of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchShape {
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Lanes of a warp.
    pub warp_size: u32,
}

/// Sums over all instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Warp instructions.
    pub inst_executed: u64,
    /// Lane instructions.
    pub thread_inst_executed: u64,
    /// Lane instructions whose guard held.
    pub thread_inst_executed_pred_on: u64,
    /// Conditional branches executed (EXITs not counted).
    pub branches: u64,
    /// Of these, divergent.
    pub divergent_branches: u64,
    /// Predicated EXITs at which some but not all lanes of a group left.
    pub split_exits: u64,
}

impl Totals {
    /// `thread_inst_executed / inst_executed`, 0 if nothing ran.
    pub fn threads_per_inst(&self) -> f64 {
        if self.inst_executed == 0 { 0.0 } else { self.thread_inst_executed as f64 / self.inst_executed as f64 }
    }
    /// `threads_per_inst / warp_size`.
    pub fn lane_efficiency(&self, warp_size: u32) -> f64 {
        self.threads_per_inst() / f64::from(warp_size.max(1))
    }
}

/// Everything one launch counted. The same type whether a simulator, a profile or a GPU counted it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// Shape of the launch.
    pub shape: LaunchShape,
    /// One entry for each instruction of the kernel.
    pub counts: Vec<LaneCounts>,
    /// Branches, predicated exits and indirect branches that were executed or could split.
    pub branches: Vec<BranchCounts>,
    /// Loops.
    pub loops: Vec<TripHistogram>,
    /// Selects that were asked for, by instruction.
    pub selects: Vec<SelectCounts>,
    /// What sums do not tell, where the counters come from a run.
    pub reach: Option<Reach>,
}

/// The longest warp and block of a launch, what each block did, and how much memory was touched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// Warp instructions of the warp that issued most.
    pub longest_warp: u64,
    /// Warp instructions of the block that issued most.
    pub longest_block: u64,
    /// Different 32-byte sectors of global memory that were touched.
    pub touched_sectors: u64,
    /// Bytes of the first-level cache that was modelled for each block, if one was: its share, and all of an SM's.
    pub l1_bytes: Option<[u32; 2]>,
    /// If one was: of the large one, how many sectors were missed by how many loads, over all blocks, as `(loads, sectors)`, ascending. It tells
    /// how much blocks have in common.
    pub misses: Vec<(u32, u64)>,
    /// What each block did, in linear order. Empty if there were more than [`Reach::BLOCKS`].
    pub blocks: Vec<BlockWork>,
}

impl Reach {
    /// Blocks of a launch that are recorded one by one at most.
    pub const BLOCKS: u64 = 1 << 20;
}

/// What one block did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockWork {
    /// Warp instructions.
    pub inst_executed: u64,
    /// 32-byte sectors of global memory.
    pub sectors: u64,
    /// Of these, sectors that its share of the first-level cache did not have.
    pub sectors_missed: u64,
    /// Warp instructions of its longest warp: of the one that takes longest if a wait is worth [`BlockWork::WAIT`] instructions.
    pub warp_instructions: u64,
    /// Loads and atomics of that warp that had to wait for a sector that was missed.
    pub warp_waits: u64,
    /// The same if the block had all of an SM's first-level cache.
    pub warp_waits_best: u64,
}

impl BlockWork {
    /// Instructions that a wait for memory is worth when warps of a block are compared.
    pub const WAIT: u64 = 100;
}

impl Profile {
    /// Sums.
    pub fn totals(&self) -> Totals {
        let mut t = Totals::default();
        for c in &self.counts {
            t.inst_executed += c.inst_executed;
            t.thread_inst_executed += c.thread_inst_executed;
            t.thread_inst_executed_pred_on += c.thread_inst_executed_pred_on;
        }
        for b in &self.branches {
            match b.kind {
                BranchKind::Exit => t.split_exits += b.divergent,
                BranchKind::Branch | BranchKind::Indirect => {
                    t.branches += b.executed;
                    t.divergent_branches += b.divergent;
                }
            }
        }
        t
    }
}
