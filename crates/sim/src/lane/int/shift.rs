//! Shifts and scaled sums.

use lanescope_ir::op::int::{Funnel, LeaCarry};

use super::{lane_function, pair};
use crate::lane::Out;

/// `x << n`, zero from 32 on.
#[inline(always)]
fn shl(x: u32, n: u32) -> u32 {
    if n < 32 { x << (n & 31) } else { 0 }
}

#[derive(Clone, Copy)]
pub(super) struct Shl;
lane_function!([] Shl, 2 0 => 1 0, |_, s, _| Out::word(shl(s[0], s[1])));

#[derive(Clone, Copy)]
pub(super) struct ShrU;
lane_function!([] ShrU, 2 0 => 1 0, |_, s, _| Out::word(if s[1] < 32 { s[0] >> (s[1] & 31) } else { 0 }));

#[derive(Clone, Copy)]
pub(super) struct ShrS;
lane_function!([] ShrS, 2 0 => 1 0, |_, s, _| Out::word((s[0] as i32 >> s[1].min(31)) as u32));

/// How an amount is reduced: `min(amount & mask, limit)`.
#[derive(Clone, Copy)]
struct Amount {
    mask: u32,
    limit: u32,
}

impl Amount {
    fn of(f: Funnel) -> Amount {
        let width = if f.wide { 64 } else { 32 };
        Amount { mask: if f.wrap { width - 1 } else { !0 }, limit: width }
    }
    #[inline(always)]
    fn reduce(self, n: u32) -> u32 {
        (n & self.mask).min(self.limit)
    }
}

#[derive(Clone, Copy)]
pub(super) struct Left {
    amount: Amount,
    high: bool,
}

impl Left {
    pub(super) fn of(f: Funnel) -> Left {
        Left { amount: Amount::of(f), high: f.high }
    }
}
lane_function!([] Left, 3 0 => 1 0, |f, s, _| {
    let n = f.amount.reduce(s[1]);
    let x = pair(s[0], s[2]);
    let y = if n < 64 { x << (n & 63) } else { 0 };
    Out::word(if f.high { (y >> 32) as u32 } else { y as u32 })
});

#[derive(Clone, Copy)]
pub(super) struct Right {
    amount: Amount,
    high: bool,
    signed: bool,
}

impl Right {
    pub(super) fn of(f: Funnel) -> Right {
        Right { amount: Amount::of(f), high: f.high, signed: f.signed }
    }
}
lane_function!([] Right, 3 0 => 1 0, |f, s, _| {
    let n = f.amount.reduce(s[1]);
    let x = pair(s[0], s[2]);
    let logical = if n < 64 { x >> (n & 63) } else { 0 };
    let arithmetic = (x as i64 >> n.min(63)) as u64;
    let y = if f.signed { arithmetic } else { logical };
    Out::word(if f.high { (y >> 32) as u32 } else { y as u32 })
});

#[derive(Clone, Copy)]
pub(super) struct Lea {
    pub(super) shift: u8,
}
lane_function!([] Lea, 2 0 => 1 0, |f, s, _| Out::word((s[0] << (f.shift & 31)).wrapping_add(s[1])));

#[derive(Clone, Copy)]
pub(super) struct LeaHiX {
    pub(super) shift: u8,
}
lane_function!([] LeaHiX, 3 1 => 1 0, |f, s, p| {
    let high = (pair(s[0], s[2]) << (f.shift & 31) >> 32) as u32;
    Out::word(high.wrapping_add(s[1]).wrapping_add(u32::from(p[0])))
});

#[derive(Clone, Copy)]
pub(super) struct Carrying(pub(super) LeaCarry);
lane_function!([] Carrying, 3 1 => 1 1, |f, s, p| {
    let LeaCarry { shift, high, sign_extend, minus_a, minus_b, carry_in } = f.0;
    let x = pair(s[0], if sign_extend { (s[0] as i32 >> 31) as u32 } else { s[2] }) << (shift & 31);
    let a = if high { (x >> 32) as u32 } else { x as u32 };
    // A subtrahend is `!x + 1` without wrapping; with a carry in there is no such 1.
    let term = |x: u32, minus: bool| {
        u64::from(if minus { !x } else { x }) + u64::from(minus && !carry_in)
    };
    let sum = term(a, minus_a) + term(s[1], minus_b) + u64::from(carry_in && p[0]);
    Out { d: [sum as u32, 0], p: [sum >> 32 != 0, false] }
});
