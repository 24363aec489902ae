//! Small kernels whose verdicts follow from what a warp is.

use lanescope_ir::op::int::{Cmp, IntFn};
use lanescope_ir::op::memory::{Addr, AtomOp, AtomType, MemoryOp, Space, Width};
use lanescope_ir::op::warp::{ShuffleMode, SpecialReg, VoteMode, WarpOp};
use lanescope_ir::op::{LaneFn, LaneOp};
use lanescope_ir::{Kernel, LaneMask, Op, Pred, PredSrc, Slot, Src};

use super::{Facts, Level, Operand, Origin, Scope, Uniformity, Verdict};
use crate::regions::Structure;
use crate::testing::Builder;

const TID: SpecialReg = SpecialReg::Tid(0);

fn r(n: u16) -> Src {
    Src::slot(Slot(n))
}

fn int(b: &mut Builder, f: IntFn, d: u16, s: &[Src]) {
    let mut op = LaneOp::new(LaneFn::Int(f));
    op.dst[0] = Some(Slot(d));
    op.src[..s.len()].copy_from_slice(s);
    b.push(PredSrc::TRUE, Op::Lane(op), "int");
}

fn set(b: &mut Builder, p: u16, cmp: Cmp, a: Src, c: Src) {
    let mut op = LaneOp::new(LaneFn::Int(IntFn::Set { cmp, signed: true }));
    op.pdst[0] = Some(Pred(p));
    op.src[..2].copy_from_slice(&[a, c]);
    b.push(PredSrc::TRUE, Op::Lane(op), "set");
}

fn special(b: &mut Builder, d: u16, reg: SpecialReg) {
    b.push(
        PredSrc::TRUE,
        Op::Warp(WarpOp::Special { dst: [Some(Slot(d)), None], reg: [reg, SpecialReg::Zero] }),
        "S2R",
    );
}

fn load(b: &mut Builder, d: u16, address: Src) {
    let addr = Addr { base: address, base_hi: None, uniform: None, signed: false, scale: 0, offset: 0 };
    let mut dst = [None; 8];
    dst[0] = Some(Slot(d));
    let op = MemoryOp::Load { space: Space::Global, width: Width::B32, dst, addr, valid: PredSrc::TRUE };
    b.push(PredSrc::TRUE, Op::Memory(op), "LDG");
}

fn kernel(b: &Builder) -> Kernel {
    Kernel { slots: 32, param_base: (0, 0x210), ..b.kernel() }
}

fn ptx(b: &Builder) -> Kernel {
    Kernel { arch: "ptx".into(), ..kernel(b) }
}

fn analyse(k: &Kernel, facts: &Facts) -> Uniformity {
    Uniformity::new(k, &Structure::new(k), facts)
}

fn block(x: u32, y: u32) -> Facts {
    Facts { block: Some([x, y, 1]), ..Facts::default() }
}

fn verdict(k: &Kernel, facts: &Facts, at: u32) -> Verdict {
    analyse(k, facts).branch(at).unwrap().verdict.clone()
}

/// `if (f(threadIdx.x)) ...` with the branch at instruction 3.
fn on_thread(f: IntFn, by: u32, cmp: Cmp, with: u32) -> Kernel {
    let mut b = Builder::new();
    special(&mut b, 0, TID);
    int(&mut b, f, 1, &[r(0), Src::imm(by)]);
    set(&mut b, 0, cmp, r(1), Src::imm(with));
    b.bra_if(0, 5).nop().exit();
    kernel(&b)
}

#[test]
fn the_thread_index() {
    let half = on_thread(IntFn::And, 31, Cmp::Lt, 16);
    assert_eq!(verdict(&half, &Facts::default(), 3), Verdict::Shape);
    let Verdict::Lanes(lanes) = verdict(&half, &block(64, 1), 3) else { panic!("lanes are known") };
    assert_eq!(lanes.len(), 2);
    assert!(lanes.iter().all(|l| l.taken == LaneMask::first(16) && l.there == LaneMask::first(32)));
    // 16 x 16 threads: the index is the lane modulo 16.
    assert_eq!(verdict(&half, &block(16, 16), 3), Verdict::Never);
    // 48 x 2: warp 1 has 32..47 and 0..15.
    assert!(matches!(verdict(&on_thread(IntFn::ShrU, 5, Cmp::Eq, 0), &block(48, 2), 3), Verdict::Lanes(_)));
}

#[test]
fn the_warp_index() {
    for facts in [block(256, 1), block(250, 1), Facts { linear: true, ..Facts::default() }] {
        for k in [
            on_thread(IntFn::ShrU, 5, Cmp::Eq, 1),
            on_thread(IntFn::Div { signed: false }, 32, Cmp::Eq, 1),
            on_thread(IntFn::And, !31, Cmp::Eq, 64),
        ] {
            if facts.linear
                && matches!(k.instructions[1].op, Op::Lane(LaneOp { f: LaneFn::Int(IntFn::Div { .. }), .. }))
            {
                continue;
            }
            assert_eq!(verdict(&k, &facts, 3), Verdict::Never, "{facts:?}");
        }
    }
    assert!(matches!(verdict(&on_thread(IntFn::ShrU, 4, Cmp::Eq, 1), &block(256, 1), 3), Verdict::Lanes(_)));
}

#[test]
fn a_bound_splits_the_last_warp() {
    let mut b = Builder::new();
    special(&mut b, 0, TID);
    special(&mut b, 1, SpecialReg::CtaId(0));
    int(&mut b, IntFn::Mad, 2, &[r(1), Src::constant(0, 0), r(0)]);
    set(&mut b, 0, Cmp::Ge, r(2), Src::constant(0, 0x210));
    b.exit_if(0).nop().exit();
    let k = kernel(&b);
    assert_eq!(verdict(&k, &Facts::default(), 4), Verdict::Shape);
    assert_eq!(verdict(&k, &Facts { linear: true, ..Facts::default() }, 4), Verdict::Boundary(Scope::Grid));
    assert_eq!(verdict(&k, &block(256, 1), 4), Verdict::Boundary(Scope::Grid));
    // Rows of 16: lanes rise and fall.
    assert_eq!(verdict(&k, &block(16, 16), 4), Verdict::Unknown);
    let u = analyse(&k, &block(256, 1));
    assert_eq!(u.after_exit(5), Some(4));
    assert_eq!(u.apart(5), None);
}

#[test]
fn loads_votes_and_shuffles() {
    let mut b = Builder::new();
    special(&mut b, 0, TID);
    load(&mut b, 1, Src::constant(0, 0x210));
    set(&mut b, 0, Cmp::Eq, r(1), Src::imm(0));
    b.bra_if(0, 4); // 3
    int(&mut b, IntFn::Shl, 2, &[r(0), Src::imm(2)]);
    load(&mut b, 3, r(2));
    set(&mut b, 1, Cmp::Eq, r(3), Src::imm(0));
    let vote = WarpOp::Vote { mode: VoteMode::Any, dst: None, pdst: Some(Pred(2)), src: PredSrc::of(Pred(1)) };
    b.push(PredSrc::TRUE, Op::Warp(vote), "VOTE");
    b.bra_if(2, 9); // 8
    let shuffle = |lane: Src| WarpOp::Shuffle {
        mode: ShuffleMode::Idx,
        dst: Some(Slot(4)),
        pdst: None,
        src: r(3),
        lane,
        clamp: Src::imm(0x1f),
    };
    b.push(PredSrc::TRUE, Op::Warp(shuffle(Src::imm(0))), "SHFL");
    set(&mut b, 3, Cmp::Eq, r(4), Src::imm(0));
    b.bra_if(3, 12); // 11
    b.push(PredSrc::TRUE, Op::Warp(shuffle(r(0))), "SHFL");
    set(&mut b, 4, Cmp::Eq, r(4), Src::imm(0));
    b.bra_if(4, 15); // 14
    b.bra_if(1, 16).exit(); // 15
    let k = kernel(&b);
    let u = analyse(&k, &Facts::default());
    for (at, want) in
        [(3, Verdict::Never), (8, Verdict::Never), (11, Verdict::Never), (14, Verdict::Data), (15, Verdict::Data)]
    {
        assert_eq!(u.branch(at).unwrap().verdict, want, "{at}");
    }
    assert_eq!(u.branch(14).unwrap().origin(), Origin::Exchange(12));
    assert!(matches!(u.branch(15).unwrap().origin(), Origin::Load { inst: 5, .. }));
}

#[test]
fn atomics_differ_by_lane() {
    let mut b = Builder::new();
    let addr = Addr { base: Src::constant(0, 0x210), base_hi: None, uniform: None, signed: false, scale: 0, offset: 0 };
    let op = MemoryOp::Atomic {
        space: Space::Global,
        op: AtomOp::Add,
        ty: AtomType::U32,
        dst: [Some(Slot(0)), None, None, None],
        pdst: None,
        addr,
        src: [Src::imm(1), Src::ZERO, Src::ZERO, Src::ZERO],
        compare: [Src::ZERO; 4],
    };
    b.push(PredSrc::TRUE, Op::Memory(op), "ATOMG");
    set(&mut b, 0, Cmp::Eq, r(0), Src::imm(0));
    b.bra_if(0, 4).nop().exit();
    let k = kernel(&b);
    let u = analyse(&k, &block(64, 1));
    assert_eq!(u.branch(2).unwrap().verdict, Verdict::Data);
    assert!(matches!(u.branch(2).unwrap().origin(), Origin::Atomic { inst: 0, .. }));
}

/// A loop that each lane leaves when its counter reaches its index, and a branch on the counter behind it.
#[test]
fn lanes_that_leave_a_loop_at_different_turns() {
    let mut b = Builder::new();
    special(&mut b, 0, TID);
    int(&mut b, IntFn::Mov, 1, &[Src::imm(0)]);
    int(&mut b, IntFn::Add, 1, &[r(1), Src::imm(1)]); // 2: the loop
    set(&mut b, 0, Cmp::Lt, r(1), r(0));
    b.bra_if(0, 2);
    set(&mut b, 1, Cmp::Eq, r(1), Src::imm(3));
    b.bra_if(1, 8).nop().exit(); // 6
    let k = ptx(&b);
    let u = analyse(&k, &block(64, 1));
    assert_eq!(u.branch(6).unwrap().verdict, Verdict::Paths);
    assert_eq!(u.branch(6).unwrap().origin(), Origin::Paths { branch: 4, at: 5 });
    assert!(u.loops[0].level > Level::Warp);
    // The counter itself is shared as long as lanes are in the loop.
    assert_eq!(u.operand(3, Operand::Slot(Slot(1))).unwrap().level, Level::Warp);
    assert_eq!(u.apart(2), Some(4));
    assert_eq!(u.apart(5), None);
    // The same loop with a bound that all share.
    let mut b = Builder::new();
    int(&mut b, IntFn::Mov, 1, &[Src::imm(0)]);
    int(&mut b, IntFn::Add, 1, &[r(1), Src::imm(1)]);
    set(&mut b, 0, Cmp::Lt, r(1), Src::constant(0, 0x210));
    b.bra_if(0, 1);
    set(&mut b, 1, Cmp::Eq, r(1), Src::imm(3));
    b.bra_if(1, 7).nop().exit();
    let u = analyse(&ptx(&b), &Facts::default());
    assert_eq!((u.branch(3).unwrap().level, u.branch(5).unwrap().level), (Level::Grid, Level::Grid));
    assert_eq!(u.loops[0].level, Level::Grid);
}

/// Both arms set a register: behind a branch that parts lanes it differs, behind one that all share it does not.
#[test]
fn values_that_meet() {
    let build = |uniform: bool| {
        let mut b = Builder::new();
        special(&mut b, 0, if uniform { SpecialReg::CtaId(0) } else { TID });
        set(&mut b, 0, Cmp::Lt, r(0), Src::imm(5));
        b.bra_if(0, 5);
        int(&mut b, IntFn::Mov, 1, &[Src::imm(1)]);
        b.bra(6);
        int(&mut b, IntFn::Mov, 1, &[Src::imm(2)]);
        set(&mut b, 1, Cmp::Eq, r(1), Src::constant(0, 0x210)); // 6
        b.bra_if(1, 9).nop().exit(); // 7
        ptx(&b)
    };
    assert_eq!(verdict(&build(true), &block(64, 1), 7), Verdict::Never);
    let u = analyse(&build(false), &block(64, 1));
    assert_eq!(u.branch(7).unwrap().origin(), Origin::Paths { branch: 2, at: 6 });
    // Only warp 0 has lanes on both sides.
    assert_eq!(u.lanes(5)[1].there, LaneMask::EMPTY);
    assert_eq!(u.lanes(5)[0].there, LaneMask::first(5));
}

/// Where one lane is left everything is shared.
#[test]
fn one_lane() {
    let mut b = Builder::new();
    special(&mut b, 0, TID);
    set(&mut b, 0, Cmp::Ne, r(0), Src::imm(0));
    b.bra_if(0, 6);
    load(&mut b, 1, r(0));
    set(&mut b, 1, Cmp::Eq, r(1), Src::imm(0));
    b.bra_if(1, 6).exit(); // 5
    let k = ptx(&b);
    assert_eq!(verdict(&k, &block(64, 1), 5), Verdict::Never);
    assert_eq!(verdict(&k, &Facts::default(), 5), Verdict::Data);
}

/// Without a barrier lanes stay apart, and each side loads at its own time.
#[test]
fn without_a_join_loads_are_not_shared() {
    let build = |join: bool| {
        let mut b = Builder::new();
        special(&mut b, 0, TID);
        set(&mut b, 0, Cmp::Lt, r(0), Src::imm(5));
        if join {
            b.bssy(0, 7);
        } else {
            b.nop();
        }
        b.bra_if(0, 6).nop().nop(); // 3
        if join {
            b.bsync(0);
        } else {
            b.nop();
        }
        load(&mut b, 1, Src::constant(0, 0x210)); // 7
        set(&mut b, 1, Cmp::Eq, r(1), Src::imm(0));
        b.bra_if(1, 10).exit(); // 9
        kernel(&b)
    };
    let joined = analyse(&build(true), &block(64, 1));
    assert_eq!(joined.branch(9).unwrap().verdict, Verdict::Never);
    assert_eq!((joined.apart(7), joined.apart(4)), (None, Some(3)));
    let loose = analyse(&build(false), &block(64, 1));
    assert_eq!(loose.branch(9).unwrap().verdict, Verdict::Data);
    assert_eq!(loose.branch(9).unwrap().origin(), Origin::Apart { branch: 3, inst: 7 });
}

#[test]
fn traps_are_guarded() {
    let mut b = Builder::new();
    load(&mut b, 1, Src::constant(0, 0x210));
    set(&mut b, 0, Cmp::Eq, r(1), Src::imm(0));
    b.bra_if(0, 4).exit();
    b.push(PredSrc::TRUE, Op::Control(lanescope_ir::op::control::ControlOp::Trap), "BPT.TRAP");
    let u = analyse(&kernel(&b), &Facts::default());
    assert!(u.branch(2).unwrap().guards_trap);
}

/// A ladder of thousands of branches, a third of which part lanes, stays within the limits.
#[test]
fn large_kernels() {
    let mut b = Builder::new();
    special(&mut b, 0, TID);
    for i in 0..4_000u32 {
        let at = 1 + i * 4;
        int(&mut b, IntFn::Add, (1 + i % 30) as u16, &[r((1 + (i + 7) % 30) as u16), Src::imm(i)]);
        set(&mut b, 0, Cmp::Lt, if i % 3 == 0 { r(0) } else { Src::constant(0, 0x210) }, Src::imm(i % 64));
        b.bra_if(0, at + 4).nop();
    }
    b.exit();
    let k = ptx(&b);
    let u = analyse(&k, &block(128, 1));
    assert!(u.branches.len() == 4_000 && !u.is_lost());
}
