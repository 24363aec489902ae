//! Warps of 64 lanes, and of 32 for comparison: random structured programs against a walk over the program's tree, in
//! which each thread has registers of its own and a warp is a list of threads. Registers of all threads and the counters
//! of all instructions must agree; what threads compute must not depend on the size.

use crate::common::*;
use lanescope_ir::op::control::{ControlOp, WarpSyncMode};
use lanescope_ir::op::int::{Cmp, IntFn};
use lanescope_ir::op::memory::{Space, Width};
use lanescope_ir::op::warp::{BlockBarrierMode, SpecialReg, VoteMode, WarpOp};
use lanescope_ir::{LaneCounts, LaneMask, Op, PredSrc, Slot};
use lanescope_sim::{GlobalMemory, Model, SimError, TraceRequest};

const REGS: u16 = 4;
const BLOCKS: u32 = 3;
/// Slots: index of the thread, scratch, counters of loops, address of the output.
const GID: u16 = 8;
const SCRATCH: u16 = 9;
const TRIPS: u16 = 10;
const OUTPUT: u16 = 28;
/// Size of the kernel's start.
const START: usize = 5 + REGS as usize;

#[derive(Clone, Debug)]
enum Node {
    /// `d = s * 1664525 + k`, if a bit of a register is set or there is no condition.
    Mix(Option<(u16, u32)>, u16, u16, u32),
    /// If the bit of the register is set; then, else.
    If(u16, u32, Vec<Node>, Vec<Node>),
    /// 1 + 2 bits of the register trips; number of the loop.
    Loop(u16, u16, Vec<Node>),
    /// If the 3 bits from this one are all set.
    Leave(u16, u32),
    Barrier,
}

struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 24) as u32 % n
    }
}

fn nodes(g: &mut Rng, depth: u32, loops: &mut u16) -> Vec<Node> {
    let mut out = Vec::new();
    for _ in 0..1 + g.below(4) {
        let (reg, bit) = (g.below(REGS.into()) as u16, 8 + g.below(20));
        out.push(match g.below(10) {
            0..3 if depth > 0 => Node::If(reg, bit, nodes(g, depth - 1, loops), nodes(g, depth - 1, loops)),
            3 | 4 if depth > 0 && *loops < 8 => {
                *loops += 1;
                Node::Loop(reg, *loops - 1, nodes(g, depth - 1, loops))
            }
            5 if g.below(4) == 0 => Node::Leave(reg, bit),
            n => {
                let condition = (n == 6).then_some((g.below(REGS.into()) as u16, bit));
                Node::Mix(condition, g.below(REGS.into()) as u16, reg, g.below(u32::MAX))
            }
        });
    }
    out
}

fn test(c: &mut Code, reg: u16, bits: u32) {
    c.lane(IntFn::And, SCRATCH, &[r(reg), imm(bits)]);
    c.set(Cmp::Eq, 0, r(SCRATCH), imm(bits));
}

fn emit(c: &mut Code, nodes: &[Node]) {
    for n in nodes {
        match n {
            Node::Mix(condition, d, s, k) => {
                if let Some((reg, bit)) = condition {
                    test(c, *reg, 1 << bit);
                }
                let guard = if condition.is_some() { p(0) } else { PredSrc::TRUE };
                c.lane_if(guard, IntFn::Mad, *d, &[r(*s), imm(1664525), imm(*k)]);
            }
            Node::If(reg, bit, yes, no) => {
                test(c, *reg, 1 << bit);
                let skip = c.branch(p(0).not(), 0);
                emit(c, yes);
                let over = c.branch(PredSrc::TRUE, 0);
                c.land(skip);
                emit(c, no);
                c.land(over);
            }
            Node::Loop(reg, number, body) => {
                let count = TRIPS + number;
                c.lane(IntFn::ShrU, count, &[r(*reg), imm(30)]);
                let top = c.here();
                emit(c, body);
                c.lane(IntFn::Add, count, &[r(count), imm(u32::MAX)]);
                c.set(Cmp::Ne, 1, r(count), imm(u32::MAX));
                c.branch(p(1), top);
            }
            Node::Leave(reg, bit) => {
                test(c, *reg, 7 << bit);
                c.exit(p(0));
            }
            Node::Barrier => {
                let (mode, id) = (BlockBarrierMode::Sync, imm(0));
                c.push(PredSrc::TRUE, Op::Warp(WarpOp::BlockBarrier { mode, id, threads: None, pred: PredSrc::TRUE }));
            }
        }
    }
}

fn compile(nodes: &[Node]) -> lanescope_ir::Kernel {
    let mut c = Code::default();
    c.gid(GID, SCRATCH);
    for i in 0..REGS {
        c.lane(IntFn::Mad, i, &[r(GID), imm(2654435761), imm(u32::from(i) * 77)]);
    }
    assert_eq!(c.insts.len(), START);
    emit(&mut c, nodes);
    c.element(OUTPUT, GID, 16, 0);
    c.store(Space::Global, Width::B128, 0, at(OUTPUT));
    c.exit(PredSrc::TRUE);
    let mut k = c.kernel();
    k.arch = "ptx".to_owned();
    k
}

/// The walk: threads of one warp, and what they count.
struct Walk {
    size: u64,
    threads: Vec<[u32; REGS as usize]>,
    gone: u64,
    counts: Vec<LaneCounts>,
    at: usize,
}

impl Walk {
    /// The group issues the next instruction; `on` is how many have their guard on.
    fn issue(&mut self, group: &[usize], on: usize) {
        if !group.is_empty() {
            let c = &mut self.counts[self.at];
            c.inst_executed += 1;
            c.thread_inst_executed += group.len() as u64;
            c.thread_inst_executed_pred_on += on as u64;
            c.lanes_missing += self.size - self.threads.len() as u64;
            c.lanes_exited += self.gone;
        }
        self.at += 1;
    }

    fn all(&mut self, group: &[usize], times: usize) {
        (0..times).for_each(|_| self.issue(group, group.len()));
    }

    fn having(&self, group: &[usize], reg: u16, bits: u32) -> (Vec<usize>, Vec<usize>) {
        group.iter().partition(|&&t| self.threads[t][usize::from(reg)] & bits == bits)
    }

    /// Those who come to the end.
    fn nodes(&mut self, nodes: &[Node], mut group: Vec<usize>) -> Vec<usize> {
        for n in nodes {
            match n {
                Node::Mix(condition, d, s, k) => {
                    let mut doing = group.clone();
                    if let Some((reg, bit)) = condition {
                        self.all(&group, 2);
                        doing = self.having(&group, *reg, 1 << bit).0;
                    }
                    self.issue(&group, doing.len());
                    for t in doing {
                        let x = self.threads[t][usize::from(*s)].wrapping_mul(1664525).wrapping_add(*k);
                        self.threads[t][usize::from(*d)] = x;
                    }
                }
                Node::If(reg, bit, yes, no) => {
                    self.all(&group, 2);
                    let (doing, not) = self.having(&group, *reg, 1 << bit);
                    self.issue(&group, not.len());
                    // Lanes that leave in the side that runs first are gone for the other: fewer lanes first, or those who stay.
                    let start = self.at;
                    let sizes = (lines(yes) + 1, lines(no));
                    let mut rest = Vec::new();
                    let mut sides = [(start, yes, doing), (start + sizes.0, no, not)];
                    if sides[1].2.len() < sides[0].2.len() && !sides[1].2.is_empty() {
                        sides.reverse();
                    }
                    for (at, nodes, side) in sides {
                        self.at = at;
                        if side.is_empty() {
                            continue;
                        }
                        let side = self.nodes(nodes, side);
                        if at == start {
                            self.all(&side, 1);
                        }
                        rest.extend(side);
                    }
                    self.at = start + sizes.0 + sizes.1;
                    group = rest;
                }
                Node::Loop(reg, _, body) => {
                    self.all(&group, 1);
                    let top = self.at;
                    let trips: Vec<u32> = self.threads.iter().map(|t| (t[usize::from(*reg)] >> 30) + 1).collect();
                    let (mut inside, mut out) = (group, Vec::new());
                    let mut turn = 0;
                    while !inside.is_empty() {
                        turn += 1;
                        self.at = top;
                        inside = self.nodes(body, inside);
                        self.all(&inside, 2);
                        let (stay, leave): (Vec<usize>, Vec<usize>) = inside.iter().partition(|&&t| trips[t] > turn);
                        self.issue(&inside, stay.len());
                        out.extend(leave);
                        inside = stay;
                    }
                    self.at = top + lines(body) + 3;
                    group = out;
                }
                Node::Leave(reg, bit) => {
                    self.all(&group, 2);
                    let (leave, stay) = self.having(&group, *reg, 7 << bit);
                    self.issue(&group, leave.len());
                    self.gone += leave.len() as u64;
                    group = stay;
                }
                Node::Barrier => self.all(&group, 1),
            }
        }
        group
    }
}

/// Instructions of a list of nodes.
fn lines(nodes: &[Node]) -> usize {
    let one = |n: &Node| match n {
        Node::Mix(condition, ..) => 1 + 2 * usize::from(condition.is_some()),
        Node::If(_, _, yes, no) => 4 + lines(yes) + lines(no),
        Node::Loop(_, _, body) => 4 + lines(body),
        Node::Leave(..) => 3,
        Node::Barrier => 1,
    };
    nodes.iter().map(one).sum()
}

/// What all threads end with (zero if they leave), and all counters.
fn walk(nodes: &[Node], n: usize, block: u32, size: u32) -> (Vec<u32>, Vec<LaneCounts>) {
    let mut out = vec![0; (BLOCKS * block * u32::from(REGS)) as usize];
    let mut counts = vec![LaneCounts::default(); n];
    for b in 0..BLOCKS {
        for first in (0..block).step_by(size as usize) {
            let gid = |t: usize| b * block + first + t as u32;
            let alive = size.min(block - first) as usize;
            let regs = |t| std::array::from_fn(|i| gid(t).wrapping_mul(2654435761).wrapping_add(i as u32 * 77));
            let threads = (0..alive).map(regs).collect();
            let mut w = Walk { size: size.into(), threads, gone: 0, counts, at: 0 };
            let all: Vec<usize> = (0..alive).collect();
            w.all(&all, START);
            let end = w.nodes(nodes, all);
            w.at = n - 3;
            w.all(&end, 3);
            for t in end {
                out[gid(t) as usize * usize::from(REGS)..][..usize::from(REGS)].copy_from_slice(&w.threads[t]);
            }
            counts = w.counts;
        }
    }
    (out, counts)
}

#[test]
fn both_sizes_count_what_a_walk_over_the_program_counts() {
    let (mut split, mut differ) = (0, 0);
    for seed in 1..250u64 {
        let mut g = Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut program = nodes(&mut g, 3, &mut 0);
        if seed % 3 == 0 {
            program.push(Node::Barrier);
            program.extend(nodes(&mut g, 2, &mut 4));
        }
        let block = [64, 83, 128, 1 + g.below(300)][seed as usize % 4];
        let kernel = compile(&program);
        let mut issues = Vec::new();
        for (size, model) in [(32, Model::Ipdom), (64, Model::Ipdom), (64, Model::Stack)] {
            let (want, mut counts) = walk(&program, kernel.instructions.len(), block, size);
            for workers in [1, 2] {
                let mut m = GlobalMemory::new();
                let out = m.alloc("out", &vec![0; want.len() * 4]).unwrap();
                let mut l = launch(BLOCKS, block, &[out], workers);
                (l.options.model, l.options.warp_size) = (model, size);
                let o = run(&kernel, &l, &mut m).unwrap_or_else(|e| panic!("seed {seed}, {size}: {e}"));
                assert!(words(&m, out, want.len() as u64) == want, "seed {seed}, {model}, {size}: registers");
                assert_eq!(o.profile.shape.warp_size, size);
                for (i, (got, want)) in o.profile.counts.iter().zip(&mut counts).enumerate() {
                    (want.sectors, want.sectors_ideal) = (got.sectors, got.sectors_ideal);
                    assert_eq!(got, want, "seed {seed}, {model}, {size}: instruction {i} of {program:?}");
                }
                let t = o.profile.totals();
                split += t.divergent_branches;
                issues.push(t.inst_executed);
            }
        }
        differ += u32::from(issues[0] != issues[2]);
    }
    assert!(split > 1000 && differ > 200, "{split} {differ}");
}

/// `out[gid] = f` of a special register.
fn special(reg: SpecialReg, block: u32) -> Vec<u32> {
    let mut c = Code::default();
    c.gid(GID, SCRATCH);
    c.special(0, reg);
    c.element(OUTPUT, GID, 4, 0);
    c.store(Space::Global, Width::B32, 0, at(OUTPUT));
    c.exit(PredSrc::TRUE);
    let mut m = GlobalMemory::new();
    let out = m.alloc("out", &vec![0; block as usize * 4]).unwrap();
    let mut l = launch(1, block, &[out], 1);
    (l.options.model, l.options.warp_size) = (Model::Ipdom, 64);
    run(&c.kernel(), &l, &mut m).unwrap();
    words(&m, out, block.into())
}

#[test]
fn lane_and_warp_numbers_are_those_of_64() {
    assert_eq!(special(SpecialReg::LaneId, 130), (0..130).map(|t| t % 64).collect::<Vec<_>>());
    assert_eq!(special(SpecialReg::WarpId, 130), (0..130).map(|t| t / 64).collect::<Vec<_>>());
    assert_eq!(special(SpecialReg::Tid(0), 130), (0..130).collect::<Vec<_>>());
}

#[test]
fn errors_and_traces_name_lanes_of_64() {
    let mut c = Code::default();
    c.gid(GID, SCRATCH);
    c.set(Cmp::Lt, 0, imm(99), r(GID));
    let skip = c.branch(p(0), 0);
    c.lane(IntFn::Mov, 0, &[imm(1)]);
    c.land(skip);
    c.element(OUTPUT, GID, 4, 0);
    c.store(Space::Global, Width::B32, 0, at(OUTPUT));
    c.exit(PredSrc::TRUE);
    let kernel = c.kernel();
    let run = |bytes: usize, trace: Option<TraceRequest>| {
        let mut m = GlobalMemory::new();
        let out = m.alloc("out", &vec![0; bytes]).unwrap();
        let mut l = launch(1, 120, &[out], 1);
        (l.options.model, l.options.warp_size, l.options.traces) = (Model::Ipdom, 64, trace.into_iter().collect());
        lanescope_sim::simulate(&kernel, &l, &mut m, None)
    };
    let Err(SimError::OutOfBounds { access, .. }) = run(110 * 4, None) else { panic!() };
    assert_eq!((access.lane, access.thread), (110 - 64, [110, 0, 0]));
    assert_eq!(access.lanes, LaneMask::first(56) - LaneMask::first(46));
    let trace = run(120 * 4, Some(TraceRequest { block: 0, warp: 1, max_steps: 100 })).unwrap().traces.remove(0);
    assert_eq!(trace.lanes, LaneMask::first(56));
    let alone = LaneMask::first(36);
    assert!(trace.steps.iter().any(|s| s.active == alone), "{:?}", trace.steps);
}

#[test]
fn code_that_counts_on_32_lanes_is_refused() {
    let refused = |op: Op, arch: &str, warp_size: u32| {
        let mut c = Code::default();
        c.push(PredSrc::TRUE, op);
        c.exit(PredSrc::TRUE);
        let mut kernel = c.kernel();
        (kernel.arch, kernel.warp_size) = (arch.to_owned(), warp_size);
        let mut l = launch(1, 64, &[], 1);
        (l.options.model, l.options.warp_size) = (Model::Ipdom, 64);
        if arch.starts_with("sm_") {
            l.options.model = Model::Barrier;
        }
        run(&kernel, &l, &mut GlobalMemory::new()).map(|_| ())
    };
    let vote = WarpOp::Vote { mode: VoteMode::Any, dst: Some(Slot(0)), pdst: None, src: PredSrc::TRUE };
    let Err(SimError::WrongWarpSize { inst: Some(0), why, .. }) = refused(Op::Warp(vote), "ptx", 0) else { panic!() };
    assert!(why.ends_with("has a set of lanes in 32 bits"), "{why}");
    let special = WarpOp::Special { dst: [Some(Slot(0)), None], reg: [SpecialReg::LaneMaskLt, SpecialReg::Zero] };
    assert!(refused(Op::Warp(special), "ptx", 0).is_err());
    let sync = ControlOp::WarpSync { mode: WarpSyncMode::Mask(imm(3)), cond: PredSrc::TRUE };
    assert!(refused(Op::Control(sync), "ptx", 0).is_err());
    assert!(refused(Op::Nop, "sm_90", 0).unwrap_err().to_string().contains("compiled for warps of 32"));
    assert!(refused(Op::Nop, "ptx", 32).unwrap_err().to_string().contains("prepared for warps of 32"));
    assert_eq!(refused(Op::Nop, "ptx", 64), Ok(()));
}
