//! Both arms of a branch use the same barrier registers, as ptxas gives them out, and the arms take turns.

use crate::mini::{Op, Run, always, run};
use lanescope_ir::LaneMask;
use lanescope_sim::convergence::Convergence;

fn finish(program: &[Op<'_>]) -> Run {
    let run = run(program, LaneMask::first(32), 100_000);
    assert!(run.state.live().is_empty(), "{:?}", run.state.waiting());
    run
}

/// If those whom a BREAK sets free had to wait for the other arm, that arm would wait in barrier 1 for them.
#[test]
fn who_is_freed_by_a_break_goes_on_before_the_other_arm() {
    let run = finish(&[
        Op::Bssy(0),
        Op::Branch(10, Box::new(|l, _| l < 16)),
        Op::Bssy(1),
        Op::Branch(7, Box::new(|l, _| l >= 20)),
        Op::Alu,
        Op::Bsync(1),
        Op::Branch(8, always()),
        Op::Break(1, always()),
        Op::Bsync(0),
        Op::Exit(always()),
        // The other arm.
        Op::Bssy(1),
        Op::Alu,
        Op::Bsync(1),
        Op::Branch(8, always()),
    ]);
    let at = |pc: u32| run.issues.iter().position(|g| g.pc == pc).unwrap();
    assert!(at(6) < at(10));
    assert_eq!(run.sizes(12), [16]);
    assert_eq!(run.sizes(9), [32]);
}

/// The arm with the loop yields, the other arm diverges, so that barriers wait for those who have yielded; then lanes
/// of each arm wait for lanes of the other.
#[test]
fn arms_that_yield_and_share_barriers_end() {
    let run = finish(&[
        Op::Bssy(0),
        Op::Branch(11, Box::new(|l, _| l % 2 == 1)),
        Op::Bssy(1),
        Op::Yield,
        Op::Bssy(2),
        Op::Branch(7, Box::new(|l, _| l % 4 == 0)),
        Op::Alu,
        Op::Bsync(2),
        Op::Branch(3, Box::new(|_, issued| issued[3] < 3)),
        Op::Bsync(1),
        Op::Branch(16, always()),
        // The other arm.
        Op::Bssy(2),
        Op::Branch(15, Box::new(|l, _| l % 4 == 1)),
        Op::Bssy(1),
        Op::Bsync(1),
        Op::Bsync(2),
        Op::Bsync(0),
        Op::Exit(always()),
    ]);
    assert_eq!(run.sizes(3).iter().sum::<u32>(), 3 * 16);
    assert_eq!(run.sizes(17).iter().sum::<u32>(), 32);
}
