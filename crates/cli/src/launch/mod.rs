//! Launch files: what to run, on what data. The format is described in `docs/launch-file.md`.
//!
//! [`parse`] turns text into a [`LaunchFile`] without touching the disk; [`load`](args::load) then reads the
//! arrays and [`pack`](args::pack) lays the arguments out as the kernel's parameters. Every value keeps its
//! place in the text, so that each error names file, line and column.

pub mod args;
mod error;
pub mod random;
mod read;

use std::path::PathBuf;

pub use error::{Fault, LaunchError, Position};
use random::Bounds;

use crate::compile::Options;
use crate::dtype::Dtype;

/// All buffers of a launch together may take so many bytes.
pub const MEMORY_LIMIT: u64 = 4 << 30;

/// A launch file, checked as far as that is possible without the kernel and the arrays.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchFile {
    /// The file as it was named, for messages.
    pub file: String,
    /// The module's file, relative to the launch file.
    pub module: PathBuf,
    /// Place of `module`.
    pub module_at: Position,
    /// The kernel: mangled, demangled or base name.
    pub kernel: Option<String>,
    /// Place of `kernel`.
    pub kernel_at: Position,
    /// Architecture to choose from a module with several.
    pub arch: Option<String>,
    /// Place of `arch`.
    pub arch_at: Position,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub dynamic_shared: u32,
    /// How a module that is source is compiled. Folders are relative to the launch file.
    pub compile: Options,
    /// Arguments in order.
    pub args: Vec<Arg>,
}

/// One argument.
#[derive(Clone, Debug, PartialEq)]
pub struct Arg {
    /// Its name in reports.
    pub name: Option<String>,
    /// Its value.
    pub value: Value,
    /// File to write the buffer to after the run, relative to the launch file.
    pub out: Option<PathBuf>,
    /// Its place.
    pub at: Position,
}

/// An argument's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A buffer from a NumPy file.
    Npy {
        /// The file, relative to the launch file.
        path: PathBuf,
        /// The type it must have, if the launch file says so.
        dtype: Option<Dtype>,
    },
    /// A buffer that repeats one element.
    Fill {
        /// Type.
        dtype: Dtype,
        /// Elements.
        len: usize,
        /// The element's bytes.
        element: Vec<u8>,
    },
    /// A buffer of pseudo-random elements.
    Random {
        /// Type.
        dtype: Dtype,
        /// Elements.
        len: usize,
        /// Seed.
        seed: u64,
        /// Bounds.
        bounds: Bounds,
    },
    /// A number.
    Scalar {
        /// Type.
        dtype: Dtype,
        /// Little-endian bytes.
        bytes: Vec<u8>,
    },
    /// Raw bytes, for structures passed by value.
    Bytes(Vec<u8>),
}

impl Value {
    /// Whether the kernel gets a pointer.
    pub fn is_buffer(&self) -> bool {
        matches!(self, Value::Npy { .. } | Value::Fill { .. } | Value::Random { .. })
    }
}

/// Reads launch-file text. `file` is its name for messages.
pub fn parse(file: &str, text: &str) -> Result<LaunchFile, LaunchError> {
    read::Reader { file, text }.launch()
}
