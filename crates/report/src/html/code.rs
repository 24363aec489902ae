//! Source and machine code side by side, packed: one column a figure, runs of equal values.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use lanescope_analysis::histogram::{Histogram, What};
use lanescope_analysis::{Line, Part, Place};
use lanescope_ir::{BranchCounts, BranchKind, Op};
use serde::Serialize;

use super::pack::{runs, stretches};
use crate::Input;

/// Source files of more lines are shown around the lines that have instructions.
const WHOLE_FILE: usize = 4000;
/// Lines shown around such a line.
const AROUND: usize = 30;

/// Everything the two lists show.
#[derive(Debug, Serialize)]
pub(super) struct Code<'a> {
    width: u32,
    text: &'a [String],
    /// Instructions that continue the source instruction before them.
    continued: Vec<u64>,
    pc: Vec<(u32, i64, u32)>,
    /// Functions besides the kernel: first instruction, name.
    functions: Vec<(u32, String)>,
    issued: Vec<u64>,
    threads: Vec<u64>,
    lost: Vec<u64>,
    /// Active lanes with a false guard, at instructions that do not steer.
    off: Vec<u64>,
    /// Active lanes whose result a lock-step loop throws away.
    discarded: Vec<u64>,
    /// The line of each instruction, as an index into `lines`.
    line: Vec<u64>,
    /// Call sites of each instruction, as an index into `sites`.
    site: Vec<u64>,
    /// Distinct stacks of call sites, innermost first: file, line, function. The first is empty.
    sites: Vec<Vec<(u32, u32, String)>>,
    /// Causes of each instruction's loss, as an index into `part_lists`.
    parts: Vec<u64>,
    part_lists: Vec<Vec<PartData>>,
    branches: Vec<BranchData>,
    lines: Vec<LineData>,
    causes: Vec<CauseData>,
    files: Vec<File<'a>>,
}

/// Cause, lane slots, whether the share is an estimate.
type PartData = (usize, u64, bool);

#[derive(Debug, Serialize)]
struct BranchData {
    inst: u32,
    kind: &'static str,
    executed: u64,
    divergent: u64,
    taken: u64,
    passed: u64,
    /// How many lanes went when it split, in words.
    lanes: String,
}

#[derive(Debug, Serialize)]
struct LineData {
    /// `null` for a block without line information.
    file: Option<u32>,
    /// The line, or the block's first instruction.
    at: u32,
    issued: u64,
    threads: u64,
    lost: u64,
    off: u64,
    discarded: u64,
    parts: Vec<PartData>,
    /// Flagged: hot loop, few lanes.
    hot: bool,
    /// A choice that the compiler turned into guards or selects.
    predicated: bool,
}

#[derive(Debug, Serialize)]
struct CauseData {
    name: &'static str,
    inst: Option<u32>,
    lanes: u64,
}

#[derive(Debug, Serialize)]
struct File<'a> {
    name: &'a str,
    /// Pieces of its text: first line, lines joined by line ends. Empty if the text was not found.
    text: Vec<(usize, String)>,
}

/// Packs what `input` says about code.
pub(super) fn code<'a>(input: &Input<'a>, name: &dyn Fn(&str) -> String) -> Code<'a> {
    let (kernel, analysis) = (input.kernel, input.analysis);
    let n = kernel.instructions.len();
    let counts =
        |f: fn(&lanescope_ir::LaneCounts) -> u64| runs((0..n).map(|i| input.profile.counts.get(i).map_or(0, f)));
    let loss = |i: usize| analysis.losses.instructions.get(i);
    let cause_of: HashMap<_, _> = analysis.losses.causes.iter().enumerate().map(|(i, c)| (c.cause, i)).collect();
    let pack = |parts: &[Part]| -> Vec<PartData> {
        parts.iter().filter_map(|p| Some((*cause_of.get(&p.cause)?, p.lanes, p.estimate))).collect()
    };
    let mut line_of = vec![0u64; n];
    for (l, line) in analysis.lines.iter().enumerate() {
        for &i in &line.instructions {
            if let Some(slot) = line_of.get_mut(i as usize) {
                *slot = l as u64;
            }
        }
    }
    let mut part_lists = Distinct::default();
    let parts = runs((0..n).map(|i| part_lists.add(pack(loss(i).map_or(&[], |l| &l.parts)))));
    let mut sites = Distinct::default();
    sites.add(Vec::new());
    let site = runs((0..n).map(|i| {
        let stack = kernel.source.get(i).map_or(&[][..], |l| &l.inlined_at);
        sites.add(stack.iter().map(|s| (s.file, s.line, s.function.as_deref().map(name).unwrap_or_default())).collect())
    }));
    Code {
        width: input.profile.shape.warp_size,
        text: &kernel.text,
        continued: runs(kernel.continued.iter().map(|&c| u64::from(c))),
        pc: stretches(kernel.instructions.iter().map(|i| i.pc)),
        functions: kernel.functions.iter().skip(1).map(|f| (f.first.0, name(&f.name))).collect(),
        issued: counts(|c| c.inst_executed),
        threads: counts(|c| c.thread_inst_executed),
        lost: runs((0..n).map(|i| loss(i).map_or(0, |l| l.lost))),
        off: runs((0..n).map(|i| match kernel.instructions[i].op {
            Op::Control(_) => 0,
            _ => loss(i).map_or(0, |l| l.predicated_off),
        })),
        discarded: runs((0..n).map(|i| loss(i).map_or(0, |l| l.discarded))),
        line: runs(line_of),
        site,
        sites: sites.list,
        parts,
        part_lists: part_lists.list,
        branches: branches(input),
        lines: analysis.lines.iter().map(|l| line(l, pack(&l.parts))).collect(),
        causes: analysis
            .losses
            .causes
            .iter()
            .map(|c| CauseData { name: c.cause.name(), inst: c.cause.inst(), lanes: c.lanes })
            .collect(),
        files: files(input),
    }
}

fn branches(input: &Input<'_>) -> Vec<BranchData> {
    let ran = input.profile.branches.iter().filter(|b| b.executed > 0);
    ran.map(|b| BranchData {
        inst: b.inst,
        kind: b.kind.name(),
        executed: b.executed,
        divergent: b.divergent,
        taken: b.lanes_taken,
        passed: b.lanes_not_taken,
        lanes: lanes(b),
    })
    .collect()
}

fn lanes(b: &BranchCounts) -> String {
    let what = match b.kind {
        BranchKind::Branch => What::LanesTaken,
        BranchKind::Exit => What::LanesLeft,
        BranchKind::Indirect => What::Groups,
    };
    let values: Vec<(u64, u64)> = b.lanes_histogram.iter().map(|&(lanes, n)| (lanes.into(), n)).collect();
    if values.is_empty() { String::new() } else { Histogram::new(what, &values).words() }
}

fn line(l: &Line, parts: Vec<PartData>) -> LineData {
    let (file, at) = match l.place {
        Place::Source { file, line } => (Some(file), line),
        Place::Block(inst) => (None, inst),
    };
    LineData {
        file,
        at,
        issued: l.inst_executed,
        threads: l.thread_inst_executed,
        lost: l.lost,
        off: l.predicated_off,
        discarded: l.discarded,
        parts,
        hot: l.flagged,
        predicated: l.predicated(),
    }
}

/// All files of the line table; those that were found with their text.
fn files<'a>(input: &Input<'a>) -> Vec<File<'a>> {
    let mut used: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
    for line in &input.analysis.lines {
        if let Place::Source { file, line } = line.place {
            used.entry(file).or_default().insert(line as usize);
        }
    }
    for location in &input.kernel.source.locations {
        for site in &location.inlined_at {
            used.entry(site.file).or_default().insert(site.line as usize);
        }
    }
    let text = |file: u32| match (input.sources.get(&file), used.get(&file)) {
        (Some(text), Some(used)) => pieces(text, used),
        _ => Vec::new(),
    };
    (0..).zip(&input.kernel.source.files).map(|(i, name)| File { name, text: text(i) }).collect()
}

/// The whole text, or of a long one the parts around `used` lines.
fn pieces(text: &[String], used: &BTreeSet<usize>) -> Vec<(usize, String)> {
    if text.len() <= WHOLE_FILE {
        return vec![(1, text.join("\n"))];
    }
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &line in used.iter().filter(|&&l| l > 0 && l <= text.len()) {
        let (first, last) = (line.saturating_sub(AROUND).max(1), (line + AROUND).min(text.len()));
        match ranges.last_mut() {
            Some((_, end)) if *end + 1 >= first => *end = last,
            _ => ranges.push((first, last)),
        }
    }
    ranges.into_iter().filter_map(|(a, b)| Some((a, text.get(a - 1..b)?.join("\n")))).collect()
}

/// Values by number, equal ones once.
struct Distinct<T> {
    list: Vec<T>,
    known: HashMap<T, u64>,
}

impl<T> Default for Distinct<T> {
    fn default() -> Self {
        Distinct { list: Vec::new(), known: HashMap::new() }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Distinct<T> {
    fn add(&mut self, value: T) -> u64 {
        if let Some(&at) = self.known.get(&value) {
            return at;
        }
        let at = self.list.len() as u64;
        self.list.push(value.clone());
        self.known.insert(value, at);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_are_shown_around_their_lines() {
        let text: Vec<String> = (1..=10_000).map(|i| format!("line {i}")).collect();
        let shown = pieces(&text, &[0, 5, 50, 5000, 99_999].into());
        let starts: Vec<_> = shown.iter().map(|(first, t)| (*first, t.lines().count())).collect();
        assert_eq!(starts, [(1, 80), (4970, 61)]);
        assert!(shown[1].1.starts_with("line 4970\n") && shown[1].1.ends_with("line 5030"));
        let all = pieces(&text[..4000], &[5].into());
        assert_eq!((all.len(), all[0].0, all[0].1.lines().count()), (1, 1, 4000));
    }
}
