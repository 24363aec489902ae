//! `lanescope explain`.

use std::fmt::Write;

use lanescope::analysis::lint;
use lanescope::analysis::rules::RULES;
use lanescope::names::nearest;

use super::print;

/// Flags of `explain`.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The rule's name, as findings show it in brackets.
    rule: Option<String>,
}

/// Name, summary and page of every rule: of runs first, then of checks.
fn pages() -> Vec<(&'static str, &'static str, &'static str)> {
    let run = RULES.iter().map(|r| (r.name, r.summary, r.page));
    run.chain(lint::RULES.iter().map(|r| (r.name, r.summary, r.page))).collect()
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let pages = pages();
    let Some(name) = &args.rule else {
        let mut out = String::new();
        let width = pages.iter().map(|r| r.0.len()).max().unwrap_or(0);
        for (title, rules) in [("Of a run:", &pages[..RULES.len()]), ("Of a check:", &pages[RULES.len()..])] {
            writeln!(out, "{title}")?;
            for (name, summary, _) in rules {
                writeln!(out, "  {name:width$}  {summary}")?;
            }
        }
        print(&out)?;
        return Ok(0);
    };
    let Some((name, summary, page)) = pages.iter().find(|r| r.0 == name) else {
        let hint = nearest(name, pages.iter().map(|r| r.0)).map(|n| format!("; did you mean `{n}`?"));
        let all: Vec<&str> = pages.iter().map(|r| r.0).collect();
        anyhow::bail!("there is no rule `{name}`{}\n  rules: {}", hint.unwrap_or_default(), all.join(", "));
    };
    let bold = anstyle::Style::new().bold();
    print(&format!("{bold}{name}{bold:#}: {summary}\n\n{page}\n"))?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_given_once() {
        let mut names: Vec<&str> = super::pages().iter().map(|p| p.0).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
