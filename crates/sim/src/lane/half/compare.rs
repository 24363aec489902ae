//! Comparisons.

use lanescope_ir::op::half::{Compare, FloatCmp};
use lanescope_ir::op::int::BoolOp;

use super::format::{flush, widen};
use super::{Halves, join};
use crate::lane::{LaneFunction, Out};

#[derive(Clone, Copy)]
pub(super) struct Relation {
    cmp: FloatCmp,
    op: BoolOp,
    ftz: bool,
    select: [Halves; 2],
}

impl Relation {
    pub(super) fn of(c: Compare) -> Relation {
        Relation { cmp: c.cmp, op: c.op, ftz: c.ftz, select: c.select.map(Halves::of) }
    }
    /// The relation in the low and the high half.
    #[inline(always)]
    fn holds<const BF: bool>(self, s: [u32; 6]) -> [bool; 2] {
        let [a, b] = [0, 1].map(|i| self.select[i].split(s[i]).map(|x| widen::<BF>(flush::<BF>(x, self.ftz))));
        [0, 1].map(|i| {
            let (a, b) = (a[i], b[i]);
            ((a < b) & self.cmp.less)
                | ((a == b) & self.cmp.equal)
                | ((a > b) & self.cmp.greater)
                | ((a.is_nan() | b.is_nan()) & self.cmp.unordered)
        })
    }
    #[inline(always)]
    fn join(self, c: bool, p: bool) -> bool {
        match self.op {
            BoolOp::And => c & p,
            BoolOp::Or => c | p,
            BoolOp::Xor => c ^ p,
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct SetP<const BF: bool>(pub(super) Relation);

impl<const BF: bool> LaneFunction for SetP<BF> {
    const SRC: usize = 2;
    const PSRC: usize = 1;
    const DST: usize = 0;
    const PDST: usize = 2;
    #[inline(always)]
    fn eval(self, s: [u32; 6], p: [bool; 3]) -> Out {
        let [low, high] = self.0.holds::<BF>(s);
        Out::preds(self.0.join(low, p[0]), self.0.join(high, p[0]))
    }
}

#[derive(Clone, Copy)]
pub(super) struct SetPBoth<const BF: bool>(pub(super) Relation);

impl<const BF: bool> LaneFunction for SetPBoth<BF> {
    const SRC: usize = 2;
    const PSRC: usize = 1;
    const DST: usize = 0;
    const PDST: usize = 2;
    #[inline(always)]
    fn eval(self, s: [u32; 6], p: [bool; 3]) -> Out {
        let [low, high] = self.0.holds::<BF>(s);
        let both = low & high;
        Out::preds(self.0.join(both, p[0]), self.0.join(!both, p[0]))
    }
}

#[derive(Clone, Copy)]
pub(super) struct Set<const BF: bool> {
    pub(super) relation: Relation,
    pub(super) yes: u16,
}

impl<const BF: bool> LaneFunction for Set<BF> {
    const SRC: usize = 2;
    const PSRC: usize = 1;
    #[inline(always)]
    fn eval(self, s: [u32; 6], p: [bool; 3]) -> Out {
        let yes = |c| if self.relation.join(c, p[0]) { self.yes } else { 0 };
        Out::word(join(self.relation.holds::<BF>(s).map(yes)))
    }
}
