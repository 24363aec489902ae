//! Loads, stores and atomics.

use super::{PredSrc, Src};
use crate::ids::{Pred, Slot};

/// An address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// 64-bit addresses of buffers, module globals and constants mapped to global memory.
    Global,
    /// Per-block memory, 32-bit addresses from 0.
    Shared,
    /// Per-thread memory, 32-bit addresses from 0 (the stack).
    Local,
    /// 64-bit address that may lie in the shared or local window, else global.
    Generic,
    /// A constant bank, by number; 32-bit offsets; reads past the end give zero.
    Const(u8),
}

/// An address: base + uniform + offset, per lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addr {
    /// Low word of the lane's base; zero if there is none.
    pub base: Src,
    /// High word; `None` if the base is 32 bits wide (then it is zero-extended for 64-bit spaces).
    pub base_hi: Option<Src>,
    /// Low and high word of a second, uniform base (high zero if it is 32 bits wide).
    pub uniform: Option<(Src, Src)>,
    /// Sign-extend a 32-bit base in 64-bit spaces instead of zero-extending.
    pub signed: bool,
    /// Left shift of the base (`.X4` is 2, `.X8` 3, `.X16` 4).
    pub scale: u8,
    /// Byte offset.
    pub offset: i64,
}

/// How a loaded value fills its registers or a stored one leaves them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// 1 byte, zero-extended on load.
    U8,
    /// 1 byte, sign-extended.
    S8,
    /// 2 bytes, zero-extended.
    U16,
    /// 2 bytes, sign-extended.
    S16,
    /// 4 bytes.
    B32,
    /// 8 bytes, two slots.
    B64,
    /// 16 bytes, four slots.
    B128,
    /// 32 bytes, eight slots (sm_100 and later).
    B256,
}

impl Width {
    /// Size in bytes; also the alignment that an address must have.
    pub const fn bytes(self) -> u32 {
        match self {
            Width::U8 | Width::S8 => 1,
            Width::U16 | Width::S16 => 2,
            Width::B32 => 4,
            Width::B64 => 8,
            Width::B128 => 16,
            Width::B256 => 32,
        }
    }
    /// Number of 32-bit slots.
    pub const fn slots(self) -> usize {
        match self {
            Width::B64 => 2,
            Width::B128 => 4,
            Width::B256 => 8,
            _ => 1,
        }
    }
}

/// Type of an atomic's operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomType {
    /// 32-bit unsigned or bits.
    U32,
    /// 32-bit signed.
    S32,
    /// 64-bit unsigned or bits.
    U64,
    /// 64-bit signed.
    S64,
    /// f32; `ftz` flushes subnormal inputs and results.
    F32 {
        /// `.FTZ`
        ftz: bool,
    },
    /// f64. A NaN operand comes back as it is, the second first (measured on an H200); in shared memory, where
    /// hardware has a loop around the processor's own addition, made quiet.
    F64,
    /// Two f16.
    F16x2,
    /// Two bf16.
    Bf16x2,
    /// Two f32, each added apart.
    F32x2 {
        /// `.FTZ`
        ftz: bool,
    },
    /// Four f32.
    F32x4 {
        /// `.FTZ`
        ftz: bool,
    },
    /// Four f16.
    F16x4,
    /// Eight f16.
    F16x8,
    /// Four bf16.
    Bf16x4,
    /// Eight bf16.
    Bf16x8,
    /// 128 bits (exchange and compare-and-swap only).
    B128,
    /// 16 bits (exchange and compare-and-swap only), at an even address. PTX `atom.cas.b16`.
    B16,
}

impl AtomType {
    /// 32-bit words of one operand.
    pub const fn slots(self) -> usize {
        match self {
            AtomType::U64 | AtomType::S64 | AtomType::F64 => 2,
            AtomType::F32x2 { .. } | AtomType::F16x4 | AtomType::Bf16x4 => 2,
            AtomType::B128 | AtomType::F32x4 { .. } | AtomType::F16x8 | AtomType::Bf16x8 => 4,
            _ => 1,
        }
    }
}

/// What an atomic does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomOp {
    /// old + b
    Add,
    /// min(old, b)
    Min,
    /// max(old, b)
    Max,
    /// old >= b ? 0 : old + 1
    Inc,
    /// old == 0 || old > b ? b : old - 1
    Dec,
    /// old & b
    And,
    /// old | b
    Or,
    /// old ^ b
    Xor,
    /// b
    Exch,
    /// old == compare ? b : old
    Cas,
    /// `ATOMS.CAST.SPIN`: compare-and-swap; reports success as 1 or 0 in `dst` (a
    /// number as wide as the type) or as a predicate, not the old value.
    CasSpin,
    /// `ATOMS.POPC.INC`: old + the number of executing lanes with this address; each lane gets old plus its rank.
    PopcInc,
}

/// A memory operation. Lanes act in ascending order where order can be seen.
#[derive(Clone, Debug, PartialEq)]
pub enum MemoryOp {
    /// Read memory into registers.
    Load {
        /// Space.
        space: Space,
        /// Width.
        width: Width,
        /// `width.slots()` destinations; `None` discards.
        dst: [Option<Slot>; 8],
        /// Address.
        addr: Addr,
        /// Lanes where this is false load zero without touching memory (the trailing predicate of LDG).
        valid: PredSrc,
    },
    /// Write registers to memory.
    Store {
        /// Space.
        space: Space,
        /// Width.
        width: Width,
        /// `width.slots()` sources.
        src: [Src; 8],
        /// Address.
        addr: Addr,
    },
    /// Read-modify-write; without destinations it is a reduction.
    Atomic {
        /// Space.
        space: Space,
        /// Operation.
        op: AtomOp,
        /// Operand type.
        ty: AtomType,
        /// Old value, `ty.slots()` words; all `None` for a reduction.
        dst: [Option<Slot>; 4],
        /// Predicate result, if written. `CasSpin`: success. Others, in generic space: false in lanes whose
        /// address lies outside global memory; these do nothing, the code that follows handles them.
        pdst: Option<Pred>,
        /// Address.
        addr: Addr,
        /// Operand b, `ty.slots()` words.
        src: [Src; 4],
        /// Compare value of `Cas`, `ty.slots()` words.
        compare: [Src; 4],
    },
    /// `QSPC`: whether a generic address lies in a space (Shared, Local or Global).
    QuerySpace {
        /// The space asked for.
        space: Space,
        /// Predicate result.
        pdst: Option<Pred>,
        /// Register result (1 or 0), if any.
        dst: Option<Slot>,
        /// Generic address.
        addr: Addr,
    },
    /// `cp.async`, LDGSTS: global memory to shared memory. Done at once, so that nobody need wait for it.
    Copy {
        /// Size of one lane's piece: 4, 8 or 16 bytes.
        width: Width,
        /// Address in shared memory.
        to: Addr,
        /// Address in global memory.
        from: Addr,
        /// Lanes where this is false write zeros.
        valid: PredSrc,
        /// How much of the piece is read; the rest of it becomes zeros.
        amount: Amount,
    },
    /// `ldmatrix`, LDSM: 8x8 tiles of 16-bit elements from shared memory. Lane 8 i + j has the address of row j of tile i
    /// (16 bytes); lane 4 i + j gets elements 2 j and 2 j + 1 of row i of each tile. It does nothing unless all lanes
    /// execute it.
    LoadMatrix {
        /// Shared, or generic.
        space: Space,
        /// Number of tiles: 1, 2 or 4.
        count: u8,
        /// Columns instead of rows.
        transposed: bool,
        /// A word for each tile.
        dst: [Option<Slot>; 4],
        /// Address of the lane's row.
        addr: Addr,
    },
    /// `stmatrix`, STSM: the reverse.
    StoreMatrix {
        /// Shared, or generic.
        space: Space,
        /// Number of tiles: 1, 2 or 4.
        count: u8,
        /// Columns instead of rows.
        transposed: bool,
        /// A word for each tile.
        src: [Src; 4],
        /// Address of the lane's row.
        addr: Addr,
    },
}

/// How much of its piece a [`MemoryOp::Copy`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// All of it.
    All,
    /// The first so many bytes; more than there are count as all.
    First(Src),
    /// `.ZFILL`: the bytes that the global address is past a multiple of the size are left out at the end, and reading starts
    /// at that multiple.
    Offset,
}
