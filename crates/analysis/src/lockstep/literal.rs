//! Predicates in a form in which two of them can be compared: what is compared with what, in which instruction's view of
//! the registers, negated or not.
//!
//! Equality is by form, so it may miss that two predicates are the same. It does not depend on the turn of a loop:
//! `j < n` before and after `j` is counted up are the same question, asked of two turns.

use lanescope_ir::op::float::{Combine, FloatFn};
use lanescope_ir::op::int::{BoolOp, Cmp, IntFn};
use lanescope_ir::op::{LaneFn, LaneOp, SrcKind};
use lanescope_ir::{Kernel, Op, PredSrc, Src, SrcMod};

use crate::loops::Loops;
use crate::regions::Structure;
use crate::slice::defs::{Defs, Reg};

/// Copies and tables of predicates followed at most.
const DEPTH: u32 = 8;

const LESS: u8 = 1;
const EQUAL: u8 = 2;
const GREATER: u8 = 4;
const UNORDERED: u8 = 8;

/// A word that a comparison looks at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Word {
    /// A register, with the instructions in the loop that may have written it (outside it, if none in it does).
    Slot(u16, Vec<u32>, u8),
    /// A word of a constant bank.
    Const(u8, u32, u8),
    /// A number.
    Imm(u32),
}

/// What a comparison compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Int { signed: bool, words: u8 },
    Float { ftz: bool },
}

/// A question that has an answer in each lane.
#[derive(Clone, Debug, PartialEq)]
enum Term {
    Compare {
        ty: Type,
        relation: u8,
        a: Vec<Word>,
        b: Vec<Word>,
    },
    /// A predicate that the instruction writes, as its first or second result.
    Result(u32, u8),
}

/// A question, or its opposite.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Literal {
    term: Term,
    negated: bool,
}

impl Literal {
    pub(super) fn not(mut self) -> Literal {
        self.negated = !self.negated;
        self
    }

    fn not_if(self, yes: bool) -> Literal {
        if yes { self.not() } else { self }
    }

    /// Whether the other asks the same: if so, whether it has the same answer or the opposite one.
    pub(super) fn same(&self, other: &Literal) -> Option<bool> {
        (self.term == other.term).then_some(self.negated == other.negated)
    }
}

/// What values mean in one loop.
pub(super) struct Reader<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) s: &'a Structure,
    pub(super) defs: &'a Defs<'a>,
    /// The loop.
    pub(super) l: u32,
}

impl Reader<'_> {
    pub(super) fn op(&self, at: u32) -> Option<&Op> {
        self.kernel.instructions.get(at as usize).map(|i| &i.op)
    }

    pub(super) fn lane_op(&self, at: u32) -> Option<&LaneOp> {
        match self.op(at) {
            Some(Op::Lane(op)) => Some(op),
            _ => None,
        }
    }

    pub(super) fn inside(&self, at: u32) -> bool {
        let loops: &Loops = &self.s.loops;
        self.s.cfg.block(at).is_some_and(|b| loops.contains(self.l, b))
    }

    /// Writers of a register that instruction `at` may see: those in the loop, if there are any.
    pub(super) fn writers(&self, at: u32, reg: Reg) -> Vec<u32> {
        let from = self.defs.reaching(at, reg).from;
        let inside: Vec<u32> = from.iter().copied().filter(|&d| self.inside(d)).collect();
        if inside.is_empty() { from } else { inside }
    }

    /// What a predicate means where instruction `at` reads it.
    pub(super) fn literal(&self, at: u32, p: PredSrc) -> Option<Literal> {
        self.literal_at(at, p, DEPTH)
    }

    fn literal_at(&self, at: u32, p: PredSrc, depth: u32) -> Option<Literal> {
        let pred = p.pred?;
        let depth = depth.checked_sub(1)?;
        let mut all = self.writers(at, Reg::Pred(pred)).into_iter().map(|d| {
            let which = match self.op(d)? {
                Op::Lane(op) => op.pdst.iter().position(|q| *q == Some(pred))?,
                _ => 0,
            };
            Some(
                self.written(d, which, depth).unwrap_or(Literal { term: Term::Result(d, which as u8), negated: false }),
            )
        });
        let first = all.next()??;
        all.all(|other| other.as_ref() == Some(&first)).then(|| first.not_if(p.negated))
    }

    /// The predicate that instruction `d` writes as its first or second result, if it is more than an opaque one.
    fn written(&self, d: u32, which: usize, depth: u32) -> Option<Literal> {
        let op = self.lane_op(d)?;
        // Joined with a constant that changes nothing.
        let alone = |join: BoolOp, p: PredSrc| match join {
            BoolOp::And => p.is_true(),
            BoolOp::Or | BoolOp::Xor => p == PredSrc::FALSE,
        };
        match op.f {
            LaneFn::Int(IntFn::Set { cmp, signed }) if which == 0 => {
                self.compare(d, Type::Int { signed, words: 1 }, relation(cmp), &op.src[..2])
            }
            LaneFn::Int(IntFn::SetJoin { cmp, signed, op: join, extended: false }) if alone(join, op.psrc[0]) => self
                .compare(d, Type::Int { signed, words: 1 }, relation(cmp), &op.src[..2])
                .map(|l| l.not_if(which == 1)),
            LaneFn::Int(IntFn::SetJoin64 { cmp, signed, op: join }) if alone(join, op.psrc[0]) => self
                .compare(d, Type::Int { signed, words: 2 }, relation(cmp), &op.src[..4])
                .map(|l| l.not_if(which == 1)),
            LaneFn::Float(FloatFn::Compare { compare, ftz }) => {
                let join = match compare.combine {
                    Combine::And => BoolOp::And,
                    Combine::Or => BoolOp::Or,
                    Combine::Xor => BoolOp::Xor,
                };
                let made = self.compare(d, Type::Float { ftz }, compare.relation.0, &op.src[..2])?;
                alone(join, op.psrc[0]).then(|| made.not_if(which == 1))
            }
            LaneFn::Int(IntFn::Plop3 { lut }) => {
                let (p, negated) = copied(&op.psrc, lut[which.min(1)])?;
                Some(self.literal_at(d, p, depth)?.not_if(negated))
            }
            _ => None,
        }
    }

    /// `src`: the words of the first operand, then as many of the second.
    fn compare(&self, at: u32, ty: Type, relation: u8, src: &[Src]) -> Option<Literal> {
        let (a, b) = src.split_at(src.len() / 2);
        let words = |s: &[Src]| s.iter().map(|s| self.word(at, *s)).collect::<Vec<_>>();
        Some(canonical(ty, relation, words(a), words(b)))
    }

    /// The question whether a word differs from zero.
    pub(super) fn nonzero(&self, at: u32, src: Src) -> Literal {
        let ty = Type::Int { signed: true, words: 1 };
        canonical(ty, LESS | GREATER, vec![self.word(at, src)], vec![Word::Imm(0)])
    }

    /// The question `a cmp b`, asked where instruction `at` reads `a` and instruction `there` reads `b`.
    pub(super) fn compared(&self, at: u32, a: Src, cmp: Cmp, signed: bool, there: u32, b: Src) -> Literal {
        let ty = Type::Int { signed, words: 1 };
        canonical(ty, relation(cmp), vec![self.word(at, a)], vec![self.word(there, b)])
    }

    fn word(&self, at: u32, src: Src) -> Word {
        let modifier = src.modifier as u8;
        match src.kind {
            SrcKind::Imm(x) => Word::Imm(src.modifier.apply(x)),
            SrcKind::Const { bank, offset } => Word::Const(bank, offset, modifier),
            SrcKind::Slot(slot) => {
                let writers = self.writers(at, Reg::Slot(slot));
                // A copy in the loop is what was copied.
                if let [only] = writers[..]
                    && self.inside(only)
                    && only != at
                    && src.modifier == SrcMod::None
                    && let Some(op) = self.lane_op(only)
                    && op.f == LaneFn::Int(IntFn::Mov)
                    && let SrcKind::Imm(_) | SrcKind::Const { .. } = op.src[0].kind
                {
                    return self.word(only, op.src[0]);
                }
                Word::Slot(slot.0, writers, modifier)
            }
        }
    }
}

/// The relations for which a comparison holds.
pub(super) fn relation(cmp: Cmp) -> u8 {
    match cmp {
        Cmp::False => 0,
        Cmp::Lt => LESS,
        Cmp::Eq => EQUAL,
        Cmp::Le => LESS | EQUAL,
        Cmp::Gt => GREATER,
        Cmp::Ne => LESS | GREATER,
        Cmp::Ge => GREATER | EQUAL,
        Cmp::True => LESS | EQUAL | GREATER,
    }
}

/// One form for `a < b`, `b > a`, `!(a >= b)` and, of integers, `a <= 3` and `a < 4`.
fn canonical(ty: Type, mut relation: u8, mut a: Vec<Word>, mut b: Vec<Word>) -> Literal {
    if a > b {
        std::mem::swap(&mut a, &mut b);
        let turned = |from: u8, to: u8| if relation & from != 0 { to } else { 0 };
        relation = relation & (EQUAL | UNORDERED) | turned(LESS, GREATER) | turned(GREATER, LESS);
    }
    if let (Type::Int { signed, words: 1 }, [Word::Imm(c)]) = (ty, &mut b[..]) {
        let lowest = if signed { i32::MIN as u32 } else { 0 };
        if *c != lowest && relation == GREATER | EQUAL {
            (*c, relation) = (c.wrapping_sub(1), GREATER);
        } else if *c != lowest && relation == LESS {
            (*c, relation) = (c.wrapping_sub(1), LESS | EQUAL);
        }
    }
    let all = match ty {
        Type::Int { .. } => LESS | EQUAL | GREATER,
        Type::Float { .. } => LESS | EQUAL | GREATER | UNORDERED,
    };
    let negated = relation > all & !relation;
    if negated {
        relation = all & !relation;
    }
    // Signs do not matter for equality.
    let ty = match ty {
        Type::Int { words, .. } if relation == EQUAL => Type::Int { signed: true, words },
        ty => ty,
    };
    Literal { term: Term::Compare { ty, relation, a, b }, negated }
}

/// The one predicate that a table depends on, and whether it comes out inverted.
pub(super) fn copied(psrc: &[PredSrc; 3], lut: u8) -> Option<(PredSrc, bool)> {
    let (at, _) = psrc.iter().enumerate().find(|(_, p)| p.pred.is_some())?;
    let same = |p: &PredSrc| p.pred == psrc[at].pred;
    if !psrc.iter().all(|p| p.pred.is_none() || same(p)) {
        return None;
    }
    let result = |value: bool| {
        let bits = psrc.iter().fold(0u8, |bits, p| {
            let v = if p.pred.is_some() { value ^ p.negated } else { !p.negated };
            bits << 1 | u8::from(v)
        });
        lut >> bits & 1 != 0
    };
    let plain = PredSrc { pred: psrc[at].pred, negated: false };
    match (result(false), result(true)) {
        (false, true) => Some((plain, false)),
        (true, false) => Some((plain, true)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use lanescope_ir::Pred;

    use super::*;

    fn slot(s: u16) -> Vec<Word> {
        vec![Word::Slot(s, vec![], 0)]
    }

    #[test]
    fn forms_of_one_question() {
        let int = |signed| Type::Int { signed, words: 1 };
        let less = canonical(int(true), LESS, slot(1), slot(2));
        assert_eq!(less, canonical(int(true), GREATER, slot(2), slot(1)));
        assert_eq!(less, canonical(int(true), GREATER | EQUAL, slot(1), slot(2)).not());
        assert_eq!(less.same(&canonical(int(true), LESS | EQUAL, slot(2), slot(1))), Some(false));
        assert_eq!(less.same(&canonical(int(false), LESS, slot(1), slot(2))), None);
        let above = |relation, c| canonical(int(true), relation, slot(1), vec![Word::Imm(c)]);
        assert_eq!(above(GREATER | EQUAL, 2), above(GREATER, 1));
        assert_eq!(above(LESS, 2), above(GREATER, 1).not());
        assert_eq!(canonical(int(true), LESS, vec![Word::Imm(1)], slot(1)), above(GREATER, 1));
        assert_ne!(above(GREATER | EQUAL, i32::MIN as u32), above(GREATER, i32::MAX as u32));
        let float = Type::Float { ftz: false };
        let lt = canonical(float, LESS, slot(1), slot(2));
        assert_eq!(lt.clone().not(), canonical(float, GREATER | EQUAL | UNORDERED, slot(1), slot(2)));
        assert_eq!(lt.same(&canonical(float, GREATER | EQUAL, slot(1), slot(2))), None);
    }

    #[test]
    fn tables_that_copy() {
        let (p, t) = (PredSrc::of(Pred(3)), PredSrc::TRUE);
        // As compilers write them: PLOP3.LUT P2, PT, P0, PT, PT, 0x80 and 0x8.
        assert_eq!(copied(&[p, t, t], 0x80), Some((p, false)));
        assert_eq!(copied(&[p, t, t], 0x08), Some((p, true)));
        assert_eq!(copied(&[p.not(), t, t], 0x80), Some((p, true)));
        assert_eq!(copied(&[p, p, t], 0x80), Some((p, false)));
        assert_eq!(copied(&[p, PredSrc::of(Pred(1)), t], 0x80), None);
        assert_eq!(copied(&[p, t, t], 0xff), None);
    }
}
