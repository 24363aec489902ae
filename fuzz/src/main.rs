//! Runs the fuzz targets on a stable toolchain: mutates the repository's own files on all cores, catches panics and
//! hangs, saves the input that caused one, and counts executions.
//!
//! `cargo run --release -- [TARGET...] [--seconds N] [--runs N] [--threads N] [--seed N]`, in `fuzz/`.

mod mutate;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mutate::{Rng, mutate};

/// An execution longer than this is a finding.
const HANG: Duration = Duration::from_secs(10);

struct Target {
    name: &'static str,
    run: fn(&[u8]),
    seeds: fn(&Path) -> Vec<Vec<u8>>,
    text: bool,
}

const TARGETS: [Target; 5] = [
    Target { name: "container", run: lanescope_fuzz::container, seeds: containers, text: false },
    Target { name: "decoder", run: lanescope_fuzz::decoder, seeds: instructions, text: false },
    Target { name: "launch", run: lanescope_fuzz::launch, seeds: launches, text: true },
    Target { name: "survey", run: lanescope_fuzz::survey, seeds: containers, text: false },
    Target { name: "ptx", run: lanescope_fuzz::ptx, seeds: texts, text: true },
];

struct Options {
    targets: Vec<&'static Target>,
    seconds: u64,
    runs: u64,
    threads: usize,
    seed: u64,
}

fn main() {
    let options = match parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}");
            std::process::exit(2);
        }
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("fuzz/ lies in the repository");
    // A caught panic is reported once, with its input; the default hook would print each.
    std::panic::set_hook(Box::new(|_| {}));
    let mut findings = 0;
    let mut total = 0;
    for target in &options.targets {
        let (executions, found) = fuzz(target, root, &options);
        total += executions;
        findings += found;
    }
    println!("{total} executions, {findings} findings");
    if findings > 0 {
        std::process::exit(1);
    }
}

fn parse(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        targets: Vec::new(),
        seconds: 60,
        runs: u64::MAX,
        threads: std::thread::available_parallelism().map_or(1, |n| n.get()),
        seed: 1,
    };
    while let Some(arg) = args.next() {
        let mut value = || {
            let text = args.next().ok_or_else(|| format!("{arg} needs a number"))?;
            text.parse::<u64>().map_err(|_| format!("{arg}: '{text}' is not a number"))
        };
        match arg.as_str() {
            "--seconds" => options.seconds = value()?,
            "--runs" => options.runs = value()?,
            "--threads" => options.threads = value()?.clamp(1, 1024) as usize,
            "--seed" => options.seed = value()?,
            name => options.targets.push(
                TARGETS
                    .iter()
                    .find(|t| t.name == name)
                    .ok_or_else(|| format!("'{name}' is no target; there are container, decoder and launch"))?,
            ),
        }
    }
    if options.targets.is_empty() {
        options.targets.extend(&TARGETS);
    }
    Ok(options)
}

/// One thread's current input, for the watchdog.
struct Slot {
    since: Option<Instant>,
    input: Vec<u8>,
}

/// Runs one target; returns executions and findings.
fn fuzz(target: &Target, root: &Path, options: &Options) -> (u64, u64) {
    let seeds = (target.seeds)(root);
    if seeds.is_empty() {
        eprintln!("{}: no seeds found", target.name);
        return (0, 1);
    }
    let start = Instant::now();
    let deadline = start + Duration::from_secs(options.seconds);
    let (executions, findings) = (AtomicU64::new(0), AtomicU64::new(0));
    let running = AtomicU64::new(options.threads as u64);
    let slots: Vec<_> =
        (0..options.threads).map(|_| Arc::new(Mutex::new(Slot { since: None, input: Vec::new() }))).collect();
    std::thread::scope(|scope| {
        for (thread, slot) in slots.iter().enumerate() {
            let (seeds, executions, findings, running) = (&seeds, &executions, &findings, &running);
            scope.spawn(move || {
                let mut rng = Rng::new(options.seed.wrapping_mul(1009).wrapping_add(thread as u64));
                let mut input = Vec::new();
                while Instant::now() < deadline && executions.fetch_add(1, Relaxed) < options.runs {
                    mutate(seeds, &mut rng, target.text, &mut input);
                    {
                        let mut slot = slot.lock().expect("no one panics with the lock held");
                        slot.since = Some(Instant::now());
                        slot.input.clear();
                        slot.input.extend_from_slice(&input);
                    }
                    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (target.run)(&input))) {
                        findings.fetch_add(1, Relaxed);
                        report(target, root, &input, &message(&panic));
                    }
                }
                slot.lock().expect("no one panics with the lock held").since = None;
                running.fetch_sub(1, Relaxed);
            });
        }
        while running.load(Relaxed) > 0 {
            std::thread::sleep(Duration::from_millis(200));
            for slot in &slots {
                let slot = slot.lock().expect("no one panics with the lock held");
                if slot.since.is_some_and(|since| since.elapsed() > HANG) {
                    report(target, root, &slot.input, "hangs");
                    // The thread cannot be stopped, so the run ends here.
                    std::process::exit(1);
                }
            }
        }
    });
    let (executions, findings) = (executions.load(Relaxed).min(options.runs), findings.load(Relaxed));
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{}: {executions} executions in {seconds:.1} s ({:.0}/s) from {} seeds, {findings} findings, peak memory {} MiB",
        target.name,
        executions as f64 / seconds,
        seeds.len(),
        peak_mib()
    );
    (executions, findings)
}

fn message(panic: &Box<dyn std::any::Any + Send>) -> String {
    panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string))
        .unwrap_or_else(|| "panics".to_owned())
}

fn report(target: &Target, root: &Path, input: &[u8], what: &str) {
    // FNV-1a, only to name the file.
    let hash = input.iter().fold(0xcbf2_9ce4_8422_2325u64, |h, &b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    let dir = root.join("fuzz/artifacts").join(target.name);
    let path = dir.join(format!("{hash:016x}"));
    let saved = std::fs::create_dir_all(&dir).and_then(|()| std::fs::write(&path, input));
    match saved {
        Ok(()) => eprintln!("{}: {what}: input saved as {}", target.name, path.display()),
        Err(error) => eprintln!("{}: {what}: the input could not be saved: {error}", target.name),
    }
}

/// Largest resident size so far; 0 where the system does not say.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// Files below `dir` with one of these extensions, in order of their names.
fn files(dir: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        let Ok(entries) = std::fs::read_dir(dir) else { continue };
        for path in entries.flatten().map(|e| e.path()) {
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|e| extensions.iter().any(|x| e == *x)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn read_files(paths: Vec<PathBuf>) -> Vec<Vec<u8>> {
    paths.iter().filter_map(|path| std::fs::read(path).ok()).collect()
}

fn containers(root: &Path) -> Vec<Vec<u8>> {
    let extensions = ["cubin", "fatbin", "o"];
    let mut seeds = read_files(files(&root.join("crates/sass/tests/container"), &extensions));
    seeds.extend(read_files(files(&root.join("examples"), &extensions)));
    if let Some(object) = seeds.iter().find(|s| s.starts_with(b"\x7fELF")).cloned() {
        let mut archive = b"!<arch>\n".to_vec();
        archive.extend(format!("{:<48}{:<10}`\n", "member/", object.len()).bytes());
        archive.extend(object);
        seeds.push(archive);
    }
    seeds
}

/// Code of the examples' kernels, a few instructions at a time, after a byte for the architecture.
fn instructions(root: &Path) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for cubin in read_files(files(&root.join("examples"), &["cubin"])) {
        let Ok(module) = lanescope_sass::container::Module::parse(&cubin) else { continue };
        let known = lanescope_sass::isa::Arch::supported().position(|a| a.sm() == u32::from(module.arch.sm));
        let Some(arch) = known else { continue };
        for function in &module.functions {
            for piece in function.text.chunks(64) {
                seeds.push(std::iter::once(arch as u8).chain(piece.iter().copied()).collect());
            }
        }
    }
    seeds
}

fn launches(root: &Path) -> Vec<Vec<u8>> {
    let mut seeds = read_files(files(&root.join("examples"), &["toml"]));
    seeds.push(
        b"module = \"k.cubin\"\nkernel = \"k\"\ngrid = [256, 1, 1]\nblock = [32, 2, 1]\ndynamic_shared = 16\n\
          [[arg]]\nname = \"x\"\nnpy = \"x.npy\"\nout = \"y.npy\"\n\
          [[arg]]\nzeros = { dtype = \"f32\", len = 65536 }\n\
          [[arg]]\nrandom = { dtype = \"u32\", len = 4096, seed = 1, low = 0, high = 32 }\n\
          [[arg]]\ni32 = -65536\n[[arg]]\nf64 = 1.5e-3\n"
            .to_vec(),
    );
    seeds
}

fn texts(root: &Path) -> Vec<Vec<u8>> {
    read_files(files(&root.join("crates/ptx/tests"), &["ptx"]))
}
