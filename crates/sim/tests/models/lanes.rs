//! The models by themselves: whatever is asked of them, no lane is lost or in two places.

use crate::common::{Code, imm, p};
use lanescope_ir::op::control::{ControlOp, Decision, Indirect, WarpSyncMode};
use lanescope_ir::{InstId, Kernel, LaneMask, Op, PredSrc, Src};
use lanescope_sim::convergence::{
    Convergence, Group, JoinPoints, PostDominator, Reason, SyncMode, SyncPart, YieldKind,
};

#[derive(Clone, Copy)]
enum Step {
    Branch(u32),
    Exit,
    Sync(u32),
    Call(u32),
    Return,
    Sleep,
    Bar,
    Other,
}

fn mix(mut x: u64) -> u64 {
    x ^= x >> 33;
    x = x.wrapping_mul(0xff51_afd7_ed55_8ccd);
    x ^= x >> 29;
    x = x.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ x >> 32
}

fn program(seed: u64, len: u32) -> Vec<Step> {
    let pick = |i: u32, what: u64| mix(seed ^ mix(u64::from(i) << 8 | what));
    let mut steps: Vec<Step> = (0..len)
        .map(|i| {
            let target = (pick(i, 1) % u64::from(len)) as u32;
            match pick(i, 0) % 16 {
                0..5 => Step::Branch(target),
                5 => Step::Exit,
                6 | 7 => Step::Sync([u32::MAX, 0xff, 0xffff_0000, pick(i, 2) as u32][(pick(i, 3) % 4) as usize]),
                8 => Step::Call(target),
                9 => Step::Return,
                10 => Step::Sleep,
                11 if seed.is_multiple_of(3) => Step::Bar,
                _ => Step::Other,
            }
        })
        .collect();
    steps.push(Step::Exit);
    steps
}

/// The kernel, as far as it matters for joins.
fn kernel(steps: &[Step]) -> Kernel {
    let mut c = Code::default();
    let cond = PredSrc::TRUE;
    for (i, s) in steps.iter().enumerate() {
        let guard = if i + 1 == steps.len() { PredSrc::TRUE } else { p(0) };
        let target = Indirect { reg: [Src::ZERO, Src::ZERO], base: 0 };
        let op = match *s {
            Step::Branch(to) => ControlOp::Branch { target: InstId(to), cond, decision: Decision::Lanes },
            Step::Exit => ControlOp::Exit { cond },
            Step::Sync(mask) => ControlOp::WarpSync { mode: WarpSyncMode::Mask(imm(mask)), cond },
            Step::Call(to) => ControlOp::Call { target: InstId(to), cond },
            Step::Return => ControlOp::Return { target, cond },
            Step::Sleep => ControlOp::Sleep,
            Step::Bar | Step::Other => {
                c.push(PredSrc::TRUE, Op::Nop);
                continue;
            }
        };
        c.control(guard, op);
    }
    c.kernel()
}

fn account<C: Convergence>(s: &C) {
    let mut seen = LaneMask::EMPTY;
    let mut add = |m: LaneMask| {
        assert!((seen & m).is_empty(), "lanes {} are in two places", seen & m);
        assert!(!m.is_empty(), "an empty group");
        seen = seen | m;
    };
    s.current().into_iter().for_each(|g| add(g.mask));
    s.parked().iter().for_each(|g| add(g.mask));
    s.waiting().iter().for_each(|w| add(w.lanes));
    assert_eq!(seen, s.live(), "live lanes lost or found");
    assert!((s.live() & s.exited()).is_empty());
    assert_eq!(s.has_parked(), s.current().map_or(LaneMask::EMPTY, |g| g.mask) != s.live());
}

#[derive(PartialEq, Eq)]
enum End {
    Exited,
    Waits,
    Endless,
}

fn run<const TURNS: bool>(seed: u64, steps: &[Step], points: &JoinPoints, lanes: LaneMask) -> End {
    let mut s = PostDominator::<TURNS>::new(points, lanes, 0);
    let mut back: Vec<Vec<u32>> = vec![Vec::new(); 64];
    for turn in 0..800u64 {
        account(&s);
        while let Some(g) = s.current()
            && s.stop_pc() == Some(g.pc)
        {
            s.arrive();
            account(&s);
        }
        let Some(Group { pc, mask }) = s.current() else {
            let waits = s.block_waiting();
            if !waits.is_empty() {
                s.release_block(waits);
                continue;
            }
            if s.live().is_empty() {
                assert_eq!(s.exited(), lanes);
                return End::Exited;
            }
            for w in s.waiting() {
                match w.why {
                    Reason::WarpSync { missing } => assert!(!missing.is_empty() && s.live().contains(missing)),
                    // Joins hold nobody for ever where lanes make progress.
                    Reason::Join => assert!(!TURNS),
                    other => panic!("{other:?}"),
                }
            }
            return End::Waits;
        };
        let next = pc + 1;
        let some = |salt: u64| {
            let on = |l: &u32| mix(seed ^ salt ^ mix(u64::from(*l) << 32 | turn)) % 4 < 1 + (seed + u64::from(pc)) % 3;
            mask.lanes().filter(on).fold(LaneMask::EMPTY, |m, l| m | LaneMask::lane(l))
        };
        s.set_pc(pc);
        match steps[pc as usize] {
            Step::Branch(to) => {
                s.branch(some(1), to, next);
            }
            Step::Exit if next as usize == steps.len() => {
                s.exit(mask, next);
            }
            Step::Exit => {
                let few = some(2) & LaneMask(mix(seed ^ turn));
                s.exit(few, next);
            }
            Step::Sync(wanted) => {
                s.warp_sync(&[SyncPart { lanes: mask, wanted: LaneMask(wanted.into()) }], SyncMode::Join, next);
            }
            Step::Call(to) => {
                let callers = some(3);
                if callers.lanes().any(|l| back[l as usize].len() > 6) || callers.is_empty() {
                    s.set_pc(next);
                } else {
                    callers.lanes().for_each(|l| back[l as usize].push(next));
                    s.call(&[Group { pc: to, mask: callers }], next);
                }
            }
            Step::Return => {
                let mut targets: Vec<Group> = Vec::new();
                for l in some(4).lanes() {
                    let Some(to) = back[l as usize].pop() else { continue };
                    match targets.iter_mut().find(|t| t.pc == to) {
                        Some(t) => t.mask = t.mask | LaneMask::lane(l),
                        None => targets.push(Group { pc: to, mask: LaneMask::lane(l) }),
                    }
                }
                s.ret(&targets, next);
            }
            Step::Sleep => s.yield_now(YieldKind::Sleep, next),
            Step::Bar => s.wait_block(mask, next),
            Step::Other => {
                s.set_pc(next);
                if mix(seed ^ turn).is_multiple_of(8) {
                    s.give_way();
                }
            }
        }
    }
    End::Endless
}

#[test]
fn lanes_are_never_lost() {
    let mut ends = [0; 6];
    for seed in 0..4000u64 {
        let lanes = if seed % 4 == 0 { LaneMask(mix(seed) & 0xffff_ffff | 1) } else { LaneMask::first(32) };
        let steps = program(seed, 4 + (seed % 24) as u32);
        let points = JoinPoints::new(&kernel(&steps));
        let all = [run::<true>(seed, &steps, &points, lanes), run::<false>(seed, &steps, &points, lanes)];
        for (i, end) in all.into_iter().enumerate() {
            ends[3 * i + end as usize] += 1;
        }
    }
    assert!(ends.iter().all(|&n| n > 50), "{ends:?}");
}
