//! `lanescope check`.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::ValueEnum;
use lanescope::check::changes::Changes;
use lanescope::check::{Settings, check, pages};
use lanescope::ir::Severity;
use lanescope::report::check::{sarif, text};

use super::run::FailOn;
use super::{FINDINGS, print, print_json, tools};

/// Largest diff.
const DIFF_LIMIT: u64 = 256 << 20;

/// Flags of `check`.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Cubins, fatbins, libraries, PTX, CUDA source (which is compiled, and looked at as PTX and as machine code), or
    /// launch files, which give block, grid and scalar arguments.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Only this kernel (mangled, demangled or base name).
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Threads of a block: X, X,Y or X,Y,Z.
    #[arg(long, value_name = "X,Y,Z", value_parser = shape)]
    block: Option<[u32; 3]>,
    /// Blocks of the grid.
    #[arg(long, value_name = "X,Y,Z", value_parser = shape)]
    grid: Option<[u32; 3]>,
    /// Only this architecture, such as sm_90. Source is compiled for it; for sm_90 unless it is given.
    #[arg(long, value_name = "ARCH")]
    arch: Option<String>,
    /// How to print the result.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Exit with 1 if there is a finding of this severity or above.
    #[arg(long, value_enum, value_name = "SEVERITY")]
    fail_on: Option<FailOn>,
    /// Report only findings in which a line that this unified diff adds has a part: the finding's own line, or that of a
    /// step of its witness. `-` reads the diff from standard input.
    #[arg(long, value_name = "DIFF")]
    changed_lines: Option<PathBuf>,
    /// Folder with the source files, to show their text; the files' own folders are searched too.
    #[arg(long, value_name = "DIR")]
    source: Vec<PathBuf>,
    #[command(flatten)]
    tools: tools::Compilers,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
    /// For code-scanning services.
    Sarif,
}

/// `256`, `32,8`, `16x16x2`
fn shape(text: &str) -> Result<[u32; 3], String> {
    let bad = || format!("expected X,Y,Z such as 256 or 32,8; found `{text}`");
    let mut shape = [1u32; 3];
    let parts: Vec<&str> = text.split([',', 'x']).map(str::trim).collect();
    if parts.is_empty() || parts.len() > 3 {
        return Err(bad());
    }
    for (d, part) in shape.iter_mut().zip(parts) {
        *d = part.parse().map_err(|_| bad())?;
        if *d == 0 {
            return Err(format!("`{text}` has no threads"));
        }
    }
    Ok(shape)
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    if let Some(block) = args.block {
        let threads: u64 = block.iter().map(|&d| u64::from(d)).product();
        anyhow::ensure!(threads <= 1024, "--block: {threads} threads; a block has at most 1024");
    }
    let changes = args.changed_lines.as_deref().map(diff).transpose()?;
    let settings = Settings {
        kernel: args.kernel.clone(),
        arch: args.arch.clone(),
        block: args.block,
        grid: args.grid,
        sources: args.source.clone(),
        changes,
        tools: args.tools.tools(),
    };
    let report = check(&args.files, &settings)?;
    match args.format {
        Format::Text => print(&text(&report))?,
        Format::Json => print_json(&report)?,
        Format::Sarif => {
            for note in &report.notes {
                writeln!(anstream::stderr(), "note: {note}")?;
            }
            let base = std::env::current_dir().ok().map(|d| d.display().to_string());
            print_json(&sarif::sarif(&report, &pages(), env!("CARGO_PKG_VERSION"), base.as_deref()))?;
        }
    }
    let limit = args.fail_on.map(Severity::from);
    let fails = limit.is_some_and(|limit| report.findings().any(|f| f.severity >= limit));
    Ok(if fails { FINDINGS } else { 0 })
}

fn diff(path: &Path) -> anyhow::Result<Changes> {
    let mut bytes = Vec::new();
    let shown = if path.as_os_str() == "-" {
        std::io::stdin().lock().take(DIFF_LIMIT + 1).read_to_end(&mut bytes).context("cannot read standard input")?;
        "standard input".to_owned()
    } else {
        let shown = path.display().to_string();
        let file = std::fs::File::open(path).with_context(|| format!("cannot read {shown}"))?;
        file.take(DIFF_LIMIT + 1).read_to_end(&mut bytes).with_context(|| format!("cannot read {shown}"))?;
        shown
    };
    anyhow::ensure!(bytes.len() as u64 <= DIFF_LIMIT, "{shown} is larger than {} MiB", DIFF_LIMIT >> 20);
    // Lines of files in other encodings do not matter; names and numbers do.
    Ok(Changes::parse(&shown, &String::from_utf8_lossy(&bytes))?)
}

#[cfg(test)]
mod tests {
    use super::shape;

    #[test]
    fn shapes() {
        assert_eq!(shape("256"), Ok([256, 1, 1]));
        assert_eq!(shape("32, 8"), Ok([32, 8, 1]));
        assert_eq!(shape("16x8x2"), Ok([16, 8, 2]));
        assert!(shape("1,2,3,4").is_err() && shape("").is_err() && shape("0").is_err() && shape("-1").is_err());
    }
}
