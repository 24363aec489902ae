//! Between integers and floats.

use lanescope_ir::op::convert::Integer;
use lanescope_ir::op::float::Rounding;

use crate::lane::round::{Exact, Format, Value};
use crate::lane::{LaneFunction, Out};

/// A 32-bit integer to f32, to nearest.
#[derive(Clone, Copy)]
pub(super) struct WordToF32<const SIGNED: bool>;

impl<const SIGNED: bool> LaneFunction for WordToF32<SIGNED> {
    const SRC: usize = 1;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let x = if SIGNED { s[0] as i32 as f32 } else { s[0] as f32 };
        Out::word(x.to_bits())
    }
}

/// f32 to a 32-bit integer, towards zero, NaN giving 0.
#[derive(Clone, Copy)]
pub(super) struct F32ToWord<const SIGNED: bool>;

impl<const SIGNED: bool> LaneFunction for F32ToWord<SIGNED> {
    const SRC: usize = 1;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let x = f32::from_bits(s[0]);
        Out::word(if SIGNED { x as i32 as u32 } else { x as u32 })
    }
}

/// Any integer to a float of `WORDS` words.
#[derive(Clone, Copy)]
pub(super) struct FromInt<const WORDS: usize> {
    pub(super) from: Integer,
    pub(super) shift: u8,
    pub(super) to: Format,
    pub(super) round: Rounding,
}

impl<const WORDS: usize> LaneFunction for FromInt<WORDS> {
    const SRC: usize = 2;
    const DST: usize = WORDS;
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        let x = (u64::from(s[1]) << 32 | u64::from(s[0])).checked_shr(u32::from(self.shift)).unwrap_or(0);
        let spare = 64u32.saturating_sub(u32::from(self.from.bits));
        let top = x.checked_shl(spare).unwrap_or(0);
        let value = if self.from.signed {
            i128::from((top as i64).checked_shr(spare).unwrap_or(0))
        } else {
            i128::from(top.checked_shr(spare).unwrap_or(0))
        };
        Out::wide(Exact::integer(value).round(self.to, self.round))
    }
}

/// Any float to an integer of at most 32 bits, or with [`ToInt64`] of 64.
#[derive(Clone, Copy)]
pub(super) struct ToInt {
    from: Format,
    round: Rounding,
    ftz: bool,
    nan: i128,
    low: i128,
    high: i128,
}

impl ToInt {
    pub(super) fn new(from: Format, to: Integer, round: Rounding, ftz: bool, nan_to_zero: bool) -> ToInt {
        let bits = u32::from(to.bits.clamp(1, 64));
        let (low, high) =
            if to.signed { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
        ToInt { from, round, ftz, nan: if nan_to_zero { 0 } else { 1i128 << (bits - 1) }, low, high }
    }

    /// The integer, sign- or zero-extended.
    pub(super) fn convert(self, bits: u64) -> i128 {
        match Value::read(bits, self.from) {
            Value::Nan => self.nan,
            Value::Infinite(negative) => {
                if negative {
                    self.low
                } else {
                    self.high
                }
            }
            Value::Finite(x) => {
                let tiny = x.significand >> self.from.mantissa == 0;
                if self.ftz && tiny {
                    return 0;
                }
                let magnitude = i128::try_from(x.to_magnitude(self.round)).unwrap_or(i128::MAX);
                (if x.negative { -magnitude } else { magnitude }).clamp(self.low, self.high)
            }
        }
    }
}

impl LaneFunction for ToInt {
    const SRC: usize = 2;
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        Out::word(self.convert(source(s, self.from)) as u32)
    }
}

/// As [`ToInt`], with a result of two words.
#[derive(Clone, Copy)]
pub(super) struct ToInt64(pub(super) ToInt);

impl LaneFunction for ToInt64 {
    const SRC: usize = 2;
    const DST: usize = 2;
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        Out::wide(self.0.convert(source(s, self.0.from)) as u64)
    }
}

/// The bits of a source in `format`.
pub(super) fn source(s: [u32; 6], format: Format) -> u64 {
    let x = u64::from(s[1]) << 32 | u64::from(s[0]);
    x & (format.sign() | (format.sign() - 1))
}

/// Any integer to one of at most 32 bits, or with [`IntToInt64`] of 64.
#[derive(Clone, Copy)]
pub(super) struct IntToInt {
    pub(super) from: Integer,
    pub(super) to: Integer,
    pub(super) saturate: bool,
}

impl IntToInt {
    #[inline(always)]
    fn convert(self, lo: u32, hi: u32) -> u64 {
        let narrow = |x: u64, to: Integer| {
            let spare = 64 - u32::from(to.bits.clamp(1, 64));
            if to.signed { ((x << spare) as i64 >> spare) as u64 } else { x << spare >> spare }
        };
        let x = narrow(u64::from(lo) | u64::from(hi) << 32, self.from);
        if !self.saturate {
            return narrow(x, self.to);
        }
        let value = if self.from.signed { i128::from(x as i64) } else { i128::from(x) };
        let bits = u32::from(self.to.bits.clamp(1, 64));
        let (least, most) =
            if self.to.signed { (-1i128 << (bits - 1), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
        value.clamp(least, most) as u64
    }
}

impl LaneFunction for IntToInt {
    const SRC: usize = 2;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        Out::word(self.convert(s[0], s[1]) as u32)
    }
}

/// See [`IntToInt`].
#[derive(Clone, Copy)]
pub(super) struct IntToInt64(pub(super) IntToInt);

impl LaneFunction for IntToInt64 {
    const SRC: usize = 2;
    const DST: usize = 2;
    #[inline(always)]
    fn eval(self, s: [u32; 6], _: [bool; 3]) -> Out {
        Out::wide(self.0.convert(s[0], s[1]))
    }
}
