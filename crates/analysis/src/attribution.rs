//! Why lanes did no work.
//!
//! An issue of one instruction offers `warp_size` lane slots. Those that did no work are lost, and each gets
//! exactly one cause: the lane never existed (partial warp), it had left before (an `EXIT` that only some lanes
//! took), or it was alive but apart (a branch that split the group, or a loop that other lanes had left
//! already). For every instruction
//!
//! `warp_size * inst_executed - thread_inst_executed = sum of its parts`
//!
//! holds exactly, and so do the sums over lines, causes and the kernel. Which of several nested branches keeps
//! a lane away is not counted, so where an instruction lies in more than one such region its loss is shared
//! out by how much sparser the groups became from one region to the next; such parts are marked as estimates.
//! Lanes whose guard is false are there but do nothing: they are reported apart, not as lost. So are lanes that work for
//! nothing in a loop that turns in lock-step.

use std::collections::BTreeMap;

use lanescope_ir::{BranchKind, Kernel, Op, Profile, op::control::ControlOp};

use crate::apportion::apportion;
use crate::cfg::is_conditional;
use crate::regions::Structure;

/// Branches looked at, those that split most often first. More than any real kernel has.
const BRANCH_LIMIT: usize = 4096;

/// Causes that one instruction's loss is shared among, those that split most often first.
const SHARED_LIMIT: usize = 64;

/// Why a lane slot did no work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// The lane went the other way at this branch.
    Branch(u32),
    /// The lane had left the loop, or not yet: this branch leaves it.
    Trips {
        /// The branch.
        branch: u32,
        /// First instruction of the loop.
        header: u32,
    },
    /// The lane left at this predicated `EXIT` while others of its warp stayed.
    Exit(u32),
    /// The block's last warp has fewer threads than lanes.
    PartialWarp,
    /// None of these could be established.
    Unknown,
}

impl Cause {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Branch(_) => "divergent branch",
            Cause::Trips { .. } => "unequal loop trips",
            Cause::Exit(_) => "predicated EXIT",
            Cause::PartialWarp => "partial warp",
            Cause::Unknown => "unknown",
        }
    }

    /// The instruction it is about.
    pub fn inst(self) -> Option<u32> {
        match self {
            Cause::Branch(i) | Cause::Exit(i) | Cause::Trips { branch: i, .. } => Some(i),
            Cause::PartialWarp | Cause::Unknown => None,
        }
    }
}

/// Lane slots of one instruction that one cause took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The cause.
    pub cause: Cause,
    /// Lane slots.
    pub lanes: u64,
    /// Whether the share among several causes is an estimate. The sum of the shares never is.
    pub estimate: bool,
}

/// Losses of one instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstLoss {
    /// Lane slots without an active lane.
    pub lost: u64,
    /// `lost`, by cause.
    pub parts: Vec<Part>,
    /// Active lanes whose guard was false.
    pub predicated_off: u64,
    /// Active lanes whose guard held and whose result a lock-step loop throws away; see [`lockstep`](crate::lockstep).
    pub discarded: u64,
}

/// What one cause took over the whole kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CauseTotal {
    /// The cause.
    pub cause: Cause,
    /// Lane slots.
    pub lanes: u64,
    /// Warp instructions that full warps would not have needed: `lanes / warp_size`. Packing lanes that fully
    /// is the best a regrouping could do.
    pub warp_instructions: f64,
    /// Whether a share of it is an estimate.
    pub estimate: bool,
}

/// All losses of a launch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attribution {
    /// For each instruction.
    pub instructions: Vec<InstLoss>,
    /// By cause, the largest first.
    pub causes: Vec<CauseTotal>,
    /// Lane slots offered.
    pub slots: u128,
    /// Lane slots lost.
    pub lost: u64,
    /// Active lanes whose guard was false, at instructions that do not steer.
    pub predicated_off: u64,
    /// The same at branches and exits, where a false guard only means "not taken".
    pub not_taken: u64,
    /// Active lanes whose guard held and whose results lock-step loops throw away. They are not among `lost`.
    pub discarded: u64,
}

impl Attribution {
    /// Attributes the losses of `profile`.
    pub fn new(kernel: &Kernel, structure: &Structure, profile: &Profile) -> Attribution {
        let width = u64::from(profile.shape.warp_size.max(1));
        let sources = Sources::new(kernel, structure, profile);
        let mut all = Attribution { instructions: Vec::with_capacity(profile.counts.len()), ..Default::default() };
        let mut totals: BTreeMap<Cause, (u64, bool)> = BTreeMap::new();
        for (at, c) in profile.counts.iter().enumerate() {
            let slots = u128::from(width) * u128::from(c.inst_executed);
            let lost = slots.saturating_sub(u128::from(c.thread_inst_executed));
            let lost = u64::try_from(lost).unwrap_or(u64::MAX);
            let missing = c.lanes_missing.min(lost);
            let exited = c.lanes_exited.min(lost - missing);
            let apart = lost - missing - exited;
            let mut parts = Vec::new();
            if missing > 0 {
                parts.push(Part { cause: Cause::PartialWarp, lanes: missing, estimate: false });
            }
            if exited > 0 {
                sources.share_exited(at as u32, exited, &mut parts);
            }
            if apart > 0 {
                sources.share_apart(at as u32, apart, &mut parts);
            }
            merge(&mut parts);
            for p in &parts {
                let t = totals.entry(p.cause).or_default();
                t.0 = t.0.saturating_add(p.lanes);
                t.1 |= p.estimate;
            }
            let off = c.thread_inst_executed.saturating_sub(c.thread_inst_executed_pred_on);
            match kernel.instructions.get(at).map(|i| &i.op) {
                Some(Op::Control(_)) => all.not_taken = all.not_taken.saturating_add(off),
                _ => all.predicated_off = all.predicated_off.saturating_add(off),
            }
            all.slots += slots;
            all.lost = all.lost.saturating_add(lost);
            all.instructions.push(InstLoss { lost, parts, predicated_off: off, discarded: 0 });
        }
        all.causes = totals
            .into_iter()
            .map(|(cause, (lanes, estimate))| {
                let warp_instructions = lanes as f64 / width as f64;
                CauseTotal { cause, lanes, warp_instructions, estimate }
            })
            .collect();
        all.causes.sort_by(|a, b| b.lanes.cmp(&a.lanes).then(a.cause.cmp(&b.cause)));
        all
    }
}

/// Joins parts of the same cause, keeping the order of first appearance.
fn merge(parts: &mut Vec<Part>) {
    let mut out: Vec<Part> = Vec::with_capacity(parts.len());
    for p in parts.iter().filter(|p| p.lanes > 0) {
        match out.iter_mut().find(|o| o.cause == p.cause) {
            Some(o) => {
                o.lanes += p.lanes;
                o.estimate |= p.estimate;
            }
            None => out.push(*p),
        }
    }
    *parts = out;
}

/// How thin a group is: lanes per issue in fixed point, so that comparisons are exact and repeatable.
type Density = u64;

fn density(lanes: u64, issues: u64) -> Density {
    if issues == 0 {
        return 0;
    }
    u64::try_from((u128::from(lanes) << 20) / u128::from(issues)).unwrap_or(u64::MAX)
}

/// A branch or exit that parts lanes.
struct Source {
    cause: Cause,
    /// Density of the loss before it took effect.
    base: Density,
    /// Density of the loss right after it (exits).
    after: Density,
    /// Lanes that left the loop here, or that took the branch: shares of branches with the same base.
    lanes: u64,
    /// Whether lanes reach an unconditional `EXIT` inside its region.
    exits: bool,
    /// Whether they reach one at all.
    exits_later: bool,
}

struct Sources<'a> {
    profile: &'a Profile,
    block_of: &'a [u32],
    list: Vec<Source>,
    /// For each block, the branches whose region covers it.
    within: Vec<Vec<u32>>,
    /// For each block, the branches that come before it, whether or not lanes should have rejoined.
    behind: Vec<Vec<u32>>,
    /// For each block, the exits that come before it.
    left: Vec<Vec<u32>>,
}

impl<'a> Sources<'a> {
    fn new(kernel: &Kernel, s: &'a Structure, profile: &'a Profile) -> Self {
        let blocks = s.cfg.blocks.len();
        let mut out = Sources {
            profile,
            block_of: &s.cfg.block_of,
            list: Vec::new(),
            within: vec![Vec::new(); blocks],
            behind: vec![Vec::new(); blocks],
            left: vec![Vec::new(); blocks],
        };
        let mut splits: Vec<_> = profile.branches.iter().filter(|b| b.divergent > 0).collect();
        splits.sort_by(|a, b| b.divergent.cmp(&a.divergent).then(a.inst.cmp(&b.inst)));
        // For each branch in `list`, its block and the size of its region.
        let mut regions = Vec::new();
        for b in splits.into_iter().take(BRANCH_LIMIT) {
            let Some(block) = s.cfg.block(b.inst) else { continue };
            let id = out.list.len() as u32;
            if b.kind == BranchKind::Exit {
                regions.push(None);
                for after in s.after(b.inst) {
                    note(&mut out.left[after as usize], id);
                }
                let next = b.inst + 1;
                out.list.push(Source {
                    cause: Cause::Exit(b.inst),
                    base: out.density_at(b.inst, |p, i| p.counts[i].lanes_exited),
                    after: out.density_at(next, |p, i| p.counts[i].lanes_exited),
                    lanes: b.lanes_taken,
                    exits: true,
                    exits_later: true,
                });
                continue;
            }
            let region = s.region(b.inst);
            let in_itself = region.blocks.binary_search(&block).is_ok();
            let leaves = s.leaves_loop(block);
            let around = leaves.or_else(|| s.loops.innermost.get(block as usize).copied().flatten());
            let base = match around {
                Some(l) if in_itself || leaves.is_some() => out.entry_density(s, l),
                _ => out.density_at(b.inst, apart),
            };
            let header =
                leaves.and_then(|l| s.loops.list.get(l as usize)).and_then(|l| s.cfg.blocks.get(l.header as usize));
            let cause = match header {
                Some(header) => Cause::Trips { branch: b.inst, header: header.first },
                None => Cause::Branch(b.inst),
            };
            let exits = region.blocks.iter().any(|&r| ends_lanes(kernel, s, profile, r));
            regions.push(Some((block, region.blocks.len())));
            for &r in &region.blocks {
                note(&mut out.within[r as usize], id);
            }
            let mut exits_later = exits;
            for r in s.after(b.inst) {
                exits_later = exits_later || ends_lanes(kernel, s, profile, r);
                note(&mut out.behind[r as usize], id);
            }
            let lanes = leavers(kernel, s, leaves, b.inst, b.lanes_taken, b.lanes_not_taken);
            out.list.push(Source { cause, base, after: 0, lanes, exits, exits_later });
        }
        out.nest(&regions);
        for lists in [&mut out.within, &mut out.behind] {
            for list in lists {
                list.sort_by_key(|&i| (out.list[i as usize].base, out.list[i as usize].cause));
            }
        }
        out
    }

    /// A branch inside another one's region takes effect after it. Densities alone do not tell: where an outer branch
    /// is passed more seldom than an inner one, a few thin groups can make it look the thinner of the two.
    fn nest(&mut self, regions: &[Option<(u32, usize)>]) {
        let mut order: Vec<usize> = (0..regions.len()).filter(|&i| regions[i].is_some()).collect();
        order.sort_by_key(|&i| (regions[i].map(|r| std::cmp::Reverse(r.1)), i));
        for i in order {
            let Some((block, _)) = regions[i] else { continue };
            let around = |j: u32| {
                let its = regions[j as usize].map_or(block, |r| r.0);
                j as usize != i && !self.within[its as usize].contains(&(i as u32))
            };
            let outer = self.within[block as usize].iter().filter(|&&j| around(j));
            if let Some(least) = outer.map(|&j| self.list[j as usize].base.saturating_add(1)).max() {
                self.list[i].base = self.list[i].base.max(least);
            }
        }
    }

    fn density_at(&self, inst: u32, lanes: impl Fn(&Profile, usize) -> u64) -> Density {
        let i = inst as usize;
        self.profile.counts.get(i).map_or(0, |c| density(lanes(self.profile, i), c.inst_executed))
    }

    /// Density of the loss where control enters loop `l`.
    fn entry_density(&self, s: &Structure, l: u32) -> Density {
        let Some(header) = s.loops.list.get(l as usize).map(|l| l.header) else { return 0 };
        let (mut lanes, mut issues) = (0u64, 0u64);
        // The header's dominator outside the loop, as every entry passes it.
        if let Some(before) = s.dom.idom(header).and_then(|b| s.cfg.blocks.get(b as usize)) {
            let i = before.last() as usize;
            if let Some(c) = self.profile.counts.get(i) {
                lanes = apart(self.profile, i);
                issues = c.inst_executed;
            }
        }
        density(lanes, issues)
    }

    fn share_apart(&self, inst: u32, lanes: u64, parts: &mut Vec<Part>) {
        let block = self.block_of.get(inst as usize).map(|&b| b as usize);
        let within = block.and_then(|b| self.within.get(b)).map_or(&[][..], Vec::as_slice);
        let behind = block.and_then(|b| self.behind.get(b)).map_or(&[][..], Vec::as_slice);
        let (ids, escaped) = if within.is_empty() { (behind, true) } else { (within, false) };
        if ids.is_empty() {
            parts.push(Part { cause: Cause::Unknown, lanes, estimate: false });
            return;
        }
        let here = self.density_at(inst, apart);
        // Branches with the same base (several ways out of one loop) are one step.
        let mut weights = vec![0u64; ids.len()];
        let mut at = 0;
        while at < ids.len() {
            let base = self.list[ids[at] as usize].base;
            let same = ids[at..].iter().take_while(|&&i| self.list[i as usize].base == base).count();
            let end = ids.get(at + same).map_or(here, |&i| self.list[i as usize].base.min(here));
            let start = if at == 0 { 0 } else { base.min(here) };
            let step = end.saturating_sub(start);
            let lanes: Vec<u64> = ids[at..at + same].iter().map(|&i| self.list[i as usize].lanes).collect();
            weights[at..at + same].copy_from_slice(&apportion(step, &lanes));
            at += same;
        }
        let estimate = escaped || weights.iter().filter(|&&w| w > 0).count() > 1;
        for (&i, lanes) in ids.iter().zip(apportion(lanes, &weights)) {
            parts.push(Part { cause: self.list[i as usize].cause, lanes, estimate });
        }
    }

    fn share_exited(&self, inst: u32, lanes: u64, parts: &mut Vec<Part>) {
        let block = self.block_of.get(inst as usize).map(|&b| b as usize);
        let exits = block.and_then(|b| self.left.get(b)).map_or(&[][..], Vec::as_slice);
        let within = block.and_then(|b| self.within.get(b)).map_or(&[][..], Vec::as_slice);
        // Branches that sent lanes to an EXIT while these here went on; failing that, branches whose lanes never
        // rejoined and so came to an EXIT one group after the other.
        let leads = |i: &u32| self.list[*i as usize].exits;
        let mut branches: Vec<u32> = within.iter().copied().filter(leads).collect();
        let behind = block.and_then(|b| self.behind.get(b)).map_or(&[][..], Vec::as_slice);
        if branches.is_empty() && exits.is_empty() {
            branches.extend(behind.iter().copied().filter(leads));
        }
        if branches.is_empty() && exits.is_empty() {
            branches.extend(behind.iter().copied().filter(|&i| self.list[i as usize].exits_later));
        }
        let here = self.density_at(inst, |p, i| p.counts[i].lanes_exited);
        let mut weights: Vec<u64> = exits
            .iter()
            .map(|&i| {
                let e = &self.list[i as usize];
                e.after.saturating_sub(e.base).max(1)
            })
            .collect();
        let known = weights.iter().fold(0u64, |a, &w| a.saturating_add(w)).min(here);
        let of_branches: Vec<u64> = branches.iter().map(|&i| self.list[i as usize].lanes).collect();
        weights.extend(apportion(here.saturating_sub(known), &of_branches));
        if weights.is_empty() {
            parts.push(Part { cause: Cause::Unknown, lanes, estimate: false });
            return;
        }
        let estimate = weights.iter().filter(|&&w| w > 0).count() > 1;
        for (&i, lanes) in exits.iter().chain(&branches).zip(apportion(lanes, &weights)) {
            parts.push(Part { cause: self.list[i as usize].cause, lanes, estimate });
        }
    }
}

/// Adds a source to a block's list. Sources come in the order of how often they split.
fn note(list: &mut Vec<u32>, id: u32) {
    if list.len() < SHARED_LIMIT {
        list.push(id);
    }
}

/// Lanes that were alive but not in the issuing groups.
fn apart(profile: &Profile, i: usize) -> u64 {
    let c = &profile.counts[i];
    let slots = u128::from(profile.shape.warp_size.max(1)) * u128::from(c.inst_executed);
    let others = u128::from(c.thread_inst_executed) + u128::from(c.lanes_missing) + u128::from(c.lanes_exited);
    u64::try_from(slots.saturating_sub(others)).unwrap_or(u64::MAX)
}

/// Whether block `b` ends with an `EXIT` that all its lanes take, and was executed.
fn ends_lanes(kernel: &Kernel, s: &Structure, profile: &Profile, b: u32) -> bool {
    let Some(block) = s.cfg.blocks.get(b as usize) else { return false };
    let i = block.last() as usize;
    let exit = kernel
        .instructions
        .get(i)
        .is_some_and(|inst| matches!(inst.op, Op::Control(ControlOp::Exit { .. })) && !is_conditional(inst));
    exit && profile.counts.get(i).is_some_and(|c| c.thread_inst_executed > 0)
}

/// How many lanes left loop `l` at a branch; all that took it if it leaves none.
fn leavers(kernel: &Kernel, s: &Structure, l: Option<u32>, inst: u32, taken: u64, passed: u64) -> u64 {
    let target = kernel.instructions.get(inst as usize).and_then(|i| match &i.op {
        Op::Control(ControlOp::Branch { target, .. }) => s.cfg.block(target.0),
        _ => None,
    });
    match (l, target) {
        (Some(l), Some(target)) if s.loops.contains(l, target) => passed.max(1),
        _ => taken.max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Builder, branch_counts, counts};
    use lanescope_ir::{LaneCounts, LaunchShape};

    fn profile(counts: Vec<LaneCounts>, branches: Vec<lanescope_ir::BranchCounts>) -> Profile {
        let shape = LaunchShape { grid: [1; 3], block: [32, 1, 1], warp_size: 32 };
        Profile { shape, counts, branches, ..Profile::default() }
    }

    fn attribute(k: &Builder, p: &Profile) -> Attribution {
        let kernel = k.kernel();
        Attribution::new(&kernel, &Structure::new(&kernel), p)
    }

    #[test]
    fn an_if_in_an_if() {
        let mut k = Builder::new();
        // 0 bssy, 1 @P0 bra 5, 2 bssy B1, 3 @P1 bra 4(bsync), 4 bsync B1, 5 bsync B0, 6 exit
        k.bssy(0, 7).bra_if(0, 6).bssy(1, 6).bra_if(1, 5).nop().bsync(1).bsync(0).exit();
        let c = vec![
            counts(1, 32),
            counts(1, 32),
            counts(1, 16),
            counts(1, 16),
            counts(1, 4),
            counts(2, 16),
            counts(2, 32),
            counts(1, 32),
        ];
        let b = vec![branch_counts(1, 1, 1, 16, 16), branch_counts(3, 1, 1, 12, 4)];
        let a = attribute(&k, &profile(c, b));
        assert_eq!(a.instructions[1].lost, 0);
        assert_eq!(a.instructions[3].parts, [Part { cause: Cause::Branch(1), lanes: 16, estimate: false }]);
        // 28 lanes are missing in the inner side: 16 since the outer branch, 12 since the inner one.
        assert_eq!(
            a.instructions[4].parts,
            [
                Part { cause: Cause::Branch(1), lanes: 16, estimate: true },
                Part { cause: Cause::Branch(3), lanes: 12, estimate: true }
            ]
        );
        assert_eq!(a.lost, 16 + 16 + 28 + 48 + 32);
    }

    #[test]
    fn an_inner_branch_that_splits_more_than_the_outer_one() {
        // As `an_if_in_an_if`, with a loop round the inner one: 8 warps come to the outer branch, one of them thin; its
        // side is taken by four full ones, which pass the inner branch eight times each and split there.
        let mut k = Builder::new();
        // 0 bssy B0, 1 @P0 bra 8, 2 bssy B1, 3 @P1 bra 5, 4 nop, 5 bsync B1, 6 nop, 7 @P2 bra 2, 8 bsync B0, 9 exit
        k.bssy(0, 8).bra_if(0, 8).bssy(1, 5).bra_if(1, 5).nop().bsync(1).nop().bra_if(2, 2).bsync(0).exit();
        let c = vec![
            counts(8, 240),
            counts(8, 240),
            counts(32, 1024),
            counts(32, 1024),
            counts(32, 512),
            counts(64, 1024),
            counts(32, 1024),
            counts(32, 1024),
            counts(8, 240),
            counts(8, 240),
        ];
        let b = vec![branch_counts(1, 8, 1, 112, 128), branch_counts(3, 32, 32, 512, 512)];
        let a = attribute(&k, &profile(c, b));
        assert_eq!(
            a.instructions[4].parts.iter().max_by_key(|p| p.lanes).map(|p| p.cause),
            Some(Cause::Branch(3)),
            "{:?}",
            a.instructions[4].parts
        );
    }

    #[test]
    fn a_loop_and_a_guard_before_it() {
        let mut k = Builder::new();
        // 0 @P0 exit, 1 bssy, 2 nop, 3 @P1 bra 2, 4 bsync, 5 exit
        k.exit_if(0).bssy(0, 5).nop().bra_if(1, 2).bsync(0).exit();
        let left = |i, t, x| LaneCounts { lanes_exited: x, ..counts(i, t) };
        let c = vec![counts(1, 32), left(1, 30, 2), left(4, 60, 8), left(4, 60, 8), left(2, 30, 4), left(1, 30, 2)];
        let exit = lanescope_ir::BranchCounts { kind: BranchKind::Exit, ..branch_counts(0, 1, 1, 2, 30) };
        let a = attribute(&k, &profile(c, vec![exit, branch_counts(3, 4, 1, 30, 30)]));
        let trips = Cause::Trips { branch: 3, header: 2 };
        assert_eq!(
            a.instructions[2].parts,
            [
                Part { cause: Cause::Exit(0), lanes: 8, estimate: false },
                Part { cause: trips, lanes: 60, estimate: false }
            ]
        );
        assert_eq!(a.instructions[4].parts[1], Part { cause: trips, lanes: 30, estimate: false });
        assert_eq!(a.causes[0].cause, trips);
        assert_eq!(a.causes[0].warp_instructions, 150.0 / 32.0);
    }

    #[test]
    fn thousands_of_branches_that_never_rejoin() {
        let n = 500;
        let mut k = Builder::new();
        (0..n).for_each(|i| {
            k.bra_if(0, i + 2);
            k.nop();
        });
        k.exit().exit();
        let c = vec![counts(2, 20); 2 * n as usize + 2];
        let b = (0..n).map(|i| branch_counts(2 * i, 2, 1, 10, 10)).collect();
        let start = std::time::Instant::now();
        let a = attribute(&k, &profile(c, b));
        assert_eq!(a.lost, 44 * (2 * u64::from(n) + 2));
        assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
    }

    #[test]
    fn foreign_counters_without_detail_still_add_up() {
        let mut k = Builder::new();
        k.nop().exit();
        let a = attribute(&k, &profile(vec![counts(2, 3), counts(1, 99)], vec![]));
        assert_eq!(a.instructions[0].parts, [Part { cause: Cause::Unknown, lanes: 61, estimate: false }]);
        assert_eq!(a.instructions[1].lost, 0);
    }

    #[test]
    fn parts_add_up_to_the_whole() {
        arbtest::arbtest(|u| {
            let n = u.int_in_range(1..=16u32)?;
            let mut k = Builder::new();
            for _ in 0..n {
                match u.int_in_range(0..=7u8)? {
                    0 => k.nop(),
                    1 => k.bra(u.int_in_range(0..=n)?),
                    2 => k.exit_if(0),
                    3 => k.bssy(0, u.int_in_range(0..=n)?),
                    4 => k.bsync(0),
                    5 => k.call(u.int_in_range(0..=n)?),
                    6 => k.ret(),
                    _ => k.bra_if(0, u.int_in_range(0..=n)?),
                };
            }
            k.exit();
            let mut c = Vec::new();
            let mut b = Vec::new();
            for i in 0..=n {
                let big: bool = u.ratio(1, 8)?;
                let top = if big { u64::MAX } else { 100 };
                let mut one = counts(u.int_in_range(0..=top)?, u.int_in_range(0..=top)?);
                one.thread_inst_executed_pred_on = u.int_in_range(0..=top)?;
                one.lanes_missing = u.int_in_range(0..=top)?;
                one.lanes_exited = u.int_in_range(0..=top)?;
                c.push(one);
                if u.arbitrary()? {
                    let kind = *u.choose(&[BranchKind::Branch, BranchKind::Exit, BranchKind::Indirect])?;
                    let mut x = branch_counts(i, 9, u.int_in_range(0..=9)?, u.int_in_range(0..=top)?, 3);
                    x.kind = kind;
                    b.push(x);
                }
            }
            let p = profile(c, b);
            let a = attribute(&k, &p);
            let mut sum = 0u64;
            for (c, i) in p.counts.iter().zip(&a.instructions) {
                let slots = u128::from(c.inst_executed) * 32;
                let lost = slots.saturating_sub(c.thread_inst_executed.into()).min(u64::MAX.into());
                assert_eq!(u128::from(i.lost), lost);
                assert_eq!(i.parts.iter().map(|p| u128::from(p.lanes)).sum::<u128>(), lost);
                sum = sum.saturating_add(i.lost);
            }
            assert_eq!(sum, a.lost);
            if sum < u64::MAX {
                assert_eq!(a.causes.iter().map(|c| c.lanes).sum::<u64>(), sum);
                let kernel = k.kernel();
                let s = Structure::new(&kernel);
                let lines = crate::lines::lines(&kernel, &s, &p, &a);
                assert_eq!(lines.iter().map(|l| l.lost).sum::<u64>(), sum);
                for l in &lines {
                    assert_eq!(l.parts.iter().map(|p| p.lanes).sum::<u64>(), l.lost);
                }
                crate::analyse(&kernel, &p);
            }
            Ok(())
        })
        .budget_ms(2_000);
    }
}
