//! Bytes of PTX per second, on texts of real compilers.

use divan::Bencher;
use divan::counter::BytesCount;

fn main() {
    divan::main();
}

fn parse(bencher: Bencher<'_, '_>, text: &str) {
    bencher.counter(BytesCount::new(text.len())).bench(|| lanescope_ptx::parse(divan::black_box(text)));
}

#[divan::bench]
fn nvrtc(bencher: Bencher<'_, '_>) {
    parse(bencher, include_str!("../tests/data/nvrtc-12.9-lines.ptx"));
}

#[divan::bench]
fn nvrtc_debug(bencher: Bencher<'_, '_>) {
    parse(bencher, include_str!("../tests/data/nvrtc-13-debug.ptx"));
}

#[divan::bench]
fn many_functions(bencher: Bencher<'_, '_>) {
    parse(bencher, include_str!("../tests/data/operations.ptx"));
}
