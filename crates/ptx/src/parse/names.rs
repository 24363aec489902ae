//! The names of a text and what they are bound to.

use super::intern::Interner;
use super::word::Key;
use crate::special::Special;
use crate::tree::{RegisterId, Target};

/// What a name is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    Nothing,
    Special(Special),
    /// A register that is declared and was not used yet.
    Declared(u32),
    Register(RegisterId),
    Target(Target),
}

/// A binding and the depth of the block that it belongs to; the module has depth 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Binding {
    pub(super) bound: Bound,
    pub(super) depth: u32,
    /// The number of nested ranges that had been declared when the binding was last looked at.
    pub(super) generation: u32,
}

pub(super) const UNBOUND: Binding = Binding { bound: Bound::Nothing, depth: 0, generation: 0 };
pub(super) const NONE: u32 = u32::MAX;

/// A name as a prefix and a number behind it, as far as that is known.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Parts {
    /// Not looked at, or nothing has the prefix for its name yet.
    Unknown,
    /// No digits at the end.
    Whole,
    /// A zero before its digits, or more of them than 32 bits hold.
    Odd,
    /// `%r12`: the name `%r`, and 12.
    Numbered(u32, u32),
}

pub(super) struct Name {
    pub(super) binding: Binding,
    parts: Parts,
    /// The innermost range with this prefix.
    pub(super) range: u32,
    /// The last use that waits for a label.
    pub(super) waiting: u32,
}

/// All names of the text and what they are bound to now.
pub(super) struct Names<'a> {
    pub(super) interner: Interner<'a>,
    pub(super) names: Vec<Name>,
}

impl<'a> Names<'a> {
    /// With room for this many names.
    pub(super) fn with_capacity(names: usize) -> Self {
        Names { interner: Interner::with_capacity(names), names: Vec::with_capacity(names) }
    }

    /// The number of a name.
    pub(super) fn id(&mut self, name: &'a str) -> u32 {
        let key = Key::of(name.as_bytes(), self.interner.seeds);
        self.id_of(key, || name)
    }

    /// The number of the name that begins at a place, and where the name ends. Its first byte is taken for a part of it.
    #[inline]
    pub(super) fn id_at(&mut self, source: &'a str, at: usize) -> (u32, usize) {
        let (key, end) = Key::name(source.as_bytes(), at, self.interner.seeds);
        (self.id_of(key, || source.get(at..end).unwrap_or("")), end)
    }

    #[inline]
    fn id_of(&mut self, key: Key, text: impl Fn() -> &'a str) -> u32 {
        let id = self.interner.intern(key, text);
        if id as usize == self.names.len() {
            self.names.push(Name { binding: UNBOUND, parts: Parts::Unknown, range: NONE, waiting: NONE });
        }
        id
    }

    #[inline]
    pub(super) fn binding(&self, name: u32) -> Binding {
        self.names[name as usize].binding
    }

    /// Binds a name of the module.
    pub(super) fn bind_global(&mut self, name: u32, bound: Bound) {
        self.names[name as usize].binding = Binding { bound, depth: 0, generation: 0 };
    }

    pub(super) fn parts(&mut self, name: u32) -> Parts {
        let known = self.names[name as usize].parts;
        if known != Parts::Unknown {
            return known;
        }
        let text = self.interner.name(name);
        let digits = text.bytes().rev().take_while(u8::is_ascii_digit).count();
        let (prefix, number) = text.split_at(text.len() - digits);
        let parts = if digits == 0 {
            Parts::Whole
        } else if digits > 9 || (digits > 1 && number.starts_with('0')) {
            Parts::Odd
        } else {
            let number = number.bytes().fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
            self.interner.find(prefix).map_or(Parts::Unknown, |prefix| Parts::Numbered(prefix, number))
        };
        self.names[name as usize].parts = parts;
        parts
    }
}
