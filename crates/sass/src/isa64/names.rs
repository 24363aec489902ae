//! Names by leading bits.

use std::sync::OnceLock;

static LIST: &str = include_str!("../../data/opcodes_sm50.txt");

/// One entry for each value of an instruction's upper 16 bits.
fn table() -> &'static [Option<&'static str>] {
    static TABLE: OnceLock<Vec<Option<&'static str>>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = vec![None; 1 << 16];
        for line in LIST.lines().filter(|l| !l.starts_with('#')) {
            let mut parts = line.split(' ');
            let Some(name) = parts.next() else { continue };
            for (first, count) in parts.filter_map(range) {
                if let Some(entries) = table.get_mut(first..first.saturating_add(count)) {
                    entries.fill(Some(name));
                }
            }
        }
        table
    })
}

/// `e240/12`: the first of the values that share these upper bits, and how many there are.
fn range(text: &str) -> Option<(usize, usize)> {
    let (first, bits) = text.split_once('/')?;
    let bits: u32 = bits.parse().ok().filter(|b| *b <= 16)?;
    Some((usize::from_str_radix(first, 16).ok()?, 1 << (16 - bits)))
}

/// The opcode of an instruction word, if there is one with these leading bits.
pub(super) fn name(word: u64) -> Option<&'static str> {
    table().get((word >> 48) as usize).copied().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_read() {
        let ranges: Vec<_> = LIST.lines().filter(|l| !l.starts_with('#')).flat_map(|l| l.split(' ').skip(1)).collect();
        assert_eq!(ranges.len(), 397);
        let covered: usize = ranges.iter().map(|r| range(r).expect(r).1).sum();
        // Ranges do not overlap: as many values have a name as the ranges hold.
        assert_eq!(covered, table().iter().flatten().count());
        assert_eq!(name(0xe240_0000_0007_000f), Some("BRA"));
        assert_eq!(name(0x4c98_0780_0087_0001), Some("MOV"));
        assert_eq!(name(u64::MAX), None);
    }
}
