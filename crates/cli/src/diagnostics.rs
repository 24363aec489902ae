//! Errors in PTX text, shown with the text underlined.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use lanescope_ptx::{Diagnostic, LineIndex, Severity, Span};

/// Diagnostics shown before the rest is counted.
const SHOWN: usize = 20;
/// Longer lines are not shown: machine-made text can be one line of 100 MB.
const LONGEST_LINE: usize = 1000;

/// Errors as text, several at once, without colours. `more` is the number of errors that were not kept.
pub fn render(path: &str, source: &str, diagnostics: &[Diagnostic], more: usize) -> String {
    let lines = LineIndex::new(source);
    let errors: Vec<&Diagnostic> = diagnostics.iter().filter(|d| d.is_error()).collect();
    let mut out: Vec<String> = errors.iter().take(SHOWN).map(|d| one(path, source, &lines, d)).collect();
    let hidden = errors.len().saturating_sub(SHOWN).saturating_add(more);
    if hidden > 0 {
        out.push(format!("and {hidden} more {}", if hidden == 1 { "error" } else { "errors" }));
    }
    out.join("\n\n")
}

fn one(path: &str, source: &str, lines: &LineIndex, diagnostic: &Diagnostic) -> String {
    let level = match diagnostic.severity {
        Severity::Warning => Level::WARNING,
        Severity::Error => Level::ERROR,
    };
    let Some(shown) = Shown::of(source, lines, diagnostic.span) else {
        let (line, column) = lines.position(at(source, diagnostic.span));
        return format!("error: {}\n --> {path}:{line}:{column} (the line is too long to show)", diagnostic.message);
    };
    let mut group = Group::with_title(level.primary_title(diagnostic.message.as_str()))
        .element(shown.snippet(path).annotation(AnnotationKind::Primary.span(shown.inside.clone())));
    for note in &diagnostic.notes {
        group = group.element(Level::NOTE.message(note.message.as_str()));
        if let Some(place) = note.span.and_then(|span| Shown::of(source, lines, span)) {
            group = group.element(place.snippet(path).annotation(AnnotationKind::Context.span(place.inside.clone())));
        }
    }
    Renderer::plain().render(&[group])
}

/// Where a span begins.
fn at(source: &str, span: Span) -> u32 {
    u32::try_from(source.len()).map_or(span.start, |len| span.start.min(len))
}

/// The line that a span begins in.
struct Shown<'a> {
    text: &'a str,
    number: usize,
    inside: std::ops::Range<usize>,
}

impl<'a> Shown<'a> {
    /// Only that line is handed to the renderer, which reads all it is given.
    fn of(source: &'a str, lines: &LineIndex, span: Span) -> Option<Shown<'a>> {
        let (number, column) = lines.position(at(source, span));
        let start = (at(source, span) as usize).checked_sub(column as usize - 1)?;
        let rest = source.get(start..)?;
        let text = rest.split('\n').next().unwrap_or(rest).trim_end_matches('\r');
        if text.len() > LONGEST_LINE {
            return None;
        }
        let from = (column as usize - 1).min(text.len());
        let mut to = from.saturating_add((span.end.saturating_sub(span.start)) as usize).clamp(from, text.len());
        while !text.is_char_boundary(to) {
            to += 1;
        }
        text.is_char_boundary(from).then_some(Shown { text, number: number as usize, inside: from..to })
    }

    fn snippet<T: Clone>(&self, path: &'a str) -> Snippet<'a, T> {
        Snippet::source(self.text).line_start(self.number).path(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_underlined_where_it_is_wrong() {
        let source = ".version 8.8\n.target sm_90\n\tadd.s32 %r1, %r9, 1;\n";
        let at = source.find("%r9").expect("it is there") as u32;
        let d = Diagnostic::error(Span::new(at, at + 3), "register `%r9` is not declared")
            .at(Span::new(13, 20), "the target")
            .note("declare it");
        let text = render("k.ptx", source, &[d], 2);
        for part in ["error: register `%r9` is not declared", "--> k.ptx:3:", "^^^", "declare it", "and 2 more errors"]
        {
            assert!(text.contains(part), "`{part}` is missing in:\n{text}");
        }
    }

    #[test]
    fn no_span_and_no_text_is_a_panic() {
        for source in ["", "é\n", "a\r\nb", &"x".repeat(5000), "\n\n"] {
            for (start, end) in [(0, 0), (0, 1), (1, 2), (2, 1), (3, 900), (4999, 5000), (u32::MAX, u32::MAX)] {
                let d = Diagnostic::error(Span::new(start, end), "m").at(Span::new(end, start), "n");
                render("k.ptx", source, &[d], 0);
            }
        }
    }
}
