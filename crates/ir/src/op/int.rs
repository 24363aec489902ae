//! Integer, bit, logic and predicate functions.

/// Integer, bit, logic and predicate functions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum IntFn {}
