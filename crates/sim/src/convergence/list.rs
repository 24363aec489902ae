//! A short list in place. A warp has at most one entry for each lane, so 64 always suffice.

use std::ops::{Deref, DerefMut};

const CAPACITY: usize = 64;

/// Up to 64 values, never on the heap.
#[derive(Clone)]
pub(super) struct List<T> {
    items: [T; CAPACITY],
    len: usize,
}

impl<T: Copy> List<T> {
    pub(super) fn new(filler: T) -> Self {
        List { items: [filler; CAPACITY], len: 0 }
    }

    /// Appends. Entries hold disjoint non-empty sets of lanes, so the list cannot overflow; if it did, the entry would be
    /// lost rather than memory corrupted, and the debug assertion says so.
    pub(super) fn push(&mut self, item: T) {
        debug_assert!(self.len < CAPACITY);
        if let Some(slot) = self.items.get_mut(self.len) {
            *slot = item;
            self.len += 1;
        }
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        let last = self.len.checked_sub(1)?;
        self.len = last;
        self.items.get(last).copied()
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&mut T) -> bool) {
        let mut kept = 0;
        for i in 0..self.len {
            let mut item = self.items[i];
            if keep(&mut item) {
                self.items[kept] = item;
                kept += 1;
            }
        }
        self.len = kept;
    }
}

impl<T> Deref for List<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        &self.items[..self.len]
    }
}

impl<T> DerefMut for List<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items[..self.len]
    }
}
