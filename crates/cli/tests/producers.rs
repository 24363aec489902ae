//! PTX of Triton, Numba and clang, one test a kernel: what it leaves in its buffers against what NumPy says, for one and
//! for two threads. `tests/data/producers/generate.py` makes the files.
//!
//! `tolerance.txt` beside it lists the outputs that may differ and by how much; all others must be equal in every bit.
//! `refused.txt` lists kernels with an instruction that is not implemented, by its name; they must be refused for it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use lanescope::npy::{self, Array};
use lanescope::run::{Prepared, Ran, Settings};
use libtest_mimic::{Arguments, Failed, Trial};

/// Differing elements that are printed.
const SHOWN: usize = 8;

/// How far an output may be from its expected value.
#[derive(Clone, Copy, Debug)]
struct Tolerance {
    rel: f64,
    abs: f64,
}

fn main() {
    let args = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/producers");
    let tables = Tables {
        tolerance: std::fs::read_to_string(root.join("tolerance.txt")).unwrap_or_default(),
        refused: std::fs::read_to_string(root.join("refused.txt")).unwrap_or_default(),
    };
    let tables: &'static Tables = Box::leak(Box::new(tables));
    let mut trials = Vec::new();
    for producer in ["triton", "numba", "clang"] {
        let launches = launches(&root.join(producer));
        // A folder that went missing must not look like success.
        if launches.is_empty() {
            let message = format!("no launches in {producer}");
            trials.push(Trial::test(producer, move || Err(message.into())));
        }
        for path in launches {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let name = format!("{producer}/{name}");
            trials.push(Trial::test(name.clone(), move || check(tables, &name, &path)));
        }
    }
    libtest_mimic::run(&args, trials).exit();
}

/// Both lists.
struct Tables {
    tolerance: String,
    refused: String,
}

fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().filter(|l| !l.starts_with('#') && !l.trim().is_empty()).map(|l| l.split_whitespace().collect())
}

impl Tables {
    fn tolerance(&self, name: &str, arg: usize) -> Result<Option<Tolerance>, Failed> {
        let arg = format!("arg{arg}");
        let Some(words) = lines(&self.tolerance).find(|w| w[0] == name && w.get(1) == Some(&arg.as_str())) else {
            return Ok(None);
        };
        let ["rel", rel, "abs", abs] = words[2..] else {
            return Err(format!("tolerance.txt: cannot read {words:?}").into());
        };
        Ok(Some(Tolerance { rel: rel.parse()?, abs: abs.parse()? }))
    }

    fn refused(&self, name: &str) -> Option<&str> {
        lines(&self.refused).find(|w| w[0] == name).and_then(|w| w.get(1).copied())
    }
}

fn launches(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "toml")).collect();
    found.sort();
    found
}

fn check(tables: &Tables, name: &str, path: &Path) -> Result<(), Failed> {
    let base = path.with_extension("");
    let base = base.display();
    let outputs: Vec<(usize, PathBuf)> = (0..64)
        .map(|k| (k, PathBuf::from(format!("{base}.arg{k}.expected.npy"))))
        .filter(|(_, p)| p.exists())
        .collect();
    if outputs.is_empty() {
        return Err("no expected output".into());
    }
    for threads in [1, 2] {
        let result = run(path, threads);
        if let Some(opcode) = tables.refused(name) {
            return match result {
                Ok(_) => Err(format!("refused.txt lists it for {opcode}, but it ran").into()),
                Err(e) if e.message().is_some_and(|m| m.contains(opcode)) => Ok(()),
                Err(e) => Err(e),
            };
        }
        let ran = result?;
        let mut faults = String::new();
        for (k, file) in &outputs {
            let bytes = std::fs::read(file)?;
            let expected = npy::read(&bytes).map_err(|e| format!("{}: {e}", file.display()))?;
            let ours = ran.output(*k).map_err(|e| Failed::from(e.to_string()))?.ok_or("an output is no buffer")?;
            match tables.tolerance(name, *k)? {
                Some(tolerance) => close(*k, ours, &expected, tolerance, &mut faults)?,
                None => equal(*k, ours, &expected, &mut faults),
            }
        }
        if !faults.is_empty() {
            return Err(format!("{threads} threads:\n{faults}").into());
        }
    }
    Ok(())
}

fn run(path: &Path, threads: usize) -> Result<Ran, Failed> {
    let settings = Settings { threads, ..Settings::default() };
    Prepared::open(path, &settings).and_then(|p| p.run(None)).map_err(|e| Failed::from(e.to_string()))
}

/// Bit for bit.
fn equal(k: usize, ours: &Array, expected: &Array, faults: &mut String) {
    if ours.data.len() != expected.data.len() {
        let _ = writeln!(faults, "arg{k}: {} bytes, not {}", ours.data.len(), expected.data.len());
        return;
    }
    let item = expected.item.max(1);
    let pairs = ours.data.chunks(item).zip(expected.data.chunks(item)).enumerate();
    let wrong: Vec<_> = pairs.filter(|(_, (a, b))| a != b).collect();
    if let Some((first, _)) = wrong.first() {
        let _ = writeln!(faults, "arg{k}: {} elements differ from {first} on ({}):", wrong.len(), expected.descr);
    }
    for (i, (a, b)) in wrong.iter().take(SHOWN) {
        let _ = writeln!(faults, "  [{i}] {a:02x?}, expected {b:02x?}");
    }
}

/// Within a tolerance of double-precision values.
fn close(k: usize, ours: &Array, expected: &Array, within: Tolerance, faults: &mut String) -> Result<(), Failed> {
    let (a, b) = (floats(ours)?, floats(expected)?);
    if a.len() != b.len() {
        let _ = writeln!(faults, "arg{k}: {} elements, not {}", a.len(), b.len());
        return Ok(());
    }
    // False for NaN.
    let near = |a: f64, b: f64| (a - b).abs() <= within.abs + within.rel * b.abs();
    let wrong: Vec<_> = a.iter().zip(&b).enumerate().filter(|(_, (a, b))| !near(**a, **b)).collect();
    if !wrong.is_empty() {
        let _ = writeln!(faults, "arg{k}: {} of {} elements are too far away:", wrong.len(), a.len());
    }
    for (i, (a, b)) in wrong.iter().take(SHOWN) {
        let _ = writeln!(faults, "  [{i}] {a:e}, expected {b:e}");
    }
    Ok(())
}

fn floats(array: &Array) -> Result<Vec<f64>, Failed> {
    match array.descr.trim_matches('\'') {
        "<f4" => Ok(array.data.as_chunks().0.iter().map(|c| f64::from(f32::from_le_bytes(*c))).collect()),
        "<f8" => Ok(array.data.as_chunks().0.iter().map(|c| f64::from_le_bytes(*c)).collect()),
        other => Err(format!("a tolerance for {other}").into()),
    }
}
