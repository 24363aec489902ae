//! Memory of a launch: global buffers shared by all blocks, and what each block and thread has of its own.

pub(crate) mod bank;
pub(crate) mod global;
pub(crate) mod l1;
pub(crate) mod local;
pub(crate) mod shadow;
pub(crate) mod touched;
pub(crate) mod words;

pub use global::GlobalMemory;
