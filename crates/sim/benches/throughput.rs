//! Lane instructions per second of the engine: kernels k and kd (a linear congruential loop with a choice in it; kd with
//! 1 to 1024 trips, so that loop exits diverge) and one that loads and stores. Items are active lane instructions.

#[path = "../tests/common/mod.rs"]
mod common;

use common::*;
use divan::Bencher;
use divan::counter::ItemsCount;
use lanescope_ir::op::int::{Cmp, IntFn};
use lanescope_ir::op::memory::{Space, Width};
use lanescope_ir::{Kernel, PredSrc};
use lanescope_sim::GlobalMemory;

fn main() {
    divan::main();
}

/// `for (i = 0; i < n; ++i) out[gid] += in[gid]`, addresses kept in registers.
fn stream() -> Kernel {
    let mut c = Code::default();
    c.gid(0, 1);
    c.element(8, 0, 4, 0);
    c.element(10, 0, 4, 1 << 1);
    c.lane(IntFn::Mov, 3, &[imm(0)]);
    let top = c.here();
    c.load(Space::Global, Width::B32, 4, at(10));
    c.load(Space::Global, Width::B32, 5, at(8));
    c.lane(IntFn::Add, 3, &[r(3), imm(1)]);
    c.set(Cmp::Lt, 1, r(3), param(4));
    c.lane(IntFn::Add, 5, &[r(5), r(4)]);
    c.store(Space::Global, Width::B32, 5, at(8));
    c.branch(p(1), top);
    c.exit(PredSrc::TRUE);
    c.kernel()
}

fn bench(bencher: Bencher<'_, '_>, kernel: &Kernel, more: &[u64], threads: usize) {
    const THREADS: u32 = 65536;
    let once = || {
        let mut m = GlobalMemory::new();
        let out = m.alloc("out", &vec![0; THREADS as usize * 4]).expect("memory");
        let input = m.alloc("in", &vec![1; THREADS as usize * 4]).expect("memory");
        let mut params = vec![out, input];
        params.extend(more);
        if more.len() == 1 && kernel.instructions.len() > 20 {
            params.remove(1);
        }
        (m, params)
    };
    let go = |(mut m, params): (GlobalMemory, Vec<u64>)| {
        run(kernel, &launch(THREADS / 256, 256, &params, threads), &mut m).expect("runs").profile.totals()
    };
    let lanes = go(once()).thread_inst_executed;
    bencher.counter(ItemsCount::new(lanes)).with_inputs(once).bench_values(go);
}

#[divan::bench(args = [1, 2], sample_count = 5)]
fn k(bencher: Bencher<'_, '_>, threads: usize) {
    bench(bencher, &kernel_k(None), &[1000], threads);
}

#[divan::bench(args = [1, 2], sample_count = 5)]
fn kd(bencher: Bencher<'_, '_>, threads: usize) {
    bench(bencher, &kernel_k(Some(22)), &[0], threads);
}

#[divan::bench(args = [1, 2], sample_count = 5)]
fn load_store(bencher: Bencher<'_, '_>, threads: usize) {
    bench(bencher, &stream(), &[200], threads);
}
