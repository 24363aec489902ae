//! Pure functions over abstract values.
//!
//! In order: sums, products and shifts keep base and table; a comparison of a rising index with a common bound gives a
//! boundary; what is known exactly is computed for each thread; of operands that are the same in a warp the result is
//! the same; anything else is not known.

use lanescope_ir::op::convert::ConvertFn;
use lanescope_ir::op::int::{Cmp, IntFn};
use lanescope_ir::op::{LaneFn, LaneOp, SrcMod};

use super::scalar;
use super::value::{Domain, Leaf, LeafKey, Tab, Value, members};
use super::{Level, Scope};

/// An operand as read: its value, and how far it is the same for the threads that execute.
#[derive(Clone, Copy, Debug)]
pub(super) struct In {
    pub(super) value: Value,
    pub(super) level: Option<Level>,
    pub(super) fixed: bool,
}

impl In {
    pub(super) const fn number(n: u32) -> In {
        In { value: Value::number(n), level: Some(Level::Grid), fixed: true }
    }
}

/// Where a result comes from.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) inst: u32,
    pub(super) block: u32,
    /// Threads that execute it.
    pub(super) set: &'a [u32],
}

impl Domain {
    /// An operand with this value.
    pub(super) fn input(&self, value: Value, set: &[u32]) -> In {
        In { value, level: self.level(value, set), fixed: self.fixed(value) }
    }

    /// The operand after a change of sign.
    pub(super) fn modified(&mut self, i: In, modifier: SrcMod, set: &[u32]) -> In {
        let value = match (modifier, i.value) {
            (SrcMod::None, v) => Some(v),
            (SrcMod::Neg, v) => self.scale(v, u32::MAX),
            (SrcMod::Not, v) => self.scale(v, u32::MAX).and_then(|v| self.add_scaled(v, Value::number(1), u32::MAX)),
            (m, Value::Words(0, tab)) => Some(self.table(0, |d, t| m.apply(d.at(tab, t)))),
            _ => None,
        };
        match value {
            Some(value) => In { level: i.level.or_else(|| self.level(value, set)), value, fixed: i.fixed },
            None => In { value: Value::Divergent, ..i },
        }
    }

    /// A predicate that is negated.
    pub(super) fn negated(&mut self, v: Value) -> Value {
        match v {
            Value::Words(..) => self.add_scaled(Value::number(1), v, u32::MAX).unwrap_or(Value::Divergent),
            v => v,
        }
    }

    /// Result `out` of an instruction of which no more is known than that it is the same in a warp.
    pub(super) fn result(&mut self, place: &Place, out: u8, level: Level, fixed: bool, max: u32) -> Value {
        let key = LeafKey::Result(place.inst, out);
        self.leaf(Leaf { key, level, fixed, block: place.block, max, align: 0, issue: false })
    }

    /// The result of a function of `inputs` that is not computed.
    pub(super) fn opaque(&mut self, place: &Place, out: u8, inputs: &[In], max: u32) -> Value {
        let level = inputs.iter().try_fold(Level::Grid, |l, i| Some(l.max(i.level?)));
        let fixed = inputs.iter().all(|i| i.fixed);
        match level {
            Some(level) => self.result(place, out, level, fixed, max),
            None => Value::Divergent,
        }
    }

    /// Result words and predicates.
    pub(super) fn lane(
        &mut self,
        op: &LaneOp,
        src: &[In; 6],
        psrc: &[In; 3],
        place: &Place,
    ) -> ([Value; 2], [Value; 2]) {
        let all: Vec<In> = src.iter().chain(psrc).copied().collect();
        if all.iter().all(|i| matches!(i.value, Value::Words(0, _)))
            && let Some(exact) = self.exact(op, src, psrc)
        {
            return exact;
        }
        let mut d = [None; 2];
        let mut q = [None; 2];
        if let LaneFn::Convert(ConvertFn::IntToInt { from, to, saturate: false }) = &op.f
            && from.bits == 32
            && to.bits >= 32
        {
            d[0] = Some(src[0].value).filter(|v| matches!(v, Value::Words(..)));
            let small = self.largest(src[0].value, place.set).is_some_and(|m| m <= u64::from(u32::MAX >> 1));
            d[1] = (!from.signed || small).then_some(Value::number(0));
        }
        if let LaneFn::Int(f) = &op.f {
            let v = |i: usize| src.get(i).map_or(Value::Divergent, |s| s.value);
            d[0] = self.word(f, &v, src, psrc, place);
            if matches!(f, IntFn::Mov64) {
                d[1] = Some(v(1));
            }
            if let IntFn::Sel64 = f {
                d[1] = self.select(psrc[0], src[1], src[3]);
            }
            q = self.predicates(f, &v, src, psrc, place);
        }
        let words = [0, 1].map(|i| match (op.dst[i], d[i]) {
            (None, _) => Value::Undef,
            (_, Some(v)) => v,
            _ => self.opaque(place, i as u8, &all, u32::MAX),
        });
        let preds = [0, 1].map(|i| match (op.pdst[i], q[i]) {
            (None, _) => Value::Undef,
            (_, Some(v)) => v,
            _ => self.opaque(place, 2 + i as u8, &all, 1),
        });
        (words, preds)
    }

    fn exact(&mut self, op: &LaneOp, src: &[In; 6], psrc: &[In; 3]) -> Option<([Value; 2], [Value; 2])> {
        let tab = |i: &In| match i.value {
            Value::Words(_, tab) => tab,
            _ => Tab::Const(0),
        };
        let (s, p): ([Tab; 6], [Tab; 3]) =
            (std::array::from_fn(|i| tab(&src[i])), std::array::from_fn(|i| tab(&psrc[i])));
        let run = |d: &Domain, t: usize| scalar::evaluate(&op.f, s.map(|x| d.at(x, t)), p.map(|x| d.at(x, t) & 1 != 0));
        let first = run(self, 0)?;
        let constant = s.iter().chain(&p).all(|t| matches!(t, Tab::Const(_)));
        if constant {
            let (w, q) = first;
            return Some((w.map(Value::number), q.map(|q| Value::number(q.into()))));
        }
        let rows: Vec<scalar::Results> = (0..self.threads).map(|t| run(self, t).unwrap_or_default()).collect();
        let mut column = |f: &dyn Fn(&scalar::Results) -> u32| self.table(0, |_, t| rows.get(t).map_or(0, f));
        let words = [column(&|r| r.0[0]), column(&|r| r.0[1])];
        let preds = [column(&|r| r.1[0].into()), column(&|r| r.1[1].into())];
        Some((words, preds))
    }

    /// `p ? a : b`.
    pub(super) fn select(&mut self, p: In, a: In, b: In) -> Option<Value> {
        match p.value.constant() {
            Some(1) => return Some(a.value),
            Some(0) => return Some(b.value),
            _ => {}
        }
        if a.value == b.value && a.value != Value::Divergent {
            return Some(a.value);
        }
        if let (Value::Words(0, tp), Value::Words(la, ta), Value::Words(lb, tb)) = (p.value, a.value, b.value)
            && la == lb
        {
            return Some(self.table(la, |d, i| if d.at(tp, i) & 1 != 0 { d.at(ta, i) } else { d.at(tb, i) }));
        }
        None
    }

    /// The first result word, if its structure is known.
    fn word(
        &mut self,
        f: &IntFn,
        v: &dyn Fn(usize) -> Value,
        src: &[In; 6],
        psrc: &[In; 3],
        place: &Place,
    ) -> Option<Value> {
        use IntFn as F;
        let zero = |i: usize| psrc.get(i).is_some_and(|p| p.value.constant() == Some(0));
        match *f {
            F::Mov | F::Mov64 => Some(v(0)),
            F::Sel => self.select(psrc[0], src[0], src[1]),
            F::Sel64 => self.select(psrc[0], src[0], src[2]),
            F::Add => self.add_scaled(v(0), v(1), 1),
            F::Add3 => self.sum3([v(0), v(1), v(2)], [false; 3]),
            F::Add3Carry { neg } => self.sum3([v(0), v(1), v(2)], neg),
            F::Add3X | F::Add3XCarry if zero(0) && zero(1) => self.sum3([v(0), v(1), v(2)], [false; 3]),
            F::Add64 { neg } => {
                let sign = |n: bool| if n { u32::MAX } else { 1 };
                let a = self.scale(v(0), sign(neg[0]))?;
                self.add_scaled(a, v(2), sign(neg[1]))
            }
            F::Mad => self.product(v(0), v(1), v(2)),
            F::MadWide { neg_c, .. } => {
                let p = self.product(v(0), v(1), Value::number(0))?;
                self.add_scaled(p, v(2), if neg_c { u32::MAX } else { 1 })
            }
            F::Mad64 => self.product(v(0), v(2), v(4)),
            F::Lea { shift } => self.add_scaled(v(1), v(0), 1u32.checked_shl(shift.into())?),
            F::LeaCarry(l) if !l.high && !l.carry_in => {
                let k = 1u32.checked_shl(l.shift.into())?;
                let b = if l.minus_b { self.scale(v(1), u32::MAX)? } else { v(1) };
                self.add_scaled(b, v(0), if l.minus_a { k.wrapping_neg() } else { k })
            }
            F::Shl | F::Shl64 => {
                let n = if matches!(f, F::Shl) { v(1) } else { v(2) }.constant()?;
                self.scale(v(0), 1u32.checked_shl(n).unwrap_or(0))
            }
            F::ShrU => self.shift(v(0), v(1).constant()?, false, place),
            F::ShrS => self.shift(v(0), v(1).constant()?, true, place),
            F::Funnel(s) if !s.wide && !s.right && v(0).constant() == Some(0) && s.high => {
                // The high word of (x << 32) << n.
                self.scale(v(2), 1u32.checked_shl(v(1).constant()?).unwrap_or(0))
            }
            F::Funnel(s) if !s.wide && s.right && s.high && !s.wrap => {
                self.shift(v(2), v(1).constant()?, s.signed, place)
            }
            F::Bfe { signed: false } => {
                let x = self.shift(v(0), v(1).constant()? & 0xff, false, place)?;
                let n = v(2).constant()? & 0xff;
                self.mask(x, if n >= 32 { u32::MAX } else { (1 << n) - 1 }, 0, place)
            }
            F::And => {
                if let Some(m) = v(1).constant() {
                    self.mask(v(0), m, 0, place)
                } else {
                    self.mask(v(1), v(0).constant()?, 0, place)
                }
            }
            F::Or if self.disjoint(v(0), v(1), place) => self.add_scaled(v(0), v(1), 1),
            F::Or => match (v(0).constant(), v(1).constant()) {
                (Some(0), _) => Some(v(1)),
                (_, Some(0)) => Some(v(0)),
                _ => None,
            },
            F::Lop3 { lut } | F::Lop3Pred { lut, .. } => self.logic(lut, [v(0), v(1), v(2)], place),
            _ => None,
        }
    }

    fn sum3(&mut self, v: [Value; 3], neg: [bool; 3]) -> Option<Value> {
        let mut sum = Value::number(0);
        for (v, neg) in v.into_iter().zip(neg) {
            sum = self.add_scaled(sum, v, if neg { u32::MAX } else { 1 })?;
        }
        Some(sum)
    }

    /// The low word of `a * b + c`.
    fn product(&mut self, a: Value, b: Value, c: Value) -> Option<Value> {
        if let Some(k) = b.constant() {
            return self.add_scaled(c, a, k);
        }
        if let Some(k) = a.constant() {
            return self.add_scaled(c, b, k);
        }
        let start = self.block_start(a, b).or_else(|| self.block_start(b, a))?;
        self.add_scaled(start, c, 1)
    }

    /// Block index times block size, of one axis.
    fn block_start(&mut self, a: Value, b: Value) -> Option<Value> {
        let one = |d: &Domain, v: Value| match v {
            Value::Words(lin, Tab::Const(0)) => match d.terms(lin) {
                [(leaf, 1)] => d.leaves.get(*leaf as usize).map(|l| l.key),
                _ => None,
            },
            _ => None,
        };
        match (one(self, a)?, one(self, b)?) {
            (LeafKey::CtaId(x), LeafKey::NTid(y)) if x == y => {
                Some(self.launch(LeafKey::BlockStart(x), Level::Block, u32::MAX))
            }
            _ => None,
        }
    }

    /// `v >> n`.
    fn shift(&mut self, v: Value, n: u32, signed: bool, place: &Place) -> Option<Value> {
        let Value::Words(lin, tab) = v else { return None };
        if n == 0 {
            return Some(v);
        }
        if n >= 32 && !signed {
            return Some(Value::number(0));
        }
        let n = n.min(31);
        let (align, _) = self.bounds(lin);
        let largest = self.largest(v, place.set);
        let limit = if signed { u64::from(u32::MAX >> 1) } else { u64::from(u32::MAX) };
        if largest.is_some_and(|m| m <= limit) {
            if largest.is_some_and(|m| m >> n == 0) {
                return Some(Value::number(0));
            }
            let exact = self.terms(lin).iter().all(|t| t.1.trailing_zeros() >= n);
            if exact && align >= n {
                let terms: Vec<(u32, u32)> = self.terms(lin).iter().map(|t| (t.0, t.1 >> n)).collect();
                let lin = self.base_of(terms)?;
                return Some(self.table(lin, |d, i| d.at(tab, i) >> n));
            }
        }
        // The base's low bits are zero: what is shifted out comes from the table alone.
        if align >= n {
            let keep = !((1u32 << n) - 1);
            let high = self.table(lin, |d, i| d.at(tab, i) & keep);
            let level = self.level(high, place.set).filter(|l| *l <= Level::Warp)?;
            return Some(self.result(place, 0, level, self.fixed(v), if signed { u32::MAX } else { u32::MAX >> n }));
        }
        None
    }

    fn base_of(&mut self, terms: Vec<(u32, u32)>) -> Option<u32> {
        let mut v = Value::number(0);
        for (leaf, c) in terms {
            let key = self.leaves.get(leaf as usize).copied()?;
            let one = self.leaf(key);
            v = self.add_scaled(v, one, c)?;
        }
        match v {
            Value::Words(lin, _) => Some(lin),
            _ => None,
        }
    }

    /// `(v & m) ^ x`.
    fn mask(&mut self, v: Value, m: u32, x: u32, place: &Place) -> Option<Value> {
        let Value::Words(lin, tab) = v else { return None };
        let flip = |d: &mut Domain, v: Value| {
            let Value::Words(0, t) = v else { return None };
            Some(d.table(0, |d, i| d.at(t, i) ^ x))
        };
        if lin == 0 || m == 0 {
            return Some(self.table(0, |d, i| d.at(tab, i) & m ^ x));
        }
        let (align, _) = self.bounds(lin);
        let low = if align >= 32 { u32::MAX } else { (1 << align) - 1 };
        // The base does not reach into the mask.
        if m & !low == 0 {
            let v = self.table(0, |d, i| d.at(tab, i) & m);
            return flip(self, v);
        }
        // The mask keeps all that the value can have.
        if x == 0 && self.largest(v, place.set).is_some_and(|most| m & (m.wrapping_add(1)) == 0 && most <= u64::from(m))
        {
            return Some(v);
        }
        // The mask clears low bits only.
        if x == 0 && (!m).wrapping_add(1) & !m == 0 && m | low == u32::MAX {
            return Some(self.table(lin, |d, i| d.at(tab, i) & m));
        }
        // Above `low` a number that the warp shares, below it the table.
        let high = self.table(lin, |d, i| d.at(tab, i) & !low);
        let level = self.level(high, place.set).filter(|l| *l <= Level::Warp)?;
        let fixed = self.fixed(v);
        let above = self.result(place, 0, level, fixed, m | x);
        let below = self.table(0, |d, i| d.at(tab, i) & m & low);
        if x != 0 {
            return (below.constant() == Some(0)).then_some(above);
        }
        self.add_scaled(above, below, 1)
    }

    /// Whether two values have no bit in common: one is a multiple of what the other stays below.
    fn disjoint(&self, a: Value, b: Value, place: &Place) -> bool {
        let apart = |a: Value, b: Value| {
            let (Value::Words(lin, tab), Some(most)) = (a, self.largest(b, place.set)) else { return false };
            let align = members(place.set).map(|i| self.at(tab, i).trailing_zeros()).min().unwrap_or(32);
            let align = align.min(self.bounds(lin).0);
            align >= 32 || most < 1 << align
        };
        apart(a, b) || apart(b, a)
    }

    /// LOP3 whose table depends on one varying operand and constants, or is "or".
    fn logic(&mut self, lut: u8, v: [Value; 3], place: &Place) -> Option<Value> {
        let constant = v.map(Value::constant);
        let open: Vec<usize> = (0..3).filter(|&i| constant[i].is_none()).collect();
        let bits = |a: u32, b: u32, c: u32| scalar::lop3(lut, a, b, c);
        let with = |i: usize, x: u32| {
            let mut k = constant.map(|c| c.unwrap_or(0));
            k[i] = x;
            bits(k[0], k[1], k[2])
        };
        match open[..] {
            [i] => {
                let (zero, one) = (with(i, 0), with(i, u32::MAX));
                // Bits where the operand shows: `(x & m) ^ zero`.
                self.mask(v[i], zero ^ one, zero, place)
            }
            [i, j] => {
                let two = |x: u32, y: u32| {
                    let mut k = constant.map(|c| c.unwrap_or(0));
                    (k[i], k[j]) = (x, y);
                    bits(k[0], k[1], k[2])
                };
                let or = two(0, 0) == 0
                    && two(u32::MAX, 0) == u32::MAX
                    && two(0, u32::MAX) == u32::MAX
                    && two(u32::MAX, u32::MAX) == u32::MAX;
                (or && self.disjoint(v[i], v[j], place)).then(|| self.add_scaled(v[i], v[j], 1)).flatten()
            }
            _ => None,
        }
    }

    /// The result predicates, if their structure is known.
    fn predicates(
        &mut self,
        f: &IntFn,
        v: &dyn Fn(usize) -> Value,
        src: &[In; 6],
        psrc: &[In; 3],
        place: &Place,
    ) -> [Option<Value>; 2] {
        use lanescope_ir::op::int::BoolOp;
        match *f {
            IntFn::Set { cmp, signed } => [self.compare(v(0), v(1), cmp, signed, place), None],
            IntFn::SetJoin { cmp, signed, op, extended } => {
                let c = if extended {
                    self.extended(src, psrc[1], cmp)
                } else {
                    self.compare(v(0), v(1), cmp, signed, place)
                };
                let Some(c) = c else { return [None; 2] };
                let not = self.negated(c);
                let neutral = match (op, psrc[0].value.constant()) {
                    (BoolOp::And, Some(1)) | (BoolOp::Or | BoolOp::Xor, Some(0)) => true,
                    (_, Some(_)) => false,
                    // Whatever the other, both sides of the boundary stay in order.
                    _ => matches!(c, Value::Mono(_)) && psrc[0].level.is_some(),
                };
                if neutral { [Some(c), Some(not)] } else { [None; 2] }
            }
            IntFn::SetJoin64 { cmp, signed: _, op } => {
                // Equal high words leave the comparison to the low ones.
                if v(1) == v(3) && v(1).constant() == Some(0) {
                    let c = self.compare(v(0), v(2), cmp, false, place);
                    let neutral = matches!(
                        (op, psrc[0].value.constant()),
                        (BoolOp::And, Some(1)) | (BoolOp::Or | BoolOp::Xor, Some(0))
                    );
                    if let (Some(c), true) = (c, neutral) {
                        let not = self.negated(c);
                        return [Some(c), Some(not)];
                    }
                }
                [None; 2]
            }
            IntFn::Lop3Pred { lut, and } => {
                let neutral = psrc[0].value.constant() == Some(and.into());
                let word = self.logic(lut, [v(0), v(1), v(2)], place).filter(|_| neutral);
                let Some(word) = word else { return [None; 2] };
                let q = match (word, self.level(word, place.set)) {
                    (Value::Words(0, tab), _) => Some(self.table(0, |d, i| (d.at(tab, i) != 0).into())),
                    (_, Some(level)) => Some(self.result(place, 2, level, self.fixed(word), 1)),
                    _ => None,
                };
                [q, None]
            }
            IntFn::Plop3 { lut } => {
                let open: Vec<usize> = (0..3).filter(|&i| psrc[i].value.constant().is_none()).collect();
                let [i] = open[..] else { return [None; 2] };
                [0, 1]
                    .map(|out: usize| {
                        let with = |x: bool| {
                            let bit = |k: usize| if k == i { x } else { psrc[k].value.constant() == Some(1) };
                            lut[out] >> (u8::from(bit(0)) << 2 | u8::from(bit(1)) << 1 | u8::from(bit(2))) & 1 != 0
                        };
                        match (with(false), with(true)) {
                            (false, true) => Some(psrc[i].value),
                            (true, false) => Some(self.negated(psrc[i].value)),
                            (same, _) => Some(Value::number(same.into())),
                        }
                    })
                    .map(|v| v.filter(|v| *v != Value::Divergent && *v != Value::Undef))
            }
            _ => [None; 2],
        }
    }

    /// A comparison of high words that leaves equality to that of the low words.
    fn extended(&mut self, src: &[In; 6], low: In, _cmp: Cmp) -> Option<Value> {
        if src[0].value == src[1].value && matches!(src[0].value, Value::Words(..)) {
            return Some(low.value).filter(|v| matches!(v, Value::Words(..) | Value::Mono(_)));
        }
        // Both high words are the same in the warp: either they decide for all lanes, or the low words do.
        match low.value {
            Value::Mono(_) if src[0].level.is_some() && src[1].level.is_some() => Some(low.value),
            _ => None,
        }
    }

    fn compare(&mut self, a: Value, b: Value, cmp: Cmp, signed: bool, place: &Place) -> Option<Value> {
        match cmp {
            Cmp::False => return Some(Value::number(0)),
            Cmp::True => return Some(Value::number(1)),
            _ => {}
        }
        let (Value::Words(la, ta), Value::Words(lb, tb)) = (a, b) else { return None };
        if la == lb {
            let limit = if signed { u64::from(u32::MAX >> 1) } else { u64::from(u32::MAX) };
            let whole = |v: Value| self.largest(v, place.set).is_some_and(|m| m <= limit);
            if la == 0 || matches!(cmp, Cmp::Eq | Cmp::Ne) || (whole(a) && whole(b)) {
                return Some(
                    self.table(0, |d, i| scalar::compare(cmp, scalar::order(d.at(ta, i), d.at(tb, i), signed)).into()),
                );
            }
        }
        let (ua, ub) = (self.level(a, place.set), self.level(b, place.set));
        if ua.is_some() && ub.is_some() {
            return None;
        }
        // A value that is bounded against a number beyond.
        if let Some(n) = b.constant()
            && let Some(most) = self.largest(a, place.set)
            && !(signed && (n > u32::MAX >> 1 || most > u64::from(u32::MAX >> 1)))
            && most < u64::from(n)
        {
            return Some(Value::number(matches!(cmp, Cmp::Lt | Cmp::Le | Cmp::Ne).into()));
        }
        let (index, bound) = match (ua, ub) {
            (None, Some(l)) => (a, l),
            (Some(l), None) => (b, l),
            _ => return None,
        };
        if matches!(cmp, Cmp::Eq | Cmp::Ne) {
            return None;
        }
        self.boundary(index, bound, place).map(Value::Mono)
    }

    /// How many warps a bound can split, of an index that rises (or falls) with the lane.
    fn boundary(&self, index: Value, bound: Level, place: &Place) -> Option<Scope> {
        let Value::Words(lin, tab) = index else { return None };
        let at = |i: usize| self.at(tab, i) as i32;
        let mut ranges: Vec<(i32, i32)> = Vec::new();
        let (mut rising, mut falling) = (true, true);
        for (w, &lanes) in place.set.iter().enumerate() {
            let all: Vec<i32> = (0..32).filter(|l| lanes >> l & 1 != 0).map(|l| at(w * 32 + l)).collect();
            rising &= all.is_sorted();
            falling &= all.iter().rev().is_sorted();
            if let (Some(lo), Some(hi)) = (all.iter().min(), all.iter().max()) {
                ranges.push((*lo, *hi));
            }
        }
        if !rising && !falling {
            return None;
        }
        let (lo, hi) = (ranges.iter().map(|r| r.0).min()?, ranges.iter().map(|r| r.1).max()?);
        ranges.sort_unstable();
        let spread = u64::from(hi.abs_diff(lo));
        let whole_block = self.block_known;
        let mut block = whole_block && ranges.windows(2).all(|w| w[0].1 < w[1].0);
        let mut grid = block;
        let mut blocks = false;
        for &(leaf, c) in self.terms(lin) {
            let leaf = &self.leaves[leaf as usize];
            match leaf.key {
                LeafKey::CtaId(0) => {
                    blocks = true;
                    grid &= u64::from(c) > spread && c <= u32::MAX >> 1;
                }
                // A block of one axis: 32 lanes step as the warp's share says.
                LeafKey::Warp if !whole_block && u64::from(c) > spread => block = true,
                LeafKey::BlockStart(0) => {
                    blocks = true;
                    grid = true;
                }
                _ if leaf.level == Level::Grid => {}
                _ if leaf.level == Level::Block => grid = false,
                _ => (block, grid) = (false, false),
            }
        }
        if let Some(start) = self.coefficient(lin, LeafKey::BlockStart(0)) {
            // `blockIdx.x * blockDim.x + threadIdx.x`, times a step.
            let step = self.step(tab, place.set);
            let warp = self.coefficient(lin, LeafKey::Warp);
            grid = grid && block && step == Some(start) && (whole_block || warp == start.checked_mul(32));
        }
        let one_block = self.grid_of_one && !blocks;
        Some(match bound {
            Level::Grid if block && (grid && blocks || one_block) => Scope::Grid,
            Level::Grid | Level::Block if block => Scope::Block,
            _ => Scope::Warp,
        })
    }

    fn coefficient(&self, lin: u32, key: LeafKey) -> Option<u32> {
        self.terms(lin).iter().find(|t| self.leaves[t.0 as usize].key == key).map(|t| t.1)
    }

    /// The difference between neighbours, if it is the same for all.
    fn step(&self, tab: Tab, set: &[u32]) -> Option<u32> {
        let values: Vec<(usize, u32)> = members(set).map(|i| (i, self.at(tab, i))).collect();
        let mut step = None;
        for w in values.windows(2) {
            if w[1].0 == w[0].0 + 1 {
                let s = w[1].1.wrapping_sub(w[0].1);
                if *step.get_or_insert(s) != s {
                    return None;
                }
            }
        }
        step
    }
}
