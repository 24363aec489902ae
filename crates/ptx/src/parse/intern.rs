//! Names as small numbers, so that what they are bound to is a vector and not a map.

use std::hash::{BuildHasher, Hasher};

use hashbrown::{DefaultHashBuilder, HashTable};

/// Numbers distinct texts from zero in their order of appearance. The hash is seeded: a hostile text cannot aim at it.
#[derive(Default)]
pub(super) struct Interner<'a> {
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
    names: Vec<&'a str>,
}

fn hash(hasher: &DefaultHashBuilder, name: &str) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write(name.as_bytes());
    hasher.finish()
}

impl<'a> Interner<'a> {
    /// With room for this many names.
    pub(super) fn with_capacity(names: usize) -> Self {
        Interner { table: HashTable::with_capacity(names), names: Vec::with_capacity(names), ..Interner::default() }
    }

    /// The number of a text.
    pub(super) fn intern(&mut self, name: &'a str) -> u32 {
        let found = hash(&self.hasher, name);
        if let Some(&id) = self.table.find(found, |&id| self.names[id as usize] == name) {
            return id;
        }
        let id = self.names.len() as u32;
        self.names.push(name);
        let (names, hasher) = (&self.names, &self.hasher);
        self.table.insert_unique(found, id, |&id| hash(hasher, names[id as usize]));
        id
    }

    /// The number of a text that was seen before.
    pub(super) fn find(&self, name: &str) -> Option<u32> {
        let found = hash(&self.hasher, name);
        self.table.find(found, |&id| self.names[id as usize] == name).copied()
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
