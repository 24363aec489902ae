//! Bundles: which words are instructions.

/// Bytes of a bundle.
pub const BUNDLE: u32 = 32;
/// Bytes of an instruction, and of the control word.
pub const WORD: u32 = 8;

/// Whether `sm` has 64-bit instructions that this module reads.
pub fn is_narrow(sm: u32) -> bool {
    matches!(sm, 50 | 52 | 53 | 60 | 61 | 62)
}

/// The instructions of a section with their addresses; control words are passed over.
#[derive(Clone, Debug)]
pub struct Code<'a> {
    words: std::slice::Iter<'a, [u8; WORD as usize]>,
    pc: u32,
}

impl<'a> Code<'a> {
    /// Walks `text`, which starts its section. Bytes after the last whole word are left out.
    pub fn new(text: &'a [u8]) -> Code<'a> {
        // Addresses are 32 bits wide; no section is longer.
        let text = &text[..text.len().min(u32::MAX as usize - BUNDLE as usize)];
        Code { words: text.as_chunks::<{ WORD as usize }>().0.iter(), pc: 0 }
    }
}

impl Iterator for Code<'_> {
    type Item = (u32, u64);

    fn next(&mut self) -> Option<(u32, u64)> {
        loop {
            let word = self.words.next()?;
            let pc = self.pc;
            self.pc += WORD;
            if !pc.is_multiple_of(BUNDLE) {
                return Some((pc, u64::from_le_bytes(*word)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_words_are_passed_over() {
        let text: Vec<u8> = (0..10u64).flat_map(u64::to_le_bytes).chain([1, 2]).collect();
        let got: Vec<_> = Code::new(&text).collect();
        assert_eq!(got, [(8, 1), (16, 2), (24, 3), (40, 5), (48, 6), (56, 7), (72, 9)]);
        assert!(Code::new(&[0; 8]).next().is_none());
    }
}
