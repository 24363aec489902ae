//! Lanes that are missing in a helper were lost where the kernel branched, whether the helper is called or inlined: machine
//! code of four architectures and PTX, with NVRTC if `.ci/oracles.sh` has fetched it.

#![allow(clippy::print_stderr)] // That a test was skipped belongs into the log.

use std::path::{Path, PathBuf};

use lanescope::compile::{Cache, Tools};
use lanescope::launch;
use lanescope::run::{Prepared, Ran, Settings};
use lanescope_analysis::Cause;
use lanescope_analysis::histogram::{Histogram, What};
use lanescope_sim::Model;

/// As `calls.cu` has it.
const THREADS: u32 = 1024;

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Runs a kernel of `calls.cu` on every architecture, and as PTX.
fn run(kernel: &str, check: impl Fn(&str, &Ran)) {
    let nvrtc = here("../../oracles/lib/libnvrtc-12.9.so");
    if !nvrtc.is_file() {
        eprintln!("skipped: {} is not there; .ci/oracles.sh fetches it", nvrtc.display());
        return;
    }
    let tools = Tools { nvrtc: Some(nvrtc), cache: Cache::Off, ..Tools::default() };
    let text = format!(
        "module = \"calls.cu\"\nkernel = \"{kernel}\"\ngrid = [{}, 1, 1]\nblock = [128, 1, 1]\n\
         [[arg]]\nzeros = {{ dtype = \"i32\", len = {THREADS} }}\n\
         [[arg]]\nrandom = {{ dtype = \"i32\", len = {THREADS}, seed = 5, low = 0, high = 1000 }}\n",
        THREADS / 128
    );
    for arch in ["sm_80", "sm_90", "sm_100", "sm_120", "ptx"] {
        let ptx = arch == "ptx";
        let settings = Settings {
            arch: Some(if ptx { "sm_90" } else { arch }.to_owned()),
            model: ptx.then_some(Model::Ipdom),
            tools: tools.clone(),
            ..Settings::default()
        };
        let file = launch::parse("launch.toml", &text).unwrap();
        let ran = Prepared::new(file, here("tests/attribution"), &settings).and_then(|p| p.run(None)).unwrap();
        check(arch, &ran);
    }
}

fn line(ran: &Ran, inst: u32) -> u32 {
    ran.kernel.source.get(inst as usize).map_or(0, |l| l.line)
}

/// The line of the source that has this text.
fn line_of(text: &str) -> u32 {
    let source = std::fs::read_to_string(here("tests/attribution/calls.cu")).unwrap();
    1 + source.lines().position(|l| l.contains(text)).unwrap() as u32
}

/// Lines of the helpers: all above the first kernel.
fn in_helper(line: u32) -> bool {
    line != 0 && line < line_of("void through_calls")
}

fn lines_of(ran: &Ran, cause: Cause) -> u32 {
    cause.inst().map_or(0, |i| line(ran, i))
}

/// Whether each thread of a warp has `v % 3 == rest`.
fn taking(ran: &Ran, rest: i32) -> Vec<u32> {
    let input = ran.buffers[1].as_ref().unwrap();
    let values = input.data.chunks_exact(4).map(|c| i32::from_le_bytes([c[0], c[1], c[2], c[3]]));
    let takes: Vec<bool> = values.map(|v| v % 3 == rest).collect();
    takes.chunks(32).map(|w| w.iter().filter(|t| **t).count() as u32).collect()
}

/// All that is lost in helpers is lost to branches on the line `branch`.
fn blames(arch: &str, ran: &Ran, branch: u32) {
    let mut seen = 0;
    for (at, loss) in ran.analysis.losses.instructions.iter().enumerate() {
        if !in_helper(line(ran, at as u32)) {
            continue;
        }
        let counts = &ran.profile().counts[at];
        assert_eq!(loss.lost, 32 * counts.inst_executed - counts.thread_inst_executed);
        assert_eq!(loss.parts.iter().map(|p| p.lanes).sum::<u64>(), loss.lost);
        for p in &loss.parts {
            let text = &ran.kernel.text[at];
            assert!(matches!(p.cause, Cause::Branch(_)), "{arch}: `{text}` {p:?}");
            assert_eq!(lines_of(ran, p.cause), branch, "{arch}: `{text}` {p:?}");
            assert!(!p.estimate, "{arch}: `{text}` {p:?}");
        }
        seen += loss.lost;
    }
    assert!(seen > 10_000, "{arch}: the helpers suffer: {seen}");
    // Nobody lost lanes anywhere else for another reason.
    for total in &ran.analysis.losses.causes {
        assert_eq!(lines_of(ran, total.cause), branch, "{arch}: {total:?}");
    }
    // The branch's histogram of lanes is that of the input, whichever way it is written.
    let cause = ran.analysis.losses.causes[0].cause;
    let h = Histogram::of(cause, ran.profile()).unwrap();
    assert_eq!(h.what, What::LanesTaken);
    let counts = &ran.profile().branches.iter().find(|b| Some(b.inst) == cause.inst()).unwrap().lanes_histogram;
    let takes = taking(ran, 0);
    let want = |of: &dyn Fn(u32) -> u32| {
        let mut bins = [0u64; 33];
        takes.iter().filter(|&&t| t != 0 && t != 32).for_each(|&t| bins[of(t) as usize] += 1);
        (0..).zip(bins).filter(|b| b.1 != 0).collect::<Vec<(u32, u64)>>()
    };
    assert!(*counts == want(&|t| t) || *counts == want(&|t| 32 - t), "{arch}: {counts:?}, {takes:?}");
}

#[test]
fn through_two_levels_of_calls() {
    run("through_calls", |arch, ran| {
        assert!(
            arch == "ptx" || ran.kernel.functions.len() > 1 || ran.kernel.text.iter().any(|t| t.starts_with("CALL"))
        );
        blames(arch, ran, line_of("if (v % 3 == 0)"));
    });
}

#[test]
fn through_inlining() {
    let second = {
        let source = std::fs::read_to_string(here("tests/attribution/calls.cu")).unwrap();
        let after = source.lines().position(|l| l.contains("void inlined")).unwrap();
        let rest = source.lines().skip(after).position(|l| l.contains("if (v % 3 == 0)")).unwrap();
        (after + rest + 1) as u32
    };
    run("inlined", |arch, ran| blames(arch, ran, second));
}

#[test]
fn two_branches_that_lead_to_helpers() {
    run("both_sides", |arch, ran| {
        // In the order of the code; line tables do not always tell them apart.
        let splits: Vec<u32> = ran.profile().branches.iter().filter(|b| b.divergent > 0).map(|b| b.inst).collect();
        let [outer, inner] = splits[..] else { panic!("{arch}: {splits:?}") };
        assert!(!in_helper(line(ran, outer)) && !in_helper(line(ran, inner)), "{arch}");
        let (spins, mixes) = (taking(ran, 0), taking(ran, 1));
        for (at, loss) in ran.analysis.losses.instructions.iter().enumerate() {
            let line = line(ran, at as u32);
            let by = |i: u32| loss.parts.iter().filter(|p| p.cause == Cause::Branch(i)).map(|p| p.lanes).sum::<u64>();
            if line == line_of("x = x * 1664525") && loss.lost > 0 {
                assert_eq!(by(outer), loss.lost, "{arch}: {:?}", loss.parts);
            }
            if line == line_of("x = x * 22695477") && loss.lost > 0 {
                // Of the lanes that are missing here those that spin parted at the outer branch, the rest at the inner one.
                assert_eq!(by(outer) + by(inner), loss.lost, "{arch}: {:?}", loss.parts);
                let lost: u32 = mixes.iter().map(|m| 32 - m).sum();
                let share = f64::from(spins.iter().sum::<u32>()) / f64::from(lost);
                let ours = by(outer) as f64 / loss.lost as f64;
                assert!((share - ours).abs() < 0.01, "{arch}: {ours}, by the input {share}");
            }
        }
    });
}
