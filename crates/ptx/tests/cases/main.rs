//! One text file, one test. `tests/syntax/NAME.ptx` has its tree in `NAME.tree`; `tests/errors/NAME.ptx` has its
//! diagnostics in `NAME.txt`; `tests/refused/NAME.ptx` has in `NAME.txt` what is shown where its first kernel cannot be
//! lowered. Whatever is read without errors is printed and read again, to the same tree: those texts,
//! those of `tests/lower` and `tests/data`, and in the repository all PTX under its `tests/data`. With `BLESS=1` in the
//! environment the expectations are written instead of compared.

mod dump;

use std::path::{Path, PathBuf};

use annotate_snippets::Renderer;
use lanescope_ptx::tree::FunctionKind;
use lanescope_ptx::{lower, parse, print, render};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() {
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut trials = Vec::new();
    for (folder, test) in [("syntax", syntax as fn(&Path, &str) -> _), ("errors", errors), ("refused", refused)] {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(root.join(folder))
            .expect("a folder of tests")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        paths.retain(|path| path.extension().is_some_and(|it| it == "ptx"));
        paths.sort();
        for path in paths {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            trials.push(Trial::test(format!("{folder}/{name}"), move || {
                let text = std::fs::read_to_string(&path)?;
                test(&path, &text)
            }));
        }
    }
    let mut texts = Vec::new();
    for folder in ["tests/syntax", "tests/lower/cases", "tests/data", "../../tests/data"] {
        collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder), &mut texts);
    }
    for path in texts {
        trials.push(Trial::test(format!("print/{}", path.display()), move || {
            printed(&String::from_utf8_lossy(&std::fs::read(&path)?))
        }));
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// All PTX in a folder, if it is there.
fn collect(folder: &Path, into: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, into);
        } else if path.extension().is_some_and(|it| it == "ptx") {
            into.push(path);
        }
    }
}

/// The printed tree is read to the same tree, and prints the same again.
fn printed(text: &str) -> Result<(), Failed> {
    let first = parse(text);
    if !first.is_ok() {
        return Ok(());
    }
    let print = print::module(&first.module);
    let second = parse(&print);
    if !second.is_ok() {
        return Err(render::render(&second, "printed", &Renderer::plain()).into());
    }
    let (a, b) = (dump::module(&first.module), dump::module(&second.module));
    if let Some((a, b)) = a.lines().zip(b.lines()).find(|(a, b)| a != b) {
        return Err(format!("read:    {a}\nprinted: {b}").into());
    }
    if a.len() != b.len() {
        return Err("one tree has more".into());
    }
    if print::module(&second.module) != print {
        return Err("the second print is another".into());
    }
    Ok(())
}

fn syntax(path: &Path, text: &str) -> Result<(), Failed> {
    let parsed = parse(text);
    if !parsed.is_ok() {
        return Err(render::render(&parsed, "input", &Renderer::plain()).into());
    }
    let mut tree = dump::module(&parsed.module);
    for diagnostic in &parsed.diagnostics {
        tree.push_str(&format!("warning: {}\n", diagnostic.message));
    }
    compare(&path.with_extension("tree"), &tree)
}

fn errors(path: &Path, text: &str) -> Result<(), Failed> {
    let parsed = parse(text);
    if parsed.diagnostics.is_empty() {
        return Err("no diagnostics".into());
    }
    let name = path.file_name().expect("a name").to_string_lossy();
    let rendered = render::render(&parsed, &name, &Renderer::plain());
    compare(&path.with_extension("txt"), &format!("{rendered}{}", dump::summary(&parsed.module)))
}

/// A line `//! repeat N TEXT` stands for the text that often.
fn refused(path: &Path, text: &str) -> Result<(), Failed> {
    let mut whole = String::new();
    for line in text.split_inclusive('\n') {
        match line.trim().strip_prefix("//! repeat ").and_then(|rest| rest.split_once(' ')) {
            Some((count, text)) => whole.push_str(&text.replace("\\n", "\n").repeat(count.parse()?)),
            None => whole.push_str(line),
        }
    }
    let parsed = parse(&whole);
    let kernel = parsed.module.functions.iter().find(|it| it.kind == FunctionKind::Entry);
    let outcome = lower::load(&parsed, kernel.map_or("", |it| it.name), lower::Options::default());
    let Err(errors) = outcome else { return Err("no error was found".into()) };
    let name = path.file_name().expect("a name").to_string_lossy();
    compare(&path.with_extension("txt"), &(render::errors(&errors, &whole, &name, &Renderer::plain(), 20) + "\n"))
}

fn compare(path: &Path, found: &str) -> Result<(), Failed> {
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, found)?;
        return Ok(());
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    if expected == found {
        return Ok(());
    }
    let differs = expected.lines().zip(found.lines()).position(|(a, b)| a != b);
    let line = differs.unwrap_or_else(|| expected.lines().count().min(found.lines().count()));
    let show = |text: &str| text.lines().nth(line).unwrap_or("(the end)").to_owned();
    let message = format!(
        "{} differs in line {}:\n  expected: {}\n  found:    {}\nrun with BLESS=1 to accept",
        path.display(),
        line + 1,
        show(&expected),
        show(found)
    );
    Err(message.into())
}
