//! Rules: one file each, with its manual page.
//!
//! A rule looks at an analysed launch and says what it found. A loss of at least [`WORTH_IT`] of all lane slots
//! is a warning, anything smaller worth knowing at most: a kernel that loses one warp in a thousand needs no fix.

mod bank_conflict;
mod divergent_branch;
mod hot_line;
mod lockstep_loop;
mod memory_bound;
mod partial_warp;
mod predicated;
mod split_exit;
mod uncoalesced_access;
mod unequal_trips;
mod uniform_branch;

use lanescope_ir::finding::Evidence;
use lanescope_ir::{Finding, Kernel, Profile, Severity};

pub use memory_bound::memory_bound;

use crate::attribution::CauseTotal;
use crate::survey::Analysis;
use crate::words;

/// Share of all lane slots from which on a loss is a warning.
pub const WORTH_IT: f64 = 0.05;

/// A rule.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Name, kebab-case.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// The manual page: what it finds, why it matters, what to do.
    pub page: &'static str,
    check: fn(&Context<'_>, &mut Vec<Finding>),
}

/// All rules.
pub const RULES: &[Rule] = &[
    divergent_branch::RULE,
    unequal_trips::RULE,
    split_exit::RULE,
    partial_warp::RULE,
    hot_line::RULE,
    lockstep_loop::RULE,
    predicated::RULE,
    uniform_branch::RULE,
    memory_bound::RULE,
    uncoalesced_access::RULE,
    bank_conflict::RULE,
];

/// The rule of that name.
pub fn rule(name: &str) -> Option<&'static Rule> {
    RULES.iter().find(|r| r.name == name)
}

/// What a rule may look at.
struct Context<'a> {
    kernel: &'a Kernel,
    profile: &'a Profile,
    analysis: &'a Analysis,
}

impl Context<'_> {
    /// Severity and cost of a cause, in words: `12,345 lane slots (4.5 %) ... 386 warp instructions`.
    fn cost(&self, total: &CauseTotal) -> (Severity, String) {
        let slots = self.analysis.losses.slots;
        let severity = severity(total.lanes as f64 / slots.max(1) as f64);
        let text = format!(
            "{} lane slots ({} of all) were lost to it{}: {} warp instructions that full warps would not have needed",
            words::count(total.lanes),
            words::share(total.lanes, slots),
            if total.estimate { ", partly an estimate" } else { "" },
            words::amount(total.warp_instructions),
        );
        (severity, text)
    }

    fn evidence(&self, total: &CauseTotal) -> Vec<(&'static str, Evidence)> {
        vec![
            ("lost_lane_slots", Evidence::Count(total.lanes)),
            ("share_of_slots", Evidence::Ratio(total.lanes as f64 / self.analysis.losses.slots.max(1) as f64)),
            ("warp_instructions", Evidence::Ratio(total.warp_instructions)),
        ]
    }

    /// Counters of the branch at `inst`.
    fn branch(&self, inst: u32) -> Option<&lanescope_ir::BranchCounts> {
        self.profile.branches.iter().find(|b| b.inst == inst)
    }
}

fn severity(share: f64) -> Severity {
    if share >= WORTH_IT { Severity::Warning } else { Severity::Info }
}

/// Runs all rules: gravest first, then in the order of [`RULES`].
pub(crate) fn check(kernel: &Kernel, profile: &Profile, analysis: &Analysis) -> Vec<Finding> {
    let context = Context { kernel, profile, analysis };
    let mut found = Vec::new();
    for rule in RULES {
        (rule.check)(&context, &mut found);
    }
    found.sort_by_key(|f| std::cmp::Reverse(f.severity));
    found
}
