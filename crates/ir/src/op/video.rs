//! PTX's video instructions: arithmetic on bytes and halves with saturation, a second operation and merging.
//!
//! No machine since Kepler has them; compilers compose them of ordinary instructions, and what that code gives is the
//! definition here (measured on an H200). It differs from PTX's manual in two places. A result merged into the upper
//! half of a word comes from its own upper half. A saturating result that is merged into a byte or a half is clamped
//! as an unsigned number, so that a negative one gives the largest value.

use super::int::Cmp;

/// A byte, a half or the whole of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    /// 8, 16 or 32.
    pub bits: u8,
    /// Which, counted from the low end.
    pub index: u8,
}

impl Part {
    /// All 32 bits.
    pub const WORD: Part = Part { bits: 32, index: 0 };
}

/// What is computed of the parts of `s0` and `s1`, exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VideoOp {
    /// a + b
    Add,
    /// a - b
    Sub,
    /// |a - b|
    AbsDiff,
    /// The smaller.
    Min,
    /// The larger.
    Max,
    /// (a + b + 1) / 2 rounded down if a + b is not negative, else (a + b) / 2 rounded down. Packed only.
    Average,
    /// 1 if the comparison holds, else 0.
    Set(Cmp),
    /// a << b, with b modulo 32 (`wrap`) or at most 32.
    Shl {
        /// Modulo 32.
        wrap: bool,
    },
    /// a >> b likewise.
    Shr {
        /// Modulo 32.
        wrap: bool,
    },
}

/// The second operation, with `s2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Second {
    /// The sum.
    Add,
    /// The smaller.
    Min,
    /// The larger.
    Max,
}

/// `vadd` and the like: `d0` = the result, joined with `s2` by `second` or put into part `to` of `s2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scalar {
    /// The function.
    pub op: VideoOp,
    /// Whether the result and both sources are signed.
    pub signed: [bool; 3],
    /// Parts of both sources.
    pub parts: [Part; 2],
    /// Where the result goes.
    pub to: Part,
    /// Clamp the result.
    pub sat: bool,
    /// The second operation.
    pub second: Option<Second>,
}

/// `vmad`: `d0` = (±(a * b) ± c (+ 1)) >> `shift` of parts of `s0` and `s1` and of `s2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mad {
    /// Whether both sources are signed.
    pub signed: [bool; 2],
    /// Parts of both sources.
    pub parts: [Part; 2],
    /// The product is subtracted.
    pub minus_product: bool,
    /// `s2` is subtracted.
    pub minus_addend: bool,
    /// `.po`: one is added.
    pub plus_one: bool,
    /// 0, 7 or 15.
    pub shift: u8,
    /// Clamp the result.
    pub sat: bool,
}

/// `vadd2`, `vadd4` and the like: in each lane of `s2` that `mask` names stands the result of one lane, or
/// (`accumulate`) `d0` = `s2` plus those results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Packed {
    /// The function; no shift.
    pub op: VideoOp,
    /// 2 or 4.
    pub lanes: u8,
    /// Whether the results and both sources are signed.
    pub signed: [bool; 3],
    /// Which of the parts of `(s0, s1)` each lane takes as a, and as b.
    pub select: [[u8; 4]; 2],
    /// Bit i: lane i is computed.
    pub mask: u8,
    /// Clamp the results.
    pub sat: bool,
    /// Add the results.
    pub accumulate: bool,
}

/// A video instruction. Three sources, one result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VideoFn {
    /// One result.
    Scalar(Scalar),
    /// A product and a sum.
    Mad(Mad),
    /// Two or four results.
    Packed(Packed),
}
