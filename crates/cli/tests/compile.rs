//! Source as a module, with the compilers that `.ci/oracles.sh` fetches. Without them these tests say so and pass.

#![allow(clippy::print_stderr)] // That a test was skipped belongs into the log.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The command with NVRTC and ptxas 12.9 and a cache of its own; `None` if they are not there.
fn lanescope(cache: &Path) -> Option<Command> {
    let (nvrtc, ptxas) = (here("../../oracles/lib/libnvrtc-12.9.so"), here("../../oracles/bin/ptxas-12.9"));
    if !nvrtc.is_file() || !ptxas.is_file() {
        eprintln!("skipped: {} is not there; .ci/oracles.sh fetches it", nvrtc.display());
        return None;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanescope"));
    command.env("LANESCOPE_NVRTC", nvrtc).env("LANESCOPE_PTXAS", ptxas).env("XDG_CACHE_HOME", cache);
    Some(command)
}

fn run(mut command: Command, args: &[&str]) -> Output {
    command.args(args).output().expect("the command starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn cached(cache: &Path) -> Vec<PathBuf> {
    let mut list: Vec<PathBuf> =
        std::fs::read_dir(cache.join("lanescope")).into_iter().flatten().flatten().map(|e| e.path()).collect();
    list.sort();
    list
}

#[test]
fn a_launch_of_source_gives_the_outputs_of_the_hardware() {
    let dir = tempfile::tempdir().expect("a folder");
    let case = here("../../tests/groundtruth/04-csr-row-per-thread");
    for entry in std::fs::read_dir(&case).expect("the case").flatten() {
        std::fs::copy(entry.path(), dir.path().join(entry.file_name())).expect("copied");
    }
    let launch = dir.path().join("csr_thread_per_row.toml");
    let body = std::fs::read_to_string(&launch).expect("the launch file");
    std::fs::write(&launch, body.replace("kernel.sm_90.cubin", "kernel.cu")).expect("written");
    let (launch, cache) = (launch.display().to_string(), dir.path().join("cache"));
    for arch in ["sm_80", "sm_90", "sm_120"] {
        let Some(command) = lanescope(&cache) else { return };
        let target = dir.path().join(arch).display().to_string();
        let out = run(command, &["run", &launch, "--arch", arch, "--dump", &target, "--format", "json"]);
        assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
        let profile: Value = serde_json::from_slice(&out.stdout).expect("JSON");
        assert_eq!(profile["arch"], arch);
        assert_eq!(profile["level"], "sass");
        assert_eq!(profile["compiler"], "NVRTC 12.9");
        let read = |p: PathBuf| lanescope::npy::read(&std::fs::read(p).expect("the file")).expect("an array").data;
        let expected = read(case.join("csr_thread_per_row.arg0.expected.npy"));
        assert_eq!(read(dir.path().join(arch).join("arg0.npy")), expected, "{arch}");
    }
    assert_eq!(cached(&cache).len(), 3, "one result for each architecture");
}

#[test]
fn results_are_kept_until_something_changes() {
    let dir = tempfile::tempdir().expect("a folder");
    let cache = dir.path().join("cache");
    let at = |name: &str| dir.path().join(name).display().to_string();
    let kernel = "#include \"n.h\"\nextern \"C\" __global__ void k(int* y) { y[threadIdx.x] = N; }\n";
    std::fs::write(at("k.cu"), kernel).expect("written");
    let launch = "module = \"k.cu\"\ngrid = 1\nblock = 4\n[[arg]]\nzeros = { dtype = \"i32\", len = 4 }\n";
    std::fs::write(at("l.toml"), launch).expect("written");
    let value = |n: i32| {
        std::fs::write(at("n.h"), format!("#define N {n}\n")).expect("written");
        let out = run(lanescope(&cache)?, &["run", &at("l.toml"), "--dump", &at("out")]);
        assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
        let y = lanescope::npy::read(&std::fs::read(at("out/arg0.npy")).expect("the file")).expect("an array").data;
        Some(i32::from_le_bytes(y[..4].try_into().expect("4 bytes")))
    };
    let Some(first) = value(7) else { return };
    assert_eq!(first, 7);
    let files = cached(&cache);
    assert_eq!(files.len(), 1);
    assert_eq!(value(7), Some(7));
    assert_eq!(cached(&cache), files, "the same again");
    assert_eq!(value(8), Some(8));
    assert_eq!(cached(&cache).len(), 2, "a header changed");
    // What was damaged is made again.
    for file in cached(&cache) {
        std::fs::write(file, "damaged").expect("written");
    }
    assert_eq!(value(8), Some(8));
    let out = lanescope(&dir.path().join("none")).map(|c| run(c, &["run", &at("l.toml"), "--no-cache"]));
    assert_eq!(out.and_then(|o| o.status.code()), Some(0));
    assert!(cached(&dir.path().join("none")).is_empty());
}

#[test]
fn errors_of_the_compiler_are_shown_as_they_are() {
    let dir = tempfile::tempdir().expect("a folder");
    let Some(command) = lanescope(dir.path()) else { return };
    let out = run(command, &["run", &here("tests/compile/macro-missing.toml").display().to_string()]);
    assert_eq!(out.status.code(), Some(2));
    let error = text(&out.stderr);
    assert!(error.contains("axpy.cu(5): error: identifier \"FACTOR\" is undefined"), "{error}");
    assert!(error.contains("1 error detected in the compilation"), "{error}");
}

#[test]
fn disasm_takes_source_and_says_what_to_do_with_ptx() {
    let dir = tempfile::tempdir().expect("a folder");
    let ptx = here("tests/launch/fine.ptx").display().to_string();
    let plain = Command::new(env!("CARGO_BIN_EXE_lanescope"));
    let out = run(plain, &["disasm", &ptx]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("disasm --via ptxas"), "{}", text(&out.stderr));
    let Some(command) = lanescope(dir.path()) else { return };
    let out = run(command, &["disasm", &ptx, "--via", "ptxas", "--arch", "sm_80"]);
    assert!(text(&out.stdout).contains("(sm_80)") && text(&out.stdout).contains("STG.E"), "{}", text(&out.stderr));
    let Some(command) = lanescope(dir.path()) else { return };
    let out = run(command, &["disasm", &here("tests/compile/levels.cu").display().to_string(), "--list"]);
    assert!(text(&out.stdout).contains("kernel fates"), "{}", text(&out.stderr));
}

#[test]
fn levels_are_put_side_by_side() {
    let dir = tempfile::tempdir().expect("a folder");
    let launch = here("tests/compile/ok-levels.toml").display().to_string();
    let Some(command) = lanescope(dir.path()) else { return };
    let args = ["run", &launch, "--compare-levels", "--arch", "sm_75,sm_90", "--format", "json"];
    let out = run(command, &args);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let all: Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert_eq!(all["schema"], "lanescope.levels/1");
    assert_eq!(all["levels"].as_array().map(Vec::len), Some(3));
    let lines = all["lines"].as_array().expect("lines");
    let line = |n: u64| lines.iter().find(|l| l["line"] == n).unwrap_or_else(|| panic!("line {n}"));
    for (at, arch) in ["sm_75", "sm_90"].iter().enumerate() {
        let sass = |n: u64, branch: usize| &line(n)["branches"][branch]["sass"][at];
        // As `nvdisasm` shows that code: `@P0 EXIT`, `@!P0 STG`, `@!P0 BRA`, `@!P0 EXIT`.
        for (n, fates) in [(5, "predicated-exit"), (7, "predicated"), (8, "divergent-branch"), (12, "predicated-exit")]
        {
            assert_eq!(sass(n, 0)["fates"], serde_json::json!([fates]), "line {n}, {arch}");
            assert_eq!(sass(n, 0)["arch"], *arch);
        }
        // ptxas unrolls the front half's loop by 4 and by 2 and keeps one more: 7 copies of its body.
        let unrolled = line(9)["branches"].as_array().expect("branches").iter().find(|b| b["sass"][at]["copies"] == 7);
        assert_eq!(unrolled.map(|b| &b["back_edge"]), Some(&Value::Bool(true)), "{arch}");
        assert_eq!(sass(14, 0)["fates"], serde_json::json!(["uniform-branch"]));
        assert_eq!(sass(14, 0)["divergent"], 0);
    }
    // 160 threads pass the bounds check, and each warp of the launch that has a thread executes it once.
    assert_eq!(line(5)["branches"][0]["ptx"]["executed"], 6);
    let Some(command) = lanescope(dir.path()) else { return };
    let out = run(command, &["run", &launch, "--compare-levels"]);
    let report = text(&out.stdout);
    assert!(report.contains("levels.cu:7  if (v & 1) out[i] = v;"), "{report}");
    assert!(!report.contains('\x1b'));
    // Machine code alone has no PTX to compare with.
    let cubin = here("../../tests/groundtruth/04-csr-row-per-thread/csr_thread_per_row.toml").display().to_string();
    let Some(command) = lanescope(dir.path()) else { return };
    let out = run(command, &["run", &cubin, "--compare-levels"]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("neither CUDA source nor PTX"), "{}", text(&out.stderr));
}
