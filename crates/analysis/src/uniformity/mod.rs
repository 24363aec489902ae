//! Which values are the same in all lanes of a warp, and which branches can therefore never split it.
//!
//! **Promise.** A level says what holds for the lanes that execute an instruction together, in one issue. A branch whose
//! verdict is [`Verdict::Never`] never splits a group; [`Verdict::Lanes`] names exactly the lanes that can go either way.
//! It holds for machine code on Volta and later and for PTX as the engine runs them, for every schedule of the warps; see
//! docs/uniformity.md for what it rests on.
//!
//! [`net`] says how values flow between blocks, [`apart`] where lanes that a branch parted are apart and where they meet,
//! [`value`] and [`eval`] what is known of a number, [`step`] what an instruction does, [`solve`] runs it all to a
//! fixpoint, [`judge`] and [`witness`] read it.

mod apart;
mod eval;
mod facts;
mod judge;
mod launch;
mod net;
mod scalar;
mod solve;
mod step;
#[cfg(test)]
mod tests;
mod value;
mod verdict;
mod witness;

pub use facts::Facts;
pub use scalar::evaluate;
pub use verdict::{
    Answer, Branch, Kind, Level, LoopTrips, Operand, Origin, Scope, Step, Verdict, WarpLanes, What, Witness,
};

use lanescope_ir::{Kernel, LaneMask, Op};

use self::solve::Solver;
use self::value::{Set, Tab, Value, members};
use crate::regions::Structure;

/// The analysis of one kernel under some facts.
pub struct Uniformity {
    /// A verdict for each branch, predicated EXIT and indirect branch, in code order. Branches without a condition are
    /// not in it.
    pub branches: Vec<Branch>,
    /// A verdict for each loop, in the order of `Structure::loops.list`.
    pub loops: Vec<LoopTrips>,
    solver: Solver,
    /// For each block, an exit after which it may run without some lanes.
    gone: Vec<Option<u32>>,
}

impl std::fmt::Debug for Uniformity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Uniformity")
            .field("branches", &self.branches)
            .field("loops", &self.loops)
            .finish_non_exhaustive()
    }
}

impl Uniformity {
    /// Analyses `kernel`.
    pub fn new(kernel: &Kernel, structure: &Structure, facts: &Facts) -> Uniformity {
        let mut solver = Solver::new(kernel, structure, facts, None);
        // What is never written is the same for all warps; that takes a second look.
        if let Some(written) = written(&solver) {
            solver = Solver::new(kernel, structure, facts, Some(written));
        }
        let branches = judge::branches(&mut solver);
        let loops = judge::loops(structure, &branches);
        let gone = gone(&solver);
        Uniformity { branches, loops, solver, gone }
    }

    /// The verdict about an instruction, if it decides anything.
    pub fn branch(&self, inst: u32) -> Option<&Branch> {
        let at = self.branches.binary_search_by_key(&inst, |b| b.inst).ok()?;
        self.branches.get(at)
    }

    fn block(&self, inst: u32) -> usize {
        self.solver.s.cfg.block(inst).map_or(usize::MAX, |b| b as usize)
    }

    /// Nothing could be found out: the code jumps to places that are not known, or a limit was reached.
    pub fn is_lost(&self) -> bool {
        self.solver.lost
    }

    /// Whether lanes can get to an instruction at all.
    pub fn reachable(&self, inst: u32) -> bool {
        self.solver.lost || self.solver.reached.get(self.block(inst)) == Some(&true)
    }

    /// The branch (or other instruction) because of which lanes may be missing at `inst`, or may execute it at another
    /// time than others: it is in divergent code. `None`: all lanes of the warp that have not left come together.
    pub fn apart(&self, inst: u32) -> Option<u32> {
        if self.solver.lost {
            return Some(inst);
        }
        self.solver.apart.apart.get(self.block(inst)).copied().flatten()
    }

    /// The predicated EXIT (or branch to an exit) after which some lanes of a warp may be gone at `inst` while others
    /// are not.
    pub fn after_exit(&self, inst: u32) -> Option<u32> {
        self.gone.get(self.block(inst)).copied().flatten()
    }

    /// The lanes that can be at an instruction, for each warp of the block, or for every warp if the block's shape is not
    /// known: a lane that is not in `there` never executes it (`taken` is the same). Empty: no lane gets there.
    pub fn lanes(&self, inst: u32) -> Vec<WarpLanes> {
        if self.solver.lost {
            let all = &self.solver.d.existing;
            return judge::warps(self.solver.d.block_known, all, all);
        }
        match self.solver.sets.get(self.block(inst)) {
            Some(set) if self.reachable(inst) => judge::warps(self.solver.d.block_known, set, set),
            _ => Vec::new(),
        }
    }

    fn number(&self, operand: Operand) -> u32 {
        match operand {
            Operand::Slot(s) => s.0.into(),
            Operand::Pred(p) => self.solver.net.slots + u32::from(p.0),
        }
    }

    fn value(&self, inst: u32, operand: Operand) -> Option<(Value, &Set)> {
        let r = self.number(operand);
        let list = self.solver.record.as_ref()?.get(inst as usize)?;
        let value = list.iter().find(|v| v.0 == r)?.1.value;
        Some((value, self.solver.sets.get(self.block(inst))?))
    }

    /// What an operand of an instruction holds when it is read. `None` if the instruction does not read it, or is never
    /// reached.
    pub fn operand(&self, inst: u32, operand: Operand) -> Option<Answer> {
        let (value, set) = self.value(inst, operand)?;
        let d = &self.solver.d;
        let mut answer = Answer {
            level: d.level(value, set).map_or(Level::Divergent, |l| l.max(d.base_level(0))),
            constant: None,
            lanes: Vec::new(),
            exact: false,
            params: witness::parameters(&self.solver, value),
        };
        if let Value::Words(lin, tab) = value {
            answer.exact = lin == 0;
            if let Tab::Full(_) = tab {
                answer.level = answer.level.min(Level::Lanes);
                let row = |w: usize| std::array::from_fn(|l| d.at(tab, w * 32 + l));
                answer.lanes = (0..set.len()).map(|w| (d.block_known.then_some(w as u32), row(w))).collect();
            }
            if lin == 0 {
                let mut values = members(set).map(|i| d.at(tab, i));
                let first = values.next();
                answer.constant = first.filter(|&x| values.all(|y| y == x));
            }
        }
        if let Value::Mono(_) = value {
            answer.level = Level::Lanes;
        }
        Some(answer)
    }

    /// For which lanes a predicate that an instruction reads is true, as exact lanes of each warp, if that is known.
    pub fn holds(&self, inst: u32, operand: Operand) -> Option<Vec<WarpLanes>> {
        let (value, set) = self.value(inst, operand)?;
        let holds = self.solver.d.holds(value, set)?;
        Some(judge::warps(self.solver.d.block_known, &holds, set))
    }

    /// Why an operand is as it is.
    pub fn witness(&self, inst: u32, operand: Operand) -> Witness {
        witness::operand(&self.solver, inst, self.number(operand))
    }

    /// The pointer argument (ordinal of the parameter) that a memory access goes through, if it can be told.
    pub fn accessed(&self, inst: u32) -> Option<u32> {
        witness::param(&self.solver, inst)
    }

    /// The lanes that exist, for each warp of the block; for every warp if the block's shape is not known.
    pub fn existing(&self) -> Vec<(Option<u32>, LaneMask)> {
        let d = &self.solver.d;
        d.existing.iter().enumerate().map(|(w, &m)| (d.block_known.then_some(w as u32), LaneMask(m.into()))).collect()
    }
}

/// The pointer arguments through which the kernel writes global memory, if that is known of all its writes. `None` also
/// if it loads nothing that this could help with.
fn written(solver: &Solver) -> Option<Vec<u32>> {
    use lanescope_ir::op::memory::{MemoryOp, Space};
    if solver.lost {
        return None;
    }
    let mut list = Vec::new();
    let mut helps = false;
    for (at, inst) in solver.kernel.instructions.iter().enumerate() {
        let at = at as u32;
        match &inst.op {
            Op::Memory(
                MemoryOp::Store { space: Space::Global | Space::Generic, .. }
                | MemoryOp::Atomic { space: Space::Global | Space::Generic, .. },
            ) => {
                list.push(witness::param(solver, at)?);
            }
            Op::Memory(MemoryOp::Load { space: Space::Global | Space::Generic, addr, .. }) => {
                let reads = solver.record.as_ref()?.get(at as usize)?;
                let set = solver.sets.get(solver.s.cfg.block(at)? as usize)?;
                let base = addr.base.read().map(|s| u32::from(s.0));
                helps |= reads.iter().any(|(r, v)| Some(*r) == base && solver.d.level(v.value, set).is_some());
            }
            Op::Memory(
                MemoryOp::Load { .. } | MemoryOp::Store { .. } | MemoryOp::Atomic { .. } | MemoryOp::QuerySpace { .. },
            ) => {}
            Op::Memory(_) | Op::Unsupported(_) => return None,
            Op::Control(
                lanescope_ir::op::control::ControlOp::CallExternal { .. }
                | lanescope_ir::op::control::ControlOp::CallIndirect { .. },
            ) => return None,
            _ => {}
        }
    }
    list.sort_unstable();
    list.dedup();
    helps.then_some(list)
}

/// Blocks that may run without lanes which have left.
fn gone(solver: &Solver) -> Vec<Option<u32>> {
    let s = &solver.s;
    let mut gone = vec![None; s.cfg.blocks.len()];
    let mark = |from: u32, why: u32, gone: &mut Vec<Option<u32>>| {
        let mut stack: Vec<u32> = solver.net.affects.get(from as usize).cloned().unwrap_or_default();
        while let Some(b) = stack.pop() {
            let Some(g) = gone.get_mut(b as usize) else { continue };
            if g.is_none() && solver.reached.get(b as usize) == Some(&true) {
                *g = Some(why);
                stack.extend(&solver.net.affects[b as usize]);
            }
        }
    };
    for &exit in &solver.exits {
        if let Some(b) = s.cfg.block(exit) {
            mark(b, exit, &mut gone);
        }
    }
    for split in &solver.apart.splits {
        let leaves = |b: &u32| {
            let last = s.cfg.blocks.get(*b as usize).map(|b| b.last() as usize);
            let op = last.and_then(|l| solver.kernel.instructions.get(l)).map(|i| &i.op);
            solver.reached.get(*b as usize) == Some(&true)
                && matches!(op, Some(Op::Control(lanescope_ir::op::control::ControlOp::Exit { .. })))
        };
        if let (true, Some(b)) = (split.region.iter().any(leaves), s.cfg.block(split.inst)) {
            mark(b, split.inst, &mut gone);
        }
    }
    gone
}
