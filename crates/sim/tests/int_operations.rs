//! PTX operations that are one function each, against the results of an H200 in `tests/data/operations`.

use std::path::Path;

use lanescope_ir::op::LaneFn;
use lanescope_ir::op::half::{Arith, Format, HalfFn, Select};
use lanescope_ir::op::int::{Funnel, IntFn, Packing, Prmt, Small};
use lanescope_sim::lane::eval;

/// The function of an operation, and which operand word goes to each source: 2n is the low word of operand n,
/// 2n + 1 its high word, 9 is zero. The selecting predicate is true for minima.
fn function(op: &str) -> Option<(LaneFn, [usize; 6], bool)> {
    let one = [0, 2, 4, 9, 9, 9];
    let addend64 = [0, 2, 4, 5, 9, 9];
    let int = |f| Some((LaneFn::Int(f), one, op.starts_with("min")));
    let funnel = |right, wrap| Funnel { right, high: !right, wrap, wide: false, signed: false };
    let parts: Vec<&str> = op.split('.').collect();
    let signed = op.contains(".s32") || op.contains(".s64");
    let format = if op.contains("bf16") { Format::Bf16 } else { Format::F16 };
    if op.contains("f16x2") || op.contains("bf16x2") {
        let has = |m| parts.contains(&m);
        let arith = Arith { format, ftz: has("ftz"), sat: has("sat"), relu: has("relu"), select: [Select::Both; 3] };
        let f = match parts[0] {
            "add" => HalfFn::Add(arith),
            "mul" => HalfFn::Mul(arith),
            "fma" => HalfFn::Fma(arith),
            "min" | "max" => HalfFn::MinMax {
                format,
                ftz: has("ftz"),
                propagate: has("NaN"),
                xorsign: false,
                three: false,
                select: [Select::Both; 3],
            },
            _ => return None,
        };
        return Some((LaneFn::Half(f), one, parts[0] == "min"));
    }
    match op {
        "add.s32" | "add.u32" => int(IntFn::Add),
        "mul.lo.s32" | "mul.lo.u32" | "mad.lo.s32" | "mad.lo.u32" => int(IntFn::Mad),
        "mul.hi.s32" | "mul.hi.u32" => {
            Some((LaneFn::Int(IntFn::MadHi { signed, neg_c: false }), [0, 2, 9, 9, 9, 9], false))
        }
        "mad.hi.s32" | "mad.hi.u32" => {
            Some((LaneFn::Int(IntFn::MadHi { signed, neg_c: false }), [0, 2, 9, 4, 9, 9], false))
        }
        "mul.wide.s32" | "mul.wide.u32" | "mad.wide.s32" | "mad.wide.u32" => {
            Some((LaneFn::Int(IntFn::MadWide { signed, neg_c: false }), addend64, false))
        }
        "sad.s32" | "sad.u32" => int(IntFn::AbsDiff { signed }),
        "min.s32" | "min.u32" => int(IntFn::Min { signed }),
        "max.s32" | "max.u32" => int(IntFn::Max { signed }),
        "min.relu.s32" | "max.relu.s32" => int(IntFn::MinMax { signed, packing: Packing::One, relu: true }),
        "min.s64" | "min.u64" | "max.s64" | "max.u64" => {
            Some((LaneFn::Int(IntFn::MinMax64 { signed }), [0, 1, 2, 3, 9, 9], parts[0] == "min"))
        }
        "add.s64" | "add.u64" => Some((LaneFn::Int(IntFn::Add64 { neg: [false, false] }), [0, 1, 2, 3, 9, 9], false)),
        "sub.s64" | "sub.u64" => Some((LaneFn::Int(IntFn::Add64 { neg: [false, true] }), [0, 1, 2, 3, 9, 9], false)),
        "bfind.s32" | "bfind.u32" => int(IntFn::Flo { signed, shift: false }),
        "bfind.shiftamt.s32" | "bfind.shiftamt.u32" => int(IntFn::Flo { signed, shift: true }),
        "shr.s32" => int(IntFn::ShrS),
        "shr.u32" => int(IntFn::ShrU),
        "shl.b32" => int(IntFn::Shl),
        "abs.s32" => int(IntFn::Abs),
        "add.sat.s32" => int(IntFn::AddSat { neg: false }),
        "sub.sat.s32" => int(IntFn::AddSat { neg: true }),
        "popc.b32" => int(IntFn::Popc),
        "brev.b32" => int(IntFn::Brev),
        "and.b32" => int(IntFn::And),
        "or.b32" => int(IntFn::Or),
        "xor.b32" => int(IntFn::Xor),
        "szext.wrap.u32" => int(IntFn::Sgxt { signed: false, wrap: true }),
        "szext.clamp.s32" => int(IntFn::Sgxt { signed: true, wrap: false }),
        "bmsk.wrap.b32" => int(IntFn::Bmsk { wrap: true }),
        "bmsk.clamp.b32" => int(IntFn::Bmsk { wrap: false }),
        "cvt.pack.sat.s16.s32" => int(IntFn::PackSaturate(Small { bits: 16, signed: true })),
        "cvt.pack.sat.s8.s32.b32" => int(IntFn::PackSaturate(Small { bits: 8, signed: true })),
        "cvt.pack.sat.u8.s32.b32" => int(IntFn::PackSaturate(Small { bits: 8, signed: false })),
        _ if parts[0] == "shf" => {
            let f = IntFn::Funnel(funnel(parts[1] == "r", parts[2] == "wrap"));
            Some((LaneFn::Int(f), [0, 4, 2, 9, 9, 9], false))
        }
        _ if parts[0] == "prmt" => {
            let mode = match parts.get(2) {
                None => Prmt::Index,
                Some(&"f4e") => Prmt::F4e,
                Some(&"b4e") => Prmt::B4e,
                Some(&"rc8") => Prmt::Rc8,
                Some(&"ecl") => Prmt::Ecl,
                Some(&"ecr") => Prmt::Ecr,
                _ => Prmt::Rc16,
            };
            Some((LaneFn::Int(IntFn::Prmt(mode)), [0, 4, 2, 9, 9, 9], false))
        }
        _ if parts[0] == "dp4a" => int(IntFn::Dp4a { a: parts[1] == "s32", b: parts[2] == "s32" }),
        _ if parts[0] == "dp2a" => {
            int(IntFn::Dp2a { a: parts[2] == "s32", b: parts[3] == "s32", high: parts[1] == "hi" })
        }
        _ => {
            let table = op.strip_prefix("lop3.b32@0x")?;
            int(IntFn::Lop3 { lut: u8::from_str_radix(table, 16).ok()? })
        }
    }
}

fn width(kind: &str) -> usize {
    if kind.ends_with("64") { 8 } else { 4 }
}

/// The value after `"key":` in a line of JSON.
fn value<'a>(line: &'a str, key: &str) -> &'a str {
    let start = line.find(&format!("\"{key}\":")).unwrap() + key.len() + 3;
    let rest = &line[start..];
    match rest.strip_prefix('[') {
        Some(list) => &list[..list.find(']').unwrap()],
        None => rest[..rest.find([',', '}']).unwrap()].trim_matches('"'),
    }
}

#[test]
fn operations_that_are_one_function() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/operations");
    let json = std::fs::read_to_string(data.join("operations.json")).unwrap();
    let bin = std::fs::read(data.join("operations.bin")).unwrap();
    let (mut operations, mut compared) = (0, 0);
    for line in json.lines().filter(|l| l.contains("\"op\"")) {
        let op = value(line, "op");
        let Some((f, order, min)) = function(op) else { continue };
        let widths: Vec<usize> = value(line, "inputs").split(',').map(|k| width(k.trim_matches('"'))).collect();
        let out = width(value(line, "output"));
        let mut at: usize = value(line, "offset").parse().unwrap();
        for _ in 0..value(line, "rows").parse().unwrap() {
            let mut words = [0; 10];
            for (i, &w) in widths.iter().enumerate() {
                let mut bytes = [0; 8];
                bytes[..w].copy_from_slice(&bin[at..at + w]);
                at += w;
                let v = u64::from_le_bytes(bytes);
                (words[2 * i], words[2 * i + 1]) = (v as u32, (v >> 32) as u32);
            }
            let want = &bin[at..at + out];
            at += out;
            let got = eval(&f, order.map(|i| words[i]), [min, false, false]).d;
            let got = (u64::from(got[0]) | u64::from(got[1]) << 32).to_le_bytes();
            assert_eq!(&got[..out], want, "{op} {words:08x?}");
            compared += 1;
        }
        operations += 1;
    }
    assert_eq!(compared, 256 * operations);
    assert!(operations >= 80, "{operations}");
}
