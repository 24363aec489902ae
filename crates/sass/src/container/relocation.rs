//! Relocations: which bits of code or data depend on an address, and how to fill them in.
//!
//! A type's name says where it patches: `R_CUDA_ABS32_LO_32` puts the low 32 bits of the value at bit
//! 32 of a 128-bit instruction, `R_CUDA_ABS55_16_34` a 55-bit word address with its low 8 bits at bit
//! 16 and the rest at bit 34. The positions implemented here were checked against what the linker
//! writes and what the disassembler then shows; types of older 64-bit encodings are known by name only
//! and refused when applied.

use super::elf::{SHT_REL, SHT_RELA};
use super::error::{Error, Result};
use super::module::Module;

/// One relocation of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Offset of the patched instruction or datum in its section.
    pub offset: u64,
    /// What and where to patch.
    pub kind: RelocationKind,
    /// Index into [`Module::symbols`].
    pub symbol: usize,
    /// Added to the symbol's address.
    pub addend: i64,
}

/// A relocation type by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RelocationKind(pub u32);

/// How a value becomes bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    /// `width` bits of `value >> shift` at bit `at` of `bytes` bytes.
    Bits { bytes: usize, at: u32, width: u32, shift: u32, exact: bool },
    /// A word address: bits 9:2 at bit 16, and `width - 8` bits from bit 10 on at bit 34.
    Split { width: u32 },
    /// A constant-bank operand: 16-bit offset at bit 38, 5-bit bank at bit 54.
    Constant,
    /// Nothing: it only says that the datum falls away with its symbol.
    Nothing,
}

impl RelocationKind {
    /// Its name, `"unknown"` if nobody has named it.
    pub fn name(self) -> &'static str {
        NAMES.get(self.0 as usize).copied().filter(|n| !n.is_empty()).unwrap_or("unknown")
    }

    /// Whether the value must be the bank number times 65536 plus the offset in the bank.
    pub fn wants_bank(self) -> bool {
        self.field() == Some(Field::Constant)
    }

    /// Whether [`Module::apply`] knows this type.
    pub fn is_known(self) -> bool {
        self.field().is_some()
    }

    fn field(self) -> Option<Field> {
        let data = |bytes, shift, exact| Field::Bits { bytes, at: 0, width: bytes as u32 * 8, shift, exact };
        let code = |width, shift, exact| Field::Bits { bytes: 16, at: 32, width, shift, exact };
        Some(match self.0 {
            // R_CUDA_32, R_CUDA_G32, R_CUDA_UNIFIED_32
            1 | 3 | 103 => data(4, 0, true),
            // R_CUDA_64, R_CUDA_G64, R_CUDA_UNIFIED
            2 | 4 | 102 => data(8, 0, true),
            // R_CUDA_32_LO, R_CUDA_32_HI
            70 => data(4, 0, false),
            71 => data(4, 32, false),
            // R_CUDA_ABS32_32, R_CUDA_ABS32_LO_32, R_CUDA_ABS32_HI_32, R_CUDA_UNIFIED32_LO_32, R_CUDA_UNIFIED32_HI_32
            55 => code(32, 0, true),
            56 | 112 => code(32, 0, false),
            57 | 113 => code(32, 32, false),
            // R_CUDA_ABS47_34
            58 => Field::Bits { bytes: 16, at: 34, width: 47, shift: 2, exact: true },
            // R_CUDA_ABS16_32, R_CUDA_ABS24_32
            59 => code(16, 0, true),
            60 => code(24, 0, true),
            // R_CUDA_CONST_FIELD21_38
            66 => Field::Constant,
            // R_CUDA_NONE, R_CUDA_UNUSED_CLEAR32, R_CUDA_UNUSED_CLEAR64
            0 | 72 | 73 => Field::Nothing,
            // R_CUDA_ABS55_16_34, R_CUDA_ABS56_16_34
            75 => Field::Split { width: 55 },
            114 => Field::Split { width: 56 },
            // R_CUDA_8_0 .. 8_56, R_CUDA_G8_0 .. G8_56, R_CUDA_UNIFIED_8_0 .. 8_56: one byte of the value each
            k @ 76..=83 => data(1, (k - 76) * 8, false),
            k @ 84..=91 => data(1, (k - 84) * 8, false),
            k @ 104..=111 => data(1, (k - 104) * 8, false),
            _ => return None,
        })
    }
}

impl Module<'_> {
    /// Relocations of section `section`, in file order.
    pub fn relocations(&self, section: usize) -> Result<Vec<Relocation>> {
        let mut list = Vec::new();
        let Some(tables) = self.relocation_tables.get(&section) else { return Ok(list) };
        for &index in tables {
            let table = &self.sections[index];
            for raw in table.raw_relocations()? {
                let symbol = raw.symbol as usize;
                if symbol >= self.symbols.len() {
                    return Err(Error::SymbolIndex {
                        what: format!("a relocation of {}", table.name),
                        index: raw.symbol.into(),
                        count: self.symbols.len(),
                    });
                }
                let kind = RelocationKind(raw.kind);
                list.push(Relocation { offset: raw.offset, kind, symbol, addend: raw.addend });
            }
        }
        Ok(list)
    }

    pub(super) fn index_relocations(&mut self) {
        for (index, section) in self.sections.iter().enumerate() {
            if section.kind == SHT_RELA || section.kind == SHT_REL {
                self.relocation_tables.entry(section.info as usize).or_default().push(index);
            }
        }
    }

    /// Patches `bytes`, a copy of section `section`, with `relocation`, whose symbol plus addend is `value`.
    pub fn apply(&self, section: usize, relocation: &Relocation, bytes: &mut [u8], value: u64) -> Result<()> {
        let name = || self.sections.get(section).map_or_else(String::new, |s| s.name.to_string());
        apply(&name, relocation, bytes, value)
    }
}

/// Patches `bytes` at the relocation's offset with `value` (symbol plus addend).
fn apply(section: &dyn Fn() -> String, relocation: &Relocation, bytes: &mut [u8], value: u64) -> Result<()> {
    let Relocation { offset, kind, .. } = *relocation;
    let name = kind.name();
    let Some(field) = kind.field() else {
        return Err(Error::RelocationKind { section: section(), offset, kind: kind.0, name });
    };
    let size = match field {
        Field::Nothing => return Ok(()),
        Field::Bits { bytes, .. } => bytes,
        Field::Split { .. } | Field::Constant => 16,
    };
    let len = bytes.len() as u64;
    let target = usize::try_from(offset)
        .ok()
        .and_then(|start| bytes.get_mut(start..start.checked_add(size)?))
        .ok_or_else(|| Error::OutOfBounds {
            what: format!("relocation {name} of {}", section()),
            offset,
            size: size as u64,
            len,
        })?;
    let mut word = [0; 16];
    word[..size].copy_from_slice(target);
    let mut word = u128::from_le_bytes(word);
    let mut put = |at: u32, width: u32, bits: u64| {
        let mask = (u128::MAX >> (128 - width)) << at;
        word = (word & !mask) | ((u128::from(bits) << at) & mask);
    };
    let range = |bits| Error::RelocationRange { name, offset, value, bits };
    match field {
        Field::Bits { at, width, shift, exact, .. } => {
            let bits = value >> shift;
            if exact && (!fits(bits, width) || value & ((1 << shift) - 1) != 0) {
                return Err(range(width));
            }
            put(at, width, bits);
        }
        Field::Split { width } => {
            let bits = value >> 2;
            if !fits(bits, width) || value & 3 != 0 {
                return Err(range(width));
            }
            put(16, 8, bits);
            put(34, width - 8, bits >> 8);
        }
        Field::Constant => {
            // Indexed operands count from the middle of the bank, so the offset may be negative.
            let bank = value >> 16;
            if bank > 31 {
                return Err(range(21));
            }
            put(38, 16, value);
            put(54, 5, bank);
        }
        Field::Nothing => {}
    }
    target.copy_from_slice(&word.to_le_bytes()[..size]);
    Ok(())
}

/// Whether `value` is a `width`-bit number, unsigned or sign-extended.
fn fits(value: u64, width: u32) -> bool {
    width >= 64 || value >> width == 0 || (value as i64) >> (width - 1) == -1
}

const NAMES: &[&str] = &[
    "R_CUDA_NONE",
    "R_CUDA_32",
    "R_CUDA_64",
    "R_CUDA_G32",
    "R_CUDA_G64",
    "R_CUDA_ABS32_26",
    "R_CUDA_TEX_HEADER_INDEX",
    "R_CUDA_SAMP_HEADER_INDEX",
    "R_CUDA_SURF_HW_DESC",
    "R_CUDA_SURF_HW_SW_DESC",
    "R_CUDA_ABS32_LO_26",
    "R_CUDA_ABS32_HI_26",
    "R_CUDA_ABS32_23",
    "R_CUDA_ABS32_LO_23",
    "R_CUDA_ABS32_HI_23",
    "R_CUDA_ABS24_26",
    "R_CUDA_ABS24_23",
    "R_CUDA_ABS16_26",
    "R_CUDA_ABS16_23",
    "R_CUDA_TEX_SLOT",
    "R_CUDA_SAMP_SLOT",
    "R_CUDA_SURF_SLOT",
    "R_CUDA_TEX_BINDLESSOFF13_32",
    "R_CUDA_TEX_BINDLESSOFF13_47",
    "R_CUDA_CONST_FIELD19_28",
    "R_CUDA_CONST_FIELD19_23",
    "R_CUDA_TEX_SLOT9_49",
    "R_CUDA_6_31",
    "R_CUDA_2_47",
    "R_CUDA_TEX_BINDLESSOFF13_41",
    "R_CUDA_TEX_BINDLESSOFF13_45",
    "R_CUDA_FUNC_DESC32_23",
    "R_CUDA_FUNC_DESC32_LO_23",
    "R_CUDA_FUNC_DESC32_HI_23",
    "R_CUDA_FUNC_DESC_32",
    "R_CUDA_FUNC_DESC_64",
    "R_CUDA_CONST_FIELD21_26",
    "R_CUDA_QUERY_DESC21_37",
    "R_CUDA_CONST_FIELD19_26",
    "R_CUDA_CONST_FIELD21_23",
    "R_CUDA_PCREL_IMM24_26",
    "R_CUDA_PCREL_IMM24_23",
    "R_CUDA_ABS32_20",
    "R_CUDA_ABS32_LO_20",
    "R_CUDA_ABS32_HI_20",
    "R_CUDA_ABS24_20",
    "R_CUDA_ABS16_20",
    "R_CUDA_FUNC_DESC32_20",
    "R_CUDA_FUNC_DESC32_LO_20",
    "R_CUDA_FUNC_DESC32_HI_20",
    "R_CUDA_CONST_FIELD19_20",
    "R_CUDA_BINDLESSOFF13_36",
    "R_CUDA_SURF_HEADER_INDEX",
    "R_CUDA_INSTRUCTION64",
    "R_CUDA_CONST_FIELD21_20",
    "R_CUDA_ABS32_32",
    "R_CUDA_ABS32_LO_32",
    "R_CUDA_ABS32_HI_32",
    "R_CUDA_ABS47_34",
    "R_CUDA_ABS16_32",
    "R_CUDA_ABS24_32",
    "R_CUDA_FUNC_DESC32_32",
    "R_CUDA_FUNC_DESC32_LO_32",
    "R_CUDA_FUNC_DESC32_HI_32",
    "R_CUDA_CONST_FIELD19_40",
    "R_CUDA_BINDLESSOFF14_40",
    "R_CUDA_CONST_FIELD21_38",
    "R_CUDA_INSTRUCTION128",
    "R_CUDA_YIELD_OPCODE9_0",
    "R_CUDA_YIELD_CLEAR_PRED4_87",
    "R_CUDA_32_LO",
    "R_CUDA_32_HI",
    "R_CUDA_UNUSED_CLEAR32",
    "R_CUDA_UNUSED_CLEAR64",
    "R_CUDA_ABS24_40",
    "R_CUDA_ABS55_16_34",
    "R_CUDA_8_0",
    "R_CUDA_8_8",
    "R_CUDA_8_16",
    "R_CUDA_8_24",
    "R_CUDA_8_32",
    "R_CUDA_8_40",
    "R_CUDA_8_48",
    "R_CUDA_8_56",
    "R_CUDA_G8_0",
    "R_CUDA_G8_8",
    "R_CUDA_G8_16",
    "R_CUDA_G8_24",
    "R_CUDA_G8_32",
    "R_CUDA_G8_40",
    "R_CUDA_G8_48",
    "R_CUDA_G8_56",
    "R_CUDA_FUNC_DESC_8_0",
    "R_CUDA_FUNC_DESC_8_8",
    "R_CUDA_FUNC_DESC_8_16",
    "R_CUDA_FUNC_DESC_8_24",
    "R_CUDA_FUNC_DESC_8_32",
    "R_CUDA_FUNC_DESC_8_40",
    "R_CUDA_FUNC_DESC_8_48",
    "R_CUDA_FUNC_DESC_8_56",
    "R_CUDA_ABS20_44",
    "R_CUDA_SAMP_HEADER_INDEX_0",
    "R_CUDA_UNIFIED",
    "R_CUDA_UNIFIED_32",
    "R_CUDA_UNIFIED_8_0",
    "R_CUDA_UNIFIED_8_8",
    "R_CUDA_UNIFIED_8_16",
    "R_CUDA_UNIFIED_8_24",
    "R_CUDA_UNIFIED_8_32",
    "R_CUDA_UNIFIED_8_40",
    "R_CUDA_UNIFIED_8_48",
    "R_CUDA_UNIFIED_8_56",
    "R_CUDA_UNIFIED32_LO_32",
    "R_CUDA_UNIFIED32_HI_32",
    "R_CUDA_ABS56_16_34",
    "R_CUDA_CONST_FIELD22_37",
];
