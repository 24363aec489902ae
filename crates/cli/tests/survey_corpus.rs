//! The survey of the corpus against counts that were made without lanescope, and the order of the generations.
//!
//! Needs the compilers that `.ci/oracles.sh` fetches into `oracles/` (or `$LANESCOPE_ORACLES`); without them the test
//! says so and passes.
#![allow(clippy::print_stderr)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use lanescope::report::survey::{Classes, Totals};
use lanescope::survey::{Request, survey};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn table(name: &str) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(repository().join("tests/data/survey").join(name)).expect("table");
    text.lines().map(|l| l.split(',').map(str::to_owned).collect()).collect()
}

/// The corpus built by one compiler for some architectures, surveyed; `None` without the compiler.
fn totals(compiler: &str, archs: &[&str]) -> Option<BTreeMap<String, Totals>> {
    let oracles = std::env::var_os("LANESCOPE_ORACLES").map_or_else(|| repository().join("oracles"), PathBuf::from);
    let library = oracles.join(format!("lib/libnvrtc-{compiler}.so"));
    if !library.exists() {
        eprintln!("skipped: no {} (run .ci/oracles.sh)", library.display());
        return None;
    }
    let cache = oracles.join(format!("cache/nvrtc-{compiler}"));
    let folder = |name: &str| oracles.join(format!("{name}-{compiler}")).display().to_string();
    let mut sources: Vec<PathBuf> =
        std::fs::read_dir(repository().join("tests/corpus")).expect("corpus").flatten().map(|e| e.path()).collect();
    sources.retain(|p| p.extension().is_some_and(|e| e == "cu"));
    sources.sort();
    let status = Command::new("python3")
        .arg(repository().join("tests/oracle/compile.py"))
        .arg(library)
        .arg(format!("{}:{}", folder("include"), folder("cccl")))
        .arg(&cache)
        .arg(archs.join(","))
        .args(&sources)
        .status()
        .expect("python3 runs");
    assert!(status.success(), "compile.py failed");
    let archs = archs.iter().map(|a| (*a).to_owned()).collect();
    let found = survey(&Request { paths: vec![cache], archs, ..Request::default() }, &|_| {});
    assert_eq!(found.errors().collect::<Vec<_>>(), []);
    Some(found.totals().into_iter().collect())
}

fn numbers(c: &Classes) -> [u64; 5] {
    [c.exact, c.deferred, c.exit, c.escaped, c.uncovered]
}

fn check(compiler: &str, label: &str, archs: &[&str]) {
    let Some(totals) = totals(compiler, archs) else { return };
    let opcodes = table("opcodes.csv");
    let mut compared = 0;
    for (column, name) in opcodes[0].iter().enumerate().skip(1) {
        let Some(arch) = name.strip_prefix(&format!("cuda{label}/")) else { continue };
        let Some(ours) = totals.get(arch) else { continue };
        assert_eq!(ours.kernels, 113, "{name}");
        let expected: BTreeMap<&str, u64> = opcodes[1..]
            .iter()
            .map(|row| (row[0].as_str(), row[column].parse().expect("number")))
            .filter(|e| e.1 > 0)
            .collect();
        let got: BTreeMap<&str, u64> = ours.opcodes.iter().map(|(n, c)| (&**n, *c)).collect();
        assert_eq!(got, expected, "{name}");
        compared += 1;
    }
    assert!(compared >= 3);
    let mut classes = 0;
    for row in &table("classes.csv")[1..] {
        let Some(ours) = totals.get(&row[1]).filter(|_| row[0] == label) else { continue };
        let set = match row[2].as_str() {
            "lanes" => &ours.branches.all,
            "group" => &ours.branches.group,
            _ => &ours.branches.tests,
        };
        let expected: Vec<u64> = row[3..].iter().map(|n| n.parse().expect("number")).collect();
        assert_eq!(numbers(set), expected[..], "{label} {} {}", row[1], row[2]);
        classes += 1;
    }
    assert!(classes >= 6);
    // The finding that the survey is there for: from Ampere to Hopper to Blackwell fewer lanes rejoin late.
    let late = |arch: &str| totals[arch].branches.diverging.deferred + totals[arch].branches.tests.deferred;
    assert!(late("sm_80") > late("sm_90") && late("sm_90") > late("sm_100"));
}

#[test]
fn nvrtc_12_9() {
    check("12.9", "12.9", &["sm_60", "sm_61", "sm_80", "sm_90", "sm_100", "sm_120"]);
}

#[test]
fn nvrtc_13() {
    check("13", "13.5", &["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"]);
}
