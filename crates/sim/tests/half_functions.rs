//! Packed 16-bit functions against exact arithmetic on scaled integers, and against the `half` crate.

use half::{bf16, f16};
use lanescope_ir::op::LaneFn;
use lanescope_ir::op::half::{Arith, Compare, FloatCmp, Format, HalfFn, Select};
use lanescope_ir::op::int::BoolOp;
use lanescope_sim::lane::{Out, eval};

fn run(f: HalfFn, s: [u32; 3], p: bool) -> Out {
    eval(&LaneFn::Half(f), [s[0], s[1], s[2], 0, 0, 0], [p, false, false])
}

const PLAIN: Arith = Arith { format: Format::F16, ftz: false, sat: false, relu: false, select: [Select::Both; 3] };
const BRAIN: Arith = Arith { format: Format::Bf16, ..PLAIN };

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 16
    }
}

/// `(significand, exponent)` of the low bits: the value is significand * 2^exponent; `None` if not finite.
fn parts(x: u16, format: Format) -> Option<(i128, i32)> {
    let (bits, bias) = if format == Format::F16 { (10, 15) } else { (7, 127) };
    let exponent = i32::from(x & 0x7fff) >> bits;
    let fraction = i128::from(x & ((1 << bits) - 1));
    if exponent == (1 << (15 - bits)) - 1 {
        return None;
    }
    let (m, e) = if exponent == 0 { (fraction, 1) } else { (fraction | 1 << bits, exponent) };
    Some((if x >> 15 == 1 { -m } else { m }, e - bias - bits))
}

/// `m * 2^e` rounded to nearest even, by comparing remainders of integer division. `zero` is what zero gives.
fn round(m: i128, e: i32, zero: u16, format: Format) -> u16 {
    if m == 0 {
        return zero;
    }
    let (bits, bias) = if format == Format::F16 { (10, 15) } else { (7, 127) };
    let sign = if m < 0 { 0x8000 } else { 0 };
    let m = m.unsigned_abs();
    let top = 127 - m.leading_zeros() as i32 + e;
    let place = (top - bits).max(1 - bias - bits);
    let mut kept = if place <= e {
        m << (e - place)
    } else if place - e > 127 {
        0
    } else {
        let unit = 1u128 << (place - e);
        let (whole, rest) = (m / unit, m % unit);
        whole + u128::from(rest * 2 > unit || (rest * 2 == unit && whole % 2 == 1))
    };
    let mut exponent = place + bits + bias;
    if kept >> (bits + 1) != 0 {
        kept >>= 1;
        exponent += 1;
    }
    if kept >> bits == 0 {
        // A subnormal: the exponent field is 0, and rounding up into the first normal number carries into it.
        return sign | kept as u16;
    }
    if exponent >= (1 << (15 - bits)) - 1 {
        return sign | (((1 << (15 - bits)) - 1) << bits) as u16;
    }
    sign | (exponent << bits) as u16 | (kept as u16 & ((1 << bits) - 1))
}

/// `a * b + c` of finite values whose exponents fit 128 bits together.
fn exact_fma(a: u16, b: u16, c: u16, format: Format) -> Option<u16> {
    let ((am, ae), (bm, be), (cm, ce)) = (parts(a, format)?, parts(b, format)?, parts(c, format)?);
    let (pm, pe) = (am * bm, ae + be);
    let e = pe.min(ce);
    if pe.max(ce) - e > 100 {
        return None;
    }
    let negative_zero = (a ^ b) & c & 0x8000 != 0;
    Some(round((pm << (pe - e)) + (cm << (ce - e)), e, if negative_zero { 0x8000 } else { 0 }, format))
}

fn special(x: u64, r: &mut Random, infinity: u16) -> u16 {
    let y = x as u16;
    match r.next() % 12 {
        0 => y & 0x8000,
        1 => y & 0x83ff,
        2 => (y & 0x8000) | infinity,
        3 => (y & 0x8000) | (infinity - 1 - (y & 3)),
        4 => y | infinity | 1,
        _ => y,
    }
}

#[test]
fn widening_every_value() {
    for x in 0..=u16::MAX {
        let wide = run(HalfFn::AddToF32(PLAIN), [x.into(), 0x8000, 0], false).d[0];
        let brain = run(HalfFn::AddToF32(BRAIN), [x.into(), 0x8000, 0], false).d[0];
        let want = |y: f32| if y.is_nan() { 0x7fff_ffff } else { y.to_bits() };
        assert_eq!(wide, want(f16::from_bits(x).to_f32()), "{x:04x}");
        assert_eq!(brain, want(f32::from_bits(u32::from(x) << 16)), "{x:04x}");
        // Back through a sum with -0: the same value, NaN in its one form.
        let same = run(HalfFn::Add(PLAIN), [u32::from(x) << 16 | u32::from(x), 0x8000_8000, 0], false).d[0];
        let one = if f16::from_bits(x).is_nan() { 0x7fff } else { x };
        assert_eq!(same, u32::from(one) << 16 | u32::from(one));
        let same = run(HalfFn::Add(BRAIN), [u32::from(x) << 16 | u32::from(x), 0x8000_8000, 0], false).d[0];
        let one = if bf16::from_bits(x).is_nan() { 0x7fff } else { x };
        assert_eq!(same, u32::from(one) << 16 | u32::from(one));
    }
}

#[test]
fn narrowing_f32() {
    let mut r = Random(5);
    let check = |x: f32| {
        if x.is_nan() {
            return;
        }
        let half = run(HalfFn::FromF32(PLAIN), [x.to_bits(), 0, 0], false).d[0];
        let want = u32::from(f16::from_f32(x).to_bits());
        assert_eq!(half, want | want << 16, "{x:e}");
        let brain = run(HalfFn::FromF32(BRAIN), [x.to_bits(), 0, 0], false).d[0];
        let want = u32::from(bf16::from_f32(x).to_bits());
        assert_eq!(brain, want | want << 16, "{x:e}");
    };
    for _ in 0..200_000 {
        check(f32::from_bits(r.next() as u32));
        // Near the range of f16, and near midpoints.
        let near = (r.next() as u32 & 0x8fff_ffff) | 0x3000_0000;
        check(f32::from_bits(near));
        check(f32::from_bits((near & !0x1fff) | 0x1000));
        check(f32::from_bits((near & !0xffff) | 0x8000 | (near & 1)));
    }
    for x in [65504.0, 65519.996, 65520.0, 65536.0, 5.9604645e-8, 2.9802322e-8, 2.980_232_6e-8, f32::INFINITY] {
        check(x);
        check(-x);
    }
}

#[test]
fn fused_sums_are_rounded_once() {
    let mut r = Random(9);
    let mut compared = [0, 0];
    for i in 0..400_000 {
        for (format, infinity) in [(Format::F16, 0x7c00), (Format::Bf16, 0x7f80)] {
            let mut v: [u16; 3] = std::array::from_fn(|_| {
                let x = r.next();
                special(x, &mut r, infinity)
            });
            if format == Format::Bf16 && i % 4 != 0 {
                // Products near one, addends of any size: midpoints with a faint third operand.
                v[0] = (v[0] & 0x807f) | 0x3f80;
                v[1] = (v[1] & 0x807f) | 0x3f80;
                v[2] = (v[2] & 0x807f) | ((86 + v[2] % 60) << 7);
            }
            let Some(want) = exact_fma(v[0], v[1], v[2], format) else { continue };
            let arith = Arith { format, ..PLAIN };
            let word = |x: u16| u32::from(x) << 16 | u32::from(x);
            let got = run(HalfFn::Fma(arith), v.map(word), false).d[0];
            assert_eq!(got, word(want), "{format:?} {v:04x?}");
            if v[2] & 0x7fff == 0 {
                let zero = (v[0] ^ v[1]) & 0x8000;
                let product = exact_fma(v[0], v[1], zero, format).unwrap();
                assert_eq!(run(HalfFn::Mul(arith), v.map(word), false).d[0], word(product));
            }
            let one = if format == Format::F16 { 0x3c00 } else { 0x3f80 };
            if let Some(sum) = exact_fma(v[0], one, v[2], format) {
                let got = run(HalfFn::Add(arith), [word(v[0]), word(v[2]), 0], false).d[0];
                assert_eq!(got, word(sum), "{format:?} {v:04x?}");
            }
            compared[usize::from(format == Format::Bf16)] += 1;
        }
    }
    assert!(compared.iter().all(|&n| n > 200_000), "{compared:?}");
}

/// A bf16 product exactly between two values, and an addend too small for 53 bits.
#[test]
fn faint_addends_break_ties() {
    let word = |x: u16| u32::from(x) << 16 | u32::from(x);
    // (1 + 2^-7) * (1 + 2^-1) = 1.5 + 1.5 * 2^-7: halfway between 0x3fc1 and 0x3fc2.
    for (addend, want) in [(0x0000, 0x3fc2), (0x0001, 0x3fc2), (0x8001, 0x3fc1), (0x0100, 0x3fc2), (0x8100, 0x3fc1)] {
        let got = run(HalfFn::Fma(BRAIN), [word(0x3f81), word(0x3fc0), word(addend)], false).d[0];
        assert_eq!(got, word(want), "{addend:04x}");
    }
}

#[test]
fn what_is_not_finite() {
    let word = |x: u16| u32::from(x) << 16 | u32::from(x);
    for (arith, infinity, one) in [(PLAIN, 0x7c00u16, 0x3c00), (BRAIN, 0x7f80, 0x3f80)] {
        let fma = |a, b, c| run(HalfFn::Fma(arith), [word(a), word(b), word(c)], false).d[0];
        assert_eq!(fma(infinity, 0, one), word(0x7fff));
        assert_eq!(fma(infinity, one, infinity | 0x8000), word(0x7fff));
        assert_eq!(fma(infinity, one | 0x8000, one), word(infinity | 0x8000));
        assert_eq!(fma(one, one, infinity | 0x8000), word(infinity | 0x8000));
        assert_eq!(fma(one, infinity | 1, one), word(0x7fff));
        let sat = Arith { sat: true, ..arith };
        let saturated = |a, c| run(HalfFn::Fma(sat), [word(a), word(one), word(c)], false).d[0];
        assert_eq!(saturated(infinity, 0), word(one));
        assert_eq!(saturated(infinity, infinity | 0x8000), 0);
        assert_eq!(saturated(one | 0x8000, 0), 0);
        assert_eq!(saturated(0x0001, 0), word(0x0001));
        let relu = Arith { relu: true, ..arith };
        let relued = |a, c| run(HalfFn::Fma(relu), [word(a), word(one), word(c)], false).d[0];
        assert_eq!(relued(one | 0x8000, 0), 0);
        assert_eq!(relued(infinity, infinity | 0x8000), word(0x7fff));
        let ftz = Arith { ftz: true, ..arith };
        assert_eq!(run(HalfFn::Add(ftz), [word(0x8001), word(0x8000), 0], false).d[0], word(0x8000));
    }
}

#[test]
fn halves_are_selected() {
    let s = [0x3c00_4000, 0x4200_4400, 0x0000_3c00];
    let with = |a, b, c| run(HalfFn::Fma(Arith { select: [a, b, c], ..PLAIN }), s, false).d[0];
    use Select::{Both, High, Low};
    // 1, 2 times 3, 4 plus 0, 1: high, low.
    assert_eq!(with(Both, Both, Both), 0x4200_4880);
    assert_eq!(with(Low, Both, Both), 0x4600_4880);
    assert_eq!(with(Both, High, Both), 0x4200_4700);
    assert_eq!(with(High, Low, Low), 0x4500_4500);
}

#[test]
fn minimum_maximum_and_comparisons() {
    let mut r = Random(31);
    for i in 0..200_000 {
        for (format, infinity) in [(Format::F16, 0x7c00u16), (Format::Bf16, 0x7f80)] {
            let mut v: [u16; 2] = std::array::from_fn(|_| {
                let x = r.next();
                special(x, &mut r, infinity)
            });
            if i % 8 == 0 {
                v[1] = v[0] ^ (v[1] & 0x8000);
            }
            let float = |x: u16| match format {
                Format::F16 => f16::from_bits(x).to_f32(),
                Format::Bf16 => bf16::from_bits(x).to_f32(),
            };
            let (a, b) = (float(v[0]), float(v[1]));
            let flags = r.next();
            let flag = |i: u32| flags >> i & 1 == 1;
            let (p, propagate) = (flag(0), flag(1));
            let want = if a.is_nan() && b.is_nan() || propagate && (a.is_nan() || b.is_nan()) {
                0x7fff
            } else if a.is_nan() {
                v[1]
            } else if b.is_nan() || a.total_cmp(&b).is_lt() == p {
                v[0]
            } else {
                v[1]
            };
            let pick = HalfFn::MinMax {
                format,
                ftz: false,
                propagate,
                xorsign: false,
                three: false,
                select: [Select::Both; 3],
            };
            let s = [u32::from(v[0]) << 16, u32::from(v[1]) << 16, 0];
            assert_eq!(run(pick, s, p).d[0], u32::from(want) << 16, "{format:?} {v:04x?}");

            let cmp = FloatCmp { less: flag(2), equal: flag(3), greater: flag(4), unordered: flag(5) };
            let holds = match a.partial_cmp(&b) {
                Some(std::cmp::Ordering::Less) => cmp.less,
                Some(std::cmp::Ordering::Equal) => cmp.equal,
                Some(std::cmp::Ordering::Greater) => cmp.greater,
                None => cmp.unordered,
            };
            let compare = Compare { format, ftz: false, cmp, op: BoolOp::Xor, select: [Select::High; 2] };
            assert_eq!(run(HalfFn::SetP(compare), s, p).p, [holds != p; 2]);
            let both = Compare { op: BoolOp::Or, select: [Select::Both; 2], ..compare };
            let zero = if cmp.equal { holds } else { false };
            assert_eq!(run(HalfFn::SetPBoth(both), s, p).p, [zero || p, !zero || p]);
            let one = flag(6);
            let yes = match (one, format) {
                (false, _) => 0xffff_ffff,
                (true, Format::F16) => 0x3c00_3c00,
                (true, Format::Bf16) => 0x3f80_3f80,
            };
            assert_eq!(run(HalfFn::Set { compare, one }, s, p).d[0], if holds != p { yes } else { 0 });
        }
    }
}
