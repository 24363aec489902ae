//! A launch from its file to its counters.
//!
//! ```no_run
//! use lanescope::run::{Prepared, Settings};
//!
//! let prepared = Prepared::open("moe.toml".as_ref(), &Settings::default())?;
//! let ran = prepared.run(None)?;
//! println!("{}", ran.analysis.totals.lane_efficiency(32));
//! # Ok::<(), lanescope::run::RunError>(())
//! ```

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lanescope_analysis::attribution::Cause;
use lanescope_analysis::lint::Hazard;
use lanescope_analysis::roofline::{Demand, Gain, Gpu, Roofline, Scale, gain_between, occupancy, roofline};
use lanescope_analysis::rules::memory_bound;
use lanescope_analysis::{Analysis, analyse, lockstep};
use lanescope_ir::{Kernel, LaneCounts, LaunchShape, Profile};
use lanescope_report::{Input, Level};
use lanescope_sim::{
    CheckLog, Failure, GlobalMemory, Launch, Model, Options, Order, Outcome, Progress, ThreadRequest, Trace,
    TraceEvent, TraceRequest, Unknown, attempt,
};

use crate::compile::{Built, Tools};
use crate::constants::bank0;
use crate::gpus::Gpus;
use crate::launch::{self, LaunchError, LaunchFile, args};
use crate::module::{self, Loaded, ModuleError, Request};
use crate::names::demangle;
use crate::npy::Array;

/// Largest launch file.
const LAUNCH_FILE_LIMIT: u64 = 16 << 20;

/// How to run, apart from what the launch file says.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Threads; 0 means all processors.
    pub threads: usize,
    /// Warp instructions after which the run stops; `None` for the engine's default.
    pub max_inst: Option<u64>,
    /// What happens at an instruction that is not implemented.
    pub unknown: Unknown,
    /// Warps to trace.
    pub traces: Vec<TraceRequest>,
    /// Architecture, overriding the launch file's.
    pub arch: Option<String>,
    /// Kernel, overriding the launch file's.
    pub kernel: Option<String>,
    /// How lanes split and rejoin; what the code needs unless given.
    pub model: Option<Model>,
    /// Lanes of a warp: 32 unless given, or 64.
    pub warp_size: Option<u32>,
    /// Check synchronisation and shared memory while running.
    pub check: bool,
    /// Record what each thread did: see [`Outcome::threads`].
    pub threads_profile: Option<ThreadRequest>,
    /// Which thread each position plays.
    pub order: Option<Order>,
    /// The GPU that times are estimated for; unless given, one of the code's architecture.
    pub gpu: Option<Gpu>,
    /// The table that the latter is taken from; the one that is built in unless given.
    pub gpus: Option<Gpus>,
    /// Compilers for modules that are source.
    pub tools: Tools,
}

/// Why a launch could not be prepared or did not end well.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The launch file cannot be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// The file.
        path: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// The launch file is too large to be one.
    #[error("{path} has {size} bytes; that is no launch file")]
    NotALaunchFile {
        /// The file.
        path: String,
        /// Its size.
        size: u64,
    },
    /// The launch file, an array or an argument is wrong.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The module or the kernel is wrong. With the place in the launch file that names it.
    #[error("{file}:{line}: {error}")]
    Module {
        /// Launch file.
        file: String,
        /// Line in it.
        line: usize,
        /// What is wrong.
        error: Box<ModuleError>,
    },
    /// The simulator refused or stopped the launch.
    #[error("{0}")]
    Sim(Box<Stopped>),
    /// A buffer that was asked for has bytes whose value is not known.
    #[error(
        "{buffer} cannot be written: {count} of its bytes are unknown, from byte {first} on, because they come from instructions that are not implemented"
    )]
    UnknownOutput {
        /// The buffer.
        buffer: String,
        /// Unknown bytes.
        count: u64,
        /// Offset of the first.
        first: u64,
    },
}

/// A launch with everything read and checked.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The launch file.
    pub launch: LaunchFile,
    /// Its folder.
    pub dir: PathBuf,
    /// The kernel.
    pub kernel: Kernel,
    /// Which instructions it has.
    pub level: Level,
    /// How its code was made, if a compiler made it just now.
    pub built: Option<Built>,
    /// The module's machine code; empty for PTX.
    pub code: Vec<u8>,
    /// Data of the arguments.
    pub data: Vec<args::Data>,
    settings: Settings,
}

/// A launch that ended.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The kernel.
    pub kernel: Kernel,
    /// Its name as its author wrote it.
    pub demangled: String,
    /// Which instructions the counters are about.
    pub level: Level,
    /// How its code was made, if a compiler made it just now.
    pub built: Option<Built>,
    /// Counters, trace and remarks.
    pub outcome: Outcome,
    /// What they mean.
    pub analysis: Analysis,
    /// What was found by checking while running, with witnesses; these findings are among those of `analysis` too.
    pub hazards: Vec<Hazard>,
    /// For each argument, its buffer after the run; `None` for scalars.
    pub buffers: Vec<Option<Array>>,
    /// For each argument, the address of its buffer; `None` for scalars.
    pub addresses: Vec<Option<u64>>,
    /// What the launch costs on a GPU.
    pub estimate: Option<Estimate>,
    launch: LaunchFile,
}

impl Prepared {
    /// Reads a launch file and everything it names.
    pub fn open(path: &Path, settings: &Settings) -> Result<Prepared, RunError> {
        let shown = path.display().to_string();
        let fail = |error| RunError::Read { path: shown.clone(), error };
        let size = std::fs::metadata(path).map_err(fail)?.len();
        if size > LAUNCH_FILE_LIMIT {
            return Err(RunError::NotALaunchFile { path: shown, size });
        }
        let text = std::fs::read(path).map_err(fail)?;
        let text = String::from_utf8(text)
            .map_err(|e| fail(std::io::Error::new(std::io::ErrorKind::InvalidData, e.utf8_error().to_string())))?;
        let launch = launch::parse(&shown, &text)?;
        let dir = path.parent().map(Path::to_path_buf).unwrap_or_default();
        Prepared::new(launch, dir, settings)
    }

    /// The same for a launch file that was parsed already. Paths in it are relative to `dir`.
    pub fn new(launch: LaunchFile, dir: PathBuf, settings: &Settings) -> Result<Prepared, RunError> {
        let path = dir.join(&launch.module);
        let name = settings.kernel.as_deref().or(launch.kernel.as_deref());
        let arch = settings.arch.as_deref().or(launch.arch.as_deref());
        let mut options = launch.compile.clone();
        for folder in &mut options.include {
            *folder = dir.join(&folder);
        }
        let warp_size = settings.warp_size.unwrap_or(32);
        let of_ptx = |m: Model| matches!(m, Model::Ipdom | Model::Stack);
        let as_ptx = settings.model.map_or(warp_size != 32, of_ptx);
        let request = Request { kernel: name, arch, options: &options, tools: &settings.tools, as_ptx, warp_size };
        let Loaded { kernel, level, built, code } = module::load_file(&path, &request).map_err(|error| {
            let at = match &error {
                ModuleError::NoKernel { .. } | ModuleError::Ambiguous { .. } => launch.kernel_at,
                ModuleError::Arch(_) => launch.arch_at,
                _ => launch.module_at,
            };
            RunError::Module { file: launch.file.clone(), line: at.line, error: Box::new(error) }
        })?;
        Ok(Prepared { built, code, ..Prepared::of_kernel(launch, dir, kernel, level, settings)? })
    }

    /// The same for a kernel that was loaded already.
    pub fn of_kernel(
        launch: LaunchFile,
        dir: PathBuf,
        kernel: Kernel,
        level: Level,
        settings: &Settings,
    ) -> Result<Prepared, RunError> {
        args::check(&launch, &kernel)?;
        let data = args::load(&launch, &dir)?;
        let settings = settings.clone();
        Ok(Prepared { launch, dir, kernel, level, built: None, code: Vec::new(), data, settings })
    }

    /// Warps of a block.
    pub fn warps(&self) -> u32 {
        let threads = self.launch.block.iter().fold(1u32, |n, &d| n.saturating_mul(d));
        threads.div_ceil(self.settings.warp_size.unwrap_or(32).max(1))
    }

    /// The same launch with these warps traced.
    pub fn traced(mut self, traces: Vec<TraceRequest>) -> Prepared {
        self.settings.traces = traces;
        self
    }

    /// The same launch, recording what each thread does.
    pub fn recording(mut self, request: ThreadRequest) -> Prepared {
        self.settings.threads_profile = Some(request);
        self
    }

    /// The same launch with its threads in another order.
    pub fn in_order(mut self, order: Order) -> Prepared {
        self.settings.order = Some(order);
        self
    }

    /// Runs the launch. `progress` is told the number of blocks done and of all.
    pub fn run(self, progress: Option<Progress<'_>>) -> Result<Ran, RunError> {
        let demangled = demangle(&self.kernel.name);
        let log = self.settings.check.then(|| Arc::new(CheckLog::new()));
        let warp_size = self.settings.warp_size.unwrap_or(32);
        let fail = |kernel: &Kernel, failure: Box<Failure>| {
            let found = log.as_ref().map_or(String::new(), |log| found_text(&log.hazards(kernel)));
            RunError::Sim(Box::new(Stopped { kernel: kernel.clone(), warp_size, failure: *failure, found }))
        };
        let mut memory = GlobalMemory::new();
        let mut words = Vec::new();
        let mut buffers = Vec::new();
        for (i, (data, arg)) in self.data.into_iter().zip(&self.launch.args).enumerate() {
            match data {
                args::Data::Value(bytes) => {
                    words.push(bytes);
                    buffers.push(None);
                }
                args::Data::Buffer(mut array) => {
                    let bytes = std::mem::take(&mut array.data);
                    let address =
                        memory.alloc(&buffer_name(i, arg), &bytes).map_err(|e| fail(&self.kernel, e.into()))?;
                    words.push(address.to_le_bytes().to_vec());
                    buffers.push(Some((address, bytes.len() as u64, array)));
                }
            }
        }
        let assumed = self.settings.gpu.is_none();
        let gpu = self.settings.gpu.clone().or_else(|| match &self.settings.gpus {
            Some(gpus) => gpus.for_arch(&self.kernel.arch).cloned(),
            None => Gpus::built_in().ok()?.for_arch(&self.kernel.arch).cloned(),
        });
        let l1 = gpu.as_ref().map(|gpu| {
            let shape = LaunchShape { grid: self.launch.grid, block: self.launch.block, warp_size };
            let resident = occupancy(&self.kernel, &shape, self.launch.dynamic_shared, gpu).blocks_per_sm;
            let shared = self.kernel.shared_size.saturating_add(self.launch.dynamic_shared);
            let share = gpu.l1_of_block(resident, shared);
            [share, share.saturating_mul(resident.max(1))]
        });
        let launch = Launch {
            grid: self.launch.grid,
            block: self.launch.block,
            dynamic_shared: self.launch.dynamic_shared,
            bank0: bank0(
                &self.kernel,
                self.launch.grid,
                self.launch.block,
                self.launch.dynamic_shared,
                &args::pack(&self.kernel, &words),
            ),
            options: Options { check: log.clone(), l1, ..options(&self.settings, &self.kernel) },
        };
        let mut outcome = attempt(&self.kernel, &launch, &mut memory, progress).map_err(|e| fail(&self.kernel, e))?;
        count_once(&self.kernel, &mut outcome.profile);
        let addresses = buffers.iter().map(|b| b.as_ref().map(|b| b.0)).collect();
        let buffers = buffers
            .into_iter()
            .map(|b| {
                b.map(|(address, len, mut array)| {
                    array.data = memory.read(address, len).unwrap_or_default();
                    array
                })
            })
            .collect();
        let mut analysis = analyse(&self.kernel, &outcome.profile);
        let hazards = log.as_ref().map_or(Vec::new(), |log| log.hazards(&self.kernel));
        analysis.findings.extend(hazards.iter().map(|h| h.finding.clone()));
        let estimate = gpu.map(|gpu| Estimate {
            assumed,
            ..Estimate::new(&self.kernel, &outcome.profile, &analysis, self.launch.dynamic_shared, &gpu)
        });
        let hidden = estimate.as_ref().and_then(|e| memory_bound(&analysis, &e.roofline, &e.full_warps.as_ref()?.1));
        analysis.findings.extend(hidden);
        analysis.findings.sort_by_key(|f| std::cmp::Reverse(f.severity));
        Ok(Ran {
            kernel: self.kernel,
            demangled,
            level: self.level,
            built: self.built,
            outcome,
            analysis,
            hazards,
            buffers,
            addresses,
            estimate,
            launch: self.launch,
        })
    }
}

/// What a launch costs on a GPU: an estimate.
#[derive(Clone, Debug)]
pub struct Estimate {
    /// The launch as it is.
    pub roofline: Roofline,
    /// Whether the GPU was chosen by the code's architecture, because nobody named one.
    pub assumed: bool,
    /// If lanes were lost: warp instructions that full warps would need at best, and what that would gain.
    pub full_warps: Option<(u64, Gain)>,
}

impl Estimate {
    fn new(kernel: &Kernel, profile: &Profile, analysis: &Analysis, dynamic_shared: u32, gpu: &Gpu) -> Estimate {
        let of = |demand| roofline(&demand, kernel, &profile.shape, dynamic_shared, gpu);
        let before = of(Demand::new(kernel, profile));
        let width = u64::from(profile.shape.warp_size.max(1));
        let needed = analysis.totals.thread_inst_executed.div_ceil(width);
        let full_warps = (analysis.losses.lost > 0).then(|| {
            // Where both sides of a branch run one after the other, full warps are shorter; where lanes leave early the
            // others take as long as they did.
            let losses = &analysis.losses;
            let branches = losses.causes.iter().filter(|c| matches!(c.cause, Cause::Branch(_))).map(|c| c.lanes);
            let shorter = branches.sum::<u64>() as f64 / losses.slots.max(1) as f64;
            let warp_scale = Scale { best: (1.0 - shorter).max(0.0), worst: 1.0 };
            let after = of(Demand { warp_scale, ..before.demand.with_warp_instructions(needed) });
            (needed, gain_between(&before, &after))
        });
        Estimate { roofline: before, assumed: false, full_warps }
    }
}

impl Ran {
    /// What the launch costs on its GPU.
    pub fn roofline(&self) -> Option<&Roofline> {
        self.estimate.as_ref().map(|e| &e.roofline)
    }

    /// That as a report shows it.
    pub fn roofline_view(&self) -> Option<lanescope_report::roofline::View<'_>> {
        let e = self.estimate.as_ref()?;
        let arch = self.kernel.arch.trim_end_matches(['a', 'f']);
        let other = arch != e.roofline.gpu.arch && arch != "ptx";
        Some(lanescope_report::roofline::View {
            roofline: &e.roofline,
            assumed: e.assumed,
            other_arch: other.then_some(self.kernel.arch.as_str()),
            full_warps: e.full_warps.as_ref().map(|(n, g)| (*n, g)),
        })
    }

    /// Counters.
    pub fn profile(&self) -> &Profile {
        &self.outcome.profile
    }

    /// The buffer of argument `index` after the run, if it is one and wholly known.
    pub fn output(&self, index: usize) -> Result<Option<&Array>, RunError> {
        let (Some(Some(array)), Some(arg)) = (self.buffers.get(index), self.launch.args.get(index)) else {
            return Ok(None);
        };
        let name = buffer_name(index, arg);
        if let Some(u) = self.outcome.unknown.iter().find(|u| u.buffer == name && !u.ranges.is_empty()) {
            let count = u.ranges.iter().map(|r| r.1.saturating_sub(r.0)).sum();
            let first = u.ranges.first().map_or(0, |r| r.0);
            return Err(RunError::UnknownOutput { buffer: name, count, first });
        }
        Ok(Some(array))
    }

    /// The trace of a warp as a report shows it, if it was asked for.
    pub fn trace(&self, block: u64, warp: u32) -> Option<lanescope_report::trace::Trace> {
        let title = format!("{}: block {block}, warp {warp}", self.demangled);
        Some(trace_view(find(&self.outcome.traces, block, warp)?, title, self.profile().shape.warp_size))
    }

    /// Remarks that belong on a report's first screen.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.kernel.warnings.clone();
        warnings.extend(self.outcome.warnings.iter().cloned());
        for u in &self.outcome.unknown {
            let bytes: u64 = u.ranges.iter().map(|r| r.1.saturating_sub(r.0)).sum();
            warnings.push(format!(
                "{bytes} bytes of {} are unknown: they come from instructions that are not implemented",
                u.buffer
            ));
        }
        warnings
    }

    /// What a report is made from.
    pub fn input<'a>(&'a self, sources: &'a HashMap<u32, Vec<String>>, warnings: &'a [String]) -> Input<'a> {
        Input {
            kernel: &self.kernel,
            profile: self.profile(),
            analysis: &self.analysis,
            demangled: &self.demangled,
            source: "sim",
            level: self.level,
            compiler: self.built.as_ref().map(|b| b.compiler.as_str()),
            sources,
            warnings,
        }
    }

    /// The launch file.
    pub fn launch(&self) -> &LaunchFile {
        &self.launch
    }
}

fn buffer_name(index: usize, arg: &launch::Arg) -> String {
    match &arg.name {
        Some(name) => format!("argument {index} ({name})"),
        None => format!("argument {index}"),
    }
}

/// Findings for a message about a launch that failed.
fn found_text(hazards: &[Hazard]) -> String {
    hazards
        .iter()
        .map(|h| {
            format!("\n  found until then: {} [{}] {}", h.finding.severity.name(), h.finding.rule, h.finding.message)
        })
        .collect()
}

fn options(settings: &Settings, kernel: &Kernel) -> Options {
    let defaults = Options::default();
    Options {
        threads: settings.threads,
        max_inst: settings.max_inst.unwrap_or(defaults.max_inst),
        unknown: settings.unknown,
        traces: settings.traces.clone(),
        threads_profile: settings.threads_profile.clone(),
        order: settings.order.clone(),
        selects: lockstep::selects(kernel),
        model: settings.model.unwrap_or_else(|| Model::of(kernel)),
        warp_size: settings.warp_size.unwrap_or(defaults.warp_size),
        ..defaults
    }
}

/// The steps that one PTX instruction takes are one instruction to who wrote it.
fn count_once(kernel: &Kernel, profile: &mut Profile) {
    let steps = profile.totals().inst_executed;
    for (counts, continued) in profile.counts.iter_mut().zip(&kernel.continued) {
        if *continued {
            *counts = LaneCounts {
                inst_executed: 0,
                thread_inst_executed: 0,
                thread_inst_executed_pred_on: 0,
                lanes_missing: 0,
                lanes_exited: 0,
                ..*counts
            };
        }
    }
    if let Some(reach) = profile.reach.as_mut().filter(|_| !kernel.continued.is_empty()) {
        // Which steps each warp issued is not kept; their share of all is.
        let share = profile.counts.iter().map(|c| c.inst_executed).sum::<u64>() as f64 / steps.max(1) as f64;
        let scale = |n: &mut u64| *n = (*n as f64 * share).round() as u64;
        scale(&mut reach.longest_warp);
        scale(&mut reach.longest_block);
        for block in &mut reach.blocks {
            scale(&mut block.inst_executed);
            scale(&mut block.warp_instructions);
        }
    }
}

/// A launch that was refused or stopped.
#[derive(Clone, Debug)]
pub struct Stopped {
    /// The kernel.
    pub kernel: Kernel,
    /// Lanes of a warp.
    pub warp_size: u32,
    /// Why, and what there is of the trace and of the kernel's `printf`.
    pub failure: Failure,
    /// What a checked run had found until then, as lines of text.
    pub found: String,
}

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let error = &self.failure.error;
        write!(f, "{}: {error}", demangle(&self.kernel.name))?;
        if let Some(place) = error.inst().and_then(|i| lanescope_analysis::words::at_line(&self.kernel, i)) {
            write!(f, "\n  source line: {place}")?;
        }
        f.write_str(&self.found)
    }
}

impl Stopped {
    /// The trace of a warp until then as a report shows it, if it was asked for and the warp ran.
    pub fn trace(&self, block: u64, warp: u32) -> Option<lanescope_report::trace::Trace> {
        let title = format!("{}: block {block}, warp {warp}, until it stopped", demangle(&self.kernel.name));
        Some(trace_view(find(&self.failure.traces, block, warp)?, title, self.warp_size))
    }
}

fn find(traces: &[Trace], block: u64, warp: u32) -> Option<&Trace> {
    traces.iter().find(|t| (t.block, t.warp) == (block, warp))
}

fn trace_view(trace: &Trace, title: String, warp_size: u32) -> lanescope_report::trace::Trace {
    use lanescope_report::trace::{Event, Step};
    let steps = trace.steps.iter().map(|s| Step {
        step: s.step,
        inst: s.inst,
        active: s.active,
        executing: s.executing,
        others: s.others.clone(),
        event: match s.event {
            TraceEvent::Step => Event::Step,
            TraceEvent::Split { taken } if taken == s.active => Event::Aside,
            TraceEvent::Split { taken } => Event::Split { taken },
            TraceEvent::Jump => Event::Jump,
            TraceEvent::Exit { lanes } => Event::Exit { lanes },
            TraceEvent::Wait => Event::Wait,
            TraceEvent::Join { group } => Event::Join { group },
        },
    });
    let (block, warp, lanes, steps) = (trace.block, trace.warp, trace.lanes, steps.collect());
    let mut view = lanescope_report::trace::Trace { title, block, warp, lanes, warp_size, steps, cut: trace.cut };
    // A jump through a table is taken by all lanes, to different places.
    for at in 0..view.steps.len() {
        let ways = view.sides(at).len() as u32;
        if let Some(step) = view.steps.get_mut(at).filter(|s| s.event == Event::Aside && ways > 1) {
            step.event = Event::Scatter { ways };
        }
    }
    view
}
