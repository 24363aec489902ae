//! Words of the text, eight bytes at a time.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x80 * ONES;

const fn all(byte: u8) -> u64 {
    byte as u64 * ONES
}

/// Sets the high bit of each byte that cannot be part of a name: that is no letter, digit, `_` or `$`.
#[inline]
fn outside(bytes: u64) -> u64 {
    let ascii = bytes & !HIGH;
    // Adding to seven bits what a limit lacks to 128 sets the eighth from the limit on, and carries nothing on.
    let lower = ascii | all(0x20);
    let letter = (lower + all(0x80 - b'a')) & !(lower + all(0x7f - b'z'));
    let digit = (ascii + all(0x80 - b'0')) & !(ascii + all(0x7f - b'9'));
    let no_sign = ((ascii ^ all(b'_')) + all(0x7f)) & ((ascii ^ all(b'$')) + all(0x7f));
    (bytes | (!(letter | digit) & no_sign)) & HIGH
}

/// The same for opcodes with their modifiers, which have dots.
#[inline]
fn outside_opcode(bytes: u64) -> u64 {
    let no_dot = ((bytes & !HIGH) ^ all(b'.')) + all(0x7f);
    outside(bytes) & (no_dot | bytes)
}

/// The first byte from a place on that cannot be part of a name.
#[inline]
pub(super) fn end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(chunk) = eight(bytes, at) {
        let stop = outside(chunk);
        if stop != 0 {
            return at + stop.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while let Some(&byte) = bytes.get(at)
        && outside(byte.into()) & 0x80 == 0
    {
        at += 1;
    }
    at
}

#[inline]
fn eight(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|chunk| u64::from_le_bytes(*chunk))
}

#[inline]
fn four(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |chunk| u32::from_le_bytes(*chunk).into())
}

/// What makes hashes of this run; the second is odd.
#[derive(Clone, Copy)]
pub(super) struct Seeds(pub(super) u64, pub(super) u64);

/// What a text is looked up by: the text itself where it has at most 16 bytes, else its first eight and a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    /// The first eight bytes.
    pub(super) low: u64,
    high: u64,
    pub(super) len: u32,
}

impl Key {
    /// Of any text. The seeds are for what becomes a hash.
    pub(super) fn of(text: &[u8], seeds: Seeds) -> Key {
        let len = text.len();
        let (low, high) = match len {
            0..4 => (text.iter().rev().fold(0, |key, &byte| key << 8 | u64::from(byte)), 0),
            // The two parts overlap in equal bytes.
            4..8 => (four(text, 0) | four(text, len - 4) << (8 * (len - 4)), 0),
            8 => (eight(text, 0).unwrap_or(0), 0),
            9..=16 => (eight(text, 0).unwrap_or(0), eight(text, len - 8).unwrap_or(0) >> (8 * (16 - len))),
            _ => {
                let (chunks, rest) = text.as_chunks::<8>();
                let words = chunks.iter().map(|chunk| u64::from_le_bytes(*chunk));
                let last = Key::of(rest, seeds).low;
                let hash = words.chain([last]).fold(seeds.0, |hash, word| fold(hash ^ word, seeds.1));
                (eight(text, 0).unwrap_or(0), hash)
            }
        };
        Key { low, high, len: len as u32 }
    }

    /// Of the name that begins at a place, whose first byte can be anything, and where it ends.
    #[inline]
    pub(super) fn name(bytes: &[u8], at: usize, seeds: Seeds) -> (Key, usize) {
        Key::scan(bytes, at, seeds, outside)
    }

    /// Of the opcode with its modifiers that begins at a place, and where it ends.
    #[inline]
    pub(super) fn opcode(bytes: &[u8], at: usize, seeds: Seeds) -> (Key, usize) {
        Key::scan(bytes, at, seeds, outside_opcode)
    }

    #[inline]
    fn scan(bytes: &[u8], at: usize, seeds: Seeds, outside: impl Fn(u64) -> u64) -> (Key, usize) {
        let Some(low) = eight(bytes, at) else { return Key::long(bytes, at, seeds, outside) };
        // The first byte is taken.
        let end = outside(low) & !0x80;
        if end != 0 {
            let len = end.trailing_zeros() / 8;
            return (Key { low: low & !(u64::MAX << (8 * len)), high: 0, len }, at + len as usize);
        }
        let Some(high) = eight(bytes, at + 8) else { return Key::long(bytes, at, seeds, outside) };
        let end = outside(high);
        if end != 0 {
            let len = end.trailing_zeros() / 8;
            return (Key { low, high: high & !(u64::MAX << (8 * len)), len: 8 + len }, at + 8 + len as usize);
        }
        Key::long(bytes, at, seeds, outside)
    }

    /// Texts longer than 16 bytes and those at the very end.
    #[inline(never)]
    fn long(bytes: &[u8], at: usize, seeds: Seeds, outside: impl Fn(u64) -> u64) -> (Key, usize) {
        let mut end = at + 1;
        while let Some(chunk) = eight(bytes, end) {
            let stop = outside(chunk);
            if stop != 0 {
                end += stop.trailing_zeros() as usize / 8;
                return (Key::of(&bytes[at..end], seeds), end);
            }
            end += 8;
        }
        while let Some(&byte) = bytes.get(end)
            && outside(byte.into()) & 0x80 == 0
        {
            end += 1;
        }
        (Key::of(bytes.get(at..end).unwrap_or(&[]), seeds), end)
    }

    /// A hash that cannot be foreseen without the seeds.
    #[inline]
    pub(super) fn hash(&self, seeds: Seeds) -> u64 {
        fold(self.low ^ seeds.0, self.high ^ seeds.1)
    }
}

/// Multiplies to 128 bits and folds: every bit reaches every bit.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEDS: Seeds = Seeds(0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3211);

    /// Whatever follows a name and however long it is, its key is that of its text.
    #[test]
    fn keys() {
        let letters = b"%aZ09_$mQ7zA5xy_B1cd3$eFgHiJ8kLmNo";
        for len in 1..=letters.len() {
            for rest in
                ["", ";", ",b", " b c d e f g h i j k", ".b.c", "\u{e9}abcdefghijklmnop", "\0\u{7f}aaaaaaaaaaaaaaaaa"]
            {
                let mut text = letters[..len].to_vec();
                text.extend(rest.bytes());
                assert_eq!(Key::name(&text, 0, SEEDS), (Key::of(&letters[..len], SEEDS), len), "{text:?}");
                assert_eq!(end(&text, 1), len.max(1), "{text:?}");
                let (key, end) = Key::opcode(&text, 0, SEEDS);
                assert_eq!(end, if rest == ".b.c" { text.len() } else { len });
                assert_eq!(key, Key::of(&text[..end], SEEDS));
            }
        }
    }

    /// Each byte alone and among letters.
    #[test]
    fn bytes() {
        for byte in 0..=255u8 {
            let word = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
            for at in 0..8 {
                let mut text = *b"aaaaaaaa";
                text[at] = byte;
                let first = (outside(u64::from_le_bytes(text)) >> (8 * at)) & 0xff;
                assert_eq!(first == 0, word, "{byte}");
                let rest = outside(u64::from_le_bytes(text)) & !(0xff << (8 * at));
                assert_eq!(rest, 0, "{byte}");
                let dotted = (outside_opcode(u64::from_le_bytes(text)) >> (8 * at)) & 0xff;
                assert_eq!(dotted == 0, word || byte == b'.', "{byte}");
            }
        }
    }
}
