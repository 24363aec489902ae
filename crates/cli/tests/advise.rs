//! Advice: what it says about launches that an H200 was measured on (`advise/cases.txt`), its figures against the H200's
//! counts of the same launches in sorted order, predictions against runs, files that it writes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use lanescope::advise::{Advised, Settings, Watch, advise, emit};
use lanescope::analysis::advise::{Confidence, Method, Verdict};
use lanescope::run::{Prepared, RunError, Settings as RunSettings};
use libtest_mimic::{Arguments, Failed, Trial};

/// How far a prediction may be from the run that it predicts.
const NEAR: f64 = 0.03;

/// Launches, and the same ones with their data in the order of a stable sort.
const SORTED: &[(&str, &str)] = &[
    ("04-csr-row-per-thread/csr_thread_per_row", "csr_thread_per_row.rows_sorted_by_length"),
    ("06-material-switch/shade.random", "shade.sorted"),
    ("11-bfs-frontier/expand", "expand.frontier_sorted_by_degree"),
    ("16-lexer-per-string/count_tokens", "count_tokens.length_sorted"),
    ("22-lockstep-while/lockstep", "lockstep.sorted"),
];

/// Examples whose data can be put into a better order.
const EXAMPLES: &[&str] = &[
    "frontier/found",
    "integrate/mixed",
    "interpreter/mixed",
    "materials/pixels",
    "moe/arrival",
    "moe/ballot",
    "particles/birth",
    "points/random",
    "probe/lookups",
    "spmv/spmv",
    "spmv/thread",
    "streams/booked",
    "tokenizer/tokenizer",
];

fn main() {
    let args = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cases = include_str!("advise/cases.txt");
    let mut trials = Vec::new();
    for line in cases.lines().filter(|l| !l.starts_with('#') && !l.is_empty()) {
        let fields: Vec<String> = line.split('|').map(|f| f.trim().to_owned()).collect();
        let file = root.join("tests/groundtruth").join(format!("{}.toml", fields[0]));
        trials.push(Trial::test(fields[0].clone(), move || case(&file, &fields)).with_kind("case"));
    }
    for &(launch, sorted) in SORTED {
        let file = root.join("tests/groundtruth").join(format!("{launch}.toml"));
        let sorted = file.with_file_name(format!("{sorted}.toml"));
        trials.push(Trial::test(launch, move || like_the_sorted_one(&file, &sorted)).with_kind("sorted"));
    }
    for &name in EXAMPLES {
        let file = root.join("examples").join(format!("{name}.toml"));
        trials.push(Trial::test(name, move || predicted(&advised(&file)?)).with_kind("example"));
    }
    let csr = root.join("tests/groundtruth/04-csr-row-per-thread/csr_thread_per_row.toml");
    type Test = fn(&Path) -> Result<(), Failed>;
    let more: [(&str, Test); 4] = [
        ("a warp for each short row is told to lose", short_rows),
        ("one and two threads say the same", any_number_of_threads),
        ("the command prints JSON and writes a launch that runs", command),
        ("no order is trusted where threads talk", threads_that_talk),
    ];
    for (name, test) in more {
        let csr = csr.clone();
        trials.push(Trial::test(name, move || test(&csr)));
    }
    libtest_mimic::run(&args, trials).exit();
}

fn advised(file: &Path) -> Result<Advised, Failed> {
    advise(file, &Settings::default(), &Watch::default()).map_err(|e| e.to_string().into())
}

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Result<(), Failed> {
    if holds { Ok(()) } else { Err(otherwise().into()) }
}

fn case(file: &Path, fields: &[String]) -> Result<(), Failed> {
    let [_, verdict, after, figure, words] = fields else { return Err("a case has five fields".into()) };
    let advised = match advise(file, &Settings::default(), &Watch::default()) {
        Err(e) => {
            let text = e.to_string();
            return ensure(verdict == "refused" && text.contains(words.as_str()), || text);
        }
        Ok(advised) => advised,
    };
    let advice = &advised.advice;
    let found = advice.best().map_or("leave", |f| f.method.name());
    ensure(found == verdict, || format!("{found}, not {verdict}: {}", advice.summary))?;
    ensure(advice.summary.contains(words.as_str()), || advice.summary.clone())?;
    if let Some(fix) = advice.best() {
        ensure(fix.confidence.name() == figure, || format!("{:?}", fix.confidence))?;
        ensure(after.is_empty() || fix.after().to_string() == *after, || format!("{} after", fix.after()))?;
    }
    predicted(&advised)
}

/// Every prediction that was run again, but for machines that only PTX has.
fn predicted(advised: &Advised) -> Result<(), Failed> {
    for fix in &advised.advice.fixes {
        let Some(confirmed) = fix.confirmed else { continue };
        let off = fix.predicted as f64 / confirmed as f64 - 1.0;
        ensure(off.abs() <= NEAR, || format!("{}: {} predicted, {confirmed} confirmed", fix.title, fix.predicted))?;
    }
    Ok(())
}

/// The confirmed figure is what the H200 counted of the sorted launch, and the data are the same bytes.
fn like_the_sorted_one(file: &Path, sorted: &Path) -> Result<(), Failed> {
    let advised = advised(file)?;
    let fix = advised.advice.best().ok_or("nothing is advised")?;
    let expected = std::fs::read_to_string(sorted.with_extension("expected.json"))?;
    let expected: serde_json::Value = serde_json::from_str(&expected)?;
    let counted = expected["totals"]["inst_executed"].as_u64();
    ensure(fix.confirmed == counted, || format!("{:?} confirmed, {counted:?} on an H200", fix.confirmed))?;
    ensure(fix.confidence == Confidence::Confirmed, || format!("{:?}", fix.confidence))?;
    let dir = tempfile::tempdir()?;
    let (written, _) = emit(&advised, dir.path())?;
    let open = |path: &Path| Prepared::open(path, &RunSettings::default()).map_err(|e| Failed::from(e.to_string()));
    let (ours, theirs) = (open(&written)?, open(sorted)?);
    for (i, (a, b)) in ours.data.iter().zip(&theirs.data).enumerate() {
        ensure(a == b, || format!("argument {i} differs from the sorted launch's"))?;
    }
    Ok(())
}

fn short_rows(file: &Path) -> Result<(), Failed> {
    let advised = advised(file)?;
    let of = |m: Method| advised.advice.fixes.iter().find(|f| f.method == m).ok_or("not among the candidates");
    let warp = of(Method::WarpPerItem)?;
    // The kernel written that way issues 66,304.
    ensure(warp.saved() < 0 && warp.after().abs_diff(66_304) < 2_000, || format!("{}", warp.after()))?;
    let sub = advised.advice.fixes.iter().find(|f| matches!(f.method, Method::SubWarp(_))).ok_or("no sub-warp")?;
    ensure(sub.saved() > 0 && sub.after() < 20_874, || format!("{}", sub.after()))
}

fn any_number_of_threads(file: &Path) -> Result<(), Failed> {
    let with = |threads| {
        let run = RunSettings { threads, ..RunSettings::default() };
        advise(file, &Settings { run, ..Settings::default() }, &Watch::default())
            .map(|a| a.advice)
            .map_err(|e: RunError| Failed::from(e.to_string()))
    };
    ensure(with(1)? == with(2)?, || "the advice differs".into())
}

fn threads_that_talk(file: &Path) -> Result<(), Failed> {
    let advised = advised(&file.with_file_name("csr_eight_per_row.toml"))?;
    let tried = advised.advice.fixes.iter().filter(|f| f.confidence == Confidence::Refuted);
    let why: Vec<&String> = tried.flat_map(|f| &f.caveats).filter(|c| c.contains("shuffles")).collect();
    ensure(!why.is_empty(), || "no fix was refuted, with the reason".into())?;
    ensure(matches!(advised.advice.verdict, Verdict::LeaveIt { .. }), || advised.advice.summary.clone())?;
    // Without a run nothing is claimed either.
    let settings = Settings { confirm: 0, ..Settings::default() };
    let blind = advise(&file.with_file_name("csr_eight_per_row.toml"), &settings, &Watch::default());
    let blind = blind.map_err(|e| Failed::from(e.to_string()))?.advice;
    ensure(matches!(blind.verdict, Verdict::LeaveIt { .. }), || blind.summary.clone())
}

fn lanescope(args: &[&str]) -> Result<std::process::Output, Failed> {
    Ok(Command::new(env!("CARGO_BIN_EXE_lanescope")).args(args).output()?)
}

fn command(file: &Path) -> Result<(), Failed> {
    let dir = tempfile::tempdir()?;
    let at = dir.path().join("sorted");
    let (file, to) = (file.display().to_string(), at.display().to_string());
    let out = lanescope(&["advise", &file, "--format", "json", "--emit", &to])?;
    ensure(out.status.success(), || String::from_utf8_lossy(&out.stderr).into_owned())?;
    let json: serde_json::Value = serde_json::from_slice(&out.stdout)?;
    ensure(json["schema"] == "lanescope.advice/1", || json["schema"].to_string())?;
    ensure(json["worth_fixing"] == true && json["fixes"][0]["confirmed"] == 7032, || json["fixes"].to_string())?;
    let launch: PathBuf = at.join("launch.toml");
    let again = lanescope(&["run", &launch.display().to_string(), "--format", "json"])?;
    let profile: serde_json::Value = serde_json::from_slice(&again.stdout)?;
    ensure(profile["totals"]["inst_executed"] == 7032, || profile["totals"].to_string())?;
    let names: BTreeMap<String, u64> = std::fs::read_dir(&at)?
        .flatten()
        .filter_map(|e| Some((e.file_name().to_string_lossy().into_owned(), e.metadata().ok()?.len())))
        .collect();
    ensure(names.keys().all(|n| !n.starts_with('.')), || format!("{names:?}"))?;
    // A launch that is to be left as it is has no files; a folder that is a file cannot hold any.
    let leave = Path::new(&file).with_file_name("../01-tail-guard/axpy_guarded.toml").display().to_string();
    for (launch, to) in [(&leave, dir.path().join("none")), (&file, launch)] {
        let out = lanescope(&["advise", launch, "--emit", &to.display().to_string()])?;
        ensure(out.status.code() == Some(2), || format!("{:?}", out.status))?;
    }
    ensure(!dir.path().join("none").exists(), || "a folder for nothing".into())
}
