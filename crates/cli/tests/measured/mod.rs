//! What an H200 computed (`tests/data/operations`), and the comparison with it. `.approx` and `.full` operations
//! may differ by 2 ulp, sine and cosine by 2^-20.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use half::{bf16, f16};
use lanescope::constants::bank0;
use lanescope_ir::Kernel;
use lanescope_sim::{GlobalMemory, Launch, Model, Options};
use serde::Deserialize;

#[derive(Deserialize)]
pub(crate) struct Operation {
    op: String,
    inputs: Vec<String>,
    output: String,
    rows: usize,
    offset: usize,
    pub(crate) kernel: String,
}

impl Operation {
    fn is_approximate(&self) -> bool {
        self.op.contains(".approx") || self.op.contains(".full")
    }

    /// Bytes of a row in the data file.
    fn row_size(&self) -> usize {
        self.inputs.iter().map(|t| width(t)).sum::<usize>() + width(&self.output)
    }

    fn close(&self, expected: u64, got: u64) -> bool {
        if expected == got || !self.is_approximate() {
            return expected == got;
        }
        if self.output == "f32" && (self.op.starts_with("sin") || self.op.starts_with("cos")) {
            let (a, b) = (f32::from_bits(expected as u32), f32::from_bits(got as u32));
            return (f64::from(a) - f64::from(b)).abs() <= 2f64.powi(-20);
        }
        ulp(&self.output, expected, got) <= 2
    }
}

/// Bytes of a value in the data file.
fn width(ty: &str) -> usize {
    match ty {
        "s8" | "u8" | "b8" => 1,
        "s16" | "u16" | "b16" | "f16" | "bf16" => 2,
        "s64" | "u64" | "b64" | "f64" => 8,
        _ => 4,
    }
}

pub(crate) fn data(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/operations").join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Distance in units of the last place, the larger of both halves for packed types; 0 if both are NaN.
fn ulp(ty: &str, a: u64, b: u64) -> u64 {
    fn ordered(bits: u64, sign: u64) -> i64 {
        if bits & sign == 0 { bits as i64 } else { -((bits & !sign) as i64) }
    }
    let distance = |nan: bool, sign: u64| if nan { 0 } else { ordered(a, sign).abs_diff(ordered(b, sign)) };
    match ty {
        "f32" => distance(f32::from_bits(a as u32).is_nan() && f32::from_bits(b as u32).is_nan(), 1 << 31),
        "f64" => distance(f64::from_bits(a).is_nan() && f64::from_bits(b).is_nan(), 1 << 63),
        "f16" => distance(f16::from_bits(a as u16).is_nan() && f16::from_bits(b as u16).is_nan(), 1 << 15),
        "bf16" => distance(bf16::from_bits(a as u16).is_nan() && bf16::from_bits(b as u16).is_nan(), 1 << 15),
        "f16x2" => ulp("f16", a & 0xffff, b & 0xffff).max(ulp("f16", a >> 16, b >> 16)),
        "bf16x2" => ulp("bf16", a & 0xffff, b & 0xffff).max(ulp("bf16", a >> 16, b >> 16)),
        _ => u64::from(a != b) * u64::MAX,
    }
}

fn value(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// Runs one operation's kernel and returns its results, one a row.
pub(crate) fn execute(kernel: &Kernel, op: &Operation, rows: &[u8]) -> Result<Vec<u64>, String> {
    let mut memory = GlobalMemory::new();
    let mut params = Vec::new();
    let mut at = 0;
    for i in 0..5 {
        let mut buffer = vec![0u8; 8 * op.rows];
        if let Some(ty) = op.inputs.get(i) {
            for r in 0..op.rows {
                let start = r * op.row_size() + at;
                buffer[8 * r..8 * r + width(ty)].copy_from_slice(&rows[start..start + width(ty)]);
            }
            at += width(ty);
        }
        let address = memory.alloc(&format!("arg{i}"), &buffer).map_err(|e| e.to_string())?;
        params.extend_from_slice(&address.to_le_bytes());
    }
    let output = value(&params[32..40]);
    let (grid, block) = ([1, 1, 1], [op.rows as u32, 1, 1]);
    let bank0 = bank0(kernel, grid, block, 0, &params);
    let options = Options { threads: 1, model: Model::of(kernel), ..Options::default() };
    let launch = Launch { grid, block, dynamic_shared: 0, bank0, options };
    lanescope_sim::simulate(kernel, &launch, &mut memory, None).map_err(|e| e.to_string())?;
    let out = memory.read(output, 8 * op.rows as u64).ok_or("the output buffer is gone")?;
    let w = width(&op.output);
    Ok((0..op.rows).map(|r| value(&out[8 * r..8 * r + w])).collect())
}

fn inputs(op: &Operation, row: &[u8]) -> String {
    let mut at = 0;
    let words = op.inputs.iter().map(|t| {
        at += width(t);
        format!("{:#x}", value(&row[at - width(t)..at]))
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Runs every operation of a set and compares each row; fails with a list of what differs. `run` answers `None` where
/// an operation does not exist. Those in `known` must fail or differ: that list is what is missing. Returns how many
/// others ran.
pub(crate) fn check(
    set: &str,
    level: &str,
    known: &[&str],
    run: impl Fn(&Operation, &[u8]) -> Option<Result<Vec<u64>, String>>,
) -> usize {
    let operations: Vec<Operation> = serde_json::from_slice(&data(&format!("{set}.json"))).unwrap();
    let rows = data(&format!("{set}.bin"));
    let (mut ran, mut missing, mut worst) = (0, 0, BTreeMap::new());
    let mut failures = String::new();
    for op in &operations {
        let rows = &rows[op.offset..];
        let results = match run(op, rows) {
            None => {
                missing += 1;
                continue;
            }
            Some(Ok(results)) => results,
            Some(Err(_)) if known.contains(&op.op.as_str()) => continue,
            Some(Err(error)) => {
                writeln!(failures, "{}: {error}", op.op).unwrap();
                continue;
            }
        };
        let known = known.contains(&op.op.as_str());
        ran += usize::from(!known);
        let mut wrong = 0;
        for (row, &got) in rows.chunks(op.row_size()).zip(&results) {
            let expected = value(&row[op.row_size() - width(&op.output)..]);
            if expected != got && op.is_approximate() {
                let w = worst.entry(&op.op).or_insert(0);
                *w = (*w).max(ulp(&op.output, expected, got));
            }
            if !op.close(expected, got) {
                wrong += 1;
                if wrong == 1 && !known {
                    let input = inputs(op, row);
                    writeln!(failures, "{} of {input}: expected {expected:#x}, got {got:#x}", op.op).unwrap();
                }
            }
        }
        match (known, wrong) {
            (true, 0) => writeln!(failures, "{} is listed as missing but agrees", op.op).unwrap(),
            (false, 1..) => writeln!(failures, "  {wrong} of {} rows differ", op.rows).unwrap(),
            _ => {}
        }
    }
    println!("{level}: {ran} operations ran, {missing} do not exist there");
    for (op, ulp) in worst {
        println!("  {op}: at most {ulp} ulp");
    }
    assert!(failures.is_empty(), "{level}:\n{failures}");
    ran
}
