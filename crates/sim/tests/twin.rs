//! Random structured programs, run by the engine and by a naive twin: a walk over the program's tree with masks, registers in
//! a map, one lane after the other. Registers of all threads and the counters of all instructions must agree.

mod common;

use std::collections::HashMap;

use common::*;
use lanescope_ir::op::int::{Cmp, IntFn};
use lanescope_ir::op::memory::{Space, Width};
use lanescope_ir::op::warp::{ShuffleMode, SpecialReg, VoteMode, WarpOp};
use lanescope_ir::op::{LaneFn, LaneOp};
use lanescope_ir::{Op, Pred, PredSrc, Slot, Src, SrcMod};
use lanescope_sim::GlobalMemory;

const REGS: u16 = 8;
const PREDS: u16 = 4;
const TABLE: usize = 64;

/// A small generator of pseudo-random numbers.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 24) as u32
    }
    fn below(&mut self, n: u32) -> u32 {
        self.next() % n
    }
}

#[derive(Clone, Debug)]
enum Arg {
    Reg(u16, SrcMod),
    Imm(u32),
}

#[derive(Clone, Debug)]
enum Simple {
    Add(u16, Arg, Arg),
    Mad(u16, Arg, Arg, Arg),
    Xor(u16, Arg, Arg),
    Shr(u16, Arg, Arg),
    Sel(u16, Arg, Arg, (u16, bool)),
    Less(u16, Arg, Arg),
    Ballot(u16, (u16, bool)),
    Down(u16, Arg, u32),
    Table(u16, u16),
    KeepShared(u16),
    FetchShared(u16),
}

/// A predicate, negated or not.
type Guard = Option<(u16, bool)>;

#[derive(Clone, Debug)]
enum Node {
    Do(Guard, Simple),
    If((u16, bool), Vec<Node>, Vec<Node>),
    /// So many trips: register modulo the number, plus one.
    Loop(u16, u32, u16, Vec<Node>),
    Leave((u16, bool)),
}

fn arg(g: &mut Rng) -> Arg {
    const MODS: [SrcMod; 5] = [SrcMod::None, SrcMod::None, SrcMod::Neg, SrcMod::Not, SrcMod::FAbs];
    match g.below(4) {
        0 => Arg::Imm(if g.below(2) == 0 { g.below(40) } else { g.next() }),
        _ => Arg::Reg(g.below(REGS.into()) as u16, MODS[g.below(5) as usize]),
    }
}

fn pred(g: &mut Rng) -> (u16, bool) {
    (g.below(PREDS.into()) as u16, g.below(2) == 0)
}

fn simple(g: &mut Rng) -> Simple {
    let d = g.below(REGS.into()) as u16;
    match g.below(13) {
        0 | 1 => Simple::Add(d, arg(g), arg(g)),
        2 | 3 => Simple::Mad(d, arg(g), arg(g), arg(g)),
        4 => Simple::Xor(d, arg(g), arg(g)),
        5 => Simple::Shr(d, arg(g), arg(g)),
        6 => Simple::Sel(d, arg(g), arg(g), pred(g)),
        7 | 8 => Simple::Less(g.below(PREDS.into()) as u16, arg(g), arg(g)),
        9 => Simple::Ballot(d, pred(g)),
        10 => Simple::Down(d, arg(g), g.below(32)),
        11 => Simple::Table(d, g.below(REGS.into()) as u16),
        _ if g.below(2) == 0 => Simple::KeepShared(d),
        _ => Simple::FetchShared(d),
    }
}

fn nodes(g: &mut Rng, depth: u32, loops: &mut u16) -> Vec<Node> {
    let n = 1 + g.below(6);
    let mut out = Vec::new();
    for _ in 0..n {
        out.push(match g.below(10) {
            0 | 1 if depth > 0 => Node::If(pred(g), nodes(g, depth - 1, loops), nodes(g, depth - 1, loops)),
            2 if depth > 0 && *loops < 4 => {
                let index = *loops;
                *loops += 1;
                Node::Loop(g.below(REGS.into()) as u16, 1 + g.below(6), index, nodes(g, depth - 1, loops))
            }
            3 if g.below(8) == 0 => Node::Leave(pred(g)),
            _ => Node::Do((g.below(3) == 0).then(|| pred(g)), simple(g)),
        });
    }
    out
}

// Code. Registers 0.. are the program's; 10.. are scratch; 16 + 2 i and 17 + 2 i count loop i; 28, 29 hold the output address.
const TRIPS: u16 = 16;

fn source(a: &Arg) -> Src {
    match *a {
        Arg::Reg(i, m) => r(i).with(m),
        Arg::Imm(x) => imm(x),
    }
}

fn guard((i, negated): (u16, bool)) -> PredSrc {
    PredSrc { pred: Some(Pred(i)), negated }
}

fn emit_simple(c: &mut Code, g: PredSrc, s: &Simple) {
    let first = c.insts.len();
    match s {
        Simple::Add(d, a, b) => c.lane(IntFn::Add, *d, &[source(a), source(b)]),
        Simple::Mad(d, a, b, e) => c.lane(IntFn::Mad, *d, &[source(a), source(b), source(e)]),
        Simple::Xor(d, a, b) => c.lane(IntFn::Xor, *d, &[source(a), source(b)]),
        Simple::Shr(d, a, b) => c.lane(IntFn::ShrU, *d, &[source(a), source(b)]),
        Simple::Sel(d, a, b, p) => {
            let mut op = LaneOp::new(LaneFn::Int(IntFn::Sel));
            op.dst[0] = Some(Slot(*d));
            op.src[..2].copy_from_slice(&[source(a), source(b)]);
            op.psrc[0] = guard(*p);
            c.push(PredSrc::TRUE, Op::Lane(op))
        }
        Simple::Less(d, a, b) => c.set(Cmp::Lt, *d, source(a), source(b)),
        Simple::Ballot(d, p) => {
            let op = WarpOp::Vote { mode: VoteMode::Any, dst: Some(Slot(*d)), pdst: None, src: guard(*p) };
            c.push(PredSrc::TRUE, Op::Warp(op))
        }
        Simple::Down(d, a, by) => {
            let mode = ShuffleMode::Down;
            let op = WarpOp::Shuffle {
                mode,
                dst: Some(Slot(*d)),
                pdst: None,
                src: source(a),
                lane: imm(*by),
                clamp: imm(31),
            };
            c.push(PredSrc::TRUE, Op::Warp(op))
        }
        Simple::Table(d, i) => {
            c.lane(IntFn::And, 10, &[r(*i), imm(TABLE as u32 - 1)]);
            c.element(12, 10, 4, 2);
            c.load(Space::Global, Width::B32, *d, at(12))
        }
        Simple::KeepShared(s) => c.store(Space::Shared, Width::B32, *s, at32(11)),
        Simple::FetchShared(d) => c.load(Space::Shared, Width::B32, *d, at32(11)),
    };
    for i in &mut c.insts[first..] {
        i.guard = g;
    }
}

fn emit(c: &mut Code, nodes: &[Node], bar: u8) {
    for n in nodes {
        match n {
            Node::Do(g, s) => emit_simple(c, g.map_or(PredSrc::TRUE, guard), s),
            Node::Leave(p) => {
                c.exit(guard(*p));
            }
            Node::If(p, yes, no) => {
                let sync = c.bssy(bar);
                let skip = c.branch(guard(*p).not(), 0);
                emit(c, yes, bar + 1);
                let over = c.branch(PredSrc::TRUE, 0);
                c.land(skip);
                emit(c, no, bar + 1);
                c.land(over);
                c.land(sync);
                c.bsync(bar);
            }
            Node::Loop(reg, modulo, i, body) => {
                let count = TRIPS + 2 * i;
                // register modulo a small number, by multiplication: (x * m) >> 32 of the hashed register.
                c.lane(IntFn::Mad, count, &[r(*reg), imm(2654435761), imm(0)]);
                let high = IntFn::MadHi { signed: false, neg_c: false };
                c.lane(high, count, &[r(count), imm(*modulo), imm(0), imm(0)]);
                c.lane(IntFn::Add, count, &[r(count), imm(1)]);
                let sync = c.bssy(bar);
                let top = c.here();
                emit(c, body, bar + 1);
                c.lane(IntFn::Add, count, &[r(count), imm(u32::MAX)]);
                c.set(Cmp::Ne, PREDS, r(count), imm(0));
                c.branch(p(PREDS), top);
                c.land(sync);
                c.bsync(bar);
            }
        }
    }
}

/// The twin: state of one warp.
struct Twin {
    regs: HashMap<(u32, u16), u32>,
    preds: HashMap<(u32, u16), bool>,
    shared: HashMap<u32, u32>,
    table: Vec<u32>,
    live: u32,
    issues: Vec<u64>,
    lanes: Vec<u64>,
    on: Vec<u64>,
    /// Instructions whose issues depend on how parked groups merge.
    unsure: Vec<bool>,
    at: usize,
}

fn list(mask: u32) -> Vec<u32> {
    (0..32).filter(|l| mask >> l & 1 != 0).collect()
}

impl Twin {
    fn reg(&self, l: u32, i: u16) -> u32 {
        self.regs.get(&(l, i)).copied().unwrap_or(0)
    }
    fn arg(&self, l: u32, a: &Arg) -> u32 {
        match *a {
            Arg::Imm(x) => x,
            Arg::Reg(i, m) => match m {
                SrcMod::Neg => self.reg(l, i).wrapping_neg(),
                SrcMod::Not => !self.reg(l, i),
                SrcMod::FAbs => self.reg(l, i) & 0x7fff_ffff,
                _ => self.reg(l, i),
            },
        }
    }
    fn pred(&self, l: u32, (i, negated): (u16, bool)) -> bool {
        self.preds.get(&(l, i)).copied().unwrap_or(false) != negated
    }
    fn those(&self, mask: u32, p: (u16, bool)) -> u32 {
        list(mask).into_iter().filter(|&l| self.pred(l, p)).fold(0, |m, l| m | 1 << l)
    }
    /// Counts the next `n` instructions as issued by `mask`, `on` of which execute.
    fn issue(&mut self, n: usize, mask: u32, on: u32) {
        for i in self.at..self.at + n {
            if mask != 0 {
                self.issues[i] += 1;
                self.lanes[i] += u64::from(mask.count_ones());
                self.on[i] += u64::from(on.count_ones());
            }
        }
        self.at += n;
    }

    fn simple(&mut self, exec: u32, s: &Simple) {
        let before: Vec<u32> = (0..32)
            .map(|l| match s {
                Simple::Down(_, a, _) => self.arg(l, a),
                _ => 0,
            })
            .collect();
        let ballot = match s {
            Simple::Ballot(_, p) => self.those(exec, *p),
            _ => 0,
        };
        for l in list(exec) {
            let a = |x: &Arg| self.arg(l, x);
            let (d, value) = match s {
                Simple::Add(d, x, y) => (*d, a(x).wrapping_add(a(y))),
                Simple::Mad(d, x, y, z) => (*d, a(x).wrapping_mul(a(y)).wrapping_add(a(z))),
                Simple::Xor(d, x, y) => (*d, a(x) ^ a(y)),
                Simple::Shr(d, x, y) => (*d, a(x).checked_shr(a(y)).unwrap_or(0)),
                Simple::Sel(d, x, y, p) => (*d, if self.pred(l, *p) { a(x) } else { a(y) }),
                Simple::Less(d, x, y) => {
                    let less = a(x) < a(y);
                    self.preds.insert((l, *d), less);
                    continue;
                }
                Simple::Ballot(d, _) => (*d, ballot),
                Simple::Down(d, _, by) => {
                    let from = l + by;
                    (
                        *d,
                        if from > 31 {
                            before[l as usize]
                        } else if exec >> from & 1 != 0 {
                            before[from as usize]
                        } else {
                            0
                        },
                    )
                }
                Simple::Table(d, i) => (*d, self.table[self.reg(l, *i) as usize % TABLE]),
                Simple::KeepShared(i) => {
                    let x = self.reg(l, *i);
                    self.shared.insert(l, x);
                    continue;
                }
                Simple::FetchShared(d) => (*d, self.shared.get(&l).copied().unwrap_or(0)),
            };
            self.regs.insert((l, d), value);
        }
    }

    fn run(&mut self, nodes: &[Node], mask: u32) {
        for n in nodes {
            let mask = mask & self.live;
            match n {
                Node::Do(g, s) => {
                    let exec = g.map_or(mask, |g| self.those(mask, g));
                    let n = if matches!(s, Simple::Table(..)) { 3 } else { 1 };
                    self.issue(n, mask, exec);
                    self.simple(exec, s);
                }
                Node::Leave(p) => {
                    let gone = self.those(mask, *p);
                    self.issue(1, mask, gone);
                    self.live &= !gone;
                }
                Node::If(p, yes, no) => {
                    self.issue(1, mask, mask);
                    let to_yes = self.those(mask, *p);
                    let to_no = mask & !to_yes;
                    self.issue(1, mask, to_no);
                    self.run(yes, to_yes);
                    self.issue(1, to_yes & self.live, to_yes & self.live);
                    self.run(no, to_no);
                    let at = self.at;
                    self.issue(1, to_yes & self.live, to_yes & self.live);
                    self.at = at;
                    self.issue(1, to_no & self.live, to_no & self.live);
                }
                Node::Loop(reg, modulo, i, body) => {
                    let _ = i;
                    let mut left: HashMap<u32, u32> = list(mask)
                        .into_iter()
                        .map(|l| {
                            let x = self.reg(l, *reg).wrapping_mul(2654435761);
                            (l, ((u64::from(x) * u64::from(*modulo)) >> 32) as u32 + 1)
                        })
                        .collect();
                    self.issue(4, mask, mask);
                    let top = self.at;
                    let mut here = mask;
                    // Once with no lane, to find the end.
                    loop {
                        self.at = top;
                        self.run(body, here);
                        here &= self.live;
                        self.issue(2, here, here);
                        let mut back = 0;
                        for l in list(here) {
                            let n = left.entry(l).or_default();
                            *n -= 1;
                            back |= u32::from(*n != 0) << l;
                        }
                        self.issue(1, here, back);
                        here = back;
                        if here == 0 {
                            break;
                        }
                    }
                    let arrive = mask & self.live;
                    self.unsure[self.at] = true;
                    self.issue(1, arrive, arrive);
                }
            }
        }
    }
}

fn check(seed: u64, lanes: u32) {
    let mut g = Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut loops = 0;
    let program = nodes(&mut g, 3, &mut loops);
    let mut c = Code::default();
    c.special(0, SpecialReg::Tid(0));
    c.lane(IntFn::Shl, 11, &[r(0), imm(2)]);
    for i in 1..REGS {
        c.lane(IntFn::Mad, i, &[r(0), imm(0x9e37_79b1u32.wrapping_mul(i.into())), imm(u32::from(i) * 77)]);
    }
    c.set(Cmp::Lt, 0, r(0), imm(g.below(33)));
    c.set(Cmp::Lt, 1, r(3), imm(g.next()));
    let prologue = c.insts.len();
    // A base of 32 words for each thread.
    c.element(28, 0, 32, 0);
    let start = c.insts.len();
    emit(&mut c, &program, 0);
    let body_end = c.insts.len();
    for i in 0..REGS {
        let mut a = at(28);
        a.offset = i64::from(i) * 4;
        c.store(Space::Global, Width::B32, i, a);
    }
    c.exit(PredSrc::TRUE);
    let total = c.insts.len();
    let mut kernel = c.kernel();
    kernel.shared_size = 128;

    let table: Vec<u32> = (0..TABLE as u32).map(|i| i.wrapping_mul(0x85eb_ca6b) >> 7).collect();
    let mut m = GlobalMemory::new();
    let out = m.alloc("out", &[0xee; 32 * 32]).unwrap();
    let bytes: Vec<u8> = table.iter().flat_map(|w| w.to_le_bytes()).collect();
    let tab = m.alloc("table", &bytes).unwrap();
    let o = run(&kernel, &launch(1, lanes, &[out, tab], 1), &mut m).unwrap_or_else(|e| panic!("seed {seed}: {e}"));

    let full = if lanes == 32 { u32::MAX } else { (1 << lanes) - 1 };
    let mut t = Twin {
        regs: HashMap::new(),
        preds: HashMap::new(),
        shared: HashMap::new(),
        table,
        live: full,
        issues: vec![0; total],
        lanes: vec![0; total],
        on: vec![0; total],
        unsure: vec![false; total],
        at: 0,
    };
    for l in 0..lanes {
        for i in 0..REGS {
            let x = if i == 0 {
                l
            } else {
                l.wrapping_mul(0x9e37_79b1u32.wrapping_mul(i.into())).wrapping_add(u32::from(i) * 77)
            };
            t.regs.insert((l, i), x);
        }
    }
    // The first compares are read from the code, to keep one source of numbers.
    for inst in &kernel.instructions[prologue - 2..prologue] {
        let Op::Lane(op) = &inst.op else { panic!() };
        let lanescope_ir::op::SrcKind::Imm(bound) = op.src[1].kind else { panic!() };
        let (d, reg) = (op.pdst[0].unwrap().0, op.src[0].read().unwrap().0);
        for l in 0..lanes {
            let less = t.reg(l, reg) < bound;
            t.preds.insert((l, d), less);
        }
    }
    t.issue(start, full, full);
    t.run(&program, full);
    assert_eq!(t.at, body_end, "seed {seed}: the twin walks other code");
    let live = t.live;
    t.issue(total - body_end, live, live);

    let got = words(&m, out, 32 * 8);
    for l in 0..lanes {
        for i in 0..u32::from(REGS) {
            let want = if live >> l & 1 != 0 { t.reg(l, i as u16) } else { 0xeeee_eeee };
            assert_eq!(got[(l * 8 + i) as usize], want, "seed {seed}: lane {l} register {i}\n{program:?}");
        }
    }
    for (i, c) in o.profile.counts.iter().enumerate() {
        let text = format!("seed {seed}: instruction {i} {:?}", kernel.instructions[i]);
        assert_eq!(c.thread_inst_executed, t.lanes[i], "{text}");
        assert_eq!(c.thread_inst_executed_pred_on, t.on[i], "{text}");
        if !t.unsure[i] {
            assert_eq!(c.inst_executed, t.issues[i], "{text}");
        }
        assert_eq!(c.lanes_missing, c.inst_executed * u64::from(32 - lanes), "{text}");
        assert!(c.lanes_missing + c.lanes_exited + c.thread_inst_executed <= c.inst_executed * 32, "{text}");
    }
}

#[test]
fn full_warps_agree() {
    (1..300).for_each(|seed| check(seed, 32));
}

#[test]
fn partial_warps_agree() {
    (1..120).for_each(|seed| check(seed * 7919, 1 + (seed * 5 % 31) as u32));
}
