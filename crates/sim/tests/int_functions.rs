//! Integer functions against naive twins: wide arithmetic, bit by bit, byte by byte.

use lanescope_ir::op::LaneFn;
use lanescope_ir::op::int::{BoolOp, Cmp, Funnel, IntFn, LeaCarry, Packing, Prmt, Small};
use lanescope_sim::lane::{Out, eval};

/// Random words in which special values are frequent.
struct Words(u64);

impl Words {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let x = (self.0 >> 32) as u32;
        match self.0 & 15 {
            0 => 0,
            1 => !0,
            2 => 1 << 31,
            3 => x % 70,
            4 => !0 - x % 70,
            5 => (1 << 31) - 1 + x % 3,
            6 => x & 0x8000_ffff,
            _ => x,
        }
    }
    fn rows(&mut self) -> ([u32; 6], [bool; 3]) {
        let s = std::array::from_fn(|_| self.next());
        let bits = self.0 >> 40;
        (s, [bits & 1 == 1, bits & 2 == 2, bits & 4 == 4])
    }
}

fn run(f: IntFn, s: [u32; 6], p: [bool; 3]) -> Out {
    eval(&LaneFn::Int(f), s, p)
}

fn each(seed: u64, mut check: impl FnMut([u32; 6], [bool; 3])) {
    let mut words = Words(seed * 2 + 0x9e37_79b9_7f4a_7c15);
    for _ in 0..20_000 {
        let (s, p) = words.rows();
        check(s, p);
    }
}

fn flags<const N: usize>(bits: u32) -> [bool; N] {
    std::array::from_fn(|i| bits >> i & 1 == 1)
}

fn pair(lo: u32, hi: u32) -> u64 {
    u64::from(lo) + (u64::from(hi) << 32)
}

#[test]
fn sums_carry_exactly() {
    each(1, |s, p| {
        for bits in 0..8 {
            let neg = flags::<3>(bits);
            let sum: i128 = (0..3).map(|i| if neg[i] { (1 << 32) - i128::from(s[i]) } else { i128::from(s[i]) }).sum();
            let out = run(IntFn::Add3Carry { neg }, s, p);
            assert_eq!((out.d[0], out.p), (sum as u32, [sum >= 1 << 32, sum >= 2 << 32]));
        }
        let sum = u128::from(s[0]) + u128::from(s[1]) + u128::from(s[2]) + u128::from(p[0]) + u128::from(p[1]);
        let out = run(IntFn::Add3XCarry, s, p);
        assert_eq!((out.d[0], out.p), (sum as u32, [sum >= 1 << 32, sum >= 2 << 32]));
        assert_eq!(run(IntFn::Add3X, s, p).d[0], sum as u32);
        assert_eq!(run(IntFn::Add, s, p).d[0], (u128::from(s[0]) + u128::from(s[1])) as u32);
        assert_eq!(run(IntFn::Add3, s, p).d[0], (u128::from(s[0]) + u128::from(s[1]) + u128::from(s[2])) as u32);
    });
}

/// What compilers build of `IADD3` and `IADD3.X`: three 96-bit terms, any of them subtracted.
#[test]
fn carry_chains_are_wide_sums() {
    each(2, |s, p| {
        for bits in 0..4 {
            let neg = [flags::<2>(bits)[0], flags::<2>(bits)[1], false];
            let words = [[s[0], s[1], s[2]], [s[3], s[4], s[5]], [s[5], s[0], s[4]]];
            let mut expected = 0u128;
            for (term, neg) in words.iter().zip(neg) {
                let term = u128::from(term[0]) | u128::from(term[1]) << 32 | u128::from(term[2]) << 64;
                expected = if neg { expected.wrapping_sub(term) } else { expected.wrapping_add(term) };
            }
            let pick = |i: usize| {
                let term = |t: usize| if neg[t] && i > 0 { !words[t][i] } else { words[t][i] };
                [term(0), term(1), term(2), 0, 0, 0]
            };
            let low = run(IntFn::Add3Carry { neg }, pick(0), p);
            let middle = run(IntFn::Add3XCarry, pick(1), [low.p[0], low.p[1], false]);
            let high = run(IntFn::Add3X, pick(2), [middle.p[0], middle.p[1], false]);
            let got = u128::from(low.d[0]) | u128::from(middle.d[0]) << 32 | u128::from(high.d[0]) << 64;
            assert_eq!(got, expected & ((1 << 96) - 1));
        }
    });
}

#[test]
fn wide_and_saturating_sums() {
    each(3, |s, p| {
        let terms = [pair(s[0], s[1]), pair(s[2], s[3]), pair(s[4], s[5])].map(i128::from);
        for bits in 0..8 {
            let neg = flags::<3>(bits);
            let signed = |i: usize| if neg[i] { -terms[i] } else { terms[i] };
            let three = (signed(0) + signed(1) + signed(2)) as u64;
            let out = run(IntFn::Add3Wide { neg }, s, p);
            assert_eq!(pair(out.d[0], out.d[1]), three);
            let out = run(IntFn::Add64 { neg: [neg[0], neg[1]] }, s, p);
            assert_eq!(pair(out.d[0], out.d[1]), (signed(0) + signed(1)) as u64);
        }
        let (a, b) = (i64::from(s[0] as i32), i64::from(s[1] as i32));
        for neg in [false, true] {
            let exact = if neg { a - b } else { a + b };
            let want = exact.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as u32;
            assert_eq!(run(IntFn::AddSat { neg }, s, p).d[0], want);
        }
        let half = |shift: u32| u32::from(((s[0] >> shift) as u16).wrapping_add((s[1] >> shift) as u16)) << shift;
        let halves = half(0) | half(16);
        assert_eq!(run(IntFn::Add16x2, s, p).d[0], halves);
        assert_eq!(run(IntFn::Abs, s, p).d[0], a.unsigned_abs() as u32);
        assert_eq!(run(IntFn::AbsDiff { signed: true }, s, p).d[0], ((a - b).unsigned_abs() as u32).wrapping_add(s[2]));
        let unsigned = (i64::from(s[0]) - i64::from(s[1])).unsigned_abs() as u32;
        assert_eq!(run(IntFn::AbsDiff { signed: false }, s, p).d[0], unsigned.wrapping_add(s[2]));
        for signed in [false, true] {
            let (x, y) = (s[0].to_le_bytes(), s[1].to_le_bytes());
            let wide = |v: u8| if signed { i32::from(v as i8) } else { i32::from(v) };
            let sum: i32 = (0..4).map(|i| (wide(x[i]) - wide(y[i])).abs()).sum();
            assert_eq!(run(IntFn::AbsDiff4Acc { signed }, s, p).d[0], s[2].wrapping_add(sum as u32));
            let bytes = std::array::from_fn(|i| (wide(x[i]) - wide(y[i])).unsigned_abs() as u8);
            assert_eq!(run(IntFn::AbsDiff4 { signed }, s, p).d[0], u32::from_le_bytes(bytes));
        }
        let chosen = if p[0] { (s[0], s[1]) } else { (s[2], s[3]) };
        assert_eq!(run(IntFn::Sel64, s, p).d, [chosen.0, chosen.1]);
        assert_eq!(run(IntFn::Sel, s, p).d[0], if p[0] { s[0] } else { s[1] });
        assert_eq!(run(IntFn::Mov64, s, p).d, [s[0], s[1]]);
    });
}

#[test]
fn products() {
    each(4, |s, p| {
        let c = i128::from(pair(s[2], s[3]));
        for bits in 0..4 {
            let [signed, neg_c] = flags::<2>(bits);
            let product = if signed {
                i128::from(s[0] as i32) * i128::from(s[1] as i32)
            } else {
                i128::from(s[0]) * i128::from(s[1])
            };
            let sum = product + if neg_c { (1 << 64) - c } else { c };
            let out = run(IntFn::MadWide { signed, neg_c }, s, p);
            assert_eq!(pair(out.d[0], out.d[1]), sum as u64);
            assert_eq!(run(IntFn::MadHi { signed, neg_c }, s, p).d[0], (sum as u64 >> 32) as u32);
            let sum = sum + i128::from(p[0]);
            let out = run(IntFn::MadWideCarry { signed, neg_c }, s, p);
            assert_eq!(pair(out.d[0], out.d[1]), sum as u64);
            let high = run(IntFn::MadHiCarry { signed, neg_c }, s, p);
            assert_eq!(high.d[0], (sum as u64 >> 32) as u32);
            let modular = i128::from(product as u64) + sum - product;
            assert_eq!((out.p[0], high.p[0]), (modular >> 64 != 0, modular >> 64 != 0));
        }
        let low = s[0].wrapping_mul(s[1]).wrapping_add(s[2]);
        assert_eq!(run(IntFn::Mad, s, p).d[0], low);
        assert_eq!(run(IntFn::MadX, s, p).d[0], low.wrapping_add(u32::from(p[0])));
        for bits in 0..4 {
            let [a, b] = flags::<2>(bits);
            let byte = |x: u32, i: u32, signed: bool| {
                let v = (x >> (8 * i)) as u8;
                if signed { i64::from(v as i8) } else { i64::from(v) }
            };
            let half = |x: u32, i: u32| {
                let v = (x >> (16 * i)) as u16;
                if a { i64::from(v as i16) } else { i64::from(v) }
            };
            let four: i64 = (0..4).map(|i| byte(s[0], i, a) * byte(s[1], i, b)).sum();
            assert_eq!(run(IntFn::Dp4a { a, b }, s, p).d[0], (i64::from(s[2]) + four) as u32);
            for high in [false, true] {
                let from = if high { 2 } else { 0 };
                let two: i64 = (0..2).map(|i| half(s[0], i) * byte(s[1], from + i, b)).sum();
                assert_eq!(run(IntFn::Dp2a { a, b, high }, s, p).d[0], (i64::from(s[2]) + two) as u32);
            }
        }
    });
}

#[test]
fn carry_less_product_is_polynomial_multiplication() {
    each(5, |s, p| {
        let (a, b, c) = (pair(s[0], s[1]), pair(s[2], s[3]), pair(s[4], s[5]));
        let coefficient = |n: u32| {
            (0..64).filter(|&i| n >= i && n - i < 64 && a >> i & 1 == 1 && b >> (n - i) & 1 == 1).count() as u64 & 1
        };
        if s[0] % 16 == 0 {
            let low = (0..64).fold(0, |x, n| x | coefficient(n) << n);
            let high = (0..63).fold(0, |x, n| x | coefficient(n + 64) << n);
            let got = |high| {
                let out = run(IntFn::ClMad { high }, s, p);
                pair(out.d[0], out.d[1])
            };
            assert_eq!((got(false), got(true)), (low ^ c, high ^ c));
        }
    });
}

#[test]
fn scaled_sums() {
    each(6, |s, p| {
        let shift = (s[5] & 31) as u8;
        let scaled = |high: u32| u128::from(pair(s[0], high)) << shift;
        assert_eq!(run(IntFn::Lea { shift }, s, p).d[0], (scaled(0) as u32).wrapping_add(s[1]));
        let high = (scaled(s[2]) >> 32) as u32;
        let want = high.wrapping_add(s[1]).wrapping_add(u32::from(p[0]));
        assert_eq!(run(IntFn::LeaHiX { shift }, s, p).d[0], want);
        for bits in 0..32 {
            let [high, sign_extend, minus_a, minus_b, carry_in] = flags::<5>(bits);
            let top = if sign_extend { (s[0] as i32 >> 31) as u32 } else { s[2] };
            let a = if high { (scaled(top) >> 32) as u32 } else { scaled(0) as u32 };
            let term = |x: u32, minus: bool| match (minus, carry_in) {
                (false, _) => i128::from(x),
                (true, false) => (1 << 32) - i128::from(x),
                (true, true) => i128::from(!x),
            };
            let sum = term(a, minus_a) + term(s[1], minus_b) + i128::from(carry_in && p[0]);
            let lea = LeaCarry { shift, high, sign_extend, minus_a, minus_b, carry_in };
            let out = run(IntFn::LeaCarry(lea), s, p);
            assert_eq!((out.d[0], out.p[0]), (sum as u32, sum >= 1 << 32));
        }
        // LEA and LEA.HI.X together: a 64-bit scaled sum.
        let lea = LeaCarry { shift, high: false, sign_extend: false, minus_a: false, minus_b: false, carry_in: false };
        let low = run(IntFn::LeaCarry(lea), [s[0], s[3], 0, 0, 0, 0], p);
        let high = run(IntFn::LeaHiX { shift }, [s[0], s[4], s[2], 0, 0, 0], [low.p[0], false, false]);
        let want = (pair(s[0], s[2]) << shift).wrapping_add(pair(s[3], s[4]));
        assert_eq!(pair(low.d[0], high.d[0]), want);
    });
}

#[test]
fn shifts_bit_by_bit() {
    each(7, |s, p| {
        let x = pair(s[0], s[2]);
        for bits in 0..32 {
            let [right, high, wrap, wide, signed] = flags::<5>(bits);
            let width = if wide { 64 } else { 32 };
            let n = i64::from(if wrap { s[1] % width } else { s[1].min(width) });
            let bit = |i: i64| match i {
                0..64 => x >> i & 1,
                64.. if right && signed => x >> 63,
                _ => 0,
            };
            let want = (0..32).fold(0, |r, i| {
                let at = i + if high { 32 } else { 0 };
                r | (bit(if right { at + n } else { at - n }) as u32) << i
            });
            let f = Funnel { right, high, wrap, wide, signed };
            assert_eq!(run(IntFn::Funnel(f), s, p).d[0], want, "{f:?} {s:x?}");
        }
        let n = u64::from(s[1].min(32));
        assert_eq!(run(IntFn::Shl, s, p).d[0], (u64::from(s[0]) << n) as u32);
        assert_eq!(run(IntFn::ShrU, s, p).d[0], (u64::from(s[0]) >> n) as u32);
        assert_eq!(run(IntFn::ShrS, s, p).d[0], (i64::from(s[0] as i32) >> n) as u32);
    });
}

#[test]
fn tables_bit_by_bit() {
    let mut words = Words(77);
    for lut in 0..=255u8 {
        for _ in 0..50 {
            let (s, p) = words.rows();
            let want = (0..32).fold(0, |d, i| {
                let row = (s[0] >> i & 1) * 4 + (s[1] >> i & 1) * 2 + (s[2] >> i & 1);
                d | (u32::from(lut) >> row & 1) << i
            });
            assert_eq!(run(IntFn::Lop3 { lut }, s, p).d[0], want);
            let out = run(IntFn::Lop3Pred { lut, and: false }, s, p);
            assert_eq!((out.d[0], out.p[0]), (want, want != 0 || p[0]));
            let out = run(IntFn::Lop3Pred { lut, and: true }, s, p);
            assert_eq!((out.d[0], out.p[0]), (want, want != 0 && p[0]));
            let table =
                |lut: u8, [a, b, c]: [bool; 3]| lut >> (4 * u8::from(a) + 2 * u8::from(b) + u8::from(c)) & 1 == 1;
            let other = (s[3] & 255) as u8;
            assert_eq!(run(IntFn::Plop3 { lut: [lut, other] }, s, p).p, [table(lut, p), table(other, p)]);
            let signs = [s[0], s[1], s[2]].map(|x| (x as i32) < 0);
            assert_eq!(run(IntFn::SignPlop3 { lut: [lut, other] }, s, p).p, [table(lut, signs), table(other, signs)]);
        }
        let s = [0xf0f0_f0f0, 0xcccc_cccc, 0xaaaa_aaaa, 0, 0, 0];
        assert_eq!(run(IntFn::Lop3 { lut }, s, [false; 3]).d[0] as u8, lut);
    }
}

const COMPARISONS: [Cmp; 8] = [Cmp::False, Cmp::Lt, Cmp::Eq, Cmp::Le, Cmp::Gt, Cmp::Ne, Cmp::Ge, Cmp::True];

fn holds(cmp: Cmp, a: i128, b: i128) -> bool {
    match cmp {
        Cmp::False => false,
        Cmp::Lt => a < b,
        Cmp::Eq => a == b,
        Cmp::Le => a <= b,
        Cmp::Gt => a > b,
        Cmp::Ne => a != b,
        Cmp::Ge => a >= b,
        Cmp::True => true,
    }
}

#[test]
fn comparisons() {
    each(8, |mut s, p| {
        if p[2] {
            s[2] = s[0];
            s[3] = s[1];
        }
        for cmp in COMPARISONS {
            for signed in [false, true] {
                let wide = |x: u32| if signed { i128::from(x as i32) } else { i128::from(x) };
                let wide2 = |lo, hi| if signed { i128::from(pair(lo, hi) as i64) } else { i128::from(pair(lo, hi)) };
                let c = holds(cmp, wide(s[0]), wide(s[1]));
                let c64 = holds(cmp, wide2(s[0], s[1]), wide2(s[2], s[3]));
                assert_eq!(run(IntFn::Set { cmp, signed }, s, p).p[0], c);
                for op in [BoolOp::And, BoolOp::Or, BoolOp::Xor] {
                    let join = |c: bool| match op {
                        BoolOp::And => c && p[0],
                        BoolOp::Or => c || p[0],
                        BoolOp::Xor => c != p[0],
                    };
                    let out = run(IntFn::SetJoin { cmp, signed, op, extended: false }, s, p);
                    assert_eq!(out.p, [join(c), join(!c)]);
                    assert_eq!(run(IntFn::SetJoin64 { cmp, signed, op }, s, p).p, [join(c64), join(!c64)]);
                    // Low words unsigned, then high words extended: a 64-bit comparison.
                    let low = run(IntFn::Set { cmp, signed: false }, [s[0], s[2], 0, 0, 0, 0], p).p[0];
                    let out = run(
                        IntFn::SetJoin { cmp, signed, op, extended: true },
                        [s[1], s[3], 0, 0, 0, 0],
                        [p[0], low, false],
                    );
                    assert_eq!(out.p, [join(c64), join(!c64)]);
                }
            }
        }
    });
}

#[test]
fn minimum_and_maximum() {
    fn best(x: &[i64], min: bool) -> i64 {
        if min { *x.iter().min().unwrap() } else { *x.iter().max().unwrap() }
    }
    each(9, |s, p| {
        for signed in [false, true] {
            let one = |x: u32| if signed { i64::from(x as i32) } else { i64::from(x) };
            let half = |x: u32, i: u32| {
                let v = (x >> (16 * i)) as u16;
                if signed { i64::from(v as i16) } else { i64::from(v) }
            };
            assert_eq!(run(IntFn::Min { signed }, s, p).d[0], best(&[one(s[0]), one(s[1])], true) as u32);
            assert_eq!(run(IntFn::Max { signed }, s, p).d[0], best(&[one(s[0]), one(s[1])], false) as u32);
            let wide = |lo, hi| if signed { i128::from(pair(lo, hi) as i64) } else { i128::from(pair(lo, hi)) };
            let (a, b) = (wide(s[0], s[1]), wide(s[2], s[3]));
            let out = run(IntFn::MinMax64 { signed }, s, p);
            assert_eq!(pair(out.d[0], out.d[1]), if p[0] { a.min(b) } else { a.max(b) } as u64);
            for relu in [false, true] {
                if relu && !signed {
                    continue;
                }
                let low = |x: i64| if relu { x.max(0) } else { x };
                let sum = s[0].wrapping_add(s[1]);
                let sums = u32::from((s[0] as u16).wrapping_add(s[1] as u16))
                    | u32::from(((s[0] >> 16) as u16).wrapping_add((s[1] >> 16) as u16)) << 16;
                let pack = |x: [u32; 3], n: usize| {
                    (0..2).fold(0, |d, i| {
                        let v: Vec<i64> = x[..n].iter().map(|&x| half(x, i)).collect();
                        d | u32::from(low(best(&v, p[0])) as u16) << (16 * i)
                    })
                };
                let single = |x: [u32; 3], n: usize| {
                    let v: Vec<i64> = x[..n].iter().map(|&x| one(x)).collect();
                    low(best(&v, p[0])) as u32
                };
                let (x, y, z) = ([s[0], s[1], 0], [s[0], s[1], s[2]], [sum, s[2], 0]);
                let (t, u) = (Packing::One, Packing::Two);
                let first = |a: i64, b: i64| best(&[a, b], p[0]) == a;
                let taken = [first(half(s[0], 0), half(s[1], 0)), first(half(s[0], 1), half(s[1], 1))];
                assert_eq!(run(IntFn::MinMax { signed, packing: u, relu }, s, p).p, taken);
                let taken = first(one(s[0]), one(s[1]));
                assert_eq!(run(IntFn::MinMax { signed, packing: t, relu }, s, p).p, [taken; 2]);
                assert_eq!(run(IntFn::MinMax { signed, packing: t, relu }, s, p).d[0], single(x, 2));
                assert_eq!(run(IntFn::MinMax { signed, packing: u, relu }, s, p).d[0], pack(x, 2));
                assert_eq!(run(IntFn::MinMax3 { signed, packing: t, relu }, s, p).d[0], single(y, 3));
                assert_eq!(run(IntFn::MinMax3 { signed, packing: u, relu }, s, p).d[0], pack(y, 3));
                assert_eq!(run(IntFn::AddMinMax { signed, packing: t, relu }, s, p).d[0], single(z, 2));
                assert_eq!(run(IntFn::AddMinMax { signed, packing: u, relu }, s, p).d[0], pack([sums, s[2], 0], 2));
            }
        }
    });
}

/// Bytes of the result from low to high, for selectors 0..3, from the table of PTX's `prmt`.
fn prmt_rows(mode: Prmt) -> [[usize; 4]; 4] {
    match mode {
        Prmt::Index => [[0; 4]; 4],
        Prmt::F4e => [[0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [3, 4, 5, 6]],
        Prmt::B4e => [[0, 7, 6, 5], [1, 0, 7, 6], [2, 1, 0, 7], [3, 2, 1, 0]],
        Prmt::Rc8 => [[0; 4], [1; 4], [2; 4], [3; 4]],
        Prmt::Ecl => [[0, 1, 2, 3], [1, 1, 2, 3], [2, 2, 2, 3], [3, 3, 3, 3]],
        Prmt::Ecr => [[0, 0, 0, 0], [0, 1, 1, 1], [0, 1, 2, 2], [0, 1, 2, 3]],
        Prmt::Rc16 => [[0, 1, 0, 1], [2, 3, 2, 3], [0, 1, 0, 1], [2, 3, 2, 3]],
    }
}

#[test]
fn bytes_are_permuted() {
    each(10, |s, p| {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&s[0].to_le_bytes());
        bytes[4..].copy_from_slice(&s[2].to_le_bytes());
        let indexed = std::array::from_fn(|i| {
            let nibble = (s[1] >> (4 * i)) as usize;
            let byte: u8 = bytes[nibble & 7];
            if nibble & 8 == 0 {
                byte
            } else if byte >= 0x80 {
                0xff
            } else {
                0
            }
        });
        assert_eq!(run(IntFn::Prmt(Prmt::Index), s, p).d[0], u32::from_le_bytes(indexed));
        for mode in [Prmt::F4e, Prmt::B4e, Prmt::Rc8, Prmt::Ecl, Prmt::Ecr, Prmt::Rc16] {
            let want = prmt_rows(mode)[s[1] as usize & 3].map(|i| bytes[i]);
            assert_eq!(run(IntFn::Prmt(mode), s, p).d[0], u32::from_le_bytes(want), "{mode:?}");
        }
    });
}

#[test]
fn bits_one_by_one() {
    each(11, |s, p| {
        let x = s[0];
        let bits: Vec<u32> = (0..32).map(|i| x >> i & 1).collect();
        assert_eq!(run(IntFn::Popc, s, p).d[0], bits.iter().sum::<u32>());
        assert_eq!(run(IntFn::Brev, s, p).d[0], (0..32).fold(0, |d, i| d | bits[i] << (31 - i)));
        for signed in [false, true] {
            let wanted = if signed && bits[31] == 1 { 0 } else { 1 };
            let found = (0..32u32).rev().find(|&i| bits[i as usize] == wanted);
            assert_eq!(run(IntFn::Flo { signed, shift: false }, s, p).d[0], found.unwrap_or(!0));
            let out = run(IntFn::Flo { signed, shift: true }, s, p);
            assert_eq!((out.d[0], out.p[0]), (found.map_or(!0, |i| 31 - i), found.is_some()));
        }
        for wrap in [false, true] {
            let (from, count) = if wrap { (s[0] % 32, s[1] % 32) } else { (s[0], s[1]) };
            let end = u64::from(from) + u64::from(count);
            let mask = (0..32u32).filter(|&i| i >= from && u64::from(i) < end).fold(0, |d, i| d | 1 << i);
            assert_eq!(run(IntFn::Bmsk { wrap }, s, p).d[0], mask);
            let count = (if wrap { s[1] % 32 } else { s[1].min(32) }) as usize;
            for signed in [false, true] {
                let fill = if signed && count > 0 { bits[count - 1] } else { 0 };
                let want = (0..32).fold(0, |d, i| d | (if i < count { bits[i] } else { fill }) << i);
                assert_eq!(run(IntFn::Sgxt { signed, wrap }, s, p).d[0], want);
            }
        }
        for bits in [2u8, 4, 8, 16] {
            for signed in [false, true] {
                let to = Small { bits, signed };
                let (min, max) =
                    if signed { (-(1i64 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
                let clamp = |x: u32| i64::from(x as i32).max(min).min(max);
                assert_eq!(run(IntFn::Saturate(to), s, p).d[0], clamp(s[0]) as u32);
                let field = |x: u32| clamp(x) as u32 & ((1u32 << bits) - 1);
                let above = if bits == 16 { 0 } else { s[2] << (2 * bits) };
                let want = above | field(s[0]) << bits | field(s[1]);
                assert_eq!(run(IntFn::PackSaturate(to), s, p).d[0], want);
            }
        }
    });
}
