//! Small texts and what ptxas says of them. A file of cases has one after each line `//! accepts NAME` or
//! `//! rejects NAME`, which is ptxas's verdict (12.9 and 13 agree on all of them). Where this crate answers otherwise,
//! `| here: taken`, `warned` or `refused` follows: it takes some spellings that have one meaning only, and a later
//! declaration; and it says more about numbers that do not fit. What is refused is refused by the parser or, where types
//! and operands are wrong, when the kernel is lowered.
//!
//! - `body.txt`: statements, put into the kernel of `body.ptx`;
//! - `module.txt`: what stands behind `.version`, `.target` and `.address_size`;
//! - `whole.txt`: whole texts;
//! - `forms.txt`: statements, one a line ([`forms`]).
//!
//! `BLESS=1` rewrites the part after the bar. With `--ignored`, each case is given to the ptxas of both generations that
//! `.ci/oracles.sh` fetches into `oracles/` (or `$LANESCOPE_ORACLES`).

mod forms;

use std::path::{Path, PathBuf};
use std::process::Command;

use lanescope_ptx::tree::FunctionKind;
use lanescope_ptx::{lower, parse};
use libtest_mimic::{Arguments, Failed, Trial};

const HEAD: &str = ".version 8.8\n.target sm_90a\n.address_size 64\n";

struct Case {
    kind: String,
    name: String,
    accepted: bool,
    /// `taken`, `warned` or `refused`.
    here: String,
    text: String,
}

impl Case {
    fn whole(&self) -> String {
        match self.kind.as_str() {
            "body" => include_str!("body.ptx").replace("// STATEMENTS\n", &self.text),
            "module" => format!("{HEAD}{}", self.text),
            _ => self.text.clone(),
        }
    }

    fn usual(&self) -> &'static str {
        if self.accepted { "taken" } else { "refused" }
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ptxas")
}

fn cases(kind: &str) -> Result<Vec<Case>, Failed> {
    let mut cases: Vec<Case> = Vec::new();
    for line in std::fs::read_to_string(folder().join(kind).with_extension("txt"))?.split_inclusive('\n') {
        let Some(header) = line.strip_prefix("//! ") else {
            cases.last_mut().ok_or("text before the first case")?.text.push_str(line);
            continue;
        };
        let (verdict, rest) = header.trim().split_once(' ').ok_or("a case without a name")?;
        let accepted = verdict == "accepts";
        if !accepted && verdict != "rejects" {
            return Err(format!("a case begins with `accepts` or `rejects`, not `{verdict}`").into());
        }
        let (name, here) = rest.split_once(" | here: ").unwrap_or((rest, ""));
        let mut case =
            Case { kind: kind.to_owned(), name: name.to_owned(), accepted, here: here.to_owned(), text: String::new() };
        if here.is_empty() {
            case.here = case.usual().to_owned();
        }
        cases.push(case);
    }
    Ok(cases)
}

/// What this crate makes of a text, and why.
fn verdict(text: &str) -> (&'static str, String) {
    let parsed = parse(text);
    let mut messages: Vec<String> = parsed.diagnostics.iter().map(|it| it.message.clone()).collect();
    let errors = lower::errors(&parsed);
    let mut refused = !errors.is_empty();
    messages.extend(
        errors.into_iter().map(|it| it.message).filter(|it| !parsed.diagnostics.iter().any(|d| d.message == *it)),
    );
    let module = &parsed.module;
    let mut functions = module.functions.iter();
    if !refused
        && let Some(kernel) = functions.find(|it| it.kind == FunctionKind::Entry && it.body.is_some())
        && kernel.body.as_ref().is_some_and(|body| !body.instructions.is_empty())
        && let Err(errors) = lower::load(&parsed, kernel.name, lower::Options::default())
    {
        refused = true;
        messages.extend(errors.into_iter().map(|it| it.message));
    }
    let verdict = match (refused, messages.is_empty()) {
        (true, _) => "refused",
        (false, false) => "warned",
        (false, true) => "taken",
    };
    (verdict, messages.join("; "))
}

fn check(case: &Case) -> Result<(), Failed> {
    let (found, why) = verdict(&case.whole());
    if found == case.here {
        return Ok(());
    }
    Err(format!("{found}, not {}: {why}", case.here).into())
}

fn bless(kind: &str, cases: &[Case]) -> Result<(), Failed> {
    let mut out = String::new();
    for case in cases {
        let (found, _) = verdict(&case.whole());
        out.push_str(if case.accepted { "//! accepts " } else { "//! rejects " });
        out.push_str(&case.name);
        if found != case.usual() {
            out.push_str(" | here: ");
            out.push_str(found);
        }
        out.push('\n');
        out.push_str(&case.text);
    }
    std::fs::write(folder().join(kind).with_extension("txt"), out)?;
    Ok(())
}

fn ptxas(tool: &str) -> Result<PathBuf, Failed> {
    let oracles = std::env::var_os("LANESCOPE_ORACLES").map(PathBuf::from);
    let oracles = oracles.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracles"));
    let ptxas = oracles.join("bin").join(tool);
    if !ptxas.exists() {
        return Err(format!("no {} (run .ci/oracles.sh)", ptxas.display()).into());
    }
    Ok(ptxas)
}

/// Asks a ptxas whether it takes the cases as their headers say.
fn ask(tool: &str, cases: &[Case]) -> Result<(), Failed> {
    let ptxas = ptxas(tool)?;
    let mut wrong = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        let path = std::env::temp_dir().join(format!("lanescope-{}-{tool}-{index}.ptx", std::process::id()));
        let text = case.whole();
        std::fs::write(&path, &text)?;
        let arch = if text.contains("sm_100f") { "sm_100f" } else { "sm_90a" };
        let output = Command::new(&ptxas).args(["-c", "-arch", arch]).arg(&path).args(["-o", "/dev/null"]).output()?;
        std::fs::remove_file(&path)?;
        if output.status.success() != case.accepted {
            let why = String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or("").to_owned();
            wrong.push(format!("{}/{}: {why}", case.kind, case.name));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for kind in ["body", "module", "whole"] {
        if std::env::var_os("BLESS").is_some() {
            trials.push(Trial::test(format!("{kind}/bless"), move || bless(kind, &cases(kind)?)));
            continue;
        }
        for tool in ["ptxas-12.9", "ptxas-13"] {
            let test = move || ask(tool, &cases(kind)?);
            trials.push(Trial::test(format!("{kind}/{tool}"), test).with_ignored_flag(true));
        }
        match cases(kind) {
            Ok(cases) => trials.extend(
                cases.into_iter().map(|case| Trial::test(format!("{kind}/{}", case.name), move || check(&case))),
            ),
            Err(error) => trials.push(Trial::test(kind, move || Err(error))),
        }
    }
    let bless = std::env::var_os("BLESS").is_some();
    trials.push(Trial::test("forms", move || forms::check(bless)));
    for tool in ["ptxas-12.9", "ptxas-13"] {
        let test = move || forms::ask(&ptxas(tool)?);
        trials.push(Trial::test(format!("forms/{tool}"), test).with_ignored_flag(true));
    }
    libtest_mimic::run(&arguments, trials).exit();
}
