//! Products.

use super::{lane_function, pair};
use crate::lane::Out;

#[derive(Clone, Copy)]
pub(super) struct Mad;
lane_function!([] Mad, 3 0 => 1 0, |_, s, _| Out::word(s[0].wrapping_mul(s[1]).wrapping_add(s[2])));

#[derive(Clone, Copy)]
pub(super) struct MadX;
lane_function!([] MadX, 3 1 => 1 0, |_, s, p| {
    Out::word(s[0].wrapping_mul(s[1]).wrapping_add(s[2]).wrapping_add(u32::from(p[0])))
});

#[inline(always)]
fn product(a: u32, b: u32, signed: bool) -> u64 {
    if signed { (i64::from(a as i32) * i64::from(b as i32)) as u64 } else { u64::from(a) * u64::from(b) }
}

#[inline(always)]
fn wide(s: [u32; 6], signed: bool, neg_c: bool) -> u64 {
    let c = pair(s[2], s[3]);
    product(s[0], s[1], signed).wrapping_add(if neg_c { c.wrapping_neg() } else { c })
}

#[derive(Clone, Copy)]
pub(super) struct MadWide<const SIGNED: bool> {
    pub(super) neg_c: bool,
}
lane_function!([const SIGNED: bool] MadWide<SIGNED>, 4 0 => 2 0, |f, s, _| Out::wide(wide(s, SIGNED, f.neg_c)));

#[derive(Clone, Copy)]
pub(super) struct MadHi<const SIGNED: bool> {
    pub(super) neg_c: bool,
}
lane_function!([const SIGNED: bool] MadHi<SIGNED>, 4 0 => 1 0, |f, s, _| {
    Out::word((wide(s, SIGNED, f.neg_c) >> 32) as u32)
});

/// With carries; the high word comes first if `HIGH`.
#[derive(Clone, Copy)]
pub(super) struct MadCarry<const HIGH: bool> {
    pub(super) signed: bool,
    pub(super) neg_c: bool,
}
lane_function!([const HIGH: bool] MadCarry<HIGH>, 4 1 => 2 1, |f, s, p| {
    let c = pair(s[2], s[3]);
    // A subtrahend is `!c + 1` without wrapping; the 1 joins the carry in.
    let (c, one) = if f.neg_c { (!c, 1) } else { (c, 0) };
    let (sum, first) = product(s[0], s[1], f.signed).overflowing_add(c);
    let (sum, second) = sum.overflowing_add(u64::from(p[0]) + one);
    let (low, high) = (sum as u32, (sum >> 32) as u32);
    Out { d: if HIGH { [high, 0] } else { [low, high] }, p: [first | second, false] }
});

/// Bits `from..from + bits` of `x`, sign- or zero-extended.
#[inline(always)]
fn field(x: u32, from: u32, bits: u32, signed: bool) -> u32 {
    let top = x << (32 - bits - from);
    if signed { (top as i32 >> (32 - bits)) as u32 } else { top >> (32 - bits) }
}

#[derive(Clone, Copy)]
pub(super) struct Dp4a {
    pub(super) a: bool,
    pub(super) b: bool,
}
lane_function!([] Dp4a, 3 0 => 1 0, |f, s, _| {
    let term = |i: u32| field(s[0], i, 8, f.a).wrapping_mul(field(s[1], i, 8, f.b));
    Out::word(s[2].wrapping_add(term(0)).wrapping_add(term(8)).wrapping_add(term(16)).wrapping_add(term(24)))
});

#[derive(Clone, Copy)]
pub(super) struct Dp2a {
    pub(super) a: bool,
    pub(super) b: bool,
    pub(super) high: bool,
}
lane_function!([] Dp2a, 3 0 => 1 0, |f, s, _| {
    let bytes = if f.high { s[1] >> 16 } else { s[1] };
    let term = |i: u32| field(s[0], 16 * i, 16, f.a).wrapping_mul(field(bytes, 8 * i, 8, f.b));
    Out::word(s[2].wrapping_add(term(0)).wrapping_add(term(1)))
});

#[derive(Clone, Copy)]
pub(super) struct ClMad {
    pub(super) high: bool,
}
lane_function!([] ClMad, 6 0 => 2 0, |f, s, _| {
    let (a, b) = (u128::from(pair(s[0], s[1])), pair(s[2], s[3]));
    let product = (0..64).fold(0, |sum, i| sum ^ if b >> i & 1 == 1 { a << i } else { 0 });
    let half = if f.high { (product >> 64) as u64 } else { product as u64 };
    Out::wide(half ^ pair(s[4], s[5]))
});
