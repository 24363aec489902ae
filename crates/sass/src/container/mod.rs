//! Cubins, fatbins and the executables that hold them.
//!
//! [`open`] takes any file's bytes and lists the GPU code inside; [`Module::parse`] reads one cubin:
//! its kernels with their launch facts, constant banks, global data, relocations and line tables.
//! Nothing here does I/O, and nothing here knows an instruction's meaning.
//!
//! All input is untrusted. Tables are bounds-checked against the file before anything is allocated,
//! work is bounded by the file's size, and what cannot be read is an [`Error`] that says where, or a
//! warning if the rest can still be used.
//!
#![doc = include_str!("FORMAT.md")]

mod arch;
mod attributes;
mod elf;
mod error;
mod fatbin;
mod function;
mod lines;
mod module;
mod open;
mod relocation;

pub use arch::{Arch, Layout, Variant};
pub use attributes::{Attribute, Value, id};
pub use elf::{Binding, Section, Symbol, SymbolKind};
pub use error::{Error, Result};
pub use fatbin::{Compression, Entry, EntryKind};
pub use function::{ConstantBank, Function, FunctionKind, IndirectBranch, Param, ParamBank, StackSize, Subroutine};
pub use lines::{Frame, Frames, LineKind, Lines};
pub use module::{GlobalData, Module};
pub use open::{Container, ContainerKind, open};
pub use relocation::{Relocation, RelocationKind};
