//! Bitwise and predicate logic.

use super::lane_function;
use crate::lane::Out;

#[derive(Clone, Copy)]
pub(super) struct And;
lane_function!([] And, 2 0 => 1 0, |_, s, _| Out::word(s[0] & s[1]));

#[derive(Clone, Copy)]
pub(super) struct Or;
lane_function!([] Or, 2 0 => 1 0, |_, s, _| Out::word(s[0] | s[1]));

#[derive(Clone, Copy)]
pub(super) struct Xor;
lane_function!([] Xor, 2 0 => 1 0, |_, s, _| Out::word(s[0] ^ s[1]));

/// A truth table as masks of a multiplexer tree: for each `(a, b)`, the value at `c = 0` and its change at `c = 1`.
#[derive(Clone, Copy)]
pub(super) struct Lop3 {
    zero: [u32; 4],
    change: [u32; 4],
}

impl Lop3 {
    pub(super) fn of(lut: u8) -> Lop3 {
        let mask = |i: usize| if lut >> i & 1 == 1 { !0u32 } else { 0 };
        Lop3 {
            zero: std::array::from_fn(|ab| mask(2 * ab)),
            change: std::array::from_fn(|ab| mask(2 * ab) ^ mask(2 * ab + 1)),
        }
    }
    #[inline(always)]
    pub(super) fn apply(self, a: u32, b: u32, c: u32) -> u32 {
        let leaf = |ab: usize| self.zero[ab] ^ (c & self.change[ab]);
        let a0 = leaf(0) ^ (b & (leaf(0) ^ leaf(1)));
        let a1 = leaf(2) ^ (b & (leaf(2) ^ leaf(3)));
        a0 ^ (a & (a0 ^ a1))
    }
}
lane_function!([] Lop3, 3 0 => 1 0, |f, s, _| Out::word(f.apply(s[0], s[1], s[2])));

#[derive(Clone, Copy)]
pub(super) struct Lop3Pred {
    pub(super) table: Lop3,
    pub(super) and: bool,
}
lane_function!([] Lop3Pred, 3 1 => 1 1, |f, s, p| {
    let d = f.table.apply(s[0], s[1], s[2]);
    let some = d != 0;
    Out { d: [d, 0], p: [if f.and { some & p[0] } else { some | p[0] }, false] }
});

#[inline(always)]
fn tables(lut: [u8; 2], a: bool, b: bool, c: bool) -> Out {
    let i = u32::from(a) << 2 | u32::from(b) << 1 | u32::from(c);
    Out::preds(u32::from(lut[0]) >> i & 1 == 1, u32::from(lut[1]) >> i & 1 == 1)
}

#[derive(Clone, Copy)]
pub(super) struct Plop3 {
    pub(super) lut: [u8; 2],
}
lane_function!([] Plop3, 0 3 => 0 2, |f, _, p| tables(f.lut, p[0], p[1], p[2]));

#[derive(Clone, Copy)]
pub(super) struct SignPlop3 {
    pub(super) lut: [u8; 2],
}
lane_function!([] SignPlop3, 3 0 => 0 2, |f, s, _| tables(f.lut, s[0] >> 31 == 1, s[1] >> 31 == 1, s[2] >> 31 == 1));
