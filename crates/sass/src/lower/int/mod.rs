//! Lowering of the int family.

use lanescope_ir::Op;

use super::operands::{Cx, Lowered};

pub(super) fn lower(_cx: &Cx) -> Option<Lowered<Op>> {
    None
}
