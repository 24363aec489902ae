//! The instruction set: tables, decoder, printer.
pub mod inst;
