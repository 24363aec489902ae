//! What the template shows as plain HTML, as strings: it only has to put them in place.

use lanescope_analysis::Cause;
use lanescope_analysis::rules::WORTH_IT;
use lanescope_analysis::words::{self, amount, count, lanes, share};
use lanescope_ir::{BranchKind, Severity};

use super::Page;
use super::advice::{self, AdviceView, RooflineView};
use super::charts::{self, Chart};
use crate::{Input, Level};

/// Rules whose findings are remarks on lines or branches that need nothing.
const FINE: [&str; 2] = ["predicated", "uniform-branch"];
/// Rows of a table before the rest is counted.
const CAUSES: usize = 40;
const FINDINGS: usize = 100;
const LOOPS: usize = 100;
const BRANCHES: usize = 300;
const PRINTED: usize = 500;
/// Loops whose trips are drawn.
const CHARTS: usize = 8;
/// Causes whose splits are drawn.
const SPLITS: usize = 4;

pub(super) struct View<'a> {
    pub name: &'a str,
    pub short: String,
    pub origin: String,
    pub launch: String,
    pub level: &'static str,
    pub level_words: &'static str,
    pub warnings: &'a [String],
    pub headline: String,
    pub details: Vec<String>,
    pub tiles: Vec<Tile>,
    pub warps: &'a str,
    pub lost_words: String,
    pub causes: Table<CauseRow>,
    pub estimates: bool,
    /// Lanes at the splits of the costliest causes.
    pub splits: Vec<Chart>,
    pub findings: Table<Finding>,
    /// Findings of little weight.
    pub small: Table<Finding>,
    pub fine: Table<Finding>,
    pub loops: Table<LoopRow>,
    pub branches: Table<BranchRow>,
    pub trips: Vec<Chart>,
    pub advice: Option<AdviceView>,
    pub roofline: Option<RooflineView>,
    pub printed: Table<String>,
    pub printed_lost: u64,
}

/// Rows, and how many were left out.
pub(super) struct Table<T> {
    pub rows: Vec<T>,
    pub more: usize,
}

impl<T> Table<T> {
    fn new(all: impl Iterator<Item = T>, limit: usize) -> Table<T> {
        let mut all = all;
        let rows = all.by_ref().take(limit).collect();
        Table { rows, more: all.count() }
    }
}

pub(super) struct Tile {
    pub label: &'static str,
    pub value: String,
    pub note: String,
    /// `good`, `fair`, `poor`, or empty.
    pub tone: &'static str,
    /// A share of the whole as a percentage for a bar.
    pub bar: Option<String>,
}

/// A place that the lists below can show.
pub(super) struct Spot {
    pub inst: u32,
    pub place: String,
    pub text: String,
}

pub(super) struct CauseRow {
    pub name: &'static str,
    pub lost: String,
    pub share: String,
    /// Percentage of all slots, for a bar.
    pub bar: String,
    pub heavy: bool,
    pub warp_instructions: String,
    pub estimate: bool,
    pub spot: Option<Spot>,
}

pub(super) struct Finding {
    pub severity: &'static str,
    pub rule: &'static str,
    pub message: String,
    pub spot: Option<Spot>,
}

pub(super) struct LoopRow {
    pub spot: Spot,
    pub depth: u32,
    pub issued: String,
    pub warp_turns: String,
    pub lane_turns: String,
    pub efficiency: String,
    pub bar: String,
    pub trips: String,
}

pub(super) struct BranchRow {
    pub spot: Spot,
    pub kind: &'static str,
    pub executed: String,
    pub divergent: String,
    pub splits: bool,
    pub taken: String,
    pub passed: String,
}

pub(super) fn view<'a>(page: &Page<'a>) -> View<'a> {
    let input = page.input;
    let losses = &input.analysis.losses;
    let (headline, details) = answer(page);
    let is_fine = |f: &&lanescope_ir::Finding| FINE.contains(&f.rule);
    let telling = || input.analysis.findings.iter().filter(|f| !is_fine(f) && f.rule != "hot-line");
    let printed = page.printed.iter().map(|p| p.text.to_owned());
    View {
        name: input.demangled,
        short: shortened(input.demangled),
        origin: origin(input),
        launch: launch(input),
        level: match input.level {
            Level::Sass => "SASS",
            Level::Ptx => "PTX",
        },
        level_words: match input.level {
            Level::Sass => "Machine code: these are the instructions that the hardware executes and counts.",
            Level::Ptx => {
                "PTX: an estimate. The hardware runs what ptxas makes of it, after predication and unrolling; \
                 --via ptxas runs that."
            }
        },
        warnings: input.warnings,
        headline,
        details,
        tiles: tiles(input),
        warps: page.warps,
        lost_words: format!(
            "{} of {} lane slots ({})",
            count(losses.lost),
            big(losses.slots),
            share(losses.lost, losses.slots)
        ),
        causes: Table::new(losses.causes.iter().map(|c| cause(input, c)), CAUSES),
        estimates: losses.causes.iter().any(|c| c.estimate),
        splits: splits(input),
        findings: Table::new(telling().filter(|f| f.severity > Severity::Info).map(|f| finding(input, f)), FINDINGS),
        small: Table::new(telling().filter(|f| f.severity == Severity::Info).map(|f| finding(input, f)), FINDINGS),
        fine: Table::new(input.analysis.findings.iter().filter(is_fine).map(|f| finding(input, f)), FINDINGS),
        loops: Table::new(input.analysis.loops.iter().map(|l| loop_row(input, l)), LOOPS),
        branches: branches(input),
        trips: trips(input),
        advice: page.advice.map(|a| advice::advice(input, a)),
        roofline: page.roofline.map(advice::roofline),
        printed: Table::new(printed, PRINTED),
        printed_lost: page.printed_lost,
    }
}

/// A name of hundreds of template arguments cannot be a window's title.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(80) {
        Some((cut, _)) => format!("{} ...", &name[..cut]),
        None => name.to_owned(),
    }
}

fn origin(input: &Input<'_>) -> String {
    let how = match input.source {
        "sim" => "simulated",
        other => other,
    };
    let code = match input.level {
        Level::Sass => format!("{} SASS", input.kernel.arch),
        Level::Ptx => "PTX".to_owned(),
    };
    match input.compiler {
        Some(c) => format!("{code} by {c}, {how}"),
        None => format!("{code}, {how}"),
    }
}

fn launch(input: &Input<'_>) -> String {
    let shape = input.profile.shape;
    let width = shape.warp_size.max(1);
    let threads: u64 = shape.block.iter().map(|&d| u64::from(d)).product();
    let blocks: u64 = shape.grid.iter().fold(1u64, |a, &d| a.saturating_mul(d.into()));
    let warps = blocks.saturating_mul(threads.div_ceil(width.into()));
    let dims = |d: [u32; 3]| format!("{} \u{d7} {} \u{d7} {}", d[0], d[1], d[2]);
    let noun = if warps == 1 { "warp" } else { "warps" };
    format!("grid {}, block {}: {} {noun} of {width} lanes", dims(shape.grid), dims(shape.block), count(warps))
}

/// The answer: one sentence, and what supports it.
fn answer(page: &Page<'_>) -> (String, Vec<String>) {
    let input = page.input;
    let (losses, totals) = (&input.analysis.losses, input.analysis.totals);
    let width = input.profile.shape.warp_size.max(1);
    if totals.inst_executed == 0 {
        return ("Nothing was executed.".into(), Vec::new());
    }
    let work = format!(
        "{} of {width} lanes work in an average instruction; {} of all lane slots are lost.",
        lanes(totals.threads_per_inst()),
        share(losses.lost, losses.slots)
    );
    let mut details = Vec::new();
    let headline = match page.advice {
        Some(advice) => {
            // The answer alone is the headline, its reasons follow.
            let (answer, reasons) = match advice.summary.split_once(". ") {
                Some((answer, reasons)) => (format!("{answer}."), Some(reasons.to_owned())),
                None => (advice.summary.clone(), None),
            };
            details.extend(reasons);
            details.push(work);
            answer
        }
        None if losses.lost == 0 && losses.discarded > 0 => format!(
            "No lane slot is empty, but {} of the active lanes work for nothing.",
            share(losses.discarded, totals.thread_inst_executed.into())
        ),
        None if losses.lost == 0 => "No lane is lost: every instruction ran with full warps.".into(),
        None => work,
    };
    if let Some(top) = losses.causes.first() {
        let place = top.cause.inst().map(|i| format!(" at {}", words::place(input.kernel, i))).unwrap_or_default();
        details.push(format!(
            "The largest cause: {}{place}, with {} of what is lost: {} warp instructions that full warps would not have \
             needed.",
            top.cause.name(),
            share(top.lanes, losses.lost.into()),
            amount(top.warp_instructions)
        ));
        if (top.lanes as f64) < WORTH_IT * losses.slots as f64 {
            details.push(format!(
                "No single cause takes {} of the lane slots: leave it, unless many small ones add up for you.",
                words::percent(WORTH_IT)
            ));
        } else if page.advice.is_none() {
            details.push("lanescope advise says what a fix would give for this launch's data.".into());
        }
    }
    (headline, details)
}

fn tiles(input: &Input<'_>) -> Vec<Tile> {
    let (losses, t) = (&input.analysis.losses, input.analysis.totals);
    let width = input.profile.shape.warp_size.max(1);
    let efficiency = t.lane_efficiency(width);
    let tone = if efficiency >= 0.95 {
        "good"
    } else if efficiency >= 0.5 {
        "fair"
    } else {
        "poor"
    };
    let packed = (t.thread_inst_executed as f64 / f64::from(width)).ceil() as u64;
    let active = u128::from(t.thread_inst_executed);
    let tile = |label, value, note: String| Tile { label, value, note, tone: "", bar: None };
    let mut tiles = vec![
        Tile {
            label: "Lane efficiency",
            value: words::percent(efficiency),
            note: format!("{} of {width} threads per instruction", lanes(t.threads_per_inst())),
            tone,
            bar: Some(bar(efficiency)),
        },
        tile(
            "Warp instructions",
            count(t.inst_executed),
            format!("full warps would need {} at best (estimate)", count(packed)),
        ),
        Tile {
            label: "Lane slots lost",
            value: share(losses.lost, losses.slots),
            note: format!("{} of {}", count(losses.lost), big(losses.slots)),
            tone: "",
            bar: Some(bar(losses.lost as f64 / losses.slots.max(1) as f64)),
        },
        tile(
            "Predicated off",
            count(losses.predicated_off),
            format!("lanes, {} of those active: there, but masked by a guard", share(losses.predicated_off, active)),
        ),
    ];
    if losses.discarded > 0 {
        let about = if input.analysis.lockstep.iter().any(|l| l.estimate) { "about " } else { "" };
        let of = share(losses.discarded, active);
        tiles.push(tile(
            "Discarded",
            count(losses.discarded),
            format!("lanes, {about}{of} of those active: worked for nothing in a lock-step loop"),
        ));
    }
    tiles.extend([
        tile("Divergent branches", count(t.divergent_branches), format!("of {} executed", count(t.branches))),
        tile(
            "Split exits",
            count(t.split_exits),
            "a predicated EXIT that only some lanes took; profilers count no branch there".into(),
        ),
    ]);
    tiles
}

/// A share as a percentage for a bar's width.
fn bar(share: f64) -> String {
    format!("{:.2}%", (share * 100.0).clamp(0.0, 100.0))
}

fn big(n: u128) -> String {
    u64::try_from(n).map_or_else(|_| n.to_string(), count)
}

pub(super) fn spot(input: &Input<'_>, inst: u32) -> Spot {
    Spot { inst, place: words::place(input.kernel, inst), text: words::text(input.kernel, inst).to_owned() }
}

fn cause(input: &Input<'_>, c: &lanescope_analysis::CauseTotal) -> CauseRow {
    let slots = input.analysis.losses.slots;
    let part = c.lanes as f64 / slots.max(1) as f64;
    CauseRow {
        name: c.cause.name(),
        lost: count(c.lanes),
        share: share(c.lanes, slots),
        bar: bar(part),
        heavy: part >= WORTH_IT,
        warp_instructions: amount(c.warp_instructions),
        estimate: c.estimate,
        spot: c.cause.inst().map(|i| spot(input, i)),
    }
}

fn finding(input: &Input<'_>, f: &lanescope_ir::Finding) -> Finding {
    Finding {
        severity: match f.severity {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        },
        rule: f.rule,
        message: f.message.clone(),
        spot: f.inst.map(|i| spot(input, i)),
    }
}

fn loop_row(input: &Input<'_>, l: &lanescope_analysis::LoopStat) -> LoopRow {
    let width = f64::from(input.profile.shape.warp_size.max(1));
    let efficiency = l.lane_turns as f64 / (width * l.warp_turns.max(1) as f64);
    LoopRow {
        spot: spot(input, l.header),
        depth: l.depth,
        issued: count(l.inst_executed),
        warp_turns: count(l.warp_turns),
        lane_turns: count(l.lane_turns),
        efficiency: words::percent(efficiency),
        bar: bar(efficiency),
        trips: l.trips.map_or(String::new(), |t| {
            let (min, median, max) = (count(t.min), count(t.median), count(t.max));
            format!("{min} to {max}, median {median}, mean {}", lanes(t.mean))
        }),
    }
}

/// How many lanes went each way when groups split, for the causes that take most.
fn splits(input: &Input<'_>) -> Vec<Chart> {
    let chart = |c: &lanescope_analysis::CauseTotal| {
        let inst = match c.cause {
            Cause::Branch(inst) | Cause::Exit(inst) => inst,
            Cause::Trips { .. } | Cause::PartialWarp | Cause::Unknown => return None,
        };
        let b = input.profile.branches.iter().find(|b| b.inst == inst)?;
        let values: Vec<(u64, u64)> = b.lanes_histogram.iter().map(|&(lanes, n)| (lanes.into(), n)).collect();
        let (what, whom) = match b.kind {
            BranchKind::Branch => ("lanes that take it", "splits"),
            BranchKind::Exit => ("lanes that leave", "splits"),
            BranchKind::Indirect => ("lanes of a group after the split", "groups"),
        };
        let text = words::text(input.kernel, inst);
        let title = format!("`{text}` at {}, when it splits a group", words::place(input.kernel, inst));
        charts::histogram(title, what, whom, &charts::bars(&values))
    };
    input.analysis.losses.causes.iter().filter_map(chart).take(SPLITS).collect()
}

/// How often threads go round the loops that issue most.
fn trips(input: &Input<'_>) -> Vec<Chart> {
    let chart = |l: &lanescope_analysis::LoopStat| {
        let trips = input.profile.loops.iter().find(|t| t.header == l.header)?;
        let title = format!("Turns of the loop at {}", words::place(input.kernel, l.header));
        charts::histogram(title, "turns", "times a thread enters", &charts::bars(&trips.trips))
    };
    input.analysis.loops.iter().filter_map(chart).take(CHARTS).collect()
}

/// Those that split most often first.
fn branches(input: &Input<'_>) -> Table<BranchRow> {
    let mut list: Vec<_> = input.profile.branches.iter().filter(|b| b.executed > 0).collect();
    list.sort_by(|a, b| b.divergent.cmp(&a.divergent).then(b.executed.cmp(&a.executed)).then(a.inst.cmp(&b.inst)));
    let row = |b: &lanescope_ir::BranchCounts| BranchRow {
        spot: spot(input, b.inst),
        kind: b.kind.name(),
        executed: count(b.executed),
        divergent: count(b.divergent),
        splits: b.divergent > 0,
        taken: count(b.lanes_taken),
        passed: count(b.lanes_not_taken),
    };
    Table::new(list.into_iter().map(row), BRANCHES)
}
