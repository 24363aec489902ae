//! Minimum and maximum.

use super::format::{NAN, flush, is_nan};
use super::{Halves, join};
use crate::lane::{LaneFunction, Out};

#[derive(Clone, Copy)]
pub(super) struct Pick {
    pub(super) ftz: bool,
    pub(super) propagate: bool,
    pub(super) xorsign: bool,
    pub(super) three: bool,
    pub(super) select: [Halves; 3],
}

impl Pick {
    #[inline(always)]
    fn two<const BF: bool>(self, a: u16, b: u16, min: bool) -> u16 {
        let (a, b) = (flush::<BF>(a, self.ftz), flush::<BF>(b, self.ftz));
        let sign = (a ^ b) & 0x8000;
        let strip = if self.xorsign { 0x7fff } else { 0xffff };
        let (x, y) = (a & strip, b & strip);
        let (x_nan, y_nan) = (is_nan::<BF>(x), is_nan::<BF>(y));
        let first = (key(x) < key(y)) == min;
        let number = if (first & !x_nan) | y_nan { x } else { y };
        let number = if self.xorsign { number | sign } else { number };
        let none = if self.propagate { x_nan | y_nan } else { x_nan & y_nan };
        if none { NAN } else { number }
    }
}

/// Orders floats of either format by value, -0 below +0.
#[inline(always)]
fn key(x: u16) -> u16 {
    if x & 0x8000 != 0 { !x } else { x | 0x8000 }
}

#[derive(Clone, Copy)]
pub(super) struct MinMax<const BF: bool>(pub(super) Pick);

impl<const BF: bool> LaneFunction for MinMax<BF> {
    const SRC: usize = 3;
    const PSRC: usize = 1;
    #[inline(always)]
    fn eval(self, s: [u32; 6], p: [bool; 3]) -> Out {
        let f = self.0;
        let [a, b, c] = [0, 1, 2].map(|i| f.select[i].split(s[i]));
        let half = |i: usize| {
            let ab = f.two::<BF>(a[i], b[i], p[0]);
            if f.three { f.two::<BF>(ab, c[i], p[0]) } else { ab }
        };
        Out::word(join([half(0), half(1)]))
    }
}
