//! Where lanes meet, and in which order sides run.

use crate::common::*;
use crate::{BOTH, count_up, lane_id, one_block};
use lanescope_ir::kernel::TargetTable;
use lanescope_ir::op::control::{ControlOp, Indirect};
use lanescope_ir::op::int::{Cmp, IntFn};
use lanescope_ir::op::memory::{Space, Width};
use lanescope_ir::{InstId, PredSrc, Src};
use lanescope_sim::convergence::JoinPoints;
use lanescope_sim::{GlobalMemory, Model, SimError};

/// Stores register `s` at index `lane` (register 0) and leaves.
fn finish(c: &mut Code, s: u16) -> u32 {
    c.element(8, 0, 4, 0);
    c.store(Space::Global, Width::B32, s, at(8));
    c.exit(PredSrc::TRUE)
}

#[test]
fn both_sides_of_an_if_meet_behind_it() {
    // The smaller side first; at a tie the fall-through side.
    for (limit, first) in [(8, "taken"), (16, "fall-through"), (20, "fall-through")] {
        let mut c = Code::default();
        lane_id(&mut c, 0);
        c.set(Cmp::Lt, 0, r(0), imm(limit));
        let branch = c.branch(p(0), 0);
        let no = c.lane(IntFn::Mov, 2, &[imm(1)]);
        let over = c.branch(PredSrc::TRUE, 0);
        c.land(branch);
        let yes = c.lane(IntFn::Mov, 2, &[imm(2)]);
        c.land(over);
        let join = c.here();
        let last = finish(&mut c, 2);
        let kernel = c.kernel();
        assert_eq!(JoinPoints::new(&kernel).of(branch), Some(join));
        for model in BOTH {
            let ran = one_block(&kernel, model, 32, 32).unwrap();
            assert_eq!(ran.words, (0..32).map(|l| if l < limit { 2 } else { 1 }).collect::<Vec<u32>>());
            assert_eq!(ran.count(join), (1, 32));
            assert_eq!(ran.count(last), (1, 32));
            let (taken, rest) = ((yes, limit), (no, 32 - limit));
            let want = if first == "taken" { [taken, rest] } else { [rest, taken] };
            assert_eq!(ran.order(&[yes, no]), want);
        }
    }
}

#[test]
fn a_loop_goes_on_until_its_last_lane_leaves() {
    // Lane l makes l / 4 + 1 trips.
    let mut c = Code::default();
    lane_id(&mut c, 0);
    c.lane(IntFn::ShrU, 1, &[r(0), imm(2)]);
    let top = count_up(&mut c, 2);
    c.set(Cmp::Le, 0, r(2), r(1));
    c.branch(p(0), top);
    let behind = c.here();
    finish(&mut c, 2);
    let kernel = c.kernel();
    for model in BOTH {
        let ran = one_block(&kernel, model, 32, 32).unwrap();
        assert_eq!(ran.words, (0..32).map(|l| l / 4 + 1).collect::<Vec<u32>>());
        assert_eq!(ran.count(top), (8, 32 + 28 + 24 + 20 + 16 + 12 + 8 + 4));
        assert_eq!(ran.count(behind), (1, 32));
    }
}

/// A loop of 8 trips with a jump out of it from inside an if.
#[test]
fn lanes_that_break_out_wait_behind_the_loop() {
    let mut c = Code::default();
    lane_id(&mut c, 0);
    c.lane(IntFn::And, 1, &[r(0), imm(1)]);
    let top = count_up(&mut c, 2);
    c.set(Cmp::Eq, 0, r(1), imm(0));
    let skip = c.branch(p(0), 0);
    // Odd lanes: out of the loop when the trip number reaches lane / 8 + 1.
    c.lane(IntFn::ShrU, 3, &[r(0), imm(3)]);
    c.set(Cmp::Lt, 1, r(3), r(2));
    let out = c.branch(p(1), 0);
    c.land(skip);
    c.set(Cmp::Lt, 2, r(2), imm(8));
    c.branch(p(2), top);
    c.land(out);
    let behind = c.here();
    finish(&mut c, 2);
    let kernel = c.kernel();
    let points = JoinPoints::new(&kernel);
    // An odd lane may leave, so the two sides of the if are only sure to meet behind the loop.
    assert_eq!((points.of(skip), points.of(out)), (Some(behind), Some(behind)));
    for model in BOTH {
        let ran = one_block(&kernel, model, 32, 32).unwrap();
        let want: Vec<u32> = (0..32).map(|l| if l % 2 == 0 { 8 } else { l / 8 + 1 }).collect();
        assert_eq!(ran.words, want);
        assert_eq!(ran.count(behind), (1, 32));
    }
}

#[test]
fn who_leaves_is_not_waited_for() {
    // Some lanes leave inside the loop by a guarded exit, some by a branch to the exit: the others still meet in the loop.
    let mut c = Code::default();
    lane_id(&mut c, 0);
    let top = count_up(&mut c, 2);
    c.lane(IntFn::Mad, 3, &[r(2), imm(4), imm(u32::MAX)]);
    c.set(Cmp::Eq, 0, r(0), r(3));
    c.exit(p(0));
    c.lane(IntFn::Mad, 3, &[r(2), imm(4), imm(u32::MAX - 1)]);
    c.set(Cmp::Eq, 0, r(0), r(3));
    let gone = c.branch(p(0), 0);
    c.lane(IntFn::And, 4, &[r(0), imm(1)]);
    c.set(Cmp::Eq, 1, r(4), imm(0));
    let odd = c.branch(p(1), 0);
    c.lane(IntFn::Add, 5, &[r(5), imm(1)]);
    c.land(odd);
    let meet = c.set(Cmp::Lt, 2, r(2), imm(8));
    c.branch(p(2), top);
    let behind = c.here();
    c.element(8, 0, 4, 0);
    c.store(Space::Global, Width::B32, 2, at(8));
    c.land(gone);
    c.exit(PredSrc::TRUE);
    let kernel = c.kernel();
    for model in BOTH {
        let ran = one_block(&kernel, model, 32, 32).unwrap();
        let want: Vec<u32> = (0..32).map(|l| if l % 4 >= 2 { 0 } else { 8 }).collect();
        assert_eq!(ran.words, want);
        // Two lanes fewer a trip, always one group.
        assert_eq!(ran.count(top), (8, (0..8).map(|t| 32 - 2 * t).sum()));
        assert_eq!(ran.count(meet), (8, (1..9).map(|t| 32 - 2 * t).sum()));
        assert_eq!(ran.count(behind), (1, 16));
    }
}

#[test]
fn a_trap_keeps_nobody_apart() {
    let mut c = Code::default();
    lane_id(&mut c, 0);
    c.set(Cmp::Lt, 0, r(0), imm(8));
    let branch = c.branch(p(0), 0);
    c.set(Cmp::Gt, 1, r(0), imm(40));
    let bad = c.branch(p(1), 0);
    c.lane(IntFn::Mov, 2, &[imm(1)]);
    c.land(branch);
    let join = c.here();
    finish(&mut c, 2);
    c.land(bad);
    c.lane(IntFn::Mov, 2, &[imm(3)]);
    c.control(PredSrc::TRUE, ControlOp::Trap);
    let kernel = c.kernel();
    assert_eq!(JoinPoints::new(&kernel).of(branch), Some(join));
    let ran = one_block(&kernel, Model::Ipdom, 32, 32).unwrap();
    assert_eq!(ran.count(join), (1, 32));
}

#[test]
fn a_switch_runs_its_targets_in_the_measured_order() {
    // Lanes of targets 0, 1, 2, 3: the table of docs/convergence.md, row 3.
    let target_of = |l: u32| match l {
        0..22 => 2,
        22..24 => 1,
        24..30 => 3,
        _ => 0,
    };
    let mut c = Code::default();
    lane_id(&mut c, 0);
    c.lane(IntFn::Mov, 1, &[imm(2)]);
    for (from, value) in [(22, 1), (24, 3), (30, 0)] {
        c.set(Cmp::Ge, 0, r(0), imm(from));
        c.lane_if(p(0), IntFn::Mov, 1, &[imm(value)]);
    }
    c.lane(IntFn::Shl, 3, &[r(1), imm(5)]);
    let base = 0x1000 + u64::from(c.here() + 1) * 16;
    let target = Indirect { reg: [r(3), Src::ZERO], base };
    let branch = c.control(PredSrc::TRUE, ControlOp::BranchIndirect { target, cond: PredSrc::TRUE });
    let arms: Vec<u32> = (0..4).map(|i| c.here() + 2 * i).collect();
    let outs: Vec<u32> = (0..4)
        .map(|i| {
            c.lane(IntFn::Mov, 2, &[imm(10 + i)]);
            c.branch(PredSrc::TRUE, 0)
        })
        .collect();
    outs.into_iter().for_each(|b| c.land(b));
    let join = c.here();
    finish(&mut c, 2);
    let mut kernel = c.kernel();
    let targets = arms.iter().map(|&a| InstId(a)).collect();
    kernel.targets.push(TargetTable { branch: InstId(branch), targets });
    for model in BOTH {
        let ran = one_block(&kernel, model, 32, 32).unwrap();
        assert_eq!(ran.words, (0..32).map(|l| 10 + target_of(l)).collect::<Vec<u32>>());
        assert_eq!(ran.order(&arms), [(arms[1], 2), (arms[3], 6), (arms[0], 2), (arms[2], 22)]);
        assert_eq!(ran.count(join), (1, 32));
    }
}

/// f(n) = n == 0 ? 1 : n + f(n - 1), with a join inside f behind the call; the stack lies in local memory.
#[test]
fn recursion_meets_at_the_same_depth() {
    let mut c = Code::default();
    lane_id(&mut c, 0);
    c.lane(IntFn::And, 1, &[r(0), imm(7)]);
    c.lane(IntFn::Mov, 20, &[imm(1024)]);
    let address = c.lane(IntFn::Mov, 10, &[imm(0)]);
    let call = c.control(PredSrc::TRUE, ControlOp::Call { target: InstId(0), cond: PredSrc::TRUE });
    let back = finish_from(&mut c);
    // f: n in 1, result in 2, return address in 10.
    let f = c.here();
    c.lane(IntFn::Add, 20, &[r(20), imm(u32::MAX - 15)]);
    c.store(Space::Local, Width::B32, 1, at32(20));
    c.lane(IntFn::Add, 21, &[r(20), imm(4)]);
    c.store(Space::Local, Width::B32, 10, at32(21));
    c.lane(IntFn::Mov, 2, &[imm(1)]);
    c.set(Cmp::Eq, 0, r(1), imm(0));
    let end = c.branch(p(0), 0);
    c.lane(IntFn::Add, 1, &[r(1), imm(u32::MAX)]);
    c.lane(IntFn::Mov, 10, &[imm(0x1000 + (c.here() + 2) * 16)]);
    let again = c.control(PredSrc::TRUE, ControlOp::Call { target: InstId(f), cond: PredSrc::TRUE });
    c.load(Space::Local, Width::B32, 1, at32(20));
    let sum = c.lane(IntFn::Add, 2, &[r(2), r(1)]);
    c.land(end);
    let join = c.lane(IntFn::Add, 21, &[r(20), imm(4)]);
    c.load(Space::Local, Width::B32, 10, at32(21));
    c.lane(IntFn::Add, 20, &[r(20), imm(16)]);
    let target = Indirect { reg: [r(10), Src::ZERO], base: 0 };
    let ret = c.control(PredSrc::TRUE, ControlOp::Return { target, cond: PredSrc::TRUE });
    let mut kernel = c.kernel();
    kernel.local_size = 1024;
    set_imm(&mut kernel.instructions[address as usize], 0x1000 + back * 16);
    for at in [call, again] {
        if let lanescope_ir::Op::Control(ControlOp::Call { target, .. }) = &mut kernel.instructions[at as usize].op {
            *target = InstId(f);
        }
    }
    for model in BOTH {
        let ran = one_block(&kernel, model, 32, 32).unwrap();
        let want: Vec<u32> = (0..32u32).map(|l| 1 + (0..=l % 8).sum::<u32>()).collect();
        assert_eq!(ran.words, want);
        // Depth d is reached by the lanes with n >= d: 32, 28, ... 4, and each depth joins before it returns.
        assert_eq!(ran.count(f), (8, (0..8).map(|d| 32 - 4 * d).sum()));
        assert_eq!(ran.count(join), (8, (0..8).map(|d| 32 - 4 * d).sum()));
        assert_eq!(ran.count(ret), ran.count(join));
        assert_eq!(ran.count(sum), (7, (1..8).map(|d| 32 - 4 * d).sum()));
        assert_eq!(ran.count(back), (1, 32));
    }
}

/// As `finish` for register 2; where it starts.
fn finish_from(c: &mut Code) -> u32 {
    let start = c.here();
    finish(c, 2);
    start
}

fn set_imm(inst: &mut lanescope_ir::Instruction, value: u32) {
    if let lanescope_ir::Op::Lane(op) = &mut inst.op {
        op.src[0] = imm(value);
    }
}

#[test]
fn models_are_refused_by_name() {
    let plain = |arch: &str, barriers: bool| {
        let mut c = Code::default();
        if barriers {
            let sync = c.bssy(0);
            c.land(sync);
            c.bsync(0);
        }
        c.exit(PredSrc::TRUE);
        let mut k = c.kernel();
        k.arch = arch.to_owned();
        k
    };
    let try_it = |k: &lanescope_ir::Kernel, model| {
        let mut l = launch(1, 32, &[], 1);
        l.options.model = model;
        run(k, &l, &mut GlobalMemory::new()).map(|_| ()).map_err(|e| e.to_string())
    };
    assert_eq!(
        try_it(&plain("ptx", false), Model::Barrier).unwrap_err(),
        "model barrier cannot run test: PTX names no convergence barriers; use model ipdom or stack"
    );
    assert!(try_it(&plain("sm_90", false), Model::Ipdom).unwrap_err().contains("machine code of sm_90"));
    assert!(try_it(&plain("", true), Model::Stack).unwrap_err().contains("SyncSet"));
    assert_eq!(try_it(&plain("ptx", false), Model::Ipdom), Ok(()));
    assert_eq!(try_it(&plain("sm_90", true), Model::Barrier), Ok(()));
    assert_eq!(Model::of(&plain("ptx", false)), Model::Ipdom);
    let mut l = launch(1, 32, &[], 1);
    l.options.warp_size = 64;
    let error = run(&plain("", false), &l, &mut GlobalMemory::new()).unwrap_err();
    assert_eq!(error, SimError::WarpSize { size: 64, model: 32 });
}
