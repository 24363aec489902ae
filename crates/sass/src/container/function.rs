//! One kernel or device function: its code and everything a launch must know about it.

use std::borrow::Cow;

use super::attributes::{Attribute, Value, id};
use super::error::{Error, MAX_WARNINGS};

/// What a `.text.*` section holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FunctionKind {
    /// A kernel (`__global__`).
    Kernel,
    /// A device function of its own section (separate compilation, `-G`).
    Device,
}

/// A `.text.NAME` section with the facts from `.nv.info.NAME`, `.nv.info` and its sibling sections.
#[derive(Clone, Debug, PartialEq)]
pub struct Function<'a> {
    /// Mangled name.
    pub name: Cow<'a, str>,
    /// Kernel or device function.
    pub kind: FunctionKind,
    /// Index of the text section in [`Module::sections`](super::Module::sections).
    pub section: usize,
    /// Index of its symbol in [`Module::symbols`](super::Module::symbols), if it has one.
    pub symbol: Option<usize>,
    /// The code, padding at the end included.
    pub text: &'a [u8],
    /// Offset of the code in the cubin.
    pub text_offset: u64,
    /// Functions inside this section other than its start, ordered by offset.
    pub subroutines: Vec<Subroutine<'a>>,
    /// Registers per thread.
    pub registers: Option<u32>,
    /// Named barriers used (`BAR`).
    pub barriers: u32,
    /// Largest block (`__launch_bounds__`).
    pub max_threads: Option<[u32; 3]>,
    /// Exact block (`reqntid`, `__block_size__`).
    pub required_block: Option<[u32; 3]>,
    /// Blocks per cluster.
    pub cluster: Option<[u32; 3]>,
    /// Static shared memory in bytes: the size of `.nv.shared.NAME`. On `sm_90` and later it starts
    /// with the 1024 bytes that the system reserves, if the section exists at all; addresses in the
    /// code count from the same start.
    pub shared_size: u64,
    /// Stack frame of the kernel alone, in bytes per thread.
    pub frame_size: Option<u32>,
    /// Stack that its deepest call chain needs, in bytes per thread.
    pub stack_size: Option<StackSize>,
    /// Parameters ordered by ordinal.
    pub params: Vec<Param>,
    /// Where parameters lie in constant bank 0.
    pub param_bank: Option<ParamBank>,
    /// Offsets of `EXIT` instructions.
    pub exits: Vec<u32>,
    /// Indirect branches (`BRX`) with their possible targets.
    pub indirect_branches: Vec<IndirectBranch>,
    /// Offsets of instructions that act on the warp as a whole.
    pub warp_wide: Vec<u32>,
    /// Offsets of calls into the driver's system functions (`malloc`, `vprintf`, ...).
    pub syscalls: Vec<u32>,
    /// Constant banks of this function: 0 (launch and parameters), 2 (compiler constants, `BRX` tables), ...
    pub constants: Vec<ConstantBank<'a>>,
    /// Every attribute of `.nv.info.NAME`, known or not.
    pub attributes: Vec<Attribute<'a>>,
}

/// A function inside another's text section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subroutine<'a> {
    /// Its name: `$kernel$callee`, `$__internal_0_$__cuda_sm20_div_rn_f64_full`.
    pub name: Cow<'a, str>,
    /// Start, as an offset into the section.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
    /// Index of its symbol.
    pub symbol: usize,
    /// Stack frame in bytes per thread.
    pub frame_size: Option<u32>,
}

/// One kernel parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// Position in the argument list, from 0.
    pub ordinal: u16,
    /// Offset from the start of the parameters.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
}

/// Parameters' place in constant bank 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamBank {
    /// Byte offset of the first parameter: 0x160, 0x210, 0x380 by architecture.
    pub offset: u32,
    /// Bytes of all parameters together.
    pub size: u32,
}

/// A stack requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackSize {
    /// Bytes per thread.
    Bytes(u32),
    /// Recursion or calls through pointers: the compiler could not bound it.
    Unbounded,
}

/// An indirect branch with the targets the compiler recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndirectBranch {
    /// Offset of the branch.
    pub pc: u32,
    /// Offsets it may go to.
    pub targets: Vec<u32>,
}

/// Initial contents of one constant bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstantBank<'a> {
    /// Bank number, as in `c[2][...]`.
    pub bank: u8,
    /// Index of its section.
    pub section: usize,
    /// Its bytes before relocation.
    pub data: &'a [u8],
}

impl<'a> Function<'a> {
    pub(super) fn new(name: Cow<'a, str>, section: usize, text: &'a [u8], text_offset: u64) -> Self {
        Self {
            name,
            kind: FunctionKind::Device,
            section,
            symbol: None,
            text,
            text_offset,
            subroutines: Vec::new(),
            registers: None,
            barriers: 0,
            max_threads: None,
            required_block: None,
            cluster: None,
            shared_size: 0,
            frame_size: None,
            stack_size: None,
            params: Vec::new(),
            param_bank: None,
            exits: Vec::new(),
            indirect_branches: Vec::new(),
            warp_wide: Vec::new(),
            syscalls: Vec::new(),
            constants: Vec::new(),
            attributes: Vec::new(),
        }
    }

    /// Whether it can be launched.
    pub fn is_kernel(&self) -> bool {
        self.kind == FunctionKind::Kernel
    }

    /// Attribute number `id`, if present; see [`id`](super::id).
    pub fn attribute(&self, id: u8) -> Option<&Attribute<'a>> {
        self.attributes.iter().find(|a| a.id == id)
    }

    /// Constant bank `bank` of this function.
    pub fn constant(&self, bank: u8) -> Option<&ConstantBank<'a>> {
        self.constants.iter().find(|c| c.bank == bank)
    }

    /// The subroutine that `offset` lies in; `None` for the function itself and for padding.
    pub fn subroutine_at(&self, offset: u64) -> Option<&Subroutine<'a>> {
        let next = self.subroutines.partition_point(|s| s.offset <= offset);
        self.subroutines[..next].iter().rev().find(|s| offset - s.offset < s.size)
    }

    /// Takes over what `.nv.info.NAME` says. Malformed attributes are reported and skipped.
    pub(super) fn apply_attributes(&mut self, attributes: Vec<Attribute<'a>>, warnings: &mut Vec<Error>) {
        for attribute in &attributes {
            if let Err(what) = self.apply(attribute)
                && warnings.len() < MAX_WARNINGS
            {
                warnings.push(Error::Attribute {
                    section: format!(".nv.info.{}", self.name),
                    offset: 0,
                    what: format!("{}: {what}", attribute.name().unwrap_or("attribute")),
                });
            }
        }
        self.attributes.extend(attributes);
    }

    fn apply(&mut self, a: &Attribute<'a>) -> Result<(), &'static str> {
        match a.id {
            id::KPARAM_INFO => self.params.push(param(a)?),
            id::KPARAM_INFO_V2 => self.params.push(param_v2(a)?),
            id::PARAM_CBANK => {
                let word = a.words().nth(1).ok_or("expected 8 bytes")?;
                self.param_bank = Some(ParamBank { offset: word & 0xffff, size: word >> 16 });
            }
            id::MAX_THREADS => self.max_threads = Some(three(a)?),
            id::REQNTID => self.required_block = Some(three(a)?),
            id::CTA_PER_CLUSTER => self.cluster = Some(three(a)?),
            id::NUM_BARRIERS => self.barriers = a.number().ok_or("expected a number")?,
            id::EXIT_INSTR_OFFSETS => self.exits.extend(a.words()),
            id::INT_WARP_WIDE_INSTR_OFFSETS => self.warp_wide.extend(a.words()),
            id::SYSCALL_OFFSETS => self.syscalls.extend(a.words()),
            id::INDIRECT_BRANCH_TARGETS => indirect(a, &mut self.indirect_branches)?,
            _ => {}
        }
        Ok(())
    }
}

fn three(a: &Attribute<'_>) -> Result<[u32; 3], &'static str> {
    let mut words = a.words();
    let mut next = || words.next().ok_or("expected 12 bytes");
    Ok([next()?, next()?, next()?])
}

/// 12 bytes: index, ordinal (16), offset (16), then alignment (8), space (4), bank (5) and size (14) packed.
fn param(a: &Attribute<'_>) -> Result<Param, &'static str> {
    let [_, place, packed] = three(a)?;
    Ok(Param { ordinal: place as u16, offset: place >> 16, size: packed >> 18 })
}

/// 12 bytes, for parameters of more than 4 KiB: index, ordinal (16), offset (16), size (16), alignment, space.
fn param_v2(a: &Attribute<'_>) -> Result<Param, &'static str> {
    let [_, place, packed] = three(a)?;
    Ok(Param { ordinal: place as u16, offset: place >> 16, size: packed & 0xffff })
}

/// Runs of: pc, zero, count, targets.
fn indirect(a: &Attribute<'_>, list: &mut Vec<IndirectBranch>) -> Result<(), &'static str> {
    let Value::Sized(_) = a.value else { return Err("expected a list") };
    let mut words = a.words();
    while let Some(pc) = words.next() {
        let (Some(_), Some(count)) = (words.next(), words.next()) else {
            return Err("a branch is cut short");
        };
        let targets: Vec<u32> = words.by_ref().take(count as usize).collect();
        if targets.len() as u64 != u64::from(count) {
            return Err("a branch has fewer targets than it claims");
        }
        list.push(IndirectBranch { pc, targets });
    }
    Ok(())
}
