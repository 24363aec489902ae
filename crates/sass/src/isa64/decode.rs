//! Decodes one word.
//!
//! Which bits mean what was measured by flipping each bit under nvdisasm. Values that no disassembler names are
//! refused, as is an instruction whose leading bits are no opcode.

use arrayvec::ArrayVec;

use super::fields::{ALWAYS, bit, bits, scoreboards, signed, test};
use super::names;
use crate::isa::inst::{Bank, ConstOperand, File, Instruction, Operand, PredOperand, RegOperand, Sign};

/// What is known of an instruction.
#[derive(Clone, Debug, PartialEq)]
pub enum Decoded {
    /// All of it; its `Display` is nvdisasm's text.
    Full(Box<Instruction>),
    /// Guard and name; the operands are not decoded.
    Named {
        /// Execution guard.
        guard: PredOperand,
        /// Base opcode as nvdisasm prints it.
        mnemonic: &'static str,
    },
}

impl Decoded {
    /// The base opcode.
    pub fn mnemonic(&self) -> &'static str {
        match self {
            Decoded::Full(inst) => inst.mnemonic,
            Decoded::Named { mnemonic, .. } => mnemonic,
        }
    }
}

impl std::fmt::Display for Decoded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Decoded::Full(inst) => inst.fmt(f),
            Decoded::Named { guard, mnemonic } => {
                if guard.index != 7 || guard.negated {
                    write!(f, "@{guard} ")?;
                }
                write!(f, "{mnemonic} (operands not decoded)")
            }
        }
    }
}

/// A word that is no instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NarrowError {
    /// No opcode has these leading bits.
    #[error("unknown instruction {raw:#018x} at {pc:#06x}: no opcode of sm_50 to sm_62 starts with {lead:#06x}", lead = raw >> 48)]
    Opcode {
        /// Byte offset in the section.
        pc: u32,
        /// The encoding.
        raw: u64,
    },
    /// A field has a value without a meaning.
    #[error("unknown instruction {raw:#018x} at {pc:#06x}: {mnemonic} has an unknown value in its {field}")]
    Value {
        /// Byte offset in the section.
        pc: u32,
        /// The encoding.
        raw: u64,
        /// The instruction.
        mnemonic: &'static str,
        /// Which field.
        field: &'static str,
    },
}

/// Bytes from an instruction to the point that its displacement counts from.
const NEXT: i64 = 8;

const ALWAYS_ON: PredOperand = PredOperand { file: File::Vector, index: 7, negated: false };

/// Decodes the word `raw` that stands `pc` bytes into its section.
pub fn decode(pc: u32, raw: u64) -> Result<Decoded, NarrowError> {
    let mnemonic = names::name(raw).ok_or(NarrowError::Opcode { pc, raw })?;
    let guard = PredOperand { file: File::Vector, index: bits(raw, 16, 3) as u8, negated: bit(raw, 19) };
    let mut i = Building {
        raw,
        inst: Instruction {
            pc,
            raw: u128::from(raw),
            guard,
            mnemonic,
            mods: ArrayVec::new(),
            operands: ArrayVec::new(),
        },
    };
    let filled = match mnemonic {
        "BRA" => i.branch(true),
        "JMP" => i.branch(false),
        "BRX" | "JMX" => i.indirect(),
        "SSY" | "PBK" | "PCNT" | "PLONGJMP" | "PRET" | "CAL" | "PEXIT" => i.push(true),
        "JCAL" => i.push(false),
        "EXIT" | "LONGJMP" | "RET" | "KIL" | "BRK" | "CONT" | "SYNC" => i.leave(),
        "RTT" => i.return_from_trap(),
        "SAM" | "RAM" => i.unguarded(),
        "IDE" => i.interrupts(),
        "BPT" => i.breakpoint(),
        "NOP" => i.nop(),
        "BAR" => i.barrier(),
        "B2R" => i.barrier_result(),
        "VOTE" => i.vote(),
        "SHFL" => i.shuffle(),
        "DEPBAR" => i.scoreboard_wait(),
        "LEPC" => i.reg(0),
        _ => return Ok(Decoded::Named { guard, mnemonic }),
    };
    filled.map_err(|Unknown(field)| NarrowError::Value { pc, raw, mnemonic, field })?;
    Ok(Decoded::Full(Box::new(i.inst)))
}

/// A field's name.
struct Unknown(&'static str);
type Filled = Result<(), Unknown>;

struct Building {
    raw: u64,
    inst: Instruction,
}

impl Building {
    /// No instruction has more modifiers or operands than there is room for; one that had would be refused.
    fn modifier(&mut self, token: &'static str) -> Filled {
        self.inst.mods.try_push(token).map_err(|_| Unknown("modifiers"))
    }

    fn operand(&mut self, operand: Operand) -> Filled {
        self.inst.operands.try_push(operand).map_err(|_| Unknown("operands"))
    }

    fn flag(&mut self, at: u32, token: &'static str) -> Filled {
        if bit(self.raw, at) { self.modifier(token) } else { Ok(()) }
    }

    fn int(&mut self, value: i64) -> Filled {
        self.operand(Operand::Int(value))
    }

    /// The register whose number starts at bit `low`.
    fn reg(&mut self, low: u32) -> Filled {
        let index = bits(self.raw, low, 8) as u8;
        self.operand(Operand::Reg(RegOperand {
            file: File::Vector,
            index,
            sign: Sign::None,
            abs: false,
            reuse: false,
            suffix: "",
            suffix_in_bars: false,
        }))
    }

    /// The predicate whose number starts at bit `low`.
    fn pred(&mut self, low: u32, negated: bool) -> Filled {
        self.operand(Operand::Pred(PredOperand { file: File::Vector, index: bits(self.raw, low, 3) as u8, negated }))
    }

    /// The condition-code test at bit `low`; one that always holds prints nothing.
    fn test(&mut self, low: u32) -> Filled {
        match bits(self.raw, low, 5) {
            ALWAYS => Ok(()),
            number => self.operand(Operand::Literal(test(number))),
        }
    }

    /// A word of a constant bank that holds the target.
    fn constant(&mut self, reg: Option<u8>) -> Filled {
        self.operand(Operand::Const(ConstOperand {
            bank: Bank::Index(bits(self.raw, 36, 5) as u8),
            reg: reg.map(|r| (r, "")),
            ureg: None,
            offset: signed(self.raw, 20, 16),
            sign: Sign::None,
            abs: false,
            suffix: "",
            suffix_in_bars: false,
            spaced: false,
        }))
    }

    /// A fixed target: 24 bits from the next word, or 32 bits from the start of the code space; or in a constant bank.
    fn target(&mut self, relative: bool) -> Filled {
        if bit(self.raw, 5) && self.inst.mnemonic != "PEXIT" {
            self.constant(None)
        } else if relative {
            self.int(i64::from(self.inst.pc) + NEXT + signed(self.raw, 20, 24))
        } else {
            self.int(bits(self.raw, 20, 32).cast_signed())
        }
    }

    fn branch(&mut self, relative: bool) -> Filled {
        self.flag(7, "U")?;
        self.flag(6, "LMT")?;
        self.test(0)?;
        self.target(relative)
    }

    fn indirect(&mut self) -> Filled {
        self.flag(6, "LMT")?;
        self.test(0)?;
        if bit(self.raw, 5) {
            let index = bits(self.raw, 8, 8) as u8;
            return self.constant((index != 255).then_some(index));
        }
        self.reg(8)?;
        let displacement =
            if self.inst.mnemonic == "BRX" { signed(self.raw, 20, 24) } else { signed(self.raw, 20, 32) };
        if displacement == 0 { Ok(()) } else { self.int(displacement) }
    }

    /// Pushes a token or calls. These have no guard.
    fn push(&mut self, relative: bool) -> Filled {
        self.inst.guard = ALWAYS_ON;
        if matches!(self.inst.mnemonic, "CAL" | "JCAL" | "PRET") && !bit(self.raw, 6) {
            self.modifier("NOINC")?;
        }
        self.target(relative)
    }

    fn leave(&mut self) -> Filled {
        if self.inst.mnemonic == "EXIT" {
            self.flag(5, "KEEPREFCOUNT")?;
        }
        self.test(0)
    }

    fn unguarded(&mut self) -> Filled {
        self.inst.guard = ALWAYS_ON;
        Ok(())
    }

    fn return_from_trap(&mut self) -> Filled {
        self.unguarded()?;
        match bits(self.raw, 0, 2) {
            0 => Ok(()),
            1 => self.modifier("TERMINATE"),
            2 => self.modifier("FALLTHROUGH"),
            _ => self.modifier("PREEMPTED"),
        }
    }

    fn interrupts(&mut self) -> Filled {
        self.unguarded()?;
        if !bit(self.raw, 5) {
            self.modifier("EN")?;
        }
        self.int(bits(self.raw, 20, 16).cast_signed())
    }

    fn breakpoint(&mut self) -> Filled {
        self.unguarded()?;
        self.modifier(match bits(self.raw, 6, 3) {
            0 => "DRAIN_ILLEGAL",
            1 => "CAL",
            2 => "PAUSE",
            3 => "TRAP",
            4 => "INT",
            5 => "DRAIN",
            6 => "PAUSE_QUIET",
            _ => return Err(Unknown("kind")),
        })?;
        match bits(self.raw, 20, 20) {
            0 => Ok(()),
            number => self.int(number.cast_signed()),
        }
    }

    fn nop(&mut self) -> Filled {
        self.flag(13, "TRIG")?;
        self.test(8)?;
        match bits(self.raw, 20, 16) {
            0 => Ok(()),
            number => self.int(number.cast_signed()),
        }
    }

    fn barrier(&mut self) -> Filled {
        let reduces = match bits(self.raw, 32, 3) {
            0 => {
                self.modifier("SYNC")?;
                false
            }
            1 => {
                self.modifier("ARV")?;
                false
            }
            2 => {
                self.modifier("RED")?;
                self.modifier(match bits(self.raw, 35, 2) {
                    0 => "POPC",
                    1 => "AND",
                    2 => "OR",
                    _ => return Err(Unknown("reduction")),
                })?;
                true
            }
            3 => {
                self.modifier("SCAN")?;
                true
            }
            _ => return Err(Unknown("mode")),
        };
        if bit(self.raw, 44) {
            self.int(bits(self.raw, 8, 8).cast_signed())?
        } else {
            self.reg(8)?
        }
        if !bit(self.raw, 43) {
            self.reg(20)?;
        } else {
            // All threads of the block, unless arriving or scanning: these print their number even then.
            let threads = bits(self.raw, 20, 12);
            if threads != 0 || matches!(bits(self.raw, 32, 3), 1 | 3) {
                self.int(threads.cast_signed())?;
            }
        }
        if reduces { self.pred(39, bit(self.raw, 42)) } else { Ok(()) }
    }

    fn barrier_result(&mut self) -> Filled {
        match bits(self.raw, 32, 2) {
            0 => {
                self.reg(0)?;
                self.int(bits(self.raw, 8, 8).cast_signed())
            }
            1 if bits(self.raw, 8, 8) == 0xff => {
                self.modifier("RESULT")?;
                self.reg(0)?;
                if bits(self.raw, 45, 3) == 7 { Ok(()) } else { self.pred(45, false) }
            }
            _ => Err(Unknown("mode")),
        }
    }

    fn vote(&mut self) -> Filled {
        self.modifier(match bits(self.raw, 48, 2) {
            0 => "ALL",
            1 => "ANY",
            2 => "EQ",
            _ => return Err(Unknown("mode")),
        })?;
        self.reg(0)?;
        self.pred(45, false)?;
        self.pred(39, bit(self.raw, 42))
    }

    fn shuffle(&mut self) -> Filled {
        self.modifier(["IDX", "UP", "DOWN", "BFLY"][bits(self.raw, 30, 2) as usize])?;
        self.pred(48, false)?;
        self.reg(0)?;
        self.reg(8)?;
        if bit(self.raw, 28) {
            self.int(bits(self.raw, 20, 5).cast_signed())?
        } else {
            self.reg(20)?
        }
        if bit(self.raw, 29) { self.int(bits(self.raw, 34, 13).cast_signed()) } else { self.reg(39) }
    }

    fn scoreboard_wait(&mut self) -> Filled {
        let set = bits(self.raw, 0, 6);
        if bit(self.raw, 29) {
            self.modifier("LE")?;
            match bits(self.raw, 26, 3) {
                number @ 0..=5 => self.operand(Operand::Scoreboard(number as u8))?,
                _ => return Err(Unknown("scoreboard")),
            }
            self.int(bits(self.raw, 20, 6).cast_signed())?;
        }
        if set == 0 { Ok(()) } else { self.operand(Operand::Literal(scoreboards(set))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Words and texts are nvdisasm's.
    const KNOWN: [(u32, u64, &str); 44] = [
        (0x8, 0xe240_0000_3107_000f, "BRA 0x320"),
        (0x8, 0xe240_0000_3083_0002, "@P3 BRA CC.EQ, 0x318"),
        (0x8, 0xe240_0800_0007_000f, "BRA -0x7ffff0"),
        (0x8, 0xe240_0000_0007_00cf, "BRA.U.LMT 0x10"),
        (0x8, 0xe240_01f0_0047_002f, "BRA c[0x1f][0x4]"),
        (0x8, 0xe240_000f_fff7_002f, "BRA c[0x0][-0x1]"),
        (0x8, 0xe250_0fff_ef07_060f, "BRX R6 -0x110"),
        (0x8, 0xe250_0000_0007_ff0f, "BRX RZ"),
        (0x8, 0xe250_000f_ffc7_052f, "BRX c[0x0][R5+-0x4]"),
        (0x8, 0xe250_0010_0047_ff2f, "BRX c[0x1][0x4]"),
        (0x8, 0xe210_0001_0007_000f, "JMP 0x1000"),
        (0x8, 0xe218_0001_0007_000f, "JMP 0x80001000"),
        (0x8, 0xe208_0000_0007_000f, "JMX R0 -0x80000000"),
        (0x8, 0xe260_0000_0600_0040, "CAL 0x70"),
        (0x8, 0xe260_0000_0600_0000, "CAL.NOINC 0x70"),
        (0x8, 0xe220_0000_0600_0040, "JCAL 0x60"),
        (0x8, 0xe270_0000_0080_0040, "PRET 0x18"),
        (0x8, 0xe290_0000_6401_0000, "SSY 0x650"),
        (0x8, 0xe2a0_0000_4080_0000, "PBK 0x418"),
        (0x8, 0xe2b0_0000_4080_0020, "PCNT c[0x0][0x408]"),
        (0x8, 0xe280_0000_4080_0000, "PLONGJMP 0x418"),
        (0x8, 0xe230_0000_0000_0020, "PEXIT 0x10"),
        (0x8, 0xe300_0000_0007_002f, "EXIT.KEEPREFCOUNT"),
        (0x8, 0xe340_0000_0008_000d, "@!P0 BRK CC.NEU"),
        (0x8, 0xe350_0000_000f_000f, "@!PT CONT"),
        (0x8, 0xe360_0000_0007_000f, "RTT.PREEMPTED"),
        (0x8, 0xe390_0000_0017_0000, "IDE.EN 0x1"),
        (0x8, 0xe3a0_0000_0010_00c0, "BPT.TRAP 0x1"),
        (0x8, 0xf0f8_0000_0000_000f, "@P0 SYNC"),
        (0x8, 0x50b0_0000_0007_2f00, "NOP.TRIG"),
        (0x8, 0x50b0_0000_0017_0e00, "NOP CC.GEU, 0x1"),
        (0x8, 0xf0a8_1b80_0007_0000, "BAR.SYNC 0x0"),
        (0x8, 0xf0a8_1b81_0007_0100, "BAR.ARV 0x1, 0x0"),
        (0x8, 0xf0a8_1381_0807_0100, "BAR.ARV 0x1, R128"),
        (0x8, 0xf0a8_0b80_0007_0000, "BAR.SYNC R0"),
        (0x8, 0xf0a8_1c12_0007_0000, "BAR.RED.OR 0x0, !P0"),
        (0x8, 0xf0b8_e001_0007_ff04, "B2R.RESULT R4"),
        (0x8, 0xf0b8_0001_0007_ffff, "B2R.RESULT RZ, P0"),
        (0x8, 0x50d9_e400_0007_0000, "VOTE.ANY R0, PT, !P0"),
        (0x8, 0xef17_007c_f017_0203, "SHFL.BFLY PT, R3, R2, 0x1, 0x1f"),
        (0x8, 0xef17_007c_2067_0304, "SHFL.IDX PT, R4, R3, R6, 0x1f"),
        (0x8, 0xf0f0_0000_3467_0003, "DEPBAR.LE SB5, 0x6, {1,0}"),
        (0x8, 0xf0f0_0000_0007_0000, "DEPBAR"),
        (0x8, 0x4c98_0780_0080_0001, "@P0 MOV (operands not decoded)"),
    ];

    #[test]
    fn prints_as_nvdisasm() {
        for (pc, raw, text) in KNOWN {
            assert_eq!(decode(pc, raw).map(|d| d.to_string()).as_deref(), Ok(text), "{raw:#x}");
        }
    }

    #[test]
    fn refuses_by_name() {
        let text = |raw| decode(8, raw).map(|d| d.to_string()).unwrap_err().to_string();
        assert!(text(u64::MAX).contains("no opcode of sm_50 to sm_62 starts with 0xffff"));
        assert!(text(0xf0a8_1b84_0007_0000).contains("BAR has an unknown value in its mode"));
        assert!(text(0xf0f0_0000_3c67_0000).contains("DEPBAR has an unknown value in its scoreboard"));
    }

    #[test]
    fn any_word_is_decoded_or_refused() {
        // A multiplicative sequence: every opcode with varied fields.
        let mut word = 1u64;
        for step in 0..200_000u64 {
            word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(step);
            let lead = (step & 0xffff) << 48;
            match decode(u32::MAX, word & 0xffff_ffff_ffff | lead) {
                Ok(decoded) => assert!(!decoded.to_string().is_empty()),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
}
