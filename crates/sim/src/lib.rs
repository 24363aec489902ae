//! Exact SIMT execution of a [`lanescope_ir::Kernel`] on a CPU.
//!
//! [`simulate`] runs one launch on a [`GlobalMemory`] and gives the counters an Nsight profile would have, or a
//! [`SimError`] that names instruction, lanes and addresses. Warps run in lockstep over rows of registers ([`rows`]), which
//! lanes are active is decided by a [`convergence`] model, and what operations compute is in [`lane`].

pub mod convergence;
mod error;
mod exec;
pub mod lane;
mod launch;
mod memory;
mod rows;

use lanescope_ir::Kernel;

pub use error::{AccessKind, BadAccess, Nearest, Position, SimError, Site};
pub use launch::{
    LOCAL_WINDOW, LOCAL_WINDOW_HI, Launch, Options, Outcome, Progress, SHARED_WINDOW, SHARED_WINDOW_HI, SM_COUNT,
    Trace, TraceEvent, TraceRequest, TraceStep, Unknown, UnknownBytes,
};
pub use memory::GlobalMemory;

/// Runs a kernel with convergence barriers (Volta and later).
pub fn simulate(
    kernel: &Kernel,
    launch: &Launch,
    memory: &mut GlobalMemory,
    progress: Option<Progress<'_>>,
) -> Result<Outcome, SimError> {
    simulate_with::<convergence::Barrier>(kernel, &(), launch, memory, progress)
}

/// Runs a kernel with another convergence model.
pub fn simulate_with<C: convergence::Convergence>(
    kernel: &Kernel,
    plan: &C::Plan,
    launch: &Launch,
    memory: &mut GlobalMemory,
    progress: Option<Progress<'_>>,
) -> Result<Outcome, SimError> {
    exec::launch::simulate::<C>(kernel, plan, launch, memory, progress)
}
