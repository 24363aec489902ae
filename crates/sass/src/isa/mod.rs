//! The instruction set: tables, decoder, printer.
//!
//! [`Decoder`] turns 16 bytes into an [`inst::Instruction`] for one [`Arch`]; its `Display` gives the
//! text nvdisasm prints. Nothing about any instruction is written in Rust: which bits select an operand
//! form, hold a register or spell a modifier is data, made from `crates/sass/data` by `cargo xtask isa`.

mod arch;
mod decode;
mod eval;
mod float;
pub mod inst;
mod listing;
mod load;
mod print;
mod tables;

pub use arch::{Arch, ArchError};
pub use decode::{DecodeError, Decoder, TableError};
pub use listing::Listing;
