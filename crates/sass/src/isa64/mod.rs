//! The 64-bit instruction set of Maxwell and Pascal, sm_50 to sm_62.
//!
//! Code lies in bundles of 32 bytes: a control word with the scheduling of three instructions, then the three. An
//! instruction's address is its byte offset, so no instruction stands at a multiple of 32. [`Code`] walks them.
//!
//! [`decode`] reads in full what steers control flow or convergence and prints it as nvdisasm does. Of every other
//! instruction it knows the guard and the name: enough for an inventory, not to run it.

mod code;
mod decode;
mod fields;
mod names;

pub use code::{BUNDLE, Code, WORD, is_narrow};
pub use decode::{Decoded, NarrowError, decode};
