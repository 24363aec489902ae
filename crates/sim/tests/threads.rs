//! Results do not depend on the number of threads, and blocks may wait for each other.

mod common;

use common::*;
use lanescope_ir::op::int::{Cmp, IntFn};
use lanescope_ir::op::memory::{AtomOp, Space, Width};
use lanescope_ir::op::warp::SpecialReg;
use lanescope_ir::{Kernel, PredSrc};
use lanescope_sim::{GlobalMemory, Outcome};

/// Runs with 1, 2 and 7 threads; everything must be the same.
fn same(kernel: &Kernel, blocks: u32, bytes: usize) -> (Outcome, Vec<u32>) {
    let mut results = [1, 2, 7].map(|threads| {
        let mut m = GlobalMemory::new();
        let a = m.alloc("a", &vec![0; bytes]).unwrap();
        let b = m.alloc("b", &vec![1; bytes]).unwrap();
        let o = run(kernel, &launch(blocks, 64, &[a, b, 20], threads), &mut m).unwrap();
        let mut all = words(&m, a, bytes as u64 / 4);
        all.extend(words(&m, b, bytes as u64 / 4));
        (o, all)
    });
    assert!(results[0] == results[1], "1 and 2 threads");
    assert!(results[0] == results[2], "1 and 7 threads");
    std::mem::take(&mut results[0])
}

#[test]
fn independent_blocks() {
    let (o, _) = same(&kernel_k(Some(24)), 40, 40 * 64 * 4);
    assert_eq!(o.profile.counts[0].inst_executed, 80);
}

#[test]
fn reductions_without_a_result() {
    let mut c = Code::default();
    c.gid(0, 1);
    c.lane(IntFn::And, 2, &[r(0), imm(7)]);
    c.element(8, 2, 4, 0);
    c.atomic(Space::Global, AtomOp::Add, None, 0, at(8));
    c.exit(PredSrc::TRUE);
    let (o, all) = same(&c.kernel(), 30, 64);
    for i in 0..8u32 {
        let want = (0..30 * 64).filter(|g| g % 8 == i).sum::<u32>();
        assert_eq!(all[i as usize], want);
    }
    assert_eq!(o.profile.counts[7].sectors, 60);
}

#[test]
fn tickets_go_to_blocks_in_order() {
    let mut c = Code::default();
    c.gid(0, 1);
    c.lane(IntFn::Mov, 2, &[imm(0)]);
    c.lane(IntFn::Mov, 3, &[imm(1)]);
    c.element(8, 2, 4, 0);
    c.atomic(Space::Global, AtomOp::Add, Some(4), 3, at(8));
    c.element(8, 0, 4, 1 << 1);
    c.store(Space::Global, Width::B32, 4, at(8));
    c.exit(PredSrc::TRUE);
    let (_, all) = same(&c.kernel(), 30, 30 * 64 * 4);
    let n = 30 * 64;
    assert_eq!(all[0], n as u32);
    assert_eq!(all[n..], (0..n as u32).collect::<Vec<_>>()[..]);
}

#[test]
fn racing_blocks_act_in_order() {
    // a[tid] = a[tid] * 3 + block, by all blocks.
    let mut c = Code::default();
    c.special(0, SpecialReg::Tid(0));
    c.special(1, SpecialReg::CtaId(0));
    c.element(8, 0, 4, 0);
    c.load(Space::Global, Width::B32, 2, at(8));
    c.lane(IntFn::Mad, 2, &[r(2), imm(3), r(1)]);
    c.store(Space::Global, Width::B32, 2, at(8));
    c.exit(PredSrc::TRUE);
    let (_, all) = same(&c.kernel(), 50, 256);
    let want = (0..50u32).fold(0u32, |x, b| x.wrapping_mul(3).wrapping_add(b));
    assert!(all[..64].iter().all(|&x| x == want));
}

#[test]
fn a_block_may_wait_for_a_later_one() {
    // Block 0 spins until the last block has stored; the flag is read with plain loads.
    let mut c = Code::default();
    c.special(0, SpecialReg::CtaId(0));
    c.lane(IntFn::Mov, 2, &[imm(0)]);
    c.lane(IntFn::Mov, 3, &[imm(1)]);
    c.element(8, 2, 4, 0);
    c.set(Cmp::Ne, 0, r(0), imm(0));
    let skip = c.branch(p(0), 0);
    let top = c.load(Space::Global, Width::B32, 4, at(8));
    c.set(Cmp::Eq, 1, r(4), imm(0));
    c.branch(p(1), top);
    c.exit(PredSrc::TRUE);
    c.land(skip);
    c.set(Cmp::Ne, 0, r(0), imm(2));
    c.exit(p(0));
    c.store(Space::Global, Width::B32, 3, at(8));
    c.exit(PredSrc::TRUE);
    let (_, all) = same(&c.kernel(), 3, 64);
    assert_eq!(all[0], 1);
}

#[test]
fn warps_of_a_block_do_not_starve() {
    // Warp 0 spins on shared memory that the last warp sets.
    let mut c = Code::default();
    c.special(0, SpecialReg::WarpId);
    c.lane(IntFn::Mov, 2, &[imm(0)]);
    c.lane(IntFn::Mov, 3, &[imm(1)]);
    c.set(Cmp::Ne, 0, r(0), imm(0));
    let skip = c.branch(p(0), 0);
    let top = c.load(Space::Shared, Width::B32, 4, at32(2));
    c.set(Cmp::Eq, 1, r(4), imm(0));
    c.branch(p(1), top);
    c.exit(PredSrc::TRUE);
    c.land(skip);
    c.store(Space::Shared, Width::B32, 3, at32(2));
    c.exit(PredSrc::TRUE);
    let mut k = c.kernel();
    k.shared_size = 16;
    for threads in [64, 1024] {
        let mut l = launch(1, threads, &[], 1);
        l.options.max_inst = 10_000_000;
        run(&k, &l, &mut GlobalMemory::new()).unwrap();
    }
}
