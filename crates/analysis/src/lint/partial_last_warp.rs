//! `partial-last-warp`.

use lanescope_ir::finding::Evidence;
use lanescope_ir::{LaneMask, Severity};

use super::LintRule;
use super::cx::{Cx, Step};
use super::lanes::absent;
use super::syncs::{Kind, Named, Shuffle, Sync};

/// A reduction over whole warps in a warp that is not whole.
pub(super) const RULE: LintRule = LintRule {
    name: "partial-last-warp",
    summary: "a shuffle of the whole warp where the last warp has fewer lanes",
    page: "\
A block of 180 threads has six warps, the last with 20 lanes. A reduction by shuffles that is written for whole warps
reads lanes there that do not exist, and what it gets is undefined: sums over 180 ones of 160, 180 and 192 have been
seen. The same happens in the last warp of a grid if threads past the end of the data have returned before the shuffle.

What helps, the cheapest first: launch a multiple of 32 threads, let the extra ones carry the neutral value (0 for a
sum) through the shuffle, and guard only loads and stores; or use a mask of the lanes that exist and test the range in
each step, which costs far more instructions. Check also that the number of warps is rounded up, (blockDim.x + 31) / 32.

Evidence: lanes_there, lanes_that_read_absent_ones, operations.",
    check: Some(check),
};

fn check(c: &mut Cx<'_>) {
    missing_threads(c);
    threads_that_returned(c);
}

/// The block is known, and its last warp is not whole.
fn missing_threads(c: &mut Cx<'_>) {
    let partial: Vec<(u32, LaneMask)> = c
        .uniformity
        .existing()
        .into_iter()
        .filter_map(|(w, m)| Some((w?, m)))
        .filter(|(_, m)| !m.is_empty() && m.count() < 32)
        .collect();
    for (warp, exist) in partial {
        let mut cases: Vec<(Sync, LaneMask)> = Vec::new();
        for sync in c.syncs.clone() {
            if sync.kind != Kind::Shuffle || c.spoken(sync.op) || !c.alive(sync.at) {
                continue;
            }
            let counts = match sync.named {
                Named::Lanes(m) => !exist.contains(m),
                Named::Nobody => true,
                Named::Register(_) => false,
            };
            let known = c.uniformity.lanes(sync.at);
            let of = |w| known.iter().find(|l| l.warp == w).map(|l| l.there);
            let there = match (known.is_empty(), of(Some(warp)).or_else(|| of(None))) {
                (true, _) => exist,
                (false, Some(there)) => there & exist,
                (false, None) => continue,
            };
            let Some(shuffle) = Shuffle::at(c.kernel, sync.op).filter(|_| counts && !there.is_empty()) else {
                continue;
            };
            let readers = absent(shuffle.mode, there, |l| shuffle.operands(c.uniformity, Some(warp), l)).0;
            if !readers.is_empty() {
                cases.push((sync, readers));
            }
        }
        let Some(&(first, readers)) = cases.first() else { continue };
        let threads: u64 =
            c.facts.block.or(c.kernel.required_block).map_or(0, |b| b.iter().map(|&d| u64::from(d)).product());
        let message = format!(
            "The block has {threads} threads, so warp {warp} has only lanes {exist}, but the shuffle {} at {} is one of \
             whole warps: lanes {readers} read lanes that do not exist and get undefined values{}. Launch a multiple of \
             32 threads and let the extra ones carry the neutral value.",
            c.text(first.op),
            c.place(first.op),
            match cases.len() {
                1 => String::new(),
                n => format!(" (and so in {} more shuffles)", n - 1),
            },
        );
        let witness = cases
            .iter()
            .take(8)
            .map(|(s, r)| Step { inst: s.op, note: format!("lanes {r} of warp {warp} read lanes that do not exist") })
            .collect();
        let evidence = vec![
            ("lanes_there", Evidence::Text(exist.to_string())),
            ("lanes_that_read_absent_ones", Evidence::Text(readers.to_string())),
            ("operations", Evidence::Count(cases.len() as u64)),
        ];
        c.speak(cases.iter().flat_map(|k| [k.0.op, k.0.at]));
        c.report(RULE.name, Severity::Error, first.op, message, witness, evidence);
    }
}

/// Threads past a bound have returned.
fn threads_that_returned(c: &mut Cx<'_>) {
    let mut groups: Vec<(u32, Vec<Sync>)> = Vec::new();
    for sync in c.syncs.clone() {
        let whole = match sync.named {
            Named::Lanes(m) => m.count() == 32,
            Named::Nobody => c.is_sass(),
            Named::Register(_) => false,
        };
        if sync.kind != Kind::Shuffle || !whole || c.spoken(sync.op) || !c.alive(sync.at) {
            continue;
        }
        let partings = c.partings(sync.at);
        let bound = partings.iter().rfind(|p| p.splits_warps() && p.is_boundary() && p.leaves);
        let Some(bound) = bound else { continue };
        // A shuffle that stays below the lowest lane that may be missing reads nobody absent.
        let Some(shuffle) = Shuffle::at(c.kernel, sync.op) else { continue };
        let reads_up = (1..32).any(|n| {
            let there = LaneMask::first(n);
            !absent(shuffle.mode, there, |l| shuffle.operands(c.uniformity, None, l)).0.is_empty()
        });
        if !reads_up {
            continue;
        }
        match groups.iter_mut().find(|g| g.0 == bound.branch.inst) {
            Some(g) => g.1.push(sync),
            None => groups.push((bound.branch.inst, vec![sync])),
        }
    }
    for (branch, syncs) in groups {
        let Some(first) = syncs.first().copied() else { continue };
        let partings = c.partings(first.at);
        let Some(parting) = partings.iter().find(|p| p.branch.inst == branch) else { continue };
        let message = format!(
            "The shuffle {} at {} is one of whole warps, but threads past the bound have left at {}: in the warp that the \
             bound falls into, lanes read others that are gone and get undefined values{}. Keep all threads to the last \
             shuffle and let those past the bound carry the neutral value.",
            c.text(first.op),
            c.place(first.op),
            c.place(branch),
            if syncs.len() > 1 { format!(" (and so in {} more shuffles)", syncs.len() - 1) } else { String::new() },
        );
        let mut witness = vec![Step { inst: first.op, note: "reads lanes that may be gone".to_owned() }];
        witness.extend(c.because(parting));
        let evidence = vec![("operations", Evidence::Count(syncs.len() as u64))];
        c.speak(syncs.iter().flat_map(|s| [s.op, s.at]));
        c.report(RULE.name, Severity::Warning, first.op, message, witness, evidence);
    }
}
