//! WARPSYNC, block barriers and sleep on paths that have not met.

use crate::common::*;
use crate::{count_up, lane_id, one_block};
use lanescope_ir::op::control::{ControlOp, WarpSyncMode};
use lanescope_ir::op::int::{Cmp, IntFn};
use lanescope_ir::op::memory::{Space, Width};
use lanescope_ir::op::warp::{BlockBarrierMode, ShuffleMode, VoteMode, WarpOp};
use lanescope_ir::{Op, PredSrc, Slot};
use lanescope_sim::convergence::Reason;
use lanescope_sim::{Model, SimError};

fn sync(c: &mut Code, mask: u32) -> u32 {
    c.control(PredSrc::TRUE, ControlOp::WarpSync { mode: WarpSyncMode::Mask(imm(mask)), cond: PredSrc::TRUE })
}

fn ballot(c: &mut Code, d: u16) -> u32 {
    let op = WarpOp::Vote { mode: VoteMode::Any, dst: Some(Slot(d)), pdst: None, src: PredSrc::TRUE };
    c.push(PredSrc::TRUE, Op::Warp(op))
}

fn finish(c: &mut Code, s: u16) {
    c.element(8, 0, 4, 0);
    c.store(Space::Global, Width::B32, s, at(8));
    c.exit(PredSrc::TRUE);
}

/// Lanes below 8 exchange a flag with the others through shared memory, in the two arms of an if, around a warp barrier.
#[test]
fn a_warp_barrier_in_both_arms() {
    let mut c = Code::default();
    lane_id(&mut c, 0);
    c.lane(IntFn::Shl, 1, &[r(0), imm(2)]);
    c.lane(IntFn::Add, 3, &[r(0), imm(100)]);
    c.lane(IntFn::Xor, 4, &[r(1), imm(31 * 4)]);
    c.set(Cmp::Lt, 0, r(0), imm(8));
    let low = c.branch(p(0), 0);
    let mut syncs = Vec::new();
    for arm in 0..2 {
        if arm == 1 {
            c.land(low);
        }
        c.store(Space::Shared, Width::B32, 3, at32(1));
        syncs.push(sync(&mut c, u32::MAX));
        c.load(Space::Shared, Width::B32, 2, at32(4));
        if arm == 0 {
            let over = c.branch(PredSrc::TRUE, 0);
            syncs.push(over);
        }
    }
    c.land(syncs[1]);
    let join = c.here();
    finish(&mut c, 2);
    let mut kernel = c.kernel();
    kernel.shared_size = 128;
    let ran = one_block(&kernel, Model::Ipdom, 32, 32).unwrap();
    assert_eq!(ran.words, (0..32).map(|l| 100 + (l ^ 31)).collect::<Vec<u32>>());
    assert_eq!((ran.count(syncs[0]), ran.count(syncs[2])), ((1, 24), (1, 8)));
    assert_eq!(ran.count(join), (1, 32));
    // Before Volta all lanes of the mask must come together.
    match one_block(&kernel, Model::Stack, 32, 32).map(|r| r.words) {
        Err(SimError::Deadlock { waiting, .. }) => {
            let held = waiting.iter().find(|p| p.waits.is_some()).expect("somebody waits");
            assert_eq!(held.inst, syncs[2]);
            assert!(matches!(held.waits, Some(Reason::WarpSync { missing }) if missing.0 == 0xffff_ff00));
        }
        other => panic!("{other:?}"),
    }
}

/// A vote in the middle of an if whose lanes have come apart: they meet at the instruction and vote as one group.
#[test]
fn an_exchange_brings_lanes_of_several_paths_together() {
    let mut c = Code::default();
    lane_id(&mut c, 0);
    c.set(Cmp::Lt, 0, r(0), imm(8));
    // Lanes below 8 come to the vote by a longer way, and other lanes leave the common code for a while: the two
    // branches have only the end in common.
    let low = c.branch(p(0), 0);
    c.set(Cmp::Ge, 1, r(0), imm(28));
    let high = c.branch(p(1), 0);
    let vote = c.here();
    sync(&mut c, 0x0fff_ffff);
    let ballots = ballot(&mut c, 2);
    let to_end = c.branch(PredSrc::TRUE, 0);
    c.land(low);
    count_up(&mut c, 3);
    c.branch(PredSrc::TRUE, vote);
    c.land(high);
    c.lane(IntFn::Mov, 2, &[imm(7)]);
    c.land(to_end);
    let end = c.here();
    finish(&mut c, 2);
    let ran = one_block(&c.kernel(), Model::Ipdom, 32, 32).unwrap();
    assert_eq!(ran.count(ballots), (1, 28));
    assert_eq!(ran.words, (0..32).map(|l| if l < 28 { 0x0fff_ffff } else { 7 }).collect::<Vec<u32>>());
    assert_eq!(ran.count(end), (1, 32));
}

/// Lanes wait at a join for lanes that wait at a warp barrier for them: PTX has no joins, so this must go on.
#[test]
fn a_join_does_not_block_a_warp_barrier() {
    let mut c = Code::default();
    lane_id(&mut c, 0);
    c.set(Cmp::Lt, 0, r(0), imm(8));
    let low = c.branch(p(0), 0);
    c.land(low);
    // Both sides are at the join at once; now one with a body.
    c.set(Cmp::Lt, 0, r(0), imm(8));
    let over = c.branch(p(0).not(), 0);
    let first = sync(&mut c, u32::MAX);
    c.land(over);
    let second = sync(&mut c, u32::MAX);
    finish(&mut c, 0);
    let kernel = c.kernel();
    // Lanes below 8 have two barriers to pass, the others one; then those have exited and are not waited for.
    let ran = one_block(&kernel, Model::Ipdom, 32, 32).unwrap();
    assert_eq!((ran.count(first), ran.count(second)), ((1, 8), (2, 32)));
    assert!(matches!(one_block(&kernel, Model::Stack, 32, 32), Err(SimError::Deadlock { .. })));
}

/// The same exchange in both arms of an if, with other registers: each lane gives and gets what its own instruction says,
/// though the first arm's results overwrite what it gave.
#[test]
fn lanes_exchange_between_arms() {
    let mut c = Code::default();
    lane_id(&mut c, 0);
    c.lane(IntFn::Add, 3, &[r(0), imm(100)]);
    c.lane(IntFn::Add, 4, &[r(0), imm(200)]);
    c.set(Cmp::Lt, 0, r(0), imm(12));
    c.lane(IntFn::And, 1, &[r(0), imm(1)]);
    c.set(Cmp::Ne, 1, r(1), imm(0));
    let shuffle = |c: &mut Code, value: u16| {
        let (mode, src) = (ShuffleMode::Bfly, r(value));
        let op = WarpOp::Shuffle { mode, dst: Some(Slot(value)), pdst: None, src, lane: imm(8), clamp: imm(31) };
        c.push(PredSrc::TRUE, Op::Warp(op))
    };
    let vote = |c: &mut Code, src: PredSrc| {
        let op = WarpOp::Vote { mode: VoteMode::All, dst: Some(Slot(5)), pdst: None, src };
        c.push(PredSrc::TRUE, Op::Warp(op))
    };
    let low = c.branch(p(0), 0);
    sync(&mut c, u32::MAX);
    let high_shuffle = shuffle(&mut c, 4);
    sync(&mut c, u32::MAX);
    vote(&mut c, p(1));
    c.lane(IntFn::Add, 2, &[r(4), r(5)]);
    let over = c.branch(PredSrc::TRUE, 0);
    c.land(low);
    sync(&mut c, u32::MAX);
    let low_shuffle = shuffle(&mut c, 3);
    sync(&mut c, u32::MAX);
    vote(&mut c, p(1).not());
    c.lane(IntFn::Add, 2, &[r(3), r(5)]);
    c.land(over);
    let end = c.here();
    finish(&mut c, 2);
    let ran = one_block(&c.kernel(), Model::Ipdom, 32, 32).unwrap();
    let ballot = (0..32).filter(|l| (l % 2 == 1) == (*l >= 12)).fold(0u32, |m, l| m | 1 << l);
    let given = |l: u32| if l < 12 { 100 + l } else { 200 + l };
    assert_eq!(ran.words, (0..32).map(|l| given(l ^ 8).wrapping_add(ballot)).collect::<Vec<u32>>());
    assert_eq!((ran.count(high_shuffle), ran.count(low_shuffle)), ((1, 20), (1, 12)));
    assert_eq!(ran.count(end), (1, 32));
}

#[test]
fn a_warp_barrier_that_nobody_completes_is_reported() {
    // Different exchanges in both arms under one mask.
    let mut c = Code::default();
    lane_id(&mut c, 0);
    c.set(Cmp::Lt, 0, r(0), imm(16));
    let low = c.branch(p(0), 0);
    let one = sync(&mut c, u32::MAX);
    ballot(&mut c, 2);
    c.exit(PredSrc::TRUE);
    c.land(low);
    let two = sync(&mut c, u32::MAX);
    let op = WarpOp::Shuffle {
        mode: ShuffleMode::Bfly,
        dst: Some(Slot(2)),
        pdst: None,
        src: r(0),
        lane: imm(16),
        clamp: imm(31),
    };
    c.push(PredSrc::TRUE, Op::Warp(op));
    c.exit(PredSrc::TRUE);
    match one_block(&c.kernel(), Model::Ipdom, 32, 32).map(|r| r.words) {
        Err(SimError::Deadlock { waiting, .. }) => {
            let mut at: Vec<(u32, u64)> = waiting.iter().map(|p| (p.inst, p.lanes.0)).collect();
            at.sort_unstable();
            assert_eq!(at, [(one, 0xffff_0000), (two, 0xffff)]);
        }
        other => panic!("{other:?}"),
    }
}

/// Two warps; in each some lanes take a detour before a barrier of the block that all lanes reach together.
#[test]
fn block_barriers_hold_the_warp() {
    let mut c = Code::default();
    lane_id(&mut c, 0);
    c.special(1, lanescope_ir::op::warp::SpecialReg::Tid(0));
    c.lane(IntFn::Shl, 5, &[r(1), imm(2)]);
    c.set(Cmp::Lt, 0, r(0), imm(4));
    let skip = c.branch(p(0).not(), 0);
    count_up(&mut c, 1);
    c.land(skip);
    c.store(Space::Shared, Width::B32, 1, at32(5));
    let op = WarpOp::BlockBarrier { mode: BlockBarrierMode::Sync, id: imm(0), threads: None, pred: PredSrc::TRUE };
    let bar = c.push(PredSrc::TRUE, Op::Warp(op));
    c.lane(IntFn::Xor, 5, &[r(5), imm(32 * 4)]);
    c.load(Space::Shared, Width::B32, 2, at32(5));
    c.special(0, lanescope_ir::op::warp::SpecialReg::Tid(0));
    finish(&mut c, 2);
    let mut kernel = c.kernel();
    kernel.shared_size = 256;
    for model in crate::BOTH {
        let ran = one_block(&kernel, model, 64, 64).unwrap();
        assert_eq!(ran.count(bar), (2, 64));
        let value = |t: u32| t + u32::from(t % 32 < 4);
        assert_eq!(ran.words, (0..64).map(|t| value(t ^ 32)).collect::<Vec<u32>>());
    }
}

#[test]
fn sleep_lets_the_others_run() {
    // Lane 0 waits for a flag that the others set behind the join of their branch. Its first sleep lets them come to the
    // join, its second lets them past it.
    let mut c = Code::default();
    lane_id(&mut c, 0);
    c.lane(IntFn::Mov, 1, &[imm(0)]);
    c.lane(IntFn::Mov, 3, &[imm(1)]);
    c.set(Cmp::Ne, 0, r(0), imm(0));
    let others = c.branch(p(0), 0);
    let top = c.control(PredSrc::TRUE, ControlOp::Sleep);
    count_up(&mut c, 2);
    c.load(Space::Shared, Width::B32, 4, at32(1));
    c.set(Cmp::Eq, 1, r(4), imm(0));
    c.branch(p(1), top);
    c.land(others);
    let set = c.store(Space::Shared, Width::B32, 3, at32(1));
    finish(&mut c, 2);
    let mut kernel = c.kernel();
    kernel.shared_size = 16;
    let ran = one_block(&kernel, Model::Ipdom, 32, 32).unwrap();
    assert_eq!(ran.groups(set).iter().map(|g| g.count()).collect::<Vec<_>>(), [31, 1]);
    assert_eq!(ran.words[0], 2);
    assert_eq!(ran.count(top), (2, 2));
}
