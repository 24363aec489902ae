//! Why a launch stopped.

use std::fmt;

use lanescope_ir::LaneMask;
use lanescope_ir::op::memory::Space;

use crate::convergence::Reason;

/// Where an error happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Index of the instruction in the kernel.
    pub inst: u32,
    /// Its byte offset in its function.
    pub pc: u32,
    /// The function, if it is not the kernel's own code.
    pub function: Option<String>,
    /// Its text.
    pub text: String,
    /// Block.
    pub block: [u32; 3],
    /// Index of the warp in the block.
    pub warp: u32,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pc {:#06x}", self.pc)?;
        if let Some(function) = &self.function {
            write!(f, " of {function}")?;
        }
        let [x, y, z] = self.block;
        write!(f, " `{}` (block {x},{y},{z}, warp {})", self.text, self.warp)
    }
}

/// What an instruction does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// Reads it.
    Load,
    /// Writes it.
    Store,
    /// Reads and writes it.
    Atomic,
}

impl fmt::Display for AccessKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AccessKind::Load => "load",
            AccessKind::Store => "store",
            AccessKind::Atomic => "atomic",
        })
    }
}

/// An access that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadAccess {
    /// The instruction.
    pub site: Site,
    /// What it does.
    pub kind: AccessKind,
    /// Address space, after generic addresses were resolved.
    pub space: Space,
    /// Bytes each lane accesses.
    pub bytes: u32,
    /// All lanes for which it failed.
    pub lanes: LaneMask,
    /// The lowest of them.
    pub lane: u32,
    /// Thread index of that lane in its block.
    pub thread: [u32; 3],
    /// Its address: in its space for shared and local memory, else the 64-bit address.
    pub address: u64,
}

impl fmt::Display for BadAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let space = match self.space {
            Space::Global => "global",
            Space::Shared => "shared",
            Space::Local => "local",
            Space::Generic => "generic",
            Space::Const(_) => "constant",
        };
        let [x, y, z] = self.thread;
        write!(
            f,
            "{space} {} of {} bytes at {:#x} by lane {} (thread {x},{y},{z})",
            self.kind, self.bytes, self.address, self.lane
        )?;
        if self.lanes.count() > 1 {
            write!(f, ", lanes {} in all,", self.lanes)?;
        }
        write!(f, " at {}", self.site)
    }
}

/// The allocation closest to a bad address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// Name of the buffer, or what kind of memory it is.
    pub name: String,
    /// Address of its first byte.
    pub address: u64,
    /// Size in bytes.
    pub size: u64,
    /// Bytes from its end to the bad address; negative: from the bad address to its start.
    pub distance: i128,
}

impl fmt::Display for Nearest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (far, side) = if self.distance < 0 { (-self.distance, "before") } else { (self.distance, "past") };
        let edge = if self.distance < 0 { "the start" } else { "the end" };
        write!(f, "{far} bytes {side} {edge} of {} ({} bytes at {:#x})", self.name, self.size, self.address)
    }
}

/// Lanes of one warp at one place: for messages about launches that do not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// Index of the warp in the block.
    pub warp: u32,
    /// The lanes.
    pub lanes: LaneMask,
    /// Index of the instruction.
    pub inst: u32,
    /// Its byte offset.
    pub pc: u32,
    /// Its text.
    pub text: String,
    /// Its source line, `kernel.cu:9`, if that is known.
    pub line: Option<String>,
    /// What they wait for; `None` if they can run.
    pub waits: Option<Reason>,
    /// Number of the block barrier they wait at.
    pub block_barrier: Option<u8>,
}

impl Position {
    /// Where it is: `kernel.cu:9 (pc 0x02c0)`, or `pc 0x02c0`.
    pub fn place(&self) -> String {
        match &self.line {
            Some(line) => format!("{line} (pc {:#06x})", self.pc),
            None => format!("pc {:#06x}", self.pc),
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "warp {} lanes {} at {} `{}`", self.warp, self.lanes, self.place(), self.text)?;
        match self.waits {
            None => Ok(()),
            Some(Reason::Barrier { bar, missing }) => write!(f, ": barrier B{bar} waits for lanes {missing}"),
            Some(Reason::WarpSync { missing }) => write!(f, ": waits for lanes {missing} of the warp"),
            Some(Reason::Block) => match self.block_barrier {
                Some(id) => write!(f, ": block barrier {id} waits for other threads"),
                None => f.write_str(": waits at a block barrier"),
            },
            Some(Reason::Join) => f.write_str(": waits at a join"),
        }
    }
}

/// A list of positions, one a line, cut after a screenful.
struct Positions<'a>(&'a [Position]);

impl fmt::Display for Positions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 24;
        for p in self.0.iter().take(SHOWN) {
            write!(f, "\n  {p}")?;
        }
        if self.0.len() > SHOWN {
            write!(f, "\n  and {} more", self.0.len() - SHOWN)?;
        }
        Ok(())
    }
}

/// A launch that was refused or stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// The kernel breaks an invariant.
    #[error("the kernel cannot be run: {0}")]
    BadKernel(String),
    /// A grid or block dimension is zero.
    #[error("{what} {shape:?} has no threads")]
    Empty {
        /// `grid` or `block`.
        what: &'static str,
        /// The shape.
        shape: [u32; 3],
    },
    /// A dimension is above the hardware's limit.
    #[error("{what} dimension {axis} is {value}; the limit is {limit}")]
    DimensionTooLarge {
        /// `grid` or `block`.
        what: &'static str,
        /// `x`, `y` or `z`.
        axis: char,
        /// Its size.
        value: u32,
        /// The limit.
        limit: u32,
    },
    /// Too many threads in a block.
    #[error("a block of {threads} threads; the limit is {limit}{}", if *.by_kernel { " for this kernel (launch bounds)" } else { "" })]
    TooManyThreads {
        /// Threads asked for.
        threads: u64,
        /// The limit.
        limit: u32,
        /// Whether the kernel's own launch bounds say so.
        by_kernel: bool,
    },
    /// The kernel requires another block shape.
    #[error("the kernel requires blocks of {required:?} threads, the launch has {given:?}")]
    WrongBlock {
        /// Required.
        required: [u32; 3],
        /// Given.
        given: [u32; 3],
    },
    /// Too much shared memory.
    #[error("{bytes} bytes of shared memory ({fixed} static); the limit is {limit}")]
    SharedTooLarge {
        /// Static and dynamic together.
        bytes: u64,
        /// Static.
        fixed: u32,
        /// The limit.
        limit: u32,
    },
    /// Too much local memory.
    #[error("{bytes} bytes of local memory a thread; the limit is {limit} for blocks of this size")]
    LocalTooLarge {
        /// Bytes of a thread.
        bytes: u32,
        /// The limit.
        limit: u32,
    },
    /// Two allocations overlap, or one overlaps a window.
    #[error("{name} ({size} bytes at {address:#x}) overlaps {other}")]
    Overlap {
        /// The new one.
        name: String,
        /// Its address.
        address: u64,
        /// Its size.
        size: u64,
        /// What is there.
        other: String,
    },
    /// An access outside every buffer.
    #[error("out of bounds: {access}{}", .nearest.as_ref().map_or(String::new(), |n| format!(": {n}")))]
    OutOfBounds {
        /// The access.
        access: Box<BadAccess>,
        /// What is closest.
        nearest: Option<Nearest>,
    },
    /// A store or an atomic to constant memory, through a generic address.
    #[error("write to read-only memory: {access}: it lies in {name} ({size} bytes at {start:#x})")]
    ReadOnly {
        /// The access.
        access: Box<BadAccess>,
        /// What it would change.
        name: String,
        /// Address of that memory's first byte.
        start: u64,
        /// Its size in bytes.
        size: u64,
    },
    /// An address that is not a multiple of the access's size.
    #[error("misaligned: {access}")]
    Misaligned {
        /// The access.
        access: Box<BadAccess>,
    },
    /// The stack grew below its start.
    #[error("stack overflow: {access}: {below} bytes below the stack, which has {size} bytes")]
    StackOverflow {
        /// The access.
        access: Box<BadAccess>,
        /// How far below.
        below: u64,
        /// Local memory of a thread.
        size: u32,
    },
    /// An instruction that is not implemented.
    #[error("not implemented: {name} ({why}) at {site}")]
    Unsupported {
        /// Where.
        site: Box<Site>,
        /// Opcode.
        name: String,
        /// Why, or what kind.
        why: String,
    },
    /// A call of a function outside the module.
    #[error("call of {name}, which is not part of the module, at {site}")]
    ExternalCall {
        /// Where.
        site: Box<Site>,
        /// Symbol.
        name: String,
    },
    /// An indirect branch, call or return to an address that is no instruction.
    #[error("lane {lane} goes to {address:#x}, which is no instruction, at {site}")]
    BadTarget {
        /// Where.
        site: Box<Site>,
        /// Lane.
        lane: u32,
        /// Address.
        address: u64,
    },
    /// Execution ran past the last instruction.
    #[error("execution runs past the end of the code after {site}")]
    PastEnd {
        /// The last instruction.
        site: Box<Site>,
    },
    /// An assertion of the kernel's does not hold.
    #[error("{file}:{line}: {}: assertion `{message}` failed for thread {},{},{} of the block at {site}", .function, .thread[0], .thread[1], .thread[2])]
    Assert {
        /// Where.
        site: Box<Site>,
        /// The lowest thread for which it failed.
        thread: [u32; 3],
        /// What was to hold.
        message: String,
        /// Source file.
        file: String,
        /// Line.
        line: u32,
        /// Function.
        function: String,
    },
    /// A trap instruction.
    #[error("trap by lanes {lanes} at {site}")]
    Trap {
        /// Where.
        site: Box<Site>,
        /// Lanes.
        lanes: LaneMask,
    },
    /// A block barrier used in a way that has no meaning.
    #[error("block barrier: {what} at {site}")]
    BadBarrier {
        /// Where.
        site: Box<Site>,
        /// What is wrong.
        what: String,
    },
    /// Nobody can go on.
    #[error("deadlock in block {block:?}: every thread that has not exited waits{}", Positions(.waiting))]
    Deadlock {
        /// Block.
        block: [u32; 3],
        /// Who waits where.
        waiting: Vec<Position>,
    },
    /// Lanes go round a loop for ever, on a machine that lets the others of their warp run only afterwards.
    #[error(
        "deadlock in block {block:?}: warp {} lanes {} go round `{}` ({}) to `{}` ({}) without any change, and \
         the other lanes of the warp wait for them on the stack{}",
        .first.warp, .first.lanes, .first.text, .first.place(), .last.text, .last.place(), Positions(.waiting)
    )]
    SpinDeadlock {
        /// Block.
        block: [u32; 3],
        /// The lanes that spin, at the first instruction of their loop.
        first: Box<Position>,
        /// The same lanes at the branch back.
        last: Box<Position>,
        /// Who waits where, in all warps of the block.
        waiting: Vec<Position>,
    },
    /// A convergence model that cannot run this kernel.
    #[error("model {model} cannot run {kernel}: {why}")]
    WrongModel {
        /// The model.
        model: crate::launch::Model,
        /// The kernel.
        kernel: String,
        /// Why, and what can.
        why: String,
    },
    /// A warp size that the convergence model does not have.
    #[error("a warp size of {size} for a convergence model of {model} lanes")]
    WarpSize {
        /// Asked for.
        size: u32,
        /// What the model has.
        model: u32,
    },
    /// A warp size with which a kernel cannot run.
    #[error("{kernel} cannot run with warps of {size} lanes: {why}")]
    WrongWarpSize {
        /// Asked for.
        size: u32,
        /// The kernel.
        kernel: String,
        /// The instruction that needs another, if it is one.
        inst: Option<u32>,
        /// Why.
        why: String,
    },
    /// Something was asked for that there is not to record.
    #[error("instruction {inst} cannot be recorded: {why}")]
    CannotRecord {
        /// Index of the instruction.
        inst: u32,
        /// Why.
        why: &'static str,
    },
    /// The instruction limit was reached.
    #[error("stopped after {limit} warp instructions; block {block:?} was at{}", Positions(.at))]
    MaxInst {
        /// The limit.
        limit: u64,
        /// A block that had not ended.
        block: [u32; 3],
        /// Where its warps were.
        at: Vec<Position>,
    },
    /// An unknown value is needed to go on.
    #[error("an unknown value (from an instruction that is not implemented) reaches {what} of lanes {lanes} at {site}")]
    UnknownValue {
        /// Where.
        site: Box<Site>,
        /// `a branch condition`, `an address` ...
        what: &'static str,
        /// Lanes.
        lanes: LaneMask,
    },
}

impl SimError {
    /// Index of the instruction it is about, if it is about one.
    pub fn inst(&self) -> Option<u32> {
        match self {
            SimError::OutOfBounds { access, .. }
            | SimError::Misaligned { access }
            | SimError::ReadOnly { access, .. }
            | SimError::StackOverflow { access, .. } => Some(access.site.inst),
            SimError::Unsupported { site, .. }
            | SimError::ExternalCall { site, .. }
            | SimError::BadTarget { site, .. }
            | SimError::PastEnd { site }
            | SimError::Assert { site, .. }
            | SimError::Trap { site, .. }
            | SimError::BadBarrier { site, .. }
            | SimError::UnknownValue { site, .. } => Some(site.inst),
            SimError::SpinDeadlock { last, .. } => Some(last.inst),
            SimError::WrongWarpSize { inst, .. } => *inst,
            _ => None,
        }
    }
}
