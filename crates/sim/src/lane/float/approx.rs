//! Approximations of PTX: the multi-function unit between the scalings that keep it away from subnormals, as ptxas
//! composes them for sm_90.

use lanescope_ir::op::float::{Approx as Function, Rounding, Special};

use crate::lane::mufu::special;
use crate::lane::round::{canonical, flush, narrow};
use crate::lane::{LaneFunction, Out};

/// 2^-126, the smallest normal number.
const SMALLEST: f32 = f32::MIN_POSITIVE;
/// 2^126, from which on reciprocals are subnormal.
const LARGE: f32 = 8.507_059e37;
/// 2^24
const UP: f32 = 16_777_216.0;
/// 1 / (2 pi)
const TURN: f32 = f32::from_bits(0x3e22_f983);

#[derive(Clone, Copy)]
pub(super) struct Approx {
    pub(super) function: Function,
    pub(super) ftz: bool,
}

fn mul(a: u32, b: f32) -> u32 {
    canonical(f32::from_bits(a) * b)
}

/// `FMUL.FTZ`
fn mul_flushed(a: u32, b: u32) -> u32 {
    flush(canonical(f32::from_bits(flush(a)) * f32::from_bits(flush(b))))
}

/// Whether |a| is below the normal numbers; not for a NaN.
fn is_small(a: u32) -> bool {
    f32::from_bits(a).abs() < SMALLEST
}

fn divide(a: u32, b: u32, full: bool, ftz: bool) -> u32 {
    let large = full && f32::from_bits(b).abs() > LARGE;
    if ftz {
        let quarter = 0.25f32.to_bits();
        let (a, b) = if large { (mul_flushed(a, quarter), mul_flushed(b, quarter)) } else { (a, b) };
        return mul_flushed(special(Special::Rcp, b), a);
    }
    let scale = if large { 0.25 } else { 1.0 };
    let scale = if is_small(b) { UP } else { scale };
    let scaled = |x: u32| if scale == 1.0 { x } else { mul(x, scale) };
    mul(special(Special::Rcp, scaled(b)), f32::from_bits(scaled(a)))
}

fn reciprocal(a: u32) -> u32 {
    let scale = match f32::from_bits(a).abs() {
        x if x > LARGE => 0.25,
        x if x < SMALLEST => UP,
        _ => 1.0,
    };
    mul(special(Special::Rcp, mul(a, scale)), scale)
}

/// `function` of a, or of 2^24 a with the result times `back`.
fn scaled(function: Special, a: u32, back: f32) -> u32 {
    if is_small(a) { mul(special(function, mul(a, UP)), back) } else { special(function, a) }
}

fn wave(function: Special, a: u32) -> u32 {
    let turns = f64::from(f32::from_bits(a)) * f64::from(TURN);
    special(function, canonical(narrow(turns, Rounding::Zero)))
}

fn logarithm(a: u32) -> u32 {
    if is_small(a) {
        canonical(f32::from_bits(special(Special::Lg2, mul(a, UP))) - 24.0)
    } else {
        special(Special::Lg2, a)
    }
}

fn power(a: u32) -> u32 {
    if f32::from_bits(a) < -126.0 {
        let root = special(Special::Ex2, mul(a, 0.5));
        return mul(root, f32::from_bits(root));
    }
    special(Special::Ex2, a)
}

impl LaneFunction for Approx {
    const SRC: usize = 2;
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let (a, b) = (s[0], s[1]);
        Out::word(match (self.function, self.ftz) {
            (Function::Div, ftz) => divide(a, b, false, ftz),
            (Function::DivFull, ftz) => divide(a, b, true, ftz),
            (Function::Sin, _) => wave(Special::Sin, a),
            (Function::Cos, _) => wave(Special::Cos, a),
            (Function::Rcp, false) => reciprocal(a),
            (Function::Rcp, true) => special(Special::Rcp, a),
            (Function::Sqrt, false) => scaled(Special::Sqrt, a, 1.0 / 4096.0),
            (Function::Sqrt, true) => special(Special::Sqrt, a),
            (Function::Rsqrt, false) => scaled(Special::Rsq, a, 4096.0),
            (Function::Rsqrt, true) => special(Special::Rsq, a),
            (Function::Lg2, false) => logarithm(a),
            (Function::Lg2, true) => special(Special::Lg2, a),
            (Function::Ex2, false) => power(a),
            (Function::Ex2, true) => special(Special::Ex2, a),
        })
    }
}
