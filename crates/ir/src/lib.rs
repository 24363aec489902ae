//! The common language of lanescope: lane masks, instructions with guard, operands and effects, kernels,
//! source maps, per-instruction counters and findings.
//!
//! Both front ends (SASS and PTX) lower to the operations in [`op`]; the engine executes them, the
//! analyses read them. This crate knows no file format, does no I/O and depends on nothing.

pub mod counts;
pub mod finding;
pub mod flow;
pub mod ids;
pub mod kernel;
pub mod mask;
pub mod op;
pub mod source;
pub mod threads;
pub mod verify;

pub use counts::{BlockWork, BranchCounts, BranchKind, LaneCounts, LaunchShape, Profile, Reach, Totals, TripHistogram};
pub use finding::{Finding, Severity};
pub use ids::{BarrierReg, InstId, Pred, Slot};
pub use kernel::{ConstBank, Function, GlobalVar, Instruction, Kernel, MappedBank, Param, TargetTable};
pub use mask::LaneMask;
pub use op::{Op, PredSrc, Src, SrcMod};
pub use source::{Location, SourceMap};
pub use threads::{AccessProfile, SelectCounts, ThreadAccess, ThreadProfile, ThreadValue, ValueProfile};
