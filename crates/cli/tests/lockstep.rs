//! Useful turns of lanes in loops that turn in lock-step, against what the inputs say: machine code of four architectures
//! and PTX must tell the same.

use std::path::{Path, PathBuf};

use lanescope::compile::{Cache, Tools};
use lanescope::launch;
use lanescope::run::{Prepared, Ran, Settings};
use lanescope_analysis::lockstep::LockstepStat;
use lanescope_ir::finding::Evidence;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn case() -> PathBuf {
    root().join("tests/groundtruth/22-lockstep-while")
}

fn run(name: &str, module: &Path, arch: Option<&str>) -> Ran {
    let path = case().join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    let mut file = launch::parse(name, &text).unwrap();
    file.module = module.to_path_buf();
    let settings = Settings { arch: arch.map(str::to_owned), ..Settings::default() };
    Prepared::new(file, case(), &settings).and_then(|p| p.run(None)).unwrap()
}

fn only(ran: &Ran) -> &LockstepStat {
    assert_eq!(ran.analysis.lockstep.len(), 1, "{:?}", ran.analysis.lockstep);
    &ran.analysis.lockstep[0]
}

/// Turns of all lanes and turns of their warps: a thread needs as many as its input says.
fn wanted(trips: &[u32]) -> (u64, u64) {
    let useful = trips.iter().map(|&t| u64::from(t)).sum();
    let turns = trips.chunks(32).map(|w| u64::from(*w.iter().max().unwrap())).sum();
    (useful, turns)
}

fn trips(name: &str) -> Vec<u32> {
    let bytes = std::fs::read(case().join(name)).unwrap();
    let array = lanescope::npy::read(&bytes).unwrap();
    array.data.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect()
}

#[test]
fn all_architectures_and_ptx_tell_the_same() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lockstep/kernel.ptx");
    let modules = [
        (PathBuf::from("kernel.sm_90.cubin"), None),
        ("kernel.others.fatbin".into(), Some("sm_80")),
        ("kernel.others.fatbin".into(), Some("sm_100")),
        ("kernel.others.fatbin".into(), Some("sm_120")),
        (here, None),
    ];
    for (launch, input, efficiency) in [
        ("lockstep.toml", "lockstep.arg1.npy", "0.504869"),
        ("lockstep.sorted.toml", "lockstep.sorted.arg1.npy", "0.942550"),
    ] {
        let (useful, turns) = wanted(&trips(input));
        for (module, arch) in &modules {
            let ran = run(launch, module, *arch);
            let stat = only(&ran);
            let u = stat.useful.unwrap_or_else(|| panic!("{} {arch:?}: {:?}", module.display(), stat.lockstep));
            assert_eq!((u.useful, u.warp_turns, u.lane_turns), (useful, turns, 32 * turns), "{launch} {arch:?}");
            assert_eq!(format!("{:.6}", u.efficiency(32)), efficiency);
            assert_eq!(ran.analysis.losses.lost, 0, "lanes of a lock-step loop are active");
            let f = ran.analysis.findings.iter().find(|f| f.rule == "lockstep-loop").unwrap();
            assert!(f.evidence.contains(&("useful_lane_turns", Evidence::Count(useful))));
        }
    }
}

#[test]
fn slots_that_are_discarded_add_up() {
    let ran = run("lockstep.toml", Path::new("kernel.sm_90.cubin"), None);
    let (useful, turns) = wanted(&trips("lockstep.arg1.npy"));
    let stat = only(&ran);
    // Eight instructions a turn, each by all lanes.
    assert!(!stat.estimate);
    assert_eq!(stat.discarded, 8 * (32 * turns - useful));
    let losses = &ran.analysis.losses;
    assert_eq!(losses.discarded, stat.discarded);
    assert_eq!(losses.instructions.iter().map(|i| i.discarded).sum::<u64>(), stat.discarded);
    assert_eq!(ran.analysis.lines.iter().map(|l| l.discarded).sum::<u64>(), stat.discarded);
}

#[test]
fn a_loop_that_lanes_leave_one_by_one_is_none() {
    let ran = run("per_lane.toml", Path::new("kernel.sm_90.cubin"), None);
    assert!(ran.analysis.lockstep.is_empty());
    assert_eq!(ran.analysis.losses.discarded, 0);
}

fn collatz(mut v: u32) -> u32 {
    let mut n = 0;
    while v > 1 {
        v = if v & 1 == 1 { v * 3 + 1 } else { v >> 1 };
        n += 1;
    }
    n
}

/// `while (__any_sync(FULL, v > 1)) if (v > 1) ...`: guards instead of selects.
#[test]
fn guards_of_a_loop_in_the_corpus() {
    let nvrtc = root().join("oracles/lib/libnvrtc-12.9.so");
    if !nvrtc.is_file() {
        return;
    }
    let tools = Tools { nvrtc: Some(nvrtc), cache: Cache::Off, ..Tools::default() };
    let folder = tempfile::tempdir().unwrap();
    let values: Vec<u32> = (0..128).map(|i| i * 37 % 101 + 1).collect();
    let mut npy = b"\x93NUMPY\x01\x00\x46\x00{'descr': '<i4', 'fortran_order': False, 'shape': (128,), }".to_vec();
    npy.resize(79, b' ');
    npy.push(b'\n');
    npy.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    std::fs::write(folder.path().join("a.npy"), npy).unwrap();
    let text = format!(
        "module = {:?}\nkernel = \"loop_until_any\"\ngrid = [1, 1, 1]\nblock = [128, 1, 1]\n[[arg]]\nnpy = \"a.npy\"\n\
         [[arg]]\nzeros = {{ dtype = \"i32\", len = 128 }}\n",
        root().join("tests/corpus/09_warp.cu")
    );
    let steps: Vec<u32> = values.iter().map(|&v| collatz(v)).collect();
    let (useful, turns) = wanted(&steps);
    for arch in ["sm_90", "sm_100", "sm_120"] {
        let settings = Settings { arch: Some(arch.to_owned()), tools: tools.clone(), ..Settings::default() };
        let file = launch::parse("launch.toml", &text).unwrap();
        let ran = Prepared::new(file, folder.path().into(), &settings).and_then(|p| p.run(None)).unwrap();
        let u = only(&ran).useful.unwrap();
        assert_eq!((u.useful, u.warp_turns, u.lane_turns), (useful, turns, 32 * turns), "{arch}");
        let out = ran.output(1).unwrap().unwrap();
        let words: Vec<u32> = out.data.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect();
        assert_eq!(words, steps);
    }
}
