//! What each thread did, against models that compute it thread by thread.

mod common;

use std::collections::BTreeMap;

use common::*;
use lanescope_analysis::Cfg;
use lanescope_ir::op::control::ControlOp;
use lanescope_ir::op::int::{Cmp, IntFn};
use lanescope_ir::op::memory::{AtomOp, MemoryOp, Space, Width};
use lanescope_ir::op::warp::SpecialReg;
use lanescope_ir::{Kernel, Op, PredSrc, SelectCounts, ThreadAccess, ThreadProfile, ThreadValue};
use lanescope_sim::{GlobalMemory, Launch, Model, Order, Outcome, SHARED_WINDOW_HI, SimError, ThreadRequest};

fn request(values: &[u32]) -> Option<ThreadRequest> {
    Some(ThreadRequest { values: values.to_vec(), max_bytes: 0 })
}

/// Runs with 1, 2 and 7 threads; the records must be the same. `memory` makes the buffers that the launch names.
fn same(kernel: &Kernel, launch: &Launch, memory: impl Fn() -> GlobalMemory) -> (Outcome, ThreadProfile) {
    let mut results = [1, 2, 7].map(|threads| {
        let mut launch = launch.clone();
        launch.options.threads = threads;
        run(kernel, &launch, &mut memory()).unwrap()
    });
    assert!(results[0].threads == results[1].threads, "1 and 2 threads");
    assert!(results[0].threads == results[2].threads, "1 and 7 threads");
    let first = std::mem::take(&mut results[0]);
    let threads = first.threads.clone().unwrap();
    check(kernel, &first, &threads);
    (first, threads)
}

/// The records add up to the counters.
fn check(kernel: &Kernel, o: &Outcome, t: &ThreadProfile) {
    let firsts: Vec<u32> = Cfg::new(kernel).blocks.iter().map(|b| b.first).collect();
    assert_eq!(t.blocks, firsts);
    assert_eq!(t.executions.len(), firsts.len());
    for (&first, by_thread) in firsts.iter().zip(&t.executions) {
        assert_eq!(by_thread.len(), t.threads);
        let sum: u64 = by_thread.iter().map(|&n| u64::from(n)).sum();
        assert_eq!(sum, o.profile.counts[first as usize].thread_inst_executed, "block at {first}");
    }
}

/// The accesses that a list of addresses makes.
fn access(addresses: &[u64]) -> ThreadAccess {
    let Some(&first) = addresses.first() else { return ThreadAccess::default() };
    let steps: Vec<i64> = addresses.windows(2).map(|w| w[1] as i64 - w[0] as i64).collect();
    ThreadAccess {
        count: addresses.len() as u32,
        regular: steps.windows(2).all(|s| s[0] == s[1]),
        first,
        low: *addresses.iter().min().unwrap(),
        high: *addresses.iter().max().unwrap(),
        stride: steps.first().copied().unwrap_or(0),
    }
}

fn value(values: &[u64]) -> ThreadValue {
    let Some(&first) = values.first() else { return ThreadValue::default() };
    let last = *values.last().unwrap();
    ThreadValue { count: values.len() as u32, changed: values.iter().any(|&v| v != first), first, last }
}

/// A loop of `gid % 5` trips that walks a column, gathers through what it finds, and stores under a guard.
struct Walk {
    kernel: Kernel,
    load: u32,
    gather: u32,
    store: u32,
    add: u32,
    product: u32,
    top: u32,
}

fn walk() -> Walk {
    let mut c = Code::default();
    c.gid(0, 1);
    c.lane(IntFn::Rem { signed: false }, 2, &[r(0), imm(5)]);
    c.lane(IntFn::Mov, 3, &[imm(0)]);
    c.set(Cmp::Eq, 0, r(2), imm(0));
    let sync = c.bssy(0);
    let skip = c.branch(p(0), 0);
    let top = c.here();
    // Element gid + 40 i of the first buffer.
    c.lane(IntFn::Mad, 4, &[r(3), imm(40), r(0)]);
    c.element(8, 4, 4, 0);
    let load = c.load(Space::Global, Width::B32, 5, at(8));
    c.lane(IntFn::And, 6, &[r(5), imm(31)]);
    c.element(10, 6, 8, 2);
    let gather = c.load(Space::Global, Width::B64, 12, at(10));
    let product = c.wide(IntFn::MadWide { signed: false, neg_c: false }, 14, &[r(5), r(12), imm(0), imm(0)]);
    c.set(Cmp::Lt, 1, r(6), imm(16));
    let store = c.store(Space::Global, Width::B32, 6, at(8));
    c.insts[store as usize].guard = p(1);
    let add = c.lane(IntFn::Add, 3, &[r(3), imm(1)]);
    c.set(Cmp::Lt, 0, r(3), r(2));
    c.branch(p(0), top);
    c.land(skip);
    c.land(sync);
    c.bsync(0);
    c.exit(PredSrc::TRUE);
    Walk { kernel: c.kernel(), load, gather, store, add, product, top }
}

fn mix(mut x: u32) -> u32 {
    x = (x ^ x >> 16).wrapping_mul(0x7feb_352d);
    x = (x ^ x >> 15).wrapping_mul(0x846c_a68b);
    x ^ x >> 16
}

#[test]
fn loops_gathers_and_guards() {
    let w = walk();
    let (blocks, block) = (7u32, 48u32);
    let n = (blocks * block + 200) as usize;
    let a: Vec<u32> = (0..n as u32).map(mix).collect();
    let b: Vec<u64> = (0..32u32).map(|i| u64::from(mix(i + 9)) << 32 | u64::from(mix(i))).collect();
    let memory = || {
        let mut m = GlobalMemory::new();
        m.alloc("a", &a.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>()).unwrap();
        m.alloc("b", &b.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>()).unwrap();
        m
    };
    let m = memory();
    let at: Vec<u64> = m.buffers().map(|b| b.1).collect();
    let mut launch = launch(blocks, block, &at, 1);
    let asked = [w.gather, w.load, w.add, w.load, w.product];
    launch.options.threads_profile = request(&asked);
    // Threads read what others wrote, so that blocks run in order after all; they only ever find a value mod 32 instead.
    let (o, t) = same(&w.kernel, &launch, memory);
    assert_eq!((t.threads, t.of, t.block_threads), (336, 336, 48));
    let loops = t.blocks.iter().position(|&b| b == w.top).unwrap();
    let by_inst: BTreeMap<u32, usize> = t.accesses.iter().enumerate().map(|(i, a)| (a.inst, i)).collect();
    assert_eq!(by_inst.keys().copied().collect::<Vec<_>>(), [w.load, w.gather, w.store]);
    assert_eq!(t.values.iter().map(|v| v.inst).collect::<Vec<_>>(), asked);
    let flags = |i: u32| (t.accesses[by_inst[&i]].bytes, t.accesses[by_inst[&i]].reads, t.accesses[by_inst[&i]].writes);
    assert_eq!(
        (flags(w.load), flags(w.gather), flags(w.store)),
        ((4, true, false), (8, true, false), (4, false, true))
    );
    for g in 0..blocks * block {
        let trips = g % 5;
        assert_eq!(t.executions[loops][g as usize], trips);
        let elements: Vec<u32> = (0..trips).map(|i| 40 * i + g).collect();
        let loads: Vec<u64> = elements.iter().map(|&e| at[0] + 4 * u64::from(e)).collect();
        let found: Vec<u32> = elements.iter().map(|&e| a[e as usize] & 31).collect();
        let of = |i: u32| t.accesses[by_inst[&i]].threads[g as usize];
        assert_eq!(of(w.load), access(&loads), "thread {g}");
        let gathers: Vec<u64> = found.iter().map(|&e| at[1] + 8 * u64::from(e)).collect();
        assert_eq!(of(w.gather), access(&gathers), "thread {g}");
        let stores: Vec<u64> = loads.iter().zip(&found).filter(|(_, f)| **f < 16).map(|(a, _)| *a).collect();
        assert_eq!(of(w.store), access(&stores), "thread {g}");
        let values = |i: usize| t.values[i].threads[g as usize];
        assert_eq!(values(0), value(&found.iter().map(|&f| b[f as usize]).collect::<Vec<_>>()));
        assert_eq!(values(2), value(&(1..=u64::from(trips)).collect::<Vec<_>>()));
        assert_eq!(values(1), values(3));
        assert_eq!(values(1).count, trips);
        // In order of time only the low bits of what is loaded are sure.
        assert_eq!(values(1).first & 31, u64::from(found.first().copied().unwrap_or(0)));
        assert!(values(4).last <= u64::from(u32::MAX) * u64::from(u32::MAX));
        if let (Some(&f), true) = (found.first(), trips == 1) {
            assert_eq!(values(4).first, values(1).first * (b[f as usize] & 0xffff_ffff));
        }
    }
    assert!(o.profile.counts[w.load as usize].thread_inst_executed > 0);
}

#[test]
fn atomics_in_generic_space_and_lanes_of_other_windows() {
    // Even threads add to a word of global memory, odd ones to shared memory, by generic addresses.
    let mut c = Code::default();
    c.gid(0, 1);
    c.lane(IntFn::And, 2, &[r(0), imm(1)]);
    c.set(Cmp::Eq, 0, r(2), imm(0));
    c.element(8, 2, 4, 0);
    c.lane_if(p(0).not(), IntFn::Mov, 8, &[imm(0)]);
    c.lane_if(p(0).not(), IntFn::Mov, 9, &[imm(SHARED_WINDOW_HI)]);
    let add = c.atomic(Space::Generic, AtomOp::Add, None, 0, at(8));
    let load = c.load(Space::Generic, Width::U8, 4, at(8));
    let Op::Memory(MemoryOp::Load { valid, .. }) = &mut c.insts[load as usize].op else { panic!() };
    *valid = p(0).not();
    c.exit(PredSrc::TRUE);
    let mut k = c.kernel();
    k.shared_size = 64;
    let memory = || {
        let mut m = GlobalMemory::new();
        m.alloc("a", &[0; 64]).unwrap();
        m
    };
    let a = memory().buffers().next().unwrap().1;
    let mut launch = launch(3, 33, &[a], 1);
    launch.options.threads_profile = request(&[load]);
    let (_, t) = same(&k, &launch, memory);
    assert_eq!(t.accesses.len(), 1, "lanes that load from global memory were switched off");
    let x = &t.accesses[0];
    assert_eq!((x.inst, x.bytes, x.reads, x.writes), (add, 4, true, true));
    for g in 0..99 {
        assert_eq!(x.threads[g], access(if g % 2 == 0 { std::slice::from_ref(&a) } else { &[] }));
        assert_eq!(t.values[0].threads[g].count, 1, "a load that is switched off gives zero");
    }
}

#[test]
fn only_the_first_blocks_if_it_would_take_too_much() {
    let w = walk();
    let memory = || {
        let mut m = GlobalMemory::new();
        m.alloc("a", &[0; 4096]).unwrap();
        m.alloc("b", &[0; 256]).unwrap();
        m
    };
    let at: Vec<u64> = memory().buffers().map(|b| b.1).collect();
    let mut l = launch(7, 48, &at, 2);
    l.options.threads_profile = request(&[w.load]);
    let all = run(&w.kernel, &l, &mut memory()).unwrap().threads.unwrap();
    for (max_bytes, threads) in [(1, 0), (48 * 500, 96), (1 << 20, 336)] {
        l.options.threads_profile = Some(ThreadRequest { values: vec![w.load], max_bytes });
        let t = run(&w.kernel, &l, &mut memory()).unwrap().threads.unwrap();
        assert_eq!((t.threads, t.of), (threads, 336));
        for (some, all) in t.executions.iter().zip(&all.executions) {
            assert_eq!(some[..], all[..threads]);
        }
        for (some, all) in t.accesses.iter().zip(&all.accesses) {
            assert_eq!(some.threads[..], all.threads[..threads]);
        }
        assert_eq!(t.values[0].threads[..], all.values[0].threads[..threads]);
    }
}

#[test]
fn warps_of_64_lanes() {
    let mut c = Code::default();
    c.gid(0, 1);
    c.lane(IntFn::Rem { signed: false }, 2, &[r(0), imm(7)]);
    c.lane(IntFn::Mov, 3, &[imm(0)]);
    let top = c.here();
    let add = c.lane(IntFn::Add, 3, &[r(3), imm(1)]);
    c.set(Cmp::Le, 0, r(3), r(2));
    c.branch(p(0), top);
    c.element(8, 0, 4, 0);
    let store = c.store(Space::Global, Width::B32, 3, at(8));
    c.exit(PredSrc::TRUE);
    let k = Kernel { arch: "ptx".to_owned(), ..c.kernel() };
    let memory = || {
        let mut m = GlobalMemory::new();
        m.alloc("a", &[0; 4 * 300]).unwrap();
        m
    };
    let a = memory().buffers().next().unwrap().1;
    for (model, warp_size) in [(Model::Ipdom, 32), (Model::Ipdom, 64), (Model::Stack, 64)] {
        let mut l = launch(3, 100, &[a], 1);
        (l.options.model, l.options.warp_size) = (model, warp_size);
        l.options.threads_profile = request(&[add]);
        let (_, t) = same(&k, &l, memory);
        let loops = t.blocks.iter().position(|&b| b == top).unwrap();
        for g in 0..300u64 {
            assert_eq!(u64::from(t.executions[loops][g as usize]), g % 7 + 1);
            assert_eq!(t.accesses[0].threads[g as usize], access(&[a + 4 * g]));
            assert_eq!(t.values[0].threads[g as usize], value(&(1..=g % 7 + 1).collect::<Vec<_>>()));
        }
        assert_eq!(t.accesses[0].inst, store);
    }
}

#[test]
fn values_that_there_are_not() {
    let w = walk();
    let mut l = launch(1, 32, &[0, 0], 1);
    for inst in [w.store, w.top - 1, 10_000] {
        l.options.threads_profile = request(&[inst]);
        let e = run(&w.kernel, &l, &mut GlobalMemory::new()).unwrap_err();
        assert!(matches!(e, SimError::CannotRecord { inst: i, .. } if i == inst), "{e}");
    }
    assert!(matches!(w.kernel.instructions[w.top as usize - 1].op, Op::Control(ControlOp::Branch { .. })));
    let mut c = Code::default();
    c.special(0, SpecialReg::LaneId);
    c.exit(PredSrc::TRUE);
    l.options.threads_profile = request(&[0]);
    let t = run(&c.kernel(), &l, &mut GlobalMemory::new()).unwrap().threads.unwrap();
    assert!((0..32).all(|g| t.values[0].threads[g] == value(&[g as u64])));
}

#[test]
fn threads_in_another_order() {
    // out[i] = i * 3 + lane, for the thread that a place plays.
    let mut c = Code::default();
    c.gid(0, 1);
    c.special(2, SpecialReg::LaneId);
    c.lane(IntFn::Mad, 3, &[r(0), imm(3), r(2)]);
    c.element(8, 0, 4, 0);
    c.store(Space::Global, Width::B32, 3, at(8));
    c.exit(PredSrc::TRUE);
    let k = c.kernel();
    let n = 3 * 40u32;
    let order: Vec<u32> = (0..n).rev().collect();
    for by_thread_index in [false, true] {
        let mut m = GlobalMemory::new();
        let a = m.alloc("a", &vec![0; 4 * n as usize]).unwrap();
        let mut l = launch(3, 40, &[a], 2);
        l.options.order = Some(Order { threads: std::sync::Arc::new(order.clone()), by_thread_index });
        run(&k, &l, &mut m).unwrap();
        let bytes = m.read(a, 4 * u64::from(n)).unwrap();
        for (p, &t) in order.iter().enumerate() {
            let at = 4 * t as usize;
            let got = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
            assert_eq!(got, t * 3 + (p as u32 % 40) % 32, "position {p}");
        }
    }
}

#[test]
fn selects_are_counted_by_outcome() {
    // Lanes below 40 of each block choose by the parity of their index.
    let mut c = Code::default();
    c.gid(0, 1);
    c.special(2, SpecialReg::Tid(0));
    c.lane(IntFn::And, 3, &[r(0), imm(1)]);
    c.set(Cmp::Lt, 0, r(2), imm(40));
    c.set(Cmp::Eq, 1, r(3), imm(0));
    let select = c.lane_if(p(0), IntFn::Sel, 4, &[imm(7), imm(9)]);
    let Op::Lane(op) = &mut c.insts[select as usize].op else { panic!() };
    op.psrc[0] = p(1).not();
    c.exit(PredSrc::TRUE);
    let k = Kernel { arch: "ptx".to_owned(), ..c.kernel() };
    for (warp_size, executed) in [(32, 2 * 3), (64, 3)] {
        for threads in [1, 2] {
            let mut l = launch(3, 100, &[], threads);
            (l.options.model, l.options.warp_size) = (Model::Ipdom, warp_size);
            l.options.selects = vec![select, select];
            let o = run(&k, &l, &mut GlobalMemory::new()).unwrap();
            let want = SelectCounts { inst: select, executed, lanes_true: 60, lanes_false: 60 };
            assert_eq!(o.profile.selects, [want]);
            let mut plain = l.clone();
            plain.options.selects.clear();
            assert_eq!(run(&k, &plain, &mut GlobalMemory::new()).unwrap().profile.counts, o.profile.counts);
        }
    }
    for inst in [0, 1000] {
        let mut l = launch(1, 32, &[], 1);
        (l.options.model, l.options.selects) = (Model::Ipdom, vec![inst]);
        assert!(matches!(run(&k, &l, &mut GlobalMemory::new()), Err(SimError::CannotRecord { .. })));
    }
}
