//! Random PTX kernels, run as PTX and as the machine code that ptxas makes of them for two architectures: the outputs
//! must be equal.
//!
//! A program's text depends on its number alone. `LANESCOPE_RANDOM_PROGRAMS` says how many run, `LANESCOPE_RANDOM_FIRST`
//! where they begin. The text of a file with a difference is kept, its path is in the message.
//!
//! What PTX leaves open is not generated: division by zero, exchanges between lanes that have gone different ways,
//! the order of atomics whose result is used, payloads of NaN moved to integers.

#![allow(clippy::print_stdout)] // How many programs ran belongs into the test log.

#[allow(dead_code, reason = "shared with ptx_agreement, which uses all of it")]
mod levels;
mod random;

use std::fmt::Write as _;
use std::path::Path;

use lanescope_ptx::lower;
use lanescope_sass::container::Module;
use levels::{Input, Shape};

/// Programs of one file.
const BATCH: u64 = 50;
const ARCHS: [&str; 2] = ["sm_80", "sm_90"];

/// Programs whose difference is known and not mended yet, with what is known. An H200 ran all of them, built
/// for sm_90.
const KNOWN: [(u64, &str); 3] = [
    (
        175,
        "ptxas takes the predicate of a branch as known in a loop behind it that sets it anew; the H200 runs that code so",
    ),
    (451, "sm_80 only, where ptxas -O1 and sm_90 on the H200 agree with PTX; not explained"),
    (
        473,
        "ptxas takes the predicate of a branch as known in a loop behind it that sets it anew; the H200 runs that code so",
    ),
];

#[test]
fn same_outputs() {
    let Some(oracles) = levels::oracles() else {
        println!("skipped: needs NVIDIA's ptxas; .ci/oracles.sh fetches it");
        return;
    };
    let number = |name: &str, default: u64| std::env::var(name).ok().map_or(default, |v| v.parse().unwrap());
    let first = number("LANESCOPE_RANDOM_FIRST", 0);
    let end = first + number("LANESCOPE_RANDOM_PROGRAMS", 500);
    let starts: Vec<u64> = (first..end).step_by(BATCH as usize).collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        let (mut ran, mut faults) = (0, String::new());
        while let Some(&start) = starts.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
            ran += batch(&oracles, start, end.min(start + BATCH), &mut faults);
        }
        (ran, faults)
    };
    let results = std::thread::scope(|scope| {
        let threads = [scope.spawn(work), scope.spawn(work)];
        threads.map(|t| t.join().unwrap())
    });
    let faults: String = results.iter().map(|r| r.1.as_str()).collect();
    println!("{} programs gave equal outputs as PTX and on {}", results[0].0 + results[1].0, ARCHS.join(" and "));
    assert!(faults.is_empty(), "{faults}");
}

/// Runs programs `start..end` and returns how many agreed on all architectures.
fn batch(oracles: &Path, start: u64, end: u64, faults: &mut String) -> u64 {
    let mut text = String::from(random::HEADER);
    (start..end).for_each(|n| random::program(n, &mut text));
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("random-{start}.ptx"));
    let parse = lanescope_ptx::parse(&text);
    assert!(parse.is_ok(), "{}: {:?}", path.display(), parse.diagnostics.first());
    let cubins = ARCHS.map(|arch| levels::assemble(oracles, &path, &text, arch, &[]).unwrap_or_else(|e| panic!("{e}")));
    let modules = cubins.iter().map(|c| Module::parse(c).unwrap()).collect::<Vec<_>>();
    let shape = Shape { grid: 1, block: random::THREADS as u32, dynamic_shared: 0, max_inst: 10_000_000 };
    let (mut equal, before) = (0, faults.len());
    for n in start..end {
        let name = format!("k{n}");
        let inputs = [
            Input::Buffer(vec![0; random::THREADS * random::STRIDE]),
            Input::Buffer(random::input(n)),
            Input::Buffer(vec![0; 4 * random::SUMS]),
        ];
        let high = lower::load(&parse, &name, lower::Options::default())
            .map_err(|e| format!("{:?}", e.first()))
            .and_then(|k| levels::run(&k, shape, &inputs));
        let mut good = true;
        for (arch, module) in ARCHS.iter().zip(&modules) {
            let low = levels::machine_code(module, &name).and_then(|k| levels::run(&k, shape, &inputs));
            let what = match (&high, &low) {
                (Ok(high), Ok(low)) => difference(high, low),
                (Err(e), _) => Some(format!("as PTX: {e}")),
                (_, Err(e)) => Some(format!("as machine code: {e}")),
            };
            if let Some(what) = what {
                good = false;
                if let Some((_, why)) = KNOWN.iter().find(|k| k.0 == n) {
                    println!("known: {name} {arch}: {why}");
                    continue;
                }
                let plain =
                    high.as_ref().ok().and_then(|high| hardly_optimised(oracles, n, arch, shape, &inputs, high));
                let plain = plain.unwrap_or_else(|| "not run".into());
                writeln!(faults, "{name} {arch}: {what} ({}); ptxas -O1: {plain}", path.display()).unwrap();
            }
        }
        equal += u64::from(good);
    }
    if faults.len() == before {
        let _ = std::fs::remove_file(&path);
    }
    equal
}

/// What the program gives when ptxas optimises little: if that agrees with PTX, ptxas has changed the program's meaning
/// or an instruction only it chooses is wrong here.
fn hardly_optimised(
    oracles: &Path,
    n: u64,
    arch: &str,
    shape: Shape,
    inputs: &[Input],
    high: &[Vec<u8>],
) -> Option<String> {
    let mut text = String::from(random::HEADER);
    random::program(n, &mut text);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("random-{n}-{arch}-O1.ptx"));
    let cubin = levels::assemble(oracles, &path, &text, arch, &["-O1"]).ok()?;
    let _ = std::fs::remove_file(&path);
    let kernel = levels::machine_code(&Module::parse(&cubin).ok()?, &format!("k{n}")).ok()?;
    match levels::run(&kernel, shape, inputs) {
        Ok(low) => Some(difference(high, &low).unwrap_or_else(|| "equal".into())),
        Err(e) => Some(e),
    }
}

/// The first difference of the outputs; any two NaN are equal.
fn difference(high: &[Vec<u8>], low: &[Vec<u8>]) -> Option<String> {
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    for at in (0..high[0].len()).step_by(4) {
        let (a, b) = (word(&high[0], at), word(&low[0], at));
        let (lane, slot) = (at / random::STRIDE, at % random::STRIDE / 4);
        let nan = random::is_float(slot) && f32::from_bits(a).is_nan() && f32::from_bits(b).is_nan();
        if a != b && !nan {
            return Some(format!("thread {lane}, {}: {a:#x} as PTX, {b:#x} as machine code", random::slot(slot)));
        }
    }
    let sums = (0..high[2].len()).step_by(4).find(|&at| word(&high[2], at) != word(&low[2], at))?;
    Some(format!("sum {}: {:#x}, {:#x}", sums / 4, word(&high[2], sums), word(&low[2], sums)))
}
