//! PTX as text: a lexer and parser that keep spans and return a tree together with all errors.
//!
//! [`parse()`] never fails and never panics: a damaged text gives the tree of what can be read and a [`Diagnostic`] for
//! each thing that cannot. Names are resolved ([`tree`]); types and the meaning of instructions are not checked.
//! No I/O is done here.

pub mod diagnostic;
pub mod lower;
mod parse;
pub mod print;
#[cfg(feature = "render")]
pub mod render;
pub mod span;
pub mod special;
mod suggest;
pub mod table;
pub mod tree;

pub use diagnostic::{Diagnostic, Note, Severity};
pub use parse::{parse, parse_for};
pub use span::{LineIndex, Span};

/// What [`parse()`] returns.
#[derive(Clone, Debug)]
pub struct Parse<'a> {
    /// The tree.
    pub module: tree::Module<'a>,
    /// Errors and warnings in the order of their places. At most [`MAX_DIAGNOSTICS`] are kept.
    pub diagnostics: Vec<Diagnostic>,
    /// How many more there were.
    pub suppressed: usize,
}

impl Parse<'_> {
    /// Whether the tree is complete.
    pub fn is_ok(&self) -> bool {
        self.suppressed == 0 && !self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

/// A text of 100 MB can be wrong in a million places; nobody reads that many.
pub const MAX_DIAGNOSTICS: usize = 1000;
