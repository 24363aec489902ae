//! Sums, products and conversions.

use lanescope_ir::op::half::Arith;

use super::format::{NAN, flush, is_nan, is_tiny, narrow, sum, widen};
use super::{Halves, join};
use crate::lane::{LaneFunction, Out};

/// What happens to sources and results.
#[derive(Clone, Copy)]
pub(super) struct Around {
    ftz: bool,
    sat: bool,
    relu: bool,
    halves: [Halves; 3],
}

impl Around {
    pub(super) fn of(a: Arith) -> Around {
        Around { ftz: a.ftz, sat: a.sat, relu: a.relu, halves: a.select.map(Halves::of) }
    }
    #[inline(always)]
    fn source<const BF: bool>(self, s: [u32; 6], i: usize) -> [f64; 2] {
        self.halves[i].split(s[i]).map(|x| widen::<BF>(flush::<BF>(x, self.ftz)))
    }
    #[inline(always)]
    fn result<const BF: bool>(self, x: f64) -> u16 {
        let r = narrow::<BF>(x);
        let r = if self.ftz & is_tiny::<BF>(x) { r & 0x8000 } else { r };
        let one = if BF { 0x3f80 } else { 0x3c00 };
        let negative = r & 0x8000 != 0;
        let relu = if negative { 0 } else { r };
        // Among non-negative values the order of the bits is that of the numbers.
        let sat = if negative | is_nan::<BF>(r) { 0 } else { r.min(one) };
        let r = if self.relu { relu } else { r };
        if self.sat { sat } else { r }
    }
    #[inline(always)]
    fn results<const BF: bool>(self, f: impl Fn(usize) -> f64) -> Out {
        Out::word(join([self.result::<BF>(f(0)), self.result::<BF>(f(1))]))
    }
}

#[derive(Clone, Copy)]
pub(super) struct Add<const BF: bool>(pub(super) Around);

impl<const BF: bool> LaneFunction for Add<BF> {
    const SRC: usize = 2;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let (a, b) = (self.0.source::<BF>(s, 0), self.0.source::<BF>(s, 1));
        self.0.results::<BF>(|i| sum(a[i], b[i]))
    }
}

#[derive(Clone, Copy)]
pub(super) struct Mul<const BF: bool>(pub(super) Around);

impl<const BF: bool> LaneFunction for Mul<BF> {
    const SRC: usize = 2;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let (a, b) = (self.0.source::<BF>(s, 0), self.0.source::<BF>(s, 1));
        self.0.results::<BF>(|i| a[i] * b[i])
    }
}

#[derive(Clone, Copy)]
pub(super) struct Fma<const BF: bool>(pub(super) Around);

impl<const BF: bool> LaneFunction for Fma<BF> {
    const SRC: usize = 3;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let (a, b, c) = (self.0.source::<BF>(s, 0), self.0.source::<BF>(s, 1), self.0.source::<BF>(s, 2));
        self.0.results::<BF>(|i| sum(a[i] * b[i], c[i]))
    }
}

#[derive(Clone, Copy)]
pub(super) struct FmaOob<const BF: bool>(pub(super) Around);

impl<const BF: bool> LaneFunction for FmaOob<BF> {
    const SRC: usize = 3;
    fn eval(self, s: [u32; 6], p: [bool; 3]) -> Out {
        let outside = |i: usize| self.0.halves[i].split(s[i]).map(|x| x & 0x7fff == 0x7ff7);
        let (a, b) = (outside(0), outside(1));
        let mask = join([0, 1].map(|i| if a[i] | b[i] { 0 } else { 0xffff }));
        Out::word(Fma::<BF>(self.0).eval(s, p).d[0] & mask)
    }
}

/// NaN results of f32 have these bits.
const NAN32: u32 = 0x7fff_ffff;

#[derive(Clone, Copy)]
pub(super) struct AddToF32<const BF: bool>(pub(super) Around);

impl<const BF: bool> LaneFunction for AddToF32<BF> {
    const SRC: usize = 2;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let (a, b) = (self.0.source::<BF>(s, 0), self.0.source::<BF>(s, 1));
        let x = sum(a[0], b[0]) as f32;
        Out::word(if x.is_nan() { NAN32 } else { x.to_bits() })
    }
}

#[derive(Clone, Copy)]
pub(super) struct FromF32<const BF: bool>(pub(super) Around);

impl<const BF: bool> LaneFunction for FromF32<BF> {
    const SRC: usize = 1;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let x = f32::from_bits(s[0]);
        let r = if x.is_nan() { NAN } else { self.0.result::<BF>(f64::from(x)) };
        Out::word(join([r, r]))
    }
}
