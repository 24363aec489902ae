//! One kernel's counts.

use std::collections::HashSet;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use lanescope_analysis::reconvergence::{self, Decides, Reconvergence};
use lanescope_report::survey::{Branch, Branches, Kernel, Kind, Opcodes, Regions, Verdict};
use lanescope_sass::container::Function;
use lanescope_sass::flow::{FlowReader, FunctionFlow};

use super::Context;
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
pub(super) fn count(context: &Context<'_>, reader: &FlowReader, function: &Function<'_>) -> Kernel {
    let mut kernel = Kernel {
        name: function.name.to_string(),
        demangled: demangle(&function.name),
        kind: if function.is_kernel() { Kind::Kernel } else { Kind::Function },
        instructions: 0,
        opcodes: Opcodes::new(),
        regions: Regions::default(),
        verdict: Verdict::None,
        branches: Branches::default(),
        list: None,
        error: None,
    };
    match reader.read(function) {
        Ok(flow) => fill(context, &mut kernel, &flow),
        Err(e) => kernel.error = Some(e.to_string()),
    }
    context.progress.kernels.fetch_add(1, Relaxed);
    (context.tell)(context.progress);
    kernel
}

fn fill(context: &Context<'_>, kernel: &mut Kernel, flow: &FunctionFlow) {
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
            kernel.list = context.request.branches.then(|| list(flow, &found));
        }
        Err(e) => kernel.error = Some(e.to_string()),
    }
}

fn list(flow: &FunctionFlow, found: &Reconvergence) -> Vec<Branch> {
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
            class: b.class.name(),
            meets_at: b.meets_at.and_then(pc),
            rejoins_at: b.rejoins_at.and_then(pc),
        })
    };
    found.branches.iter().filter_map(branch).collect()
}
