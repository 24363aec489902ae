//! Functions of the half family: [`HalfFn`] says what each computes.
//!
//! Everything is computed in f64 and rounded once; `format` argues why that is exact.

mod arith;
mod compare;
mod format;
mod minmax;

use lanescope_ir::op::half::{Format, HalfFn, Select};

use super::Bind;

pub(super) fn bind<B: Bind>(f: &HalfFn, b: B) -> B::Output {
    match *f {
        HalfFn::Add(a) if f16(a.format) => b.bind(arith::Add::<false>(arith::Around::of(a))),
        HalfFn::Add(a) => b.bind(arith::Add::<true>(arith::Around::of(a))),
        HalfFn::Mul(a) if f16(a.format) => b.bind(arith::Mul::<false>(arith::Around::of(a))),
        HalfFn::Mul(a) => b.bind(arith::Mul::<true>(arith::Around::of(a))),
        HalfFn::Fma(a) if f16(a.format) => b.bind(arith::Fma::<false>(arith::Around::of(a))),
        HalfFn::Fma(a) => b.bind(arith::Fma::<true>(arith::Around::of(a))),
        HalfFn::FmaOob(a) if f16(a.format) => b.bind(arith::FmaOob::<false>(arith::Around::of(a))),
        HalfFn::FmaOob(a) => b.bind(arith::FmaOob::<true>(arith::Around::of(a))),
        HalfFn::AddToF32(a) if f16(a.format) => b.bind(arith::AddToF32::<false>(arith::Around::of(a))),
        HalfFn::AddToF32(a) => b.bind(arith::AddToF32::<true>(arith::Around::of(a))),
        HalfFn::FromF32(a) if f16(a.format) => b.bind(arith::FromF32::<false>(arith::Around::of(a))),
        HalfFn::FromF32(a) => b.bind(arith::FromF32::<true>(arith::Around::of(a))),
        HalfFn::MinMax { format, ftz, propagate, xorsign, three, select } => {
            let pick = minmax::Pick { ftz, propagate, xorsign, three, select: select.map(Halves::of) };
            if f16(format) { b.bind(minmax::MinMax::<false>(pick)) } else { b.bind(minmax::MinMax::<true>(pick)) }
        }
        HalfFn::SetP(c) if f16(c.format) => b.bind(compare::SetP::<false>(compare::Relation::of(c))),
        HalfFn::SetP(c) => b.bind(compare::SetP::<true>(compare::Relation::of(c))),
        HalfFn::SetPBoth(c) if f16(c.format) => b.bind(compare::SetPBoth::<false>(compare::Relation::of(c))),
        HalfFn::SetPBoth(c) => b.bind(compare::SetPBoth::<true>(compare::Relation::of(c))),
        HalfFn::Set { compare: c, one } if f16(c.format) => {
            b.bind(compare::Set::<false> { relation: compare::Relation::of(c), yes: if one { 0x3c00 } else { 0xffff } })
        }
        HalfFn::Set { compare: c, one } => {
            b.bind(compare::Set::<true> { relation: compare::Relation::of(c), yes: if one { 0x3f80 } else { 0xffff } })
        }
    }
}

fn f16(format: Format) -> bool {
    format == Format::F16
}

/// A [`Select`] as shift amounts.
#[derive(Clone, Copy)]
struct Halves {
    low: u32,
    high: u32,
}

impl Halves {
    fn of(select: Select) -> Halves {
        match select {
            Select::Both => Halves { low: 0, high: 16 },
            Select::Low => Halves { low: 0, high: 0 },
            Select::High => Halves { low: 16, high: 16 },
        }
    }
    /// The two halves that are meant.
    #[inline(always)]
    fn split(self, x: u32) -> [u16; 2] {
        [(x >> (self.low & 31)) as u16, (x >> (self.high & 31)) as u16]
    }
}

#[inline(always)]
fn join(halves: [u16; 2]) -> u32 {
    u32::from(halves[0]) | u32::from(halves[1]) << 16
}
