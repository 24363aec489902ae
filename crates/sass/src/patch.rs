//! The bit-flip laboratory: the class of convergence regions rewritten in a cubin's code.
//!
//! From sm_100 on, bits 73:72 of `BSSY`, `BSYNC` and `BREAK` hold the region's class. Nothing but these bits is
//! written, and each instruction must decode before and after to the same text with another class.

use lanescope_ir::flow::RegionClass;

use crate::container::{self, Module};
use crate::isa::{Arch, ArchError, DecodeError, Decoder, TableError};

/// The first architecture with the field.
const FIRST: u16 = 100;
/// Where the field starts, and its bits.
const FIELD: (u32, u128) = (72, 0b11);
/// Bytes of an instruction.
const SIZE: usize = 16;

/// Why a cubin cannot be patched.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PatchError {
    /// The cubin cannot be read.
    #[error("{0}")]
    Container(#[from] container::Error),
    /// There are no tables for its architecture.
    #[error("{0}")]
    Arch(#[from] ArchError),
    /// The embedded tables are broken.
    #[error("{0}")]
    Tables(#[from] TableError),
    /// Regions have no class on this architecture.
    #[error("regions have a class from sm_100 on, not on {0}: its hardware does not read the bits")]
    NoClass(container::Arch),
    /// There is no such function.
    #[error("there is no function `{0}` in this cubin")]
    NoFunction(String),
    /// There is no instruction there.
    #[error("there is no instruction at {0:#x}")]
    NoInstruction(u32),
    /// An instruction does not decode.
    #[error("{0}")]
    Decode(#[from] DecodeError),
    /// Not one of the three instructions.
    #[error("`{text}` at {pc:#x} has no class; only BSSY, BSYNC and BREAK do")]
    NotARegion {
        /// Its offset.
        pc: u32,
        /// Its text.
        text: String,
    },
    /// `BREAK` has two classes only.
    #[error("`{text}` at {pc:#x} cannot be .RECONVERGENT: lanes that may leave a region are not promised to arrive")]
    Break {
        /// Its offset.
        pc: u32,
        /// Its text.
        text: String,
    },
    /// The result is not what was meant.
    #[error("the patched word at {pc:#x} decodes to `{found}`, not to `{expected}`; nothing was written")]
    Mismatch {
        /// Its offset.
        pc: u32,
        /// What it should be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// More than the class bits differ.
    #[error("a byte at {0:#x} of the file changed that should not have; nothing was written")]
    Stray(usize),
}

/// One instruction before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Offset in its section.
    pub pc: u32,
    /// Its text before.
    pub before: String,
    /// Its text after.
    pub after: String,
}

/// A patched cubin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patched {
    /// The whole file.
    pub bytes: Vec<u8>,
    /// Instructions that changed; those that had the class already are left out.
    pub changes: Vec<Change>,
    /// Sections with a second encoding of the same code (`.nv.merc.*`, `.nv.capmerc.*`), which stays as it was.
    pub second_encodings: Vec<String>,
}

/// Gives the instructions at `pcs` of function `name` the class.
pub fn set_class(cubin: &[u8], name: &str, pcs: &[u32], class: RegionClass) -> Result<Patched, PatchError> {
    let module = Module::parse(cubin)?;
    if module.arch.sm < FIRST {
        return Err(PatchError::NoClass(module.arch));
    }
    let decoder = Decoder::new(Arch::from_sm(module.arch.sm.into())?)?;
    let function = module.function(name).ok_or_else(|| PatchError::NoFunction(name.to_owned()))?;
    let start = usize::try_from(function.text_offset).ok().filter(|s| s + function.text.len() <= cubin.len());
    let start = start.ok_or_else(|| PatchError::NoFunction(name.to_owned()))?;
    let mut bytes = cubin.to_vec();
    let mut changes = Vec::new();
    let mut allowed = Vec::new();
    for &pc in pcs {
        let at = pc as usize;
        let raw = word(function.text, at).ok_or(PatchError::NoInstruction(pc))?;
        let inst = decoder.decode(pc, raw)?;
        let before = inst.to_string();
        match (inst.mnemonic, class) {
            ("BREAK", RegionClass::Reconvergent) => return Err(PatchError::Break { pc, text: before }),
            ("BSSY" | "BSYNC" | "BREAK", _) => {}
            _ => return Err(PatchError::NotARegion { pc, text: before }),
        }
        let patched = raw & !(FIELD.1 << FIELD.0) | bits(class) << FIELD.0;
        let found = decoder.decode(pc, patched)?.to_string();
        let expected = with_class(&before, inst.mnemonic, class);
        if found != expected {
            return Err(PatchError::Mismatch { pc, expected, found });
        }
        let place = start + at;
        bytes[place..place + SIZE].copy_from_slice(&patched.to_le_bytes());
        allowed.push(place + FIELD.0 as usize / 8);
        if patched != raw {
            changes.push(Change { pc, before, after: found });
        }
    }
    // Whatever went before: the files may differ in the two bits of these bytes alone.
    for (at, (old, new)) in cubin.iter().zip(&bytes).enumerate() {
        let mask = if allowed.contains(&at) { !(FIELD.1 as u8) } else { 0xff };
        if (old ^ new) & mask != 0 {
            return Err(PatchError::Stray(at));
        }
    }
    let second = |n: &str| n.starts_with(".nv.merc") || n.starts_with(".nv.capmerc");
    let second_encodings = module.sections.iter().map(|s| s.name.to_string()).filter(|n| second(n)).collect();
    Ok(Patched { bytes, changes, second_encodings })
}

fn word(text: &[u8], at: usize) -> Option<u128> {
    let bytes = at.is_multiple_of(SIZE).then(|| text.get(at..at.checked_add(SIZE)?)).flatten()?;
    bytes.try_into().ok().map(u128::from_le_bytes)
}

fn bits(class: RegionClass) -> u128 {
    match class {
        RegionClass::Plain => 0,
        RegionClass::Reliable => 1,
        RegionClass::Reconvergent => 2,
    }
}

/// The text with another class behind the opcode.
fn with_class(text: &str, mnemonic: &str, class: RegionClass) -> String {
    let suffix = match class {
        RegionClass::Plain => "",
        RegionClass::Reliable => ".RELIABLE",
        RegionClass::Reconvergent => ".RECONVERGENT",
    };
    let plain = text.replacen(".RELIABLE", "", 1).replacen(".RECONVERGENT", "", 1);
    plain.replacen(mnemonic, &format!("{mnemonic}{suffix}"), 1)
}
