//! PTX and machine code of the same kernel give the same outputs.
//!
//! `tests/data/ptx/groundtruth` holds the PTX of the ground truth's kernels (NVRTC 12.9, `compute_90`, line info): what
//! it gives is compared with the outputs of an H200. The kernels of `tests/corpus` are compiled here, if NVIDIA's
//! compilers are there, and run with made-up inputs as PTX and as machine code.

#![allow(clippy::print_stdout)] // The tables belong into the test log.

mod levels;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use lanescope::launch;
use lanescope::npy;
use lanescope::run::{Prepared, Settings};
use lanescope_gpu::nvrtc::{Nvrtc, Request};
use lanescope_ir::Kernel;
use lanescope_ptx::lower;
use lanescope_ptx::tree::FunctionKind;
use lanescope_sass::container::Module;
use levels::{Input, Shape};

/// Elements of outputs that may differ from the H200's at PTX level: launch, first and last element, reason.
const UNDEFINED: [(&str, usize, usize, &str); 1] =
    [("mirror_bad", 768, 791, "come from shared memory that lanes which returned never wrote")];

/// Kernels whose outputs with many threads depend on an order that they leave open. A single thread of them must agree.
const RACY: [(&str, &str); 9] = [
    ("switch_fallthrough", "reads elements that other threads write"),
    ("continue_chain", "all threads write the same elements"),
    ("guard_clauses", "reads elements that other threads write"),
    ("active_leader", "places come from an atomic, in the order of the warps"),
    ("cas_mul_double", "the order of the factors rounds differently"),
    ("union_find", "which of two trees wins is open"),
    ("photon_walk", "the order of the float sums rounds differently"),
    ("sync_and_leave", "all threads write the same elements"),
    ("k_paths_switch", "writes clock cycles"),
];

/// Kernels that read the clock: not even a single thread agrees in this buffer.
const CLOCK: [(&str, usize); 1] = [("k_paths_switch", 1)];

/// Kernels that stop at one level with made-up inputs.
const ONE_STOPS: [(&str, &str); 1] =
    [("syncwarp_dynamic", "its masks come from the input: lanes that meet name different ones, which is undefined")];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sorted(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut found: Vec<PathBuf> =
        entries.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|x| x == extension)).collect();
    found.sort();
    found
}

#[test]
fn ground_truth() {
    let (mut equal, mut excused, mut faults) = (0, String::new(), String::new());
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(root().join("tests/groundtruth")).unwrap().flatten().map(|e| e.path()).collect();
    folders.sort();
    for folder in folders {
        let number: String = folder.file_name().unwrap().to_string_lossy().chars().take(2).collect();
        let ptx = root().join(format!("tests/data/ptx/groundtruth/{number}.ptx")).canonicalize().unwrap();
        for path in sorted(&folder, "toml") {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let outputs: Vec<(usize, PathBuf)> = (0..16)
                .map(|k| (k, folder.join(format!("{name}.arg{k}.expected.npy"))))
                .filter(|(_, p)| p.exists())
                .collect();
            if outputs.is_empty() {
                continue;
            }
            for threads in [1, 2] {
                let undefined: Vec<_> = UNDEFINED.iter().filter(|u| u.0 == name).collect();
                for (_, first, last, why) in &undefined {
                    writeln!(excused, "  {number} {name}, {threads} threads: elements {first} to {last} {why}")
                        .unwrap();
                }
                let open = |i: usize| undefined.iter().any(|u| (u.1..=u.2).contains(&i));
                match differences(&path, &ptx, &outputs, threads, &open) {
                    Ok(None) => equal += 1,
                    Ok(Some(what)) | Err(what) => {
                        writeln!(faults, "{number} {name}, {threads} threads: {what}").unwrap();
                    }
                }
            }
        }
    }
    println!("{equal} launches (for 1 and 2 threads) equal the H200's outputs; not compared:\n{excused}");
    assert!(faults.is_empty(), "{faults}");
    assert!(equal >= 70, "only {equal} launches were compared");
}

fn differences(
    path: &Path,
    ptx: &Path,
    outputs: &[(usize, PathBuf)],
    threads: usize,
    open: &dyn Fn(usize) -> bool,
) -> Result<Option<String>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let mut launch = launch::parse(&path.display().to_string(), &text).map_err(|e| e.to_string())?;
    launch.module = ptx.to_path_buf();
    let dir = path.parent().map(Path::to_path_buf).unwrap_or_default();
    let settings = Settings { threads, ..Settings::default() };
    let ran = Prepared::new(launch, dir, &settings).and_then(|p| p.run(None)).map_err(|e| e.to_string())?;
    for (k, file) in outputs {
        let expected = npy::read(&std::fs::read(file).map_err(|e| e.to_string())?).map_err(|e| e.to_string())?;
        let ours = ran.output(*k).map_err(|e| e.to_string())?.ok_or("an expected output is no buffer")?;
        if ours.data.len() != expected.data.len() {
            return Err(format!("arg{k} has {} bytes, the H200's {}", ours.data.len(), expected.data.len()));
        }
        let item = expected.item.max(1);
        let pairs = ours.data.chunks(item).zip(expected.data.chunks(item)).enumerate();
        let wrong: Vec<_> = pairs.filter(|(i, (a, b))| a != b && !open(*i)).collect();
        if let Some((at, (a, b))) = wrong.first() {
            let n = wrong.len();
            return Ok(Some(format!("arg{k}: {n} elements differ, first {at}: {a:02x?}, H200 {b:02x?}")));
        }
    }
    Ok(None)
}

/// Bytes of a buffer that a kernel of the corpus gets.
const BUFFER: usize = 1 << 16;

/// A buffer's content: small integers, or floats around one.
fn filling(kind: usize, argument: usize) -> Vec<u8> {
    let mut state = (argument as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let words = (0..BUFFER / 4).flat_map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let random = (state >> 40) as u32;
        let word = match kind {
            0 => random % 48,
            1 => (0.25 + (random % 1000) as f32 / 400.0).to_bits(),
            _ => random % 3,
        };
        word.to_le_bytes()
    });
    words.collect()
}

fn inputs(function: &lanescope_ptx::tree::Function<'_>, kind: usize) -> Vec<Input> {
    let params = function.params.iter().enumerate().map(|(i, p)| {
        let size = p.size().unwrap_or(0).min(4096) as usize;
        let float = p.ty == lanescope_ptx::tree::Type::F32;
        match (p.dims.is_empty(), size) {
            (true, 8) => Input::Buffer(filling(kind, i)),
            (true, 4) if float => Input::Value(1.5f32.to_le_bytes().to_vec()),
            (true, 4) => Input::Value([61u32, 24, 7][kind].to_le_bytes().to_vec()),
            _ => Input::Value((0..size).map(|b| b as u8 % 5).collect()),
        }
    });
    params.collect()
}

#[test]
fn corpus() {
    let Some(oracles) = levels::oracles() else {
        println!("skipped: needs NVIDIA's compilers; .ci/oracles.sh fetches them");
        return;
    };
    let library = oracles.join("lib/libnvrtc-12.9.so").canonicalize().unwrap();
    let nvrtc = Nvrtc::load(&library).unwrap();
    let temporary = tempfile::tempdir().unwrap();
    let mut options = vec!["--gpu-architecture=compute_80".to_owned(), "-std=c++17".into(), "-lineinfo".into()];
    options.extend(["include-12.9", "cccl-12.9"].map(|d| format!("-I{}", oracles.join(d).display())));
    let (mut kernels, mut table, mut excused, mut faults) = (0, String::new(), String::new(), String::new());
    let mut totals = [0; 4];
    for path in sorted(&root().join("tests/corpus"), "cu") {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let source = std::fs::read(&path).unwrap();
        // Some sources need what only newer architectures have.
        let request = Request { source: &source, name: &name, options: &options, instances: &[] };
        let (compiled, archs) = match nvrtc.compile(&request) {
            Ok(compiled) => (compiled, &["sm_80", "sm_90"][..]),
            Err(_) => {
                let mut newer = options.clone();
                newer[0] = "--gpu-architecture=compute_90".into();
                (nvrtc.compile(&Request { options: &newer, ..request }).unwrap(), &["sm_90"][..])
            }
        };
        let text = String::from_utf8(compiled.ptx).unwrap();
        let parse = lanescope_ptx::parse(&text);
        let cubins: Vec<Vec<u8>> = archs
            .iter()
            .map(|arch| levels::assemble(&oracles, &temporary.path().join("k.ptx"), &text, arch, &[]).unwrap())
            .collect();
        for function in parse.module.functions.iter().filter(|f| f.kind == FunctionKind::Entry && f.body.is_some()) {
            kernels += 1;
            let ptx = match lower::load(&parse, function.name, lower::Options::default()) {
                Ok(kernel) => kernel,
                Err(errors) => {
                    writeln!(faults, "{name} {}: not lowered: {:?}", function.name, errors.first()).unwrap();
                    continue;
                }
            };
            let mut cells = Vec::new();
            for (kind, (grid, block)) in (0..3).flat_map(|k| [(2, 64), (1, 1)].map(|s| (k, s))) {
                let inputs = inputs(function, kind);
                let block = function.tuning.reqntid.map_or(block, |r| r[0]);
                let shape = Shape { grid, block, dynamic_shared: 4096, max_inst: 200_000 };
                let clock = CLOCK.iter().find(|c| c.0 == function.name).map(|c| c.1);
                let run = |kernel: &Kernel| {
                    let mut buffers = levels::run(kernel, shape, &inputs)?;
                    clock.and_then(|k| buffers.get_mut(k)).into_iter().for_each(Vec::clear);
                    Ok(buffers)
                };
                let high = run(&ptx);
                for (arch, cubin) in archs.iter().zip(&cubins) {
                    let module = Module::parse(cubin).unwrap();
                    let low = levels::machine_code(&module, function.name).and_then(|k| run(&k));
                    let (cell, what) = compare(&high, &low);
                    totals[cell] += 1;
                    cells.push(["=", "stop", "one stops", "differ"][cell]);
                    let racy = RACY.iter().find(|r| r.0 == function.name).filter(|_| block > 1);
                    let why = match cell {
                        2 => ONE_STOPS.iter().find(|r| r.0 == function.name),
                        3 => racy,
                        _ => continue,
                    };
                    let line =
                        format!("{name} {} {arch}, inputs {kind}, {grid}x{block} threads: {what}", function.name);
                    match why {
                        Some((_, why)) => writeln!(excused, "  {line}\n    {why}").unwrap(),
                        None => writeln!(faults, "{line}").unwrap(),
                    }
                }
            }
            writeln!(table, "{name:<24} {:<36} {}", function.name, cells.join(" ")).unwrap();
        }
    }
    println!("Each kernel with three inputs, for 2x64 threads and for one, on each architecture:\n{table}");
    println!("explained differences:\n{excused}");
    let [equal, both, one, differ] = totals;
    println!("{kernels} kernels; runs: {equal} equal, {both} stop at both levels, {one} at one, {differ} differ");
    assert!(faults.is_empty(), "{faults}");
    assert!(kernels >= 113, "{kernels} kernels");
}

/// 0: equal, 1: both stop, 2: one stops, 3: the outputs differ. With what is not equal.
fn compare(high: &Result<Vec<Vec<u8>>, String>, low: &Result<Vec<Vec<u8>>, String>) -> (usize, String) {
    match (high, low) {
        (Ok(a), Ok(b)) if a == b => (0, String::new()),
        (Ok(a), Ok(b)) => {
            let buffers = a.iter().zip(b).enumerate();
            let first = buffers.filter_map(|(k, (a, b))| Some((k, a.iter().zip(b).position(|(a, b)| a != b)? / 4 * 4)));
            let places = first
                .map(|(k, at)| format!("buffer {k} at {at}: {:02x?} {:02x?}", &a[k][at..at + 4], &b[k][at..at + 4]));
            (3, places.collect::<Vec<_>>().join("; "))
        }
        (Err(_), Err(_)) => (1, String::new()),
        (Err(e), Ok(_)) => (2, format!("as PTX: {e}")),
        (Ok(_), Err(e)) => (2, format!("as machine code: {e}")),
    }
}
