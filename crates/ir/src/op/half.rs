//! Packed f16 and bf16 functions.

/// Packed f16 and bf16 functions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum HalfFn {}
