//! Random numbers, and the input of a program.

use super::WORDS;

/// Random numbers: splitmix64.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        (self.next() >> 11) as usize % n
    }

    pub(super) fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    /// An integer as programs have them: small, at an edge, or any.
    pub(super) fn word(&mut self) -> u32 {
        match self.below(6) {
            0 | 1 => self.below(16) as u32,
            2 => (self.below(16) as u32).wrapping_neg(),
            3 => 1 << self.below(32),
            4 => [i32::MAX as u32, i32::MIN as u32, 0xffff, 0xff80, 0x7fff_0001][self.below(5)],
            _ => self.next() as u32,
        }
    }

    fn float(&mut self) -> u32 {
        match self.below(12) {
            0 => 0,
            1 => (-0.0f32).to_bits(),
            2 => f32::INFINITY.to_bits(),
            3 => 0x0000_0001 | self.next() as u32 & 0x807f_ffff,
            4 => self.next() as u32 & 0xff7f_ffff,
            _ => ((self.below(4001) as f32 - 2000.0) / 64.0).to_bits(),
        }
    }
}

/// The input of program `n`.
pub(crate) fn input(n: u64) -> Vec<u8> {
    let mut random = Random(n ^ 0x1234_5678_9abc_def0);
    (0..WORDS).flat_map(|i| if i < WORDS / 2 { random.word() } else { random.float() }.to_le_bytes()).collect()
}
