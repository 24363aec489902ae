//! `lanescope advise`.

use std::io::Write;
use std::path::PathBuf;

use lanescope::advise::{Advised, Settings, Stage, Watch, advise};
use lanescope::html;
use lanescope::report;
use lanescope::run::Settings as RunSettings;

use super::running::Running;
use super::{Format, print, print_json, tools};
use crate::progress::Blocks;

/// Flags of `advise`.
#[derive(clap::Args)]
pub(super) struct Args {
    /// The launch file (TOML): module, kernel, grid, block and arguments.
    launch: PathBuf,
    /// How to print the result.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Candidates to show.
    #[arg(long, value_name = "N", default_value_t = 8)]
    top: usize,
    /// Fixes to run again, of those that only move data.
    #[arg(long, value_name = "N", default_value_t = lanescope::advise::CONFIRMED)]
    confirm: usize,
    /// Run no fix again: predictions only.
    #[arg(long, conflicts_with_all = ["confirm", "emit"])]
    no_confirm: bool,
    /// Write the launch with its data in the best order found into DIR: launch.toml, the module and the arrays.
    #[arg(long, value_name = "DIR")]
    emit: Option<PathBuf>,
    /// Write the advice and the report as one HTML page that needs nothing else, with the lanes of a warp before and after
    /// the fix.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    tools: tools::Compilers,
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let settings = Settings {
        run: RunSettings { tools: args.tools.tools(), ..args.running.settings()? },
        confirm: if args.no_confirm { 0 } else { args.confirm },
    };
    let blocks = Blocks::new();
    let watch = Watch { stage: &|s| blocks.stage(&words(s)), blocks: Some(&|done, total| blocks.update(done, total)) };
    let result = advise(&args.launch, &settings, &watch);
    blocks.finish();
    let advised = result?;
    if let Some(built) = &advised.prepared.built {
        tools::show_log(built)?;
    }
    let emitted = match &args.emit {
        Some(dir) => {
            let (file, remark) = lanescope::advise::emit(&advised, dir)?;
            if let Some(remark) = remark {
                writeln!(anstream::stderr(), "note: {}: {remark}", file.display())?;
            }
            Some(file.display().to_string())
        }
        None => None,
    };
    if let Some(file) = &args.html {
        page(&advised, file)?;
    }
    let ran = &advised.ran;
    let (warnings, sources) = (ran.warnings(), Default::default());
    let input = ran.input(&sources, &warnings);
    match args.format {
        Format::Text => {
            print(&report::advise::text(&input, &advised.advice, ran.roofline(), args.top))?;
            if let Some(file) = emitted {
                print(&format!("\nwritten: {file}\n"))?;
            }
        }
        Format::Json => {
            for w in &warnings {
                writeln!(anstream::stderr(), "note: {w}")?;
            }
            let roofline = ran.roofline();
            print_json(&report::advise::json(&input, &advised.advice, roofline, emitted.as_deref()))?;
        }
    }
    Ok(0)
}

/// The page: the warp that loses most, and the same one with the fix.
fn page(advised: &Advised, file: &std::path::Path) -> anyhow::Result<()> {
    let (ran, dir) = (&advised.ran, &advised.prepared.dir);
    let blocks = Blocks::new();
    blocks.stage("tracing the warp that loses most");
    let trace = |p| html::trace_again(p, ran, html::STEPS, Some(&|done, total| blocks.update(done, total)));
    let traced = trace(advised.prepared.clone());
    let after = advised.fixed().map(trace).transpose();
    blocks.finish();
    let (traced, after) = (traced?, after?);
    let roofline = ran.roofline();
    let content = html::Content {
        traced: Some(&traced),
        after: after.as_ref(),
        advice: Some(&advised.advice),
        roofline,
        ..html::Content::new(ran, dir)
    };
    Ok(html::write(&content, file)?)
}

fn words(stage: Stage) -> String {
    match stage {
        Stage::Run => "running the launch".into(),
        Stage::Again(1, 1) => "running it with the fix".into(),
        Stage::Again(n, of) => format!("running it with fix {n} of {of}"),
    }
}
