//! Which registers an instruction reads and which it writes.

use crate::tree::{Body, Instruction, Module, Operand, OperandKind, RegisterId};

/// What an instruction does with a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Reads it, or writes a part of it or not in every lane, so that its value may live on.
    Reads,
    /// Writes it.
    Replaces,
    /// Nothing.
    None,
}

impl Access {
    pub(super) fn of(module: &Module<'_>, body: &Body<'_>, instruction: &Instruction, register: RegisterId) -> Access {
        let mut access = Access::None;
        visit(module, body, instruction, &mut |r, writes| {
            if r == register {
                access = match access {
                    Access::Reads => Access::Reads,
                    _ if writes && instruction.guard.is_none() => Access::Replaces,
                    _ => Access::Reads,
                };
            }
        });
        access
    }
}

/// Calls `f` with each register of an instruction, its guard apart, and whether it is one of the results.
pub(super) fn visit(
    module: &Module<'_>,
    body: &Body<'_>,
    instruction: &Instruction,
    f: &mut impl FnMut(RegisterId, bool),
) {
    let has_result = has_result(module.opcode(instruction.opcode).name);
    for (at, operand) in body.operands_of(instruction).iter().enumerate() {
        visit_operand(body, operand, at == 0 && has_result, 0, f);
    }
}

fn visit_operand(body: &Body<'_>, operand: &Operand, writes: bool, depth: u32, f: &mut impl FnMut(RegisterId, bool)) {
    match operand.kind {
        OperandKind::Register(register) => f(register, writes),
        OperandKind::Element { register, .. }
        | OperandKind::Not(register)
        | OperandKind::Negated { register, .. }
        | OperandKind::Sum { register, .. } => f(register, false),
        OperandKind::Vector(list) | OperandKind::List(list) | OperandKind::Pair(list) if depth < 4 => {
            for member in body.list(list) {
                visit_operand(body, member, writes, depth + 1, f);
            }
        }
        OperandKind::Address(id) => {
            let address = body.address(id);
            if let OperandKind::Register(register) | OperandKind::Element { register, .. } = address.base {
                f(register, false);
            }
            if let Some(index) = address.index {
                f(index.register, false);
            }
            if depth < 4 {
                for member in body.list(address.rest) {
                    visit_operand(body, member, false, depth + 1, f);
                }
            }
        }
        _ => {}
    }
}

/// Whether the first operand is what the instruction gives.
fn has_result(name: &str) -> bool {
    !matches!(
        name,
        "st" | "red"
            | "call"
            | "bra"
            | "brx"
            | "bar"
            | "barrier"
            | "cp"
            | "stmatrix"
            | "sust"
            | "sured"
            | "multimem"
            | "prefetch"
            | "prefetchu"
            | "discard"
            | "applypriority"
            | "mbarrier"
            | "nanosleep"
            | "stackrestore"
            | "wgmma"
            | "tcgen05"
            | "tensormap"
            | "pmevent"
            | "setmaxnreg"
    )
}
