//! Which sectors of global memory a launch has touched at all: what has to come from or go to memory at least once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use super::global::GlobalMemory;

/// A bit for each 32-byte sector of each buffer. Bits are only set, in any order, so that threads share it.
pub(crate) struct Touched {
    regions: Vec<Vec<AtomicU64>>,
    /// How often each sector was missed by a block's first-level cache, if that is modelled. Stops at [`MANY`].
    missed: Vec<Vec<AtomicU16>>,
}

/// Counting misses of a sector stops here: so far below the counter's end that no number of threads gets past it together.
const MANY: u16 = u16::MAX - 512;

impl Touched {
    /// `misses`: whether they are counted.
    pub(crate) fn new(memory: &GlobalMemory, misses: bool) -> Touched {
        // 8 words a sector, 64 sectors a word of bits.
        let bits = |words: usize| (0..words.div_ceil(8 * 64)).map(|_| AtomicU64::new(0)).collect();
        let counters = |words: usize| (0..words.div_ceil(8)).map(|_| AtomicU16::new(0)).collect();
        let regions = || memory.regions.iter().map(|r| r.words.len());
        Touched {
            regions: regions().map(bits).collect(),
            missed: if misses { regions().map(counters).collect() } else { Vec::new() },
        }
    }

    /// A block's first-level cache does not have a sector.
    #[inline]
    pub(crate) fn miss(&self, region: usize, sector: u64) {
        if let Some(n) = self.missed.get(region).and_then(|r| r.get(sector as usize))
            && n.load(Ordering::Relaxed) < MANY
        {
            n.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many sectors were missed how often: `(times, sectors)`, ascending.
    pub(crate) fn misses(&self) -> Vec<(u32, u64)> {
        let mut histogram = BTreeMap::new();
        for n in self.missed.iter().flatten().map(|n| n.load(Ordering::Relaxed).min(MANY)).filter(|n| *n != 0) {
            *histogram.entry(u32::from(n)).or_default() += 1;
        }
        histogram.into_iter().collect()
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
        self.missed.iter().flatten().for_each(|n| n.store(0, Ordering::Relaxed));
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
            let t = Touched::new(&m, false);
            t.range(0, first, last);
            t.range(0, last, last);
            assert_eq!(t.count(), last - first + 1, "{first}..={last}");
        }
        let t = Touched::new(&m, false);
        t.range(1, 0, 1);
        t.range(0, 0, 0);
        assert_eq!(t.count(), 3);
    }

    #[test]
    fn misses_are_counted_by_sector() {
        let mut m = GlobalMemory::new();
        m.alloc("a", &[0; 32 * 4]).unwrap();
        let t = Touched::new(&m, true);
        for sector in [0, 3, 3, 3, 1, 99] {
            t.miss(0, sector);
        }
        assert_eq!(t.misses(), [(1, 2), (3, 1)]);
        (0..70_000).for_each(|_| t.miss(0, 2));
        assert_eq!(t.misses().len(), 3);
        t.clear();
        assert_eq!(t.misses(), []);
        assert_eq!(Touched::new(&m, false).misses(), []);
    }
}
