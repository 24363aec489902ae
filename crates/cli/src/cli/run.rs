//! `lanescope run`.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use lanescope::report;
use lanescope::run::{Prepared, Ran, RunError, Settings, Stopped};
use lanescope::sim::{PrintedText, Progress, TraceRequest};
use lanescope::{html, ir::Severity, output, sources};

use super::running::Running;
use super::{FINDINGS, Format, print, print_json, tools};
use crate::progress::Blocks;

/// Flags of `run`.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The launch file (TOML): module, kernel, grid, block and arguments.
    #[arg(required_unless_present = "trace")]
    launch: Option<PathBuf>,
    /// How to print the result.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Write every buffer after the run as DIR/arg<N>.npy.
    #[arg(long, value_name = "DIR")]
    dump: Option<PathBuf>,
    /// Write the lost lane slots as a flame graph, by cause and source line: a picture if FILE ends in .svg, else collapsed
    /// stacks, a line each.
    #[arg(long, value_name = "FILE", conflicts_with = "compare_levels")]
    flame: Option<PathBuf>,
    /// Write the report as one HTML page that needs nothing else: source and code side by side, the lanes of a warp over
    /// time, causes.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["compare_levels", "trace"])]
    html: Option<PathBuf>,
    /// Warps whose lanes the page shows over time. Default: the one that loses most lane slots, for which the launch runs twice.
    #[arg(long, value_name = "BLOCK,WARP;...", requires = "html")]
    html_warps: Option<String>,
    /// Steps of each of these warps at most.
    #[arg(long, value_name = "N", requires = "html", default_value_t = html::STEPS)]
    html_steps: usize,
    /// Show the groups and masks of one warp step by step instead of the report: number of the block (x fastest)
    /// and of the warp in it, 0,0 unless given.
    #[arg(long, value_name = "BLOCK,WARP", num_args = 0..=1, default_missing_value = "0,0", conflicts_with = "format")]
    trace: Option<String>,
    /// With --trace: tell one divergent branch of the warp in the textbook's seven steps instead, with its masks.
    #[arg(long, requires = "trace")]
    steps: bool,
    /// Steps that --trace looks at. Default: 1000, with --steps 100000.
    #[arg(long, value_name = "N")]
    trace_steps: Option<usize>,
    /// Folder with the source files, to show their text; the launch file's folder is searched too.
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
    /// Show what each architecture's SASS made of each PTX branch, and what it costs. For a .cu module, or a .ptx module
    /// that ptxas assembles; --arch may name several, separated by commas.
    #[arg(long, conflicts_with_all = ["trace", "dump", "fail_on", "model", "warp_size"])]
    compare_levels: bool,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    tools: tools::Compilers,
    /// Check synchronisation and shared memory while running: masks that name absent lanes, races, barriers that only some
    /// threads come to, reads of what nobody wrote. Slower.
    #[arg(long, conflicts_with_all = ["compare_levels", "trace"])]
    check: bool,
    /// Exit with 1 if there is a finding of this severity or above.
    #[arg(long, value_enum, value_name = "SEVERITY")]
    fail_on: Option<FailOn>,
}

/// The severity from which on findings make the command fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum FailOn {
    Info,
    Warning,
    Error,
}

impl From<FailOn> for Severity {
    fn from(f: FailOn) -> Severity {
        match f {
            FailOn::Info => Severity::Info,
            FailOn::Warning => Severity::Warning,
            FailOn::Error => Severity::Error,
        }
    }
}

fn trace_request(text: &str) -> Result<(u64, u32), String> {
    let bad = || format!("expected BLOCK,WARP such as 0,0; found `{text}`");
    let (block, warp) = text.split_once(',').unwrap_or((text, "0"));
    Ok((block.trim().parse().map_err(|_| bad())?, warp.trim().parse().map_err(|_| bad())?))
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    // `--trace FILE`: the value was meant as the launch file.
    let (launch, trace) = match (&args.launch, &args.trace) {
        (Some(launch), trace) => (launch.clone(), trace.as_deref()),
        (None, Some(value)) if trace_request(value).is_err() => (value.into(), Some("0,0")),
        (None, _) => anyhow::bail!("no launch file is given: lanescope run LAUNCH.toml --trace 0,0"),
    };
    let max_steps = args.trace_steps.unwrap_or(if args.steps { 100_000 } else { 1000 });
    let trace = match trace.map(trace_request).transpose() {
        Ok(request) => request.map(|(block, warp)| TraceRequest { block, warp, max_steps }),
        Err(e) => anyhow::bail!("--trace: {e}"),
    };
    let settings = Settings {
        traces: trace.into_iter().collect(),
        arch: args.running.arch.clone().filter(|_| !args.compare_levels),
        check: args.check,
        tools: args.tools.tools(),
        ..args.running.settings()?
    };
    if args.compare_levels {
        let archs: Vec<String> =
            args.running.arch.iter().flat_map(|a| a.split(',')).map(|a| a.trim().to_owned()).collect();
        let comparison = lanescope::levels::compare(&launch, &archs, &settings)?;
        match args.format {
            Format::Text => print(&report::levels::text(&comparison))?,
            Format::Json => print_json(&comparison)?,
        }
        return Ok(0);
    }
    let prepared = Prepared::open(&launch, &settings)?;
    if let Some(built) = &prepared.built {
        tools::show_log(built)?;
    }
    if let Some(request) = trace {
        html::check(&prepared, request.block, request.warp, "--trace")?;
    }
    let warps = match &args.html_warps {
        Some(text) => html::warps(&prepared, text, "--html-warps")?,
        None => Vec::new(),
    };
    let prepared = if warps.is_empty() { prepared } else { prepared.traced(html::requests(&warps, args.html_steps)) };
    // The page shows the warp that loses most, which is known after a run.
    let again = (args.html.is_some() && warps.is_empty()).then(|| prepared.clone());
    let dir = prepared.dir.clone();
    let blocks = Blocks::new();
    let result = prepared.run(Some(&|done, total| blocks.update(done, total)));
    blocks.finish();
    if let Err(RunError::Sim(stopped)) = &result {
        show_stopped(stopped, trace, args.format)?;
    }
    let ran = result?;
    output::outs(&ran, &dir)?;
    if let Some(dump) = &args.dump {
        output::dump(&ran, dump)?;
    }
    if let Some(file) = &args.flame {
        write_flame(&ran, file)?;
    }
    if let Some(file) = &args.html {
        let blocks = Blocks::new();
        blocks.stage("tracing the warp that loses most");
        let watch: Progress<'_> = &|done, total| blocks.update(done, total);
        let traced = again.map(|p| html::trace_again(p, &ran, args.html_steps, Some(watch))).transpose();
        blocks.finish();
        let traced = traced?;
        let page = html::Content { ran: &ran, traced: traced.as_ref(), ..html::Content::new(&ran, &dir) };
        html::write(&html::Content { folder: args.source.as_deref(), ..page }, file)?;
    }
    if trace.is_some() {
        print_trace(&ran, trace, args.steps)?;
    } else {
        show(args, &ran, &dir)?;
    }
    let limit = args.fail_on.map(Severity::from);
    let fails = limit.is_some_and(|limit| ran.analysis.findings.iter().any(|f| f.severity >= limit));
    Ok(if fails { FINDINGS } else { 0 })
}

fn write_flame(ran: &Ran, file: &Path) -> anyhow::Result<()> {
    let stacks = lanescope::analysis::stacks::lost(&ran.kernel, &ran.analysis.losses, lanescope::names::demangle);
    let bytes = if file.extension().is_some_and(|e| e.eq_ignore_ascii_case("svg")) {
        report::flame::svg(&stacks, &ran.demangled).map_err(|e| anyhow::anyhow!("--flame {}: {e}", file.display()))?
    } else {
        report::flame::collapsed(&stacks).into_bytes()
    };
    Ok(output::write_file(file, bytes)?)
}

fn show(args: &Args, ran: &Ran, dir: &Path) -> anyhow::Result<()> {
    let source = args.source.as_deref();
    let sources = if args.format == Format::Text { sources::of(ran, dir, source) } else { Default::default() };
    let warnings = ran.warnings();
    let input = ran.input(&sources, &warnings);
    let lost = ran.outcome.printed_lost;
    let printed = printed(&ran.outcome.printed);
    match args.format {
        Format::Text => {
            print(&report::text::report_with(&input, ran.roofline_view().as_ref()))?;
            print(&report::printed::text(&printed, lost))
        }
        Format::Json => {
            for w in &warnings {
                writeln!(anstream::stderr(), "note: {w}")?;
            }
            let view = ran.roofline_view();
            print_json(&report::printed::WithPrinted {
                profile: report::json::profile(&input),
                roofline: view.as_ref().map(report::roofline::json),
                printf: &printed,
                printf_lost: lost,
            })
        }
    }
}

fn printed(calls: &[PrintedText]) -> Vec<report::printed::Printed<'_>> {
    calls.iter().map(|p| report::printed::Printed { block: p.block, thread: p.thread, text: &p.text }).collect()
}

/// What a launch that did not end well leaves to look at: the error itself goes to standard error.
fn show_stopped(stopped: &Stopped, request: Option<TraceRequest>, format: Format) -> anyhow::Result<()> {
    if format != Format::Text {
        return Ok(());
    }
    if let Some(view) = request.and_then(|r| stopped.trace(r.block, r.warp)) {
        print(&report::trace::text(&stopped.kernel, &view))?;
    }
    print(&report::printed::text(&printed(&stopped.failure.printed), stopped.failure.printed_lost))
}

fn print_trace(ran: &Ran, request: Option<TraceRequest>, steps: bool) -> anyhow::Result<()> {
    let view = request.and_then(|r| ran.trace(r.block, r.warp));
    let Some(view) = view else { anyhow::bail!("the warp asked for was not run") };
    let show = if steps { report::walk::text_of } else { report::trace::text };
    print(&show(&ran.kernel, &view))
}
