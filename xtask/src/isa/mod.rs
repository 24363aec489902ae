//! `cargo xtask isa`: turns the readable instruction tables of `crates/sass/data` into the binary table
//! that the decoder embeds.
//!
//! [`source`] and [`grammar`] read the text into plain values, [`blob`] writes those in the format that
//! `crates/sass/src/isa/tables.rs` reads.

mod blob;
mod grammar;
mod source;

use anyhow::{Context, Result, ensure};
use std::path::PathBuf;

fn data_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../crates/sass/data")
}

fn build() -> Result<Vec<u8>> {
    let tables = source::read(&data_dir())?;
    blob::encode(&tables)
}

/// Writes `isa.bin`.
pub(crate) fn write() -> Result<()> {
    let path = data_dir().join("isa.bin");
    std::fs::write(&path, build()?).with_context(|| format!("writing {}", path.display()))
}

/// Fails if `isa.bin` is not what the sources give.
pub(crate) fn check() -> Result<()> {
    let path = data_dir().join("isa.bin");
    let have = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    ensure!(have == build()?, "{} is stale: run `cargo xtask isa`", path.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_embedded_table_is_current() {
        if let Err(error) = super::check() {
            panic!("{error:#}");
        }
    }
}
