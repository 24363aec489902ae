//! `implicit-reconvergence`.

use lanescope_ir::finding::Evidence;
use lanescope_ir::{LaneMask, Severity};

use super::LintRule;
use super::cx::{Cx, Parting, Step, plural};
use super::missing_syncwarp::{groups, steps};
use super::shared_pairs::{Pair, pairs};
use super::syncs::{Kind, Named};
use crate::uniformity::Verdict;

/// Code behind an if that counts on the lanes being together again.
pub(super) const RULE: LintRule = LintRule {
    name: "implicit-reconvergence",
    summary: "code behind an if counts on the lanes of the warp being together again",
    page: "\
After `if (lane == 0) s[w] = v;` it looks as if all lanes had passed the if when the next line runs. Since Volta nothing
promises that: lanes that skipped the if may go on while lane 0 is still in it. A value that one lane leaves in shared
memory for the others may be read before it is there, and a vote or shuffle without `_sync` sees whoever happens to be
together.

What helps: `__syncwarp()` behind the if; or hand the value over with `__shfl_sync(mask, v, 0)`.

Evidence: writers, readers.",
    check: Some(check),
};

/// Whether the lanes that write are fewer than those that read: they went into an if of their own.
pub(super) fn relies_on_a_join(c: &Cx<'_>, p: &Pair) -> bool {
    if p.storing.contains(p.loading) || p.storing == p.loading {
        return false;
    }
    parting(c, p).is_some()
}

/// The branch, or the guard, that only the writing lanes pass.
fn parting<'a>(c: &Cx<'a>, p: &Pair) -> Option<Parting<'a>> {
    let at_load: Vec<u32> = c.partings(p.load).iter().map(|q| q.branch.inst).collect();
    let mut own = c.partings(p.store).into_iter().filter(|q| q.splits_warps() && !at_load.contains(&q.branch.inst));
    own.next_back().or_else(|| c.guard(p.store).filter(Parting::splits_warps))
}

fn check(c: &mut Cx<'_>) {
    let all: Vec<Pair> = pairs(c).into_iter().filter(|p| relies_on_a_join(c, p)).collect();
    for group in groups(all) {
        let Some(first) = group.first().cloned() else { continue };
        let Some(parting) = parting(c, &first) else { continue };
        let of = first.warp.map_or(String::new(), |w| format!(" of warp {w}"));
        let message = format!(
            "Only {} {}{of} {} at {}, in the branch at {}; {} {} read it at {}, behind the branch, and nothing makes them \
             wait. Put __syncwarp() behind the branch.",
            plural(first.writers),
            first.writers,
            if first.writers.count() == 1 { "writes" } else { "write" },
            c.place(first.store),
            c.place(parting.branch.inst),
            plural(first.readers),
            first.readers,
            c.place(first.load),
        );
        let mut witness = steps(&group);
        witness.extend(c.because(&parting));
        let evidence = vec![
            ("writers", Evidence::Text(first.writers.to_string())),
            ("readers", Evidence::Text(first.readers.to_string())),
        ];
        c.report(RULE.name, Severity::Error, first.load, message, witness, evidence);
    }
    before_sync(c);
}

/// PTX from before `.sync`: a shuffle or vote behind a branch that may split warps.
fn before_sync(c: &mut Cx<'_>) {
    if c.is_sass() {
        return;
    }
    for sync in c.syncs.clone() {
        if sync.named != Named::Nobody || sync.kind == Kind::Sync || !c.alive(sync.op) || c.spoken(sync.op) {
            continue;
        }
        let cfg = &c.structure.cfg;
        let Some(here) = cfg.block(sync.op) else { continue };
        let before = c.uniformity.branches.iter().find(|b| {
            let splits = matches!(b.verdict, Verdict::Data | Verdict::Lanes(_) | Verdict::Boundary(_));
            let Some(block) =
                cfg.block(b.inst).filter(|_| splits && b.inst < sync.op && !b.guards_trap && !b.whole_group)
            else {
                return false;
            };
            c.structure.dom.dominates(block, here)
        });
        let Some(branch) = before.cloned() else { continue };
        let p = Parting { branch: std::borrow::Cow::Owned(branch), side: u32::MAX, leaves: false };
        let message = format!(
            "{} at {} has no `.sync`: it works on whoever is together, and lanes parted at {} need not be together again. \
             Use the `.sync` form and name the lanes.",
            c.text(sync.op),
            c.place(sync.op),
            c.place(p.branch.inst),
        );
        let mut witness = vec![Step { inst: sync.op, note: "works on whoever is here".to_owned() }];
        witness.extend(c.because(&p));
        let evidence = vec![
            ("writers", Evidence::Text(LaneMask::EMPTY.to_string())),
            ("readers", Evidence::Text(LaneMask::EMPTY.to_string())),
        ];
        c.speak([sync.op]);
        c.report(RULE.name, Severity::Warning, sync.op, message, witness, evidence);
    }
}
