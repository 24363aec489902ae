//! Fixes that permute a launch's data: what was predicted against what comes out, and against an H200.
//!
//! `tests/data/fixes/h200.json` has pairs of launches of `examples/`, before and after a sort, and what an H200 counted
//! and how long it took at full size. The sorted launches were written by `examples/make.py`, not by lanescope.
//! `docs/measured.md` shows both as tables; `BLESS=1` writes their rows.
//!
//! The trials of kind `full` and `range` need the launches in that size, in the folder `LANESCOPE_FULL`
//! (`examples/make.py --size full FOLDER`), and a release build: `cargo test --release --test fixes -- --ignored`.

mod fix;

use std::path::{Path, PathBuf};

use lanescope::analysis::roofline::gain_between;
use lanescope::run::{Prepared, Ran, Settings};
use libtest_mimic::{Arguments, Failed, Trial};

use fix::advice::{self, Advised};
use fix::data::{Counts, Data, Fix};
use fix::table;

/// By how much a prediction may miss the run.
const TOLERANCE: f64 = 0.03;

fn main() {
    let args = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let data = Data::read(&root);
    let full = std::env::var_os("LANESCOPE_FULL").map(PathBuf::from);
    let mut trials = Vec::new();
    for fix in &data.fixes {
        let (root, fix) = (root.clone(), fix.clone());
        trials.push(Trial::test(fix.name.clone(), move || predicted(&root, &fix)).with_kind("fix"));
    }
    for (name, launch) in &data.launches {
        let Some(counted) = launch.counts else { continue };
        let path = full.as_ref().map(|dir| dir.join(format!("{name}.toml")));
        // Other orders of the sorted launches lie elsewhere.
        if path.as_ref().is_none_or(|p| p.exists()) {
            let trial = Trial::test(name, move || as_counted(path.as_deref(), &counted));
            trials.push(trial.with_kind("full").with_ignored_flag(true));
        }
    }
    for fix in &data.fixes {
        let faster = data.launches[&fix.before].ns as f64 / data.launches[&fix.after].ns as f64;
        let (root, fix, full) = (root.clone(), fix.clone(), full.clone());
        let trial = Trial::test(fix.name.clone(), move || in_range(&root, full.as_deref(), &fix, faster));
        trials.push(trial.with_kind("range").with_ignored_flag(true));
    }
    trials.push(Trial::test("times", move || table::times(&root, &data)).with_kind("table"));
    libtest_mimic::run(&args, trials).exit();
}

fn run(path: &Path) -> Result<Ran, Failed> {
    Prepared::open(path, &Settings::default()).and_then(|p| p.run(None)).map_err(|e| Failed::from(e.to_string()))
}

fn counts(ran: &Ran) -> Counts {
    let totals = ran.profile().totals();
    Counts {
        inst_executed: totals.inst_executed,
        thread_inst_executed: totals.thread_inst_executed,
        thread_inst_executed_pred_on: totals.thread_inst_executed_pred_on,
    }
}

/// The best order that `advise` finds costs what it predicts, and no more than the order that NumPy made.
fn predicted(root: &Path, fix: &Fix) -> Result<(), Failed> {
    let [before, after] = [&fix.before, &fix.after].map(|name| root.join("examples").join(format!("{name}.toml")));
    let (was, is) = permuted(&before, &after)?;
    let Advised { before: here, predicted, confirmed } = advice::of(&before)?;
    if here != was.inst_executed {
        return Err(format!("advise counts {here} before, run {}", was.inst_executed).into());
    }
    table::counts(root, fix, [was.inst_executed, predicted, confirmed, is.inst_executed])?;
    let differ = (predicted as f64 / confirmed as f64 - 1.0).abs();
    if differ > TOLERANCE {
        return Err(format!("predicted {predicted}, but run again it takes {confirmed}").into());
    }
    if confirmed as f64 > is.inst_executed as f64 * (1.0 + TOLERANCE) {
        return Err(format!("advise finds an order of {confirmed}, by {} it is {}", fix.key, is.inst_executed).into());
    }
    Ok(())
}

/// The sorted launch is the same work in another order, in fewer warp instructions.
fn permuted(before: &Path, after: &Path) -> Result<(Counts, Counts), Failed> {
    let [before, after] = [run(before)?, run(after)?];
    let [was, is] = [counts(&before), counts(&after)];
    if was.thread_inst_executed != is.thread_inst_executed {
        return Err(format!("threads did other work: {was:?}, sorted {is:?}").into());
    }
    if is.inst_executed >= was.inst_executed {
        return Err(format!("sorting saves nothing: {was:?}, sorted {is:?}").into());
    }
    for (i, pair) in before.buffers.iter().zip(&after.buffers).enumerate() {
        if let (Some(x), Some(y)) = pair
            && words(&x.data) != words(&y.data)
        {
            return Err(format!("argument {i} holds other values after the sorted launch").into());
        }
    }
    Ok((was, is))
}

/// The words of a buffer in ascending order.
fn words(data: &[u8]) -> Vec<&[u8]> {
    let mut words: Vec<&[u8]> = data.chunks(if data.len().is_multiple_of(4) { 4 } else { 1 }).collect();
    words.sort_unstable();
    words
}

/// A launch in full size counts what the H200 counted.
fn as_counted(path: Option<&Path>, counted: &Counts) -> Result<(), Failed> {
    let here = counts(&run(path.ok_or("LANESCOPE_FULL names no folder")?)?);
    if here == *counted { Ok(()) } else { Err(format!("here {here:?}, on the H200 {counted:?}").into()) }
}

/// The estimate of how much faster the sorted launch is contains what was measured.
fn in_range(root: &Path, full: Option<&Path>, fix: &Fix, faster: f64) -> Result<(), Failed> {
    let dir = full.ok_or("LANESCOPE_FULL names no folder")?;
    let time = |name: &str| -> Result<_, Failed> {
        run(&dir.join(format!("{name}.toml")))?.roofline().cloned().ok_or_else(|| Failed::from("no GPU"))
    };
    let speedup = gain_between(&time(&fix.before)?, &time(&fix.after)?).speedup;
    table::range(root, &fix.name, (speedup.low, speedup.high), faster)?;
    if !(speedup.low..=speedup.high).contains(&faster) {
        return Err(format!("estimated {:.3} to {:.3}, measured {faster:.3}", speedup.low, speedup.high).into());
    }
    Ok(())
}
