//! The measured rows: `operations.json` lists operations, `operations.bin` holds operands and results.

use std::path::PathBuf;

/// One operation with its rows; each row is the inputs, then the output.
pub(crate) struct Operation {
    /// PTX name.
    pub(crate) name: String,
    /// Bytes of each input.
    pub(crate) widths: Vec<usize>,
    /// Type of the output.
    pub(crate) output: String,
    /// Rows.
    pub(crate) rows: Vec<Vec<u64>>,
}

fn folder() -> Option<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    ["tests/data/operations", "../shared/operations"]
        .iter()
        .map(|p| root.join(p))
        .find(|p| p.join("operations.bin").is_file())
}

fn width(kind: &str) -> usize {
    match kind {
        "s8" | "u8" | "b8" => 1,
        "s16" | "u16" | "b16" | "f16" | "bf16" => 2,
        "s64" | "u64" | "b64" | "f64" => 8,
        _ => 4,
    }
}

/// The text after `"key":` up to one of `ends`.
fn field<'a>(line: &'a str, key: &str, ends: &[char]) -> Option<&'a str> {
    let rest = line.split_once(&format!("\"{key}\":"))?.1;
    Some(rest.split(ends).next()?.trim_matches('"'))
}

/// All operations; empty if the data is not there.
pub(crate) fn operations() -> Vec<Operation> {
    let Some(folder) = folder() else { return Vec::new() };
    let text = std::fs::read_to_string(folder.join("operations.json")).expect("operations.json");
    let bytes = std::fs::read(folder.join("operations.bin")).expect("operations.bin");
    let mut all = Vec::new();
    for line in text.lines() {
        let Some(name) = field(line, "op", &[',']) else { continue };
        let inputs = field(line, "inputs", &[']']).expect("inputs").trim_start_matches('[');
        let output = field(line, "output", &[',']).expect("output").to_owned();
        let number = |key| field(line, key, &[',', '}']).and_then(|n| n.parse::<usize>().ok()).expect("number");
        let widths: Vec<usize> = inputs.split(',').map(|t| width(t.trim_matches('"'))).collect();
        let mut at = number("offset");
        let mut rows = Vec::new();
        for _ in 0..number("rows") {
            let mut row = Vec::new();
            for w in widths.iter().copied().chain([width(&output)]) {
                let mut word = [0; 8];
                word[..w].copy_from_slice(&bytes[at..at + w]);
                row.push(u64::from_le_bytes(word));
                at += w;
            }
            rows.push(row);
        }
        all.push(Operation { name: name.to_owned(), widths, output, rows });
    }
    all
}
