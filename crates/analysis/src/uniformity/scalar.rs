//! Integer functions of one lane, for the values that are known exactly.
//!
//! A twin of the engine's functions, which this crate must not depend on; `crates/sim/tests/uniform_scalars.rs` compares them.

use lanescope_ir::op::LaneFn;
use lanescope_ir::op::convert::ConvertFn;
use lanescope_ir::op::int::{BoolOp, Cmp, IntFn, Packing};

/// Result words and predicates.
pub(super) type Results = ([u32; 2], [bool; 2]);

fn wide(lo: u32, hi: u32) -> u64 {
    u64::from(lo) | u64::from(hi) << 32
}

fn words(x: u64) -> [u32; 2] {
    [x as u32, (x >> 32) as u32]
}

fn word(x: u32) -> Option<Results> {
    Some(([x, 0], [false; 2]))
}

fn pair(x: u64) -> Option<Results> {
    Some((words(x), [false; 2]))
}

pub(super) fn compare(cmp: Cmp, order: std::cmp::Ordering) -> bool {
    match cmp {
        Cmp::False => false,
        Cmp::Lt => order.is_lt(),
        Cmp::Eq => order.is_eq(),
        Cmp::Le => order.is_le(),
        Cmp::Gt => order.is_gt(),
        Cmp::Ne => order.is_ne(),
        Cmp::Ge => order.is_ge(),
        Cmp::True => true,
    }
}

pub(super) fn order(a: u32, b: u32, signed: bool) -> std::cmp::Ordering {
    if signed { (a as i32).cmp(&(b as i32)) } else { a.cmp(&b) }
}

fn order64(a: u64, b: u64, signed: bool) -> std::cmp::Ordering {
    if signed { (a as i64).cmp(&(b as i64)) } else { a.cmp(&b) }
}

pub(super) fn join(op: BoolOp, a: bool, b: bool) -> bool {
    match op {
        BoolOp::And => a && b,
        BoolOp::Or => a || b,
        BoolOp::Xor => a != b,
    }
}

/// The function of three bits given by a truth table, for all bits.
pub(super) fn lop3(lut: u8, a: u32, b: u32, c: u32) -> u32 {
    (0..8u32).filter(|i| lut >> i & 1 != 0).fold(0, |r, i| {
        let pick = |bit: u32, x: u32| if i >> bit & 1 != 0 { x } else { !x };
        r | pick(2, a) & pick(1, b) & pick(0, c)
    })
}

fn shift_left(x: u32, n: u32) -> u32 {
    if n >= 32 { 0 } else { x << n }
}

fn shift_right(x: u32, n: u32, signed: bool) -> u32 {
    if signed {
        ((x as i32) >> n.min(31)) as u32
    } else if n >= 32 {
        0
    } else {
        x >> n
    }
}

fn plop(lut: u8, p: [bool; 3]) -> bool {
    lut >> (u8::from(p[0]) << 2 | u8::from(p[1]) << 1 | u8::from(p[2])) & 1 != 0
}

/// Subtracted operands enter a sum with carries as `2^32 - x`.
fn carried(x: u32, neg: bool) -> u64 {
    if neg { u64::from(!x) + 1 } else { u64::from(x) }
}

/// What the function gives; `None` if it is not done here.
pub fn evaluate(f: &LaneFn, s: [u32; 6], p: [bool; 3]) -> Option<Results> {
    match f {
        LaneFn::Int(f) => int(f, s, p),
        LaneFn::Convert(ConvertFn::IntToInt { from, to, saturate: false }) => {
            let x = wide(s[0], s[1]);
            let keep = |x: u64, bits: u8, signed: bool| match u32::from(bits) {
                n @ 1..=63 if signed => ((x << (64 - n)) as i64 >> (64 - n)) as u64,
                n @ 1..=63 => x & ((1 << n) - 1),
                _ => x,
            };
            let x = keep(keep(x, from.bits, from.signed), to.bits, to.signed);
            if to.bits > 32 { pair(x) } else { word(x as u32) }
        }
        _ => None,
    }
}

fn int(f: &IntFn, s: [u32; 6], p: [bool; 3]) -> Option<Results> {
    use IntFn as F;
    let [a, b, c, ..] = s;
    let two = |q: bool, r: bool| Some(([0; 2], [q, r]));
    match *f {
        F::Mov => word(a),
        F::Mov64 => Some(([a, b], [false; 2])),
        F::Sel => word(if p[0] { a } else { b }),
        F::Sel64 => Some((if p[0] { [a, b] } else { [c, s[3]] }, [false; 2])),
        F::Add => word(a.wrapping_add(b)),
        F::Add3 => word(a.wrapping_add(b).wrapping_add(c)),
        F::Add3Carry { neg } => {
            let sum = carried(a, neg[0]) + carried(b, neg[1]) + carried(c, neg[2]);
            Some(([sum as u32, 0], [sum >> 32 >= 1, sum >> 32 >= 2]))
        }
        F::Add3X => word(a.wrapping_add(b).wrapping_add(c).wrapping_add(p[0].into()).wrapping_add(p[1].into())),
        F::Add3XCarry => {
            let sum = u64::from(a) + u64::from(b) + u64::from(c) + u64::from(p[0]) + u64::from(p[1]);
            Some(([sum as u32, 0], [sum >> 32 >= 1, sum >> 32 >= 2]))
        }
        F::Add64 { neg } => {
            let sign = |x: u64, n: bool| if n { x.wrapping_neg() } else { x };
            pair(sign(wide(a, b), neg[0]).wrapping_add(sign(wide(c, s[3]), neg[1])))
        }
        F::Mad => word(a.wrapping_mul(b).wrapping_add(c)),
        F::MadX => word(a.wrapping_mul(b).wrapping_add(c).wrapping_add(p[0].into())),
        F::MadWide { signed, neg_c } | F::MadHi { signed, neg_c } => {
            let product = if signed {
                i64::from(a as i32).wrapping_mul(i64::from(b as i32)) as u64
            } else {
                u64::from(a).wrapping_mul(u64::from(b))
            };
            let addend = wide(c, s[3]);
            let sum = product.wrapping_add(if neg_c { addend.wrapping_neg() } else { addend });
            if matches!(f, F::MadHi { .. }) { word((sum >> 32) as u32) } else { pair(sum) }
        }
        F::Lea { shift } => word(shift_left(a, shift.into()).wrapping_add(b)),
        F::LeaHiX { shift } => {
            let high = (wide(a, c) << (shift % 64) >> 32) as u32;
            word(high.wrapping_add(b).wrapping_add(p[0].into()))
        }
        F::Shl => word(shift_left(a, b)),
        F::ShrU => word(shift_right(a, b, false)),
        F::ShrS => word(shift_right(a, b, true)),
        F::And => word(a & b),
        F::Or => word(a | b),
        F::Xor => word(a ^ b),
        F::Lop3 { lut } => word(lop3(lut, a, b, c)),
        F::Lop3Pred { lut, and } => {
            let d = lop3(lut, a, b, c);
            let q = if and { d != 0 && p[0] } else { d != 0 || p[0] };
            Some(([d, 0], [q, false]))
        }
        F::Plop3 { lut } => two(plop(lut[0], p), plop(lut[1], p)),
        F::Set { cmp, signed } => two(compare(cmp, order(a, b, signed)), false),
        F::SetJoin { cmp, signed, op, extended } => {
            let order = order(a, b, signed);
            let c = if extended && order.is_eq() { p[1] } else { compare(cmp, order) };
            two(join(op, c, p[0]), join(op, !c, p[0]))
        }
        F::SetJoin64 { cmp, signed, op } => {
            let c = compare(cmp, order64(wide(a, b), wide(c, s[3]), signed));
            two(join(op, c, p[0]), join(op, !c, p[0]))
        }
        F::Min { signed } => word(if order(a, b, signed).is_le() { a } else { b }),
        F::Max { signed } => word(if order(a, b, signed).is_ge() { a } else { b }),
        F::MinMax { signed, packing: Packing::One, relu: false } => {
            let o = order(a, b, signed);
            let first = if p[0] { o.is_le() } else { o.is_ge() };
            Some(([if first { a } else { b }, 0], [first; 2]))
        }
        F::Popc => word(a.count_ones()),
        F::Brev => word(a.reverse_bits()),
        F::Flo { signed: false, shift } => {
            let found = a != 0;
            let d = if !found {
                u32::MAX
            } else if shift {
                a.leading_zeros()
            } else {
                31 - a.leading_zeros()
            };
            Some(([d, 0], [found, false]))
        }
        F::Clz => word(a.leading_zeros()),
        F::Abs => word((a as i32).wrapping_abs() as u32),
        F::Div { signed: false } => word(a.checked_div(b).unwrap_or(u32::MAX)),
        F::Rem { signed: false } => word(a.checked_rem(b).unwrap_or(u32::MAX)),
        F::Bfe { signed: false } => {
            let (at, n) = (b & 0xff, c & 0xff);
            let x = shift_right(a, at, false);
            word(if n >= 32 { x } else { x & ((1 << n) - 1) })
        }
        F::Sgxt { signed, wrap: false } if b <= 32 => {
            let up = 32 - b;
            word(if b == 0 { 0 } else { shift_right(a << up, up, signed) })
        }
        F::Mad64 => pair(wide(a, b).wrapping_mul(wide(c, s[3])).wrapping_add(wide(s[4], s[5]))),
        F::Shl64 => pair(if c >= 64 { 0 } else { wide(a, b) << c }),
        F::Shr64 { signed: false } => pair(if c >= 64 { 0 } else { wide(a, b) >> c }),
        F::Shr64 { signed: true } => pair(((wide(a, b) as i64) >> c.min(63)) as u64),
        F::Lop64 { lut } => Some(([lop3(lut, a, c, 0), lop3(lut, b, s[3], 0)], [false; 2])),
        F::Funnel(fun) => {
            // (s0 low, s2 high) by s1.
            let limit = if fun.wide { 64 } else { 32 };
            let n = if fun.wrap { b % limit } else { b.min(limit) };
            let x = wide(a, c);
            let y = match (fun.right, fun.signed) {
                (false, _) => x.checked_shl(n).unwrap_or(0),
                (true, false) => x.checked_shr(n).unwrap_or(0),
                (true, true) => ((x as i64) >> n.min(63)) as u64,
            };
            word(words(y)[usize::from(fun.high)])
        }
        _ => None,
    }
}
