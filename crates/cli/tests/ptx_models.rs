//! PTX as other machines would run it: exchanges of lanes that stand in different arms, and warps of 64 lanes.
//!
//! `tests/data/ptx` holds the PTX of measured kernels. What an H200 computed, running machine code with warps of 32, is
//! what they must compute.
#![allow(clippy::print_stdout)] // What is refused, and why, belongs into the test log.

use std::path::{Path, PathBuf};

use lanescope::launch;
use lanescope::npy;
use lanescope::run::{Prepared, Ran, Settings};
use lanescope::sim::Model;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn launches(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|x| x == "toml"))
        .collect();
    found.sort();
    found
}

fn run(path: &Path, ptx: &Path, settings: &Settings) -> Result<Ran, String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let mut launch = launch::parse(&path.display().to_string(), &text).map_err(|e| e.to_string())?;
    launch.module = ptx.to_path_buf();
    launch.arch = None;
    let dir = path.parent().map(Path::to_path_buf).unwrap_or_default();
    Prepared::new(launch, dir, settings).and_then(|p| p.run(None)).map_err(|e| e.to_string())
}

/// What differs from the H200's outputs, first element each, but for elements that `open` names.
fn differences(path: &Path, ran: &Ran, open: &dyn Fn(usize) -> bool) -> Option<String> {
    let mut compared = 0;
    for k in 0..16 {
        let file = PathBuf::from(format!("{}.arg{k}.expected.npy", path.with_extension("").display()));
        if !file.exists() {
            continue;
        }
        let want = npy::read(&std::fs::read(&file).unwrap()).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let got = ran.output(k).unwrap().unwrap();
        let size = want.item.max(1);
        let mut pairs = got.data.chunks(size).zip(want.data.chunks(size)).enumerate();
        if let Some((i, (a, b))) = pairs.find(|(i, (a, b))| a != b && !open(*i)) {
            return Some(format!("argument {k}, element {i}: {a:x?} for {b:x?}"));
        }
        compared += 1;
    }
    (compared == 0).then(|| "nothing to compare".to_owned())
}

/// Launches of which no output is recorded, or whose machine code was patched to be no longer what the PTX says.
fn is_patched(text: &str) -> bool {
    !text.contains("\"kernel.sm_90.cubin\"")
}

#[test]
fn lanes_in_two_arms_exchange_as_on_the_hardware() {
    let (mut equal, mut faults) = (0, String::new());
    for folder in ["schedule", "warpsync", "warp-operations"] {
        let ptx = root().join(format!("tests/data/ptx/validation/{folder}.ptx"));
        for path in launches(&root().join("validation").join(folder)) {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            if is_patched(&std::fs::read_to_string(&path).unwrap()) {
                continue;
            }
            for threads in [1, 2] {
                let settings = Settings { threads, max_inst: Some(100_000_000), ..Settings::default() };
                let fault = match run(&path, &ptx, &settings) {
                    Ok(ran) => differences(&path, &ran, &|_| false),
                    Err(e) => Some(e),
                };
                match fault {
                    None => equal += 1,
                    Some(what) => faults.push_str(&format!("{folder}/{name}, {threads} threads: {what}\n")),
                }
            }
        }
    }
    println!("{equal} runs equal the H200's outputs");
    assert!(faults.is_empty(), "{faults}");
    assert!(equal > 150, "only {equal} runs were compared");
}

#[test]
fn warps_of_64_compute_the_same_where_the_code_permits() {
    let (mut equal, mut refused, mut faults) = (0, String::new(), String::new());
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(root().join("tests/groundtruth")).unwrap().flatten().map(|e| e.path()).collect();
    folders.sort();
    for folder in folders {
        let number: String = folder.file_name().unwrap().to_string_lossy().chars().take(2).collect();
        let ptx = root().join(format!("tests/data/ptx/groundtruth/{number}.ptx"));
        for path in launches(&folder) {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            // Without recorded outputs: locks that end in a deadlock on a stack.
            if !(0..16).any(|k| path.with_file_name(format!("{name}.arg{k}.expected.npy")).exists()) {
                continue;
            }
            for model in [Model::Ipdom, Model::Stack] {
                let settings = Settings {
                    warp_size: Some(64),
                    model: Some(model),
                    max_inst: Some(200_000_000),
                    ..Settings::default()
                };
                match run(&path, &ptx, &settings) {
                    Ok(ran) => {
                        assert_eq!(ran.profile().shape.warp_size, 64);
                        let t = ran.profile().totals();
                        assert!(t.thread_inst_executed <= 64 * t.inst_executed);
                        // Elements that come from shared memory which lanes that returned never wrote.
                        let open = |i: usize| name == "mirror_bad" && (768..=791).contains(&i);
                        match differences(&path, &ran, &open) {
                            None => equal += 1,
                            Some(what) => faults.push_str(&format!("{number} {name}, {model}: {what}\n")),
                        }
                    }
                    Err(e) if e.contains("cannot run with warps of 64 lanes: `") => {
                        assert!(e.contains("source line: kernel.cu:"), "{e}");
                        if model == Model::Ipdom {
                            refused.push_str(&format!("  {number} {name}: {e}\n"));
                        }
                    }
                    Err(e) => faults.push_str(&format!("{number} {name}, {model}: {e}\n")),
                }
            }
        }
    }
    println!("{equal} runs equal the H200's outputs; refused:\n{refused}");
    assert!(faults.is_empty(), "{faults}");
    assert!(equal >= 30 && !refused.is_empty(), "{equal} {refused}");
}

/// Runs `tests/data/ptx/NAME` on the numbers 0 to 63, two blocks of 32 threads unless `block` says otherwise.
fn printed(name: &str, kernel: &str, block: u32, more: &str, settings: &Settings) -> Result<Ran, String> {
    let module = root().join("tests/data/ptx").join(name);
    let dir = tempfile::tempdir().unwrap();
    let values: Vec<u8> = (0..64i32).flat_map(i32::to_le_bytes).collect();
    let header = "{'descr': '<i4', 'fortran_order': False, 'shape': (64,), }";
    let mut npy = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    npy.extend_from_slice(format!("{header:<117}\n").as_bytes());
    npy.extend_from_slice(&values);
    std::fs::write(dir.path().join("x.npy"), npy).unwrap();
    let text = format!(
        "module = {:?}\nkernel = \"{kernel}\"\ngrid = [{}]\nblock = [{block}]\n[[arg]]\nnpy = \"x.npy\"\n[[arg]]\n\
         zeros = {{ dtype = \"i32\", len = 64 }}\n{more}",
        module.display().to_string(),
        64 / block
    );
    let path = dir.path().join("launch.toml");
    std::fs::write(&path, text).unwrap();
    Prepared::open(&path, settings).and_then(|p| p.run(None)).map_err(|e| e.to_string())
}

#[test]
fn kernels_print_the_same_from_ptx_and_machine_code() {
    // As the source says, thread after thread.
    let mut want = Vec::new();
    for t in 0..64u32 {
        let (half, odd) = (f64::from(t) * 0.5, if t % 2 == 1 { "odd   " } else { "even  " });
        let letter = [(b'a' + t as u8)];
        let letter = String::from_utf8_lossy(&letter).into_owned();
        want.push((t, format!("thread {} of block {}: {half:5.2} [{odd}] {letter}%\n", t % 32, t / 32)));
    }
    let second = |t: u32| format!("{} (nil) {t:x}|{t:6}|\n", i64::from(t) << 33);
    let more = "[[arg]]\ni32 = 40\n";
    for module in ["printf.ptx", "printf.sm_80.cubin", "printf.sm_90.cubin", "printf.O0.sm_90.cubin"] {
        for threads in [1, 2] {
            let settings = Settings { threads, ..Settings::default() };
            let ran = printed(module, "talk", 32, more, &settings).unwrap_or_else(|e| panic!("{module}: {e}"));
            let calls = &ran.outcome.printed;
            assert!(calls.is_sorted_by_key(|c| c.block), "{module}");
            let got = |part: &str| -> Vec<(u32, String)> {
                let own = calls.iter().filter(|c| c.text.starts_with("thread") == (part == "first"));
                own.map(|c| (c.block[0] * 32 + c.thread[0], c.text.clone())).collect()
            };
            assert_eq!(got("first"), want, "{module}");
            assert_eq!(got("second"), (0..40).map(|t| (t, second(t))).collect::<Vec<_>>(), "{module}");
            assert_eq!(ran.outcome.printed_lost, 0);
            // The results: arguments used.
            let out: Vec<u8> = (0..64u32).flat_map(|t| if t < 40 { 10u32 } else { 5 }.to_le_bytes()).collect();
            assert_eq!(ran.output(1).unwrap().unwrap().data, out, "{module}");
        }
    }
    let wide = Settings { warp_size: Some(64), ..Settings::default() };
    let ran = printed("printf.ptx", "talk", 64, more, &wide).unwrap();
    assert_eq!(ran.outcome.printed.len(), 64 + 40);
    assert_eq!(ran.outcome.printed[63].thread, [63, 0, 0]);
}

#[test]
fn a_failed_assertion_names_itself() {
    for module in ["assert.ptx", "assert.sm_90.cubin"] {
        let error = printed(module, "check", 32, "", &Settings::default()).unwrap_err();
        let want = "kernel.cu:3: void check(const int *, int *): assertion `x[t] != 5` failed for thread 5,0,0 of the block at ";
        assert!(error.contains(want), "{module}: {error}");
    }
}
