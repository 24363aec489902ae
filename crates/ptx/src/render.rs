//! Diagnostics as text, with the source underlined.

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::lower::Errors;
use crate::{Diagnostic, LineIndex, Parse, Severity, Span};

/// How much of the text around a place is handed on; a file on a single line may be 100 MB long.
const MOST: usize = 400;

/// All diagnostics of a text, as a terminal shows them. `path` is what messages call the file.
pub fn render(parse: &Parse<'_>, path: &str, renderer: &Renderer) -> String {
    let source = parse.module.source;
    let lines = LineIndex::new(source);
    let mut text = String::new();
    for diagnostic in &parse.diagnostics {
        text.push_str(&one(diagnostic, source, &lines, path, renderer));
        text.push_str("\n\n");
    }
    if parse.suppressed > 0 {
        text.push_str(&format!("{path}: {} more errors and warnings are not shown\n", parse.suppressed));
    }
    text
}

/// The first `most` of all errors of a text; the rest is counted.
pub fn errors(errors: &Errors, source: &str, path: &str, renderer: &Renderer, most: usize) -> String {
    let lines = LineIndex::new(source);
    let mut out: Vec<String> = errors.iter().take(most).map(|it| one(it, source, &lines, path, renderer)).collect();
    let hidden = errors.len().saturating_sub(most).saturating_add(errors.more);
    if hidden > 0 {
        out.push(format!("and {hidden} more {}", if hidden == 1 { "error" } else { "errors" }));
    }
    out.join("\n\n")
}

/// One diagnostic.
pub fn one(diagnostic: &Diagnostic, source: &str, lines: &LineIndex, path: &str, renderer: &Renderer) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group = level.primary_title(diagnostic.message.as_str()).element(snippet(
        diagnostic.span,
        None,
        source,
        lines,
        path,
        AnnotationKind::Primary,
    ));
    for note in &diagnostic.notes {
        group = match note.span {
            Some(span) => {
                group.element(snippet(span, Some(&note.message), source, lines, path, AnnotationKind::Context))
            }
            None => group.element(Level::NOTE.message(note.message.as_str())),
        };
    }
    let report: [Group<'_>; 1] = [group];
    renderer.render(&report)
}

/// The lines of a place alone, so that the time for a message does not grow with the text.
fn snippet<'t>(
    span: Span,
    label: Option<&'t str>,
    source: &'t str,
    lines: &LineIndex,
    path: &'t str,
    kind: AnnotationKind,
) -> Snippet<'t, annotate_snippets::Annotation<'t>> {
    let (start, end) = (floor(source, span.start as usize), floor(source, span.end as usize));
    let begin = source[..start].rfind('\n').map_or(0, |at| at + 1).max(floor(source, start.saturating_sub(MOST)));
    let end = end.clamp(start, floor(source, start.saturating_add(MOST)));
    let stop = source[end..].find('\n').map_or(source.len(), |at| end + at);
    let stop = stop.min(floor(source, end.saturating_add(MOST)));
    let (line, _) = lines.position(span.start);
    let annotation = kind.span(start - begin..end - begin).label(label);
    Snippet::source(&source[begin..stop]).line_start(line as usize).path(path).annotation(annotation)
}

/// The boundary of characters at or before an offset.
fn floor(source: &str, offset: usize) -> usize {
    let mut offset = offset.min(source.len());
    while !source.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}
