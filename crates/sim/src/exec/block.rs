//! One block: its tiles take turns until all threads have exited.

use std::cell::Cell;

use lanescope_ir::{BlockWork, LaneMask, Reach};

use super::barrier::Barriers;
use super::check::Checker;
use super::counters::Counters;
use super::poison::Poison;
use super::printed::Printed;
use super::record::BlockRecord;
use super::tile::{Env, Tile};
use super::trace::Tracer;
use super::{BlockCx, rows};
use crate::convergence::Convergence;
use crate::error::{Position, SimError};
use crate::memory::l1::L1;

/// Rows of lanes of a tile at most: warps, or halves of them.
const TILE: usize = 8;
/// Warp instructions a tile issues before the next one has its turn.
const TURN: u64 = 1 << 14;

/// How a turn of a block ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// All threads have exited.
    Done,
    /// It can go on.
    More,
    /// It can go on, but only other blocks can get it out of its loops.
    Stuck,
}

/// The state of a block in flight; used again for other blocks.
pub(crate) struct Block<C> {
    pub(crate) tiles: Vec<Tile<C>>,
    shared: Vec<Cell<u32>>,
    barriers: Barriers,
    lanes: Vec<u64>,
    pub(crate) clock: u64,
    /// The clock when other blocks last ran.
    pub(crate) resumed: u64,
    next: usize,
    hint: usize,
    check: Option<Box<Checker>>,
    pub(crate) printed: Printed,
    work: BlockWork,
    l1: Option<[L1; 2]>,
}

impl<C: Convergence> Block<C> {
    /// A block at its start.
    pub(crate) fn new(b: &BlockCx<'_>, plan: &C::Plan) -> Block<C> {
        let threads = b.cx.block.iter().product::<u32>();
        let lanes: Vec<u64> =
            (0..b.cx.warps).map(|w| LaneMask::first((threads - w * C::LANES).min(C::LANES)).0).collect();
        let n = TILE / rows::<C>();
        let tiles = lanes.chunks(n).enumerate().map(|(i, l)| Tile::new(b, plan, (i * n) as u32, l)).collect();
        let existing = || lanes.iter().map(|&l| l as u32).collect::<Vec<_>>();
        let check = b.cx.check.filter(|_| C::LANES == 32).map(|_| Box::new(Checker::new(b, &existing())));
        Block {
            tiles,
            shared: vec![Cell::new(0); b.cx.shared_size.div_ceil(4) as usize],
            barriers: Barriers::new(&lanes, C::LANES),
            lanes,
            clock: 0,
            resumed: 0,
            next: 0,
            hint: 0,
            check,
            printed: Printed::default(),
            work: BlockWork::default(),
            l1: b.cx.l1.map(|sizes| sizes.map(L1::new)),
        }
    }

    /// Starts another block.
    pub(crate) fn clear(&mut self, b: &BlockCx<'_>) {
        self.tiles.iter_mut().for_each(|t| t.clear(b));
        self.shared.fill(Cell::new(0));
        self.barriers.clear(&self.lanes);
        (self.clock, self.next) = (0, 0);
        self.printed = Printed::default();
        self.work = BlockWork::default();
        self.l1.iter_mut().flatten().for_each(L1::clear);
    }

    /// Hands over what the block's checker has found.
    pub(crate) fn finish_check(&mut self, b: &BlockCx<'_>) {
        if let (Some(check), Some(log)) = (&mut self.check, b.cx.check) {
            log.add(check.finish(b));
        }
    }

    /// Lanes of a warp.
    pub(crate) fn warp_lanes(&self, warp: u32) -> u64 {
        self.lanes.get(warp as usize).copied().unwrap_or(0)
    }

    /// Lets the next tile that can run have its turn.
    pub(crate) fn turn(
        &mut self,
        b: &BlockCx<'_>,
        counters: &mut Counters,
        trace: Option<&mut Tracer>,
        poison: Option<&mut Poison>,
        record: Option<&mut BlockRecord>,
        budget: u64,
    ) -> Result<Turn, SimError> {
        let n = self.tiles.len();
        let Some(at) = (0..n).map(|i| (self.next + i) % n).find(|&i| self.tiles[i].can_run()) else {
            let done = self.tiles.iter().flat_map(|t| &t.warps).all(|w| w.conv.live().is_empty());
            if !done {
                return Err(SimError::Deadlock { block: b.id, waiting: self.positions(b) });
            }
            self.tiles.iter_mut().for_each(|t| t.finish(b.linear, counters));
            let warps = self.tiles.iter().flat_map(|t| &t.warps).map(|w| (w.issued, w.waits));
            let longest = warps.max_by_key(|w| w.0 + BlockWork::WAIT * w.1[0]).unwrap_or_default();
            self.work.inst_executed = self.clock;
            (self.work.warp_instructions, [self.work.warp_waits, self.work.warp_waits_best]) = longest;
            counters.block(b.linear, self.work, b.total_blocks() <= Reach::BLOCKS);
            self.finish_check(b);
            return Ok(Turn::Done);
        };
        let mut env = Env {
            block: b,
            shared: &self.shared,
            barriers: &mut self.barriers,
            counters,
            clock: &mut self.clock,
            hint: &mut self.hint,
            printed: &mut self.printed,
            work: &mut self.work,
            l1: self.l1.as_mut(),
            trace,
            poison,
            record,
            check: self.check.as_deref_mut(),
        };
        self.tiles[at].run(&mut env, budget.min(TURN))?;
        self.next = (at + 1) % n;
        for r in std::mem::take(&mut self.barriers.released) {
            let n = TILE / rows::<C>();
            let (tile, index) = (r.warp as usize / n, r.warp as usize % n);
            let w = &mut self.tiles[tile].warps[index];
            w.conv.release_block(LaneMask(r.lanes));
            w.result = r.result.unwrap_or(w.result);
            w.refresh();
        }
        Ok(if self.stuck(b).is_some() { Turn::Stuck } else { Turn::More })
    }

    /// Where everybody is.
    pub(crate) fn positions(&self, b: &BlockCx<'_>) -> Vec<Position> {
        let mut out = Vec::new();
        for t in &self.tiles {
            for (i, w) in t.warps.iter().enumerate() {
                let warp = t.first + i as u32;
                if w.mask != 0 {
                    out.push(b.position(warp, LaneMask(w.mask), w.pc));
                }
                out.extend(w.conv.parked().iter().map(|g| b.position(warp, g.mask, g.pc)));
                for held in w.conv.waiting() {
                    let mut p = b.position(warp, held.lanes, held.pc);
                    p.waits = Some(held.why);
                    if held.why == crate::convergence::Reason::Block {
                        p.block_barrier = self.barriers.waits_at(warp, held.lanes.0);
                    }
                    out.push(p);
                }
            }
        }
        out
    }
}
