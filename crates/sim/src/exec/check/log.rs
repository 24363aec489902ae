//! What a checked run found, gathered over all blocks.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use lanescope_analysis::lint::{Hazard, Step};
use lanescope_analysis::{Cfg, Dominators, Loops, words};
use lanescope_ir::finding::Evidence;
use lanescope_ir::{Finding, Kernel, Severity};

/// Findings of one rule that are told; the rest is counted.
const SHOWN: usize = 6;
/// Different findings that are kept.
const KEPT: usize = 4096;

/// One finding as a block saw it first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) severity: Severity,
    /// Block that saw it, as a number and as coordinates.
    pub(crate) block: u64,
    pub(crate) message: String,
    pub(crate) witness: Vec<(u32, String)>,
    pub(crate) evidence: Vec<(&'static str, String)>,
    pub(crate) times: u64,
}

/// The rule, the instruction it is about, and another one that has a part in it.
pub(crate) type Key = (&'static str, u32, u32);

/// What one block found.
pub(crate) type Found = BTreeMap<Key, Seen>;

/// Collects what a checked run finds. Give one to [`Options::check`](crate::Options::check) and ask it afterwards; it has
/// what was found even if the launch fails.
#[derive(Debug, Default)]
pub struct CheckLog {
    found: Mutex<Found>,
    /// For each instruction, the first of the innermost loop around it.
    loops: OnceLock<Arc<[u32]>>,
}

/// Logs are the same if they are one.
impl PartialEq for CheckLog {
    fn eq(&self, other: &CheckLog) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for CheckLog {}

impl CheckLog {
    /// Nothing found yet.
    pub fn new() -> CheckLog {
        CheckLog::default()
    }

    /// Adds what one block found. The example that is kept is that of the first block, however many threads run.
    pub(crate) fn add(&self, found: Found) {
        let mut all = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, seen) in found {
            let room = all.len() < KEPT;
            match all.get_mut(&key) {
                Some(have) => {
                    let times = have.times.saturating_add(seen.times);
                    if seen.block < have.block {
                        *have = seen;
                    }
                    have.times = times;
                }
                None if room => {
                    all.insert(key, seen);
                }
                None => {}
            }
        }
    }

    /// For each instruction, the first of the innermost loop around it; `u32::MAX` outside of loops.
    pub(crate) fn loops(&self, kernel: &Kernel) -> Arc<[u32]> {
        let find = || {
            let cfg = Cfg::new(kernel);
            let dom = Dominators::new(&cfg.graph, cfg.entry());
            let loops = Loops::new(&cfg, &dom);
            let header = |&b: &u32| {
                let inner = loops.innermost.get(b as usize).copied().flatten()?;
                loops.list.get(inner as usize).map(|l| l.header)
            };
            cfg.block_of.iter().map(|b| header(b).unwrap_or(u32::MAX)).collect()
        };
        self.loops.get_or_init(find).clone()
    }

    /// For another attempt at the launch.
    pub(crate) fn clear(&self) {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The findings, the gravest first; of one rule a few, one for a pair of source lines.
    pub fn hazards(&self, kernel: &Kernel) -> Vec<Hazard> {
        let all = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        // Instructions of one line are one place.
        let place = |inst: u32| match kernel.source.get(inst as usize) {
            Some(l) => (l.file, l.line),
            None => (u32::MAX, inst),
        };
        let mut merged: Vec<(Key, Seen)> = Vec::new();
        for (key, seen) in all.iter() {
            let at = |k: &Key| (k.0, place(k.1), place(k.2));
            match merged.iter_mut().find(|m| at(&m.0) == at(key)) {
                Some((_, have)) => have.times = have.times.saturating_add(seen.times),
                None => merged.push((*key, seen.clone())),
            }
        }
        let mut out: Vec<Hazard> = Vec::new();
        let mut shown: BTreeMap<&'static str, (usize, u64)> = BTreeMap::new();
        for ((rule, inst, _), seen) in merged {
            let count = shown.entry(rule).or_default();
            count.0 += 1;
            if count.0 > SHOWN {
                count.1 = count.1.saturating_add(seen.times);
                continue;
            }
            let mut evidence: Vec<(&'static str, Evidence)> =
                seen.evidence.into_iter().map(|(n, t)| (n, Evidence::Text(t))).collect();
            evidence.push(("times", Evidence::Count(seen.times)));
            let message = match seen.times {
                1 => seen.message,
                n => format!("{} Seen {}; this is the first.", seen.message, words::times(n)),
            };
            let finding = Finding { rule, severity: seen.severity, inst: Some(inst), message, evidence };
            let witness = seen.witness.into_iter().map(|(inst, note)| Step { inst, note }).collect();
            out.push(Hazard { finding, witness });
        }
        for (rule, (n, times)) in shown {
            let Some(more) = n.checked_sub(SHOWN).filter(|m| *m > 0) else { continue };
            if let Some(last) = out.iter_mut().rfind(|h| h.finding.rule == rule) {
                last.finding.message.push_str(&format!(
                    " {more} more places of the kind, seen {}, are not listed.",
                    words::times(times)
                ));
            }
        }
        out.sort_by_key(|h| std::cmp::Reverse(h.finding.severity));
        out
    }
}
