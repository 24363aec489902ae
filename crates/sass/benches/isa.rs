//! Decode and decode-and-print throughput, in instructions (items) per second.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use lanescope_sass::isa::{Arch, Decoder};
use std::fmt::Write as _;
use std::io::Read;
use std::path::PathBuf;

const ARCHS: [u32; 5] = [75, 80, 90, 100, 120];

fn main() {
    divan::main();
}

/// The compiled-code part of the stored vectors: a wide mix, harder than a real program.
fn words(sm: u32) -> Vec<(u32, u128)> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/isa_data");
    let bytes = std::fs::read(dir.join(format!("vectors_sm{sm}.tsv.zst"))).expect("stored vectors");
    let mut text = String::new();
    ruzstd::decoding::StreamingDecoder::new(bytes.as_slice())
        .expect("zstd frame")
        .read_to_string(&mut text)
        .expect("utf-8");
    let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("hex");
    text.lines()
        .skip(1)
        .filter_map(|line| {
            let columns: Vec<&str> = line.split('\t').collect();
            let [low, high, address, "compiled", _text] = columns[..] else { return None };
            let raw = u128::from(number(low)) | u128::from(number(high)) << 64;
            Some((number(address) as u32, raw))
        })
        .collect()
}

#[divan::bench(args = ARCHS)]
fn decode(bencher: Bencher, sm: u32) {
    let words = words(sm);
    let decoder = Decoder::new(Arch::from_sm(sm).expect("supported")).expect("tables");
    bencher.counter(ItemsCount::new(words.len())).bench(|| {
        for &(pc, raw) in &words {
            // By reference: the value is large, and a move would be measured too.
            black_box(&decoder.decode(pc, black_box(raw)));
        }
    });
}

#[divan::bench(args = ARCHS)]
fn decode_and_print(bencher: Bencher, sm: u32) {
    let words = words(sm);
    let decoder = Decoder::new(Arch::from_sm(sm).expect("supported")).expect("tables");
    let mut line = String::new();
    bencher.counter(ItemsCount::new(words.len())).bench_local(|| {
        for &(pc, raw) in &words {
            line.clear();
            if let Ok(inst) = decoder.decode(pc, black_box(raw)) {
                write!(line, "{inst}").ok();
            }
            black_box(&line);
        }
    });
}

#[divan::bench]
fn start_up() -> Decoder {
    Decoder::new(Arch::from_sm(90).expect("supported")).expect("tables")
}
