//! A kernel: its instructions and what a launch of it needs to know.

use crate::ids::{InstId, Pred, Slot};
use crate::op::{Op, PredSrc};
use crate::source::SourceMap;

/// One instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    /// Byte offset within its function's section, as nvdisasm and Nsight show it. PTX: a running number.
    pub pc: u32,
    /// Lanes of the group that execute it. Uniform instructions are guarded by uniform predicates.
    pub guard: PredSrc,
    /// Of the uniform datapath: one result for the warp, written to all lanes of its destinations, active or
    /// not. Lane operations and loads then run if the guard holds in an active lane, for the warp as a whole.
    /// Operations across lanes (VOTEU, R2UR, REDUX) still take part with exactly the active lanes whose guard
    /// holds; only their destinations are written in all lanes. A special register gives the lowest such lane's value.
    pub uniform: bool,
    /// What it does.
    pub op: Op,
}

/// A piece of code with its own section. The kernel's own is the first; the others are functions it can call.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Mangled symbol.
    pub name: String,
    /// Code address of its first instruction.
    pub base: u64,
    /// Its instructions: `first .. first + len`.
    pub first: InstId,
    /// Number of instructions.
    pub len: u32,
    /// Subroutines inside the section (division slow paths ...): name, byte offset, size in bytes.
    pub local: Vec<(String, u32, u32)>,
}

/// Possible targets of an indirect branch, from its table.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetTable {
    /// The branch.
    pub branch: InstId,
    /// Its targets in table order, duplicates kept.
    pub targets: Vec<InstId>,
}

/// A kernel parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Position in the signature.
    pub ordinal: u32,
    /// Byte offset in the parameter block.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// Name, where the format keeps it (PTX).
    pub name: Option<String>,
}

/// Initial content of a constant bank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConstBank {
    /// Bank number.
    pub bank: u8,
    /// Bytes.
    pub data: Vec<u8>,
}

/// A constant bank whose bytes generic addresses reach, too: to be read, never written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedBank {
    /// Bank number; 0 is the launch's.
    pub bank: u8,
    /// Address of its first byte.
    pub address: u64,
}

/// A module-level variable in global memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobalVar {
    /// Mangled name.
    pub name: String,
    /// Address the code was linked to (relocations are applied already).
    pub address: u64,
    /// Size in bytes.
    pub size: u64,
    /// Initial bytes; shorter than `size` means the rest is zero.
    pub init: Vec<u8>,
}

/// A kernel ready to run or to analyse.
#[derive(Clone, Debug, Default)]
pub struct Kernel {
    /// Mangled name.
    pub name: String,
    /// `sm_90`, or `ptx`.
    pub arch: String,
    /// All code, functions one after another.
    pub instructions: Vec<Instruction>,
    /// Text of each instruction as the disassembler prints it (without the semicolon).
    pub text: Vec<String>,
    /// Whether each instruction is a further step of the source instruction before it (one PTX instruction can take
    /// several). Empty if none is.
    pub continued: Vec<bool>,
    /// The kernel's own code first, then functions it can call.
    pub functions: Vec<Function>,
    /// Tables of indirect branches.
    pub targets: Vec<TargetTable>,
    /// Number of register slots; every [`Slot`] is below it.
    pub slots: u16,
    /// Number of predicates.
    pub preds: u16,
    /// Slot that must hold the thread's initial stack pointer when the kernel starts, if any.
    pub stack_pointer: Option<(Slot, u32)>,
    /// Predicates that start as true, if any.
    pub true_preds: Vec<Pred>,
    /// Registers as the compiler counts them.
    pub registers: u32,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// Size of the parameter block in bytes.
    pub param_size: u32,
    /// Bank and byte offset where the parameter block lies.
    pub param_base: (u8, u32),
    /// Static shared memory in bytes.
    pub shared_size: u32,
    /// Local memory of one thread in bytes, stack included.
    pub local_size: u32,
    /// Lanes of a warp that its code counts on; 0 if any will do.
    pub warp_size: u32,
    /// Upper bound of threads in a block; 0 if none is given.
    pub max_threads: u32,
    /// Exact block shape required (`reqntid`), if any.
    pub required_block: Option<[u32; 3]>,
    /// Constant banks other than the launch's bank 0.
    pub constants: Vec<ConstBank>,
    /// Constant banks that lie in the generic address space as well.
    pub mapped: Vec<MappedBank>,
    /// Module variables.
    pub globals: Vec<GlobalVar>,
    /// Functions of other modules (`vprintf`, `malloc` ...) that are called, with the code address that stands for each.
    pub externals: Vec<(u64, String)>,
    /// Where each instruction comes from.
    pub source: SourceMap,
    /// What could not be read or applied; shown once to the user.
    pub warnings: Vec<String>,
}

impl Kernel {
    /// The instruction.
    pub fn inst(&self, id: InstId) -> &Instruction {
        &self.instructions[id.index()]
    }
    /// The function an instruction belongs to.
    pub fn function_of(&self, id: InstId) -> Option<&Function> {
        let i = self.functions.partition_point(|f| f.first.0 <= id.0);
        self.functions.get(i.checked_sub(1)?).filter(|f| id.0 - f.first.0 < f.len)
    }
    /// Code address of an instruction.
    pub fn address_of(&self, id: InstId) -> Option<u64> {
        let f = self.function_of(id)?;
        Some(f.base + u64::from(self.inst(id).pc))
    }
    /// The instruction at a code address, which must be the start of one.
    pub fn at_address(&self, address: u64) -> Option<InstId> {
        let i = self.functions.partition_point(|f| f.base <= address);
        let f = self.functions.get(i.checked_sub(1)?)?;
        let body = self.instructions.get(f.first.index()..f.first.index() + f.len as usize)?;
        let at = body.binary_search_by_key(&(address - f.base), |i| u64::from(i.pc)).ok()?;
        Some(InstId(f.first.0 + at as u32))
    }
}
