//! Functions of the double family.

use lanescope_ir::op::double::DoubleFn;

use super::Bind;

pub(super) fn bind<B: Bind>(f: &DoubleFn, _b: B) -> B::Output {
    match *f {}
}
