//! What is wrong with a text, independent of how it is shown.

use crate::span::Span;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Kept as text; a reader that needs its meaning has to refuse it.
    Warning,
    /// The tree is incomplete or ambiguous here.
    Error,
}

/// An addition to a diagnostic: an earlier definition, a suggestion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// One sentence without a full stop.
    pub message: String,
    /// The place it speaks of, if it is one.
    pub span: Option<Span>,
}

/// One problem found in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// One sentence without a full stop.
    pub message: String,
    /// The text to underline.
    pub span: Span,
    /// Additions, in the order to show them.
    pub notes: Vec<Note>,
}

impl Diagnostic {
    /// An error without notes.
    pub fn error(span: Span, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Error, message: message.into(), span, notes: Vec::new() }
    }

    /// A warning without notes.
    pub fn warning(span: Span, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, message: message.into(), span, notes: Vec::new() }
    }

    /// Adds a note about a place.
    pub fn at(mut self, span: Span, message: impl Into<String>) -> Self {
        self.notes.push(Note { message: message.into(), span: Some(span) });
        self
    }

    /// Adds a note without a place.
    pub fn note(mut self, message: impl Into<String>) -> Self {
        self.notes.push(Note { message: message.into(), span: None });
        self
    }

    /// Whether it is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
