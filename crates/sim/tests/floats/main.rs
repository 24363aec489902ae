//! Float, double and conversion functions against what an H200 computed, and against exact arithmetic.

mod direct;
mod edges;
mod mufu;
mod rows;
