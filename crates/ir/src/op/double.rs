//! f64 functions.

/// f64 functions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DoubleFn {}
