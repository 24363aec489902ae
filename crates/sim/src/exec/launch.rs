//! All blocks of a launch.
//!
//! Results never depend on the number of threads. Blocks run in parallel as long as they are independent; [`Shadow`]
//! watches whether they are. If it finds that blocks communicate through global memory, or the kernel has global atomics
//! whose effect depends on order, the launch runs (again, from the memory it was given) on one thread, blocks in order.
//! A block that runs for long makes way for the next ones now and then, so that blocks may wait for each other.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use lanescope_ir::{Kernel, LaunchShape, verify};

use super::block::{Block, Turn};
use super::counters::Counters;
use super::poison::Poison;
use super::printed::{LIMIT, Prints};
use super::program::Program;
use super::record::{BlockRecord, Recorder};
use super::trace::Tracer;
use super::{BlockCx, Cx, rows};
use crate::convergence::Convergence;
use crate::error::SimError;
use crate::launch::{Failure, Launch, Outcome, Progress, Trace, Unknown};
use crate::memory::GlobalMemory;
use crate::memory::bank::Banks;
use crate::memory::shadow::Shadow;
use crate::memory::touched::Touched;

/// Threads of a block at most.
const MAX_THREADS: u32 = 1024;
/// Shared memory of a block at most: 227 KiB, and 1 KiB that the system reserves.
const MAX_SHARED: u32 = 228 << 10;
/// Local memory of a thread at most, and of a block.
const MAX_LOCAL: u32 = 512 << 10;
const MAX_LOCAL_BLOCK: u64 = 512 << 20;
/// Warp instructions after which a block makes way for the next ones.
const SLICE: u64 = 1 << 20;
/// Memory that blocks in flight may take, and how many there may be.
const IN_FLIGHT_BYTES: u64 = 512 << 20;
const IN_FLIGHT: u64 = 1024;

/// Checks the shape of a launch against the hardware's limits and the kernel's own.
fn check(kernel: &Kernel, launch: &Launch) -> Result<(), SimError> {
    const AXES: [char; 3] = ['x', 'y', 'z'];
    let shapes = [
        ("grid", launch.grid, [i32::MAX as u32, 65535, 65535]),
        ("block", launch.block, [MAX_THREADS, MAX_THREADS, 64]),
    ];
    for (what, shape, limits) in shapes {
        if shape.contains(&0) {
            return Err(SimError::Empty { what, shape });
        }
        for ((axis, value), limit) in AXES.into_iter().zip(shape).zip(limits) {
            if value > limit {
                return Err(SimError::DimensionTooLarge { what, axis, value, limit });
            }
        }
    }
    let threads: u64 = launch.block.iter().map(|&n| u64::from(n)).product();
    if threads > u64::from(MAX_THREADS) {
        return Err(SimError::TooManyThreads { threads, limit: MAX_THREADS, by_kernel: false });
    }
    if let Some(required) = kernel.required_block
        && required != launch.block
    {
        return Err(SimError::WrongBlock { required, given: launch.block });
    }
    if kernel.max_threads != 0 && threads > u64::from(kernel.max_threads) {
        return Err(SimError::TooManyThreads { threads, limit: kernel.max_threads, by_kernel: true });
    }
    let shared = u64::from(kernel.shared_size) + u64::from(launch.dynamic_shared);
    if shared > u64::from(MAX_SHARED) {
        return Err(SimError::SharedTooLarge { bytes: shared, fixed: kernel.shared_size, limit: MAX_SHARED });
    }
    let lanes = threads.next_multiple_of(launch.options.warp_size.max(32).into());
    let limit = (MAX_LOCAL_BLOCK / lanes).min(MAX_LOCAL.into()) as u32;
    if kernel.local_size > limit {
        return Err(SimError::LocalTooLarge { bytes: kernel.local_size, limit });
    }
    Ok(())
}

/// Blocks that are left to run, and how it goes.
struct Queue<'a> {
    next: AtomicU64,
    total: u64,
    done: AtomicU64,
    issued: AtomicU64,
    /// Blocks from here on are given up: an earlier one has failed.
    end: AtomicU64,
    error: Mutex<Option<(u64, SimError)>>,
    progress: Option<Progress<'a>>,
}

impl Queue<'_> {
    fn take(&self) -> Option<u64> {
        if self.next.load(Ordering::Relaxed) >= self.total.min(self.end.load(Ordering::Relaxed)) {
            return None;
        }
        let linear = self.next.fetch_add(1, Ordering::Relaxed);
        (linear < self.total).then_some(linear)
    }

    fn fail(&self, linear: u64, error: SimError, everything: bool) {
        self.end.fetch_min(if everything { 0 } else { linear }, Ordering::Relaxed);
        let mut slot = self.error.lock().unwrap_or_else(|e| e.into_inner());
        if slot.as_ref().is_none_or(|(at, _)| linear < *at) {
            *slot = Some((linear, error));
        }
    }

    fn finished(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let step = self.total / 1000 + 1;
        if let Some(progress) = self.progress
            && (done.is_multiple_of(step) || done == self.total)
        {
            progress(done, self.total);
        }
    }
}

/// A block in flight.
struct Flight<C> {
    linear: u64,
    block: Block<C>,
    tracer: Option<Tracer>,
    record: Option<Box<BlockRecord>>,
}

/// What all threads work on.
struct Job<'a, C: Convergence> {
    cx: &'a Cx<'a>,
    plan: &'a C::Plan,
    launch: &'a Launch,
    queue: &'a Queue<'a>,
    max_in_flight: usize,
}

/// What one thread has counted and recorded.
struct Harvest {
    counters: Counters,
    traces: Vec<Trace>,
    prints: Prints,
}

impl<C: Convergence> Job<'_, C> {
    fn block(&self, linear: u64) -> BlockCx<'_> {
        let [x, y, _] = self.cx.grid.map(u64::from);
        BlockCx { cx: self.cx, id: [(linear % x) as u32, (linear / x % y) as u32, (linear / x / y) as u32], linear }
    }

    fn start(&self, linear: u64, idle: Option<Block<C>>, record: Option<Box<BlockRecord>>) -> Flight<C> {
        let b = self.block(linear);
        let block = match idle {
            Some(mut block) => {
                block.clear(&b);
                block
            }
            None => Block::new(&b, self.plan),
        };
        let tracer = Tracer::new(linear, &self.launch.options.traces, |w| block.warp_lanes(w));
        let record = self.cx.recorder.and_then(|r| r.start(linear, record));
        Flight { linear, block, tracer, record }
    }

    fn given_up(&self, linear: u64) -> bool {
        linear >= self.queue.end.load(Ordering::Relaxed) || self.cx.shadow.is_some_and(Shadow::conflict)
    }

    /// Runs blocks until none is left.
    fn work(&self, mut poison: Option<&mut Poison>) -> Harvest {
        let mut harvest =
            Harvest { counters: Counters::new(self.cx.program), traces: Vec::new(), prints: Prints::default() };
        let mut idle: Vec<Block<C>> = Vec::new();
        let mut idle_records: Vec<Box<BlockRecord>> = Vec::new();
        let mut flights: Vec<Flight<C>> = Vec::new();
        let mut at = 0;
        // Slices in a row of blocks that only other blocks can get out of their loops.
        let mut stuck = 0;
        loop {
            // A new block when there is none, or when all in flight have had their slice.
            if at >= flights.len() {
                at = 0;
                if flights.len() < self.max_in_flight
                    && !self.given_up(0)
                    && let Some(linear) = self.queue.take()
                {
                    if let Some(p) = poison.as_deref_mut() {
                        p.clear();
                    }
                    at = flights.len();
                    flights.push(self.start(linear, idle.pop(), idle_records.pop()));
                } else if stuck != 0 && stuck >= flights.len() {
                    self.report_stuck(&flights);
                }
            }
            let Some(flight) = flights.get_mut(at) else { break };
            let turn = self.slice(flight, &mut harvest.counters, poison.as_deref_mut());
            stuck = if turn == Turn::Stuck { stuck + 1 } else { 0 };
            match turn {
                Turn::More | Turn::Stuck => at += 1,
                Turn::Done => {
                    let mut flight = flights.remove(at);
                    harvest.prints.add(flight.linear, std::mem::take(&mut flight.block.printed));
                    if let Some(tracer) = flight.tracer {
                        harvest.traces.extend(tracer.finish());
                    }
                    if let (Some(recorder), Some(record)) = (self.cx.recorder, flight.record) {
                        recorder.finish(flight.linear, &record);
                        idle_records.push(record);
                    }
                    idle.push(flight.block);
                }
            }
        }
        harvest
    }

    /// All blocks in flight wait for each other, and no other can start.
    fn report_stuck(&self, flights: &[Flight<C>]) {
        for f in flights {
            let b = self.block(f.linear);
            if let Some(error) = f.block.stuck(&b) {
                self.queue.fail(f.linear, error, true);
            }
        }
    }

    /// Runs a block for a while. `Done` also if it is given up.
    fn slice(&self, flight: &mut Flight<C>, counters: &mut Counters, mut poison: Option<&mut Poison>) -> Turn {
        let b = self.block(flight.linear);
        let max = self.launch.options.max_inst;
        flight.block.resumed = flight.block.clock;
        let until = flight.block.clock.saturating_add(SLICE);
        while flight.block.clock < until {
            if self.given_up(flight.linear) {
                return Turn::Done;
            }
            let before = flight.block.clock;
            let left = match max {
                0 => u64::MAX,
                max => max.saturating_sub(self.queue.issued.load(Ordering::Relaxed)),
            };
            let (tracer, record) = (flight.tracer.as_mut(), flight.record.as_deref_mut());
            let turn = flight.block.turn(&b, counters, tracer, poison.as_deref_mut(), record, left.max(1));
            let issued = self.queue.issued.fetch_add(flight.block.clock - before, Ordering::Relaxed);
            match turn {
                Ok(Turn::Done) => {
                    self.queue.finished();
                    return Turn::Done;
                }
                Ok(Turn::More) if max != 0 && issued + (flight.block.clock - before) > max => {
                    let at = flight.block.positions(&b);
                    self.queue.fail(flight.linear, SimError::MaxInst { limit: max, block: b.id, at }, true);
                    return Turn::Done;
                }
                Ok(Turn::More) => {}
                Ok(Turn::Stuck) => {
                    // Blocks of other threads may help it; that is settled with all blocks in order.
                    if let Some(shadow) = self.cx.shadow {
                        shadow.set_conflict();
                    }
                    return Turn::Stuck;
                }
                Err(error) => {
                    flight.block.finish_check(&b);
                    self.queue.fail(flight.linear, error, self.cx.shadow.is_none());
                    return Turn::Done;
                }
            }
        }
        Turn::More
    }
}

/// Runs all blocks; the memory's content afterwards and the counters are right unless there was a conflict.
fn all_blocks<C: Convergence>(
    cx: &Cx<'_>,
    plan: &C::Plan,
    launch: &Launch,
    threads: usize,
    progress: Option<Progress<'_>>,
    poison: Option<&mut Poison>,
) -> Result<Harvest, Box<Failure>> {
    let queue = Queue {
        next: AtomicU64::new(0),
        total: total_blocks(launch),
        done: AtomicU64::new(0),
        issued: AtomicU64::new(0),
        end: AtomicU64::new(u64::MAX),
        error: Mutex::new(None),
        progress,
    };
    let rows = u64::from(cx.warps) * rows::<C>() as u64;
    let registers = (u64::from(cx.kernel.slots) + 8) * 128 * rows;
    let bytes = registers + u64::from(cx.shared_size) + u64::from(cx.kernel.local_size) * rows * 32;
    let bytes = bytes + if cx.program.prints { LIMIT as u64 } else { 0 };
    let bytes = bytes + cx.recorder.map_or(0, Recorder::bytes);
    let max_in_flight =
        if poison.is_some() { 1 } else { (IN_FLIGHT_BYTES / bytes / threads as u64).clamp(1, IN_FLIGHT) };
    let job = Job::<C> { cx, plan, launch, queue: &queue, max_in_flight: max_in_flight as usize };
    let mut harvest = if threads <= 1 {
        job.work(poison)
    } else {
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(|| job.work(None))).collect();
            let mut all = job.work(None);
            for other in others {
                match other.join() {
                    Ok(h) => {
                        all.counters.add(&h.counters);
                        all.traces.extend(h.traces);
                        all.prints.merge(h.prints);
                    }
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            all
        })
    };
    harvest.traces.sort_by_key(|t| (t.block, t.warp));
    match queue.error.into_inner().unwrap_or_else(|e| e.into_inner()) {
        Some((at, error)) => {
            let (printed, printed_lost) = harvest.prints.until(at).finish();
            Err(Box::new(Failure { error, traces: harvest.traces, printed, printed_lost }))
        }
        None => Ok(harvest),
    }
}

fn total_blocks(launch: &Launch) -> u64 {
    launch.grid.iter().map(|&n| u64::from(n)).fold(1, u64::saturating_mul)
}

/// Runs a kernel with the convergence model `C`.
pub(crate) fn simulate<C: Convergence>(
    kernel: &Kernel,
    plan: &C::Plan,
    launch: &Launch,
    memory: &mut GlobalMemory,
    progress: Option<Progress<'_>>,
) -> Result<Outcome, Box<Failure>> {
    verify::verify(kernel).map_err(SimError::BadKernel)?;
    if launch.options.warp_size != C::LANES {
        return Err(SimError::WarpSize { size: launch.options.warp_size, model: C::LANES }.into());
    }
    check(kernel, launch)?;
    memory.place_globals(&kernel.globals)?;
    memory.place_constants(&kernel.mapped, &Banks::new(&launch.bank0, &kernel.constants))?;
    let options = &launch.options;
    let (program, refusals) = Program::new::<C>(kernel, &launch.bank0, options)?;
    let mut poison = (options.unknown == Unknown::Poison && program.has_unsupported).then(Poison::default);
    let total = total_blocks(launch);
    let threads = match options.threads {
        0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        n => n,
    };
    let threads = (threads as u64).min(total).min(256) as usize;
    let independent = !program.ordered && poison.is_none() && total < u64::from(u32::MAX >> 1);
    let atomics = Mutex::new(());
    let memory: &GlobalMemory = memory;
    let touched = Touched::new(memory, options.l1.is_some());
    let ordered = Cx {
        kernel,
        program: &program,
        refusals: &refusals,
        memory,
        shadow: None,
        touched: &touched,
        l1: options.l1,
        check: options.check.as_deref(),
        recorder: None,
        atomics: &atomics,
        grid: launch.grid,
        block: launch.block,
        warps: launch.block.iter().product::<u32>().div_ceil(C::LANES),
        warp_size: C::LANES,
        shared_size: kernel.shared_size + launch.dynamic_shared,
        order: options.order.as_ref(),
    };
    let record = || -> Result<Option<Recorder>, SimError> {
        let rows = ordered.warps as usize * rows::<C>();
        let request = options.threads_profile.as_ref();
        request.map(|r| Recorder::new(kernel, r, total, launch.block.iter().product(), rows)).transpose()
    };
    let mut harvest = None;
    if threads > 1 && independent {
        let content = memory.snapshot();
        let shadow = Shadow::new(memory);
        let recorder = record()?;
        let cx = Cx { shadow: Some(&shadow), recorder: recorder.as_ref(), ..ordered };
        let result = all_blocks::<C>(&cx, plan, launch, threads, progress, None);
        if shadow.conflict() {
            memory.restore(&content);
            touched.clear();
            options.check.iter().for_each(|log| log.clear());
        } else {
            harvest = Some((result?, recorder));
        }
    }
    let (harvest, recorder) = match harvest {
        Some(h) => h,
        None => {
            let recorder = record()?;
            let cx = Cx { recorder: recorder.as_ref(), ..ordered };
            (all_blocks::<C>(&cx, plan, launch, 1, progress, poison.as_mut())?, recorder)
        }
    };
    let shape = LaunchShape { grid: launch.grid, block: launch.block, warp_size: C::LANES };
    let (printed, printed_lost) = harvest.prints.finish();
    let extremes = harvest.counters.extremes;
    Ok(Outcome {
        printed,
        printed_lost,
        profile: harvest.counters.profile(&program, shape, &touched, options.l1),
        warnings: kernel.warnings.clone(),
        traces: harvest.traces,
        extremes,
        threads: recorder.zip(options.threads_profile.as_ref()).map(|(r, request)| r.profile(request)),
        unknown: poison.map_or(Vec::new(), |p| p.unknown(memory)),
    })
}
