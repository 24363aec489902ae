//! Edges that were asked of an H200 on purpose.

use lanescope_ir::op::LaneFn;
use lanescope_ir::op::double::{DoubleFn, Signs};
use lanescope_ir::op::float::{Arith, FloatFn, Rounding};
use lanescope_sim::lane::eval;

const MUL_RN: u64 = 0x7ec3_fc3d_709e_d540;
const MUL_RZ: u64 = 0x03e6_71d5_5f88_af7f;
const MUL_RP: u64 = 0x115c_dc9f_6a92_f700;

/// Position-dependent sum of results.
fn checksum(results: impl Iterator<Item = u32>) -> u64 {
    results.zip(0u64..).fold(0, |sum, (r, i)| {
        sum.wrapping_add((u64::from(r) + 1).wrapping_mul(i.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1))
    })
}

/// Products just above and below the smallest normal number: what is flushed is decided after rounding, but as if
/// exponents went lower. The sums are those of the measured results.
#[test]
fn flushing_is_decided_after_rounding() {
    let pairs = || (0..256).flat_map(|i| (0..256).map(move |k| (0x0080_0000 + i, 0x3f80_0000 - k)));
    let run = |f: FloatFn| checksum(pairs().map(|(a, b)| eval(&LaneFn::Float(f), [a, b, 0, 0, 0, 0], [true; 3]).d[0]));
    let arith = |round| Arith { round, ftz: true, sat: false };
    let mul = |round| FloatFn::Mul { arith: arith(round), scale: 0, zero_wins: false };
    let fma = |round| FloatFn::Fma { arith: arith(round), zero_wins: false };
    assert_eq!(run(mul(Rounding::Nearest)), MUL_RN);
    assert_eq!(run(mul(Rounding::Zero)), MUL_RZ);
    assert_eq!(run(mul(Rounding::Up)), MUL_RP);
    assert_eq!(run(mul(Rounding::Down)), MUL_RZ);
    assert_eq!(run(fma(Rounding::Nearest)), MUL_RN);
    assert_eq!(run(fma(Rounding::Up)), MUL_RP);
}

/// Measured for all exponents: the range in which FCHK says that no more care is needed.
#[test]
fn division_check() {
    let slow = |a: u32, b: u32| {
        eval(&LaneFn::Float(FloatFn::DivisionCheck), [a << 23, b << 23 | 1 << 31, 0, 0, 0, 0], [true; 3]).p[0]
    };
    for (a, b, expected) in [
        (127, 127, false),
        (24, 100, true),
        (25, 100, false),
        (128, 2, false),
        (129, 2, true),
        (75, 200, true),
        (76, 200, false),
        (253, 127, false),
        (254, 127, true),
        (254, 200, false),
        (255, 200, true),
        (100, 1, true),
        (200, 251, false),
        (200, 252, true),
        (0, 127, true),
        (127, 0, true),
        (127, 255, true),
    ] {
        assert_eq!(slow(a, b), expected, "exponents {a} and {b}");
    }
}

/// Of several NaNs a fused multiply-add hands on b's, else c's, else a's.
#[test]
fn which_nan() {
    let nan = |payload: u64| 0x7ff8_0000_0000_0000 | payload;
    let one = 1f64.to_bits();
    let fma = |x: [u64; 3]| {
        let [a, b, c] = x.map(|v| (v as u32, (v >> 32) as u32));
        let f = LaneFn::Double(DoubleFn::Fma(Rounding::Nearest, Signs::default()));
        let out = eval(&f, [a.0, a.1, b.0, b.1, c.0, c.1], [true; 3]).d;
        u64::from(out[1]) << 32 | u64::from(out[0])
    };
    assert_eq!(fma([nan(1), nan(2), nan(3)]), nan(2));
    assert_eq!(fma([nan(1), one, nan(3)]), nan(3));
    assert_eq!(fma([nan(1), one, one]), nan(1));
    assert_eq!(fma([0x7ff0_0000_0000_0001, one, one]), nan(1));
}
