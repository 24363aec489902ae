//! Comparisons.

use lanescope_ir::op::float::{self as op, Combine};

use crate::lane::round::source;
use crate::lane::{LaneFunction, Out};

/// Whether `compare`'s relation holds.
#[inline(always)]
pub(in crate::lane) fn holds<T: PartialOrd + Copy>(compare: op::Compare, a: T, b: T) -> bool {
    let r = compare.relation.0;
    let (less, equal, greater) = (a < b, a == b, a > b);
    let unordered = !(less | equal | greater);
    ((r & 1 != 0) & less) | ((r & 2 != 0) & equal) | ((r & 4 != 0) & greater) | ((r & 8 != 0) & unordered)
}

/// `x` combined with the predicate `p`.
#[inline(always)]
pub(in crate::lane) fn combine(how: Combine, x: bool, p: bool) -> bool {
    match how {
        Combine::And => x & p,
        Combine::Or => x | p,
        Combine::Xor => x ^ p,
    }
}

/// Two predicates of a comparison.
#[derive(Clone, Copy)]
pub(super) struct Compare<const FTZ: bool>(pub(super) op::Compare);

impl<const FTZ: bool> LaneFunction for Compare<FTZ> {
    const SRC: usize = 2;
    const PSRC: usize = 1;
    const DST: usize = 0;
    const PDST: usize = 2;
    #[inline(always)]
    fn eval(self, s: [u32; 6], p: [bool; 3]) -> Out {
        let x = holds(self.0, source(s[0], FTZ), source(s[1], FTZ));
        Out::preds(combine(self.0.combine, x, p[0]), combine(self.0.combine, !x, p[0]))
    }
}

/// 1.0 or 0.0.
#[derive(Clone, Copy)]
pub(super) struct CompareToFloat {
    pub(super) compare: op::Compare,
    pub(super) ftz: bool,
}

impl LaneFunction for CompareToFloat {
    const SRC: usize = 2;
    const PSRC: usize = 1;
    #[inline(always)]
    fn eval(self, s: [u32; 6], p: [bool; 3]) -> Out {
        let x = holds(self.compare, source(s[0], self.ftz), source(s[1], self.ftz));
        Out::word(if combine(self.compare.combine, x, p[0]) { 1f32.to_bits() } else { 0 })
    }
}

/// Whether a quotient needs the slow path.
#[derive(Clone, Copy)]
pub(super) struct DivisionCheck;

impl LaneFunction for DivisionCheck {
    const SRC: usize = 2;
    const DST: usize = 0;
    const PDST: usize = 1;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let exponent = |x: u32| (x >> 23 & 0xff) as i32;
        let (a, b) = (exponent(s[0]), exponent(s[1]));
        // As measured for all exponents: neither sign nor mantissa matters.
        let fast = (25..255).contains(&a) & (2..=251).contains(&b) & (-124..=126).contains(&(a - b));
        Out::preds(!fast, false)
    }
}
