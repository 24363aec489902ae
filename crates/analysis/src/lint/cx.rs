//! What a rule works with.

use std::borrow::Cow;
use std::collections::HashSet;

use lanescope_ir::finding::Evidence;
use lanescope_ir::op::control::ControlOp;
use lanescope_ir::op::memory::{MemoryOp, Space};
use lanescope_ir::{Finding, Kernel, LaneMask, Op, Severity};

use super::control::Control;
use super::syncs::{Sync, syncs};
use super::{Hazard, Input};
use crate::regions::Structure;
use crate::uniformity::{Branch, Facts, Kind, Level, Operand, Origin, Scope, Uniformity, Verdict, What};
use crate::words;

/// Steps of a branch's own witness that a finding repeats.
const STEPS: usize = 8;
/// Findings of one rule in one kernel; the last says how many more there are.
const LIMIT: usize = 8;
/// Blocks looked at to see that a side only leaves.
const SIDE: usize = 8;

/// One step of a chain that proves a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The instruction.
    pub inst: u32,
    /// What happens there.
    pub note: String,
}

/// A branch because of which lanes may be missing at a place.
#[derive(Clone, Debug)]
pub(super) struct Parting<'a> {
    /// Its verdict.
    pub(super) branch: Cow<'a, Branch>,
    /// The block on the side that leads to the place.
    pub(super) side: u32,
    /// Lanes of the other side do nothing more than leave.
    pub(super) leaves: bool,
}

impl Parting<'_> {
    /// Whether it parts lanes of one warp.
    pub(super) fn splits_warps(&self) -> bool {
        let agree = match &self.branch.verdict {
            Verdict::Never => true,
            // Only the warps that split are listed.
            Verdict::Lanes(lanes) => lanes.is_empty(),
            _ => false,
        };
        self.branch.level > Level::Warp && !agree
    }
    /// Whether only the warp splits into which a bound falls.
    pub(super) fn is_boundary(&self) -> bool {
        matches!(self.branch.verdict, Verdict::Boundary(Scope::Grid | Scope::Block))
    }
}

/// What a rule looks at and where it reports.
pub(super) struct Cx<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) structure: &'a Structure,
    pub(super) uniformity: &'a Uniformity,
    pub(super) facts: &'a Facts,
    pub(super) control: Control,
    /// Operations across lanes, in code order.
    pub(super) syncs: Vec<Sync>,
    pub(super) found: Vec<Hazard>,
    /// Instructions that a rule has spoken about.
    spoken: HashSet<u32>,
}

impl<'a> Cx<'a> {
    pub(super) fn new(input: &Input<'a>) -> Cx<'a> {
        let Input { kernel, structure, uniformity, facts } = *input;
        Cx {
            kernel,
            structure,
            uniformity,
            facts,
            control: Control::new(kernel, &structure.cfg),
            syncs: syncs(kernel, structure, uniformity),
            found: Vec::new(),
            spoken: HashSet::new(),
        }
    }

    /// Whether the code is machine code.
    pub(super) fn is_sass(&self) -> bool {
        self.kernel.arch.starts_with("sm_")
    }

    /// Whether lanes get to an instruction at all, other than on the way to a trap.
    pub(super) fn alive(&self, inst: u32) -> bool {
        self.uniformity.reachable(inst) && self.structure.cfg.block(inst).is_some_and(|b| !self.control.is_doomed(b))
    }

    /// The branches and exits because of which some threads of a block may not come to `inst` with the others: each
    /// with a reason that can be shown. Branches that guard traps and those of which nothing is known are left out.
    pub(super) fn partings(&self, inst: u32) -> Vec<Parting<'a>> {
        let cfg = &self.structure.cfg;
        let Some(here) = cfg.block(inst) else { return Vec::new() };
        let mut list: Vec<Parting<'a>> = Vec::new();
        for (block, side) in self.control.deciders(here) {
            let Some(last) = cfg.blocks.get(block as usize).map(|b| b.last()) else { continue };
            let uniformity: &'a Uniformity = self.uniformity;
            let Some(branch) = uniformity.branch(last) else { continue };
            let known = match branch.verdict {
                // That lanes came by different ways does not prove that they hold different values.
                Verdict::Unreachable | Verdict::Unknown | Verdict::Shape | Verdict::Paths => false,
                Verdict::Data => self.is_data(branch),
                _ => true,
            };
            if !known || branch.guards_trap || branch.level <= Level::Block {
                continue;
            }
            if branch.whole_group && branch.level > Level::Warp {
                continue;
            }
            // A branch that both sides of which lead here in different ways decides only which comes first.
            if list.iter().any(|p| p.branch.inst == branch.inst) {
                continue;
            }
            let others: Vec<u32> = cfg.graph.successors(block).iter().copied().filter(|&s| s != side).collect();
            let leaves = others.iter().all(|&s| self.only_leaves(s, here));
            list.push(Parting { branch: Cow::Borrowed(branch), side, leaves });
        }
        list
    }

    /// The guard of an instruction as a branch around it, if lanes may disagree about it.
    pub(super) fn guard(&self, inst: u32) -> Option<Parting<'a>> {
        let i = self.kernel.instructions.get(inst as usize)?;
        let operand = Operand::Pred(i.guard.pred?);
        let answer = self.uniformity.operand(inst, operand)?;
        let witness = self.uniformity.witness(inst, operand);
        let verdict = match (self.uniformity.holds(inst, operand), witness.origin) {
            (Some(lanes), _) if answer.level > Level::Warp => Verdict::Lanes(lanes),
            (_, Origin::Load { .. } | Origin::Atomic { .. } | Origin::Exchange(_)) => Verdict::Data,
            (_, Origin::Paths { .. }) => Verdict::Paths,
            (_, Origin::Thread(_)) if answer.level == Level::Warp => Verdict::Never,
            _ => return None,
        };
        let branch = Branch {
            inst,
            kind: Kind::Predicated,
            level: answer.level,
            verdict,
            whole_group: false,
            guards_trap: false,
            leaves_loop: None,
            witness,
        };
        (branch.level > Level::Block).then_some(Parting { branch: Cow::Owned(branch), side: u32::MAX, leaves: false })
    }

    /// Whether the data that a branch depends on is data: not a variable that unoptimised code keeps on the stack.
    fn is_data(&self, branch: &Branch) -> bool {
        let Origin::Load { inst, param } = branch.origin() else { return true };
        match self.kernel.instructions.get(inst as usize).map(|i| &i.op) {
            Some(Op::Memory(MemoryOp::Load { space, .. })) => match space {
                Space::Local => false,
                Space::Generic => param.is_some(),
                _ => true,
            },
            _ => true,
        }
    }

    /// Whether lanes that go to block `from` do nothing that others could notice before they leave, and never come to
    /// block `here`.
    fn only_leaves(&self, from: u32, here: u32) -> bool {
        let cfg = &self.structure.cfg;
        let mut seen = Vec::new();
        let mut open = vec![from];
        while let Some(b) = open.pop() {
            if b == cfg.exit() || seen.contains(&b) {
                continue;
            }
            seen.push(b);
            let Some(block) = cfg.blocks.get(b as usize).filter(|_| b != here && seen.len() <= SIDE) else {
                return false;
            };
            let quiet = block.instructions().all(|i| {
                self.kernel.instructions.get(i as usize).is_some_and(|i| {
                    matches!(
                        i.op,
                        Op::Nop
                            | Op::Lane(_)
                            | Op::Control(
                                ControlOp::Branch { .. }
                                    | ControlOp::Exit { .. }
                                    | ControlOp::Sync { .. }
                                    | ControlOp::SyncSet { .. }
                            )
                    )
                })
            });
            if !quiet {
                return false;
            }
            open.extend(cfg.graph.successors(b));
        }
        true
    }

    /// Lanes that exist, for warps like `warp`.
    pub(super) fn existing(&self, warp: Option<u32>) -> LaneMask {
        let all = self.uniformity.existing();
        let of = |w: Option<u32>| all.iter().find(|e| e.0 == w).map(|e| e.1);
        of(warp).or_else(|| of(None)).unwrap_or(LaneMask::first(32))
    }

    /// The branch's decision in words, without its place: `lanes 16-31 go the other way`.
    pub(super) fn split(&self, p: &Parting<'_>) -> String {
        match &p.branch.verdict {
            Verdict::Lanes(lanes) => match lanes.first() {
                Some(l) => {
                    let other = self.other_lanes(p, l.taken, l.there);
                    let of = l.warp.map_or(String::new(), |w| format!(" of warp {w}"));
                    format!("{} {other}{of} {}", plural(other), if p.leaves { "leave" } else { "go the other way" })
                }
                None => "whole warps go different ways".into(),
            },
            Verdict::Boundary(_) => "the warp that the bound falls into splits".into(),
            Verdict::Data => format!("lanes part by data{}", self.source(&p.branch)),
            Verdict::Paths => "lanes that came by different ways hold different values".into(),
            _ => "threads part".into(),
        }
    }

    /// The lanes that do not go to the parting's side.
    fn other_lanes(&self, p: &Parting<'_>, taken: LaneMask, there: LaneMask) -> LaneMask {
        let cfg = &self.structure.cfg;
        let target = match self.kernel.instructions.get(p.branch.inst as usize).map(|i| &i.op) {
            Some(Op::Control(ControlOp::Branch { target, .. })) => cfg.block(target.0),
            _ => None,
        };
        if target == Some(p.side) { there - taken } else { taken }
    }

    /// ` loaded at kernel.cu:5 through argument 1`, or nothing.
    pub(super) fn source(&self, branch: &Branch) -> String {
        source(self.kernel, branch)
    }

    /// The chain behind a branch: the decision, then back to where the difference comes from.
    pub(super) fn because(&self, p: &Parting<'_>) -> Vec<Step> {
        let mut steps = vec![Step { inst: p.branch.inst, note: format!("here {}", self.split(p)) }];
        steps.extend(chain(self.kernel, &p.branch).into_iter().skip(1).take(STEPS));
        steps
    }

    /// Whether a rule has spoken about an instruction already.
    pub(super) fn spoken(&self, inst: u32) -> bool {
        self.spoken.contains(&inst)
    }

    /// Nobody else needs to speak about these.
    pub(super) fn speak(&mut self, insts: impl IntoIterator<Item = u32>) {
        self.spoken.extend(insts);
    }

    /// Reports a finding.
    pub(super) fn report(
        &mut self,
        rule: &'static str,
        severity: Severity,
        inst: u32,
        message: String,
        witness: Vec<Step>,
        evidence: Vec<(&'static str, Evidence)>,
    ) {
        debug_assert!(!witness.is_empty(), "no finding without a witness");
        let before = self.found.iter().filter(|h| h.finding.rule == rule).count();
        if before > LIMIT {
            return;
        }
        let message =
            if before == LIMIT { format!("{message} This kernel has more of the kind, not listed.") } else { message };
        self.found.push(Hazard { finding: Finding { rule, severity, inst: Some(inst), message, evidence }, witness });
    }

    /// `kernel.cu:9 (pc 0x02c0)`
    pub(super) fn place(&self, inst: u32) -> String {
        words::place(self.kernel, inst)
    }

    /// The instruction's text in quotes.
    pub(super) fn text(&self, inst: u32) -> String {
        format!("`{}`", words::text(self.kernel, inst))
    }
}

/// `lane` or `lanes`.
pub(super) fn plural(lanes: LaneMask) -> &'static str {
    if lanes.count() == 1 { "lane" } else { "lanes" }
}

/// `argument 2 (rowptr)`
pub fn argument(kernel: &Kernel, param: u32) -> String {
    let name = kernel.params.iter().find(|p| p.ordinal == param).and_then(|p| p.name.as_deref());
    // PTX calls parameters `kernel_param_3`, which says no more than the number.
    match name.filter(|n| !n.ends_with(&format!("_param_{param}"))) {
        Some(name) => format!("argument {param} ({name})"),
        None => format!("argument {param}"),
    }
}

/// ` through argument 2 (rowptr)`
fn through(kernel: &Kernel, param: u32) -> String {
    format!(" through {}", argument(kernel, param))
}

/// Where the data comes from that a branch depends on: ` loaded at kernel.cu:5 through argument 1`, or nothing.
pub fn source(kernel: &Kernel, branch: &Branch) -> String {
    let through = |param: Option<u32>| param.map_or(String::new(), |p| through(kernel, p));
    match branch.origin() {
        Origin::Load { inst, param } => format!(" loaded at {}{}", words::place(kernel, inst), through(param)),
        Origin::Atomic { inst, param } => {
            format!(" that the atomic at {} returns{}", words::place(kernel, inst), through(param))
        }
        Origin::Exchange(inst) => format!(" from other lanes at {}", words::place(kernel, inst)),
        _ => String::new(),
    }
}

/// A branch's witness in words.
pub fn chain(kernel: &Kernel, branch: &Branch) -> Vec<Step> {
    let origin = branch.origin();
    let mut steps: Vec<Step> = Vec::new();
    for s in &branch.witness.steps {
        let note = match (s.what, origin) {
            (What::Decides, _) => "decides".to_owned(),
            (What::Join, _) => "values of different ways meet".to_owned(),
            (_, Origin::Thread(inst)) if inst == s.inst => "reads the thread's index".to_owned(),
            (_, Origin::Load { inst, param }) if inst == s.inst => {
                format!("loads it{}", param.map_or(String::new(), |p| through(kernel, p)))
            }
            (_, Origin::Atomic { inst, param }) if inst == s.inst => {
                format!("an atomic returns it{}", param.map_or(String::new(), |p| through(kernel, p)))
            }
            (_, Origin::Exchange(inst)) if inst == s.inst => "another lane gives it".to_owned(),
            _ => String::new(),
        };
        steps.push(Step { inst: s.inst, note });
    }
    let end = match origin {
        Origin::Thread(inst) => Some((inst, "reads the thread's index".to_owned())),
        Origin::Load { inst, param } => {
            Some((inst, format!("loads it{}", param.map_or(String::new(), |p| through(kernel, p)))))
        }
        Origin::Atomic { inst, .. } => Some((inst, "an atomic returns it".to_owned())),
        Origin::Exchange(inst) => Some((inst, "another lane gives it".to_owned())),
        Origin::Paths { branch, .. } => Some((branch, "lanes took different ways from here".to_owned())),
        Origin::Apart { branch, .. } => {
            Some((branch, "lanes come at different times because of this branch".to_owned()))
        }
        Origin::Call(inst) => Some((inst, "calls a function whose result is not known".to_owned())),
        Origin::Unsupported(inst) => Some((inst, "is not understood".to_owned())),
        Origin::Clock(inst) => Some((inst, "reads a clock".to_owned())),
        _ => None,
    };
    if let Some((inst, note)) = end
        && steps.last().is_none_or(|s| s.inst != inst)
    {
        steps.push(Step { inst, note });
    }
    steps
}
