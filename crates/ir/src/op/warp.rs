//! Operations across the lanes of a warp or the warps of a block.

use super::{PredSrc, Src};
use crate::ids::{Pred, Slot};

/// A special register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SpecialReg {
    /// `SR_TID.X/Y/Z` (0, 1, 2).
    Tid(u8),
    /// `SR_CTAID.X/Y/Z`.
    CtaId(u8),
    /// `SR_NTID.X/Y/Z`.
    NTid(u8),
    /// `SR_NCTAID.X/Y/Z`.
    NCtaId(u8),
    /// `SR_LANEID`.
    LaneId,
    /// Warp index within the block (`SR_WARPID` need not equal tid/32 on hardware; here it does).
    WarpId,
    /// `SR_NWARPID`.
    NWarpId,
    /// `SR_SMID` / `SR_VIRTUALSMID`.
    SmId,
    /// Number of SMs.
    NSmId,
    /// Grid number.
    GridId,
    /// Lanes equal to, less than, at most, greater than, at least this lane.
    LaneMaskEq,
    /// See `LaneMaskEq`.
    LaneMaskLt,
    /// See `LaneMaskEq`.
    LaneMaskLe,
    /// See `LaneMaskEq`.
    LaneMaskGt,
    /// See `LaneMaskEq`.
    LaneMaskGe,
    /// Counter of issues, low word: deterministic, not time.
    ClockLo,
    /// High word of it.
    ClockHi,
    /// Nanosecond timer, low word: here the issue counter too.
    GlobalTimerLo,
    /// High word.
    GlobalTimerHi,
    /// `SR_TID` packed: x | y << 16 | z << 26.
    TidPacked,
    /// `SRZ`
    Zero,
    /// Base of the shared window, high word of generic addresses (`SR_SWINHI`).
    SharedWindowHi,
    /// Shared memory of the block in bytes, reserved + static + dynamic (`SR_SMEMSZ`).
    SharedSize,
    /// Block index in its cluster (`SR_CgaCtaId`): 0 without clusters.
    ClusterCtaId,
    /// Blocks in the cluster (`SR_CgaSize`): 1 without clusters.
    ClusterSize,
    /// `SR_VIRTID`: the warp's index in bits 14:8, other bits 0.
    VirtId,
    /// `SR_VIRTCFG`: the number of warps an SM can hold in bits 15:8, other bits 0.
    VirtCfg,
}

/// How SHFL picks the source lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShuffleMode {
    /// `.IDX`
    Idx,
    /// `.UP`
    Up,
    /// `.DOWN`
    Down,
    /// `.BFLY`
    Bfly,
}

/// Reduction across lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduceOp {
    /// Sum, wrapping.
    Add,
    /// Minimum, signed or unsigned.
    Min {
        /// `.S32`
        signed: bool,
    },
    /// Maximum.
    Max {
        /// `.S32`
        signed: bool,
    },
    /// Bitwise.
    And,
    /// Bitwise.
    Or,
    /// Bitwise.
    Xor,
    /// f32 minimum (`CREDUX.FMIN`), optionally of magnitudes and NaN-propagating.
    FMin {
        /// `.ABS`
        abs: bool,
        /// `.NAN`
        nan: bool,
    },
    /// f32 maximum.
    FMax {
        /// `.ABS`
        abs: bool,
        /// `.NAN`
        nan: bool,
    },
}

/// What VOTE computes over the executing lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VoteMode {
    /// True in all.
    All,
    /// True in any.
    Any,
    /// The same in all.
    Eq,
}

/// What a block barrier does with the warps that reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockBarrierMode {
    /// Wait for all.
    Sync,
    /// Count as arrived, go on.
    Arrive,
    /// Wait, and reduce a predicate over all threads; the result is read by `BarrierResult`.
    RedPopc,
    /// As above, and.
    RedAnd,
    /// As above, or.
    RedOr,
}

/// Operations across lanes, special registers, block barriers.
#[derive(Clone, Debug, PartialEq)]
pub enum WarpOp {
    /// Read special registers; the second is the high word of a 64-bit read (CS2R).
    Special {
        /// Destinations.
        dst: [Option<Slot>; 2],
        /// What to read.
        reg: [SpecialReg; 2],
    },
    /// Exchange between lanes. Reads from a lane that does not execute give what was measured (docs/convergence.md).
    Shuffle {
        /// Mode.
        mode: ShuffleMode,
        /// Value from the source lane.
        dst: Option<Slot>,
        /// Whether the source lane is in range.
        pdst: Option<Pred>,
        /// Value offered.
        src: Src,
        /// Lane, delta or xor mask.
        lane: Src,
        /// Clamp in bits 4:0, segment mask in bits 12:8.
        clamp: Src,
    },
    /// Vote over the executing lanes.
    Vote {
        /// What `pdst` gets.
        mode: VoteMode,
        /// Ballot: bit i is the predicate of lane i, 0 for lanes that do not execute.
        dst: Option<Slot>,
        /// Result.
        pdst: Option<Pred>,
        /// Predicate voted on.
        src: PredSrc,
    },
    /// Lanes with equal values.
    Match {
        /// `.ALL` instead of `.ANY`.
        all: bool,
        /// Mask of equal lanes (`.ALL`: of all executing lanes, or 0).
        dst: Option<Slot>,
        /// `.ALL`: whether all are equal.
        pdst: Option<Pred>,
        /// Value, low and high word (high zero for 32 bits).
        src: [Src; 2],
    },
    /// Reduction over the executing lanes into a uniform register.
    Reduce {
        /// Operation.
        op: ReduceOp,
        /// Result, the same in all lanes.
        dst: Option<Slot>,
        /// Predicate result, if any (CREDUX).
        pdst: Option<Pred>,
        /// Value.
        src: Src,
    },
    /// R2UR and the like: the lowest executing lane's value goes to a uniform register. `pdst`, if any, is a
    /// predicate of each lane: true in the executing lanes whose value is another one (measured on an H200).
    Broadcast {
        /// Uniform destinations.
        dst: [Option<Slot>; 2],
        /// Result of R2UR's predicate.
        pdst: Option<Pred>,
        /// Sources.
        src: [Src; 2],
    },
    /// ELECT: the predicate is true in one executing lane for which `src` holds (the lowest); `dst` gets its number.
    Elect {
        /// Candidates.
        src: PredSrc,
        /// Elected lane's number.
        dst: Option<Slot>,
        /// True in that lane only.
        pdst: Option<Pred>,
    },
    /// The lanes of the executing group as a mask (`activemask`, PTX).
    ActiveMask {
        /// Destination.
        dst: Option<Slot>,
    },
    /// Predicates to register: bit i of the result is `preds[i]`; bits outside `mask` come from `merge`.
    PackPreds {
        /// Destination.
        dst: Option<Slot>,
        /// Up to 8 predicates; `FALSE` for none.
        preds: [PredSrc; 8],
        /// Byte of the destination that receives the bits (`.B1` is 1).
        byte: u8,
        /// Other bits.
        merge: Src,
        /// Which predicates.
        mask: Src,
    },
    /// Register to predicates: `preds[i]` = bit i of byte `byte` of `src`, where bit i of `mask` is set.
    UnpackPreds {
        /// Predicates written.
        preds: [Option<Pred>; 8],
        /// Byte read.
        byte: u8,
        /// Value.
        src: Src,
        /// Which predicates.
        mask: Src,
    },
    /// A barrier of the block.
    BlockBarrier {
        /// Mode.
        mode: BlockBarrierMode,
        /// Barrier number, 0 to 15.
        id: Src,
        /// Number of threads (a multiple of 32), or `None` for all of the block.
        threads: Option<Src>,
        /// Predicate of the reductions.
        pred: PredSrc,
    },
    /// Result of the last reduction barrier (B2R.RESULT).
    BarrierResult {
        /// Count, or 0 / 1... as hardware gives it.
        dst: Option<Slot>,
        /// Boolean result.
        pdst: Option<Pred>,
    },
    /// A multiplication of tiles on the tensor cores. It does nothing unless all lanes of the warp execute it (measured).
    Mma(Box<super::tensor::Mma>),
    /// MOVM.16.MT88, `movmatrix`: the transpose of an 8x8 tile of 16-bit elements, lane 4 i + j holding elements 2 j and
    /// 2 j + 1 of row i. It does nothing unless all lanes execute it.
    Transpose {
        /// The transpose.
        dst: Option<Slot>,
        /// The tile.
        src: Src,
    },
    /// Address of the next instruction or of a fixed offset (LEPC), as a 64-bit code address.
    CodeAddress {
        /// Destinations.
        dst: [Option<Slot>; 2],
        /// The address.
        addr: u64,
    },
}
