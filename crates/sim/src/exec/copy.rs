//! Copies from global to shared memory, and tiles of 16-bit elements in shared memory.

use lanescope_ir::op::memory::{Space, Width};

use super::banks::{Traffic, Use};
use super::mem::{Access, Addresses, addresses};
use super::program::{Address, CopyInst, Pieces, TilesInst};
use super::tensor;
use crate::error::SimError;
use crate::memory::words::{Pattern, lanes};
use crate::rows::{LANES, Row};

impl Access<'_> {
    /// `cp.async`, LDGSTS.
    pub(super) fn copy(&mut self, c: &CopyInst, from: &Address, exec: u32) -> Result<(), SimError> {
        if exec == 0 {
            return Ok(());
        }
        let constants = self.block.cx.program.layout.constants();
        let warp = self.at.index;
        let size = c.width.bytes();
        let to = addresses(self.file, self.block, &c.to, false, warp);
        let mut from = addresses(self.file, self.block, from, true, warp);
        let mut bytes = [size; LANES];
        match &c.pieces {
            Pieces::Whole => {}
            Pieces::First(n) => {
                let n = self.file.read(constants, n, warp);
                bytes = n.0.map(|n| n.min(size));
            }
            Pieces::Offset => {
                for (from, bytes) in from.iter_mut().zip(&mut bytes) {
                    let past = *from % u64::from(size);
                    *from -= past;
                    *bytes -= past as u32;
                }
            }
        }
        let valid = exec & self.file.pred(&c.valid, warp);
        let those = |f: &dyn Fn(u32) -> bool| lanes(valid).filter(|&l| f(bytes[l])).fold(0, |m, l| m | 1 << l);
        let (whole, part) = (those(&|n| n == size), those(&|n| n > 0 && n < size));
        let mut out = [Row::ZERO; 8];
        if whole != 0 {
            self.load_from(Space::Global, c.width, whole, &from, &mut out)?;
        }
        if part != 0 {
            self.parts(part, size, &from, &bytes, &mut out)?;
        }
        let filled = exec & !(whole | part);
        for row in out.iter_mut().take(c.width.slots()) {
            lanes(filled).for_each(|l| row.0[l] = 0);
        }
        self.store_to(Space::Shared, c.width, exec, &to, &out)
    }

    /// Reads the first bytes of pieces that lie in one sector each.
    fn parts(
        &mut self,
        mask: u32,
        size: u32,
        from: &Addresses,
        bytes: &[u32; LANES],
        out: &mut [Row; 8],
    ) -> Result<(), SimError> {
        let before = *self.traffic;
        let mut touched = 0;
        let mut last = None;
        let mut wanted = 0;
        for l in lanes(mask) {
            wanted += u64::from(bytes[l]);
            touched += u64::from(last != Some(from[l] / 32));
            last = Some(from[l] / 32);
            out.iter_mut().for_each(|row| row.0[l] = 0);
        }
        for i in 0..size {
            let some = lanes(mask).filter(|&l| bytes[l] > i).fold(0, |m, l| m | 1 << l);
            if some == 0 {
                break;
            }
            let at = from.map(|a| a.wrapping_add(i.into()));
            let mut byte = [Row::ZERO; 8];
            self.load_from(Space::Global, Width::U8, some, &at, &mut byte)?;
            let row = &mut out[i as usize / 4];
            lanes(some).for_each(|l| row.0[l] |= byte[0].0[l] << (i % 4 * 8));
        }
        *self.traffic = Traffic {
            sectors: before.sectors + touched,
            sectors_ideal: before.sectors_ideal + wanted.div_ceil(32),
            ..before
        };
        Ok(())
    }

    /// `ldmatrix`, LDSM and `stmatrix`, STSM.
    pub(super) fn tiles(&mut self, t: &TilesInst, space: Space, addr: &Address, exec: u32) -> Result<(), SimError> {
        if exec != u32::MAX {
            return Ok(());
        }
        let constants = self.block.cx.program.layout.constants();
        let warp = self.at.index;
        let at = addresses(self.file, self.block, addr, space == Space::Generic, warp);
        let count = usize::from(t.count.min(4));
        let mask = u32::MAX >> (LANES - 8 * count.max(1));
        let mut rows = [Row::ZERO; 8];
        if let Some(src) = &t.src {
            for (tile, s) in src.iter().enumerate().take(count) {
                let mut tile_words = self.file.read(constants, s, warp);
                if t.transposed {
                    tile_words = tensor::transpose(&tile_words);
                }
                for (l, word) in tile_words.0.iter().enumerate() {
                    rows[l % 4].0[8 * tile + l / 4] = *word;
                }
            }
            return self.store_to(space, Width::B128, mask, &at, &rows);
        }
        let mut loaded = Traffic { ..*self.traffic };
        self.load_from(space, Width::B128, mask, &at, &mut rows)?;
        if self.traffic.sectors == loaded.sectors {
            // By tiles, whatever pairs of rows have the same address.
            loaded.shared(mask, &at, Width::B128.bytes(), Pattern::Any, Use::Matrix);
            *self.traffic = loaded;
        }
        for (tile, &d) in t.dst.iter().enumerate().take(count) {
            let mut words = Row(std::array::from_fn(|l| rows[l % 4].0[8 * tile + l / 4]));
            if t.transposed {
                words = tensor::transpose(&words);
            }
            self.file.write(d, warp, u32::MAX, &words);
        }
        Ok(())
    }
}
