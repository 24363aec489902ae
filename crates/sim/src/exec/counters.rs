//! Counters while blocks run, and the profile made of them.

use std::collections::BTreeMap;

use lanescope_ir::{BlockWork, BranchCounts, LaneCounts, LaunchShape, Profile, Reach, SelectCounts, TripHistogram};

use super::banks::Traffic;
use super::program::Program;
use crate::launch::{Extremes, WarpSum};
use crate::memory::touched::Touched;

/// Issues of a straight run, counted where it starts and taken back where it ends.
#[derive(Clone, Copy, Default)]
struct Edge {
    issues: u64,
    lanes: u64,
    missing: u64,
    exited: u64,
}

/// Trip counts of one loop: how many entries had how many trips.
#[derive(Clone, Default)]
pub(crate) struct Trips {
    few: Vec<u64>,
    many: BTreeMap<u32, u64>,
}

const FEW: usize = 4096;

impl Trips {
    pub(crate) fn add(&mut self, trips: u32) {
        let at = trips as usize;
        if at >= FEW {
            *self.many.entry(trips).or_default() += 1;
            return;
        }
        if at >= self.few.len() {
            self.few.resize((at + 1).next_power_of_two(), 0);
        }
        self.few[at] += 1;
    }
}

/// One group at one branch.
#[derive(Clone, Copy, Default)]
pub(crate) struct BranchTally {
    executed: u64,
    divergent: u64,
    taken: u64,
    not_taken: u64,
}

/// Bins of a histogram of lanes: 0 to 64.
const BINS: usize = 65;

/// Keeps the warp with the larger figure, of equals the first of the launch.
fn keep(slot: &mut Option<WarpSum>, sum: WarpSum, figure: impl Fn(&WarpSum) -> u64) {
    let key = |s: &WarpSum| (figure(s), std::cmp::Reverse((s.block, s.warp)));
    if slot.as_ref().is_none_or(|kept| key(&sum) > key(kept)) {
        *slot = Some(sum);
    }
}

/// What one thread has counted.
pub(crate) struct Counters {
    edges: Vec<Edge>,
    /// Lanes whose guard held, for guarded instructions.
    pub(crate) on: Vec<u64>,
    pub(crate) traffic: Vec<Traffic>,
    pub(crate) branches: Vec<BranchTally>,
    /// For each branch and number of lanes, the splits in which so many took it.
    splits: Vec<u64>,
    /// Of each select that is counted: issues, lanes for which it held, and others.
    pub(crate) selects: Vec<[u64; 3]>,
    pub(crate) trips: Vec<Trips>,
    pub(crate) extremes: Extremes,
    /// Sectors that the modelled first-level cache missed, by instruction.
    pub(crate) missed: Vec<u64>,
    /// What blocks did: linear index and work, unless there are too many.
    pub(crate) blocks: Vec<(u64, BlockWork)>,
    longest_block: u64,
}

impl Counters {
    pub(crate) fn new(p: &Program) -> Counters {
        let n = p.insts.len();
        Counters {
            edges: vec![Edge::default(); n + 1],
            on: vec![0; n],
            traffic: vec![Traffic::default(); n],
            branches: vec![BranchTally::default(); p.branches.len()],
            splits: vec![0; p.branches.len() * BINS],
            selects: vec![[0; 3]; p.selects.len()],
            trips: vec![Trips::default(); p.loops.headers.len()],
            extremes: Extremes::default(),
            missed: vec![0; n],
            blocks: Vec::new(),
            longest_block: 0,
        }
    }

    /// The instructions `from..to` were issued `issues` times by `lanes` lanes in all.
    #[inline]
    pub(crate) fn issue(&mut self, from: u32, to: u32, issues: u64, lanes: u64, missing: u64, exited: u64) {
        let e = &mut self.edges[from as usize];
        e.issues = e.issues.wrapping_add(issues);
        e.lanes = e.lanes.wrapping_add(lanes);
        e.missing = e.missing.wrapping_add(missing);
        e.exited = e.exited.wrapping_add(exited);
        let e = &mut self.edges[to as usize];
        e.issues = e.issues.wrapping_sub(issues);
        e.lanes = e.lanes.wrapping_sub(lanes);
        e.missing = e.missing.wrapping_sub(missing);
        e.exited = e.exited.wrapping_sub(exited);
    }

    /// One group at a branch with two ways.
    #[inline]
    pub(crate) fn branch(&mut self, at: u32, taken: u32, not_taken: u32, split: bool) {
        if split {
            self.split(at, taken);
        }
        self.tally(at, taken, not_taken, split);
    }

    /// A group split, and so many of its lanes went one way.
    pub(crate) fn split(&mut self, at: u32, lanes: u32) {
        if let Some(n) = self.splits.get_mut(at as usize * BINS + (lanes as usize).min(BINS - 1)) {
            *n += 1;
        }
    }

    /// One group at a branch.
    #[inline]
    pub(crate) fn tally(&mut self, at: u32, taken: u32, not_taken: u32, split: bool) {
        if let Some(b) = self.branches.get_mut(at as usize) {
            b.executed += 1;
            b.divergent += u64::from(split);
            b.taken += u64::from(taken);
            b.not_taken += u64::from(not_taken);
        }
    }

    /// A warp that has ended.
    pub(crate) fn warp(&mut self, sum: WarpSum) {
        keep(&mut self.extremes.longest, sum, |s| s.inst_executed);
        keep(&mut self.extremes.most_lost, sum, |s| s.lost);
    }

    /// Adds what another thread has counted.
    pub(crate) fn add(&mut self, o: &Counters) {
        for (a, b) in self.edges.iter_mut().zip(&o.edges) {
            a.issues = a.issues.wrapping_add(b.issues);
            a.lanes = a.lanes.wrapping_add(b.lanes);
            a.missing = a.missing.wrapping_add(b.missing);
            a.exited = a.exited.wrapping_add(b.exited);
        }
        self.longest_block = self.longest_block.max(o.longest_block);
        self.missed.iter_mut().zip(&o.missed).for_each(|(a, b)| *a += b);
        self.blocks.extend_from_slice(&o.blocks);
        self.on.iter_mut().zip(&o.on).for_each(|(a, b)| *a += b);
        self.traffic.iter_mut().zip(&o.traffic).for_each(|(a, b)| a.add(b));
        for (a, b) in self.selects.iter_mut().flatten().zip(o.selects.iter().flatten()) {
            *a += b;
        }
        self.splits.iter_mut().zip(&o.splits).for_each(|(a, b)| *a += b);
        for (a, b) in self.branches.iter_mut().zip(&o.branches) {
            a.executed += b.executed;
            a.divergent += b.divergent;
            a.taken += b.taken;
            a.not_taken += b.not_taken;
        }
        [o.extremes.longest, o.extremes.most_lost].into_iter().flatten().for_each(|w| self.warp(w));
        for (a, b) in self.trips.iter_mut().zip(&o.trips) {
            if a.few.len() < b.few.len() {
                a.few.resize(b.few.len(), 0);
            }
            a.few.iter_mut().zip(&b.few).for_each(|(a, b)| *a += b);
            for (&trips, &n) in &b.many {
                *a.many.entry(trips).or_default() += n;
            }
        }
    }

    /// A block has ended.
    pub(crate) fn block(&mut self, linear: u64, work: BlockWork, keep: bool) {
        self.longest_block = self.longest_block.max(work.inst_executed);
        if keep {
            self.blocks.push((linear, work));
        }
    }

    /// The sums for each instruction.
    pub(crate) fn profile(
        mut self,
        p: &Program,
        shape: LaunchShape,
        touched: &Touched,
        l1_bytes: Option<[u32; 2]>,
    ) -> Profile {
        let mut sum = Edge::default();
        let mut counts = Vec::with_capacity(p.insts.len());
        for (at, inst) in p.insts.iter().enumerate() {
            let e = &self.edges[at];
            sum.issues = sum.issues.wrapping_add(e.issues);
            sum.lanes = sum.lanes.wrapping_add(e.lanes);
            sum.missing = sum.missing.wrapping_add(e.missing);
            sum.exited = sum.exited.wrapping_add(e.exited);
            counts.push(LaneCounts {
                inst_executed: sum.issues,
                thread_inst_executed: sum.lanes,
                thread_inst_executed_pred_on: if inst.guarded { self.on[at] } else { sum.lanes },
                lanes_missing: sum.missing,
                lanes_exited: sum.exited,
                sectors: self.traffic[at].sectors,
                sectors_ideal: self.traffic[at].sectors_ideal,
                sectors_missed: self.missed[at],
                shared_wavefronts: self.traffic[at].wavefronts,
                shared_wavefronts_ideal: self.traffic[at].wavefronts_ideal,
            });
        }
        let branches = p.branches.iter().zip(&self.branches).zip(self.splits.chunks(BINS));
        let branches = branches.filter(|((i, b), _)| !i.only_if_split || b.divergent != 0);
        let branches = branches.map(|((i, b), splits)| BranchCounts {
            inst: i.inst,
            kind: i.kind,
            executed: b.executed,
            divergent: b.divergent,
            lanes_taken: b.taken,
            lanes_not_taken: b.not_taken,
            lanes_histogram: (0..).zip(splits.iter().copied()).filter(|s| s.1 != 0).collect(),
        });
        let loops = p.loops.headers.iter().zip(&self.trips).map(|(&header, t)| {
            let few = t.few.iter().enumerate().filter(|(_, n)| **n != 0).map(|(trips, &n)| (trips as u64, n));
            TripHistogram { header, trips: few.chain(t.many.iter().map(|(&t, &n)| (t.into(), n))).collect() }
        });
        let mut loops: Vec<TripHistogram> = loops.filter(|l| !l.trips.is_empty()).collect();
        loops.sort_by_key(|l| l.header);
        let longest_warp = self.extremes.longest.map_or(0, |w| w.inst_executed);
        let selects = p.selects.iter().zip(&self.selects).map(|(&inst, &[executed, lanes_true, lanes_false])| {
            SelectCounts { inst, executed, lanes_true, lanes_false }
        });
        let selects = selects.collect();
        self.blocks.sort_unstable_by_key(|b| b.0);
        let blocks = self.blocks.into_iter().map(|b| b.1).collect();
        let (touched_sectors, misses) = (touched.count(), touched.misses());
        let reach =
            Some(Reach { longest_warp, longest_block: self.longest_block, touched_sectors, l1_bytes, misses, blocks });
        Profile { shape, counts, branches: branches.collect(), loops, reach, selects }
    }
}
