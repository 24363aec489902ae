//! What each thread of a launch did: from this a launch can be priced under another assignment of threads to warps.
//!
//! Threads are numbered by position: blocks in linear order (x fastest), in each block its threads in linear order. The
//! thread at position `p` is in block `p / block_threads`, in its warp `p % block_threads / warp_size`.

/// Records of the threads of a launch. Every list that is said to be "by thread" has [`threads`](Self::threads) entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadProfile {
    /// Threads recorded: those of the first blocks, all of the launch unless it was too large.
    pub threads: usize,
    /// Threads of the launch.
    pub of: u64,
    /// Threads of one block.
    pub block_threads: u32,
    /// First instruction of each basic block, ascending: the blocks of `analysis::Cfg`.
    pub blocks: Vec<u32>,
    /// For each of `blocks`, by thread: how often the thread issued its first instruction. Stops at `u32::MAX`. Of PTX that
    /// first instruction may be a further step of the one before it (`Kernel::continued`), which profiles do not count.
    pub executions: Vec<Vec<u32>>,
    /// Instructions that access global memory and were executed, ascending.
    pub accesses: Vec<AccessProfile>,
    /// Values that were asked for, in the order asked.
    pub values: Vec<ValueProfile>,
}

/// Accesses of one instruction to global memory: those with generic addresses that lie there too. The accesses of an
/// asynchronous copy are its reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessProfile {
    /// Index of the instruction.
    pub inst: u32,
    /// Bytes that one lane accesses.
    pub bytes: u32,
    /// Whether it reads.
    pub reads: bool,
    /// Whether it writes.
    pub writes: bool,
    /// By thread.
    pub threads: Vec<ThreadAccess>,
}

/// Addresses that one thread gave one instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadAccess {
    /// Executions with the guard true. With 0 the rest means nothing. Stops at `u32::MAX`.
    pub count: u32,
    /// Whether every address is the one before plus `stride`.
    pub regular: bool,
    /// First address.
    pub first: u64,
    /// Lowest address.
    pub low: u64,
    /// Highest address (of an access's first byte).
    pub high: u64,
    /// Second address minus the first; 0 with fewer than two accesses.
    pub stride: i64,
}

/// Values that one instruction gave each thread in its first destination register, or in the pair that starts there if its
/// result is wider than 32 bits: of a 128-bit load the low 64 bits. Values that are not known do not count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueProfile {
    /// Index of the instruction.
    pub inst: u32,
    /// By thread.
    pub threads: Vec<ThreadValue>,
}

/// Values that one thread got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadValue {
    /// Executions with the guard true. Stops at `u32::MAX`.
    pub count: u32,
    /// Whether later executions gave another value than the first.
    pub changed: bool,
    /// The first value.
    pub first: u64,
    /// The last value.
    pub last: u64,
}

/// How lanes went at one select (`SEL`, `FSEL`, `selp`): counted only where it was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SelectCounts {
    /// Index of the instruction.
    pub inst: u32,
    /// Issues in which the guard held in any lane.
    pub executed: u64,
    /// Lanes whose guard held and for which the select's predicate, negated or not as the instruction has it, held.
    pub lanes_true: u64,
    /// Lanes whose guard held and for which it did not.
    pub lanes_false: u64,
}
