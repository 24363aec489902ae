//! Tensor-core operations of one warp: `D = A * B + C` on tiles that are spread over its 32 lanes.
//!
//! A tile's elements lie in the lanes' registers as the PTX ISA lays out `mma` (m16n8k16 and so on). In words: with
//! `g = lane / 4` and `t = lane % 4`, a word of A holds neighbouring elements of row `g`, from column `t` times their
//! number on; the words of a lane go first through the groups of eight rows, then through the groups of columns. B is laid
//! out like A's transpose. C and D hold pairs of neighbours: row `g`, columns `2 t` and `2 t + 1`, then eight rows below.
//!
//! All operands are words in a lane's order; the engine needs nothing else about the layout but [`Shape`] and [`Element`].

use super::Src;
use super::float::Rounding;
use crate::ids::Slot;

/// Rows of A, columns of B, and what they share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Rows of A and of the result: 8 or 16.
    pub m: u8,
    /// Columns of A, rows of B.
    pub k: u16,
}

impl Shape {
    /// Columns of B and of the result, in every shape.
    pub const N: u8 = 8;
}

/// Type of the elements of A or B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// Half precision.
    F16,
    /// bfloat16.
    Bf16,
    /// The upper 19 bits of an f32.
    Tf32,
    /// 8 bits: 4 of exponent, 3 of mantissa.
    E4m3,
    /// 8 bits: 5 of exponent, 2 of mantissa.
    E5m2,
    /// Double precision.
    F64,
    /// Integers.
    Int {
        /// 4 or 8.
        bits: u8,
        /// Two's complement.
        signed: bool,
    },
    /// Single bits.
    Bit,
}

impl Element {
    /// Its width.
    pub const fn bits(self) -> u32 {
        match self {
            Element::F16 | Element::Bf16 => 16,
            Element::Tf32 => 32,
            Element::E4m3 | Element::E5m2 => 8,
            Element::F64 => 64,
            Element::Int { bits, .. } => bits as u32,
            Element::Bit => 1,
        }
    }
}

/// How products are added up, which is also the type of C and D.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sum {
    /// Groups of products and the sum so far are aligned to the largest of them and truncated.
    Float {
        /// C and D are f16, and each group's sum is rounded to the nearest of them; else they are f32, rounded to zero.
        half: bool,
        /// Bits below the leading one that survive the alignment.
        fraction: u8,
        /// Products that are added at once.
        group: u8,
        /// Bits of mantissa of an f32 sum: 23, or fewer.
        mantissa: u8,
    },
    /// f64: one fused multiply-add after the other.
    Double(Rounding),
    /// s32.
    Int {
        /// Results that do not fit become the nearest that does; otherwise they wrap.
        saturate: bool,
    },
    /// s32: the number of bits set in the bitwise combination of a row and a column.
    Bits {
        /// Exclusive or, instead of and.
        xor: bool,
    },
}

impl Sum {
    /// Width of an element of C and D.
    pub const fn bits(self) -> u32 {
        match self {
            Sum::Float { half: true, .. } => 16,
            Sum::Double(_) => 64,
            _ => 32,
        }
    }
}

/// One multiplication of tiles.
#[derive(Clone, Debug, PartialEq)]
pub struct Mma {
    /// Sizes.
    pub shape: Shape,
    /// Type of A.
    pub a_type: Element,
    /// Type of B: as wide as A's.
    pub b_type: Element,
    /// The rest of the arithmetic.
    pub sum: Sum,
    /// D, as long as `c`.
    pub d: Vec<Option<Slot>>,
    /// Words of A.
    pub a: Vec<Src>,
    /// Words of B.
    pub b: Vec<Src>,
    /// Words of C.
    pub c: Vec<Src>,
}

impl Mma {
    /// Words that A, B and C have in one lane, or nothing if there is no such operation.
    pub fn words(shape: Shape, a_type: Element, b_type: Element, sum: Sum) -> Option<[usize; 3]> {
        let bits = a_type.bits();
        let (m, k) = (u32::from(shape.m), u32::from(shape.k));
        let float = |e| matches!(e, Element::F16 | Element::Bf16 | Element::Tf32 | Element::E4m3 | Element::E5m2);
        let fits = match (sum, a_type, b_type) {
            (Sum::Double(_), Element::F64, Element::F64) | (Sum::Bits { .. }, Element::Bit, Element::Bit) => true,
            (Sum::Int { .. }, Element::Int { bits: a, .. }, Element::Int { bits: b, .. }) => {
                a == b && (a == 4 || a == 8)
            }
            (Sum::Float { fraction: 13..=30, group: 1..=32, mantissa: 1..=23, .. }, a, b) => {
                float(a) && (a == b || (a.bits() == 8 && b.bits() == 8))
            }
            _ => false,
        };
        // A word of each of the four lanes that share a row, or a pair of words.
        let step = 4 * if bits == 64 { 1 } else { 32 / bits };
        if !fits || !matches!(m, 8 | 16) || k == 0 || k % step != 0 || k > 4 * step {
            return None;
        }
        let words = bits.div_ceil(32);
        let (rows, columns) = (m / 8, k / step);
        let c = rows * 2 * sum.bits() / 32;
        Some([(rows * columns * words) as usize, (columns * words) as usize, c as usize])
    }

    /// Whether there are as many operands as the types and sizes want.
    pub fn is_consistent(&self) -> bool {
        let have = Some([self.a.len(), self.b.len(), self.c.len()]);
        self.d.len() == self.c.len() && Mma::words(self.shape, self.a_type, self.b_type, self.sum) == have
    }
}

/// How a chip's tensor cores add up products of floats. Measured on an H200; what holds for other chips is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chip {
    fraction: u8,
    bytes: u8,
    eight: Eight,
}

/// How products of 8-bit floats come about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Eight {
    /// Not by one instruction: compilers widen them to f16.
    Absent,
    /// With a short sum.
    Short,
    /// Like the others.
    Plain,
}

impl Chip {
    /// The tensor cores of `sm_<sm>`.
    pub const fn of(sm: u32) -> Chip {
        match sm {
            0..=88 => Chip { fraction: 24, bytes: 16, eight: Eight::Absent },
            89 => Chip { fraction: 24, bytes: 16, eight: Eight::Short },
            90..=99 => Chip { fraction: 25, bytes: 32, eight: Eight::Absent },
            _ => Chip { fraction: 25, bytes: 32, eight: Eight::Plain },
        }
    }

    /// The sum of products of `element`, if the chip multiplies them.
    pub const fn sum(self, element: Element, half: bool) -> Option<Sum> {
        let group = self.bytes as u32 * 8 / element.bits();
        let (fraction, group, mantissa) = match (element.bits(), self.eight) {
            (8, Eight::Absent) => return None,
            (8, Eight::Short) => (13, 16, 13),
            _ => (self.fraction, group as u8, 23),
        };
        Some(Sum::Float { half, fraction, group, mantissa })
    }
}
