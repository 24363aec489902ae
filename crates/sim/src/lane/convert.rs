//! Functions of the convert family.

use lanescope_ir::op::convert::ConvertFn;

use super::Bind;

pub(super) fn bind<B: Bind>(f: &ConvertFn, _b: B) -> B::Output {
    match *f {}
}
