//! What can be said about a kernel from its code and its counters, however they were obtained.
//!
//! The control-flow graph ([`cfg`]), dominators ([`dom`]), natural loops ([`loops`]) and the regions in which a
//! branch keeps lanes apart ([`regions`]) come from the code alone. [`attribution`] joins them with a
//! [`Profile`](lanescope_ir::Profile): every lane slot that did no work gets a cause, and the parts add up to
//! the whole exactly. [`reconvergence`] asks of any code where lanes rejoin, without counters. [`rules`] turn that into findings. No I/O, and no knowledge of how counts were obtained.

pub mod advise;
pub mod apportion;
pub mod attribution;
pub mod cfg;
pub mod dom;
pub mod graph;
pub mod histogram;
pub mod lines;
pub mod lint;
pub mod lockstep;
pub mod loops;
pub mod model;
pub mod reconvergence;
pub mod regions;
pub mod roofline;
pub mod rules;
pub mod slice;
pub mod stacks;
mod survey;
#[cfg(test)]
pub(crate) mod testing;
pub mod uniformity;
pub mod whatif;
pub mod words;

pub use attribution::{Attribution, Cause, CauseTotal, Part};
pub use cfg::{Block, Cfg};
pub use dom::Dominators;
pub use graph::Graph;
pub use lines::{Line, Place};
pub use loops::{Loop, Loops};
pub use regions::{Region, Structure};
pub use survey::{Analysis, LoopStat, Trips, analyse};
