//! 64-bit instructions, sm_50 to sm_62. What they read and write is not decoded.

use lanescope_ir::flow::{Flow, FlowCode, FlowInst, Token};

use super::{FunctionFlow, entries, inventory};
use crate::container::Function;
use crate::isa::inst::{Instruction, Operand};
use crate::isa64::{BUNDLE, Code, Decoded, WORD, decode};

/// Reads a function whose size has been checked.
pub(super) fn read(function: &Function<'_>) -> FunctionFlow {
    let words: Vec<(u32, u64)> = Code::new(function.text).collect();
    let len = words.len() - padding(&words);
    let mut out = FunctionFlow { instructions: len as u32, ..FunctionFlow::default() };
    let mut code = FlowCode::new(false);
    for &(pc, raw) in &words[..len] {
        let decoded = match decode(pc, raw) {
            Ok(decoded) => decoded,
            Err(error) => {
                let (count, _) = out.undecoded.get_or_insert_with(|| (0, error.to_string()));
                *count += 1;
                code.push(FlowInst::new(pc, Flow::Next), &[], &[]);
                continue;
            }
        };
        let mut flow = FlowInst::new(pc, Flow::Next);
        if let Decoded::Full(inst) = &decoded {
            if let Some(name) = inventory::name(inst.mnemonic, &inst.mods) {
                *out.opcodes.entry(name).or_default() += 1;
            }
            flow.flow = go(inst, function, len as u32, &mut code.targets);
            let never = inst.guard.index == 7 && inst.guard.negated;
            let tests = inst.operands.iter().any(|o| matches!(o, Operand::Literal(t) if t.starts_with("CC.")));
            flow.never = never;
            flow.conditional = !never && (inst.guard.index != 7 || tests);
        }
        code.push(flow, &[], &[]);
    }
    code.entries = entries(function, &code);
    out.code = code;
    out
}

/// NOPs at the end, which only fill the section.
fn padding(words: &[(u32, u64)]) -> usize {
    let nop = |w: &&(u32, u64)| decode(w.0, w.1).is_ok_and(|d| d.mnemonic() == "NOP");
    words.iter().rev().take_while(nop).count().min(words.len().saturating_sub(1))
}

/// The instruction that control reaches at a byte offset: a control word is passed over.
fn index(pc: i64, len: u32) -> Option<u32> {
    let pc = u32::try_from(pc).ok()?;
    let pc = if pc.is_multiple_of(BUNDLE) { pc.checked_add(WORD)? } else { pc };
    let (bundle, word) = (pc / BUNDLE, pc % BUNDLE);
    let index = bundle.checked_mul(3)?.checked_add(word / WORD)?.checked_sub(1)?;
    (word.is_multiple_of(WORD) && index < len).then_some(index)
}

fn target(inst: &Instruction, len: u32) -> Option<u32> {
    inst.operands.iter().rev().find_map(|o| match o {
        Operand::Int(v) => Some(index(*v, len)),
        _ => None,
    })?
}

fn go(inst: &Instruction, function: &Function<'_>, len: u32, targets: &mut Vec<u32>) -> Flow {
    match inst.mnemonic {
        // JMP's target is an address that only a linker knows.
        "BRA" | "JMP" => {
            let to = if inst.mnemonic == "BRA" { target(inst, len) } else { None };
            if inst.has("U") { Flow::GroupBranch(to) } else { Flow::Branch(to) }
        }
        "BRX" | "JMX" => {
            let list = function.indirect_branches.iter().find(|b| b.pc == inst.pc);
            let first = targets.len() as u32;
            targets.extend(list.iter().flat_map(|b| &b.targets).filter_map(|&t| index(t.into(), len)));
            Flow::Indirect(first, targets.len() as u32 - first)
        }
        "EXIT" | "RET" | "KIL" | "LONGJMP" | "RTT" => Flow::Leave,
        "SSY" => Flow::Push(Token::Sync, target(inst, len)),
        "PBK" => Flow::Push(Token::Break, target(inst, len)),
        "PCNT" => Flow::Push(Token::Continue, target(inst, len)),
        "SYNC" => Flow::Pop(Token::Sync),
        "BRK" => Flow::Pop(Token::Break),
        "CONT" => Flow::Pop(Token::Continue),
        _ => Flow::Next,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_indices() {
        assert_eq!([8, 16, 24, 32, 40].map(|pc| index(pc, 9)), [0, 1, 2, 3, 3].map(Some));
        assert_eq!([0, 12, 128, -8].map(|pc| index(pc, 9)), [Some(0), None, None, None]);
    }
}
