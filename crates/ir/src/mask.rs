//! Sets of lanes of one warp.

use std::fmt;
use std::ops::{BitAnd, BitOr, BitXor, Not, Sub};

/// A set of lanes; bit `i` is lane `i`. Holds up to 64 lanes, so a wavefront of 64 fits; a warp uses 32.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct LaneMask(pub u64);

impl LaneMask {
    /// No lane.
    pub const EMPTY: LaneMask = LaneMask(0);
    /// Lanes that a set can have.
    pub const MAX: u32 = 64;

    /// The lowest `n` lanes; all 64 from `n` = 64 on.
    pub const fn first(n: u32) -> LaneMask {
        if n >= 64 { LaneMask(u64::MAX) } else { LaneMask((1 << n) - 1) }
    }
    /// One lane.
    pub const fn lane(i: u32) -> LaneMask {
        if i >= 64 { LaneMask(0) } else { LaneMask(1 << i) }
    }
    /// Number of lanes.
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }
    /// No lane in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// Whether lane `i` is in it.
    pub const fn has(self, i: u32) -> bool {
        i < 64 && self.0 >> i & 1 != 0
    }
    /// Whether every lane of `other` is in it.
    pub const fn contains(self, other: LaneMask) -> bool {
        other.0 & !self.0 == 0
    }
    /// The lowest lane.
    pub const fn lowest(self) -> Option<u32> {
        if self.0 == 0 { None } else { Some(self.0.trailing_zeros()) }
    }
    /// The lanes, lowest first.
    pub fn lanes(self) -> impl Iterator<Item = u32> {
        let mut m = self.0;
        std::iter::from_fn(move || {
            if m == 0 {
                return None;
            }
            let i = m.trailing_zeros();
            m &= m - 1;
            Some(i)
        })
    }
}

impl BitAnd for LaneMask {
    type Output = LaneMask;
    fn bitand(self, o: LaneMask) -> LaneMask {
        LaneMask(self.0 & o.0)
    }
}
impl BitOr for LaneMask {
    type Output = LaneMask;
    fn bitor(self, o: LaneMask) -> LaneMask {
        LaneMask(self.0 | o.0)
    }
}
impl BitXor for LaneMask {
    type Output = LaneMask;
    fn bitxor(self, o: LaneMask) -> LaneMask {
        LaneMask(self.0 ^ o.0)
    }
}
impl Sub for LaneMask {
    type Output = LaneMask;
    fn sub(self, o: LaneMask) -> LaneMask {
        LaneMask(self.0 & !o.0)
    }
}
impl Not for LaneMask {
    type Output = LaneMask;
    fn not(self) -> LaneMask {
        LaneMask(!self.0)
    }
}

/// Ranges of lanes: `0-3,7,16-31`; `none` for the empty set.
impl fmt::Display for LaneMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("none");
        }
        let mut i = 0;
        let mut first = true;
        while i < 64 {
            if !self.has(i) {
                i += 1;
                continue;
            }
            let start = i;
            while self.has(i) {
                i += 1;
            }
            if !first {
                f.write_str(",")?;
            }
            first = false;
            match i - 1 - start {
                0 => write!(f, "{start}")?,
                _ => write!(f, "{start}-{}", i - 1)?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for LaneMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LaneMask({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_ranges() {
        assert_eq!(LaneMask(0).to_string(), "none");
        assert_eq!(LaneMask(0b1000_1111).to_string(), "0-3,7");
        assert_eq!(LaneMask(u64::MAX).to_string(), "0-63");
        assert_eq!(LaneMask::first(32).to_string(), "0-31");
    }

    #[test]
    fn lanes_come_lowest_first() {
        assert_eq!(LaneMask(0x8000_0000_0000_0005).lanes().collect::<Vec<_>>(), [0, 2, 63]);
        assert_eq!(LaneMask::lane(64), LaneMask::EMPTY);
    }
}
