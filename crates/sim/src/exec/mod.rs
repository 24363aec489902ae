//! Execution of a launch.
//!
//! [`program`] resolves a kernel once; [`block`] runs one block: its warps in [`tile`]s, their instructions through
//! [`crate::rows`], [`mem`], [`warp`] and [`flow`]; [`launch`] runs all blocks on several threads. On request, [`trace`]
//! keeps the steps of one warp and [`record`] what each thread did.

pub(crate) mod atomic;
pub(crate) mod banks;
pub(crate) mod barrier;
pub(crate) mod block;
pub(crate) mod check;
mod copy;
pub(crate) mod counters;
pub(crate) mod external;
pub(crate) mod flow;
pub(crate) mod launch;
pub(crate) mod loops;
pub(crate) mod meeting;
pub(crate) mod mem;
pub(crate) mod poison;
pub(crate) mod printed;
pub(crate) mod program;
pub(crate) mod record;
pub(crate) mod spin;
mod tensor;
pub(crate) mod tile;
pub(crate) mod trace;
pub(crate) mod warp;

use std::sync::Mutex;

use lanescope_ir::{InstId, Kernel, LaneMask, Op};

use crate::convergence::Convergence;
use crate::error::{Position, SimError, Site};
use crate::memory::GlobalMemory;
use crate::memory::shadow::{Owner, Shadow};
use crate::memory::touched::Touched;
use program::Program;

/// What is the same for all blocks of a launch.
#[derive(Clone, Copy)]
pub(crate) struct Cx<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) program: &'a Program,
    /// Why an instruction is refused although its operation is known.
    pub(crate) refusals: &'a [Option<String>],
    pub(crate) memory: &'a GlobalMemory,
    /// Only while blocks run in parallel.
    pub(crate) shadow: Option<&'a Shadow>,
    /// Sectors of global memory that were touched.
    pub(crate) touched: &'a Touched,
    /// Bytes of the first-level cache of a block, if it is modelled: its share, and all of an SM's.
    pub(crate) l1: Option<[u32; 2]>,
    /// Where findings go, if the run is checked.
    pub(crate) check: Option<&'a check::CheckLog>,
    /// What each thread does goes here, if it is wanted.
    pub(crate) recorder: Option<&'a record::Recorder>,
    /// Held by reductions of global memory while blocks run in parallel.
    pub(crate) atomics: &'a Mutex<()>,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) warps: u32,
    /// Lanes of a warp.
    pub(crate) warp_size: u32,
    pub(crate) shared_size: u32,
    /// Which thread each position plays.
    pub(crate) order: Option<&'a crate::launch::Order>,
}

/// One block.
pub(crate) struct BlockCx<'a> {
    pub(crate) cx: &'a Cx<'a>,
    pub(crate) id: [u32; 3],
    pub(crate) linear: u64,
}

/// One instruction of one warp.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Where {
    pub(crate) inst: u32,
    /// Index of its row of lanes in its tile: the warp's index, unless warps have more than one row.
    pub(crate) index: u32,
    /// Index of the warp in its block.
    pub(crate) warp: u32,
    /// The lane of the warp that is the row's first.
    pub(crate) base: u32,
}

impl Where {
    /// Lanes of the row as lanes of the warp.
    pub(crate) fn lanes(&self, row: u32) -> LaneMask {
        LaneMask(u64::from(row) << self.base)
    }

    /// Index of the row in its block.
    pub(crate) fn row(&self) -> u32 {
        self.warp * (LaneMask::MAX / ROW) + self.base / ROW
    }
}

/// Lanes of a row, for counting.
const ROW: u32 = crate::rows::LANES as u32;

/// Rows of lanes that make a warp. Every model has one, but for warps of 64 lanes.
pub(crate) const fn rows<C: Convergence>() -> usize {
    (C::LANES / ROW) as usize
}

impl BlockCx<'_> {
    /// Thread index of a lane.
    pub(crate) fn thread(&self, warp: u32, lane: u32) -> [u32; 3] {
        let [x, y, _] = self.cx.block.map(|n| n.max(1));
        let t = warp * self.cx.warp_size + lane;
        [t % x, t / x % y, t / x / y]
    }

    /// Thread and block index as a lane reads them.
    pub(crate) fn played(&self, warp: u32, lane: u32) -> ([u32; 3], [u32; 3]) {
        let threads: u64 = self.cx.block.iter().map(|&n| u64::from(n)).product();
        let place = warp * self.cx.warp_size + lane;
        let position = self.linear.saturating_mul(threads).saturating_add(place.into());
        let order = self.cx.order.filter(|_| u64::from(place) < threads);
        let played = order.and_then(|o| Some((o.by_thread_index, o.threads.get(usize::try_from(position).ok()?)?)));
        let Some((by_thread_index, &thread)) = played else {
            return (self.thread(warp, lane), self.id);
        };
        if by_thread_index {
            let first = (self.linear.wrapping_mul(threads)) as u32;
            return ([thread.wrapping_sub(first), 0, 0], self.id);
        }
        let at = |mut i: u64, dims: [u32; 3]| {
            dims.map(|n| {
                let c = i % u64::from(n.max(1));
                i /= u64::from(n.max(1));
                c as u32
            })
        };
        let thread = u64::from(thread);
        (at(thread % threads, self.cx.block), at(thread / threads, self.cx.grid))
    }

    /// Blocks of the launch.
    pub(crate) fn total_blocks(&self) -> u64 {
        self.cx.grid.iter().map(|&n| u64::from(n)).fold(1, u64::saturating_mul)
    }

    /// How memory marks name the block.
    pub(crate) fn owner(&self) -> Owner {
        Owner::block(self.linear)
    }

    /// For messages.
    pub(crate) fn site(&self, at: Where) -> Site {
        let kernel = self.cx.kernel;
        let inst = InstId(at.inst);
        let function = kernel.function_of(inst).filter(|f| f.first.0 != 0).map(|f| f.name.clone());
        Site {
            inst: at.inst,
            pc: kernel.instructions.get(inst.index()).map_or(0, |i| i.pc),
            function,
            text: kernel.text.get(inst.index()).cloned().unwrap_or_default(),
            block: self.id,
            warp: at.warp,
        }
    }

    /// The error for an instruction that cannot be executed.
    pub(crate) fn unsupported(&self, at: Where) -> SimError {
        let site = Box::new(self.site(at));
        let op = self.cx.kernel.instructions.get(at.inst as usize).map(|i| &i.op);
        let refusal = self.cx.refusals.get(at.inst as usize).and_then(Option::clone);
        let (name, why) = match (op, refusal) {
            (Some(Op::Unsupported(u)), _) => (u.name.clone(), u.why.to_owned()),
            (_, why) => (site.text.clone(), why.unwrap_or_default()),
        };
        SimError::Unsupported { site, name, why }
    }

    /// For messages about launches that do not go on.
    pub(crate) fn position(&self, warp: u32, lanes: LaneMask, inst: u32) -> Position {
        let site = self.site(Where { inst, index: 0, warp, base: 0 });
        let line = lanescope_analysis::words::at_line(self.cx.kernel, inst);
        Position { warp, lanes, inst, pc: site.pc, text: site.text, line, waits: None, block_barrier: None }
    }
}
