//! Byte-addressed memory made of 32-bit words, and the accesses of a warp to it.
//!
//! All kinds of memory are little-endian words, so that one set of loops serves them. Global memory is made of relaxed
//! atomics: blocks on several threads may race as they may on a GPU, without harm.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

use lanescope_ir::op::memory::Width;

use crate::rows::{LANES, Row};

/// Words of one memory as one lane sees them.
pub(crate) trait Words {
    /// A word.
    fn get(&self, lane: usize, word: usize) -> u32;
    /// Replaces a word.
    fn set(&self, lane: usize, word: usize, value: u32);
    /// Replaces the bits of `mask`.
    fn set_bits(&self, lane: usize, word: usize, mask: u32, value: u32);
}

impl Words for [AtomicU32] {
    #[inline(always)]
    fn get(&self, _: usize, word: usize) -> u32 {
        self[word].load(Ordering::Relaxed)
    }
    #[inline(always)]
    fn set(&self, _: usize, word: usize, value: u32) {
        self[word].store(value, Ordering::Relaxed);
    }
    #[inline]
    fn set_bits(&self, _: usize, word: usize, mask: u32, value: u32) {
        let w = &self[word];
        let mut old = w.load(Ordering::Relaxed);
        while let Err(now) =
            w.compare_exchange_weak(old, old & !mask | value & mask, Ordering::Relaxed, Ordering::Relaxed)
        {
            old = now;
        }
    }
}

impl Words for [Cell<u32>] {
    #[inline(always)]
    fn get(&self, _: usize, word: usize) -> u32 {
        self[word].get()
    }
    #[inline(always)]
    fn set(&self, _: usize, word: usize, value: u32) {
        self[word].set(value);
    }
    #[inline]
    fn set_bits(&self, _: usize, word: usize, mask: u32, value: u32) {
        self[word].set(self[word].get() & !mask | value & mask);
    }
}

/// Local memory of a warp: the words of its lanes lie side by side.
pub(crate) struct Interleaved<'a>(pub(crate) &'a [Cell<u32>]);

impl Words for Interleaved<'_> {
    #[inline(always)]
    fn get(&self, lane: usize, word: usize) -> u32 {
        self.0[word * LANES + lane].get()
    }
    #[inline(always)]
    fn set(&self, lane: usize, word: usize, value: u32) {
        self.0[word * LANES + lane].set(value);
    }
    #[inline]
    fn set_bits(&self, lane: usize, word: usize, mask: u32, value: u32) {
        let w = &self.0[word * LANES + lane];
        w.set(w.get() & !mask | value & mask);
    }
}

/// Where the lanes of a warp access one memory: byte offsets that are in bounds and aligned for every lane of the mask.
#[derive(Clone, Copy)]
pub(crate) struct Offsets<'a> {
    pub(crate) at: &'a [u64; LANES],
    pub(crate) mask: u32,
    pub(crate) pattern: Pattern,
}

/// How the offsets of a warp lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// Each lane's access follows that of the lane before (all lanes of the mask are neighbours).
    Consecutive,
    /// All lanes the same.
    Same,
    /// Any.
    Any,
}

/// Lanes of a mask, lowest first.
#[inline(always)]
pub(crate) fn lanes(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let l = mask.trailing_zeros() as usize;
        mask &= mask - 1;
        Some(l)
    })
}

/// Whether the lanes of a mask are neighbours.
pub(crate) fn is_run(mask: u32) -> bool {
    let low = mask & mask.wrapping_neg();
    mask != 0 && mask.wrapping_add(low) & mask == 0
}

fn sub_word(word: u32, at: u64, width: Width) -> u32 {
    let x = word >> (at % 4 * 8);
    match width {
        Width::U8 => x & 0xff,
        Width::S8 => x as u8 as i8 as u32,
        Width::U16 => x & 0xffff,
        Width::S16 => x as u16 as i16 as u32,
        _ => x,
    }
}

/// Loads `width` for each lane; lanes outside the mask of `out` keep what they have or get anything.
#[inline(always)]
pub(crate) fn load<W: Words + ?Sized>(memory: &W, o: Offsets<'_>, width: Width, out: &mut [Row; 8]) {
    let n = width.slots();
    let Some(first) = lanes(o.mask).next() else { return };
    let sub = width.bytes() < 4;
    match o.pattern {
        Pattern::Same => {
            let word = (o.at[first] / 4) as usize;
            for (i, row) in out.iter_mut().enumerate().take(n) {
                let x = memory.get(first, word + i);
                *row = Row::splat(if sub { sub_word(x, o.at[first], width) } else { x });
            }
        }
        Pattern::Consecutive if n == 1 && !sub && o.mask == u32::MAX => {
            let word = (o.at[0] / 4) as usize;
            for l in 0..LANES {
                out[0].0[l] = memory.get(l, word + l);
            }
        }
        _ => {
            for l in lanes(o.mask) {
                let word = (o.at[l] / 4) as usize;
                if sub {
                    out[0].0[l] = sub_word(memory.get(l, word), o.at[l], width);
                } else {
                    for (i, row) in out.iter_mut().enumerate().take(n) {
                        row.0[l] = memory.get(l, word + i);
                    }
                }
            }
        }
    }
}

/// Stores `width` for each lane of the mask, in ascending order.
#[inline(always)]
pub(crate) fn store<W: Words + ?Sized>(memory: &W, o: Offsets<'_>, width: Width, values: &[Row; 8]) {
    let n = width.slots();
    if o.pattern == Pattern::Consecutive && n == 1 && width.bytes() == 4 && o.mask == u32::MAX {
        let word = (o.at[0] / 4) as usize;
        for l in 0..LANES {
            memory.set(l, word + l, values[0].0[l]);
        }
        return;
    }
    for l in lanes(o.mask) {
        let word = (o.at[l] / 4) as usize;
        let shift = o.at[l] % 4 * 8;
        match width.bytes() {
            1 => memory.set_bits(l, word, 0xff << shift, values[0].0[l] << shift),
            2 => memory.set_bits(l, word, 0xffff << shift, values[0].0[l] << shift),
            _ => {
                for (i, row) in values.iter().enumerate().take(n) {
                    memory.set(l, word + i, row.0[l]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_lanes() {
        for m in [1, 3, 0xff00, u32::MAX, 1 << 31, 0xc000_0000] {
            assert!(is_run(m), "{m:#x}");
        }
        for m in [0, 5, 0x8000_0001, 0xff0f] {
            assert!(!is_run(m), "{m:#x}");
        }
    }

    #[test]
    fn bytes_and_halves_sign_extend() {
        let w: Vec<Cell<u32>> = [0x8182_7f01, 0x1234_ff80].map(Cell::new).to_vec();
        let mut at = [0; LANES];
        at[..4].copy_from_slice(&[0, 2, 3, 4]);
        let mut out = [Row::ZERO; 8];
        let o = Offsets { at: &at, mask: 0xf, pattern: Pattern::Any };
        load(w.as_slice(), o, Width::S8, &mut out);
        assert_eq!(out[0].0[..4], [1, 0xffff_ff82, 0xffff_ff81, 0xffff_ff80]);
        load(w.as_slice(), o, Width::U8, &mut out);
        assert_eq!(out[0].0[..4], [1, 0x82, 0x81, 0x80]);
        at[..2].copy_from_slice(&[2, 4]);
        let o = Offsets { at: &at, mask: 3, pattern: Pattern::Any };
        load(w.as_slice(), o, Width::S16, &mut out);
        assert_eq!(out[0].0[..2], [0xffff_8182, 0xffff_ff80]);
        let mut v = [Row::ZERO; 8];
        v[0].0[0] = 0xaabb;
        store(w.as_slice(), Offsets { mask: 1, ..o }, Width::U16, &v);
        assert_eq!(w[0].get(), 0xaabb_7f01);
    }
}
