//! Conversions between formats.

/// Conversions between formats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ConvertFn {}
