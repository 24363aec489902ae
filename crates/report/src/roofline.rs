//! What a launch costs on a GPU: the section of the terminal report, and the key `roofline` of the profile JSON.

use std::fmt::Write;

use lanescope_analysis::roofline::{Bound, Gain, Range, Roofline};
use lanescope_analysis::words::{count, percent};
use serde::Serialize;

use crate::layout::{Align, Columns, DIM, GOOD, HEAD, PLAIN, WARN, styled, wrap};

const WIDTH: usize = 110;

/// What the section shows.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The estimate.
    pub roofline: &'a Roofline,
    /// Whether the GPU was chosen by the code's architecture, because nobody named one.
    pub assumed: bool,
    /// Architecture of the code, if the GPU has another one.
    pub other_arch: Option<&'a str>,
    /// Warp instructions that full warps would need at best, and what that would gain, if lanes were lost.
    pub full_warps: Option<(u64, &'a Gain)>,
}

/// `12.3 to 45.6 us`.
pub fn time(r: Range) -> String {
    let (unit, name) = match r.high {
        s if s >= 1.0 => (1.0, "s"),
        s if s >= 1e-3 => (1e-3, "ms"),
        _ => (1e-6, "us"),
    };
    let (low, high) = (figure(r.low / unit), figure(r.high / unit));
    if low == high { format!("{low} {name}") } else { format!("{low} to {high} {name}") }
}

/// Three digits, or what a number below 1 needs.
fn figure(x: f64) -> String {
    match x {
        x if x >= 100.0 => count(x.round() as u64),
        x if x >= 10.0 => format!("{x:.1}"),
        x => format!("{x:.2}"),
    }
}

/// `12.3 MB`.
fn bytes(n: u64) -> String {
    match n {
        0..10_000 => format!("{} bytes", count(n)),
        10_000..10_000_000 => format!("{} kB", figure(n as f64 / 1e3)),
        10_000_000..10_000_000_000 => format!("{} MB", figure(n as f64 / 1e6)),
        _ => format!("{} GB", figure(n as f64 / 1e9)),
    }
}

/// The section.
pub fn text(view: &View<'_>) -> String {
    let r = view.roofline;
    let mut out = String::new();
    let heading = format!("Estimated time on {}: {}", r.gpu.with_article(), time(r.time_s));
    let _ = writeln!(out, "\n{}", styled(HEAD, &heading));
    let style = match r.bound {
        Bound::Issue => GOOD,
        _ => WARN,
    };
    let (first, rest) = r.verdict.split_once(' ').unwrap_or((&r.verdict, ""));
    let verdict = wrap(&format!("{first} {rest}"), WIDTH, 2);
    let _ = writeln!(out, "  {}{}", styled(style, first), verdict.strip_prefix(first).unwrap_or(""));
    if let Some((needed, gain)) = view.full_warps {
        let text = match gain.at_most {
            x if x < 1.005 => format!("Full warps ({} warp instructions) would gain nothing.", count(needed)),
            x => format!(
                "Full warps ({} warp instructions, at best) would gain at most {}.",
                count(needed),
                percent(x - 1.0)
            ),
        };
        let _ = writeln!(out, "  {}", wrap(&text, WIDTH, 2));
    }
    table(r, &mut out);
    let _ = writeln!(out, "  {}", styled(DIM, &wrap(&notes(view), WIDTH, 2)));
    out
}

fn table(r: &Roofline, out: &mut String) {
    use Align::{Left, Right};
    let (d, o) = (&r.demand, &r.occupancy);
    let mut c = Columns::new(2, &[Left, Right, Left]);
    let waves = match o.waves {
        w if w < 0.01 => "less than 0.01".to_owned(),
        w if w < 10.0 => format!("{w:.2}"),
        w => figure(w),
    };
    let registers = if o.registers_known { "" } else { ", registers not known" };
    c.row(vec![
        (PLAIN, "occupancy".into()),
        (PLAIN, format!("{} of {} warps", o.warps_per_sm, o.of)),
        (PLAIN, format!("an SM, limited by {}{registers}; {waves} waves of {} blocks an SM", o.limit.name(), o.fits)),
    ]);
    let longest = d.longest_warp.map_or(String::new(), |n| format!("; the longest warp issues {}", count(n)));
    c.row(vec![
        (PLAIN, "issue".into()),
        (PLAIN, time(r.issue_s)),
        (PLAIN, format!("{} warp instructions", count(d.warp_instructions))),
    ]);
    let touched = d.distinct_bytes.map_or(String::new(), |n| format!("{} touched, ", bytes(n)));
    let missed = d.sectors_missed.map_or(String::new(), |n| format!(", {} of them past L1", count(n)));
    let memory = match d.sectors {
        0 => "no global memory".into(),
        n => format!("{touched}{} sectors (ideal {}){missed}", count(n), count(d.sectors_ideal)),
    };
    c.row(vec![(PLAIN, "memory".into()), (PLAIN, time(r.memory_s)), (PLAIN, memory)]);
    let pace = format!("{:.1} cycles an instruction alone{longest}", d.chain.cycles_per_inst);
    c.row(vec![(PLAIN, "latency".into()), (PLAIN, time(r.latency_s)), (PLAIN, pace)]);
    if d.shared_wavefronts > d.shared_wavefronts_ideal {
        let passes = format!("passes through shared memory (ideal {})", count(d.shared_wavefronts_ideal));
        c.row(vec![(PLAIN, "shared".into()), (PLAIN, count(d.shared_wavefronts)), (PLAIN, passes)]);
    }
    c.print(out);
}

fn notes(view: &View<'_>) -> String {
    let gpu = &view.roofline.gpu;
    let mut text = "Each row: the time if that were the only limit. All times are estimates".to_owned();
    if view.assumed {
        let _ = write!(text, "; {} is assumed for {} code, --gpu names another", gpu.name, gpu.arch);
    }
    text.push('.');
    if let Some(arch) = view.other_arch {
        let _ = write!(text, " The code is of {arch}: compiled for {} it would differ.", gpu.arch);
    }
    text
}

/// The key `roofline` of the profile JSON. Times in seconds.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)] // Named as in `lanescope_analysis::roofline`.
pub struct Json<'a> {
    pub gpu: &'a str,
    pub gpu_arch: &'a str,
    pub gpu_assumed: bool,
    pub gpu_source: &'a str,
    /// Always true: the times are no measurements.
    pub estimate: bool,
    pub bound: &'static str,
    pub verdict: &'a str,
    pub time_s: Ends,
    pub issue_s: Ends,
    pub memory_s: Ends,
    pub latency_s: Ends,
    pub occupancy: Occupancy,
    pub warp_instructions: u64,
    pub longest_warp: Option<u64>,
    pub sectors: u64,
    pub sectors_ideal: u64,
    pub sectors_missed: Option<u64>,
    pub distinct_bytes: Option<u64>,
    pub shared_wavefronts: u64,
    pub shared_wavefronts_ideal: u64,
    pub cycles_per_inst: f64,
    /// What full warps would gain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_warps: Option<FullWarps>,
}

/// A range.
#[derive(Clone, Copy, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Ends {
    pub low: f64,
    pub high: f64,
}

/// Resident warps.
#[derive(Clone, Copy, Debug, Serialize)]
#[allow(missing_docs)] // Named as in `lanescope_analysis::roofline::Occupancy`.
pub struct Occupancy {
    pub blocks_per_sm: u32,
    pub warps_per_sm: u32,
    pub of: u32,
    /// `warps`, `blocks`, `registers`, `shared`, `grid` or `does-not-fit`.
    pub limit: &'static str,
    /// `null` if a block does not fit.
    pub waves: Option<f64>,
}

/// What would be gained if no lane were lost.
#[derive(Clone, Copy, Debug, Serialize)]
#[allow(missing_docs)]
pub struct FullWarps {
    pub warp_instructions: u64,
    pub speedup: Ends,
    pub at_most: f64,
}

impl From<Range> for Ends {
    fn from(r: Range) -> Ends {
        Ends { low: r.low, high: r.high }
    }
}

/// The JSON value.
pub fn json<'a>(view: &View<'a>) -> Json<'a> {
    let r = view.roofline;
    let (d, o) = (&r.demand, &r.occupancy);
    Json {
        gpu: &r.gpu.name,
        gpu_arch: &r.gpu.arch,
        gpu_assumed: view.assumed,
        gpu_source: &r.gpu.source,
        estimate: true,
        bound: r.bound.key(),
        verdict: &r.verdict,
        time_s: r.time_s.into(),
        issue_s: r.issue_s.into(),
        memory_s: r.memory_s.into(),
        latency_s: r.latency_s.into(),
        occupancy: Occupancy {
            blocks_per_sm: o.blocks_per_sm,
            warps_per_sm: o.warps_per_sm,
            of: o.of,
            limit: o.limit.key(),
            waves: o.waves.is_finite().then_some(o.waves),
        },
        warp_instructions: d.warp_instructions,
        longest_warp: d.longest_warp,
        sectors: d.sectors,
        sectors_ideal: d.sectors_ideal,
        sectors_missed: d.sectors_missed,
        distinct_bytes: d.distinct_bytes,
        shared_wavefronts: d.shared_wavefronts,
        shared_wavefronts_ideal: d.shared_wavefronts_ideal,
        cycles_per_inst: d.chain.cycles_per_inst,
        full_warps: view.full_warps.map(|(n, gain)| FullWarps {
            warp_instructions: n,
            speedup: gain.speedup.into(),
            at_most: gain.at_most,
        }),
    }
}
