//! Rounding in software, without touching the CPU's rounding mode.
//!
//! f32 results are computed in f64: a product of two f32 is exact there, a sum is rounded to odd, and a value of 53
//! bits rounded to odd rounds to 24 bits as the exact one would. Everything else (directed f64, 16- and 8-bit
//! formats, integers) goes through [`Exact`], a number with 128 bits of significand.

use lanescope_ir::op::float::Rounding;

/// The one NaN that f32 arithmetic gives.
pub(super) const NAN32: u32 = 0x7fff_ffff;
/// What an invalid f64 operation gives.
pub(super) const NAN64: u64 = 0xfff8_0000_0000_0000;

/// The bits of `x`, every NaN being the same one.
#[inline(always)]
pub(super) fn canonical(x: f32) -> u32 {
    if x.is_nan() { NAN32 } else { x.to_bits() }
}

/// `x`, or a zero of its sign if it is subnormal.
#[inline(always)]
pub(super) fn flush(x: u32) -> u32 {
    if x & 0x7f80_0000 == 0 { x & 0x8000_0000 } else { x }
}

/// `x` as an f32, flushed if `ftz`.
#[inline(always)]
pub(super) fn source(x: u32, ftz: bool) -> f32 {
    f32::from_bits(if ftz { flush(x) } else { x })
}

/// a + b in f64, rounded to odd, the sign of an exact zero as `round` wants it.
#[inline(always)]
pub(super) fn sum_to_odd(a: f64, b: f64, round: Rounding) -> f64 {
    let s = a + b;
    let t = s - a;
    let error = (a - (s - t)) + (b - t);
    let bits = s.to_bits();
    // The error is NaN when the sum is not finite; then both comparisons fail and the sum stays.
    let inexact = (error > 0.0) | (error < 0.0);
    let too_far = inexact & ((error > 0.0) != (s > 0.0));
    let odd = f64::from_bits(bits.wrapping_sub(u64::from(too_far)) | u64::from(inexact));
    let minus_zero = (round == Rounding::Down) & (s == 0.0) & (a.is_sign_negative() != b.is_sign_negative());
    if minus_zero { -0.0 } else { odd }
}

/// `x` (exact, or rounded to odd) as an f32.
#[inline(always)]
pub(super) fn narrow(x: f64, round: Rounding) -> f32 {
    let r = x as f32;
    if round == Rounding::Nearest {
        return r;
    }
    let back = f64::from(r);
    let negative = x.is_sign_negative();
    let away = (round == Rounding::Up) & !negative | (round == Rounding::Down) & negative;
    let grow = away & (back.abs() < x.abs());
    let shrink = !away & (back.abs() > x.abs()) & (x.abs() < f64::INFINITY);
    f32::from_bits(r.to_bits().wrapping_add(u32::from(grow)).wrapping_sub(u32::from(shrink)))
}

/// Half a unit in the 24th digit below 2^-126, the smallest normal f32: from here on, numbers round to it.
pub(super) const NEARLY_NORMAL: f64 = f32::MIN_POSITIVE as f64 * (1.0 - 1.0 / 33_554_432.0);

/// Whether `x` (exact, or rounded to odd), rounded to 24 digits with any exponent, is below the normal f32.
#[inline(always)]
pub(super) fn is_tiny(x: f64, round: Rounding) -> bool {
    let normal = f64::from(f32::MIN_POSITIVE);
    let away = match round {
        Rounding::Nearest => return x.abs() < NEARLY_NORMAL,
        Rounding::Zero => false,
        Rounding::Down => x.is_sign_negative(),
        Rounding::Up => x.is_sign_positive(),
    };
    if away { x.abs() <= normal * (1.0 - 1.0 / 16_777_216.0) } else { x.abs() < normal }
}

/// A binary format: so many bits of exponent and of mantissa under a sign, as IEEE 754 lays them out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Format {
    /// Bits of the exponent.
    pub(super) exponent: u32,
    /// Bits of the mantissa, without the hidden one.
    pub(super) mantissa: u32,
}

impl Format {
    pub(super) const F16: Format = Format { exponent: 5, mantissa: 10 };
    pub(super) const BF16: Format = Format { exponent: 8, mantissa: 7 };
    pub(super) const F32: Format = Format { exponent: 8, mantissa: 23 };
    pub(super) const F64: Format = Format { exponent: 11, mantissa: 52 };

    /// Exponent of the smallest normal number.
    const fn min_exponent(self) -> i32 {
        2 - (1 << (self.exponent - 1))
    }
    /// Bits of infinity.
    pub(super) const fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.mantissa
    }
    /// The sign bit.
    pub(super) const fn sign(self) -> u64 {
        1 << (self.exponent + self.mantissa)
    }
}

/// What some bits of a [`Format`] mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// A NaN.
    Nan,
    /// An infinity; whether it is negative.
    Infinite(bool),
    /// A number.
    Finite(Exact),
}

/// `significand * 2^exponent`, negated if `negative`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exact {
    /// Sign; zeros have one too.
    pub(super) negative: bool,
    /// Power of two of the significand's lowest bit.
    pub(super) exponent: i32,
    /// The digits.
    pub(super) significand: u128,
}

impl Value {
    /// Reads `bits`.
    pub(super) fn read(bits: u64, format: Format) -> Value {
        let negative = bits & format.sign() != 0;
        let magnitude = bits & (format.sign() - 1);
        if magnitude > format.infinity() {
            return Value::Nan;
        }
        if magnitude == format.infinity() {
            return Value::Infinite(negative);
        }
        let field = (magnitude >> format.mantissa) as i32;
        let mantissa = magnitude & ((1 << format.mantissa) - 1);
        let hidden = u64::from(field != 0) << format.mantissa;
        let exponent = format.min_exponent() + field.max(1) - 1 - format.mantissa as i32;
        Value::Finite(Exact { negative, exponent, significand: u128::from(mantissa | hidden) })
    }
}

impl Exact {
    /// An integer.
    pub(super) fn integer(value: i128) -> Exact {
        Exact { negative: value < 0, exponent: 0, significand: value.unsigned_abs() }
    }

    /// a * b. Exact for factors of at most 64 bits.
    pub(super) fn product(a: Exact, b: Exact) -> Exact {
        Exact {
            negative: a.negative != b.negative,
            exponent: a.exponent + b.exponent,
            significand: a.significand.wrapping_mul(b.significand),
        }
    }

    /// a / b to more digits than any format has, what is left over folded into the lowest; b is not zero.
    /// For significands of at most 53 bits.
    pub(super) fn quotient(a: Exact, b: Exact) -> Exact {
        // The quotient of a number with its highest bit at 126 and one of at most 53 bits has at least 74.
        let a = a.normalised();
        let divisor = b.significand.max(1);
        Exact {
            negative: a.negative != b.negative,
            exponent: a.exponent - b.exponent,
            significand: (a.significand / divisor) | u128::from(!a.significand.is_multiple_of(divisor)),
        }
    }

    /// The square root of `self`, which is not negative, likewise.
    pub(super) fn root(self) -> Exact {
        // An even exponent and at least 120 bits, of which the root has half.
        let even = Exact {
            exponent: self.exponent - (self.exponent & 1),
            significand: self.significand << (self.exponent & 1),
            ..self
        };
        let shift = even.significand.leading_zeros() & !1;
        let x = even.significand.checked_shl(shift).unwrap_or(0);
        let root = x.isqrt();
        let left = u128::from(root * root != x);
        // One more digit, so that what is folded in lies below half of the last one kept.
        Exact {
            negative: self.negative,
            exponent: (even.exponent - shift as i32) / 2 - 1,
            significand: root << 1 | left,
        }
    }

    /// The same number with the highest bit of the significand at bit 126 (zero stays zero).
    fn normalised(self) -> Exact {
        let shift = self.significand.leading_zeros() as i32 - 1;
        if self.significand == 0 || shift < 0 {
            return self;
        }
        Exact { exponent: self.exponent - shift, significand: self.significand << shift, ..self }
    }

    /// a + b with every bit below the lowest folded into it, for significands of at most 106 bits: enough to round to
    /// any format of up to 64 bits. An exact zero gets the sign that `round` gives it.
    pub(super) fn sum(a: Exact, b: Exact, round: Rounding) -> Exact {
        if a.significand == 0 && b.significand == 0 {
            let negative = if a.negative == b.negative { a.negative } else { round == Rounding::Down };
            return Exact { negative, exponent: 0, significand: 0 };
        }
        if a.significand == 0 {
            return b;
        }
        if b.significand == 0 {
            return a;
        }
        let (a, b) = (a.normalised(), b.normalised());
        let (big, small) = if (a.exponent, a.significand) >= (b.exponent, b.significand) { (a, b) } else { (b, a) };
        let shift = (big.exponent - small.exponent) as u32;
        let moved = shift_sticky(small.significand, shift);
        if big.negative == small.negative {
            return Exact { significand: big.significand + moved, ..big };
        }
        let significand = big.significand - moved;
        let negative = if significand == 0 { round == Rounding::Down } else { big.negative };
        Exact { negative, significand, ..big }
    }

    /// The integer nearest in the direction of `round`, as a magnitude, saturating at the top of `u128`.
    pub(super) fn to_magnitude(self, round: Rounding) -> u128 {
        if self.exponent >= 0 {
            let room = self.significand.leading_zeros() as i32;
            return if self.significand != 0 && self.exponent > room {
                u128::MAX
            } else {
                self.significand.checked_shl(self.exponent as u32).unwrap_or(0)
            };
        }
        round_shift(self.significand, self.exponent.unsigned_abs(), self.negative, round)
    }

    /// Rounds to `format`. What is too large becomes infinity or the largest number, as `round` says.
    pub(super) fn round(self, format: Format, round: Rounding) -> u64 {
        let sign = if self.negative { format.sign() } else { 0 };
        if self.significand == 0 {
            return sign;
        }
        let top = 127 - self.significand.leading_zeros() as i32 + self.exponent;
        let lowest = top.max(format.min_exponent()) - format.mantissa as i32;
        let shift = lowest - self.exponent;
        let mut rounded = if shift > 0 {
            round_shift(self.significand, shift as u32, self.negative, round)
        } else {
            // Fewer digits than the format has, so that the shift cannot overflow.
            self.significand << shift.unsigned_abs()
        };
        let mut exponent = lowest;
        if rounded >> (format.mantissa + 1) != 0 {
            rounded >>= 1;
            exponent += 1;
        }
        let normal = rounded >> format.mantissa != 0;
        let field = if normal { exponent + format.mantissa as i32 - format.min_exponent() + 1 } else { 0 };
        if field >= (1 << format.exponent) - 1 {
            let away = match round {
                Rounding::Nearest => true,
                Rounding::Zero => false,
                Rounding::Down => self.negative,
                Rounding::Up => !self.negative,
            };
            return sign | (format.infinity() - u64::from(!away));
        }
        sign | ((field as u64) << format.mantissa) | (rounded as u64 & ((1 << format.mantissa) - 1))
    }
}

/// `x >> shift`, the lowest bit set if any bit was lost.
fn shift_sticky(x: u128, shift: u32) -> u128 {
    match x.checked_shr(shift) {
        Some(y) => y | u128::from(y << shift != x),
        None => u128::from(x != 0),
    }
}

/// `x >> shift` rounded.
fn round_shift(x: u128, shift: u32, negative: bool, round: Rounding) -> u128 {
    if shift == 0 {
        return x;
    }
    let kept = x.checked_shr(shift).unwrap_or(0);
    // Two digits say all that matters of what is lost: nothing, less than a half, a half, or more.
    let lost = match shift {
        1 => (x & 1) << 1,
        129.. => u128::from(x != 0),
        _ => {
            let half = x >> (shift - 1) & 1;
            let rest = x & ((1 << (shift - 1)) - 1) != 0;
            half << 1 | u128::from(rest)
        }
    };
    let up = match round {
        Rounding::Nearest => lost == 3 || (lost == 2 && kept & 1 == 1),
        Rounding::Zero => false,
        Rounding::Down => negative && lost != 0,
        Rounding::Up => !negative && lost != 0,
    };
    kept + u128::from(up)
}
