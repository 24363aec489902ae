//! Loads, stores and atomics. A thread stores only where no other reads before a barrier, except for sums.

use std::fmt::Write as _;

use super::{OWN, Program, SUMS, emit};

impl Program<'_> {
    pub(super) fn memory(&mut self) {
        let guard = self.guard();
        let (d, a, t, index) = (self.int(), self.int(), self.temporary(), self.int());
        match self.random.below(8) {
            0 | 1 => {
                let (ty, mask) =
                    [("b32", 1020), ("u8", 1023), ("s8", 1023), ("u16", 1022), ("s16", 1022)][self.random.below(5)];
                emit!(self, "and.b32 {t}, {index}, {mask};\n\tcvt.u64.u32 %a7, {t};\n\tadd.u64 %a7, %a7, %a1;");
                emit!(self, "{guard}ld.global.{ty} {d}, [%a7];");
            }
            2 => {
                let (e, f) = (self.int(), self.int());
                if d != e {
                    emit!(self, "and.b32 {t}, {f}, 1016;\n\tcvt.u64.u32 %a7, {t};\n\tadd.u64 %a7, %a7, %a1;");
                    emit!(self, "{guard}ld.global.nc.v2.b32 {{{d}, {e}}}, [%a7];");
                }
            }
            3 | 4 => self.local(&guard),
            5 => emit!(self, "cvta.local.u64 %a7, %a6;\n\t{guard}ld.b32 {d}, [%a7+{}];", 4 * self.random.below(8)),
            6 => match self.random.below(3) {
                0 => emit!(self, "{guard}st.global.b32 [%a3+{OWN}], {a};"),
                1 => emit!(self, "{guard}ld.global.b32 {d}, [%a3+{OWN}];"),
                _ => emit!(self, "{guard}st.global.v2.u16 [%a3+{OWN}], {{%h6, %h7}};"),
            },
            _ => match self.random.below(3) {
                0 => emit!(self, "{guard}st.shared.b32 [%c4], {a};"),
                1 => emit!(self, "{guard}ld.shared.s16 {d}, [%c4+2];"),
                _ => emit!(self, "cvt.u64.u32 %a7, %c4;\n\tcvta.shared.u64 %a7, %a7;\n\t{guard}st.u8 [%a7+1], {a};"),
            },
        }
    }

    /// The thread's array, which begins as its eight integers.
    fn local(&mut self, guard: &str) {
        let (d, a, e, q) = (self.int(), self.int(), self.int(), self.wide());
        let (t, index) = (self.temporary(), self.int());
        let (form, mask) = match self.random.below(8) {
            0 | 1 => (format!("st.local.b32 [%a7], {a}"), 28),
            2 => (format!("ld.local.b32 {d}, [%a7]"), 28),
            3 => (format!("st.local.b64 [%a7], {q}"), 24),
            4 => (format!("ld.local.b64 {q}, [%a7]"), 24),
            5 => (format!("ld.local.s8 {d}, [%a7]"), 31),
            6 => (format!("st.local.u16 [%a7], {a}"), 30),
            _ => (format!("st.local.v2.b32 [%a7], {{{a}, {e}}}"), 24),
        };
        emit!(
            self,
            "and.b32 {t}, {index}, {mask};\n\tcvt.u64.u32 %a7, {t};\n\tadd.u64 %a7, %a7, %a6;\n\t{guard}{form};"
        );
    }

    /// Sums, whose order does not show, or an atomic whose result is used, on a word that is the thread's own.
    pub(super) fn atomic(&mut self) {
        let guard = self.guard();
        let (d, a, b, t, index) = (self.int(), self.int(), self.int(), self.temporary(), self.int());
        match self.random.below(6) {
            0 | 1 => {
                let op = self.random.pick(&["red", "atom"]);
                let into = if op == "atom" { format!("{}, ", self.temporary()) } else { String::new() };
                emit!(
                    self,
                    "and.b32 {t}, {index}, 28;\n\tmov.u32 %c5, count{};\n\tadd.u32 %c5, %c5, {t};",
                    self.number
                );
                emit!(self, "{guard}{op}.shared.add.u32 {into}[%c5], {a};");
            }
            2 => emit!(self, "{guard}red.global.add.u32 [%a2+{}], {a};", 4 * self.random.below(SUMS)),
            3 => {
                let (q, x, y) = (self.wide(), self.wide(), self.wide());
                let op = self.random.pick(&["add.u64", "min.s64", "max.u64", "xor.b64", "exch.b64", "cas.b64"]);
                let more = if op.starts_with("cas") { format!(", {y}") } else { String::new() };
                emit!(self, "{guard}atom.global.{op} {q}, [%a3+{}], {x}{more};", OWN + 4);
            }
            _ => {
                let (space, at) =
                    [("shared", "%c4".into()), ("global", format!("%a3+{OWN}"))][self.random.below(2)].clone();
                let op = self.random.pick(&[
                    "add.u32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32", "exch.b32", "cas.b32", "inc.u32",
                    "dec.u32",
                ]);
                let more = if op.starts_with("cas") { format!(", {b}") } else { String::new() };
                emit!(self, "{guard}atom.{space}.{op} {d}, [{at}], {a}{more};");
            }
        }
    }
}
