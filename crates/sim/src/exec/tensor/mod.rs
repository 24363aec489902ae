//! Multiplication of tiles that are spread over the lanes of a warp.
//!
//! Here elements are found in the lanes' registers and results put back; [`dot`] is the arithmetic.

mod dot;

use lanescope_ir::op::tensor::{Element, Mma, Shape, Sum};

use crate::lane::double;
use crate::rows::{LANES, Row};

/// Columns of B.
const N: usize = Shape::N as usize;

/// Adds the products of a row of A and a column of B to an element.
type Dot<'f> = &'f mut dyn FnMut(&mut u64, &[u64], &[u64]);

/// D, word by word, from the words of A, B and C in the order in which the operation lists them.
pub(super) fn multiply(op: &Mma, words: &[Row]) -> Vec<Row> {
    let Some([na, nb, nc]) = Mma::words(op.shape, op.a_type, op.b_type, op.sum) else { return Vec::new() };
    if words.len() != na + nb + nc {
        return Vec::new();
    }
    let (a, rest) = words.split_at(na);
    let (b, c) = rest.split_at(nb);
    let (m, k) = (usize::from(op.shape.m), usize::from(op.shape.k));
    let bits = op.a_type.bits();
    // Bits are combined a word at a time.
    let (bits, k) = if bits == 1 { (32, k / 32) } else { (bits, k) };
    let (a, b) = (elements(a, m, k, bits), elements(b, N, k, bits));
    let mut sums = pairs(c, m, op.sum.bits());
    let mut dots = |f: Dot<'_>| {
        for (at, sum) in sums.iter_mut().enumerate() {
            f(sum, &a[at / N * k..][..k], &b[at % N * k..][..k]);
        }
    };
    match op.sum {
        Sum::Float { half, fraction, group, mantissa } => {
            let read =
                |e: Element, from: &[u64]| from.iter().map(|&x| dot::Float::read(x as u32, e)).collect::<Vec<_>>();
            let (a, b) = (read(op.a_type, &a), read(op.b_type, &b));
            let rule = dot::Rule { half, fraction: fraction.into(), mantissa: mantissa.into() };
            for (at, sum) in sums.iter_mut().enumerate() {
                let (row, column) = (&a[at / N * k..][..k], &b[at % N * k..][..k]);
                for (row, column) in row.chunks(group.into()).zip(column.chunks(group.into())) {
                    *sum = rule.add(*sum as u32, row, column).into();
                }
            }
        }
        Sum::Double(round) => dots(&mut |sum, row, column| {
            for (a, b) in row.iter().zip(column) {
                *sum = double::multiply_add(*a, *b, *sum, round);
            }
        }),
        Sum::Int { saturate } => dots(&mut |sum, row, column| {
            let products = row.iter().zip(column).map(|(&a, &b)| number(a, op.a_type) * number(b, op.b_type));
            let total = i64::from(*sum as u32 as i32) + products.sum::<i64>();
            let limits = i64::from(i32::MIN)..=i64::from(i32::MAX);
            let total = if saturate { total.clamp(*limits.start(), *limits.end()) } else { total };
            *sum = u64::from(total as u32);
        }),
        Sum::Bits { xor } => dots(&mut |sum, row, column| {
            let words = row.iter().zip(column).map(|(a, b)| if xor { a ^ b } else { a & b });
            let ones = words.map(u64::count_ones).sum::<u32>();
            *sum = (*sum as u32).wrapping_add(ones).into();
        }),
    }
    unpair(&sums, nc, op.sum.bits())
}

/// The value of an integer element.
fn number(x: u64, e: Element) -> i64 {
    match e {
        Element::Int { bits, signed: true } => {
            let spare = 64 - u32::from(bits.clamp(1, 32));
            (x << spare) as i64 >> spare
        }
        _ => x as i64,
    }
}

/// The elements of A, or of B with rows and columns exchanged, row by row.
fn elements(words: &[Row], rows: usize, columns: usize, bits: u32) -> Vec<u64> {
    let mut out = vec![0; rows * columns];
    let per = (32 / bits).max(1) as usize;
    let (groups, size) = (rows / 8, if bits == 64 { 2 } else { 1 });
    for (at, word) in words.chunks(size).enumerate() {
        let (group, block) = (at % groups, at / groups);
        for l in 0..LANES {
            let value = u64::from(word[0].0[l]) | word.get(1).map_or(0, |hi| u64::from(hi.0[l]) << 32);
            let first = (8 * group + l / 4) * columns + (4 * block + l % 4) * per;
            for (i, e) in out[first..][..per].iter_mut().enumerate() {
                *e = if bits == 64 { value } else { value >> (i as u32 * bits) & ((1 << bits) - 1) };
            }
        }
    }
    out
}

/// The elements of C, row by row.
fn pairs(words: &[Row], rows: usize, bits: u32) -> Vec<u64> {
    let mut out = vec![0; rows * N];
    let size = (2 * bits / 32) as usize;
    for (group, words) in words.chunks(size).enumerate() {
        for l in 0..LANES {
            for i in 0..2 {
                let word = |k: usize| u64::from(words[k].0[l]);
                out[(8 * group + l / 4) * N + l % 4 * 2 + i] = match bits {
                    16 => word(0) >> (16 * i) & 0xffff,
                    32 => word(i),
                    _ => word(2 * i) | word(2 * i + 1) << 32,
                };
            }
        }
    }
    out
}

/// The reverse.
fn unpair(elements: &[u64], words: usize, bits: u32) -> Vec<Row> {
    let mut out = vec![Row::ZERO; words];
    let size = (2 * bits / 32) as usize;
    for (group, words) in out.chunks_mut(size).enumerate() {
        for l in 0..LANES {
            for i in 0..2 {
                let x = elements[(8 * group + l / 4) * N + l % 4 * 2 + i];
                match bits {
                    16 => words[0].0[l] |= (x as u32 & 0xffff) << (16 * i),
                    32 => words[i].0[l] = x as u32,
                    _ => (words[2 * i].0[l], words[2 * i + 1].0[l]) = (x as u32, (x >> 32) as u32),
                }
            }
        }
    }
    out
}

/// Elements `2 j` and `2 j + 1` of column `i` for lane `4 i + j`, where `half(r, c)` is the element in row `r`, column `c`.
pub(super) fn columns(half: impl Fn(usize, usize) -> u32) -> Row {
    Row(std::array::from_fn(|l| {
        let (i, j) = (l / 4, l % 4);
        half(2 * j, i) & 0xffff | half(2 * j + 1, i) << 16
    }))
}

/// The transpose of an 8x8 tile of 16-bit elements.
pub(super) fn transpose(tile: &Row) -> Row {
    columns(|r, c| tile.0[4 * r + c / 2] >> (16 * (c % 2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposing_twice_changes_nothing() {
        let tile = Row(std::array::from_fn(|l| (2 * l as u32) | (2 * l as u32 + 1) << 16));
        let once = transpose(&tile);
        // Row 0 of the transpose is column 0: elements 0, 8, 16 ...
        assert_eq!(once.0[0], 8 << 16);
        assert_eq!(once.0[1], 16 | 24 << 16);
        assert_eq!(transpose(&once), tile);
    }
}
