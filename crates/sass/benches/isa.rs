//! Decode and decode-and-print throughput, in instructions (items) per second.
//!
//! `programs` are the kernels of `examples/`, so instructions come as compilers emit them; `forms` are the
//! stored test vectors of compiled code, a few of every printed shape, the worst case for branch
//! prediction.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use lanescope_sass::isa::{Arch, Decoder};
use object::{Object, ObjectSection};
use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};

fn main() {
    divan::main();
}

fn crate_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn cubins(dir: &Path, suffix: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            cubins(&path, suffix, found);
        } else if path.to_string_lossy().ends_with(suffix) {
            found.push(path);
        }
    }
}

/// The code of the example kernels, up to the padding.
fn programs(sm: u32) -> Vec<(u32, u128)> {
    let mut paths = Vec::new();
    cubins(&crate_dir().join("../../examples"), &format!(".sm_{sm}.cubin"), &mut paths);
    paths.sort();
    let mut words = Vec::new();
    for path in paths {
        let bytes = std::fs::read(path).expect("cubin");
        let elf = object::read::elf::ElfFile64::<object::Endianness>::parse(&*bytes).expect("ELF");
        for section in elf.sections().filter(|s| s.name().is_ok_and(|name| name.starts_with(".text."))) {
            let code = section.data().expect("section").chunks_exact(16);
            let code = code.map(|word| u128::from_le_bytes(word.try_into().expect("16 bytes")));
            words.extend((0u32..).step_by(16).zip(code));
        }
    }
    words
}

fn forms(sm: u32) -> Vec<(u32, u128)> {
    let path = crate_dir().join(format!("tests/isa_data/vectors_sm{sm}.tsv.zst"));
    let bytes = std::fs::read(path).expect("stored vectors");
    let mut text = String::new();
    ruzstd::decoding::StreamingDecoder::new(bytes.as_slice())
        .expect("zstd frame")
        .read_to_string(&mut text)
        .expect("utf-8");
    let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("hex");
    let word = |line: &str| {
        let columns: Vec<&str> = line.split('\t').collect();
        let [low, high, address, "compiled", _text] = columns[..] else { return None };
        Some((number(address) as u32, u128::from(number(low)) | u128::from(number(high)) << 64))
    };
    text.lines().skip(1).filter_map(word).collect()
}

fn decoder(sm: u32) -> Decoder {
    Decoder::new(Arch::from_sm(sm).expect("supported")).expect("tables")
}

fn decode(bencher: Bencher, sm: u32, words: &[(u32, u128)]) {
    let decoder = decoder(sm);
    bencher.counter(ItemsCount::new(words.len())).bench(|| {
        for &(pc, raw) in words {
            // By reference: the value is large, and a move would be measured too.
            black_box(&decoder.decode(pc, black_box(raw)));
        }
    });
}

fn print(bencher: Bencher, sm: u32, words: &[(u32, u128)]) {
    let decoder = decoder(sm);
    let mut line = String::new();
    bencher.counter(ItemsCount::new(words.len())).bench_local(|| {
        for &(pc, raw) in words {
            line.clear();
            if let Ok(inst) = decoder.decode(pc, black_box(raw)) {
                write!(line, "{inst}").ok();
            }
            black_box(&line);
        }
    });
}

#[divan::bench(args = [80, 90, 100, 120])]
fn decode_programs(bencher: Bencher, sm: u32) {
    decode(bencher, sm, &programs(sm));
}

#[divan::bench(args = [80, 90, 100, 120])]
fn decode_and_print_programs(bencher: Bencher, sm: u32) {
    print(bencher, sm, &programs(sm));
}

#[divan::bench(args = [75, 80, 90, 100, 120])]
fn decode_forms(bencher: Bencher, sm: u32) {
    decode(bencher, sm, &forms(sm));
}

#[divan::bench(args = [75, 80, 90, 100, 120])]
fn decode_and_print_forms(bencher: Bencher, sm: u32) {
    print(bencher, sm, &forms(sm));
}

#[divan::bench]
fn start_up() -> Decoder {
    decoder(90)
}
