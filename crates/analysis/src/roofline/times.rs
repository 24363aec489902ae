//! How long a launch takes: by each resource alone, and by all of them.

use lanescope_ir::counts::BlockWork;
use lanescope_ir::{Kernel, LaunchShape};

use super::queue::{Machine, Task, makespan};
use super::{Demand, Gpu, Occupancy, Range, limits, occupancy, verdict};

/// Blocks that are followed one by one; of more, neighbours are taken together.
const FOLLOWED: usize = 1 << 16;

/// What a launch is bound by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bound {
    /// Issue slots or execution units: fewer warp instructions make it faster.
    Issue,
    /// Bandwidth of memory or caches: fewer warp instructions do not.
    Memory,
    /// Latency: warps wait, and there are too few of them, or one of them is too long.
    Latency,
    /// The launch does not fill the machine, or is over before it matters.
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
            Bound::LaunchTooSmall => "too small",
            Bound::Balanced => "balanced",
        }
    }

    /// `memory-bound on an H200`, `too small for an H200`.
    pub fn on(self, gpu: &Gpu) -> String {
        let gpu = gpu.with_article();
        match self {
            Bound::LaunchTooSmall => format!("too small for {gpu}"),
            bound => format!("{} on {gpu}", bound.name()),
        }
    }

    /// As JSON has it.
    pub fn key(self) -> &'static str {
        match self {
            Bound::Issue => "issue",
            Bound::Memory => "memory",
            Bound::Latency => "latency",
            Bound::LaunchTooSmall => "launch-too-small",
            Bound::Balanced => "balanced",
        }
    }
}

/// One set of assumptions about what no counter says, and the times that follow. Seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scenario {
    /// Data comes from as far away as it may, instead of as near as it may.
    pub far: bool,
    /// The machine is used as badly as it may be, instead of as well.
    pub worst: bool,
    /// Issue slots and execution units.
    pub issue_s: f64,
    /// Bandwidth: the largest of device memory, L2 and first-level caches.
    pub memory_s: f64,
    /// Waiting for results, with as many warps resident as fit, to the end of the longest.
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
    /// Time if issue slots and execution units were the only limit.
    pub issue_s: Range,
    /// Time if the bandwidth of memory and caches were.
    pub memory_s: Range,
    /// Time if waiting for results were.
    pub latency_s: Range,
    /// Time of the launch.
    pub time_s: Range,
    /// What it is bound by.
    pub bound: Bound,
    /// That in the words for a person.
    pub verdict: String,
    /// The cases that the ranges come from: near and best, near and worst, far and best, far and worst.
    pub scenarios: [Scenario; 4],
}

/// Works out what `demand` costs on `gpu`. `kernel`, `shape` and `dynamic_shared` (bytes) decide occupancy and balance.
pub fn roofline(demand: &Demand, kernel: &Kernel, shape: &LaunchShape, dynamic_shared: u32, gpu: &Gpu) -> Roofline {
    let occupancy = occupancy(kernel, shape, dynamic_shared, gpu);
    let grid: u64 = shape.grid.iter().fold(1u64, |a, &d| a.saturating_mul(d.into()));
    let launch = Launch::new(demand, grid, &occupancy, gpu);
    let scenarios = [(false, false), (false, true), (true, false), (true, true)].map(|(f, w)| launch.scenario(f, w));
    let range = |f: fn(&Scenario) -> f64| Range::of(scenarios.iter().map(f));
    let mut roofline = Roofline {
        gpu: gpu.clone(),
        demand: demand.clone(),
        occupancy,
        issue_s: range(|s| s.issue_s),
        memory_s: range(|s| s.memory_s),
        latency_s: range(|s| s.latency_s),
        time_s: range(|s| s.time_s),
        bound: Bound::Balanced,
        verdict: String::new(),
        scenarios,
    };
    roofline.bound = verdict::bound(&roofline, grid);
    roofline.verdict = verdict::words(&roofline, grid);
    roofline
}

struct Launch<'a> {
    demand: &'a Demand,
    gpu: &'a Gpu,
    machine: Machine,
    blocks: Vec<BlockWork>,
    /// Share of sectors that neighbouring addresses would not need.
    scattered: f64,
    /// Blocks of the launch.
    grid: u64,
}

impl Launch<'_> {
    fn new<'a>(demand: &'a Demand, grid: u64, occupancy: &Occupancy, gpu: &'a Gpu) -> Launch<'a> {
        let machine = Machine {
            sms: gpu.sms.max(1),
            slots: occupancy.blocks_per_sm.max(1),
            schedulers: f64::from(gpu.schedulers.max(1)),
        };
        let blocks = if demand.blocks.is_empty() { uniform(demand, grid) } else { demand.blocks.clone() };
        Launch { demand, gpu, machine, blocks: together(blocks), scattered: demand.scattered(), grid }
    }

    fn scenario(&self, far: bool, worst: bool) -> Scenario {
        let (d, gpu, k) = (self.demand, self.gpu, usize::from(worst));
        let hz = gpu.hz().max(1.0);
        let instructions = (d.warp_instructions as f64).max(1.0);
        // Slots of a scheduler that an instruction takes on average, because its unit is narrower than a warp.
        let slots = (d.pipes.cycles(gpu) * self.machine.schedulers / instructions).max(1.0) / limits::ISSUE[k];
        let l1_sector = self.mixed([limits::L1_SECTOR[0], limits::L1_SECTOR[k]]);
        // Requests are instructions: what saves those saves these. Which block makes them follows its sectors.
        let l1_request = d.memory_requests as f64 / (d.sectors as f64).max(1.0) * limits::L1_REQUEST[k];
        let shared = d.shared_wavefronts as f64 / instructions;
        let wait = self.wait(far, k) * if worst { 1.0 } else { self.kept() };
        let scale = if worst { d.warp_scale.worst } else { d.warp_scale.best };
        let chain = |b: &BlockWork| {
            b.warp_instructions as f64 * scale * d.chain.cycles_per_inst * limits::PACE[k]
                + (if worst { b.warp_waits } else { b.warp_waits_best }) as f64 * d.chain.exposed * wait
                + limits::BLOCK_START[k]
        };
        let tasks: Vec<Task> = self
            .blocks
            .iter()
            .map(|b| Task {
                issue: b.inst_executed as f64 * slots,
                cache: b.sectors as f64 * l1_sector.max(l1_request) + b.inst_executed as f64 * shared,
                alone: chain(b),
            })
            .collect();
        let waits: Vec<Task> = tasks.iter().map(|t| Task { issue: 0.0, cache: 0.0, ..*t }).collect();
        let used = f64::from(self.machine.sms).min(self.blocks.len().max(1) as f64);
        let sum = |f: fn(&Task) -> f64| tasks.iter().map(f).sum::<f64>();
        let most = |f: fn(&Task) -> f64| tasks.iter().map(f).fold(0.0, f64::max);
        let issue = (sum(|t| t.issue) / used).max(most(|t| t.issue)) / self.machine.schedulers;
        let cache = (sum(|t| t.cache) / used).max(most(|t| t.cache));
        let requests = if l1_request > l1_sector { cache } else { 0.0 };
        let beyond = self.dram(far, k).max(self.l2(far, k));
        let launch_s = limits::LAUNCH_S[k];
        let latency = makespan(&self.machine, &waits);
        // At best what blocks share is never short while a long one runs alone; at worst they hold each other up.
        let together = if worst { makespan(&self.machine, &tasks) } else { issue.max(cache).max(latency) };
        Scenario {
            far,
            worst,
            issue_s: issue.max(requests) / hz,
            memory_s: beyond.max((cache - requests) / hz),
            latency_s: latency / hz,
            launch_s,
            time_s: launch_s + beyond.max(together / hz),
        }
    }

    /// Of coalesced and of scattered sectors, by their share.
    fn mixed(&self, [coalesced, scattered]: [f64; 2]) -> f64 {
        (1.0 - self.scattered) * coalesced + self.scattered * scattered
    }

    /// Sectors that the first-level caches pass on. At worst each block starts with an empty share of an SM's cache; at best
    /// it has all of it, and finds what blocks before it have left.
    fn missed(&self, far: bool, k: usize) -> f64 {
        let missed = match self.demand.sectors_missed {
            Some(_) if k == 0 => self.demand.sectors_passed as f64 + self.loads_missed() * self.kept(),
            Some(n) => n as f64,
            None if far => self.demand.sectors as f64,
            None => 0.0,
        };
        missed.max(self.distinct())
    }

    /// Sectors that loads miss if each block has all of an SM's cache, empty.
    fn loads_missed(&self) -> f64 {
        self.demand.misses.iter().map(|&(n, sectors)| f64::from(n) * sectors as f64).sum()
    }

    /// The part of them that is missed although blocks before it on the SM may have left them.
    fn kept(&self) -> f64 {
        let loads = self.loads_missed();
        if loads <= 0.0 || self.grid == 0 {
            return 1.0;
        }
        let (grid, sms) = (self.grid as f64, f64::from(self.machine.sms));
        // Blocks whose data fit into one cache together: those that may have left something.
        let footprint = loads * 32.0 / grid;
        let blocks = (f64::from(self.gpu.l1_bytes) / footprint).max(f64::from(self.machine.slots) - 1.0);
        let missed = self.demand.misses.iter().map(|&(n, sectors)| {
            let n = f64::from(n);
            let alone = n * (1.0 - (n / grid).min(1.0)).powf(blocks);
            // Every SM that ever wants it misses it once.
            let once = sms * (1.0 - (1.0 - 1.0 / sms).powf(n));
            alone.max(once).min(n) * sectors as f64
        });
        (missed.sum::<f64>() / loads).min(1.0)
    }

    fn distinct(&self) -> f64 {
        self.demand.distinct_bytes.unwrap_or(0) as f64 / 32.0
    }

    /// Whether the data can stay in L2.
    fn fits(&self) -> bool {
        self.demand.distinct_bytes.is_some_and(|b| b <= self.gpu.l2_bytes)
    }

    /// Cycles that a load takes longer if the first-level cache does not have its data.
    fn wait(&self, far: bool, k: usize) -> f64 {
        let (l2, dram) = (limits::L2_CYCLES[k], limits::DRAM_CYCLES[k]);
        let cold = (self.distinct() / self.missed(true, k).max(1.0)).min(1.0);
        let once = cold * dram + (1.0 - cold) * l2;
        let latency = match (self.fits(), far) {
            (true, false) => l2,
            (true, true) | (false, false) => once,
            (false, true) => dram,
        };
        let per_request = self.demand.sectors as f64 / (self.demand.memory_requests as f64).max(1.0);
        latency - limits::latency::L1 + per_request * self.mixed([limits::L1_SECTOR[0], limits::L1_SECTOR[k]])
    }

    fn dram(&self, far: bool, k: usize) -> f64 {
        let sectors = match (self.fits(), far) {
            (true, false) => 0.0,
            (true, true) | (false, false) => self.distinct(),
            (false, true) => self.missed(true, k),
        };
        let share = 1.0 / self.mixed([1.0 / limits::DRAM[k], 1.0 / limits::DRAM_SCATTERED[k]]);
        sectors * 32.0 / (self.gpu.dram_gbs.max(1e-3) * 1e9 * share)
    }

    fn l2(&self, far: bool, k: usize) -> f64 {
        let sms = f64::from(self.gpu.sms.max(1));
        let rate = match self.gpu.l2_gbs {
            Some(gbs) => gbs * 1e9,
            None => limits::L2_BYTES_PER_SM[k] * sms * self.gpu.hz(),
        };
        let share = 1.0 / self.mixed([1.0, 1.0 / limits::L2_SCATTERED[k]]);
        self.missed(far, k) * 32.0 / (rate.max(1.0) * share)
    }
}

/// Equal blocks, where only sums are known. The longest warp is then taken to be in the middle.
fn uniform(d: &Demand, grid: u64) -> Vec<BlockWork> {
    let n = grid.clamp(1, FOLLOWED as u64);
    let of = |sum: u64| sum.div_ceil(n);
    let each = BlockWork {
        inst_executed: of(d.warp_instructions),
        sectors: of(d.sectors),
        sectors_missed: of(d.sectors_missed.unwrap_or(0)),
        warp_instructions: d.longest_warp.map_or(0, |w| w.min(of(d.warp_instructions))),
        warp_waits: 0,
        warp_waits_best: 0,
    };
    vec![each; n as usize]
}

/// Neighbours taken together until there are few enough: one after the other in one place.
fn together(blocks: Vec<BlockWork>) -> Vec<BlockWork> {
    let group = blocks.len().div_ceil(FOLLOWED).max(1);
    if group == 1 {
        return blocks;
    }
    let add = |a: BlockWork, b: &BlockWork| BlockWork {
        inst_executed: a.inst_executed + b.inst_executed,
        sectors: a.sectors + b.sectors,
        sectors_missed: a.sectors_missed + b.sectors_missed,
        warp_instructions: a.warp_instructions + b.warp_instructions,
        warp_waits: a.warp_waits + b.warp_waits,
        warp_waits_best: a.warp_waits_best + b.warp_waits_best,
    };
    blocks.chunks(group).map(|c| c.iter().fold(BlockWork::default(), add)).collect()
}
