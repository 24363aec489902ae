//! The steps of one warp, one line each, lanes as columns.
//!
//! ```text
//!  step  line         0       8       16      24
//!    13  kernel.cu:15 #o#o#o#o#o#o#o#o#o#o#o#o#o#o#o#o  0x00d0  @P0 BRA 0x160  split: 16 of 32 lanes take it
//!    14  kernel.cu:4  -#-#-#-#-#-#-#-#-#-#-#-#-#-#-#-#  0x00e0  MOV R0, 0x28  [16 lanes at 0x0160]
//! ```

use std::fmt::Write;

use lanescope_analysis::words::at_line;
use lanescope_ir::{Kernel, LaneMask};

use crate::layout::{DIM, HEAD, WARN, styled};

/// Widest column of places.
const LINE_WIDTH: usize = 32;

/// One issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its number within the warp.
    pub step: u64,
    /// Index of the instruction.
    pub inst: u32,
    /// Lanes of the group.
    pub active: LaneMask,
    /// Lanes whose guard holds.
    pub executing: LaneMask,
    /// Groups that do not run now: where they stand, and their lanes.
    pub others: Vec<(u32, LaneMask)>,
    /// What happened to the group.
    pub event: Event,
}

/// What a step did to its group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Event {
    /// It goes on.
    #[default]
    Step,
    /// Its lanes went apart.
    Split {
        /// Those that took the branch.
        taken: LaneMask,
    },
    /// Its lanes went several ways through a table.
    Scatter {
        /// How many.
        ways: u32,
    },
    /// All its lanes step aside (a YIELD, a parked group that must run first).
    Aside,
    /// It went elsewhere.
    Jump,
    /// Lanes left.
    Exit {
        /// Which.
        lanes: LaneMask,
    },
    /// It, or a part of it, waits.
    Wait,
    /// Lanes that had been apart go on together.
    Join {
        /// The group that goes on.
        group: LaneMask,
    },
}

impl Event {
    /// In words, about a step of the lanes `active`; empty if they just go on.
    pub fn words(self, active: LaneMask) -> String {
        match self {
            Event::Step => String::new(),
            Event::Aside => "another group runs".into(),
            Event::Split { taken } => format!("split: {} of {} lanes take it", taken.count(), active.count()),
            Event::Scatter { ways } => format!("split: {} lanes go {ways} ways", active.count()),
            Event::Jump => "jump".into(),
            Event::Exit { lanes } if lanes.count() == 1 => "1 lane leaves".into(),
            Event::Exit { lanes } => format!("{} lanes leave", lanes.count()),
            Event::Wait => "waits".into(),
            Event::Join { group } => format!("join: {} lanes go on together", group.count()),
        }
    }
}

/// A warp's trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Which warp, in words.
    pub title: String,
    /// Linear index of the block.
    pub block: u64,
    /// Index of the warp in the block.
    pub warp: u32,
    /// Lanes that exist.
    pub lanes: LaneMask,
    /// Lanes of a warp.
    pub warp_size: u32,
    /// Its steps.
    pub steps: Vec<Step>,
    /// Whether later steps were left out.
    pub cut: bool,
}

impl Trace {
    /// How the lanes of step `at` go on: those that run next first, then those that stand elsewhere, each with where they
    /// are. More than one says that they went apart.
    pub fn sides(&self, at: usize) -> Vec<(u32, LaneMask)> {
        let (Some(step), Some(next)) = (self.steps.get(at), self.steps.get(at + 1)) else { return Vec::new() };
        std::iter::once((next.inst, next.active))
            .chain(next.others.iter().copied())
            .map(|(to, lanes)| (to, lanes & step.active))
            .filter(|(_, lanes)| !lanes.is_empty())
            .collect()
    }
}

/// The trace as text with ANSI styles.
pub fn text(kernel: &Kernel, trace: &Trace) -> String {
    let width = trace.warp_size.clamp(1, 64);
    let mut out = String::new();
    let _ = writeln!(out, "{}", styled(HEAD, &trace.title));
    let legend = "# executes  o active, guard false  - waits or is parked elsewhere  blank: not there, or has left";
    let _ = writeln!(out, "{}", styled(DIM, legend));
    let mut ruler = String::new();
    for lane in (0..width).step_by(8) {
        let _ = write!(ruler, "{lane:<8}");
    }
    let places: Vec<String> = trace.steps.iter().map(|s| at_line(kernel, s.inst).unwrap_or_default()).collect();
    let column = places.iter().map(|p| p.chars().count()).max().unwrap_or(0).clamp(4, LINE_WIDTH);
    let _ = writeln!(out, "{}", styled(DIM, format!("{:>6}  {:<column$}  {ruler}", "step", "line").trim_end()));
    let mut before = "";
    let mut others_before: &[(u32, LaneMask)] = &[];
    for (s, place) in trace.steps.iter().zip(&places) {
        let elsewhere = s.others.iter().fold(LaneMask::EMPTY, |m, (_, l)| m | *l);
        let lanes: String = (0..width)
            .map(|i| {
                if s.executing.has(i) {
                    '#'
                } else if s.active.has(i) {
                    'o'
                } else if elsewhere.has(i) {
                    '-'
                } else {
                    ' '
                }
            })
            .collect();
        let at = s.inst as usize;
        let pc = kernel.instructions.get(at).map_or(0, |i| i.pc);
        // A long path keeps its end, where the line number is.
        let shown = if place == before { "" } else { place };
        before = place;
        let cut = shown.chars().count().saturating_sub(column);
        let short: String = shown.chars().skip(cut).collect();
        let text = kernel.text.get(at).map_or("?", String::as_str);
        let mut row = format!("{:>6}  {short:<column$}  {lanes}  {pc:#06x}  {text}", s.step);
        let event = s.event.words(s.active);
        if !event.is_empty() {
            let _ = write!(row, "  {}", styled(WARN, &event));
        }
        if s.others != others_before {
            for (inst, lanes) in &s.others {
                let pc = kernel.instructions.get(*inst as usize).map_or(0, |i| i.pc);
                let n = lanes.count();
                let noun = if n == 1 { "lane" } else { "lanes" };
                let _ = write!(row, "  {}", styled(DIM, &format!("[{n} {noun} at {pc:#06x}]")));
            }
            others_before = &s.others;
        }
        let _ = writeln!(out, "{}", row.trim_end());
    }
    if trace.cut {
        let _ = writeln!(out, "{}", styled(DIM, "later steps were left out"));
    }
    out
}
