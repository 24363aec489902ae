//! One test for each rule.

use crate::mini::{Op, Run, Test, always, run};
use lanescope_ir::LaneMask;
use lanescope_sim::convergence::{Barrier, Convergence, Group, Reason, SyncMode, SyncPart};
use std::cell::{Cell, RefCell};

const FULL: LaneMask = LaneMask::first(32);

fn below<'a>(n: u32) -> Test<'a> {
    Box::new(move |l, _| l < n)
}

fn finish(program: &[Op<'_>]) -> Run {
    let run = run(program, FULL, 100_000);
    assert!(run.state.live().is_empty(), "{:?}", run.state.waiting());
    run
}

/// `BSSY; @lane<n BRA 4; fall-through arm; BRA 5; taken arm; BSYNC; EXIT`
fn arms(taken: u32) -> Run {
    finish(&[
        Op::Bssy(0),
        Op::Branch(4, below(taken)),
        Op::Alu,
        Op::Branch(5, always()),
        Op::Alu,
        Op::Bsync(0),
        Op::Exit(always()),
    ])
}

#[test]
fn the_smaller_side_runs_first_and_the_fall_through_at_a_tie() {
    for taken in [1, 5, 15, 16, 17, 27, 31] {
        let run = arms(taken);
        let first = run.issues.iter().find(|g| g.pc == 2 || g.pc == 4).unwrap().pc;
        assert_eq!(first, if taken < 16 { 4 } else { 2 }, "{taken} lanes taken");
        assert_eq!(run.sizes(6), [32]);
        assert_eq!(run.sizes(5).len(), 2);
    }
}

#[test]
fn a_uniform_branch_moves_the_group() {
    let mut s = Barrier::new(&(), FULL, 7);
    assert!(!s.branch(FULL, 3, 8));
    assert_eq!(s.current(), Some(Group { pc: 3, mask: FULL }));
    assert!(!s.branch(LaneMask::EMPTY, 9, 4));
    assert_eq!(s.current(), Some(Group { pc: 4, mask: FULL }));
    assert!(!s.has_parked());
}

#[test]
fn a_predicated_exit_keeps_the_group() {
    let run = finish(&[Op::Exit(below(9)), Op::Alu, Op::Exit(always())]);
    assert_eq!(run.sizes(1), [23]);
    assert_eq!(run.issues.len(), 3);
}

#[test]
fn exits_inside_a_region_release_those_who_wait() {
    // Lanes below 20 wait at the BSYNC; the others leave.
    let run =
        finish(&[Op::Bssy(0), Op::Branch(3, below(20)), Op::Exit(always()), Op::Bsync(0), Op::Alu, Op::Exit(always())]);
    assert_eq!(run.sizes(2), [12]);
    assert_eq!(run.sizes(3), [20]);
    assert_eq!(run.sizes(4), [20]);
    // The waiting side arrives first here.
    let run =
        finish(&[Op::Bssy(0), Op::Branch(3, below(5)), Op::Exit(always()), Op::Bsync(0), Op::Alu, Op::Exit(always())]);
    assert_eq!((run.sizes(2), run.sizes(3), run.sizes(4)), (vec![27], vec![5], vec![5]));
}

#[test]
fn lanes_that_break_are_not_waited_for() {
    // Lanes below 3 leave the region for 6; the others go on to the BSYNC alone.
    let run = finish(&[
        Op::Bssy(0),
        Op::Break(0, below(3)),
        Op::Branch(6, below(3)),
        Op::Bsync(0),
        Op::Alu,
        Op::Exit(always()),
        Op::Alu,
        Op::Exit(always()),
    ]);
    assert_eq!(run.sizes(3), [29]);
    assert_eq!(run.sizes(4), [29]);
    assert_eq!(run.sizes(6), [3]);
}

#[test]
fn a_break_releases_those_who_wait() {
    let mut s = Barrier::new(&(), FULL, 0);
    s.sync_set(3, FULL);
    s.branch(LaneMask::first(4), 10, 1);
    s.sync(3, LaneMask::first(4), 11);
    let rest = FULL - LaneMask::first(4);
    assert_eq!(s.current(), Some(Group { pc: 1, mask: rest }));
    assert_eq!(s.waiting()[0].why, Reason::Barrier { bar: 3, missing: rest });
    s.break_from(3, rest);
    assert_eq!(s.current(), Some(Group { pc: 1, mask: rest }));
    s.exit(rest, 2);
    assert_eq!(s.current(), Some(Group { pc: 11, mask: LaneMask::first(4) }), "when the running group stops");
}

#[test]
fn barriers_can_be_saved_and_restored() {
    let mut s = Barrier::new(&(), FULL, 0);
    s.sync_set(15, LaneMask(0xf0));
    let saved = s.barrier(15);
    s.set_barrier(15, LaneMask::EMPTY);
    assert!(s.barrier(15).is_empty());
    s.set_barrier(15, saved);
    assert_eq!(s.barrier(15), LaneMask(0xf0));
    s.set_barrier(16, FULL);
    assert!(s.barrier(16).is_empty(), "there are sixteen");
}

#[test]
fn absent_and_exited_lanes_do_not_count_as_diverged() {
    let mut s = Barrier::new(&(), LaneMask::first(20), 0);
    assert!(s.is_converged(FULL));
    s.exit(LaneMask::first(2), 1);
    assert!(s.is_converged(FULL));
    s.branch(LaneMask::first(5), 9, 2);
    assert!(!s.is_converged(FULL));
    assert!(s.is_converged(LaneMask::first(5)));
}

/// A lock in memory: who holds it, and who won the last attempt.
#[derive(Default)]
struct Lock {
    held: Cell<bool>,
    won: RefCell<[bool; 32]>,
    count: Cell<u32>,
}

impl Lock {
    fn attempt(&self, lane: u32) {
        self.won.borrow_mut()[lane as usize] = !self.held.replace(true);
    }
    fn won(&self, lane: u32) -> bool {
        self.won.borrow()[lane as usize]
    }
    fn work_and_release(&self, _lane: u32) {
        self.count.set(self.count.get() + 1);
        self.held.set(false);
    }
}

/// As ptxas compiles `while (atomicCAS(lock, 0, 1) != 0) {}` and a release behind the loop.
#[test]
fn a_lock_released_behind_the_join_ends() {
    let lock = Lock::default();
    let run = finish(&[
        Op::Bssy(0),
        Op::Yield,
        Op::Do(Box::new(|l| lock.attempt(l))),
        Op::Branch(1, Box::new(|l, _| !lock.won(l))),
        Op::Bsync(0),
        Op::Do(Box::new(|l| lock.work_and_release(l))),
        Op::Exit(always()),
    ]);
    let falling: Vec<u32> = (1..=32).rev().collect();
    assert_eq!(run.sizes(2), falling);
    assert_eq!(run.sizes(3), falling);
    assert_eq!(run.sizes(4), [1; 32]);
    assert_eq!(lock.count.get(), 32);
}

/// The whole critical section inside the loop body.
#[test]
fn a_lock_inside_the_loop_takes_one_turn_for_each_lane() {
    let lock = Lock::default();
    let run = finish(&[
        Op::Yield,
        Op::Do(Box::new(|l| lock.attempt(l))),
        Op::Bssy(0),
        Op::Branch(5, Box::new(|l, _| !lock.won(l))),
        Op::Do(Box::new(|l| lock.work_and_release(l))),
        Op::Bsync(0),
        Op::Branch(0, Box::new(|l, _| !lock.won(l))),
        Op::Exit(always()),
    ]);
    let falling: Vec<u32> = (1..=32).rev().collect();
    assert_eq!(run.sizes(1), falling);
    assert_eq!(run.sizes(4), [1; 32]);
    assert_eq!(run.sizes(5).len(), 63);
    assert_eq!(run.sizes(5).iter().sum::<u32>(), 528);
    assert_eq!(run.sizes(6), falling);
}

#[test]
fn warpsync_gathers_its_mask() {
    // Both arms meet at one WARPSYNC, then run as one group.
    let run = finish(&[
        Op::Branch(3, below(7)),
        Op::Alu,
        Op::Branch(3, always()),
        Op::Warpsync(Box::new(|_| 0xffff_ffff)),
        Op::Alu,
        Op::Exit(always()),
    ]);
    assert_eq!(run.sizes(3), [7, 25]);
    assert_eq!(run.sizes(4), [32]);
}

#[test]
fn warpsync_with_a_mask_for_each_half() {
    let run =
        finish(&[Op::Warpsync(Box::new(|l| if l < 16 { 0xffff } else { 0xffff_0000 })), Op::Alu, Op::Exit(always())]);
    assert_eq!(run.sizes(1), [32], "a converged group stays together");
}

#[test]
fn exclusive_runs_each_mask_by_itself() {
    let run = finish(&[
        Op::Bssy(0),
        Op::Exclusive(Box::new(|l| if l < 12 { 0xfff } else { 0xffff_f000 })),
        Op::Alu,
        Op::Bsync(0),
        Op::Exit(always()),
    ]);
    let mut sizes = run.sizes(2);
    sizes.sort_unstable();
    assert_eq!(sizes, [12, 20]);
    assert_eq!(run.sizes(4), [32]);
}

#[test]
fn a_collective_runs_once_and_its_groups_go_on_apart() {
    let run = finish(&[
        Op::Branch(3, below(7)),
        Op::Alu,
        Op::Branch(3, always()),
        Op::Collective(Box::new(|_| 0xffff_ffff), 6),
        Op::Alu,
        Op::EndCollective,
        Op::Alu,
        Op::Exit(always()),
    ]);
    assert_eq!(run.masks(4), [0xffff_ffff]);
    assert_eq!(run.sizes(5), [32]);
    let mut after = run.sizes(6);
    after.sort_unstable();
    assert_eq!(after, [7, 25]);
}

#[test]
fn who_waits_for_whom_is_told() {
    let mut s = Barrier::new(&(), FULL, 0);
    let low = LaneMask::first(16);
    s.branch(low, 10, 1);
    // The fall-through side runs first at a tie.
    let all = [SyncPart { lanes: FULL, wanted: LaneMask::first(20) }];
    s.warp_sync(&all, SyncMode::Join, 2);
    assert_eq!(s.current(), Some(Group { pc: 10, mask: low }));
    s.wait_block(low, 11);
    assert_eq!(s.current(), None);
    let waiting = s.waiting();
    assert_eq!(waiting.len(), 2);
    assert_eq!((waiting[0].lanes, waiting[0].why), (FULL - low, Reason::WarpSync { missing: low }));
    assert_eq!((waiting[1].lanes, waiting[1].why), (low, Reason::Block));
    assert_eq!(s.block_waiting(), low);
    s.release_block(low);
    assert_eq!(s.current(), Some(Group { pc: 11, mask: low }));
}

#[test]
fn block_barriers_in_both_arms() {
    let run = finish(&[Op::Branch(3, below(7)), Op::Bar, Op::Exit(always()), Op::Bar, Op::Exit(always())]);
    assert_eq!(run.sizes(1), [25]);
    assert_eq!(run.sizes(3), [7]);
}

#[test]
fn a_reset_state_is_a_new_one() {
    let mut s = Barrier::new(&(), FULL, 0);
    s.sync_set(0, FULL);
    s.branch(LaneMask::first(9), 5, 1);
    s.sync(0, FULL, 6);
    s.exit(FULL, 7);
    s.reset(LaneMask::first(8), 3);
    assert_eq!(s.current(), Some(Group { pc: 3, mask: LaneMask::first(8) }));
    assert!(s.waiting().is_empty() && s.parked().is_empty() && s.barrier(0).is_empty() && s.exited().is_empty());
}

/// A function that saves a barrier, uses it and restores it does not let go the lanes that wait at it for its caller.
#[test]
fn a_saved_barrier_keeps_its_own_waiters() {
    let mut s = Barrier::new(&(), FULL, 0);
    let (early, late) = (LaneMask::first(4), FULL - LaneMask::first(4));
    s.sync_set(6, FULL);
    s.branch(early, 20, 1);
    s.sync(6, early, 21);
    assert_eq!(s.current(), Some(Group { pc: 1, mask: late }));
    // BMOV.CLEAR, BSSY, a divergent branch whose sides meet at the BSYNC the others wait at.
    let saved = s.barrier(6);
    s.set_barrier(6, LaneMask::EMPTY);
    s.sync_set(6, late);
    let inner = LaneMask::first(8) - early;
    s.branch(inner, 20, 2);
    s.sync(6, inner, 21);
    s.set_pc(20);
    s.sync(6, late - inner, 21);
    assert_eq!(s.current(), Some(Group { pc: 21, mask: late }), "the callee's lanes alone");
    s.set_barrier(6, saved);
    s.set_pc(20);
    s.sync(6, late, 21);
    assert_eq!(s.current(), Some(Group { pc: 21, mask: FULL }));
}

#[test]
fn bssy_joins() {
    let mut s = Barrier::new(&(), FULL, 0);
    s.branch(LaneMask::first(16), 10, 1);
    s.sync_set(1, FULL);
    s.set_barrier(2, LaneMask(1));
    s.sync_set(2, FULL);
    assert_eq!(s.barrier(1), FULL - LaneMask::first(16), "of the running group");
    assert_eq!(s.barrier(2), (FULL - LaneMask::first(16)) | LaneMask(1));
}
