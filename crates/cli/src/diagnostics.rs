//! Errors in PTX text, shown with the text underlined.

use annotate_snippets::Renderer;
use lanescope_ptx::lower::Errors;
use lanescope_ptx::render;

/// Errors shown before the rest is counted.
const SHOWN: usize = 20;

/// Errors as text, several at once, without colours.
pub fn errors(path: &str, source: &str, errors: &Errors) -> String {
    render::errors(errors, source, path, &Renderer::plain(), SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_underlined_where_it_is_wrong() {
        let kernel = |count: usize| {
            let wrong = "\tadd.s32 %r1, %r8, 1.5;\n".repeat(count);
            format!(
                ".version 8.8\n.target sm_90\n.entry k() {{ .reg .b32 %r<9>;\n\tadd.s32 %r1, %r9, 1;\n{wrong} ret; }}"
            )
        };
        let source = kernel(1);
        let text = errors("k.ptx", &source, &lanescope_ptx::lower::errors(&lanescope_ptx::parse(&source)));
        for part in ["error: register `%r9` is not declared", "--> k.ptx:4:", "^^^", "from `%r0` to `%r8`"] {
            assert!(text.contains(part), "`{part}` is missing in:\n{text}");
        }
        assert!(!text.contains("more"), "{text}");
        let source = kernel(20);
        let many = errors("k.ptx", &source, &lanescope_ptx::lower::errors(&lanescope_ptx::parse(&source)));
        assert!(many.ends_with("and 1 more error"), "{many}");
    }
}
