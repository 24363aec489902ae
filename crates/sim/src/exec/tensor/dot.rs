//! How tensor cores add up products of floats.
//!
//! Found on an H200 (sm_90) with 1.4 million sums for f16, bf16 and tf32, random and made to be difficult, and equal to it
//! in every bit:
//! - Products are exact. The exponent of a product is the sum of its factors' exponents (its significand may be as large
//!   as just below 4); subnormal numbers take part with the lowest exponent.
//! - Products and C are aligned to the largest exponent among those that are not zero, and cut off below `fraction` bits
//!   after the point, towards zero. Then they are added exactly.
//! - The sum is rounded to f32 towards zero, or to f16 to the nearest (even). Too large a sum becomes infinity in both. A
//!   result of zero is +0, whatever the signs.
//! - A NaN, infinity times zero, or infinities of both signs give the NaN of all ones (sign clear).
//!
//! sm_90 keeps 25 bits and adds 32 bytes' worth of products at once. That sm_80 to sm_89 keep 24 bits and add 16 bytes'
//! worth, one group after the other, and that sm_100 and later are as sm_90, is published and was not measured here.

use lanescope_ir::op::tensor::Element;

/// A number taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Float {
    kind: Kind,
    /// Value over 2 to the power of `exponent - point`.
    significand: i64,
    exponent: i32,
    /// Bits after the point.
    point: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Finite,
    /// Negative?
    Infinite(bool),
    Nan,
}

impl Float {
    /// An element of A or B.
    pub(super) fn read(bits: u32, e: Element) -> Float {
        match e {
            Element::F16 => Float::of(bits, 5, 10),
            Element::Bf16 => Float::of(bits, 8, 7),
            Element::E5m2 => Float::of(bits, 5, 2),
            // No infinity; only the largest pattern is not a number.
            Element::E4m3 if bits & 0x7f == 0x7f => Float { kind: Kind::Nan, significand: 0, exponent: 0, point: 3 },
            Element::E4m3 if bits & 0x78 == 0x78 => {
                let significand = i64::from(8 | bits & 7);
                Float { kind: Kind::Finite, significand: signed(significand, bits & 0x80 != 0), exponent: 8, point: 3 }
            }
            Element::E4m3 => Float::of(bits, 4, 3),
            // The lower bits are not looked at.
            _ => Float::of(bits >> 13, 8, 10),
        }
    }

    fn of(bits: u32, exponent_bits: u32, mantissa: u32) -> Float {
        let top = (1 << exponent_bits) - 1;
        let exponent = bits >> mantissa & top;
        let fraction = i64::from(bits & ((1 << mantissa) - 1));
        let negative = bits >> (mantissa + exponent_bits) & 1 != 0;
        let kind = match (exponent == top, fraction) {
            (false, _) => Kind::Finite,
            (true, 0) => Kind::Infinite(negative),
            (true, _) => Kind::Nan,
        };
        let significand = if exponent == 0 { fraction } else { fraction | 1 << mantissa };
        Float {
            kind,
            significand: signed(significand, negative),
            exponent: exponent.max(1) as i32 - (top / 2) as i32,
            point: mantissa as i32,
        }
    }

    /// The product.
    fn times(self, b: Float) -> Float {
        let significand = self.significand * b.significand;
        let kind = match (self.kind, b.kind) {
            (Kind::Finite, Kind::Finite) => Kind::Finite,
            (Kind::Nan, _) | (_, Kind::Nan) => Kind::Nan,
            _ if significand == 0 => Kind::Nan,
            _ => Kind::Infinite(significand < 0),
        };
        Float { kind, significand, exponent: self.exponent + b.exponent, point: self.point + b.point }
    }
}

fn signed(x: i64, negative: bool) -> i64 {
    if negative { -x } else { x }
}

/// Shifted left, or right towards zero.
fn shift(x: i64, left: i32) -> i64 {
    if left >= 0 {
        x.checked_shl(left as u32).unwrap_or(0)
    } else {
        let magnitude = x.unsigned_abs().checked_shr(left.unsigned_abs()).unwrap_or(0);
        signed(magnitude as i64, x < 0)
    }
}

/// How sums are formed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// f16 instead of f32.
    pub(super) half: bool,
    /// Bits after the point that survive the alignment.
    pub(super) fraction: i32,
    /// Bits of an f32 result's mantissa.
    pub(super) mantissa: i32,
}

impl Rule {
    /// The bits of `c` plus the products of `a` and `b`, added up at once.
    pub(super) fn add(self, c: u32, a: &[Float], b: &[Float]) -> u32 {
        let c = if self.half { Float::of(c, 5, 10) } else { Float::of(c, 8, 23) };
        let terms = || a.iter().zip(b).map(|(a, b)| a.times(*b)).chain([c]);
        let mut largest = i32::MIN;
        let mut infinite = None;
        for t in terms() {
            match t.kind {
                Kind::Finite if t.significand == 0 => {}
                Kind::Finite => largest = largest.max(t.exponent),
                Kind::Infinite(negative) if infinite.is_none_or(|n| n == negative) => infinite = Some(negative),
                _ => return if self.half { 0x7fff } else { 0x7fff_ffff },
            }
        }
        let sign = if self.half { 1 << 15 } else { 1 << 31 };
        if let Some(negative) = infinite {
            return self.infinity() | if negative { sign } else { 0 };
        }
        if largest == i32::MIN {
            return 0;
        }
        let sum: i64 = terms()
            .filter(|t| t.significand != 0)
            .map(|t| shift(t.significand, self.fraction - t.point - (largest - t.exponent)))
            .sum();
        let magnitude = self.round(sum.unsigned_abs(), largest - self.fraction);
        if sum < 0 && magnitude != 0 { magnitude | sign } else { magnitude }
    }

    fn infinity(self) -> u32 {
        if self.half { 0x7c00 } else { 0x7f80_0000 }
    }

    /// The bits of `x` times 2 to the power of `scale`.
    fn round(self, x: u64, scale: i32) -> u32 {
        if x == 0 {
            return 0;
        }
        let (mantissa, lowest, highest) = if self.half { (10, -14, 15) } else { (self.mantissa, -126, 127) };
        let mut exponent = (x.ilog2() as i32 + scale).max(lowest);
        let drop = exponent - mantissa - scale;
        let mut kept =
            if drop > 0 { x.checked_shr(drop as u32).unwrap_or(0) } else { x << drop.unsigned_abs().min(63) };
        if self.half && (1..64).contains(&drop) {
            let (rest, tie) = (x & ((1 << drop) - 1), 1 << (drop - 1));
            kept += u64::from(rest > tie || rest == tie && kept & 1 != 0);
        }
        if kept >> (mantissa + 1) != 0 {
            kept >>= 1;
            exponent += 1;
        }
        if exponent > highest {
            return self.infinity();
        }
        let whole = if self.half { 10 } else { 23 };
        // The leading one adds itself to the exponent; a subnormal number has none.
        (((exponent - lowest) as u32) << whole) + ((kept << (whole - mantissa)) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const F32: Rule = Rule { half: false, fraction: 25, mantissa: 23 };

    fn halves(x: &[f32]) -> Vec<Float> {
        x.iter().map(|&x| Float::read(half::f16::from_f32(x).to_bits().into(), Element::F16)).collect()
    }

    #[test]
    fn small_numbers_are_exact() {
        let r = F32.add(0.5f32.to_bits(), &halves(&[1.0, 2.0, -3.0]), &halves(&[4.0, 0.25, 1.5]));
        assert_eq!(f32::from_bits(r), 0.5 + 4.0 + 0.5 - 4.5);
        let half = Rule { half: true, ..F32 };
        let r = half.add(0x3c00, &halves(&[2048.0]), &halves(&[1.0]));
        // 2049 lies between 2048 and 2050: to even.
        assert_eq!(r, half::f16::from_f32(2048.0).to_bits().into());
    }

    #[test]
    fn what_lies_below_the_fraction_is_cut_off() {
        // 2^15 * 2^10 - 2^25 + 1: one is the last bit that survives 25 bits of fraction, a half is not.
        let a = halves(&[32768.0, -32768.0, 1.0]);
        let b = |last| halves(&[1024.0, 1024.0, last]);
        assert_eq!(F32.add(0, &a, &b(1.0)), 1f32.to_bits());
        assert_eq!(F32.add(0, &a, &b(0.5)), 0);
        assert_eq!(F32.add(0, &a, &b(-1.5)), (-1f32).to_bits());
    }

    #[test]
    fn results_are_rounded_to_zero() {
        let a = halves(&[1.0, 1.0]);
        // 2^24 + 1 and a half below: f32 has neither.
        let c = 16_777_216f32.to_bits();
        assert_eq!(F32.add(c, &a[..1], &halves(&[1.0])), c);
        assert_eq!(F32.add(c, &a[..1], &halves(&[-0.5])), c - 1);
        assert_eq!(F32.add(f32::MAX.to_bits(), &halves(&[65504.0]), &halves(&[65504.0])), f32::MAX.to_bits());
    }

    #[test]
    fn no_numbers() {
        let inf = f32::INFINITY;
        assert_eq!(F32.add(0, &halves(&[inf]), &halves(&[0.0])), 0x7fff_ffff);
        assert_eq!(F32.add(inf.to_bits(), &halves(&[-1.0]), &halves(&[inf])), 0x7fff_ffff);
        assert_eq!(F32.add(0, &halves(&[-1.0, 3.0]), &halves(&[inf, 1.0])), (-inf).to_bits());
        assert_eq!(F32.add(0x8000_0000, &halves(&[-0.0]), &halves(&[0.0])), 0);
    }
}
