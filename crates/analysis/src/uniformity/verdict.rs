//! What the analysis answers: levels, verdicts and witnesses.

use lanescope_ir::{LaneMask, Pred, Slot};

/// How far a value is known to be the same. Ordered: each level promises less than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The same in all threads of the launch.
    Grid,
    /// The same in all threads of a block.
    Block,
    /// The same in all lanes of a warp that execute the instruction together.
    Warp,
    /// Differs from lane to lane in a known way: the same for all lanes of the warp but for a known number for each.
    Lanes,
    /// Nothing is known.
    Divergent,
}

impl Level {
    /// As a report says it.
    pub fn name(self) -> &'static str {
        match self {
            Level::Grid => "uniform in the grid",
            Level::Block => "uniform in the block",
            Level::Warp => "uniform in the warp",
            Level::Lanes => "known by lane",
            Level::Divergent => "divergent",
        }
    }
}

/// What kind of decision a verdict is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A conditional branch.
    Branch,
    /// A predicated EXIT.
    Exit,
    /// A branch, call or return through a register, or a predicated call.
    Indirect,
    /// A predicated BSYNC, WARPSYNC or trap: some lanes do it, others pass.
    Predicated,
}

/// Lanes of one warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WarpLanes {
    /// Index of the warp in its block; `None`: every warp.
    pub warp: Option<u32>,
    /// The lanes for which the condition holds: they take the branch, or leave.
    pub taken: LaneMask,
    /// The lanes that can be there.
    pub there: LaneMask,
}

/// Where a boundary runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// At most one warp of the launch splits.
    Grid,
    /// At most one warp of each block splits.
    Block,
    /// Any warp may split, but always into its lower and its upper lanes.
    Warp,
}

/// Whether a decision splits a warp.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// No group that issues it ever splits.
    Never,
    /// An index that rises from lane to lane is compared with a bound that is the same for all: at most the warp that the
    /// bound falls into splits.
    Boundary(Scope),
    /// Exactly these lanes go the other way, in each execution. Warps that are not listed do not split.
    Lanes(Vec<WarpLanes>),
    /// It depends on what a load, an atomic or another lane gave; `Branch::origin` names it.
    Data,
    /// It depends on the thread's index in a way that the block's shape (which is not known) decides.
    Shape,
    /// Lanes come here by different ways, and a value depends on the way: `Branch::origin` names the branch that parted them.
    Paths,
    /// Not known; `Branch::origin` says why.
    Unknown,
    /// No lane gets here.
    Unreachable,
}

/// Where a difference between lanes comes from: the end of a witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// It is no difference: the value is the same for all.
    Uniform,
    /// The thread's index or lane number, read at this instruction.
    Thread(u32),
    /// A load at this instruction: from an address that differs, or a value that may have changed between two loads.
    /// The argument (ordinal of the parameter) that its address comes from, if that is known.
    Load {
        /// The load.
        inst: u32,
        /// The parameter.
        param: Option<u32>,
    },
    /// An atomic's result.
    Atomic {
        /// The atomic.
        inst: u32,
        /// The parameter that its address comes from.
        param: Option<u32>,
    },
    /// A value from another lane (shuffle, match, elect).
    Exchange(u32),
    /// Lanes that this branch parted meet, with values of their own.
    Paths {
        /// The branch.
        branch: u32,
        /// The first instruction of the block where they meet.
        at: u32,
    },
    /// Lanes that this branch parted may execute this instruction at different times, and what it gives may change.
    Apart {
        /// The branch.
        branch: u32,
        /// The instruction.
        inst: u32,
    },
    /// A call whose effect is not known.
    Call(u32),
    /// An instruction without a meaning here.
    Unsupported(u32),
    /// A clock.
    Clock(u32),
    /// A register that holds whatever it held when the kernel started, or what another kernel's caller left.
    Undefined,
    /// The code is too large, or a limit was reached.
    Limit,
}

/// One step of a witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The instruction. For [`What::Join`] the first of the block where paths meet.
    pub inst: u32,
    /// What happens there.
    pub what: What,
}

/// What a step of a witness does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// The decision itself.
    Decides,
    /// It computes a register.
    Register(Slot),
    /// It computes a predicate.
    Predicate(Pred),
    /// Different values of a register meet.
    Join,
}

/// Why: from the decision back to where the difference (or the uniform value) comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The decision or use first.
    pub steps: Vec<Step>,
    /// What the last step reads or is.
    pub origin: Origin,
}

/// A verdict about one instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The instruction.
    pub inst: u32,
    /// What it is.
    pub kind: Kind,
    /// How far its condition (or target) is known to be the same, among the lanes that can be there.
    pub level: Level,
    /// Whether it splits.
    pub verdict: Verdict,
    /// The whole group goes one way by the instruction's meaning (`BRA.U`), whatever its condition.
    pub whole_group: bool,
    /// One side does nothing but trap or report a failed assertion: no loss while it is not taken.
    pub guards_trap: bool,
    /// The loop whose turns it decides (an index into `Structure::loops.list`), if one of its sides leaves a loop.
    pub leaves_loop: Option<u32>,
    /// Why.
    pub witness: Witness,
}

impl Branch {
    /// The end of its witness.
    pub fn origin(&self) -> Origin {
        self.witness.origin
    }
}

/// Whether all lanes of a warp make the same number of turns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopTrips {
    /// Index into `Structure::loops.list`.
    pub index: u32,
    /// First instruction of its header.
    pub header: u32,
    /// The branches that leave it, as indices into [`Uniformity::branches`](super::Uniformity::branches).
    pub exits: Vec<u32>,
    /// The lowest promise of them: up to `Warp`, lanes of a group make the same number of turns.
    pub level: Level,
}

/// What an operand holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// How far it is the same, among the lanes that can be there.
    pub level: Level,
    /// Its value, if it is one known number for all lanes that can be there.
    pub constant: Option<u32>,
    /// What differs, if the level is `Lanes`: `(warp, offsets)` such that lane l holds `base + offsets[l]`, `base` being
    /// the same for all lanes of the warp; `None` as the warp: every warp.
    pub lanes: Vec<(Option<u32>, [u32; 32])>,
    /// Whether `base` is zero: `lanes` are the values themselves.
    pub exact: bool,
    /// The parameters (ordinals) that the value is computed from as a sum, such as the pointer of an address.
    pub params: Vec<u32>,
}

/// An operand to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// A register that the instruction reads.
    Slot(Slot),
    /// A predicate that it reads, not negated.
    Pred(Pred),
}
