//! f64 functions.
//!
//! Sources are pairs of words, low first: a is `src[0..2]`, b `src[2..4]`, c `src[4..6]`; the result is `dst[0..2]`.
//! Arithmetic hands a NaN source on, made quiet, its sign as it was whatever [`Signs`] say: of several NaNs b's, else c's,
//! else a's. An invalid operation gives `0xfff8000000000000`.

use super::float::{Compare, Kind, Rounding};

/// Sign changes of the sources of an arithmetic operation, bit i for source i. They are part of the function, not of
/// the source, since they leave a NaN alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Signs {
    /// Magnitudes, taken before negation.
    pub magnitude: u8,
    /// Negated sources.
    pub negate: u8,
}

/// f64 functions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DoubleFn {
    /// a + b. `DADD`, `add.f64`.
    Add(Rounding, Signs),
    /// a * b. `DMUL`, `mul.f64`.
    Mul(Rounding, Signs),
    /// a * b + c, rounded once. `DFMA`, `fma.f64`.
    Fma(Rounding, Signs),
    /// `pdst[0]` = (a R b) op `psrc[0]`; `pdst[1]` = not (a R b) op `psrc[0]`. `DSETP`, `setp.f64`.
    Compare(Compare),
    /// `pdst[0]` = whether a is the one to take as the smaller if `smaller`, else as the larger; a NaN is not taken
    /// unless both are. `pdst[1]` = whether both are NaNs. `DSETP.MIN`, `DSETP.MAX`.
    Prefer {
        /// Which.
        smaller: bool,
    },
    /// The smaller of a and b if `smaller`, else the larger: `min.f64`, `max.f64`. -0 is smaller than +0.
    MinMax {
        /// Which.
        smaller: bool,
    },
    /// a / b, rounded once. PTX `div.rn.f64`; `rcp.rn.f64` with a = 1.
    Div(Rounding),
    /// The square root of a, rounded once. PTX `sqrt.rn.f64`.
    Sqrt(Rounding),
    /// PTX `rsqrt.approx.f64`: a step of refinement from the high word's approximation.
    RsqrtApprox,
    /// `pdst[0]` = whether a is of the kind. PTX `testp.f64`.
    Test(Kind),
}
