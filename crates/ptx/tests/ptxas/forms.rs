//! Forms of instructions, one a line, each with ptxas's verdict: `+` where it takes the statement in the kernel of
//! `forms.ptx`, `-` where it does not (12.9 and 13 agree on all of them). `!` follows where this crate answers otherwise:
//! what another architecture has is taken here, some accidents of ptxas are not. The forms come from compilers' texts, from
//! lists of modifiers, and from changes of both at random.

use std::path::Path;
use std::process::Command;

use lanescope_ptx::{lower, parse};
use libtest_mimic::Failed;

const KERNEL: &str = include_str!("forms.ptx");

struct Form<'t> {
    accepted: bool,
    differs: bool,
    statement: &'t str,
}

fn forms(text: &str) -> Result<Vec<Form<'_>>, Failed> {
    text.lines()
        .map(|line| {
            let (mark, statement) = line.split_once(' ').ok_or_else(|| format!("no statement in `{line}`"))?;
            let accepted = mark.starts_with('+');
            Ok(Form { accepted, differs: mark.ends_with('!'), statement })
        })
        .collect()
}

fn read() -> std::io::Result<String> {
    std::fs::read_to_string(super::folder().join("forms.txt"))
}

/// What is wrong with a statement.
fn refused(statement: &str) -> Option<String> {
    let text = KERNEL.replace("// STATEMENT", statement);
    let parsed = parse(&text);
    let errors = lower::load(&parsed, "k", lower::Options::default()).err()?;
    Some(errors.first().map_or(String::new(), |it| it.message.clone()))
}

/// Compares every line, or with `bless` writes what this crate answers.
pub(super) fn check(bless: bool) -> Result<(), Failed> {
    let text = read()?;
    let (mut out, mut wrong) = (String::new(), Vec::new());
    for form in forms(&text)? {
        let why = refused(form.statement);
        let differs = why.is_none() != form.accepted;
        if differs != form.differs {
            let why = why.map_or("taken".to_owned(), |why| format!("refused: {why}"));
            wrong.push(format!("{}: {why}", form.statement));
        }
        let mark = if form.accepted { '+' } else { '-' };
        out.push_str(&format!("{mark}{} {}\n", if differs { "!" } else { "" }, form.statement));
    }
    if bless {
        std::fs::write(super::folder().join("forms.txt"), out)?;
        return Ok(());
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// Asks a ptxas about every line.
pub(super) fn ask(ptxas: &Path) -> Result<(), Failed> {
    let text = read()?;
    let mut wrong = Vec::new();
    let path = std::env::temp_dir().join(format!("lanescope-forms-{}.ptx", std::process::id()));
    for form in forms(&text)? {
        std::fs::write(&path, KERNEL.replace("// STATEMENT", form.statement))?;
        let output =
            Command::new(ptxas).args(["-c", "-arch", "sm_90a"]).arg(&path).args(["-o", "/dev/null"]).output()?;
        if output.status.success() != form.accepted {
            wrong.push(form.statement.to_owned());
        }
    }
    std::fs::remove_file(&path)?;
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}
