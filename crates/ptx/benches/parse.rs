//! Bytes of PTX per second, on texts of real compilers.

use divan::Bencher;
use divan::counter::BytesCount;

fn main() {
    divan::main();
}

const TEXTS: [(&str, &str); 3] = [
    ("nvrtc", include_str!("../tests/data/nvrtc-12.9-lines.ptx")),
    ("nvrtc -G", include_str!("../tests/data/nvrtc-13-debug.ptx")),
    ("operations", include_str!("../tests/data/operations.ptx")),
];

#[divan::bench(args = TEXTS.map(|(name, _)| name))]
fn parse(bencher: Bencher<'_, '_>, name: &str) {
    let text = TEXTS.iter().find(|(known, _)| *known == name).expect("an argument is a name of the list").1;
    bencher.counter(BytesCount::new(text.len())).bench(|| lanescope_ptx::parse(divan::black_box(text)));
}
