//! The data behind a cause of lost lanes, in ranges that double: how many lanes took a branch when it split a group, how
//! many turns threads made of a loop.

use lanescope_ir::Profile;

use crate::attribution::Cause;
use crate::words::{count, percent};

/// Ranges shown in words; the last of them takes the rest.
const SHOWN: usize = 6;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Lanes that took the branch, by splits.
    LanesTaken,
    /// Lanes that left, by splits.
    LanesLeft,
    /// Lanes of each of the groups into which the branch parted lanes.
    Groups,
    /// Turns of a thread, by entries into the loop.
    Turns,
}

/// One range of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Lowest value.
    pub low: u64,
    /// Highest value.
    pub high: u64,
    /// How often.
    pub count: u64,
}

/// A histogram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// What is counted.
    pub what: What,
    /// Ascending: within 0, 1, 2 to 3, 4 to 7 and so on, from the lowest to the highest value that occurs there.
    pub buckets: Vec<Bucket>,
}

impl Histogram {
    /// From `(value, how often)`.
    pub fn new(what: What, values: &[(u64, u64)]) -> Histogram {
        let mut values: Vec<(u64, u64)> = values.iter().copied().filter(|v| v.1 > 0).collect();
        values.sort_unstable();
        let mut buckets: Vec<Bucket> = Vec::new();
        for (value, n) in values {
            match buckets.last_mut().filter(|b| b.low.checked_ilog2() == value.checked_ilog2()) {
                Some(b) => (b.high, b.count) = (value, b.count.saturating_add(n)),
                None => buckets.push(Bucket { low: value, high: value, count: n }),
            }
        }
        Histogram { what, buckets }
    }

    /// The data of a cause, if they were counted.
    pub fn of(cause: Cause, profile: &Profile) -> Option<Histogram> {
        let branch = |inst: u32, exit: bool| {
            let b = profile.branches.iter().find(|b| b.inst == inst)?;
            let values: Vec<(u64, u64)> = b.lanes_histogram.iter().map(|&(lanes, n)| (lanes.into(), n)).collect();
            let what = match b.kind {
                lanescope_ir::BranchKind::Indirect => What::Groups,
                _ if exit => What::LanesLeft,
                _ => What::LanesTaken,
            };
            Some(Histogram::new(what, &values))
        };
        let made = match cause {
            Cause::Branch(inst) => branch(inst, false),
            Cause::Exit(inst) => branch(inst, true),
            Cause::Trips { header, .. } => {
                let l = profile.loops.iter().find(|l| l.header == header)?;
                Some(Histogram::new(What::Turns, &l.trips))
            }
            Cause::PartialWarp | Cause::Unknown => None,
        };
        made.filter(|h| !h.buckets.is_empty())
    }

    /// In words: `lanes that took it: 1 lane 40.0 %, 2-3 lanes 60.0 %`.
    pub fn words(&self) -> String {
        let (title, one, many) = match self.what {
            What::LanesTaken => ("lanes that took it", "lane", "lanes"),
            What::LanesLeft => ("lanes that left", "lane", "lanes"),
            What::Groups => ("lanes of a group", "lane", "lanes"),
            What::Turns => ("turns of a thread", "turn", "turns"),
        };
        let all: u128 = self.buckets.iter().map(|b| u128::from(b.count)).sum();
        let mut shown = self.buckets.clone();
        while shown.len() > SHOWN {
            let (Some(last), Some(before)) = (shown.pop(), shown.last_mut()) else { break };
            (before.high, before.count) = (last.high, before.count.saturating_add(last.count));
        }
        let parts: Vec<String> = shown
            .iter()
            .map(|b| {
                let range = if b.low == b.high { count(b.low) } else { format!("{}-{}", count(b.low), count(b.high)) };
                let noun = if (b.low, b.high) == (1, 1) { one } else { many };
                format!("{range} {noun} {}", percent(b.count as f64 / all.max(1) as f64))
            })
            .collect();
        format!("{title}: {}", parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_double() {
        let h = Histogram::new(What::Turns, &[(7, 1), (0, 2), (1, 4), (2, 8), (3, 16), (4, 32), (u64::MAX, 1), (5, 0)]);
        let ranges: Vec<_> = h.buckets.iter().map(|b| (b.low, b.high, b.count)).collect();
        assert_eq!(ranges, [(0, 0, 2), (1, 1, 4), (2, 3, 24), (4, 7, 33), (u64::MAX, u64::MAX, 1)]);
    }

    #[test]
    fn in_words() {
        let h = Histogram::new(What::Turns, &[(0, 1), (1, 1), (2, 1), (4, 1), (9, 1), (16, 1), (40, 1), (700, 1)]);
        assert!(h.words().ends_with(", 9 turns 12.5 %, 16-700 turns 37.5 %"), "{}", h.words());
        let h = Histogram::new(What::LanesTaken, &[(1, 4), (2, 1), (3, 2), (31, 3)]);
        assert_eq!(h.words(), "lanes that took it: 1 lane 40.0 %, 2-3 lanes 30.0 %, 31 lanes 30.0 %");
    }
}
