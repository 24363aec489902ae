//! `predicated`.

use lanescope_ir::finding::Evidence;
use lanescope_ir::{Finding, Severity};

use super::{Context, Rule};
use crate::words;

/// A choice without a branch.
pub(super) const RULE: Rule = Rule {
    name: "predicated",
    summary: "a choice that the compiler turned into guarded instructions or selects: no branch here",
    page: "\
For short code the compiler computes with a guard (`@P0 FADD ...`) or picks one of two results (`SEL`, `FSEL`). All
lanes go the same way; nothing diverges. What it costs is the guarded instructions themselves, issued once for all
lanes whether their guard holds or not. An if and a ternary give the same code.

There is nothing to fix. Judge a build with the optimisation you ship: with -G the branch comes back.

Evidence: guarded, selects, inst_executed, predicated_off.",
    check,
};

fn check(c: &Context<'_>, out: &mut Vec<Finding>) {
    for line in c.analysis.lines.iter().filter(|l| l.predicated()) {
        let chosen = |i: &&u32| {
            let inst = c.kernel.instructions.get(**i as usize);
            let ran = c.profile.counts.get(**i as usize).is_some_and(|c| c.inst_executed > 0);
            ran && (inst.is_some_and(|i| i.guard.pred.is_some()) || words::text(c.kernel, **i).contains("SEL"))
        };
        let Some(&inst) = line.instructions.iter().find(chosen) else { continue };
        let mut what = Vec::new();
        if line.guarded > 0 {
            what.push(format!("{} guarded instruction{}", line.guarded, if line.guarded == 1 { "" } else { "s" }));
        }
        if line.selects > 0 {
            what.push(format!("{} select{}", line.selects, if line.selects == 1 { "" } else { "s" }));
        }
        let off = match line.predicated_off {
            0 => String::new(),
            n => format!("; {} lanes were predicated off", words::count(n)),
        };
        out.push(Finding {
            rule: RULE.name,
            severity: Severity::Info,
            inst: Some(inst),
            message: format!(
                "{}: the compiler predicated it, no branch here ({}{off}).",
                words::at_line(c.kernel, inst).unwrap_or_else(|| words::place(c.kernel, inst)),
                what.join(" and "),
            ),
            evidence: vec![
                ("guarded", Evidence::Count(line.guarded.into())),
                ("selects", Evidence::Count(line.selects.into())),
                ("inst_executed", Evidence::Count(line.inst_executed)),
                ("predicated_off", Evidence::Count(line.predicated_off)),
            ],
        });
    }
}
