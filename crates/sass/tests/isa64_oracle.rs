//! Compares the 64-bit instructions that are decoded in full with nvdisasm's text, and the names of the others.
//!
//! Needs what `.ci/oracles.sh` fetches into `oracles/` (or `$LANESCOPE_ORACLES`): NVRTC 12.9 and, since later ones
//! know nothing older than sm_75, the nvdisasm 12.8 that a Triton wheel holds. Without them the test says so and passes.
#![allow(clippy::print_stderr)]

use lanescope_sass::isa64::{Code, Decoded, decode};
use object::{Object, ObjectSection};
use std::path::{Path, PathBuf};
use std::process::Command;

const ARCHS: [&str; 4] = ["sm_50", "sm_52", "sm_60", "sm_61"];

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The code sections of all cubins for one architecture. Targets are relative and bundles whole, so sections may
/// simply be joined.
fn code(cache: &Path, arch: &str, sources: &[PathBuf]) -> Vec<u8> {
    let mut code = Vec::new();
    for source in sources {
        let stem = source.file_stem().expect("name").to_string_lossy();
        // Some kernels need instructions that older architectures lack.
        let Ok(bytes) = std::fs::read(cache.join(format!("{stem}.{arch}.cubin"))) else { continue };
        let elf = object::read::elf::ElfFile64::<object::Endianness>::parse(&*bytes).expect("ELF");
        for section in elf.sections().filter(|s| s.name().is_ok_and(|n| n.starts_with(".text."))) {
            code.extend_from_slice(section.data().expect("section data"));
            assert!(code.len().is_multiple_of(32), "{stem} {arch}: a bundle is cut");
        }
    }
    code
}

/// Texts by address, in the order of the code; nvdisasm prints no control words.
fn nvdisasm(tool: &Path, arch: &str, code: &[u8]) -> Vec<(u32, String)> {
    let file = tempfile::NamedTempFile::new().expect("temporary file");
    std::fs::write(file.path(), code).expect("write");
    // Without -novliw, dual-issued pairs are put in braces.
    let output = Command::new(tool)
        .args(["-novliw", "--binary", &arch.replace("sm_", "SM")])
        .arg(file.path())
        .output()
        .expect("nvdisasm runs");
    assert!(output.status.success(), "nvdisasm: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines()
        .filter_map(|line| {
            let (pc, text) = line.trim_start().strip_prefix("/*")?.split_once("*/")?;
            let text = text.split(';').next().unwrap_or_default().trim();
            Some((u32::from_str_radix(pc, 16).ok()?, text.to_owned()))
        })
        .collect()
}

#[test]
fn control_flow_of_the_corpus_prints_as_nvdisasm_prints_it() {
    let oracles = std::env::var_os("LANESCOPE_ORACLES").map_or_else(|| repository().join("oracles"), PathBuf::from);
    let tool = oracles.join("bin/nvdisasm-12.8");
    if !tool.exists() {
        eprintln!("skipped: no {} (run .ci/oracles.sh)", tool.display());
        return;
    }
    let cache = oracles.join("cache/nvrtc-12.9");
    let mut sources: Vec<PathBuf> = std::fs::read_dir(repository().join("tests/corpus"))
        .expect("corpus")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "cu"))
        .collect();
    sources.sort();
    let includes = format!("{}:{}", oracles.join("include-12.9").display(), oracles.join("cccl-12.9").display());
    let status = Command::new("python3")
        .arg(repository().join("tests/oracle/compile.py"))
        .arg(oracles.join("lib/libnvrtc-12.9.so"))
        .args([includes, cache.display().to_string(), ARCHS.join(",")])
        .args(&sources)
        .status()
        .expect("python3 runs");
    assert!(status.success(), "compile.py failed");
    for arch in ARCHS {
        let code = code(&cache, arch, &sources);
        let expected = nvdisasm(&tool, arch, &code);
        let words: Vec<(u32, u64)> = Code::new(&code).collect();
        assert_eq!(words.len(), expected.len(), "{arch}: nvdisasm printed another number of lines");
        let (mut full, mut named, mut wrong) = (0, 0, Vec::new());
        for ((pc, raw), (at, text)) in words.into_iter().zip(&expected) {
            assert_eq!(pc, *at);
            let decoded = decode(pc, raw);
            let good = match &decoded {
                Ok(Decoded::Full(inst)) => {
                    full += 1;
                    inst.to_string() == *text
                }
                Ok(Decoded::Named { guard, mnemonic }) => {
                    named += 1;
                    let (before, rest) = match text.split_once(' ') {
                        Some((before, rest)) if before.starts_with('@') => (before.to_owned(), rest),
                        _ => (String::new(), text.as_str()),
                    };
                    let guard = if guard.index == 7 && !guard.negated { String::new() } else { format!("@{guard}") };
                    let name: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
                    before == guard && name == *mnemonic
                }
                Err(_) => false,
            };
            if !good {
                wrong.push(format!("{pc:#x} {raw:#018x}: want {text}, got {decoded:?}"));
            }
        }
        eprintln!("{arch}: {full} instructions in full, {named} by name, {} differ", wrong.len());
        assert!(full > 4000 && named > 10_000 && wrong.is_empty(), "{arch}: {:#?}", &wrong[..wrong.len().min(10)]);
    }
}
