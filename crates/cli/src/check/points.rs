//! The verdict of each branch, predicated exit and loop, in words.

use std::collections::HashMap;

use lanescope_analysis::lint::{self, Input, Sides};
use lanescope_analysis::uniformity::{self, Branch, Facts, Level, Origin, Scope, Uniformity, WarpLanes};
use lanescope_analysis::words;
use lanescope_ir::LaneMask;
use lanescope_report::check::{Kind, Point, Step, Verdict};

use super::Places;
use crate::levels::Became;

/// Instructions of both sides together up to which a branch costs too little to change it.
const LITTLE: u64 = 8;

/// All points of a kernel. `exact` is the analysis without the assumption that the block has one dimension, `samples` those
/// for blocks of different sizes.
pub(super) fn points(
    input: &Input<'_>,
    exact: &Uniformity,
    samples: &[(Facts, Uniformity)],
    became: &HashMap<u32, Became>,
    places: &Places<'_>,
) -> Vec<Point> {
    let sides = Sides::new(input);
    let mut list = Vec::new();
    for branch in &input.uniformity.branches {
        if branch.kind == uniformity::Kind::Predicated {
            continue;
        }
        let sure = exact.branch(branch.inst).unwrap_or(branch);
        let common = common(samples, branch);
        let branch = common.as_ref().unwrap_or(branch);
        list.push(point(input, &sides, branch, sure, became.get(&branch.inst), places));
    }
    list
}

/// The verdict that holds for blocks of all sizes that were tried, where the general one says less.
fn common(samples: &[(Facts, Uniformity)], branch: &Branch) -> Option<Branch> {
    use uniformity::Verdict as V;
    if matches!(branch.verdict, V::Never | V::Lanes(_) | V::Data | V::Unreachable | V::Boundary(Scope::Grid)) {
        return None;
    }
    let mut all = samples.iter().map(|(_, u)| {
        let there = u.lanes(branch.inst).iter().filter(|l| !l.there.is_empty()).count();
        Some((u.branch(branch.inst)?, there))
    });
    let (first, warps) = all.next()??;
    let shape = |b: &Branch, warps: usize| -> Option<Vec<WarpLanes>> {
        match &b.verdict {
            V::Never => Some(Vec::new()),
            V::Lanes(lanes) => {
                let same = lanes.windows(2).all(|w| (w[0].taken, w[0].there) == (w[1].taken, w[1].there));
                Some(match lanes.first() {
                    // Every warp that gets there splits in the same way.
                    Some(l) if same && lanes.len() == warps && warps > 1 => vec![WarpLanes { warp: None, ..*l }],
                    _ => lanes.clone(),
                })
            }
            _ => None,
        }
    };
    let lanes = shape(first, warps)?;
    for other in all {
        let (b, warps) = other?;
        if shape(b, warps)? != lanes {
            return None;
        }
    }
    let verdict = if lanes.is_empty() { V::Never } else { V::Lanes(lanes) };
    Some(Branch { verdict, ..first.clone() })
}

fn point(
    input: &Input<'_>,
    sides: &Sides<'_>,
    branch: &Branch,
    sure: &Branch,
    became: Option<&Became>,
    places: &Places<'_>,
) -> Point {
    let kind = match branch.kind {
        _ if branch.leaves_loop.is_some() => Kind::Loop,
        uniformity::Kind::Exit => Kind::Exit,
        uniformity::Kind::Indirect => Kind::Indirect,
        _ => Kind::Branch,
    };
    let (mut verdict, mut words, mut lanes) = verdict(input, branch);
    // What only holds for blocks of one dimension says so.
    if sure.verdict != branch.verdict {
        words.push_str(if sure.verdict == uniformity::Verdict::Shape {
            " (for blocks of one dimension)"
        } else {
            " (if the block has one dimension)"
        });
    }
    let mut advice = None;
    let mut leave_it = matches!(verdict, Verdict::Never | Verdict::LastWarp);
    if branch.guards_trap {
        leave_it = true;
        words = "guards a trap: no cost while the check passes".to_owned();
        verdict = Verdict::Never;
        lanes = None;
    } else if let Some(b) = became.filter(|b| !b.is_branch()) {
        leave_it = true;
        advice = Some(if b.guarded > 0 {
            match b.guarded {
                1 => "Predicated by the compiler: it costs one guarded instruction.".to_owned(),
                n => format!("Predicated by the compiler: it costs {n} guarded instructions."),
            }
        } else {
            "The machine code has no branch for it.".to_owned()
        });
    } else if !leave_it
        && kind == Kind::Branch
        && let Some((a, b, loops)) = sides.lengths(branch)
    {
        if !loops && a + b <= LITTLE {
            leave_it = true;
            advice = Some(format!("Both sides together have {} instructions.", a + b));
        } else {
            let turns = if loops { ", loops counted once" } else { "" };
            let both = format!("Its sides have {a} and {b} instructions{turns}; a warp that splits runs both.");
            advice = Some(both);
        }
    } else if !leave_it && kind == Kind::Loop {
        advice = Some("A warp turns as often as its busiest lane.".to_owned());
    }
    let steps = lint::chain(input.kernel, branch);
    Point {
        kind,
        place: places.place(branch.inst),
        verdict,
        words,
        lanes,
        arguments: arguments(input, branch),
        became: became.map(Became::words),
        leave_it,
        advice,
        witness: steps.into_iter().skip(1).map(|s| Step { place: places.place(s.inst), note: s.note }).collect(),
    }
}

fn verdict(input: &Input<'_>, branch: &Branch) -> (Verdict, String, Option<String>) {
    use uniformity::Verdict as V;
    let plain = |verdict, words: &str| (verdict, words.to_owned(), None);
    if branch.whole_group && branch.verdict != V::Unreachable {
        return plain(Verdict::Never, "never splits a warp: it decides for the whole group of lanes");
    }
    match &branch.verdict {
        V::Never => (Verdict::Never, format!("never splits a warp: {}", never(branch)), None),
        V::Unreachable => plain(Verdict::Never, "never splits a warp: no lane gets here"),
        V::Boundary(Scope::Grid) => {
            plain(Verdict::LastWarp, "splits only the last warp: the one of the whole launch that the bound falls into")
        }
        V::Boundary(Scope::Block) => {
            plain(Verdict::LastWarp, "splits only one warp of each block at most: the one that the bound falls into")
        }
        V::Boundary(Scope::Warp) => {
            plain(Verdict::LaneDependent, "may split any warp, into its lower and its upper lanes")
        }
        V::Lanes(lanes) => exact(branch, lanes, input.uniformity.existing().len()),
        V::Data => (Verdict::DataDependent, format!("depends on data{}", lint::source(input.kernel, branch)), None),
        V::Shape => plain(Verdict::LaneDependent, "depends on the thread's index; how, the shape of the block decides"),
        V::Paths => (
            Verdict::DataDependent,
            match branch.origin() {
                Origin::Paths { branch, .. } | Origin::Apart { branch, .. } => {
                    format!("depends on the way that lanes took at {}", words::place(input.kernel, branch))
                }
                _ => "depends on the way that lanes took".to_owned(),
            },
            None,
        ),
        _ if matches!(branch.origin(), Origin::Thread(_)) => plain(
            Verdict::LaneDependent,
            "depends on the thread's index in a way that is not known exactly: taken to split",
        ),
        _ => plain(Verdict::DataDependent, "may split: nothing says that its lanes agree"),
    }
}

fn never(branch: &Branch) -> &'static str {
    match branch.level {
        Level::Grid => "the condition is the same in the whole launch",
        Level::Block => "the condition is the same in the whole block",
        Level::Warp => "the condition is the same in the whole warp",
        _ => "the lanes that get here agree",
    }
}

fn exact(branch: &Branch, lanes: &[WarpLanes], warps: usize) -> (Verdict, String, Option<String>) {
    let Some(first) = lanes.first() else {
        return (Verdict::Never, "never splits a warp: the lanes that get here agree".to_owned(), None);
    };
    let exit = branch.kind == uniformity::Kind::Exit;
    let group = |m: LaneMask, one: &str, many: &str| match m.count() {
        1 => format!("lane {m} {one}"),
        _ => format!("lanes {m} {many}"),
    };
    let same = lanes.iter().all(|l| (l.taken, l.there) == (first.taken, first.there));
    let named = |l: &WarpLanes| {
        let stay: LaneMask = l.there - l.taken;
        let (one, many) = if exit { ("leaves", "leave") } else { ("takes it", "take it") };
        format!("{}, {}", group(l.taken, one, many), group(stay, "does not", "do not"))
    };
    let words = match (same, first.warp, lanes) {
        (true, _, all) if first.warp.is_none() || warps > 1 && all.len() == warps => {
            format!("always splits every warp: {}", named(first))
        }
        (true, None, _) => format!("always splits every warp: {}", named(first)),
        (true, Some(w), [_]) => format!("always splits warp {w} and no other: {}", named(first)),
        (true, Some(_), _) => format!("always splits {} warps of a block: {}", lanes.len(), named(first)),
        (false, ..) => {
            let shown: Vec<String> = lanes
                .iter()
                .take(3)
                .map(|l| format!("{}{}", l.warp.map_or(String::new(), |w| format!("warp {w}: ")), named(l)))
                .collect();
            let more = if lanes.len() > 3 { format!("; and {} more warps", lanes.len() - 3) } else { String::new() };
            format!("always splits the same lanes: {}{more}", shown.join("; "))
        }
    };
    let text = same.then(|| first.taken.to_string());
    (Verdict::ExactLanes, words, text)
}

/// Arguments that a data-dependent condition comes through.
fn arguments(input: &Input<'_>, branch: &Branch) -> Vec<String> {
    let param = match branch.origin() {
        Origin::Load { param, .. } | Origin::Atomic { param, .. } => param,
        _ => None,
    };
    param.map(|p| lint::argument(input.kernel, p)).into_iter().collect()
}
