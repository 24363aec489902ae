//! Branches, loops, tables of branches, calls.

use std::fmt::Write as _;

use super::{Loop, Place, Program, emit};

impl Program<'_> {
    fn here(&mut self, label: &str) {
        writeln!(self.text, "{label}:").unwrap();
    }

    /// A condition in a temporary predicate, of values that differ between lanes.
    fn fresh_condition(&mut self) -> String {
        let (a, b, compare) = (self.int(), self.source(), self.random.pick(&["lt", "le", "gt", "ge", "eq", "ne"]));
        let (t, mask) = (self.temporary(), [1, 3, 7, 31][self.random.below(4)]);
        match self.random.below(5) {
            0 => emit!(self, "setp.{compare}.s32 %tp0, {a}, {b};"),
            1 => emit!(self, "and.b32 {t}, %me, {mask};\n\tsetp.{compare}.u32 %tp0, {t}, {};", mask / 2),
            2 => emit!(self, "and.b32 {t}, {a}, {mask};\n\tsetp.{compare}.u32 %tp0, {t}, {};", mask / 2),
            3 => {
                let (p, x, y) = (self.pred(), self.wide(), self.wide());
                emit!(self, "setp.{compare}.and.u64 %tp0, {x}, {y}, {p};");
            }
            _ => {
                let (f, g) = (self.single(), self.single());
                let compare = self.random.pick(&["lt", "ge", "equ", "ltu", "neu", "num", "nan"]);
                emit!(self, "setp.{compare}.f32 %tp0, {f}, {g};");
            }
        }
        "%tp0".into()
    }

    /// A condition; a predicate of the program counts as tested from here on.
    fn condition(&mut self) -> String {
        if self.random.below(3) > 0 {
            return self.fresh_condition();
        }
        let p = self.random.below(super::PREDS);
        self.tested.push(p);
        format!("%p{p}")
    }

    /// A condition that is the same in all lanes that are at a place.
    fn uniform_condition(&mut self, place: Place) -> Option<String> {
        let (t, p, word) = (self.temporary(), self.pred(), 4 * self.random.below(256));
        match (place, self.random.below(3)) {
            (Place::Block, 0) => emit!(self, "bar.red.popc.u32 {t}, 0, {p};\n\tsetp.gt.u32 %tp0, {t}, 32;"),
            (Place::Block, 1) => emit!(self, "bar.red.or.pred %tp0, 0, {p};"),
            (Place::Block | Place::Lanes(_), 2) => {
                emit!(self, "ld.global.b32 {t}, [%a1+{word}];\n\tsetp.lt.s32 %tp0, {t}, 3;");
            }
            (Place::Lanes(mask), _) => emit!(self, "vote.sync.any.pred %tp0, {p}, {mask:#x};"),
            _ => return None,
        }
        Some("%tp0".into())
    }

    /// `@condition bra other; ... bra end; other: ... end:`, the second part perhaps missing.
    fn two_arms(&mut self, depth: usize, guard: &str, places: [Place; 2]) {
        let (other, end) = (self.label(), self.label());
        emit!(self, "@{guard} bra {other};");
        self.block(depth, places[0]);
        if self.random.below(2) == 0 {
            emit!(self, "bra {end};");
            self.here(&other);
            self.block(depth, places[1]);
            self.here(&end);
        } else {
            self.here(&other);
        }
    }

    pub(super) fn branch(&mut self, depth: usize) {
        let known = self.tested.len();
        let (condition, not) = (self.condition(), self.random.pick(&["", "!"]));
        self.two_arms(depth, &format!("{not}{condition}"), [Place::Apart; 2]);
        self.tested.truncate(known);
    }

    /// A branch after which it is still known which lanes are together: all go one way, or they part by their number.
    pub(super) fn together(&mut self, depth: usize, place: Place) {
        let Some(lanes) = place.mask() else { return self.branch(depth) };
        if self.random.below(2) == 0 {
            // What a vote decides is the same only in one warp.
            let place = if self.random.below(2) == 0 { Place::Lanes(lanes) } else { place };
            if let Some(condition) = self.uniform_condition(place) {
                self.two_arms(depth, &condition, [place; 2]);
            }
            return;
        }
        let (t, bit, first) = (self.temporary(), self.random.below(5), 1 + self.random.below(31));
        let taken: u32 = if self.random.below(2) == 0 {
            emit!(self, "mov.u32 {t}, %laneid;\n\tsetp.lt.u32 %tp0, {t}, {first};");
            (1 << first) - 1
        } else {
            emit!(self, "mov.u32 {t}, %laneid;\n\tand.b32 {t}, {t}, {};\n\tsetp.ne.u32 %tp0, {t}, 0;", 1 << bit);
            (0..32).filter(|lane| lane >> bit & 1 == 1).fold(0, |mask, lane| mask | 1 << lane)
        };
        let place = |mask: u32| if mask == 0 { Place::Apart } else { Place::Lanes(mask) };
        self.two_arms(depth, "%tp0", [place(lanes & !taken), place(lanes & taken)]);
    }

    /// A loop; its counter counts down to zero.
    pub(super) fn repeat(&mut self, depth: usize, place: Place) {
        let counter = format!("%c{}", self.loops.len());
        let fixed = self.random.below(2) == 0;
        let (again, next, end) = (self.label(), self.label(), self.label());
        let place = if fixed { place } else { Place::Apart };
        let open = place == Place::Apart;
        if fixed {
            emit!(self, "mov.b32 {counter}, {};", 1 + self.random.below(4));
        } else {
            let source = self.int();
            emit!(self, "and.b32 {counter}, {source}, 7;\n\tadd.u32 {counter}, {counter}, 1;");
        }
        let (known, frozen) = (self.tested.len(), self.frozen.len());
        self.frozen.extend_from_slice(&self.tested);
        self.here(&again);
        self.loops.push(Loop { next: next.clone(), end: end.clone(), open });
        self.block(depth, place);
        for to in [&end, &next] {
            if self.random.below(3) == 0 {
                let condition = if open { Some(self.condition()) } else { self.uniform_condition(place) };
                if let Some(condition) = condition {
                    emit!(self, "@{condition} bra {to};");
                    self.block(depth, place);
                }
            }
        }
        self.loops.pop();
        self.tested.truncate(known);
        self.frozen.truncate(frozen);
        self.here(&next);
        emit!(self, "sub.u32 {counter}, {counter}, 1;\n\tsetp.ne.u32 %tp1, {counter}, 0;\n\t@%tp1 bra {again};");
        self.here(&end);
    }

    /// Out of any of the loops around, or to its next trip.
    pub(super) fn jump(&mut self) {
        let open: Vec<Loop> = self.loops.iter().filter(|l| l.open).cloned().collect();
        if open.is_empty() {
            return self.straight();
        }
        let (to, condition) = (&open[self.random.below(open.len())], self.fresh_condition());
        let to = if self.random.below(2) == 0 { &to.next } else { &to.end };
        emit!(self, "@{condition} bra {to};");
    }

    /// `brx.idx`; entries of its table may be the same.
    pub(super) fn switch(&mut self, depth: usize, place: Place) {
        let (index, source, word) = (self.temporary(), self.int(), 4 * self.random.below(256));
        let (table, end) = (self.label(), self.label());
        let arms: Vec<String> = (0..2 + self.random.below(4)).map(|_| self.label()).collect();
        let size = [2, 4, 8][self.random.below(3)];
        let entries: Vec<String> = (0..size).map(|_| arms[self.random.below(arms.len())].clone()).collect();
        let place = if self.random.below(3) == 0 { place } else { Place::Apart };
        if place == Place::Apart {
            emit!(self, "and.b32 {index}, {source}, {};", size - 1);
        } else {
            emit!(self, "ld.global.b32 {index}, [%a1+{word}];\n\tand.b32 {index}, {index}, {};", size - 1);
        }
        writeln!(self.text, "{table}: .branchtargets {};", entries.join(", ")).unwrap();
        emit!(self, "brx.idx {index}, {table};");
        for arm in &arms {
            self.here(arm);
            self.statement(depth + 1, place);
            if self.random.below(4) > 0 {
                emit!(self, "bra {end};");
            }
        }
        self.here(&end);
    }

    /// A ladder of comparisons with one value.
    pub(super) fn ladder(&mut self, depth: usize) {
        let (value, source, end) = (self.temporary(), self.int(), self.label());
        let arms: Vec<String> = (0..2 + self.random.below(3)).map(|_| self.label()).collect();
        emit!(self, "and.b32 {value}, {source}, 7;");
        for (i, arm) in arms.iter().enumerate() {
            let compare = self.random.pick(&["eq", "eq", "lt"]);
            emit!(self, "setp.{compare}.u32 %tp0, {value}, {i};\n\t@%tp0 bra {arm};");
        }
        self.statement(depth + 1, Place::Apart);
        emit!(self, "bra {end};");
        for arm in &arms {
            self.here(arm);
            self.statement(depth + 1, Place::Apart);
            if self.random.below(3) > 0 {
                emit!(self, "bra {end};");
            }
        }
        self.here(&end);
    }

    pub(super) fn call(&mut self) {
        let (d, a, b) = (self.int(), self.int(), self.int());
        if self.random.below(2) == 0 {
            emit!(self, "{{\n\t.param .b32 x;\n\t.param .b32 y;\n\t.param .b32 z;");
            emit!(self, "st.param.b32 [x], {a};\n\tst.param.b32 [y], {b};");
            emit!(self, "call.uni (z), collatz, (x, y);\n\tld.param.b32 {d}, [z];\n\t}}");
        } else {
            let (d, a, f) = (self.wide(), self.wide(), self.single());
            emit!(self, "{{\n\t.param .b64 x;\n\t.param .f32 y;\n\t.param .b32 n;\n\t.param .b64 z;");
            emit!(self, "st.param.b64 [x], {a};\n\tst.param.f32 [y], {f};\n\tst.param.b32 [n], {b};");
            emit!(self, "call (z), mix, (x, y, n);\n\tld.param.b64 {d}, [z];\n\t}}");
        }
    }

    /// Some lanes store what they have and exit.
    pub(super) fn leave(&mut self) {
        let (condition, stay) = (self.fresh_condition(), self.label());
        emit!(self, "@{condition} bra {stay};");
        self.stores();
        emit!(self, "{};", ["ret", "exit"][self.random.below(2)]);
        self.here(&stay);
    }
}
