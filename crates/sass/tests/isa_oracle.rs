//! Compares the printed text of whole programs with nvdisasm's, instruction by instruction.
//!
//! Needs the tools that `.ci/oracles.sh` fetches into `oracles/` (or `$LANESCOPE_ORACLES`); without them
//! the tests say so and pass. The corpus under `tests/corpus` is compiled by two generations of NVRTC for
//! seven architectures; `.ci/oracles.sh` with `--wheel` adds the cubins of a public library.
#![allow(clippy::print_stderr)]

use lanescope_sass::isa::{Arch, Decoder};
use object::{Object, ObjectSection};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Share of instructions whose text must be identical, on every architecture.
const REQUIRED: f64 = 0.999;
const ARCHS: &str = "sm_75,sm_80,sm_86,sm_89,sm_90,sm_100,sm_120";

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn oracles() -> Option<PathBuf> {
    let dir = std::env::var_os("LANESCOPE_ORACLES").map(PathBuf::from);
    let dir = dir.unwrap_or_else(|| repository().join("oracles"));
    let present = dir.join("bin/nvdisasm").exists();
    if !present {
        eprintln!("skipped: no nvdisasm under {} (run .ci/oracles.sh)", dir.display());
    }
    present.then_some(dir)
}

/// Cubins of a folder by architecture name, which is the part of the file name before `.cubin`.
fn cubins(dir: &Path) -> BTreeMap<String, Vec<PathBuf>> {
    let mut by_arch: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(stem) = name.strip_suffix(".cubin") {
            let arch = stem.rsplit('.').next().unwrap_or_default().to_owned();
            by_arch.entry(arch).or_default().push(entry.path());
        }
    }
    by_arch.values_mut().for_each(|paths| paths.sort());
    by_arch
}

/// The words of all code sections. Branch targets are relative, so sections may simply be joined.
fn code(paths: &[PathBuf]) -> Vec<u8> {
    let mut words = Vec::new();
    for path in paths {
        let bytes = std::fs::read(path).expect("cubin");
        let elf = object::read::elf::ElfFile64::<object::Endianness>::parse(&*bytes).expect("ELF");
        for section in elf.sections() {
            if section.name().is_ok_and(|name| name.starts_with(".text.")) {
                words.extend_from_slice(section.data().expect("section data"));
            }
        }
    }
    words
}

/// The text of every instruction, as nvdisasm prints it, without the final semicolon.
fn nvdisasm(oracles: &Path, arch: Arch, words: &[u8]) -> Vec<String> {
    let file = tempfile::NamedTempFile::new().expect("temporary file");
    std::fs::write(file.path(), words).expect("write");
    let output = Command::new(oracles.join("bin/nvdisasm"))
        .args(["--binary", &format!("SM{}", arch.sm())])
        .arg(file.path())
        .output()
        .expect("nvdisasm runs");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "nvdisasm: {complaint}");
    let mut lines = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Some(rest) = line.trim_start().strip_prefix("/*") else { continue };
        let Some((_, text)) = rest.split_once("*/") else { continue };
        let text = text.split("/*").next().unwrap_or_default().trim();
        lines.push(text.trim_end_matches(';').trim_end().to_owned());
    }
    lines
}

/// Compares all cubins of a folder; returns a table line per architecture and whether all suffice.
fn compare(oracles: &Path, dir: &Path) -> (String, bool) {
    let (mut report, mut good) = (String::new(), true);
    for (name, paths) in cubins(dir) {
        // nvdisasm 13 knows nothing older than sm_75.
        let Some(arch) = name.parse::<Arch>().ok().filter(|a| a.sm() >= 75) else { continue };
        let words = code(&paths);
        let expected = nvdisasm(oracles, arch, &words);
        assert_eq!(expected.len(), words.len() / 16, "{name}: nvdisasm printed another number of lines");
        let decoder = Decoder::new(arch).expect("tables");
        let (mut equal, mut examples) = (0usize, Vec::new());
        for ((word, expected), pc) in words.chunks_exact(16).zip(&expected).zip((0u32..).step_by(16)) {
            let raw = u128::from_le_bytes(word.try_into().expect("16 bytes"));
            let got = decoder.decode(pc, raw).map_or_else(|e| e.to_string(), |inst| inst.to_string());
            if got == *expected {
                equal += 1;
            } else if examples.len() < 5 {
                examples.push(format!("    want {expected}\n    got  {got}"));
            }
        }
        let total = expected.len();
        let share = equal as f64 / total.max(1) as f64;
        good &= total > 0 && share >= REQUIRED;
        let percent = 100.0 * share;
        writeln!(report, "{name:8} {equal:>8} of {total:>8}  {percent:.4} %").expect("string");
        for example in examples {
            writeln!(report, "{example}").expect("string");
        }
    }
    (report, good)
}

fn corpus(compiler: &str) {
    let Some(oracles) = oracles() else { return };
    let cache = oracles.join(format!("cache/nvrtc-{compiler}"));
    let mut sources: Vec<PathBuf> = std::fs::read_dir(repository().join("tests/corpus"))
        .expect("corpus")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "cu"))
        .collect();
    sources.sort();
    let includes = format!(
        "{}:{}",
        oracles.join(format!("include-{compiler}")).display(),
        oracles.join(format!("cccl-{compiler}")).display()
    );
    let status = Command::new("python3")
        .arg(repository().join("tests/oracle/compile.py"))
        .arg(oracles.join(format!("lib/libnvrtc-{compiler}.so")))
        .arg(includes)
        .arg(&cache)
        .arg(ARCHS)
        .args(&sources)
        .status()
        .expect("python3 runs");
    assert!(status.success(), "compile.py failed");
    let (report, good) = compare(&oracles, &cache);
    eprintln!("corpus, NVRTC {compiler}\n{report}");
    assert_eq!(report.lines().filter(|line| line.starts_with("sm_")).count(), 7, "{report}");
    assert!(good, "{report}");
}

#[test]
fn corpus_compiled_by_nvrtc_12_9() {
    corpus("12.9");
}

#[test]
fn corpus_compiled_by_nvrtc_13() {
    corpus("13");
}

#[test]
fn public_library() {
    let Some(oracles) = oracles() else { return };
    let dir = oracles.join("wheel");
    if !dir.exists() {
        eprintln!("skipped: no {} (run .ci/oracles.sh --wheel)", dir.display());
        return;
    }
    let (report, good) = compare(&oracles, &dir);
    eprintln!("public library\n{report}");
    assert!(good, "{report}");
}
