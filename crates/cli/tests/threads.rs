//! What each thread did, on all launches that an H200 was measured on: the records must add up to the counters, agree
//! lane by lane with the trace of a warp, and name the sectors that were counted. Machine code and PTX.

mod launches;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use lanescope::launch::{self, LaunchFile};
use lanescope::run::{Prepared, Ran, RunError, Settings};
use lanescope_analysis::Cfg;
use lanescope_ir::op::control::ControlOp;
use lanescope_ir::op::memory::{MemoryOp, Space};
use lanescope_ir::{BranchKind, Op, ThreadProfile};
use lanescope_sim::{ThreadRequest, TraceRequest};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() {
    let args = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut trials = Vec::new();
    for folder in ["tests/groundtruth", "validation"] {
        let folder = root.join(folder);
        for path in launches::below(&folder) {
            let name = path.strip_prefix(&folder).unwrap_or(&path).with_extension("").display().to_string();
            let ptx = path.with_file_name("kernel.ptx");
            let trial = path.clone();
            trials.push(Trial::test(name.clone(), move || all(&trial, None)).with_kind("sm_90"));
            if ptx.exists() {
                trials.push(Trial::test(name, move || all(&path, Some("kernel.ptx"))).with_kind("ptx"));
            }
        }
    }
    let lockstep = root.join("tests/groundtruth/22-lockstep-while");
    for name in ["lockstep", "lockstep.sorted", "per_lane"] {
        let (path, module) = (lockstep.join(format!("{name}.toml")), "../../../crates/cli/tests/lockstep/kernel.ptx");
        trials.push(Trial::test(name, move || all(&path, Some(module))).with_kind("ptx"));
    }
    libtest_mimic::run(&args, trials).exit();
}

fn all(path: &Path, module: Option<&str>) -> Result<(), Failed> {
    let text = std::fs::read_to_string(path)?;
    let mut file = launch::parse(&path.display().to_string(), &text)?;
    if let Some(module) = module {
        file.module = module.into();
    }
    let dir = path.parent().map(Path::to_path_buf).unwrap_or_default();
    let Some(one) = run(&file, &dir, 1)? else { return Ok(()) };
    let Some(two) = run(&file, &dir, 2)? else { return Err("runs on one thread only".into()) };
    if one.outcome.threads != two.outcome.threads {
        return Err("1 and 2 threads give other records".into());
    }
    let records = one.outcome.threads.as_ref().ok_or("no records")?;
    adds_up(&one, records)?;
    as_traced(&one, records)?;
    splits(&one)?;
    accesses(&one, records)
}

/// `None` if the launch is refused.
fn run(file: &LaunchFile, dir: &Path, threads: usize) -> Result<Option<Ran>, Failed> {
    let settings = Settings {
        threads,
        traces: vec![TraceRequest { block: 0, warp: 0, max_steps: 4_000_000 }],
        threads_profile: Some(ThreadRequest::default()),
        ..Settings::default()
    };
    match Prepared::new(file.clone(), PathBuf::from(dir), &settings).and_then(|p| p.run(None)) {
        Ok(ran) => Ok(Some(ran)),
        Err(RunError::Sim(_) | RunError::Module { .. }) => Ok(None),
        Err(e) => Err(e.to_string().into()),
    }
}

fn continued(ran: &Ran, inst: u32) -> bool {
    ran.kernel.continued.get(inst as usize).copied().unwrap_or(false)
}

fn adds_up(ran: &Ran, t: &ThreadProfile) -> Result<(), Failed> {
    let firsts: Vec<u32> = Cfg::new(&ran.kernel).blocks.iter().map(|b| b.first).collect();
    if t.blocks != firsts || t.threads as u64 != t.of {
        return Err("other blocks, or not all threads".into());
    }
    for (&first, by_thread) in firsts.iter().zip(&t.executions) {
        let sum: u64 = by_thread.iter().map(|&n| u64::from(n)).sum();
        let counted = ran.profile().counts[first as usize].thread_inst_executed;
        // A profile has no counts for the further steps of an instruction.
        if sum != counted && !continued(ran, first) {
            return Err(format!("block at {first}: {sum} executions, counted {counted}").into());
        }
    }
    Ok(())
}

/// The trace has the lanes of each issue.
fn as_traced(ran: &Ran, t: &ThreadProfile) -> Result<(), Failed> {
    let trace = ran.outcome.traces.first().ok_or("no trace")?;
    if trace.cut {
        return Ok(());
    }
    let width = ran.profile().shape.warp_size.min(t.block_threads);
    for (block, &first) in t.blocks.iter().enumerate() {
        let mut lanes = vec![0u32; width as usize];
        for step in trace.steps.iter().filter(|s| s.inst == first) {
            for (l, n) in lanes.iter_mut().enumerate() {
                *n += u32::from(step.active.0 >> l & 1 != 0);
            }
        }
        if lanes[..] != t.executions[block][..width as usize] {
            let ours = &t.executions[block][..width as usize];
            return Err(format!("block at {first}: traced {lanes:?}, recorded {ours:?}").into());
        }
    }
    Ok(())
}

/// Histograms of lanes at splits: they add up to the splits, and where one warp is all there is, its trace has them too.
fn splits(ran: &Ran) -> Result<(), Failed> {
    let shape = ran.profile().shape;
    let threads: u32 = shape.block.iter().product();
    let trace = ran.outcome.traces.first().filter(|t| !t.cut);
    let alone = shape.grid == [1; 3] && threads <= shape.warp_size;
    for b in &ran.profile().branches {
        if b.kind == BranchKind::Indirect {
            let lanes: u64 = b.lanes_histogram.iter().map(|h| u64::from(h.0) * h.1).sum();
            if lanes > b.lanes_taken + b.lanes_not_taken || b.lanes_histogram.is_empty() != (b.divergent == 0) {
                return Err(format!("{b:?}").into());
            }
            continue;
        }
        if b.lanes_histogram.iter().map(|h| h.1).sum::<u64>() != b.divergent {
            return Err(format!("not as many as splits: {b:?}").into());
        }
        let cond = match &ran.kernel.instructions[b.inst as usize].op {
            Op::Control(ControlOp::Branch { cond, .. } | ControlOp::Exit { cond }) => *cond,
            _ => continue,
        };
        let Some(trace) = trace.filter(|_| alone && cond.is_true()) else { continue };
        let mut seen: BTreeMap<u32, u64> = BTreeMap::new();
        for step in trace.steps.iter().filter(|s| s.inst == b.inst) {
            let taken = step.executing.count();
            if taken != 0 && taken != step.active.count() {
                *seen.entry(taken).or_default() += 1;
            }
        }
        if !seen.iter().map(|(&l, &n)| (l, n)).eq(b.lanes_histogram.iter().copied()) {
            return Err(format!("traced {seen:?}, counted {b:?}").into());
        }
    }
    Ok(())
}

fn accesses(ran: &Ran, t: &ThreadProfile) -> Result<(), Failed> {
    let width = ran.profile().shape.warp_size as usize;
    for (at, inst) in ran.kernel.instructions.iter().enumerate() {
        let Op::Memory(op) = &inst.op else { continue };
        let space = match op {
            MemoryOp::Load { space, valid, .. } if valid.is_true() => *space,
            MemoryOp::Store { space, .. } => *space,
            MemoryOp::Atomic { space, .. } => *space,
            _ => continue,
        };
        let counts = &ran.profile().counts[at];
        let found = t.accesses.iter().find(|a| a.inst == at as u32);
        let sum = found.map_or(0, |a| a.threads.iter().map(|t| u64::from(t.count)).sum::<u64>());
        if space == Space::Global
            && !inst.uniform
            && !continued(ran, at as u32)
            && sum != counts.thread_inst_executed_pred_on
        {
            let on = counts.thread_inst_executed_pred_on;
            return Err(format!("`{}`: {sum} accesses, counted {on}", ran.kernel.text[at]).into());
        }
        let Some(found) = found else { continue };
        // Where each warp comes once, its lanes together, their sectors are those that were counted.
        let warps: Vec<_> = found
            .threads
            .chunks(t.block_threads as usize)
            .flat_map(|block| block.chunks(width))
            .filter(|w| w.iter().any(|t| t.count != 0))
            .collect();
        let once = found.threads.iter().all(|t| t.count <= 1) && counts.inst_executed <= warps.len() as u64;
        if !once || continued(ran, at as u32) || matches!(op, MemoryOp::Atomic { .. }) && space == Space::Generic {
            continue;
        }
        let sectors = |w: &[lanescope_ir::ThreadAccess]| {
            let of = |t: &lanescope_ir::ThreadAccess| t.first / 32..(t.first + u64::from(found.bytes)).div_ceil(32);
            w.iter().filter(|t| t.count != 0).flat_map(of).collect::<BTreeSet<u64>>().len() as u64
        };
        let sum: u64 = warps.iter().map(|w| sectors(w)).sum();
        if sum != counts.sectors {
            return Err(format!("`{}`: {sum} sectors, counted {}", ran.kernel.text[at], counts.sectors).into());
        }
    }
    Ok(())
}
