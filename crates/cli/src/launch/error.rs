//! What is wrong with a launch file, and where.

use std::fmt;

/// A position in the file, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Position {
    /// Line; 0 if the fault has no place.
    pub line: usize,
    /// Column in characters.
    pub column: usize,
}

impl Position {
    /// Position of a byte offset in `text`.
    pub fn of(text: &str, offset: usize) -> Position {
        let mut end = offset.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let before = &text[..end];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        Position { line, column }
    }
}

/// A fault in a launch file.
#[derive(Debug)]
pub struct LaunchError {
    /// The file as it was named.
    pub file: String,
    /// Where.
    pub at: Position,
    /// What.
    pub fault: Box<Fault>,
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if self.at.line > 0 {
            write!(f, ":{}:{}", self.at.line, self.at.column)?;
        }
        write!(f, ": {}", self.fault)
    }
}

impl std::error::Error for LaunchError {}

/// Kinds of faults.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Not TOML.
    #[error("{0}")]
    Syntax(String),
    /// A key that is not known here.
    #[error("unknown key `{key}` in {place}{}\n  known keys: {known}", suggestion(suggest))]
    UnknownKey {
        /// The key.
        key: String,
        /// `the launch file`, `argument 2`, ...
        place: String,
        /// The nearest known key.
        suggest: Option<&'static str>,
        /// All known keys.
        known: String,
    },
    /// A key that must be there.
    #[error("`{key}` is missing in {place}; write for example `{example}`")]
    Missing {
        /// The key.
        key: &'static str,
        /// Where.
        place: String,
        /// How it could look.
        example: &'static str,
    },
    /// A value of the wrong type.
    #[error("{what} must be {expected}, found {found}")]
    Type {
        /// Which value.
        what: String,
        /// What it must be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// A number out of its range.
    #[error("{what} is {found}, but must be {low} to {high}")]
    Range {
        /// Which number.
        what: String,
        /// What it is.
        found: String,
        /// Least.
        low: String,
        /// Greatest.
        high: String,
    },
    /// A block with more threads than hardware has.
    #[error("a block of {x} x {y} x {z} = {threads} threads; hardware has at most 1024")]
    BlockTooLarge {
        /// Width.
        x: u32,
        /// Height.
        y: u32,
        /// Depth.
        z: u32,
        /// Product.
        threads: u64,
    },
    /// An argument without or with several values.
    #[error("argument {index} has {}; give exactly one of: {known}", if found.is_empty() { "no value".into() } else { format!("several values ({found})") })]
    OneValue {
        /// Its number, from 0.
        index: usize,
        /// Keys found.
        found: String,
        /// Keys to choose from.
        known: String,
    },
    /// A type name that is not known.
    #[error("unknown dtype `{found}`{}\n  known types: {known}", suggestion(suggest))]
    Dtype {
        /// The name.
        found: String,
        /// The nearest one.
        suggest: Option<&'static str>,
        /// All names.
        known: String,
    },
    /// A key that goes with buffers only.
    #[error("argument {index}: `{key}` goes with a buffer (npy, zeros, ones, full, random), not with a scalar")]
    ScalarWith {
        /// Its number.
        index: usize,
        /// The key.
        key: &'static str,
    },
    /// Buffers larger than the limit.
    #[error("argument {index} needs {bytes} bytes; all buffers of a launch together may take {limit}")]
    TooLarge {
        /// Its number.
        index: usize,
        /// Its size.
        bytes: u128,
        /// The limit.
        limit: u64,
    },
    /// `bytes` is no hexadecimal text.
    #[error(
        "argument {index}: `bytes` must be an even number of hexadecimal digits, or a list of numbers from 0 to 255"
    )]
    Hex {
        /// Its number.
        index: usize,
    },
    /// A file cannot be read.
    #[error("cannot read {path}: {error}{hint}")]
    Read {
        /// The file.
        path: String,
        /// What the system said.
        error: String,
        /// What to do.
        hint: String,
    },
    /// A `.npy` file cannot be used.
    #[error("{path}: {error}")]
    Npy {
        /// The file.
        path: String,
        /// Why.
        error: crate::npy::NpyError,
    },
    /// A `.npy` file of another type than the launch file says.
    #[error("{path} holds {found}, but the launch file says dtype = \"{expected}\"")]
    NpyDtype {
        /// The file.
        path: String,
        /// Its type.
        found: String,
        /// The type expected.
        expected: &'static str,
    },
    /// The number of arguments differs from the kernel's.
    #[error("{found} arguments are given, but the kernel has {}\n{params}", plural(*expected, "parameter"))]
    Count {
        /// Given.
        found: usize,
        /// Parameters.
        expected: usize,
        /// List of parameters.
        params: String,
    },
    /// An argument's size differs from its parameter's.
    #[error("argument {index}{name} is {what} of {}, but parameter {index} takes {}\n{params}", plural(*found, "byte"), plural(*expected, "byte"))]
    Size {
        /// Its number.
        index: usize,
        /// ` (name)`, or nothing.
        name: String,
        /// `a buffer (a pointer)`, `i32`.
        what: String,
        /// Its size.
        found: usize,
        /// The parameter's size.
        expected: usize,
        /// List of parameters.
        params: String,
    },
}

fn suggestion(name: &Option<&'static str>) -> String {
    name.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default()
}

fn plural(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}
