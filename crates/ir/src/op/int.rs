//! Integer, bit, logic and predicate functions.
//!
//! Notation: `s0..s5` are the source words after their modifiers, `p0..p2` the source predicates, `d0`, `d1`
//! the result words and `q0`, `q1` the result predicates. A pair `(lo, hi)` is a 64-bit value. Arithmetic
//! wraps unless a line says otherwise.
//!
//! **Carries.** A carry tells how the exact sum compares with 2^32 (or 2^64), and a subtrahend enters that sum
//! as `!x + 1` computed without wrapping, i.e. as `2^32 - x`: subtracting zero carries. That is why functions
//! with carries take signs as parameters: [`SrcMod::Neg`](super::SrcMod) would already have wrapped. Bitwise
//! inversion (`~` of the `.X` forms) is always a [`SrcMod::Not`](super::SrcMod).

use super::video::VideoFn;

/// Comparison of two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cmp {
    /// Never.
    False,
    /// `<`
    Lt,
    /// `==`
    Eq,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `!=`
    Ne,
    /// `>=`
    Ge,
    /// Always.
    True,
}

/// How a comparison is joined with another predicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BoolOp {
    /// Both.
    And,
    /// Either.
    Or,
    /// Exactly one.
    Xor,
}

/// `PRMT` modes: how the selector picks four of the eight bytes of `(s0, s2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Prmt {
    /// A nibble for each byte: number of the byte, and bit 3 spreads its sign.
    Index,
    /// Four bytes forwards from the selected one.
    F4e,
    /// Four bytes backwards.
    B4e,
    /// The byte four times.
    Rc8,
    /// Edge clamped to the left.
    Ecl,
    /// Edge clamped to the right.
    Ecr,
    /// A half twice.
    Rc16,
}

/// Lanes within a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Packing {
    /// One 32-bit integer.
    One,
    /// Two 16-bit integers.
    Two,
}

/// A small integer that a wider one is saturated to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Small {
    /// 2, 4, 8 or 16.
    pub bits: u8,
    /// Two's complement or unsigned.
    pub signed: bool,
}

/// A funnel shift of `(lo, hi) = (s0, s2)` by `s1`: `SHF`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Funnel {
    /// Towards bit 0.
    pub right: bool,
    /// The result is the high word of the shifted pair, else the low word.
    pub high: bool,
    /// The amount is taken modulo the type's width; else it saturates there.
    pub wrap: bool,
    /// 64 instead of 32: limit or modulus of the amount.
    pub wide: bool,
    /// A right shift replicates bit 63.
    pub signed: bool,
}

/// A scaled addition with carries: `LEA` in full generality.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LeaCarry {
    /// Shift amount, 0..31.
    pub shift: u8,
    /// The high word of the shifted pair `(s0, s2)` is added instead of the low one.
    pub high: bool,
    /// The pair is `s0` sign-extended instead of `(s0, s2)`.
    pub sign_extend: bool,
    /// The shifted word is subtracted (without carry in) or inverted (with).
    pub minus_a: bool,
    /// `s1` likewise.
    pub minus_b: bool,
    /// `p0` is added, and signs mean inversion.
    pub carry_in: bool,
}

/// Integer, bit, logic and predicate functions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum IntFn {
    // Moves
    /// `d0 = s0`. `MOV`, `UMOV`, `IMAD.MOV`, PTX `mov.b32`.
    Mov,
    /// `(d0, d1) = (s0, s1)`. `MOV.64`, `UMOV.64`.
    Mov64,
    /// `d0 = p0 ? s0 : s1`. `SEL`, `USEL`, PTX `selp.b32`.
    Sel,
    /// `(d0, d1) = p0 ? (s0, s1) : (s2, s3)`. `SEL.64`, PTX `selp.b64`.
    Sel64,

    // Sums
    /// `d0 = s0 + s1`. `VIADD`, `IADD`, two-operand `IADD3`, PTX `add.s32`, `sub.s32`.
    Add,
    /// `d0 = s0 + s1 + s2`. `IADD3` without carries.
    Add3,
    /// `d0 = s0 + s1 + s2`; `q0`: the exact sum is at least 2^32, `q1`: at least 2^33. `IADD3` with carries out.
    Add3Carry {
        /// Which sources are subtracted.
        neg: [bool; 3],
    },
    /// `d0 = s0 + s1 + s2 + p0 + p1`. `IADD3.X`, `IADD.X`.
    Add3X,
    /// The same with the carries of [`IntFn::Add3Carry`].
    Add3XCarry,
    /// `(d0, d1) = (s0, s1) ± (s2, s3)`. `IADD.64`, PTX `add.s64`, `sub.s64`.
    Add64 {
        /// Which sources are subtracted.
        neg: [bool; 2],
    },
    /// `(d0, d1) = (s0, s1) + (s2, s3) + p0`; `q0`: the exact sum is at least 2^64. `IADD.64` with carries, `IADD.64.X`.
    Add64Carry {
        /// Which sources are subtracted, or, with `x`, inverted.
        neg: [bool; 2],
        /// `p0` is added.
        x: bool,
    },
    /// `(d0, d1) = ±(s0, s1) ± (s2, s3) ± (s4, s5)`. `UIADD3.64`.
    Add3Wide {
        /// Which sources are subtracted.
        neg: [bool; 3],
    },
    /// `d0 = s0 + s1` saturated. `VIADD.S32.ISAT`, PTX `add.sat.s32`.
    AddSat {
        /// `s1` is subtracted instead.
        neg: bool,
    },
    /// Halves added apart. `VIADD.16x2`.
    Add16x2,
    /// `d0 = |s0|`, with |-2^31| = -2^31. `IABS`.
    Abs,
    /// `d0 = |s0 - s1| + s2`, the difference taken exactly. `VABSDIFF`, PTX `sad`.
    AbsDiff {
        /// Signed operands.
        signed: bool,
    },
    /// Each byte of `d0` is `|a - b|` of the bytes of `s0` and `s1`. `VABSDIFF4`, PTX `vabsdiff4`.
    AbsDiff4 {
        /// Signed bytes.
        signed: bool,
    },
    /// Sum over the four bytes of `|a - b|`, plus `s2`. `VABSDIFF4.ACC`, PTX `vabsdiff4 ... .add`.
    AbsDiff4Acc {
        /// Signed bytes.
        signed: bool,
    },

    // Products
    /// `d0 = s0 * s1 + s2`. `IMAD`, PTX `mul.lo`, `mad.lo`.
    Mad,
    /// `d0 = s0 * s1 + s2 + p0`. `IMAD.X`.
    MadX,
    /// `(d0, d1) = s0 * s1 ± (s2, s3)`, a 64-bit product. `IMAD.WIDE`, PTX `mul.wide`, `mad.wide`.
    MadWide {
        /// Signed factors.
        signed: bool,
        /// The addend is subtracted.
        neg_c: bool,
    },
    /// As [`IntFn::MadWide`] plus `p0`; `q0`: the sum of the product, taken modulo 2^64, and the addend is at
    /// least 2^64. `IMAD.WIDE.X`, `IMAD.WIDE.U32` with a carry out.
    MadWideCarry {
        /// Signed factors.
        signed: bool,
        /// The addend is subtracted.
        neg_c: bool,
    },
    /// `d0` = high word of [`IntFn::MadWide`]; the addend `(s2, s3)` is 64-bit too. `IMAD.HI`, PTX `mul.hi`;
    /// PTX `mad.hi` is this with `s2 = 0` and its addend in `s3`.
    MadHi {
        /// Signed factors.
        signed: bool,
        /// The addend is subtracted.
        neg_c: bool,
    },
    /// High word of [`IntFn::MadWideCarry`], same `q0`.
    MadHiCarry {
        /// Signed factors.
        signed: bool,
        /// The addend is subtracted.
        neg_c: bool,
    },
    /// `d0 = s2 + Σ a[i] * b[i]` over four bytes. `IDP.4A`, PTX `dp4a`.
    Dp4a {
        /// Bytes of `s0` are signed.
        a: bool,
        /// Bytes of `s1` are signed.
        b: bool,
    },
    /// `d0 = s2 + Σ a[i] * b[i]` over the halves of `s0` and the low or high two bytes of `s1`. `IDP.2A`, PTX `dp2a`.
    Dp2a {
        /// Halves of `s0` are signed.
        a: bool,
        /// Bytes of `s1` are signed.
        b: bool,
        /// The high two bytes.
        high: bool,
    },
    /// Carry-less product of `(s0, s1)` and `(s2, s3)`, xored with `(s4, s5)`. `CLMAD`.
    ClMad {
        /// The high 64 bits of the product instead of the low ones.
        high: bool,
    },

    // Scaled sums
    /// `d0 = (s0 << shift) + s1`. `LEA`.
    Lea {
        /// 0..31
        shift: u8,
    },
    /// `d0 = (((s0, s2) << shift) >> 32) + s1 + p0`. `LEA.HI.X`, `LEA.HI` with `p0` false.
    LeaHiX {
        /// 0..31
        shift: u8,
    },
    /// Every other form: `q0` is the carry of the 32-bit sum.
    LeaCarry(LeaCarry),

    // Shifts
    /// `d0 = s0 << s1`, zero for amounts of 32 and more. `SHF.L.U32`, PTX `shl.b32`.
    Shl,
    /// `d0 = s0 >> s1`, zero for amounts of 32 and more. `SHF.R.U32.HI`, PTX `shr.u32`.
    ShrU,
    /// `d0 = s0 >> s1` arithmetic, all sign for amounts of 32 and more. `SHF.R.S32.HI`, PTX `shr.s32`.
    ShrS,
    /// `SHF` in general, PTX `shf`.
    Funnel(Funnel),

    // Logic
    /// `d0 = s0 & s1`
    And,
    /// `d0 = s0 | s1`
    Or,
    /// `d0 = s0 ^ s1`
    Xor,
    /// Bit `4a + 2b + c` of the table for bits a, b, c of `s0`, `s1`, `s2`. `LOP3`, PTX `lop3`.
    Lop3 {
        /// Truth table.
        lut: u8,
    },
    /// `d0` as [`IntFn::Lop3`]; `q0 = (d0 != 0) op p0`, with "or" unless `and`. `LOP3` with a predicate, `.PAND`.
    Lop3Pred {
        /// Truth table.
        lut: u8,
        /// Join by "and".
        and: bool,
    },
    /// `q0`, `q1` = tables at `4 p0 + 2 p1 + p2`. `PLOP3`.
    Plop3 {
        /// Truth tables.
        lut: [u8; 2],
    },
    /// [`IntFn::Plop3`] of the sign bits of `s0`, `s1`, `s2`. `PLOP3` with `R.SIGN` operands.
    SignPlop3 {
        /// Truth tables.
        lut: [u8; 2],
    },

    // Comparisons
    /// `q0 = s0 cmp s1`. `ISETP` joined with `PT` by "and".
    Set {
        /// Comparison.
        cmp: Cmp,
        /// Signed operands.
        signed: bool,
    },
    /// `c = s0 cmp s1`, with `extended` `c = p1` where `s0 == s1` (the low words' comparison is in `p1`);
    /// `q0 = c op p0`, `q1 = !c op p0`. `ISETP`, `ISETP.EX`.
    SetJoin {
        /// Comparison.
        cmp: Cmp,
        /// Signed operands.
        signed: bool,
        /// How it is joined with `p0`.
        op: BoolOp,
        /// `.EX`
        extended: bool,
    },
    /// [`IntFn::SetJoin`] of `(s0, s1)` and `(s2, s3)`. `ISETP.S64`, PTX `setp.lt.s64`.
    SetJoin64 {
        /// Comparison.
        cmp: Cmp,
        /// Signed operands.
        signed: bool,
        /// How it is joined with `p0`.
        op: BoolOp,
    },

    // Minimum, maximum
    /// `d0 = min(s0, s1)`
    Min {
        /// Signed operands.
        signed: bool,
    },
    /// `d0 = max(s0, s1)`
    Max {
        /// Signed operands.
        signed: bool,
    },
    /// `d0 = p0 ? min(s0, s1) : max(s0, s1)`; `relu`: then `max(d0, 0)`. `IMNMX`, `VIMNMX`.
    /// `q0`, `q1`: whether `s0` was taken (also when both are equal) in the low and high half, both the same for
    /// one integer.
    MinMax {
        /// Signed operands.
        signed: bool,
        /// One or two integers.
        packing: Packing,
        /// Negative results become zero.
        relu: bool,
    },
    /// `d0 = p0 ? min(s0, s1, s2) : max(s0, s1, s2)`. `VIMNMX3`.
    MinMax3 {
        /// Signed operands.
        signed: bool,
        /// One or two integers.
        packing: Packing,
        /// Negative results become zero.
        relu: bool,
    },
    /// `d0 = p0 ? min(s0 + s1, s2) : max(s0 + s1, s2)`, the sum wrapping. `VIADDMNMX`.
    AddMinMax {
        /// Signed operands.
        signed: bool,
        /// One or two integers.
        packing: Packing,
        /// Negative results become zero.
        relu: bool,
    },
    /// `(d0, d1) = p0 ? min : max` of `(s0, s1)` and `(s2, s3)`. `IMNMX.S64`, PTX `min.s64`.
    MinMax64 {
        /// Signed operands.
        signed: bool,
    },

    // Bits and bytes
    /// `d0` = four of the bytes of `(s0, s2)` selected by `s1`. `PRMT`, PTX `prmt.b32` (whose selector comes last).
    Prmt(Prmt),
    /// `d0` = number of ones. `POPC`.
    Popc,
    /// `d0` = number of the highest one (`signed`: the highest bit unlike the sign), all ones if there is none;
    /// `shift`: 31 minus that instead. `q0`: there is one. `FLO`, PTX `bfind`.
    Flo {
        /// Look for the highest bit unlike the sign.
        signed: bool,
        /// `.SH`: the left shift that brings it to bit 31.
        shift: bool,
    },
    /// Bits reversed. `BREV`.
    Brev,
    /// `s1` ones from bit `s0` on, either clamped or taken modulo 32 (`wrap`). `BMSK`, PTX `bmsk`.
    Bmsk {
        /// Amounts modulo 32.
        wrap: bool,
    },
    /// The low `s1` bits of `s0`, sign- or zero-extended; the count clamped or modulo 32. `SGXT`, PTX `szext`.
    Sgxt {
        /// Sign extension.
        signed: bool,
        /// Count modulo 32.
        wrap: bool,
    },
    /// `d0 = s0` (signed) saturated, sign-extended for a signed type. `I2I.S8.S32.SAT`.
    Saturate(Small),
    /// `s0` and `s1` (signed) saturated and packed, `s1` lowest; above them `s2` shifted left (not for 16 bits,
    /// where there is no room). `I2IP.S8.S32.SAT`, PTX `cvt.pack`.
    PackSaturate(Small),

    // What PTX has as one instruction and SASS composes of several
    /// `d0 = s0 / s1`, all ones for a divisor of 0, -2^31 / -1 = -2^31. PTX `div.s32`.
    Div {
        /// Signed operands.
        signed: bool,
    },
    /// `d0 = s0 mod s1` with the sign of `s0`; all ones for a divisor of 0. PTX `rem.s32`.
    Rem {
        /// Signed operands.
        signed: bool,
    },
    /// [`IntFn::Div`] of `(s0, s1)` and `(s2, s3)`. PTX `div.s64`.
    Div64 {
        /// Signed operands.
        signed: bool,
    },
    /// [`IntFn::Rem`] of `(s0, s1)` and `(s2, s3)`. PTX `rem.s64`.
    Rem64 {
        /// Signed operands.
        signed: bool,
    },
    /// `(d0, d1) = (s0, s1) * (s2, s3) + (s4, s5)`. PTX `mul.lo.s64`, `mad.lo.s64`.
    Mad64,
    /// `(d0, d1)` = the high 64 bits of the 128-bit product `(s0, s1) * (s2, s3)`, plus `(s4, s5)`. PTX `mad.hi.s64`.
    MadHi64 {
        /// Signed factors.
        signed: bool,
    },
    /// `d0` = the high word of `s0 * s1` plus `s2`, the sum saturated; signed. PTX `mad.hi.sat.s32`.
    MadHiSat,
    /// `d0` = bits 31:0, or 47:16 (`high`), of the product of the low 24 bits of `s0` and `s1`, plus `s2`.
    /// PTX `mul24`, `mad24`.
    Mad24 {
        /// Signed factors.
        signed: bool,
        /// Bits 47:16.
        high: bool,
        /// The sum is saturated (signed).
        sat: bool,
    },
    /// `(d0, d1) = (s0, s1) << s2`, zero from 64 on. PTX `shl.b64`.
    Shl64,
    /// `(d0, d1) = (s0, s1) >> s2`, all sign (or zero) from 64 on. PTX `shr.s64`.
    Shr64 {
        /// Arithmetic.
        signed: bool,
    },
    /// [`IntFn::Lop3`] of `(s0, s1)` and `(s2, s3)` for tables that do not depend on the third input. PTX `and.b64`.
    Lop64 {
        /// Truth table, of which bits 0, 2, 4 and 6 count.
        lut: u8,
    },
    /// `(d0, d1) = |(s0, s1)|`, with |-2^63| = -2^63. PTX `abs.s64`.
    Abs64,
    /// `(d0, d1) = |(s0, s1) - (s2, s3)| + (s4, s5)`, the difference taken exactly. PTX `sad.s64`.
    AbsDiff64 {
        /// Signed operands.
        signed: bool,
    },
    /// `d0` = number of leading zeros. PTX `clz.b32`.
    Clz,
    /// `d0` = number of leading zeros of `(s0, s1)`. PTX `clz.b64`.
    Clz64,
    /// `d0` = number of ones in `(s0, s1)`. PTX `popc.b64`.
    Popc64,
    /// The bits of `(s0, s1)` reversed. PTX `brev.b64`.
    Brev64,
    /// [`IntFn::Flo`] of `(s0, s1)`, without `q0`. PTX `bfind.s64`.
    Flo64 {
        /// Look for the highest bit unlike the sign.
        signed: bool,
        /// The left shift that brings it to bit 63.
        shift: bool,
    },
    /// The field of `s2` bits from bit `s1` of `s0` on; of both numbers the low 8 bits count. A signed field is
    /// extended with its top bit, or bit 31 if it ends beyond. PTX `bfe.s32`.
    Bfe {
        /// Sign extension.
        signed: bool,
    },
    /// [`IntFn::Bfe`] of `(s0, s1)` with `s2` and `s3`, of which all bits count. PTX `bfe.s64`.
    Bfe64 {
        /// Sign extension.
        signed: bool,
    },
    /// The low `s3` bits of `s0` put over those of `s1` from bit `s2` on; of both numbers the low 8 bits count.
    /// PTX `bfi.b32`.
    Bfi,
    /// [`IntFn::Bfi`] of `(s0, s1)` into `(s2, s3)` with `s4` and `s5`, of which all bits count. PTX `bfi.b64`.
    Bfi64,
    /// `d0 = s0 == 0`. PTX `cnot.b32`.
    Cnot,
    /// `(d0, d1)` = 1 if `(s0, s1)` is 0, else 0. PTX `cnot.b64`.
    Cnot64,
    /// Position of the `s2`-th one of `s0` from bit `s1` on, upwards, or downwards if `s2` is negative; with `s2` zero
    /// bit `s1` itself. All ones if there is none. PTX `fns.b32`.
    Fns,
    /// The video instructions: PTX `vadd`, `vset2` and so on.
    Video(VideoFn),
}
