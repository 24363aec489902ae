//! Why an instruction gets no operation.

use crate::diagnostic::Diagnostic;

/// The outcome of lowering something.
pub(super) type Lowered<T> = Result<T, Fail>;

/// Why there is none.
#[derive(Clone, Debug)]
pub(super) enum Fail {
    /// The text is wrong.
    Error(Box<Diagnostic>),
    /// The instruction has no meaning here; the kind of thing that is missing.
    Unsupported(&'static str),
}

impl From<Diagnostic> for Fail {
    fn from(diagnostic: Diagnostic) -> Fail {
        Fail::Error(Box::new(diagnostic))
    }
}

/// Refuses the instruction.
pub(super) fn unsupported<T>(why: &'static str) -> Lowered<T> {
    Err(Fail::Unsupported(why))
}
