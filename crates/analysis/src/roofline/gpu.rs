//! What a GPU gives.

/// Figures of one GPU. Rates are peaks.
#[derive(Clone, Debug, PartialEq)]
pub struct Gpu {
    /// As people call it: `H200`.
    pub name: String,
    /// Architecture: `sm_90`.
    pub arch: String,
    /// Streaming multiprocessors in use.
    pub sms: u32,
    /// Warp schedulers of one SM; each issues one warp instruction a cycle.
    pub schedulers: u32,
    /// Clock in MHz (boost).
    pub clock_mhz: f64,
    /// Bandwidth of the device memory, in 1e9 bytes a second.
    pub dram_gbs: f64,
    /// Size of the L2 cache in bytes.
    pub l2_bytes: u64,
    /// Bandwidth of the L2 cache in 1e9 bytes a second, if a source gives one.
    pub l2_gbs: Option<f64>,
    /// First-level cache and shared memory of an SM together, in bytes.
    pub l1_bytes: u32,
    /// Warps that can be resident on an SM.
    pub warps_per_sm: u32,
    /// Blocks that can be resident on an SM.
    pub blocks_per_sm: u32,
    /// Threads that can be resident on an SM.
    pub threads_per_sm: u32,
    /// 32-bit registers of an SM.
    pub registers_per_sm: u32,
    /// Shared memory of an SM in bytes, as blocks can get it at most.
    pub shared_per_sm: u32,
    /// Shared memory that one block can get at most, in bytes.
    pub shared_per_block: u32,
    /// Shared memory that the system keeps of each block, in bytes.
    pub shared_reserved: u32,
    /// Shared memory is given out in pieces of so many bytes.
    pub shared_unit: u32,
    /// Lanes that each kind of execution unit of an SM serves in a cycle.
    pub lanes: Lanes,
    /// Where the figures come from.
    pub source: String,
}

/// Lanes served a cycle by the execution units of one SM.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lanes {
    /// f32 add, multiply, fused multiply-add.
    pub fma: f64,
    /// Integer multiply-add (IMAD), which shares units with the above.
    pub imad: f64,
    /// Integer add, logic, shift, compare, select.
    pub alu: f64,
    /// f64.
    pub fp64: f64,
    /// Reciprocal, root, sine, logarithm; most conversions; population count.
    pub xu: f64,
    /// Loads, stores, shuffles.
    pub lsu: f64,
}

impl Gpu {
    /// `an H200`, `a T4`, `an RTX 4090`.
    pub fn with_article(&self) -> String {
        let vowel = self.name.starts_with(['A', 'E', 'F', 'H', 'I', 'L', 'M', 'N', 'O', 'R', 'S', 'X']);
        format!("{} {}", if vowel { "an" } else { "a" }, self.name)
    }

    /// Cycles of the clock in a second.
    pub fn hz(&self) -> f64 {
        self.clock_mhz * 1e6
    }

    /// First-level cache that is left for each of `blocks` resident blocks with so much shared memory each, in bytes.
    pub fn l1_of_block(&self, blocks: u32, shared: u32) -> u32 {
        let blocks = blocks.max(1);
        let shared = u64::from(shared.saturating_add(self.shared_reserved)) * u64::from(blocks);
        let left = u64::from(self.l1_bytes).saturating_sub(shared) / u64::from(blocks);
        u32::try_from(left).unwrap_or(u32::MAX)
    }
}
