//! The tables in a terminal and in Markdown.

use std::fmt::Write;

use super::Survey;
use super::tables::{self, Show, Table};
use crate::layout::{Align, BAD, Columns, DIM, HEAD, PLAIN, styled, wrap};

/// Columns of text.
const WIDTH: usize = 110;
/// Longest name of a kernel in a terminal.
const LONGEST_NAME: usize = 60;
/// Errors that are shown one by one.
const MOST_ERRORS: usize = 20;

/// The survey for a terminal.
pub fn text(survey: &Survey, show: Show) -> String {
    let mut out = String::new();
    for table in all(survey, show) {
        let _ = writeln!(out, "{}", styled(HEAD, table.title));
        if let Some(note) = table.note {
            let _ = writeln!(out, "{}", styled(DIM, &wrap(note, WIDTH, 0)));
        }
        // The last column is ragged, so an empty one follows the figures.
        let mut align = vec![Align::Right; table.header.len() + 1];
        align[0] = Align::Left;
        let end = || (PLAIN, String::new());
        let mut columns = Columns::new(2, &align);
        columns.row(table.header.iter().map(|h| (DIM, h.clone())).chain([end()]).collect());
        for row in &table.rows {
            let style = |c: &str| if c == "0" { DIM } else { PLAIN };
            columns.row(row.iter().map(|c| (style(c), clipped(c))).chain([end()]).collect());
        }
        columns.print(&mut out);
        out.push('\n');
    }
    let errors: Vec<_> = survey.errors().collect();
    if !errors.is_empty() {
        let _ = writeln!(out, "{}", styled(BAD, "Not read"));
        for (place, why) in errors.iter().take(MOST_ERRORS) {
            let _ = writeln!(out, "  {place}: {why}");
        }
        if let Some(more) = errors.len().checked_sub(MOST_ERRORS).filter(|&m| m > 0) {
            let _ = writeln!(out, "  and {more} more; --format json has them all");
        }
    }
    out
}

/// The survey as Markdown.
pub fn markdown(survey: &Survey, show: Show) -> String {
    let mut out = String::new();
    for table in all(survey, show) {
        let _ = writeln!(out, "### {}\n", table.title);
        if let Some(note) = table.note {
            let _ = writeln!(out, "{note}\n");
        }
        let line =
            |cells: &[String]| format!("| {} |", cells.iter().map(|c| escape(c)).collect::<Vec<_>>().join(" | "));
        let _ = writeln!(out, "{}", line(&table.header));
        let _ = writeln!(out, "| --- |{}", " ---: |".repeat(table.header.len() - 1));
        for row in &table.rows {
            let _ = writeln!(out, "{}", line(row));
        }
        out.push('\n');
    }
    let errors: Vec<_> = survey.errors().collect();
    if !errors.is_empty() {
        out.push_str("### Not read\n\n");
        for (place, why) in errors {
            let _ = writeln!(out, "- {}: {}", escape(&place), escape(why));
        }
    }
    out
}

/// A name that fits a terminal.
fn clipped(text: &str) -> String {
    match text.char_indices().nth(LONGEST_NAME) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

fn all(survey: &Survey, show: Show) -> Vec<Table> {
    let mut list = tables::totals(survey, show);
    if show.kernels {
        list.extend(tables::kernels(survey));
    }
    list
}

/// A cell's text: no character may end it or start markup.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '|' | '<' | '>' | '*' | '_' | '`' | '\\' | '[' | ']' => {
                // Underscores inside words (sm_90) are no markup.
                if c != '_' {
                    out.push('\\');
                }
                out.push(c);
            }
            '\n' | '\r' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
