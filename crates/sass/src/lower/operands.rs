//! Operands of a decoded instruction as sources and destinations of lane operations.
//!
//! `R0..R254` are slots 0..254, `UR0..UR254` are slots 255..509 (renumbered densely once the whole kernel is
//! lowered); `P0..P6` are predicates 0..6, `UP0..UP6` are 7..13. Each accessor names the operand by its printed
//! position and fails by name when the operand is of another kind, so a surprising encoding is refused, not guessed.

use lanescope_ir::op::memory::Addr;
use lanescope_ir::{InstId, Pred, PredSrc, Slot, Src, SrcMod};

use crate::isa::inst::{Bank, File, FloatFormat, Instruction, MemOperand, Operand, PredOperand, RegOperand, Sign};

/// Why an instruction has no lane operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What is missing: a kind (`tensor core`) or the surprising part (`operand 2 is ...`).
    pub why: String,
}

/// Refuses with a reason.
pub fn refuse<T>(why: impl Into<String>) -> Result<T, Refused> {
    Err(Refused { why: why.into() })
}

/// Result of lowering one instruction.
pub type Lowered<T> = Result<T, Refused>;

/// Slot of `R<index>` or `UR<index>`; `None` for `RZ`, `URZ`.
pub fn slot(file: File, index: u8) -> Option<Slot> {
    match (file, index) {
        (_, 255) => None,
        (File::Vector, n) => Some(Slot(u16::from(n))),
        (File::Uniform, n) => Some(Slot(255 + u16::from(n))),
    }
}

/// The register `plus` after `index`, staying `RZ` for `RZ`. Past `R254` there is nothing: reads zero.
pub fn slot_at(file: File, index: u8, plus: u8) -> Option<Slot> {
    if index == 255 { None } else { slot(file, index.saturating_add(plus)) }
}

/// Predicate of `P<index>` or `UP<index>`; `None` for `PT`.
pub fn pred(file: File, index: u8) -> Option<Pred> {
    match (file, index) {
        (_, 7..) => None,
        (File::Vector, n) => Some(Pred(u16::from(n))),
        (File::Uniform, n) => Some(Pred(7 + u16::from(n))),
    }
}

/// A predicate operand as a source.
pub fn pred_src(p: PredOperand) -> PredSrc {
    PredSrc { pred: pred(p.file, p.index), negated: p.negated }
}

/// A source, or zero for `RZ`.
pub fn src(slot: Option<Slot>) -> Src {
    slot.map_or(Src::ZERO, Src::slot)
}

/// What lies at a code address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// An instruction of this module.
    Code(InstId),
    /// A function of another module (`vprintf`, `malloc`): its symbol.
    External(&'a str),
}

/// Finds what lies at code addresses. The loader implements it; instructions lowered alone know nothing.
pub trait CodeMap {
    /// What starts at `address`.
    fn at(&self, address: u64) -> Option<Target<'_>>;
}

/// No code at all.
pub struct NoCode;

impl CodeMap for NoCode {
    fn at(&self, _: u64) -> Option<Target<'_>> {
        None
    }
}

/// One instruction being lowered.
#[derive(Clone, Copy)]
pub struct Cx<'a> {
    /// The decoded instruction.
    pub inst: &'a Instruction,
    /// SM number: 75, 80, ... 121.
    pub sm: u32,
    /// Code address of the start of its section.
    pub section_base: u64,
    /// Other code.
    pub code: &'a dyn CodeMap,
}

impl<'a> Cx<'a> {
    /// An instruction alone, in a section at address 0: enough for everything but branches.
    pub fn alone(inst: &'a Instruction, sm: u32) -> Cx<'a> {
        Cx { inst, sm, section_base: 0, code: &NoCode }
    }
    /// What lies at a code address.
    pub fn resolve(&self, address: u64) -> Option<Target<'a>> {
        self.code.at(address)
    }
    /// Whether modifier `name` is present.
    pub fn has(&self, name: &str) -> bool {
        self.inst.has(name)
    }
    /// Number of operands.
    pub fn len(&self) -> usize {
        self.inst.operands.len()
    }
    /// Whether there are no operands.
    pub fn is_empty(&self) -> bool {
        self.inst.operands.is_empty()
    }
    /// Operand `i`.
    pub fn operand(&self, i: usize) -> Lowered<Operand> {
        match self.inst.operands.get(i) {
            Some(o) => Ok(*o),
            None => refuse(format!("operand {i} is missing")),
        }
    }
    fn wrong<T>(&self, i: usize, wanted: &str) -> Lowered<T> {
        refuse(format!("operand {i} is not {wanted}"))
    }
    /// Register operand `i`.
    pub fn reg(&self, i: usize) -> Lowered<RegOperand> {
        match self.operand(i)? {
            Operand::Reg(r) => Ok(r),
            _ => self.wrong(i, "a register"),
        }
    }
    /// Whether operand `i` is a predicate.
    pub fn is_pred(&self, i: usize) -> bool {
        matches!(self.inst.operands.get(i), Some(Operand::Pred(_)))
    }
    /// Destination register `i`.
    pub fn dst(&self, i: usize) -> Lowered<Option<Slot>> {
        let r = self.reg(i)?;
        Ok(slot(r.file, r.index))
    }
    /// Destination register pair `i`, low and high.
    pub fn dst64(&self, i: usize) -> Lowered<[Option<Slot>; 2]> {
        let r = self.reg(i)?;
        Ok([slot(r.file, r.index), slot_at(r.file, r.index, 1)])
    }
    /// Destination predicate `i`.
    pub fn pdst(&self, i: usize) -> Lowered<Option<Pred>> {
        match self.operand(i)? {
            Operand::Pred(p) if !p.negated => Ok(pred(p.file, p.index)),
            _ => self.wrong(i, "a predicate destination"),
        }
    }
    /// Source predicate `i`.
    pub fn psrc(&self, i: usize) -> Lowered<PredSrc> {
        match self.operand(i)? {
            Operand::Pred(p) => Ok(pred_src(p)),
            _ => self.wrong(i, "a predicate"),
        }
    }
    /// Source `i` as 32 bits without its sign or magnitude, and these apart: `(source, sign, abs, suffix)`.
    /// Registers, integer and float immediates (f16 immediates in the low half only), constants.
    pub fn raw(&self, i: usize) -> Lowered<(Src, Sign, bool, &'static str)> {
        Ok(match self.operand(i)? {
            Operand::Reg(r) => (src(slot(r.file, r.index)), r.sign, r.abs, r.suffix),
            Operand::Int(v) => (Src::imm(v as u32), Sign::None, false, ""),
            Operand::Float { bits, suffix, .. } => (Src::imm(bits), Sign::None, false, suffix),
            Operand::Const(c) => match (c.bank, c.reg, c.ureg) {
                (Bank::Index(b), None, None) if (0..=0xffff_ffff).contains(&c.offset) && c.offset % 4 == 0 => {
                    (Src::constant(b, c.offset as u32), c.sign, c.abs, c.suffix)
                }
                _ => return self.wrong(i, "a constant at a fixed, aligned offset"),
            },
            _ => return self.wrong(i, "a value"),
        })
    }
    /// Source `i`, 32-bit integer: `-` negates, `~` inverts. Suffixes and `|..|` are refused.
    pub fn src(&self, i: usize) -> Lowered<Src> {
        let (s, sign, abs, suffix) = self.raw(i)?;
        if abs || !suffix.is_empty() {
            return self.wrong(i, "a plain 32-bit source");
        }
        Ok(s.with(match sign {
            Sign::None => SrcMod::None,
            Sign::Neg => SrcMod::Neg,
            Sign::Not => SrcMod::Not,
        }))
    }
    /// Source `i`, f32: `-` and `|..|` work on bit 31. Suffixes are refused.
    pub fn fsrc(&self, i: usize) -> Lowered<Src> {
        let (s, sign, abs, suffix) = self.raw(i)?;
        if sign == Sign::Not || !suffix.is_empty() {
            return self.wrong(i, "a plain f32 source");
        }
        Ok(s.with(fmod(sign, abs)))
    }
    /// Source `i` as 64 bits, low and high word, without sign or magnitude, which are returned apart.
    /// An integer immediate is sign-extended; an f64 immediate fills the high word.
    pub fn raw64(&self, i: usize) -> Lowered<([Src; 2], Sign, bool)> {
        Ok(match self.operand(i)? {
            Operand::Reg(r) => ([src(slot(r.file, r.index)), src(slot_at(r.file, r.index, 1))], r.sign, r.abs),
            Operand::Int(v) => ([Src::imm(v as u32), Src::imm((v >> 32) as u32)], Sign::None, false),
            Operand::Float { bits, format: FloatFormat::F64High, .. } => {
                ([Src::ZERO, Src::imm(bits)], Sign::None, false)
            }
            Operand::Const(c) => {
                let (lo, sign, abs, _) = self.raw(i)?;
                let Bank::Index(b) = c.bank else { return self.wrong(i, "a constant bank by number") };
                let Some(hi) = (c.offset as u32).checked_add(4) else { return self.wrong(i, "inside the bank") };
                ([lo, Src::constant(b, hi)], sign, abs)
            }
            _ => return self.wrong(i, "a 64-bit value"),
        })
    }
    /// Source `i`, f64: sign and magnitude applied to the high word.
    pub fn dsrc(&self, i: usize) -> Lowered<[Src; 2]> {
        let ([lo, hi], sign, abs) = self.raw64(i)?;
        if sign == Sign::Not {
            return self.wrong(i, "an f64 source");
        }
        Ok([lo, hi.with(fmod(sign, abs))])
    }
    /// Integer immediate `i`.
    pub fn int(&self, i: usize) -> Lowered<i64> {
        match self.operand(i)? {
            Operand::Int(v) => Ok(v),
            _ => self.wrong(i, "an integer"),
        }
    }
    /// Literal `i` (`SR_TID.X`, `PR`).
    pub fn literal(&self, i: usize) -> Lowered<&'static str> {
        match self.operand(i)? {
            Operand::Literal(s) => Ok(s),
            _ => self.wrong(i, "a name"),
        }
    }
    /// Memory operand `i`.
    pub fn mem(&self, i: usize) -> Lowered<MemOperand> {
        match self.operand(i)? {
            Operand::Mem(m) => Ok(m),
            _ => self.wrong(i, "an address"),
        }
    }
    /// Memory operand `i` as an address. `wide`: 64-bit space, where a bare register is a pair only with `.64`
    /// and a uniform register is always a pair unless `.U32`... is printed.
    pub fn addr(&self, i: usize, wide: bool) -> Lowered<Addr> {
        let m = self.mem(i)?;
        let mut addr = Addr {
            base: Src::ZERO,
            base_hi: None,
            uniform: None,
            signed: false,
            scale: 0,
            offset: m.offset.unwrap_or(0),
        };
        if let Some((r, suffix)) = m.reg {
            addr.base = src(slot(File::Vector, r));
            match suffix {
                "" | "U32" => {}
                "64" => addr.base_hi = Some(src(slot_at(File::Vector, r, 1))),
                "S32" => addr.signed = true,
                "X4" => addr.scale = 2,
                "X8" => addr.scale = 3,
                "X16" => addr.scale = 4,
                _ => return refuse(format!("address register suffix .{suffix}")),
            }
        }
        if let Some((u, suffix)) = m.ureg {
            let lo = src(slot(File::Uniform, u));
            let hi = if wide { src(slot_at(File::Uniform, u, 1)) } else { Src::ZERO };
            match suffix {
                "" | "64" => addr.uniform = Some((lo, hi)),
                "U32" => addr.uniform = Some((lo, Src::ZERO)),
                _ => return refuse(format!("uniform address register suffix .{suffix}")),
            }
        }
        Ok(addr)
    }
}

/// f32 (or f64 high word) modifier of a sign and a magnitude bar.
pub fn fmod(sign: Sign, abs: bool) -> SrcMod {
    match (sign, abs) {
        (Sign::Neg, true) => SrcMod::FNegAbs,
        (Sign::Neg, false) => SrcMod::FNeg,
        (_, true) => SrcMod::FAbs,
        (_, false) => SrcMod::None,
    }
}
