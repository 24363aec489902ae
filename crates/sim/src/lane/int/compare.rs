//! Comparisons.

use lanescope_ir::op::int::{BoolOp, Cmp};

use super::{lane_function, pair};
use crate::lane::Out;

pub(super) const EQ: u8 = 0;
pub(super) const NE: u8 = 1;
pub(super) const LT: u8 = 2;
pub(super) const LE: u8 = 3;
pub(super) const GT: u8 = 4;
pub(super) const GE: u8 = 5;

#[derive(Clone, Copy)]
pub(super) struct Set<const CMP: u8, const SIGNED: bool>;
lane_function!([const CMP: u8, const SIGNED: bool] Set<CMP, SIGNED>, 2 0 => 0 1, |_, s, _| {
    let [a, b, ..] = s;
    let less = |a: u32, b: u32| if SIGNED { (a as i32) < b as i32 } else { a < b };
    let q = match CMP {
        EQ => a == b,
        NE => a != b,
        LT => less(a, b),
        LE => !less(b, a),
        GT => less(b, a),
        _ => !less(a, b),
    };
    Out::preds(q, false)
});

#[derive(Clone, Copy)]
pub(super) struct Constant {
    pub(super) value: bool,
}
lane_function!([] Constant, 0 0 => 0 1, |f, _, _| Out::preds(f.value, false));

/// A comparison as its answers to less, equal, greater, after a bias that makes signed order unsigned.
#[derive(Clone, Copy)]
pub(super) struct Order {
    less: bool,
    equal: bool,
    greater: bool,
    signed: bool,
}

impl Order {
    pub(super) fn of(cmp: Cmp, signed: bool) -> Order {
        let (less, equal, greater) = match cmp {
            Cmp::False => (false, false, false),
            Cmp::Lt => (true, false, false),
            Cmp::Eq => (false, true, false),
            Cmp::Le => (true, true, false),
            Cmp::Gt => (false, false, true),
            Cmp::Ne => (true, false, true),
            Cmp::Ge => (false, true, true),
            Cmp::True => (true, true, true),
        };
        Order { less, equal, greater, signed }
    }
    #[inline(always)]
    fn differing(self, less: bool) -> bool {
        (less & self.less) | (!less & self.greater)
    }
}

#[inline(always)]
fn join(c: bool, p: bool, op: BoolOp) -> Out {
    match op {
        BoolOp::And => Out::preds(c & p, !c & p),
        BoolOp::Or => Out::preds(c | p, !c | p),
        BoolOp::Xor => Out::preds(c ^ p, !c ^ p),
    }
}

#[derive(Clone, Copy)]
pub(super) struct Join {
    pub(super) order: Order,
    pub(super) op: BoolOp,
    pub(super) extended: bool,
}
lane_function!([] Join, 2 2 => 0 2, |f, s, p| {
    let bias = if f.order.signed { 1 << 31 } else { 0 };
    let (a, b) = (s[0] ^ bias, s[1] ^ bias);
    let equal = if f.extended { p[1] } else { f.order.equal };
    let c = if a == b { equal } else { f.order.differing(a < b) };
    join(c, p[0], f.op)
});

#[derive(Clone, Copy)]
pub(super) struct Join64 {
    pub(super) order: Order,
    pub(super) op: BoolOp,
}
lane_function!([] Join64, 4 1 => 0 2, |f, s, p| {
    let bias = if f.order.signed { 1 << 63 } else { 0 };
    let (a, b) = (pair(s[0], s[1]) ^ bias, pair(s[2], s[3]) ^ bias);
    let c = if a == b { f.order.equal } else { f.order.differing(a < b) };
    join(c, p[0], f.op)
});
