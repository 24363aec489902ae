//! What stops a launch, and what the message names.

mod common;

use common::*;
use lanescope_ir::op::control::{ControlOp, Indirect};
use lanescope_ir::op::int::{Cmp, IntFn};
use lanescope_ir::op::memory::{Space, Width};
use lanescope_ir::op::warp::{BlockBarrierMode, SpecialReg, WarpOp};
use lanescope_ir::op::{Op, Unsupported};
use lanescope_ir::{Kernel, LaneMask, PredSrc, Slot, Src};
use lanescope_sim::{GlobalMemory, Launch, SimError, Unknown};

/// `out[tid] = tid` with an address that is off by `offset` bytes.
fn store_at(offset: i64, space: Space, width: Width) -> Kernel {
    let mut c = Code::default();
    c.special(0, SpecialReg::Tid(0));
    match space {
        Space::Global => c.element(8, 0, width.bytes(), 0),
        _ => {
            c.lane(IntFn::Mad, 8, &[r(0), imm(width.bytes()), imm(0)]);
        }
    }
    let mut a = if space == Space::Global { at(8) } else { at32(8) };
    a.offset = offset;
    c.store(space, width, 0, a);
    c.exit(PredSrc::TRUE);
    c.kernel()
}

fn fails(kernel: &Kernel, launch: &Launch) -> SimError {
    let mut m = GlobalMemory::new();
    run(kernel, launch, &mut m).expect_err("must fail")
}

#[test]
fn out_of_bounds_names_lane_buffer_and_distance() {
    let mut m = GlobalMemory::new();
    m.alloc("other", &[0; 100]).unwrap();
    let out = m.alloc("out", &[0; 4 * 40]).unwrap();
    let e = run(&store_at(0, Space::Global, Width::B32), &launch(1, 64, &[out], 1), &mut m).unwrap_err();
    let SimError::OutOfBounds { access, nearest } = &e else { panic!("{e}") };
    assert_eq!((access.site.warp, access.lane, access.thread, access.address), (1, 8, [40, 0, 0], out + 160));
    assert_eq!(access.lanes, LaneMask(0xffff_ff00));
    let nearest = nearest.as_ref().unwrap();
    assert_eq!((nearest.name.as_str(), nearest.distance, nearest.size), ("out", 0, 160));
    assert_eq!(e.inst(), Some(2));
    let text = e.to_string();
    for part in ["out of bounds", "global store of 4 bytes", "lane 8", "thread 40,0,0", "0 bytes past the end of out"] {
        assert!(text.contains(part), "{text}");
    }
    // Below the first byte.
    let e = run(&store_at(-4, Space::Global, Width::B32), &launch(1, 1, &[out], 1), &mut m).unwrap_err();
    assert!(e.to_string().contains("4 bytes before the start of out"), "{e}");
}

#[test]
fn no_buffer_at_all() {
    let e = fails(&store_at(0, Space::Global, Width::B32), &launch(1, 1, &[0], 1));
    assert!(matches!(e, SimError::OutOfBounds { nearest: None, .. }), "{e}");
}

#[test]
fn misaligned_addresses() {
    let mut m = GlobalMemory::new();
    let out = m.alloc("out", &[0; 4096]).unwrap();
    let e = run(&store_at(4, Space::Global, Width::B64), &launch(1, 32, &[out], 1), &mut m).unwrap_err();
    let SimError::Misaligned { access } = &e else { panic!("{e}") };
    assert_eq!((access.bytes, access.lanes), (8, LaneMask::first(32)));
    let mut k = store_at(2, Space::Shared, Width::B32);
    k.shared_size = 256;
    assert!(matches!(fails(&k, &launch(1, 4, &[], 1)), SimError::Misaligned { .. }));
}

#[test]
fn shared_and_local_bounds() {
    let mut k = store_at(0, Space::Shared, Width::B32);
    k.shared_size = 32;
    let e = fails(&k, &launch(1, 9, &[], 1));
    assert!(e.to_string().contains("0 bytes past the end of the block's shared memory (32 bytes"), "{e}");
    let mut l = launch(1, 9, &[], 1);
    l.dynamic_shared = 4;
    run(&k, &l, &mut GlobalMemory::new()).unwrap();
    let mut k = store_at(0, Space::Local, Width::B32);
    k.local_size = 16;
    assert!(matches!(fails(&k, &launch(1, 5, &[], 1)), SimError::OutOfBounds { .. }));
    let mut k = store_at(-16, Space::Local, Width::B32);
    k.local_size = 16;
    let e = fails(&k, &launch(1, 1, &[], 1));
    let SimError::StackOverflow { below, size, .. } = &e else { panic!("{e}") };
    assert_eq!((*below, *size), (16, 16));
}

#[test]
fn shapes_are_checked() {
    let k = store_at(0, Space::Global, Width::B32);
    let shape = |grid, block| Launch { grid, block, ..launch(1, 1, &[], 1) };
    assert!(matches!(fails(&k, &shape([0, 1, 1], [1; 3])), SimError::Empty { what: "grid", .. }));
    assert!(matches!(fails(&k, &shape([1; 3], [32, 0, 1])), SimError::Empty { what: "block", .. }));
    assert!(matches!(fails(&k, &shape([1 << 31, 1, 1], [1; 3])), SimError::DimensionTooLarge { axis: 'x', .. }));
    assert!(matches!(fails(&k, &shape([1, 65536, 1], [1; 3])), SimError::DimensionTooLarge { axis: 'y', .. }));
    assert!(matches!(fails(&k, &shape([1; 3], [1, 1, 65])), SimError::DimensionTooLarge { axis: 'z', .. }));
    assert!(matches!(fails(&k, &shape([1; 3], [32, 33, 1])), SimError::TooManyThreads { threads: 1056, .. }));
    let small = Kernel { max_threads: 128, ..k.clone() };
    assert!(matches!(fails(&small, &shape([1; 3], [129, 1, 1])), SimError::TooManyThreads { by_kernel: true, .. }));
    let exact = Kernel { required_block: Some([8, 8, 1]), ..k.clone() };
    assert!(matches!(fails(&exact, &shape([1; 3], [64, 1, 1])), SimError::WrongBlock { .. }));
    let shared = Launch { dynamic_shared: 1 << 20, ..launch(1, 1, &[], 1) };
    assert!(matches!(fails(&k, &shared), SimError::SharedTooLarge { .. }));
    assert!(matches!(fails(&k, &Launch { dynamic_shared: u32::MAX, ..shared }), SimError::SharedTooLarge { .. }));
    let local = Kernel { local_size: u32::MAX, ..k };
    assert!(matches!(fails(&local, &launch(1, 1, &[], 1)), SimError::LocalTooLarge { .. }));
}

#[test]
fn broken_kernels_are_refused() {
    let good = store_at(0, Space::Global, Width::B32);
    let slots = Kernel { slots: 3, ..good.clone() };
    assert!(matches!(fails(&slots, &launch(1, 1, &[], 1)), SimError::BadKernel(_)));
    let empty = Kernel::default();
    assert!(matches!(fails(&empty, &launch(1, 1, &[], 1)), SimError::PastEnd { .. }));
    // No EXIT: execution runs off the end.
    let mut c = Code::default();
    c.lane(IntFn::Mov, 0, &[imm(1)]);
    assert!(matches!(fails(&c.kernel(), &launch(1, 1, &[], 1)), SimError::PastEnd { .. }));
}

#[test]
fn traps_and_calls_to_nowhere() {
    let mut c = Code::default();
    c.special(0, SpecialReg::LaneId);
    c.set(Cmp::Lt, 0, r(0), imm(3));
    c.control(p(0), ControlOp::Trap);
    c.exit(PredSrc::TRUE);
    let e = fails(&c.kernel(), &launch(1, 32, &[], 1));
    assert!(matches!(e, SimError::Trap { lanes: LaneMask(7), .. }), "{e}");

    let mut c = Code::default();
    c.lane(IntFn::Mov, 0, &[imm(0x1238)]);
    let target = Indirect { reg: [r(0), Src::ZERO], base: 0 };
    c.control(PredSrc::TRUE, ControlOp::CallIndirect { target, cond: PredSrc::TRUE });
    c.exit(PredSrc::TRUE);
    let mut k = c.kernel();
    let e = fails(&k, &launch(1, 32, &[], 1));
    assert!(matches!(e, SimError::BadTarget { address: 0x1238, lane: 0, .. }), "{e}");
    k.externals = vec![(0x1238, "vprintf".to_owned())];
    let e = fails(&k, &launch(1, 32, &[], 1));
    assert!(e.to_string().contains("call of vprintf"), "{e}");
}

fn unknown(has_effects: bool) -> Kernel {
    let mut c = Code::default();
    c.special(0, SpecialReg::Tid(0));
    c.element(8, 0, 4, 0);
    c.set(Cmp::Lt, 0, r(0), imm(4));
    let u = Unsupported {
        name: "HMMA.16816.F32".to_owned(),
        why: "tensor core",
        dst: vec![Slot(4)],
        pdst: vec![],
        has_effects,
    };
    c.push(p(0), Op::Unsupported(u));
    c.lane(IntFn::Add, 5, &[r(4), r(0)]);
    c.store(Space::Global, Width::B32, 5, at(8));
    c.exit(PredSrc::TRUE);
    c.kernel()
}

#[test]
fn what_is_not_implemented_is_named_or_marked() {
    let mut m = GlobalMemory::new();
    let out = m.alloc("out", &[0; 128]).unwrap();
    let mut l = launch(1, 32, &[out], 1);
    let e = run(&unknown(false), &l, &mut m).unwrap_err();
    assert!(e.to_string().starts_with("not implemented: HMMA.16816.F32 (tensor core)"), "{e}");
    l.options.unknown = Unknown::Poison;
    let o = run(&unknown(false), &l, &mut m).unwrap();
    assert_eq!(o.unknown.len(), 1);
    assert_eq!((o.unknown[0].buffer.as_str(), &o.unknown[0].ranges[..]), ("out", &[(0, 16)][..]));
    assert!(matches!(run(&unknown(true), &l, &mut m), Err(SimError::Unsupported { .. })));
    // An unknown address stops the launch.
    let mut k = unknown(false);
    let at = k.instructions.len() - 3;
    k.instructions[at] = {
        let mut c = Code::default();
        c.lane(IntFn::Add, 8, &[r(8), r(4)]);
        let mut i = c.insts.remove(0);
        i.pc = at as u32 * 16;
        i
    };
    let e = run(&k, &l, &mut m).unwrap_err();
    assert!(matches!(e, SimError::UnknownValue { what: "an address", lanes: LaneMask(15), .. }), "{e}");
}

#[test]
fn a_deadlock_names_who_waits_where() {
    // Warp 0 waits at a barrier for 96 threads; warp 1 leaves.
    let mut c = Code::default();
    c.special(0, SpecialReg::WarpId);
    c.set(Cmp::Ne, 0, r(0), imm(0));
    c.exit(p(0));
    let mode = BlockBarrierMode::Sync;
    c.push(
        PredSrc::TRUE,
        Op::Warp(WarpOp::BlockBarrier { mode, id: imm(2), threads: Some(imm(96)), pred: PredSrc::TRUE }),
    );
    c.exit(PredSrc::TRUE);
    let e = fails(&c.kernel(), &launch(1, 64, &[], 1));
    let SimError::Deadlock { waiting, .. } = &e else { panic!("{e}") };
    assert_eq!(waiting.len(), 1);
    assert_eq!((waiting[0].warp, waiting[0].lanes, waiting[0].inst), (0, LaneMask::first(32), 3));
    assert!(e.to_string().contains("block barrier 2 waits for other threads"), "{e}");
}

#[test]
fn a_kernel_that_never_ends_is_stopped() {
    let mut c = Code::default();
    let top = c.lane(IntFn::Mov, 0, &[imm(0)]);
    c.branch(PredSrc::TRUE, top);
    c.exit(PredSrc::TRUE);
    let k = c.kernel();
    for threads in [1, 2] {
        let mut l = launch(4, 64, &[], threads);
        l.options.max_inst = 1000;
        let e = fails(&k, &l);
        let SimError::MaxInst { limit: 1000, at, .. } = &e else { panic!("{e}") };
        assert_eq!(at.len(), 2);
    }
}

#[test]
fn bad_barriers() {
    let mut c = Code::default();
    let mode = BlockBarrierMode::Sync;
    c.push(PredSrc::TRUE, Op::Warp(WarpOp::BlockBarrier { mode, id: imm(16), threads: None, pred: PredSrc::TRUE }));
    c.exit(PredSrc::TRUE);
    let e = fails(&c.kernel(), &launch(1, 64, &[], 1));
    assert!(matches!(e, SimError::BadBarrier { .. }), "{e}");
}
