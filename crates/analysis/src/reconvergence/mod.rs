//! Where the lanes that part at a branch rejoin, against where they could: the static survey.
//!
//! The nearest place where they could is the branch's immediate post-dominator. Where they do is a convergence region
//! that is open at the branch: the `BSYNC` of a `BSSY`, or before Volta the label of an `SSY`, `PBK` or `PCNT`. Of
//! those that post-dominate the branch the nearest counts. It compares with the post-dominator as
//! - **exact**: straight-line code lies between, so nothing is issued twice;
//! - **deferred**: at least one more branch lies between;
//! - **exit**: the paths only meet where the thread ends;
//! - **escaped**: regions are open, but none of them post-dominates the branch;
//! - **uncovered**: no region is open. The compiler takes the branch for uniform, or leaves lanes apart until a
//!   `WARPSYNC`.
//!
//! Only a branch whose lanes can disagree splits a warp, so every count is worth as much as the [verdict](mod@spread)
//! that goes with it. `BRA.U` never splits; `BRA.DIV` and `BRA.CONV` ask whether the group is together.
//!
//! The graph is that of one section without calls: a call goes on behind itself, and functions inside are roots.

mod armed;
mod blocks;
mod spread;
mod tokens;

use lanescope_ir::flow::{Barrier, Flow, FlowCode, RegionClass};

use crate::dom::Dominators;
use blocks::Blocks;

/// Visits of blocks or instructions that one function may cost; no real one comes near.
const WORK: usize = 200_000_000;

/// The function is too large or too tangled for the work limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the control flow is too large to follow")
    }
}

impl std::error::Error for TooLarge {}

/// Who decides at a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Decides {
    /// Each lane.
    Lanes,
    /// The group as one: `BRA.U`.
    Group,
    /// Whether the group is converged: `BRA.DIV`, `BRA.CONV`.
    Test,
}

/// Where the lanes rejoin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// As soon as they could.
    Exact,
    /// Later.
    Deferred,
    /// At the end only.
    Exit,
    /// Not in the regions that are open.
    Escaped,
    /// No region is open.
    Uncovered,
}

impl Class {
    /// All, in the order in which they are shown.
    pub const ALL: [Class; 5] = [Class::Exact, Class::Deferred, Class::Exit, Class::Escaped, Class::Uncovered];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Class::Exact => "exact",
            Class::Deferred => "deferred",
            Class::Exit => "exit",
            Class::Escaped => "escaped",
            Class::Uncovered => "uncovered",
        }
    }
}

/// A conditional or indirect branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The instruction.
    pub at: u32,
    /// Who decides.
    pub decides: Decides,
    /// Whether lanes can disagree; `None` if nothing is known of values. Only asked where lanes decide.
    pub diverges: Option<bool>,
    /// Where they rejoin.
    pub class: Class,
    /// First instruction of the immediate post-dominator; `None` if that is the end.
    pub meets_at: Option<u32>,
    /// The instruction where they rejoin: the `BSYNC`, or the first one after a token is taken.
    pub rejoins_at: Option<u32>,
}

/// A function's branches and regions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reconvergence {
    /// In code order.
    pub branches: Vec<Branch>,
    /// Regions that are opened: `BSSY`, or `SSY`, `PBK` and `PCNT`.
    pub regions: u32,
    /// Regions among them without an end that can be reached.
    pub endless: u32,
    /// `SYNC`, `BRK` and `CONT` whose token is not known: in a function that takes its caller's, or in code that
    /// joins with different tokens.
    pub unmatched: u32,
}

/// A convergence region: a `BSSY` with the `BSYNC`s and `BREAK`s of its barrier that it reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The `BSSY`.
    pub open: u32,
    /// Its barrier.
    pub barrier: Barrier,
    /// Its class.
    pub class: RegionClass,
    /// The `BSYNC`s.
    pub waits: Vec<u32>,
    /// The `BREAK`s.
    pub breaks: Vec<u32>,
}

/// The convergence regions of a function, in code order.
pub fn regions(code: &FlowCode) -> Result<Vec<Region>, TooLarge> {
    let blocks = Blocks::new(code, &tokens::Tokens::new(code));
    let armed = armed::Armed::new(code, &blocks, &mut Work(WORK))?;
    let region = |o: armed::Open| Region {
        open: o.at,
        barrier: o.barrier,
        class: o.class,
        waits: o.waits.into_iter().map(|w| w.1).collect(),
        breaks: o.breaks,
    };
    Ok(armed.opens.into_iter().map(region).collect())
}

/// Surveys a function.
pub fn survey(code: &FlowCode) -> Result<Reconvergence, TooLarge> {
    let tokens = tokens::Tokens::new(code);
    let blocks = Blocks::new(code, &tokens);
    let post = Dominators::new(&blocks.graph.reversed(), blocks.exit());
    let mut work = Work(WORK);
    let armed = armed::Armed::new(code, &blocks, &mut work)?;
    let diverges = spread::verdicts(code, &blocks, &post, &mut work)?;
    let mut out = Reconvergence {
        regions: (armed.opens.len() + tokens.pushes) as u32,
        endless: armed.endless() as u32,
        unmatched: tokens.unmatched,
        ..Reconvergence::default()
    };
    let mut ends = Vec::new();
    for block in 0..blocks.len() {
        let at = blocks.last(block);
        let Some(decides) = decides(code, at) else { continue };
        ends.clear();
        let mut open = armed.ends(block, &mut ends);
        open |= tokens.ends(at, &blocks, &mut ends);
        let meets = post.idom(block).filter(|&b| b != blocks.exit());
        let joins = nearest(&post, block, &ends);
        let class = match (meets, joins) {
            (None, _) => Class::Exit,
            (Some(meets), Some((joins, _))) => {
                if straight(&blocks, meets, joins, &mut work)? {
                    Class::Exact
                } else {
                    Class::Deferred
                }
            }
            (Some(_), None) if open => Class::Escaped,
            (Some(_), None) => Class::Uncovered,
        };
        out.branches.push(Branch {
            at,
            decides,
            diverges: diverges.as_ref().map(|d| d[block as usize]).filter(|_| decides == Decides::Lanes),
            class,
            meets_at: meets.map(|b| blocks.first(b)),
            rejoins_at: joins.map(|j| j.1).filter(|_| meets.is_some()),
        });
    }
    Ok(out)
}

/// Who decides at an instruction, if it is a branch that lanes or groups take or not.
fn decides(code: &FlowCode, at: u32) -> Option<Decides> {
    let inst = code.insts.get(at as usize).filter(|i| !i.never)?;
    match inst.flow {
        Flow::Branch(_) | Flow::Pop(_) => inst.conditional.then_some(Decides::Lanes),
        Flow::Indirect(..) => Some(Decides::Lanes),
        Flow::GroupBranch(_) => inst.conditional.then_some(Decides::Group),
        Flow::Test(_) => Some(Decides::Test),
        _ => None,
    }
}

/// Of the ends (block, instruction) that post-dominate `block`, the one that comes first.
fn nearest(post: &Dominators, block: u32, ends: &[(u32, u32)]) -> Option<(u32, u32)> {
    let mut best: Option<(u32, u32)> = None;
    for &end in ends.iter().filter(|e| e.0 != block && post.dominates(e.0, block)) {
        if best.is_none_or(|b| b.0 != end.0 && post.dominates(b.0, end.0)) {
            best = Some(end);
        }
    }
    best
}

/// Whether only straight-line code leads from one block to another.
fn straight(blocks: &Blocks, from: u32, to: u32, work: &mut Work) -> Result<bool, TooLarge> {
    let mut at = from;
    while at != to {
        work.take(1)?;
        match blocks.graph.successors(at) {
            [next, rest @ ..] if rest.iter().all(|r| r == next) => at = *next,
            _ => return Ok(false),
        }
        if at == from {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A budget.
struct Work(usize);

impl Work {
    fn take(&mut self, amount: usize) -> Result<(), TooLarge> {
        self.0 = self.0.checked_sub(amount).ok_or(TooLarge)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
