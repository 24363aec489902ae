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
    /// Where the figures come from.
    pub source: String,
}
