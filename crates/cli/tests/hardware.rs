//! Every launch that an H200 was measured on, one test each: all counters of every instruction and every output
//! buffer, for one and for two threads. The same kernels built for other architectures must give the same outputs.
//!
//! A launch is `NAME.toml` with `NAME.expected.json` (counters by PC) and `NAME.arg<K>.expected.npy` beside it, under
//! `tests/groundtruth` or `validation`. More folders can be named in `LANESCOPE_LAUNCHES`, separated by colons.
//! `hardware.allow` lists the outputs that may differ, with the reason.

mod launches;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use lanescope::launch::{self, LaunchFile};
use lanescope::npy::{self, Array};
use lanescope::run::{Prepared, Ran, Settings};
use libtest_mimic::{Arguments, Failed, Trial};

/// Rows of a table of differences that are printed.
const SHOWN: usize = 24;

fn main() {
    let args = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = vec![root.join("tests/groundtruth"), root.join("validation")];
    if let Some(more) = std::env::var_os("LANESCOPE_LAUNCHES") {
        folders.extend(std::env::split_paths(&more));
    }
    let mut trials = Vec::new();
    for folder in &folders {
        for path in launches::below(folder) {
            add(&mut trials, folder, path);
        }
    }
    libtest_mimic::run(&args, trials).exit();
}

fn add(trials: &mut Vec<Trial>, folder: &Path, path: PathBuf) {
    let inside = path.strip_prefix(folder).unwrap_or(&path).with_extension("");
    let name = inside.display().to_string();
    let outputs = outputs(&path);
    if path.with_extension("expected.json").exists() {
        for threads in [1, 2] {
            let (path, name) = (path.clone(), name.clone());
            let title = format!("{name} {threads} thread{}", if threads == 1 { "" } else { "s" });
            trials.push(Trial::test(title, move || counters_and_outputs(&name, &path, threads)).with_kind("sm_90"));
        }
    }
    let others = path.with_file_name("kernel.others.fatbin");
    if others.exists() && !outputs.is_empty() {
        for arch in ["sm_80", "sm_100", "sm_120"] {
            let (path, title) = (path.clone(), name.clone());
            trials.push(Trial::test(name.clone(), move || outputs_on(&title, &path, arch)).with_kind(arch));
        }
    }
}

/// Numbers and files of the expected output buffers.
fn outputs(launch: &Path) -> Vec<(usize, PathBuf)> {
    let base = launch.with_extension("");
    let base = base.display();
    (0..64).map(|k| (k, PathBuf::from(format!("{base}.arg{k}.expected.npy")))).filter(|(_, p)| p.exists()).collect()
}

fn parse(path: &Path) -> Result<LaunchFile, Failed> {
    let text = std::fs::read_to_string(path).map_err(Failed::from)?;
    launch::parse(&path.display().to_string(), &text).map_err(Failed::from)
}

fn run(path: &Path, launch: LaunchFile, settings: &Settings) -> Result<Ran, Failed> {
    let dir = path.parent().map(Path::to_path_buf).unwrap_or_default();
    Prepared::new(launch, dir, settings).and_then(|p| p.run(None)).map_err(|e| Failed::from(e.to_string()))
}

fn counters_and_outputs(name: &str, path: &Path, threads: usize) -> Result<(), Failed> {
    let result = run(path, parse(path)?, &Settings { threads, ..Settings::default() });
    if let Some(opcode) = refused(name) {
        let wanted = format!("not implemented: {opcode} (");
        return match result {
            Ok(_) => Err(format!("{opcode} is listed as refused, but the launch ran").into()),
            Err(e) if e.message().is_some_and(|m| m.contains(&wanted)) => Ok(()),
            Err(e) => Err(e),
        };
    }
    let ran = result?;
    let mut faults = String::new();
    compare_counters(path, &ran, &mut faults)?;
    if counters_differ(name) {
        if faults.is_empty() {
            return Err("the counters are equal now: take the line out of hardware.allow".into());
        }
        faults.clear();
    }
    compare_outputs(name, path, &ran, &mut faults)?;
    if faults.is_empty() { Ok(()) } else { Err(faults.into()) }
}

fn outputs_on(name: &str, path: &Path, arch: &str) -> Result<(), Failed> {
    let mut launch = parse(path)?;
    launch.module = "kernel.others.fatbin".into();
    let ran = run(path, launch, &Settings { arch: Some(arch.into()), ..Settings::default() })?;
    let mut faults = String::new();
    compare_outputs(name, path, &ran, &mut faults)?;
    if faults.is_empty() { Ok(()) } else { Err(faults.into()) }
}

fn compare_counters(path: &Path, ran: &Ran, faults: &mut String) -> Result<(), Failed> {
    let text = std::fs::read_to_string(path.with_extension("expected.json")).map_err(Failed::from)?;
    let json: serde_json::Value = serde_json::from_str(&text).map_err(Failed::from)?;
    let mut expected: BTreeMap<u64, [u64; 3]> = BTreeMap::new();
    for row in json["instructions"].as_array().ok_or("no `instructions`")? {
        let n = |i: usize| row[i].as_u64().ok_or("a counter is no number");
        expected.insert(n(0)?, [n(1)?, n(2)?, n(3)?]);
    }
    let own = ran.kernel.functions.first().map_or(0, |f| f.len as usize);
    let mut rows = Vec::new();
    for (at, c) in ran.profile().counts.iter().enumerate().take(own) {
        let pc = u64::from(ran.kernel.instructions[at].pc);
        let ours = [c.inst_executed, c.thread_inst_executed, c.thread_inst_executed_pred_on];
        let theirs = expected.remove(&pc).unwrap_or_default();
        if ours != theirs {
            rows.push((pc, ours, theirs, ran.kernel.text[at].clone()));
        }
    }
    rows.extend(expected.into_iter().filter(|(_, n)| n != &[0; 3]).map(|(pc, n)| (pc, [0; 3], n, "?".to_owned())));
    if rows.is_empty() {
        return Ok(());
    }
    let _ = writeln!(faults, "{} instructions differ (inst_executed, thread_inst_executed, pred_on):", rows.len());
    let _ = writeln!(faults, "{:>8}  {:>32}  {:>32}  instruction", "pc", "here", "H200");
    for (pc, ours, theirs, text) in rows.iter().take(SHOWN) {
        let show = |n: &[u64; 3]| format!("{} {} {}", n[0], n[1], n[2]);
        let _ = writeln!(faults, "{:>8}  {:>32}  {:>32}  {text}", format!("{pc:#06x}"), show(ours), show(theirs));
    }
    Ok(())
}

fn compare_outputs(name: &str, path: &Path, ran: &Ran, faults: &mut String) -> Result<(), Failed> {
    for (k, file) in outputs(path) {
        let bytes = std::fs::read(&file).map_err(Failed::from)?;
        let expected = npy::read(&bytes).map_err(|e| format!("{}: {e}", file.display()))?;
        let ours = ran.output(k).map_err(|e| Failed::from(e.to_string()))?.ok_or("an expected output is no buffer")?;
        compare_array(k, ours, &expected, &allowed(name, k)?, faults);
    }
    Ok(())
}

fn compare_array(k: usize, ours: &Array, expected: &Array, rules: &[(usize, usize, Allowed)], faults: &mut String) {
    if ours.data.len() != expected.data.len() {
        let _ = writeln!(faults, "arg{k}: {} bytes here, {} on the H200", ours.data.len(), expected.data.len());
        return;
    }
    let item = expected.item.max(1);
    let differing: Vec<usize> = ours
        .data
        .chunks(item)
        .zip(expected.data.chunks(item))
        .enumerate()
        .filter(|(i, (a, b))| a != b && !is_allowed(rules, *i, a, b, &expected.descr))
        .map(|(i, _)| i)
        .collect();
    if differing.is_empty() {
        return;
    }
    let total = expected.data.len() / item;
    let _ = writeln!(faults, "arg{k}: {} of {total} elements differ ({}):", differing.len(), expected.descr);
    let _ = writeln!(faults, "{:>8}  {:>24}  {:>24}  ulp", "element", "here", "H200");
    for &i in differing.iter().take(SHOWN) {
        let (a, b) = (&ours.data[i * item..(i + 1) * item], &expected.data[i * item..(i + 1) * item]);
        let ulp = distance(a, b, &expected.descr).map_or(String::new(), |d| d.to_string());
        let _ = writeln!(faults, "{i:>8}  {:>24}  {:>24}  {ulp}", show(a, &expected.descr), show(b, &expected.descr));
    }
}

fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |w, &b| w << 8 | u64::from(b))
}

fn show(bytes: &[u8], descr: &str) -> String {
    let w = word(bytes);
    match descr.trim_matches('\'') {
        "<f4" => format!("{:e} {w:#x}", f32::from_bits(w as u32)),
        "<f8" => format!("{:e} {w:#x}", f64::from_bits(w)),
        "<i4" => (w as u32 as i32).to_string(),
        "<i8" => (w as i64).to_string(),
        _ if bytes.len() <= 8 => w.to_string(),
        _ => format!("{bytes:02x?}"),
    }
}

/// Distance in units in the last place; `None` for types without one and for NaN.
fn distance(a: &[u8], b: &[u8], descr: &str) -> Option<u64> {
    let bits = match descr.trim_matches('\'') {
        "<f4" => 32,
        "<f8" => 64,
        _ => return None,
    };
    let (a, b) = (word(a), word(b));
    let infinity = if bits == 32 { u64::from(f32::INFINITY.to_bits()) } else { f64::INFINITY.to_bits() };
    let sign = 1u64 << (bits - 1);
    let order = |x: u64| {
        let magnitude = (x & !sign) as i128;
        if x & sign == 0 { magnitude } else { -magnitude }
    };
    if a & !sign > infinity || b & !sign > infinity {
        return None;
    }
    u64::try_from((order(a) - order(b)).unsigned_abs()).ok()
}

/// How elements of an output may differ.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Allowed {
    Ulp(u64),
    Abs(f64),
    Undefined,
}

/// The lines of `hardware.allow` and their words.
fn rules() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let lines = include_str!("hardware.allow").lines();
    lines.filter(|l| !l.starts_with('#') && !l.trim().is_empty()).map(|l| (l, l.split_whitespace().collect()))
}

/// The opcode for which a launch is refused, if it is.
fn refused(launch: &str) -> Option<&'static str> {
    rules().find(|(_, w)| w[0] == launch && w.get(1) == Some(&"refused")).and_then(|(_, w)| w.get(2).copied())
}

/// Whether a launch's counters are known to differ.
fn counters_differ(launch: &str) -> bool {
    rules().any(|(_, w)| w[0] == launch && w.get(1) == Some(&"counters"))
}

/// The rules of `hardware.allow` for one output of a launch: first element, last element, rule.
fn allowed(launch: &str, k: usize) -> Result<Vec<(usize, usize, Allowed)>, Failed> {
    let mut out = Vec::new();
    for (line, words) in rules().filter(|(_, w)| !matches!(w.get(1), Some(&("refused" | "counters")))) {
        let bad = || Failed::from(format!("hardware.allow: cannot read `{line}`"));
        let (from, to) = words.get(2).and_then(|r| r.split_once('-')).ok_or_else(bad)?;
        let rule = match words[3..] {
            ["ulp", n] => Allowed::Ulp(n.parse().map_err(|_| bad())?),
            ["abs", x] => Allowed::Abs(x.parse().map_err(|_| bad())?),
            ["undefined"] => Allowed::Undefined,
            _ => return Err(bad()),
        };
        if words[0] == launch && words[1] == format!("arg{k}") {
            out.push((from.parse().map_err(|_| bad())?, to.parse().map_err(|_| bad())?, rule));
        }
    }
    Ok(out)
}

/// Whether a rule allows element `i` to differ so.
fn is_allowed(rules: &[(usize, usize, Allowed)], i: usize, a: &[u8], b: &[u8], descr: &str) -> bool {
    rules.iter().filter(|r| r.0 <= i && i <= r.1).any(|r| match r.2 {
        Allowed::Undefined => true,
        Allowed::Ulp(n) => distance(a, b, descr).is_some_and(|d| d <= n),
        Allowed::Abs(x) => {
            descr.contains("<f4") && {
                let value = |w: &[u8]| f64::from(f32::from_bits(word(w) as u32));
                (value(a) - value(b)).abs() <= x
            }
        }
    })
}
