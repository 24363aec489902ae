//! Functions of the double family.
//!
//! Rounding to nearest is the CPU's own arithmetic; other roundings are done on 128-bit integers.

mod divide;

use lanescope_ir::op::double::{DoubleFn, Signs};
use lanescope_ir::op::float::{self as op, Rounding};

use super::float::compare::{combine, holds};
use super::round::{Exact, Format, NAN64, Value};
use super::{Bind, LaneFunction, Out};

pub(super) fn bind<B: Bind>(f: &DoubleFn, b: B) -> B::Output {
    match *f {
        DoubleFn::Add(Rounding::Nearest, signs) => b.bind(AddNearest(signs)),
        DoubleFn::Add(round, signs) => b.bind(Add(round, signs)),
        DoubleFn::Mul(Rounding::Nearest, signs) => b.bind(MulNearest(signs)),
        DoubleFn::Mul(round, signs) => b.bind(Mul(round, signs)),
        DoubleFn::Fma(Rounding::Nearest, signs) => b.bind(FmaNearest(signs)),
        DoubleFn::Fma(round, signs) => b.bind(Fma(round, signs)),
        DoubleFn::Compare(compare) => b.bind(Compare(compare)),
        DoubleFn::Prefer { smaller } => b.bind(Prefer(smaller)),
        DoubleFn::MinMax { smaller } => b.bind(MinMax(smaller)),
        DoubleFn::Div(round) => b.bind(divide::Div(round)),
        DoubleFn::Sqrt(round) => b.bind(divide::Sqrt(round)),
        DoubleFn::RsqrtApprox => b.bind(divide::RsqrtApprox),
        DoubleFn::Test(kind) => b.bind(divide::Test(kind)),
    }
}

const QUIET: u64 = 1 << 51;

#[inline(always)]
fn pair(lo: u32, hi: u32) -> u64 {
    u64::from(hi) << 32 | u64::from(lo)
}

#[inline(always)]
fn is_nan(x: u64) -> bool {
    x & !Format::F64.sign() > Format::F64.infinity()
}

/// `r`, or the NaN that the sources call for: the last of them.
#[inline(always)]
fn with_nan<const N: usize>(r: u64, sources: [u64; N]) -> u64 {
    let r = if is_nan(r) { NAN64 } else { r };
    sources.into_iter().fold(r, |r, x| if is_nan(x) { x | QUIET } else { r })
}

/// Source `i` with its sign changes.
#[inline(always)]
fn signed(x: u64, i: u32, signs: Signs) -> u64 {
    let bit = |mask: u8| u64::from(mask >> i & 1) << 63;
    (x & !bit(signs.magnitude)) ^ bit(signs.negate)
}

/// a + b to nearest.
#[derive(Clone, Copy)]
struct AddNearest(Signs);

impl LaneFunction for AddNearest {
    const SRC: usize = 4;
    const DST: usize = 2;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let (a, b) = (pair(s[0], s[1]), pair(s[2], s[3]));
        let r = f64::from_bits(signed(a, 0, self.0)) + f64::from_bits(signed(b, 1, self.0));
        Out::wide(with_nan(r.to_bits(), [a, b]))
    }
}

/// a * b to nearest.
#[derive(Clone, Copy)]
struct MulNearest(Signs);

impl LaneFunction for MulNearest {
    const SRC: usize = 4;
    const DST: usize = 2;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let (a, b) = (pair(s[0], s[1]), pair(s[2], s[3]));
        let r = f64::from_bits(signed(a, 0, self.0)) * f64::from_bits(signed(b, 1, self.0));
        Out::wide(with_nan(r.to_bits(), [a, b]))
    }
}

/// a * b + c to nearest.
#[derive(Clone, Copy)]
struct FmaNearest(Signs);

impl LaneFunction for FmaNearest {
    const SRC: usize = 6;
    const DST: usize = 2;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let (a, b, c) = (pair(s[0], s[1]), pair(s[2], s[3]), pair(s[4], s[5]));
        let factor = |x, i| f64::from_bits(signed(x, i, self.0));
        let r = factor(a, 0).mul_add(factor(b, 1), factor(c, 2));
        Out::wide(with_nan(r.to_bits(), [a, c, b]))
    }
}

/// a * b + c. Where a source is not finite nothing is rounded and the CPU's result holds.
fn fma(a: u64, b: u64, c: u64, round: Rounding) -> u64 {
    let read = |x| Value::read(x, Format::F64);
    let (Value::Finite(x), Value::Finite(y), Value::Finite(z)) = (read(a), read(b), read(c)) else {
        return f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c)).to_bits();
    };
    Exact::sum(Exact::product(x, y), z, round).round(Format::F64, round)
}

/// a * b + c, as DMMA has it.
pub(crate) fn multiply_add(a: u64, b: u64, c: u64, round: Rounding) -> u64 {
    let r = if round == Rounding::Nearest {
        f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c)).to_bits()
    } else {
        fma(a, b, c, round)
    };
    with_nan(r, [a, c, b])
}

/// a + b.
#[derive(Clone, Copy)]
struct Add(Rounding, Signs);

impl LaneFunction for Add {
    const SRC: usize = 4;
    const DST: usize = 2;
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let (a, b) = (pair(s[0], s[1]), pair(s[2], s[3]));
        let (x, y) = (signed(a, 0, self.1), signed(b, 1, self.1));
        Out::wide(with_nan(fma(x, 1f64.to_bits(), y, self.0), [a, b]))
    }
}

/// a * b.
#[derive(Clone, Copy)]
struct Mul(Rounding, Signs);

impl LaneFunction for Mul {
    const SRC: usize = 4;
    const DST: usize = 2;
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let (a, b) = (pair(s[0], s[1]), pair(s[2], s[3]));
        let (x, y) = (signed(a, 0, self.1), signed(b, 1, self.1));
        // A zero of the product's sign changes nothing, not even a zero product.
        let zero = (x ^ y) & Format::F64.sign();
        Out::wide(with_nan(fma(x, y, zero, self.0), [a, b]))
    }
}

/// a * b + c.
#[derive(Clone, Copy)]
struct Fma(Rounding, Signs);

impl LaneFunction for Fma {
    const SRC: usize = 6;
    const DST: usize = 2;
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let (a, b, c) = (pair(s[0], s[1]), pair(s[2], s[3]), pair(s[4], s[5]));
        let (x, y, z) = (signed(a, 0, self.1), signed(b, 1, self.1), signed(c, 2, self.1));
        Out::wide(with_nan(fma(x, y, z, self.0), [a, c, b]))
    }
}

/// Two predicates of a comparison.
#[derive(Clone, Copy)]
struct Compare(op::Compare);

impl LaneFunction for Compare {
    const SRC: usize = 4;
    const PSRC: usize = 1;
    const DST: usize = 0;
    const PDST: usize = 2;
    #[inline(always)]
    fn eval(self, s: [u32; 6], p: [bool; 3]) -> Out {
        let x = holds(self.0, f64::from_bits(pair(s[0], s[1])), f64::from_bits(pair(s[2], s[3])));
        Out::preds(combine(self.0.combine, x, p[0]), combine(self.0.combine, !x, p[0]))
    }
}

/// Whether a is the one to take, -0 being smaller than +0.
#[inline(always)]
fn prefer_first(a: u64, b: u64, smaller: bool) -> bool {
    let (x, y) = (f64::from_bits(a), f64::from_bits(b));
    let less = (x < y) | ((x == y) & (a > b));
    ((less == smaller) | y.is_nan()) & !x.is_nan()
}

/// Which of two to take, and whether neither is a number.
#[derive(Clone, Copy)]
struct Prefer(bool);

impl LaneFunction for Prefer {
    const SRC: usize = 4;
    const DST: usize = 0;
    const PDST: usize = 2;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let (a, b) = (pair(s[0], s[1]), pair(s[2], s[3]));
        Out::preds(prefer_first(a, b, self.0), is_nan(a) & is_nan(b))
    }
}

/// The smaller or larger of two.
#[derive(Clone, Copy)]
struct MinMax(bool);

impl LaneFunction for MinMax {
    const SRC: usize = 4;
    const DST: usize = 2;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let (a, b) = (pair(s[0], s[1]), pair(s[2], s[3]));
        let picked = if prefer_first(a, b, self.0) { a } else { b };
        Out::wide(if is_nan(picked) { picked | QUIET } else { picked })
    }
}
