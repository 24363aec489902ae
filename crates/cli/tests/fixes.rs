//! Fixes that permute a launch's data: what was predicted against what comes out, and against an H200.
//!
//! `tests/data/fixes/h200.json` has pairs of launches of `examples/`, before and after a sort, and what an H200 counted
//! and how long it took at full size. The sorted launches were written by `examples/make.py`, not by lanescope.
//!
//! The trials of kind `full` need the launches in that size, in the folder `LANESCOPE_FULL`
//! (`examples/make.py --size full FOLDER`), and a release build: `cargo test --release --test fixes -- --ignored`.

use std::path::{Path, PathBuf};

use lanescope::npy::Array;
use lanescope::run::{Prepared, Ran, Settings};
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;

fn main() {
    let args = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("tests/data/fixes/h200.json")).expect("h200.json");
    let data: Value = serde_json::from_str(&text).expect("h200.json");
    let full = std::env::var_os("LANESCOPE_FULL").map(PathBuf::from);
    let mut trials = Vec::new();
    for fix in data["fixes"].as_array().expect("fixes") {
        let word = |key: &str| fix[key].as_str().expect("a word").to_owned();
        let [before, after] = ["before", "after"].map(|key| root.join("examples").join(word(key) + ".toml"));
        trials.push(Trial::test(word("name"), move || permuted(&before, &after)).with_kind("sorted"));
    }
    for (name, launch) in data["launches"].as_object().expect("launches") {
        let Some(counted) = Counts::of(launch) else { continue };
        let path = full.as_ref().map(|dir| dir.join(format!("{name}.toml")));
        // Other orders of the sorted launches lie elsewhere.
        if path.as_ref().is_none_or(|p| p.exists()) {
            let trial = Trial::test(name, move || as_counted(path.as_deref(), &counted));
            trials.push(trial.with_kind("full").with_ignored_flag(true));
        }
    }
    libtest_mimic::run(&args, trials).exit();
}

fn run(path: &Path) -> Result<Ran, Failed> {
    Prepared::open(path, &Settings::default()).and_then(|p| p.run(None)).map_err(|e| Failed::from(e.to_string()))
}

#[derive(Debug, PartialEq)]
struct Counts {
    inst_executed: u64,
    thread_inst_executed: u64,
    thread_inst_executed_pred_on: u64,
}

impl Counts {
    /// What was counted, if it was.
    fn of(launch: &Value) -> Option<Self> {
        Some(Self {
            inst_executed: launch["inst_executed"].as_u64()?,
            thread_inst_executed: launch["thread_inst_executed"].as_u64()?,
            thread_inst_executed_pred_on: launch["thread_inst_executed_pred_on"].as_u64()?,
        })
    }

    fn here(ran: &Ran) -> Self {
        let totals = ran.profile().totals();
        Self {
            inst_executed: totals.inst_executed,
            thread_inst_executed: totals.thread_inst_executed,
            thread_inst_executed_pred_on: totals.thread_inst_executed_pred_on,
        }
    }
}

/// The sorted launch is the same work in another order, in fewer warp instructions.
fn permuted(before: &Path, after: &Path) -> Result<(), Failed> {
    let [before, after] = [run(before)?, run(after)?];
    let [was, is] = [Counts::here(&before), Counts::here(&after)];
    if was.thread_inst_executed != is.thread_inst_executed {
        return Err(format!("threads did other work: {was:?}, sorted {is:?}").into());
    }
    if is.inst_executed >= was.inst_executed {
        return Err(format!("sorting saves nothing: {was:?}, sorted {is:?}").into());
    }
    for (i, pair) in before.buffers.iter().zip(&after.buffers).enumerate() {
        if let (Some(x), Some(y)) = pair
            && words(x) != words(y)
        {
            return Err(format!("argument {i} holds other values after the sorted launch").into());
        }
    }
    Ok(())
}

/// The words of a buffer in ascending order.
fn words(array: &Array) -> Vec<&[u8]> {
    let mut words: Vec<&[u8]> = array.data.chunks(if array.data.len().is_multiple_of(4) { 4 } else { 1 }).collect();
    words.sort_unstable();
    words
}

/// A launch in full size counts what the H200 counted.
fn as_counted(path: Option<&Path>, counted: &Counts) -> Result<(), Failed> {
    let here = Counts::here(&run(path.ok_or("LANESCOPE_FULL names no folder")?)?);
    if here == *counted { Ok(()) } else { Err(format!("here {here:?}, on the H200 {counted:?}").into()) }
}
