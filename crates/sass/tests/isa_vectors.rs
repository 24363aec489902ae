//! Every stored (encoding, text) pair decodes to exactly that text.
//!
//! The pairs were taken from nvdisasm 13.5: compiled code and probes of every opcode, about 10,000 an
//! architecture.

use lanescope_sass::isa::{Arch, Decoder};
use std::io::Read;
use std::path::PathBuf;

fn vectors(sm: u32) -> String {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/isa_data");
    let bytes = std::fs::read(dir.join(format!("vectors_sm{sm}.tsv.zst"))).expect("stored vectors");
    let mut text = String::new();
    ruzstd::decoding::StreamingDecoder::new(bytes.as_slice())
        .expect("zstd frame")
        .read_to_string(&mut text)
        .expect("utf-8");
    text
}

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("hex")
}

fn check(sm: u32) {
    let decoder = Decoder::new(Arch::from_sm(sm).expect("supported")).expect("tables");
    let mut total = 0;
    let mut misses = Vec::new();
    for line in vectors(sm).lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [low, high, address, _origin, expected] = columns[..] else {
            panic!("malformed line {line:?}");
        };
        let raw = u128::from(hex(low)) | u128::from(hex(high)) << 64;
        let pc = u32::try_from(hex(address)).expect("address");
        let got = match decoder.decode(pc, raw) {
            Ok(inst) => inst.to_string(),
            Err(error) => error.to_string(),
        };
        total += 1;
        if got != expected {
            misses.push(format!("{raw:#034x}\n  want {expected}\n  got  {got}"));
        }
    }
    assert!(total > 9_000, "only {total} vectors");
    let shown = misses.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
    assert!(misses.is_empty(), "{} of {total} differ:\n{shown}", misses.len());
}

#[test]
fn sm_75() {
    check(75);
}

#[test]
fn sm_80() {
    check(80);
}

#[test]
fn sm_90() {
    check(90);
}

#[test]
fn sm_100() {
    check(100);
}

#[test]
fn sm_120() {
    check(120);
}
