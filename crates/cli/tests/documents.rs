//! Documents show what the program prints: README.md, the tutorial and the pages of the examples.
//!
//! A block of output is fenced as `text` and stands under a mark that names its command:
//!
//! ```text
//! <!-- output of: lanescope run examples/moe/moe.toml | from: Findings | until: By source line -->
//! ```
//!
//! `from`, `until` and `lines` pick lines of the output: from the first that starts with the words, until the next one
//! that does, at most so many. All commands of a document run in one empty folder beside a link to `examples`, so that
//! one can use what another wrote. `BLESS=1` writes what was printed; read the difference before you commit it.

#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Arguments, Failed, Trial};

const MARK: &str = "<!-- output of: ";
const FENCE: &str = "```text";

fn main() {
    let args = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository");
    let trials = documents(&root)
        .into_iter()
        .map(|path| {
            let (root, name) = (root.clone(), path.strip_prefix(&root).unwrap_or(&path).display().to_string());
            Trial::test(name, move || document(&root, &path))
        })
        .chain([
            Trial::test("the README's first command is the one whose output it shows", {
                let root = root.clone();
                move || quick_start(&root)
            }),
            Trial::test("lines are picked as the mark says", picks),
        ])
        .collect();
    libtest_mimic::run(&args, trials).exit();
}

/// README.md, the page about reports, the tutorial, and the page of each example, which must have one.
fn documents(root: &Path) -> Vec<PathBuf> {
    let mut examples: Vec<PathBuf> = std::fs::read_dir(root.join("examples"))
        .expect("examples")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir() && !path.ends_with("__pycache__"))
        .map(|path| path.join("README.md"))
        .collect();
    examples.sort();
    ["README.md", "docs/advise.md", "docs/report.md", "docs/roofline.md", "docs/tutorial.md"]
        .map(|name| root.join(name))
        .into_iter()
        .chain(examples)
        .collect()
}

fn document(root: &Path, path: &Path) -> Result<(), Failed> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let dir = tempfile::tempdir()?;
    std::os::unix::fs::symlink(root.join("examples"), dir.path().join("examples"))?;
    let found = renewed(&text, |mark| {
        let out = Command::new(env!("CARGO_BIN_EXE_lanescope")).args(mark.args()?).current_dir(dir.path()).output()?;
        if !matches!(out.status.code(), Some(0 | 1)) {
            return Err(format!("`{}` failed: {}", mark.command, String::from_utf8_lossy(&out.stderr)).into());
        }
        mark.pick(&String::from_utf8_lossy(&out.stdout))
    })?;
    if found == text {
        return Ok(());
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, found)?;
        return Ok(());
    }
    let line = text.lines().zip(found.lines()).take_while(|(a, b)| a == b).count();
    let [shown, printed] = [&text, &found].map(|t| t.lines().nth(line).unwrap_or("the end").to_owned());
    Err(format!(
        "line {} shows\n  {shown}\nbut the program prints\n  {printed}\nBLESS=1 writes what it prints",
        line + 1
    )
    .into())
}

/// The document with each block replaced by what `print` gives for its mark.
fn renewed(text: &str, mut print: impl FnMut(&Mark) -> Result<String, Failed>) -> Result<String, Failed> {
    let mut out = String::new();
    let mut mark: Option<Mark> = None;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        if let Some(rest) = line.strip_prefix(MARK) {
            mark = Some(Mark::parse(rest.strip_suffix(" -->").ok_or("a mark ends in ` -->`")?)?);
        } else if line == FENCE {
            let mark = mark.take().ok_or_else(|| format!("a block of output has no mark above it:\n{out}"))?;
            out.push_str(&print(&mark)?);
            if !lines.any(|line| line == "```") {
                return Err("a block does not end".into());
            }
            out.push_str("```\n");
        } else if mark.is_some() {
            return Err(format!("a mark has no block under it:\n{out}").into());
        }
    }
    Ok(out)
}

/// What a mark asks for.
#[derive(Default)]
struct Mark {
    command: String,
    from: Option<String>,
    until: Option<String>,
    lines: Option<usize>,
}

impl Mark {
    fn parse(text: &str) -> Result<Self, Failed> {
        let mut parts = text.split(" | ");
        let mut mark = Self { command: parts.next().unwrap_or_default().to_owned(), ..Self::default() };
        for part in parts {
            match part.split_once(": ") {
                Some(("from", words)) => mark.from = Some(words.to_owned()),
                Some(("until", words)) => mark.until = Some(words.to_owned()),
                Some(("lines", number)) => mark.lines = Some(number.parse().map_err(|_| format!("`{number}` lines"))?),
                _ => return Err(format!("`{part}` is none of from, until and lines").into()),
            }
        }
        Ok(mark)
    }

    fn args(&self) -> Result<Vec<&str>, Failed> {
        let mut words = self.command.split(' ');
        if words.next() != Some("lanescope") {
            return Err(format!("`{}` is not a command of lanescope", self.command).into());
        }
        Ok(words.collect())
    }

    fn pick(&self, printed: &str) -> Result<String, Failed> {
        let all: Vec<&str> = printed.lines().collect();
        let at = |words: &str, start: usize| {
            let found = all.iter().skip(start).position(|line| line.trim_start().starts_with(words));
            found.map(|k| k + start).ok_or_else(|| Failed::from(format!("`{}` prints no `{words}`", self.command)))
        };
        let start = self.from.as_deref().map_or(Ok(0), |words| at(words, 0))?;
        let end = self.until.as_deref().map_or(Ok(all.len()), |words| at(words, start + 1))?;
        let mut picked = &all[start..end.min(start.saturating_add(self.lines.unwrap_or(usize::MAX)))];
        while let [rest @ .., last] = picked
            && last.trim().is_empty()
        {
            picked = rest;
        }
        Ok(picked.iter().flat_map(|line| [line.trim_end(), "\n"]).collect())
    }
}

fn quick_start(root: &Path) -> Result<(), Failed> {
    let readme = std::fs::read_to_string(root.join("README.md"))?;
    let (_, rest) = readme.split_once(MARK).ok_or("a marked output")?;
    let (mark, _) = rest.split_once(" -->").ok_or("the mark ends")?;
    let mark = Mark::parse(mark)?;
    let first = format!("cargo run --release -- {}", mark.args()?.join(" "));
    if readme.contains(&first) { Ok(()) } else { Err(format!("README.md does not say `{first}`").into()) }
}

fn picks() -> Result<(), Failed> {
    let printed = "one\n\ntwo  \n  three\nfour\n";
    for (mark, expected) in [
        ("lanescope x", "one\n\ntwo\n  three\nfour\n"),
        ("lanescope x | until: two", "one\n"),
        ("lanescope x | from: two | until: four", "two\n  three\n"),
        ("lanescope x | from: two | lines: 1", "two\n"),
    ] {
        let picked = Mark::parse(mark)?.pick(printed)?;
        if picked != expected {
            return Err(format!("{mark}: {picked:?}").into());
        }
    }
    for wrong in ["lanescope x | from: five", "lanescope x | from: four | until: one"] {
        if Mark::parse(wrong)?.pick(printed).is_ok() {
            return Err(wrong.into());
        }
    }
    Ok(())
}
