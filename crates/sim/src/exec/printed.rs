//! What blocks print, kept in the order of the blocks and bounded as on a device.
//!
//! On hardware `printf` writes to a buffer of 1 MiB that is printed after the launch. Here the first MiB in the order of the
//! blocks is kept, whichever thread ran which block when; what does not fit is counted.

use std::collections::BTreeMap;

use crate::launch::PrintedText;

/// Bytes that a launch keeps.
pub(crate) const LIMIT: usize = 1 << 20;
/// Bytes that a call takes besides its text.
const CALL: usize = 64;

/// What one block has printed.
#[derive(Default)]
pub(crate) struct Printed {
    calls: Vec<PrintedText>,
    bytes: usize,
    lost: u64,
}

impl Printed {
    /// Bytes of text that still fit.
    pub(crate) fn room(&self) -> usize {
        LIMIT.saturating_sub(self.bytes + CALL)
    }

    /// One call. After the first that does not fit, none does.
    pub(crate) fn add(&mut self, block: [u32; 3], thread: [u32; 3], text: Option<Vec<u8>>) {
        match text {
            Some(text) if self.lost == 0 && text.len() <= self.room() => {
                self.bytes += text.len() + CALL;
                let text = String::from_utf8_lossy(&text).into_owned();
                self.calls.push(PrintedText { block, thread, text });
            }
            _ => self.lost += 1,
        }
    }
}

/// What blocks have printed, by their number.
#[derive(Default)]
pub(crate) struct Prints {
    blocks: BTreeMap<u64, Printed>,
    bytes: usize,
    lost: u64,
}

impl Prints {
    /// A block has ended.
    pub(crate) fn add(&mut self, linear: u64, block: Printed) {
        if block.calls.is_empty() && block.lost == 0 {
            return;
        }
        self.bytes += block.bytes;
        self.blocks.insert(linear, block);
        // The last ones cannot be among the first MiB.
        while let Some(last) = self.blocks.last_entry()
            && self.bytes - last.get().bytes > LIMIT
        {
            let last = last.remove();
            self.bytes -= last.bytes;
            self.lost += last.lost + last.calls.len() as u64;
        }
    }

    /// What another thread has gathered.
    pub(crate) fn merge(&mut self, other: Prints) {
        self.lost += other.lost;
        other.blocks.into_iter().for_each(|(linear, block)| self.add(linear, block));
    }

    /// Without the blocks after that one: whether they ran depends on the threads.
    pub(crate) fn until(mut self, last: u64) -> Self {
        self.blocks.retain(|&linear, _| linear <= last);
        self
    }

    /// All calls in order, and how many are lost.
    pub(crate) fn finish(self) -> (Vec<PrintedText>, u64) {
        let (mut out, mut bytes, mut lost) = (Vec::new(), 0, self.lost);
        let mut full = false;
        for block in self.blocks.into_values() {
            for call in block.calls {
                let size = call.text.len() + CALL;
                full |= bytes + size > LIMIT;
                if full {
                    lost += 1;
                } else {
                    bytes += size;
                    out.push(call);
                }
            }
            lost += block.lost;
            full |= block.lost != 0;
        }
        (out, lost)
    }
}
