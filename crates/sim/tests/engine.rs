//! Whole launches of kernels built by hand.

mod common;

use common::*;
use lanescope_ir::op::int::{Cmp, IntFn};
use lanescope_ir::op::memory::{Space, Width};
use lanescope_ir::op::warp::{BlockBarrierMode, SpecialReg, WarpOp};
use lanescope_ir::{LaneMask, Op, PredSrc, Slot};
use lanescope_sim::{Extremes, GlobalMemory, SHARED_WINDOW_HI, TraceEvent, TraceRequest, WarpSum};

#[test]
fn kernel_k_computes_and_counts() {
    let kernel = kernel_k(None);
    let mut m = GlobalMemory::new();
    let out = m.alloc("out", &[0; 4 * 512]).unwrap();
    let o = run(&kernel, &launch(2, 256, &[out, 50], 1), &mut m).unwrap();
    let want: Vec<u32> = (0..512).map(|g| k(g, |_| 50)).collect();
    assert_eq!(words(&m, out, 512), want);
    let c = &o.profile.counts;
    let top = 9;
    assert_eq!((c[top].inst_executed, c[top].thread_inst_executed), (16 * 50, 512 * 50));
    let (a, b) = (&c[top + 3], &c[top + 4]);
    assert_eq!(a.thread_inst_executed_pred_on + b.thread_inst_executed_pred_on, 512 * 50);
    assert_eq!(o.profile.loops.len(), 1);
    assert_eq!(o.profile.loops[0].trips, [(50, 512)]);
    let store = c.iter().rev().nth(1).unwrap();
    assert_eq!((store.sectors, store.sectors_ideal), (64, 64));
}

#[test]
fn kernel_kd_diverges_at_its_loop() {
    let kernel = kernel_k(Some(28));
    let mut m = GlobalMemory::new();
    let out = m.alloc("out", &[0; 4 * 128]).unwrap();
    let o = run(&kernel, &launch(1, 128, &[out], 1), &mut m).unwrap();
    let want: Vec<u32> = (0..128).map(|g| k(g, |x| (x >> 28) + 1)).collect();
    assert_eq!(words(&m, out, 128), want);
    let trips = |g: u32| u64::from((g.wrapping_mul(2654435761).wrapping_add(12345) >> 28) + 1);
    let c = &o.profile.counts[10];
    assert_eq!(c.thread_inst_executed, (0..128).map(trips).sum::<u64>());
    let issues: u64 = (0..4).map(|w| (0..32).map(|l| trips(w * 32 + l)).max().unwrap()).sum();
    assert_eq!(c.inst_executed, issues);
    assert_eq!(o.profile.loops[0].trips.iter().map(|t| t.1).sum::<u64>(), 128);
    assert!(o.profile.totals().divergent_branches > 0);
}

#[test]
fn a_trace_shows_every_step_of_one_warp() {
    let kernel = kernel_k(Some(30));
    let mut m = GlobalMemory::new();
    let out = m.alloc("out", &[0; 4 * 128]).unwrap();
    let mut l = launch(2, 64, &[out], 2);
    let shape = |m: &mut GlobalMemory, l: &lanescope_sim::Launch| run(&kernel, l, m).unwrap();
    let plain = shape(&mut m, &l);
    assert_eq!(plain.traces, []);
    l.options.traces = vec![TraceRequest { block: 1, warp: 1, max_steps: 10_000 }];
    let mut traced = shape(&mut m, &l);
    assert_eq!(traced.profile, plain.profile);
    let t = traced.traces.remove(0);
    assert!(!t.cut);
    assert_eq!(t.lanes, LaneMask::first(32));
    // One warp alone gives the same counters.
    let mut one = vec![0u64; kernel.instructions.len()];
    for (i, s) in t.steps.iter().enumerate() {
        assert_eq!(s.step, i as u64);
        assert!(s.active.contains(s.executing));
        one[s.inst as usize] += 1;
    }
    assert!(t.steps.iter().any(|s| matches!(s.event, TraceEvent::Split { .. })));
    assert!(t.steps.iter().any(|s| s.event == TraceEvent::Wait));
    assert!(t.steps.iter().any(|s| matches!(s.event, TraceEvent::Join { .. })));
    assert_eq!(t.steps.last().unwrap().event, TraceEvent::Exit { lanes: LaneMask::first(32) });
    for (one, all) in one.iter().zip(&plain.profile.counts) {
        assert!(*one <= all.inst_executed);
    }
    l.options.traces = vec![TraceRequest { block: 0, warp: 0, max_steps: 5 }];
    let t = shape(&mut m, &l).traces.remove(0);
    assert!(t.cut && t.steps.len() == 5);
    // Several warps, in any order, for any number of threads; their steps say which of them stand out.
    let request = |block, warp| TraceRequest { block, warp, max_steps: 1000 };
    l.options.traces = vec![request(1, 0), request(0, 1), request(1, 0), request(0, 0), request(1, 1), request(9, 9)];
    for threads in [1, 3] {
        l.options.threads = threads;
        let o = shape(&mut m, &l);
        let sum = |t: &lanescope_sim::Trace| WarpSum {
            block: t.block,
            warp: t.warp,
            inst_executed: t.steps.len() as u64,
            lost: t.steps.iter().map(|s| u64::from((t.lanes - s.active).count())).sum(),
        };
        let sums: Vec<WarpSum> = o.traces.iter().map(sum).collect();
        let which: Vec<_> = sums.iter().map(|s| (s.block, s.warp)).collect();
        assert_eq!(which, [(0, 0), (0, 1), (1, 0), (1, 1)]);
        // Of equal ones the first: max_by_key gives the last.
        let longest = sums.iter().rev().max_by_key(|s| s.inst_executed).copied();
        let most_lost = sums.iter().rev().max_by_key(|s| s.lost).copied();
        assert_eq!(o.extremes, Extremes { longest, most_lost });
    }
}

/// All 256 threads put a value into shared memory, meet, and read the value of the thread opposite.
#[test]
fn warps_meet_at_barriers() {
    let mut c = Code::default();
    c.special(0, SpecialReg::Tid(0));
    c.lane(IntFn::Shl, 1, &[r(0), imm(2)]);
    c.lane(IntFn::Mad, 2, &[r(0), imm(7), imm(3)]);
    c.store(Space::Shared, Width::B32, 2, at32(1));
    let barrier = |pred| WarpOp::BlockBarrier { mode: BlockBarrierMode::RedPopc, id: imm(0), threads: None, pred };
    c.set(Cmp::Lt, 0, r(0), imm(100));
    c.push(PredSrc::TRUE, Op::Warp(barrier(p(0))));
    c.push(PredSrc::TRUE, Op::Warp(WarpOp::BarrierResult { dst: Some(Slot(3)), pdst: None }));
    c.lane(IntFn::Mad, 1, &[r(1), imm(u32::MAX), imm(255 * 4)]);
    c.load(Space::Shared, Width::B32, 4, at32(1));
    c.lane(IntFn::Add, 4, &[r(4), r(3)]);
    c.element(8, 0, 4, 0);
    c.store(Space::Global, Width::B32, 4, at(8));
    c.exit(PredSrc::TRUE);
    let mut kernel = c.kernel();
    kernel.shared_size = 1024;
    let mut m = GlobalMemory::new();
    let out = m.alloc("out", &[0; 1024]).unwrap();
    run(&kernel, &launch(1, 256, &[out], 1), &mut m).unwrap();
    assert_eq!(words(&m, out, 256), (0..256).map(|t| (255 - t) * 7 + 3 + 100).collect::<Vec<u32>>());
}

/// Each width, scattered and in a row, through local, shared and generic addresses.
#[test]
fn widths_and_spaces_agree() {
    for width in [Width::B32, Width::B64, Width::B128] {
        for stride in [1, 3] {
            for space in [Space::Local, Space::Shared, Space::Generic] {
                let n = width.slots() as u32;
                let mut c = Code::default();
                c.special(0, SpecialReg::Tid(0));
                for i in 0..n {
                    c.lane(IntFn::Mad, 4 + i as u16, &[r(0), imm(16), imm(i)]);
                }
                // Local memory is each thread's own, so all may use the same place.
                let step = if space == Space::Local { 0 } else { width.bytes() * stride };
                c.lane(IntFn::Mad, 1, &[r(0), imm(step), imm(64)]);
                c.lane(IntFn::Mov, 2, &[imm(SHARED_WINDOW_HI)]);
                let addr = if space == Space::Generic { at(1) } else { at32(1) };
                c.store(space, width, 4, addr);
                c.load(space, width, 12, addr);
                c.element(8, 0, 16, 0);
                c.store(Space::Global, width, 12, at(8));
                c.exit(PredSrc::TRUE);
                let mut kernel = c.kernel();
                (kernel.shared_size, kernel.local_size) = (4096, 128);
                let mut m = GlobalMemory::new();
                let out = m.alloc("out", &[0; 512]).unwrap();
                let o = run(&kernel, &launch(1, 29, &[out], 1), &mut m).unwrap();
                let got = words(&m, out, 128);
                for t in 0..29 {
                    for i in 0..n {
                        assert_eq!(got[(t * 4 + i) as usize], t * 16 + i, "{width:?} {stride} {space:?}");
                    }
                }
                let store = &o.profile.counts[kernel.instructions.len() - 2];
                // Two threads share a sector.
                assert_eq!(store.sectors, 15);
                assert_eq!(store.sectors_ideal, u64::from(29 * width.bytes()).div_ceil(32));
            }
        }
    }
}
