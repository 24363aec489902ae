//! How much memory traffic an instruction makes: sectors of global memory, passes of shared memory.
//!
//! Shared memory has 32 banks of 4 bytes; a pass (Nsight: a wavefront) gives one word of each bank, to any number of
//! lanes. What is published about it, and what is not:
//!
//! - Accesses of up to 4 bytes: all lanes of the warp go together. Lanes that access bytes of one word do not conflict,
//!   for loads and stores alike (CUDA programming guide, compute capability 5.x and later).
//! - Accesses of 8 bytes go by half warps, of 16 bytes by quarters (the guide up to compute capability 3.x, NVIDIA's
//!   answers about later machines). A half or quarter without lanes takes nothing: an assumption.
//! - A load of 8 or 16 bytes takes half as many passes if in all active pairs of lanes n and n ^ 1 both have the same
//!   address, or in all pairs of n and n ^ 2. NVIDIA has said so of compute capability 7.0 to 7.5; that later machines do
//!   the same is an assumption.
//! - `ldmatrix` and `stmatrix` go by tiles: eight rows of 16 bytes at a time.
//! - Atomics: each lane needs a pass of its own for its word, unless the instruction adds up equal addresses itself
//!   (`ATOMS.POPC.INC`): an assumption, in line with how contended shared atomics slow down.
//!
//! Without a conflict each group of lanes takes one pass; that is the ideal.

use super::mem::Addresses;
use crate::memory::words::{Pattern, lanes};
use crate::rows::LANES;

const BANKS: u64 = 32;

/// Traffic of one instruction, summed over issues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) sectors: u64,
    pub(crate) sectors_ideal: u64,
    pub(crate) wavefronts: u64,
    pub(crate) wavefronts_ideal: u64,
}

/// How shared memory is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Load,
    Store,
    /// Lanes with one address take turns.
    Atomic,
    /// Rows of matrix tiles.
    Matrix,
}

impl Traffic {
    pub(crate) fn add(&mut self, o: &Traffic) {
        self.sectors += o.sectors;
        self.sectors_ideal += o.sectors_ideal;
        self.wavefronts += o.wavefronts;
        self.wavefronts_ideal += o.wavefronts_ideal;
    }

    /// Neighbouring lanes access shared memory one behind the other, in words or more.
    #[inline]
    pub(crate) fn shared_run(&mut self, mask: u32, bytes: u32, how: Use) {
        let mut size = group(bytes);
        if size < LANES as u32 && how == Use::Load {
            // No two lanes have the same address, but there may be no pair.
            let none = |apart: u32, firsts: u32| mask & mask >> apart & firsts == 0;
            size *= 1 + u32::from(none(1, 0x5555_5555) || none(2, 0x3333_3333));
        }
        let n = u64::from(groups(mask, size));
        self.wavefronts += n;
        self.wavefronts_ideal += n;
    }

    /// The lanes of `mask` access shared memory at aligned addresses.
    pub(crate) fn shared(&mut self, mask: u32, at: &Addresses, bytes: u32, pattern: Pattern, how: Use) {
        if pattern == Pattern::Consecutive && how != Use::Atomic {
            // Of accesses below a word several may share one; there is a single group then.
            return self.shared_run(mask, bytes, how);
        }
        let mut size = group(bytes);
        if size < LANES as u32 && how == Use::Load && (pattern == Pattern::Same || paired(mask, at)) {
            size *= 2;
        }
        if pattern == Pattern::Same && how != Use::Atomic {
            let n = u64::from(groups(mask, size));
            self.wavefronts += n;
            self.wavefronts_ideal += n;
            return;
        }
        let all = u32::MAX >> (LANES as u32 - size);
        for first in (0..LANES as u32).step_by(size as usize) {
            let lanes = mask & all << first;
            if lanes != 0 {
                self.wavefronts_ideal += 1;
                self.wavefronts += if how == Use::Atomic { turns(lanes, at, bytes) } else { passes(lanes, at, bytes) };
            }
        }
    }
}

/// Lanes that are served together.
fn group(bytes: u32) -> u32 {
    match bytes {
        0..=4 => 32,
        5..=8 => 16,
        9..=16 => 8,
        _ => 4,
    }
}

/// Groups of `size` lanes that have lanes.
fn groups(mask: u32, size: u32) -> u32 {
    let mut any = mask;
    let mut width = 1;
    // The first lane of each group that has one.
    let mut firsts = u32::MAX;
    while width < size {
        any |= any >> width;
        width *= 2;
        firsts = match width {
            2 => 0x5555_5555,
            4 => 0x1111_1111,
            8 => 0x0101_0101,
            16 => 0x0001_0001,
            _ => 1,
        };
    }
    (any & firsts).count_ones()
}

/// Whether all pairs of lanes n and n ^ 1, or all pairs n and n ^ 2, have one address each.
fn paired(mask: u32, at: &Addresses) -> bool {
    let same = |apart: u32, firsts: u32| {
        lanes(mask & mask >> apart & firsts).all(|l| at[l] == at[(l + apart as usize) % LANES])
    };
    same(1, 0x5555_5555) || same(2, 0x3333_3333)
}

/// What a lane accesses, as a number, and the banks in which it lies: aligned accesses of one width either coincide, lie in
/// other banks, or are in each other's way in all of theirs.
fn place(address: u64, bytes: u32) -> (u64, usize) {
    let item = address / u64::from(bytes.max(4));
    (item, (item % (4 * BANKS / u64::from(bytes.max(4)))) as usize)
}

/// Passes in each of which every bank gives one word.
fn passes(mask: u32, at: &Addresses, bytes: u32) -> u64 {
    let mut left = mask;
    let mut n = 0;
    while left != 0 {
        let (mut taken, mut items) = (0u32, [0u64; BANKS as usize]);
        let mut next = 0;
        for l in lanes(left) {
            let (item, bank) = place(at[l], bytes);
            if taken >> bank & 1 == 0 {
                taken |= 1 << bank;
                items[bank] = item;
            } else if items[bank] != item {
                next |= 1 << l;
            }
        }
        left = next;
        n += 1;
    }
    n
}

/// Passes if each of them serves one lane of a bank.
fn turns(mask: u32, at: &Addresses, bytes: u32) -> u64 {
    let mut count = [0u64; BANKS as usize];
    for l in lanes(mask) {
        count[place(at[l], bytes).1] += 1;
    }
    count.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    /// The rules once more, word by word.
    fn naive(mask: u32, at: &Addresses, bytes: u32, how: Use) -> [u64; 2] {
        let on = |l: usize| mask >> l & 1 != 0;
        let mut size = if bytes <= 4 { 32 } else { (128 / bytes) as usize };
        let pairs = |x: usize| (0..32).filter(|&l| on(l) && on(l ^ x)).all(|l| at[l] == at[l ^ x]);
        if how == Use::Load && bytes > 4 && (pairs(1) || pairs(2)) {
            size *= 2;
        }
        let mut out = [0, 0];
        for first in (0..32).step_by(size) {
            let mut banks: BTreeMap<u64, BTreeSet<(u64, usize)>> = BTreeMap::new();
            for l in (first..first + size).filter(|&l| on(l)) {
                for byte in at[l]..at[l] + u64::from(bytes) {
                    let turn = if how == Use::Atomic { l } else { 0 };
                    banks.entry(byte / 4 % 32).or_default().insert((byte / 4, turn));
                }
            }
            out[0] += banks.values().map(|words| words.len() as u64).max().unwrap_or(0);
            out[1] += u64::from(!banks.is_empty());
        }
        out
    }

    fn pattern(mask: u32, at: &Addresses, bytes: u32) -> Pattern {
        super::super::mem::pattern(at, mask, bytes)
    }

    fn check(mask: u32, at: &Addresses, bytes: u32, how: Use) -> [u64; 2] {
        let mut t = Traffic::default();
        t.shared(mask, at, bytes, pattern(mask, at, bytes), how);
        let got = [t.wavefronts, t.wavefronts_ideal];
        assert_eq!(got, naive(mask, at, bytes, how), "{mask:#x} {bytes} {how:?} {at:?}");
        let mut general = Traffic::default();
        general.shared(mask, at, bytes, Pattern::Any, how);
        assert_eq!([general.wavefronts, general.wavefronts_ideal], got, "{mask:#x} {bytes} {how:?} {at:?}");
        got
    }

    fn stride(bytes: u64) -> Addresses {
        std::array::from_fn(|l| l as u64 * bytes)
    }

    #[test]
    fn textbook_cases() {
        let all = u32::MAX;
        for how in [Use::Load, Use::Store] {
            assert_eq!(check(all, &stride(4), 4, how), [1, 1]);
            assert_eq!(check(all, &stride(8), 4, how), [2, 1]);
            assert_eq!(check(all, &stride(12), 4, how), [1, 1]);
            assert_eq!(check(all, &stride(128), 4, how), [32, 1]);
            assert_eq!(check(all, &stride(132), 4, how), [1, 1]);
            assert_eq!(check(all, &stride(0), 4, how), [1, 1]);
            assert_eq!(check(all, &stride(1), 1, how), [1, 1]);
            assert_eq!(check(all, &stride(8), 8, how), [2, 2]);
            assert_eq!(check(all, &stride(16), 16, how), [4, 4]);
            assert_eq!(check(all, &stride(32), 16, how), [8, 4]);
            assert_eq!(check(0, &stride(4), 4, how), [0, 0]);
        }
        assert_eq!(check(all, &stride(0), 16, Use::Load), [2, 2]);
        assert_eq!(check(all, &stride(0), 16, Use::Store), [4, 4]);
        assert_eq!(check(all, &stride(0), 8, Use::Load), [1, 1]);
        assert_eq!(check(all, &std::array::from_fn(|l| l as u64 / 2 * 8), 8, Use::Load), [1, 1]);
        assert_eq!(check(all, &stride(4), 4, Use::Atomic), [1, 1]);
        assert_eq!(check(all, &stride(0), 4, Use::Atomic), [32, 1]);
        assert_eq!(check(all, &stride(144), 16, Use::Matrix), [4, 4]);
        assert_eq!(check(all, &stride(128), 16, Use::Matrix), [32, 4]);
    }

    #[test]
    fn as_the_naive_rules_say() {
        arbtest::arbtest(|u| {
            let bytes = *u.choose(&[1u32, 2, 4, 8, 16])?;
            let how = *u.choose(&[Use::Load, Use::Store, Use::Atomic, Use::Matrix])?;
            let random = u.arbitrary()?;
            let mask: u32 = *u.choose(&[u32::MAX, 0xffff, 0x00ff_ff00, random, 1 << 7, 3 << 15])?;
            let range = *u.choose(&[2u64, 8, 40, 2000])?;
            let step = u.int_in_range(0..=40)?;
            let kind = u.int_in_range(0..=3)?;
            let mut at = [0; LANES];
            let base = u.int_in_range(0..=100)?;
            for (l, at) in at.iter_mut().enumerate() {
                let item = match kind {
                    0 => u.int_in_range(0..=range)?,
                    1 => base + step * l as u64,
                    2 => base + step * (l as u64 / 2),
                    _ => base + step * (l as u64 & !2),
                };
                *at = item * u64::from(bytes);
            }
            check(mask, &at, bytes, how);
            Ok(())
        });
    }
}
