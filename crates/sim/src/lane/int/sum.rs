//! Moves, selections and sums.

use super::{lane_function, pair};
use crate::lane::Out;

#[derive(Clone, Copy)]
pub(super) struct Mov;
lane_function!([] Mov, 1 0 => 1 0, |_, s, _| Out::word(s[0]));

#[derive(Clone, Copy)]
pub(super) struct Mov64;
lane_function!([] Mov64, 2 0 => 2 0, |_, s, _| Out { d: [s[0], s[1]], p: [false; 2] });

#[derive(Clone, Copy)]
pub(super) struct Sel;
lane_function!([] Sel, 2 1 => 1 0, |_, s, p| Out::word(if p[0] { s[0] } else { s[1] }));

#[derive(Clone, Copy)]
pub(super) struct Sel64;
lane_function!([] Sel64, 4 1 => 2 0, |_, s, p| Out {
    d: if p[0] { [s[0], s[1]] } else { [s[2], s[3]] },
    p: [false; 2],
});

#[derive(Clone, Copy)]
pub(super) struct Add;
lane_function!([] Add, 2 0 => 1 0, |_, s, _| Out::word(s[0].wrapping_add(s[1])));

#[derive(Clone, Copy)]
pub(super) struct Add3;
lane_function!([] Add3, 3 0 => 1 0, |_, s, _| Out::word(s[0].wrapping_add(s[1]).wrapping_add(s[2])));

/// Word and carries of an exact sum.
#[inline(always)]
fn carries(sum: u64) -> Out {
    Out { d: [sum as u32, 0], p: [sum >> 32 >= 1, sum >> 32 >= 2] }
}

/// What a source adds to an exact sum: itself, or 2^32 minus itself.
#[inline(always)]
fn addend(x: u32, neg: bool) -> u64 {
    let flip = if neg { !0 } else { 0 };
    u64::from(x ^ flip) + u64::from(neg)
}

#[derive(Clone, Copy)]
pub(super) struct Add3Carry {
    pub(super) neg: [bool; 3],
}
lane_function!([] Add3Carry, 3 0 => 1 2, |f, s, _| {
    carries(addend(s[0], f.neg[0]) + addend(s[1], f.neg[1]) + addend(s[2], f.neg[2]))
});

#[derive(Clone, Copy)]
pub(super) struct Add3X;
lane_function!([] Add3X, 3 2 => 1 0, |_, s, p| {
    Out::word(s[0].wrapping_add(s[1]).wrapping_add(s[2]).wrapping_add(u32::from(p[0])).wrapping_add(u32::from(p[1])))
});

#[derive(Clone, Copy)]
pub(super) struct Add3XCarry;
lane_function!([] Add3XCarry, 3 2 => 1 2, |_, s, p| {
    carries(u64::from(s[0]) + u64::from(s[1]) + u64::from(s[2]) + u64::from(p[0]) + u64::from(p[1]))
});

#[inline(always)]
fn signed64(lo: u32, hi: u32, neg: bool) -> u64 {
    let x = pair(lo, hi);
    if neg { x.wrapping_neg() } else { x }
}

#[derive(Clone, Copy)]
pub(super) struct Add64 {
    pub(super) neg: [bool; 2],
}
lane_function!([] Add64, 4 0 => 2 0, |f, s, _| {
    Out::wide(signed64(s[0], s[1], f.neg[0]).wrapping_add(signed64(s[2], s[3], f.neg[1])))
});

#[derive(Clone, Copy)]
pub(super) struct Add64Carry {
    pub(super) neg: [bool; 2],
    pub(super) x: bool,
}
lane_function!([] Add64Carry, 4 1 => 2 1, |f, s, p| {
    // A subtrahend enters as 2^64 - x, so that subtracting zero carries; with a carry coming in it is inverted.
    let term = |x: u64, neg: bool| match (neg, f.x) {
        (false, _) => u128::from(x),
        (true, true) => u128::from(!x),
        (true, false) => (1u128 << 64) - u128::from(x),
    };
    let carry = u128::from(f.x && p[0]);
    let sum = term(super::pair(s[0], s[1]), f.neg[0]) + term(super::pair(s[2], s[3]), f.neg[1]) + carry;
    Out { d: [sum as u32, (sum >> 32) as u32], p: [sum >> 64 != 0, false] }
});

#[derive(Clone, Copy)]
pub(super) struct Add3Wide {
    pub(super) neg: [bool; 3],
}
lane_function!([] Add3Wide, 6 0 => 2 0, |f, s, _| {
    let ab = signed64(s[0], s[1], f.neg[0]).wrapping_add(signed64(s[2], s[3], f.neg[1]));
    Out::wide(ab.wrapping_add(signed64(s[4], s[5], f.neg[2])))
});

#[derive(Clone, Copy)]
pub(super) struct AddSat {
    pub(super) neg: bool,
}
lane_function!([] AddSat, 2 0 => 1 0, |f, s, _| {
    let (a, b) = (i64::from(s[0] as i32), i64::from(s[1] as i32));
    let sum = if f.neg { a - b } else { a + b };
    Out::word(sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as u32)
});

#[derive(Clone, Copy)]
pub(super) struct Add16x2;
lane_function!([] Add16x2, 2 0 => 1 0, |_, s, _| {
    let low = s[0].wrapping_add(s[1]) & 0xffff;
    Out::word(low | (s[0] & 0xffff_0000).wrapping_add(s[1] & 0xffff_0000))
});

#[derive(Clone, Copy)]
pub(super) struct Abs;
lane_function!([] Abs, 1 0 => 1 0, |_, s, _| Out::word((s[0] as i32).unsigned_abs()));

#[derive(Clone, Copy)]
pub(super) struct AbsDiff {
    pub(super) signed: bool,
}
lane_function!([] AbsDiff, 3 0 => 1 0, |f, s, _| {
    // Flipping the sign bits turns the signed order into the unsigned one.
    let bias = if f.signed { 1 << 31 } else { 0 };
    Out::word((s[0] ^ bias).abs_diff(s[1] ^ bias).wrapping_add(s[2]))
});

/// Differences of the bytes, without sign.
#[inline(always)]
fn byte_differences(s: [u32; 6], signed: bool) -> [u32; 4] {
    let bias = if signed { 0x8080_8080 } else { 0 };
    let (a, b) = (s[0] ^ bias, s[1] ^ bias);
    [0, 8, 16, 24].map(|i| (a >> i & 0xff).abs_diff(b >> i & 0xff))
}

#[derive(Clone, Copy)]
pub(super) struct AbsDiff4 {
    pub(super) signed: bool,
}
lane_function!([] AbsDiff4, 2 0 => 1 0, |f, s, _| {
    let [a, b, c, d] = byte_differences(s, f.signed);
    Out::word(a | b << 8 | c << 16 | d << 24)
});

#[derive(Clone, Copy)]
pub(super) struct AbsDiff4Acc {
    pub(super) signed: bool,
}
lane_function!([] AbsDiff4Acc, 3 0 => 1 0, |f, s, _| {
    let [a, b, c, d] = byte_differences(s, f.signed);
    Out::word(s[2].wrapping_add(a + b + c + d))
});
