//! Which values are the same in all lanes of a warp, and which branches can therefore never split it.

mod facts;
mod verdict;

pub use facts::Facts;
pub use verdict::{
    Answer, Branch, Kind, Level, LoopTrips, Operand, Origin, Scope, Step, Verdict, WarpLanes, What, Witness,
};

use lanescope_ir::{Kernel, LaneMask};

use crate::regions::Structure;

/// The analysis of one kernel under some facts.
#[derive(Clone, Debug, Default)]
pub struct Uniformity {
    /// A verdict for each branch, predicated EXIT and indirect branch, in code order. Branches without a condition are
    /// not in it.
    pub branches: Vec<Branch>,
    /// A verdict for each loop, in the order of `Structure::loops.list`.
    pub loops: Vec<LoopTrips>,
}

impl Uniformity {
    /// Analyses `kernel`.
    pub fn new(_kernel: &Kernel, _structure: &Structure, _facts: &Facts) -> Uniformity {
        Uniformity::default()
    }

    /// The verdict about an instruction, if it decides anything.
    pub fn branch(&self, inst: u32) -> Option<&Branch> {
        let at = self.branches.binary_search_by_key(&inst, |b| b.inst).ok()?;
        self.branches.get(at)
    }

    /// Whether lanes can get to an instruction at all.
    pub fn reachable(&self, _inst: u32) -> bool {
        true
    }

    /// The branch (or other instruction) because of which lanes may be missing at `inst`, or may execute it at another
    /// time than others: it is in divergent code. `None`: all lanes of the warp that have not left come together.
    pub fn apart(&self, _inst: u32) -> Option<u32> {
        None
    }

    /// The predicated EXIT (or branch to an exit) after which some lanes of a warp may be gone at `inst` while others
    /// are not.
    pub fn after_exit(&self, _inst: u32) -> Option<u32> {
        None
    }

    /// The lanes that can be at an instruction, for each kind of warp, where that is known: a lane that is not in `there`
    /// never executes it (`taken` is the same). Empty: nothing is known, or no lane gets there.
    pub fn lanes(&self, _inst: u32) -> Vec<WarpLanes> {
        Vec::new()
    }

    /// What an operand of an instruction holds when it is read. `None` if the instruction does not read it.
    pub fn operand(&self, _inst: u32, _operand: Operand) -> Option<Answer> {
        None
    }

    /// What a predicate that an instruction reads selects, as exact lanes of each warp, if that is known.
    pub fn holds(&self, _inst: u32, _operand: Operand) -> Option<Vec<WarpLanes>> {
        None
    }

    /// Why an operand is as it is.
    pub fn witness(&self, _inst: u32, _operand: Operand) -> Witness {
        Witness { steps: Vec::new(), origin: Origin::Undefined }
    }

    /// All lanes of a mask (a set of existing lanes) of the warps of a block of this shape.
    pub fn existing(&self) -> Vec<(Option<u32>, LaneMask)> {
        vec![(None, LaneMask::first(32))]
    }
}
