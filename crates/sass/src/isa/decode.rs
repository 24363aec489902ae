//! Decodes one 128-bit word.

use super::arch::Arch;
use super::eval::{Unknown, Word};
use super::inst::{Bank, ConstOperand, File, Instruction, MemOperand, Operand, PredOperand, RegOperand, Sign};
use super::load;
use super::tables::{Flag, Kind, Modifier, NodeId, Number, OperandRule, Row, SignRule, Tables, slice};
use arrayvec::ArrayVec;
use std::sync::OnceLock;

/// The binary table; see `crates/sass/data`.
pub(super) static TABLE_BYTES: &[u8] = include_bytes!("../../data/isa.bin");

/// Opcode (12 bits) and bit 91.
const KEYS: usize = 1 << 13;
const BIT91: u32 = 91;

/// The embedded instruction table is malformed: a build mistake, not an input's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the embedded instruction table is malformed")]
pub struct TableError;

/// A word that the tables do not explain. It prints as one line with its address and raw bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// No form of any instruction of this architecture has these opcode bits.
    #[error("unknown instruction {raw:#034x} at {pc:#06x}: no {arch} instruction has opcode {opcode:#05x}", opcode = raw & 0xfff)]
    UnknownOpcode {
        /// Byte offset in the section.
        pc: u32,
        /// The encoding.
        raw: u128,
        /// The decoder's architecture.
        arch: Arch,
    },
    /// The opcode is known but none of its forms allows these bits.
    #[error("unknown instruction {raw:#034x} at {pc:#06x}: no form of {mnemonic} on {arch} has these bits")]
    UnknownForm {
        /// Byte offset in the section.
        pc: u32,
        /// The encoding.
        raw: u128,
        /// The decoder's architecture.
        arch: Arch,
        /// The instruction with this opcode; the first if there are several.
        mnemonic: &'static str,
    },
    /// The form is known but a modifier or an operand has a value that is reserved or was never seen.
    #[error(
        "unknown instruction {raw:#034x} at {pc:#06x}: {mnemonic} on {arch} has an unknown value in {part} {index}"
    )]
    UnknownValue {
        /// Byte offset in the section.
        pc: u32,
        /// The encoding.
        raw: u128,
        /// The decoder's architecture.
        arch: Arch,
        /// The instruction.
        mnemonic: &'static str,
        /// "modifier" or "operand".
        part: &'static str,
        /// Which one, from 0, in print order.
        index: u8,
    },
}

impl DecodeError {
    /// Byte offset of the word in its section.
    pub fn pc(&self) -> u32 {
        match *self {
            DecodeError::UnknownOpcode { pc, .. }
            | DecodeError::UnknownForm { pc, .. }
            | DecodeError::UnknownValue { pc, .. } => pc,
        }
    }

    /// The word.
    pub fn raw(&self) -> u128 {
        match *self {
            DecodeError::UnknownOpcode { raw, .. }
            | DecodeError::UnknownForm { raw, .. }
            | DecodeError::UnknownValue { raw, .. } => raw,
        }
    }
}

/// A decoder for one architecture. Cheap to make after the first; share it or make one per thread.
#[derive(Clone, Debug)]
pub struct Decoder {
    arch: Arch,
    tables: &'static Tables,
    /// Row numbers of this architecture, grouped by key.
    rows: Vec<u32>,
    /// For each key, where its rows start in `rows`; one more entry ends the last.
    starts: Vec<u32>,
}

fn tables() -> Result<&'static Tables, TableError> {
    static TABLES: OnceLock<Option<Tables>> = OnceLock::new();
    TABLES.get_or_init(|| load::load(TABLE_BYTES)).as_ref().ok_or(TableError)
}

impl Decoder {
    /// A decoder for `arch`.
    pub fn new(arch: Arch) -> Result<Self, TableError> {
        let tables = tables()?;
        let bit = arch.table_bit().ok_or(TableError)?;
        let mut rows = Vec::new();
        let mut starts = Vec::with_capacity(KEYS + 1);
        for (number, row) in (0u32..).zip(&tables.rows) {
            if row.archs >> bit & 1 == 1 {
                let key = usize::from(row.key);
                while starts.len() <= key {
                    starts.push(rows.len() as u32);
                }
                rows.push(number);
            }
        }
        starts.resize(KEYS + 1, rows.len() as u32);
        Ok(Decoder { arch, tables, rows, starts })
    }

    /// The architecture.
    pub fn arch(&self) -> Arch {
        self.arch
    }

    /// Decodes the word `raw` (low 64 bits first in memory) that stands `pc` bytes into its section.
    pub fn decode(&self, pc: u32, raw: u128) -> Result<Instruction, DecodeError> {
        // One place from the start, so that the large value is built where the caller wants it.
        let mut result = Ok(Instruction {
            pc,
            raw,
            guard: PredOperand { file: File::Vector, index: 7, negated: false },
            mnemonic: "",
            mods: ArrayVec::new(),
            operands: ArrayVec::new(),
        });
        let filled = match &mut result {
            Ok(inst) => self.fill(inst),
            Err(_) => Ok(()),
        };
        if let Err(error) = filled {
            result = Err(error);
        }
        result
    }

    /// Fills in all that follows from `raw` and `pc`.
    fn fill(&self, inst: &mut Instruction) -> Result<(), DecodeError> {
        let (pc, raw) = (inst.pc, inst.raw);
        let row = self.find(pc, raw)?;
        inst.guard = PredOperand { file: row.guard_file, index: (raw >> 12) as u8 & 7, negated: raw >> 15 & 1 == 1 };
        inst.mnemonic = row.mnemonic;
        let unknown = |part, index: usize| DecodeError::UnknownValue {
            pc,
            raw,
            arch: self.arch,
            mnemonic: row.mnemonic,
            part,
            index: u8::try_from(index).unwrap_or(u8::MAX),
        };
        for (index, modifier) in slice(&self.tables.modifiers, &row.modifiers).iter().enumerate() {
            self.modifier(modifier, raw, &mut inst.mods).map_err(|Unknown| unknown("modifier", index))?;
        }
        let word = Word { raw, pc };
        for (index, rule) in slice(&self.tables.operands, &row.operands).iter().enumerate() {
            self.operand(rule, word, &mut inst.operands).map_err(|Unknown| unknown("operand", index))?;
        }
        Ok(())
    }

    fn find(&self, pc: u32, raw: u128) -> Result<&'static Row, DecodeError> {
        let arch = self.arch;
        let key = ((raw & 0xfff) << 1 | raw >> BIT91 & 1) as usize;
        let bounds = self.starts.get(key).zip(self.starts.get(key + 1));
        let span = bounds.map_or(0..0, |(&start, &end)| start..end);
        let mut first = None;
        for &number in slice(&self.rows, &span) {
            let row = self.tables.rows.get(number as usize);
            let row = row.ok_or(DecodeError::UnknownOpcode { pc, raw, arch })?;
            if self.tables.applies(&row.when, raw) {
                return Ok(row);
            }
            first = first.or(Some(row.mnemonic));
        }
        Err(match first {
            None => DecodeError::UnknownOpcode { pc, raw, arch },
            Some(mnemonic) => DecodeError::UnknownForm { pc, raw, arch, mnemonic },
        })
    }

    #[inline]
    fn modifier<const N: usize>(
        &self,
        modifier: &Modifier,
        raw: u128,
        mods: &mut ArrayVec<&'static str, N>,
    ) -> Result<(), Unknown> {
        let token = match *modifier {
            Modifier::Bit(bit, token) => {
                return if bit.of(raw) == 0 { Ok(()) } else { mods.try_push(token).map_err(|_| Unknown) };
            }
            Modifier::Node(node) => self.tables.token(node, raw)?,
        };
        if token == 0 {
            return Ok(());
        }
        let token = self.tables.tokens.get(usize::from(token)).ok_or(Unknown)?;
        for part in slice(&self.tables.parts, &token.parts) {
            mods.try_push(part).map_err(|_| Unknown)?;
        }
        Ok(())
    }

    /// Appends an operand. Each kind builds its own in place: the type is large, and most are registers.
    #[inline]
    fn operand<const N: usize>(
        &self,
        rule: &OperandRule,
        word: Word,
        operands: &mut ArrayVec<Operand, N>,
    ) -> Result<(), Unknown> {
        if operands.is_full() {
            return Err(Unknown);
        }
        match rule.kind {
            Kind::Reg(file) => {
                let register = self.register(rule, file, word)?;
                operands.push(Operand::Reg(register));
            }
            Kind::Pred(file) => {
                let index = self.index(rule.value, word, 7)?;
                let negated = self.flag(rule.negated, word)?;
                operands.push(Operand::Pred(PredOperand { file, index, negated }));
            }
            Kind::Int => {
                let value = self.required(rule.value, word)?;
                operands.push(Operand::Int(value));
            }
            _ => {
                let operand = self.other_operand(rule, word)?;
                operands.push(operand);
            }
        }
        Ok(())
    }

    fn other_operand(&self, rule: &OperandRule, word: Word) -> Result<Operand, Unknown> {
        Ok(match rule.kind {
            Kind::Barrier => Operand::Barrier(self.index(rule.value, word, 255)?),
            Kind::Scoreboard => Operand::Scoreboard(self.index(rule.value, word, 255)?),
            Kind::Float => {
                let (format, bits) = self.tables.float(rule.content.ok_or(Unknown)?, word.raw)?;
                Operand::Float { bits, format, suffix: self.text(rule.outer_suffix, word)? }
            }
            Kind::Const => {
                let bank = Bank::Index(self.index(rule.bank, word, 255)?);
                self.constant(rule, bank, word)?
            }
            Kind::ConstUniform => {
                let bank = Bank::Uniform(self.uniform(self.required(rule.desc, word)?)?);
                self.constant(rule, bank, word)?
            }
            Kind::Mem(prefix) => self.memory(rule, prefix, word)?,
            Kind::Desc => {
                let register = self.uniform(self.required(rule.desc, word)?)?;
                Operand::Desc(register, self.text(rule.outer_suffix, word)?)
            }
            Kind::Literal => Operand::Literal(self.text(rule.content, word)?),
            Kind::Reg(_) | Kind::Pred(_) | Kind::Int => return Err(Unknown),
        })
    }

    #[inline]
    fn register(&self, rule: &OperandRule, file: File, word: Word) -> Result<RegOperand, Unknown> {
        let number = self.required(rule.value, word)?;
        let index = match file {
            File::Vector => u8::try_from(number).map_err(|_| Unknown)?,
            File::Uniform => self.uniform(number)?,
        };
        let sign = self.sign(rule.sign, word)?;
        let abs = self.flag(rule.abs, word)?;
        let reuse = self.flag(rule.reuse, word)?;
        let (suffix, suffix_in_bars) = if rule.plain { ("", false) } else { self.suffix(rule, abs, word)? };
        Ok(RegOperand { file, index, sign, abs, reuse, suffix, suffix_in_bars })
    }

    /// The suffix and whether it stands inside the bars. The two never print together: the tables keep
    /// them apart only because bars move the suffix behind them.
    #[inline]
    fn suffix(&self, rule: &OperandRule, abs: bool, word: Word) -> Result<(&'static str, bool), Unknown> {
        let inner = self.text(rule.inner_suffix, word)?;
        let outer = self.text(rule.outer_suffix, word)?;
        match (inner, outer) {
            ("", outer) => Ok((outer, false)),
            (inner, "") => Ok((inner, abs)),
            _ => Err(Unknown),
        }
    }

    fn constant(&self, rule: &OperandRule, bank: Bank, word: Word) -> Result<Operand, Unknown> {
        let abs = self.flag(rule.abs, word)?;
        let (suffix, suffix_in_bars) = self.suffix(rule, abs, word)?;
        Ok(Operand::Const(ConstOperand {
            bank,
            reg: self.base(rule, word)?,
            ureg: self.uniform_base(rule, word)?,
            offset: self.optional(rule.offset, word)?.unwrap_or(0),
            sign: self.sign(rule.sign, word)?,
            abs,
            suffix,
            suffix_in_bars,
            spaced: self.flag(rule.space, word)?,
        }))
    }

    fn memory(&self, rule: &OperandRule, prefix: &'static str, word: Word) -> Result<Operand, Unknown> {
        let desc = self.optional(rule.desc, word)?;
        Ok(Operand::Mem(MemOperand {
            prefix,
            desc: desc.map(|number| self.uniform(number)).transpose()?,
            reg: self.base(rule, word)?,
            ureg: self.uniform_base(rule, word)?,
            offset: self.optional(rule.offset, word)?,
            suffix: self.text(rule.outer_suffix, word)?,
        }))
    }

    fn base(&self, rule: &OperandRule, word: Word) -> Result<Option<(u8, &'static str)>, Unknown> {
        let Some(number) = self.optional(rule.reg, word)? else {
            return Ok(None);
        };
        let register = u8::try_from(number).map_err(|_| Unknown)?;
        Ok(Some((register, self.text(rule.reg_suffix, word)?)))
    }

    fn uniform_base(&self, rule: &OperandRule, word: Word) -> Result<Option<(u8, &'static str)>, Unknown> {
        match self.optional(rule.ureg, word)? {
            None => Ok(None),
            Some(number) => Ok(Some((self.uniform(number)?, ""))),
        }
    }

    /// A uniform register number with `URZ` as 255.
    #[inline]
    fn uniform(&self, number: i64) -> Result<u8, Unknown> {
        let index = u8::try_from(number).map_err(|_| Unknown)?;
        let urz = self.arch.urz();
        match index {
            _ if index == urz => Ok(255),
            _ if index < urz => Ok(index),
            _ => Err(Unknown),
        }
    }

    #[inline]
    fn optional(&self, number: Number, word: Word) -> Result<Option<i64>, Unknown> {
        match number {
            Number::Absent => Ok(None),
            Number::Field(field) => Ok(Some(field.of(word.raw) as i64)),
            Number::Node(node) => self.tables.number(node, word),
        }
    }

    #[inline]
    fn required(&self, number: Number, word: Word) -> Result<i64, Unknown> {
        self.optional(number, word)?.ok_or(Unknown)
    }

    #[inline]
    fn index(&self, number: Number, word: Word, last: u8) -> Result<u8, Unknown> {
        let index = u8::try_from(self.required(number, word)?).map_err(|_| Unknown)?;
        if index <= last { Ok(index) } else { Err(Unknown) }
    }

    #[inline]
    fn flag(&self, flag: Flag, word: Word) -> Result<bool, Unknown> {
        match flag {
            Flag::Never => Ok(false),
            Flag::Bit(bit) => Ok(bit.of(word.raw) != 0),
            Flag::Node(node) => Ok(self.tables.token(node, word.raw)? != 0),
        }
    }

    #[inline]
    fn text(&self, node: Option<NodeId>, word: Word) -> Result<&'static str, Unknown> {
        match node {
            None => Ok(""),
            Some(node) => Ok(self.tables.text(self.tables.token(node, word.raw)?)),
        }
    }

    #[inline]
    fn sign(&self, rule: SignRule, word: Word) -> Result<Sign, Unknown> {
        match rule {
            SignRule::None => Ok(Sign::None),
            SignRule::Bit(bit, sign) => Ok(if bit.of(word.raw) == 0 { Sign::None } else { sign }),
            SignRule::Node(node) => match self.text(Some(node), word)? {
                "" => Ok(Sign::None),
                "-" => Ok(Sign::Neg),
                "~" => Ok(Sign::Not),
                _ => Err(Unknown),
            },
        }
    }
}
