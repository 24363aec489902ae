//! The documented generator of `random = { ... }` arguments.
//!
//! Element `k` comes from the 32-bit value `r = mix(k * 0x9E3779B9 + seed)` (all modulo 2^32), where
//!
//! ```text
//! mix(x): x ^= x >> 16;  x *= 0x7feb352d;  x ^= x >> 15;  x *= 0x846ca68b;  x ^= x >> 16
//! ```
//!
//! Integer types get `low + r % (high - low)`; without bounds 32-bit and 64-bit types hold the bits of `r`, narrower ones
//! span their range. Floating types get `low + (high - low) * r / 2^32`, computed in f64 and rounded once; the
//! bounds are 0 and 1 unless given. So anybody can make the same array:
//! `k = np.arange(n, dtype=np.uint64); x = (k * 0x9E3779B9 + seed) & 0xffffffff; ...`

use crate::dtype::Dtype;

/// Value `k` of the stream of `seed`.
pub fn value(k: u64, seed: u64) -> u32 {
    let mut x = k.wrapping_mul(0x9E37_79B9).wrapping_add(seed) as u32;
    x ^= x >> 16;
    x = x.wrapping_mul(0x7feb_352d);
    x ^= x >> 15;
    x = x.wrapping_mul(0x846c_a68b);
    x ^ x >> 16
}

/// Bounds of a random array, already checked against its type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bounds {
    /// All 32 bits of the stream.
    Whole,
    /// `low <= x < high`.
    Int(i128, i128),
    /// `low <= x < high`, up to rounding.
    Float(f64, f64),
}

/// Appends `len` elements to `out`.
pub fn fill(out: &mut Vec<u8>, dtype: Dtype, len: usize, seed: u64, bounds: Bounds) {
    for k in 0..len as u64 {
        let r = value(k, seed);
        match bounds {
            Bounds::Whole => out.extend_from_slice(&dtype.int_bytes(i128::from(r))),
            Bounds::Int(low, high) => {
                let x = low + i128::from(r) % (high - low).max(1);
                out.extend_from_slice(&dtype.int_bytes(x));
            }
            Bounds::Float(low, high) => {
                let x = low + (high - low) * (f64::from(r) / 4_294_967_296.0);
                out.extend_from_slice(&dtype.float_bytes(x));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_documented_stream() {
        // Computed by hand from the definition: mix(0) = 0; mix(1) by the five steps.
        assert_eq!(value(0, 0), 0);
        let mut x = 1u32;
        x = x.wrapping_mul(0x7feb_352d);
        x ^= x >> 15;
        x = x.wrapping_mul(0x846c_a68b);
        x ^= x >> 16;
        assert_eq!(value(0, 1), x);
        assert_eq!(value(1, 0), value(0, 0x9E37_79B9));
    }

    #[test]
    fn bounds_hold() {
        let mut out = Vec::new();
        fill(&mut out, Dtype::I8, 1000, 3, Bounds::Int(-5, 6));
        let seen: std::collections::BTreeSet<i8> = out.iter().map(|&b| b as i8).collect();
        assert_eq!(seen, (-5..6).collect());
        out.clear();
        fill(&mut out, Dtype::F32, 1000, 3, Bounds::Float(1.0, 2.0));
        assert!(out.chunks(4).all(|c| (1.0..=2.0).contains(&f32::from_le_bytes(c.try_into().unwrap()))));
    }
}
