//! What a launch is given and what it gives back.

use lanescope_ir::{Kernel, LaneMask, Profile, ThreadProfile};

use crate::error::SimError;

/// High word of the generic addresses of shared memory: `SR_SWINHI`, and the high word of the window's base.
pub const SHARED_WINDOW_HI: u32 = 0x7001;
/// High word of the generic addresses of local memory.
pub const LOCAL_WINDOW_HI: u32 = 0x7002;
/// Generic address of byte 0 of the block's shared memory. The window is 4 GiB long.
pub const SHARED_WINDOW: u64 = (SHARED_WINDOW_HI as u64) << 32;
/// Generic address of byte 0 of the thread's local memory. The window is 4 GiB long.
pub const LOCAL_WINDOW: u64 = (LOCAL_WINDOW_HI as u64) << 32;
/// Streaming multiprocessors that special registers tell of.
pub const SM_COUNT: u32 = 132;

/// One kernel launch.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes; it lies after the kernel's static shared memory.
    pub dynamic_shared: u32,
    /// Constant bank 0: launch dimensions, stack pointer, windows and parameters where the architecture puts them.
    /// Reads past its end give zero.
    pub bank0: Vec<u8>,
    /// How to run.
    pub options: Options,
}

/// What happens when an instruction that is not implemented is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unknown {
    /// The launch stops with an error that names it.
    #[default]
    Stop,
    /// Its results become unknown; the launch stops if an unknown value reaches a branch or an address.
    Poison,
}

/// The warp whose steps are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRequest {
    /// Linear index of the block: x + y * grid.x + z * grid.x * grid.y.
    pub block: u64,
    /// Index of the warp in the block.
    pub warp: u32,
    /// Steps kept at most.
    pub max_steps: usize,
}

/// What to record about each thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadRequest {
    /// Instructions whose result is wanted. The launch is refused if one writes no register.
    pub values: Vec<u32>,
    /// Bytes that the records may take; 0 for the default of 1 GiB. Of a larger launch only the first blocks are recorded.
    /// Blocks that run take as much again as they have threads.
    pub max_bytes: u64,
}

/// How the lanes of a warp split and rejoin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Model {
    /// Convergence barriers, as machine code of Volta and later names them.
    #[default]
    Barrier,
    /// Joins at immediate post-dominators, with progress for every lane: PTX.
    Ipdom,
    /// Joins at immediate post-dominators, strictly as a stack: PTX on machines before Volta.
    Stack,
}

impl Model {
    /// The model that runs a kernel as its own machine would.
    pub fn of(kernel: &Kernel) -> Model {
        if kernel.arch == "ptx" { Model::Ipdom } else { Model::Barrier }
    }
}

impl std::fmt::Display for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Model::Barrier => "barrier",
            Model::Ipdom => "ipdom",
            Model::Stack => "stack",
        })
    }
}

/// How to run. Results do not depend on `threads`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Threads that run blocks; 0 means all processors.
    pub threads: usize,
    /// The launch stops with an error after so many warp instructions; 0 means never.
    pub max_inst: u64,
    /// What to do with instructions that are not implemented.
    pub unknown: Unknown,
    /// Warps to trace.
    pub traces: Vec<TraceRequest>,
    /// Count the trips of loops.
    pub loops: bool,
    /// Record what each thread did.
    pub threads_profile: Option<ThreadRequest>,
    /// Selects whose lanes are counted by outcome, as indices of instructions.
    pub selects: Vec<u32>,
    /// Groups parked at the same place merge when a memory instruction is issued. So Nsight's source counters come out, which
    /// instrument memory instructions; without instrumentation the hardware does not do it.
    pub merge_at_memory: bool,
    /// Bytes of a first-level cache to model for each block, so that sectors missed are counted: its own share of an SM's, and
    /// all of it. `None`: none.
    pub l1: Option<[u32; 2]>,
    /// How lanes split and rejoin. Machine code needs [`Model::Barrier`], PTX one of the others.
    pub model: Model,
    /// Check synchronisation and shared memory while running; what is found goes here. Warps of 32 lanes only.
    pub check: Option<std::sync::Arc<crate::CheckLog>>,
    /// Lanes of a warp: 32, or 64 (the wavefronts of other machines) with PTX that does not depend on it.
    pub warp_size: u32,
    /// Which thread each position plays.
    pub order: Option<Order>,
}

/// Which thread each position plays: the lane at position p (blocks in linear order, in each its threads) reads the thread
/// and block index of position `threads[p]`, as if the kernel took them from an array. Lane and warp numbers, shared memory
/// and barriers stay those of the place. Positions past its end play themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// By position.
    pub threads: std::sync::Arc<Vec<u32>>,
    /// The block index stays that of the place, and the thread's x makes up for it: with one dimension, block index times
    /// block size plus thread index is what it should be. For code that reads the block index once for a whole warp.
    pub by_thread_index: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            threads: 0,
            max_inst: 10_000_000_000,
            unknown: Unknown::Stop,
            traces: Vec::new(),
            loops: true,
            threads_profile: None,
            selects: Vec::new(),
            merge_at_memory: true,
            l1: None,
            model: Model::Barrier,
            check: None,
            warp_size: 32,
            order: None,
        }
    }
}

/// Called now and then with the number of blocks done and of all blocks. May be called from several threads.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// What a launch gave. Buffers are in the memory it was given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Counters.
    pub profile: Profile,
    /// Things a user should know, each once.
    pub warnings: Vec<String>,
    /// Steps of the traced warps, by block and warp.
    pub traces: Vec<Trace>,
    /// Warps that stand out.
    pub extremes: Extremes,
    /// What each thread did, if it was asked for.
    pub threads: Option<ThreadProfile>,
    /// What the kernel's `printf` printed: block after block, in each in the order of execution, lanes in order. The first
    /// MiB of it, as much as the buffer of a device holds.
    pub printed: Vec<PrintedText>,
    /// Calls of `printf` whose text did not fit.
    pub printed_lost: u64,
    /// Bytes of buffers whose value is unknown because it comes from an instruction that is not implemented.
    pub unknown: Vec<UnknownBytes>,
}

/// A launch that did not end well, and what it had shown until then.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Why.
    pub error: SimError,
    /// Steps of the traced warps that ran, by block and warp.
    pub traces: Vec<Trace>,
    /// What `printf` printed in the blocks up to the one that failed.
    pub printed: Vec<PrintedText>,
    /// Calls of `printf` whose text did not fit.
    pub printed_lost: u64,
}

impl From<SimError> for Box<Failure> {
    fn from(error: SimError) -> Self {
        Box::new(Failure { error, traces: Vec::new(), printed: Vec::new(), printed_lost: 0 })
    }
}

/// What one call of `printf` printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrintedText {
    /// The block.
    pub block: [u32; 3],
    /// The thread in it.
    pub thread: [u32; 3],
    /// The text. Bytes that are no UTF-8 are replaced.
    pub text: String,
}

/// Unknown bytes of one buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownBytes {
    /// Name of the buffer.
    pub buffer: String,
    /// Its address.
    pub address: u64,
    /// Ranges of byte offsets, start and end, ascending.
    pub ranges: Vec<(u64, u64)>,
}

/// What one warp issued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WarpSum {
    /// Linear index of the block.
    pub block: u64,
    /// Index of the warp in the block.
    pub warp: u32,
    /// Warp instructions.
    pub inst_executed: u64,
    /// Lane slots that no lane used although the warp has such a lane: lanes that never existed are not counted.
    pub lost: u64,
}

/// Warps that stand out; of equals the first by block and warp. `None` if nothing ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extremes {
    /// Issued most.
    pub longest: Option<WarpSum>,
    /// Lost most lane slots.
    pub most_lost: Option<WarpSum>,
}

/// Steps of one warp.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Linear index of the block.
    pub block: u64,
    /// Index of the warp in the block.
    pub warp: u32,
    /// Lanes of the warp that exist.
    pub lanes: LaneMask,
    /// Steps in order of issue.
    pub steps: Vec<TraceStep>,
    /// Whether steps were left out at the end because there were too many.
    pub cut: bool,
}

/// One issue of one instruction by one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceStep {
    /// Number of the issue within the warp, from 0.
    pub step: u64,
    /// Index of the instruction.
    pub inst: u32,
    /// Lanes of the group.
    pub active: LaneMask,
    /// Of these, lanes whose guard holds.
    pub executing: LaneMask,
    /// Groups that could run but do not, and lanes that wait, before the step: position and lanes.
    pub others: Vec<(u32, LaneMask)>,
    /// What the step did to the group.
    pub event: TraceEvent,
}

/// What a step did to the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceEvent {
    /// Nothing; it goes on.
    Step,
    /// Lanes went apart.
    Split {
        /// Lanes that took the branch or left.
        taken: LaneMask,
    },
    /// All lanes went to another place.
    Jump,
    /// Lanes left.
    Exit {
        /// Which.
        lanes: LaneMask,
    },
    /// The group, or part of it, waits.
    Wait,
    /// Lanes that had been apart go on together.
    Join {
        /// The group that goes on.
        group: LaneMask,
    },
}
