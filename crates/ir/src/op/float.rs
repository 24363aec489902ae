//! f32 functions.

/// f32 functions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FloatFn {}
