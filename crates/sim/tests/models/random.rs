//! Random programs with jumps wherever they like, against lanes that run alone: no masks, no joins.

use crate::common::*;
use lanescope_ir::kernel::TargetTable;
use lanescope_ir::op::control::{ControlOp, Indirect};
use lanescope_ir::op::int::{Cmp, IntFn};
use lanescope_ir::op::memory::{Space, Width};
use lanescope_ir::{InstId, Kernel, PredSrc, Src};
use lanescope_sim::GlobalMemory;

const REGS: usize = 4;
const FUEL: u32 = 5;
const THREADS: u32 = 83;
const BLOCKS: u32 = 3;
/// Slots: the program's registers from 0, its fuel, scratch, return addresses of the two subroutines, address and index of the output.
const LEFT: u16 = 4;
const SCRATCH: u16 = 5;
const RETURN: u16 = 6;
const ADDRESS: u16 = 8;
const GID: u16 = 10;
const OUTPUT: u16 = 12;

/// One step; jump targets are indices of steps.
#[derive(Clone, Debug)]
enum Step {
    Mix {
        d: usize,
        s: usize,
        k: u32,
    },
    /// Predicate 0 := bit `bit` of a register.
    Test {
        s: usize,
        bit: u32,
    },
    /// If predicate 0 is `when`.
    Branch {
        when: bool,
        to: usize,
    },
    Jump {
        to: usize,
    },
    Switch {
        s: usize,
        to: [usize; 4],
    },
    Call {
        function: usize,
        to: usize,
    },
    Return {
        function: usize,
    },
    /// If predicate 0 is `when`.
    Leave {
        when: bool,
    },
    /// One unit of fuel; without any left, the lane leaves.
    Burn,
    /// The registers are stored and the lane leaves.
    End,
}

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 24) as u32
    }
    fn below(&mut self, n: usize) -> usize {
        self.next() as usize % n
    }
}

/// A program: the main part, then two subroutines, of which the first may call the second.
fn program(seed: u64) -> Vec<Step> {
    let mut g = Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let sizes = [4 + g.below(9), 1 + g.below(4), 1 + g.below(3)];
    // Jumps name blocks first: (part, block).
    let mut steps: Vec<Step> = Vec::new();
    let mut starts: Vec<Vec<usize>> = Vec::new();
    let mut spans = Vec::new();
    for (part, &blocks) in sizes.iter().enumerate() {
        let mut own = Vec::new();
        let from = steps.len();
        for block in 0..blocks {
            own.push(steps.len());
            for _ in 0..1 + g.below(3) {
                steps.push(Step::Mix { d: g.below(REGS), s: g.below(REGS), k: g.next() });
            }
            steps.push(Step::Test { s: g.below(REGS), bit: 16 + g.below(12) as u32 });
            let when = g.below(2) == 0;
            let end = g.below(12);
            let aim = |g: &mut Rng, steps: &mut Vec<Step>| {
                let to = g.below(blocks + 1);
                if to <= block {
                    steps.push(Step::Burn);
                }
                to
            };
            match end {
                0..5 => {
                    let to = aim(&mut g, &mut steps);
                    steps.push(Step::Branch { when, to });
                }
                5 => {
                    let to = aim(&mut g, &mut steps);
                    steps.push(Step::Jump { to });
                }
                6 | 7 => {
                    let to = std::array::from_fn(|_| aim(&mut g, &mut steps));
                    steps.push(Step::Switch { s: g.below(REGS), to });
                }
                8 | 9 if part < 2 => {
                    let function = if part == 1 { 2 } else { 1 + g.below(2) };
                    if g.below(2) == 0 {
                        steps.push(Step::Branch { when, to: block + 1 });
                    }
                    steps.push(Step::Call { function, to: 0 });
                }
                10 if g.below(3) == 0 => steps.push(Step::Leave { when }),
                _ => {}
            }
        }
        own.push(steps.len());
        steps.push(if part == 0 { Step::End } else { Step::Return { function: part } });
        spans.push(from..steps.len());
        starts.push(own);
    }
    for (part, span) in spans.into_iter().enumerate() {
        for step in &mut steps[span] {
            match step {
                Step::Branch { to, .. } | Step::Jump { to } => *to = starts[part][*to],
                Step::Switch { to, .. } => to.iter_mut().for_each(|t| *t = starts[part][*t]),
                Step::Call { function, to } => *to = starts[*function][0],
                _ => {}
            }
        }
    }
    steps
}

/// Instructions of each step, in order.
fn length(step: &Step) -> u32 {
    match step {
        Step::Mix { .. } | Step::Branch { .. } | Step::Jump { .. } | Step::Return { .. } | Step::Leave { .. } => 1,
        Step::Test { .. } | Step::Call { .. } => 2,
        Step::Switch { .. } => 9,
        Step::Burn => 3,
        Step::End => 3,
    }
}

const START: u32 = 8 + REGS as u32;

/// The kernel. All threads do as thread `like`, if given.
fn compile(steps: &[Step], like: Option<u32>) -> Kernel {
    let mut place = vec![START];
    for s in steps {
        place.push(place.last().unwrap() + length(s));
    }
    let mut c = Code::default();
    match like {
        None => c.gid(GID, SCRATCH),
        Some(gid) => {
            for _ in 0..5 {
                c.lane(IntFn::Mov, GID, &[imm(gid)]);
            }
        }
    }
    c.lane(IntFn::Mad, ADDRESS, &[r(GID), imm(REGS as u32), imm(0)]);
    c.lane(IntFn::Mov, LEFT, &[imm(FUEL)]);
    c.lane(IntFn::Mov, SCRATCH, &[imm(0)]);
    for i in 0..REGS as u16 {
        c.lane(IntFn::Mad, i, &[r(GID), imm(2654435761), imm(u32::from(i) * 77)]);
    }
    assert_eq!(c.here(), START);
    let mut tables = Vec::new();
    let reg = |i: usize| r(i as u16);
    let when = |w: bool| if w { p(0) } else { p(0).not() };
    for (i, s) in steps.iter().enumerate() {
        assert_eq!(c.here(), place[i]);
        match s {
            Step::Mix { d, s, k } => {
                c.lane(IntFn::Mad, *d as u16, &[reg(*s), imm(1664525), imm(*k)]);
            }
            Step::Test { s, bit } => {
                c.lane(IntFn::And, SCRATCH, &[reg(*s), imm(1 << bit)]);
                c.set(Cmp::Ne, 0, r(SCRATCH), imm(0));
            }
            Step::Branch { when: w, to } => {
                c.branch(when(*w), place[*to]);
            }
            Step::Jump { to } => {
                c.branch(PredSrc::TRUE, place[*to]);
            }
            Step::Switch { s, to } => {
                c.lane(IntFn::ShrU, SCRATCH, &[reg(*s), imm(30)]);
                c.lane(IntFn::Mov, OUTPUT, &[imm(place[to[0]] * 16)]);
                for (k, &t) in to.iter().enumerate().skip(1) {
                    c.set(Cmp::Eq, 1, r(SCRATCH), imm(k as u32));
                    c.lane_if(p(1), IntFn::Mov, OUTPUT, &[imm(place[t] * 16)]);
                }
                let target = Indirect { reg: [r(OUTPUT), Src::ZERO], base: 0x1000 };
                let branch = c.control(PredSrc::TRUE, ControlOp::BranchIndirect { target, cond: PredSrc::TRUE });
                let targets = to.iter().map(|&t| InstId(place[t])).collect();
                tables.push(TargetTable { branch: InstId(branch), targets });
            }
            Step::Call { function, to } => {
                c.lane(IntFn::Mov, RETURN + *function as u16 - 1, &[imm(0x1000 + place[i + 1] * 16)]);
                let target = InstId(place[*to]);
                c.control(PredSrc::TRUE, ControlOp::Call { target, cond: PredSrc::TRUE });
            }
            Step::Return { function } => {
                let target = Indirect { reg: [r(RETURN + *function as u16 - 1), Src::ZERO], base: 0 };
                c.control(PredSrc::TRUE, ControlOp::Return { target, cond: PredSrc::TRUE });
            }
            Step::Leave { when: w } => {
                c.exit(when(*w));
            }
            Step::Burn => {
                c.lane(IntFn::Add, LEFT, &[r(LEFT), imm(u32::MAX)]);
                c.set(Cmp::Eq, 1, r(LEFT), imm(0));
                c.exit(p(1));
            }
            Step::End => {
                c.element(OUTPUT, ADDRESS, 4, 0);
                c.store(Space::Global, Width::B128, 0, at(OUTPUT));
                c.exit(PredSrc::TRUE);
            }
        }
    }
    let mut k = c.kernel();
    k.targets = tables;
    k.arch = "ptx".to_owned();
    k
}

/// One thread alone. What it stores, if anything; `counts` gets how often it executes each instruction.
fn alone(steps: &[Step], gid: u32, counts: &mut [u64]) -> Option<[u32; REGS]> {
    let mut place = vec![START as usize];
    for s in steps {
        place.push(place.last().unwrap() + length(s) as usize);
    }
    counts[..START as usize].iter_mut().for_each(|c| *c += 1);
    let mut regs: [u32; REGS] = std::array::from_fn(|i| gid.wrapping_mul(2654435761).wrapping_add(i as u32 * 77));
    let (mut fuel, mut flag, mut at, mut back) = (FUEL, false, 0, [0usize; 3]);
    loop {
        counts[place[at]..place[at + 1]].iter_mut().for_each(|c| *c += 1);
        let mut next = at + 1;
        match &steps[at] {
            Step::Mix { d, s, k } => regs[*d] = regs[*s].wrapping_mul(1664525).wrapping_add(*k),
            Step::Test { s, bit } => flag = regs[*s] >> bit & 1 != 0,
            Step::Branch { when, to } => {
                if flag == *when {
                    next = *to;
                }
            }
            Step::Jump { to } => next = *to,
            Step::Switch { s, to } => next = to[(regs[*s] >> 30) as usize],
            Step::Call { function, to } => {
                back[*function] = at + 1;
                next = *to;
            }
            Step::Return { function } => next = back[*function],
            Step::Leave { when } => {
                if flag == *when {
                    return None;
                }
            }
            Step::Burn => {
                fuel -= 1;
                if fuel == 0 {
                    return None;
                }
            }
            Step::End => return Some(regs),
        }
        at = next;
    }
}

#[test]
fn lanes_do_what_they_do_alone() {
    let (mut stored, mut gone, mut split, mut joined) = (0, 0, 0u64, 0u64);
    for seed in 1..400u64 {
        let steps = program(seed);
        let kernel = compile(&steps, None);
        let n = kernel.instructions.len();
        let threads = THREADS * BLOCKS;
        let mut want = vec![0; threads as usize * REGS];
        // Of each instruction: executions by all threads, and what no order of execution can go below.
        let (mut total, mut least) = (vec![0u64; n], vec![0u64; n]);
        for block in 0..BLOCKS {
            for first in (0..THREADS).step_by(32) {
                let mut most = vec![0u64; n];
                for t in first..THREADS.min(first + 32) {
                    let gid = block * THREADS + t;
                    let mut counts = vec![0; n];
                    if let Some(regs) = alone(&steps, gid, &mut counts) {
                        want[gid as usize * REGS..][..REGS].copy_from_slice(&regs);
                        stored += 1;
                    } else {
                        gone += 1;
                    }
                    for i in 0..n {
                        total[i] += counts[i];
                        most[i] = most[i].max(counts[i]);
                    }
                }
                least.iter_mut().zip(&most).for_each(|(l, m)| *l += m);
            }
        }
        for model in crate::BOTH {
            let results = [1, 2, 7].map(|workers| {
                let mut m = GlobalMemory::new();
                let out = m.alloc("out", &vec![0; want.len() * 4]).unwrap();
                let mut l = launch(BLOCKS, THREADS, &[out], workers);
                l.options.model = model;
                l.options.max_inst = 10_000_000;
                let o = run(&kernel, &l, &mut m).unwrap_or_else(|e| panic!("seed {seed}, {model}: {e}"));
                (o, words(&m, out, want.len() as u64))
            });
            assert!(results[0] == results[1] && results[0] == results[2], "seed {seed}: threads");
            let (o, got) = &results[0];
            assert!(*got == want, "seed {seed}, {model}: registers");
            for (i, c) in o.profile.counts.iter().enumerate() {
                assert_eq!(c.thread_inst_executed, total[i], "seed {seed}, {model}: lanes of instruction {i}");
                assert!(c.inst_executed >= least[i] && c.inst_executed <= total[i], "seed {seed}: issues of {i}");
                joined += u64::from(c.inst_executed == least[i]);
            }
            split += o.profile.totals().divergent_branches;
        }
    }
    assert!(stored > 10_000 && gone > 10_000 && split > 10_000 && joined > 10_000, "{stored} {gone} {split} {joined}");
}

#[test]
fn what_is_uniform_stays_together() {
    for seed in 1..200u64 {
        let steps = program(seed);
        let kernel = compile(&steps, Some(5));
        let mut counts = vec![0; kernel.instructions.len()];
        alone(&steps, 5, &mut counts);
        for model in crate::BOTH {
            let mut m = GlobalMemory::new();
            let out = m.alloc("out", &[0; 4096]).unwrap();
            let mut l = launch(1, 32, &[out], 1);
            l.options.model = model;
            let o = run(&kernel, &l, &mut m).unwrap();
            for (got, &alone) in o.profile.counts.iter().zip(&counts) {
                assert_eq!((got.inst_executed, got.thread_inst_executed), (alone, alone * 32));
            }
        }
    }
}
