//! The launch again, with its threads in another order.

use std::sync::Arc;

use lanescope_analysis::advise::Argument;
use lanescope_analysis::advise::permute::{Layout, permute, restore};
use lanescope_analysis::roofline::Demand;
use lanescope_analysis::words;
use lanescope_ir::op::memory::{MemoryOp, Space};
use lanescope_ir::op::warp::{SpecialReg, WarpOp};
use lanescope_ir::{Kernel, Op};
use lanescope_sim::{Order, Progress, ThreadRequest};

use crate::run::{Prepared, Ran, RunError};

/// How a run in another order went.
#[derive(Clone, Debug, PartialEq)]
pub enum Trial {
    /// All outputs are the same, bit for bit.
    Same {
        /// Warp instructions issued.
        warp_instructions: u64,
        /// What changed places.
        moved: Moved,
        /// What that run asked of the machine.
        demand: Box<Demand>,
    },
    /// Some output is not.
    Differs {
        /// Warp instructions issued.
        warp_instructions: u64,
        /// What differs, and why that may be.
        what: String,
    },
    /// It was not run, or did not end well.
    Refused {
        /// Why.
        why: String,
    },
}

/// What changed places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moved {
    /// The data.
    Data,
    /// The threads' indices, as if read from an array; why the data could not.
    Threads(String),
}

/// The data of each argument in the new order, where it changes.
pub(super) type Permuted = Vec<Option<Vec<u8>>>;

/// The launch with other data.
pub(super) fn with_data(prepared: &Prepared, data: &Permuted) -> Prepared {
    let mut again = prepared.clone();
    for (old, new) in again.data.iter_mut().zip(data) {
        if let (crate::launch::args::Data::Buffer(array), Some(new)) = (old, new) {
            array.data.clone_from(new);
        }
    }
    again
}

/// Runs it in another order: with the data moved, and if the outputs then differ, with the threads' indices moved; only so
/// if the order is to come from other code (`by_code`).
pub(super) fn run(
    prepared: &Prepared,
    ran: &Ran,
    arguments: &[Argument<'_>],
    layouts: &[Layout],
    order: &[u32],
    by_code: bool,
    progress: Option<Progress<'_>>,
) -> Result<Trial, RunError> {
    let moved = permute(arguments, layouts, order);
    let (count, why) = match &moved {
        _ if by_code => (None, String::new()),
        Ok(data) => match with_data(prepared, data).recording(ThreadRequest::default()).run(progress) {
            Ok(again) => {
                let count = again.profile().totals().inst_executed;
                match difference(ran, &again, &|i, after| restore(arguments, layouts, order, i, after).ok()) {
                    None if same_work(ran, &again, order) => {
                        let demand = Box::new(Demand::new(&again.kernel, again.profile()));
                        return Ok(Trial::Same { warp_instructions: count, moved: Moved::Data, demand });
                    }
                    // Moved data that did not move the work are no proof of anything.
                    None => (None, "its place, not its data, decides what a thread does".into()),
                    Some(what) => (Some(count), what),
                }
            }
            Err(RunError::Sim(stopped)) => (None, format!("with the data moved it stops: {}", stopped.failure.error)),
            Err(other) => return Err(other),
        },
        Err(refusal) => (None, refusal.to_string()),
    };
    let fails = |why: String| match count {
        Some(warp_instructions) => Trial::Differs { warp_instructions, what: why },
        None => Trial::Refused { why },
    };
    let again = prepared.clone().in_order(in_order(prepared, order)).run(progress);
    match again {
        Ok(again) => {
            let warp_instructions = again.profile().totals().inst_executed;
            Ok(match difference(ran, &again, &|_, after| Some(after.to_vec())) {
                None => {
                    let demand = Box::new(Demand::new(&again.kernel, again.profile()));
                    Trial::Same { warp_instructions, moved: Moved::Threads(why), demand }
                }
                Some(what) => {
                    let talk = talks(&prepared.kernel);
                    let reason = talk.map_or(String::new(), |t| format!("; {t}"));
                    Trial::Differs { warp_instructions, what: format!("{what}{reason}") }
                }
            })
        }
        Err(RunError::Sim(stopped)) => {
            Ok(fails(format!("{why}; with the threads' indices moved it stops: {}", stopped.failure.error)))
        }
        Err(other) => Err(other),
    }
}

/// Whether each position did what the thread did that it was to play. Where lanes vote, a lane's turns are those of its
/// warp; there nothing can be compared.
fn same_work(before: &Ran, after: &Ran, order: &[u32]) -> bool {
    let votes = |i: &lanescope_ir::Instruction| matches!(i.op, Op::Warp(WarpOp::Vote { .. } | WarpOp::Reduce { .. }));
    let (Some(old), Some(new)) = (&before.outcome.threads, &after.outcome.threads) else { return false };
    before.kernel.instructions.iter().any(votes)
        || old
            .executions
            .iter()
            .zip(&new.executions)
            .all(|(old, new)| order.iter().zip(new).all(|(&t, n)| old.get(t as usize) == Some(n)))
}

/// Puts the bytes of an argument back in order.
type Restore<'a> = &'a dyn Fn(usize, &[u8]) -> Option<Vec<u8>>;

/// The first output that is not the same, in words.
fn difference(before: &Ran, after: &Ran, restored: Restore<'_>) -> Option<String> {
    for (i, (old, new)) in before.buffers.iter().zip(&after.buffers).enumerate() {
        let (Some(old), Some(new)) = (old, new) else { continue };
        let name = match before.launch().args.get(i).and_then(|a| a.name.as_deref()) {
            Some(name) => format!("argument {i} ({name})"),
            None => format!("argument {i}"),
        };
        let Some(new) = restored(i, &new.data) else { return Some(format!("{name} cannot be put back in order")) };
        if new != old.data {
            let size = old.item.max(1);
            let differ = old.data.chunks(size).zip(new.chunks(size)).filter(|(a, b)| a != b).count();
            return Some(format!(
                "{} of {} elements of {name} differ",
                words::count(differ as u64),
                words::count((old.data.len() / size) as u64)
            ));
        }
    }
    (before.outcome.printed.len() != after.outcome.printed.len()).then(|| "it prints other text".into())
}

/// How threads play others: by both indices, or by the thread's alone if the code reads the block's once for a whole warp.
pub(super) fn in_order(prepared: &Prepared, order: &[u32]) -> Order {
    let block = |r: &SpecialReg| matches!(r, SpecialReg::CtaId(_));
    let by_thread_index = prepared
        .kernel
        .instructions
        .iter()
        .any(|i| i.uniform && matches!(&i.op, Op::Warp(WarpOp::Special { reg, .. }) if reg.iter().any(block)));
    Order { threads: Arc::new(order.to_vec()), by_thread_index }
}

/// How the threads of a kernel talk to each other, if they do.
fn talks(kernel: &Kernel) -> Option<String> {
    let mut ways: Vec<&str> = Vec::new();
    for inst in &kernel.instructions {
        let way = match &inst.op {
            Op::Memory(MemoryOp::Store { space: Space::Shared, .. } | MemoryOp::Copy { .. }) => "shared memory",
            Op::Memory(MemoryOp::Atomic { dst, .. }) if dst.iter().any(Option::is_some) => "results of atomics",
            Op::Memory(MemoryOp::Atomic { .. }) => "atomics",
            Op::Warp(WarpOp::Shuffle { .. }) => "shuffles",
            Op::Warp(WarpOp::Vote { .. } | WarpOp::Match { .. } | WarpOp::Reduce { .. }) => "votes",
            Op::Warp(WarpOp::BlockBarrier { .. }) => "barriers",
            Op::Warp(WarpOp::Mma(_) | WarpOp::Transpose { .. }) => "matrix instructions",
            _ => continue,
        };
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    (!ways.is_empty()).then(|| format!("its threads work together through {}", ways.join(", ")))
}
