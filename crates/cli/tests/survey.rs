//! `lanescope survey`: formats, broken files, files written whole, and the bit-flip laboratory.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn lanescope(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lanescope")).args(args).output().expect("the command starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn examples(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

fn json(out: &Output) -> serde_json::Value {
    serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(&out.stderr)))
}

#[test]
fn a_folder_is_searched_and_a_broken_file_skipped() {
    let folder = tempfile::tempdir().expect("folder");
    let path = |name: &str| folder.path().join(name);
    std::fs::copy(examples("moe/moe.sm_100.cubin"), path("a.bin")).expect("copy");
    let bytes = std::fs::read(examples("moe/moe.sm_90.cubin")).expect("cubin");
    std::fs::write(path("cut.cubin"), &bytes[..bytes.len() / 2]).expect("write");
    std::fs::write(path("notes.txt"), "no code here").expect("write");
    std::fs::create_dir(path("inner")).expect("folder");
    std::fs::copy(examples("moe/moe.sm_80.cubin"), path("inner/b")).expect("copy");
    let folder = folder.path().display().to_string();
    let out = lanescope(&["survey", &folder, "--format", "json"]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let all = json(&out);
    assert_eq!(all["schema"], "lanescope.survey/1");
    assert_eq!(all["totals"]["sm_100"]["kernels"], 1);
    assert_eq!(all["totals"]["sm_80"]["kernels"], 1);
    let files = all["files"].as_array().expect("files");
    assert_eq!(files.len(), 3);
    let cut = files.iter().find(|f| f["path"].as_str().is_some_and(|p| p.ends_with("cut.cubin"))).expect("reported");
    assert!(cut["error"].is_string() && cut["kernels"].as_array().is_some_and(Vec::is_empty));
    assert!(text(&out.stderr).contains("cut.cubin"));
    for format in ["text", "csv", "markdown", "html"] {
        let out = lanescope(&["survey", &folder, "--format", format, "--kernels"]);
        assert_eq!(out.status.code(), Some(0));
        assert!(text(&out.stdout).contains("BSSY.RECONVERGENT"), "{format}");
    }
}

#[test]
fn a_wheel_is_read_in_place() {
    let folder = tempfile::tempdir().expect("folder");
    let wheel = folder.path().join("x.whl");
    let mut zip = zip::ZipWriter::new(std::fs::File::create(&wheel).expect("file"));
    let options = zip::write::SimpleFileOptions::default();
    zip.start_file("pkg/kernel.cubin", options).expect("member");
    std::io::Write::write_all(&mut zip, &std::fs::read(examples("spmv/spmv.sm_90.cubin")).expect("cubin"))
        .expect("write");
    zip.start_file("pkg/readme", options).expect("member");
    std::io::Write::write_all(&mut zip, b"text").expect("write");
    zip.finish().expect("zip");
    let all = json(&lanescope(&["survey", &wheel.display().to_string(), "--format", "json"]));
    assert!(all["totals"]["sm_90"]["kernels"].as_u64().is_some_and(|n| n > 0), "{all}");
    assert!(all["files"][0]["path"].as_str().is_some_and(|p| p.ends_with("x.whl/pkg/kernel.cubin")));
}

#[test]
fn the_uniformity_analysis_is_a_second_verdict() {
    let folder = examples("").display().to_string();
    let ask =
        |more: &[&str]| json(&lanescope(&[&["survey", &folder, "--format", "json", "--branches"], more].concat()));
    let (taint, both) = (ask(&[]), ask(&["--verdict", "uniformity"]));
    let kernels = |all: &serde_json::Value| -> Vec<serde_json::Value> {
        let files = all["files"].as_array().expect("files").iter();
        files.flat_map(|f| f["kernels"].as_array().cloned().unwrap_or_default()).collect()
    };
    let sum = |classes: &serde_json::Value| -> u64 {
        classes.as_object().expect("classes").values().map(|n| n.as_u64().expect("count")).sum()
    };
    let (mut proved, mut judged) = (0, 0);
    for (before, after) in kernels(&taint).iter().zip(&kernels(&both)) {
        // What there was before stays as it was.
        for key in ["name", "branches", "all_branches", "verdict", "regions", "opcodes"] {
            assert_eq!(before[key], after[key]);
        }
        assert!(before.get("unproved_branches").is_none() && after.get("unjudged").is_none(), "{after}");
        let list = after["list"].as_array().expect("list");
        let unproved = list.iter().filter(|b| b["unproved"] == true).count() as u64;
        let told = list.iter().filter(|b| b["unproved"].is_boolean()).count() as u64;
        assert_eq!((sum(&after["unproved_branches"]), told), (unproved, sum(&after["all_branches"])), "{after}");
        proved += told - unproved;
        judged += 1;
    }
    assert!(judged >= 6 && proved > 0, "{judged} kernels, {proved} branches");
    let code = both["totals"].as_object().expect("totals");
    assert!(code.values().all(|t| t["unjudged"] == 0));
}

#[test]
fn nothing_readable_exits_with_2() {
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("x.cubin");
    std::fs::write(&file, "not a cubin").expect("write");
    let target = folder.path().join("out.json").display().to_string();
    let out = lanescope(&["survey", &file.display().to_string(), "--format", "json", "--output", &target]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("x.cubin") && !Path::new(&target).exists());
}

#[test]
fn classes_are_patched_consistently_or_not_at_all() {
    let folder = tempfile::tempdir().expect("folder");
    let target = folder.path().join("out.cubin").display().to_string();
    let source = examples("moe/moe.sm_100.cubin").display().to_string();
    let patch = |class: &str, more: &[&str]| {
        let base = ["survey", "--patch", &source, "--patch-kernel", "moe", "--class", class, "-o", &target];
        lanescope(&[&base[..], more].concat())
    };
    let out = patch("plain", &[]);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    assert!(text(&out.stdout).contains("no other bit differs") && text(&out.stderr).contains("second encoding"));
    let all = json(&lanescope(&["survey", &target, "--format", "json"]));
    let opcodes = &all["totals"]["sm_100"]["opcodes"];
    assert!(opcodes["BSSY.RECONVERGENT"].is_null() && opcodes["BSSY"] == opcodes["BSYNC"], "{opcodes}");
    std::fs::remove_file(&target).expect("written");
    let nowhere = patch("plain", &["--region", "0x7"]);
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(text(&nowhere.stderr).contains("there is no BSSY at 0x7") && !Path::new(&target).exists());
}
