//! `loop-trips`.

use lanescope_ir::Severity;
use lanescope_ir::finding::Evidence;

use super::LintRule;
use super::cx::{Cx, Step, chain};
use crate::uniformity::{Level, Origin, Verdict};

/// A loop whose turns depend on data of the lane.
pub(super) const RULE: LintRule = LintRule {
    name: "loop-trips",
    summary: "lanes of a warp turn a loop unequally often, by data",
    page: "\
A warp goes round a loop as often as its busiest lane, and lanes that are done wait. Here the number of turns comes from
data that each lane loads for itself, so lanes may differ. What it costs depends on the data: `lanescope run` with real
data tells.

What helps, if it costs much: sort or bucket the items by their number of turns; give a long item to several lanes; let a
lane that is done fetch its next item in the same loop; merge a nested loop into the outer one, so that lanes rejoin once.

Evidence: loop_header_pc.",
    check: Some(check),
};

fn check(c: &mut Cx<'_>) {
    for trips in &c.uniformity.loops {
        if trips.level <= Level::Warp || !c.alive(trips.header) {
            continue;
        }
        let exits = trips.exits.iter().filter_map(|&e| c.uniformity.branches.get(e as usize));
        let by_data = |b: &&crate::uniformity::Branch| {
            b.verdict == Verdict::Data && !b.guards_trap && matches!(b.origin(), Origin::Load { .. })
        };
        let Some(exit) = exits.into_iter().find(by_data) else { continue };
        let message = format!(
            "Lanes leave the loop at {}, {}, by data{}: a warp turns as often as its busiest lane.",
            c.text(exit.inst),
            c.place(exit.inst),
            c.source(exit),
        );
        let mut witness = vec![Step { inst: exit.inst, note: "lanes leave the loop here".to_owned() }];
        witness.extend(chain(c.kernel, exit).into_iter().skip(1).take(8));
        let pc = c.kernel.instructions.get(trips.header as usize).map_or(0, |i| i.pc);
        c.report(
            RULE.name,
            Severity::Info,
            exit.inst,
            message,
            witness,
            vec![("loop_header_pc", Evidence::Count(pc.into()))],
        );
    }
}
