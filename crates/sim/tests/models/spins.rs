//! Lanes that spin until another lane of their warp has done something.

use crate::common::*;
use crate::{count_up, lane_id, one_block};
use lanescope_ir::op::int::{Cmp, IntFn};
use lanescope_ir::op::memory::{AtomOp, Space, Width};
use lanescope_ir::op::warp::SpecialReg;
use lanescope_ir::{Kernel, PredSrc};
use lanescope_sim::{GlobalMemory, Model, SimError};

/// `while (exchange(lock, 1)) ;  counter = counter + 1;  lock = 0`, lock and counter in words 0 and 1 of the buffer. Gives the
/// kernel, the first and the last instruction of the loop, and the first behind it.
fn naive_lock() -> (Kernel, u32, u32, u32) {
    let mut c = Code::default();
    c.lane(IntFn::Mov, 0, &[imm(0)]);
    c.lane(IntFn::Mov, 1, &[imm(1)]);
    c.element(8, 0, 4, 0);
    c.element(10, 1, 4, 0);
    let top = c.atomic(Space::Global, AtomOp::Exch, Some(2), 1, at(8));
    c.set(Cmp::Ne, 0, r(2), imm(0));
    let back = c.branch(p(0), top);
    let inside = c.load(Space::Global, Width::B32, 3, at(10));
    count_up(&mut c, 3);
    c.store(Space::Global, Width::B32, 3, at(10));
    c.store(Space::Global, Width::B32, 0, at(8));
    c.exit(PredSrc::TRUE);
    (c.kernel(), top, back, inside)
}

#[test]
fn a_spin_lock_ends_where_lanes_make_progress() {
    let (kernel, top, _, inside) = naive_lock();
    for threads in [1, 2, 20, 32, 96] {
        let ran = one_block(&kernel, Model::Ipdom, threads, 2).unwrap();
        assert_eq!(ran.words, [0, threads]);
        assert_eq!(ran.count(inside), (threads.into(), threads.into()));
        // Lanes of one warp go round in vain only a few times before they give way.
        assert!(threads > 32 || ran.count(top).0 <= u64::from(4 * threads), "{threads}: {:?}", ran.count(top));
    }
}

#[test]
fn a_spin_lock_is_reported_on_the_stack() {
    let (kernel, top, back, inside) = naive_lock();
    match one_block(&kernel, Model::Stack, 32, 2).map(|r| r.words) {
        Err(error @ SimError::SpinDeadlock { .. }) => {
            let text = error.to_string();
            assert_eq!(error.inst(), Some(back));
            let SimError::SpinDeadlock { first, last, waiting, .. } = error else { unreachable!() };
            assert_eq!((first.inst, last.inst), (top, back));
            assert_eq!((first.lanes.0, last.lanes.0), (0xffff_fffe, 0xffff_fffe));
            let who: Vec<(u32, u64)> = waiting.iter().map(|p| (p.inst, p.lanes.0)).collect();
            assert_eq!(who, [(inside, 1)]);
            assert!(text.contains("lanes 1-31 go round") && text.contains("lanes 0 at pc"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    // One lane has nobody to wait for.
    assert_eq!(one_block(&kernel, Model::Stack, 1, 2).unwrap().words, [0, 1]);
}

/// The usual way round the deadlock: the critical section inside the loop.
#[test]
fn a_lock_released_inside_the_loop_ends_on_the_stack() {
    let mut c = Code::default();
    c.lane(IntFn::Mov, 0, &[imm(0)]);
    c.lane(IntFn::Mov, 1, &[imm(1)]);
    c.element(8, 0, 4, 0);
    c.element(10, 1, 4, 0);
    c.lane(IntFn::Mov, 5, &[imm(0)]);
    let top = c.atomic(Space::Global, AtomOp::Exch, Some(2), 1, at(8));
    c.set(Cmp::Ne, 0, r(2), imm(0));
    let skip = c.branch(p(0), 0);
    c.load(Space::Global, Width::B32, 3, at(10));
    count_up(&mut c, 3);
    c.store(Space::Global, Width::B32, 3, at(10));
    c.store(Space::Global, Width::B32, 0, at(8));
    c.lane(IntFn::Mov, 5, &[imm(1)]);
    c.land(skip);
    c.set(Cmp::Eq, 1, r(5), imm(0));
    c.branch(p(1), top);
    c.exit(PredSrc::TRUE);
    let kernel = c.kernel();
    for model in crate::BOTH {
        let ran = one_block(&kernel, model, 32, 2).unwrap();
        assert_eq!(ran.words, [0, 32]);
        assert_eq!(ran.count(top), (32, (1..=32).sum()));
    }
}

/// Lane 0 of warp 0 spins on a flag, while the other lanes of its warp wait; warp 1 sets the flag after a long loop.
fn wait_for_the_other_warp(trips: u32) -> Kernel {
    let mut c = Code::default();
    c.special(0, SpecialReg::WarpId);
    c.special(1, SpecialReg::LaneId);
    c.lane(IntFn::Mov, 2, &[imm(0)]);
    c.lane(IntFn::Mov, 3, &[imm(1)]);
    c.element(8, 2, 4, 0);
    c.set(Cmp::Ne, 0, r(0), imm(0));
    let other = c.branch(p(0), 0);
    c.set(Cmp::Ne, 0, r(1), imm(0));
    let skip = c.branch(p(0), 0);
    let top = c.load(Space::Global, Width::B32, 4, at(8));
    c.set(Cmp::Eq, 1, r(4), imm(0));
    c.branch(p(1), top);
    c.land(skip);
    c.exit(PredSrc::TRUE);
    c.land(other);
    let top = count_up(&mut c, 5);
    c.set(Cmp::Lt, 1, r(5), imm(trips));
    c.branch(p(1), top);
    c.store(Space::Global, Width::B32, 3, at(8));
    c.exit(PredSrc::TRUE);
    c.kernel()
}

#[test]
fn waiting_for_another_warp_is_no_deadlock() {
    let kernel = wait_for_the_other_warp(50_000);
    for model in crate::BOTH {
        assert_eq!(one_block(&kernel, model, 64, 1).unwrap().words, [1]);
    }
}

/// A lane waits for one that stands behind the join of their branch.
#[test]
fn a_flag_that_is_set_behind_the_join() {
    let mut c = Code::default();
    lane_id(&mut c, 0);
    c.lane(IntFn::Mov, 1, &[imm(0)]);
    c.lane(IntFn::Mov, 2, &[imm(1)]);
    c.element(8, 1, 4, 0);
    c.set(Cmp::Ge, 0, r(0), imm(4));
    let skip = c.branch(p(0), 0);
    // Lanes 0 to 3, one loop for even and one for odd lanes.
    c.lane(IntFn::And, 3, &[r(0), imm(1)]);
    c.set(Cmp::Ne, 0, r(3), imm(0));
    let odd = c.branch(p(0), 0);
    let mut loops = Vec::new();
    for side in 0..2 {
        if side == 1 {
            c.land(odd);
        }
        let top = c.load(Space::Global, Width::B32, 4, at(8));
        c.set(Cmp::Eq, 1, r(4), imm(0));
        c.branch(p(1), top);
        loops.push(top);
        if side == 0 {
            let over = c.branch(PredSrc::TRUE, 0);
            loops.push(over);
        }
    }
    c.land(loops[1]);
    c.land(skip);
    let set = c.store(Space::Global, Width::B32, 2, at(8));
    c.exit(PredSrc::TRUE);
    let kernel = c.kernel();
    let ran = one_block(&kernel, Model::Ipdom, 32, 1).unwrap();
    assert_eq!(ran.words, [1]);
    assert_eq!(ran.count(set).1, 32);
    assert_eq!(ran.groups(set)[0].count(), 28);
    match one_block(&kernel, Model::Stack, 32, 1).map(|r| r.words) {
        Err(SimError::SpinDeadlock { first, waiting, .. }) => {
            assert_eq!(first.lanes.0, 0b0101);
            let mut lanes: Vec<u64> = waiting.iter().map(|p| p.lanes.0).collect();
            lanes.sort_unstable();
            assert_eq!(lanes, [0b1010, 0xffff_fff0]);
        }
        other => panic!("{other:?}"),
    }
}

/// Lanes 0 to 3 spin on a flag that the others set behind the join; each time round, lane l goes round an inner loop l + 1 times.
#[test]
fn a_loop_inside_the_loop_that_spins() {
    let mut c = Code::default();
    lane_id(&mut c, 0);
    c.lane(IntFn::Mov, 1, &[imm(0)]);
    c.lane(IntFn::Mov, 2, &[imm(1)]);
    c.element(8, 1, 4, 0);
    c.set(Cmp::Ge, 0, r(0), imm(4));
    let skip = c.branch(p(0), 0);
    let top = c.lane(IntFn::Mov, 5, &[imm(0)]);
    let inner = count_up(&mut c, 5);
    c.set(Cmp::Le, 2, r(5), r(0));
    c.branch(p(2), inner);
    c.load(Space::Global, Width::B32, 4, at(8));
    c.set(Cmp::Eq, 1, r(4), imm(0));
    let back = c.branch(p(1), top);
    c.land(skip);
    c.store(Space::Global, Width::B32, 2, at(8));
    c.exit(PredSrc::TRUE);
    let kernel = c.kernel();
    match one_block(&kernel, Model::Stack, 32, 1).map(|r| r.words) {
        Err(SimError::SpinDeadlock { first, last, waiting, .. }) => {
            assert_eq!((first.inst, last.inst, first.lanes.0), (top, back, 0xf));
            assert_eq!(waiting.iter().map(|p| p.lanes.0).collect::<Vec<_>>(), [0xffff_fff0]);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(one_block(&kernel, Model::Ipdom, 32, 1).unwrap().words, [1]);
}

/// Blocks that wait for each other: the first spins, its other lanes waiting, until the last has stored; and all of them
/// spin for ever if nobody stores.
#[test]
fn waiting_for_another_block_is_no_deadlock_if_it_comes() {
    for (who, threads) in [(4, 1), (4, 3), (9, 1), (9, 3)] {
        let mut c = Code::default();
        c.special(0, SpecialReg::CtaId(0));
        c.special(1, SpecialReg::LaneId);
        c.lane(IntFn::Mov, 2, &[imm(0)]);
        c.lane(IntFn::Mov, 3, &[imm(1)]);
        c.element(8, 2, 4, 0);
        c.set(Cmp::Eq, 0, r(0), imm(who));
        let other = c.branch(p(0), 0);
        c.set(Cmp::Ne, 0, r(1), imm(0));
        let skip = c.branch(p(0), 0);
        let top = c.load(Space::Global, Width::B32, 4, at(8));
        c.set(Cmp::Eq, 1, r(4), imm(0));
        let back = c.branch(p(1), top);
        c.land(skip);
        count_up(&mut c, 5);
        c.exit(PredSrc::TRUE);
        c.land(other);
        c.store(Space::Global, Width::B32, 3, at(8));
        c.exit(PredSrc::TRUE);
        let mut m = GlobalMemory::new();
        let a = m.alloc("a", &[0; 4]).unwrap();
        let mut l = launch(5, 64, &[a], threads);
        l.options.model = Model::Stack;
        let ran = run(&c.kernel(), &l, &mut m);
        if who < 5 {
            assert_eq!(ran.map(|_| words(&m, a, 1)), Ok(vec![1]));
        } else {
            assert!(matches!(ran, Err(SimError::SpinDeadlock { block: [0, 0, 0], last, .. }) if last.inst == back));
        }
    }
}

#[test]
fn spinning_does_not_depend_on_threads() {
    let (kernel, ..) = naive_lock();
    let results = [1, 2, 7].map(|threads| {
        let mut m = GlobalMemory::new();
        let a = m.alloc("a", &[0; 8]).unwrap();
        let mut l = launch(9, 64, &[a], threads);
        l.options.model = Model::Ipdom;
        let o = run(&kernel, &l, &mut m).unwrap();
        (o, words(&m, a, 2))
    });
    assert_eq!(results[0].1, [0, 9 * 64]);
    assert!(results[0] == results[1] && results[0] == results[2]);
}
