//! Sums, products and fused multiply-adds.
//!
//! Rounding to nearest is the CPU's own instruction. The other roundings go through f64, see [`round`](super::super::round).

use lanescope_ir::op::float::{Arith, Rounding};

use crate::lane::round::{NEARLY_NORMAL, canonical, flush, is_tiny, narrow, source, sum_to_odd};
use crate::lane::{LaneFunction, Out};

/// Rounds, flushes, clamps and canonicalises a result that is exact or rounded to odd.
#[inline(always)]
pub(super) fn finish(exact: f64, arith: Arith) -> u32 {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::round::{Exact, Format, NAN32, Value};

    const MODES: [Rounding; 4] = [Rounding::Nearest, Rounding::Zero, Rounding::Down, Rounding::Up];

    /// Bits whose exponents lie close together, near the ends, or anywhere.
    fn operand(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let x = *state >> 16;
        let mantissa = if x & 0x30 == 0 { 0 } else { x >> 8 & 0x7f_ffff };
        let exponent = match x & 0xf {
            0 => 0,
            1 => 254,
            2..=4 => 1 + (x >> 40 & 3),
            5..=9 => 120 + (x >> 40 & 15),
            10..=12 => 60 + (x >> 40 & 15),
            _ => x >> 36 & 0xff,
        };
        (x >> 47 & 1) << 31 | exponent << 23 | mantissa
    }

    fn exact_fma(a: u64, b: u64, c: u64, format: Format, round: Rounding) -> Option<u64> {
        let read = |x| match Value::read(x, format) {
            Value::Finite(x) => Some(x),
            _ => None,
        };
        Some(Exact::sum(Exact::product(read(a)?, read(b)?), read(c)?, round).round(format, round))
    }

    #[test]
    fn two_ways_to_round_agree() {
        let mut state = 1;
        for _ in 0..200_000 {
            let [a, b, c] = [operand(&mut state), operand(&mut state), operand(&mut state)];
            for round in MODES {
                let arith = Arith { round, ..Arith::PLAIN };
                let fused = fma(a as u32, b as u32, c as u32, arith, false);
                if let Some(expected) = exact_fma(a, b, c, Format::F32, round) {
                    assert_eq!(u64::from(fused), expected, "{a:x} * {b:x} + {c:x} {round:?}");
                }
                let sum = add(a as u32, c as u32, arith);
                if let Some(expected) = exact_fma(a, u64::from(1f32.to_bits()), c, Format::F32, round) {
                    assert_eq!(u64::from(sum), expected, "{a:x} + {c:x} {round:?}");
                }
            }
            let s = [a as u32, b as u32, c as u32, 0, 0, 0];
            let nearest = FmaNearest::<false>.eval(s, [true; 3]).d[0];
            assert_eq!(nearest, fma(s[0], s[1], s[2], Arith::PLAIN, false));
            let flushed = Arith { ftz: true, ..Arith::PLAIN };
            assert_eq!(FmaNearest::<true>.eval(s, [true; 3]).d[0], fma(s[0], s[1], s[2], flushed, false));
            let product = Mul::new(flushed, 0, false).eval(s, [true; 3]).d[0];
            assert_eq!(MulNearest::<true>.eval(s, [true; 3]).d[0], product);
        }
    }

    #[test]
    fn exact_numbers_round_as_the_cpu_does() {
        let mut state = 2;
        for _ in 0..200_000 {
            let wide = |x: u64, y: u64| x << 32 | y;
            let mut next = || wide(operand(&mut state), operand(&mut state));
            let [a, b, c] = [next(), next(), next()];
            let cpu = f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c));
            if let Some(exact) = exact_fma(a, b, c, Format::F64, Rounding::Nearest) {
                assert_eq!(exact, cpu.to_bits(), "{a:x} * {b:x} + {c:x}");
            }
        }
    }

    #[test]
    fn clamping_and_nan() {
        let sat = Arith { sat: true, ..Arith::PLAIN };
        let add = |a: f32, b: f32| add(a.to_bits(), b.to_bits(), sat);
        assert_eq!(add(f32::NAN, 1.0), 0);
        assert_eq!(add(-0.0, -0.0), 0);
        assert_eq!(add(0.25, 0.5), 0.75f32.to_bits());
        assert_eq!(add(1.0, f32::INFINITY), 1f32.to_bits());
        let nan =
            AddNearest::<false>.eval([f32::INFINITY.to_bits(), f32::NEG_INFINITY.to_bits(), 0, 0, 0, 0], [true; 3]);
        assert_eq!(nan.d[0], NAN32);
    }
}
