//! The reconvergence stack of machines before Volta.
//!
//! As [`Ipdom`](super::Ipdom), but strictly a stack: the path on top runs until it reaches its join, waits for the rest of
//! the block, or exits, and nothing makes it step aside. So lanes that spin until another lane of their warp has done
//! something never end; the engine sees that the running lanes go round a loop without any change while others wait,
//! and reports who waits for whom.
//!
//! These machines have no WARPSYNC. PTX requires there that all lanes of the mask come together, and leaves it undefined
//! what happens otherwise; here such lanes wait, which ends as a report.

use super::ipdom::PostDominator;

/// Joins at immediate post-dominators, strictly as a stack: before Volta.
pub type Stack = PostDominator<false>;

/// The same for warps of 64 lanes.
pub type WideStack = PostDominator<false, 64>;
