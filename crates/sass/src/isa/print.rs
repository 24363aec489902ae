//! Prints instructions and operands as nvdisasm does.

use super::float;
use super::inst::{Bank, ConstOperand, File, Instruction, MemOperand, Operand, PredOperand, RegOperand, Sign};
use std::fmt::{Display, Formatter, Result, Write};

/// A blank instead of a comma separates the last register from the displacement of these.
const REGISTER_TARGETS: [&str; 8] = ["BRX", "CALL", "RET", "JMX", "BRXU", "JMXU", "BRXX", "JMXX"];

/// Their immediates never have a sign; a negative value is a 64-bit one with its top bit set.
const UNSIGNED_IMMEDIATES: [&str; 3] = ["MOV", "UMOV", "MOV64IUR"];

/// The text that `nvdisasm --binary` prints, without the final ` ;`.
impl Display for Instruction {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if self.guard.index != 7 || self.guard.negated {
            write!(f, "@{} ", self.guard)?;
        }
        f.write_str(self.mnemonic)?;
        for modifier in &self.mods {
            f.write_char('.')?;
            f.write_str(modifier)?;
        }
        let mut separator = " ";
        let last = self.operands.len().wrapping_sub(1);
        for (index, operand) in self.operands.iter().enumerate() {
            let after_register = index == last
                && index > 0
                && matches!(operand, Operand::Int(_))
                && matches!(self.operands.get(index - 1), Some(Operand::Reg(_)))
                && REGISTER_TARGETS.contains(&self.mnemonic);
            f.write_str(if after_register { " " } else { separator })?;
            separator = ", ";
            match operand {
                // Infinities carry a trailing blank that vanishes at the end of the line.
                Operand::Float { bits, format, suffix: "" } if index == last => {
                    let text = float::Text::new(*bits, *format).to_string();
                    f.write_str(text.trim_end())?;
                }
                Operand::Int(value) if UNSIGNED_IMMEDIATES.contains(&self.mnemonic) => {
                    write!(f, "{:#x}", value.cast_unsigned())?;
                }
                operand => write!(f, "{operand}")?,
            }
        }
        Ok(())
    }
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Operand::Reg(register) => register.fmt(f),
            Operand::Pred(predicate) => predicate.fmt(f),
            Operand::Barrier(index) => write!(f, "B{index}"),
            Operand::Scoreboard(index) => write!(f, "SB{index}"),
            Operand::Int(value) => integer(f, *value),
            Operand::Float { bits, format, suffix } => {
                float::Text::new(*bits, *format).fmt(f)?;
                dotted(f, suffix)
            }
            Operand::Const(constant) => constant.fmt(f),
            Operand::Mem(memory) => memory.fmt(f),
            Operand::Desc(index, suffix) => {
                f.write_str("desc[")?;
                register_name(f, File::Uniform, *index)?;
                f.write_char(']')?;
                dotted(f, suffix)
            }
            Operand::Literal(text) => f.write_str(text),
        }
    }
}

impl Display for PredOperand {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if self.negated {
            f.write_char('!')?;
        }
        if self.file == File::Uniform {
            f.write_char('U')?;
        }
        if self.index == 7 { f.write_str("PT") } else { write!(f, "P{}", self.index) }
    }
}

impl Display for Sign {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self {
            Sign::None => "",
            Sign::Neg => "-",
            Sign::Not => "~",
        })
    }
}

impl Display for RegOperand {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.sign.fmt(f)?;
        if self.abs {
            f.write_char('|')?;
        }
        register_name(f, self.file, self.index)?;
        if self.abs {
            if self.suffix_in_bars {
                dotted(f, self.suffix)?;
            }
            f.write_char('|')?;
        }
        if self.reuse {
            f.write_str(".reuse")?;
        }
        if self.suffix_in_bars { Ok(()) } else { dotted(f, self.suffix) }
    }
}

impl Display for ConstOperand {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        self.sign.fmt(f)?;
        if self.abs {
            f.write_char('|')?;
        }
        match self.bank {
            Bank::Index(bank) => write!(f, "c[{bank:#x}]")?,
            Bank::Uniform(register) => {
                f.write_str("cx[")?;
                register_name(f, File::Uniform, register)?;
                f.write_char(']')?;
            }
        }
        if self.spaced {
            f.write_char(' ')?;
        }
        let indexed = self.reg.is_some() || self.ureg.is_some();
        let offset = (!indexed || self.offset != 0).then_some(self.offset);
        address(f, self.reg, self.ureg, offset)?;
        if self.abs {
            if self.suffix_in_bars {
                dotted(f, self.suffix)?;
            }
            f.write_char('|')?;
        }
        if self.suffix_in_bars { Ok(()) } else { dotted(f, self.suffix) }
    }
}

impl Display for MemOperand {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if let Some(desc) = self.desc {
            f.write_str("desc[")?;
            register_name(f, File::Uniform, desc)?;
            f.write_char(']')?;
        }
        f.write_str(self.prefix)?;
        address(f, self.reg, self.ureg, self.offset)?;
        dotted(f, self.suffix)
    }
}

/// `[R2.64+UR4+0x10]`; a negative offset prints `+-0x10`.
fn address(f: &mut Formatter<'_>, reg: Option<(u8, &str)>, ureg: Option<(u8, &str)>, offset: Option<i64>) -> Result {
    f.write_char('[')?;
    let mut plus = "";
    for (file, part) in [(File::Vector, reg), (File::Uniform, ureg)] {
        if let Some((index, suffix)) = part {
            f.write_str(plus)?;
            register_name(f, file, index)?;
            dotted(f, suffix)?;
            plus = "+";
        }
    }
    if let Some(offset) = offset {
        f.write_str(plus)?;
        integer(f, offset)?;
    }
    f.write_char(']')
}

fn register_name(f: &mut Formatter<'_>, file: File, index: u8) -> Result {
    f.write_str(match file {
        File::Vector => "R",
        File::Uniform => "UR",
    })?;
    if index == 255 { f.write_char('Z') } else { write!(f, "{index}") }
}

fn integer(f: &mut Formatter<'_>, value: i64) -> Result {
    if value < 0 {
        f.write_char('-')?;
    }
    write!(f, "{:#x}", value.unsigned_abs())
}

fn dotted(f: &mut Formatter<'_>, suffix: &str) -> Result {
    if suffix.is_empty() {
        return Ok(());
    }
    f.write_char('.')?;
    f.write_str(suffix)
}
