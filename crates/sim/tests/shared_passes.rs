//! Passes of shared memory that instructions are counted with, against the rules applied to each lane's address.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::*;
use lanescope_ir::op::int::IntFn;
use lanescope_ir::op::memory::{Amount, AtomOp, MemoryOp, Space, Width};
use lanescope_ir::op::warp::SpecialReg;
use lanescope_ir::{Kernel, LaneCounts, Op, PredSrc, Slot};
use lanescope_sim::GlobalMemory;

fn count(c: &LaneCounts) -> [u64; 2] {
    [c.shared_wavefronts, c.shared_wavefronts_ideal]
}

/// Words of a bank that the lanes of each group need; a group is the lanes that 128 bytes are enough for.
fn naive(at: &[u64], bytes: u64, load: bool, each: bool) -> [u64; 2] {
    let same = |x: usize| (0..at.len()).all(|l| at.get(l ^ x).is_none_or(|&other| other == at[l]));
    let mut group = 128 / bytes.max(4) as usize;
    if bytes > 4 && load && (same(1) || same(2)) {
        group *= 2;
    }
    let mut out = [0, 0];
    for (first, lanes) in at.chunks(group).enumerate() {
        let mut banks: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for (l, a) in lanes.iter().enumerate() {
            let lane = if each { (first * group + l) as u64 } else { 0 };
            for word in a / 4..(a + bytes).div_ceil(4) {
                banks.entry(word % 32).or_default().insert(word | lane << 32);
            }
        }
        out[0] += banks.values().map(|w| w.len() as u64).max().unwrap_or(0);
        out[1] += 1;
    }
    out
}

/// The instruction's address is `lane / share * stride`; runs it with `threads` lanes.
fn shared(op: impl Fn(&mut Code) -> u32, share: u32, stride: u32, threads: u32) -> (LaneCounts, Vec<u64>) {
    let mut c = Code::default();
    c.special(0, SpecialReg::LaneId);
    c.lane(IntFn::Div { signed: false }, 1, &[r(0), imm(share)]);
    c.lane(IntFn::Mad, 1, &[r(1), imm(stride), imm(0)]);
    let at = op(&mut c);
    c.exit(PredSrc::TRUE);
    let k = Kernel { shared_size: 1 << 15, ..c.kernel() };
    let o = run(&k, &launch(1, threads, &[], 1), &mut GlobalMemory::new()).unwrap();
    let addresses = (0..u64::from(threads)).map(|l| l / u64::from(share) * u64::from(stride)).collect();
    (o.profile.counts[at as usize], addresses)
}

#[test]
fn strides_and_widths() {
    for (width, bytes) in [(Width::U8, 1), (Width::B32, 4), (Width::B64, 8), (Width::B128, 16)] {
        for step in [0, 1, 2, 3, 4, 5, 8, 16, 31, 32] {
            for (share, threads) in [(1, 32), (1, 20), (1, 1), (2, 32), (2, 17), (4, 32)] {
                let stride = bytes * step;
                let load = |c: &mut Code| c.load(Space::Shared, width, 4, at32(1));
                let (got, at) = shared(load, share, stride, threads);
                let want = naive(&at, bytes.into(), true, false);
                assert_eq!(count(&got), want, "load of {bytes}, stride {stride}, {share} lanes each, {threads} lanes");
                let store = |c: &mut Code| c.store(Space::Shared, width, 4, at32(1));
                let (got, at) = shared(store, share, stride, threads);
                let want = naive(&at, bytes.into(), false, false);
                assert_eq!(count(&got), want, "store of {bytes}, stride {stride}, {share} lanes each, {threads} lanes");
            }
        }
    }
}

#[test]
fn atomics_take_turns() {
    for (share, stride) in [(1, 4), (1, 8), (2, 4), (32, 4), (1, 128)] {
        let add = |c: &mut Code| c.atomic(Space::Shared, AtomOp::Add, None, 0, at32(1));
        let (got, at) = shared(add, share, stride, 32);
        assert_eq!(count(&got), naive(&at, 4, false, true), "{share} lanes each, stride {stride}");
    }
    let count_lanes = |c: &mut Code| c.atomic(Space::Shared, AtomOp::PopcInc, Some(2), 0, at32(1));
    assert_eq!(count(&shared(count_lanes, 32, 4, 32).0), [1, 1]);
}

#[test]
fn matrix_tiles() {
    for (tiles, stride, passes) in [(4, 16, 4), (4, 128, 32), (2, 144, 2), (1, 32, 2)] {
        let load = |c: &mut Code| {
            let dst = std::array::from_fn(|i| (i < usize::from(tiles)).then_some(Slot(4 + i as u16)));
            let op = MemoryOp::LoadMatrix { space: Space::Shared, count: tiles, transposed: false, dst, addr: at32(1) };
            c.push(PredSrc::TRUE, Op::Memory(op))
        };
        assert_eq!(count(&shared(load, 1, stride, 32).0), [passes, tiles.into()]);
        let store = |c: &mut Code| {
            let src = std::array::from_fn(|_| r(0));
            let op = MemoryOp::StoreMatrix { space: Space::Shared, count: tiles, transposed: true, src, addr: at32(1) };
            c.push(PredSrc::TRUE, Op::Memory(op))
        };
        assert_eq!(count(&shared(store, 1, stride, 32).0), [passes, tiles.into()]);
    }
}

#[test]
fn a_copy_has_both_kinds() {
    let mut c = Code::default();
    c.special(0, SpecialReg::LaneId);
    c.lane(IntFn::Mad, 1, &[r(0), imm(32), imm(0)]);
    c.element(8, 0, 16, 0);
    let (to, from) = (at32(1), at(8));
    let op = MemoryOp::Copy { width: Width::B128, to, from, valid: PredSrc::TRUE, amount: Amount::All };
    let copy = c.push(PredSrc::TRUE, Op::Memory(op));
    let generic = c.load(Space::Generic, Width::B32, 4, at(8));
    c.exit(PredSrc::TRUE);
    let k = Kernel { shared_size: 1 << 15, ..c.kernel() };
    let mut m = GlobalMemory::new();
    let a = m.alloc("a", &[0; 512]).unwrap();
    let o = run(&k, &launch(1, 32, &[a], 1), &mut m).unwrap();
    let n = o.profile.counts[copy as usize];
    assert_eq!((n.sectors, n.sectors_ideal, count(&n)), (16, 16, [8, 4]));
    let n = o.profile.counts[generic as usize];
    assert_eq!((n.sectors, n.sectors_ideal, count(&n)), (16, 4, [0, 0]));
}
