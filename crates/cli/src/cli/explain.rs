//! `lanescope explain`.

use std::fmt::Write;

use lanescope::analysis::rules::{RULES, rule};
use lanescope::names::nearest;

use super::print;

/// Flags of `explain`.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The rule's name, as findings show it in brackets.
    rule: Option<String>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let Some(name) = &args.rule else {
        let mut out = String::new();
        let width = RULES.iter().map(|r| r.name.len()).max().unwrap_or(0);
        for r in RULES {
            writeln!(out, "{:width$}  {}", r.name, r.summary)?;
        }
        print(&out)?;
        return Ok(0);
    };
    let Some(r) = rule(name) else {
        let hint = nearest(name, RULES.iter().map(|r| r.name)).map(|n| format!("; did you mean `{n}`?"));
        let all: Vec<&str> = RULES.iter().map(|r| r.name).collect();
        anyhow::bail!("there is no rule `{name}`{}\n  rules: {}", hint.unwrap_or_default(), all.join(", "));
    };
    let bold = anstyle::Style::new().bold();
    print(&format!("{bold}{}{bold:#}: {}\n\n{}\n", r.name, r.summary, r.page))?;
    Ok(0)
}
