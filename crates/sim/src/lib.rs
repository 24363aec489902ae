//! Exact SIMT execution of a [`lanescope_ir::Kernel`] on a CPU.
//!
//! [`simulate`] runs one launch on a [`GlobalMemory`] and gives the counters an Nsight profile would have, or a
//! [`SimError`] that names instruction, lanes and addresses. Warps run in lockstep over rows of registers ([`rows`]), which
//! lanes are active is decided by a [`convergence`] model, and what operations compute is in [`lane`].

pub mod convergence;
mod error;
mod exec;
mod format;
pub mod lane;
mod launch;
mod memory;
mod rows;
mod width;

use lanescope_ir::{Kernel, Op};

use convergence::{Convergence, JoinPoints};

pub use error::{AccessKind, BadAccess, Nearest, Position, SimError, Site};
pub use exec::check::CheckLog;
pub use launch::{
    Extremes, Failure, LOCAL_WINDOW, LOCAL_WINDOW_HI, Launch, Model, Options, Order, Outcome, PrintedText, Progress,
    SHARED_WINDOW, SHARED_WINDOW_HI, SM_COUNT, ThreadRequest, Trace, TraceEvent, TraceRequest, TraceStep, Unknown,
    UnknownBytes, WarpSum,
};
pub use memory::GlobalMemory;

/// Runs a kernel with the convergence model that the options name.
pub fn simulate(
    kernel: &Kernel,
    launch: &Launch,
    memory: &mut GlobalMemory,
    progress: Option<Progress<'_>>,
) -> Result<Outcome, SimError> {
    attempt(kernel, launch, memory, progress).map_err(|failure| failure.error)
}

/// The same; a launch that does not end well keeps its trace and what it printed.
pub fn attempt(
    kernel: &Kernel,
    launch: &Launch,
    memory: &mut GlobalMemory,
    progress: Option<Progress<'_>>,
) -> Result<Outcome, Box<Failure>> {
    use convergence::{Barrier, Ipdom, Stack, WideIpdom, WideStack};
    let (model, size) = (launch.options.model, launch.options.warp_size);
    permit(kernel, model)?;
    width::permit(kernel, size)?;
    let points = || JoinPoints::new(kernel);
    match (model, size) {
        (Model::Barrier, _) => simulate_with::<Barrier>(kernel, &(), launch, memory, progress),
        (Model::Ipdom, 64) => simulate_with::<WideIpdom>(kernel, &points(), launch, memory, progress),
        (Model::Ipdom, _) => simulate_with::<Ipdom>(kernel, &points(), launch, memory, progress),
        (Model::Stack, 64) => simulate_with::<WideStack>(kernel, &points(), launch, memory, progress),
        (Model::Stack, _) => simulate_with::<Stack>(kernel, &points(), launch, memory, progress),
    }
}

/// Refuses a model that does not fit what the kernel says, or does not say, about convergence.
fn permit(kernel: &Kernel, model: Model) -> Result<(), SimError> {
    let wrong = |why: String| Err(SimError::WrongModel { model, kernel: kernel.name.clone(), why });
    let foreign = |op: &Op| matches!(op, Op::Control(c) if !convergence::Ipdom::supports(c));
    match model {
        Model::Barrier if kernel.arch == "ptx" => {
            wrong("PTX names no convergence barriers; use model ipdom or stack".to_owned())
        }
        Model::Barrier => Ok(()),
        Model::Ipdom | Model::Stack if kernel.arch.starts_with("sm_") => wrong(format!(
            "it is machine code of {}, which says itself where lanes rejoin; use model barrier",
            kernel.arch
        )),
        Model::Ipdom | Model::Stack => match kernel.instructions.iter().position(|i| foreign(&i.op)) {
            Some(at) => {
                let text = kernel.text.get(at).map_or("", String::as_str);
                wrong(format!("`{text}` is an operation of convergence barriers; use model barrier"))
            }
            None => Ok(()),
        },
    }
}

/// Runs a kernel with another convergence model.
pub fn simulate_with<C: convergence::Convergence>(
    kernel: &Kernel,
    plan: &C::Plan,
    launch: &Launch,
    memory: &mut GlobalMemory,
    progress: Option<Progress<'_>>,
) -> Result<Outcome, Box<Failure>> {
    exec::launch::simulate::<C>(kernel, plan, launch, memory, progress)
}
