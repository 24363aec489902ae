//! How long a launch takes if one resource were the only limit.

use lanescope_ir::{Kernel, LaunchShape};

use super::{Demand, Gpu, Occupancy, Range, occupancy};

/// What a launch is bound by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bound {
    /// Issue slots: fewer warp instructions make it faster.
    Issue,
    /// Memory bandwidth: fewer warp instructions do not.
    Memory,
    /// Latency: warps wait, and there are too few of them to fill the time.
    Latency,
    /// The launch does not fill the machine.
    LaunchTooSmall,
    /// Two of them are too close to tell.
    Balanced,
}

impl Bound {
    /// In a sentence: `memory-bound`.
    pub fn name(self) -> &'static str {
        match self {
            Bound::Issue => "issue-bound",
            Bound::Memory => "memory-bound",
            Bound::Latency => "latency-bound",
            Bound::LaunchTooSmall => "too small to fill the GPU",
            Bound::Balanced => "balanced",
        }
    }
}

/// One set of assumptions about what no counter says, and the times that follow. Seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scenario {
    /// Issue slots and execution pipes.
    pub issue_s: f64,
    /// Memory.
    pub memory_s: f64,
    /// Waiting for results.
    pub latency_s: f64,
    /// The launch itself.
    pub launch_s: f64,
    /// The whole.
    pub time_s: f64,
}

/// What a launch costs on a GPU. An estimate.
#[derive(Clone, Debug, PartialEq)]
pub struct Roofline {
    /// The GPU.
    pub gpu: Gpu,
    /// What was asked of it.
    pub demand: Demand,
    /// Resident warps.
    pub occupancy: Occupancy,
    /// Time if issue slots and execution pipes were the only limit.
    pub issue_s: Range,
    /// Time if memory were.
    pub memory_s: Range,
    /// Time if waiting for results were.
    pub latency_s: Range,
    /// Time of the launch.
    pub time_s: Range,
    /// What it is bound by.
    pub bound: Bound,
    /// That in the words for a person.
    pub verdict: String,
    /// The cases that the ranges come from. Two rooflines of the same GPU have the same cases in the same order.
    pub scenarios: Vec<Scenario>,
}

/// Works out what `demand` costs on `gpu`. `kernel`, `shape` and `dynamic_shared` (bytes) decide occupancy and balance.
pub fn roofline(demand: &Demand, kernel: &Kernel, shape: &LaunchShape, dynamic_shared: u32, gpu: &Gpu) -> Roofline {
    let occupancy = occupancy(kernel, shape, dynamic_shared, gpu);
    let blocks: u64 = shape.grid.iter().fold(1u64, |a, &d| a.saturating_mul(d.into()));
    let used = f64::from(gpu.sms.max(1)).min(blocks.max(1) as f64);
    let hz = gpu.clock_mhz * 1e6;
    let issue = demand.warp_instructions as f64 / (used * f64::from(gpu.schedulers.max(1)) * hz);
    let distinct = demand.distinct_bytes.unwrap_or(0) as f64;
    let all = demand.sectors as f64 * 32.0;
    let memory = [distinct / (gpu.dram_gbs * 1e9), all / (gpu.dram_gbs * 1e9)];
    let longest = demand.longest_warp.unwrap_or(0) as f64;
    let scenarios: Vec<Scenario> = [0, 1]
        .map(|k| {
            let (memory_s, latency_s) = (memory[k], longest * [1.0, 6.0][k] / hz);
            let launch_s = [2e-6, 4e-6][k];
            let time_s = launch_s + issue.max(memory_s).max(latency_s);
            Scenario { issue_s: issue, memory_s, latency_s, launch_s, time_s }
        })
        .to_vec();
    let range = |f: fn(&Scenario) -> f64| Range::of(scenarios.iter().map(f));
    let (issue_s, memory_s, latency_s, time_s) =
        (range(|s| s.issue_s), range(|s| s.memory_s), range(|s| s.latency_s), range(|s| s.time_s));
    let bound = if blocks < u64::from(gpu.sms) {
        Bound::LaunchTooSmall
    } else if memory_s.low > issue_s.high {
        Bound::Memory
    } else if issue_s.low > memory_s.high {
        Bound::Issue
    } else {
        Bound::Balanced
    };
    let verdict = format!("{} on {}", bound.name(), gpu.name);
    Roofline {
        gpu: gpu.clone(),
        demand: demand.clone(),
        occupancy,
        issue_s,
        memory_s,
        latency_s,
        time_s,
        bound,
        verdict,
        scenarios,
    }
}
