//! Counters by source line.
//!
//! An instruction belongs to the line its code was written on: for inlined code the line inside the inlined
//! function. Without a line table each basic block stands for a line.

use std::collections::BTreeMap;

use lanescope_ir::{Kernel, Op, Profile, op::control::ControlOp};

use crate::attribution::{Attribution, Part};
use crate::cfg::is_conditional;
use crate::regions::Structure;

/// Below this many of 32 threads per instruction a line of a hot loop is flagged.
pub const FLAG_THREADS: u64 = 28;
/// A loop is hot if it issues at least this share of all warp instructions.
pub const HOT_SHARE: f64 = 0.05;

/// What a row of the report stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// A source line.
    Source {
        /// Index into [`SourceMap::files`](lanescope_ir::SourceMap::files).
        file: u32,
        /// Line, from 1.
        line: u32,
    },
    /// A basic block without line information, by its first instruction.
    Block(u32),
}

/// The counters of one line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Which line.
    pub place: Place,
    /// Its instructions, ascending.
    pub instructions: Vec<u32>,
    /// Warp instructions.
    pub inst_executed: u64,
    /// Lane instructions.
    pub thread_inst_executed: u64,
    /// Lane instructions whose guard held.
    pub thread_inst_executed_pred_on: u64,
    /// Lane slots lost.
    pub lost: u64,
    /// `lost`, by cause, the largest first.
    pub parts: Vec<Part>,
    /// Active lanes whose guard was false, at instructions that do not steer.
    pub predicated_off: u64,
    /// Active lanes whose results a lock-step loop throws away.
    pub discarded: u64,
    /// In a loop that issues a fair share of all warp instructions.
    pub hot: bool,
    /// Hot and below 28 of 32 threads per instruction.
    pub flagged: bool,
    /// Executed instructions with a guard that are no branch.
    pub guarded: u32,
    /// Executed selects.
    pub selects: u32,
    /// Executed conditional branches, indirect branches and predicated exits.
    pub branches: u32,
}

impl Line {
    /// Whether the compiler turned a choice into guards or selects: no branch is left on the line.
    pub fn predicated(&self) -> bool {
        self.branches == 0 && self.guarded + self.selects > 0
    }
    /// Active lanes per issue, 0 if nothing was issued.
    pub fn threads_per_inst(&self) -> f64 {
        if self.inst_executed == 0 { 0.0 } else { self.thread_inst_executed as f64 / self.inst_executed as f64 }
    }
}

/// The line an instruction belongs to.
pub fn place(kernel: &Kernel, structure: &Structure, inst: u32) -> Place {
    match kernel.source.get(inst as usize) {
        Some(l) => Place::Source { file: l.file, line: l.line },
        None => {
            let block = structure.cfg.block(inst).and_then(|b| structure.cfg.blocks.get(b as usize));
            Place::Block(block.map_or(inst, |b| b.first))
        }
    }
}

/// Sums by line: most lost lane slots first, then most warp instructions.
pub fn lines(kernel: &Kernel, s: &Structure, profile: &Profile, losses: &Attribution) -> Vec<Line> {
    let hot = hot_blocks(s, profile);
    let width = u128::from(profile.shape.warp_size.max(1));
    let mut map: BTreeMap<Place, Line> = BTreeMap::new();
    for (at, (inst, c)) in kernel.instructions.iter().zip(&profile.counts).enumerate() {
        let place = place(kernel, s, at as u32);
        let line = map.entry(place).or_insert_with(|| Line::new(place));
        line.instructions.push(at as u32);
        if c.inst_executed == 0 {
            continue;
        }
        line.inst_executed = line.inst_executed.saturating_add(c.inst_executed);
        line.thread_inst_executed = line.thread_inst_executed.saturating_add(c.thread_inst_executed);
        line.thread_inst_executed_pred_on =
            line.thread_inst_executed_pred_on.saturating_add(c.thread_inst_executed_pred_on);
        line.hot |= s.cfg.block(at as u32).is_some_and(|b| hot[b as usize]);
        if let Some(loss) = losses.instructions.get(at) {
            line.lost = line.lost.saturating_add(loss.lost);
            line.discarded = line.discarded.saturating_add(loss.discarded);
            loss.parts.iter().for_each(|p| line.add(p));
        }
        match &inst.op {
            Op::Control(op) => line.branches += u32::from(can_split(op) && is_conditional(inst) || is_indirect(op)),
            _ => {
                let off = c.thread_inst_executed.saturating_sub(c.thread_inst_executed_pred_on);
                line.predicated_off = line.predicated_off.saturating_add(off);
                line.guarded += u32::from(inst.guard.pred.is_some() && !inst.uniform);
                line.selects += u32::from(kernel.text.get(at).is_some_and(|t| is_select(t)));
            }
        }
    }
    let mut list: Vec<Line> = map.into_values().collect();
    for line in &mut list {
        line.parts.sort_by(|a, b| b.lanes.cmp(&a.lanes).then(a.cause.cmp(&b.cause)));
        let (t, i) = (u128::from(line.thread_inst_executed), u128::from(line.inst_executed));
        line.flagged = line.hot && t * 32 < i * width * u128::from(FLAG_THREADS);
    }
    list.sort_by(|a, b| b.lost.cmp(&a.lost).then(b.inst_executed.cmp(&a.inst_executed)).then(a.place.cmp(&b.place)));
    list
}

impl Line {
    fn new(place: Place) -> Line {
        Line {
            place,
            instructions: Vec::new(),
            inst_executed: 0,
            thread_inst_executed: 0,
            thread_inst_executed_pred_on: 0,
            lost: 0,
            parts: Vec::new(),
            predicated_off: 0,
            discarded: 0,
            hot: false,
            flagged: false,
            guarded: 0,
            selects: 0,
            branches: 0,
        }
    }

    fn add(&mut self, p: &Part) {
        match self.parts.iter_mut().find(|o| o.cause == p.cause) {
            Some(o) => {
                o.lanes = o.lanes.saturating_add(p.lanes);
                o.estimate |= p.estimate;
            }
            None => self.parts.push(*p),
        }
    }
}

/// Blocks inside a loop that issues at least [`HOT_SHARE`] of all warp instructions.
fn hot_blocks(s: &Structure, profile: &Profile) -> Vec<bool> {
    let mut of_loop = vec![0u64; s.loops.list.len()];
    let mut total = 0u64;
    for (at, c) in profile.counts.iter().enumerate() {
        total = total.saturating_add(c.inst_executed);
        let inner = s.cfg.block(at as u32).and_then(|b| s.loops.innermost.get(b as usize).copied().flatten());
        if let Some(l) = inner {
            of_loop[l as usize] = of_loop[l as usize].saturating_add(c.inst_executed);
        }
    }
    // Inner loops come before the loops around them.
    for l in 0..of_loop.len() {
        if let Some(p) = s.loops.list[l].parent {
            of_loop[p as usize] = of_loop[p as usize].saturating_add(of_loop[l]);
        }
    }
    let hot: Vec<bool> = of_loop.iter().map(|&i| i > 0 && i as f64 >= total as f64 * HOT_SHARE).collect();
    s.loops.innermost.iter().map(|l| l.is_some_and(|l| hot[l as usize])).collect()
}

fn can_split(op: &ControlOp) -> bool {
    matches!(op, ControlOp::Branch { .. } | ControlOp::Exit { .. } | ControlOp::Return { .. })
}

fn is_indirect(op: &ControlOp) -> bool {
    matches!(op, ControlOp::BranchIndirect { .. } | ControlOp::CallIndirect { .. })
}

/// Whether an instruction's text is one of the selects that replace an if.
fn is_select(text: &str) -> bool {
    let name = text.rsplit_once("@").map_or(text, |(_, rest)| rest.split_once(' ').map_or("", |r| r.1));
    let name = name.trim_start().split([' ', '.']).next().unwrap_or("");
    matches!(name, "SEL" | "FSEL" | "selp")
}

#[cfg(test)]
mod tests {
    use super::is_select;

    #[test]
    fn selects_by_name() {
        assert!(is_select("SEL R4, R2, R3, !P0"));
        assert!(is_select("@!P1 FSEL R4, R2, R3, P0"));
        assert!(is_select("selp.b32 %r1, 1, 0, %p1"));
        assert!(!is_select("SELECT R0") && !is_select("IMAD R0, R0, R0, R0") && !is_select(""));
    }
}
