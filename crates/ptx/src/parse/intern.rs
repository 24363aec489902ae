//! Names as small numbers, so that what they are bound to is a vector and not a map.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// A text of at most 16 bytes is its own key, so that finding one compares numbers; a longer one has a hash as its key
/// and is compared as text.
#[derive(Clone, Copy)]
struct Entry {
    low: u64,
    high: u64,
    len: u32,
    id: u32,
}

/// Numbers distinct texts from zero in their order of appearance. The hash is seeded: a hostile text cannot aim at it.
pub(super) struct Interner<'a> {
    table: HashTable<Entry>,
    hasher: DefaultHashBuilder,
    seeds: [u64; 2],
    names: Vec<&'a str>,
}

const LONGEST_KEY: usize = 16;

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

fn half(bytes: &[u8], at: usize) -> u64 {
    let half = bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes);
    u64::from(half)
}

impl<'a> Interner<'a> {
    /// With room for this many names.
    pub(super) fn with_capacity(names: usize) -> Self {
        let hasher = DefaultHashBuilder::default();
        let seeds = [hasher.hash_one(1u8), hasher.hash_one(2u8)];
        Interner { table: HashTable::with_capacity(names), hasher, seeds, names: Vec::with_capacity(names) }
    }

    fn key(&self, name: &str) -> Entry {
        let bytes = name.as_bytes();
        let len = bytes.len();
        // The two parts overlap where the text is shorter than both; the length tells such texts apart.
        let (low, high) = match len {
            8..=LONGEST_KEY => (word(bytes, 0), word(bytes, len - 8)),
            4..8 => (half(bytes, 0), half(bytes, len - 4)),
            0..4 => (bytes.iter().fold(0, |key, &byte| key << 8 | u64::from(byte)), 0),
            _ => (self.hasher.hash_one(bytes), 0),
        };
        Entry { low, high, len: len as u32, id: 0 }
    }

    fn get(&self, name: &str, key: Entry) -> Option<u32> {
        let same = |entry: &Entry| {
            entry.low == key.low
                && entry.high == key.high
                && entry.len == key.len
                && (name.len() <= LONGEST_KEY || self.names[entry.id as usize] == name)
        };
        self.table.find(hash(self.seeds, &key), same).map(|entry| entry.id)
    }

    /// The number of a text.
    pub(super) fn intern(&mut self, name: &'a str) -> u32 {
        let key = self.key(name);
        if let Some(id) = self.get(name, key) {
            return id;
        }
        let id = self.names.len() as u32;
        self.names.push(name);
        let seeds = self.seeds;
        self.table.insert_unique(hash(seeds, &key), Entry { id, ..key }, |entry| hash(seeds, entry));
        id
    }

    /// The number of a text that was seen before.
    pub(super) fn find(&self, name: &str) -> Option<u32> {
        self.get(name, self.key(name))
    }

    /// The text of a number.
    pub(super) fn name(&self, id: u32) -> &'a str {
        self.names[id as usize]
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }
}

/// Multiplies to 128 bits and folds, twice: every bit of the key reaches every bit of the hash.
fn hash([first, second]: [u64; 2], entry: &Entry) -> u64 {
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    };
    fold(fold(entry.low ^ first, entry.high ^ second) ^ u64::from(entry.len), second | 1)
}
