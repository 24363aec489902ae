//! The uniformity analysis computes exactly known values with functions of its own, as it must not depend on the engine:
//! every one of them gives what the engine gives.

use lanescope_analysis::uniformity::evaluate;
use lanescope_ir::op::LaneFn;
use lanescope_ir::op::convert::{ConvertFn, Integer};
use lanescope_ir::op::int::{BoolOp, Cmp, Funnel, IntFn, Packing};
use lanescope_sim::lane::eval;

/// Random words in which special values are frequent.
fn word(state: &mut u64) -> u32 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let x = (*state >> 32) as u32;
    match *state >> 28 & 15 {
        0 => 0,
        1 => !0,
        2 => 1 << 31,
        3..=5 => x % 70,
        6 => !0 - x % 70,
        7 => (1 << 31) - 1 + x % 3,
        _ => x,
    }
}

/// Every function with every combination of flags, and some truth tables.
fn functions() -> Vec<LaneFn> {
    use IntFn as F;
    let mut all = vec![
        F::Mov,
        F::Mov64,
        F::Sel,
        F::Sel64,
        F::Add,
        F::Add3,
        F::Add3X,
        F::Add3XCarry,
        F::Mad,
        F::MadX,
        F::Shl,
        F::ShrU,
        F::ShrS,
        F::And,
        F::Or,
        F::Xor,
        F::Popc,
        F::Brev,
        F::Clz,
        F::Abs,
        F::Mad64,
        F::Shl64,
        F::Bfi,
        F::Cnot,
        F::Add16x2,
    ];
    let cmps = [Cmp::False, Cmp::Lt, Cmp::Eq, Cmp::Le, Cmp::Gt, Cmp::Ne, Cmp::Ge, Cmp::True];
    for signed in [false, true] {
        all.extend([F::Min { signed }, F::Max { signed }, F::Div { signed }, F::Rem { signed }, F::Bfe { signed }]);
        all.extend([F::Shr64 { signed }, F::AbsDiff { signed }, F::MinMax64 { signed }]);
        for flag in [false, true] {
            all.extend([F::MadWide { signed, neg_c: flag }, F::MadHi { signed, neg_c: flag }]);
            all.extend([F::Flo { signed, shift: flag }, F::Sgxt { signed, wrap: flag }]);
            all.push(F::Add64 { neg: [signed, flag] });
            for third in [false, true] {
                all.push(F::Add3Carry { neg: [signed, flag, third] });
                for (wrap, wide) in [(false, false), (false, true), (true, false), (true, true)] {
                    all.push(F::Funnel(Funnel { right: flag, high: third, wrap, wide, signed }));
                }
            }
            for packing in [Packing::One, Packing::Two] {
                all.push(F::MinMax { signed, packing, relu: flag });
            }
        }
        for cmp in cmps {
            all.push(F::Set { cmp, signed });
            for op in [BoolOp::And, BoolOp::Or, BoolOp::Xor] {
                all.extend([false, true].map(|extended| F::SetJoin { cmp, signed, op, extended }));
                all.push(F::SetJoin64 { cmp, signed, op });
            }
        }
    }
    all.extend((0..32).flat_map(|shift| [F::Lea { shift }, F::LeaHiX { shift }]));
    for lut in (0..=255).step_by(5) {
        all.extend([F::Lop3 { lut }, F::Plop3 { lut: [lut, !lut] }, F::Lop64 { lut }]);
        all.extend([false, true].map(|and| F::Lop3Pred { lut, and }));
    }
    let mut out: Vec<LaneFn> = all.into_iter().map(LaneFn::Int).collect();
    let formats = || [8, 16, 32, 64].into_iter().flat_map(|bits| [false, true].map(|signed| Integer { bits, signed }));
    for from in formats() {
        for to in formats() {
            out.extend([false, true].map(|saturate| LaneFn::Convert(ConvertFn::IntToInt { from, to, saturate })));
        }
    }
    out
}

#[test]
fn the_analysis_computes_what_the_engine_computes() {
    let mut state = 7;
    let mut known = 0;
    for f in functions() {
        let mut answers = 0;
        for _ in 0..2000 {
            let s: [u32; 6] = std::array::from_fn(|_| word(&mut state));
            let bits = word(&mut state);
            let p = [bits & 1 != 0, bits & 2 != 0, bits & 4 != 0];
            // What the analysis does not answer it does not claim to know.
            if let Some((d, q)) = evaluate(&f, s, p) {
                let engine = eval(&f, s, p);
                assert_eq!((d, q), (engine.d, engine.p), "{f:?} of {s:x?} {p:?}");
                answers += 1;
            }
        }
        known += usize::from(answers > 0);
    }
    assert!(known > 600, "{known} functions are known to the analysis");
}
