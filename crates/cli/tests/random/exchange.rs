//! Exchanges between lanes that are together, and between the warps of the block.

use std::fmt::Write as _;

use super::{Program, THREADS, emit};

impl Program<'_> {
    /// Something between the lanes of `mask`, all of which are here.
    pub(super) fn exchange(&mut self, mask: u32) {
        let (d, a, p, q) = (self.int(), self.int(), self.settable(), self.settable());
        let of = self.pred();
        match self.random.below(6) {
            0 => {
                let into = if self.random.below(2) == 0 { d } else { format!("{d}|{p}") };
                if mask != u32::MAX {
                    // From a lane of the mask: what others hold is open.
                    let lanes: Vec<u32> = (0..32).filter(|lane| mask >> lane & 1 == 1).collect();
                    let from = lanes[self.random.below(lanes.len())];
                    emit!(self, "shfl.sync.idx.b32 {into}, {a}, {from}, 31, {mask:#x};");
                    return;
                }
                let (by, lane) = (self.random.below(32), self.source());
                let by = if self.random.below(3) == 0 { lane } else { by.to_string() };
                let (mode, clamp) = [("up", 0), ("down", 31), ("bfly", 31), ("idx", 31)][self.random.below(4)];
                let segment = [0, 0, 0x1000, 0x1800, 0x1e00][self.random.below(5)];
                emit!(self, "shfl.sync.{mode}.b32 {into}, {a}, {by}, {}, 0xffffffff;", clamp | segment);
            }
            1 => emit!(self, "vote.sync.ballot.b32 {d}, {of}, {mask:#x};"),
            2 => {
                let (mode, not) = (self.random.pick(&["all", "any", "uni"]), self.random.pick(&["", "!"]));
                emit!(self, "vote.sync.{mode}.pred {q}, {not}{of}, {mask:#x};");
            }
            3 => {
                let t = self.temporary();
                emit!(self, "and.b32 {t}, {a}, 3;\n\tmatch.any.sync.b32 {d}, {t}, {mask:#x};");
            }
            4 => {
                let op = self.random.pick(&["add.u32", "min.s32", "max.u32", "and.b32", "or.b32", "xor.b32"]);
                emit!(self, "redux.sync.{op} {d}, {a}, {mask:#x};");
            }
            _ => {
                let b = self.int();
                emit!(self, "match.all.sync.b32 {d}|{p}, {b}, {mask:#x};");
            }
        }
    }

    /// Something over the whole block.
    pub(super) fn block_wide(&mut self) {
        let (d, a, t, p) = (self.int(), self.int(), self.temporary(), self.pred());
        let index = self.int();
        match self.random.below(4) {
            0 => emit!(self, "bar.red.popc.u32 {d}, 0, {p};"),
            1 => {
                let (op, q) = (self.random.pick(&["and", "or"]), self.settable());
                emit!(self, "bar.red.{op}.pred {q}, 1, !{p};");
            }
            _ => {
                emit!(self, "and.b32 {t}, {index}, {};\n\tshl.b32 {t}, {t}, 2;\n\tadd.u32 {t}, {t}, %c6;", THREADS - 1);
                emit!(self, "bar.sync 0;\n\tst.shared.b32 [%c7], {a};\n\tbar.sync 0;");
                emit!(self, "ld.shared.b32 {d}, [{t}];\n\tbar.sync 0;");
            }
        }
    }
}
