//! Arrival counts and orders that an H200 showed.

use crate::mini::{Op, always, run};
use lanescope_ir::LaneMask;
use lanescope_sim::convergence::Convergence;

const PARKED: &str = include_str!("../data/parked-groups.txt");
const EXITS: &str = include_str!("../data/parked-exits.txt");
const BRX: &str = include_str!("../data/parked-brx-order.txt");

fn rows(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter(|l| !l.starts_with('#')).map(|l| l.split_once(" : ").unwrap())
}

fn numbers(text: &str) -> Vec<u32> {
    text.split_whitespace().map(|n| n.parse().unwrap()).collect()
}

/// A loop with one exit, skipped by lanes without trips: `BSSY; @none BRA end; head: body; BRA head; end: BSYNC; EXIT`.
fn issues(trips: &[u32], body: impl Fn() -> Vec<Op<'static>>) -> (Vec<u32>, usize) {
    let body = body();
    let end = 3 + body.len() as u32;
    let mut program = vec![Op::Bssy(0), Op::Branch(end, Box::new(|l, _| trips[l as usize] == 0))];
    program.extend(body);
    program.push(Op::Branch(2, Box::new(|l, n| n[2] < trips[l as usize])));
    program.push(Op::Bsync(0));
    program.push(Op::Exit(always()));
    let run = run(&program, LaneMask::first(32), 100_000);
    assert_eq!(run.state.live(), LaneMask::EMPTY);
    (run.sizes(end), run.sizes(end + 1).len())
}

#[test]
fn parked_groups_merge_as_on_the_h200() {
    let mut seen = 0;
    let mut wrong = Vec::new();
    for (head, trips) in rows(PARKED) {
        let trips = numbers(trips);
        let (name, counts) = head.split_once(' ').unwrap();
        let got = [
            arrivals(&trips, || vec![Op::Alu, Op::Alu]),
            arrivals(&trips, || vec![Op::Memory, Op::Alu]),
            arrivals(&trips, || vec![Op::Memory, Op::Memory, Op::Memory, Op::Alu]),
        ];
        let got = got.map(|a| a.len() as u32);
        if got.as_slice() != numbers(counts) {
            wrong.push(format!("{name}: {got:?}, counted {counts}"));
        }
        seen += 1;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(seen, 83);
}

/// Arrivals at the BSYNC of a loop whose lanes rejoin.
fn arrivals(trips: &[u32], body: impl Fn() -> Vec<Op<'static>>) -> Vec<u32> {
    let (arrivals, exits) = issues(trips, body);
    assert_eq!(exits, 1, "all rejoin");
    arrivals
}

fn repeat(groups: &[(u32, u32)]) -> Vec<u32> {
    groups.iter().flat_map(|&(trips, lanes)| vec![trips; lanes as usize]).collect()
}

/// The lanes' trips, then the arrivals of a loop without memory instructions, with one, and with NANOSLEEP.
type TripRow = (&'static [(u32, u32)], u32, Option<u32>, Option<u32>);

#[test]
fn nanosleep_keeps_parked_groups_apart() {
    let table: &[TripRow] = &[
        (&[(1, 12), (2, 14), (3, 4), (4, 2)], 4, Some(3), Some(4)),
        (&[(1, 25), (2, 5), (3, 2)], 3, Some(2), Some(3)),
        (&[(1, 25), (2, 5), (3, 1), (4, 1)], 3, Some(3), Some(4)),
        (&[(1, 18), (2, 8), (3, 4), (4, 2)], 3, Some(2), Some(4)),
        (&[(2, 4), (3, 4), (4, 3), (5, 4), (6, 6), (7, 6), (8, 3), (9, 2)], 8, Some(7), Some(8)),
        (&[(1, 28), (2, 1), (3, 1), (4, 1), (5, 1)], 5, None, None),
    ];
    for &(groups, alu, memory, sleep) in table {
        let trips = repeat(groups);
        assert_eq!(arrivals(&trips, || vec![Op::Alu]).len() as u32, alu, "{groups:?}");
        if let Some(n) = memory {
            assert_eq!(arrivals(&trips, || vec![Op::Memory]).len() as u32, n, "{groups:?}");
        }
        if let Some(n) = sleep {
            // Lanes that gave way do not hold the barrier, so that no group rejoins another.
            for pause in [|| vec![Op::Sleep], || vec![Op::Yield]] {
                let (arrivals, exits) = issues(&trips, pause);
                assert_eq!((arrivals.len() as u32, exits as u32), (n, n), "{groups:?}");
            }
        }
    }
    let different: Vec<u32> = (1..=32).collect();
    assert_eq!(arrivals(&different, || vec![Op::Alu]).len(), 32);
}

#[test]
fn indirect_branches_run_their_targets_in_the_order_seen() {
    let mut seen = 0;
    for (order, targets) in rows(BRX) {
        let (order, target) = (numbers(order), numbers(targets));
        let t = |l: u32| target[l as usize];
        // 0: three from five; 1: BRX of 0, 1, 2; 2: two from three; 3: BRX of 3, 4; 4, 5: branches of 5, 6, 7; arms at 10 + 2 * target.
        let mut program: Vec<Op<'_>> = vec![
            Op::Branch(2, Box::new(move |l, _| t(l) > 2)),
            Op::Indirect(Box::new(move |l| 10 + 2 * t(l))),
            Op::Branch(4, Box::new(move |l, _| t(l) > 4)),
            Op::Indirect(Box::new(move |l| 10 + 2 * t(l))),
        ];
        while program.len() < 10 {
            program.push(Op::Indirect(Box::new(move |l| 10 + 2 * t(l))));
        }
        for _ in 0..8 {
            program.push(Op::Alu);
            program.push(Op::Exit(always()));
        }
        let run = run(&program, LaneMask::first(32), 1000);
        // 5, 6, 7 hang on a tree of branches whose shape is not recorded: only the order of those from a BRX is compared.
        let of = |set: &[u32], all: &[u32]| all.iter().copied().filter(|t| set.contains(t)).collect::<Vec<_>>();
        let ran: Vec<u32> =
            run.issues.iter().filter(|g| g.pc >= 10 && g.pc % 2 == 0).map(|g| (g.pc - 10) / 2).collect();
        for set in [&[0, 1, 2][..], &[3, 4]] {
            assert_eq!(of(set, &ran), of(set, &order), "{order:?}");
        }
        seen += 1;
    }
    assert_eq!(seen, 6);
}

/// A loop of three loads with an exit after each, turned round as ptxas does: the first exit test of a turn is the loop's latch, so
/// that it leaves by falling through, and by a branch before the first turn.
#[test]
fn taken_and_fall_through_sides_stay_apart() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (count, stays) in rows(EXITS) {
        let stays = numbers(stays);
        let stays = &stays;
        const END: u32 = 9;
        let leaves = |test: u32| -> crate::mini::Test<'_> {
            // `n[3]` counts the turns, this one included.
            Box::new(move |l, n| stays[l as usize] == 3 * n[3].saturating_sub(1) + test)
        };
        let program = vec![
            Op::Bssy(0),
            Op::Memory,
            Op::Branch(END, Box::new(move |l, _| stays[l as usize] == 0)),
            Op::Memory,
            Op::Branch(END, leaves(1)),
            Op::Memory,
            Op::Branch(END, leaves(2)),
            Op::Memory,
            Op::Branch(3, Box::new(move |l, n| stays[l as usize] != 3 * n[3])),
            Op::Bsync(0),
            Op::Exit(always()),
        ];
        let run = run(&program, LaneMask::first(32), 10_000);
        assert_eq!(run.sizes(END + 1), [32]);
        let got = run.sizes(END).len();
        if got.to_string() != count {
            wrong.push(format!("warp {seen}: {got}, counted {count}"));
        }
        seen += 1;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(seen, 120);
}
