//! Which sectors of global memory a launch has touched at all: what has to come from or go to memory at least once.

use std::sync::atomic::{AtomicU64, Ordering};

use super::global::GlobalMemory;

/// A bit for each 32-byte sector of each buffer. Bits are only set, in any order, so that threads share it.
pub(crate) struct Touched {
    regions: Vec<Vec<AtomicU64>>,
}

impl Touched {
    pub(crate) fn new(memory: &GlobalMemory) -> Touched {
        // 8 words a sector, 64 sectors a word of bits.
        let bits = |words: usize| (0..words.div_ceil(8 * 64)).map(|_| AtomicU64::new(0)).collect();
        Touched { regions: memory.regions.iter().map(|r| bits(r.words.len())).collect() }
    }

    /// The sectors `first..=last` of a buffer.
    #[inline]
    pub(crate) fn range(&self, region: usize, first: u64, last: u64) {
        let Some(bits) = self.regions.get(region) else { return };
        for word in first / 64..=last / 64 {
            let from = first.max(word * 64) % 64;
            let to = last.min(word * 64 + 63) % 64;
            let mask = u64::MAX << from & u64::MAX >> (63 - to);
            // Most sectors are touched more than once: look before writing.
            if let Some(b) = bits.get(word as usize)
                && b.load(Ordering::Relaxed) & mask != mask
            {
                b.fetch_or(mask, Ordering::Relaxed);
            }
        }
    }

    /// Forgets a run that has to be repeated.
    pub(crate) fn clear(&self) {
        self.regions.iter().flatten().for_each(|b| b.store(0, Ordering::Relaxed));
    }

    /// How many.
    pub(crate) fn count(&self) -> u64 {
        self.regions.iter().flatten().map(|b| u64::from(b.load(Ordering::Relaxed).count_ones())).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_set_exactly_their_bits() {
        let mut m = GlobalMemory::new();
        m.alloc("a", &[0; 32 * 300]).unwrap();
        m.alloc("b", &[0; 33]).unwrap();
        for (first, last) in [(0, 0), (63, 64), (0, 299), (5, 130), (127, 127), (64, 127)] {
            let t = Touched::new(&m);
            t.range(0, first, last);
            t.range(0, last, last);
            assert_eq!(t.count(), last - first + 1, "{first}..={last}");
        }
        let t = Touched::new(&m);
        t.range(1, 0, 1);
        t.range(0, 0, 0);
        assert_eq!(t.count(), 3);
    }
}
