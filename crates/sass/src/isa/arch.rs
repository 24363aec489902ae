//! Which GPU architectures the tables cover.

use std::fmt;
use std::str::FromStr;

/// Architectures in the order of the bits of a table row's architecture set.
pub(super) const TABLE_ARCHS: [u16; 11] = [75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121];

/// Architectures without rows of their own, decoded with another's. sm_70 and sm_72 lack sm_75's uniform datapath
/// and share the rest: the corpus compiled for sm_70 prints as nvdisasm prints it, 18,240 of 18,240 instructions.
const SHARED: [(u16, u16); 2] = [(70, 75), (72, 75)];

/// A supported GPU architecture: `sm_80`, `sm_90a`, `sm_120f`.
///
/// The letters `a` (architecture-specific) and `f` (family-specific) say which features the compiler was
/// allowed to use; the encoding is the same without them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Arch {
    sm: u16,
    suffix: Option<Suffix>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Suffix {
    A,
    F,
}

/// An architecture the tables do not cover, or a name that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArchError {
    /// A well-formed number without a table.
    #[error("architecture sm_{0} is not supported; supported are {list}", list = supported_list())]
    Unsupported(u32),
    /// Not of the form `sm_NN`, `sm_NNa` or `sm_NNf`.
    #[error("'{0}' is not an architecture name; supported are {list}", list = supported_list())]
    NotAName(String),
}

fn supported_list() -> String {
    let names: Vec<String> = Arch::supported().map(|a| a.to_string()).collect();
    names.join(", ")
}

impl Arch {
    /// The architecture with this number: 80 for `sm_80`.
    pub fn from_sm(sm: u32) -> Result<Self, ArchError> {
        let known = u16::try_from(sm).ok().filter(|&sm| table_bit(sm).is_some());
        known.map(|sm| Arch { sm, suffix: None }).ok_or(ArchError::Unsupported(sm))
    }

    /// All architectures, ascending, without feature suffixes.
    pub fn supported() -> impl Iterator<Item = Arch> {
        let shared = SHARED.into_iter().map(|(sm, _)| sm);
        shared.chain(TABLE_ARCHS).map(|sm| Arch { sm, suffix: None })
    }

    /// The number: 90 for `sm_90a`.
    pub fn sm(self) -> u32 {
        u32::from(self.sm)
    }

    /// Width in bits of a uniform-register field: 6 until sm_90, 8 from sm_100.
    pub fn uniform_register_bits(self) -> u32 {
        if self.sm >= 100 { 8 } else { 6 }
    }

    /// The field value that means `URZ`: all ones. Decoded operands have 255 on every architecture.
    pub fn urz(self) -> u8 {
        if self.sm >= 100 { 255 } else { 63 }
    }

    /// This architecture's bit in a table row's set.
    pub(super) fn table_bit(self) -> Option<u32> {
        table_bit(self.sm)
    }
}

fn table_bit(sm: u16) -> Option<u32> {
    let sm = SHARED.into_iter().find_map(|(shared, with)| (shared == sm).then_some(with)).unwrap_or(sm);
    (0u32..).zip(TABLE_ARCHS).find_map(|(bit, known)| (known == sm).then_some(bit))
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match self.suffix {
            None => "",
            Some(Suffix::A) => "a",
            Some(Suffix::F) => "f",
        };
        write!(f, "sm_{}{suffix}", self.sm)
    }
}

impl FromStr for Arch {
    type Err = ArchError;

    /// Accepts `sm_90`, `sm_90a`, `sm_120f`, and the same without `sm_`.
    fn from_str(name: &str) -> Result<Self, ArchError> {
        let digits = name.strip_prefix("sm_").unwrap_or(name);
        let (digits, suffix) = if let Some(rest) = digits.strip_suffix('a') {
            (rest, Some(Suffix::A))
        } else if let Some(rest) = digits.strip_suffix('f') {
            (rest, Some(Suffix::F))
        } else {
            (digits, None)
        };
        let all_digits = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let sm = if all_digits { digits.parse().ok() } else { None };
        let sm: u32 = sm.ok_or_else(|| ArchError::NotAName(name.to_owned()))?;
        Ok(Arch { suffix, ..Arch::from_sm(sm)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for name in ["sm_70", "sm_75", "sm_90a", "sm_100f", "sm_121a"] {
            assert_eq!(name.parse::<Arch>().map(|a| a.to_string()).as_deref(), Ok(name));
        }
        assert_eq!("90a".parse::<Arch>().map(Arch::sm), Ok(90));
    }

    #[test]
    fn others_are_refused_by_name() {
        assert_eq!(Arch::from_sm(61), Err(ArchError::Unsupported(61)));
        let text = Arch::from_sm(61).map(|_| ()).unwrap_err().to_string();
        assert!(text.contains("sm_61") && text.contains("sm_75, sm_80"), "{text}");
        for bad in ["", "sm_", "sm_90x", "sm_+90", "hopper", "sm_99999999999", "a"] {
            assert!(matches!(bad.parse::<Arch>(), Err(ArchError::NotAName(_))), "{bad}");
        }
    }
}
