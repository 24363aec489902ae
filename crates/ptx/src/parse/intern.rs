//! Names as small numbers, so that what they are bound to is a vector and not a map.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// Numbers distinct texts from zero in their order of appearance. The hash is seeded: a hostile text cannot aim at it.
#[derive(Default)]
pub(super) struct Interner<'a> {
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
    names: Vec<&'a str>,
}

impl<'a> Interner<'a> {
    /// The number of a text.
    pub(super) fn intern(&mut self, name: &'a str) -> u32 {
        let hash = self.hasher.hash_one(name.as_bytes());
        if let Some(&id) = self.table.find(hash, |&id| self.names[id as usize] == name) {
            return id;
        }
        let id = self.names.len() as u32;
        self.names.push(name);
        let (names, hasher) = (&self.names, &self.hasher);
        self.table.insert_unique(hash, id, |&id| hasher.hash_one(names[id as usize].as_bytes()));
        id
    }

    /// The number of a text that was seen before.
    pub(super) fn find(&self, name: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(name.as_bytes());
        self.table.find(hash, |&id| self.names[id as usize] == name).copied()
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
