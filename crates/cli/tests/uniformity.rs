//! No branch that the analysis calls uniform in the warp ever splits one, and where it names lanes those are the ones.
//!
//! Every launch of the ground truth (as machine code and as PTX), of `validation` and of other compilers' PTX; the kernels
//! of the corpus and random programs with NVIDIA's compilers, if they are there; and a comparison with LLVM, if that is.

#![allow(clippy::print_stdout)] // What was checked belongs into the test log.

mod launches;
#[allow(dead_code, reason = "shared with others, which use all of it")]
mod levels;
#[allow(dead_code, reason = "shared with ptx_random, which uses all of it")]
mod random;
mod uniform;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use lanescope::launch;
use lanescope::launch::args::Data;
use lanescope::run::{Prepared, Settings};
use lanescope_analysis::Structure;
use lanescope_analysis::uniformity::{Branch, Facts, Kind, Uniformity, Verdict};
use lanescope_gpu::nvrtc::{Nvrtc, Request};
use lanescope_ir::Kernel;
use lanescope_ptx::lower;
use lanescope_ptx::tree::{Function, FunctionKind};
use lanescope_sass::container::Module;
use lanescope_sim::TraceRequest;
use levels::{Input, Shape};
use uniform::{Checked, Observed, contradictions, facts};

/// Steps of a warp that are kept.
const STEPS: usize = 20_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs one launch file and checks all sets of facts; `ptx` instead of its module.
fn launch(path: &Path, ptx: Option<&Path>, faults: &mut String) -> Option<Checked> {
    let text = std::fs::read_to_string(path).ok()?;
    let mut file = launch::parse(&path.display().to_string(), &text).ok()?;
    if let Some(ptx) = ptx {
        file.module = ptx.to_path_buf();
    }
    let warps = file.block.iter().product::<u32>().div_ceil(32);
    let blocks: u64 = file.grid.iter().map(|&n| u64::from(n)).product();
    // A warp in the middle of the first block, and the very last.
    let mut checked = Checked::default();
    for (block, warp) in [(0, warps / 2), (blocks.saturating_sub(1), warps.saturating_sub(1))] {
        let traces = vec![TraceRequest { block, warp, max_steps: STEPS }];
        let settings = Settings { threads: 1, max_inst: Some(20_000_000), traces, ..Settings::default() };
        let dir = path.parent().map(Path::to_path_buf).unwrap_or_default();
        let prepared = Prepared::new(file.clone(), dir, &settings).ok()?;
        let scalars: Vec<(u32, Vec<u8>)> = prepared
            .kernel
            .params
            .iter()
            .zip(&prepared.data)
            .filter_map(|(p, d)| match d {
                Data::Value(bytes) => Some((p.ordinal, bytes.clone())),
                Data::Buffer(_) => None,
            })
            .collect();
        let ran = prepared.run(None).ok()?;
        let kernel = &ran.kernel;
        let structure = Structure::new(kernel);
        let seen = Observed { profile: ran.profile(), trace: ran.outcome.traces.first().map(|t| (warp, t)) };
        for (what, facts) in facts(kernel, file.grid, file.block, file.dynamic_shared, &scalars) {
            let title = format!("{} ({}, {what})", path.display(), if ptx.is_some() { "PTX" } else { "SASS" });
            checked.add(contradictions(kernel, &structure, &facts, &seen, faults, &title));
        }
    }
    Some(checked)
}

fn all(folder: &str, with_ptx: bool) -> (u64, Checked) {
    let (mut ran, mut total, mut faults) = (0, Checked::default(), String::new());
    for path in launches::below(&root().join(folder)) {
        if let Some(c) = launch(&path, None, &mut faults) {
            ran += 1;
            total.add(c);
        }
        if with_ptx {
            let case =
                path.parent().and_then(Path::file_name).map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            let number: String = case.chars().take(2).collect();
            let ptx = root().join(format!("tests/data/ptx/groundtruth/{number}.ptx")).canonicalize().unwrap();
            if let Some(c) = launch(&path, Some(&ptx), &mut faults) {
                ran += 1;
                total.add(c);
            }
        }
    }
    println!("{folder}: {ran} launches, {total:?}");
    assert!(faults.is_empty(), "{faults}");
    (ran, total)
}

#[test]
fn ground_truth() {
    let (ran, total) = all("tests/groundtruth", true);
    assert!(ran >= 68, "only {ran} launches ran");
    assert!(total.never > 0 && total.lanes > 0 && total.boundary > 0, "{total:?}");
}

#[test]
fn validation() {
    let (ran, _) = all("validation", false);
    assert!(ran >= 250, "only {ran} launches ran");
}

#[test]
fn producers() {
    let (ran, _) = all("tests/data/producers", false);
    assert!(ran >= 60, "only {ran} launches ran");
}

/// Runs a kernel that has been loaded and checks all sets of facts. Kernels that stop are left out.
fn loaded(kernel: &Kernel, shape: Shape, inputs: &[Input], title: &str, faults: &mut String) -> Option<Checked> {
    let warp = shape.block.div_ceil(32) - 1;
    let trace = TraceRequest { block: 0, warp, max_steps: STEPS };
    let (outcome, _) = levels::observe(kernel, shape, inputs, Some(trace)).ok()?;
    let structure = Structure::new(kernel);
    let seen = Observed { profile: &outcome.profile, trace: outcome.traces.first().map(|t| (warp, t)) };
    let scalars: Vec<(u32, Vec<u8>)> = kernel
        .params
        .iter()
        .zip(inputs)
        .filter_map(|(p, i)| match i {
            Input::Value(bytes) => Some((p.ordinal, bytes.clone())),
            Input::Buffer(_) => None,
        })
        .collect();
    let mut checked = Checked::default();
    for (what, facts) in facts(kernel, [shape.grid, 1, 1], [shape.block, 1, 1], shape.dynamic_shared, &scalars) {
        let title = format!("{title} {} ({}, {}x{}, {what})", kernel.name, kernel.arch, shape.grid, shape.block);
        checked.add(contradictions(kernel, &structure, &facts, &seen, faults, &title));
    }
    Some(checked)
}

/// Made-up arguments: buffers of small integers, small numbers.
fn inputs(function: &Function<'_>, kind: u32) -> Vec<Input> {
    let buffer = |i: usize| {
        let mut state = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(kind);
        let words = (0..1usize << 14).flat_map(move |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 40) as u32 % [48, 3][kind as usize % 2]).to_le_bytes()
        });
        Input::Buffer(words.collect())
    };
    let params = function.params.iter().enumerate().map(|(i, p)| {
        let size = p.size().unwrap_or(0).min(4096) as usize;
        let float = p.ty == lanescope_ptx::tree::Type::F32;
        match (p.dims.is_empty(), size) {
            (true, 8) => buffer(i),
            (true, 4) if float => Input::Value(1.5f32.to_le_bytes().to_vec()),
            (true, 4) => Input::Value([61u32, 7][kind as usize % 2].to_le_bytes().to_vec()),
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
    let nvrtc = Nvrtc::load(&oracles.join("lib/libnvrtc-12.9.so").canonicalize().unwrap()).unwrap();
    let temporary = tempfile::tempdir().unwrap();
    let includes = ["include-12.9", "cccl-12.9"].map(|d| format!("-I{}", oracles.join(d).display()));
    let (mut runs, mut total, mut faults) = (0, Checked::default(), String::new());
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(root().join("tests/corpus")).unwrap().flatten().map(|e| e.path()).collect();
    files.retain(|p| p.extension().is_some_and(|x| x == "cu"));
    files.sort();
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let source = std::fs::read(&path).unwrap();
        // Some sources need what only newer architectures have.
        let found = [("compute_80", &["sm_80", "sm_90"][..]), ("compute_90", &["sm_90"])].into_iter().find_map(
            |(virt, archs)| {
                let mut options = vec![format!("--gpu-architecture={virt}"), "-std=c++17".into(), "-lineinfo".into()];
                options.extend(includes.iter().cloned());
                let request = Request { source: &source, name: &name, options: &options, instances: &[] };
                Some((nvrtc.compile(&request).ok()?, archs))
            },
        );
        let Some((compiled, archs)) = found else { panic!("{name} does not compile") };
        let text = String::from_utf8(compiled.ptx).unwrap();
        let parse = lanescope_ptx::parse(&text);
        let cubins: Vec<Vec<u8>> = archs
            .iter()
            .map(|arch| levels::assemble(&oracles, &temporary.path().join("k.ptx"), &text, arch, &[]).unwrap())
            .collect();
        for function in parse.module.functions.iter().filter(|f| f.kind == FunctionKind::Entry && f.body.is_some()) {
            let mut kernels: Vec<Kernel> =
                lower::load(&parse, function.name, lower::Options::default()).into_iter().collect();
            for cubin in &cubins {
                kernels.extend(levels::machine_code(&Module::parse(cubin).unwrap(), function.name));
            }
            for kernel in &kernels {
                for (kind, (grid, block)) in [(0, (2, 64)), (1, (1, 80))] {
                    let block = kernel.required_block.map_or(block, |r| r[0]);
                    let shape = Shape { grid, block, dynamic_shared: 4096, max_inst: 200_000 };
                    if let Some(c) = loaded(kernel, shape, &inputs(function, kind), &name, &mut faults) {
                        runs += 1;
                        total.add(c);
                    }
                }
            }
        }
    }
    println!("corpus: {runs} runs, {total:?}");
    assert!(faults.is_empty(), "{faults}");
    assert!(runs >= 400, "only {runs} runs");
}

/// Random programs, as PTX and as machine code. `LANESCOPE_RANDOM_PROGRAMS` says how many.
#[test]
fn random_programs() {
    const BATCH: u64 = 50;
    let oracles = levels::oracles();
    let count = std::env::var("LANESCOPE_RANDOM_PROGRAMS").ok().map_or(120, |v| v.parse().unwrap());
    let temporary = tempfile::tempdir().unwrap();
    let (mut runs, mut total, mut faults) = (0, Checked::default(), String::new());
    for start in (0..count).step_by(BATCH as usize) {
        let end = count.min(start + BATCH);
        let mut text = String::from(random::HEADER);
        (start..end).for_each(|n| _ = random::program(n, &[], &mut text));
        let parse = lanescope_ptx::parse(&text);
        let cubins: Vec<Vec<u8>> = oracles
            .iter()
            .flat_map(|o| {
                ["sm_80", "sm_90"].map(|arch| levels::assemble(o, &temporary.path().join("k.ptx"), &text, arch, &[]))
            })
            .map(|c| c.unwrap())
            .collect();
        let modules: Vec<Module<'_>> = cubins.iter().map(|c| Module::parse(c).unwrap()).collect();
        for n in start..end {
            let name = format!("k{n}");
            let (out, sums) = (vec![0; random::THREADS * random::STRIDE], vec![0; 4 * random::SUMS]);
            let inputs = [Input::Buffer(out), Input::Buffer(random::input(n)), Input::Buffer(sums)];
            let shape = Shape { grid: 1, block: random::THREADS as u32, dynamic_shared: 0, max_inst: 10_000_000 };
            let mut kernels: Vec<Kernel> = lower::load(&parse, &name, lower::Options::default()).into_iter().collect();
            kernels.extend(modules.iter().filter_map(|m| levels::machine_code(m, &name).ok()));
            for kernel in &kernels {
                if let Some(c) = loaded(kernel, shape, &inputs, "random", &mut faults) {
                    runs += 1;
                    total.add(c);
                }
            }
        }
    }
    println!("random programs: {runs} runs, {total:?}");
    let lines = faults.lines().count();
    let first: String = faults.lines().take(40).fold(String::new(), |mut s, l| {
        let _ = writeln!(s, "{l}");
        s
    });
    assert!(faults.is_empty(), "{lines} contradictions\n{first}");
    assert!(runs >= count, "only {runs} runs");
}

/// Branches that LLVM's uniformity analysis and this one prove never to split a warp, on the same code.
#[test]
fn more_than_llvm() {
    let temporary = tempfile::tempdir().unwrap();
    let header = root().join("tests/llvm/cuda.h");
    let (mut table, mut faults, mut total) = (String::new(), String::new(), [0u32; 4]);
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(root().join("tests/groundtruth")).unwrap().flatten().map(|e| e.path()).collect();
    folders.sort();
    for folder in folders {
        let ptx = temporary.path().join("k.ptx");
        let Some(counts) = uniform::llvm::compile(&folder.join("kernel.cu"), &header, temporary.path(), &ptx) else {
            println!("skipped: needs clang, opt and llc");
            return;
        };
        let text = std::fs::read_to_string(&ptx).unwrap();
        let parse = lanescope_ptx::parse(&text);
        for function in parse.module.functions.iter().filter(|f| f.kind == FunctionKind::Entry && f.body.is_some()) {
            let kernel = lower::load(&parse, function.name, lower::Options::default()).unwrap();
            let structure = Structure::new(&kernel);
            let toml = launches::below(&folder)
                .into_iter()
                .find(|p| std::fs::read_to_string(p).unwrap().contains(&format!("kernel = \"{}\"", function.name)));
            let block =
                toml.and_then(|p| launch::parse("k", &std::fs::read_to_string(p).unwrap()).ok()).map(|l| l.block);
            let proved = |facts: &Facts| {
                let u = Uniformity::new(&kernel, &structure, facts);
                let branches = u.branches.iter().filter(|b| matches!(b.kind, Kind::Branch | Kind::Exit));
                let never = |b: &&Branch| matches!(b.verdict, Verdict::Never | Verdict::Unreachable);
                (branches.clone().count() as u32, branches.filter(never).count() as u32)
            };
            let (all, alone) = proved(&Facts::default());
            let (_, shaped) = proved(&Facts { block, ..Facts::default() });
            let (of, llvm) = counts.get(function.name).copied().unwrap_or_default();
            if all > 0 || of > 0 {
                writeln!(table, "| {} | {of} | {llvm} | {all} | {alone} | {shaped} |", function.name).unwrap();
            }
            [of, llvm, alone, shaped].iter().zip(&mut total).for_each(|(n, t)| *t += n);
            if alone < llvm {
                writeln!(faults, "{}: LLVM proves {llvm} branches uniform, we {alone}", function.name).unwrap();
            }
        }
        // None of ours is wrong.
        for path in launches::below(&folder) {
            launch(&path, Some(&ptx), &mut faults);
        }
    }
    println!("| kernel | branches in IR | LLVM | branches in PTX | without facts | with the block's shape |");
    println!(
        "| --- | --- | --- | --- | --- | --- |\n{table}| total | {} | {} | | {} | {} |",
        total[0], total[1], total[2], total[3]
    );
    assert!(faults.is_empty(), "{faults}");
    assert!(total[2] > total[1], "{total:?}");
}

/// What `case.md` says of the branches of a kernel's line, for sm_90 with the launch's block: kernel, line, verdicts.
const CASES: [(&str, u32, &[&str]); 25] = [
    ("axpy_guarded", 4, &["boundary"]),
    ("by_lane", 15, &["lanes"]),
    ("by_lane", 4, &["never"]),
    ("by_lane", 9, &["never"]),
    ("by_warp", 22, &["never"]),
    ("by_warp", 4, &["never"]),
    ("by_warp", 9, &["never"]),
    ("csr_thread_per_row", 9, &["data"]),
    ("csr_warp_per_row", 17, &["never"]),
    ("march", 10, &["never", "data"]),
    ("shade", 7, &["data"]),
    ("half_sum_bad", 5, &["lanes"]),
    ("data_sum_bad", 18, &["data"]),
    ("data_sum_hang", 29, &["data"]),
    ("mirror_bad", 7, &["boundary"]),
    ("block_sum_bad", 13, &["never"]),
    ("expand", 9, &["data"]),
    ("sum_tail_bad", 7, &["never"]),
    ("sum_tail_bad", 15, &["lanes"]),
    ("draw_nested", 13, &["data"]),
    ("draw_nested", 7, &["never"]),
    ("count_tokens", 9, &["data"]),
    ("interpret", 8, &["never"]),
    ("interpret", 7, &["never"]),
    ("per_lane", 20, &["data"]),
];

#[test]
fn cases() {
    let (mut seen, mut faults) = (0, String::new());
    for path in launches::below(&root().join("tests/groundtruth")) {
        let file = launch::parse("k", &std::fs::read_to_string(&path).unwrap()).unwrap();
        let dir = path.parent().map(Path::to_path_buf).unwrap();
        let kernel = Prepared::new(file.clone(), dir, &Settings::default()).unwrap().kernel;
        let structure = Structure::new(&kernel);
        let u = Uniformity::new(&kernel, &structure, &Facts { block: Some(file.block), ..Facts::default() });
        if kernel.name.starts_with("tiny_") {
            assert!(u.branches.is_empty(), "{} has no branch", kernel.name);
        }
        for b in &u.branches {
            let line = kernel.source.get(b.inst as usize).map_or(0, |l| l.line);
            let Some(case) = CASES.iter().find(|c| c.0 == kernel.name && c.1 == line) else { continue };
            let verdict = match &b.verdict {
                Verdict::Never => "never",
                Verdict::Boundary(_) => "boundary",
                Verdict::Lanes(_) => "lanes",
                Verdict::Data => "data",
                other => &format!("{other:?}"),
            };
            seen += 1;
            if !case.2.contains(&verdict) {
                writeln!(faults, "{} line {line}: {verdict}, not {:?}: {:?}", kernel.name, case.2, b.witness).unwrap();
            }
            if kernel.name == "interpret" {
                assert!(b.level <= lanescope_analysis::uniformity::Level::Block, "{:?}", b.level);
            }
        }
    }
    assert!(faults.is_empty(), "{faults}");
    assert!(seen >= 50, "{seen} branches");
}
