//! The steps of one warp, one line each, lanes as columns.
//!
//! ```text
//!  step  lane 0       8       16      24      
//!     7  0x00d0  ################################  @P0 BRA 0x1c0            split: 16 lanes taken
//!     8  0x00e0  .#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#  MOV R0, 0x28
//! ```

use std::fmt::Write;

use lanescope_ir::{Kernel, LaneMask};

use crate::layout::{DIM, HEAD, WARN, styled};

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
    /// What happened to the group, in words; empty if it just goes on.
    pub event: String,
}

/// A warp's trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Which warp, in words.
    pub title: String,
    /// Lanes that exist.
    pub lanes: LaneMask,
    /// Lanes of a warp.
    pub warp_size: u32,
    /// Its steps.
    pub steps: Vec<Step>,
    /// Whether later steps were left out.
    pub cut: bool,
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
    let _ = writeln!(out, "{}", styled(DIM, format!("{:>6}  {:<10}  {ruler}", "step", "line").trim_end()));
    let mut line_before = None;
    for s in &trace.steps {
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
        let line = lanescope_analysis::words::at_line(kernel, s.inst);
        let shown = if line == line_before { String::new() } else { line.clone().unwrap_or_default() };
        line_before = line;
        let short: String = shown.chars().rev().take(10).collect::<Vec<_>>().into_iter().rev().collect();
        let text = kernel.text.get(at).map_or("?", String::as_str);
        let mut row = format!("{:>6}  {short:<10}  {lanes}  {pc:#06x}  {text}", s.step);
        if !s.event.is_empty() {
            let _ = write!(row, "  {}", styled(WARN, &s.event));
            for (inst, lanes) in &s.others {
                let pc = kernel.instructions.get(*inst as usize).map_or(0, |i| i.pc);
                let _ = write!(row, "  {}", styled(DIM, &format!("[{lanes} at {pc:#06x}]")));
            }
        }
        let _ = writeln!(out, "{}", row.trim_end());
    }
    if trace.cut {
        let _ = writeln!(out, "{}", styled(DIM, "later steps were left out"));
    }
    out
}
