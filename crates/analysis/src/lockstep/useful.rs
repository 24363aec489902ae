//! What lock-step loops cost: lanes that were active and whose results were thrown away.

use lanescope_ir::{Kernel, Op, Profile};

use super::Lockstep;
use crate::attribution::Attribution;
use crate::regions::Structure;

/// How many lanes of a lock-step loop did useful work, told by one of its selects or guards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Useful {
    /// The select or guarded instruction.
    pub inst: u32,
    /// Turns of warps: issues of it in which any lane took part.
    pub warp_turns: u64,
    /// Turns of lanes: lanes that took part.
    pub lane_turns: u64,
    /// Of these, lanes whose results were kept.
    pub useful: u64,
}

impl Useful {
    /// Useful turns of lanes among the lane slots that the turns offered.
    pub fn efficiency(&self, warp_size: u32) -> f64 {
        let slots = u128::from(warp_size.max(1)) * u128::from(self.warp_turns);
        if slots == 0 { 0.0 } else { self.useful as f64 / slots as f64 }
    }
}

/// A lock-step loop that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockstepStat {
    /// The loop.
    pub lockstep: Lockstep,
    /// Its useful lanes; `None` if nothing in it tells, or what tells was not counted.
    pub useful: Option<Useful>,
    /// Lane slots of its instructions in which a lane worked for nothing: it was active, its guard held, and the turn was
    /// not its own. Instructions of inner loops count; those whose guard masks such lanes do not.
    pub discarded: u64,
    /// Whether some instruction was not executed just as often as the one that tells, so that its share is an estimate.
    pub estimate: bool,
}

impl Lockstep {
    /// Of all that tells, what keeps most lanes, and of equals, what was executed least: a guard also sees the turn in
    /// which nobody wants any more.
    fn useful(&self, profile: &Profile) -> Option<Useful> {
        let of = |d: &super::Discard| {
            if d.select {
                let c = profile.selects.iter().find(|c| c.inst == d.inst)?;
                let useful = if d.kept { c.lanes_true } else { c.lanes_false };
                let lane_turns = c.lanes_true.saturating_add(c.lanes_false);
                return Some(Useful { inst: d.inst, warp_turns: c.executed, lane_turns, useful });
            }
            let c = profile.counts.get(d.inst as usize)?;
            let (lane_turns, useful) = (c.thread_inst_executed, c.thread_inst_executed_pred_on);
            Some(Useful { inst: d.inst, warp_turns: c.inst_executed, lane_turns, useful })
        };
        let ran = self.discards.iter().filter_map(of).filter(|u| u.warp_turns > 0);
        ran.max_by_key(|u| (u.useful, std::cmp::Reverse((u.warp_turns, u.inst))))
    }
}

/// What the loops that ran cost. Adds the lanes that worked for nothing to `losses`.
pub(crate) fn stats(
    kernel: &Kernel,
    s: &Structure,
    profile: &Profile,
    loops: Vec<Lockstep>,
    losses: &mut Attribution,
) -> Vec<LockstepStat> {
    let ran = |l: &Lockstep| profile.counts.get(l.header as usize).is_some_and(|c| c.inst_executed > 0);
    let mut list: Vec<LockstepStat> = loops
        .into_iter()
        .filter(ran)
        .map(|lockstep| {
            let useful = lockstep.useful(profile);
            LockstepStat { lockstep, useful, discarded: 0, estimate: false }
        })
        .collect();
    if list.is_empty() {
        return list;
    }
    for (b, block) in s.cfg.blocks.iter().enumerate() {
        // The innermost of these loops around the block.
        let around = s.loops.around(b as u32).find_map(|l| list.iter().position(|x| x.lockstep.index == l));
        let Some(stat) = around.and_then(|i| list.get_mut(i)) else { continue };
        let Some(useful) = stat.useful.filter(|u| u.lane_turns > 0) else { continue };
        for at in block.instructions() {
            let (Some(inst), Some(c)) = (kernel.instructions.get(at as usize), profile.counts.get(at as usize)) else {
                continue;
            };
            if stat.lockstep.discards.iter().any(|d| d.inst == at && !d.select) {
                continue;
            }
            let on =
                if matches!(inst.op, Op::Control(_)) { c.thread_inst_executed } else { c.thread_inst_executed_pred_on };
            let nothing = useful.lane_turns.saturating_sub(useful.useful);
            let share = u128::from(on) * u128::from(nothing) / u128::from(useful.lane_turns);
            let share = u64::try_from(share).unwrap_or(u64::MAX);
            stat.estimate |= on != useful.lane_turns && on != 0;
            stat.discarded = stat.discarded.saturating_add(share);
            losses.discarded = losses.discarded.saturating_add(share);
            if let Some(loss) = losses.instructions.get_mut(at as usize) {
                loss.discarded = share;
            }
        }
    }
    list
}
