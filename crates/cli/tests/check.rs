//! `lanescope check` and `run --check`: what users are told about kernels whose faults are known.

#![allow(clippy::print_stderr)] // That a test was skipped belongs into the log.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use lanescope::check::{Settings, check};
use lanescope::ir::Severity;
use lanescope::report::check::{Report, Verdict};
use serde_json::Value;

fn groundtruth() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/groundtruth")
}

fn lanescope(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lanescope")).args(args).output().expect("the command starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn checked(files: &[PathBuf], settings: &Settings) -> Report {
    check(files, settings).unwrap_or_else(|e| panic!("{files:?}: {e}"))
}

/// Launches of the ground truth.
fn launches() -> Vec<PathBuf> {
    let mut list = Vec::new();
    for case in std::fs::read_dir(groundtruth()).unwrap().flatten() {
        for file in std::fs::read_dir(case.path()).into_iter().flatten().flatten() {
            if file.path().extension().is_some_and(|e| e == "toml") {
                list.push(file.path());
            }
        }
    }
    list.sort();
    assert!(list.len() >= 30);
    list
}

/// Faults that `case.md` of the ground truth names: launch, rule, lines of which one must be named.
const FAULTS: &[(&str, &str, &[u32])] = &[
    ("08-shuffle-in-branch/half_sum_bad", "mask-absent-lanes", &[6]),
    ("08-shuffle-in-branch/data_sum_bad", "mask-in-divergent-code", &[19]),
    ("08-shuffle-in-branch/data_sum_hang", "mask-in-divergent-code", &[29]),
    ("09-barrier-after-return/mirror_bad", "barrier-after-exit", &[9]),
    ("10-partial-warp-reduce/block_sum_bad", "partial-last-warp", &[7]),
    ("12-no-syncwarp/sum_tail_bad", "missing-syncwarp", &[9, 10, 11, 12, 13, 14, 15]),
    ("20-spinlock-same-warp/lock_naive", "lock-after-join", &[3]),
];

fn name_of(launch: &Path) -> String {
    let case = launch.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
    format!("{case}/{}", launch.file_stem().unwrap_or_default().to_string_lossy())
}

fn expect(name: &str, report: &Report, level: &str) {
    let wanted = FAULTS.iter().find(|f| f.0 == name);
    let mut graver = 0;
    for f in report.findings() {
        if f.severity == Severity::Info {
            continue;
        }
        graver += 1;
        let Some((_, rule, lines)) = wanted else {
            panic!("{name} ({level}) is sound, but: {} {}", f.rule, f.message);
        };
        assert_eq!(f.rule, *rule, "{name} ({level}): {}", f.message);
        assert!(f.place.line.is_some_and(|l| lines.contains(&l)), "{name} ({level}): line {:?}", f.place.line);
        assert!(!f.witness.is_empty(), "{name} ({level}) has no witness");
    }
    assert_eq!(graver > 0, wanted.is_some(), "{name} ({level}): {graver} findings");
}

#[test]
fn faults_are_found_and_nothing_else_in_machine_code() {
    for launch in launches() {
        let report = checked(std::slice::from_ref(&launch), &Settings::default());
        expect(&name_of(&launch), &report, "sass");
    }
}

#[test]
fn faults_are_found_and_nothing_else_in_ptx() {
    let nvrtc = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracles/lib/libnvrtc-12.9.so");
    if !nvrtc.is_file() {
        eprintln!("skipped: {} is not there; .ci/oracles.sh fetches it", nvrtc.display());
        return;
    }
    let mut compiled: BTreeSet<PathBuf> = BTreeSet::new();
    for launch in launches() {
        let case = launch.parent().unwrap().to_path_buf();
        let name = launch.file_stem().unwrap().to_string_lossy().into_owned();
        let kernel = name.split('.').next().unwrap().to_owned();
        if name != kernel && !compiled.insert(case.join(&kernel)) {
            continue;
        }
        // The launch file's shape, and the source beside it.
        let toml = std::fs::read_to_string(&launch).unwrap();
        let shape = |key: &str| -> Option<[u32; 3]> {
            let line = toml.lines().find(|l| l.trim_start().starts_with(key) && l.contains('['))?;
            let inner = line.split_once('[')?.1.split_once(']')?.0;
            let mut shape = [1; 3];
            shape.iter_mut().zip(inner.split(',')).for_each(|(d, t)| *d = t.trim().parse().unwrap_or(1));
            Some(shape)
        };
        let mut settings = Settings { kernel: Some(kernel.clone()), block: shape("block"), ..Settings::default() };
        settings.tools.nvrtc = Some(nvrtc.clone());
        let kernels = checked(&[case.join("kernel.cu")], &settings);
        assert!(kernels.kernels.iter().all(|k| k.levels.len() == 2), "{name}: both levels");
        expect(&name_of(&launch), &kernels, "both");
    }
}

#[test]
fn other_architectures_show_the_same_faults() {
    for (name, rule, _) in FAULTS {
        let (case, kernel) = name.split_once('/').unwrap();
        let file = groundtruth().join(case).join("kernel.others.fatbin");
        if !file.is_file() {
            continue;
        }
        let block = if *rule == "partial-last-warp" { Some([180, 1, 1]) } else { None };
        for arch in ["sm_80", "sm_120"] {
            let settings =
                Settings { kernel: Some(kernel.to_string()), arch: Some(arch.into()), block, ..Settings::default() };
            let Ok(report) = check(std::slice::from_ref(&file), &settings) else { continue };
            assert!(report.findings().any(|f| f.rule == *rule), "{name} {arch}: no {rule}");
        }
    }
}

#[test]
fn verdicts_of_the_false_alarms() {
    let report = checked(&[groundtruth().join("01-tail-guard/axpy_guarded.toml")], &Settings::default());
    let points = &report.kernels[0].levels[0].points;
    assert_eq!(points.len(), 1);
    assert!(points[0].leave_it && matches!(points[0].verdict, Verdict::LastWarp | Verdict::ExactLanes));
    assert_eq!(report.findings().count(), 0);
    for name in ["tiny_if", "tiny_ternary", "tiny_three_way"] {
        let report = checked(&[groundtruth().join(format!("02-tiny-if-else/{name}.toml"))], &Settings::default());
        assert!(report.kernels[0].levels[0].points.is_empty(), "{name} has no branch");
        assert_eq!(report.findings().count(), 0);
    }
    let report = checked(&[groundtruth().join("18-uniform-switch/interpret.toml")], &Settings::default());
    assert!(report.kernels[0].levels[0].points.iter().all(|p| p.verdict == Verdict::Never && p.leave_it));
    assert_eq!(report.findings().count(), 0);
}

#[test]
fn the_command_prints_and_decides() {
    let bad = groundtruth().join("09-barrier-after-return/mirror_bad.toml").display().to_string();
    let good = groundtruth().join("09-barrier-after-return/mirror_good.toml").display().to_string();
    let out = lanescope(&["check", &bad]);
    let report = text(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    assert!(report.contains("[barrier-after-exit]") && report.contains("kernel.cu:9"), "{report}");
    assert!(report.contains("@P0 EXIT"), "{report}");
    assert_eq!(lanescope(&["check", &bad, "--fail-on", "error"]).status.code(), Some(1));
    assert_eq!(lanescope(&["check", &good, "--fail-on", "warning"]).status.code(), Some(0));
    assert_eq!(lanescope(&["check", "/nowhere.cubin"]).status.code(), Some(2));
    assert_eq!(lanescope(&["check", &bad, "--block", "0"]).status.code(), Some(2));
    assert_eq!(lanescope(&["check", &bad, "--block", "2048"]).status.code(), Some(2));
    assert_eq!(lanescope(&["check"]).status.code(), Some(2));
    let cubin = groundtruth().join("09-barrier-after-return/kernel.sm_90.cubin").display().to_string();
    let unknown = lanescope(&["check", &cubin, "--kernel", "mirror_bat"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("did you mean `mirror_bad`"), "{}", text(&unknown.stderr));
    let both: Value = serde_json::from_slice(&lanescope(&["check", &cubin, "--format", "json"]).stdout).unwrap();
    assert_eq!(both["schema"], "lanescope.check/1");
    assert_eq!(both["kernels"].as_array().map(Vec::len), Some(2));
}

#[test]
fn only_changed_lines_are_reported() {
    let bad = groundtruth().join("09-barrier-after-return/mirror_bad.toml").display().to_string();
    let with = |diff: &str| -> Output {
        let mut child = Command::new(env!("CARGO_BIN_EXE_lanescope"))
            .args(["check", &bad, "--fail-on", "warning", "--changed-lines", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(diff.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    // The exit at line 7 is in the witness of the barrier at line 9.
    let hit = with(
        "--- a/gpu/kernel.cu\n+++ b/09-barrier-after-return/kernel.cu\n@@ -6,0 +7,1 @@\n+    if (i >= n) return;\n",
    );
    assert_eq!(hit.status.code(), Some(1), "{}{}", text(&hit.stdout), text(&hit.stderr));
    let miss = with("--- a/kernel.cu\n+++ b/kernel.cu\n@@ -1,0 +1,1 @@\n+// words\n");
    assert_eq!(miss.status.code(), Some(0));
    assert!(text(&miss.stdout).contains("on lines that did not change left out"), "{}", text(&miss.stdout));
    let other = with("--- a/other.cu\n+++ b/other.cu\n@@ -6,0 +7,1 @@\n+x\n");
    assert_eq!(other.status.code(), Some(0));
    let broken = with("--- a/kernel.cu\n+++ b/kernel.cu\n@@ -1,2 +1,2 @@\n what\nis this\n");
    assert_eq!(broken.status.code(), Some(2));
    assert!(text(&broken.stderr).contains("standard input:5"), "{}", text(&broken.stderr));
}

/// The SARIF schema that comes with the crate whose types are used.
fn schema() -> Option<Value> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let out = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--offline", "--manifest-path"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
        .output()
        .ok()?;
    let metadata: Value = serde_json::from_slice(&out.stdout).ok()?;
    let package = metadata["packages"].as_array()?.iter().find(|p| p["name"] == "serde-sarif")?;
    let manifest = Path::new(package["manifest_path"].as_str()?);
    serde_json::from_slice(&std::fs::read(manifest.parent()?.join("src/schema.json")).ok()?).ok()
}

#[test]
fn sarif_is_valid_and_complete() {
    let files: Vec<String> = FAULTS.iter().map(|f| groundtruth().join(f.0).display().to_string() + ".toml").collect();
    let mut args = vec!["check", "--format", "sarif"];
    args.extend(files.iter().map(String::as_str));
    let out = lanescope(&args);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let sarif: Value = serde_json::from_slice(&out.stdout).unwrap();
    match schema() {
        Some(schema) => {
            let mut schemas = boon::Schemas::new();
            let mut compiler = boon::Compiler::new();
            compiler.add_resource("sarif.json", schema).unwrap();
            let at = compiler.compile("sarif.json", &mut schemas).unwrap();
            if let Err(e) = schemas.validate(&sarif, at) {
                panic!("{e:#}");
            }
        }
        None => eprintln!("skipped: the schema cannot be found through cargo"),
    }
    assert_eq!(sarif["version"], "2.1.0");
    let run = &sarif["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    let results = run["results"].as_array().unwrap();
    assert!(results.len() >= FAULTS.len());
    for r in results {
        let rule = &rules[r["ruleIndex"].as_u64().unwrap() as usize];
        assert_eq!(rule["id"], r["ruleId"]);
        assert!(rule["help"]["text"].as_str().is_some_and(|t| t.len() > 200), "{rule}");
        assert!(r["partialFingerprints"]["lanescope/v1"].as_str().is_some_and(|f| f.len() == 32));
        let physical = &r["locations"][0]["physicalLocation"];
        assert!(physical["artifactLocation"]["uri"].as_str().is_some_and(|u| u.ends_with("kernel.cu")), "{physical}");
        assert!(physical["region"]["startLine"].as_u64().is_some_and(|l| l > 0));
        assert!(r["codeFlows"][0]["threadFlows"][0]["locations"].as_array().is_some_and(|l| !l.is_empty()));
        assert!(r["relatedLocations"].as_array().is_some_and(|l| !l.is_empty()));
    }
}

#[test]
fn every_rule_has_its_page() {
    let list = text(&lanescope(&["explain"]).stdout);
    for page in lanescope::check::pages() {
        assert!(list.contains(page.name));
        let shown = text(&lanescope(&["explain", page.name]).stdout);
        assert!(shown.contains(page.summary) && page.page.contains("Evidence:"), "{}", page.name);
    }
}

/// What `run --check` says of the faults: rules that must be named.
const AT_RUN_TIME: &[(&str, &[&str])] = &[
    ("08-shuffle-in-branch/half_sum_bad", &["mask-absent-lanes"]),
    ("08-shuffle-in-branch/data_sum_bad", &["mask-absent-lanes"]),
    ("09-barrier-after-return/mirror_bad", &["barrier-after-exit", "unwritten-shared-read"]),
    ("10-partial-warp-reduce/block_sum_bad", &["partial-last-warp"]),
    ("12-no-syncwarp/sum_tail_bad", &["shared-memory-race"]),
    ("20-spinlock-same-warp/lock_naive", &["lock-spin"]),
];

#[test]
fn a_checked_run_finds_the_same_faults_and_nothing_else() {
    let rules: BTreeSet<&str> = lanescope::check::pages().iter().map(|p| p.name).collect();
    for launch in launches() {
        let name = name_of(&launch);
        let out = lanescope(&["run", "--check", "--format", "json", &launch.display().to_string()]);
        // All its lanes wait for each other: the launch itself fails, and says who waits where.
        if name == "08-shuffle-in-branch/data_sum_hang" {
            assert_eq!(out.status.code(), Some(2));
            assert!(text(&out.stderr).contains("deadlock"), "{}", text(&out.stderr));
            continue;
        }
        assert_eq!(out.status.code(), Some(0), "{name}: {}", text(&out.stderr));
        let report: Value = serde_json::from_slice(&out.stdout).unwrap();
        let found: BTreeSet<&str> = report["findings"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|f| f["rule"].as_str())
            .filter(|r| rules.contains(r))
            .collect();
        let wanted = AT_RUN_TIME.iter().find(|w| w.0 == name).map_or(&[][..], |w| w.1);
        assert_eq!(found, wanted.iter().copied().collect(), "{name}");
    }
}
