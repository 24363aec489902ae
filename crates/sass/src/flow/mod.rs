//! The control flow of one function, straight from its bytes: an inventory of the opcodes that steer it, and a
//! [`FlowCode`] for the survey.
//!
//! Nothing is linked: what a relocation would change (calls into other sections) does not steer lanes within this
//! one, so a module that cannot be linked or loaded still has an inventory.

mod inventory;
mod narrow;
mod wide;

use std::collections::BTreeMap;

use lanescope_ir::flow::FlowCode;

use crate::container::{Function, Module};
use crate::isa::{ArchError, Decoder, TableError};
use crate::isa64::{WORD, is_narrow};

pub use inventory::steers;

/// Bytes of an instruction of sm_70 and later.
const WIDE: usize = 16;

/// Why a function's control flow cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FlowError {
    /// No tables for the architecture.
    #[error("{0}")]
    Arch(#[from] ArchError),
    /// The embedded tables are broken.
    #[error("{0}")]
    Tables(#[from] TableError),
    /// The section has no code.
    #[error("the function has no code")]
    Empty,
    /// Not a whole number of instructions.
    #[error("the code is {bytes} bytes long, which is not a whole number of {unit}-byte instructions")]
    Size {
        /// Bytes of code.
        bytes: usize,
        /// Bytes of an instruction.
        unit: usize,
    },
}

/// What was read of a function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FunctionFlow {
    /// Opcodes that steer control flow or convergence, with the modifiers that matter, and how often each occurs.
    pub opcodes: BTreeMap<String, u32>,
    /// Instructions without the padding at the end.
    pub instructions: u32,
    /// Words among them that are no instruction, with the first complaint. The flow is then not to be trusted.
    pub undecoded: Option<(u32, String)>,
    /// Where control goes.
    pub code: FlowCode,
}

/// Reads functions of one architecture.
#[derive(Clone, Debug)]
pub enum FlowReader {
    /// 128-bit instructions.
    Wide(Box<Decoder>),
    /// 64-bit instructions.
    Narrow,
}

impl FlowReader {
    /// A reader for `sm`.
    pub fn new(sm: u32) -> Result<FlowReader, FlowError> {
        if is_narrow(sm) {
            return Ok(FlowReader::Narrow);
        }
        let arch = crate::isa::Arch::from_sm(sm)?;
        Ok(FlowReader::Wide(Box::new(Decoder::new(arch)?)))
    }

    /// Reads one function.
    pub fn read(&self, function: &Function<'_>) -> Result<FunctionFlow, FlowError> {
        let bytes = function.text.len();
        let unit = match self {
            FlowReader::Wide(_) => WIDE,
            FlowReader::Narrow => WORD as usize,
        };
        if bytes == 0 {
            return Err(FlowError::Empty);
        }
        if !bytes.is_multiple_of(unit) || u32::try_from(bytes).is_err() {
            return Err(FlowError::Size { bytes, unit });
        }
        Ok(match self {
            FlowReader::Wide(decoder) => wide::read(decoder, function),
            FlowReader::Narrow => narrow::read(function),
        })
    }
}

/// Reads the function of that mangled name.
pub fn of_function(module: &Module<'_>, name: &str) -> Option<Result<FunctionFlow, FlowError>> {
    let function = module.function(name)?;
    Some(FlowReader::new(module.arch.sm.into()).and_then(|reader| reader.read(function)))
}

/// First instructions of the function and of those inside it, ascending.
fn entries(function: &Function<'_>, code: &FlowCode) -> Vec<u32> {
    let inner = function.subroutines.iter().filter_map(|s| code.at(u32::try_from(s.offset).ok()?));
    let mut list: Vec<u32> = std::iter::once(0).chain(inner).collect();
    list.sort_unstable();
    list.dedup();
    list
}
