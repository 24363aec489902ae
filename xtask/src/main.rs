//! Developer tasks: `cargo xtask NAME`.

mod isa;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["isa"] => isa::write(),
        ["isa", "--check"] => isa::check(),
        _ => bail!("usage: cargo xtask isa [--check]"),
    }
}
