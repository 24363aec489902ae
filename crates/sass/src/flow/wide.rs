//! 128-bit instructions, sm_70 and later.

use lanescope_ir::flow::{Flow, FlowCode, FlowInst, RegionClass, Spread};
use lanescope_ir::op::effects::Access;
use lanescope_ir::op::memory::{MemoryOp, Space};
use lanescope_ir::op::warp::{SpecialReg, WarpOp};
use lanescope_ir::{Op, PredSrc};

use super::{FunctionFlow, entries, inventory};
use crate::container::Function;
use crate::isa::Decoder;
use crate::isa::inst::{File, Instruction, Operand, PredOperand};
use crate::lower;
use crate::lower::operands::{Cx, pred, pred_src, slot, slot_at};

/// Bytes of an instruction.
const SIZE: u32 = 16;
/// Opcode bits of NOP.
const NOP: u128 = 0x918;
/// Resource number of the first predicate; registers of both files lie below.
const PREDS: u16 = 510;
/// The barrier-register number past which BMOV names other warp state.
const BARRIERS: u8 = 16;
/// Words of the widest result of an instruction whose operation is not known.
const UNKNOWN_WORDS: u8 = 4;

/// Reads a function whose size has been checked.
pub(super) fn read(decoder: &Decoder, function: &Function<'_>) -> FunctionFlow {
    let words = function.text.as_chunks::<{ SIZE as usize }>().0;
    let len = words.len() - padding(words);
    let mut out = FunctionFlow { instructions: len as u32, ..FunctionFlow::default() };
    let mut code = FlowCode::new(true);
    let mut values = Values::default();
    for (word, pc) in words[..len].iter().zip((0u32..).step_by(SIZE as usize)) {
        let raw = u128::from_le_bytes(*word);
        let inst = match decoder.decode(pc, raw) {
            Ok(inst) => inst,
            Err(error) => {
                let (count, _) = out.undecoded.get_or_insert_with(|| (0, error.to_string()));
                *count += 1;
                code.push(FlowInst::new(pc, Flow::Next), &[], &[]);
                continue;
            }
        };
        if let Some(name) = inventory::name(inst.mnemonic, &inst.mods) {
            *out.opcodes.entry(name).or_default() += 1;
        }
        let line = Line { inst: &inst, function, len: len as u32 };
        let mut flow = FlowInst::new(pc, line.flow(&mut code.targets));
        let second = line.second();
        let conditions = [Some(pred_src(inst.guard)), second.map(pred_src)];
        flow.never = conditions.contains(&Some(PredSrc::FALSE));
        flow.conditional = !flow.never && conditions.iter().flatten().any(|c| c.pred.is_some());
        values.clear();
        flow.spread = line.values(decoder.arch().sm(), &mut values);
        code.push(flow, &values.reads, &values.writes);
    }
    code.entries = entries(function, &code);
    out.code = code;
    out
}

/// NOPs at the end, which only fill the section.
fn padding(words: &[[u8; SIZE as usize]]) -> usize {
    words.iter().rev().take_while(|w| u128::from_le_bytes(**w) & 0xfff == NOP).count().min(words.len() - 1)
}

/// What an instruction reads and writes.
#[derive(Default)]
struct Values {
    reads: Vec<u16>,
    writes: Vec<u16>,
}

impl Values {
    fn clear(&mut self) {
        self.reads.clear();
        self.writes.clear();
    }

    fn pred(&mut self, p: PredOperand, access: Access) {
        if let Some(p) = pred(p.file, p.index) {
            self.add(PREDS + p.0, access);
        }
    }

    fn add(&mut self, resource: u16, access: Access) {
        match access {
            Access::Read => self.reads.push(resource),
            Access::Write => self.writes.push(resource),
        }
    }
}

struct Line<'a> {
    inst: &'a Instruction,
    function: &'a Function<'a>,
    len: u32,
}

impl Line<'_> {
    /// The predicate of a control instruction beside its guard.
    fn second(&self) -> Option<PredOperand> {
        match self.inst.operands.first() {
            Some(Operand::Pred(p)) if self.is_control() => Some(*p),
            _ => None,
        }
    }

    fn is_control(&self) -> bool {
        matches!(
            self.inst.mnemonic,
            "BRA"
                | "BRX"
                | "BRXU"
                | "JMP"
                | "JMX"
                | "JMXU"
                | "CALL"
                | "RET"
                | "EXIT"
                | "KILL"
                | "BSSY"
                | "BSYNC"
                | "BREAK"
                | "BMOV"
                | "WARPSYNC"
                | "ENDCOLLECTIVE"
                | "YIELD"
                | "NANOSLEEP"
                | "BPT"
                | "RPCMOV"
        )
    }

    /// The instruction at the byte offset that the last integer operand names.
    fn target(&self) -> Option<u32> {
        let offset = self.inst.operands.iter().rev().find_map(|o| match o {
            Operand::Int(v) => u32::try_from(*v).ok(),
            _ => None,
        })?;
        (offset.is_multiple_of(SIZE) && offset / SIZE < self.len).then_some(offset / SIZE)
    }

    /// The first barrier register among the operands.
    fn barrier(&self) -> Option<u8> {
        self.inst.operands.iter().find_map(|o| match o {
            Operand::Barrier(b) if *b < BARRIERS => Some(*b),
            _ => None,
        })
    }

    fn class(&self) -> RegionClass {
        if self.inst.has("RECONVERGENT") {
            RegionClass::Reconvergent
        } else if self.inst.has("RELIABLE") {
            RegionClass::Reliable
        } else {
            RegionClass::Plain
        }
    }

    fn flow(&self, targets: &mut Vec<u32>) -> Flow {
        let inst = self.inst;
        match inst.mnemonic {
            "BRA" | "JMP" if inst.has("DIV") || inst.has("CONV") => Flow::Test(self.target()),
            "BRA" | "JMP" if inst.has("U") => Flow::GroupBranch(self.target()),
            "BRA" | "JMP" => Flow::Branch(self.target()),
            "BRX" | "JMX" | "BRXU" | "JMXU" => {
                let first = targets.len() as u32;
                let list = self.function.indirect_branches.iter().find(|b| b.pc == inst.pc);
                let inside = |t: &u32| t.is_multiple_of(SIZE) && t / SIZE < self.len;
                targets.extend(list.iter().flat_map(|b| &b.targets).filter(|t| inside(t)).map(|t| t / SIZE));
                Flow::Indirect(first, targets.len() as u32 - first)
            }
            "EXIT" | "RET" | "KILL" => Flow::Leave,
            "BSSY" => self.barrier().map_or(Flow::Next, |b| Flow::Open(b, self.class())),
            "BSYNC" => self.barrier().map_or(Flow::Next, Flow::Wait),
            "BREAK" => self.barrier().map_or(Flow::Next, Flow::Break),
            "BMOV" => match (self.barrier(), inst.operands.first()) {
                (Some(b), Some(Operand::Barrier(_))) => Flow::Overwrite(b),
                (Some(b), _) if inst.has("CLEAR") => Flow::Overwrite(b),
                _ => Flow::Next,
            },
            _ => Flow::Next,
        }
    }

    /// Collects reads and writes.
    fn values(&self, sm: u32, out: &mut Values) -> Spread {
        let inst = self.inst;
        out.pred(inst.guard, Access::Read);
        if self.is_control() {
            for (index, operand) in inst.operands.iter().enumerate() {
                match operand {
                    Operand::Pred(p) => out.pred(*p, Access::Read),
                    // A barrier's mask is the same in all lanes that read it.
                    Operand::Reg(r) if inst.mnemonic == "BMOV" && index == 0 => {
                        self.register(r.file, r.index, 1, Access::Write, out)
                    }
                    Operand::Reg(r) => self.register(r.file, r.index, 2, Access::Read, out),
                    _ => {}
                }
            }
            return if inst.mnemonic == "BMOV" { Spread::Same } else { Spread::Follows };
        }
        let Ok(op) = lower::operation(&Cx::alone(inst, sm)) else { return self.guess(out) };
        let spread = spread(inst, &op);
        let whole = lanescope_ir::Instruction { pc: inst.pc, guard: PredSrc::TRUE, uniform: false, op };
        whole.for_each_slot(|slot, access| out.add(slot.0, access));
        whole.for_each_pred(|p, access| out.add(PREDS + p.0, access));
        spread
    }

    fn register(&self, file: File, index: u8, words: u8, access: Access, out: &mut Values) {
        for word in 0..words {
            if let Some(slot) = slot_at(file, index, word) {
                out.add(slot.0, access);
            }
        }
    }

    /// An instruction whose operation is not known: the first register, and predicates before it, are results of
    /// any width up to four words; the rest is read.
    fn guess(&self, out: &mut Values) -> Spread {
        let inst = self.inst;
        let stores =
            inst.mnemonic.starts_with("ST") || matches!(inst.mnemonic, "SUST" | "SURED" | "RED" | "REDG" | "REDAS");
        let mut results = !stores;
        for operand in &inst.operands {
            match operand {
                Operand::Pred(p) => out.pred(*p, if results { Access::Write } else { Access::Read }),
                Operand::Reg(r) if results => {
                    results = false;
                    self.register(r.file, r.index, UNKNOWN_WORDS, Access::Write, out);
                }
                Operand::Reg(r) => self.register(r.file, r.index, 2, Access::Read, out),
                Operand::Mem(m) => {
                    results = false;
                    if let Some((index, _)) = m.reg {
                        self.register(File::Vector, index, 2, Access::Read, out);
                    }
                }
                Operand::Const(c) => {
                    if let Some((index, _)) = c.reg {
                        out.reads.extend(slot(File::Vector, index).map(|s| s.0));
                    }
                }
                _ => {}
            }
        }
        if is_uniform(inst) {
            Spread::Same
        } else if inst.mnemonic.contains("ATOM") {
            Spread::Varies
        } else {
            Spread::Follows
        }
    }
}

/// Whether results belong to the uniform datapath.
fn is_uniform(inst: &Instruction) -> bool {
    inst.mnemonic.starts_with('U')
        || inst.mnemonic == "R2UR"
        || matches!(inst.operands.first(), Some(Operand::Reg(r)) if r.file == File::Uniform)
        || matches!(inst.operands.first(), Some(Operand::Pred(p)) if p.file == File::Uniform)
}

fn spread(inst: &Instruction, op: &Op) -> Spread {
    match op {
        _ if is_uniform(inst) => Spread::Same,
        Op::Warp(WarpOp::Special { reg, .. }) if reg.iter().any(differs) => Spread::Varies,
        Op::Warp(WarpOp::Special { .. }) => Spread::Same,
        Op::Warp(
            WarpOp::Vote { .. } | WarpOp::Reduce { .. } | WarpOp::Broadcast { .. } | WarpOp::BarrierResult { .. },
        ) => Spread::Same,
        Op::Warp(WarpOp::Match { .. } | WarpOp::Elect { .. }) => Spread::Varies,
        Op::Memory(MemoryOp::Atomic { .. }) => Spread::Varies,
        Op::Memory(MemoryOp::Load { space: Space::Local, .. }) => Spread::Varies,
        _ => Spread::Follows,
    }
}

/// Whether a special register differs between the lanes of a warp.
fn differs(reg: &SpecialReg) -> bool {
    matches!(
        reg,
        SpecialReg::Tid(_)
            | SpecialReg::TidPacked
            | SpecialReg::LaneId
            | SpecialReg::LaneMaskEq
            | SpecialReg::LaneMaskLt
            | SpecialReg::LaneMaskLe
            | SpecialReg::LaneMaskGt
            | SpecialReg::LaneMaskGe
            | SpecialReg::ClockLo
            | SpecialReg::ClockHi
            | SpecialReg::GlobalTimerLo
            | SpecialReg::GlobalTimerHi
    )
}
