//! The terminal report.
//!
//! The first screen answers what was asked: how many lanes were busy, where the others were lost and why. Then
//! come the source lines, most lost lanes first, with their instructions; loops; branches; findings in words.

use std::fmt::Write;

use anstyle::Style;
use lanescope_analysis::histogram::Histogram;
use lanescope_analysis::words::{amount, at_line, count, inlined_at, lanes, percent, share};
use lanescope_analysis::{Line, Place};
use lanescope_ir::{BranchKind, LaneCounts, Op, Severity};

use crate::layout::{Align, BAD, Columns, DIM, GOOD, HEAD, PLAIN, WARN, styled, wrap};
use crate::{Input, Level, roofline};

const WIDTH: usize = 110;
/// Causes shown before the rest is summed up.
const CAUSES: usize = 12;
/// Causes whose data are shown.
const HISTOGRAMS: usize = 3;
/// Rules whose findings are remarks on lines or branches that need nothing.
const FINE: [&str; 2] = ["predicated", "uniform-branch"];
/// Remarks of that kind shown before the rest is counted.
const FINE_SHOWN: usize = 12;

/// The whole report, with ANSI styles.
pub fn report(input: &Input<'_>) -> String {
    report_with(input, None)
}

/// The same with what the launch costs on a GPU.
pub fn report_with(input: &Input<'_>, roofline: Option<&roofline::View<'_>>) -> String {
    let mut out = String::new();
    head(input, &mut out);
    causes(input, &mut out);
    if let Some(view) = roofline {
        out.push_str(&roofline::text(view));
    }
    findings(input, &mut out);
    by_line(input, &mut out);
    loops(input, &mut out);
    branches(input, &mut out);
    out
}

fn title(out: &mut String, text: &str) {
    let _ = writeln!(out, "\n{}", styled(HEAD, text));
}

fn head(input: &Input<'_>, out: &mut String) {
    let (shape, t) = (input.profile.shape, input.analysis.totals);
    let width = shape.warp_size.max(1);
    let origin = if input.source == "sim" { "simulated" } else { input.source };
    let code = match input.level {
        Level::Sass => format!("{} SASS", input.kernel.arch),
        Level::Ptx => "PTX".to_owned(),
    };
    let compiler = input.compiler.map(|c| format!(" by {c}")).unwrap_or_default();
    let _ = writeln!(out, "{}  {code}{compiler}, {origin}", styled(HEAD, input.demangled));
    let dims = |d: [u32; 3]| format!("{} x {} x {}", d[0], d[1], d[2]);
    let threads: u64 = shape.block.iter().map(|&d| u64::from(d)).product();
    let blocks: u64 = shape.grid.iter().fold(1u64, |a, &d| a.saturating_mul(d.into()));
    let warps = blocks.saturating_mul(threads.div_ceil(width.into()));
    let noun = if warps == 1 { "warp" } else { "warps" };
    let of_lanes = if width == 32 { String::new() } else { format!(" of {width} lanes") };
    let _ = writeln!(out, "grid {}, block {}: {} {noun}{of_lanes}", dims(shape.grid), dims(shape.block), count(warps));
    if input.level == Level::Ptx {
        let text = "these numbers are of PTX, an estimate: the hardware runs what ptxas makes of it, after predication \
                    and unrolling. --via ptxas runs that.";
        let _ = writeln!(out, "{} {}", styled(WARN, "note:"), wrap(text, WIDTH, 6));
    }
    for w in input.warnings {
        let _ = writeln!(out, "{} {}", styled(WARN, "note:"), wrap(w, WIDTH, 6));
    }
    out.push('\n');
    let efficiency = t.lane_efficiency(width);
    let style = if efficiency >= 0.95 {
        GOOD
    } else if efficiency >= 0.5 {
        WARN
    } else {
        BAD
    };
    let losses = &input.analysis.losses;
    let mut c = Columns::new(0, &[Align::Left, Align::Right]);
    c.row(vec![
        (HEAD, "Lane efficiency".into()),
        (style, ratio(efficiency)),
        (PLAIN, format!("{} of {width} threads per instruction", lanes(t.threads_per_inst()))),
    ]);
    let packed = t.thread_inst_executed as f64 / f64::from(width);
    c.row(vec![
        (PLAIN, "Warp instructions".into()),
        (PLAIN, count(t.inst_executed)),
        (PLAIN, format!("full warps would need {} at best (estimate)", count(packed.ceil() as u64))),
    ]);
    let active = u128::from(t.thread_inst_executed);
    c.row(vec![
        (PLAIN, "Predicated off".into()),
        (PLAIN, count(losses.predicated_off)),
        (
            PLAIN,
            format!("lanes, {} of those active: there, but masked by a guard", share(losses.predicated_off, active)),
        ),
    ]);
    if losses.discarded > 0 {
        let of = share(losses.discarded, active);
        let mark = if input.analysis.lockstep.iter().any(|l| l.estimate) { "about " } else { "" };
        let text = format!("lanes, {mark}{of} of those active: worked for nothing in a lock-step loop");
        c.row(vec![(PLAIN, "Discarded".into()), (WARN, count(losses.discarded)), (PLAIN, text)]);
    }
    let exits = match t.split_exits {
        0 => "no predicated EXIT split a warp".to_owned(),
        1 => "1 predicated EXIT split a warp".to_owned(),
        n => format!("predicated EXITs split warps {} times", count(n)),
    };
    c.row(vec![
        (PLAIN, "Branches".into()),
        (PLAIN, count(t.branches)),
        (PLAIN, format!("executed, {} divergent; {exits}", count(t.divergent_branches))),
    ]);
    c.print(out);
}

/// Six decimals, or more if it would read as 0 or 1 without being it.
fn ratio(x: f64) -> String {
    for digits in 6..=15usize {
        let text = format!("{x:.digits$}");
        let shown: f64 = text.parse().unwrap_or(x);
        if (shown != 0.0 || x == 0.0) && (shown != 1.0 || x == 1.0) {
            return text;
        }
    }
    x.to_string()
}

fn causes(input: &Input<'_>, out: &mut String) {
    let losses = &input.analysis.losses;
    if losses.lost == 0 {
        let full = "No lane was lost: every instruction ran with full warps.";
        let idle = "No lane slot was empty, but lanes worked for nothing: see lockstep-loop.";
        title(out, if losses.discarded == 0 { full } else { idle });
        return;
    }
    title(
        out,
        &format!(
            "Where lanes were lost: {} of {} lane slots ({})",
            count(losses.lost),
            big(losses.slots),
            share(losses.lost, losses.slots)
        ),
    );
    use Align::{Left, Right};
    let mut c = Columns::new(2, &[Right, Right, Right, Left, Left, Left]);
    c.header(&["lost slots", "of all", "warp instr.", "", "cause", "instruction", "place"]);
    let mut estimate = false;
    let mut histograms = HISTOGRAMS;
    let (shown, rest) = losses.causes.split_at(losses.causes.len().min(CAUSES));
    for total in shown {
        estimate |= total.estimate;
        let heavy = total.lanes as f64 >= 0.05 * losses.slots as f64;
        c.row(vec![
            (if heavy { WARN } else { PLAIN }, count(total.lanes)),
            (PLAIN, share(total.lanes, losses.slots)),
            (PLAIN, amount(total.warp_instructions)),
            (PLAIN, if total.estimate { "~" } else { "" }.into()),
            (if heavy { HEAD } else { PLAIN }, total.cause.name().into()),
            (PLAIN, total.cause.inst().map(|i| instruction(input, i)).unwrap_or_default()),
            (PLAIN, total.cause.inst().map(|i| place(input, i)).unwrap_or_default()),
        ]);
        if histograms > 0
            && let Some(h) = Histogram::of(total.cause, input.profile)
        {
            histograms -= 1;
            let mut row = vec![(PLAIN, String::new()); 4];
            row.push((DIM, h.words()));
            c.row(row);
        }
    }
    if !rest.is_empty() {
        let sum: u64 = rest.iter().map(|t| t.lanes).sum();
        c.row(vec![
            (PLAIN, count(sum)),
            (PLAIN, share(sum, losses.slots)),
            (PLAIN, String::new()),
            (PLAIN, String::new()),
            (DIM, format!("{} smaller causes", rest.len())),
        ]);
    }
    c.print(out);
    let mut notes =
        "warp instr.: warp instructions that full warps would not have needed (lost slots / warp size).".to_owned();
    if estimate {
        notes.push_str(" ~: nested causes, shared out by estimate; the sum is exact.");
    }
    let _ = writeln!(out, "  {}", styled(DIM, &wrap(&notes, WIDTH, 2)));
}

fn big(n: u128) -> String {
    u64::try_from(n).map_or_else(|_| n.to_string(), count)
}

fn instruction(input: &Input<'_>, inst: u32) -> String {
    format!("`{}`", input.kernel.text.get(inst as usize).map_or("?", String::as_str))
}

fn place(input: &Input<'_>, inst: u32) -> String {
    lanescope_analysis::words::place(input.kernel, inst)
}

fn findings(input: &Input<'_>, out: &mut String) {
    let list = &input.analysis.findings;
    let telling: Vec<_> = list.iter().filter(|f| !FINE.contains(&f.rule) && f.rule != "hot-line").collect();
    if !telling.is_empty() {
        title(out, "Findings");
        for f in telling {
            let style = match f.severity {
                Severity::Error => BAD,
                Severity::Warning => WARN,
                Severity::Info => DIM,
            };
            let label = format!("{} [{}]", f.severity.name(), f.rule);
            let text = wrap(&format!("{label}: {}", f.message), WIDTH, 4);
            let rest = text.strip_prefix(&label).unwrap_or("");
            let _ = writeln!(out, "  {}{rest}", styled(style, &label));
        }
        let _ = writeln!(out, "  {}", styled(DIM, "`lanescope explain RULE` says what a rule means and what helps."));
    }
    let fine: Vec<_> = list.iter().filter(|f| FINE.contains(&f.rule)).collect();
    if !fine.is_empty() {
        title(out, "Looked at and fine");
        for f in fine.iter().take(FINE_SHOWN) {
            let _ = writeln!(out, "  {}", wrap(&f.message, WIDTH, 4));
        }
        if fine.len() > FINE_SHOWN {
            let _ = writeln!(out, "  {}", styled(DIM, &format!("and {} more", fine.len() - FINE_SHOWN)));
        }
    }
}

fn by_line(input: &Input<'_>, out: &mut String) {
    let ran: Vec<&Line> = input.analysis.lines.iter().filter(|l| l.inst_executed > 0).collect();
    let width = u64::from(input.profile.shape.warp_size.max(1));
    let few = width * 28 / 32;
    title(
        out,
        &format!("By source line, most lost lanes first (! hot loop below {few} of {width} threads per instruction)"),
    );
    use Align::{Left, Right};
    let mut c = Columns::new(0, &[Left, Left, Right, Right, Right, Right, Left]);
    c.header(&["", "line / pc", "warp instr.", "threads/inst", "lost slots", "pred. off", ""]);
    for line in &ran {
        let style = if line.flagged { WARN } else { HEAD };
        c.row(vec![
            (WARN, if line.flagged { "!" } else { "" }.into()),
            (style, line_name(input, line)),
            (style, count(line.inst_executed)),
            (style, lanes(line.threads_per_inst())),
            (style, count(line.lost)),
            (style, count(line.predicated_off)),
            (PLAIN, source_text(input, line)),
        ]);
        let remark = remark(input, line);
        if !remark.is_empty() {
            c.row(vec![(PLAIN, String::new()), (DIM, format!("   {remark}"))]);
        }
        for &i in &line.instructions {
            instruction_row(input, i, &mut c);
        }
    }
    c.print(out);
    let idle = input.profile.counts.iter().filter(|c| c.inst_executed == 0).count();
    if idle > 0 {
        let text = format!("{idle} of {} instructions were never executed.", input.kernel.instructions.len());
        let _ = writeln!(out, "  {}", styled(DIM, &text));
    }
}

fn instruction_row(input: &Input<'_>, i: u32, c: &mut Columns) {
    let at = i as usize;
    let n = input.profile.counts.get(at).copied().unwrap_or_default();
    let pc = input.kernel.instructions.get(at).map_or(0, |inst| inst.pc);
    let name = format!("  {pc:#06x}");
    let text = input.kernel.text.get(at).map_or("", String::as_str);
    if n.inst_executed == 0 {
        let mut row = vec![(DIM, String::new()), (DIM, name), (DIM, "-".into())];
        row.extend(std::iter::repeat_n((DIM, String::new()), 3));
        row.push((DIM, format!("  {text}")));
        c.row(row);
        return;
    }
    let loss = input.analysis.losses.instructions.get(at);
    // A false guard of a branch means "not taken", which the note says.
    let steers = input.kernel.instructions.get(at).is_some_and(|i| matches!(i.op, Op::Control(_)));
    let off = if steers { 0 } else { n.thread_inst_executed.saturating_sub(n.thread_inst_executed_pred_on) };
    let note = input.profile.branches.iter().find(|b| b.inst == i && b.executed > 0).map(|b| {
        let taken = if b.kind == BranchKind::Exit { "lanes left" } else { "lanes took it" };
        format!("   <- {} of {} split, {} {taken}", count(b.divergent), count(b.executed), count(b.lanes_taken))
    });
    let note = note.or_else(|| traffic(&n));
    let plain = PLAIN;
    c.row(vec![
        (plain, String::new()),
        (DIM, name),
        (plain, count(n.inst_executed)),
        (plain, lanes(n.thread_inst_executed as f64 / n.inst_executed as f64)),
        (plain, zero(loss.map_or(0, |l| l.lost))),
        (plain, zero(off)),
        (plain, format!("  {text}{}", note.unwrap_or_default())),
    ]);
}

/// Sectors, and bank conflicts if there are any.
fn traffic(n: &LaneCounts) -> Option<String> {
    let mut parts = Vec::new();
    if n.sectors > 0 {
        let more = n.sectors > n.sectors_ideal;
        let ideal = if more { format!(", {} at best", count(n.sectors_ideal)) } else { String::new() };
        parts.push(format!("{} sectors{ideal}", count(n.sectors)));
    }
    if n.shared_wavefronts > n.shared_wavefronts_ideal {
        let (passes, ideal) = (count(n.shared_wavefronts), count(n.shared_wavefronts_ideal));
        parts.push(format!("bank conflicts: {passes} passes, {ideal} without"));
    }
    (!parts.is_empty()).then(|| format!("   <- {}", parts.join("; ")))
}

fn zero(n: u64) -> String {
    if n == 0 { "-".into() } else { count(n) }
}

fn line_name(input: &Input<'_>, line: &Line) -> String {
    match (line.place, line.instructions.first()) {
        (Place::Source { .. }, Some(&i)) => at_line(input.kernel, i).unwrap_or_default(),
        (Place::Block(i), _) => {
            let pc = input.kernel.instructions.get(i as usize).map_or(0, |i| i.pc);
            format!("block {pc:#06x}")
        }
        _ => String::new(),
    }
}

fn source_text(input: &Input<'_>, line: &Line) -> String {
    let Place::Source { file, line: number } = line.place else { return String::new() };
    let text = input.sources.get(&file).and_then(|t| t.get(number.checked_sub(1)? as usize));
    let text = text.map_or(String::new(), |t| t.split_whitespace().collect::<Vec<_>>().join(" "));
    match text.char_indices().nth(72) {
        Some((cut, _)) => format!("{} ...", &text[..cut]),
        None => text,
    }
}

/// Why a line lost its lanes, and whether the compiler predicated it.
fn remark(input: &Input<'_>, line: &Line) -> String {
    let mut parts = Vec::new();
    let mut sites: Vec<String> = line.instructions.iter().filter_map(|&i| inlined_at(input.kernel, i)).collect();
    sites.sort();
    sites.dedup();
    if !sites.is_empty() {
        let more = sites.len().saturating_sub(3);
        sites.truncate(3);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        parts.push(format!("inlined at {}{more}", sites.join(", ")));
    }
    if line.flagged {
        parts.push("in a hot loop".to_owned());
    }
    for p in line.parts.iter().take(3) {
        let mark = if p.estimate { "~" } else { "" };
        let name = p.cause.name();
        let at = p.cause.inst().map(|i| format!(" at {}", place(input, i))).unwrap_or_default();
        let part = percent(p.lanes as f64 / line.lost.max(1) as f64);
        parts.push(format!("{mark}{part} of the loss: {name}{at}"));
    }
    if line.discarded > 0 {
        let part = percent(line.discarded as f64 / line.thread_inst_executed.max(1) as f64);
        parts.push(format!("{part} of its active lanes worked for nothing (lock-step loop)"));
    }
    if line.predicated() {
        parts.push("the compiler predicated it: no branch here".into());
    }
    parts.join("; ")
}

fn loops(input: &Input<'_>, out: &mut String) {
    if input.analysis.loops.is_empty() {
        return;
    }
    title(out, "Loops");
    use Align::{Left, Right};
    let width = f64::from(input.profile.shape.warp_size.max(1));
    let mut c = Columns::new(2, &[Left, Right, Right, Right, Right, Right, Left]);
    c.header(&["header", "depth", "warp instr.", "warp turns", "lane turns", "lane eff.", "turns of a thread"]);
    for l in &input.analysis.loops {
        let trips = l.trips.map_or(String::new(), |t| {
            let (min, median, max) = (count(t.min), count(t.median), count(t.max));
            format!("{min} to {max}, median {median}, mean {}", lanes(t.mean))
        });
        let efficiency = l.lane_turns as f64 / (width * l.warp_turns as f64);
        let style: Style = if efficiency < 28.0 / 32.0 { WARN } else { PLAIN };
        c.row(vec![
            (PLAIN, place(input, l.header)),
            (PLAIN, l.depth.to_string()),
            (PLAIN, count(l.inst_executed)),
            (PLAIN, count(l.warp_turns)),
            (PLAIN, count(l.lane_turns)),
            (style, ratio(efficiency)),
            (PLAIN, trips),
        ]);
    }
    c.print(out);
}

fn branches(input: &Input<'_>, out: &mut String) {
    let list: Vec<_> = input.profile.branches.iter().filter(|b| b.executed > 0).collect();
    if list.is_empty() {
        return;
    }
    title(out, "Branches and predicated exits");
    use Align::{Left, Right};
    let mut c = Columns::new(2, &[Right, Right, Right, Right, Left, Left]);
    c.header(&["executed", "split", "lanes taken", "lanes passed", "instruction", "place"]);
    for b in list {
        c.row(vec![
            (PLAIN, count(b.executed)),
            (if b.divergent > 0 { WARN } else { PLAIN }, count(b.divergent)),
            (PLAIN, count(b.lanes_taken)),
            (PLAIN, count(b.lanes_not_taken)),
            (PLAIN, instruction(input, b.inst)),
            (PLAIN, place(input, b.inst)),
        ]);
    }
    c.print(out);
}
