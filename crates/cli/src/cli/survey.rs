//! `lanescope survey`.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use lanescope::ir::flow::RegionClass;
use lanescope::output::write_file;
use lanescope::report::survey::{Show, Survey, csv, html, markdown, text};
use lanescope::survey::{Progress, Request, patch, survey};

use super::print;

/// Flags of `survey`.
#[derive(clap::Args)]
pub(super) struct Args {
    /// Cubins, fatbins, libraries, executables, static libraries, wheels; folders are searched for them.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// How to print the result.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Write to this file instead; it appears whole or not at all.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Only this architecture, such as sm_90. May be given more than once.
    #[arg(long, value_name = "ARCH")]
    arch: Vec<String>,
    /// A row for each kernel in text and Markdown; the other formats have them anyway.
    #[arg(long)]
    kernels: bool,
    /// A column for each file and architecture instead of each architecture.
    #[arg(long)]
    by_file: bool,
    /// How to tell which branches may split a warp.
    #[arg(long, value_enum, default_value_t)]
    verdict: By,
    /// List each branch, in JSON.
    #[arg(long)]
    branches: bool,
    /// Instead of counting, rewrite the class of convergence regions in one cubin (sm_100 and later).
    #[arg(long, requires_all = ["patch_kernel", "class", "output"], help_heading = "Bit-flip laboratory")]
    patch: bool,
    /// The kernel to patch (mangled, demangled or base name).
    #[arg(long, value_name = "NAME", requires = "patch", help_heading = "Bit-flip laboratory")]
    patch_kernel: Option<String>,
    /// The class that its regions get.
    #[arg(long, value_enum, requires = "patch", help_heading = "Bit-flip laboratory")]
    class: Option<Class>,
    /// Only the region whose BSSY stands at this offset (hexadecimal with or without 0x, as disasm prints it).
    #[arg(long, value_name = "PC", requires = "patch", value_parser = hex, help_heading = "Bit-flip laboratory")]
    region: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tables for a terminal.
    #[default]
    Text,
    /// Everything, for programs.
    Json,
    /// A line for each kernel.
    Csv,
    /// Tables for a document.
    Markdown,
    /// One page with all kernels.
    Html,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum By {
    /// Taint from thread indices, atomics and local memory.
    #[default]
    Taint,
    /// The uniformity analysis beside it, in a table of its own; much slower.
    Uniformity,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Class {
    /// No modifier.
    Plain,
    /// .RECONVERGENT
    Reconvergent,
    /// .RELIABLE
    Reliable,
}

fn hex(text: &str) -> Result<u32, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u32::from_str_radix(digits, 16).map_err(|e| format!("not a hexadecimal offset: {e}"))
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    if args.patch {
        return laboratory(args);
    }
    let request = Request {
        paths: args.paths.clone(),
        archs: args.arch.clone(),
        branches: args.branches,
        uniformity: args.verdict == By::Uniformity,
    };
    let display = Display::new();
    let found = survey(&request, &|p| display.update(p));
    display.finish();
    for (place, why) in found.errors() {
        let style = anstyle::AnsiColor::Yellow.on_default().bold();
        // The report has them too; a person should see them where the report goes to a file.
        if args.output.is_some() || args.format != Format::Text {
            let _ = writeln!(anstream::stderr(), "{style}not read{style:#}: {place}: {why}");
        }
    }
    let nothing = found.files.iter().all(|f| f.kernels.is_empty());
    if nothing {
        let why = found.errors().next().map(|(place, why)| format!("{place}: {why}"));
        anyhow::bail!(why.unwrap_or_else(|| "there is no GPU machine code in what was given".to_owned()));
    }
    let text = render(&found, args)?;
    match &args.output {
        Some(path) => write_file(path, text.into_bytes())?,
        None => print(&text)?,
    }
    Ok(0)
}

fn render(found: &Survey, args: &Args) -> anyhow::Result<String> {
    let show = Show { by_file: args.by_file, kernels: args.kernels };
    Ok(match args.format {
        // Styles belong to a terminal, not to a file.
        Format::Text if args.output.is_some() => anstream::adapter::strip_str(&text(found, show)).to_string(),
        Format::Text => text(found, show),
        Format::Json => serde_json::to_string_pretty(found)? + "\n",
        Format::Csv => csv(found),
        Format::Markdown => markdown(found, show),
        Format::Html => html(found, show),
    })
}

fn laboratory(args: &Args) -> anyhow::Result<u8> {
    let [path] = args.paths.as_slice() else { anyhow::bail!("--patch takes one cubin") };
    let (Some(name), Some(class), Some(output)) = (&args.patch_kernel, args.class, &args.output) else {
        anyhow::bail!("--patch needs --patch-kernel, --class and --output");
    };
    let class = match class {
        Class::Plain => RegionClass::Plain,
        Class::Reconvergent => RegionClass::Reconvergent,
        Class::Reliable => RegionClass::Reliable,
    };
    let shown = path.display();
    let bytes = std::fs::read(path).map_err(|e| anyhow::anyhow!("{shown}: {e}"))?;
    let done = patch::patch(&bytes, name, args.region, class).map_err(|e| anyhow::anyhow!("{shown}: {e}"))?;
    let mut out = String::new();
    for change in &done.patched.changes {
        out.push_str(&format!("{:#06x}  {}  ->  {}\n", change.pc, change.before, change.after));
    }
    write_file(output, done.patched.bytes)?;
    out.push_str(&format!(
        "{}: {} instructions of {} regions changed; no other bit differs\n",
        output.display(),
        done.patched.changes.len(),
        done.regions
    ));
    print(&out)?;
    if let Some(section) = done.patched.second_encodings.first() {
        let style = anstyle::AnsiColor::Yellow.on_default().bold();
        let _ = writeln!(
            anstream::stderr(),
            "{style}warning{style:#}: {} sections such as {section} hold a second encoding of this code, which was not \
             patched\n  run the cubin on exactly its own architecture: on another one the driver may use the second encoding",
            done.patched.second_encodings.len()
        );
    }
    Ok(0)
}

/// Nothing is shown before this.
const QUIET: Duration = Duration::from_secs(1);
/// Time between two plain lines.
const PAUSE: Duration = Duration::from_secs(10);

/// Progress on standard error: a bar on a terminal, a line now and then elsewhere.
struct Display {
    start: Instant,
    state: Mutex<(Option<ProgressBar>, Option<Instant>)>,
}

impl Display {
    fn new() -> Display {
        Display { start: Instant::now(), state: Mutex::new((None, None)) }
    }

    /// Told from any thread; who cannot have the lock at once leaves the display to the thread that has it.
    fn update(&self, progress: &Progress) {
        if self.start.elapsed() < QUIET {
            return;
        }
        let Ok(mut state) = self.state.try_lock() else { return };
        let load = |n: &std::sync::atomic::AtomicU64| n.load(Relaxed);
        let (files, total, kernels) = (load(&progress.files), load(&progress.total), load(&progress.kernels));
        if std::io::stderr().is_terminal() {
            let bar = state.0.get_or_insert_with(|| {
                let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
                let style = ProgressStyle::with_template("{bar:30} {pos} of {len} files, {msg}, {elapsed}");
                bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
            });
            bar.set_position(files);
            bar.set_message(format!("{kernels} kernels"));
        } else if state.1.is_none_or(|t| t.elapsed() > PAUSE) {
            state.1 = Some(Instant::now());
            let seconds = self.start.elapsed().as_secs();
            anstream::eprintln!("survey: {files} of {total} files, {kernels} kernels after {seconds} s");
        }
    }

    fn finish(&self) {
        if let Ok(state) = self.state.lock()
            && let Some(bar) = &state.0
        {
            bar.finish_and_clear();
        }
    }
}
