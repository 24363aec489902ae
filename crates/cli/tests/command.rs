//! The command itself: exit codes, streams, files.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn launch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/groundtruth").join(name)
}

fn lanescope(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lanescope")).args(args).output().expect("the command starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_report_goes_to_standard_output_without_styles() {
    let file = launch("04-csr-row-per-thread/csr_thread_per_row.toml");
    let out = lanescope(&["run", &file.display().to_string()]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let report = text(&out.stdout);
    assert!(report.contains("Lane efficiency") && report.contains("unequal loop trips"), "{report}");
    assert!(report.contains("s += val[k] * x[col[k]];"), "the source beside the launch file is shown");
    assert!(!report.contains('\x1b') && out.stderr.is_empty());
}

#[test]
fn findings_decide_the_exit_code_only_if_asked() {
    let lossy = launch("04-csr-row-per-thread/csr_thread_per_row.toml").display().to_string();
    let fine = launch("01-tail-guard/axpy_guarded.toml").display().to_string();
    assert_eq!(lanescope(&["run", &lossy, "--fail-on", "warning"]).status.code(), Some(1));
    assert_eq!(lanescope(&["run", &lossy, "--fail-on", "error"]).status.code(), Some(0));
    assert_eq!(lanescope(&["run", &fine, "--fail-on", "warning"]).status.code(), Some(0));
    assert_eq!(lanescope(&["run", &fine, "--fail-on", "info"]).status.code(), Some(1));
}

#[test]
fn bad_input_and_usage_exit_with_2() {
    for args in [
        &["run", "/nowhere.toml"][..],
        &["run"],
        &["walk"],
        &["explain", "no-such-rule"],
        &["disasm", env!("CARGO_MANIFEST_DIR")],
        &["run", &launch("01-tail-guard/axpy_guarded.toml").display().to_string(), "--trace", "40,0"],
        &["run", &launch("01-tail-guard/axpy_guarded.toml").display().to_string(), "--trace", "x,y"],
    ] {
        let out = lanescope(args);
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        assert!(out.stdout.is_empty() && text(&out.stderr).contains("error"), "{args:?}");
    }
}

#[test]
fn a_launch_that_cannot_end_says_who_waits() {
    let file = launch("08-shuffle-in-branch/data_sum_hang.toml");
    let limited = lanescope(&["run", &file.display().to_string(), "--max-inst", "10"]);
    assert_eq!(limited.status.code(), Some(2));
    assert!(text(&limited.stderr).contains("stopped after 10 warp instructions"), "{}", text(&limited.stderr));
    let traced = lanescope(&["run", &file.display().to_string(), "--trace", "0,0"]);
    assert_eq!(traced.status.code(), Some(2));
    assert!(text(&traced.stdout).contains("warp 0, until it stopped"), "{}", text(&traced.stdout));
    assert!(text(&traced.stderr).contains("deadlock"), "{}", text(&traced.stderr));
}

#[test]
fn dump_writes_every_buffer() {
    let dir = tempfile::tempdir().expect("a folder");
    let target = dir.path().join("new/out");
    let file = launch("04-csr-row-per-thread/csr_thread_per_row.toml");
    let out = lanescope(&["run", &file.display().to_string(), "--dump", &target.display().to_string()]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let mut names: Vec<_> = std::fs::read_dir(&target)
        .expect("the folder")
        .flatten()
        .map(|e| e.file_name().into_string().expect("a name"))
        .collect();
    names.sort();
    assert_eq!(names, ["arg0.npy", "arg1.npy", "arg2.npy", "arg3.npy", "arg4.npy"]);
    let read = |p: &Path| lanescope::npy::read(&std::fs::read(p).expect("the file")).expect("an array");
    let ours = read(&target.join("arg0.npy"));
    let theirs = read(&launch("04-csr-row-per-thread/csr_thread_per_row.arg0.expected.npy"));
    assert_eq!((ours.data, ours.descr), (theirs.data, theirs.descr));
}

#[test]
fn out_writes_one_buffer_beside_the_launch_file() {
    let dir = tempfile::tempdir().expect("a folder");
    let module = launch("02-tiny-if-else/kernel.sm_90.cubin");
    let file = dir.path().join("l.toml");
    let body = format!(
        "module = {module:?}\nkernel = \"tiny_if\"\ngrid = 1\nblock = 32\n\
         [[arg]]\nzeros = {{ dtype = \"f32\", len = 32 }}\nout = \"y.npy\"\n\
         [[arg]]\nfull = {{ dtype = \"f32\", len = 32, value = 1.5 }}\n"
    );
    std::fs::write(&file, body).expect("written");
    let out = lanescope(&["run", &file.display().to_string()]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let y = lanescope::npy::read(&std::fs::read(dir.path().join("y.npy")).expect("the file")).expect("an array");
    let words: Vec<f32> = y.data.chunks(4).map(|w| f32::from_le_bytes(w.try_into().expect("4 bytes"))).collect();
    // Odd threads double, even ones add 3.
    let expected: Vec<f32> = (0..32).map(|i| if i % 2 == 1 { 3.0 } else { 4.5 }).collect();
    assert_eq!(words, expected);
    assert!(!dir.path().join("arg0.npy").exists());
}

#[test]
fn an_access_out_of_bounds_names_everything() {
    let dir = tempfile::tempdir().expect("a folder");
    let module = launch("02-tiny-if-else/kernel.sm_90.cubin");
    let file = dir.path().join("l.toml");
    let body = format!(
        "module = {module:?}\nkernel = \"tiny_if\"\ngrid = 1\nblock = 32\n\
         [[arg]]\nname = \"y\"\nzeros = {{ dtype = \"f32\", len = 32 }}\n\
         [[arg]]\nname = \"x\"\nzeros = {{ dtype = \"f32\", len = 30 }}\n"
    );
    std::fs::write(&file, body).expect("written");
    let out = lanescope(&["run", &file.display().to_string()]);
    let error = text(&out.stderr);
    assert_eq!(out.status.code(), Some(2), "{error}");
    for part in ["out of bounds", "LDG.E", "lane 30", "argument 1 (x)", "kernel.cu:4", "0 bytes past the end"] {
        assert!(error.contains(part), "`{part}` is missing in: {error}");
    }
}

#[test]
fn json_is_one_document_with_all_keys() {
    let file = launch("03-heavy-if-else/by_lane.toml").display().to_string();
    let out = lanescope(&["run", &file, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let keys: Vec<&str> = json.as_object().expect("an object").keys().map(String::as_str).collect();
    let wanted = [
        "arch",
        "block",
        "branches",
        "demangled",
        "findings",
        "grid",
        "instructions",
        "kernel",
        "level",
        "loops",
        "printf",
        "printf_lost",
        "roofline",
        "schema",
        "source",
        "totals",
        "warp_size",
    ];
    assert_eq!(sorted(keys), wanted);
    assert_eq!(json["schema"], "lanescope.profile/1");
    let totals = &json["totals"];
    assert_eq!(totals["lane_efficiency"].as_f64(), Some(287_232.0 / (17_344.0 * 32.0)));
    let inst: Vec<&str> = json["instructions"][0].as_object().expect("one").keys().map(String::as_str).collect();
    let counters = ["inst_executed", "thread_inst_executed", "thread_inst_executed_pred_on"];
    assert_eq!(sorted(inst), ["file", "inst_executed", "line", "pc", "text", counters[1], counters[2]]);
    let branch = json["branches"].as_array().expect("branches").iter().find(|b| b["pc"] == 0xd0).expect("the if");
    assert_eq!(branch["kind"], "branch");
    assert_eq!((branch["executed"].as_u64(), branch["divergent"].as_u64()), (Some(32), Some(32)));
    assert_eq!((branch["lanes_taken"].as_u64(), branch["lanes_not_taken"].as_u64()), (Some(512), Some(512)));
    let finding = &json["findings"][0];
    for key in ["rule", "severity", "pc", "file", "line", "message", "evidence"] {
        assert!(finding.get(key).is_some(), "{key}");
    }
}

fn sorted(mut list: Vec<&str>) -> Vec<&str> {
    list.sort_unstable();
    list
}

#[test]
fn explain_lists_and_explains() {
    let list = text(&lanescope(&["explain"]).stdout);
    assert!(list.lines().count() >= 8 && list.contains("unequal-trips"));
    let page = text(&lanescope(&["explain", "split-exit"]).stdout);
    assert!(page.contains("@P0 EXIT") && page.contains("leave it"));
    assert!(text(&lanescope(&["explain", "split-exits"]).stderr).contains("did you mean `split-exit`?"));
}

#[test]
fn disasm_prints_and_lists() {
    let cubin = launch("03-heavy-if-else/kernel.sm_90.cubin").display().to_string();
    let out = text(&lanescope(&["disasm", &cubin, "--kernel", "by_lane"]).stdout);
    assert!(out.contains("/*00d0*/") && out.contains("@P0 BRA 0x160 ;") && !out.contains("by_warp"), "{out}");
    let list = text(&lanescope(&["disasm", &cubin, "--list"]).stdout);
    assert!(list.contains("sm_90 cubin") && list.contains("kernel by_warp"), "{list}");
    let others = launch("03-heavy-if-else/kernel.others.fatbin").display().to_string();
    let json: serde_json::Value =
        serde_json::from_slice(&lanescope(&["disasm", &others, "--list", "--format", "json"]).stdout).expect("JSON");
    let archs: Vec<_> = json["entries"].as_array().expect("entries").iter().map(|e| e["arch"].clone()).collect();
    assert_eq!(archs, ["sm_80", "sm_100", "sm_120"]);
    let missing = lanescope(&["disasm", &cubin, "--kernel", "by_lan"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("did you mean `by_lane`?"));
}

#[test]
fn trace_takes_its_value_either_way() {
    let file = launch("03-heavy-if-else/by_lane.toml").display().to_string();
    for args in [&["run", &file, "--trace", "3,7"][..], &["run", &file, "--trace=3,7"]] {
        assert!(text(&lanescope(args).stdout).starts_with("by_lane: block 3, warp 7"), "{args:?}");
    }
    assert!(text(&lanescope(&["run", "--trace", &file]).stdout).starts_with("by_lane: block 0, warp 0"));
}

#[test]
fn a_branch_is_told_in_seven_steps() {
    let file = launch("03-heavy-if-else/by_lane.toml").display().to_string();
    let told = text(&lanescope(&["run", &file, "--trace", "--steps"]).stdout);
    assert!(told.starts_with("by_lane: block 0, warp 0: the seven steps of"), "{told}");
    let heads: Vec<_> = told.lines().filter_map(|l| l.split_once("  ")?.0.parse::<u32>().ok()).collect();
    assert_eq!(heads, [1, 2, 3, 4, 5, 6, 7]);
    // Whole halves of the warp: what the first mask has, the second has not.
    let masks: Vec<u32> = told
        .lines()
        .filter(|l| l.contains("taken: "))
        .filter_map(|l| u32::from_str_radix(l.split_once("0x")?.1.split_once(' ')?.0, 16).ok())
        .collect();
    assert_eq!((masks.len(), masks.iter().fold(0, |a, m| a ^ m)), (2, u32::MAX), "{told}");
    assert!(told.contains("0xffffffff") && told.contains("all lanes go on together"), "{told}");
    assert_eq!(lanescope(&["run", &file, "--steps"]).status.code(), Some(2), "only with --trace");
}

#[test]
fn a_page_is_written_whole_or_not_at_all() {
    let file = launch("03-heavy-if-else/by_lane.toml").display().to_string();
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("page.html").display().to_string();
    let made = |flags: &[&str]| {
        let out = lanescope(&[&["run", &file, "--html", &page][..], flags].concat());
        (out.status.code(), text(&out.stderr), std::fs::read_to_string(&page).unwrap_or_default())
    };
    for (flags, words) in [
        (&["--html-warps", "9999,0"][..], "--html-warps: there is no block 9999; the grid has"),
        (&["--html-warps", "0,77"], "--html-warps: there is no warp 77; a block has"),
        (&["--html-warps", "zero"], "expected BLOCK,WARP or several of them such as 0,0;3,1; found `zero`"),
    ] {
        let (code, errors, html) = made(flags);
        assert_eq!((code, html.len()), (Some(2), 0), "{flags:?}");
        assert!(errors.contains(words), "{errors}");
    }
    let (code, _, html) = made(&["--html-warps", "1,0; 0,1", "--html-steps", "50"]);
    assert_eq!(code, Some(0));
    assert!(html.contains("\"block 0, warp 1\"") && html.contains("\"block 1, warp 0\""));
    // The same for any number of threads; the warp that loses most is found again.
    let (one, many) = (made(&["--threads", "1"]).2, made(&["--threads", "3"]).2);
    assert!(one.ends_with("</html>\n") || one.ends_with("</html>"));
    assert_eq!(one, many);
    // Standard output has the report as ever.
    assert!(text(&lanescope(&["run", &file, "--html", &page]).stdout).contains("Lane efficiency"));
}
