//! One kernel's counts.

use std::collections::HashSet;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use lanescope_analysis::reconvergence::{self, Decides, Reconvergence};
use lanescope_report::survey::{Branch, Branches, Classes, Kernel, Kind, Opcodes, Regions, Verdict};
use lanescope_sass::container::{Function, Module};
use lanescope_sass::flow::{FlowReader, FunctionFlow};

use super::Context;
use super::proof::Proofs;
use crate::names::demangle;

/// Opcode names, each kept once for all kernels.
#[derive(Default)]
pub(super) struct Names(Mutex<HashSet<Arc<str>>>);

impl Names {
    fn shared(&self, name: &str) -> Arc<str> {
        // The set stays whole whatever became of another thread.
        let mut set = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = set.get(name) {
            return known.clone();
        }
        let new: Arc<str> = name.into();
        set.insert(new.clone());
        new
    }
}

/// Counts a kernel or function.
pub(super) fn count(
    context: &Context<'_>,
    reader: &FlowReader,
    module: &Module<'_>,
    function: &Function<'_>,
) -> Kernel {
    let mut kernel = Kernel {
        name: function.name.to_string(),
        demangled: demangle(&function.name),
        kind: if function.is_kernel() { Kind::Kernel } else { Kind::Function },
        instructions: 0,
        opcodes: Opcodes::new(),
        regions: Regions::default(),
        verdict: Verdict::None,
        branches: Branches::default(),
        unjudged: None,
        list: None,
        error: None,
    };
    match reader.read(function) {
        Ok(flow) => fill(context, &mut kernel, &flow, module, function),
        Err(e) => kernel.error = Some(e.to_string()),
    }
    context.progress.kernels.fetch_add(1, Relaxed);
    (context.tell)(context.progress);
    kernel
}

fn fill(context: &Context<'_>, kernel: &mut Kernel, flow: &FunctionFlow, module: &Module<'_>, function: &Function<'_>) {
    kernel.instructions = flow.instructions.into();
    kernel.opcodes = flow.opcodes.iter().map(|(n, &c)| (context.names.shared(n), c.into())).collect();
    if flow.code.has_values {
        kernel.verdict = Verdict::Taint;
    }
    if let Some((count, first)) = &flow.undecoded {
        // An unknown word may be a branch: what is known of the others would be a guess.
        kernel.error = Some(format!("{count} of {} words do not decode; {first}", flow.instructions));
        return;
    }
    match reconvergence::survey(&flow.code) {
        Ok(found) => {
            kernel.branches = Branches::of(&found);
            kernel.regions = Regions {
                opened: found.regions.into(),
                endless: found.endless.into(),
                unmatched: found.unmatched.into(),
            };
            // Without a branch there is nothing to prove.
            let deciding = found.branches.iter().any(|b| b.decides == Decides::Lanes);
            let proofs = (context.request.uniformity && deciding).then(|| Proofs::new(module, function));
            if context.request.uniformity {
                kernel.branches.unproved = Some(unproved(flow, &found, proofs.as_ref()));
            }
            if let Some(Err(error)) = &proofs {
                kernel.unjudged = Some(error.clone());
            }
            kernel.list = context.request.branches.then(|| list(flow, &found, proofs.as_ref()));
        }
        Err(e) => kernel.error = Some(e.to_string()),
    }
}

/// What the uniformity analysis says, or why it says nothing.
type Judged = Result<Proofs, String>;

/// Whether a branch is not proved to keep warps together; `None` if that was not asked, or cannot be told.
fn not_proved(flow: &FunctionFlow, branch: &reconvergence::Branch, proofs: Option<&Judged>) -> Option<bool> {
    let Some(Ok(proofs)) = proofs else { return None };
    if branch.decides != Decides::Lanes {
        return None;
    }
    proofs.splits(flow.code.insts.get(branch.at as usize)?.pc)
}

/// Branches not proved to keep warps together, by class.
fn unproved(flow: &FunctionFlow, found: &Reconvergence, proofs: Option<&Judged>) -> Classes {
    let mut out = Classes::default();
    for branch in found.branches.iter().filter(|b| b.decides == Decides::Lanes) {
        if not_proved(flow, branch, proofs).unwrap_or(branch.diverges != Some(false)) {
            out.count(branch.class);
        }
    }
    out
}

fn list(flow: &FunctionFlow, found: &Reconvergence, proofs: Option<&Judged>) -> Vec<Branch> {
    let pc = |at: u32| flow.code.insts.get(at as usize).map(|i| i.pc);
    let branch = |b: &reconvergence::Branch| {
        Some(Branch {
            pc: pc(b.at)?,
            decides: match b.decides {
                Decides::Lanes => "lanes",
                Decides::Group => "group",
                Decides::Test => "test",
            },
            diverges: b.diverges,
            unproved: not_proved(flow, b, proofs),
            class: b.class.name(),
            meets_at: b.meets_at.and_then(pc),
            rejoins_at: b.rejoins_at.and_then(pc),
        })
    };
    found.branches.iter().filter_map(branch).collect()
}
