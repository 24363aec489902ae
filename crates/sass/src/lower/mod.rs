//! Lowering of decoded SASS to lane operations.
//!
//! One file a family. Each family's `lower` looks at the mnemonic and answers `None` if the instruction is not
//! its own, so a new opcode goes in at one place.

mod control;
mod convert;
mod double;
mod float;
mod half;
mod int;
mod memory;
pub mod operands;
mod tensor;
mod warp;

use lanescope_ir::Op;

use operands::{Cx, Lowered};

type Family = fn(&Cx) -> Option<Lowered<Op>>;

/// The families, asked in order.
const FAMILIES: [Family; 9] = [
    int::lower,
    float::lower,
    control::lower,
    memory::lower,
    warp::lower,
    convert::lower,
    half::lower,
    double::lower,
    tensor::lower,
];

/// The operation of one instruction, or why there is none.
pub fn operation(cx: &Cx) -> Lowered<Op> {
    for family in FAMILIES {
        if let Some(result) = family(cx) {
            return result;
        }
    }
    operands::refuse("not implemented")
}
