//! Names as small numbers, so that what they are bound to is a vector and not a map.

use std::hash::BuildHasher;

use hashbrown::DefaultHashBuilder;

use super::word::{Key, Seeds};

/// A place of the table: the upper half of a hash, never zero, and the number of a name. All zero where it is free.
#[derive(Clone, Copy, Default)]
struct Place {
    tag: u32,
    id: u32,
}

struct Entry<'a> {
    /// The first eight bytes.
    low: u64,
    name: &'a str,
}

impl Entry<'_> {
    #[inline]
    fn is<'t>(&self, key: &Key, text: impl Fn() -> &'t str) -> bool {
        self.low == key.low && self.name.len() == key.len as usize && (key.len <= 8 || self.name == text())
    }
}

/// Numbers distinct texts from zero in their order of appearance. The hash is seeded: a hostile text cannot aim at it.
pub(super) struct Interner<'a> {
    /// Open addressing; the length is a power of two, and at most half of it is taken.
    places: Vec<Place>,
    entries: Vec<Entry<'a>>,
    pub(super) seeds: Seeds,
}

impl<'a> Interner<'a> {
    /// With room for this many names.
    pub(super) fn with_capacity(names: usize) -> Self {
        let hasher = DefaultHashBuilder::default();
        let seeds = Seeds(hasher.hash_one(1u8), hasher.hash_one(2u8) | 1);
        let places = vec![Place::default(); (2 * names).next_power_of_two().max(2)];
        Interner { places, entries: Vec::with_capacity(names), seeds }
    }

    /// The number of a text, or the place for it and its tag.
    #[inline]
    fn search<'t>(&self, key: &Key, text: impl Fn() -> &'t str) -> Result<u32, (usize, u32)> {
        let hash = key.hash(self.seeds);
        let tag = (hash >> 32) as u32 | 1;
        let mask = self.places.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let place = self.places[at];
            if place.tag == tag {
                let entry = &self.entries[place.id as usize];
                if entry.is(key, &text) {
                    return Ok(place.id);
                }
            } else if place.tag == 0 {
                return Err((at, tag));
            }
            at = (at + 1) & mask;
        }
    }

    /// The number of a part of the source that was seen before.
    #[inline]
    pub(super) fn known(&self, key: &Key, source: &'a str, at: usize, end: usize) -> Option<u32> {
        self.search(key, || source.get(at..end).unwrap_or("")).ok()
    }

    /// The number of a text whose key is known.
    #[inline]
    pub(super) fn intern(&mut self, key: Key, text: impl Fn() -> &'a str) -> u32 {
        match self.search(&key, &text) {
            Ok(id) => id,
            Err((at, tag)) => self.add(key, text(), at, tag),
        }
    }

    #[inline(never)]
    fn add(&mut self, key: Key, name: &'a str, at: usize, tag: u32) -> u32 {
        let id = self.entries.len() as u32;
        self.entries.push(Entry { low: key.low, name });
        self.places[at] = Place { tag, id };
        if 2 * self.entries.len() > self.places.len() {
            self.grow();
        }
        id
    }

    fn grow(&mut self) {
        let mask = 2 * self.places.len() - 1;
        self.places = vec![Place::default(); mask + 1];
        for (id, entry) in self.entries.iter().enumerate() {
            let hash = Key::of(entry.name.as_bytes(), self.seeds).hash(self.seeds);
            let mut at = hash as usize & mask;
            while self.places[at].tag != 0 {
                at = (at + 1) & mask;
            }
            self.places[at] = Place { tag: (hash >> 32) as u32 | 1, id: id as u32 };
        }
    }

    /// The number of a text that was seen before.
    pub(super) fn find(&self, name: &str) -> Option<u32> {
        self.search(&Key::of(name.as_bytes(), self.seeds), || name).ok()
    }

    /// The text of a number.
    pub(super) fn name(&self, id: u32) -> &'a str {
        self.entries[id as usize].name
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}
