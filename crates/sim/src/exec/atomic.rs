//! What atomics do to one location.

use half::{bf16, f16};
use lanescope_ir::op::memory::{AtomOp, AtomType};

/// Up to 128 bits, low word first.
pub(crate) type Value = [u32; 4];

fn wide(v: &Value) -> u64 {
    u64::from(v[0]) | u64::from(v[1]) << 32
}

fn narrow(v: u64) -> Value {
    [v as u32, (v >> 32) as u32, 0, 0]
}

/// Whether the combination exists.
pub(crate) fn supported(op: AtomOp, ty: AtomType) -> bool {
    use AtomOp as O;
    use AtomType as T;
    match ty {
        T::U32 | T::S32 => true,
        T::U64 | T::S64 => !matches!(op, O::PopcInc | O::Inc | O::Dec),
        T::F32 { .. } | T::F64 | T::F32x2 { .. } | T::F32x4 { .. } => matches!(op, O::Add | O::Exch),
        T::F16x2 | T::Bf16x2 | T::F16x4 | T::F16x8 | T::Bf16x4 | T::Bf16x8 => {
            matches!(op, O::Add | O::Min | O::Max | O::Exch)
        }
        T::B128 | T::B16 => matches!(op, O::Exch | O::Cas | O::CasSpin),
    }
}

fn flush(x: f32, ftz: bool) -> f32 {
    if ftz && x.is_subnormal() { 0f32.copysign(x) } else { x }
}

fn f32_add(a: u32, b: u32, ftz: bool) -> u32 {
    let sum = flush(flush(f32::from_bits(a), ftz) + flush(f32::from_bits(b), ftz), ftz);
    if sum.is_nan() { 0x7fff_ffff } else { sum.to_bits() }
}

/// The sum; a NaN operand comes back as it is, the last one first.
fn f64_add(a: u64, b: u64) -> u64 {
    let (x, y) = (f64::from_bits(a), f64::from_bits(b));
    if y.is_nan() {
        return b;
    }
    if x.is_nan() {
        return a;
    }
    let sum = x + y;
    if sum.is_nan() { 0xfff8_0000_0000_0000 } else { sum.to_bits() }
}

/// f32 holds the exact sum of two f16 or bf16 to within what rounding once more to the narrow type gives right:
/// 24 bits are more than twice the narrow type's bits plus two.
fn f16_op(op: AtomOp, a: u16, b: u16) -> u16 {
    let (x, y) = (f16::from_bits(a).to_f32(), f16::from_bits(b).to_f32());
    match pick(op, x, y) {
        Some(r) if !r.is_nan() => f16::from_f32(r).to_bits(),
        _ => 0x7fff,
    }
}

fn bf16_op(op: AtomOp, a: u16, b: u16) -> u16 {
    let (x, y) = (bf16::from_bits(a).to_f32(), bf16::from_bits(b).to_f32());
    match pick(op, x, y) {
        Some(r) if !r.is_nan() => bf16::from_f32(r).to_bits(),
        _ => 0x7fff,
    }
}

/// Sum, or minimum and maximum where a NaN loses against a number and -0 is below +0.
fn pick(op: AtomOp, x: f32, y: f32) -> Option<f32> {
    let less = |a: f32, b: f32| a < b || (a == b && a.is_sign_negative());
    match op {
        AtomOp::Add => Some(x + y),
        AtomOp::Min | AtomOp::Max if x.is_nan() => Some(y),
        AtomOp::Min | AtomOp::Max if y.is_nan() => Some(x),
        AtomOp::Min => Some(if less(x, y) { x } else { y }),
        AtomOp::Max => Some(if less(x, y) { y } else { x }),
        _ => None,
    }
}

fn halves(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    u32::from(f(a as u16, b as u16)) | u32::from(f((a >> 16) as u16, (b >> 16) as u16)) << 16
}

/// What hardware does in shared memory instead: a loop around the processor's own addition, which does not flush
/// subnormal numbers and makes a NaN quiet.
pub(crate) fn apply_shared(op: AtomOp, ty: AtomType, old: &Value, b: &Value, compare: &Value) -> Option<Value> {
    match ty {
        AtomType::F32 { .. } => apply(op, AtomType::F32 { ftz: false }, old, b, compare),
        AtomType::F64 if op == AtomOp::Add => {
            let mut new = apply(op, ty, old, b, compare)?;
            if f64::from_bits(wide(&new)).is_nan() {
                new[1] |= 1 << 19;
            }
            Some(new)
        }
        _ => apply(op, ty, old, b, compare),
    }
}

/// The value that replaces `old`; `None` leaves it (a failed compare-and-swap).
pub(crate) fn apply(op: AtomOp, ty: AtomType, old: &Value, b: &Value, compare: &Value) -> Option<Value> {
    use AtomType as T;
    match op {
        AtomOp::Exch => return Some(*b),
        AtomOp::Cas | AtomOp::CasSpin => return (old == compare).then_some(*b),
        _ => {}
    }
    let word = |x: u32| Some([x, 0, 0, 0]);
    // Word by word; those beyond the type's are not stored.
    let each = |f: &dyn Fn(u32, u32) -> u32| -> Value { std::array::from_fn(|i| f(old[i], b[i])) };
    match ty {
        T::U32 | T::S32 => {
            let (o, v) = (old[0], b[0]);
            let (so, sv) = (o as i32, v as i32);
            let signed = ty == T::S32;
            word(match op {
                AtomOp::Add => o.wrapping_add(v),
                AtomOp::PopcInc => o.wrapping_add(1),
                AtomOp::Min if signed => so.min(sv) as u32,
                AtomOp::Max if signed => so.max(sv) as u32,
                AtomOp::Min => o.min(v),
                AtomOp::Max => o.max(v),
                AtomOp::Inc => {
                    if o >= v {
                        0
                    } else {
                        o + 1
                    }
                }
                AtomOp::Dec => {
                    if o == 0 || o > v {
                        v
                    } else {
                        o - 1
                    }
                }
                AtomOp::And => o & v,
                AtomOp::Or => o | v,
                AtomOp::Xor => o ^ v,
                AtomOp::Exch | AtomOp::Cas | AtomOp::CasSpin => return None,
            })
        }
        T::U64 | T::S64 => {
            let (o, v) = (wide(old), wide(b));
            let (so, sv) = (o as i64, v as i64);
            let signed = ty == T::S64;
            Some(narrow(match op {
                AtomOp::Add => o.wrapping_add(v),
                AtomOp::Min if signed => so.min(sv) as u64,
                AtomOp::Max if signed => so.max(sv) as u64,
                AtomOp::Min => o.min(v),
                AtomOp::Max => o.max(v),
                AtomOp::And => o & v,
                AtomOp::Or => o | v,
                AtomOp::Xor => o ^ v,
                _ => return None,
            }))
        }
        T::F32 { ftz } => word(f32_add(old[0], b[0], ftz)),
        T::F64 => Some(narrow(f64_add(wide(old), wide(b)))),
        T::F16x2 | T::F16x4 | T::F16x8 => Some(each(&|o, v| halves(o, v, |x, y| f16_op(op, x, y)))),
        T::Bf16x2 | T::Bf16x4 | T::Bf16x8 => Some(each(&|o, v| halves(o, v, |x, y| bf16_op(op, x, y)))),
        T::F32x2 { ftz } | T::F32x4 { ftz } => Some(each(&|o, v| f32_add(o, v, ftz))),
        T::B128 | T::B16 => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(op: AtomOp, ty: AtomType, old: u32, b: u32) -> u32 {
        apply(op, ty, &[old, 0, 0, 0], &[b, 0, 0, 0], &[0; 4]).unwrap()[0]
    }

    #[test]
    fn wrap_around_counters() {
        assert_eq!(run(AtomOp::Inc, AtomType::U32, 3, 3), 0);
        assert_eq!(run(AtomOp::Inc, AtomType::U32, 2, 3), 3);
        assert_eq!(run(AtomOp::Dec, AtomType::U32, 0, 7), 7);
        assert_eq!(run(AtomOp::Dec, AtomType::U32, 9, 7), 7);
        assert_eq!(run(AtomOp::Dec, AtomType::U32, 7, 7), 6);
    }

    #[test]
    fn signs_and_flushing() {
        assert_eq!(run(AtomOp::Min, AtomType::S32, u32::MAX, 1), u32::MAX);
        assert_eq!(run(AtomOp::Min, AtomType::U32, u32::MAX, 1), 1);
        assert_eq!(run(AtomOp::Add, AtomType::F32 { ftz: true }, 1, 1), 0);
        assert_eq!(run(AtomOp::Add, AtomType::F32 { ftz: false }, 1, 1), 2);
        assert_eq!(run(AtomOp::Add, AtomType::F32 { ftz: false }, 0x7f80_0000, 0xff80_0000), 0x7fff_ffff);
        assert_eq!(run(AtomOp::Add, AtomType::F16x2, 0x3c00_3c00, 0x4000_bc00), 0x4200_0000);
    }

    #[test]
    fn compare_and_swap_compares_all_words() {
        let old = [1, 2, 3, 4];
        assert_eq!(apply(AtomOp::Cas, AtomType::B128, &old, &[9; 4], &[1, 2, 3, 5]), None);
        assert_eq!(apply(AtomOp::Cas, AtomType::B128, &old, &[9; 4], &old), Some([9; 4]));
    }
}
