//! What the analysis of uniformity promises, held against what a launch did.

pub(crate) mod llvm;

use std::fmt::Write as _;

use lanescope_analysis::Structure;
use lanescope_analysis::uniformity::{Facts, Uniformity, Verdict};
use lanescope_ir::{Kernel, LaneMask, Profile};
use lanescope_sim::{Trace, TraceEvent};

/// What was checked.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Checked {
    pub(crate) branches: u64,
    pub(crate) never: u64,
    pub(crate) lanes: u64,
    pub(crate) boundary: u64,
    pub(crate) steps: u64,
}

impl Checked {
    pub(crate) fn add(&mut self, o: Checked) {
        self.branches += o.branches;
        self.never += o.never;
        self.lanes += o.lanes;
        self.boundary += o.boundary;
        self.steps += o.steps;
    }
}

/// One launch, and the step trace of one of its warps.
pub(crate) struct Observed<'a> {
    pub(crate) profile: &'a Profile,
    /// Index of the warp in its block, and its steps.
    pub(crate) trace: Option<(u32, &'a Trace)>,
}

/// Every promise that the launch breaks, a line each.
pub(crate) fn contradictions(
    kernel: &Kernel,
    structure: &Structure,
    facts: &Facts,
    seen: &Observed,
    faults: &mut String,
    title: &str,
) -> Checked {
    let u = Uniformity::new(kernel, structure, facts);
    let mut checked = Checked::default();
    let mut fault = |at: u32, what: String| {
        let text = kernel.text.get(at as usize).map_or("?", String::as_str);
        let pc = kernel.instructions.get(at as usize).map_or(0, |i| i.pc);
        let _ = writeln!(faults, "{title}: {at} ({pc:#x}) {text}: {what}");
    };
    for (at, counts) in seen.profile.counts.iter().enumerate() {
        if counts.inst_executed > 0 && !u.reachable(at as u32) {
            fault(at as u32, "called unreachable, but it ran".into());
        }
    }
    for b in &seen.profile.branches {
        let Some(verdict) = u.branch(b.inst) else {
            if b.divergent > 0 {
                fault(b.inst, format!("no verdict, and it split {} of {}", b.divergent, b.executed));
            }
            continue;
        };
        checked.branches += 1;
        match &verdict.verdict {
            Verdict::Never => {
                checked.never += 1;
                if b.divergent > 0 {
                    fault(b.inst, format!("called {}, split {} of {}", verdict.level.name(), b.divergent, b.executed));
                }
            }
            Verdict::Unreachable if b.executed > 0 => fault(b.inst, "called unreachable".into()),
            Verdict::Lanes(_) => checked.lanes += 1,
            Verdict::Boundary(scope) => {
                checked.boundary += 1;
                let warps = match scope {
                    lanescope_analysis::uniformity::Scope::Grid => 1,
                    lanescope_analysis::uniformity::Scope::Block => {
                        seen.profile.shape.grid.iter().map(|&n| u64::from(n)).product()
                    }
                    _ => u64::MAX,
                };
                let in_loop = structure.cfg.block(b.inst).is_some_and(|b| structure.loops.around(b).next().is_some());
                if b.divergent > warps && !in_loop {
                    fault(b.inst, format!("splits at most {warps} warps, split {}", b.divergent));
                }
            }
            _ => {}
        }
    }
    let Some((warp, trace)) = seen.trace else { return checked };
    for step in &trace.steps {
        checked.steps += 1;
        let there = u
            .lanes(step.inst)
            .into_iter()
            .filter(|l| l.warp.is_none_or(|w| w == warp))
            .fold(LaneMask::EMPTY, |m, l| m | l.there);
        if !there.contains(step.active) {
            fault(step.inst, format!("lanes {} are said to be there at most, {} are", there, step.active));
            break;
        }
        if u.apart(step.inst).is_none() && u.after_exit(step.inst).is_none() && step.active != trace.lanes {
            fault(step.inst, format!("called converged, but {} of {} are there", step.active, trace.lanes));
            break;
        }
        let Some(verdict) = u.branch(step.inst) else { continue };
        let taken = match step.event {
            TraceEvent::Split { taken } => taken,
            TraceEvent::Exit { lanes } => lanes,
            _ => continue,
        };
        let Verdict::Lanes(list) = &verdict.verdict else { continue };
        let all: Vec<_> = list.iter().filter(|l| l.warp.is_none_or(|w| w == warp)).collect();
        let claimed = all.iter().fold(LaneMask::EMPTY, |m, l| m | l.taken);
        let splits = matches!(step.event, TraceEvent::Split { .. });
        if splits && all.is_empty() || !all.is_empty() && taken != claimed & step.active {
            fault(step.inst, format!("lanes {claimed} are said to go, {taken} of {} went", step.active));
            break;
        }
    }
    checked
}

/// What can be told about a launch: nothing, that its block is one-dimensional, its block, and everything.
pub(crate) fn facts(
    kernel: &Kernel,
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_shared: u32,
    scalars: &[(u32, Vec<u8>)],
) -> Vec<(&'static str, Facts)> {
    let mut list = vec![("no facts", Facts::default())];
    if block[1] == 1 && block[2] == 1 {
        list.push(("one axis", Facts { linear: true, ..Facts::default() }));
    }
    let shaped = Facts { block: Some(block), ..Facts::default() };
    list.push(("block", shaped.clone()));
    let mut all = Facts { grid: Some(grid), dynamic_shared: Some(dynamic_shared), ..shaped };
    for (ordinal, bytes) in scalars {
        all.argument(kernel, *ordinal, bytes);
    }
    list.push(("all facts", all));
    list
}
