//! The report of `check` for people.

use std::fmt::Write;

use anstyle::Style;
use lanescope_ir::Severity;

use super::{Finding, Kernel, Level, Place, Point, Report, Step, Verdict};
use crate::layout::{BAD, DIM, GOOD, HEAD, PLAIN, WARN, styled, wrap};

const WIDTH: usize = 110;
/// Steps of a verdict's chain that are shown; JSON has all.
const STEPS: usize = 6;

/// The whole report, with ANSI styles.
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    for (i, kernel) in report.kernels.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        one(kernel, &mut out);
    }
    for note in &report.notes {
        let _ = writeln!(out, "{} {}", styled(WARN, "note:"), wrap(note, WIDTH, 6));
    }
    tail(report, &mut out);
    out
}

fn one(k: &Kernel, out: &mut String) {
    let levels: Vec<String> = k.levels.iter().map(level_name).collect();
    let _ = writeln!(out, "{}  {}, {}", styled(HEAD, &k.demangled), k.input, levels.join(" and "));
    let shape = |d: [u32; 3]| format!("{} x {} x {}", d[0], d[1], d[2]);
    let facts = match (k.grid, k.block) {
        (Some(g), Some(b)) => format!("for grid {} and block {}", shape(g), shape(b)),
        (None, Some(b)) => format!("for block {}, any grid", shape(b)),
        (Some(g), None) => format!("for grid {}, any block", shape(g)),
        (None, None) => "for any launch (--block X,Y,Z makes it more exact)".to_owned(),
    };
    let _ = writeln!(out, "{}", styled(DIM, &facts));
    for level in &k.levels {
        for note in &level.notes {
            let _ = writeln!(out, "{} {}", styled(WARN, "note:"), wrap(note, WIDTH, 6));
        }
    }
    points(k, out);
    for f in &k.findings {
        finding(f, out);
    }
}

/// `sm_90 SASS`, `PTX`.
fn level_name(level: &Level) -> String {
    let code = match &level.arch {
        Some(arch) => format!("{arch} SASS"),
        None => "PTX".to_owned(),
    };
    match &level.compiler {
        Some(c) => format!("{code} by {c}"),
        None => code,
    }
}

/// Branches of all levels, gathered by source line.
fn points(k: &Kernel, out: &mut String) {
    let mut all: Vec<(&Level, &Point)> = k.levels.iter().flat_map(|l| l.points.iter().map(move |p| (l, p))).collect();
    if all.is_empty() {
        let _ = writeln!(out, "\nNo branch, predicated exit or loop: every lane takes the same way.");
        return;
    }
    let key = |p: &Place| (p.file.is_none(), p.file.clone(), p.line);
    all.sort_by(|a, b| (key(&a.1.place), a.0.level, a.1.place.pc).cmp(&(key(&b.1.place), b.0.level, b.1.place.pc)));
    let mut last: Option<&Place> = None;
    for (level, p) in all {
        let new = last.is_none_or(|l| (&l.file, l.line) != (&p.place.file, p.place.line));
        if new {
            let head = if p.place.line.is_some() { p.place.short() } else { "without a source line".to_owned() };
            let source = p.place.source.as_deref().map(|s| format!("  {}", s.trim())).unwrap_or_default();
            let _ = writeln!(out, "\n{}{}", styled(HEAD, &head), styled(DIM, &source));
        }
        last = Some(&p.place);
        point(level, p, out);
    }
}

fn verdict_style(p: &Point) -> Style {
    match p.verdict {
        Verdict::Never => GOOD,
        _ if p.leave_it => GOOD,
        Verdict::LastWarp => PLAIN,
        _ => WARN,
    }
}

fn point(level: &Level, p: &Point, out: &mut String) {
    let name = if level.arch.is_some() { "SASS" } else { "PTX " };
    let code = format!("{name} {:#06x} {:<8} {}", p.place.pc, p.kind.name(), p.place.text);
    let _ = writeln!(out, "  {code}");
    let mut words = styled(verdict_style(p), &p.words);
    if let Some(became) = &p.became {
        let _ = write!(words, "; in SASS: {became}");
    }
    words.push('.');
    if p.leave_it {
        let _ = write!(words, " {}", styled(GOOD, "Leave it."));
    }
    if let Some(advice) = &p.advice {
        let _ = write!(words, " {advice}");
    }
    let _ = writeln!(out, "      {}", wrap(&words, WIDTH, 6));
    if p.verdict != Verdict::Never {
        steps(&p.witness, "<-", STEPS, out);
    }
}

fn steps(witness: &[Step], arrow: &str, limit: usize, out: &mut String) {
    for step in witness.iter().take(limit) {
        let line = format!("{arrow} {}: {}", step.place.short(), step.place.text);
        let note = if step.note.is_empty() { String::new() } else { format!("  {}", step.note) };
        let _ = writeln!(out, "        {}", styled(DIM, &wrap(&format!("{line}{note}"), WIDTH, 11)));
    }
    if let Some(more) = witness.len().checked_sub(limit).filter(|n| *n > 0) {
        let _ = writeln!(out, "        {}", styled(DIM, &format!("{arrow} and {more} more")));
    }
}

fn severity_style(severity: Severity) -> Style {
    match severity {
        Severity::Error => BAD,
        Severity::Warning => WARN,
        Severity::Info => PLAIN,
    }
}

fn finding(f: &Finding, out: &mut String) {
    let head = styled(severity_style(f.severity), f.severity.name());
    let seen = f.levels.join(", ");
    let _ =
        writeln!(out, "\n{head} {} {}", styled(HEAD, &f.place.short()), styled(DIM, &format!("[{}] {seen}", f.rule)));
    if let Some(source) = &f.place.source {
        let _ = writeln!(out, "    {}", styled(DIM, source.trim()));
    }
    let _ = writeln!(out, "  {}", wrap(&f.message, WIDTH, 2));
    steps(&f.witness, "-", usize::MAX, out);
}

fn tail(report: &Report, out: &mut String) {
    let mut counts = [0usize; 3];
    for f in report.findings() {
        counts[f.severity as usize] += 1;
    }
    let noun = |n: usize, one: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") };
    let kernels = noun(report.kernels.len(), "kernel");
    let found = match counts {
        [0, 0, 0] => "nothing found".to_owned(),
        [info, warnings, errors] => {
            format!("{}, {}, {}", noun(errors, "error"), noun(warnings, "warning"), noun(info, "remark"))
        }
    };
    let _ = write!(out, "\n{kernels} checked: {found}");
    if let Some(n) = report.left_out {
        let _ = write!(out, "; {} on lines that did not change left out", noun(n as usize, "finding"));
    }
    let more = if counts.iter().sum::<usize>() > 0 { "; lanescope explain RULE says more" } else { "" };
    let _ = writeln!(out, "{more}");
}
