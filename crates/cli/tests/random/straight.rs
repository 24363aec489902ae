//! Statements without control flow.

use std::fmt::Write as _;

use super::{Program, emit};

const TWO: [&str; 18] = [
    "add.s32",
    "sub.s32",
    "mul.lo.s32",
    "mul.hi.s32",
    "mul.hi.u32",
    "and.b32",
    "or.b32",
    "xor.b32",
    "min.s32",
    "min.u32",
    "max.s32",
    "max.u32",
    "shl.b32",
    "add.sat.s32",
    "sub.sat.s32",
    "mul24.lo.s32",
    "bmsk.clamp.b32",
    "szext.wrap.s32",
];
const THREE: [&str; 16] = [
    "mad.lo.s32",
    "mad.hi.s32",
    "mad.hi.u32",
    "sad.s32",
    "sad.u32",
    "bfe.u32",
    "bfe.s32",
    "prmt.b32",
    "shf.l.wrap.b32",
    "shf.r.clamp.b32",
    "shf.l.clamp.b32",
    "shf.r.wrap.b32",
    "prmt.b32.f4e",
    "prmt.b32.rc8",
    "slct.b32.s32",
    "dp2a.lo.s32.u32",
];

impl Program<'_> {
    pub(super) fn straight(&mut self) {
        let guard = self.guard();
        match self.random.below(18) {
            0..=4 => self.integer(&guard),
            5..=7 => self.float(&guard),
            8..=10 => self.compare(&guard),
            11 | 12 => self.wide_integer(&guard),
            13 => self.convert(&guard),
            14 | 15 => self.half(&guard),
            16 => self.double(&guard),
            _ => self.chain(),
        }
    }

    fn integer(&mut self, guard: &str) {
        let (d, a, b, c) = (self.int(), self.int(), self.source(), self.source());
        match self.random.below(10) {
            0..=3 => {
                let op = self.random.pick(&TWO);
                // ptxas 12.9 subtracts the smallest integer as if it had a negative.
                let b = if op == "sub.sat.s32" { self.int() } else { b };
                emit!(self, "{guard}{op} {d}, {a}, {b};");
            }
            4 | 5 => {
                let op = self.random.pick(&THREE);
                // Positions and lengths that are constants have a range.
                let (b, c) = if op.starts_with("bfe") { (self.int(), self.int()) } else { (b, c) };
                let c = if op.starts_with("mad.hi") && c == d { "-5".into() } else { c };
                emit!(self, "{guard}{op} {d}, {a}, {b}, {c};");
            }
            6 => {
                let op = self.random.pick(&[
                    "popc.b32",
                    "clz.b32",
                    "brev.b32",
                    "not.b32",
                    "neg.s32",
                    "abs.s32",
                    "bfind.u32",
                ]);
                emit!(self, "{guard}{op} {d}, {a};");
            }
            7 => {
                let (table, e) = (self.random.below(256), self.int());
                emit!(self, "{guard}lop3.b32 {d}, {a}, {e}, {c}, {table};");
            }
            8 => {
                let (t, e, op) =
                    (self.temporary(), self.int(), self.random.pick(&["div.u32", "rem.u32", "div.s32", "rem.s32"]));
                // Neither zero nor -1.
                emit!(self, "or.b32 {t}, {e}, 1;\n\tand.b32 {t}, {t}, 0x7fffffff;\n\t{guard}{op} {d}, {a}, {t};");
            }
            _ => {
                let (op, e) = (self.random.pick(&["shr.s32", "shr.u32", "selp", "dp4a", "bfi"]), self.int());
                match op {
                    "selp" => {
                        let p = self.pred();
                        emit!(self, "{guard}selp.b32 {d}, {a}, {b}, {p};");
                    }
                    "dp4a" => emit!(self, "{guard}dp4a.s32.u32 {d}, {a}, {e}, {c};"),
                    "bfi" => {
                        // ptxas 12.9 takes a constant length of 32 for 0.
                        let (at, len) = (self.random.below(32), self.random.below(32));
                        emit!(self, "{guard}bfi.b32 {d}, {a}, {e}, {at}, {len};");
                    }
                    _ => emit!(self, "{guard}{op} {d}, {a}, {b};"),
                }
            }
        }
    }

    fn float(&mut self, guard: &str) {
        let (d, a, b, c) = (self.single(), self.single(), self.single(), self.single());
        let ftz = self.random.pick(&["", "", ".ftz"]);
        match self.random.below(9) {
            0..=2 => {
                let (op, mode) =
                    (self.random.pick(&["add", "sub", "mul"]), self.random.pick(&["rn", "rn", "rz", "rm", "rp"]));
                emit!(self, "{guard}{op}.{mode}{ftz}.f32 {d}, {a}, {b};");
            }
            3 => {
                let mode = self.random.pick(&["rn", "rz", "rm", "rp"]);
                emit!(self, "{guard}fma.{mode}{ftz}.f32 {d}, {a}, {b}, {c};");
            }
            4 => {
                let (op, mode) = [("min", ""), ("max", ""), ("min", ".NaN"), ("add.rn", ".sat")][self.random.below(4)];
                emit!(self, "{guard}{op}{ftz}{mode}.f32 {d}, {a}, {b};");
            }
            5 => {
                let op = self.random.pick(&["neg", "abs"]);
                emit!(self, "{guard}{op}.f32 {d}, {a};");
            }
            6 => emit!(self, "{guard}div.rn.f32 {d}, {a}, {b};"),
            7 => {
                let op = self.random.pick(&["sqrt.rn", "rcp.rn"]);
                emit!(self, "{guard}{op}.f32 {d}, {a};");
            }
            _ => {
                let p = self.pred();
                emit!(self, "{guard}selp.f32 {d}, {a}, {b}, {p};");
            }
        }
    }

    fn compare(&mut self, guard: &str) {
        let (p, q, c, e) = (self.settable(), self.settable(), self.pred(), self.pred());
        let (a, b, d) = (self.int(), self.source(), self.int());
        let order = self.random.pick(&["lt", "le", "gt", "ge", "eq", "ne"]);
        let (join, ty) = (self.random.pick(&["and", "or", "xor"]), self.random.pick(&["s32", "u32"]));
        match self.random.below(7) {
            6 => {
                let (f, class) = (self.single(), self.random.pick(&["finite", "infinite", "notanumber", "subnormal"]));
                // ptxas 12.9 forgets the guard of a testp.
                emit!(self, "testp.{class}.f32 {p}, {f};");
            }
            0 => emit!(self, "{guard}setp.{order}.{ty} {p}, {a}, {b};"),
            1 if p != q => emit!(self, "{guard}setp.{order}.{join}.{ty} {p}|{q}, {a}, {b}, !{c};"),
            2 => emit!(self, "{guard}{join}.pred {p}, {e}, {c};"),
            3 => emit!(self, "{guard}set.{order}.u32.{ty} {d}, {a}, {b};"),
            4 => {
                let (f, g) = (self.single(), self.single());
                let order = self.random.pick(&["lt", "le", "gtu", "geu", "equ", "ne"]);
                emit!(self, "{guard}setp.{order}.{join}.f32 {p}, {f}, {g}, {c};");
            }
            _ => {
                let (x, y) = (self.wide(), self.wide());
                emit!(self, "{guard}setp.{order}.s64 {p}, {x}, {y};");
            }
        }
    }

    fn wide_integer(&mut self, guard: &str) {
        let (d, a, b) = (self.wide(), self.wide(), self.wide());
        let (r, s) = (self.int(), self.int());
        match self.random.below(7) {
            0 | 1 => {
                let op = self.random.pick(&[
                    "add.s64",
                    "sub.s64",
                    "mul.lo.s64",
                    "and.b64",
                    "xor.b64",
                    "min.s64",
                    "max.u64",
                    "mul.hi.u64",
                ]);
                emit!(self, "{guard}{op} {d}, {a}, {b};");
            }
            2 => {
                let op = self.random.pick(&["shl.b64", "shr.s64", "shr.u64"]);
                emit!(self, "{guard}{op} {d}, {a}, {r};");
            }
            3 => {
                let ty = self.random.pick(&["s32", "u32"]);
                emit!(self, "{guard}mad.wide.{ty} {d}, {r}, {s}, {b};");
            }
            4 => {
                let op = self.random.pick(&["cvt.u32.u64", "popc.b64", "clz.b64"]);
                emit!(self, "{guard}{op} {r}, {a};");
            }
            5 => emit!(self, "{guard}mov.b64 {d}, {{{r}, {s}}};"),
            _ => {
                let ty = self.random.pick(&["s64.s32", "u64.u32"]);
                emit!(self, "{guard}cvt.{ty} {d}, {r};");
            }
        }
    }

    fn convert(&mut self, guard: &str) {
        let (d, a, f) = (self.int(), self.int(), self.single());
        match self.random.below(5) {
            0 => {
                let mode = self.random.pick(&["rn.f32.s32", "rz.f32.u32", "rp.f32.s32"]);
                emit!(self, "{guard}cvt.{mode} {f}, {a};");
            }
            1 => {
                let mode = self.random.pick(&["rzi.s32", "rni.s32", "rmi.u32", "rpi.s32"]);
                emit!(self, "{guard}cvt.{mode}.f32 {d}, {f};");
            }
            2 => {
                let ty = self.random.pick(&["s32.s8", "u32.u8", "s32.s16", "u32.u16"]);
                emit!(self, "{guard}cvt.{ty} {d}, {a};");
            }
            3 => emit!(self, "cvt.u16.u32 %h0, {a};\n\tadd.s16 %h1, %h0, 77;\n\t{guard}cvt.s32.s16 {d}, %h1;"),
            _ => {
                let ty = self.random.pick(&["sat.s8.s32", "sat.u8.s32", "sat.u16.s32", "sat.s16.s32"]);
                let wide = if ty.contains(".s8") || ty.contains(".s16") { "s32.s16" } else { "u32.u16" };
                emit!(self, "cvt.{ty} %h2, {a};\n\t{guard}cvt.{wide} {d}, %h2;");
            }
        }
    }

    /// Halves, in pairs; what becomes a NaN is the one that all of them are.
    fn half(&mut self, guard: &str) {
        let (d, a, b, c) = (self.int(), self.int(), self.int(), self.int());
        let (f, g) = (self.single(), self.single());
        match self.random.below(7) {
            0 | 1 => {
                let op = self.random.pick(&["add.rn", "sub.rn", "mul.rn", "add.rn.ftz", "mul.rn.sat"]);
                emit!(self, "{guard}{op}.f16x2 {d}, {a}, {b};");
            }
            2 => {
                let op = self.random.pick(&["fma.rn.f16x2", "fma.rn.relu.f16x2", "fma.rn.bf16x2"]);
                emit!(self, "{guard}{op} {d}, {a}, {b}, {c};");
            }
            3 => {
                let op = self.random.pick(&["min", "max", "min.NaN"]);
                emit!(self, "{guard}{op}.f16x2 {d}, {a}, {b};");
            }
            4 => {
                let (p, q) = (self.settable(), self.settable());
                if p != q {
                    emit!(self, "{guard}setp.lt.f16x2 {p}|{q}, {a}, {b};");
                }
            }
            5 => emit!(self, "{guard}cvt.rn.f16x2.f32 {d}, {f}, {g};"),
            _ => emit!(
                self,
                "mov.b32 {{%h4, %h5}}, {a};
	{guard}cvt.f32.f16 {f}, %h5;"
            ),
        }
    }

    fn double(&mut self, guard: &str) {
        let (f, g, a, q) = (self.single(), self.single(), self.int(), self.wide());
        match self.random.below(2) {
            0 => emit!(
                self,
                "cvt.f64.f32 %e0, {f};
	cvt.rn.f64.s64 %e1, {q};"
            ),
            _ => emit!(
                self,
                "cvt.f64.f32 %e0, {f};
	cvt.rn.f64.s32 %e1, {a};"
            ),
        }
        match self.random.below(5) {
            0 => emit!(self, "fma.rn.f64 %e2, %e0, %e1, %e1;"),
            1 => emit!(self, "div.rn.f64 %e2, %e1, %e0;"),
            _ => {
                let op = self.random.pick(&["add.rn", "sub.rz", "mul.rn", "mul.rp", "min", "max"]);
                emit!(self, "{op}.f64 %e2, %e0, %e1;");
            }
        }
        match self.random.below(3) {
            0 => {
                let p = self.settable();
                emit!(self, "{guard}setp.lt.f64 {p}, %e2, %e1;");
            }
            1 => emit!(self, "{guard}cvt.rzi.s32.f64 {a}, %e2;"),
            _ => emit!(self, "{guard}cvt.rn.f32.f64 {g}, %e2;"),
        }
    }

    fn chain(&mut self) {
        let (d, e, a, b) = (self.int(), self.int(), self.int(), self.int());
        let (x, y) = (self.int(), self.int());
        if d == a || d == b || d == x || d == y || d == e {
            return;
        }
        match self.random.below(2) {
            0 => emit!(self, "add.cc.u32 {d}, {a}, {b};\n\taddc.u32 {e}, {x}, {y};"),
            _ => emit!(self, "sub.cc.u32 {d}, {a}, {b};\n\tsubc.u32 {e}, {x}, {y};"),
        }
    }
}
