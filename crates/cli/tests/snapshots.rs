//! Text that people read, one test a file: what a launch file is answered with, and what a report looks like.
//!
//! `launch/NAME.toml` is opened as `lanescope run` would; `launch/NAME.expected` holds the error, or the word `ready`.
//! `compile/NAME.toml` is the same for modules that are source, with the compilers that `.ci/oracles.sh` fetches.
//! `reports/NAME.expected` holds the report of the launch that its first line names, `trace` before the name
//! gives the trace of its first warp, `json` the profile. `BLESS=1` writes what came out; read the difference before you commit it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use lanescope::compile::{Cache, Tools};
use lanescope::report::{self, Input};
use lanescope::run::{Prepared, Settings};
use libtest_mimic::{Arguments, Failed, Trial};

fn main() {
    let args = Arguments::from_args();
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut trials = Vec::new();
    for path in files(&here.join("launch"), "toml") {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        trials.push(Trial::test(name, move || launch(&path, &Settings::default())).with_kind("launch"));
    }
    let nvrtc = here.join("../../../oracles/lib/libnvrtc-12.9.so");
    let ptxas = here.join("../../../oracles/bin/ptxas-12.9");
    let absent = !nvrtc.is_file() || !ptxas.is_file();
    if absent {
        anstream::eprintln!("skipped: kind compile needs NVIDIA's compilers; .ci/oracles.sh fetches them");
    }
    for path in files(&here.join("compile"), "toml") {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        // `NAME.via-ptxas.toml` is run as if with --via ptxas.
        let via_ptxas = name.ends_with(".via-ptxas");
        let (nvrtc, ptxas) = (Some(nvrtc.clone()), Some(ptxas.clone()));
        let tools = Tools { nvrtc, ptxas, cache: Cache::Off, via_ptxas, ..Tools::default() };
        let settings = Settings { tools, ..Settings::default() };
        trials.push(Trial::test(name, move || launch(&path, &settings)).with_kind("compile").with_ignored_flag(absent));
    }
    for path in files(&here.join("reports"), "expected") {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        trials.push(Trial::test(name, move || report(&path)).with_kind("report"));
    }
    libtest_mimic::run(&args, trials).exit();
}

fn files(dir: &Path, extension: &str) -> Vec<PathBuf> {
    let mut list: Vec<PathBuf> = std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.extension().is_some_and(|e| e == extension))
        .collect();
    list.sort();
    list
}

fn launch(path: &Path, settings: &Settings) -> Result<(), Failed> {
    let text = match Prepared::open(path, settings) {
        Ok(_) => "ready\n".to_owned(),
        Err(e) => format!("{e}\n"),
    };
    // Messages name files as they were given; the folder of this checkout is no part of the expectation.
    let dir = path.parent().map(|d| format!("{}/", d.display())).unwrap_or_default();
    compare(&path.with_extension("expected"), &text.replace(&dir, ""))
}

fn report(path: &Path) -> Result<(), Failed> {
    let expected = std::fs::read_to_string(path).map_err(Failed::from)?;
    let first = expected.lines().next().unwrap_or("").to_owned();
    let (mode, name) = first.split_once(' ').ok_or("the first line is not `report|trace|json LAUNCH`")?;
    let file = path.with_file_name("../../../../tests/groundtruth").join(name);
    let settings = Settings {
        traces: if mode == "trace" {
            vec![lanescope::sim::TraceRequest { block: 0, warp: 0, max_steps: 60 }]
        } else {
            vec![]
        },
        ..Settings::default()
    };
    let ran = Prepared::open(&file, &settings).and_then(|p| p.run(None)).map_err(|e| Failed::from(e.to_string()))?;
    let sources = HashMap::new();
    let input = Input {
        kernel: &ran.kernel,
        profile: ran.profile(),
        analysis: &ran.analysis,
        demangled: &ran.demangled,
        source: "sim",
        level: report::Level::Sass,
        compiler: None,
        sources: &sources,
        warnings: &[],
    };
    let text = match mode {
        "report" => report::text::report(&input),
        "json" => serde_json::to_string_pretty(&report::json::profile(&input)).map_err(Failed::from)? + "\n",
        "trace" => {
            let trace = ran.trace(0, 0).ok_or("no trace")?;
            report::trace::text(&ran.kernel, &trace)
        }
        _ => return Err(format!("`{mode}` is none of report, trace, json").into()),
    };
    compare(path, &format!("{first}\n{}", anstream::adapter::strip_str(&text)))
}

fn compare(path: &Path, text: &str) -> Result<(), Failed> {
    if std::env::var_os("BLESS").is_some() {
        return std::fs::write(path, text).map_err(Failed::from);
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    if expected == text {
        return Ok(());
    }
    let at = expected.lines().zip(text.lines()).take_while(|(a, b)| a == b).count();
    let line = |t: &str| t.lines().nth(at).unwrap_or("(end)").to_owned();
    Err(format!(
        "{} differs from line {}:\n  expected: {}\n  found:    {}\nBLESS=1 accepts what was found:\n{text}",
        path.display(),
        at + 1,
        line(&expected),
        line(text)
    )
    .into())
}
