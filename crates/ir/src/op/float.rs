//! f32 functions.
//!
//! A NaN that an arithmetic function gives is always `0x7fffffff`, whatever the NaNs that went in; selections and
//! sign changes pass NaNs through. Sources are `src[0]`, `src[1]`, `src[2]` as a, b, c; the result is `dst[0]`.

/// Direction of rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// To nearest, ties to even (`.rn`; SASS prints nothing).
    #[default]
    Nearest,
    /// Towards zero (`.rz`, `.RZ`).
    Zero,
    /// Towards minus infinity (`.rm`, `.RM`).
    Down,
    /// Towards plus infinity (`.rp`, `.RP`).
    Up,
}

/// How an f32 result is made from the exact one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Arith {
    /// Rounding.
    pub round: Rounding,
    /// Subnormal sources become zeros of their sign, and so do results that are subnormal even if rounded to 24 digits
    /// with an exponent as low as it takes.
    pub ftz: bool,
    /// The result is clamped to 0..=1, a NaN to +0.
    pub sat: bool,
}

impl Arith {
    /// Round to nearest, keep subnormals, no clamp.
    pub const PLAIN: Arith = Arith { round: Rounding::Nearest, ftz: false, sat: false };
}

/// A comparison, as the set of relations for which it holds. SASS prints `LT` 1, `EQ` 2, `LE` 3, `GT` 4, `NE` 5,
/// `GE` 6, `NUM` 7, `NAN` 8, and `LTU` .. `GEU` 9..=14 for the same or unordered; `F` is 0 and `T` 15.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Relation(pub u8);

impl Relation {
    /// a < b
    pub const LT: Relation = Relation(1);
    /// a = b
    pub const EQ: Relation = Relation(2);
    /// a > b
    pub const GT: Relation = Relation(4);
    /// a or b is a NaN
    pub const UNORDERED: Relation = Relation(8);
}

/// How a comparison is combined with a predicate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Combine {
    /// Both.
    #[default]
    And,
    /// Either.
    Or,
    /// Exactly one.
    Xor,
}

/// A comparison combined with `psrc[0]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Compare {
    /// The relation between a and b.
    pub relation: Relation,
    /// What is done with `psrc[0]`.
    pub combine: Combine,
}

/// Functions of the multi-function unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Special {
    /// 1/a
    Rcp,
    /// 1/sqrt(a)
    Rsq,
    /// sqrt(a)
    Sqrt,
    /// log2(a)
    Lg2,
    /// 2^a
    Ex2,
    /// sin(2 pi a)
    Sin,
    /// cos(2 pi a)
    Cos,
    /// tanh(a)
    Tanh,
    /// High word of an approximation of 1/a, a the f64 with high word `src[0]` and low word 0.
    Rcp64High,
    /// High word of an approximation of 1/sqrt(a), a as for `Rcp64High`.
    Rsq64High,
}

/// A 16-bit float format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HalfFormat {
    /// IEEE binary16.
    F16,
    /// bfloat16.
    Bf16,
}

/// f32 functions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FloatFn {
    /// a + b. `FADD`, `add.f32`.
    Add(Arith),
    /// a * b * 2^scale, rounded once. `FMUL` (`.D2` is scale -1, `.M4` is 2), `mul.f32`.
    Mul {
        /// Rounding and flushing.
        arith: Arith,
        /// Power of two.
        scale: i8,
        /// A zero (or, with it, subnormal) factor gives +0 whatever the other (`.FMZ`); implies `ftz`.
        zero_wins: bool,
    },
    /// a * b + c, rounded once. `FFMA`, `fma.f32`.
    Fma {
        /// Rounding and flushing.
        arith: Arith,
        /// As for `Mul`, for the product.
        zero_wins: bool,
    },
    /// The smaller of a and b if `psrc[0]`, else the larger. -0 is smaller than +0. `FMNMX`, `min.f32`, `max.f32`.
    MinMax {
        /// Flush subnormal sources.
        ftz: bool,
        /// A NaN source gives NaN; otherwise the other source wins, and only two NaNs give NaN.
        nan: bool,
        /// Compare magnitudes, then give the result the sign of a xor that of b (`.xorsign.abs`).
        xorsign_abs: bool,
    },
    /// The smallest of a, b and c if `psrc[0]`, else the largest. `FMNMX3`, `min.f32` of three.
    MinMax3 {
        /// Flush subnormal sources.
        ftz: bool,
        /// As for `MinMax`.
        nan: bool,
    },
    /// `pdst[0]` = (a R b) op `psrc[0]`; `pdst[1]` = not (a R b) op `psrc[0]`. `FSETP`, `setp.f32`.
    Compare {
        /// The comparison.
        compare: Compare,
        /// Flush subnormal sources.
        ftz: bool,
    },
    /// `dst[0]` = (a R b) op `psrc[0]` as 1.0 or 0.0. `FSET.BF`, `set.f32.f32`.
    CompareToFloat {
        /// The comparison.
        compare: Compare,
        /// Flush subnormal sources.
        ftz: bool,
    },
    /// a if `psrc[0]`, else b. `FSEL`, `selp.f32`.
    Select {
        /// Flush a subnormal.
        ftz: bool,
    },
    /// `pdst[0]` = whether a / b needs more care than the reciprocal of b and a few `Fma` give: false if, in biased
    /// exponents, a is in 25..=254, b in 2..=251 and a - b in -124..=126. `FCHK`.
    DivisionCheck,
    /// `src[0..2]` + `src[2..4]`, two f32 each, into `dst[0..2]`. `FADD2`, `add.f32x2`.
    Add2(Arith),
    /// `src[0..2]` * `src[2..4]`. `FMUL2`, `mul.f32x2`.
    Mul2(Arith),
    /// `src[0..2]` * `src[2..4]` + `src[4..6]`. `FFMA2`, `fma.f32x2`.
    Fma2(Arith),
    /// An approximation, with the bits that an H200 gives. `MUFU`.
    /// Subnormal sources count as zeros and subnormal results become zeros, except for `Tanh`.
    Special(Special),
    /// An approximation in a 16-bit format, in the low half of the result. `MUFU.EX2.F16`.
    SpecialHalf {
        /// The function.
        function: Special,
        /// Of the high half of the source, else of the low one.
        high: bool,
        /// The format of source and result.
        format: HalfFormat,
    },
    /// a / b, rounded once. PTX `div.rn.f32`.
    Div(Arith),
    /// The square root of a, rounded once. PTX `sqrt.rn.f32`.
    Sqrt(Arith),
    /// An approximation as PTX defines it: the multi-function unit with what surrounds it in SASS.
    Approx {
        /// The function.
        function: Approx,
        /// Flush subnormal sources and results.
        ftz: bool,
    },
    /// `pdst[0]` = whether a is of the kind. PTX `testp.f32`.
    Test(Kind),
}

/// Approximations of PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Approx {
    /// `div.approx.f32`
    Div,
    /// `div.full.f32`
    DivFull,
    /// `rcp.approx.f32`
    Rcp,
    /// `sqrt.approx.f32`
    Sqrt,
    /// `rsqrt.approx.f32`
    Rsqrt,
    /// `sin.approx.f32`
    Sin,
    /// `cos.approx.f32`
    Cos,
    /// `lg2.approx.f32`
    Lg2,
    /// `ex2.approx.f32`
    Ex2,
}

/// Kinds of floating-point numbers (`testp`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Neither infinite nor NaN.
    Finite,
    /// Infinite.
    Infinite,
    /// Not NaN.
    Number,
    /// NaN.
    NotANumber,
    /// Neither infinite, NaN nor subnormal. Zero is normal.
    Normal,
    /// Subnormal.
    Subnormal,
}
