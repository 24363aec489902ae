//! Functions of the multi-function unit.

use lanescope_ir::op::float::{HalfFormat, Special};

use super::round::{Exact, Format, Value, canonical, flush};
use super::{LaneFunction, Out};

/// One function in f32, or one word of an f64.
#[derive(Clone, Copy)]
pub(super) struct Mufu(pub(super) Special);

impl LaneFunction for Mufu {
    const SRC: usize = 1;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        Out::word(special(self.0, s[0]))
    }
}

/// One function in a 16-bit format.
#[derive(Clone, Copy)]
pub(super) struct MufuHalf {
    pub(super) function: Special,
    pub(super) format: HalfFormat,
}

impl LaneFunction for MufuHalf {
    const SRC: usize = 1;
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let format = match self.format {
            HalfFormat::F16 => Format::F16,
            HalfFormat::Bf16 => Format::BF16,
        };
        let wide = match Value::read(u64::from(s[0] & 0xffff), format) {
            Value::Nan => f64::NAN,
            Value::Infinite(negative) => {
                if negative {
                    f64::NEG_INFINITY
                } else {
                    f64::INFINITY
                }
            }
            Value::Finite(x) => f64::from_bits(x.round(Format::F64, Default::default())),
        };
        let r = compute(self.function, wide).to_bits();
        Out::word(match Value::read(r, Format::F64) {
            Value::Nan => 0x7fff,
            Value::Infinite(negative) => (format.infinity() | if negative { format.sign() } else { 0 }) as u32,
            Value::Finite(x) => Exact::round(x, format, Default::default()) as u32,
        })
    }
}

/// The function of a number, as exactly as f64 gives it.
fn compute(function: Special, x: f64) -> f64 {
    match function {
        Special::Rcp => 1.0 / x,
        Special::Rsq if x == 0.0 => 1.0 / x,
        Special::Rsq => 1.0 / x.sqrt(),
        Special::Sqrt => x.sqrt(),
        Special::Lg2 => x.log2(),
        Special::Ex2 => x.exp2(),
        Special::Sin => turn(x).sin(),
        Special::Cos => turn(x).cos(),
        Special::Tanh => x.tanh(),
        Special::Rcp64High | Special::Rsq64High => f64::NAN,
    }
}

/// The angle of `x` turns, between minus half a turn and half a turn.
fn turn(x: f64) -> f64 {
    let part = if x.is_finite() { x - x.round() } else { f64::NAN };
    (if part == 0.0 { 0f64.copysign(x) } else { part }) * std::f64::consts::TAU
}

fn special(function: Special, a: u32) -> u32 {
    match function {
        Special::Tanh => canonical(f64::from(f32::from_bits(a)).tanh() as f32),
        Special::Rcp64High | Special::Rsq64High => special64(function, a),
        _ => {
            let x = f64::from(f32::from_bits(flush(a)));
            flush(canonical(compute(function, x) as f32))
        }
    }
}

/// High word of an approximation; subnormals count as zeros.
fn special64(function: Special, high: u32) -> u32 {
    let flush64 = |x: u64| if x & Format::F64.infinity() == 0 { x & Format::F64.sign() } else { x };
    let x = f64::from_bits(flush64(u64::from(high) << 32));
    let r = if function == Special::Rcp64High { 1.0 / x } else { compute(Special::Rsq, x) };
    if r.is_nan() { 0x7fff_ffff } else { (flush64(r.to_bits()) >> 32) as u32 }
}
