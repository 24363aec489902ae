//! Functions of the CUDA runtime that the engine plays: `vprintf` and `__assertfail`.
//!
//! A call goes to an address; there stand two instructions in the place of the function, which take its arguments where the
//! calling convention puts them: from R4 on, those of 64 bits in even pairs, the return address in R20 and R21.

use lanescope_ir::op::control::{ControlOp, Indirect};
use lanescope_ir::{Function, InstId, Instruction, Op, PredSrc, Slot, Src};

/// Words of each argument, by name.
fn arguments(name: &str) -> Option<&'static [u16]> {
    match name {
        "vprintf" => Some(&[2, 2]),
        "__assertfail" => Some(&[2, 2, 1, 2, 2]),
        _ => None,
    }
}

/// Functions for those of `externals` that are played, with their instructions; `first` is the index of the first.
pub(super) fn place(
    externals: &[(u64, String)],
    functions: &mut Vec<Function>,
    first: u32,
) -> Vec<(Instruction, String)> {
    let mut code = Vec::new();
    for (address, name) in externals {
        let Some(sizes) = arguments(name) else { continue };
        let (mut args, mut at) = (Vec::new(), 4u16);
        for &words in sizes {
            at = at.next_multiple_of(words);
            let high = if words == 2 { Src::slot(Slot(at + 1)) } else { Src::ZERO };
            args.push([Src::slot(Slot(at)), high]);
            at += words;
        }
        let cond = PredSrc::TRUE;
        let call = ControlOp::CallExternal { name: name.clone(), cond, args, result: Some(Slot(4)) };
        let target = Indirect { reg: [Src::slot(Slot(20)), Src::slot(Slot(21))], base: 0 };
        let at = InstId(first + code.len() as u32);
        functions.push(Function { name: name.clone(), base: *address, first: at, len: 2, local: Vec::new() });
        for (pc, op, text) in [(0, call, "call"), (16, ControlOp::Return { target, cond }, "end")] {
            let instruction = Instruction { pc, guard: PredSrc::TRUE, uniform: false, op: Op::Control(op) };
            code.push((instruction, format!("({text} of {name})")));
        }
    }
    code
}
