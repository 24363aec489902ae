//! `long-rare-path`.

use lanescope_ir::Severity;
use lanescope_ir::finding::Evidence;

use super::LintRule;
use super::arms::{arms, lanes};
use super::cx::{Cx, Step, chain, plural};
use crate::words;

/// Lanes that count as few, and instructions that count as long.
const FEW: u32 = 8;
const LONG: u64 = 40;

/// Few lanes take a long way.
pub(super) const RULE: LintRule = LintRule {
    name: "long-rare-path",
    summary: "a few lanes of each warp take a long way while the others wait",
    page: "\
A warp that splits runs both sides, one after the other. If one lane in 32 takes a way of 100 instructions and the others
one of 5, the warp issues 105 instructions, of which its 32 lanes use (1 x 100 + 31 x 5) / (32 x 105) = 7.6 %.

What helps: give the long way to all lanes of the warp (a loop over its items with 32 lanes at once); collect the rare
items and treat them in a kernel of their own; or, if it is work for the whole block (a final sum), let as few
instructions as possible stay inside.

Instructions in loops are counted once: with more turns the figure is lower still.

Evidence: lanes_on_long_side, long_side, short_side, lane_efficiency.",
    check: Some(check),
};

fn check(c: &mut Cx<'_>) {
    for branch in &c.uniformity.branches {
        let (Some((taken, there)), Some((jump, fall))) = (lanes(branch), arms(c, branch)) else { continue };
        let other = there - taken;
        let (few, long, short) = if jump.len >= fall.len { (taken, jump, fall) } else { (other, fall, jump) };
        let rest = there.count().saturating_sub(few.count());
        if few.is_empty() || few.count() > FEW || rest <= few.count() || long.len < LONG || long.len < 4 * short.len {
            continue;
        }
        let used = u64::from(few.count()) * long.len + u64::from(rest) * short.len;
        let slots = 32 * (long.len + short.len);
        let efficiency = used as f64 / slots as f64;
        let message = format!(
            "{} {} of a warp {} {} instructions behind {} at {} while the others have {}: lane efficiency {} there{}.",
            if few.count() == 1 { "Lane" } else { "Lanes" },
            few,
            if few.count() == 1 { "runs" } else { "run" },
            long.len,
            c.text(branch.inst),
            c.place(branch.inst),
            short.len,
            words::percent(efficiency),
            if long.loops { ", less if its loop turns more than once" } else { "" },
        );
        let mut witness = vec![Step { inst: branch.inst, note: format!("{} {few} on the long side", plural(few)) }];
        witness.extend(long.first.map(|inst| Step { inst, note: "the long side starts here".to_owned() }));
        witness.extend(chain(c.kernel, branch).into_iter().skip(1).take(6));
        let evidence = vec![
            ("lanes_on_long_side", Evidence::Text(few.to_string())),
            ("long_side", Evidence::Count(long.len)),
            ("short_side", Evidence::Count(short.len)),
            ("lane_efficiency", Evidence::Ratio(efficiency)),
        ];
        c.report(RULE.name, Severity::Info, branch.inst, message, witness, evidence);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_seed_figure() {
        let (few, rest, long, short) = (1u64, 31u64, 100u64, 5u64);
        let efficiency = (few * long + rest * short) as f64 / (32 * (long + short)) as f64;
        assert_eq!(crate::words::percent(efficiency), "7.6 %");
    }
}
