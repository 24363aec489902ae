//! The facade: everything the `lanescope` command does, for programs that embed it.

pub mod dtype;
pub mod launch;
pub mod names;
pub mod npy;
