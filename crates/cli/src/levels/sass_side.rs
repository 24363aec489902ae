//! What machine code made of a PTX branch.
//!
//! The line table for PTX says which instructions came from the branch and from its condition. Predicates that the
//! condition writes are followed along the control flow, to where nothing else can have overwritten them, and through
//! instructions that combine predicates.

use std::collections::{BTreeSet, HashMap};

use lanescope_analysis::Cfg;
use lanescope_ir::op::LaneFn;
use lanescope_ir::op::control::ControlOp;
use lanescope_ir::op::effects::Access;
use lanescope_ir::{BranchKind, Instruction as Inst, Kernel, Op, Pred, PredSrc, Profile};
use lanescope_report::levels::{Fate, Instruction, Outcome, Side};
use lanescope_sass::container::{LineKind, Module};

use super::LevelsError;
use super::ptx_side::{PtxBranch, Readers};
use crate::run::Ran;

/// Instructions that are looked at for one predicate, at most; a kernel of that size is not read to its end.
const BUDGET: usize = 4_000_000;

/// Whether an instruction is a branch in the sense of a profile.
pub(super) fn is_branch(inst: &Inst) -> bool {
    matches!(
        inst.op,
        Op::Control(
            ControlOp::Branch { .. }
                | ControlOp::BranchDivergent { .. }
                | ControlOp::BranchConverged { .. }
                | ControlOp::BranchIndirect { .. }
        )
    )
}

fn is_table(inst: &Inst) -> bool {
    matches!(inst.op, Op::Control(ControlOp::BranchIndirect { .. }))
}

fn is_exit(inst: &Inst) -> bool {
    matches!(inst.op, Op::Control(ControlOp::Exit { .. }))
}

/// Reads one architecture's run.
pub(super) struct Reader<'r> {
    kernel: &'r Kernel,
    /// Its counters, if it was run.
    ran: Option<&'r Ran>,
    cfg: Cfg,
    /// For each instruction, the line of the PTX text.
    lines: Vec<Option<u32>>,
    /// Predicates that each instruction writes.
    writes: Vec<Vec<Pred>>,
    /// Predicates that each instruction reads, its guard aside.
    reads: Vec<Vec<Pred>>,
}

/// Where a condition ends up.
#[derive(Default)]
struct Uses {
    branches: BTreeSet<u32>,
    exits: BTreeSet<u32>,
    guarded: BTreeSet<u32>,
    selects: BTreeSet<u32>,
    merged: bool,
}

/// What machine code has for a branch, without those that other branches account for.
pub(super) struct Ends {
    pub(super) branches: Vec<u32>,
    pub(super) exits: Vec<u32>,
    pub(super) guarded: BTreeSet<u32>,
    pub(super) selects: BTreeSet<u32>,
    pub(super) merged: bool,
}

impl<'r> Reader<'r> {
    pub(super) fn new(ran: &'r Ran, cubin: &[u8], ptx: &[u8]) -> Result<Reader<'r>, LevelsError> {
        Ok(Reader { ran: Some(ran), ..Reader::of_code(&ran.kernel, cubin, ptx)? })
    }

    /// The same without a run.
    pub(super) fn of_code(kernel: &'r Kernel, cubin: &[u8], ptx: &[u8]) -> Result<Reader<'r>, LevelsError> {
        let wrong = |why: String| LevelsError::Lines { arch: kernel.arch.clone(), why };
        let module = Module::parse(cubin).map_err(|e| wrong(e.to_string()))?;
        let table = module.lines(LineKind::Ptx).map_err(|e| wrong(e.to_string()))?;
        if table.is_empty() {
            return Err(wrong("it has none for PTX; compile with line information".into()));
        }
        let mut lines = vec![None; kernel.instructions.len()];
        for function in &kernel.functions {
            let Some(section) = module.function(&function.name).map(|f| f.section) else { continue };
            let body = lines.iter_mut().zip(&kernel.instructions).skip(function.first.index());
            for (line, inst) in body.take(function.len as usize) {
                *line = table.frames(section, inst.pc.into()).next().map(|f| f.line);
            }
        }
        same_text(&module, ptx, &lines).map_err(wrong)?;
        let mut writes = Vec::with_capacity(lines.len());
        let mut reads = Vec::with_capacity(lines.len());
        for inst in &kernel.instructions {
            let (mut w, mut r) = (Vec::new(), Vec::new());
            let mut bare = inst.clone();
            bare.guard = PredSrc::TRUE;
            bare.for_each_pred(|p, access| match access {
                Access::Read => r.push(p),
                Access::Write => w.push(p),
            });
            writes.push(w);
            reads.push(r);
        }
        Ok(Reader { kernel, ran: None, cfg: Cfg::new(kernel), lines, writes, reads })
    }

    /// Where a branch's condition ends up. `all` are the branches of the same PTX, `readers` the lines of PTX
    /// instructions that read predicates themselves.
    pub(super) fn ends(&self, branch: &PtxBranch, all: &[PtxBranch], readers: &Readers) -> Ends {
        let uses = self.follow(branch, all, readers);
        let owned = |set: &BTreeSet<u32>| -> Vec<u32> {
            let others = |line: u32| line != branch.line && all.iter().any(|b| b.line == line);
            set.iter().copied().filter(|&i| !self.lines[i as usize].is_some_and(others)).collect()
        };
        let (branches, exits) = (owned(&uses.branches), owned(&uses.exits));
        let merged = uses.merged || branches.len() + exits.len() < uses.branches.len() + uses.exits.len();
        Ends { branches, exits, guarded: uses.guarded, selects: uses.selects, merged }
    }

    /// Whether code of the condition is left at all.
    pub(super) fn is_left(&self, branch: &PtxBranch) -> bool {
        self.lines.iter().flatten().any(|l| branch.condition.contains(l))
    }

    /// What became of a branch. `all` are the branches of the same PTX, `readers` the lines of PTX instructions that read
    /// predicates themselves.
    pub(super) fn outcome(&self, branch: &PtxBranch, all: &[PtxBranch], readers: &Readers) -> Outcome {
        let Ends { branches, exits, guarded, selects, merged } = self.ends(branch, all, readers);
        let mut side = Side::default();
        let mut fates = Vec::new();
        let none = Profile::default();
        let profile = self.ran.map_or(&none, Ran::profile);
        let (mut executed, mut divergent) = (0, 0);
        for counts in &profile.branches {
            if branches.contains(&counts.inst) || exits.contains(&counts.inst) {
                side.executed += counts.executed;
                side.divergent += counts.divergent;
            }
            if branches.contains(&counts.inst) && counts.kind != BranchKind::Indirect {
                executed += counts.executed;
                divergent += counts.divergent;
            }
        }
        let tables = branches.iter().filter(|&&i| is_table(&self.kernel.instructions[i as usize])).count();
        if tables > 0 {
            fates.push(Fate::JumpTable);
        }
        if branches.len() > tables {
            fates.push(match (executed, divergent) {
                (0, _) => Fate::UnreachedBranch,
                (_, 0) => Fate::UniformBranch,
                _ => Fate::DivergentBranch,
            });
        }
        if !exits.is_empty() {
            fates.push(Fate::PredicatedExit);
        }
        if !guarded.is_empty() {
            fates.push(Fate::Predicated);
        }
        if !selects.is_empty() {
            fates.push(Fate::Select);
        }
        if fates.is_empty() {
            let left = self.is_left(branch);
            fates.push(if merged {
                Fate::Merged
            } else if left {
                Fate::Arithmetic
            } else {
                Fate::Gone
            });
        }
        let mut instructions = branches;
        instructions.extend(exits);
        side.lanes_lost = self.ran.map_or(0, |r| super::lost(&r.analysis, &instructions));
        let off = |&i: &u32| {
            let c = profile.counts.get(i as usize).copied().unwrap_or_default();
            c.thread_inst_executed.saturating_sub(c.thread_inst_executed_pred_on)
        };
        Outcome {
            arch: self.kernel.arch.clone(),
            fates,
            copies: self.copies(branch, instructions.len()),
            side,
            predicated_off: guarded.iter().map(off).sum(),
            instructions: instructions.iter().map(|&i| self.instruction(i)).collect(),
        }
    }

    fn instruction(&self, at: u32) -> Instruction {
        let kernel = self.kernel;
        Instruction {
            pc: kernel.instructions.get(at as usize).map_or(0, |i| i.pc),
            text: kernel.text.get(at as usize).cloned().unwrap_or_default(),
        }
    }

    /// How often a loop's body is there, or else the branch.
    fn copies(&self, branch: &PtxBranch, branches: usize) -> u64 {
        let Some(body) = &branch.body else { return branches.max(1) as u64 };
        let mut count: HashMap<u32, u64> = HashMap::new();
        for (inst, line) in self.kernel.instructions.iter().zip(&self.lines) {
            let stays = match &inst.op {
                Op::Memory(_) | Op::Warp(_) => true,
                Op::Lane(op) => matches!(op.f, LaneFn::Float(_)),
                _ => false,
            };
            if let Some(line) = line.filter(|l| stays && body.contains(l)) {
                *count.entry(line).or_default() += 1;
            }
        }
        count.into_values().max().unwrap_or(1)
    }

    fn follow(&self, branch: &PtxBranch, all: &[PtxBranch], readers: &Readers) -> Uses {
        let kernel = self.kernel;
        let foreign = |line: u32| {
            !branch.condition.contains(&line)
                && all.iter().any(|b| b.line != branch.line && b.condition.contains(&line))
        };
        let mut uses = Uses::default();
        let mut open: Vec<(u32, Pred)> = Vec::new();
        for (at, line) in (0u32..).zip(&self.lines) {
            let Some(line) = *line else { continue };
            if branch.condition.contains(&line) {
                open.extend(self.writes[at as usize].iter().map(|&p| (at, p)));
            }
            let inst = &kernel.instructions[at as usize];
            // A chain of comparisons that became one jump.
            if is_table(inst) && (line == branch.line || branch.condition.contains(&line)) {
                uses.branches.insert(at);
            }
            if line != branch.line || !lanescope_analysis::cfg::is_conditional(inst) {
                continue;
            }
            if is_branch(inst) {
                uses.branches.insert(at);
            } else if is_exit(inst) {
                uses.exits.insert(at);
            }
        }
        let mut seen: BTreeSet<(u32, Pred)> = open.iter().copied().collect();
        let mut budget = BUDGET;
        while let Some((at, pred)) = open.pop() {
            for user in self.reached(at, pred, &mut budget) {
                let inst = &kernel.instructions[user as usize];
                let line = self.lines[user as usize];
                let guards = inst.guard.pred == Some(pred);
                if is_branch(inst) {
                    uses.branches.insert(user);
                } else if is_exit(inst) {
                    uses.exits.insert(user);
                } else if matches!(inst.op, Op::Control(ControlOp::Call { .. } | ControlOp::CallExternal { .. })) {
                    uses.guarded.insert(user);
                } else if matches!(inst.op, Op::Control(_)) {
                    // Convergence bookkeeping of a branch that is counted itself.
                } else if guards {
                    // What PTX guards itself is no work of this branch.
                    if !line.is_some_and(|l| readers.contains(&l)) {
                        uses.guarded.insert(user);
                    }
                } else if !self.writes[user as usize].is_empty() {
                    if line.is_some_and(foreign) {
                        uses.merged = true;
                        continue;
                    }
                    for &p in &self.writes[user as usize] {
                        if seen.insert((user, p)) {
                            open.push((user, p));
                        }
                    }
                } else if !line.is_some_and(|l| readers.contains(&l)) {
                    uses.selects.insert(user);
                }
            }
        }
        uses
    }

    /// Instructions that read what `at` wrote to `pred`.
    fn reached(&self, at: u32, pred: Pred, budget: &mut usize) -> Vec<u32> {
        let kernel = self.kernel;
        let mut users = Vec::new();
        let mut visited = vec![false; self.cfg.blocks.len()];
        let Some(block) = self.cfg.block(at) else { return users };
        // The block is entered in its middle; it may be entered again from its start.
        let mut open = vec![(block, at + 1)];
        while let Some((block, from)) = open.pop() {
            let Some(b) = self.cfg.blocks.get(block as usize) else { continue };
            let mut alive = true;
            for i in from..b.first + b.len {
                let Some(left) = budget.checked_sub(1) else { return users };
                *budget = left;
                let inst = &kernel.instructions[i as usize];
                if inst.guard.pred == Some(pred) || self.reads[i as usize].contains(&pred) {
                    users.push(i);
                }
                if self.writes[i as usize].contains(&pred) && inst.guard.is_true() {
                    alive = false;
                    break;
                }
            }
            if !alive {
                continue;
            }
            for &next in self.cfg.graph.successors(block) {
                if let Some(seen) = visited.get_mut(next as usize)
                    && !std::mem::replace(seen, true)
                {
                    open.push((next, self.cfg.blocks[next as usize].first));
                }
            }
        }
        users.sort_unstable();
        users.dedup();
        users
    }
}

/// Checks that the PTX is the text that the cubin's line table counts, wherever that keeps it.
fn same_text(module: &Module<'_>, ptx: &[u8], lines: &[Option<u32>]) -> Result<(), String> {
    let Some((_, kept)) = module.section(".nv_debug_ptx_txt") else { return Ok(()) };
    let kept: Vec<&[u8]> = kept.data.split(|&b| b == 0).collect();
    let text: Vec<&[u8]> = ptx.split(|&b| b == b'\n').collect();
    for line in lines.iter().flatten() {
        let at = (*line as usize).wrapping_sub(1);
        let (Some(a), Some(b)) = (kept.get(at), text.get(at)) else { continue };
        let words = |t: &[u8]| String::from_utf8_lossy(t).split_whitespace().collect::<Vec<_>>().join(" ");
        if !a.is_empty() && words(a) != words(b) {
            return Err(format!("line {line} is `{}` there and `{}` here", words(a), words(b)));
        }
    }
    Ok(())
}
