//! Local memory of the threads of one warp.

use std::cell::Cell;

use super::words::Interleaved;
use crate::rows::LANES;

/// Local memory of a warp, all zero for each new block. Words that no block has touched yet take no memory.
#[derive(Debug, Default)]
pub(crate) struct Local {
    /// Zeroed memory that the system only provides once it is written.
    words: Vec<u32>,
    /// Words of a lane that were written since the last [`clear`](Local::clear).
    dirty: Option<(usize, usize)>,
    size: usize,
}

impl Local {
    /// `bytes` for each thread.
    pub(crate) fn new(bytes: u32) -> Local {
        Local { words: Vec::new(), dirty: None, size: bytes.div_ceil(4) as usize }
    }

    /// The memory, for accesses to the words `from..to` of each lane that write if `write`.
    pub(crate) fn words(&mut self, from: usize, to: usize, write: bool) -> Interleaved<'_> {
        if self.words.is_empty() {
            self.words = vec![0; self.size * LANES];
        }
        if write {
            let (a, b) = self.dirty.unwrap_or((from, to));
            self.dirty = Some((a.min(from), b.max(to)));
        }
        Interleaved(Cell::from_mut(self.words.as_mut_slice()).as_slice_of_cells())
    }

    /// All zero.
    pub(crate) fn clear(&mut self) {
        if let Some((from, to)) = self.dirty.take() {
            let end = (to * LANES).min(self.words.len());
            self.words[(from * LANES).min(end)..end].fill(0);
        }
    }
}
