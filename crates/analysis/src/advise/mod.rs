//! What to do about the lanes a launch loses: one answer first, then the candidates with their price.
//!
//! Everything is counted in warp instructions saved. Ratios mislead: one warp for each short row of a sparse matrix raises
//! lane efficiency and doubles the instructions.

mod cost;
mod cx;
mod fixes;
mod input;
mod keys;
pub mod permute;
mod places;
mod verdict;

use crate::attribution::Cause;
use crate::roofline::Range;
use crate::whatif::WhatIfError;

use cx::Cx;
pub use input::{Argument, Buffer, Input, Number, wanted};
use permute::Layout;

/// Share of the launch's warp instructions that a fix must save to be worth a change.
pub const WORTH_IT: f64 = 0.05;

/// Everything `advise` has to say about one launch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Advice {
    /// The one answer.
    pub verdict: Verdict,
    /// The answer in two or three sentences: whether it is worth fixing, the one fix, how much it gives.
    pub summary: String,
    /// Warp instructions of the launch as it is.
    pub before: u64,
    /// Warp instructions that full warps would have needed for the same work: no regrouping can do better.
    pub bound: u64,
    /// How well the model prices the launch as it is.
    pub model: ModelCheck,
    /// Causes of lost lanes with the data that decides, the most expensive first.
    pub causes: Vec<KeyedCause>,
    /// Fixes, those that save most warp instructions first. Some may save nothing: `saved` says so.
    pub fixes: Vec<Fix>,
    /// What to keep in mind about all of it.
    pub caveats: Vec<String>,
    /// All counts are estimates of what hardware does (PTX).
    pub estimate: bool,
}

/// Advice that is not concluded yet: fixes can still be confirmed.
#[derive(Clone, Debug)]
pub struct Plan {
    /// All but verdict and summary.
    pub advice: Advice,
    /// For each fix, if it only changes the places of threads, the order: position p plays thread `order[p]`.
    pub orders: Vec<Option<Vec<u32>>>,
    /// What each argument holds.
    pub layouts: Vec<Layout>,
    error: Option<String>,
    /// Threads pass values to each other: another order of theirs must be proved.
    together: bool,
}

/// Finds what decides and what could be done, with prices.
///
/// # Errors
/// Records of threads that are empty or of another kernel.
pub fn plan(input: &Input<'_>) -> Result<Plan, WhatIfError> {
    let cx = Cx::new(input)?;
    let mut found = fixes::find(&cx);
    found.sort_by_key(|c| verdict::rank(&c.fix));
    let identity = cx.model.identity();
    let (fixes, orders) = found.into_iter().map(|c| (c.fix, c.order)).unzip();
    let advice = Advice {
        before: cx.before(),
        bound: input.profile.totals().thread_inst_executed.div_ceil(cx.model.width().into()),
        model: ModelCheck {
            modelled: identity.unadjusted,
            measured: cx.before(),
            complete: input.threads.threads as u64 == input.threads.of,
        },
        causes: cx.causes.iter().map(|c| c.keyed.clone()).collect(),
        fixes,
        estimate: input.estimate,
        ..Advice::default()
    };
    let together = cx.together();
    Ok(Plan { advice, orders, layouts: cx.layouts, error: input.error.map(str::to_owned), together })
}

/// The one answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing is worth a change.
    LeaveIt {
        /// Why.
        why: String,
    },
    /// This one of [`Advice::fixes`].
    Fix(usize),
}

impl Default for Verdict {
    fn default() -> Self {
        Verdict::LeaveIt { why: String::new() }
    }
}

impl Advice {
    /// The fix that the verdict names.
    pub fn best(&self) -> Option<&Fix> {
        match self.verdict {
            Verdict::Fix(i) => self.fixes.get(i),
            Verdict::LeaveIt { .. } => None,
        }
    }
}

/// The regrouping model's price of the launch as it is, against what was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ModelCheck {
    /// Warp instructions by the model, with threads grouped as they are.
    pub modelled: u64,
    /// Warp instructions counted.
    pub measured: u64,
    /// Whether all threads of the launch were recorded.
    pub complete: bool,
}

/// A cause of lost lanes and the data that decides there.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyedCause {
    /// The cause.
    pub cause: Cause,
    /// Lane slots lost to it.
    pub lanes: u64,
    /// Warp instructions that full warps would not have needed.
    pub warp_instructions: f64,
    /// What decides there, if it could be found.
    pub key: Option<Key>,
}

/// What decides which way a thread goes, or how often it goes round.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// Where it comes from.
    pub kind: KeyKind,
    /// In words: `argument 1 (material)[i]`, `turns of the loop at kernel.cu:9`.
    pub words: String,
    /// Different values.
    pub distinct: u64,
    /// Threads by value, ascending, without gaps or overlaps; at most [`BINS`].
    pub histogram: Vec<KeyBin>,
}

/// Bins of a key's histogram at most.
pub const BINS: usize = 32;

/// Threads whose key lies in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyBin {
    /// Lowest value in it.
    pub low: i64,
    /// Highest value in it.
    pub high: i64,
    /// Threads.
    pub threads: u64,
}

/// Where a key comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// The value of a load.
    Load {
        /// The load.
        inst: u32,
        /// The argument (ordinal) it reads.
        param: Option<u32>,
    },
    /// The difference of two loads: `row_start[i + 1] - row_start[i]`.
    Difference {
        /// The load that is added.
        plus: u32,
        /// The load that is subtracted.
        minus: u32,
        /// The argument (ordinal) both read.
        param: Option<u32>,
    },
    /// How often the thread goes through a loop's header.
    Trips {
        /// First instruction of the header.
        header: u32,
    },
    /// Which way the thread goes at a branch.
    Way {
        /// The branch.
        branch: u32,
    },
    /// The thread's index alone.
    Thread {
        /// The branch that asks for it.
        branch: u32,
    },
    /// Instructions that the thread executes in all.
    Work,
}

/// Kinds of fixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Method {
    /// Order the items by the key.
    SortByKey,
    /// A bucket for each value of the key, each starting a warp of its own.
    BucketByKey,
    /// Order the items by how long they take.
    SortByTrips,
    /// So many lanes share one item.
    SubWarp(u32),
    /// A whole warp for each item.
    WarpPerItem,
    /// Long items go their own way.
    SplitTail,
    /// One lane acts, or decides, for the warp.
    WarpUniform,
    /// Skip a path when no lane of the warp wants it.
    BallotSkip,
    /// Make one loop of two nested ones.
    Flatten,
    /// Compute both sides, keep one.
    Predicate,
    /// Let whole warps, not lanes, choose the side.
    AlignedBranch,
    /// A kernel of its own for the items that take the rare path.
    RareKernel,
}

impl Method {
    /// Stable name, kebab-case.
    pub fn name(self) -> &'static str {
        match self {
            Method::SortByKey => "sort-by-key",
            Method::BucketByKey => "bucket-by-key",
            Method::SortByTrips => "sort-by-trips",
            Method::SubWarp(_) => "sub-warp",
            Method::WarpPerItem => "warp-per-item",
            Method::SplitTail => "split-tail",
            Method::WarpUniform => "warp-uniform",
            Method::BallotSkip => "ballot-skip",
            Method::Flatten => "flatten",
            Method::Predicate => "predicate",
            Method::AlignedBranch => "aligned-branch",
            Method::RareKernel => "rare-kernel",
        }
    }
}

/// How sure a figure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// The launch was run again with the fix; outputs were the same bit for bit.
    Confirmed,
    /// Priced from what each thread did.
    Modelled,
    /// Rests on assumptions about code that is not written yet.
    Estimate,
    /// The launch was run again with the fix, and its outputs were other ones: it is no fix as it stands.
    Refuted,
}

impl Confidence {
    /// `confirmed`, `modelled`, `estimate`, `refuted`.
    pub fn name(self) -> &'static str {
        match self {
            Confidence::Confirmed => "confirmed",
            Confidence::Modelled => "modelled",
            Confidence::Estimate => "estimate",
            Confidence::Refuted => "refuted",
        }
    }
}

/// What the fix itself costs, each time it is applied.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FixCost {
    /// Warp instructions outside the kernel (a sort, a compaction). An estimate.
    pub warp_instructions: u64,
    /// Bytes read and written for it.
    pub bytes: u64,
    /// In words; empty if it costs nothing.
    pub words: String,
}

/// One candidate.
#[derive(Clone, Debug, PartialEq)]
pub struct Fix {
    /// Kind.
    pub method: Method,
    /// Short: `sort by argument 1 (material)`.
    pub title: String,
    /// What to change, in words.
    pub what_to_do: String,
    /// The key it orders or splits by.
    pub key: Option<Key>,
    /// Warp instructions of the launch as it is.
    pub before: u64,
    /// Warp instructions predicted with the fix, its own cost not counted.
    pub predicted: u64,
    /// Warp instructions of a run with the fix.
    pub confirmed: Option<u64>,
    /// What the fix itself costs.
    pub cost: FixCost,
    /// How much faster the launch gets, as a range.
    pub speedup: Option<Range>,
    /// How sure `predicted` is, or that it was confirmed.
    pub confidence: Confidence,
    /// The branch or loop it is about, as an instruction.
    pub at: Option<u32>,
    /// What to keep in mind.
    pub caveats: Vec<String>,
}

impl Fix {
    /// The best figure there is for the launch with the fix.
    pub fn after(&self) -> u64 {
        self.confirmed.unwrap_or(self.predicted)
    }

    /// Warp instructions saved in the kernel; negative if it gets more.
    pub fn saved(&self) -> i64 {
        let diff = i128::from(self.before) - i128::from(self.after());
        i64::try_from(diff).unwrap_or(if diff < 0 { i64::MIN } else { i64::MAX })
    }

    /// Launches that one application of the fix must serve before it has paid; `None` if it never does.
    pub fn break_even(&self) -> Option<u64> {
        let saved = u64::try_from(self.saved()).ok().filter(|&s| s > 0)?;
        Some(self.cost.warp_instructions.div_ceil(saved).max(1))
    }
}
