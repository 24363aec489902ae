//! What is known of the launch.

use lanescope_ir::Kernel;

/// Facts of a launch. Whatever is not given may be anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Shape of the block. A kernel that requires a shape (`reqntid`) gives it by itself.
    pub block: Option<[u32; 3]>,
    /// The block is one-dimensional, of unknown size: lane l of warp w is thread 32 w + l.
    pub linear: bool,
    /// Blocks in x, y, z.
    pub grid: Option<[u32; 3]>,
    /// Dynamic shared memory in bytes.
    pub dynamic_shared: Option<u32>,
    /// Words of constant banks with their values: bank, byte offset (a multiple of 4), value. Scalar arguments come here
    /// through [`Facts::argument`].
    pub words: Vec<(u8, u32, u32)>,
}

impl Facts {
    /// Adds the value of an argument: `bytes`, little-endian, of the parameter with this ordinal. Whole words count.
    pub fn argument(&mut self, kernel: &Kernel, ordinal: u32, bytes: &[u8]) {
        let Some(param) = kernel.params.iter().find(|p| p.ordinal == ordinal) else { return };
        let (bank, base) = kernel.param_base;
        let start = base.saturating_add(param.offset);
        let mut padded = [0u8; 4];
        for (i, chunk) in bytes.chunks(4).take(1024).enumerate() {
            // A parameter of less than a word shares its word with padding.
            if chunk.len() < 4 && !(start.is_multiple_of(4) && param.size < 4) {
                continue;
            }
            padded.fill(0);
            padded[..chunk.len()].copy_from_slice(chunk);
            let offset = start.saturating_add(4 * i as u32);
            if offset.is_multiple_of(4) && (chunk.len() == 4) {
                self.words.push((bank, offset, u32::from_le_bytes(padded)));
            }
        }
    }
}
