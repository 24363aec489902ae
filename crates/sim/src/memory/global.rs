//! Global memory: named buffers at fixed addresses with gaps between them.

use std::sync::atomic::{AtomicU32, Ordering};

use lanescope_ir::kernel::{GlobalVar, MappedBank};

use crate::error::{Nearest, SimError};
use crate::launch::{LOCAL_WINDOW, SHARED_WINDOW};
use crate::memory::bank::Banks;

/// Address of the first buffer.
const FIRST: u64 = 0x7f40_0000_0000;
/// Buffers start at multiples of this.
const ALIGN: u64 = 256;
/// Unused addresses after each buffer, at least: an index that is somewhat too large hits no other buffer.
const GAP: u64 = 1 << 20;
/// Size of a module variable at most.
const MAX_GLOBAL: u64 = 4 << 30;
const WINDOW: u64 = 1 << 32;
/// Addresses are 49 bits wide at most.
const LIMIT: u64 = 1 << 49;

/// One buffer.
#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) name: String,
    /// Address of the first byte.
    pub(crate) base: u64,
    /// Size in bytes.
    pub(crate) size: u64,
    /// Address of the first word: `base` rounded down to a sector.
    pub(crate) start: u64,
    pub(crate) words: Vec<AtomicU32>,
    /// Constant memory: a kernel may not write it.
    pub(crate) read_only: bool,
}

impl Region {
    fn new(name: &str, base: u64, bytes: &[u8]) -> Region {
        let start = base & !31;
        let lead = (base - start) as usize;
        let count = (lead + bytes.len()).div_ceil(4);
        let words = if lead == 0 {
            bytes
                .chunks(4)
                .map(|c| {
                    let mut w = [0; 4];
                    w[..c.len()].copy_from_slice(c);
                    AtomicU32::new(u32::from_le_bytes(w))
                })
                .collect()
        } else {
            let mut words = vec![0u32; count];
            for (i, &b) in bytes.iter().enumerate() {
                let at = lead + i;
                words[at / 4] |= u32::from(b) << (at % 4 * 8);
            }
            words.into_iter().map(AtomicU32::new).collect()
        };
        Region { name: name.to_owned(), base, size: bytes.len() as u64, start, words, read_only: false }
    }

    /// Address after the last byte.
    pub(crate) fn end(&self) -> u64 {
        self.base + self.size
    }

    fn byte(&self, at: u64) -> u8 {
        let off = at - self.start;
        (self.words[(off / 4) as usize].load(Ordering::Relaxed) >> (off % 4 * 8)) as u8
    }
}

/// The global memory that launches work on. Buffers keep their content from launch to launch, as on a device.
#[derive(Debug, Default)]
pub struct GlobalMemory {
    /// Sorted by base.
    pub(crate) regions: Vec<Region>,
    next: u64,
}

impl GlobalMemory {
    /// No buffers.
    pub fn new() -> GlobalMemory {
        GlobalMemory { regions: Vec::new(), next: FIRST }
    }

    /// Adds a buffer with this content and returns its address, a multiple of 256. The same sequence of calls gives
    /// the same addresses.
    pub fn alloc(&mut self, name: &str, bytes: &[u8]) -> Result<u64, SimError> {
        let mut address = self.next.max(FIRST);
        // Buffers placed by hand may lie in the way.
        while let Some(r) =
            self.regions.iter().find(|r| r.base < address + bytes.len() as u64 + GAP && address < r.end() + GAP)
        {
            address = (r.end() + GAP).next_multiple_of(ALIGN);
        }
        self.place(name, address, bytes)?;
        self.next = (address + bytes.len() as u64 + GAP).next_multiple_of(GAP);
        Ok(address)
    }

    /// Adds a buffer at a fixed address.
    pub fn place(&mut self, name: &str, address: u64, bytes: &[u8]) -> Result<(), SimError> {
        let size = bytes.len() as u64;
        let clash =
            |other: &str| Err(SimError::Overlap { name: name.to_owned(), address, size, other: other.to_owned() });
        let Some(end) = address.checked_add(size).filter(|&e| e <= LIMIT) else {
            return clash("the end of the address space");
        };
        for (window, what) in [(SHARED_WINDOW, "the shared window"), (LOCAL_WINDOW, "the local window")] {
            if address < window + WINDOW && window < end {
                return clash(what);
            }
        }
        let at = self.regions.partition_point(|r| r.base <= address);
        if let Some(before) = at.checked_sub(1).map(|i| &self.regions[i])
            && before.end() > address
        {
            return clash(&before.name.clone());
        }
        if let Some(after) = self.regions.get(at)
            && end > after.base
        {
            return clash(&after.name.clone());
        }
        self.regions.insert(at, Region::new(name, address, bytes));
        Ok(())
    }

    /// Adds a kernel's module variables at the addresses it was linked to. Those that are there already keep their content.
    pub(crate) fn place_globals(&mut self, globals: &[GlobalVar]) -> Result<(), SimError> {
        for g in globals {
            if self.regions.iter().any(|r| (r.base, r.size, r.name.as_str()) == (g.address, g.size, g.name.as_str())) {
                continue;
            }
            if g.size > MAX_GLOBAL {
                return Err(SimError::BadKernel(format!("variable {} of {} bytes", g.name, g.size)));
            }
            let mut bytes = g.init.clone();
            bytes.resize(g.size as usize, 0);
            self.place(&g.name, g.address, &bytes)?;
        }
        Ok(())
    }

    /// Makes a launch's constant banks readable at the addresses its code has for them, in place of the last launch's.
    pub(crate) fn place_constants(&mut self, mapped: &[MappedBank], banks: &Banks) -> Result<(), SimError> {
        self.regions.retain(|r| !r.read_only);
        for m in mapped {
            self.place(&format!("constant bank {}", m.bank), m.address, banks.bank(m.bank))?;
            if let Some(r) = self.regions.iter_mut().find(|r| r.base == m.address) {
                r.read_only = true;
            }
        }
        Ok(())
    }

    /// Copies `len` bytes that lie in one buffer.
    pub fn read(&self, address: u64, len: u64) -> Option<Vec<u8>> {
        let r = &self.regions[self.find(address, len, 0).or_else(|| {
            // An empty buffer holds no address but can be read.
            (len == 0).then(|| self.regions.iter().position(|r| r.base == address)).flatten()
        })?];
        if address == r.start && len.is_multiple_of(4) {
            let words = &r.words[..(len / 4) as usize];
            return Some(words.iter().flat_map(|w| w.load(Ordering::Relaxed).to_le_bytes()).collect());
        }
        Some((address..address + len).map(|a| r.byte(a)).collect())
    }

    /// Name, address and size of each buffer, by address.
    pub fn buffers(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        self.regions.iter().map(|r| (r.name.as_str(), r.base, r.size))
    }

    /// Index of the buffer that holds all of `len` bytes at `address`. `hint` is tried first.
    #[inline]
    pub(crate) fn find(&self, address: u64, len: u64, hint: usize) -> Option<usize> {
        let fits = |r: &Region| address >= r.base && address - r.base < r.size && r.size - (address - r.base) >= len;
        if self.regions.get(hint).is_some_and(fits) {
            return Some(hint);
        }
        let i = self.regions.partition_point(|r| r.base <= address).checked_sub(1)?;
        fits(&self.regions[i]).then_some(i)
    }

    /// The buffer closest to an address that is in none.
    pub(crate) fn nearest(&self, address: u64) -> Option<Nearest> {
        let at = self.regions.partition_point(|r| r.base <= address);
        let near = |r: &Region| {
            let distance = if address < r.base {
                -i128::from(r.base - address)
            } else {
                i128::from(address) - i128::from(r.end())
            };
            Nearest { name: r.name.clone(), address: r.base, size: r.size, distance }
        };
        let before = at.checked_sub(1).map(|i| near(&self.regions[i]));
        let after = self.regions.get(at).map(near);
        match (before, after) {
            (Some(b), Some(a)) => Some(if b.distance <= -a.distance { b } else { a }),
            (b, a) => b.or(a),
        }
    }

    /// Content of all buffers, for [`restore`](GlobalMemory::restore).
    pub(crate) fn snapshot(&self) -> Vec<Vec<u32>> {
        self.regions.iter().map(|r| r.words.iter().map(|w| w.load(Ordering::Relaxed)).collect()).collect()
    }

    /// Puts back what [`snapshot`](GlobalMemory::snapshot) gave.
    pub(crate) fn restore(&self, content: &[Vec<u32>]) {
        for (r, c) in self.regions.iter().zip(content) {
            for (w, &x) in r.words.iter().zip(c) {
                w.store(x, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_found_with_exact_bounds() {
        let mut m = GlobalMemory::new();
        let a = m.alloc("a", &[1, 2, 3, 4, 5]).unwrap();
        let b = m.alloc("b", &[9; 300]).unwrap();
        assert_eq!((a % 256, b % 256), (0, 0));
        assert_eq!(m.read(a, 5), Some(vec![1, 2, 3, 4, 5]));
        assert_eq!(m.read(a + 1, 3), Some(vec![2, 3, 4]));
        assert_eq!(m.read(a, 6), None);
        assert_eq!(m.find(b + 296, 4, 0), Some(1));
        assert_eq!(m.find(b + 297, 4, 1), None);
        let n = m.nearest(a + 7).unwrap();
        assert_eq!((n.name.as_str(), n.distance), ("a", 2));
        assert_eq!(m.nearest(b - 8).unwrap().distance, -8);
    }

    #[test]
    fn overlaps_are_refused() {
        let mut m = GlobalMemory::new();
        m.place("g", 0x1001, &[7; 3]).unwrap();
        assert_eq!(m.read(0x1001, 3), Some(vec![7; 3]));
        assert!(m.place("h", 0x1003, &[0]).is_err());
        assert!(m.place("h", 0x1000, &[0; 2]).is_err());
        m.place("h", 0x1004, &[8]).unwrap();
        assert_eq!(m.read(0x1004, 1), Some(vec![8]));
        assert!(m.place("w", SHARED_WINDOW + 5, &[0]).is_err());
        assert!(m.place("w", u64::MAX, &[0]).is_err());
        m.place("empty", 0x2000, &[]).unwrap();
        assert_eq!(m.read(0x2000, 0), Some(vec![]));
    }
}
