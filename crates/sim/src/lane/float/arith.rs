//! Sums, products and fused multiply-adds.
//!
//! Rounding to nearest is the CPU's own instruction. The other roundings go through f64, see [`round`](super::super::round).

use lanescope_ir::op::float::{Arith, Rounding};

use crate::lane::round::{NEARLY_NORMAL, canonical, flush, is_tiny, narrow, source, sum_to_odd};
use crate::lane::{LaneFunction, Out};

/// Rounds, flushes, clamps and canonicalises a result that is exact or rounded to odd.
#[inline(always)]
fn finish(exact: f64, arith: Arith) -> u32 {
    let x = narrow(exact, arith.round);
    let bits = canonical(x);
    let bits = if arith.ftz & is_tiny(exact, arith.round) { bits & 0x8000_0000 } else { bits };
    if arith.sat {
        // Written so that a NaN fails the first comparison and becomes zero.
        if x > 0.0 { f32::from_bits(bits).min(1.0).to_bits() } else { 0 }
    } else {
        bits
    }
}

#[inline(always)]
fn add(a: u32, b: u32, arith: Arith) -> u32 {
    let (a, b) = (f64::from(source(a, arith.ftz)), f64::from(source(b, arith.ftz)));
    finish(sum_to_odd(a, b, arith.round), arith)
}

/// The exact product, or zero if a factor is zero and that wins.
#[inline(always)]
fn product(a: u32, b: u32, ftz: bool, zero_wins: bool) -> f64 {
    let (a, b) = (f64::from(source(a, ftz)), f64::from(source(b, ftz)));
    if zero_wins & ((a == 0.0) | (b == 0.0)) { 0.0 } else { a * b }
}

#[inline(always)]
fn fma(a: u32, b: u32, c: u32, arith: Arith, zero_wins: bool) -> u32 {
    let p = product(a, b, arith.ftz, zero_wins);
    let c = f64::from(source(c, arith.ftz));
    finish(sum_to_odd(p, c, arith.round), arith)
}

/// a + b to nearest.
#[derive(Clone, Copy)]
pub(super) struct AddNearest<const FTZ: bool>;

impl<const FTZ: bool> LaneFunction for AddNearest<FTZ> {
    const SRC: usize = 2;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let r = canonical(source(s[0], FTZ) + source(s[1], FTZ));
        Out::word(if FTZ { flush(r) } else { r })
    }
}

/// a * b to nearest.
#[derive(Clone, Copy)]
pub(super) struct MulNearest<const FTZ: bool>;

impl<const FTZ: bool> LaneFunction for MulNearest<FTZ> {
    const SRC: usize = 2;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let (a, b) = (source(s[0], FTZ), source(s[1], FTZ));
        let r = canonical(a * b);
        let tiny = FTZ && is_tiny(f64::from(a) * f64::from(b), Rounding::Nearest);
        Out::word(if tiny { r & 0x8000_0000 } else { r })
    }
}

/// a * b + c to nearest.
#[derive(Clone, Copy)]
pub(super) struct FmaNearest<const FTZ: bool>;

impl<const FTZ: bool> LaneFunction for FmaNearest<FTZ> {
    const SRC: usize = 3;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let (a, b, c) = (source(s[0], FTZ), source(s[1], FTZ), source(s[2], FTZ));
        let r = canonical(a.mul_add(b, c));
        // |a b + c| < limit, so written that the rounding of the differences cannot matter: they are exact for
        // |c| up to 2^-98, and beyond that a b and c have no digits as low as those of the limit.
        let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
        let tiny = FTZ & (product < NEARLY_NORMAL - c) & (product > -NEARLY_NORMAL - c);
        Out::word(if tiny { r & 0x8000_0000 } else { r })
    }
}

/// a + b in any mode.
#[derive(Clone, Copy)]
pub(super) struct Add(pub(super) Arith);

impl LaneFunction for Add {
    const SRC: usize = 2;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        Out::word(add(s[0], s[1], self.0))
    }
}

/// a * b * 2^scale in any mode.
#[derive(Clone, Copy)]
pub(super) struct Mul {
    arith: Arith,
    scale: f64,
    zero_wins: bool,
}

impl Mul {
    pub(super) fn new(arith: Arith, scale: i8, zero_wins: bool) -> Mul {
        let arith = Arith { ftz: arith.ftz | zero_wins, ..arith };
        Mul { arith, scale: f64::from(scale).exp2(), zero_wins }
    }
}

impl LaneFunction for Mul {
    const SRC: usize = 2;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let p = product(s[0], s[1], self.arith.ftz, self.zero_wins) * self.scale;
        Out::word(finish(p, self.arith))
    }
}

/// a * b + c in any mode.
#[derive(Clone, Copy)]
pub(super) struct Fma {
    arith: Arith,
    zero_wins: bool,
}

impl Fma {
    pub(super) fn new(arith: Arith, zero_wins: bool) -> Fma {
        Fma { arith: Arith { ftz: arith.ftz | zero_wins, ..arith }, zero_wins }
    }
}

impl LaneFunction for Fma {
    const SRC: usize = 3;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        Out::word(fma(s[0], s[1], s[2], self.arith, self.zero_wins))
    }
}

/// Two sums.
#[derive(Clone, Copy)]
pub(super) struct Add2(pub(super) Arith);

impl LaneFunction for Add2 {
    const SRC: usize = 4;
    const DST: usize = 2;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        Out { d: [add(s[0], s[2], self.0), add(s[1], s[3], self.0)], p: [false; 2] }
    }
}

/// Two products.
#[derive(Clone, Copy)]
pub(super) struct Mul2(pub(super) Arith);

impl LaneFunction for Mul2 {
    const SRC: usize = 4;
    const DST: usize = 2;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let mul = |a, b| finish(product(a, b, self.0.ftz, false), self.0);
        Out { d: [mul(s[0], s[2]), mul(s[1], s[3])], p: [false; 2] }
    }
}

/// Two fused multiply-adds.
#[derive(Clone, Copy)]
pub(super) struct Fma2(pub(super) Arith);

impl LaneFunction for Fma2 {
    const SRC: usize = 6;
    const DST: usize = 2;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        Out { d: [fma(s[0], s[2], s[4], self.0, false), fma(s[1], s[3], s[5], self.0, false)], p: [false; 2] }
    }
}
