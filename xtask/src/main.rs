//! Developer tasks: `cargo xtask NAME`.
fn main() {}
