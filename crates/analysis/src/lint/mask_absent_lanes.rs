//! `mask-absent-lanes`.

use lanescope_ir::finding::Evidence;
use lanescope_ir::{LaneMask, Severity};

use super::LintRule;
use super::cx::{Cx, Parting, Step, plural};
use super::lanes::absent;
use super::syncs::{Kind, Named, Shuffle, Sync};

/// A mask with lanes that cannot be there.
pub(super) const RULE: LintRule = LintRule {
    name: "mask-absent-lanes",
    summary: "an operation across lanes counts on lanes that can never be there",
    page: "\
The mask of a `_sync` operation must name exactly the lanes that execute that call. Here a branch on the thread's index
lets only some lanes come, always the same ones, and the mask (or, for a shuffle, the lane that is read) names others.

If the lanes that are named wait somewhere else, the warp hangs, perhaps only after an unrelated change: compilers drop
the wait where nothing follows it, so the code works until a barrier comes behind it. If they have left, nobody waits for
them, but a shuffle that reads one of them gets an undefined value.

What helps: move the operation out of the branch so that all lanes execute it; or name the lanes that take the branch
(0x0000ffff for `lane < 16`) and, for a shuffle, keep its reads inside them (its width argument); or take the mask from
`__ballot_sync` before the branch. Not from `__activemask()` inside it.

Machine code names a mask only where the compiler could not prove that the lanes are together; there a shuffle is judged
by the lanes that it reads.

Evidence: mask, lanes_there, lanes_missing, lanes_that_read_them.",
    check: Some(check),
};

fn check(c: &mut Cx<'_>) {
    let mut groups: Vec<(u32, Vec<Case>)> = Vec::new();
    for sync in c.syncs.clone() {
        if c.spoken(sync.op) || !c.alive(sync.at) {
            continue;
        }
        if let Some(case) = case(c, &sync) {
            match groups.iter_mut().find(|g| g.0 == case.branch) {
                Some(g) => g.1.push(case),
                None => groups.push((case.branch, vec![case])),
            }
        }
    }
    for (_, cases) in groups {
        report(c, &cases);
    }
}

struct Case {
    sync: Sync,
    branch: u32,
    warp: Option<u32>,
    mask: LaneMask,
    there: LaneMask,
    missing: LaneMask,
    readers: LaneMask,
    /// The missing lanes have left.
    left: bool,
    steps: Vec<Step>,
}

fn case(c: &Cx<'_>, sync: &Sync) -> Option<Case> {
    let mask = match sync.named {
        Named::Lanes(m) => m,
        Named::Nobody if sync.kind == Kind::Shuffle && c.is_sass() => LaneMask::first(32),
        _ => return None,
    };
    let partings: Vec<Parting<'_>> = c.partings(sync.at).into_iter().filter(Parting::splits_warps).collect();
    // The nearest branch is the reason.
    let parting = partings.iter().max_by_key(|p| p.branch.inst)?;
    let left = partings.iter().all(|p| p.leaves);
    let all = c.uniformity.lanes(sync.at);
    // Warps of which nobody comes do not count; if the others are alike, it is told of every warp.
    let some: Vec<_> = all.iter().filter(|l| !l.there.is_empty()).collect();
    let alike = some.len() > 1 && some.windows(2).all(|w| w[0].there == w[1].there);
    for lanes in &all {
        let exist = c.existing(lanes.warp);
        let there = lanes.there & exist;
        let missing = mask & exist & !there;
        if there.is_empty() || missing.is_empty() {
            continue;
        }
        let shuffle = Shuffle::at(c.kernel, sync.op);
        let (readers, sources) = shuffle.map_or((LaneMask::EMPTY, LaneMask::EMPTY), |s| {
            absent(s.mode, there, |l| s.operands(c.uniformity, lanes.warp, l))
        });
        let reads = !(sources & missing).is_empty();
        // Lanes that have left are not waited for: only a shuffle that reads them is wrong. So it is where nobody is named.
        if !reads && (left || sync.named == Named::Nobody) {
            continue;
        }
        return Some(Case {
            sync: *sync,
            branch: parting.branch.inst,
            warp: lanes.warp.filter(|_| !alike),
            mask,
            there,
            missing,
            readers,
            left,
            steps: c.because(parting),
        });
    }
    None
}

fn report(c: &mut Cx<'_>, cases: &[Case]) {
    let Some(first) = cases.first() else { return };
    let names = match first.sync.named {
        Named::Lanes(_) => format!("names lanes {}", first.mask),
        _ => format!("reads {} {}", plural(first.missing), first.missing),
    };
    let of = first.warp.map_or(String::new(), |w| format!(" of warp {w}"));
    let fate = if first.left { "have left" } else { "do not come" };
    let mut message = format!(
        "The {} {} at {} {names}, but only {} {}{of} can be there: {} {} {fate}.",
        first.sync.name(),
        c.text(first.sync.op),
        c.place(first.sync.op),
        plural(first.there),
        first.there,
        plural(first.missing),
        first.missing,
    );
    if !first.readers.is_empty() {
        message.push_str(&format!(
            " {} {} an undefined value from there.",
            capital(plural(first.readers), first.readers),
            if first.readers.count() == 1 { "gets" } else { "get" }
        ));
    }
    if !first.left {
        message.push_str(" If those lanes wait elsewhere, the warp hangs.");
    }
    if cases.len() > 1 {
        message.push_str(&format!(" {} more operations behind the same branch.", cases.len() - 1));
    }
    let mut witness = vec![Step { inst: first.sync.op, note: format!("counts on lanes {}", first.mask) }];
    witness.extend(first.steps.clone());
    witness
        .extend(cases.iter().skip(1).take(6).map(|k| Step { inst: k.sync.op, note: "counts on them too".to_owned() }));
    let evidence = vec![
        (
            "mask",
            Evidence::Text(match first.sync.named {
                Named::Lanes(_) => format!("{:#010x}", first.mask.0),
                _ => "not named".to_owned(),
            }),
        ),
        ("lanes_there", Evidence::Text(first.there.to_string())),
        ("lanes_missing", Evidence::Text(first.missing.to_string())),
        ("lanes_that_read_them", Evidence::Text(first.readers.to_string())),
    ];
    let op = first.sync.op;
    c.speak(cases.iter().flat_map(|k| [k.sync.op, k.sync.at]));
    c.report(RULE.name, Severity::Error, op, message, witness, evidence);
}

fn capital(noun: &str, lanes: LaneMask) -> String {
    format!("{} {lanes}", if noun == "lane" { "Lane" } else { "Lanes" })
}
