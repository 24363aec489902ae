//! Minimum and maximum.

use super::{lane_function, pair};
use crate::lane::Out;

#[derive(Clone, Copy)]
pub(super) struct Min<const SIGNED: bool>;
lane_function!([const SIGNED: bool] Min<SIGNED>, 2 0 => 1 0, |_, s, _| {
    Out::word(if SIGNED { (s[0] as i32).min(s[1] as i32) as u32 } else { s[0].min(s[1]) })
});

#[derive(Clone, Copy)]
pub(super) struct Max<const SIGNED: bool>;
lane_function!([const SIGNED: bool] Max<SIGNED>, 2 0 => 1 0, |_, s, _| {
    Out::word(if SIGNED { (s[0] as i32).max(s[1] as i32) as u32 } else { s[0].max(s[1]) })
});

/// What the general forms compare.
#[derive(Clone, Copy)]
pub(super) struct Rule {
    pub(super) signed: bool,
    /// Two 16-bit integers instead of one of 32 bits.
    pub(super) two: bool,
    /// Negative results become zero.
    pub(super) relu: bool,
}

impl Rule {
    #[inline(always)]
    fn value(self, x: u32, bits: u32) -> i64 {
        let unsigned = i64::from(x);
        let signed = i64::from(((x << (32 - bits)) as i32) >> (32 - bits));
        if self.signed { signed } else { unsigned }
    }
    /// Smallest or largest of `x`, each a `bits`-wide integer in the low bits.
    #[inline(always)]
    fn pick<const N: usize>(self, x: [u32; N], min: bool, bits: u32) -> u32 {
        let mut best = x[0];
        for y in x {
            let less = self.value(y, bits) < self.value(best, bits);
            let greater = self.value(y, bits) > self.value(best, bits);
            best = if (min & less) | (!min & greater) { y } else { best };
        }
        // `.RELU` compares with zero as a signed number, whatever the type.
        let negative = best >> (bits - 1) & 1 == 1;
        if self.relu & negative { 0 } else { best }
    }
    #[inline(always)]
    fn apply<const N: usize>(self, x: [u32; N], min: bool) -> u32 {
        let low = self.pick(x.map(|x| x & 0xffff), min, 16);
        let high = self.pick(x.map(|x| x >> 16), min, 16);
        let one = self.pick(x, min, 32);
        if self.two { low | high << 16 } else { one }
    }
}

#[derive(Clone, Copy)]
pub(super) struct MinMax(pub(super) Rule);
lane_function!([] MinMax, 2 1 => 1 2, |f, s, p| {
    let first = |a: u32, b: u32, bits: u32| {
        let (a, b) = (f.0.value(a, bits), f.0.value(b, bits));
        if p[0] { a <= b } else { a >= b }
    };
    let (low, high) = (first(s[0] & 0xffff, s[1] & 0xffff, 16), first(s[0] >> 16, s[1] >> 16, 16));
    let one = first(s[0], s[1], 32);
    Out { d: [f.0.apply([s[0], s[1]], p[0]), 0], p: if f.0.two { [low, high] } else { [one, one] } }
});

#[derive(Clone, Copy)]
pub(super) struct MinMax3(pub(super) Rule);
lane_function!([] MinMax3, 3 1 => 1 0, |f, s, p| Out::word(f.0.apply([s[0], s[1], s[2]], p[0])));

#[derive(Clone, Copy)]
pub(super) struct AddMinMax(pub(super) Rule);
lane_function!([] AddMinMax, 3 1 => 1 0, |f, s, p| {
    let low = s[0].wrapping_add(s[1]) & 0xffff;
    let halves = low | (s[0] & 0xffff_0000).wrapping_add(s[1] & 0xffff_0000);
    let sum = if f.0.two { halves } else { s[0].wrapping_add(s[1]) };
    Out::word(f.0.apply([sum, s[2]], p[0]))
});

#[derive(Clone, Copy)]
pub(super) struct MinMax64 {
    pub(super) signed: bool,
}
lane_function!([] MinMax64, 4 1 => 2 0, |f, s, p| {
    let bias = if f.signed { 1 << 63 } else { 0 };
    let (a, b) = (pair(s[0], s[1]), pair(s[2], s[3]));
    let less = (a ^ bias) < (b ^ bias);
    Out::wide(if less == p[0] { a } else { b })
});
