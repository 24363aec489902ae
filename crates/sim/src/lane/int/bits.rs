//! Bits and bytes.

use lanescope_ir::op::int::{Prmt, Small};

use super::{lane_function, pair};
use crate::lane::Out;

#[derive(Clone, Copy)]
pub(super) struct PrmtIndex;
lane_function!([] PrmtIndex, 3 0 => 1 0, |_, s, _| {
    let bytes = pair(s[0], s[2]);
    let byte = |i: u32| {
        let nibble = s[1] >> (4 * i);
        let b = (bytes >> (8 * (nibble & 7))) as u32 & 0xff;
        let sign = 0xff * (b >> 7);
        (if nibble & 8 == 0 { b } else { sign }) << (8 * i)
    };
    Out::word(byte(0) | byte(1) | byte(2) | byte(3))
});

#[derive(Clone, Copy)]
pub(super) struct PrmtMode {
    pub(super) mode: Prmt,
}
lane_function!([] PrmtMode, 3 0 => 1 0, |f, s, _| {
    let bytes = pair(s[0], s[2]);
    let n = s[1] & 3;
    let from = |i: u32| match f.mode {
        Prmt::Index | Prmt::F4e => n + i,
        Prmt::B4e => (n + 8 - i) & 7,
        Prmt::Rc8 => n,
        Prmt::Ecl => n.max(i),
        Prmt::Ecr => n.min(i),
        Prmt::Rc16 => (n & 1) << 1 | (i & 1),
    };
    let byte = |i: u32| ((bytes >> (8 * (from(i) & 7))) as u32 & 0xff) << (8 * i);
    Out::word(byte(0) | byte(1) | byte(2) | byte(3))
});

#[derive(Clone, Copy)]
pub(super) struct Popc;
lane_function!([] Popc, 1 0 => 1 0, |_, s, _| Out::word(s[0].count_ones()));

#[derive(Clone, Copy)]
pub(super) struct Flo {
    pub(super) signed: bool,
    pub(super) shift: bool,
}
lane_function!([] Flo, 1 0 => 1 1, |f, s, _| {
    let sign = (s[0] as i32 >> 31) as u32;
    let x = if f.signed { s[0] ^ sign } else { s[0] };
    let zeros = x.leading_zeros();
    let found = if f.shift { zeros } else { 31u32.wrapping_sub(zeros) };
    Out { d: [if x == 0 { !0 } else { found }, 0], p: [x != 0, false] }
});

#[derive(Clone, Copy)]
pub(super) struct Brev;
lane_function!([] Brev, 1 0 => 1 0, |_, s, _| Out::word(s[0].reverse_bits()));

/// Ones in the low `n` bits, all from 32 on.
#[inline(always)]
fn low_ones(n: u32) -> u32 {
    if n < 32 { !(!0 << (n & 31)) } else { !0 }
}

#[derive(Clone, Copy)]
pub(super) struct Bmsk {
    pub(super) wrap: bool,
}
lane_function!([] Bmsk, 2 0 => 1 0, |f, s, _| {
    let (from, count) = if f.wrap { (s[0] & 31, s[1] & 31) } else { (s[0], s[1]) };
    let ones = low_ones(count);
    Out::word(if from < 32 { ones << (from & 31) } else { 0 })
});

#[derive(Clone, Copy)]
pub(super) struct Sgxt {
    pub(super) signed: bool,
    pub(super) wrap: bool,
}
lane_function!([] Sgxt, 2 0 => 1 0, |f, s, _| {
    let count = if f.wrap { s[1] & 31 } else { s[1] };
    let mask = low_ones(count);
    // The top bit of the mask is the sign; there is none in an empty field.
    let sign = s[0] & (mask ^ mask >> 1) != 0;
    let above = if f.signed & sign { !mask } else { 0 };
    Out::word(s[0] & mask | above)
});

/// `x` (signed) saturated, in the low bits, sign-extended if the type is signed.
#[inline(always)]
fn saturate(x: u32, to: Small) -> u32 {
    let bits = u32::from(to.bits).clamp(1, 16);
    let (min, max) = if to.signed { (-1 << (bits - 1), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
    (x as i32).clamp(min, max) as u32
}

#[derive(Clone, Copy)]
pub(super) struct Saturate(pub(super) Small);
lane_function!([] Saturate, 1 0 => 1 0, |f, s, _| Out::word(saturate(s[0], f.0)));

#[derive(Clone, Copy)]
pub(super) struct PackSaturate(pub(super) Small);
lane_function!([] PackSaturate, 3 0 => 1 0, |f, s, _| {
    let bits = u32::from(f.0.bits).clamp(1, 16);
    let mask = low_ones(bits);
    let above = if bits < 16 { s[2] << (2 * bits) } else { 0 };
    Out::word((saturate(s[1], f.0) & mask) | (saturate(s[0], f.0) & mask) << bits | above)
});
