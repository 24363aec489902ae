//! Loads, stores and atomics of one row of lanes: of one warp, or of half a warp of 64 lanes.
// Lanes index several rows at once.
#![allow(clippy::needless_range_loop)]

use std::cell::Cell;

use lanescope_ir::op::memory::{AtomOp, AtomType, Space, Width};

use super::atomic::{self, Value};
use super::banks::{Traffic, Use};
use super::program::{Address, MemInst, MemKind};
use super::{BlockCx, Where};
use crate::error::{AccessKind, BadAccess, SimError};
use crate::launch::{LOCAL_WINDOW_HI, SHARED_WINDOW_HI};
use crate::memory::bank;
use crate::memory::l1::L1;
use crate::memory::local::Local;
use crate::memory::shadow::Owner;
use crate::memory::words::{self, Offsets, Pattern, Words, is_run, lanes};
use crate::rows::{LANES, Operand, Row, RowFile, is_progression};

/// What a memory instruction of one warp works on.
pub(crate) struct Access<'a> {
    pub(crate) block: &'a BlockCx<'a>,
    pub(crate) file: &'a mut RowFile,
    pub(crate) local: &'a mut Local,
    pub(crate) shared: &'a [Cell<u32>],
    pub(crate) at: Where,
    pub(crate) traffic: &'a mut Traffic,
    /// The block's first-level cache, if it is modelled, as small and as large as it may be.
    pub(crate) l1: Option<&'a mut [L1; 2]>,
    /// The buffer of the last access.
    pub(crate) hint: &'a mut usize,
}

pub(crate) type Addresses = [u64; LANES];

/// The lowest lane of each address. One issue of a spinning compare-and-swap lets at most one lane of each address succeed, even
/// if another would find the value it expects (measured: `validation/atomics/shared_all`).
fn first_of_address(mask: u32, at: &Addresses) -> u32 {
    let mut first = 0;
    for l in lanes(mask) {
        if !lanes(first).any(|k| at[k] == at[l]) {
            first |= 1 << l;
        }
    }
    first
}

/// The lowest lane of a mask that is not empty.
fn lowest(mask: u32) -> usize {
    (mask.trailing_zeros() as usize).min(LANES - 1)
}

pub(super) fn pattern(at: &Addresses, mask: u32, bytes: u32) -> Pattern {
    let first = lowest(mask);
    let base = at[first].wrapping_sub(first as u64 * u64::from(bytes));
    let (mut step, mut same) = (0, 0);
    for l in 0..LANES {
        let m = if mask >> l & 1 != 0 { u64::MAX } else { 0 };
        step |= (at[l] ^ base.wrapping_add(l as u64 * u64::from(bytes))) & m;
        same |= (at[l] ^ at[first]) & m;
    }
    if step == 0 && is_run(mask) {
        Pattern::Consecutive
    } else if same == 0 {
        Pattern::Same
    } else {
        Pattern::Any
    }
}

/// Bits of a sector's bytes.
fn byte_bits(offset: u64, bytes: u32) -> u32 {
    let all = if bytes >= 32 { u32::MAX } else { (1 << bytes) - 1 };
    all << (offset % 32)
}

/// The addresses of a warp, 64-bit or 32-bit.
pub(crate) fn addresses(file: &RowFile, block: &BlockCx<'_>, a: &Address, wide: bool, warp: u32) -> Addresses {
    let constants = block.cx.program.layout.constants();
    let lo = file.read(constants, &a.base, warp);
    let mut out = [0u64; LANES];
    if !wide {
        let add = a.uniform.as_ref().map_or(Row::ZERO, |(u, _)| file.read(constants, u, warp));
        let offset = a.offset as u32;
        for l in 0..LANES {
            let x = lo.0[l].checked_shl(a.scale).unwrap_or(0);
            out[l] = u64::from(x.wrapping_add(add.0[l]).wrapping_add(offset));
        }
        return out;
    }
    match &a.base_hi {
        Some(hi) => {
            let hi = file.read(constants, hi, warp);
            for l in 0..LANES {
                out[l] = u64::from(lo.0[l]) | u64::from(hi.0[l]) << 32;
            }
        }
        None if a.signed => {
            for l in 0..LANES {
                out[l] = i64::from(lo.0[l] as i32) as u64;
            }
        }
        None => {
            for l in 0..LANES {
                out[l] = u64::from(lo.0[l]);
            }
        }
    }
    for x in &mut out {
        *x = (*x << a.scale).wrapping_add(a.offset as u64);
    }
    if let Some((ulo, uhi)) = &a.uniform {
        let (ulo, uhi) = (file.read(constants, ulo, warp), file.read(constants, uhi, warp));
        for l in 0..LANES {
            out[l] = out[l].wrapping_add(u64::from(ulo.0[l]) | u64::from(uhi.0[l]) << 32);
        }
    }
    out
}

impl Access<'_> {
    #[cold]
    fn bad(&self, kind: AccessKind, space: Space, bytes: u32, failed: u32, at: &Addresses) -> Box<BadAccess> {
        let first = lowest(failed);
        let lane = self.at.base + first as u32;
        Box::new(BadAccess {
            site: self.block.site(self.at),
            kind,
            space,
            bytes,
            lanes: self.at.lanes(failed),
            lane,
            thread: self.block.thread(self.at.warp, lane),
            address: at[first],
        })
    }

    fn aligned(&self, kind: AccessKind, space: Space, bytes: u32, mask: u32, at: &Addresses) -> Result<(), SimError> {
        let low = u64::from(bytes) - 1;
        let mut off = 0;
        for l in 0..LANES {
            off |= if mask >> l & 1 != 0 { at[l] & low } else { 0 };
        }
        if off == 0 {
            return Ok(());
        }
        let failed = lanes(mask).filter(|&l| at[l] & low != 0).fold(0, |m, l| m | 1 << l);
        Err(SimError::Misaligned { access: self.bad(kind, space, bytes, failed, at) })
    }

    /// Checks shared or local addresses, which are offsets already.
    fn bounds(&self, kind: AccessKind, space: Space, bytes: u32, mask: u32, at: &Addresses) -> Result<(), SimError> {
        self.aligned(kind, space, bytes, mask, at)?;
        let size = match space {
            Space::Shared => self.block.cx.shared_size,
            _ => self.block.cx.kernel.local_size,
        };
        let mut max = 0;
        for l in 0..LANES {
            max = max.max(if mask >> l & 1 != 0 { at[l] } else { 0 });
        }
        if max + u64::from(bytes) <= u64::from(size) {
            return Ok(());
        }
        let failed = lanes(mask).filter(|&l| at[l] + u64::from(bytes) > u64::from(size)).fold(0, |m, l| m | 1 << l);
        let access = self.bad(kind, space, bytes, failed, at);
        let below = (1u64 << 32) - access.address;
        // The stack grows down to 0; below that the 32-bit address wraps.
        if space == Space::Local && below <= 1 << 31 {
            return Err(SimError::StackOverflow { access, below, size });
        }
        let name = if space == Space::Shared { "the block's shared memory" } else { "the thread's local memory" };
        let distance = i128::from(access.address) - i128::from(size);
        let nearest = Some(crate::error::Nearest { name: name.to_owned(), address: 0, size: size.into(), distance });
        Err(SimError::OutOfBounds { access, nearest })
    }

    /// Refuses to write constant memory.
    fn writable(&self, kind: AccessKind, region: usize, bytes: u32, mask: u32, at: &Addresses) -> Result<(), SimError> {
        let r = &self.block.cx.memory.regions[region];
        if kind == AccessKind::Load || !r.read_only {
            return Ok(());
        }
        let access = self.bad(kind, Space::Global, bytes, mask, at);
        Err(SimError::ReadOnly { access, name: r.name.clone(), start: r.base, size: r.size })
    }

    /// Splits global addresses by buffer; calls `each` with the buffer's index, and offsets and lanes in it.
    fn global(
        &mut self,
        kind: AccessKind,
        bytes: u32,
        mask: u32,
        at: &Addresses,
        mut each: impl FnMut(&mut Self, usize, Offsets<'_>) -> Result<(), SimError>,
    ) -> Result<(), SimError> {
        self.aligned(kind, Space::Global, bytes, mask, at)?;
        let memory = self.block.cx.memory;
        let pattern = pattern(at, mask, bytes);
        let first = lowest(mask);
        let whole = match pattern {
            Pattern::Consecutive => u64::from(mask.count_ones() * bytes),
            Pattern::Same => u64::from(bytes),
            Pattern::Any => 0,
        };
        if whole != 0
            && let Some(region) = memory.find(at[first], whole, *self.hint)
        {
            *self.hint = region;
            self.writable(kind, region, bytes, mask, at)?;
            let start = memory.regions[region].start;
            let offsets = at.map(|a| a.wrapping_sub(start));
            let (from, to) = (offsets[first], offsets[first] + whole - 1);
            self.count_sectors(to / 32 - from / 32 + 1, mask, bytes);
            self.touch(region, from / 32, to / 32, kind == AccessKind::Load);
            return each(self, region, Offsets { at: &offsets, mask, pattern });
        }
        let mut regions = [0u32; LANES];
        let mut failed = 0;
        for l in lanes(mask) {
            match memory.find(at[l], bytes.into(), *self.hint) {
                Some(r) => {
                    *self.hint = r;
                    regions[l] = r as u32;
                }
                None => failed |= 1 << l,
            }
        }
        if failed != 0 {
            let access = self.bad(kind, Space::Global, bytes, failed, at);
            let nearest = memory.nearest(access.address);
            return Err(SimError::OutOfBounds { access, nearest });
        }
        self.count_sectors(distinct_sectors(at, mask), mask, bytes);
        let mut left = mask;
        while left != 0 {
            let region = regions[lowest(left)];
            let here = lanes(left).filter(|&l| regions[l] == region).fold(0, |m, l| m | 1 << l);
            left &= !here;
            self.writable(kind, region as usize, bytes, here, at)?;
            let start = memory.regions[region as usize].start;
            let offsets = at.map(|a| a.wrapping_sub(start));
            let mut last = None;
            for l in lanes(here) {
                let sector = offsets[l] / 32;
                if last != Some(sector) {
                    self.touch(region as usize, sector, sector, kind == AccessKind::Load);
                }
                last = Some(sector);
            }
            each(self, region as usize, Offsets { at: &offsets, mask: here, pattern: Pattern::Any })?;
        }
        Ok(())
    }

    /// One access that touches so many sectors. The ideal is that of neighbouring addresses, but never more than what is
    /// touched: lanes may share addresses (measured with Nsight: a broadcast has 1 and 1).
    fn count_sectors(&mut self, touched: u64, mask: u32, bytes: u32) {
        self.traffic.sectors += touched;
        self.traffic.sectors_ideal += (u64::from(mask.count_ones()) * u64::from(bytes)).div_ceil(32).min(touched);
    }

    /// Notes the sectors `first..=last` of a buffer.
    fn touch(&mut self, region: usize, first: u64, last: u64, load: bool) {
        let touched = self.block.cx.touched;
        touched.range(region, first, last);
        match &mut self.l1 {
            Some([small, large]) if load => {
                small.load(region, first, last, |_| ());
                large.load(region, first, last, |s| touched.miss(region, s));
            }
            Some(both) => both.iter_mut().for_each(|l1| l1.pass(last - first + 1)),
            None => {}
        }
    }

    /// Tells the shadow, if blocks run in parallel.
    fn mark(&self, region: usize, o: &Offsets<'_>, bytes: u32, write: bool, owner: Owner) {
        let Some(shadow) = self.block.cx.shadow else { return };
        let mark = |sector: usize, bits| {
            if write { shadow.write(region, sector, bits, owner) } else { shadow.read(region, sector, bits, owner) }
        };
        let mut last = None;
        for l in lanes(o.mask) {
            let (sector, bits) = (o.at[l] / 32, byte_bits(o.at[l], bytes));
            last = match last {
                Some((s, b)) if s == sector => Some((s, b | bits)),
                Some((s, b)) => {
                    mark(s as usize, b);
                    Some((sector, bits))
                }
                None => Some((sector, bits)),
            };
        }
        if let Some((s, b)) = last {
            mark(s as usize, b);
        }
    }

    pub(super) fn load_from(
        &mut self,
        space: Space,
        width: Width,
        mask: u32,
        at: &Addresses,
        out: &mut [Row; 8],
    ) -> Result<(), SimError> {
        let bytes = width.bytes();
        match space {
            Space::Global => self.global(AccessKind::Load, bytes, mask, at, |s, region, o| {
                s.mark(region, &o, bytes, false, s.block.owner());
                words::load(s.block.cx.memory.regions[region].words.as_slice(), o, width, out);
                Ok(())
            }),
            Space::Shared => {
                self.bounds(AccessKind::Load, space, bytes, mask, at)?;
                let pattern = pattern(at, mask, bytes);
                self.traffic.shared(mask, at, bytes, pattern, Use::Load);
                words::load(self.shared, Offsets { at, mask, pattern }, width, out);
                Ok(())
            }
            Space::Local => {
                self.bounds(AccessKind::Load, space, bytes, mask, at)?;
                let o = Offsets { at, mask, pattern: Pattern::Any };
                words::load(&self.local.words(0, 0, false), o, width, out);
                Ok(())
            }
            Space::Const(b) => {
                let data = self.block.cx.program.banks.bank(b);
                let same = lanes(mask).all(|l| at[l] == at[lowest(mask)]);
                let some = if same { mask & mask.wrapping_neg() } else { mask };
                for l in lanes(some) {
                    for (i, row) in out.iter_mut().enumerate().take(width.slots()) {
                        let x = bank::word(data, at[l] + 4 * i as u64);
                        row.0[l] = match width {
                            Width::U8 => x & 0xff,
                            Width::S8 => x as u8 as i8 as u32,
                            Width::U16 => x & 0xffff,
                            Width::S16 => x as u16 as i16 as u32,
                            _ => x,
                        };
                        if same {
                            *row = Row::splat(row.0[l]);
                        }
                    }
                }
                Ok(())
            }
            Space::Generic => self.generic(mask, at, |s, space, mask, at| s.load_from(space, width, mask, at, out)),
        }
    }

    /// One byte at a generic address, for one lane.
    pub(crate) fn byte(&mut self, lane: usize, address: u64) -> Result<u8, SimError> {
        Ok(self.of_lane(Width::U8, lane, address)? as u8)
    }

    /// The 4 bytes at a generic address that is a multiple of 4, for one lane.
    pub(crate) fn word(&mut self, lane: usize, address: u64) -> Result<u32, SimError> {
        self.of_lane(Width::B32, lane, address)
    }

    fn of_lane(&mut self, width: Width, lane: usize, address: u64) -> Result<u32, SimError> {
        let mut out = [Row::ZERO; 8];
        self.load_from(Space::Generic, width, 1 << lane, &[address; LANES], &mut out)?;
        Ok(out[0].0[lane])
    }

    /// Splits generic addresses by window.
    fn generic(
        &mut self,
        mask: u32,
        at: &Addresses,
        mut each: impl FnMut(&mut Self, Space, u32, &Addresses) -> Result<(), SimError>,
    ) -> Result<(), SimError> {
        let (shared, local) = windows(at, mask);
        if shared | local == 0 {
            return each(self, Space::Global, mask, at);
        }
        let inside = at.map(|a| a & u64::from(u32::MAX));
        for (space, lanes, at) in [
            (Space::Shared, shared, &inside),
            (Space::Local, local, &inside),
            (Space::Global, mask & !shared & !local, at),
        ] {
            if lanes != 0 {
                each(self, space, lanes, at)?;
            }
        }
        Ok(())
    }

    pub(super) fn store_to(
        &mut self,
        space: Space,
        width: Width,
        mask: u32,
        at: &Addresses,
        values: &[Row; 8],
    ) -> Result<(), SimError> {
        let bytes = width.bytes();
        match space {
            Space::Global => self.global(AccessKind::Store, bytes, mask, at, |s, region, o| {
                s.mark(region, &o, bytes, true, s.block.owner());
                words::store(s.block.cx.memory.regions[region].words.as_slice(), o, width, values);
                Ok(())
            }),
            Space::Shared => {
                self.bounds(AccessKind::Store, space, bytes, mask, at)?;
                let pattern = pattern(at, mask, bytes);
                self.traffic.shared(mask, at, bytes, pattern, Use::Store);
                words::store(self.shared, Offsets { at, mask, pattern }, width, values);
                Ok(())
            }
            Space::Local => {
                self.bounds(AccessKind::Store, space, bytes, mask, at)?;
                let (from, to) = lanes(mask).fold((u64::MAX, 0), |(a, b), l| (a.min(at[l]), b.max(at[l])));
                let memory =
                    self.local.words((from / 4) as usize, ((to + u64::from(bytes)).div_ceil(4)) as usize, true);
                words::store(&memory, Offsets { at, mask, pattern: Pattern::Any }, width, values);
                Ok(())
            }
            Space::Const(_) => Ok(()),
            Space::Generic => self.generic(mask, at, |s, space, mask, at| s.store_to(space, width, mask, at, values)),
        }
    }

    /// Address of the lowest lane of `exec`, if its lanes are neighbours whose accesses follow each other and all are
    /// aligned: the common case, which needs no addresses lane by lane.
    fn run_of_lanes(&self, a: &Address, wide: bool, bytes: u32, exec: u32) -> Option<u64> {
        let constants = self.block.cx.program.layout.constants();
        let warp = self.at.index;
        if !is_run(exec) || bytes < 4 || a.scale != 0 || a.signed {
            return None;
        }
        let first = lowest(exec);
        let lo = self.file.peek(constants, &a.base, warp)?;
        let low = lo.0[first];
        if !is_progression(lo, low.wrapping_sub(first as u32 * bytes), bytes, exec) {
            return None;
        }
        // Neither the low word nor, without a high one, the whole address may wrap within the run.
        low.checked_add(exec.count_ones() * bytes)?;
        let mut address = u64::from(low);
        if let Some(hi) = &a.base_hi {
            let hi = self.file.peek(constants, hi, warp)?;
            let high = hi.0[first];
            if !is_progression(hi, high, 0, exec) {
                return None;
            }
            address |= u64::from(high) << 32;
        }
        if let Some((lo, hi)) = &a.uniform {
            let (lo, hi) = (self.file.peek(constants, lo, warp)?, self.file.peek(constants, hi, warp)?);
            if !is_progression(lo, lo.0[first], 0, exec) || !is_progression(hi, hi.0[first], 0, exec) {
                return None;
            }
            address = address.wrapping_add(u64::from(lo.0[first]) | u64::from(hi.0[first]) << 32);
        }
        address = address.wrapping_add(a.offset as u64);
        if !wide {
            address &= u64::from(u32::MAX);
        }
        (address % u64::from(bytes) == 0).then_some(address)
    }

    /// Counts and marks the sectors of a run of lanes in one buffer.
    fn run_sectors(&mut self, region: usize, from: u64, len: u64, write: bool) {
        let (first, last) = (from / 32, (from + len - 1) / 32);
        // A run of lanes: no two of them share bytes, so the ideal is never above what is touched.
        self.traffic.sectors += last - first + 1;
        self.traffic.sectors_ideal += len.div_ceil(32);
        self.touch(region, first, last, !write);
        let Some(shadow) = self.block.cx.shadow else { return };
        for sector in first..=last {
            let a = from.max(sector * 32) - sector * 32;
            let b = (from + len).min(sector * 32 + 32) - sector * 32;
            let bits = byte_bits(a, (b - a) as u32);
            if write {
                shadow.write(region, sector as usize, bits, self.block.owner());
            } else {
                shadow.read(region, sector as usize, bits, self.block.owner());
            }
        }
    }

    /// The word of local memory that all lanes of `exec` access, if it is the same and in bounds: a spill, say.
    fn same_local(&self, a: &Address, bytes: u32, exec: u32) -> Option<usize> {
        if bytes < 4 || a.scale != 0 || a.uniform.is_some() {
            return None;
        }
        let base = self.file.peek(self.block.cx.program.layout.constants(), &a.base, self.at.index)?;
        let low = base.0[lowest(exec)];
        let at = low.wrapping_add(a.offset as u32);
        let fits = u64::from(at) + u64::from(bytes) <= u64::from(self.block.cx.kernel.local_size);
        (fits && at % bytes == 0 && is_progression(base, low, 0, exec)).then_some(at as usize / 4)
    }

    /// A load of a run of lanes; false if it has to be done lane by lane.
    fn quick_load(&mut self, m: &MemInst, width: Width, dst: &[u32; 8], exec: u32) -> bool {
        let space = m.space;
        if space == Space::Local {
            let Some(word) = self.same_local(&m.addr, width.bytes(), exec) else { return false };
            let memory = self.local.words(0, 0, false);
            for (i, &d) in dst.iter().enumerate().take(width.slots()) {
                let row = Row(std::array::from_fn(|l| memory.get(l, word + i)));
                self.file.write(d, self.at.index, exec, &row);
            }
            return true;
        }
        let wide = matches!(space, Space::Global | Space::Generic);
        let bytes = width.bytes();
        let Some(address) = self.run_of_lanes(&m.addr, wide, bytes, exec) else { return false };
        let len = u64::from(exec.count_ones() * bytes);
        match space {
            Space::Global | Space::Generic => {
                let memory = self.block.cx.memory;
                let Some(region) = memory.find(address, len, *self.hint) else { return false };
                *self.hint = region;
                let r = &memory.regions[region];
                let from = address - r.start;
                self.run_sectors(region, from, len, false);
                self.fill(&r.words[(from / 4) as usize..][..(len / 4) as usize], width, dst, exec);
            }
            Space::Shared => {
                if address + len > u64::from(self.block.cx.shared_size) {
                    return false;
                }
                self.traffic.shared_run(exec, bytes, Use::Load);
                let shared = self.shared;
                self.fill(&shared[(address / 4) as usize..][..(len / 4) as usize], width, dst, exec);
            }
            Space::Local | Space::Const(_) => return false,
        }
        true
    }

    fn fill<W>(&mut self, words: &[W], width: Width, dst: &[u32; 8], exec: u32)
    where
        [W]: Words,
    {
        let (first, n) = (lowest(exec), width.slots());
        let count = exec.count_ones() as usize;
        for (i, &d) in dst.iter().enumerate().take(n) {
            let row = &mut self.file.row_mut(d, self.at.index).0[first..first + count];
            if n == 1 {
                for (k, x) in row.iter_mut().enumerate() {
                    *x = Words::get(words, k, k);
                }
            } else {
                for (k, x) in row.iter_mut().enumerate() {
                    *x = Words::get(words, k, k * n + i);
                }
            }
        }
    }

    /// A store of a run of lanes; false if it has to be done lane by lane.
    fn quick_store(&mut self, m: &MemInst, width: Width, src: &[Operand; 8], exec: u32) -> bool {
        let space = m.space;
        if space == Space::Local {
            let Some(word) = self.same_local(&m.addr, width.bytes(), exec) else { return false };
            let constants = self.block.cx.program.layout.constants();
            let memory = self.local.words(word, word + width.slots(), true);
            for (i, s) in src.iter().enumerate().take(width.slots()) {
                let row = self.file.read(constants, s, self.at.index);
                lanes(exec).for_each(|l| memory.set(l, word + i, row.0[l]));
            }
            return true;
        }
        let wide = matches!(space, Space::Global | Space::Generic);
        let bytes = width.bytes();
        let Some(address) = self.run_of_lanes(&m.addr, wide, bytes, exec) else { return false };
        let len = u64::from(exec.count_ones() * bytes);
        match space {
            Space::Global | Space::Generic => {
                let memory = self.block.cx.memory;
                let Some(region) = memory.find(address, len, *self.hint) else { return false };
                *self.hint = region;
                let r = &memory.regions[region];
                if r.read_only {
                    return false;
                }
                let from = address - r.start;
                self.run_sectors(region, from, len, true);
                self.spill(&r.words[(from / 4) as usize..][..(len / 4) as usize], width, src, exec);
            }
            Space::Shared => {
                if address + len > u64::from(self.block.cx.shared_size) {
                    return false;
                }
                self.traffic.shared_run(exec, bytes, Use::Store);
                let shared = self.shared;
                self.spill(&shared[(address / 4) as usize..][..(len / 4) as usize], width, src, exec);
            }
            Space::Local | Space::Const(_) => return false,
        }
        true
    }

    fn spill<W>(&self, words: &[W], width: Width, src: &[Operand; 8], exec: u32)
    where
        [W]: Words,
    {
        let constants = self.block.cx.program.layout.constants();
        let (first, n) = (lowest(exec), width.slots());
        let count = exec.count_ones() as usize;
        for (i, s) in src.iter().enumerate().take(n) {
            let copy;
            let row = match self.file.peek(constants, s, self.at.index) {
                Some(row) => row,
                None => {
                    copy = self.file.read(constants, s, self.at.index);
                    &copy
                }
            };
            for (k, x) in row.0[first..first + count].iter().enumerate() {
                Words::set(words, k, k * n + i, *x);
            }
        }
    }

    /// Executes a memory instruction for the lanes of `exec`.
    pub(crate) fn run(&mut self, m: &MemInst, active: u32, exec: u32, uniform: bool) -> Result<(), SimError> {
        let constants = self.block.cx.program.layout.constants();
        let warp = self.at.index;
        let wide = matches!(m.space, Space::Global | Space::Generic);
        match &m.kind {
            MemKind::Load { width, dst, valid } => {
                if exec == 0 {
                    return Ok(());
                }
                // A uniform load is one access for the warp; its sources are the same in all lanes.
                let exec = if uniform { u32::MAX } else { exec };
                let read = exec & self.file.pred(valid, warp);
                if read == exec && self.quick_load(m, *width, dst, exec) {
                    return Ok(());
                }
                let at = addresses(self.file, self.block, &m.addr, wide, warp);
                let mut out = [Row::ZERO; 8];
                if read != 0 {
                    self.load_from(m.space, *width, read, &at, &mut out)?;
                }
                for (i, &d) in dst.iter().enumerate().take(width.slots()) {
                    if read != u32::MAX {
                        for l in lanes(!read & exec) {
                            out[i].0[l] = 0;
                        }
                    }
                    self.file.write(d, warp, exec, &out[i]);
                }
                Ok(())
            }
            MemKind::Store { width, src } => {
                if exec == 0 {
                    return Ok(());
                }
                if self.quick_store(m, *width, src, exec) {
                    return Ok(());
                }
                let at = addresses(self.file, self.block, &m.addr, wide, warp);
                let mut values = [Row::ZERO; 8];
                for (v, s) in values.iter_mut().zip(src).take(width.slots()) {
                    *v = self.file.read(constants, s, warp);
                }
                self.store_to(m.space, *width, exec, &at, &values)
            }
            MemKind::Atomic { op, ty, dst, pdst, src, compare, returns, predicate } => {
                if exec == 0 {
                    return Ok(());
                }
                let mut at = addresses(self.file, self.block, &m.addr, wide, warp);
                let n = ty.slots();
                let (mut b, mut c) = ([Row::ZERO; 4], [Row::ZERO; 4]);
                for i in 0..n {
                    b[i] = self.file.read(constants, &src[i], warp);
                    c[i] = self.file.read(constants, &compare[i], warp);
                }
                let mut todo = exec;
                let mut space = m.space;
                if space == Space::Generic && *predicate {
                    // The code has a path of its own for lanes whose address is not global.
                    let (shared, local) = windows(&at, exec);
                    todo &= !(shared | local);
                    space = Space::Global;
                    self.file.write_pred(*pdst, warp, exec, todo);
                }
                if *op == AtomOp::CasSpin {
                    todo &= first_of_address(todo, &at);
                }
                let mut result = Old { words: [Row::ZERO; 4], swapped: 0 };
                let job = Job { op: *op, ty: *ty, b: &b, c: &c, returns: *returns, apply: atomic::apply };
                if todo != 0 {
                    self.atomic(&job, space, todo, &mut at, &mut result)?;
                }
                if *op == AtomOp::CasSpin {
                    result.words = [Row::ZERO; 4];
                    result.words[0] = Row(std::array::from_fn(|l| result.swapped >> l & 1));
                    self.file.write_pred(*pdst, warp, exec, result.swapped);
                }
                if *returns {
                    let written = if *op == AtomOp::CasSpin { exec } else { todo };
                    for i in 0..n {
                        self.file.write(dst[i], warp, written, &result.words[i]);
                    }
                }
                Ok(())
            }
            MemKind::Copy(copy) => self.copy(copy, &m.addr, exec),
            MemKind::Tiles(tiles) => self.tiles(tiles, m.space, &m.addr, exec),
            MemKind::Query { pdst, dst } => {
                let at = addresses(self.file, self.block, &m.addr, true, warp);
                let (shared, local) = windows(&at, active);
                let inside = match m.space {
                    Space::Shared => shared,
                    Space::Local => local,
                    _ => !(shared | local),
                };
                self.file.write_pred(*pdst, warp, exec, inside);
                self.file.write(*dst, warp, exec, &Row(std::array::from_fn(|l| inside >> l & 1)));
                Ok(())
            }
        }
    }

    fn atomic(
        &mut self,
        job: &Job<'_>,
        space: Space,
        mask: u32,
        at: &mut Addresses,
        old: &mut Old,
    ) -> Result<(), SimError> {
        let bytes = if job.ty == AtomType::B16 { 2 } else { job.ty.slots() as u32 * 4 };
        match space {
            Space::Global => self.global(AccessKind::Atomic, bytes, mask, at, |s, region, o| {
                let words = s.block.cx.memory.regions[region].words.as_slice();
                let Some(shadow) = s.block.cx.shadow else {
                    job.run(words, o, old);
                    return Ok(());
                };
                if super::program::order_matters(job.op, job.ty, job.returns) {
                    shadow.set_conflict();
                    return Ok(());
                }
                s.mark(region, &o, bytes, true, Owner::reduction(job.kind()));
                // Reductions of other blocks may touch the same words; nothing else does, or the launch is run again.
                let _one_at_a_time = s.block.cx.atomics.lock();
                job.run(words, o, old);
                Ok(())
            }),
            Space::Shared => {
                self.bounds(AccessKind::Atomic, space, bytes, mask, at)?;
                let how = if job.op == AtomOp::PopcInc { Use::Store } else { Use::Atomic };
                self.traffic.shared(mask, at, bytes, Pattern::Any, how);
                let job = Job { apply: atomic::apply_shared, ..*job };
                job.run(self.shared, Offsets { at, mask, pattern: Pattern::Any }, old);
                Ok(())
            }
            Space::Local => {
                self.bounds(AccessKind::Atomic, space, bytes, mask, at)?;
                let (from, to) = lanes(mask).fold((u64::MAX, 0), |(a, b), l| (a.min(at[l]), b.max(at[l])));
                let memory =
                    self.local.words((from / 4) as usize, ((to + u64::from(bytes)).div_ceil(4)) as usize, true);
                job.run(&memory, Offsets { at, mask, pattern: Pattern::Any }, old);
                Ok(())
            }
            Space::Const(_) => Ok(()),
            Space::Generic => {
                self.generic(mask, at, |s, space, mask, at| s.atomic(job, space, mask, &mut at.clone(), old))
            }
        }
    }
}

/// Lanes whose generic address lies in the shared and in the local window.
pub(crate) fn windows(at: &Addresses, mask: u32) -> (u32, u32) {
    let within = |hi: u32| lanes(mask).filter(|&l| at[l] >> 32 == u64::from(hi)).fold(0, |m, l| m | 1 << l);
    (within(SHARED_WINDOW_HI), within(LOCAL_WINDOW_HI))
}

fn distinct_sectors(at: &Addresses, mask: u32) -> u64 {
    let mut all = [0u64; LANES];
    let mut n = 0;
    let mut sorted = true;
    for l in lanes(mask) {
        all[n] = at[l] / 32;
        sorted &= n == 0 || all[n - 1] <= all[n];
        n += 1;
    }
    let all = &mut all[..n];
    if !sorted {
        all.sort_unstable();
    }
    1 + all.windows(2).filter(|w| w[0] != w[1]).count() as u64
}

/// An atomic of one warp.
struct Job<'a> {
    op: AtomOp,
    ty: AtomType,
    b: &'a [Row; 4],
    c: &'a [Row; 4],
    returns: bool,
    apply: Apply,
}

/// [`atomic::apply`] or [`atomic::apply_shared`].
type Apply = fn(AtomOp, AtomType, &Value, &Value, &Value) -> Option<Value>;

/// What an atomic gives back.
struct Old {
    words: [Row; 4],
    swapped: u32,
}

impl Job<'_> {
    /// A number that only reductions share which commute with each other.
    fn kind(&self) -> u32 {
        let op = match self.op {
            AtomOp::Add | AtomOp::PopcInc => 0,
            AtomOp::Min => 1,
            AtomOp::Max => 2,
            AtomOp::And => 3,
            AtomOp::Or => 4,
            _ => 5,
        };
        let ty = match (self.ty, op) {
            (AtomType::S32, 1 | 2) => 1,
            (AtomType::U64, _) => 2,
            (AtomType::S64, 1 | 2) => 3,
            (AtomType::S64, _) => 2,
            _ => 0,
        };
        op << 2 | ty
    }

    /// Lane after lane.
    fn run<W: Words + ?Sized>(&self, memory: &W, o: Offsets<'_>, old: &mut Old) {
        let n = self.ty.slots();
        for l in lanes(o.mask) {
            let word = (o.at[l] / 4) as usize;
            let (mut was, mut b, mut c): (Value, Value, Value) = ([0; 4], [0; 4], [0; 4]);
            let (shift, part) = if self.ty == AtomType::B16 { (8 * (o.at[l] & 2) as u32, 0xffff) } else { (0, !0) };
            for i in 0..n {
                was[i] = memory.get(l, word + i) >> shift & part;
                b[i] = self.b[i].0[l] & part;
                c[i] = self.c[i].0[l] & part;
                old.words[i].0[l] = was[i];
            }
            if let Some(new) = (self.apply)(self.op, self.ty, &was, &b, &c) {
                old.swapped |= 1 << l;
                for (i, x) in new.iter().enumerate().take(n) {
                    let kept = if part == !0 { 0 } else { memory.get(l, word + i) & !(part << shift) };
                    memory.set(l, word + i, kept | *x << shift);
                }
            }
        }
    }
}
