use lanescope_ir::op::LaneOp;
use lanescope_ir::{Pred, Profile, SelectCounts, Slot};

use super::*;
use crate::testing::{Builder, counts};

fn set(b: &mut Builder, cmp: Cmp, d: u16, x: Src, y: Src) {
    let mut op = LaneOp::new(LaneFn::Int(IntFn::Set { cmp, signed: true }));
    op.pdst[0] = Some(Pred(d));
    op.src[..2].copy_from_slice(&[x, y]);
    b.push(PredSrc::TRUE, Op::Lane(op), "ISETP");
}

fn int(b: &mut Builder, guard: PredSrc, f: IntFn, d: u16, src: &[Src], p: PredSrc) {
    let mut op = LaneOp::new(LaneFn::Int(f));
    op.dst[0] = Some(Slot(d));
    op.src[..src.len()].copy_from_slice(src);
    op.psrc[0] = p;
    b.push(guard, Op::Lane(op), "INT");
}

fn vote(b: &mut Builder, mode: VoteMode, pdst: Option<u16>, dst: Option<u16>, src: PredSrc) {
    let op = WarpOp::Vote { mode, dst: dst.map(Slot), pdst: pdst.map(Pred), src };
    b.push(PredSrc::TRUE, Op::Warp(op), "VOTE");
}

fn r(s: u16) -> Src {
    Src::slot(Slot(s))
}
fn p(i: u16) -> PredSrc {
    PredSrc::of(Pred(i))
}
fn find_in(b: &Builder) -> Vec<Lockstep> {
    let k = b.kernel();
    find(&k, &Structure::new(&k))
}

/// `do { R3 = P? R4 : 0; R1 += 1; } while (...)`, where the tail says whether lanes want another turn.
fn body(select: PredSrc, tail: impl FnOnce(&mut Builder)) -> Builder {
    let mut b = Builder::new();
    b.nop();
    // 1: the header. R2 holds each lane's number of turns.
    set(&mut b, Cmp::Lt, 0, r(1), r(2));
    int(&mut b, PredSrc::TRUE, IntFn::Sel, 3, &[r(4), Src::ZERO], select);
    int(&mut b, PredSrc::TRUE, IntFn::Add, 1, &[r(1), Src::imm(1)], PredSrc::TRUE);
    tail(&mut b);
    b.bra_if(7, 1).exit();
    b
}

fn one(b: &Builder) -> Lockstep {
    let list = find_in(b);
    assert_eq!(list.len(), 1, "{list:?}");
    list.into_iter().next().unwrap()
}

#[test]
fn votes_of_the_next_turn() {
    // P1 = R1 >= R2 after the step: the select's question, asked of the next turn and turned round.
    let ge = |b: &mut Builder| set(b, Cmp::Ge, 1, r(1), r(2));
    let any = body(p(0), |b| {
        ge(b);
        vote(b, VoteMode::Any, Some(7), None, p(1).not());
    });
    let l = one(&any);
    assert_eq!((l.header, l.branch, l.vote), (1, 6, 5));
    assert_eq!(l.discards, [Discard { inst: 2, select: true, kept: true }]);
    assert_eq!(selects(&any.kernel()), [2]);
    // The select takes its second value in lanes that want to go on.
    let other = body(p(0).not(), |b| {
        ge(b);
        vote(b, VoteMode::Any, Some(7), None, p(1).not());
    });
    assert_eq!(one(&other).discards, [Discard { inst: 2, select: true, kept: false }]);
    // All of them done, then leave: the branch goes on while that is not so.
    let mut all = body(p(0), |b| {
        ge(b);
        vote(b, VoteMode::All, Some(6), None, p(1));
        let mut op = LaneOp::new(LaneFn::Int(IntFn::Plop3 { lut: [0x08, 0] }));
        op.pdst[0] = Some(Pred(7));
        op.psrc[0] = p(6);
        b.push(PredSrc::TRUE, Op::Lane(op), "PLOP3");
    });
    assert_eq!(one(&all).discards, [Discard { inst: 2, select: true, kept: true }]);
    // Goes on while all want to: the first lane that is done ends it for all, and nobody works for nothing.
    all = body(p(0), |b| {
        set(b, Cmp::Lt, 1, r(1), r(2));
        vote(b, VoteMode::All, Some(7), None, p(1));
    });
    assert!(find_in(&all).is_empty());
    // Another question.
    let unrelated = body(p(0), |b| {
        set(b, Cmp::Ge, 1, r(1), r(5));
        vote(b, VoteMode::Any, Some(7), None, p(1).not());
    });
    assert!(one(&unrelated).discards.is_empty());
}

#[test]
fn ballots_reductions_and_barriers() {
    let select = [Discard { inst: 2, select: true, kept: true }];
    let ballot = body(p(0), |b| {
        set(b, Cmp::Lt, 1, r(1), r(2));
        vote(b, VoteMode::Any, None, Some(9), p(1));
        set(b, Cmp::Ne, 7, r(9), Src::ZERO);
    });
    assert_eq!(one(&ballot).discards, select);
    let all_done = body(p(0), |b| {
        set(b, Cmp::Ge, 1, r(1), r(2));
        vote(b, VoteMode::Any, None, Some(9), p(1));
        set(b, Cmp::Ne, 7, r(9), Src::imm(u32::MAX));
    });
    assert_eq!(one(&all_done).discards, select);
    let none = body(p(0), |b| {
        set(b, Cmp::Lt, 1, r(1), r(2));
        vote(b, VoteMode::Any, None, Some(9), p(1));
        set(b, Cmp::Eq, 7, r(9), Src::ZERO);
    });
    assert!(find_in(&none).is_empty());
    let reduce = |op: ReduceOp| WarpOp::Reduce { op, dst: Some(Slot(9)), pdst: None, src: r(8) };
    let or = body(p(0), |b| {
        set(b, Cmp::Lt, 1, r(1), r(2));
        int(b, PredSrc::TRUE, IntFn::Sel, 8, &[Src::imm(1), Src::ZERO], p(1));
        b.push(PredSrc::TRUE, Op::Warp(reduce(ReduceOp::Or)), "REDUX");
        set(b, Cmp::Gt, 7, r(9), Src::ZERO);
    });
    assert_eq!(one(&or).discards[..1], select);
    // The greatest number of turns left is above zero.
    let mut max = Builder::new();
    max.nop();
    set(&mut max, Cmp::Le, 0, r(8), Src::ZERO);
    int(&mut max, PredSrc::TRUE, IntFn::Sel, 3, &[r(4), Src::ZERO], p(0).not());
    int(&mut max, PredSrc::TRUE, IntFn::Add, 8, &[r(8), Src::imm(u32::MAX)], PredSrc::TRUE);
    max.push(PredSrc::TRUE, Op::Warp(reduce(ReduceOp::Max { signed: true })), "REDUX");
    set(&mut max, Cmp::Ge, 7, r(9), Src::imm(1));
    max.bra_if(7, 1).exit();
    assert_eq!(one(&max).discards, select);
    let barrier = body(p(0), |b| {
        set(b, Cmp::Lt, 1, r(1), r(2));
        let op = WarpOp::BlockBarrier { mode: BlockBarrierMode::RedOr, id: Src::ZERO, threads: None, pred: p(1) };
        b.push(PredSrc::TRUE, Op::Warp(op), "BAR.RED.OR");
        b.push(PredSrc::TRUE, Op::Warp(WarpOp::BarrierResult { dst: None, pdst: Some(Pred(7)) }), "B2R.RESULT");
    });
    assert_eq!(one(&barrier).discards, select);
}

#[test]
fn guards_tell_as_well() {
    let mut b = Builder::new();
    // 0: the header asks, and the lanes that want to work are the guard of what follows.
    set(&mut b, Cmp::Ge, 0, r(1), Src::imm(2));
    set(&mut b, Cmp::Gt, 1, r(1), Src::imm(1));
    vote(&mut b, VoteMode::Any, Some(7), None, p(1));
    b.push(p(7).not(), Op::Control(ControlOp::Exit { cond: PredSrc::TRUE }), "@!P7 EXIT");
    int(&mut b, p(0), IntFn::ShrU, 1, &[r(1), Src::imm(1)], PredSrc::TRUE);
    b.nop().bra(0);
    let l = one(&b);
    assert_eq!((l.branch, l.vote), (3, 2));
    assert_eq!(l.discards, [Discard { inst: 4, select: false, kept: true }]);
    // Ten turns, 32 lanes each, 100 useful; one more look at the header.
    let kernel = b.kernel();
    let mut c = vec![counts(11, 352); 4];
    c.extend([counts(10, 320), counts(10, 320), counts(10, 320)]);
    c[4].thread_inst_executed_pred_on = 100;
    let mut profile = Profile { counts: c, ..Profile::default() };
    profile.shape.warp_size = 32;
    let analysis = crate::analyse(&kernel, &profile);
    let stat = &analysis.lockstep[0];
    let useful = Useful { inst: 4, warp_turns: 10, lane_turns: 320, useful: 100 };
    assert_eq!(stat.useful, Some(useful));
    assert_eq!(useful.efficiency(32), 100.0 / 320.0);
    // 220 of 320 lanes at the NOP and the branch; as much of 352 at the header; none at the guarded instruction.
    assert_eq!((stat.discarded, stat.estimate), (2 * 220 + 4 * (352 * 220 / 320), true));
    assert_eq!(analysis.losses.discarded, stat.discarded);
    let finding = analysis.findings.iter().find(|f| f.rule == "lockstep-loop").unwrap();
    assert!(finding.message.contains("320 lane slots of its 10 warp turns 100 did useful work"), "{}", finding.message);
}

#[test]
fn counted_selects() {
    let b = body(p(0), |b| {
        set(b, Cmp::Ge, 1, r(1), r(2));
        vote(b, VoteMode::Any, Some(7), None, p(1).not());
    });
    let kernel = b.kernel();
    let mut c = vec![counts(1, 32)];
    c.extend(vec![counts(10, 320); 6]);
    c.push(counts(1, 32));
    let selects = vec![SelectCounts { inst: 2, executed: 10, lanes_true: 120, lanes_false: 200 }];
    let mut profile = Profile { counts: c, selects, ..Profile::default() };
    profile.shape.warp_size = 32;
    let analysis = crate::analyse(&kernel, &profile);
    let stat = &analysis.lockstep[0];
    assert_eq!(stat.useful, Some(Useful { inst: 2, warp_turns: 10, lane_turns: 320, useful: 120 }));
    assert_eq!((stat.discarded, stat.estimate), (6 * 200, false));
    assert_eq!(analysis.losses.lost, 0);
}
