//! Sectors against a naive count: for each warp, a set of the sectors its executing lanes touch.

mod common;

use std::collections::BTreeSet;

use arbtest::arbitrary::{Result, Unstructured};
use common::*;
use lanescope_ir::op::control::ControlOp;
use lanescope_ir::op::int::Cmp;
use lanescope_ir::op::memory::{AtomOp, MemoryOp, Space, Width};
use lanescope_ir::op::warp::SpecialReg;
use lanescope_ir::{BlockWork, Op, PredSrc, Src};
use lanescope_sim::GlobalMemory;

const SIZE: u32 = 4096;
/// A thread that does not access memory.
const NOT: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
enum Kind {
    Load(Width),
    Store(Width),
    /// 4 bytes.
    Atomic,
    Reduction,
}

/// Every thread of one block loads its offset from a table and accesses that byte of a buffer once.
fn kernel(kind: Kind, space: Space) -> (lanescope_ir::Kernel, usize) {
    let mut c = Code::default();
    c.special(0, SpecialReg::Tid(0));
    c.element(2, 0, 4, 0);
    c.load(Space::Global, Width::B32, 4, at(2));
    c.set(Cmp::Ne, 0, r(4), imm(NOT));
    c.element(6, 4, 1, 2);
    let inst = match kind {
        Kind::Load(w) => c.load(space, w, 8, at(6)),
        Kind::Store(w) => c.store(space, w, 8, at(6)),
        Kind::Atomic => c.atomic(space, AtomOp::Exch, Some(8), 0, at(6)),
        Kind::Reduction => c.atomic(space, AtomOp::Add, None, 0, at(6)),
    };
    c.insts[inst as usize].guard = p(0);
    c.exit(PredSrc::TRUE);
    (c.kernel(), inst as usize)
}

fn offsets(u: &mut Unstructured<'_>, n: usize, bytes: u32) -> Result<Vec<u32>> {
    let last = SIZE / bytes - 1;
    let (start, stride) = (u.int_in_range(0..=last)?, u.int_in_range(0..=9)?);
    let shape = u.int_in_range(0..=3)?;
    (0..n as u32)
        .map(|i| {
            let element = match shape {
                0 => (start + i) % (last + 1),
                1 => (start + i * stride) % (last + 1),
                2 => start,
                _ => u.int_in_range(0..=last)?,
            };
            Ok(if u.ratio(1, 8)? { NOT } else { element * bytes })
        })
        .collect()
}

#[test]
fn sectors_are_those_of_a_naive_count() {
    arbtest::arbtest(|u| {
        use Width::*;
        let kind = match u.int_in_range(0..=5)? {
            0 => Kind::Atomic,
            1 => Kind::Reduction,
            2 | 3 => Kind::Load(*u.choose(&[U8, S8, U16, S16, B32, B64, B128, B256])?),
            _ => Kind::Store(*u.choose(&[U8, U16, B32, B64, B128, B256])?),
        };
        let bytes = match kind {
            Kind::Load(w) | Kind::Store(w) => w.bytes(),
            Kind::Atomic | Kind::Reduction => 4,
        };
        let space = if u.arbitrary()? { Space::Global } else { Space::Generic };
        let (threads, grid) = (u.int_in_range(1..=97)?, u.int_in_range(1..=3u32)?);
        let offsets = offsets(u, threads, bytes)?;
        let (kernel, inst) = kernel(kind, space);
        let mut memory = GlobalMemory::new();
        let table: Vec<u8> = offsets.iter().flat_map(|o| o.to_le_bytes()).collect();
        let table = memory.alloc("table", &table).unwrap();
        let data = memory.alloc("data", &vec![0; SIZE as usize]).unwrap();
        let cpus = u.int_in_range(1..=2)?;
        let ran = run(&kernel, &launch(grid, threads as u32, &[table, data], cpus), &mut memory).unwrap();

        let (mut sectors, mut ideal) = (0, 0);
        let mut all: BTreeSet<u64> = (0..threads as u64).map(|t| (table + 4 * t) / 32).collect();
        for warp in offsets.chunks(32) {
            let on = || warp.iter().filter(|&&o| o != NOT);
            let touched: BTreeSet<u64> =
                on().flat_map(|&o| (0..u64::from(bytes)).map(move |b| (data + u64::from(o) + b) / 32)).collect();
            sectors += touched.len() as u64;
            ideal += (on().count() as u64 * u64::from(bytes)).div_ceil(32).min(touched.len() as u64);
            all.extend(touched);
        }
        let counts = ran.profile.counts[inst];
        let blocks = u64::from(grid);
        assert_eq!((counts.sectors, counts.sectors_ideal), (sectors * blocks, ideal * blocks), "{kind:?} {offsets:?}");
        let reach = ran.profile.reach.unwrap();
        assert_eq!(reach.touched_sectors, all.len() as u64);
        assert_eq!(reach.longest_warp, kernel.instructions.len() as u64);
        let warps = threads.div_ceil(32) as u64;
        assert_eq!(reach.longest_block, warps * kernel.instructions.len() as u64);
        Ok(())
    });
}

#[test]
fn the_longest_warp_is_the_one_with_most_turns() {
    let kernel = kernel_k(Some(22));
    let mut memory = GlobalMemory::new();
    let out = memory.alloc("out", &[0; 4 * 512]).unwrap();
    let ran = run(&kernel, &launch(4, 128, &[out], 2), &mut memory).unwrap();
    // Before the loop, 8 in a turn; lanes that leave together issue BSYNC together; three instructions after it.
    let back = kernel.instructions.iter().position(|i| matches!(i.op, Op::Control(ControlOp::Branch { .. }))).unwrap();
    let head = kernel.instructions.len() - 4 - 8;
    assert_eq!(back, head + 7);
    let turns = |t: u32| u64::from((t.wrapping_mul(2654435761).wrapping_add(12345) >> 22) + 1);
    let warp = |w: u32| {
        let trips: BTreeSet<u64> = (0..32).map(|l| turns(w * 32 + l)).collect();
        head as u64 + 8 * trips.last().copied().unwrap_or(0) + trips.len() as u64 + 3
    };
    let reach = ran.profile.reach.unwrap();
    assert_eq!(Some(reach.longest_warp), (0..16).map(warp).max());
    assert_eq!(Some(reach.longest_block), (0..4).map(|b| (4 * b..4 * b + 4).map(warp).sum()).max());
}

#[test]
fn accesses_of_other_spaces_have_no_sectors() {
    let mut c = Code::default();
    c.special(0, SpecialReg::Tid(0));
    let at0 = lanescope_ir::op::memory::Addr { base: Src::ZERO, ..at32(0) };
    let store = c.store(Space::Shared, Width::B32, 0, at0);
    c.exit(PredSrc::TRUE);
    let mut kernel = c.kernel();
    kernel.shared_size = 128;
    assert!(matches!(kernel.instructions[store as usize].op, Op::Memory(MemoryOp::Store { .. })));
    let ran = run(&kernel, &launch(1, 32, &[], 1), &mut GlobalMemory::new()).unwrap();
    assert!(ran.profile.counts.iter().all(|c| c.sectors == 0 && c.sectors_ideal == 0));
    assert_eq!(ran.profile.reach.unwrap().touched_sectors, 0);
}

#[test]
fn a_modelled_cache_tells_first_loads_from_later_ones() {
    // Each warp loads its own 128 bytes, twice, then stores: the second load finds them.
    let mut c = Code::default();
    c.gid(0, 1);
    c.element(2, 0, 4, 0);
    let first = c.load(Space::Global, Width::B32, 4, at(2)) as usize;
    let again = c.load(Space::Global, Width::B32, 5, at(2)) as usize;
    let store = c.store(Space::Global, Width::B32, 5, at(2)) as usize;
    c.exit(PredSrc::TRUE);
    let kernel = c.kernel();
    for cpus in [1, 2] {
        let mut memory = GlobalMemory::new();
        let data = memory.alloc("data", &[0; 4 * 3 * 128]).unwrap();
        let mut launch = launch(3, 128, &[data], cpus);
        launch.options.l1 = Some([16 << 10, 64 << 10]);
        let ran = run(&kernel, &launch, &mut memory).unwrap();
        let missed = |i: usize| ran.profile.counts[i].sectors_missed;
        assert_eq!([missed(first), missed(again), missed(store)], [48, 0, 48]);
        let reach = ran.profile.reach.unwrap();
        let issued = kernel.instructions.len() as u64;
        let work = BlockWork {
            inst_executed: 4 * issued,
            sectors: 48,
            sectors_missed: 32,
            warp_instructions: issued,
            warp_waits: 1,
            warp_waits_best: 1,
        };
        assert_eq!(reach.blocks, [work; 3]);
        assert_eq!(reach.misses, [(1, 48)]);
        assert_eq!(reach.l1_bytes, Some([16 << 10, 64 << 10]));
    }
}
