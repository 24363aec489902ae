//! Pure functions of one lane.
//!
//! Each is a scalar function, [`LaneFunction::eval`], written once. The engine applies it to whole rows of
//! lanes (the compiler vectorises it), tests apply it to single values. [`bind`] turns the description in
//! [`lanescope_ir::op::LaneFn`] into the function; a family's `bind` is the only place that lists its functions.

pub mod convert;
pub mod double;
pub mod float;
pub mod half;
pub mod int;
mod mufu;
mod round;

use lanescope_ir::op::LaneFn;

/// Results of one lane; the words and predicates beyond what the function has are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Out {
    /// Result words, low first.
    pub d: [u32; 2],
    /// Result predicates.
    pub p: [bool; 2],
}

impl Out {
    /// One word.
    #[inline(always)]
    pub fn word(d: u32) -> Out {
        Out { d: [d, 0], p: [false; 2] }
    }
    /// A 64-bit result.
    #[inline(always)]
    pub fn wide(d: u64) -> Out {
        Out { d: [d as u32, (d >> 32) as u32], p: [false; 2] }
    }
    /// Two predicates.
    #[inline(always)]
    pub fn preds(p: bool, q: bool) -> Out {
        Out { d: [0; 2], p: [p, q] }
    }
}

/// A scalar function of one lane. The counts say which sources it reads and which results it gives, so that
/// the engine loads and stores only those. Keep `eval` free of branches where speed matters.
pub trait LaneFunction: Copy + Send + Sync + 'static {
    /// Source words used: the first `SRC` of `s`.
    const SRC: usize;
    /// Source predicates used.
    const PSRC: usize = 0;
    /// Result words.
    const DST: usize = 1;
    /// Result predicates.
    const PDST: usize = 0;
    /// The function. Source modifiers are applied already.
    fn eval(self, s: [u32; 6], p: [bool; 3]) -> Out;
}

/// What is done with a function once its type is known.
pub trait Bind {
    /// Result.
    type Output;
    /// Receives the function.
    fn bind<F: LaneFunction>(self, f: F) -> Self::Output;
}

/// Finds the function and hands it to `b`.
pub fn bind<B: Bind>(f: &LaneFn, b: B) -> B::Output {
    match f {
        LaneFn::Int(f) => int::bind(f, b),
        LaneFn::Float(f) => float::bind(f, b),
        LaneFn::Double(f) => double::bind(f, b),
        LaneFn::Half(f) => half::bind(f, b),
        LaneFn::Convert(f) => convert::bind(f, b),
    }
}

/// Evaluates one lane: for tests, constant folding and naive twins.
pub fn eval(f: &LaneFn, s: [u32; 6], p: [bool; 3]) -> Out {
    struct Eval([u32; 6], [bool; 3]);
    impl Bind for Eval {
        type Output = Out;
        fn bind<F: LaneFunction>(self, f: F) -> Out {
            f.eval(self.0, self.1)
        }
    }
    bind(f, Eval(s, p))
}
