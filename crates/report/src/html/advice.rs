//! Advice and roofline for the template.

use lanescope_analysis::advise::{Advice, Fix, Key, Verdict};
use lanescope_analysis::roofline::{Range, Roofline};
use lanescope_analysis::words::{self, count, percent};

use super::charts::{self, Bar, Chart, Roof};
use super::view::{Spot, spot};
use crate::Input;

/// Keys that are drawn, and places named with one.
const KEYS: usize = 24;
const PLACES: usize = 4;

pub(super) struct AdviceView {
    pub fixes: Vec<FixRow>,
    pub before: String,
    pub bound: String,
    pub model: String,
    pub caveats: Vec<String>,
    pub estimate: bool,
    pub keys: Vec<Chart>,
}

pub(super) struct FixRow {
    pub best: bool,
    pub title: String,
    pub what_to_do: String,
    pub spot: Option<Spot>,
    pub predicted: String,
    pub confirmed: String,
    /// Share of the launch's warp instructions saved, with its sign.
    pub saved: String,
    /// For a bar.
    pub bar: String,
    pub worse: bool,
    pub cost: String,
    pub break_even: String,
    pub speedup: String,
    pub confidence: &'static str,
    pub caveats: Vec<String>,
}

pub(super) fn advice(input: &Input<'_>, a: &Advice) -> AdviceView {
    let model = match (a.model.measured, a.model.modelled) {
        (0, _) => String::new(),
        (measured, modelled) => format!(
            "The model that prices regroupings gives {} warp instructions for the launch as it is; {} were counted{}.",
            count(modelled),
            count(measured),
            if a.model.complete { "" } else { " (not all threads were recorded)" }
        ),
    };
    let mut fixes: Vec<FixRow> =
        a.fixes.iter().enumerate().map(|(i, f)| fix(input, f, a.verdict == Verdict::Fix(i))).collect();
    fixes.sort_by_key(|f| !f.best);
    AdviceView {
        fixes,
        before: count(a.before),
        bound: count(a.bound),
        model,
        caveats: a.caveats.clone(),
        estimate: a.estimate,
        keys: keys(input, a),
    }
}

/// The data that decides, once for all the places it decides at.
fn keys(input: &Input<'_>, a: &Advice) -> Vec<Chart> {
    let mut found: Vec<(&Key, Vec<String>)> = Vec::new();
    for c in &a.causes {
        let Some(key) = &c.key else { continue };
        let at = c.cause.inst().map(|i| words::place(input.kernel, i));
        match found.iter_mut().find(|(k, _)| k.words == key.words && k.histogram == key.histogram) {
            Some((_, places)) => places.extend(at),
            None => found.push((key, at.into_iter().collect())),
        }
    }
    let chart = |(key, places): (&Key, Vec<String>)| {
        let bars: Vec<Bar> = key.histogram.iter().map(|b| Bar { low: b.low, high: b.high, n: b.threads }).collect();
        let more = places.len().saturating_sub(PLACES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let at = places.iter().take(PLACES).cloned().collect::<Vec<_>>().join(", ");
        charts::histogram(format!("{}: decides at {at}{more}", key.words), "value", "threads", &bars)
    };
    found.into_iter().filter_map(chart).take(KEYS).collect()
}

fn fix(input: &Input<'_>, f: &Fix, best: bool) -> FixRow {
    let saved = f.saved() as f64 / f.before.max(1) as f64;
    FixRow {
        best,
        title: f.title.clone(),
        what_to_do: f.what_to_do.clone(),
        spot: f.at.map(|i| spot(input, i)),
        predicted: count(f.predicted),
        confirmed: f.confirmed.map_or_else(|| "not run".into(), count),
        saved: if saved < 0.0 { format!("{} more", percent(-saved)) } else { format!("{} less", percent(saved)) },
        bar: format!("{:.2}%", saved.abs().min(1.0) * 100.0),
        worse: saved < 0.0,
        cost: f.cost.words.clone(),
        break_even: match f.break_even() {
            _ if f.cost.warp_instructions == 0 => String::new(),
            Some(1) => "pays from the first launch".into(),
            Some(n) => format!("pays from {} launches on", count(n)),
            None => "never pays".into(),
        },
        speedup: f.speedup.map_or(String::new(), |s| format!("{:.2} to {:.2} times", s.low, s.high)),
        confidence: f.confidence.name(),
        caveats: f.caveats.clone(),
    }
}

pub(super) struct RooflineView {
    pub gpu: String,
    pub verdict: String,
    pub bound: &'static str,
    pub times: Vec<(&'static str, String)>,
    pub occupancy: String,
    pub source: String,
    pub chart: Option<Chart>,
}

pub(super) fn roofline(r: &Roofline) -> RooflineView {
    let o = &r.occupancy;
    let waves =
        if o.waves.is_finite() { format!("; the grid fills all SMs {:.2} times", o.waves) } else { String::new() };
    RooflineView {
        gpu: r.gpu.name.clone(),
        verdict: r.verdict.clone(),
        bound: r.bound.name(),
        times: vec![
            ("issue slots and execution pipes", span(r.issue_s)),
            ("memory", span(r.memory_s)),
            ("waiting for results", span(r.latency_s)),
            ("the launch as a whole", span(r.time_s)),
        ],
        occupancy: format!(
            "{} of {} warps are resident on an SM, limited by {}{waves}.",
            o.warps_per_sm,
            o.of,
            o.limit.name()
        ),
        source: r.gpu.source.clone(),
        chart: chart(r),
    }
}

fn chart(r: &Roofline) -> Option<Chart> {
    let (gpu, d) = (&r.gpu, &r.demand);
    let issue = f64::from(gpu.sms) * f64::from(gpu.schedulers) * gpu.clock_mhz * 1e6;
    let n = d.warp_instructions as f64;
    let sectors = d.sectors as f64 * 32.0;
    let touched = d.distinct_bytes.map_or(sectors, |b| b as f64);
    let (few, many) = (touched.min(sectors), touched.max(sectors));
    let roof = Roof {
        issue,
        memory: gpu.dram_gbs * 1e9,
        intensity: (n / many, n / few),
        rate: (n / r.time_s.high, n / r.time_s.low),
    };
    let summary = format!(
        "Roofline of {}: the launch issues between {:.3} and {:.3} warp instructions for each byte; it is {}.",
        gpu.name,
        roof.intensity.0,
        roof.intensity.1,
        r.bound.name()
    );
    charts::roofline("Issue slots against memory bandwidth".into(), summary, &roof)
}

/// A time that may be a range: `12.3 µs`, `12 to 40 µs`.
fn span(r: Range) -> String {
    let (scale, unit) = match r.high {
        x if x >= 1.0 => (1.0, "s"),
        x if x >= 1e-3 => (1e3, "ms"),
        _ => (1e6, "\u{b5}s"),
    };
    let (low, high) = (r.low * scale, r.high * scale);
    if format!("{low:.3}") == format!("{high:.3}") {
        format!("{low:.3} {unit}")
    } else {
        format!("{low:.3} to {high:.3} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_fitting_units() {
        assert_eq!(span(Range::exactly(0.0123)), "12.300 ms");
        assert_eq!(span(Range { low: 1e-6, high: 4e-5 }), "1.000 to 40.000 \u{b5}s");
        assert_eq!(span(Range::exactly(2.0)), "2.000 s");
    }
}
