//! Everything about one launch in one value: what a report shows.

use lanescope_ir::{Finding, Kernel, Profile, Totals};

use crate::attribution::Attribution;
use crate::lines::{Line, lines};
use crate::lockstep::{self, LockstepStat};
use crate::regions::Structure;
use crate::rules;

/// How a loop ran.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopStat {
    /// First instruction of the header.
    pub header: u32,
    /// Nesting depth, 1 for an outermost loop.
    pub depth: u32,
    /// Turns of warps: issues of the header.
    pub warp_turns: u64,
    /// Turns of lanes.
    pub lane_turns: u64,
    /// Warp instructions issued inside, inner loops included.
    pub inst_executed: u64,
    /// Trip counts per thread, if they were counted.
    pub trips: Option<Trips>,
}

/// A summary of trip counts, one sample for each entry of a thread into the loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trips {
    /// Fewest.
    pub min: u64,
    /// Most.
    pub max: u64,
    /// Mean.
    pub mean: f64,
    /// Median: half of the entries make at most so many.
    pub median: u64,
    /// Entries counted.
    pub entries: u64,
}

/// A launch, analysed.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// Facts of the code.
    pub structure: Structure,
    /// Sums.
    pub totals: Totals,
    /// Where lanes were lost and why.
    pub losses: Attribution,
    /// By source line, the most expensive first.
    pub lines: Vec<Line>,
    /// Loops that ran, those that issue most first.
    pub loops: Vec<LoopStat>,
    /// Loops that turned in lock-step.
    pub lockstep: Vec<LockstepStat>,
    /// What the rules found, the gravest first.
    pub findings: Vec<Finding>,
}

/// Analyses a launch.
pub fn analyse(kernel: &Kernel, profile: &Profile) -> Analysis {
    let structure = Structure::new(kernel);
    let mut losses = Attribution::new(kernel, &structure, profile);
    let found = lockstep::find(kernel, &structure);
    let lockstep = lockstep::stats(kernel, &structure, profile, found, &mut losses);
    let lines = lines(kernel, &structure, profile, &losses);
    let loops = loop_stats(&structure, profile);
    let totals = profile.totals();
    let mut analysis = Analysis { structure, totals, losses, lines, loops, lockstep, findings: Vec::new() };
    analysis.findings = rules::check(kernel, profile, &analysis);
    analysis
}

fn loop_stats(s: &Structure, profile: &Profile) -> Vec<LoopStat> {
    let mut inside = vec![0u64; s.loops.list.len()];
    for (at, c) in profile.counts.iter().enumerate() {
        let inner = s.cfg.block(at as u32).and_then(|b| s.loops.innermost.get(b as usize).copied().flatten());
        if let Some(l) = inner {
            inside[l as usize] = inside[l as usize].saturating_add(c.inst_executed);
        }
    }
    let mut list = Vec::new();
    for (l, lp) in s.loops.list.iter().enumerate() {
        if let Some(p) = lp.parent {
            inside[p as usize] = inside[p as usize].saturating_add(inside[l]);
        }
        let Some(header) = s.cfg.blocks.get(lp.header as usize).map(|b| b.first) else { continue };
        let Some(c) = profile.counts.get(header as usize).filter(|c| c.inst_executed > 0) else { continue };
        list.push(LoopStat {
            header,
            depth: lp.depth,
            warp_turns: c.inst_executed,
            lane_turns: c.thread_inst_executed,
            inst_executed: inside[l],
            trips: profile.loops.iter().find(|t| t.header == header).and_then(|t| summarise(&t.trips)),
        });
    }
    list.sort_by(|a, b| b.inst_executed.cmp(&a.inst_executed).then(a.header.cmp(&b.header)));
    list
}

fn summarise(trips: &[(u64, u64)]) -> Option<Trips> {
    let mut sorted: Vec<(u64, u64)> = trips.iter().copied().filter(|t| t.1 > 0).collect();
    sorted.sort_unstable();
    let entries = sorted.iter().map(|t| u128::from(t.1)).sum::<u128>();
    let sum = sorted.iter().map(|t| u128::from(t.0) * u128::from(t.1)).fold(0u128, u128::saturating_add);
    let mut seen = 0u128;
    let median = sorted.iter().find(|t| {
        seen += u128::from(t.1);
        seen * 2 >= entries
    });
    Some(Trips {
        min: sorted.first()?.0,
        max: sorted.last()?.0,
        mean: sum as f64 / entries as f64,
        median: median?.0,
        entries: u64::try_from(entries).unwrap_or(u64::MAX),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trip_summary() {
        let t = summarise(&[(3, 1), (1, 12), (2, 14), (9, 0)]).unwrap();
        assert_eq!((t.min, t.max, t.median, t.entries), (1, 3, 2, 27));
        assert!((t.mean - 43.0 / 27.0).abs() < 1e-12);
        assert!(summarise(&[]).is_none());
    }
}
