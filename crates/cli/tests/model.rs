//! The closed forms of `model` against the engine: each formula, on a kernel generated for it.
//!
//! The bodies of the generated paths are `xor` and nothing else is, so that the counters of the `xor`s are what the
//! formulas count.

use std::fmt::Write;

use lanescope::analysis::model::{self, Answer, Arm, Sort};
use lanescope::launch;
use lanescope::run::{Prepared, Settings};

/// Issue slots and lane-instructions (lanes whose guard holds) of the `xor`s.
fn count(body: &str, keys: &[u32]) -> (u64, u64) {
    let dir = tempfile::tempdir().unwrap();
    let ptx = format!(
        ".version 7.8\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 keys, .param .u64 out)\n{{\n\
         .reg .pred %p<64>;\n.reg .b32 %r<64>;\n.reg .b64 %d<8>;\n\
         ld.param.u64 %d1, [keys];\nld.param.u64 %d2, [out];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\n\
         mad.lo.u32 %r3, %r2, 256, %r1;\nand.b32 %r4, %r1, 31;\nmul.wide.u32 %d3, %r3, 4;\nadd.u64 %d4, %d1, %d3;\n\
         add.u64 %d5, %d2, %d3;\nld.global.u32 %r5, [%d4];\nmov.u32 %r9, 0;\n{body}\nst.global.u32 [%d5], %r9;\nret;\n}}\n"
    );
    std::fs::write(dir.path().join("k.ptx"), ptx).unwrap();
    let mut npy = b"\x93NUMPY\x01\x00".to_vec();
    let header = format!("{{'descr': '<u4', 'fortran_order': False, 'shape': ({},), }}", keys.len());
    npy.extend(118u16.to_le_bytes());
    npy.extend(format!("{header:117}\n").bytes());
    npy.extend(keys.iter().flat_map(|k| k.to_le_bytes()));
    std::fs::write(dir.path().join("keys.npy"), npy).unwrap();
    let (grid, block) = (keys.len().div_ceil(256), keys.len().min(256));
    let toml = format!(
        "module = \"k.ptx\"\ngrid = [{grid}, 1, 1]\nblock = [{block}, 1, 1]\n[[arg]]\nnpy = \"keys.npy\"\n[[arg]]\n\
         zeros = {{ dtype = \"u32\", len = {} }}\n",
        keys.len()
    );
    std::fs::write(dir.path().join("k.toml"), toml).unwrap();
    let ran = Prepared::open(&dir.path().join("k.toml"), &Settings::default()).unwrap().run(None).unwrap();
    let counts = ran.profile().counts.iter().zip(&ran.kernel.text).filter(|c| c.1.contains("xor.b32"));
    counts.fold((0, 0), |sum, (c, _)| (sum.0 + c.inst_executed, sum.1 + c.thread_inst_executed_pred_on))
}

fn run_of(length: u32) -> String {
    "xor.b32 %r9, %r9, 5;\n".repeat(length as usize)
}

/// `if (key == i) { path i }` for each path.
fn switch(lengths: &[u32]) -> String {
    let mut body = String::new();
    for (i, length) in lengths.iter().enumerate() {
        write!(body, "setp.ne.u32 %p1, %r5, {i};\n@%p1 bra N{i};\n{}N{i}:\n", run_of(*length)).unwrap();
    }
    body
}

fn value(answer: &Answer, name: &str) -> f64 {
    answer.figure(name).unwrap_or_else(|| panic!("no figure {name}")).value
}

fn agrees(answer: &Answer, counted: (u64, u64)) {
    let model = (value(answer, "slots"), value(answer, "useful_lane_instructions"));
    assert_eq!(model, (counted.0 as f64, counted.1 as f64), "{}", answer.question);
}

/// The key of each lane when `lanes[i]` lanes have key i.
fn keys(lanes: &[u32]) -> Vec<u32> {
    (0u32..).zip(lanes).flat_map(|(k, n)| vec![k; *n as usize]).collect()
}

#[test]
fn paths() {
    for (lengths, lanes) in
        [(vec![100, 5], vec![1, 31]), (vec![20, 30, 25, 5], vec![8, 8, 8, 8]), (vec![10, 8], vec![16, 16])]
    {
        let list: Vec<(u32, Option<u32>)> =
            lengths.iter().zip(&lanes).map(|p: (&u32, &u32)| (*p.0, Some(*p.1))).collect();
        agrees(&model::paths(&list, 32).unwrap(), count(&switch(&lengths), &keys(&lanes)));
    }
    for ways in [1, 2, 32] {
        let keys: Vec<u32> = (0..32).map(|lane| lane % ways).collect();
        agrees(&model::ways(ways, 7, 32).unwrap(), count(&switch(&vec![7; ways as usize]), &keys));
    }
}

#[test]
fn trips() {
    let given: Vec<u32> = (0..32).map(|lane| if lane == 9 { 20 } else { lane % 5 }).collect();
    let body = format!(
        "mov.u32 %r6, 0;\nL: setp.ge.u32 %p1, %r6, %r5;\n@%p1 bra E;\n{}add.u32 %r6, %r6, 1;\nbra L;\nE:\n",
        run_of(6)
    );
    let counted = count(&body, &given);
    let list: Vec<(u32, u32)> = given.iter().map(|t| (*t, 1)).collect();
    let answer = model::trips(&list, 6, 32).unwrap();
    assert_eq!(value(&answer, "slots"), counted.0 as f64);
    assert_eq!(value(&answer, "lane_efficiency"), counted.1 as f64 / (counted.0 as f64 * 32.0));
}

#[test]
fn nested() {
    let expression = "10 (1/2: 20 (1/4: 40 | 20) | 60) [3: 2]";
    let body = format!(
        "{}setp.ge.u32 %p1, %r4, 16;\n@%p1 bra B;\n{}setp.ge.u32 %p2, %r4, 4;\n@%p2 bra C;\n{}bra D;\nC:\n{}D:\n\
         bra F;\nB:\n{}F:\nmov.u32 %r6, 0;\nL:\n{}add.u32 %r6, %r6, 1;\nsetp.lt.u32 %p3, %r6, 3;\n@%p3 bra L;\n",
        run_of(10),
        run_of(20),
        run_of(40),
        run_of(20),
        run_of(60),
        run_of(2)
    );
    agrees(&model::nested(&model::parse(expression, 32).unwrap(), 32).unwrap(), count(&body, &[0; 32]));
}

#[test]
fn predicate() {
    let body = "setp.eq.u32 %p1, %r5, 0;\n".to_owned()
        + &"@%p1 xor.b32 %r9, %r9, 1;\n".repeat(3)
        + &"@!%p1 xor.b32 %r9, %r9, 1;\n".repeat(5);
    let counted = count(&body, &keys(&[12, 20]));
    let answer = model::predicate(3, 5, 12, 3, 32).unwrap();
    assert_eq!(value(&answer, "predicated_slots"), counted.0 as f64);
    assert_eq!(value(&answer, "useful_lane_instructions"), counted.1 as f64);
    let branched = count(&switch(&[3, 5]), &keys(&[12, 20]));
    assert_eq!(value(&answer, "branched_slots"), branched.0 as f64 + 3.0);
}

#[test]
fn rare() {
    let (warps, p) = (2048u64, 1.0 / 32.0);
    let draw = |i: u64| u32::from(launch::random::value(i, 7) >= 1 << 27);
    let mut keys: Vec<u32> = (0..warps * 32).map(draw).collect();
    let answer = model::rare(p, 100, 5, warps, 32).unwrap();
    // Scattered is an expectation: the launch must lie within five standard deviations of it.
    let hit = value(&answer, "warps_with_rare");
    let deviation = 100.0 * (warps as f64 * hit * (1.0 - hit)).sqrt();
    let scattered = count(&switch(&[100, 5]), &keys);
    assert!((scattered.0 as f64 - value(&answer, "scattered_slots")).abs() < 5.0 * deviation, "{}", scattered.0);
    // Packed is exact for the share that the draw came to.
    keys.sort_unstable();
    let share = keys.iter().filter(|k| **k == 0).count() as f64 / keys.len() as f64;
    let packed = count(&switch(&[100, 5]), &keys);
    assert_eq!(value(&model::rare(share, 100, 5, warps, 32).unwrap(), "packed_slots"), packed.0 as f64);
    assert_eq!(scattered.1, packed.1);
}

#[test]
fn sorting() {
    let lengths = [40, 40, 100, 10, 25, 40];
    let items = 65_536u64;
    let mut keys: Vec<u32> = (0..items).map(|i| launch::random::value(i, 3) % 6).collect();
    let arms: Vec<Arm> = (0..)
        .zip(lengths)
        .map(|(k, length)| Arm { length, weight: keys.iter().filter(|x| **x == k).count() as f64 })
        .collect();
    let how = Sort { items, key_bits: 3, radix_bits: 8, pass_cost: 60.0, uses: 1 };
    let answer = model::sort(&arms, how, 32).unwrap();
    let warps = (items / 32) as f64;
    let before = count(&switch(&lengths), &keys).0 as f64;
    let expected = value(&answer, "before_slots") * warps;
    assert!((before / expected - 1.0).abs() < 0.005, "{before} {expected}");
    keys.sort_unstable();
    let after = count(&switch(&lengths), &keys).0 as f64 - value(&answer, "after_slots") * warps;
    // At most one warp between two arms holds both.
    assert!((0.0..=lengths.iter().sum::<u32>() as f64).contains(&after), "{after}");
}
