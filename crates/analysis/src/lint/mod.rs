//! What is wrong or could be cheaper in a kernel, told from its code alone.
//!
//! Rules: one file each, with its manual page. A rule reports nothing without a witness: the chain of instructions that
//! shows how lanes part, and which of them are missing where they are counted on. Rules look at machine code and PTX
//! alike; PTX names the mask of an operation across lanes, machine code only where the compiler could not prove that the
//! lanes are together.
//!
//! Branches that only guard a trap (a bounds check, an assertion, a panic) are taken to be never taken.

mod activemask_as_mask;
mod arms;
mod barrier_after_exit;
mod barrier_both_arms;
mod barrier_in_divergent_code;
mod barriers;
mod control;
mod cx;
mod implicit_reconvergence;
mod lanes;
mod lock_after_join;
mod long_rare_path;
mod loop_trips;
mod mask_absent_lanes;
mod mask_in_divergent_code;
mod missing_syncwarp;
mod modulo_lane_branch;
mod partial_last_warp;
mod run_time;
mod shared_pairs;
mod short_branch;
mod syncs;
mod tail_not_padded;

use lanescope_ir::{Finding, Kernel};

use crate::regions::Structure;
use crate::uniformity::{Facts, Uniformity};
pub use arms::Sides;
use cx::Cx;
pub use cx::{Step, argument, chain, source};

/// A rule.
#[derive(Clone, Copy, Debug)]
pub struct LintRule {
    /// Name, kebab-case.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// The manual page: what it finds, why it matters, what to do.
    pub page: &'static str,
    check: Option<fn(&mut Cx<'_>)>,
}

/// All rules, in the order in which they look at a kernel: where one has spoken about an operation, those after it do
/// not repeat it.
pub const RULES: &[LintRule] = &[
    mask_absent_lanes::RULE,
    mask_in_divergent_code::RULE,
    partial_last_warp::RULE,
    activemask_as_mask::RULE,
    barrier_both_arms::RULE,
    barrier_in_divergent_code::RULE,
    barrier_after_exit::RULE,
    implicit_reconvergence::RULE,
    missing_syncwarp::RULE,
    lock_after_join::RULE,
    long_rare_path::RULE,
    modulo_lane_branch::RULE,
    loop_trips::RULE,
    tail_not_padded::RULE,
    short_branch::RULE,
    run_time::LANE_NOT_IN_MASK,
    run_time::SHARED_RACE,
    run_time::UNWRITTEN_READ,
    run_time::LOCK_SPIN,
];

/// The rule of that name.
pub fn rule(name: &str) -> Option<&'static LintRule> {
    RULES.iter().find(|r| r.name == name)
}

/// A finding with its witness.
#[derive(Clone, Debug, PartialEq)]
pub struct Hazard {
    /// What and where.
    pub finding: Finding,
    /// The chain of instructions that proves it.
    pub witness: Vec<Step>,
}

/// What is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The code.
    pub kernel: &'a Kernel,
    /// Its structure.
    pub structure: &'a Structure,
    /// Verdicts about its branches.
    pub uniformity: &'a Uniformity,
    /// What is known of the launch.
    pub facts: &'a Facts,
}

/// Runs all rules: the gravest findings first, then in code order.
pub fn check(input: &Input<'_>) -> Vec<Hazard> {
    let mut cx = Cx::new(input);
    for rule in RULES {
        if let Some(check) = rule.check {
            check(&mut cx);
        }
    }
    let mut found = cx.found;
    found.sort_by_key(|h| (std::cmp::Reverse(h.finding.severity), h.finding.inst));
    found
}
