//! Functions of the int family: [`IntFn`] says what each computes.
//!
//! Parameters that decide the code of a hot operation (which comparison, signedness, direction of a shift) are
//! const generics, the rest are fields: every type is compiled once for each CPU level.

mod bits;
mod compare;
mod logic;
mod minmax;
mod mul;
mod ptx;
mod shift;
mod sum;
mod video;

use lanescope_ir::op::int::{Cmp, IntFn, Packing, Prmt};

use super::Bind;

/// Implements [`LaneFunction`](super::LaneFunction): sources and predicates read, words and predicates given.
macro_rules! lane_function {
    ([$($generic:tt)*] $name:ty, $src:literal $psrc:literal => $dst:literal $pdst:literal, |$this:pat_param, $s:pat_param, $p:pat_param| $body:expr) => {
        impl<$($generic)*> $crate::lane::LaneFunction for $name {
            const SRC: usize = $src;
            const PSRC: usize = $psrc;
            const DST: usize = $dst;
            const PDST: usize = $pdst;
            #[inline(always)]
            fn eval(self, $s: [u32; 6], $p: [bool; 3]) -> $crate::lane::Out {
                let $this = self;
                $body
            }
        }
    };
}
use lane_function;

/// A 64-bit value of two words.
#[inline(always)]
fn pair(lo: u32, hi: u32) -> u64 {
    u64::from(lo) | u64::from(hi) << 32
}

pub(super) fn bind<B: Bind>(f: &IntFn, b: B) -> B::Output {
    match *f {
        IntFn::Mov => b.bind(sum::Mov),
        IntFn::Mov64 => b.bind(sum::Mov64),
        IntFn::Sel => b.bind(sum::Sel),
        IntFn::Sel64 => b.bind(sum::Sel64),

        IntFn::Add => b.bind(sum::Add),
        IntFn::Add3 => b.bind(sum::Add3),
        IntFn::Add3Carry { neg } => b.bind(sum::Add3Carry { neg }),
        IntFn::Add3X => b.bind(sum::Add3X),
        IntFn::Add3XCarry => b.bind(sum::Add3XCarry),
        IntFn::Add64 { neg } => b.bind(sum::Add64 { neg }),
        IntFn::Add64Carry { neg, x } => b.bind(sum::Add64Carry { neg, x }),
        IntFn::Add3Wide { neg } => b.bind(sum::Add3Wide { neg }),
        IntFn::AddSat { neg } => b.bind(sum::AddSat { neg }),
        IntFn::Add16x2 => b.bind(sum::Add16x2),
        IntFn::Abs => b.bind(sum::Abs),
        IntFn::AbsDiff { signed } => b.bind(sum::AbsDiff { signed }),
        IntFn::AbsDiff4 { signed } => b.bind(sum::AbsDiff4 { signed }),
        IntFn::AbsDiff4Acc { signed } => b.bind(sum::AbsDiff4Acc { signed }),

        IntFn::Mad => b.bind(mul::Mad),
        IntFn::MadX => b.bind(mul::MadX),
        IntFn::MadWide { signed: true, neg_c } => b.bind(mul::MadWide::<true> { neg_c }),
        IntFn::MadWide { signed: false, neg_c } => b.bind(mul::MadWide::<false> { neg_c }),
        IntFn::MadWideCarry { signed, neg_c } => b.bind(mul::MadCarry::<false> { signed, neg_c }),
        IntFn::MadHi { signed: true, neg_c } => b.bind(mul::MadHi::<true> { neg_c }),
        IntFn::MadHi { signed: false, neg_c } => b.bind(mul::MadHi::<false> { neg_c }),
        IntFn::MadHiCarry { signed, neg_c } => b.bind(mul::MadCarry::<true> { signed, neg_c }),
        IntFn::Dp4a { a, b: b_signed } => b.bind(mul::Dp4a { a, b: b_signed }),
        IntFn::Dp2a { a, b: b_signed, high } => b.bind(mul::Dp2a { a, b: b_signed, high }),
        IntFn::ClMad { high } => b.bind(mul::ClMad { high }),

        IntFn::Lea { shift } => b.bind(shift::Lea { shift }),
        IntFn::LeaHiX { shift } => b.bind(shift::LeaHiX { shift }),
        IntFn::LeaCarry(lea) => b.bind(shift::Carrying(lea)),
        IntFn::Shl => b.bind(shift::Shl),
        IntFn::ShrU => b.bind(shift::ShrU),
        IntFn::ShrS => b.bind(shift::ShrS),
        IntFn::Funnel(f) if f.right => b.bind(shift::Right::of(f)),
        IntFn::Funnel(f) => b.bind(shift::Left::of(f)),

        IntFn::And => b.bind(logic::And),
        IntFn::Or => b.bind(logic::Or),
        IntFn::Xor => b.bind(logic::Xor),
        IntFn::Lop3 { lut } => b.bind(logic::Lop3::of(lut)),
        IntFn::Lop3Pred { lut, and } => b.bind(logic::Lop3Pred { table: logic::Lop3::of(lut), and }),
        IntFn::Plop3 { lut } => b.bind(logic::Plop3 { lut }),
        IntFn::SignPlop3 { lut } => b.bind(logic::SignPlop3 { lut }),

        IntFn::Set { cmp: Cmp::Eq, .. } => b.bind(compare::Set::<{ compare::EQ }, false>),
        IntFn::Set { cmp: Cmp::Ne, .. } => b.bind(compare::Set::<{ compare::NE }, false>),
        IntFn::Set { cmp: Cmp::Lt, signed: true } => b.bind(compare::Set::<{ compare::LT }, true>),
        IntFn::Set { cmp: Cmp::Lt, signed: false } => b.bind(compare::Set::<{ compare::LT }, false>),
        IntFn::Set { cmp: Cmp::Le, signed: true } => b.bind(compare::Set::<{ compare::LE }, true>),
        IntFn::Set { cmp: Cmp::Le, signed: false } => b.bind(compare::Set::<{ compare::LE }, false>),
        IntFn::Set { cmp: Cmp::Gt, signed: true } => b.bind(compare::Set::<{ compare::GT }, true>),
        IntFn::Set { cmp: Cmp::Gt, signed: false } => b.bind(compare::Set::<{ compare::GT }, false>),
        IntFn::Set { cmp: Cmp::Ge, signed: true } => b.bind(compare::Set::<{ compare::GE }, true>),
        IntFn::Set { cmp: Cmp::Ge, signed: false } => b.bind(compare::Set::<{ compare::GE }, false>),
        IntFn::Set { cmp: cmp @ (Cmp::False | Cmp::True), .. } => {
            b.bind(compare::Constant { value: matches!(cmp, Cmp::True) })
        }
        IntFn::SetJoin { cmp, signed, op, extended } => {
            b.bind(compare::Join { order: compare::Order::of(cmp, signed), op, extended })
        }
        IntFn::SetJoin64 { cmp, signed, op } => b.bind(compare::Join64 { order: compare::Order::of(cmp, signed), op }),

        IntFn::Min { signed: true } => b.bind(minmax::Min::<true>),
        IntFn::Min { signed: false } => b.bind(minmax::Min::<false>),
        IntFn::Max { signed: true } => b.bind(minmax::Max::<true>),
        IntFn::Max { signed: false } => b.bind(minmax::Max::<false>),
        IntFn::MinMax { signed, packing, relu } => {
            b.bind(minmax::MinMax(minmax::Rule { signed, two: two(packing), relu }))
        }
        IntFn::MinMax3 { signed, packing, relu } => {
            b.bind(minmax::MinMax3(minmax::Rule { signed, two: two(packing), relu }))
        }
        IntFn::AddMinMax { signed, packing, relu } => {
            b.bind(minmax::AddMinMax(minmax::Rule { signed, two: two(packing), relu }))
        }
        IntFn::MinMax64 { signed } => b.bind(minmax::MinMax64 { signed }),

        IntFn::Prmt(Prmt::Index) => b.bind(bits::PrmtIndex),
        IntFn::Prmt(mode) => b.bind(bits::PrmtMode { mode }),
        IntFn::Popc => b.bind(bits::Popc),
        IntFn::Flo { signed, shift } => b.bind(bits::Flo { signed, shift }),
        IntFn::Brev => b.bind(bits::Brev),
        IntFn::Bmsk { wrap } => b.bind(bits::Bmsk { wrap }),
        IntFn::Sgxt { signed, wrap } => b.bind(bits::Sgxt { signed, wrap }),
        IntFn::Saturate(to) => b.bind(bits::Saturate(to)),
        IntFn::PackSaturate(to) => b.bind(bits::PackSaturate(to)),

        IntFn::Div { signed } => b.bind(ptx::Div { signed }),
        IntFn::Rem { signed } => b.bind(ptx::Rem { signed }),
        IntFn::Div64 { signed } => b.bind(ptx::Div64 { signed }),
        IntFn::Rem64 { signed } => b.bind(ptx::Rem64 { signed }),
        IntFn::Mad64 => b.bind(ptx::Mad64),
        IntFn::MadHi64 { signed } => b.bind(ptx::MadHi64 { signed }),
        IntFn::MadHiSat => b.bind(ptx::MadHiSat),
        IntFn::Mad24 { signed, high, sat } => b.bind(ptx::Mad24 { signed, high, sat }),
        IntFn::Shl64 => b.bind(ptx::Shl64),
        IntFn::Shr64 { signed } => b.bind(ptx::Shr64 { signed }),
        IntFn::Lop64 { lut } => b.bind(ptx::Lop64 { table: logic::Lop3::of(lut) }),
        IntFn::Abs64 => b.bind(ptx::Abs64),
        IntFn::AbsDiff64 { signed } => b.bind(ptx::AbsDiff64 { signed }),
        IntFn::Clz => b.bind(ptx::Clz),
        IntFn::Clz64 => b.bind(ptx::Clz64),
        IntFn::Popc64 => b.bind(ptx::Popc64),
        IntFn::Brev64 => b.bind(ptx::Brev64),
        IntFn::Flo64 { signed, shift } => b.bind(ptx::Flo64 { signed, shift }),
        IntFn::Bfe { signed } => b.bind(ptx::Bfe { signed }),
        IntFn::Bfe64 { signed } => b.bind(ptx::Bfe64 { signed }),
        IntFn::Bfi => b.bind(ptx::Bfi),
        IntFn::Bfi64 => b.bind(ptx::Bfi64),
        IntFn::Cnot => b.bind(ptx::Cnot),
        IntFn::Cnot64 => b.bind(ptx::Cnot64),
        IntFn::Fns => b.bind(ptx::Fns),
        IntFn::Video(f) => b.bind(video::Video(f)),
    }
}

fn two(packing: Packing) -> bool {
    packing == Packing::Two
}
