use lanescope_ir::op::LaneFn;
use lanescope_ir::op::int::{Cmp, IntFn};
use lanescope_ir::op::memory::{Addr, Width};
use lanescope_ir::{Param, Pred, PredSrc, Slot, Src, op::LaneOp};

use super::*;
use crate::testing::Builder;
use crate::uniformity::Facts;

fn lane(f: IntFn, dst: Option<u16>, pdst: Option<u16>, src: &[Src]) -> Op {
    let mut op = LaneOp::new(LaneFn::Int(f));
    op.dst[0] = dst.map(Slot);
    op.pdst[0] = pdst.map(Pred);
    op.src[..src.len()].copy_from_slice(src);
    Op::Lane(op)
}

fn load(dst: u16, base: u16, offset: i64) -> Op {
    let addr = Addr { base: slot(base), base_hi: None, uniform: None, signed: false, scale: 0, offset };
    let mut d = [None; 8];
    d[0] = Some(Slot(dst));
    Op::Memory(MemoryOp::Load { space: Space::Global, width: Width::B32, dst: d, addr, valid: PredSrc::TRUE })
}

fn slot(s: u16) -> Src {
    Src::slot(Slot(s))
}

fn tid(dst: u16) -> Op {
    Op::Warp(WarpOp::Special { dst: [Some(Slot(dst)), None], reg: [SpecialReg::Tid(0), SpecialReg::Zero] })
}

fn slice_of(k: &Builder, at: u32) -> Slice {
    let mut kernel = k.kernel();
    kernel.slots = 16;
    kernel.param_base = (0, 0x210);
    kernel.params = vec![Param { ordinal: 0, offset: 0, size: 8, name: None }];
    let s = Structure::new(&kernel);
    let u = Uniformity::new(&kernel, &s, &Facts { block: Some([64, 1, 1]), ..Facts::default() });
    Slicer::new(&kernel, &s, &u).slice(at)
}

#[test]
fn a_row_loop_ends_at_both_loads() {
    let mut k = Builder::new();
    let address = lane(IntFn::Lea { shift: 2 }, Some(1), None, &[slot(0), Src::constant(0, 0x210)]);
    let set = |a, b| lane(IntFn::Set { cmp: Cmp::Ge, signed: true }, None, Some(0), &[slot(a), slot(b)]);
    // 0 tid, 1 address, 2 first = load, 3 end = load, 4 first += 1 (loop), 5 compare, 6 @P0 bra 8, 7 bra 4, 8 exit
    k.push(PredSrc::TRUE, tid(0), "S2R")
        .push(PredSrc::TRUE, address, "LEA")
        .push(PredSrc::TRUE, load(2, 1, 0), "LDG")
        .push(PredSrc::TRUE, load(3, 1, 4), "LDG")
        .push(PredSrc::TRUE, lane(IntFn::Add, Some(2), None, &[slot(2), Src::imm(1)]), "IADD")
        .push(PredSrc::TRUE, set(2, 3), "ISETP")
        .bra_if(0, 8)
        .bra(4)
        .exit();
    let s = slice_of(&k, 6);
    let mut loads: Vec<u32> = s.loads().collect();
    loads.sort_unstable();
    assert_eq!(loads, [2, 3]);
    assert!(s.sources.iter().all(|x| x.kind == SourceKind::Load { param: Some(0) }), "{s:?}");
    assert_eq!(s.values, [4, 3]);
    assert!(s.whole && !s.voted && !s.by_thread_alone());
}

#[test]
fn the_compared_number_is_noted_before_its_load() {
    let mut k = Builder::new();
    let address = lane(IntFn::Lea { shift: 2 }, Some(1), None, &[slot(0), Src::constant(0, 0x210)]);
    k.push(PredSrc::TRUE, tid(0), "S2R")
        .push(PredSrc::TRUE, address, "LEA")
        .push(PredSrc::TRUE, load(2, 1, 0), "LDG")
        .push(PredSrc::TRUE, lane(IntFn::And, Some(3), None, &[slot(2), Src::imm(7)]), "LOP3")
        .push(PredSrc::TRUE, lane(IntFn::Set { cmp: Cmp::Eq, signed: false }, None, Some(0), &[slot(3)]), "ISETP")
        .bra_if(0, 7)
        .nop()
        .exit();
    let s = slice_of(&k, 5);
    assert_eq!((s.values.clone(), s.loads().collect::<Vec<_>>()), (vec![3], vec![2]));
}

#[test]
fn parity_of_the_thread_index_is_the_thread_alone() {
    let mut k = Builder::new();
    k.push(PredSrc::TRUE, tid(0), "S2R")
        .push(PredSrc::TRUE, lane(IntFn::And, Some(1), None, &[slot(0), Src::imm(1)]), "LOP3")
        .push(PredSrc::TRUE, lane(IntFn::Set { cmp: Cmp::Eq, signed: false }, None, Some(0), &[slot(1)]), "ISETP")
        .bra_if(0, 5)
        .nop()
        .exit();
    assert!(slice_of(&k, 3).by_thread_alone());
}

/// 0 tid, 1 address, 2 count = 0, 3 sum = 0 | 4 load, 5 body, 6 count += 1, 7 compare, 8 @P0 bra 4, 9 exit
fn loop_with(body: Op) -> Turns {
    let address = lane(IntFn::Lea { shift: 2 }, Some(1), None, &[slot(0), Src::constant(0, 0x210)]);
    let mut k = Builder::new();
    k.push(PredSrc::TRUE, tid(0), "S2R")
        .push(PredSrc::TRUE, address, "LEA")
        .push(PredSrc::TRUE, lane(IntFn::Mov, Some(2), None, &[]), "MOV")
        .push(PredSrc::TRUE, lane(IntFn::Mov, Some(3), None, &[]), "MOV")
        .push(PredSrc::TRUE, load(4, 1, 0), "LDG")
        .push(PredSrc::TRUE, body, "BODY")
        .push(PredSrc::TRUE, lane(IntFn::Add, Some(2), None, &[slot(2), Src::imm(1)]), "IADD")
        .push(
            PredSrc::TRUE,
            lane(IntFn::Set { cmp: Cmp::Lt, signed: true }, None, Some(0), &[slot(2), slot(0)]),
            "ISETP",
        )
        .bra_if(0, 4)
        .exit();
    let mut kernel = k.kernel();
    kernel.slots = 16;
    let s = Structure::new(&kernel);
    let u = Uniformity::new(&kernel, &s, &Facts { block: Some([64, 1, 1]), ..Facts::default() });
    Slicer::new(&kernel, &s, &u).turns(&s, 0)
}

#[test]
fn a_sum_can_be_shared_out_and_a_recurrence_cannot() {
    assert_eq!(loop_with(lane(IntFn::Add, Some(3), None, &[slot(3), slot(4)])), Turns::Independent { sums: 1 });
    assert_eq!(
        loop_with(lane(IntFn::Mad, Some(3), None, &[slot(4), slot(4), slot(3)])),
        Turns::Independent { sums: 1 }
    );
    // s = s * a + b
    assert_eq!(loop_with(lane(IntFn::Mad, Some(3), None, &[slot(3), slot(4), slot(4)])), Turns::Carried { inst: 5 });
    // The next address is what was loaded: a list is followed.
    assert_eq!(loop_with(lane(IntFn::Mov, Some(1), None, &[slot(4)])), Turns::Carried { inst: 4 });
}
