//! Packed f16 and bf16 functions.
//!
//! A word holds two 16-bit floats, `s[0]` in its low half. Unless said otherwise each half is computed apart:
//! once rounded to nearest even, NaN results are `0x7fff`, subnormals are kept. Signs and magnitudes of
//! sources are [`SrcMod`](super::SrcMod)s (`HNeg`, `HAbs`); a half taken twice is a [`Select`].

use super::int::BoolOp;

/// Which halves of a source a function sees as its low and high half.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Select {
    /// As they are.
    Both,
    /// The low half twice: `H0_H0`.
    Low,
    /// The high half twice: `H1_H1`.
    High,
}

/// A 16-bit format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// IEEE binary16.
    F16,
    /// The upper half of an f32.
    Bf16,
}

/// What is done around an arithmetic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Arith {
    /// Format of sources and result.
    pub format: Format,
    /// Subnormal sources and results become zero with their sign.
    pub ftz: bool,
    /// The result is clamped to 0..1, NaN to 0.
    pub sat: bool,
    /// Negative results become zero; NaN stays.
    pub relu: bool,
    /// Halves of `s0`, `s1`, `s2`.
    pub select: [Select; 3],
}

/// Comparison of two floats; the `u` forms also hold if either is NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FloatCmp {
    /// Holds for less.
    pub less: bool,
    /// Holds for equal.
    pub equal: bool,
    /// Holds for greater.
    pub greater: bool,
    /// Holds for unordered.
    pub unordered: bool,
}

/// Operands of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Compare {
    /// Format of the sources.
    pub format: Format,
    /// Subnormals compare as zero.
    pub ftz: bool,
    /// The relation.
    pub cmp: FloatCmp,
    /// How it is joined with `p0`.
    pub op: BoolOp,
    /// Halves of `s0`, `s1`.
    pub select: [Select; 2],
}

/// Packed f16 and bf16 functions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HalfFn {
    /// `d0 = s0 + s1`. `HADD2`, PTX `add.f16x2`.
    Add(Arith),
    /// `d0 = s0 * s1`. `HMUL2`, PTX `mul.f16x2`.
    Mul(Arith),
    /// `d0 = s0 * s1 + s2`, rounded once. `HFMA2`, `HFMA2.MMA`, PTX `fma.rn.f16x2`.
    Fma(Arith),
    /// The same, but zero where `s0` or `s1` is one of the NaNs `0x7ff7` and `0xfff7`, with which the copy engine fills
    /// what lies outside a tensor (both formats, measured on an H200). `HFMA2.OOB`, PTX `fma.rn.oob.f16x2`.
    FmaOob(Arith),
    /// `d0` = the f32 nearest to the sum of the low halves selected. `HADD2.F32`; with a zero, PTX `cvt.f32.f16`.
    AddToF32(Arith),
    /// Both halves of `d0` are the 16-bit float nearest to the f32 `s0`. `HADD2` with an `.F32` source and zero.
    FromF32(Arith),
    /// `d0 = p0 ? min : max` of `s0`, `s1` and, with `three`, `s2`. A NaN loses against a number unless
    /// `propagate`; -0 is below +0. `HMNMX2`, `VHMNMX`, PTX `min.f16x2`.
    MinMax {
        /// Format.
        format: Format,
        /// Subnormals become zero first.
        ftz: bool,
        /// Any NaN gives NaN.
        propagate: bool,
        /// Magnitudes are compared, and the result's sign is the exclusive or of the signs. PTX `.xorsign.abs`.
        xorsign: bool,
        /// `s2` takes part.
        three: bool,
        /// Halves of the sources.
        select: [Select; 3],
    },
    /// `q0 = (s0 cmp s1 in the low half) op p0`, `q1` likewise in the high half. `HSETP2`, PTX `setp.f16x2`.
    SetP(Compare),
    /// `c` = (`s0 cmp s1` in both halves); `q0 = c op p0`, `q1 = !c op p0`. `HSETP2.H_AND`.
    SetPBoth(Compare),
    /// Each half of `d0` tells `(s0 cmp s1) op p0`: all ones, or 1.0 with `one`; else zero. `HSET2`.
    Set {
        /// The comparison.
        compare: Compare,
        /// True is 1.0 in the format.
        one: bool,
    },
}
