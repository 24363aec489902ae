//! Lanes are never lost, and every run ends in progress or in a report.

use crate::mini::{Op, Test, run};
use lanescope_ir::LaneMask;
use lanescope_sim::convergence::{Convergence, Reason};

fn mix(mut x: u64) -> u64 {
    x ^= x >> 33;
    x = x.wrapping_mul(0xff51_afd7_ed55_8ccd);
    x ^= x >> 29;
    x = x.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ x >> 32
}

fn chance<'a>(seed: u64, in_eight: u64) -> Test<'a> {
    Box::new(move |lane, counts| {
        let turn: u64 = counts.iter().map(|&c| u64::from(c)).sum();
        mix(seed ^ mix(u64::from(lane) << 32 | turn)) % 8 < in_eight
    })
}

fn program<'a>(seed: u64, len: u32) -> Vec<Op<'a>> {
    let pick = |i: u32, what: u64| mix(seed ^ mix(u64::from(i) << 8 | what));
    let mut program: Vec<Op<'a>> = (0..len)
        .map(|i| {
            let s = pick(i, 9);
            let target = (pick(i, 1) % u64::from(len)) as u32;
            let bar = (pick(i, 2) % 3) as u8;
            let masks = move |l: u32| match s % 5 {
                0 => 0xffff_ffff,
                1 => 0xff << (l / 8 * 8),
                2 => mix(s) & 0xffff_ffff,
                3 => 1 << l,
                _ => mix(s ^ u64::from(l % 2)),
            };
            match pick(i, 0) % 20 {
                0..5 => Op::Branch(target, chance(s, pick(i, 3) % 9)),
                5 => Op::Indirect(Box::new(move |l| (mix(s ^ u64::from(l % 5)) % u64::from(len)) as u32)),
                6 => Op::Exit(chance(s, 1)),
                7 | 8 => Op::Bssy(bar),
                9..12 => Op::Bsync(bar),
                12 => Op::Break(bar, chance(s, 3)),
                13 => Op::Bar,
                14 => Op::Warpsync(Box::new(masks)),
                15 => Op::Exclusive(Box::new(masks)),
                16 => Op::Collective(Box::new(masks), (i + 1).min(len)),
                17 => Op::EndCollective,
                18 => {
                    if s % 2 == 0 {
                        Op::Yield
                    } else {
                        Op::Sleep
                    }
                }
                _ => Op::Memory,
            }
        })
        .collect();
    program.push(Op::Exit(Box::new(|_, _| true)));
    program
}

#[test]
fn lanes_are_never_lost() {
    let (mut ended, mut stuck, mut endless) = (0, 0, 0);
    for seed in 0..3000u64 {
        let lanes = if seed % 4 == 0 { LaneMask(mix(seed) & 0xffff_ffff | 1) } else { LaneMask::first(32) };
        let limit = 600;
        // `run` checks after each issue that every live lane is in exactly one place.
        let run = run(&program(seed, 4 + (seed % 24) as u32), lanes, limit);
        let s = &run.state;
        assert_eq!(s.live() | s.exited(), lanes);
        if s.live().is_empty() {
            ended += 1;
        } else if s.current().is_none() && s.block_waiting().is_empty() {
            stuck += 1;
            let waiting = s.waiting();
            assert_eq!(waiting.iter().fold(LaneMask::EMPTY, |m, w| m | w.lanes), s.live());
            for w in waiting {
                match w.why {
                    Reason::Barrier { missing, .. } | Reason::WarpSync { missing } => {
                        assert!(!missing.is_empty() && s.live().contains(missing), "seed {seed}: {w:?}");
                    }
                    _ => {}
                }
            }
        } else {
            endless += 1;
            assert_eq!(run.issues.len(), limit);
        }
    }
    assert!(ended > 300 && stuck > 300 && endless > 100, "{ended} {stuck} {endless}");
}
