//! SASS: containers, the instruction set, and its lowering to [`lanescope_ir`].
//!
//! Parts that do not know each other's insides: [`container`] turns bytes into sections,
//! symbols, launch facts and line tables; [`isa`] turns 16 bytes into an [`isa::inst::Instruction`],
//! [`isa64`] does it for the older 64-bit instructions as far as control flow goes;
//! [`lower`] gives an instruction its operation; [`kernel`] puts these together to a [`lanescope_ir::Kernel`].
pub mod container;
pub mod flow;
pub mod isa;
pub mod isa64;
pub mod kernel;
pub mod lower;
pub mod patch;
