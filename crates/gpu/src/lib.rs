//! NVIDIA's libraries, loaded when they are asked for: nothing of them is needed to build or to start lanescope.
//!
//! For now that is [`nvrtc`], the runtime compiler. Which file to load is the caller's decision; this crate opens no
//! other. It is one of two places where `unsafe` is allowed: every foreign call is in here.

pub mod nvrtc;
