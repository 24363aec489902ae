//! One kernel of a cubin as a [`lanescope_ir::Kernel`]: linked, decoded and lowered.
//!
//! [`link`] gives every piece of code and data an address and patches relocations; this file decodes and lowers
//! the patched code. [`launch`] makes the constant bank 0 that the driver fills at a launch. What cannot be
//! decoded or has no lane operation becomes [`Op::Unsupported`] and is refused by name only if it is executed.

mod externals;
mod launch;
mod link;
mod mapped;
mod unsupported;

use lanescope_ir::op::control::ControlOp;
use lanescope_ir::op::effects::Visit;
use lanescope_ir::source::{InlineSite, Location};
use lanescope_ir::{
    Function, InstId, Instruction, Kernel, Op, Param, Pred, PredSrc, Slot, SourceMap, Src, TargetTable,
};

pub use launch::{Geometry, launch_constants};
use link::Linked;

use crate::container::{LineKind, Lines, Module, StackSize};
use crate::isa::inst::{File, Instruction as Decoded, Operand};
use crate::isa::{Arch, DecodeError, Decoder};
use crate::lower::operands::{CodeMap, Cx, Target, pred_src};

/// Least local memory of a thread whose kernel has subroutines or calls through pointers: the CUDA runtime's
/// default stack limit, since the sizes in the cubin leave recursion out.
const DEFAULT_STACK: u32 = 1024;
/// Larger local memory than any GPU allows one thread.
const MAX_LOCAL: u32 = 512 << 10;

/// Why a kernel cannot be loaded.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The cubin's architecture has no decoder.
    #[error("{0}")]
    Arch(#[from] crate::isa::ArchError),
    /// The instruction tables are broken.
    #[error("the instruction tables cannot be read: {0}")]
    Tables(#[from] crate::isa::TableError),
    /// There is no such kernel.
    #[error("there is no kernel `{0}` in this module")]
    NoKernel(String),
    /// The name is a device function's.
    #[error("`{0}` is a device function, not a kernel: it cannot be launched")]
    NotAKernel(String),
    /// Its code is not a whole number of 16-byte instructions, or empty.
    #[error("the code of `{name}` is {size} bytes long, which is not a whole number of 16-byte instructions")]
    CodeSize {
        /// Function.
        name: String,
        /// Bytes.
        size: usize,
    },
    /// The module must be linked first.
    #[error("this is a relocatable object (built with -rdc=true); link it first (nvlink, or nvcc -dlink)")]
    Relocatable,
    /// A container error.
    #[error("{0}")]
    Container(#[from] crate::container::Error),
    /// The lowered kernel breaks an invariant.
    #[error("the lowered kernel is inconsistent: {0}")]
    Inconsistent(String),
}

/// Loads kernel `name` (mangled) of `module`.
pub fn load(module: &Module<'_>, name: &str) -> Result<Kernel, LoadError> {
    // Code runs without its lines.
    let (lines, error) = match module.lines(LineKind::Source) {
        Ok(lines) => (lines, None),
        Err(error) => (Lines::default(), Some(error.to_string())),
    };
    let mut kernel = load_code(module, name, &lines)?;
    kernel.warnings.extend(error);
    kernel.warnings.extend(lines.warnings.iter().map(ToString::to_string));
    Ok(kernel)
}

/// Loads kernel `name` (mangled) of `module` with source lines that were read before, or none: for a look at many kernels,
/// which need not read the lines of them all each time.
pub fn load_code(module: &Module<'_>, name: &str, lines: &Lines) -> Result<Kernel, LoadError> {
    let function = module.function(name).ok_or_else(|| LoadError::NoKernel(name.to_owned()))?;
    if !function.is_kernel() {
        return Err(LoadError::NotAKernel(name.to_owned()));
    }
    let arch = Arch::from_sm(module.arch.sm.into())?;
    let decoder = Decoder::new(arch)?;
    let mut linked = link::link(module, function)?;
    let warnings: Vec<String> = std::mem::take(&mut linked.warnings);

    let mut kernel = Kernel {
        name: function.name.to_string(),
        arch: format!("sm_{}", arch.sm()),
        registers: function.registers.unwrap_or(0),
        max_threads: function.max_threads.map_or(0, threads),
        required_block: function.required_block,
        constants: std::mem::take(&mut linked.constants),
        globals: std::mem::take(&mut linked.globals),
        externals: linked.externals.clone(),
        preds: 14,
        ..Kernel::default()
    };
    let mut first = 0u32;
    for image in &linked.images {
        let size = image.text.len();
        if size == 0 || !size.is_multiple_of(16) {
            return Err(LoadError::CodeSize { name: image.name.clone(), size });
        }
        let len = code_len(&decoder, &image.text);
        kernel.functions.push(Function {
            name: image.name.clone(),
            base: image.base,
            first: InstId(first),
            len,
            local: image.subroutines.clone(),
        });
        first += len;
    }
    let played = externals::place(&linked.externals, &mut kernel.functions, first);
    let code = Code { functions: kernel.functions.clone(), linked: &linked };
    let mut source = SourceBuilder::default();
    for (image, function) in linked.images.iter().zip(&code.functions) {
        for (pc, raw) in words(&image.text).take(function.len as usize) {
            let (instruction, text) = lower(&decoder, &code, image.base, pc, raw);
            kernel.instructions.push(instruction);
            kernel.text.push(text);
            source.add(lines, image.section, pc);
        }
        for branch in &image.indirect {
            let at = |pc: u32| code.inst(image.base + u64::from(pc));
            if let Some(id) = at(branch.pc) {
                kernel
                    .targets
                    .push(TargetTable { branch: id, targets: branch.targets.iter().filter_map(|&t| at(t)).collect() });
            }
        }
    }
    for (instruction, text) in played {
        kernel.instructions.push(instruction);
        kernel.text.push(text);
        source.map.of_inst.push(None);
    }
    if !lines.is_empty() {
        kernel.source = source.map;
    }
    shape(&mut kernel, module, function);
    kernel.mapped = mapped::mapped(&mut kernel, arch.sm(), &linked.mapped);
    compact(&mut kernel);
    kernel.warnings = warnings;
    lanescope_ir::verify::verify(&kernel).map_err(LoadError::Inconsistent)?;
    Ok(kernel)
}

/// Parameters and memory sizes.
fn shape(kernel: &mut Kernel, module: &Module<'_>, function: &crate::container::Function<'_>) {
    let bank = function.param_bank;
    kernel.params = function
        .params
        .iter()
        .map(|p| Param { ordinal: u32::from(p.ordinal), offset: p.offset, size: p.size, name: None })
        .collect();
    kernel.param_base = (0, bank.map_or_else(|| launch::param_base(module.arch.sm.into()), |b| b.offset));
    kernel.param_size = bank.map_or(0, |b| b.size);
    let reserved = u64::from(launch::reserved_shared(module.arch.sm.into()));
    kernel.shared_size = u32::try_from(function.shared_size.max(reserved)).unwrap_or(u32::MAX);
    let frame = function.frame_size.unwrap_or(0);
    let stack = match function.stack_size {
        Some(StackSize::Bytes(n)) => n.max(frame),
        Some(StackSize::Unbounded) => frame.saturating_add(DEFAULT_STACK),
        None => frame,
    };
    let calls = kernel.functions.len() > 1
        || !function.subroutines.is_empty()
        || kernel.instructions.iter().any(|i| matches!(i.op, Op::Control(ControlOp::CallIndirect { .. })));
    let stack = if calls { stack.max(DEFAULT_STACK) } else { stack };
    kernel.local_size = stack.min(MAX_LOCAL).next_multiple_of(16);
}

fn threads(shape: [u32; 3]) -> u32 {
    shape.iter().fold(1u32, |n, &d| n.saturating_mul(d.max(1)))
}

/// The 16-byte words of `text` with their offsets.
fn words(text: &[u8]) -> impl DoubleEndedIterator<Item = (u32, u128)> + ExactSizeIterator {
    text.chunks_exact(16).enumerate().map(|(i, w)| {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(w);
        (i as u32 * 16, u128::from_le_bytes(bytes))
    })
}

/// Number of instructions without the NOPs that pad the section's end; at least one.
fn code_len(decoder: &Decoder, text: &[u8]) -> u32 {
    let padding =
        words(text).rev().take_while(|&(pc, raw)| decoder.decode(pc, raw).is_ok_and(|i| i.mnemonic == "NOP")).count();
    (text.len() / 16 - padding).max(1) as u32
}

/// Where code lies, for branch targets.
struct Code<'a> {
    functions: Vec<Function>,
    linked: &'a Linked,
}

impl Code<'_> {
    fn inst(&self, address: u64) -> Option<InstId> {
        let i = self.functions.partition_point(|f| f.base <= address);
        let f = self.functions.get(i.checked_sub(1)?)?;
        let offset = address - f.base;
        (offset.is_multiple_of(16) && offset / 16 < u64::from(f.len)).then(|| InstId(f.first.0 + (offset / 16) as u32))
    }
}

impl CodeMap for Code<'_> {
    fn at(&self, address: u64) -> Option<Target<'_>> {
        if let Some(id) = self.inst(address) {
            return Some(Target::Code(id));
        }
        let external = self.linked.externals.iter().find(|(at, _)| *at == address)?;
        Some(Target::External(&external.1))
    }
}

/// Decodes and lowers one word.
fn lower(decoder: &Decoder, code: &Code<'_>, base: u64, pc: u32, raw: u128) -> (Instruction, String) {
    let decoded = match decoder.decode(pc, raw) {
        Ok(decoded) => decoded,
        Err(error) => return (undecoded(&error), error.to_string()),
    };
    let text = decoded.to_string();
    let cx = Cx { inst: &decoded, sm: decoder.arch().sm(), section_base: base, code };
    let op = crate::lower::operation(&cx).unwrap_or_else(|refused| unsupported::describe(&decoded, &refused));
    let uniform = is_uniform(&decoded, &op);
    (Instruction { pc, guard: pred_src(decoded.guard), uniform, op }, text)
}

fn undecoded(error: &DecodeError) -> Instruction {
    Instruction {
        pc: error.pc(),
        guard: PredSrc::TRUE,
        uniform: false,
        op: Op::Unsupported(lanescope_ir::op::Unsupported {
            name: error.to_string(),
            why: "not in the instruction tables",
            dst: Vec::new(),
            pdst: Vec::new(),
            has_effects: true,
        }),
    }
}

/// Whether the instruction's results belong to the uniform datapath: its first operand is a uniform register
/// or predicate that it writes. Branches read theirs.
fn is_uniform(decoded: &Decoded, op: &Op) -> bool {
    if matches!(op, Op::Control(_) | Op::Nop) {
        return false;
    }
    decoded.mnemonic.starts_with('U')
        || matches!(decoded.mnemonic, "ELECT" | "R2UR")
        || match decoded.operands.first() {
            Some(Operand::Reg(r)) => r.file == File::Uniform,
            Some(Operand::Pred(p)) => p.file == File::Uniform,
            _ => false,
        }
}

/// Renumbers slots densely in order of first use, so that the register file holds only what the kernel touches.
fn compact(kernel: &mut Kernel) {
    struct Renumber {
        to: Vec<Option<u16>>,
        next: u16,
    }
    impl Renumber {
        fn map(&mut self, slot: Slot) -> Slot {
            let at = slot.index();
            if at >= self.to.len() {
                self.to.resize(at + 1, None);
            }
            let next = &mut self.next;
            Slot(*self.to[at].get_or_insert_with(|| {
                *next += 1;
                *next - 1
            }))
        }
    }
    impl Visit for Renumber {
        fn src(&mut self, s: &mut Src) {
            if let Some(slot) = s.read() {
                *s = Src::slot(self.map(slot)).with(s.modifier);
            }
        }
        fn dst(&mut self, d: &mut Option<Slot>) {
            *d = d.map(|d| self.map(d));
        }
    }
    let mut renumber = Renumber { to: Vec::new(), next: 0 };
    for instruction in &mut kernel.instructions {
        instruction.visit(&mut renumber);
    }
    kernel.slots = renumber.next;
    debug_assert!(kernel.preds > Pred(13).0);
}

/// Collects source locations, each distinct one once.
#[derive(Default)]
struct SourceBuilder {
    map: SourceMap,
    files: std::collections::HashMap<String, u32>,
    locations: std::collections::HashMap<Location, u32>,
}

impl SourceBuilder {
    fn file(&mut self, path: String) -> u32 {
        *self.files.entry(path).or_insert_with_key(|path| {
            self.map.files.push(path.clone());
            self.map.files.len() as u32 - 1
        })
    }

    fn add(&mut self, lines: &Lines, section: usize, pc: u32) {
        let frames: Vec<_> = lines.frames(section, u64::from(pc)).take(64).collect();
        let Some(inner) = frames.first().filter(|f| f.line != 0) else {
            self.map.of_inst.push(None);
            return;
        };
        let file = self.file(inner.path());
        // Frame k is a line of function k, which was inlined at the line of frame k + 1.
        let inlined_at = frames
            .windows(2)
            .map(|w| InlineSite {
                function: w[0].function.map(str::to_owned),
                file: self.file(w[1].path()),
                line: w[1].line,
            })
            .collect();
        let location = Location { file, line: inner.line, column: inner.column, inlined_at };
        let at = *self.locations.entry(location).or_insert_with_key(|location| {
            self.map.locations.push(location.clone());
            self.map.locations.len() as u32 - 1
        });
        self.map.of_inst.push(Some(at));
    }
}
