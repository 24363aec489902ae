//! Whole launches of real machine code (sm_90): lane instructions per second, for one and two threads.
//! Kernels k and kd are the loops of `tests/data/bench/kernels.cu`; the sparse product and the dispatch of
//! `examples` are bound by memory and by divergence. Loading the cubin and making the inputs is not counted.

use std::path::{Path, PathBuf};

use divan::Bencher;
use divan::counter::ItemsCount;
use lanescope::run::{Prepared, Settings};

fn main() {
    divan::main();
}

fn launch(bencher: Bencher<'_, '_>, path: &str, threads: usize) {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    let settings = Settings { threads, ..Settings::default() };
    let prepared = Prepared::open(&path, &settings).expect("the launch is in the repository");
    let once = prepared.clone().run(None).expect("the launch runs");
    let lanes = once.profile().totals().thread_inst_executed;
    bencher
        .counter(ItemsCount::new(lanes))
        .with_inputs(|| prepared.clone())
        .bench_values(|prepared| prepared.run(None).map(|ran| ran.profile().counts.len()));
}

#[divan::bench(args = [1, 2], sample_count = 5)]
fn k(bencher: Bencher<'_, '_>, threads: usize) {
    launch(bencher, "tests/data/bench/k.toml", threads);
}

#[divan::bench(args = [1, 2], sample_count = 5)]
fn kd(bencher: Bencher<'_, '_>, threads: usize) {
    launch(bencher, "tests/data/bench/kd.toml", threads);
}

#[divan::bench(args = [1, 2], sample_count = 5)]
fn moe(bencher: Bencher<'_, '_>, threads: usize) {
    launch(bencher, "examples/moe/moe.toml", threads);
}

#[divan::bench(args = [1, 2], sample_count = 5)]
fn spmv(bencher: Bencher<'_, '_>, threads: usize) {
    launch(bencher, "examples/spmv/spmv.toml", threads);
}
