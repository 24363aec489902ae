//! A model of the first-level cache, for one block: which loads find their sectors, and which have to wait for more.
//!
//! An estimate by nature: the hardware's replacement and its order of warps are not known, and blocks that share an SM share
//! its cache. Here each block has a part of its own and starts with it empty, so that results do not depend on the number of
//! threads. Lines of 128 bytes with four sectors, four ways, the least recently used one is replaced. Stores and atomics
//! pass by: they are done in the second level.

/// Bytes of a line.
const LINE: u32 = 128;
const WAYS: usize = 4;

#[derive(Clone, Copy, Default)]
struct Way {
    /// Number of the line, plus one; 0 is an empty way.
    tag: u64,
    used: u64,
    /// Sectors that are there.
    sectors: u8,
}

/// The cache of one block.
pub(crate) struct L1 {
    sets: Vec<[Way; WAYS]>,
    clock: u64,
    /// Sectors that were not there, or passed by.
    pub(crate) missed: u64,
}

impl L1 {
    /// So many bytes, rounded down to a power of two of sets; at least one set.
    pub(crate) fn new(bytes: u32) -> L1 {
        let sets = (bytes / LINE / WAYS as u32).max(1);
        let sets = 1usize << sets.ilog2();
        L1 { sets: vec![[Way::default(); WAYS]; sets], clock: 0, missed: 0 }
    }

    pub(crate) fn clear(&mut self) {
        self.sets.fill([Way::default(); WAYS]);
        (self.clock, self.missed) = (0, 0);
    }

    /// A load of the sectors `first..=last` of a buffer; both are numbers of 32-byte sectors. `missed` is told those that
    /// are not there.
    pub(crate) fn load(&mut self, region: usize, first: u64, last: u64, mut missed: impl FnMut(u64)) {
        for line in first / 4..=last / 4 {
            let from = first.max(line * 4) % 4;
            let to = last.min(line * 4 + 3) % 4;
            let wanted = (0xf << from & 0xf >> (3 - to)) as u8;
            let absent = self.line(region as u64, line, wanted);
            for s in (0..4).filter(|s| absent >> s & 1 != 0) {
                missed(line * 4 + s);
            }
        }
    }

    /// Stores and atomics of so many sectors.
    pub(crate) fn pass(&mut self, sectors: u64) {
        self.missed += sectors;
    }

    /// Brings sectors of a line in; gives those that were not there.
    fn line(&mut self, region: u64, line: u64, wanted: u8) -> u8 {
        self.clock += 1;
        let tag = (line | region << 48).wrapping_add(1);
        // Powers of two as strides would all fall into one set otherwise.
        let hash = (tag.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        let sets = self.sets.len();
        let set = &mut self.sets[hash & (sets - 1)];
        let at = match set.iter().position(|w| w.tag == tag) {
            Some(at) => at,
            None => {
                let at = (0..WAYS).min_by_key(|&i| set[i].used).unwrap_or(0);
                set[at] = Way { tag, used: 0, sectors: 0 };
                at
            }
        };
        let way = &mut set[at];
        way.used = self.clock;
        let absent = wanted & !way.sectors;
        self.missed += u64::from(absent.count_ones());
        way.sectors |= wanted;
        absent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_are_found_again_until_they_are_replaced() {
        let mut l1 = L1::new(4 << 10);
        l1.load(0, 0, 3, |_| ());
        assert_eq!(l1.missed, 4);
        l1.load(0, 0, 3, |_| ());
        l1.load(0, 2, 2, |_| ());
        assert_eq!(l1.missed, 4);
        // Another buffer at the same offset.
        l1.load(1, 0, 0, |_| ());
        assert_eq!(l1.missed, 5);
        // A line that is there without the sector.
        l1.load(1, 1, 1, |_| ());
        assert_eq!(l1.missed, 6);
        // A range over lines.
        l1.load(2, 3, 8, |_| ());
        assert_eq!(l1.missed, 12);
        // A stream of twice the size throws everything out.
        for s in 0..256 {
            l1.load(3, s, s, |_| ());
        }
        assert_eq!(l1.missed, 12 + 256);
        l1.load(0, 0, 3, |_| ());
        assert_eq!(l1.missed, 12 + 256 + 4);
        l1.pass(7);
        assert_eq!(l1.missed, 12 + 256 + 4 + 7);
        let mut told = Vec::new();
        l1.load(0, 2, 5, |s| told.push(s));
        assert_eq!(told, [4, 5]);
    }

    #[test]
    fn a_working_set_that_fits_is_missed_once() {
        // Half of the size: hashing spreads it unevenly, and four ways take that up, nearly.
        let mut l1 = L1::new(32 << 10);
        for _ in 0..10 {
            for s in 0..512 {
                l1.load(0, s, s, |_| ());
            }
        }
        assert!(l1.missed < 600, "{}", l1.missed);
    }
}
