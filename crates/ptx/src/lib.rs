//! PTX as text: a lexer and parser that keep spans and return a tree together with all errors.
//!
//! [`parse()`] never fails and never panics: a damaged text gives the tree of what can be read and a [`Diagnostic`] for
//! each thing that cannot. Names are resolved ([`tree`]); types and the meaning of instructions are not checked.
//! [`print`] writes a tree as text again, [`lower`] turns a kernel into lane operations. No I/O is done here.
//!
//! ```
//! let text = "
//! .version 8.0
//! .target sm_80
//! .address_size 64
//! .visible .entry scale(.param .u64 out)
//! {
//!     .reg .b32 %r<3>;
//!     mov.u32 %r1, %tid.x;
//!     mul.lo.s32 %r2, %r1, 2 + 1;
//!     ret;
//! }";
//! let parsed = lanescope_ptx::parse(text);
//! assert!(parsed.is_ok());
//! let (_, kernel) = parsed.module.function("scale").unwrap();
//! let body = kernel.body.as_ref().unwrap();
//! let opcodes: Vec<_> = body.instructions.iter().map(|it| parsed.module.opcode(it.opcode).text).collect();
//! assert_eq!(opcodes, ["mov.u32", "mul.lo.s32", "ret"]);
//! assert!(lanescope_ptx::print::module(&parsed.module).contains("mul.lo.s32 %r2, %r1, 3;"));
//!
//! // All errors at once, each with its place.
//! let broken = lanescope_ptx::parse(".entry k() { .reg .b32 %r<2>; mov.u32 %r2, 1; bra NOWHERE; }");
//! let messages: Vec<_> = broken.diagnostics.iter().map(|it| it.message.as_str()).collect();
//! assert_eq!(messages, ["register `%r2` is not declared", "label `NOWHERE` is not declared"]);
//! ```

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
