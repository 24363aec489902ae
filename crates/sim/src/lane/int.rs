//! Functions of the int family.

use lanescope_ir::op::int::IntFn;

use super::Bind;

pub(super) fn bind<B: Bind>(f: &IntFn, _b: B) -> B::Output {
    match *f {}
}
