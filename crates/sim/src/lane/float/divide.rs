//! Quotients and roots, rounded once; tests of kinds.

use lanescope_ir::op::float::{Arith, Kind};

use super::arith::finish;
use crate::lane::round::{Format, source};
use crate::lane::{LaneFunction, Out};

/// `near`, the exact value plus `error` having been rounded to it, rounded to odd instead.
#[inline(always)]
fn to_odd(near: f64, error: f64) -> f64 {
    // NaN errors (of infinities) fail both comparisons.
    let inexact = (error > 0.0) | (error < 0.0);
    let too_far = inexact & ((error > 0.0) != (near > 0.0));
    f64::from_bits(near.to_bits().wrapping_sub(u64::from(too_far)) | u64::from(inexact))
}

#[derive(Clone, Copy)]
pub(super) struct Div(pub(super) Arith);

impl LaneFunction for Div {
    const SRC: usize = 2;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let (a, b) = (f64::from(source(s[0], self.0.ftz)), f64::from(source(s[1], self.0.ftz)));
        let q = a / b;
        // The remainder of a rounded quotient is exact; with b's sign it is the error's direction.
        let rest = if q.is_finite() { (-q).mul_add(b, a) * b.signum() } else { 0.0 };
        Out::word(finish(to_odd(q, rest), self.0))
    }
}

#[derive(Clone, Copy)]
pub(super) struct Sqrt(pub(super) Arith);

impl LaneFunction for Sqrt {
    const SRC: usize = 1;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let a = f64::from(source(s[0], self.0.ftz));
        let root = a.sqrt();
        let rest = if root.is_finite() { (-root).mul_add(root, a) } else { 0.0 };
        Out::word(finish(to_odd(root, rest), self.0))
    }
}

/// Whether `bits` of `format` are of the kind.
#[inline(always)]
pub(in crate::lane) fn is_kind(bits: u64, format: Format, kind: Kind) -> bool {
    let magnitude = bits & (format.sign() - 1);
    let infinity = format.infinity();
    let smallest = 1 << format.mantissa;
    match kind {
        Kind::Finite => magnitude < infinity,
        Kind::Infinite => magnitude == infinity,
        Kind::Number => magnitude <= infinity,
        Kind::NotANumber => magnitude > infinity,
        Kind::Normal => magnitude < infinity && (magnitude >= smallest || magnitude == 0),
        Kind::Subnormal => magnitude < smallest && magnitude != 0,
    }
}

#[derive(Clone, Copy)]
pub(super) struct Test(pub(super) Kind);

impl LaneFunction for Test {
    const SRC: usize = 1;
    const DST: usize = 0;
    const PDST: usize = 1;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        Out::preds(is_kind(u64::from(s[0]), Format::F32, self.0), false)
    }
}
