//! From hazards at each level to the findings of a report.

use std::collections::BTreeMap;

use lanescope_analysis::lint::Hazard;
use lanescope_ir::finding::Evidence;
use lanescope_report::check::{Figure, Finding, Step};
use sha2::{Digest, Sha256};

use super::Places;
use super::changes::Changes;

/// A hazard with the level that it was seen at.
pub(super) struct Seen<'a> {
    pub(super) level: String,
    pub(super) hazard: Hazard,
    pub(super) places: Places<'a>,
}

/// Rules about the mask of an operation across lanes: PTX names it, machine code does not always.
const MASKS: [&str; 3] = ["mask-absent-lanes", "mask-in-divergent-code", "partial-last-warp"];
/// A guess about machine code that is not needed where that is at hand.
const PTX_ALONE: &str = "short-branch";

/// One finding for what was seen at several levels, the gravest first. `both`: machine code and PTX were looked at.
pub(super) fn merge(seen: Vec<Seen<'_>>, kernel: &str, both: bool) -> Vec<Finding> {
    let overruled = overruled(&seen, both);
    let mut out: Vec<Finding> = Vec::new();
    for (s, overruled) in seen.into_iter().zip(overruled) {
        if overruled || both && s.hazard.finding.rule == PTX_ALONE {
            continue;
        }
        let f = finding(s, kernel);
        match out.iter_mut().find(|o| same(o, &f)) {
            Some(o) => {
                o.severity = o.severity.max(f.severity);
                for level in f.levels {
                    if !o.levels.contains(&level) {
                        o.levels.push(level);
                    }
                }
            }
            None => out.push(f),
        }
    }
    out.sort_by(|a, b| {
        let key = |f: &Finding| (std::cmp::Reverse(f.severity), f.place.file.clone(), f.place.line, f.place.pc);
        key(a).cmp(&key(b))
    });
    out
}

/// The same fault at two levels: the same rule on the same line, or one's line in the other's witness.
fn same(a: &Finding, b: &Finding) -> bool {
    let line = |f: &Finding| f.place.file.clone().zip(f.place.line);
    let (Some(x), Some(y)) = (line(a), line(b)) else { return false };
    let of = |f: &Finding, at: &(String, u32)| {
        f.witness.iter().any(|s| s.place.line == Some(at.1) && s.place.file.as_ref() == Some(&at.0))
    };
    a.rule == b.rule && a.levels != b.levels && (x == y || of(a, &y) && of(b, &x))
}

fn finding(s: Seen<'_>, kernel: &str) -> Finding {
    let Seen { level, hazard, places } = s;
    let Hazard { finding: f, witness } = hazard;
    let place = f.inst.map(|i| places.place(i)).unwrap_or_default();
    let witness: Vec<Step> = witness.into_iter().map(|w| Step { place: places.place(w.inst), note: w.note }).collect();
    let evidence: BTreeMap<&'static str, Figure> = f
        .evidence
        .into_iter()
        .map(|(name, e)| {
            let figure = match e {
                Evidence::Count(n) => Figure::Count(n),
                Evidence::Ratio(x) => Figure::Ratio(x),
                Evidence::Text(t) => Figure::Text(t),
            };
            (name, figure)
        })
        .collect();
    let fingerprint = fingerprint(f.rule, kernel, &place, &witness);
    Finding {
        rule: f.rule,
        severity: f.severity,
        levels: vec![level],
        place,
        message: f.message,
        witness,
        evidence,
        fingerprint,
    }
}

/// Of the rule, the kernel and what is written at the places, not of their numbers: it stays when lines move.
fn fingerprint(rule: &str, kernel: &str, place: &lanescope_report::check::Place, witness: &[Step]) -> String {
    let mut hash = Sha256::new();
    let mut add = |part: &str| {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    };
    add(rule);
    add(kernel);
    let file = place.file.as_deref().map(|f| f.rsplit(['/', '\\']).next().unwrap_or(f).to_owned());
    add(file.as_deref().unwrap_or(""));
    let line = |p: &lanescope_report::check::Place| p.source.clone().unwrap_or_else(|| p.text.clone());
    add(&line(place));
    if let Some(first) = witness.iter().find(|s| s.place.source != place.source) {
        add(&line(&first.place));
    }
    hash.finalize().iter().take(16).map(|b| format!("{b:02x}")).collect()
}

/// Whether a changed line has a part in a finding: its own line, or that of a step of its witness.
pub(super) fn touches(f: &Finding, changes: &Changes) -> bool {
    let places = std::iter::once(&f.place).chain(f.witness.iter().map(|s| &s.place));
    places.into_iter().any(|p| p.file.as_ref().zip(p.line).is_some_and(|(file, line)| changes.contains(file, line)))
}

/// Machine code of a kernel whose PTX is at hand: where it names no mask, PTX has the word.
fn overruled(seen: &[Seen<'_>], both: bool) -> Vec<bool> {
    let lines = |s: &Seen<'_>| -> Vec<(Option<String>, Option<u32>)> {
        let steps = s.hazard.witness.iter().map(|w| w.inst).chain(s.hazard.finding.inst);
        steps.map(|i| s.places.place(i)).map(|p| (p.file, p.line)).collect()
    };
    let is_mask = |s: &Seen<'_>| MASKS.contains(&s.hazard.finding.rule);
    let ptx: Vec<_> = seen.iter().filter(|s| s.level == "ptx" && is_mask(s)).flat_map(lines).collect();
    seen.iter()
        .map(|s| {
            let evidence = &s.hazard.finding.evidence;
            let unnamed = evidence.iter().any(|(_, e)| matches!(e, Evidence::Text(t) if t == "not named"));
            let weak = is_mask(s) && (unnamed || s.hazard.finding.rule == "partial-last-warp");
            let at = s.hazard.finding.inst.map(|i| s.places.place(i)).map(|p| (p.file, p.line));
            both && s.level != "ptx" && weak && at.is_some_and(|at| !ptx.contains(&at))
        })
        .collect()
}
