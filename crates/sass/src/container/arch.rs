//! The architecture a cubin was built for, and where its header says so.

use std::fmt;

use super::attributes;
use super::elf::Section;
use super::error::{Error, Result};

/// `.nv.compat` entry that is 1 for an `a` target.
const COMPAT_ACCELERATED: u8 = 9;

/// A GPU architecture: `sm_90`, `sm_90a`, `sm_100f`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arch {
    /// Compute capability without its dot: 90 for 9.0, 120 for 12.0.
    pub sm: u16,
    /// Whether the code may use instructions of this one chip or family only.
    pub variant: Variant,
}

/// The letter after the number.
///
/// An `f` (family) cubin is told from a plain one by the compiler's recorded command line only; if
/// that note was stripped, it reads as [`Variant::Base`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variant {
    /// No letter.
    #[default]
    Base,
    /// `f`: features of a family.
    Family,
    /// `a`: features of this architecture alone.
    Accelerated,
}

impl Arch {
    /// A plain architecture.
    pub const fn new(sm: u16) -> Self {
        Self { sm, variant: Variant::Base }
    }

    /// With the variant that CUDA 13 records in sections of its own.
    pub(super) fn refined(mut self, sections: &[Section<'_>]) -> Self {
        for section in sections {
            match &*section.name {
                ".nv.compat" => {
                    let (list, _) = attributes::parse(".nv.compat", section.data);
                    if list.iter().any(|a| a.id == COMPAT_ACCELERATED && a.number() == Some(1)) {
                        self.variant = Variant::Accelerated;
                    }
                }
                ".note.nv.tkinfo" if self.variant == Variant::Base => {
                    let needle = format!("-arch sm_{}f ", self.sm);
                    if section.data.windows(needle.len()).any(|w| w == needle.as_bytes()) {
                        self.variant = Variant::Family;
                    }
                }
                _ => {}
            }
        }
        self
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = match self.variant {
            Variant::Base => "",
            Variant::Family => "f",
            Variant::Accelerated => "a",
        };
        write!(f, "sm_{}{letter}", self.sm)
    }
}

/// The two generations of cubin headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// OS/ABI 0x33, ABI version 7: CUDA up to 12 for anything below `sm_100`.
    Old,
    /// OS/ABI 0x41, ABI version 8: CUDA 12.8 on for `sm_100` and up, CUDA 13 for everything.
    New,
}

impl Layout {
    /// The layout that `EI_OSABI` names.
    pub(super) fn from_osabi(osabi: u8) -> Result<Self> {
        match osabi {
            0x33 => Ok(Layout::Old),
            0x41 => Ok(Layout::New),
            osabi => Err(Error::UnknownAbi { osabi }),
        }
    }

    /// The architecture in `e_flags`.
    ///
    /// Old: number in bits 7:0, `a` in bit 11. New: number in bits 15:8, `a` in bit 3, where CUDA 12
    /// puts it; CUDA 13 says it in `.nv.compat` instead.
    pub(super) fn arch(self, e_flags: u32) -> Arch {
        let (sm, accelerated) = match self {
            Layout::Old => (e_flags & 0xff, e_flags & 0x800 != 0),
            Layout::New => ((e_flags >> 8) & 0xff, e_flags & 0x8 != 0),
        };
        let variant = if accelerated { Variant::Accelerated } else { Variant::Base };
        Arch { sm: sm as u16, variant }
    }
}
