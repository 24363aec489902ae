//! Exact SIMT execution of a [`lanescope_ir::Kernel`] on a CPU.

pub mod convergence;
pub mod lane;
