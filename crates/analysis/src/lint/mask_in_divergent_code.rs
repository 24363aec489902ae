//! `mask-in-divergent-code`.

use lanescope_ir::Severity;
use lanescope_ir::finding::Evidence;

use super::LintRule;
use super::cx::{Cx, Parting, Step};
use super::syncs::{Kind, Named, Shuffle, Sync};
use crate::uniformity::Verdict;

/// A constant mask where lanes may be missing.
pub(super) const RULE: LintRule = LintRule {
    name: "mask-in-divergent-code",
    summary: "a constant mask in code that only some lanes reach, which ones depends on data",
    page: "\
The mask of a `_sync` operation must name exactly the lanes that execute that call. Here a branch lets lanes pass by
data, so no constant can name them: the operation waits for lanes that may be somewhere else. It goes well as long as all
lanes agree, or as long as the others leave; it hangs when they wait at another barrier, and a shuffle reads undefined
values from lanes that are not there. In a loop, lanes that have left it are the ones that are missing.

What helps: move the operation out of the branch and guard only what is done with its result; or take the mask before
the branch, `m = __ballot_sync(mask, condition)`, and name `m` inside it. `__activemask()` inside the branch is no
remedy: it tells who happens to be together, not who will come.

Evidence: mask, branch_pc.",
    check: Some(check),
};

fn check(c: &mut Cx<'_>) {
    let mut groups: Vec<(u32, Vec<Sync>)> = Vec::new();
    for sync in c.syncs.clone() {
        if c.spoken(sync.op) || !c.alive(sync.at) {
            continue;
        }
        if let Some(branch) = culprit(c, &sync) {
            match groups.iter_mut().find(|g| g.0 == branch) {
                Some(g) => g.1.push(sync),
                None => groups.push((branch, vec![sync])),
            }
        }
    }
    for (branch, syncs) in groups {
        report(c, branch, &syncs);
    }
}

/// The branch that may keep lanes away which the operation counts on.
fn culprit(c: &Cx<'_>, sync: &Sync) -> Option<u32> {
    match sync.named {
        Named::Lanes(m) if m.count() > 1 => {}
        // Without a mask only a shuffle whose sources are fixed is sure to want other lanes.
        Named::Nobody if sync.kind == Kind::Shuffle && c.is_sass() => {
            Shuffle::at(c.kernel, sync.op)?.operands(c.uniformity, None, 0)?;
        }
        _ => return None,
    }
    let blames = |p: &&Parting<'_>| {
        let by_data = p.branch.verdict == Verdict::Data;
        let waits = matches!(sync.named, Named::Lanes(_));
        match p.leaves {
            // Nobody waits for lanes that have left; what a shuffle reads from them is undefined.
            true => by_data && sync.kind == Kind::Shuffle && !p.is_boundary(),
            false => (by_data || matches!(p.branch.verdict, Verdict::Boundary(_))) && waits,
        }
    };
    let partings = c.partings(sync.at);
    let found = partings.iter().filter(|p| p.splits_warps()).filter(blames).max_by_key(|p| p.branch.inst)?;
    Some(found.branch.inst)
}

fn report(c: &mut Cx<'_>, branch: u32, syncs: &[Sync]) {
    let Some(first) = syncs.first().copied() else { return };
    let partings = c.partings(first.at);
    let Some(parting) = partings.iter().find(|p| p.branch.inst == branch) else { return };
    let severity = if parting.is_boundary() { Severity::Warning } else { Severity::Error };
    let counts_on = match first.named {
        Named::Lanes(m) => format!("names lanes {m}"),
        _ => "reads other lanes".to_owned(),
    };
    let loops = parting.branch.leaves_loop.is_some();
    let where_from = if loops { "the loop's exit" } else { "the branch" };
    let fate = match (parting.leaves, loops) {
        (true, _) => "have left",
        (false, true) => "may have left the loop",
        (false, false) => "may be on the other side",
    };
    let mut message = format!(
        "The {} {} at {} {counts_on}, but {where_from} {} at {} decides by {} which lanes come; the others {fate}.",
        first.name(),
        c.text(first.op),
        c.place(first.op),
        c.text(branch),
        c.place(branch),
        if parting.is_boundary() { "the thread's index" } else { "data" },
    );
    if parting.is_boundary() {
        message.push_str(" It goes wrong in the warp that the bound falls into.");
    }
    if syncs.len() > 1 {
        message.push_str(&format!(" {} more operations behind the same branch.", syncs.len() - 1));
    }
    let mut witness = vec![Step { inst: first.op, note: counts_on }];
    witness.extend(c.because(parting));
    witness.extend(syncs.iter().skip(1).take(6).map(|s| Step { inst: s.op, note: "the same".to_owned() }));
    let mask = match first.named {
        Named::Lanes(m) => format!("{:#010x}", m.0),
        _ => "not named".to_owned(),
    };
    let pc = c.kernel.instructions.get(branch as usize).map_or(0, |i| i.pc);
    let evidence = vec![("mask", Evidence::Text(mask)), ("branch_pc", Evidence::Count(pc.into()))];
    c.speak(syncs.iter().flat_map(|s| [s.op, s.at]));
    c.report(RULE.name, severity, first.op, message, witness, evidence);
}
