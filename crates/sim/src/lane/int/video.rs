//! The video instructions, as [`lanescope_ir::op::video`] defines them.

use lanescope_ir::op::int::Cmp;
use lanescope_ir::op::video::{Mad, Packed, Part, Scalar, Second, VideoFn, VideoOp};

use super::lane_function;
use crate::lane::Out;

/// Rare, so that one function decides everything as it runs.
#[derive(Clone, Copy)]
pub(super) struct Video(pub(super) VideoFn);
lane_function!([] Video, 3 0 => 1 0, |f, s, _| Out::word(match f.0 {
    VideoFn::Scalar(f) => scalar(f, s[0], s[1], s[2]),
    VideoFn::Mad(f) => mad(f, s[0], s[1], s[2]),
    VideoFn::Packed(f) => packed(f, s[0], s[1], s[2]),
}));

/// The low `bits` of `x` as a number.
fn number(x: u64, bits: u32, signed: bool) -> i64 {
    let above = 64 - bits.clamp(1, 64);
    if signed { (x << above) as i64 >> above } else { (x << above >> above) as i64 }
}

fn part(word: u32, part: Part, signed: bool) -> i64 {
    let shift = (u32::from(part.bits) * u32::from(part.index)).min(31);
    number(u64::from(word >> shift), part.bits.into(), signed)
}

/// The result's range for up to 32 bits.
fn clamp(x: i64, bits: u32, signed: bool) -> i64 {
    let span = 1i64 << bits.min(32);
    if signed { x.clamp(-span / 2, span / 2 - 1) } else { x.clamp(0, span - 1) }
}

/// All but shifts by more than 32 stay far within 64 bits.
fn compute(op: VideoOp, a: i64, b: i64) -> i64 {
    let amount = |wrap: bool| if wrap { b & 31 } else { b.clamp(0, 32) };
    match op {
        VideoOp::Add => a + b,
        VideoOp::Sub => a - b,
        VideoOp::AbsDiff => (a - b).abs(),
        VideoOp::Min => a.min(b),
        VideoOp::Max => a.max(b),
        VideoOp::Average => (a + b + i64::from(a + b >= 0)) >> 1,
        VideoOp::Set(cmp) => i64::from(match cmp {
            Cmp::False => false,
            Cmp::Lt => a < b,
            Cmp::Eq => a == b,
            Cmp::Le => a <= b,
            Cmp::Gt => a > b,
            Cmp::Ne => a != b,
            Cmp::Ge => a >= b,
            Cmp::True => true,
        }),
        VideoOp::Shl { wrap } => a << amount(wrap),
        VideoOp::Shr { wrap } => a >> amount(wrap),
    }
}

fn scalar(f: Scalar, a: u32, b: u32, c: u32) -> u32 {
    let [to_signed, a_signed, b_signed] = f.signed;
    let mut x = compute(f.op, part(a, f.parts[0], a_signed), part(b, f.parts[1], b_signed));
    let bits = u32::from(f.to.bits.min(32));
    if f.sat {
        let shifts = matches!(f.op, VideoOp::Shl { .. } | VideoOp::Shr { .. });
        if matches!(f.op, VideoOp::Shl { .. }) {
            // Of a left shift's result 34 bits are looked at.
            x = number(x as u64, 34, true);
        }
        x = if shifts || bits == 32 {
            clamp(x, 32, to_signed)
        } else {
            // As an unsigned number, whatever its sign.
            let most = (1u64 << (bits - u32::from(to_signed))) - 1;
            (x as u64).min(most) as i64
        };
    }
    if let Some(second) = f.second {
        let other = number(c.into(), 32, to_signed);
        let less = if to_signed { x < other } else { (x as u64) < other as u64 };
        x = match second {
            Second::Add => x.wrapping_add(other),
            Second::Min => {
                if less {
                    x
                } else {
                    other
                }
            }
            Second::Max => {
                if less {
                    other
                } else {
                    x
                }
            }
        };
    }
    if bits == 32 {
        return x as u32;
    }
    let shift = (bits * u32::from(f.to.index)).min(31);
    let mask = ((1u32 << bits) - 1) << shift;
    let upper_half = bits == 16 && f.to.index == 1;
    let moved = if upper_half { x as u32 } else { (x as u32) << shift };
    c & !mask | moved & mask
}

fn mad(f: Mad, a: u32, b: u32, c: u32) -> u32 {
    // Both factors and the addend count as signed words, whatever their types.
    let word = |x: i64| i64::from(x as u32 as i32);
    let product = word(part(a, f.parts[0], f.signed[0])) * word(part(b, f.parts[1], f.signed[1]));
    let addend = i64::from(c as i32);
    let signed = f.signed[0] || f.signed[1] || f.minus_product || f.minus_addend;
    let sum = if f.plus_one {
        product.wrapping_add(addend).wrapping_add(1)
    } else {
        let product = if f.minus_product { product.wrapping_neg() } else { product };
        // Inverted as a word first, so that -2^31 stays what it is.
        let addend = if f.minus_addend { i64::from(!c as i32) + 1 } else { addend };
        product.wrapping_add(addend)
    };
    let shift = u32::from(f.shift.min(63));
    let x = if signed { sum >> shift } else { (sum as u64 >> shift) as i64 };
    (if f.sat { clamp(x, 32, signed) } else { x }) as u32
}

fn packed(f: Packed, a: u32, b: u32, c: u32) -> u32 {
    let both = u64::from(a) | u64::from(b) << 32;
    let lanes = if f.lanes == 2 { 2 } else { 4 };
    let bits = 32 / lanes;
    let lane = |select: u8, signed| number(both >> (bits * u32::from(select)).min(63), bits, signed);
    let (mut merged, mut sum) = (c, c);
    for i in 0..lanes {
        if f.mask >> i & 1 == 0 {
            continue;
        }
        let at = i as usize;
        let mut x = compute(f.op, lane(f.select[0][at], f.signed[1]), lane(f.select[1][at], f.signed[2]));
        if f.sat {
            x = clamp(x, bits, f.signed[0]);
        }
        sum = sum.wrapping_add(x as u32);
        let mask = (u32::MAX >> (32 - bits)) << (bits * i);
        merged = merged & !mask | (x as u32) << (bits * i) & mask;
    }
    if f.accumulate { sum } else { merged }
}
