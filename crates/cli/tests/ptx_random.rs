//! Random PTX kernels, run as PTX and as the machine code that ptxas makes of them for several architectures: the outputs
//! must be equal.
//!
//! A program's text depends on its number alone. `LANESCOPE_RANDOM_PROGRAMS` says how many run, `LANESCOPE_RANDOM_FIRST`
//! where they begin, `LANESCOPE_RANDOM_ARCHS` for what they are assembled (separated by commas). Of a program with a
//! difference the message names what is left of it when all that does not matter is left out.
//!
//! Of the first 10,000 programs all gave equal outputs for sm_80 and sm_90. Of the first 1,000 all did for sm_100, and all
//! but those in `KNOWN` for sm_120.
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
const ARCHS: &str = "sm_80,sm_90";

/// Programs whose difference is known and not the simulator's, with the architectures and the reason.
const KNOWN: &[(u64, &[&str], &str)] = &[
    (2, &["sm_120"], SUB_SAT),
    (10, &["sm_120"], SUB_SAT),
    (38, &["sm_120"], SUB_SAT),
    (134, &["sm_120"], SUB_SAT),
    (141, &["sm_120"], SUB_SAT),
    (229, &["sm_120"], SUB_SAT),
    (485, &["sm_120"], SUB_SAT),
    (508, &["sm_120"], SUB_SAT),
    (616, &["sm_120"], SUB_SAT),
    (730, &["sm_120"], SUB_SAT),
    (980, &["sm_120"], SUB_SAT),
];

/// `IADD3 R2, RZ, -R2; VIADD.S32.ISAT R1, R1, R2`, which has no negative of the smallest integer. At `-O0` it is right.
const SUB_SAT: &str = "ptxas 12.9 makes of a saturating subtraction an addition of the negative";

#[test]
fn same_outputs() {
    let Some(oracles) = levels::oracles() else {
        println!("skipped: needs NVIDIA's ptxas; .ci/oracles.sh fetches it");
        return;
    };
    let number = |name: &str, default: u64| std::env::var(name).ok().map_or(default, |v| v.parse().unwrap());
    let first = number("LANESCOPE_RANDOM_FIRST", 0);
    let end = first + number("LANESCOPE_RANDOM_PROGRAMS", 500);
    let archs = std::env::var("LANESCOPE_RANDOM_ARCHS").unwrap_or(ARCHS.into());
    let archs: Vec<&str> = archs.split(',').collect();
    let starts: Vec<u64> = (first..end).step_by(BATCH as usize).collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        let mut tally = Tally::default();
        while let Some(&start) = starts.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
            batch(&oracles, &archs, start, end.min(start + BATCH), &mut tally);
        }
        tally
    };
    let tallies = std::thread::scope(|scope| {
        let threads = [scope.spawn(work), scope.spawn(work)];
        threads.map(|t| t.join().unwrap())
    });
    let faults: String = tallies.iter().map(|t| t.faults.as_str()).collect();
    println!(
        "{} programs gave equal outputs as PTX and for {}",
        tallies.iter().map(|t| t.equal).sum::<u64>(),
        archs.join(", ")
    );
    tallies.iter().for_each(|t| print!("{}", t.known));
    assert!(faults.is_empty(), "{faults}");
}

/// A loop with a `ret` in it has no join: its lanes come to the barrier one group after the other, and what the last
/// add to shared memory must be seen behind it.
#[test]
fn lanes_that_come_late_do_not_miss_a_barrier() {
    let text = "\
.version 8.0
.target sm_80
.address_size 64
.visible .entry late(.param .u64 out)
{
	.reg .pred %p<5>;
	.reg .b32 %r<4>;
	.reg .b64 %a<2>;
	.shared .b32 sum;
	mov.u32 %r0, %tid.x;
	setp.eq.u32 %p0, %r0, 0;
	@%p0 st.shared.b32 [sum], 0;
	bar.sync 0;
	setp.eq.u32 %p1, %r0, 7;
	setp.lt.u32 %p2, %r0, 40;
	mov.b32 %r1, 2;
LOOP:
	@%p1 ret;
	@%p2 bra DONE;
	red.shared.add.u32 [sum], 1;
	sub.u32 %r1, %r1, 1;
	setp.ne.u32 %p3, %r1, 0;
	@%p3 bra LOOP;
DONE:
	bar.sync 0;
	ld.shared.b32 %r2, [sum];
	ld.param.u64 %a0, [out];
	mad.wide.u32 %a1, %r0, 4, %a0;
	st.global.b32 [%a1], %r2;
	ret;
}
";
    let kernel = lower::load(&lanescope_ptx::parse(text), "late", lower::Options::default()).unwrap();
    let out = levels::run(&kernel, SHAPE, &[Input::Buffer(vec![0; 4 * random::THREADS])]).unwrap();
    for (thread, word) in out[0].chunks(4).enumerate() {
        let sum = u32::from_le_bytes(word.try_into().unwrap());
        assert_eq!(sum, if thread == 7 { 0 } else { 2 * 24 }, "thread {thread}");
    }
}

#[derive(Default)]
struct Tally {
    /// Programs that agreed on all architectures.
    equal: u64,
    known: String,
    faults: String,
}

/// Runs programs `start..end`.
fn batch(oracles: &Path, archs: &[&str], start: u64, end: u64, tally: &mut Tally) {
    let mut text = String::from(random::HEADER);
    (start..end).for_each(|n| _ = random::program(n, &[], &mut text));
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("random-{start}.ptx"));
    let parse = lanescope_ptx::parse(&text);
    assert!(parse.is_ok(), "{}: {:?}", path.display(), parse.diagnostics.first());
    let assemble = |arch: &&str| levels::assemble(oracles, &path, &text, arch, &[]).unwrap_or_else(|e| panic!("{e}"));
    let cubins: Vec<_> = archs.iter().map(assemble).collect();
    let modules = cubins.iter().map(|c| Module::parse(c).unwrap()).collect::<Vec<_>>();
    for n in start..end {
        let (high, mut equal) = (as_ptx(&parse, n), true);
        for (arch, module) in archs.iter().zip(&modules) {
            let Some(what) = difference(&high, &as_machine_code(module, n)) else { continue };
            equal = false;
            if let Some((.., why)) = KNOWN.iter().find(|k| k.0 == n && k.1.contains(arch)) {
                writeln!(tally.known, "known: k{n} {arch}: {why}").unwrap();
            } else {
                let rest = reduce(oracles, n, arch, &what);
                writeln!(tally.faults, "k{n} {arch}: {what}\n  {rest}").unwrap();
            }
        }
        tally.equal += u64::from(equal);
    }
    let _ = std::fs::remove_file(&path);
}

type Outputs = Result<Vec<Vec<u8>>, String>;

fn inputs(n: u64) -> [Input; 3] {
    let (out, sums) = (vec![0; random::THREADS * random::STRIDE], vec![0; 4 * random::SUMS]);
    [Input::Buffer(out), Input::Buffer(random::input(n)), Input::Buffer(sums)]
}

const SHAPE: Shape = Shape { grid: 1, block: random::THREADS as u32, dynamic_shared: 0, max_inst: 10_000_000 };

fn as_ptx(parse: &lanescope_ptx::Parse, n: u64) -> Outputs {
    let kernel = lower::load(parse, &format!("k{n}"), lower::Options::default());
    levels::run(&kernel.map_err(|e| format!("{:?}", e.first()))?, SHAPE, &inputs(n))
}

fn as_machine_code(module: &Module<'_>, n: u64) -> Outputs {
    levels::run(&levels::machine_code(module, &format!("k{n}"))?, SHAPE, &inputs(n))
}

/// Leaves out statements of a program as long as it differs. Returns where the rest is, and at which levels of
/// optimisation ptxas makes of the rest what PTX says: if at some, it has changed the meaning at the others, or an
/// instruction that only they choose is wrong here.
fn reduce(oracles: &Path, n: u64, arch: &str, first: &str) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let scratch = folder.join(format!("random-{n}-{arch}-part.ptx"));
    let what = |without: &[usize], level: &str| {
        let mut text = String::from(random::HEADER);
        random::program(n, without, &mut text);
        let cubin = levels::assemble(oracles, &scratch, &text, arch, &[level]).ok()?;
        let low = as_machine_code(&Module::parse(&cubin).ok()?, n);
        difference(&as_ptx(&lanescope_ptx::parse(&text), n), &low)
    };
    let count = random::program(n, &[], &mut String::new());
    let (mut without, mut size) = (Vec::new(), count.div_ceil(2));
    while size > 0 {
        let mut fewer = false;
        for start in (0..count).step_by(size) {
            let more: Vec<usize> = (start..count.min(start + size)).filter(|i| !without.contains(i)).collect();
            let tried: Vec<usize> = without.iter().copied().chain(more.iter().copied()).collect();
            let alike = |what: String| what.starts_with("as ") == first.starts_with("as ");
            if !more.is_empty() && what(&tried, "-O3").is_some_and(alike) {
                (without, fewer) = (tried, true);
            }
        }
        size = if size == 1 && fewer { 1 } else { size / 2 };
    }
    let levels = ["-O0", "-O1", "-O2", "-O3"].map(|l| format!("{l} {}", what(&without, l).unwrap_or("equal".into())));
    let mut text = String::from(random::HEADER);
    random::program(n, &without, &mut text);
    let path = folder.join(format!("random-{n}-{arch}.ptx"));
    let _ = (std::fs::write(&path, text), std::fs::remove_file(&scratch));
    format!("left of it: {}; {}", path.display(), levels.join("; "))
}

/// The first difference of the outputs; any two NaN are equal.
fn difference(high: &Outputs, low: &Outputs) -> Option<String> {
    let (high, low) = match (high, low) {
        (Ok(high), Ok(low)) => (high, low),
        (Err(e), _) => return Some(format!("as PTX: {e}")),
        (_, Err(e)) => return Some(format!("as machine code: {e}")),
    };
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
