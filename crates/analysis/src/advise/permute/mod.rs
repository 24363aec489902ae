//! Regrouping threads by moving the data they work on: which buffer holds what, and the buffers in another order.
//!
//! Position p of the launch is to do what thread `order[p]` did. If each thread has bytes of its own in a buffer
//! ([`Layout::Items`]), these move; so do the segments that an array of offsets delimits, and the offsets are summed up
//! anew. What threads reach through data stays where it is. Whether that was right is not taken on trust: the permuted
//! launch must give the same outputs, moved back, bit for bit.

mod apply;
mod fit;
mod layout;
#[cfg(test)]
mod tests;

pub use apply::{Refusal, permute, restore};
pub use layout::{Layout, layouts};

/// A piece of a thread's own bytes: offset from its base, and length.
pub type Piece = (i64, u64);
