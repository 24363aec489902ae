//! Branches, convergence and exit.
//!
//! Code addresses are 64-bit numbers in one space for a kernel and everything it can call: a [`Function`]'s
//! base plus the byte offset. `Kernel::at_address` maps them to instructions.
//!
//! [`Function`]: crate::Function

use super::{PredSrc, Src};
use crate::ids::{BarrierReg, InstId, Slot};

/// An indirect target: base + 64-bit register pair, per lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indirect {
    /// Register part, low and high word.
    pub reg: [Src; 2],
    /// Constant part, a code address.
    pub base: u64,
}

/// What a warp-wide synchronisation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarpSyncMode {
    /// The lanes of a mask.
    Mask(Src),
    /// All lanes that have not exited.
    All,
    /// `.COLLECTIVE`: wait for the mask, execute up to `ENDCOLLECTIVE` once for all, then each group goes on at the target.
    Collective(Src, InstId),
    /// `.EXCLUSIVE`: as `Mask`; the next instruction runs for exactly these lanes.
    Exclusive(Src),
}

/// Who decides at a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Each lane for itself: the group may split.
    Lanes,
    /// `BRA.U`: the group goes to the target if the condition holds in all its lanes, and falls through otherwise. The
    /// compiler puts it before a region whose branches decide by lane, to skip it if nobody goes in.
    All,
    /// `BRA.U.ANY`: the group goes to the target if the condition holds in any of its lanes.
    Any,
}

/// An operation that steers the warp. Each applies to the lanes of the group whose guard holds.
#[derive(Clone, Debug, PartialEq)]
pub enum ControlOp {
    /// Lanes where `cond` (and the guard) holds go to the target, the others fall through.
    Branch {
        /// Target.
        target: InstId,
        /// Second predicate.
        cond: PredSrc,
        /// Who decides.
        decision: Decision,
    },
    /// `BRA.DIV`: taken by the group if a lane of `mask` that has not exited is outside the group.
    BranchDivergent {
        /// Target.
        target: InstId,
        /// Lanes that ought to be together; `None` means all lanes.
        mask: Option<Src>,
        /// Second predicate.
        cond: PredSrc,
    },
    /// `BRA.CONV`: the opposite.
    BranchConverged {
        /// Target.
        target: InstId,
        /// Lanes that ought to be together; `None` means all lanes.
        mask: Option<Src>,
        /// Second predicate.
        cond: PredSrc,
    },
    /// BRX, JMX, BRXU: each lane to its own target.
    BranchIndirect {
        /// Target.
        target: Indirect,
        /// Second predicate.
        cond: PredSrc,
    },
    /// CALL.REL/ABS to a fixed target; the return address is in registers already.
    Call {
        /// Target.
        target: InstId,
        /// Second predicate.
        cond: PredSrc,
    },
    /// CALL through registers.
    CallIndirect {
        /// Target.
        target: Indirect,
        /// Second predicate.
        cond: PredSrc,
    },
    /// A call of a function that is not in this module (`vprintf`, `malloc`, `__assertfail` ...): refused by name, or handled by the engine where it knows it.
    CallExternal {
        /// Symbol.
        name: String,
        /// Second predicate.
        cond: PredSrc,
        /// Its arguments as words, low first, if they are known; the second word of a short one does not matter.
        args: Vec<[Src; 2]>,
        /// Where its result goes.
        result: Option<Slot>,
    },
    /// RET through registers.
    Return {
        /// Target.
        target: Indirect,
        /// Second predicate.
        cond: PredSrc,
    },
    /// Lanes leave.
    Exit {
        /// Second predicate.
        cond: PredSrc,
    },
    /// BSSY: `bar` := executing lanes.
    SyncSet {
        /// Barrier.
        bar: BarrierReg,
        /// The instruction after the region.
        target: InstId,
        /// Second predicate.
        cond: PredSrc,
    },
    /// BSYNC: wait for the lanes of `bar`.
    Sync {
        /// Barrier.
        bar: BarrierReg,
        /// Second predicate.
        cond: PredSrc,
    },
    /// BREAK: executing lanes leave `bar`.
    Break {
        /// Barrier.
        bar: BarrierReg,
        /// Second predicate.
        cond: PredSrc,
    },
    /// BMOV from a barrier: `dst` := `bar`, which is cleared if `clear`.
    BarrierRead {
        /// Destination.
        dst: Option<Slot>,
        /// Barrier.
        bar: BarrierReg,
        /// `.CLEAR`
        clear: bool,
    },
    /// BMOV to a barrier.
    BarrierWrite {
        /// Barrier.
        bar: BarrierReg,
        /// Mask (the lowest executing lane's value).
        src: Src,
    },
    /// WARPSYNC.
    WarpSync {
        /// For whom.
        mode: WarpSyncMode,
        /// Second predicate.
        cond: PredSrc,
    },
    /// ENDCOLLECTIVE.
    EndCollective,
    /// YIELD.
    Yield,
    /// NANOSLEEP: a hint like YIELD, with a time that does not matter here.
    Sleep,
    /// BPT.TRAP: the launch stops with an error.
    Trap,
    /// BPT.INT and the like: a debugger breakpoint; goes on.
    Breakpoint,
}
