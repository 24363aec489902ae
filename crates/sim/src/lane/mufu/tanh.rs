//! The hyperbolic tangent.

use crate::lane::round::canonical;

/// tanh(a).
pub(super) fn tanh(a: u32) -> u32 {
    canonical(f64::from(f32::from_bits(a)).tanh() as f32)
}
