//! Constant banks.

use lanescope_ir::ConstBank;

/// The constant banks of a launch. Reads past a bank's end give zero, as the hardware does.
#[derive(Debug, Default)]
pub(crate) struct Banks(Vec<(u8, Vec<u8>)>);

impl Banks {
    pub(crate) fn new(bank0: &[u8], others: &[ConstBank]) -> Banks {
        let mut banks = vec![(0, bank0.to_vec())];
        banks.extend(others.iter().filter(|b| b.bank != 0).map(|b| (b.bank, b.data.clone())));
        Banks(banks)
    }

    /// The bytes of a bank.
    pub(crate) fn bank(&self, bank: u8) -> &[u8] {
        self.0.iter().find(|b| b.0 == bank).map_or(&[], |b| &b.1)
    }

    /// A word.
    pub(crate) fn word(&self, bank: u8, offset: u32) -> u32 {
        word(self.bank(bank), u64::from(offset))
    }
}

/// Four bytes at any offset; zero where there are none.
pub(crate) fn word(bytes: &[u8], offset: u64) -> u32 {
    let byte = |i| usize::try_from(offset + i).ok().and_then(|at| bytes.get(at)).copied().unwrap_or(0);
    u32::from_le_bytes([byte(0), byte(1), byte(2), byte(3)])
}
