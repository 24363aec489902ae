//! `missing-syncwarp`.

use lanescope_ir::Severity;
use lanescope_ir::finding::Evidence;

use super::LintRule;
use super::cx::{Cx, Step, plural};
use super::implicit_reconvergence::relies_on_a_join;
use super::shared_pairs::{Pair, pairs};

/// Lanes of a warp pass values through shared memory without synchronising.
pub(super) const RULE: LintRule = LintRule {
    name: "missing-syncwarp",
    summary: "a lane reads what another lane of its warp wrote to shared memory, with no __syncwarp between",
    page: "\
Before Volta the lanes of a warp ran in step, and code was written that lets them pass values through shared memory
without a barrier (`volatile` only kept the compiler from holding the value in a register). Since Volta lanes may be
apart: a lane can read before the other has written. Most runs go well, because lanes that never parted do run in step;
a new compiler, another optimisation level or a branch in front breaks it.

What helps: `__syncwarp()` between the write and the read, and between the read and the next write; or shuffles, which
need fewer instructions. Compiling for compute_60 is a stop-gap only.

The finding shows the first pair and those that hang together with it: the store, the load, and the lanes.

Evidence: pairs, readers, writers.",
    check: Some(check),
};

fn check(c: &mut Cx<'_>) {
    let all: Vec<Pair> = pairs(c).into_iter().filter(|p| !relies_on_a_join(c, p)).collect();
    for group in groups(all) {
        let Some(first) = group.first().cloned() else { continue };
        let mut distinct: Vec<(u32, u32)> = group.iter().map(|p| (p.store, p.load)).collect();
        distinct.dedup();
        let of = first.warp.map_or(String::new(), |w| format!(" of warp {w}"));
        let mut message = format!(
            "{} {}{of} read at {} what {} {} wrote at {}, and nothing between makes the lanes wait for each other. Since \
             Volta lanes of a warp need not be in step.",
            capital(plural(first.readers)),
            first.readers,
            c.place(first.load),
            plural(first.writers),
            first.writers,
            c.place(first.store),
        );
        if distinct.len() > 1 {
            message.push_str(&format!(" {} more pairs of the same chain.", distinct.len() - 1));
        }
        message.push_str(" Put __syncwarp() between, or pass the value by a shuffle.");
        let witness = steps(&group);
        let evidence = vec![
            ("pairs", Evidence::Count(distinct.len() as u64)),
            ("readers", Evidence::Text(first.readers.to_string())),
            ("writers", Evidence::Text(first.writers.to_string())),
        ];
        c.report(RULE.name, Severity::Error, first.load, message, witness, evidence);
    }
}

fn capital(noun: &str) -> &'static str {
    if noun == "lane" { "Lane" } else { "Lanes" }
}

/// The store and the load of each pair, at most eight of them.
pub(super) fn steps(group: &[Pair]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut seen: Vec<(u32, u32)> = Vec::new();
    for p in group {
        if seen.contains(&(p.store, p.load)) || seen.len() >= 8 {
            continue;
        }
        seen.push((p.store, p.load));
        let store = Step { inst: p.store, note: format!("{} {} write", plural(p.writers), p.writers) };
        if steps.last().is_none_or(|s| s.inst != p.store) {
            steps.push(store);
        }
        steps.push(Step { inst: p.load, note: format!("{} {} read it", plural(p.readers), p.readers) });
    }
    steps
}

/// Pairs that share a store or a load belong together.
pub(super) fn groups(pairs: Vec<Pair>) -> Vec<Vec<Pair>> {
    let mut groups: Vec<Vec<Pair>> = Vec::new();
    for pair in pairs {
        let touches = |g: &Vec<Pair>| g.iter().any(|p| p.store == pair.store || p.load == pair.load);
        match groups.iter().position(touches) {
            Some(at) => groups[at].push(pair),
            None => groups.push(vec![pair]),
        }
    }
    groups
}
