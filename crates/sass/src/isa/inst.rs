//! One decoded instruction: what the encoding says, still in the ISA's own terms.
//!
//! Nothing here interprets an instruction. [`lower`](crate::lower) gives it meaning; the printer turns it
//! into the text nvdisasm prints. Registers are normalised: `RZ` and `URZ` are number 255 on every
//! architecture, `PT` and `UPT` are number 7, so that consumers need not know field widths.

use arrayvec::ArrayVec;

/// A decoded 128-bit instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    /// Byte offset from the start of its section.
    pub pc: u32,
    /// The encoding, low 64 bits first.
    pub raw: u128,
    /// Execution guard; `PT` not negated when the instruction is unconditional.
    pub guard: PredOperand,
    /// Base opcode as nvdisasm prints it, without modifiers: `IMAD`.
    pub mnemonic: &'static str,
    /// Modifiers in print order without dots: `["WIDE", "U32"]`. A multi-part token is split at its dots.
    pub mods: ArrayVec<&'static str, 16>,
    /// Operands in print order, destinations first.
    pub operands: ArrayVec<Operand, 12>,
}

impl Instruction {
    /// Whether modifier `name` (no dot) is present.
    pub fn has(&self, name: &str) -> bool {
        self.mods.contains(&name)
    }
}

/// A register file of the vector or of the uniform datapath.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum File {
    /// `R0..R254`, `P0..P6`: one value per lane.
    Vector,
    /// `UR0..`, `UP0..UP6`: one value per warp.
    Uniform,
}

/// The sign printed before an operand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sign {
    /// Nothing.
    #[default]
    None,
    /// `-`
    Neg,
    /// `~`
    Not,
}

/// A predicate with optional `!`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PredOperand {
    /// Vector (`P`) or uniform (`UP`).
    pub file: File,
    /// 0..6, or 7 for `PT`/`UPT`.
    pub index: u8,
    /// `!`
    pub negated: bool,
}

/// A register source or destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegOperand {
    /// Vector (`R`) or uniform (`UR`).
    pub file: File,
    /// 0..254, or 255 for `RZ`/`URZ`.
    pub index: u8,
    /// `-` or `~`.
    pub sign: Sign,
    /// `|..|`
    pub abs: bool,
    /// `.reuse`, a scheduling hint without effect on values.
    pub reuse: bool,
    /// Suffix without its leading dot: `H0_H0`, `B1`, `64`, `X8`, `F32`; "" if none. The few of two tokens
    /// stay one string: `F32x2.HI_LO`.
    pub suffix: &'static str,
    /// Whether the suffix prints inside the bars; matters to the printer alone.
    pub suffix_in_bars: bool,
}

/// Format of a floating immediate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloatFormat {
    /// 32 bits.
    F32,
    /// The high word of a double; the low word is zero.
    F64High,
    /// 16 bits.
    F16,
    /// 16 bits, bfloat.
    Bf16,
}

/// An address: `desc[UR4][R2.64+UR6+0x10]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemOperand {
    /// The word before the bracket: "" for most; `gdesc`, `tmem`, `idesc`, `a` (attribute) for others.
    pub prefix: &'static str,
    /// Uniform register of the `desc[..]` part.
    pub desc: Option<u8>,
    /// Vector register with its suffix (`64`, `U32`, `X4`, ... or "").
    pub reg: Option<(u8, &'static str)>,
    /// Uniform register with its suffix.
    pub ureg: Option<(u8, &'static str)>,
    /// Byte offset; `None` if not printed.
    pub offset: Option<i64>,
    /// Suffix after the bracket.
    pub suffix: &'static str,
}

/// A constant-bank operand: `c[0x0][R4+0x160]` or `cx[UR4][0x10]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstOperand {
    /// Where the bank comes from.
    pub bank: Bank,
    /// Vector index register with its suffix.
    pub reg: Option<(u8, &'static str)>,
    /// Uniform index register with its suffix.
    pub ureg: Option<(u8, &'static str)>,
    /// Byte offset.
    pub offset: i64,
    /// `-` or `~`.
    pub sign: Sign,
    /// `|..|`
    pub abs: bool,
    /// Suffix without its leading dot (`H0_H0`, ...), "" if none.
    pub suffix: &'static str,
    /// Whether the suffix prints inside the bars; matters to the printer alone.
    pub suffix_in_bars: bool,
    /// Whether a blank prints between the brackets; matters to the printer alone.
    pub spaced: bool,
}

/// The bank of a constant operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bank {
    /// `c[n]`
    Index(u8),
    /// `cx[URn]`
    Uniform(u8),
}

/// One operand as printed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operand {
    /// `R4`, `-|R5|.reuse`, `UR6`
    Reg(RegOperand),
    /// `!P0`, `UPT`
    Pred(PredOperand),
    /// Convergence barrier `B0`..`B15`.
    Barrier(u8),
    /// Scoreboard `SB0`..`SB5`.
    Scoreboard(u8),
    /// An integer immediate, sign-extended where it prints signed: `-0x1` of IADD3 is -1, `0xffffffff` of
    /// LOP3 is 4294967295. The 64-bit immediates (`MOV.64`, `UMOV.64`, `MOV64IUR`) are the two's
    /// complement value of their bits. Branch targets are absolute byte offsets within the section, those
    /// of `BSSY`, `BRA` and relative `CALL`/`RET` alike; the displacement of register-target jumps
    /// (`BRX R6 -0x310`) is what prints.
    Int(i64),
    /// A floating immediate: raw bits in its format, with a suffix or "".
    Float {
        /// Bits in the low end.
        bits: u32,
        /// How to read them.
        format: FloatFormat,
        /// Suffix or "".
        suffix: &'static str,
    },
    /// `c[..][..]`, `cx[..][..]`
    Const(ConstOperand),
    /// `[R2+0x10]`, `desc[UR4][R2.64]`
    Mem(MemOperand),
    /// A bare `desc[UR4]` with suffix.
    Desc(u8, &'static str),
    /// A literal: `SR_TID.X`, `PR`, `gsb0`, `{5,4,3}`.
    Literal(&'static str),
}
