//! Functions of the float family.

mod approx;
mod arith;
pub(super) mod compare;
pub(super) mod divide;
mod select;

use lanescope_ir::op::float::{Arith, FloatFn, Rounding};

use super::{Bind, mufu};

pub(super) fn bind<B: Bind>(f: &FloatFn, b: B) -> B::Output {
    const NEAREST: Arith = Arith::PLAIN;
    const FLUSHED: Arith = Arith { round: Rounding::Nearest, ftz: true, sat: false };
    match *f {
        FloatFn::Add(NEAREST) => b.bind(arith::AddNearest::<false>),
        FloatFn::Add(FLUSHED) => b.bind(arith::AddNearest::<true>),
        FloatFn::Add(arith) => b.bind(arith::Add(arith)),
        FloatFn::Mul { arith: NEAREST, scale: 0, zero_wins: false } => b.bind(arith::MulNearest::<false>),
        FloatFn::Mul { arith: FLUSHED, scale: 0, zero_wins: false } => b.bind(arith::MulNearest::<true>),
        FloatFn::Mul { arith, scale, zero_wins } => b.bind(arith::Mul::new(arith, scale, zero_wins)),
        FloatFn::Fma { arith: NEAREST, zero_wins: false } => b.bind(arith::FmaNearest::<false>),
        FloatFn::Fma { arith: FLUSHED, zero_wins: false } => b.bind(arith::FmaNearest::<true>),
        FloatFn::Fma { arith, zero_wins } => b.bind(arith::Fma::new(arith, zero_wins)),
        FloatFn::MinMax { ftz, nan, xorsign_abs } => b.bind(select::MinMax { ftz, nan, xorsign_abs }),
        FloatFn::MinMax3 { ftz, nan } => b.bind(select::MinMax3 { ftz, nan }),
        FloatFn::Compare { compare, ftz: false } => b.bind(compare::Compare::<false>(compare)),
        FloatFn::Compare { compare, ftz: true } => b.bind(compare::Compare::<true>(compare)),
        FloatFn::CompareToFloat { compare, ftz } => b.bind(compare::CompareToFloat { compare, ftz }),
        FloatFn::Select { ftz } => b.bind(select::Select { ftz }),
        FloatFn::DivisionCheck => b.bind(compare::DivisionCheck),
        FloatFn::Add2(arith) => b.bind(arith::Add2(arith)),
        FloatFn::Mul2(arith) => b.bind(arith::Mul2(arith)),
        FloatFn::Fma2(arith) => b.bind(arith::Fma2(arith)),
        FloatFn::Special(function) => b.bind(mufu::Mufu(function)),
        FloatFn::Div(arith) => b.bind(divide::Div(arith)),
        FloatFn::Sqrt(arith) => b.bind(divide::Sqrt(arith)),
        FloatFn::Approx { function, ftz } => b.bind(approx::Approx { function, ftz }),
        FloatFn::Test(kind) => b.bind(divide::Test(kind)),
        FloatFn::SpecialHalf { function, high, format } => b.bind(mufu::MufuHalf { function, high, format }),
    }
}
