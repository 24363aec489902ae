//! Errors in PTX text, shown with the text underlined.

use annotate_snippets::Renderer;
use lanescope_ptx::{Diagnostic, LineIndex, render};

/// Errors shown before the rest is counted.
const SHOWN: usize = 20;

/// Errors as text, several at once, without colours. `more` is the number of errors that were not kept.
pub fn errors(path: &str, source: &str, diagnostics: &[Diagnostic], more: usize) -> String {
    let lines = LineIndex::new(source);
    let renderer = Renderer::plain();
    let errors: Vec<&Diagnostic> = diagnostics.iter().filter(|d| d.is_error()).collect();
    let mut out: Vec<String> =
        errors.iter().take(SHOWN).map(|d| render::one(d, source, &lines, path, &renderer)).collect();
    let hidden = errors.len().saturating_sub(SHOWN).saturating_add(more);
    if hidden > 0 {
        out.push(format!("and {hidden} more {}", if hidden == 1 { "error" } else { "errors" }));
    }
    out.join("\n\n")
}

#[cfg(test)]
mod tests {
    use lanescope_ptx::Span;

    use super::*;

    #[test]
    fn the_text_is_underlined_where_it_is_wrong() {
        let source = ".version 8.8\n.target sm_90\n\tadd.s32 %r1, %r9, 1;\n";
        let at = source.find("%r9").expect("it is there") as u32;
        let d = Diagnostic::error(Span::new(at, at + 3), "register `%r9` is not declared")
            .at(Span::new(13, 20), "the target")
            .note("declare it");
        let text = errors("k.ptx", source, std::slice::from_ref(&d), 2);
        for part in ["error: register `%r9` is not declared", "--> k.ptx:3:", "^^^", "declare it", "and 2 more errors"]
        {
            assert!(text.contains(part), "`{part}` is missing in:\n{text}");
        }
        let many = errors("k.ptx", source, &vec![d; 21], 0);
        assert!(many.ends_with("and 1 more error"), "{many}");
    }
}
