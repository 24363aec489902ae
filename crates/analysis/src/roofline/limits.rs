//! What is known about how machines behave, apart from the figures of one GPU: measured, published or assumed; never fitted
//! to a kernel. Where nothing better is known the figures of an H200 stand for all.

/// Latencies in cycles, of a warp that waits for a result.
///
/// Arithmetic, shared memory and the first-level cache: "Dissecting the NVIDIA Volta GPU architecture via
/// microbenchmarking" (arXiv 1804.06826) and "Benchmarking and dissecting the NVIDIA Hopper GPU architecture via
/// microbenchmarking" (arXiv 2402.13499), which gives 29 cycles for shared memory, 41 for L1, 263 for L2 and 479 for device
/// memory on an H100, and much the same on an A100 and an RTX 4090. The rest are round figures between their machines.
pub mod latency {
    /// Integer and f32.
    pub const ALU: f64 = 4.5;
    /// f64, where there are many units.
    pub const FP64: f64 = 8.0;
    /// Transcendental functions and conversions.
    pub const XU: f64 = 20.0;
    /// Tensor cores.
    pub const TENSOR: f64 = 33.0;
    /// Shared memory.
    pub const SHARED: f64 = 29.0;
    /// A constant bank, found in its cache.
    pub const CONSTANT: f64 = 25.0;
    /// Special registers.
    pub const SPECIAL: f64 = 20.0;
    /// Exchange between lanes.
    pub const SHUFFLE: f64 = 24.0;
    /// First-level cache.
    pub const L1: f64 = 40.0;
    /// From a branch, a barrier of convergence or a call to the next instruction.
    pub const BRANCH: f64 = 6.0;
}

/// Latency of the L2 cache in cycles: of its nearer half at rest, and of a busy machine. An H100 has 263 on average at rest.
pub const L2_CYCLES: [f64; 2] = [230.0, 500.0];
/// The same of device memory: 479 at rest, and two or three times that under load.
pub const DRAM_CYCLES: [f64; 2] = [480.0, 1200.0];
/// The part of a scheduler's issue slots that busy kernels use. Measured on an H200: 0.87 to 0.96 of 10 compute-bound
/// kernels.
pub const ISSUE: [f64; 2] = [0.97, 0.85];
/// The part of the device memory's peak that streams get. Measured on an H200 (peak 4,800 GB/s): 0.92 reading, 0.82 copying.
pub const DRAM: [f64; 2] = [0.93, 0.75];
/// The part of it that single sectors get: a sector is half of what memory moves at once. Measured on an H200: 37 to 50
/// sectors a nanosecond of 150.
pub const DRAM_SCATTERED: [f64; 2] = [0.93, 0.25];
/// The part of the L2's peak that single sectors get. Measured on an H200: 130 to 145 sectors a nanosecond of 240.
pub const L2_SCATTERED: [f64; 2] = [1.0, 0.5];
/// Bytes that L2 gives each SM in a cycle where no source tells: best and worst of V100 (18), A100 (34), H200 (29).
pub const L2_BYTES_PER_SM: [f64; 2] = [36.0, 16.0];
/// Cycles the first-level cache is busy with a sector, four of which are a line: neighbours, and scattered ones (a tag
/// each).
pub const L1_SECTOR: [f64; 2] = [0.25, 1.0];
/// Cycles that one request of a warp keeps the unit for global and local addresses busy, however few its sectors. On an H200
/// launches that wait for it (`lg_throttle`) make 1.5 a request.
pub const L1_REQUEST: [f64; 2] = [1.0, 2.0];
/// What a launch costs besides, in seconds: from the end of one to the start of the next. 2 to 4 microseconds on bare
/// machines; up to 8 in a virtual machine.
pub const LAUNCH_S: [f64; 2] = [1.5e-6, 8e-6];
/// The pace of a warp alone against what its dependences say: bubbles in fetching, banks of registers, replays.
pub const PACE: [f64; 2] = [0.9, 1.4];
/// Cycles from the end of a block to the first instruction of the next in its place.
pub const BLOCK_START: [f64; 2] = [100.0, 500.0];
/// Two launches of one kernel use the machine differently well, whatever they share: by so much a speed-up may be off.
/// Measured on an H200: pairs of compute-bound launches issue 0.87 and 0.96, 0.94 and 0.89 of what they could.
pub const BETWEEN: f64 = 1.1;
