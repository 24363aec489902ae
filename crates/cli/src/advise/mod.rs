//! What to do about a launch: run it, find what decides, price the fixes, run the best again.
//!
//! ```no_run
//! use lanescope::advise::{Settings, Watch, advise};
//!
//! let advised = advise("moe.toml".as_ref(), &Settings::default(), &Watch::default())?;
//! println!("{}", advised.advice.summary);
//! # Ok::<(), lanescope::run::RunError>(())
//! ```

mod emit;
mod trial;

use std::path::Path;

use lanescope_analysis::advise::permute::{Layout, permute};
use lanescope_analysis::advise::{
    self, Advice, Argument, Buffer, Confidence, Fix, Input, Method, Number, Plan, Verdict, WORTH_IT,
};
use lanescope_analysis::lint;
use lanescope_analysis::roofline::{Bound, Demand, Gain, Roofline, gain_between, roofline};
use lanescope_analysis::uniformity::{Facts, Uniformity};
use lanescope_analysis::whatif::WhatIfError;
use lanescope_analysis::{Structure, words};
use lanescope_ir::{Kernel, Severity};
use lanescope_report::Level;
use lanescope_sim::{Progress, ThreadRequest};

use crate::launch::args::Data;
use crate::run::{self, Prepared, Ran, RunError};

pub use emit::{EmitError, emit};
pub use trial::{Moved, Trial};

/// Fixes that are run again, unless something else is asked for.
pub const CONFIRMED: usize = 3;
/// Share of the launch that a fix must save by the model to be run again.
const WORTH_A_RUN: f64 = 0.01;

/// How to advise.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How to run the launch.
    pub run: run::Settings,
    /// Fixes that only move data are run again, at most so many; 0 for none.
    pub confirm: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { run: run::Settings::default(), confirm: CONFIRMED }
    }
}

/// A launch with advice.
#[derive(Debug)]
pub struct Advised {
    /// The launch as it was prepared.
    pub prepared: Prepared,
    /// The launch as it ran.
    pub ran: Ran,
    /// What to do.
    pub advice: Advice,
    /// For each fix of the advice, how the run with it went, if there was one.
    pub trials: Vec<Option<Trial>>,
    /// For each fix of the advice, if it only changes the places of threads, the order: position p plays thread `order[p]`.
    pub orders: Vec<Option<Vec<u32>>>,
    /// What each argument holds.
    pub layouts: Vec<Layout>,
}

/// A stage of the work that takes time, for progress: its name, and what is told about its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The launch as it is.
    Run,
    /// The launch with a fix: which one, of how many.
    Again(usize, usize),
}

/// Who is told how far the work is.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// A stage begins.
    pub stage: &'a dyn Fn(Stage),
    /// Blocks done, and of all, in the stage at hand.
    pub blocks: Option<Progress<'a>>,
}

impl Default for Watch<'_> {
    fn default() -> Self {
        Watch { stage: &|_| {}, blocks: None }
    }
}

impl std::fmt::Debug for Watch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

/// Reads a launch file, runs it and says what to do.
///
/// # Errors
/// A launch that cannot be prepared or does not end well.
pub fn advise(path: &Path, settings: &Settings, watch: &Watch<'_>) -> Result<Advised, RunError> {
    of_prepared(Prepared::open(path, &settings.run)?, settings.confirm, watch)
}

/// The same for a launch that is prepared already.
///
/// # Errors
/// A launch that does not end well.
pub fn of_prepared(prepared: Prepared, confirm: usize, watch: &Watch<'_>) -> Result<Advised, RunError> {
    let kernel = &prepared.kernel;
    let structure = Structure::new(kernel);
    let facts = facts(&prepared);
    let uniformity = Uniformity::new(kernel, &structure, &facts);
    let values = advise::wanted(kernel, &structure, &uniformity);
    let request = ThreadRequest { values, max_bytes: 0 };
    (watch.stage)(Stage::Run);
    let error = fault(kernel, &structure, &uniformity, &facts);
    let ran = prepared.clone().recording(request).run(watch.blocks).map_err(|e| match (e, &error) {
        (RunError::Sim(mut stopped), Some(error)) => {
            stopped.found.push_str(&format!("\n  found in the code: {error}"));
            RunError::Sim(stopped)
        }
        (e, _) => e,
    })?;
    let plan = {
        let arguments = arguments(&prepared, &ran);
        let threads = ran.outcome.threads.clone().unwrap_or_default();
        let input = Input {
            kernel,
            profile: ran.profile(),
            analysis: &ran.analysis,
            threads: &threads,
            uniformity: &uniformity,
            arguments: &arguments,
            error: error.as_deref(),
            estimate: prepared.level == Level::Ptx,
        };
        advise::plan(&input)
    };
    let tried = match plan {
        Ok(plan) => tried(&prepared, &ran, plan, confirm, watch)?,
        // A launch of which no thread was recorded is too large, or did nothing.
        Err(e) => Tried { advice: nothing(&ran, &e), ..Tried::default() },
    };
    let Tried { advice, trials, orders, layouts } = tried;
    Ok(Advised { prepared, ran, advice, trials, orders, layouts })
}

#[derive(Default)]
struct Tried {
    advice: Advice,
    trials: Vec<Option<Trial>>,
    orders: Vec<Option<Vec<u32>>>,
    layouts: Vec<Layout>,
}

/// Runs the best fixes again and concludes.
fn tried(prepared: &Prepared, ran: &Ran, mut plan: Plan, confirm: usize, watch: &Watch<'_>) -> Result<Tried, RunError> {
    // An order of the threads of the first blocks is no order of the launch: nothing can be confirmed by it.
    let confirm = if plan.advice.model.complete { confirm } else { 0 };
    let worth = |f: &Fix| f.saved() as f64 >= WORTH_A_RUN * f.before as f64 && f.saved() > 0;
    let chosen: Vec<usize> = (0..plan.advice.fixes.len())
        .filter(|&i| plan.orders[i].is_some() && worth(&plan.advice.fixes[i]))
        .take(confirm)
        .collect();
    let arguments = arguments(prepared, ran);
    let mut trials: Vec<Option<Trial>> = vec![None; plan.advice.fixes.len()];
    for (n, &i) in chosen.iter().enumerate() {
        let Some(order) = &plan.orders[i] else { continue };
        (watch.stage)(Stage::Again(n + 1, chosen.len()));
        let by_code = plan.advice.fixes[i].method == Method::AlignedBranch;
        let trial = trial::run(prepared, ran, &arguments, &plan.layouts, order, by_code, watch.blocks)?;
        trial.apply(&mut plan.advice.fixes[i]);
        trials[i] = Some(trial);
    }
    let layouts = plan.layouts.clone();
    let before = ran.roofline().cloned();
    let gains: Vec<Option<Gain>> =
        plan.advice.fixes.iter().zip(&trials).map(|(f, t)| gain(ran, before.as_ref()?, f, t.as_ref())).collect();
    for (fix, gain) in plan.advice.fixes.iter_mut().zip(&gains) {
        fix.speedup = gain.as_ref().map(|g| g.speedup);
    }
    let memory_bound = |fix: &Fix| {
        let bound = before.as_ref().is_some_and(|r| r.bound == Bound::Memory);
        let most = fix.speedup.map_or(f64::INFINITY, |s| s.high);
        let words = gains.iter().flatten().find(|g| Some(g.speedup) == fix.speedup).map(|g| g.words.clone());
        words.filter(|_| bound && most < 1.0 + WORTH_IT)
    };
    let (advice, from) = plan.conclude(&memory_bound);
    let orders = from.iter().map(|(i, o)| (*i, o.clone()));
    let (trials, orders) = orders.map(|(i, o)| (trials.get_mut(i).and_then(Option::take), o)).unzip();
    Ok(Tried { advice, trials, orders, layouts })
}

/// How much faster the launch gets with a fix, on its GPU.
fn gain(ran: &Ran, before: &Roofline, fix: &Fix, trial: Option<&Trial>) -> Option<Gain> {
    let demand = match trial {
        Some(Trial::Same { demand, .. }) => (**demand).clone(),
        Some(Trial::Differs { .. } | Trial::Refused { .. }) => return None,
        None => Demand::new(&ran.kernel, ran.profile()).with_warp_instructions(fix.predicted),
    };
    let gpu = &before.gpu;
    let after = roofline(&demand, &ran.kernel, &ran.profile().shape, ran.launch().dynamic_shared, gpu);
    Some(gain_between(before, &after))
}

/// What is known of the launch before it runs.
fn facts(prepared: &Prepared) -> Facts {
    let mut facts = Facts {
        block: Some(prepared.launch.block),
        grid: Some(prepared.launch.grid),
        dynamic_shared: Some(prepared.launch.dynamic_shared),
        ..Facts::default()
    };
    for (param, data) in prepared.kernel.params.iter().zip(&prepared.data) {
        if let Data::Value(bytes) = data {
            facts.argument(&prepared.kernel, param.ordinal, bytes);
        }
    }
    facts
}

/// The gravest synchronisation error of the code, in words.
fn fault(kernel: &Kernel, structure: &Structure, uniformity: &Uniformity, facts: &Facts) -> Option<String> {
    let found = lint::check(&lint::Input { kernel, structure, uniformity, facts });
    let error = found.into_iter().map(|h| h.finding).find(|f| f.severity == Severity::Error)?;
    let place = error.inst.map(|i| format!(" at {}", words::place(kernel, i))).unwrap_or_default();
    Some(format!("`{}`{place} (see `lanescope check`)", error.rule))
}

/// The arguments as the advice sees them.
fn arguments<'a>(prepared: &'a Prepared, ran: &Ran) -> Vec<Argument<'a>> {
    let one = |(i, (arg, data)): (usize, (&crate::launch::Arg, &'a Data))| {
        let address = ran.addresses.get(i).copied().flatten();
        let buffer = match (data, address) {
            (Data::Buffer(array), Some(address)) => Some(Buffer {
                address,
                data: &array.data,
                element: array.item as u32,
                kind: match array.descr.trim_matches('\'').as_bytes().get(1) {
                    Some(b'i') => Number::Signed,
                    Some(b'f') => Number::Float,
                    _ => Number::Unsigned,
                },
            }),
            _ => None,
        };
        Argument { name: arg.name.clone(), buffer }
    };
    prepared.launch.args.iter().zip(&prepared.data).enumerate().map(one).collect()
}

/// Advice where nothing could be recorded.
fn nothing(ran: &Ran, error: &WhatIfError) -> Advice {
    let why = format!("nothing can be said about other orders of its threads: {error}");
    Advice {
        summary: format!("Leave it: {why}."),
        verdict: Verdict::LeaveIt { why },
        before: ran.profile().totals().inst_executed,
        ..Advice::default()
    }
}

impl Advised {
    /// The launch with the best fix, if that only changes the places of data or threads and was proved.
    pub fn fixed(&self) -> Option<Prepared> {
        let Verdict::Fix(best) = self.advice.verdict else { return None };
        let order = self.orders.get(best)?.as_ref()?;
        let Some(Trial::Same { moved, .. }) = self.trials.get(best)? else { return None };
        let arguments = arguments(&self.prepared, &self.ran);
        match moved {
            Moved::Data => Some(trial::with_data(&self.prepared, &permute(&arguments, &self.layouts, order).ok()?)),
            Moved::Threads(_) => Some(self.prepared.clone().in_order(trial::in_order(&self.prepared, order))),
        }
    }
}

impl Trial {
    /// Writes the outcome into the fix.
    fn apply(&self, fix: &mut Fix) {
        match self {
            Trial::Same { warp_instructions, moved, .. } => {
                fix.confirmed = Some(*warp_instructions);
                fix.confidence = Confidence::Confirmed;
                fix.caveats.push(match moved {
                    Moved::Threads(_) if fix.method == Method::AlignedBranch => {
                        "Run again with each thread in the place that its side has: all outputs are the same, bit for bit."
                            .into()
                    }
                    Moved::Data => {
                        "Run again with the data in this order: all outputs are the same, bit for bit.".into()
                    }
                    Moved::Threads(why) => format!(
                        "The data cannot simply change places ({why}). Let each thread take its index from an array \
                         instead (`i = order[blockIdx.x * blockDim.x + threadIdx.x]`, one more load): run again that \
                         way, all outputs are the same, bit for bit. That load is not in the figure."
                    ),
                });
            }
            Trial::Differs { warp_instructions, what } => {
                fix.confidence = Confidence::Refuted;
                fix.caveats.push(format!(
                    "Run again in this order it issues {} warp instructions, but the outputs are not the same: {what}. So \
                     it is not confirmed.",
                    words::count(*warp_instructions)
                ));
            }
            Trial::Refused { why } => fix.caveats.push(format!("It could not be run again: {why}.")),
        }
    }
}
