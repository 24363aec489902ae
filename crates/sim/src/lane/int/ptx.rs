//! What PTX has as one instruction and SASS composes of several.

use super::logic::Lop3;
use super::{lane_function, pair};
use crate::lane::Out;

#[derive(Clone, Copy)]
pub(super) struct Div {
    pub(super) signed: bool,
}
lane_function!([] Div, 2 0 => 1 0, |f, s, _| Out::word(match s[1] {
    0 => !0,
    b if f.signed => (s[0] as i32).wrapping_div(b as i32) as u32,
    b => s[0] / b,
}));

#[derive(Clone, Copy)]
pub(super) struct Rem {
    pub(super) signed: bool,
}
lane_function!([] Rem, 2 0 => 1 0, |f, s, _| Out::word(match s[1] {
    0 => !0,
    b if f.signed => (s[0] as i32).wrapping_rem(b as i32) as u32,
    b => s[0] % b,
}));

#[derive(Clone, Copy)]
pub(super) struct Div64 {
    pub(super) signed: bool,
}
lane_function!([] Div64, 4 0 => 2 0, |f, s, _| {
    let a = pair(s[0], s[1]);
    Out::wide(match pair(s[2], s[3]) {
        0 => !0,
        b if f.signed => (a as i64).wrapping_div(b as i64) as u64,
        b => a / b,
    })
});

#[derive(Clone, Copy)]
pub(super) struct Rem64 {
    pub(super) signed: bool,
}
lane_function!([] Rem64, 4 0 => 2 0, |f, s, _| {
    let a = pair(s[0], s[1]);
    Out::wide(match pair(s[2], s[3]) {
        0 => !0,
        b if f.signed => (a as i64).wrapping_rem(b as i64) as u64,
        b => a % b,
    })
});

#[derive(Clone, Copy)]
pub(super) struct Mad64;
lane_function!([] Mad64, 6 0 => 2 0, |_, s, _| {
    Out::wide(pair(s[0], s[1]).wrapping_mul(pair(s[2], s[3])).wrapping_add(pair(s[4], s[5])))
});

#[derive(Clone, Copy)]
pub(super) struct MadHi64 {
    pub(super) signed: bool,
}
lane_function!([] MadHi64, 6 0 => 2 0, |f, s, _| {
    let (a, b) = (pair(s[0], s[1]), pair(s[2], s[3]));
    let high = if f.signed {
        ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64
    } else {
        ((u128::from(a) * u128::from(b)) >> 64) as u64
    };
    Out::wide(high.wrapping_add(pair(s[4], s[5])))
});

#[derive(Clone, Copy)]
pub(super) struct MadHiSat;
lane_function!([] MadHiSat, 3 0 => 1 0, |_, s, _| {
    let high = ((i64::from(s[0] as i32) * i64::from(s[1] as i32)) >> 32) as i32;
    Out::word(high.saturating_add(s[2] as i32) as u32)
});

#[derive(Clone, Copy)]
pub(super) struct Mad24 {
    pub(super) signed: bool,
    pub(super) high: bool,
    pub(super) sat: bool,
}
lane_function!([] Mad24, 3 0 => 1 0, |f, s, _| {
    let factor = |x: u32| {
        if f.signed { i64::from((x << 8) as i32 >> 8) } else { i64::from(x & 0xff_ffff) }
    };
    let product = factor(s[0]) * factor(s[1]);
    let part = if f.high { (product >> 16) as u32 } else { product as u32 };
    Out::word(if f.sat {
        (part as i32).saturating_add(s[2] as i32) as u32
    } else {
        part.wrapping_add(s[2])
    })
});

#[derive(Clone, Copy)]
pub(super) struct Shl64;
lane_function!([] Shl64, 3 0 => 2 0, |_, s, _| {
    Out::wide(if s[2] < 64 { pair(s[0], s[1]) << (s[2] & 63) } else { 0 })
});

#[derive(Clone, Copy)]
pub(super) struct Shr64 {
    pub(super) signed: bool,
}
lane_function!([] Shr64, 3 0 => 2 0, |f, s, _| {
    let x = pair(s[0], s[1]);
    Out::wide(if f.signed {
        (x as i64 >> s[2].min(63)) as u64
    } else if s[2] < 64 {
        x >> (s[2] & 63)
    } else {
        0
    })
});

#[derive(Clone, Copy)]
pub(super) struct Lop64 {
    pub(super) table: Lop3,
}
lane_function!([] Lop64, 4 0 => 2 0, |f, s, _| {
    Out { d: [f.table.apply(s[0], s[2], 0), f.table.apply(s[1], s[3], 0)], p: [false; 2] }
});

#[derive(Clone, Copy)]
pub(super) struct Abs64;
lane_function!([] Abs64, 2 0 => 2 0, |_, s, _| Out::wide((pair(s[0], s[1]) as i64).unsigned_abs()));

#[derive(Clone, Copy)]
pub(super) struct AbsDiff64 {
    pub(super) signed: bool,
}
lane_function!([] AbsDiff64, 6 0 => 2 0, |f, s, _| {
    let (a, b) = (pair(s[0], s[1]), pair(s[2], s[3]));
    let difference = if f.signed { (a as i64).abs_diff(b as i64) } else { a.abs_diff(b) };
    Out::wide(difference.wrapping_add(pair(s[4], s[5])))
});

#[derive(Clone, Copy)]
pub(super) struct Clz;
lane_function!([] Clz, 1 0 => 1 0, |_, s, _| Out::word(s[0].leading_zeros()));

#[derive(Clone, Copy)]
pub(super) struct Clz64;
lane_function!([] Clz64, 2 0 => 1 0, |_, s, _| Out::word(pair(s[0], s[1]).leading_zeros()));

#[derive(Clone, Copy)]
pub(super) struct Popc64;
lane_function!([] Popc64, 2 0 => 1 0, |_, s, _| Out::word(pair(s[0], s[1]).count_ones()));

#[derive(Clone, Copy)]
pub(super) struct Brev64;
lane_function!([] Brev64, 2 0 => 2 0, |_, s, _| Out::wide(pair(s[0], s[1]).reverse_bits()));

#[derive(Clone, Copy)]
pub(super) struct Flo64 {
    pub(super) signed: bool,
    pub(super) shift: bool,
}
lane_function!([] Flo64, 2 0 => 1 0, |f, s, _| {
    let x = pair(s[0], s[1]);
    let sign = (x as i64 >> 63) as u64;
    let x = if f.signed { x ^ sign } else { x };
    let zeros = x.leading_zeros();
    let found = if f.shift { zeros } else { 63u32.wrapping_sub(zeros) };
    Out::word(if x == 0 { !0 } else { found })
});

/// The field of `x`, of `bits` bits, as `bfe` extracts it.
#[inline(always)]
fn extract(x: u64, bits: u32, at: u32, len: u32, signed: bool) -> u64 {
    let field = if at < 64 { x >> at } else { 0 };
    let mask = if len < 64 { !(!0 << len) } else { !0 };
    // The field ends at the word's end, beyond which there are copies of the sign.
    let sign = signed && len != 0 && x >> at.saturating_add(len - 1).min(bits - 1) & 1 == 1;
    let inside = if at < bits { !0u64 >> (64 - (bits - at)) } else { 0 };
    let known = mask & inside;
    field & known | if sign { !known } else { 0 }
}

#[derive(Clone, Copy)]
pub(super) struct Bfe {
    pub(super) signed: bool,
}
lane_function!([] Bfe, 3 0 => 1 0, |f, s, _| Out::word(extract(u64::from(s[0]), 32, s[1] & 0xff, s[2] & 0xff, f.signed) as u32));

#[derive(Clone, Copy)]
pub(super) struct Bfe64 {
    pub(super) signed: bool,
}
lane_function!([] Bfe64, 4 0 => 2 0, |f, s, _| Out::wide(extract(pair(s[0], s[1]), 64, s[2], s[3], f.signed)));

/// The low `len` bits of `a` over those of `b` from bit `at` on.
#[inline(always)]
fn insert(a: u64, b: u64, at: u32, len: u32) -> u64 {
    let ones = if len < 64 { !(!0u64 << len) } else { !0 };
    let mask = if at < 64 { ones << at } else { 0 };
    let moved = if at < 64 { a << at } else { 0 };
    moved & mask | b & !mask
}

#[derive(Clone, Copy)]
pub(super) struct Bfi;
lane_function!([] Bfi, 4 0 => 1 0, |_, s, _| {
    Out::word(insert(u64::from(s[0]), u64::from(s[1]), s[2] & 0xff, s[3] & 0xff) as u32)
});

#[derive(Clone, Copy)]
pub(super) struct Bfi64;
lane_function!([] Bfi64, 6 0 => 2 0, |_, s, _| Out::wide(insert(pair(s[0], s[1]), pair(s[2], s[3]), s[4], s[5])));

#[derive(Clone, Copy)]
pub(super) struct Cnot;
lane_function!([] Cnot, 1 0 => 1 0, |_, s, _| Out::word(u32::from(s[0] == 0)));

#[derive(Clone, Copy)]
pub(super) struct Cnot64;
lane_function!([] Cnot64, 2 0 => 2 0, |_, s, _| Out::wide(u64::from(pair(s[0], s[1]) == 0)));

#[derive(Clone, Copy)]
pub(super) struct Fns;
lane_function!([] Fns, 3 0 => 1 0, |_, s, _| {
    let (mask, base, offset) = (s[0], s[1], s[2] as i32);
    if base >= 32 {
        return Out::word(!0);
    }
    if offset == 0 {
        return Out::word(if mask >> base & 1 == 1 { base } else { !0 });
    }
    // Downwards is upwards in the reversed word.
    let (mut left, from) = if offset > 0 { (mask, base) } else { (mask.reverse_bits(), 31 - base) };
    left &= !0 << from;
    for _ in 1..offset.unsigned_abs().min(33) {
        left &= left.wrapping_sub(1);
    }
    let found = left.trailing_zeros();
    Out::word(if left == 0 { !0 } else if offset > 0 { found } else { 31 - found })
});
