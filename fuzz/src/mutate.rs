//! Damage that knows the formats: bytes and numbers anywhere, and fields of the tables that everything hangs on.

/// A small, fast, seedable generator (xorshift64*).
pub struct Rng(u64);

impl Rng {
    /// Any seed will do.
    pub fn new(seed: u64) -> Self {
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// 64 random bits.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `n`; 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        if n == 0 { 0 } else { (self.next() >> 16) as usize % n }
    }
}

const NUMBERS: [u64; 16] = [
    0,
    1,
    2,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1_000_000_000,
    i64::MAX as u64,
    u64::MAX,
];
const WORDS: [&str; 18] = [
    "[[arg]]",
    "grid = ",
    "block",
    "npy",
    "zeros",
    "random",
    "dtype",
    "\"f32\"",
    "{",
    "}",
    "[",
    "]",
    "=",
    "\n",
    "-1",
    "1e999",
    "\"",
    "18446744073709551616",
];
/// Inputs do not grow beyond this.
const MAX_LEN: usize = 1 << 18;

/// Writes a damaged copy of one seed (spliced with another at times) to `out`.
pub fn mutate(seeds: &[Vec<u8>], rng: &mut Rng, text: bool, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&seeds[rng.below(seeds.len())]);
    let rounds = 1 + rng.below(6) * rng.below(2);
    for _ in 0..rounds {
        if out.is_empty() {
            return;
        }
        match rng.below(if text { 9 } else { 12 }) {
            0 => {
                let at = rng.below(out.len());
                out[at] ^= 1 << rng.below(8);
            }
            1 => {
                let at = rng.below(out.len());
                out[at] = rng.next() as u8;
            }
            2 | 3 if text => {
                let at = rng.below(out.len());
                let word = WORDS[rng.below(WORDS.len())];
                out.splice(at..at, word.bytes());
            }
            2 | 3 => {
                let at = rng.below(out.len());
                number(out, at, rng);
            }
            4 => {
                let at = rng.below(out.len());
                out.truncate(at);
            }
            5 => {
                let (at, len) = (rng.below(out.len()), rng.below(64));
                out.drain(at..(at + len).min(out.len()));
            }
            6 => {
                let (from, len) = (rng.below(out.len()), 1 + rng.below(64));
                let piece = out[from..(from + len).min(out.len())].to_vec();
                let at = rng.below(out.len());
                out.splice(at..at, piece);
            }
            7 => {
                let (from, to, len) = (rng.below(out.len()), rng.below(out.len()), 1 + rng.below(64));
                let len = len.min(out.len() - from).min(out.len() - to);
                out.copy_within(from..from + len, to);
            }
            8 => {
                let other = &seeds[rng.below(seeds.len())];
                let at = rng.below(out.len().min(other.len()));
                out.truncate(at);
                out.extend_from_slice(&other[at..]);
            }
            _ => structure(out, rng),
        }
        out.truncate(MAX_LEN);
    }
}

fn number(out: &mut [u8], at: usize, rng: &mut Rng) {
    let width = [1, 2, 4, 8][rng.below(4)];
    let base = match rng.below(3) {
        0 => out.len() as u64,
        1 => read(out, at, width),
        _ => 0,
    };
    let value = match rng.below(3) {
        0 => NUMBERS[rng.below(NUMBERS.len())],
        1 => base.wrapping_add(rng.below(33) as u64).wrapping_sub(16),
        _ => rng.next(),
    };
    for (byte, new) in out[at..].iter_mut().zip(value.to_le_bytes()).take(width) {
        *byte = new;
    }
}

fn read(bytes: &[u8], at: usize, width: usize) -> u64 {
    let mut word = [0; 8];
    let tail = bytes.get(at..).unwrap_or(&[]);
    let n = tail.len().min(width);
    word[..n].copy_from_slice(&tail[..n]);
    u64::from_le_bytes(word)
}

/// Changes a field of an ELF header, a section header, a whole small section, or of a fatbin.
fn structure(out: &mut [u8], rng: &mut Rng) {
    if !out.starts_with(b"\x7fELF") {
        let at = rng.below(out.len().min(208));
        return number(out, at, rng);
    }
    let table = read(out, 0x28, 8) as usize;
    let sections = read(out, 0x3c, 2) as usize;
    let header = table.saturating_add(64 * rng.below(sections));
    let at = match rng.below(4) {
        0 => rng.below(64),
        1 => header.saturating_add(rng.below(64)),
        _ => {
            // Inside a section, so that small but important ones are hit as often as large ones.
            let (offset, size) =
                (read(out, header.saturating_add(24), 8) as usize, read(out, header.saturating_add(32), 8) as usize);
            offset.saturating_add(rng.below(size))
        }
    };
    if at < out.len() {
        number(out, at, rng);
    }
}
