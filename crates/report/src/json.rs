//! The profile JSON, `lanescope.profile/1`. Its keys are stable: only additions keep the version.

use std::collections::BTreeMap;

use lanescope_analysis::histogram::{Histogram, What};
use lanescope_ir::Kernel;
use lanescope_ir::finding::Evidence;
use serde::Serialize;

use crate::Input;

/// Rows of a loop's histogram that are given one by one.
const EXACT: usize = 256;

/// Name and version of the format.
pub const SCHEMA: &str = "lanescope.profile/1";

/// One launch.
#[derive(Clone, Debug, Serialize)]
pub struct Profile<'a> {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Mangled name.
    pub kernel: &'a str,
    /// The name as its author wrote it.
    pub demangled: &'a str,
    /// `sm_90`.
    pub arch: &'a str,
    /// Where the counters come from.
    pub source: &'a str,
    /// `sass`: what the hardware counts; `ptx`: an estimate, before predication and unrolling.
    pub level: &'static str,
    /// The compiler, for code that was compiled just now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compiler: Option<&'a str>,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Lanes of a warp.
    pub warp_size: u32,
    /// Sums.
    pub totals: Totals,
    /// Counters of each instruction in code order.
    pub instructions: Vec<Instruction<'a>>,
    /// Branches, predicated exits and indirect branches.
    pub branches: Vec<Branch>,
    /// Loops that ran, those that issue most first.
    pub loops: Vec<Loop>,
    /// Findings, gravest first.
    pub findings: Vec<Finding<'a>>,
}

/// Sums over all instructions. Ratios are as exact as an f64 is.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)] // Named as in `lanescope_ir::Totals`.
pub struct Totals {
    pub inst_executed: u64,
    pub thread_inst_executed: u64,
    pub thread_inst_executed_pred_on: u64,
    pub threads_per_inst: f64,
    pub lane_efficiency: f64,
    pub branches: u64,
    pub divergent_branches: u64,
    pub split_exits: u64,
}

/// One instruction.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)] // Named as in `lanescope_ir::LaneCounts`.
pub struct Instruction<'a> {
    /// Byte offset within its function.
    pub pc: u32,
    /// Disassembly.
    pub text: &'a str,
    /// Source file, `null` without a line table.
    pub file: Option<&'a str>,
    /// Source line.
    pub line: Option<u32>,
    pub inst_executed: u64,
    pub thread_inst_executed: u64,
    pub thread_inst_executed_pred_on: u64,
    /// Accesses of memory, for instructions that made some.
    #[serde(flatten)]
    pub memory: Option<Memory>,
    /// The function, for code outside the kernel's own section (its `pc` counts from that function's start).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<&'a str>,
}

/// Accesses of one instruction, named as Nsight's metrics.
#[derive(Clone, Copy, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Memory {
    pub memory_l2_theoretical_sectors_global: u64,
    pub memory_l2_theoretical_sectors_global_ideal: u64,
    pub memory_l1_wavefronts_shared: u64,
    pub memory_l1_wavefronts_shared_ideal: u64,
}

/// One branch, predicated exit or indirect branch.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)] // Named as in `lanescope_ir::BranchCounts`.
pub struct Branch {
    pub pc: u32,
    /// `branch`, `exit` or `indirect`.
    pub kind: &'static str,
    pub executed: u64,
    pub divergent: u64,
    pub lanes_taken: u64,
    pub lanes_not_taken: u64,
    /// Of the executions that split: `[lanes that took it, executions]`; of indirect branches `[lanes, groups]`. Left out
    /// if it never split.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lanes_histogram: Vec<(u32, u64)>,
}

/// One loop that ran.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Loop {
    /// Of the first instruction of its header.
    pub pc: u32,
    pub file: Option<String>,
    pub line: Option<u32>,
    pub warp_turns: u64,
    pub lane_turns: u64,
    /// `[fewest turns, most turns, entries of a thread with so many]`: exact, or in ranges that double where that would be
    /// more than 256 rows.
    pub turns_histogram: Vec<(u64, u64, u64)>,
}

/// One finding.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)] // Named as in `lanescope_ir::Finding`.
pub struct Finding<'a> {
    pub rule: &'static str,
    pub severity: &'static str,
    pub pc: Option<u32>,
    pub file: Option<&'a str>,
    pub line: Option<u32>,
    pub message: &'a str,
    pub evidence: BTreeMap<&'static str, Figure<'a>>,
}

/// A figure of a finding's evidence.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
#[allow(missing_docs)]
pub enum Figure<'a> {
    Count(u64),
    Ratio(f64),
    Text(&'a str),
}

/// The JSON value of a launch.
pub fn profile<'a>(input: &Input<'a>) -> Profile<'a> {
    let (kernel, counts) = (input.kernel, input.profile);
    let t = input.analysis.totals;
    let width = counts.shape.warp_size;
    Profile {
        schema: SCHEMA,
        kernel: &kernel.name,
        demangled: input.demangled,
        arch: &kernel.arch,
        source: input.source,
        level: input.level.name(),
        compiler: input.compiler,
        grid: counts.shape.grid,
        block: counts.shape.block,
        warp_size: width,
        totals: Totals {
            inst_executed: t.inst_executed,
            thread_inst_executed: t.thread_inst_executed,
            thread_inst_executed_pred_on: t.thread_inst_executed_pred_on,
            threads_per_inst: t.threads_per_inst(),
            lane_efficiency: t.lane_efficiency(width),
            branches: t.branches,
            divergent_branches: t.divergent_branches,
            split_exits: t.split_exits,
        },
        instructions: instructions(input),
        branches: counts
            .branches
            .iter()
            .map(|b| Branch {
                pc: pc(kernel, b.inst),
                kind: b.kind.name(),
                executed: b.executed,
                divergent: b.divergent,
                lanes_taken: b.lanes_taken,
                lanes_not_taken: b.lanes_not_taken,
                lanes_histogram: b.lanes_histogram.clone(),
            })
            .collect(),
        loops: loops(input),
        findings: input
            .analysis
            .findings
            .iter()
            .map(|f| {
                let place = f.inst.and_then(|i| location(kernel, i as usize));
                Finding {
                    rule: f.rule,
                    severity: f.severity.name(),
                    pc: f.inst.map(|i| pc(kernel, i)),
                    file: place.map(|p| p.0),
                    line: place.map(|p| p.1),
                    message: &f.message,
                    evidence: f.evidence.iter().map(|(name, e)| (*name, figure(e))).collect(),
                }
            })
            .collect(),
    }
}

fn instructions<'a>(input: &Input<'a>) -> Vec<Instruction<'a>> {
    let kernel = input.kernel;
    let mut list = Vec::with_capacity(kernel.instructions.len());
    for (at, inst) in kernel.instructions.iter().enumerate() {
        let c = input.profile.counts.get(at).copied().unwrap_or_default();
        let place = location(kernel, at);
        let function = kernel.function_of(lanescope_ir::InstId(at as u32)).filter(|f| f.first.0 != 0);
        list.push(Instruction {
            pc: inst.pc,
            text: kernel.text.get(at).map_or("", String::as_str),
            file: place.map(|p| p.0),
            line: place.map(|p| p.1),
            inst_executed: c.inst_executed,
            thread_inst_executed: c.thread_inst_executed,
            thread_inst_executed_pred_on: c.thread_inst_executed_pred_on,
            memory: (c.sectors > 0 || c.shared_wavefronts > 0).then_some(Memory {
                memory_l2_theoretical_sectors_global: c.sectors,
                memory_l2_theoretical_sectors_global_ideal: c.sectors_ideal,
                memory_l1_wavefronts_shared: c.shared_wavefronts,
                memory_l1_wavefronts_shared_ideal: c.shared_wavefronts_ideal,
            }),
            function: function.map(|f| f.name.as_str()),
        });
    }
    list
}

fn loops(input: &Input<'_>) -> Vec<Loop> {
    let rows = |header: u32| {
        let Some(l) = input.profile.loops.iter().find(|l| l.header == header) else { return Vec::new() };
        if l.trips.len() <= EXACT {
            return l.trips.iter().map(|&(turns, n)| (turns, turns, n)).collect();
        }
        Histogram::new(What::Turns, &l.trips).buckets.iter().map(|b| (b.low, b.high, b.count)).collect()
    };
    let list = input.analysis.loops.iter();
    list.map(|l| {
        let place = location(input.kernel, l.header as usize);
        Loop {
            pc: pc(input.kernel, l.header),
            file: place.map(|p| p.0.to_owned()),
            line: place.map(|p| p.1),
            warp_turns: l.warp_turns,
            lane_turns: l.lane_turns,
            turns_histogram: rows(l.header),
        }
    })
    .collect()
}

fn pc(kernel: &Kernel, inst: u32) -> u32 {
    kernel.instructions.get(inst as usize).map_or(0, |i| i.pc)
}

fn location(kernel: &Kernel, inst: usize) -> Option<(&str, u32)> {
    let l = kernel.source.get(inst)?;
    Some((kernel.source.file(l), l.line))
}

fn figure(e: &Evidence) -> Figure<'_> {
    match e {
        Evidence::Count(n) => Figure::Count(*n),
        Evidence::Ratio(x) => Figure::Ratio(*x),
        Evidence::Text(t) => Figure::Text(t),
    }
}
