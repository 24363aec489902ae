//! What advice is made from.

use std::collections::BTreeSet;

use lanescope_ir::{Kernel, Profile, ThreadProfile};

use crate::lockstep;
use crate::regions::Structure;
use crate::slice::{Slice, Slicer};
use crate::survey::Analysis;
use crate::uniformity::{Uniformity, Verdict};

/// Instructions whose values are recorded at most.
const VALUES: usize = 32;
/// Decisions that are looked at before the launch runs.
const DECISIONS: usize = 512;

/// An argument of the launch.
#[derive(Clone, Debug, Default)]
pub struct Argument<'a> {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Its buffer; scalars have none.
    pub buffer: Option<Buffer<'a>>,
}

/// A buffer of the launch.
#[derive(Clone, Copy, Debug)]
pub struct Buffer<'a> {
    /// Address of its first byte.
    pub address: u64,
    /// Its bytes before the launch.
    pub data: &'a [u8],
    /// Bytes of an element.
    pub element: u32,
    /// What an element is.
    pub kind: Number,
}

/// How the bits of an element are to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Number {
    /// Two's complement.
    Signed,
    /// Unsigned, or raw bits.
    #[default]
    Unsigned,
    /// Floating point.
    Float,
}

/// A launch that ran, with what was recorded of its threads.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// What was counted.
    pub profile: &'a Profile,
    /// What that means.
    pub analysis: &'a Analysis,
    /// What each thread did, with the values that [`wanted`] names.
    pub threads: &'a ThreadProfile,
    /// Which values differ between lanes.
    pub uniformity: &'a Uniformity,
    /// Arguments in order.
    pub arguments: &'a [Argument<'a>],
    /// A synchronisation error that was found in the code, in words.
    pub error: Option<&'a str>,
    /// Counts are estimates of what hardware does (PTX).
    pub estimate: bool,
}

/// Instructions whose values must be recorded to find out which data decide: see `ThreadRequest::values` of the
/// simulator.
pub fn wanted(kernel: &Kernel, structure: &Structure, uniformity: &Uniformity) -> Vec<u32> {
    let slicer = Slicer::new(kernel, structure, uniformity);
    let mut seen = BTreeSet::new();
    let mut list: Vec<u32> = Vec::new();
    for vote in lockstep::find(kernel, structure).iter().map(|l| l.vote) {
        list.extend(candidates(&slicer.slice(vote)).into_iter().take(VALUES).filter(|&i| seen.insert(i)));
    }
    let undecided = |v: &Verdict| !matches!(v, Verdict::Unreachable);
    for branch in uniformity.branches.iter().filter(|b| undecided(&b.verdict) && !b.guards_trap).take(DECISIONS) {
        let slice = slicer.slice(branch.inst);
        if branch.verdict == Verdict::Never && !slice.voted {
            continue;
        }
        let keys = candidates(&slice);
        // Where a key lies may be data too: row_start[frontier[i]].
        let indices = keys.iter().flat_map(|&k| slicer.address(k).loads().collect::<Vec<_>>()).collect::<Vec<_>>();
        for inst in keys.into_iter().chain(indices) {
            if list.len() < VALUES && seen.insert(inst) {
                list.push(inst);
            }
        }
    }
    list.sort_unstable();
    list
}

/// The instructions of a slice whose value may be the key: what is compared first, then what was loaded.
pub(super) fn candidates(slice: &Slice) -> Vec<u32> {
    let mut list = slice.values.clone();
    for load in slice.loads() {
        if !list.contains(&load) {
            list.push(load);
        }
    }
    list
}
