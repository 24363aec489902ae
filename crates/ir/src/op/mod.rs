//! Operations of the engine, common to both front ends.
//!
//! Three kinds. [`LaneOp`]s are pure functions of one lane (add, fused multiply-add, compare ...), named by
//! the family enums [`int`], [`float`], [`double`], [`half`] and [`convert`]. Operations that touch memory or
//! other lanes are in [`memory`], [`warp`] and [`tensor`]. Operations that steer the warp are in [`control`].
//!
//! Conventions for all of them:
//! - A source is a [`Src`]; `RZ` is `Src::imm(0)`. A destination is `Option<Slot>`; `None` discards (`RZ`).
//! - 64-bit values are two slots or sources, low word first.
//! - A vector operation writes only the lanes that execute it (active and guard). A *uniform* operation
//!   ([`Instruction::uniform`](crate::Instruction)) writes all lanes of the warp, since every lane holds the
//!   same value; it executes if its guard holds in any active lane.

pub mod control;
pub mod convert;
pub mod double;
pub mod effects;
pub mod float;
pub mod half;
pub mod int;
pub mod memory;
pub mod tensor;
pub mod video;
pub mod warp;

use crate::ids::{Pred, Slot};

/// A sign or magnitude change applied to a 32-bit source before the operation sees it.
/// Operations whose carries or 64-bit meaning depend on the sign take it as a parameter instead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SrcMod {
    /// As it is.
    #[default]
    None,
    /// Two's complement negation.
    Neg,
    /// Bitwise inversion.
    Not,
    /// Flip bit 31: negates an f32, or an f64 when applied to its high word.
    FNeg,
    /// Clear bit 31.
    FAbs,
    /// Set bit 31: minus the magnitude.
    FNegAbs,
    /// Flip bits 15 and 31: negates both halves.
    HNeg,
    /// Clear bits 15 and 31.
    HAbs,
    /// Set bits 15 and 31.
    HNegAbs,
}

impl SrcMod {
    /// `(and, xor, add)` such that the modified value is `((x & and) ^ xor) + add` (wrapping).
    pub const fn masks(self) -> (u32, u32, u32) {
        match self {
            SrcMod::None => (!0, 0, 0),
            SrcMod::Neg => (!0, !0, 1),
            SrcMod::Not => (!0, !0, 0),
            SrcMod::FNeg => (!0, 1 << 31, 0),
            SrcMod::FAbs => (!(1 << 31), 0, 0),
            SrcMod::FNegAbs => (!(1 << 31), 1 << 31, 0),
            SrcMod::HNeg => (!0, 0x8000_8000, 0),
            SrcMod::HAbs => (0x7fff_7fff, 0, 0),
            SrcMod::HNegAbs => (0x7fff_7fff, 0x8000_8000, 0),
        }
    }
    /// The value after the change.
    pub const fn apply(self, x: u32) -> u32 {
        let (and, xor, add) = self.masks();
        ((x & and) ^ xor).wrapping_add(add)
    }
}

/// Where a 32-bit source comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SrcKind {
    /// A register.
    Slot(Slot),
    /// The same value in all lanes.
    Imm(u32),
    /// A word of a constant bank at a byte offset fixed in the code; the same value in all lanes.
    /// Offsets past the bank's end read as zero, as the hardware does.
    Const {
        /// Bank number.
        bank: u8,
        /// Byte offset, a multiple of 4.
        offset: u32,
    },
}

/// A 32-bit source with its modifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Src {
    /// Where it comes from.
    pub kind: SrcKind,
    /// What is done to it first.
    pub modifier: SrcMod,
}

impl Src {
    /// Zero: what unused sources hold.
    pub const ZERO: Src = Src::imm(0);

    /// An immediate.
    pub const fn imm(value: u32) -> Src {
        Src { kind: SrcKind::Imm(value), modifier: SrcMod::None }
    }
    /// A register.
    pub const fn slot(slot: Slot) -> Src {
        Src { kind: SrcKind::Slot(slot), modifier: SrcMod::None }
    }
    /// A constant-bank word.
    pub const fn constant(bank: u8, offset: u32) -> Src {
        Src { kind: SrcKind::Const { bank, offset }, modifier: SrcMod::None }
    }
    /// The same source with `modifier`.
    pub const fn with(self, modifier: SrcMod) -> Src {
        Src { kind: self.kind, modifier }
    }
    /// The register read, if any.
    pub const fn read(self) -> Option<Slot> {
        match self.kind {
            SrcKind::Slot(s) => Some(s),
            _ => None,
        }
    }
}

/// A predicate source: true, or a predicate, each possibly negated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PredSrc {
    /// `None` is the constant true (`PT`).
    pub pred: Option<Pred>,
    /// `!`
    pub negated: bool,
}

impl PredSrc {
    /// Always true.
    pub const TRUE: PredSrc = PredSrc { pred: None, negated: false };
    /// Always false (`!PT`).
    pub const FALSE: PredSrc = PredSrc { pred: None, negated: true };

    /// The predicate itself.
    pub const fn of(pred: Pred) -> PredSrc {
        PredSrc { pred: Some(pred), negated: false }
    }
    /// Its negation.
    pub const fn not(self) -> PredSrc {
        PredSrc { pred: self.pred, negated: !self.negated }
    }
    /// Whether it is the constant true.
    pub const fn is_true(self) -> bool {
        self.pred.is_none() && !self.negated
    }
}

/// Which pure function a [`LaneOp`] computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LaneFn {
    /// Integer, bit, logic and predicate functions.
    Int(int::IntFn),
    /// f32 functions.
    Float(float::FloatFn),
    /// f64 functions.
    Double(double::DoubleFn),
    /// Packed f16 and bf16 functions.
    Half(half::HalfFn),
    /// Conversions between formats.
    Convert(convert::ConvertFn),
}

/// A pure function of one lane. Each function documents how many of the sources and destinations it uses,
/// and in which order; the rest hold [`Src::ZERO`], [`PredSrc::TRUE`] and `None`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LaneOp {
    /// The function.
    pub f: LaneFn,
    /// Result words.
    pub dst: [Option<Slot>; 2],
    /// Result predicates.
    pub pdst: [Option<Pred>; 2],
    /// Source words.
    pub src: [Src; 6],
    /// Source predicates.
    pub psrc: [PredSrc; 3],
}

impl LaneOp {
    /// An operation with nothing set but its function.
    pub const fn new(f: LaneFn) -> LaneOp {
        LaneOp { f, dst: [None; 2], pdst: [None; 2], src: [Src::ZERO; 6], psrc: [PredSrc::TRUE; 3] }
    }
}

/// What an instruction does.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Nothing: also scheduling hints, fences (every store is visible at once here) and prefetches.
    Nop,
    /// A pure function of each lane.
    Lane(LaneOp),
    /// Loads, stores, atomics.
    Memory(memory::MemoryOp),
    /// Operations across lanes, special registers, block barriers.
    Warp(warp::WarpOp),
    /// Branches, convergence, exit.
    Control(control::ControlOp),
    /// Known text, no meaning here: refused by name when executed, or its destinations are marked unknown.
    Unsupported(Unsupported),
}

/// An instruction that is not implemented, with what it would write, so that its results can be marked unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct Unsupported {
    /// Opcode with modifiers as nvdisasm prints it.
    pub name: String,
    /// Why or what kind (`tensor core`, `texture`, `asynchronous copy` ...).
    pub why: &'static str,
    /// Registers it would write, if that is known.
    pub dst: Vec<Slot>,
    /// Predicates it would write.
    pub pdst: Vec<Pred>,
    /// Whether it may write memory or steer control flow; then it cannot be skipped at all.
    pub has_effects: bool,
}
