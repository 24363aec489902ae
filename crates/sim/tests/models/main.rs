//! Joins at post-dominators (`Ipdom`) and the stack before Volta (`Stack`), through the engine.

#[path = "../common/mod.rs"]
mod common;
mod joins;
mod lanes;
mod random;
mod spins;
mod syncs;
mod wide;

use common::*;
use lanescope_ir::op::int::IntFn;
use lanescope_ir::op::warp::SpecialReg;
use lanescope_ir::{Kernel, LaneCounts, LaneMask};
use lanescope_sim::{GlobalMemory, Launch, Model, Outcome, SimError, TraceRequest};

/// What a run of one block gave: the words of the buffer that is its first parameter, and everything else.
struct Ran {
    words: Vec<u32>,
    outcome: Outcome,
}

impl Ran {
    /// Issues and lanes of an instruction.
    fn count(&self, at: u32) -> (u64, u64) {
        let c: &LaneCounts = &self.outcome.profile.counts[at as usize];
        (c.inst_executed, c.thread_inst_executed)
    }

    /// The groups of warp 0 that issued an instruction, in order.
    fn groups(&self, at: u32) -> Vec<LaneMask> {
        let trace = self.outcome.traces.first().expect("traced");
        trace.steps.iter().filter(|s| s.inst == at).map(|s| s.active).collect()
    }

    /// The order in which some instructions were issued by warp 0, with the number of lanes.
    fn order(&self, of: &[u32]) -> Vec<(u32, u32)> {
        let trace = self.outcome.traces.first().expect("traced");
        trace.steps.iter().filter(|s| of.contains(&s.inst)).map(|s| (s.inst, s.active.count())).collect()
    }
}

/// One block of `threads` on `words` words of zeros.
fn one_block(kernel: &Kernel, model: Model, threads: u32, words_of_buffer: u64) -> Result<Ran, SimError> {
    let mut memory = GlobalMemory::new();
    let out = memory.alloc("out", &vec![0; words_of_buffer as usize * 4]).expect("room");
    let mut launch: Launch = launch(1, threads, &[out], 1);
    launch.options.model = model;
    launch.options.max_inst = 200_000_000;
    launch.options.traces = vec![TraceRequest { block: 0, warp: 0, max_steps: 100_000 }];
    let outcome = run(kernel, &launch, &mut memory)?;
    Ok(Ran { words: words(&memory, out, words_of_buffer), outcome })
}

/// `d` = lane.
fn lane_id(c: &mut Code, d: u16) {
    c.special(d, SpecialReg::LaneId);
}

/// `d` = `d` + 1.
fn count_up(c: &mut Code, d: u16) -> u32 {
    c.lane(IntFn::Add, d, &[r(d), imm(1)])
}

const BOTH: [Model; 2] = [Model::Ipdom, Model::Stack];
