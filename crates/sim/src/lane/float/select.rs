//! Minimum, maximum, selection.

use crate::lane::round::{NAN32, flush};
use crate::lane::{LaneFunction, Out};

/// The smaller (or larger) of two, -0 being smaller than +0.
#[inline(always)]
fn pick(a: u32, b: u32, smaller: bool, ftz: bool, nan: bool) -> u32 {
    let (a, b) = if ftz { (flush(a), flush(b)) } else { (a, b) };
    let (x, y) = (f32::from_bits(a), f32::from_bits(b));
    // Zeros compare equal; the sign decides then, as it does harmlessly between equal numbers.
    let less = (x < y) | ((x == y) & (a > b));
    let a_wins = (less == smaller) | y.is_nan();
    let picked = if a_wins & !x.is_nan() { a } else { b };
    let none = (x.is_nan() & y.is_nan()) | (nan & (x.is_nan() | y.is_nan()));
    if none { NAN32 } else { picked }
}

/// The smaller or larger of two.
#[derive(Clone, Copy)]
pub(super) struct MinMax {
    pub(super) ftz: bool,
    pub(super) nan: bool,
    pub(super) xorsign_abs: bool,
}

impl LaneFunction for MinMax {
    const SRC: usize = 2;
    const PSRC: usize = 1;
    #[inline(always)]
    fn eval(self, s: [u32; 6], p: [bool; 3]) -> Out {
        let keep = if self.xorsign_abs { 0x7fff_ffff } else { !0 };
        let r = pick(s[0] & keep, s[1] & keep, p[0], self.ftz, self.nan);
        let sign = (s[0] ^ s[1]) & !keep;
        Out::word(if r == NAN32 { r } else { r ^ sign })
    }
}

/// The smallest or largest of three.
#[derive(Clone, Copy)]
pub(super) struct MinMax3 {
    pub(super) ftz: bool,
    pub(super) nan: bool,
}

impl LaneFunction for MinMax3 {
    const SRC: usize = 3;
    const PSRC: usize = 1;
    #[inline(always)]
    fn eval(self, s: [u32; 6], p: [bool; 3]) -> Out {
        let first = pick(s[0], s[1], p[0], self.ftz, self.nan);
        Out::word(pick(first, s[2], p[0], self.ftz, self.nan))
    }
}

/// One of two.
#[derive(Clone, Copy)]
pub(super) struct Select {
    pub(super) ftz: bool,
}

impl LaneFunction for Select {
    const SRC: usize = 2;
    const PSRC: usize = 1;
    #[inline(always)]
    fn eval(self, s: [u32; 6], p: [bool; 3]) -> Out {
        let r = if p[0] { s[0] } else { s[1] };
        Out::word(if self.ftz { flush(r) } else { r })
    }
}
