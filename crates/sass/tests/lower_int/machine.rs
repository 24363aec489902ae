//! One lane of a straight-line machine: decode, lower, evaluate. Just enough of the rest (parameters, thread
//! index, loads, stores, scalar branches and calls) to run a kernel that computes one operation.

use lanescope_ir::op::{LaneOp, SrcKind};
use lanescope_ir::{Op, Src};
use lanescope_sass::isa::Decoder;
use lanescope_sass::isa::inst::{File, Instruction, Operand};
use lanescope_sass::lower::operands::{Cx, pred, slot, slot_at};
use lanescope_sim::lane::eval;

/// Why a kernel could not be run: the instruction and what is missing.
pub(crate) type Stuck = String;

pub(crate) struct Machine {
    sm: u32,
    code: Vec<Instruction>,
    registers: Vec<u32>,
    predicates: Vec<bool>,
    /// Parameters: buffer `i` is at address `(i + 1) << 32`.
    pub(crate) buffers: Vec<Vec<u8>>,
}

impl Machine {
    pub(crate) fn new(sm: u32, text: &[u8], decoder: &Decoder) -> Result<Machine, Stuck> {
        let mut code = Vec::new();
        for (i, word) in text.chunks_exact(16).enumerate() {
            let raw = u128::from_le_bytes(word.try_into().map_err(|_| "word")?);
            code.push(decoder.decode(16 * i as u32, raw).map_err(|e| e.to_string())?);
        }
        Ok(Machine { sm, code, registers: vec![0; 520], predicates: vec![false; 16], buffers: vec![vec![0; 8]; 5] })
    }

    fn lower(&self, inst: &Instruction) -> Result<LaneOp, Stuck> {
        match lanescope_sass::lower::operation(&Cx::alone(inst, self.sm)) {
            Ok(Op::Lane(op)) => Ok(op),
            Ok(_) => Err(format!("{inst}: not a lane operation")),
            Err(e) => Err(format!("{inst}: {}", e.why)),
        }
    }

    fn constant(&self, offset: u32) -> u32 {
        let params = match self.sm {
            ..90 => 0x160,
            90..100 => 0x210,
            _ => 0x380,
        };
        match offset.checked_sub(params) {
            Some(p) if p < 40 && p % 8 == 4 => p / 8 + 1,
            // Block size 1: the thread index is zero, so every buffer has one row.
            _ => 0,
        }
    }

    fn source(&self, s: Src) -> u32 {
        s.modifier.apply(match s.kind {
            SrcKind::Slot(r) => self.registers[r.index()],
            SrcKind::Imm(v) => v,
            SrcKind::Const { offset, .. } => self.constant(offset),
        })
    }

    fn lane(&mut self, op: &LaneOp) {
        let s = op.src.map(|s| self.source(s));
        let p = op.psrc.map(|p| p.pred.is_none_or(|q| self.predicates[q.index()]) != p.negated);
        let out = eval(&op.f, s, p);
        for (to, value) in op.dst.iter().zip(out.d) {
            if let Some(r) = to {
                self.registers[r.index()] = value;
            }
        }
        for (to, value) in op.pdst.iter().zip(out.p) {
            if let Some(q) = to {
                self.predicates[q.index()] = value;
            }
        }
    }

    fn set(&mut self, file: File, index: u8, plus: u8, value: u32) {
        if let Some(r) = slot_at(file, index, plus) {
            self.registers[r.index()] = value;
        }
    }

    fn get(&self, file: File, index: u8, plus: u8) -> u32 {
        slot_at(file, index, plus).map_or(0, |r| self.registers[r.index()])
    }

    /// Runs to `EXIT`.
    pub(crate) fn run(&mut self) -> Result<(), Stuck> {
        self.registers.fill(0);
        self.predicates.fill(false);
        let mut pc = 0u32;
        for _ in 0..20_000 {
            let inst = self.code.get(pc as usize / 16).ok_or("ran past the end")?.clone();
            pc += 16;
            let guard = pred(inst.guard.file, inst.guard.index).is_none_or(|q| self.predicates[q.index()]);
            if guard == inst.guard.negated {
                continue;
            }
            let target = |i: &Instruction| {
                i.operands.iter().rev().find_map(|o| if let Operand::Int(v) = o { Some(*v as u32) } else { None })
            };
            match inst.mnemonic {
                "EXIT" => return Ok(()),
                "NOP" | "BMOV" | "BREAK" | "BSSY" | "BSYNC" | "WARPSYNC" | "YIELD" => {}
                "BRA" => {
                    // A second predicate may stand before the target.
                    let go = inst.operands.iter().all(|o| match o {
                        Operand::Pred(p) => {
                            pred(p.file, p.index).is_none_or(|q| self.predicates[q.index()]) != p.negated
                        }
                        _ => true,
                    });
                    if go {
                        pc = target(&inst).ok_or("target")?;
                    }
                }
                "CALL" => pc = target(&inst).ok_or("target")?,
                "RET" => match inst.operands.first() {
                    Some(Operand::Reg(r)) => pc = self.get(r.file, r.index, 0),
                    _ => return Err(format!("{inst}")),
                },
                "S2R" | "S2UR" | "CS2R" | "LDC" | "ULDC" | "LDCU" | "LDG" | "STG" | "R2UR" => {
                    self.environment(&inst).ok_or_else(|| format!("{inst}"))?;
                }
                _ => {
                    let op = self.lower(&inst)?;
                    self.lane(&op);
                }
            }
        }
        Err("does not end".into())
    }

    /// Runs one lane operation with `R4..R11` and `P0..P3` given; answers `R12`, `R13`, `P0`, `P1`.
    pub(crate) fn step(&mut self, words: [u32; 8], predicates: [bool; 4]) -> Result<([u32; 2], [bool; 2]), Stuck> {
        self.registers.fill(0);
        self.registers[4..12].copy_from_slice(&words);
        self.predicates[..4].copy_from_slice(&predicates);
        let op = self.lower(self.code.first().ok_or("no instruction")?)?;
        self.lane(&op);
        Ok(([self.registers[12], self.registers[13]], [self.predicates[0], self.predicates[1]]))
    }

    fn environment(&mut self, inst: &Instruction) -> Option<()> {
        let dst = match inst.operands.first() {
            Some(Operand::Reg(r)) => Some((r.file, r.index)),
            _ => None,
        };
        let wide = inst.has("64") || (inst.mnemonic == "CS2R" && !inst.has("32"));
        match inst.mnemonic {
            "S2R" | "S2UR" | "CS2R" => {
                let (file, index) = dst?;
                self.set(file, index, 0, 0);
                if wide {
                    self.set(file, index, 1, 0);
                }
            }
            "R2UR" => match (inst.operands.first()?, inst.operands.last()?) {
                (Operand::Reg(to), Operand::Reg(from)) => {
                    let value = self.get(from.file, from.index, 0);
                    let to = slot(to.file, to.index)?;
                    self.registers[to.index()] = value;
                }
                _ => return None,
            },
            "LDC" | "ULDC" | "LDCU" => {
                let (file, index) = dst?;
                let Operand::Const(c) = inst.operands.get(1)? else { return None };
                let words = if inst.has("64") {
                    2
                } else if inst.has("128") {
                    4
                } else {
                    1
                };
                for i in 0..words {
                    let value = self.constant(c.offset as u32 + 4 * u32::from(i));
                    self.set(file, index, i, value);
                }
            }
            "LDG" | "STG" => {
                let memory =
                    inst.operands.iter().find_map(|o| if let Operand::Mem(m) = o { Some(*m) } else { None })?;
                let (r, _) = memory.reg?;
                let mut at = u64::from(self.get(File::Vector, r, 0)) | u64::from(self.get(File::Vector, r, 1)) << 32;
                if memory.desc.is_none()
                    && let Some((u, _)) = memory.ureg
                {
                    at = at.wrapping_add(
                        u64::from(self.get(File::Uniform, u, 0)) | u64::from(self.get(File::Uniform, u, 1)) << 32,
                    );
                }
                at = at.wrapping_add(memory.offset.unwrap_or(0) as u64);
                let (bytes, signed) = if inst.has("U8") || inst.has("S8") {
                    (1, inst.has("S8"))
                } else if inst.has("U16") || inst.has("S16") {
                    (2, inst.has("S16"))
                } else if inst.has("64") {
                    (8, false)
                } else {
                    (4, false)
                };
                let buffer = self.buffers.get_mut((at >> 32) as usize - 1)?;
                let from = at as u32 as usize;
                let bytes_there = buffer.get_mut(from..from + bytes)?;
                if inst.mnemonic == "LDG" {
                    let mut value = [0; 8];
                    value[..bytes].copy_from_slice(bytes_there);
                    let value = u64::from_le_bytes(value);
                    let unused = 64 - 8 * bytes as u32;
                    let value = if signed { ((value << unused) as i64 >> unused) as u64 } else { value };
                    let (file, index) = dst?;
                    self.set(file, index, 0, value as u32);
                    if bytes == 8 {
                        self.set(file, index, 1, (value >> 32) as u32);
                    }
                } else {
                    let Operand::Reg(r) = inst.operands.last()? else { return None };
                    let (file, index) = (r.file, r.index);
                    let value = u64::from(slot_at(file, index, 0).map_or(0, |r| self.registers[r.index()]))
                        | u64::from(slot_at(file, index, 1).map_or(0, |r| self.registers[r.index()])) << 32;
                    let value = value.to_le_bytes();
                    bytes_there.copy_from_slice(&value[..bytes]);
                }
            }
            _ => return None,
        }
        Some(())
    }
}
