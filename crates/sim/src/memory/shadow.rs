//! Finds out whether blocks communicate through global memory.
//!
//! Blocks run on several threads as if they were independent. While they do, each 32-byte sector remembers who read and
//! who wrote it. If a block reads or writes what another block writes, the result may depend on their order; then the
//! launch is run again with the blocks in order. Reductions of one kind (all integer additions, say) commute and do not count.
//!
//! For each pair of conflicting accesses at least one of the two sees the other's mark: a mark is set before the other
//! side's mark is read, both sequentially consistent.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::global::GlobalMemory;

/// Who accesses memory, as the marks name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner(u32);

impl Owner {
    /// A block. Only launches with fewer than 2^31 - 1 blocks are run in parallel.
    pub(crate) fn block(linear: u64) -> Owner {
        Owner(linear as u32 + 1)
    }
    /// All blocks that make reductions of one kind.
    pub(crate) fn reduction(kind: u32) -> Owner {
        Owner(REDUCTION | kind)
    }
}

const REDUCTION: u32 = 1 << 31;
const MANY: u32 = u32::MAX;
/// Several blocks wrote different bytes of a sector; which of them wrote what is not kept.
const SEVERAL: u32 = u32::MAX;

struct Marks {
    /// Owner that wrote, or `SEVERAL`, in the low half; in the high half the bytes that were written.
    writers: Vec<AtomicU64>,
    /// Owner that read, or `MANY`.
    readers: Vec<AtomicU32>,
}

/// Marks of all buffers.
pub(crate) struct Shadow {
    marks: Vec<Marks>,
    conflict: AtomicBool,
}

impl Shadow {
    pub(crate) fn new(memory: &GlobalMemory) -> Shadow {
        let marks = |words: usize| {
            let sectors = words.div_ceil(8);
            Marks {
                writers: (0..sectors).map(|_| AtomicU64::new(0)).collect(),
                readers: (0..sectors).map(|_| AtomicU32::new(0)).collect(),
            }
        };
        Shadow {
            marks: memory.regions.iter().map(|r| marks(r.words.len())).collect(),
            conflict: AtomicBool::new(false),
        }
    }

    /// Whether the result may depend on the order of blocks.
    pub(crate) fn conflict(&self) -> bool {
        self.conflict.load(Ordering::Relaxed)
    }

    /// Notes that it does.
    pub(crate) fn set_conflict(&self) {
        self.conflict.store(true, Ordering::Relaxed);
    }

    /// `who` reads `bytes` (a mask) of a sector.
    #[inline]
    pub(crate) fn read(&self, region: usize, sector: usize, bytes: u32, who: Owner) {
        let m = &self.marks[region];
        let r = &m.readers[sector];
        let seen = r.load(Ordering::Relaxed);
        if seen != who.0 && seen != MANY {
            let first = r.compare_exchange(0, who.0, Ordering::SeqCst, Ordering::SeqCst);
            if first.is_err_and(|now| now != who.0) {
                r.store(MANY, Ordering::SeqCst);
            }
        }
        let w = m.writers[sector].load(Ordering::SeqCst);
        if w as u32 != 0 && w as u32 != who.0 && (w >> 32) as u32 & bytes != 0 {
            self.set_conflict();
        }
    }

    /// `who` writes `bytes` of a sector.
    #[inline]
    pub(crate) fn write(&self, region: usize, sector: usize, bytes: u32, who: Owner) {
        let m = &self.marks[region];
        let w = &m.writers[sector];
        let mut old = w.load(Ordering::Relaxed);
        loop {
            let (owner, mask) = (old as u32, (old >> 32) as u32);
            if owner == who.0 && mask & bytes == bytes {
                break;
            }
            if owner != 0 && owner != who.0 && mask & bytes != 0 {
                self.set_conflict();
                return;
            }
            let owner = match owner {
                0 => who.0,
                o if o == who.0 => o,
                _ => SEVERAL,
            };
            let new = u64::from(mask | bytes) << 32 | u64::from(owner);
            match w.compare_exchange_weak(old, new, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => break,
                Err(now) => old = now,
            }
        }
        let r = m.readers[sector].load(Ordering::SeqCst);
        if r != 0 && r != who.0 {
            self.set_conflict();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shadow() -> Shadow {
        let mut m = GlobalMemory::new();
        m.alloc("a", &[0; 64]).unwrap();
        Shadow::new(&m)
    }

    #[test]
    fn independent_blocks_do_not_conflict() {
        let s = shadow();
        let (a, b) = (Owner::block(0), Owner::block(1));
        s.write(0, 0, 0xf, a);
        s.write(0, 0, 0xf0, b);
        s.write(0, 1, 0xf, b);
        s.read(0, 1, 0xff, b);
        assert!(!s.conflict());
        s.write(0, 0, 0xf0, b);
        assert!(s.conflict(), "a false alarm: writing again in a sector of several blocks");
    }

    #[test]
    fn races_are_seen_in_either_order() {
        for (first, second) in [(false, true), (true, false), (true, true)] {
            let s = shadow();
            for (i, write) in [first, second].into_iter().enumerate() {
                let who = Owner::block(i as u64);
                if write { s.write(0, 0, 1, who) } else { s.read(0, 0, 1, who) }
            }
            assert!(s.conflict());
        }
        let s = shadow();
        s.write(0, 0, 0xf, Owner::block(0));
        s.write(0, 0, 0xf0, Owner::block(1));
        s.write(0, 0, 0xf0, Owner::block(0));
        assert!(s.conflict());
        let s = shadow();
        s.write(0, 0, 1, Owner::reduction(1));
        s.write(0, 0, 1, Owner::reduction(2));
        assert!(s.conflict());
        let s = shadow();
        s.write(0, 0, 1, Owner::reduction(1));
        s.write(0, 0, 1, Owner::reduction(1));
        assert!(!s.conflict());
    }
}
