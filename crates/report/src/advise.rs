//! Advice about a launch: the one answer, the candidates with their price, the data that decide.

use std::fmt::Write;

use lanescope_analysis::advise::{Advice, Confidence, Fix, Key, KeyKind, Verdict};
use lanescope_analysis::attribution::Cause;
use lanescope_analysis::roofline::{Range, Roofline};
use lanescope_analysis::words::{count, percent, place, share};
use serde::Serialize;

use crate::layout::{Align, Columns, DIM, GOOD, HEAD, PLAIN, WARN, styled, wrap};
use crate::{Input, Level};

/// Columns of the text.
const WIDTH: usize = 110;
/// Characters of a line of a fix's title in the table.
const TITLE: usize = 54;
/// Characters of the longest bar of a histogram.
const BAR: u64 = 40;
/// Causes whose data are shown.
const CAUSES: usize = 4;
/// Bins of a histogram that are shown as lines.
const BINS: usize = 16;

/// For people. At most `top` candidates are shown.
pub fn text(input: &Input<'_>, advice: &Advice, roofline: Option<&Roofline>, top: usize) -> String {
    let mut out = String::new();
    head(input, advice, &mut out);
    let style = if matches!(advice.verdict, Verdict::Fix(_)) { WARN } else { GOOD };
    let (first, rest) = advice.summary.split_once(": ").unwrap_or((&advice.summary, ""));
    let _ = writeln!(out, "\n{}: {}", styled(style, first), wrap(rest, WIDTH, 2));
    if let Some(fix) = advice.best() {
        let _ = writeln!(out, "\n{}", styled(HEAD, "What to do"));
        let _ = writeln!(out, "  {}", wrap(&fix.what_to_do, WIDTH, 2));
        for c in &fix.caveats {
            let _ = writeln!(out, "  - {}", wrap(c, WIDTH, 4));
        }
        if !fix.cost.words.is_empty() {
            let _ = writeln!(out, "  - {}", wrap(&cost(fix), WIDTH, 4));
        }
    }
    if let Some(r) = roofline {
        let _ = writeln!(out, "\n{} {}", styled(HEAD, "Time:"), wrap(&r.verdict, WIDTH, 2));
        if let Some((fix, s)) = advice.best().and_then(|f| Some((f, f.speedup?))) {
            let text = format!("{} would make it {}, an estimate", fix.title, factor(s));
            let _ = writeln!(out, "  {}", wrap(&text, WIDTH, 2));
        }
    }
    candidates(advice, top, &mut out);
    causes(input, advice, &mut out);
    if !advice.caveats.is_empty() {
        let _ = writeln!(out, "\n{}", styled(HEAD, "To keep in mind"));
        for c in &advice.caveats {
            let _ = writeln!(out, "  - {}", wrap(c, WIDTH, 4));
        }
    }
    out
}

fn head(input: &Input<'_>, advice: &Advice, out: &mut String) {
    let code = match input.level {
        Level::Sass => format!("{} SASS", input.kernel.arch),
        Level::Ptx => "PTX, an estimate".to_owned(),
    };
    let _ = writeln!(out, "{}  {code}", styled(HEAD, input.demangled));
    let shape = input.profile.shape;
    let dims = |d: [u32; 3]| format!("{} x {} x {}", d[0], d[1], d[2]);
    let _ = writeln!(
        out,
        "grid {}, block {}: {} warp instructions; full warps would need {} for the same work",
        dims(shape.grid),
        dims(shape.block),
        count(advice.before),
        count(advice.bound)
    );
    for w in input.warnings {
        let _ = writeln!(out, "{} {}", styled(WARN, "note:"), wrap(w, WIDTH, 6));
    }
}

/// `1.2 to 1.4 times as fast`.
fn factor(s: Range) -> String {
    let (low, high) = (format!("{:.2}", s.low), format!("{:.2}", s.high));
    if low == high { format!("{low} times as fast") } else { format!("{low} to {high} times as fast") }
}

fn cost(fix: &Fix) -> String {
    let mut text = format!(
        "Cost of the fix itself: about {} warp instructions and {} bytes of traffic ({}).",
        count(fix.cost.warp_instructions),
        count(fix.cost.bytes),
        fix.cost.words
    );
    if let Some(n) = fix.break_even().filter(|&n| n > 1) {
        let _ = write!(text, " It pays from {} launches with one order on.", count(n));
    }
    text
}

fn candidates(advice: &Advice, top: usize, out: &mut String) {
    if advice.fixes.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{}", styled(HEAD, "Candidates, by warp instructions saved"));
    let mut c = Columns::new(2, &[Align::Right, Align::Right, Align::Right, Align::Left, Align::Right, Align::Left]);
    c.header(&["after", "saved", "share", "figure", "own cost", "fix"]);
    for (i, fix) in advice.fixes.iter().take(top).enumerate() {
        let chosen = matches!(advice.verdict, Verdict::Fix(best) if best == i);
        let saved = fix.saved();
        let sign = if saved < 0 { "-" } else { "" };
        let style = if saved < 0 { DIM } else { PLAIN };
        c.row(vec![
            (style, count(fix.after())),
            (style, format!("{sign}{}", count(saved.unsigned_abs()))),
            (style, format!("{sign}{}", share(saved.unsigned_abs(), advice.before.into()))),
            (if fix.confidence == Confidence::Confirmed { GOOD } else { style }, fix.confidence.name().to_owned()),
            (style, if fix.cost.warp_instructions > 0 { count(fix.cost.warp_instructions) } else { "-".into() }),
            (if chosen { HEAD } else { style }, wrap(&fix.title, TITLE, 0)),
        ]);
    }
    c.print(out);
    if let Some(fix) = advice.fixes.iter().take(top).find(|f| f.confirmed.is_some_and(|c| c != f.predicted)) {
        let _ = writeln!(
            out,
            "  {}",
            styled(DIM, &format!("({} was predicted at {} before it ran)", fix.title, count(fix.predicted)))
        );
    }
    let left = advice.fixes.len().saturating_sub(top);
    if left > 0 {
        let _ = writeln!(out, "  {}", styled(DIM, &format!("({left} more: --top)")));
    }
    for (i, fix) in advice.fixes.iter().take(top).enumerate() {
        if matches!(advice.verdict, Verdict::Fix(best) if best == i) {
            continue;
        }
        for c in fix.caveats.iter().filter(|c| c.starts_with("Run again in") || c.starts_with("It could not")) {
            let _ = writeln!(out, "  {} {}", styled(DIM, &format!("{}:", fix.title)), wrap(c, WIDTH, 4));
        }
    }
}

fn causes(input: &Input<'_>, advice: &Advice, out: &mut String) {
    let keyed: Vec<_> = advice.causes.iter().filter(|c| c.lanes > 0 && c.cause.inst().is_some()).collect();
    if keyed.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{}", styled(HEAD, "What decides"));
    let mut shown: Vec<&str> = Vec::new();
    for c in keyed.iter().take(CAUSES) {
        let at = c.cause.inst().map(|i| place(input.kernel, i)).unwrap_or_default();
        let slots = input.analysis.losses.slots;
        let _ = writeln!(
            out,
            "  {} at {at}: {} lane slots ({}) lost",
            c.cause.name(),
            count(c.lanes),
            share(c.lanes, slots)
        );
        let Some(key) = &c.key else { continue };
        let values = if key.distinct == 1 { "value" } else { "values" };
        let again = shown.contains(&key.words.as_str());
        let _ = writeln!(
            out,
            "    {}",
            wrap(
                &format!(
                    "{}: {} different {values}{}",
                    key.words,
                    count(key.distinct),
                    if again { ", as above" } else { "" }
                ),
                WIDTH,
                6
            )
        );
        if !again {
            histogram(key, out);
            shown.push(&key.words);
        }
    }
    if keyed.len() > CAUSES {
        let _ = writeln!(out, "  {}", styled(DIM, &format!("({} more causes)", keyed.len() - CAUSES)));
    }
}

fn histogram(key: &Key, out: &mut String) {
    // Neighbouring bins are shown together if there are many.
    let step = key.histogram.len().div_ceil(BINS).max(1);
    let bins: Vec<(i64, i64, u64)> = key
        .histogram
        .chunks(step)
        .filter_map(|b| Some((b.first()?.low, b.last()?.high, b.iter().map(|x| x.threads).sum())))
        .collect();
    let most = bins.iter().map(|b| b.2).max().unwrap_or(0).max(1);
    let mut c = Columns::new(6, &[Align::Right, Align::Right, Align::Left]);
    for (low, high, threads) in bins {
        let name = if low == high { low.to_string() } else { format!("{low} to {high}") };
        let bar = "\u{2588}".repeat(((u128::from(threads) * u128::from(BAR)).div_ceil(u128::from(most))) as usize);
        c.row(vec![(PLAIN, name), (PLAIN, count(threads)), (DIM, bar)]);
    }
    c.print(out);
}

/// `lanescope.advice/1`.
pub fn json<'a>(
    input: &Input<'a>,
    advice: &'a Advice,
    roofline: Option<&'a Roofline>,
    emitted: Option<&'a str>,
) -> impl Serialize + use<'a> {
    let pc = |inst: Option<u32>| inst.and_then(|i| input.kernel.instructions.get(i as usize)).map(|i| i.pc);
    let line = |inst: Option<u32>| {
        let l = input.kernel.source.get(inst? as usize)?;
        Some((input.kernel.source.file(l).to_owned(), l.line))
    };
    let key = |k: &'a Key| KeyOut {
        kind: match k.kind {
            KeyKind::Load { .. } => "load",
            KeyKind::Difference { .. } => "difference",
            KeyKind::Trips { .. } => "trips",
            KeyKind::Way { .. } => "way",
            KeyKind::Thread { .. } => "thread",
            KeyKind::Work => "work",
        },
        argument: match k.kind {
            KeyKind::Load { param, .. } | KeyKind::Difference { param, .. } => param,
            _ => None,
        },
        words: &k.words,
        distinct: k.distinct,
        histogram: k.histogram.iter().map(|b| (b.low, b.high, b.threads)).collect(),
    };
    let fix = |f: &'a Fix| {
        let (file, at) = line(f.at).unzip();
        FixOut {
            method: f.method.name(),
            width: match f.method {
                lanescope_analysis::advise::Method::SubWarp(w) => Some(w),
                _ => None,
            },
            title: &f.title,
            what_to_do: &f.what_to_do,
            key: f.key.as_ref().map(key),
            before: f.before,
            predicted: f.predicted,
            confirmed: f.confirmed,
            saved: f.saved(),
            cost: CostOut {
                warp_instructions: f.cost.warp_instructions,
                bytes: f.cost.bytes,
                words: &f.cost.words,
                pays_after_launches: f.break_even(),
            },
            speedup: f.speedup.map(|s| (s.low, s.high)),
            confidence: f.confidence.name(),
            pc: pc(f.at),
            file,
            line: at,
            caveats: &f.caveats,
        }
    };
    Document {
        schema: "lanescope.advice/1",
        kernel: &input.kernel.name,
        demangled: input.demangled,
        arch: &input.kernel.arch,
        level: input.level.name(),
        grid: input.profile.shape.grid,
        block: input.profile.shape.block,
        warp_size: input.profile.shape.warp_size,
        estimate: advice.estimate,
        worth_fixing: matches!(advice.verdict, Verdict::Fix(_)),
        fix: match advice.verdict {
            Verdict::Fix(i) => Some(i),
            Verdict::LeaveIt { .. } => None,
        },
        why_not: match &advice.verdict {
            Verdict::LeaveIt { why } => Some(why),
            Verdict::Fix(_) => None,
        },
        summary: &advice.summary,
        warp_instructions: advice.before,
        full_warps: advice.bound,
        model: ModelOut {
            modelled: advice.model.modelled,
            measured: advice.model.measured,
            ratio: (advice.model.measured > 0).then(|| advice.model.modelled as f64 / advice.model.measured as f64),
            complete: advice.model.complete,
        },
        fixes: advice.fixes.iter().map(fix).collect(),
        causes: advice
            .causes
            .iter()
            .map(|c| {
                let (file, at) = line(c.cause.inst()).unzip();
                CauseOut {
                    cause: cause(c.cause),
                    pc: pc(c.cause.inst()),
                    file,
                    line: at,
                    lost_lane_slots: c.lanes,
                    warp_instructions: c.warp_instructions,
                    key: c.key.as_ref().map(key),
                }
            })
            .collect(),
        caveats: &advice.caveats,
        time: roofline.map(|r| TimeOut {
            gpu: &r.gpu.name,
            seconds: (r.time_s.low, r.time_s.high),
            bound: r.bound.name(),
            words: &r.verdict,
        }),
        emitted,
    }
}

fn cause(c: Cause) -> &'static str {
    match c {
        Cause::Branch(_) => "branch",
        Cause::Trips { .. } => "trips",
        Cause::Exit(_) => "exit",
        Cause::PartialWarp => "partial_warp",
        Cause::Unknown => "unknown",
    }
}

/// What the advice saves, for a line of its own: `7,032 of 30,302 (-76.8 %)`.
pub fn short(fix: &Fix) -> String {
    let change = fix.after() as f64 / fix.before.max(1) as f64 - 1.0;
    format!("{} of {} ({})", count(fix.after()), count(fix.before), percent(change))
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    kernel: &'a str,
    demangled: &'a str,
    arch: &'a str,
    level: &'static str,
    grid: [u32; 3],
    block: [u32; 3],
    warp_size: u32,
    estimate: bool,
    worth_fixing: bool,
    fix: Option<usize>,
    why_not: Option<&'a String>,
    summary: &'a str,
    warp_instructions: u64,
    full_warps: u64,
    model: ModelOut,
    fixes: Vec<FixOut<'a>>,
    causes: Vec<CauseOut<'a>>,
    caveats: &'a [String],
    time: Option<TimeOut<'a>>,
    emitted: Option<&'a str>,
}

/// An estimate.
#[derive(Serialize)]
struct TimeOut<'a> {
    gpu: &'a str,
    seconds: (f64, f64),
    bound: &'static str,
    words: &'a str,
}

#[derive(Serialize)]
struct ModelOut {
    modelled: u64,
    measured: u64,
    ratio: Option<f64>,
    complete: bool,
}

#[derive(Serialize)]
struct FixOut<'a> {
    method: &'static str,
    width: Option<u32>,
    title: &'a str,
    what_to_do: &'a str,
    key: Option<KeyOut<'a>>,
    before: u64,
    predicted: u64,
    confirmed: Option<u64>,
    saved: i64,
    cost: CostOut<'a>,
    speedup: Option<(f64, f64)>,
    confidence: &'static str,
    pc: Option<u32>,
    file: Option<String>,
    line: Option<u32>,
    caveats: &'a [String],
}

#[derive(Serialize)]
struct CostOut<'a> {
    warp_instructions: u64,
    bytes: u64,
    words: &'a str,
    pays_after_launches: Option<u64>,
}

#[derive(Serialize)]
struct KeyOut<'a> {
    kind: &'static str,
    argument: Option<u32>,
    words: &'a str,
    distinct: u64,
    /// Lowest value, highest value, threads.
    histogram: Vec<(i64, i64, u64)>,
}

#[derive(Serialize)]
struct CauseOut<'a> {
    cause: &'static str,
    pc: Option<u32>,
    file: Option<String>,
    line: Option<u32>,
    lost_lane_slots: u64,
    warp_instructions: f64,
    key: Option<KeyOut<'a>>,
}
