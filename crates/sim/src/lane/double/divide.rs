//! Quotients, roots and tests.

use lanescope_ir::op::float::{Kind, Rounding};

use super::{pair, with_nan};
use crate::lane::float::divide::is_kind;
use crate::lane::mufu::reciprocal_root_high;
use crate::lane::round::{Exact, Format, Value};
use crate::lane::{LaneFunction, Out};

#[derive(Clone, Copy)]
pub(super) struct Div(pub(super) Rounding);

impl LaneFunction for Div {
    const SRC: usize = 4;
    const DST: usize = 2;
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let (a, b) = (pair(s[0], s[1]), pair(s[2], s[3]));
        let near = f64::from_bits(a) / f64::from_bits(b);
        let r = match (Value::read(a, Format::F64), Value::read(b, Format::F64)) {
            // Overflow of the nearest quotient is not that of the others.
            (Value::Finite(x), Value::Finite(y)) if self.0 != Rounding::Nearest && y.significand != 0 => {
                Exact::quotient(x, y).round(Format::F64, self.0)
            }
            _ => near.to_bits(),
        };
        Out::wide(with_nan(r, [a, b]))
    }
}

#[derive(Clone, Copy)]
pub(super) struct Sqrt(pub(super) Rounding);

impl LaneFunction for Sqrt {
    const SRC: usize = 2;
    const DST: usize = 2;
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let a = pair(s[0], s[1]);
        let r = match Value::read(a, Format::F64) {
            Value::Finite(x) if self.0 != Rounding::Nearest && !x.negative && x.significand != 0 => {
                x.root().round(Format::F64, self.0)
            }
            _ => f64::from_bits(a).sqrt().to_bits(),
        };
        Out::wide(with_nan(r, [a]))
    }
}

/// The approximation refined once: y + y e (1/2 + 3/8 e) with e = 1 - x y^2.
fn refined(x: f64) -> f64 {
    let y = f64::from_bits(u64::from(reciprocal_root_high((x.to_bits() >> 32) as u32)) << 32);
    let e = (-(y * y)).mul_add(x, 1.0);
    e.mul_add(0.375, 0.5).mul_add(y * e, y)
}

#[derive(Clone, Copy)]
pub(super) struct RsqrtApprox;

impl LaneFunction for RsqrtApprox {
    const SRC: usize = 2;
    const DST: usize = 2;
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let a = pair(s[0], s[1]);
        let x = f64::from_bits(a);
        let sign = a & Format::F64.sign();
        // Below the normal numbers by 2^54, of which 2^27 comes back.
        let r = match x {
            _ if x == 0.0 => Format::F64.infinity() | sign,
            _ if x.is_nan() || sign != 0 => f64::NAN.to_bits(),
            f64::INFINITY => 0,
            _ if x < f64::MIN_POSITIVE => (refined(x * 18_014_398_509_481_984.0) * 134_217_728.0).to_bits(),
            _ => refined(x).to_bits(),
        };
        Out::wide(with_nan(r, [a]))
    }
}

#[derive(Clone, Copy)]
pub(super) struct Test(pub(super) Kind);

impl LaneFunction for Test {
    const SRC: usize = 2;
    const DST: usize = 0;
    const PDST: usize = 1;
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        Out::preds(is_kind(pair(s[0], s[1]), Format::F64, self.0), false)
    }
}
