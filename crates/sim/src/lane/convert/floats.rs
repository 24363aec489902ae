//! Between floats, and to integral values.

use lanescope_ir::op::convert::Tf32Rounding;
use lanescope_ir::op::float::Rounding;

use super::ints::source;
use crate::lane::round::{Exact, Format, NAN32, Value, canonical, flush, narrow};
use crate::lane::{LaneFunction, Out};

const QUIET32: u32 = 1 << 22;
const QUIET64: u64 = 1 << 51;

/// f32 to f64.
#[derive(Clone, Copy)]
pub(super) struct Widen {
    pub(super) ftz: bool,
}

impl LaneFunction for Widen {
    const SRC: usize = 1;
    const DST: usize = 2;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let a = if self.ftz { flush(s[0]) } else { s[0] };
        let x = f32::from_bits(a);
        let sign = u64::from(a >> 31) << 63;
        let payload = u64::from(a & 0x007f_ffff) << 29;
        let nan = sign | Format::F64.infinity() | QUIET64 | payload;
        // Flushing goes with f32's own NaN.
        let nan = if self.ftz { 0x7fff_ffff_e000_0000 } else { nan };
        Out::wide(if x.is_nan() { nan } else { f64::from(x).to_bits() })
    }
}

/// f64 to f32.
#[derive(Clone, Copy)]
pub(super) struct Narrow {
    pub(super) round: Rounding,
    pub(super) ftz: bool,
}

impl LaneFunction for Narrow {
    const SRC: usize = 2;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let a = u64::from(s[1]) << 32 | u64::from(s[0]);
        let x = f64::from_bits(a);
        let nan = s[1] & 0x8000_0000 | 0x7f80_0000 | QUIET32 | (a >> 29) as u32 & 0x007f_ffff;
        let r = if x.is_nan() { nan } else { narrow(x, self.round).to_bits() };
        Out::word(if self.ftz { flush(r) } else { r })
    }
}

/// Any float to any other of `WORDS` words.
#[derive(Clone, Copy)]
pub(super) struct FloatToFloat<const WORDS: usize> {
    pub(super) from: Format,
    pub(super) to: Format,
    pub(super) round: Rounding,
    pub(super) ftz: bool,
}

impl<const WORDS: usize> LaneFunction for FloatToFloat<WORDS> {
    const SRC: usize = 2;
    const DST: usize = WORDS;
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let bits = source(s, self.from);
        let bits = if self.ftz && self.from == Format::F32 { u64::from(flush(bits as u32)) } else { bits };
        let sign = |negative: bool| if negative { self.to.sign() } else { 0 };
        let negative = bits & self.from.sign() != 0;
        Out::wide(match Value::read(bits, self.from) {
            Value::Nan if self.from == Format::F64 || self.to == Format::F64 => {
                let mantissa = u128::from(bits) << 64 >> self.from.mantissa << self.to.mantissa >> 64;
                let quiet = 1 << (self.to.mantissa - 1);
                sign(negative) | self.to.infinity() | quiet | mantissa as u64 & ((1 << self.to.mantissa) - 1)
            }
            Value::Nan => self.to.sign() - 1,
            Value::Infinite(negative) => sign(negative) | self.to.infinity(),
            Value::Finite(x) => {
                let r = x.round(self.to, self.round);
                if self.ftz && self.to == Format::F32 { u64::from(flush(r as u32)) } else { r }
            }
        })
    }
}

/// f32 to an integral value.
#[derive(Clone, Copy)]
pub(super) struct Integral32 {
    pub(super) round: Rounding,
    pub(super) ftz: bool,
}

impl LaneFunction for Integral32 {
    const SRC: usize = 1;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let x = f32::from_bits(if self.ftz { flush(s[0]) } else { s[0] });
        Out::word(canonical(match self.round {
            Rounding::Nearest => x.round_ties_even(),
            Rounding::Zero => x.trunc(),
            Rounding::Down => x.floor(),
            Rounding::Up => x.ceil(),
        }))
    }
}

#[inline(always)]
fn integral(x: f64, round: Rounding) -> f64 {
    match round {
        Rounding::Nearest => x.round_ties_even(),
        Rounding::Zero => x.trunc(),
        Rounding::Down => x.floor(),
        Rounding::Up => x.ceil(),
    }
}

/// f64 to an integral value.
#[derive(Clone, Copy)]
pub(super) struct Integral64 {
    pub(super) round: Rounding,
    pub(super) ftz: bool,
}

impl LaneFunction for Integral64 {
    const SRC: usize = 2;
    const DST: usize = 2;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let a = u64::from(s[1]) << 32 | u64::from(s[0]);
        let a = if self.ftz & (a & Format::F64.infinity() == 0) { a & Format::F64.sign() } else { a };
        let x = f64::from_bits(a);
        Out::wide(if x.is_nan() { a | QUIET64 } else { integral(x, self.round).to_bits() })
    }
}

/// A half to an integral value.
#[derive(Clone, Copy)]
pub(super) struct Integral16 {
    pub(super) format: Format,
    pub(super) round: Rounding,
    pub(super) ftz: bool,
}

impl LaneFunction for Integral16 {
    const SRC: usize = 1;
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let bits = u64::from(s[0] & 0xffff);
        let Value::Finite(x) = Value::read(bits, self.format) else {
            let nan = bits & 0x7fff > self.format.infinity();
            return Out::word(if nan { NAN32 >> 16 } else { bits as u32 });
        };
        let tiny = x.significand >> self.format.mantissa == 0;
        let significand = if self.ftz && tiny { 0 } else { x.to_magnitude(self.round) };
        let r = Exact { negative: x.negative, exponent: 0, significand };
        // Exact already, so that the rounding does not matter.
        Out::word(if x.exponent >= 0 { bits as u32 } else { r.round(self.format, Rounding::Nearest) as u32 })
    }
}

/// f32 to tf32.
#[derive(Clone, Copy)]
pub(super) struct ToTf32 {
    pub(super) round: Tf32Rounding,
    pub(super) relu: bool,
    pub(super) finite: bool,
}

impl LaneFunction for ToTf32 {
    const SRC: usize = 1;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        const LOST: u32 = 0x1fff;
        const INFINITY: u32 = 0x7f80_0000;
        let magnitude = s[0] & 0x7fff_ffff;
        let half = match self.round {
            Tf32Rounding::Away => 0x1000,
            Tf32Rounding::Nearest => 0xfff + (s[0] >> 13 & 1),
            Tf32Rounding::Zero => 0,
        };
        let canonical = magnitude > INFINITY && self.round != Tf32Rounding::Away;
        let r = s[0].wrapping_add(if magnitude < INFINITY { half } else { 0 }) & !LOST;
        let clamped = self.finite && r & 0x7fff_ffff >= INFINITY;
        let r = if clamped { r - (LOST + 1) } else { r };
        let r = if self.relu && r >> 31 == 1 { 0 } else { r };
        Out::word(if canonical { 0x7fff_ffff & !LOST } else { r })
    }
}
