//! The tables in `docs/measured.md`, compared or (`BLESS=1`) written row by row.

use std::path::Path;
use std::sync::Mutex;

use libtest_mimic::Failed;

use super::data::{Data, Fix};

/// First cells of the headers.
const COUNTS: &str = "| launch | sorted by |";
const TIMES: &str = "| kernel | items |";
const OTHERS: &str = "| other way | time |";
const RANGES: &str = "| sorted | estimated |";

/// Trials run at once, and each writes its row.
static FILE: Mutex<()> = Mutex::new(());

/// Warp instructions of a fix: as it is, predicted, run again, sorted independently.
pub(crate) fn counts(root: &Path, fix: &Fix, [was, predicted, confirmed, twin]: [u64; 4]) -> Result<(), Failed> {
    let differ = 100.0 * (predicted as f64 / confirmed as f64 - 1.0);
    let row = format!(
        "| `{}` | {} | {} | {} | {} | {differ:.2} % | {} |",
        fix.before,
        fix.key,
        grouped(was),
        grouped(predicted),
        grouped(confirmed),
        grouped(twin)
    );
    check(root, COUNTS, &[row])
}

/// Times of all fixes, and of other ways to do the same.
pub(crate) fn times(root: &Path, data: &Data) -> Result<(), Failed> {
    let launch = |name: &str| data.launches.get(name).ok_or_else(|| format!("no launch {name}"));
    let mut rows = Vec::new();
    for fix in &data.fixes {
        let (before, after) = (launch(&fix.before)?, launch(&fix.after)?);
        let (was, is) = before.counts.zip(after.counts).ok_or("a pair without counters")?;
        rows.push(format!(
            "| {} | {} | {} | {} | {:.2} | {:.1} | {:.1} | {:.2} |",
            fix.name,
            grouped(before.items),
            grouped(was.inst_executed),
            grouped(is.inst_executed),
            was.inst_executed as f64 / is.inst_executed as f64,
            before.ns as f64 / 1e3,
            after.ns as f64 / 1e3,
            before.ns as f64 / after.ns as f64,
        ));
    }
    check(root, TIMES, &rows)?;
    let others = [
        ("`spmv`, natural order", "spmv/thread"),
        ("`spmv`, sorted", "spmv/sorted"),
        ("`spmv`, sorted, the warps dealt to blocks like cards", "spmv/sorted-dealt"),
        ("`spmv`, sorted within windows of 1,024 rows", "spmv/sorted-1024"),
        ("`spmv`, eight lanes for each row", "spmv/eight_lanes"),
        ("`spmv`, a warp for each row", "spmv/warp"),
        ("`tokenizer`, natural order", "tokenizer/column"),
        ("`tokenizer`, sorted", "tokenizer/sorted"),
        ("`tokenizer`, sorted within windows of 1,024 strings", "tokenizer/sorted-1024"),
        ("`tokenizer`, a warp for each string", "tokenizer/warp"),
        ("`moe`, order of arrival", "moe/arrival"),
        ("`moe`, order of arrival, with a ballot", "moe/ballot"),
        ("`rejection`, nested loops", "rejection/nested"),
        ("`rejection`, one loop", "rejection/flat"),
    ];
    let rows = others.iter().map(|(words, name)| Ok(format!("| {words} | {:.1} |", launch(name)?.ns as f64 / 1e3)));
    check(root, OTHERS, &rows.collect::<Result<Vec<_>, Failed>>()?)
}

/// The estimated speed-up of a fix and the measured one.
pub(crate) fn range(root: &Path, name: &str, (low, high): (f64, f64), measured: f64) -> Result<(), Failed> {
    check(root, RANGES, &[format!("| {name} | {low:.2} to {high:.2} | {measured:.2} |")])
}

/// Whether the table under `header` has these rows.
fn check(root: &Path, header: &str, rows: &[String]) -> Result<(), Failed> {
    let lock = FILE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let path = root.join("docs/measured.md");
    let text = std::fs::read_to_string(&path)?;
    let mut lines: Vec<&str> = text.lines().collect();
    let start = lines.iter().position(|l| l.starts_with(header)).ok_or_else(|| format!("no table `{header}`"))? + 2;
    let end = start + lines[start..].iter().take_while(|l| l.starts_with('|')).count();
    let missing: Vec<&String> = rows.iter().filter(|row| !lines[start..end].contains(&row.as_str())).collect();
    let Some(first) = missing.first() else { return Ok(()) };
    if std::env::var_os("BLESS").is_none() {
        return Err(format!("docs/measured.md lacks\n  {first}\nBLESS=1 writes it").into());
    }
    let mut at = end;
    for row in rows {
        let name = |row: &str| row.split('|').nth(1).map(str::to_owned);
        match lines[start..at].iter().position(|l| name(l) == name(row)) {
            Some(k) => lines[start + k] = row,
            None => {
                lines.insert(at, row);
                at += 1;
            }
        }
    }
    std::fs::write(&path, lines.join("\n") + "\n")?;
    drop(lock);
    Ok(())
}

/// With commas.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}
