//! Rows of lanes, and pure lane functions applied to them. The only module of this crate with `unsafe` code.
//!
//! A row holds one 32-bit register of one warp (of half a warp, where warps have 64 lanes: such a warp is two to this module). A [`RowFile`] keeps the registers of the warps that run in lockstep,
//! `[slot][warp]`, and their predicates as lane masks; immediates and constants are rows of their own, shared by all
//! warps. So a [`LaneInst`] is one function over row pointers, applied to every warp that stands at the instruction.
//! The function is compiled twice, for AVX2 with FMA and for the baseline, and chosen when the instruction is prepared.
//!
//! Why `unsafe`: bounds checks on each operand of each warp cost a third of the speed, and functions with target
//! features can only be called so. Every index is checked when an instruction is prepared, against limits that
//! [`LaneInst::run`] compares with the file it is given.
#![allow(unsafe_code)]
// Lanes index several rows at once.
#![allow(clippy::needless_range_loop)]

use std::collections::HashMap;

use lanescope_ir::op::LaneOp;
use lanescope_ir::{Pred, PredSrc, Slot, Src, SrcMod, op::SrcKind};

use crate::lane::{self, Bind, LaneFunction};

/// Lanes of a warp.
pub(crate) const LANES: usize = 32;

/// `BITS[l]` is the mask of lane `l`.
const BITS: [u32; LANES] = {
    let mut bits = [0; LANES];
    let mut l = 0;
    while l < LANES {
        bits[l] = 1 << l;
        l += 1;
    }
    bits
};

/// One register of one warp.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row(pub(crate) [u32; LANES]);

impl Row {
    pub(crate) const ZERO: Row = Row([0; LANES]);

    pub(crate) const fn splat(value: u32) -> Row {
        Row([value; LANES])
    }
}

/// Some lanes of one warp that are about to execute an instruction together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Index of the warp in its file.
    pub(crate) warp: u32,
    /// Active lanes.
    pub(crate) active: u32,
}

/// A source word with everything about it resolved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operand {
    index: u32,
    constant: bool,
    /// Whether it is read as it is.
    plain: bool,
    masks: (u32, u32, u32),
}

/// A source predicate with everything about it resolved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PredOperand {
    index: u32,
    xor: u32,
}

/// How many registers and predicates a file has, and the broadcast rows of a program.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    slots: u32,
    preds: u32,
    constants: Vec<Row>,
    known: HashMap<u32, u32>,
}

impl Layout {
    pub(crate) fn new(slots: u16, preds: u16) -> Layout {
        Layout { slots: u32::from(slots), preds: u32::from(preds), ..Layout::default() }
    }

    fn broadcast(&mut self, value: u32) -> u32 {
        *self.known.entry(value).or_insert_with(|| {
            self.constants.push(Row::splat(value));
            (self.constants.len() - 1) as u32
        })
    }

    /// Resolves a source; `constant` reads a word of a constant bank. `None` if its slot does not exist.
    pub(crate) fn operand(&mut self, src: Src, constant: &dyn Fn(u8, u32) -> u32) -> Option<Operand> {
        let value = match src.kind {
            SrcKind::Slot(s) => {
                let (masks, plain) = (src.modifier.masks(), src.modifier == SrcMod::None);
                return (u32::from(s.0) < self.slots).then_some(Operand {
                    index: s.0.into(),
                    constant: false,
                    plain,
                    masks,
                });
            }
            SrcKind::Imm(value) => value,
            SrcKind::Const { bank, offset } => constant(bank, offset),
        };
        let index = self.broadcast(src.modifier.apply(value));
        Some(Operand { index, constant: true, plain: true, masks: SrcMod::None.masks() })
    }

    /// Resolves a source predicate. `None` if it does not exist.
    pub(crate) fn pred(&self, src: PredSrc) -> Option<PredOperand> {
        let xor = if src.negated { u32::MAX } else { 0 };
        match src.pred {
            None => Some(PredOperand { index: self.preds + TRUE, xor }),
            Some(p) => (u32::from(p.0) < self.preds).then_some(PredOperand { index: p.0.into(), xor }),
        }
    }

    /// Resolves a destination; `None` as destination is a row that nobody reads.
    pub(crate) fn dst(&self, dst: Option<Slot>) -> Option<u32> {
        match dst {
            None => Some(self.slots),
            Some(s) => (u32::from(s.0) < self.slots).then_some(s.0.into()),
        }
    }

    /// Resolves a destination predicate.
    pub(crate) fn pdst(&self, dst: Option<Pred>) -> Option<u32> {
        match dst {
            None => Some(self.preds + SINK),
            Some(p) => (u32::from(p.0) < self.preds).then_some(p.0.into()),
        }
    }

    /// Broadcast rows, for [`LaneInst::run`] and [`RowFile::read`].
    #[inline]
    pub(crate) fn constants(&self) -> &[Row] {
        &self.constants
    }
}

/// Predicates that every file has after the kernel's own: the constant true, and one that nobody reads.
const TRUE: u32 = 0;
const SINK: u32 = 1;
const EXTRA_PREDS: u32 = 2;
/// Registers after the kernel's own: one that nobody reads.
const EXTRA_SLOTS: u32 = 1;

/// Registers and predicates of the warps of a tile.
#[derive(Debug)]
pub(crate) struct RowFile {
    rows: Vec<Row>,
    preds: Vec<u32>,
    slots: u32,
    npreds: u32,
    warps: u32,
}

impl RowFile {
    /// All zero, for `warps` warps.
    pub(crate) fn new(layout: &Layout, warps: u32) -> RowFile {
        let (slots, npreds) = (layout.slots + EXTRA_SLOTS, layout.preds + EXTRA_PREDS);
        let mut file = RowFile {
            rows: vec![Row::ZERO; slots as usize * warps as usize],
            preds: vec![0; npreds as usize * warps as usize],
            slots,
            npreds,
            warps,
        };
        file.clear();
        file
    }

    /// All zero again.
    pub(crate) fn clear(&mut self) {
        self.rows.fill(Row::ZERO);
        self.preds.fill(0);
        let at = (self.npreds - EXTRA_PREDS + TRUE) as usize * self.warps as usize;
        self.preds[at..at + self.warps as usize].fill(u32::MAX);
    }

    /// The value of a source in all lanes of a warp.
    #[inline]
    pub(crate) fn read(&self, constants: &[Row], op: &Operand, warp: u32) -> Row {
        if op.constant {
            return constants[op.index as usize];
        }
        let mut row = self.rows[self.at(op.index, warp)];
        if !op.plain {
            let (and, xor, add) = op.masks;
            row.0.iter_mut().for_each(|x| *x = ((*x & and) ^ xor).wrapping_add(add));
        }
        row
    }

    /// The row of a source that is read as it is.
    #[inline]
    pub(crate) fn peek<'a>(&'a self, constants: &'a [Row], op: &Operand, warp: u32) -> Option<&'a Row> {
        if op.constant {
            return constants.get(op.index as usize);
        }
        op.plain.then(|| &self.rows[self.at(op.index, warp)])
    }

    #[inline]
    fn at(&self, slot: u32, warp: u32) -> usize {
        assert!(warp < self.warps);
        slot as usize * self.warps as usize + warp as usize
    }

    /// The row of a resolved destination.
    #[inline]
    pub(crate) fn row_mut(&mut self, dst: u32, warp: u32) -> &mut Row {
        let at = self.at(dst, warp);
        &mut self.rows[at]
    }

    /// A register of a warp; the kernel's own come first.
    pub(crate) fn register(&self, slot: u32, warp: u32) -> Option<&Row> {
        (slot < self.slots - EXTRA_SLOTS).then(|| &self.rows[self.at(slot, warp)])
    }

    /// A predicate of a warp; the kernel's own come first.
    pub(crate) fn predicate(&self, pred: u32, warp: u32) -> Option<u32> {
        (pred < self.npreds - EXTRA_PREDS).then(|| self.preds[self.at(pred, warp)])
    }

    /// Writes the lanes of `mask`.
    #[inline]
    pub(crate) fn write(&mut self, dst: u32, warp: u32, mask: u32, value: &Row) {
        let row = self.row_mut(dst, warp);
        if mask == u32::MAX {
            *row = *value;
        } else {
            blend(&mut row.0, &value.0, mask);
        }
    }

    /// A source predicate's lanes.
    #[inline]
    pub(crate) fn pred(&self, op: &PredOperand, warp: u32) -> u32 {
        self.preds[self.at(op.index, warp)] ^ op.xor
    }

    /// Writes the lanes of `mask` of a predicate.
    #[inline]
    pub(crate) fn write_pred(&mut self, dst: u32, warp: u32, mask: u32, value: u32) {
        let at = self.at(dst, warp);
        self.preds[at] = self.preds[at] & !mask | value & mask;
    }
}

/// All ones in the lanes of each byte of a mask. Masks come from memory because the compiler turns what it can see to be a
/// choice into masked stores, which take 20 cycles on some processors.
static SPREAD: [[u32; 8]; 256] = {
    let mut all = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut l = 0;
        while l < 8 {
            all[byte][l] = if byte >> l & 1 != 0 { u32::MAX } else { 0 };
            l += 1;
        }
        byte += 1;
    }
    all
};

/// Puts `v` in the lanes of `mask`.
#[inline(always)]
fn blend(d: &mut [u32; LANES], v: &[u32; LANES], mask: u32) {
    for part in 0..4 {
        let m = &SPREAD[(mask >> (8 * part) & 0xff) as usize];
        for i in 0..8 {
            let l = 8 * part + i;
            d[l] ^= (d[l] ^ v[l]) & m[i];
        }
    }
}

/// Whether lane `l` of a row holds `start + l * step` (wrapping), in the lanes of `mask`.
#[inline]
pub(crate) fn is_progression(row: &Row, start: u32, step: u32, mask: u32) -> bool {
    let mut other = 0;
    if mask == u32::MAX {
        for l in 0..LANES {
            other |= row.0[l] ^ start.wrapping_add(step.wrapping_mul(l as u32));
        }
        return other == 0;
    }
    for l in 0..LANES {
        let m = if mask & BITS[l] != 0 { u32::MAX } else { 0 };
        other |= (row.0[l] ^ start.wrapping_add(step.wrapping_mul(l as u32))) & m;
    }
    other == 0
}

/// Adds `n` in the lanes of `mask`.
pub(crate) fn add(row: &mut Row, mask: u32, n: u32) {
    for l in 0..LANES {
        row.0[l] = row.0[l].wrapping_add(if mask & BITS[l] != 0 { n } else { 0 });
    }
}

/// Operands of a lane operation.
#[derive(Debug)]
struct Operands {
    guard: PredOperand,
    src: [Operand; 6],
    psrc: [PredOperand; 3],
    dst: [u32; 2],
    pdst: [u32; 2],
    uniform: bool,
    /// Registers and predicates of the file and broadcast rows that the indices were checked against.
    slots: u32,
    preds: u32,
    constants: u32,
}

/// What the compiled functions work on. All pointers are to the start of arrays as long as `Operands` was checked for.
#[derive(Clone, Copy)]
struct Files {
    rows: *mut Row,
    preds: *mut u32,
    constants: *const Row,
    warps: u32,
}

/// A lane function bound to rows.
trait RowOp: Send + Sync {
    /// Applies the function to each run; returns the lanes whose guard holds.
    ///
    /// # Safety
    /// `files` must be as large as `o` says, and the processor must have what the function was compiled for.
    unsafe fn run(&self, o: &Operands, files: Files, runs: &[Run]) -> u64;
}

/// A pure operation ready to run.
pub(crate) struct LaneInst {
    operands: Operands,
    function: Box<dyn RowOp>,
}

impl LaneInst {
    /// Prepares `op`. `None` if a register or predicate does not exist.
    pub(crate) fn new(
        layout: &mut Layout,
        op: &LaneOp,
        guard: PredSrc,
        uniform: bool,
        constant: &dyn Fn(u8, u32) -> u32,
    ) -> Option<LaneInst> {
        let mut src = [Operand { index: 0, constant: true, plain: true, masks: SrcMod::None.masks() }; 6];
        for (to, from) in src.iter_mut().zip(op.src) {
            *to = layout.operand(from, constant)?;
        }
        let modified = op.src.iter().any(|s| s.read().is_some() && s.modifier != SrcMod::None);
        let operands = Operands {
            guard: layout.pred(guard)?,
            src,
            psrc: [layout.pred(op.psrc[0])?, layout.pred(op.psrc[1])?, layout.pred(op.psrc[2])?],
            dst: [layout.dst(op.dst[0])?, layout.dst(op.dst[1])?],
            pdst: [layout.pdst(op.pdst[0])?, layout.pdst(op.pdst[1])?],
            uniform,
            slots: layout.slots + EXTRA_SLOTS,
            preds: layout.preds + EXTRA_PREDS,
            constants: layout.constants.len() as u32,
        };
        Some(LaneInst { operands, function: lane::bind(&op.f, Binder { fast: has_fast(), modified }) })
    }

    /// Executes it for each run, in order. Returns the lanes whose guard holds.
    #[inline]
    pub(crate) fn run(&self, file: &mut RowFile, constants: &[Row], runs: &[Run]) -> u64 {
        let o = &self.operands;
        assert!(o.slots == file.slots && o.preds == file.npreds && constants.len() >= o.constants as usize);
        let files = Files {
            rows: file.rows.as_mut_ptr(),
            preds: file.preds.as_mut_ptr(),
            constants: constants.as_ptr(),
            warps: file.warps,
        };
        // SAFETY: indices of `o` were checked against `o.slots`, `o.preds` and `o.constants` when it was made (in
        // `Layout`), and these are the sizes of this file; `RowFile` holds `slots * warps` rows and `preds * warps`
        // masks; each run's warp is checked by the callee. The file is borrowed mutably, so nobody else sees it.
        // Functions for AVX2 and FMA are chosen in `Binder` only if `has_fast` found these on this processor.
        unsafe { self.function.run(o, files, runs) }
    }
}

/// A function for one CPU level.
struct Bound<F, const FAST: bool, const MODIFIED: bool>(F);

struct Binder {
    fast: bool,
    modified: bool,
}

impl Bind for Binder {
    type Output = Box<dyn RowOp>;
    fn bind<F: LaneFunction>(self, f: F) -> Box<dyn RowOp> {
        match (self.fast, self.modified) {
            // Each variant takes its time to compile; only speed needs this one.
            #[cfg(not(debug_assertions))]
            (true, false) => Box::new(Bound::<F, true, false>(f)),
            (true, _) => Box::new(Bound::<F, true, true>(f)),
            (false, _) => Box::new(Bound::<F, false, true>(f)),
        }
    }
}

impl<F: LaneFunction, const FAST: bool, const MODIFIED: bool> RowOp for Bound<F, FAST, MODIFIED> {
    unsafe fn run(&self, o: &Operands, files: Files, runs: &[Run]) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if FAST {
            // SAFETY: as this function's own contract.
            return unsafe { apply_fast::<F, MODIFIED>(self.0, o, files, runs) };
        }
        // SAFETY: as this function's own contract.
        unsafe { apply::<F, MODIFIED>(self.0, o, files, runs) }
    }
}

/// Whether the processor has what [`apply_fast`] is compiled for.
fn has_fast() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn apply_fast<F: LaneFunction, const MODIFIED: bool>(f: F, o: &Operands, files: Files, runs: &[Run]) -> u64 {
    // SAFETY: the same contract.
    unsafe { apply::<F, MODIFIED>(f, o, files, runs) }
}

/// Applies `f` to the lanes of each run whose guard holds.
///
/// # Safety
/// `files` must be as large as `o` says.
#[inline(always)]
unsafe fn apply<F: LaneFunction, const MODIFIED: bool>(f: F, o: &Operands, files: Files, runs: &[Run]) -> u64 {
    let warps = files.warps as usize;
    let mut on = 0;
    for run in runs {
        assert!(run.warp < files.warps);
        let w = run.warp as usize;
        // SAFETY: predicate indices are below `o.preds`, the warp is below `warps`, the array has both multiplied.
        let pred = |p: &PredOperand| unsafe { *files.preds.add(p.index as usize * warps + w) ^ p.xor };
        let guarded = run.active & pred(&o.guard);
        on += u64::from(guarded.count_ones());
        if guarded == 0 {
            continue;
        }
        let exec = if o.uniform { u32::MAX } else { guarded };
        let mut src = [std::ptr::null::<u32>(); 6];
        for i in 0..F::SRC {
            let from = &o.src[i];
            // SAFETY: slots are below `o.slots` and broadcast rows below `o.constants`, as are the arrays' lengths.
            src[i] = unsafe {
                if from.constant {
                    files.constants.add(from.index as usize)
                } else {
                    files.rows.add(from.index as usize * warps + w).cast_const()
                }
            }
            .cast();
        }
        let mut psrc = [0u32; 3];
        for i in 0..F::PSRC {
            psrc[i] = pred(&o.psrc[i]);
        }
        let mut words = [[0u32; LANES]; 2];
        let mut preds = [[0u32; LANES]; 2];
        for l in 0..LANES {
            let mut s = [0u32; 6];
            for i in 0..F::SRC {
                // SAFETY: `src[i]` points to a row of 32 words.
                s[i] = unsafe { *src[i].add(l) };
                if MODIFIED {
                    let (and, xor, add) = o.src[i].masks;
                    s[i] = ((s[i] & and) ^ xor).wrapping_add(add);
                }
            }
            let mut p = [false; 3];
            for i in 0..F::PSRC {
                p[i] = psrc[i] & BITS[l] != 0;
            }
            let out = f.eval(s, p);
            for i in 0..F::DST {
                words[i][l] = out.d[i];
            }
            for i in 0..F::PDST {
                preds[i][l] = if out.p[i] { BITS[l] } else { 0 };
            }
        }
        for i in 0..F::DST {
            // SAFETY: destinations are below `o.slots`. No other reference to the row lives: sources are read by pointer.
            let row = unsafe { &mut (*files.rows.add(o.dst[i] as usize * warps + w)).0 };
            if exec == u32::MAX {
                *row = words[i];
            } else {
                blend(row, &words[i], exec);
            }
        }
        for i in 0..F::PDST {
            let mut value = 0;
            for b in preds[i] {
                value |= b;
            }
            // SAFETY: as for source predicates.
            unsafe {
                let at = files.preds.add(o.pdst[i] as usize * warps + w);
                *at = *at & !exec | value & exec;
            }
        }
    }
    on
}
