//! The convergence model against what an H200 counted, and against its own invariants.

mod measured;
mod mini;
mod properties;
mod rules;
mod shared;
