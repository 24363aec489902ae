//! The control flow of one code section, free of encodings and of meanings: enough to ask where lanes part and rejoin,
//! without linking or lowering a kernel.
//!
//! Front ends fill a [`FlowCode`] from instructions of any width; the survey in `analysis` reads it. Values are
//! numbered resources (registers and predicates alike) that an instruction reads and writes.

/// A convergence barrier register, `B0` to `B15`.
pub type Barrier = u8;

/// A token kind of the stack machine before Volta.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Token {
    /// `SSY`, taken by `SYNC`.
    Sync,
    /// `PBK`, taken by `BRK`.
    Break,
    /// `PCNT`, taken by `CONT`.
    Continue,
}

/// The class of a convergence region, chosen by the compiler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RegionClass {
    /// No modifier: arrival is not promised. The only one before sm_100.
    #[default]
    Plain,
    /// `.RECONVERGENT`: every lane that does not exit arrives.
    Reconvergent,
    /// `.RELIABLE`: lanes may leave, but only by a `BREAK`.
    Reliable,
}

/// What an instruction does to control flow. Targets are instruction indices; `None` is outside the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Goes on at the next instruction; calls do too, when they return.
    Next,
    /// Goes to the target: `BRA`, `JMP`.
    Branch(Option<u32>),
    /// Goes to the target or not, as one group: `BRA.U`.
    GroupBranch(Option<u32>),
    /// Goes to the target if the group is, or is not, converged: `BRA.DIV`, `BRA.CONV`.
    Test(Option<u32>),
    /// Each lane to one of a list of targets, the given range of [`FlowCode::targets`]; an empty one is not known.
    Indirect(u32, u32),
    /// Leaves the kernel or the function: `EXIT`, `RET`, `KILL`.
    Leave,
    /// `BSSY`: the barrier takes the lanes of the group.
    Open(Barrier, RegionClass),
    /// `BSYNC`: lanes wait for each other.
    Wait(Barrier),
    /// `BREAK`: lanes leave the barrier.
    Break(Barrier),
    /// `BMOV` that clears or sets the barrier.
    Overwrite(Barrier),
    /// `SSY`, `PBK`, `PCNT`: a token with the place where its lanes go on.
    Push(Token, Option<u32>),
    /// `SYNC`, `BRK`, `CONT`: lanes wait for the nearest token of their kind, then go on at its place.
    Pop(Token),
}

/// How a result differs between the lanes of a warp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// As the sources do.
    #[default]
    Follows,
    /// In any case: thread indices, atomics, local memory.
    Varies,
    /// Not at all: votes, reductions, the uniform datapath.
    Same,
}

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowInst {
    /// Byte offset in the section.
    pub pc: u32,
    /// Where it goes.
    pub flow: Flow,
    /// Whether each lane decides for itself if it takes part: a guard or a second predicate that is not constant.
    pub conditional: bool,
    /// Whether no lane takes part (`@!PT`).
    pub never: bool,
    /// How its results differ between lanes.
    pub spread: Spread,
    values: u32,
    reads: u8,
    writes: u8,
}

impl FlowInst {
    /// An instruction that reads and writes nothing.
    pub fn new(pc: u32, flow: Flow) -> FlowInst {
        let spread = Spread::Follows;
        FlowInst { pc, flow, conditional: false, never: false, spread, values: 0, reads: 0, writes: 0 }
    }
}

/// Most resources that one instruction may name on either side.
const MAX_NAMED: usize = u8::MAX as usize;

/// The instructions of a section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowCode {
    /// In code order.
    pub insts: Vec<FlowInst>,
    /// Targets of indirect branches.
    pub targets: Vec<u32>,
    /// First instructions of the functions in the section.
    pub entries: Vec<u32>,
    /// Whether reads and writes are known. Without them nothing can be said about values.
    pub has_values: bool,
    values: Vec<u16>,
}

impl FlowCode {
    /// No instructions yet.
    pub fn new(has_values: bool) -> FlowCode {
        FlowCode { has_values, ..FlowCode::default() }
    }

    /// Appends an instruction with what it reads (its guard included) and writes.
    pub fn push(&mut self, mut inst: FlowInst, reads: &[u16], writes: &[u16]) {
        let (reads, writes) = (&reads[..reads.len().min(MAX_NAMED)], &writes[..writes.len().min(MAX_NAMED)]);
        inst.values = self.values.len() as u32;
        inst.reads = reads.len() as u8;
        inst.writes = writes.len() as u8;
        self.values.extend_from_slice(reads);
        self.values.extend_from_slice(writes);
        self.insts.push(inst);
    }

    /// Resources that an instruction reads.
    pub fn reads(&self, inst: &FlowInst) -> &[u16] {
        let at = inst.values as usize;
        self.values.get(at..at + usize::from(inst.reads)).unwrap_or(&[])
    }

    /// Resources that an instruction writes.
    pub fn writes(&self, inst: &FlowInst) -> &[u16] {
        let at = inst.values as usize + usize::from(inst.reads);
        self.values.get(at..at + usize::from(inst.writes)).unwrap_or(&[])
    }

    /// The targets of an indirect branch.
    pub fn targets_of(&self, first: u32, count: u32) -> &[u32] {
        self.targets.get(first as usize..first.saturating_add(count) as usize).unwrap_or(&[])
    }

    /// The instruction at a byte offset.
    pub fn at(&self, pc: u32) -> Option<u32> {
        self.insts.binary_search_by_key(&pc, |i| i.pc).ok().map(|i| i as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_belong_to_their_instruction() {
        let mut code = FlowCode::default();
        code.push(FlowInst::new(0, Flow::Next), &[1, 2], &[3]);
        code.push(FlowInst::new(16, Flow::Leave), &[], &[]);
        code.push(FlowInst::new(32, Flow::Next), &[4], &[5, 6]);
        let (first, last) = (code.insts[0], code.insts[2]);
        assert_eq!((code.reads(&first), code.writes(&first)), (&[1, 2][..], &[3][..]));
        assert_eq!((code.reads(&last), code.writes(&last)), (&[4][..], &[5, 6][..]));
        assert_eq!((code.at(32), code.at(8)), (Some(2), None));
        assert!(code.targets_of(u32::MAX, 7).is_empty());
    }
}
