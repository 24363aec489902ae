//! One cubin.

use std::borrow::Cow;
use std::collections::HashMap;

use super::arch::{Arch, Layout};
use super::attributes::{self, Attribute, id};
use super::elf::{EM_CUDA, Elf, SHT_PROGBITS, Section, Symbol, SymbolKind};
use super::error::{Error, Result, hint};
use super::function::{ConstantBank, Function, FunctionKind, StackSize, Subroutine};

/// Bit of `st_other` that marks a kernel.
const OTHER_ENTRY: u8 = 0x10;
/// `e_type` of a relocatable file.
const ET_REL: u16 = 1;
/// One cubin, read.
#[derive(Clone, Debug)]
pub struct Module<'a> {
    /// What it was built for.
    pub arch: Arch,
    /// Generation of its header.
    pub layout: Layout,
    /// Whether it still needs linking (`-rdc=true`).
    pub relocatable: bool,
    /// All sections, by ELF index.
    pub sections: Vec<Section<'a>>,
    /// All symbols, by ELF index.
    pub symbols: Vec<Symbol<'a>>,
    /// Kernels and device functions in the order of their sections.
    pub functions: Vec<Function<'a>>,
    /// Constant banks that all kernels share: 3 (`__constant__`), 4 (addresses of globals), ...
    pub constants: Vec<ConstantBank<'a>>,
    /// Zero-initialised (`.nv.global`) and initialised (`.nv.global.init`) device variables.
    pub globals: Vec<GlobalData<'a>>,
    /// What could not be read while the rest can be used.
    pub warnings: Vec<Error>,
    /// Relocation sections by the section they patch.
    pub(super) relocation_tables: HashMap<usize, Vec<usize>>,
    file: &'a [u8],
}

/// A section of device variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobalData<'a> {
    /// Index of its section.
    pub section: usize,
    /// Size in bytes.
    pub size: u64,
    /// Alignment in bytes.
    pub align: u64,
    /// Initial bytes before relocation; `None` if it starts as zeros.
    pub init: Option<&'a [u8]>,
    /// Indices of the symbols inside.
    pub symbols: Vec<usize>,
}

impl<'a> Module<'a> {
    /// Reads a cubin.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        if bytes.is_empty() {
            return Err(Error::Empty);
        }
        if !bytes.starts_with(b"\x7fELF") {
            return Err(Error::NotAContainer { hint: hint(bytes) });
        }
        let elf = Elf::parse(bytes)?;
        if elf.header.machine != EM_CUDA {
            return Err(Error::NotCuda { machine: elf.header.machine });
        }
        let layout = Layout::from_osabi(elf.header.osabi)?;
        let (essential, damaged): (Vec<_>, Vec<_>) =
            elf.damaged.iter().cloned().partition(|(index, _)| elf.sections[*index].is_essential());
        if let Some((_, error)) = essential.into_iter().next() {
            return Err(error);
        }
        let symbols = elf.symbols(bytes.len())?;
        let mut module = Module {
            arch: layout.arch(elf.header.flags).refined(&elf.sections),
            layout,
            relocatable: elf.header.kind == ET_REL,
            sections: elf.sections,
            symbols,
            functions: Vec::new(),
            constants: Vec::new(),
            globals: Vec::new(),
            warnings: damaged.into_iter().map(|(_, error)| error).collect(),
            relocation_tables: HashMap::new(),
            file: bytes,
        };
        module.index_relocations();
        module.read_functions();
        module.read_data();
        Ok(module)
    }

    /// The functions that can be launched.
    pub fn kernels(&self) -> impl Iterator<Item = &Function<'a>> {
        self.functions.iter().filter(|f| f.is_kernel())
    }

    /// The function of that mangled name.
    pub fn function(&self, name: &str) -> Option<&Function<'a>> {
        self.functions.iter().find(|f| f.name == name)
    }

    /// The function whose code is section `section`.
    pub fn function_of_section(&self, section: usize) -> Option<&Function<'a>> {
        self.functions.binary_search_by_key(&section, |f| f.section).ok().map(|i| &self.functions[i])
    }

    /// The section of that exact name with its index.
    pub fn section(&self, name: &str) -> Option<(usize, &Section<'a>)> {
        self.sections.iter().enumerate().find(|(_, s)| s.name == name)
    }

    /// The defined symbol of that name with its index.
    pub fn symbol(&self, name: &str) -> Option<(usize, &Symbol<'a>)> {
        self.symbols.iter().enumerate().find(|(_, s)| s.name == name && s.section.is_some())
    }

    /// The cubin's bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.file
    }

    fn read_functions(&mut self) {
        let mut functions = Vec::new();
        let mut by_section = HashMap::new();
        let mut by_name = HashMap::new();
        for (index, section) in self.sections.iter().enumerate() {
            let Some(name) = strip(&section.name, ".text.") else { continue };
            if section.kind != SHT_PROGBITS {
                continue;
            }
            by_section.insert(index, functions.len());
            by_name.entry(name.clone()).or_insert(functions.len());
            let mut function = Function::new(name, index, section.data, section.offset);
            if self.layout == Layout::Old {
                let registers = section.info >> 24;
                function.registers = (registers != 0).then_some(registers);
                function.barriers = (section.flags >> 20) as u32 & 0x7f;
            }
            functions.push(function);
        }
        let mut warnings = std::mem::take(&mut self.warnings);
        let mut by_symbol = HashMap::new();
        for (index, symbol) in self.symbols.iter().enumerate() {
            if symbol.kind != SymbolKind::Function {
                continue;
            }
            let Some(&owner) = symbol.section.and_then(|s| by_section.get(&s)) else { continue };
            let function: &mut Function<'_> = &mut functions[owner];
            if symbol.value == 0 && symbol.name == function.name {
                function.symbol = Some(index);
                if symbol.other & OTHER_ENTRY != 0 {
                    function.kind = FunctionKind::Kernel;
                }
                by_symbol.insert(index as u32, Place::Function(owner));
            } else {
                by_symbol.insert(index as u32, Place::Subroutine(owner, function.subroutines.len()));
                function.subroutines.push(Subroutine {
                    name: symbol.name.clone(),
                    offset: symbol.value,
                    size: symbol.size,
                    symbol: index,
                    frame_size: None,
                });
            }
        }
        for (index, section) in self.sections.iter().enumerate() {
            if section.name == ".nv.info" {
                let (list, error) = attributes::parse(".nv.info", section.data);
                warnings.extend(error);
                for attribute in &list {
                    module_attribute(attribute, &by_symbol, &mut functions);
                }
            } else if let Some(name) = strip(&section.name, ".nv.info.") {
                let owner = by_section.get(&(section.info as usize)).or_else(|| by_name.get(&name));
                let Some(&owner) = owner else { continue };
                let (list, error) = attributes::parse(&section.name, section.data);
                warnings.extend(error);
                functions[owner].apply_attributes(list, &mut warnings);
            } else if let Some(name) = strip(&section.name, ".nv.shared.") {
                let owner = by_section.get(&(section.info as usize)).or_else(|| by_name.get(&name));
                if let Some(&owner) = owner {
                    functions[owner].shared_size = section.size;
                }
            } else if let Some((bank, Some(_))) = constant_bank(&section.name)
                && let Some(&owner) = by_section.get(&(section.info as usize))
                && section.has_data()
            {
                functions[owner].constants.push(ConstantBank { bank, section: index, data: section.data });
            }
        }
        for function in &mut functions {
            function.subroutines.sort_by_key(|s| s.offset);
            function.params.sort_by_key(|p| p.ordinal);
        }
        self.functions = functions;
        self.warnings = warnings;
    }

    fn read_data(&mut self) {
        let mut by_section = HashMap::new();
        for (index, section) in self.sections.iter().enumerate() {
            if let Some((bank, None)) = constant_bank(&section.name) {
                self.constants.push(ConstantBank { bank, section: index, data: section.data });
            }
            let name = &*section.name;
            if name == ".nv.global" || name == ".nv.global.init" {
                by_section.insert(index, self.globals.len());
                self.globals.push(GlobalData {
                    section: index,
                    size: section.size,
                    align: section.align,
                    init: section.has_data().then_some(section.data),
                    symbols: Vec::new(),
                });
            }
        }
        for (index, symbol) in self.symbols.iter().enumerate() {
            if symbol.kind == SymbolKind::Section {
                continue;
            }
            if let Some(&owner) = symbol.section.and_then(|s| by_section.get(&s)) {
                self.globals[owner].symbols.push(index);
            }
        }
    }
}

/// Where a function symbol leads.
enum Place {
    Function(usize),
    Subroutine(usize, usize),
}

/// `.nv.info`: pairs of symbol and number.
fn module_attribute(a: &Attribute<'_>, by_symbol: &HashMap<u32, Place>, functions: &mut [Function<'_>]) {
    let mut words = a.words();
    let (Some(symbol), Some(number)) = (words.next(), words.next()) else { return };
    match by_symbol.get(&symbol) {
        Some(&Place::Function(owner)) => {
            let function = &mut functions[owner];
            match a.id {
                id::REGCOUNT => function.registers = Some(number),
                id::FRAME_SIZE => function.frame_size = Some(number),
                id::MIN_STACK_SIZE => {
                    function.stack_size = Some(match number {
                        u32::MAX => StackSize::Unbounded,
                        bytes => StackSize::Bytes(bytes),
                    });
                }
                _ => {}
            }
        }
        Some(&Place::Subroutine(owner, at)) if a.id == id::FRAME_SIZE => {
            functions[owner].subroutines[at].frame_size = Some(number);
        }
        _ => {}
    }
}

/// `name` without `prefix`, keeping the borrow where there is one.
fn strip<'a>(name: &Cow<'a, str>, prefix: &str) -> Option<Cow<'a, str>> {
    match name {
        Cow::Borrowed(s) => s.strip_prefix(prefix).map(Cow::Borrowed),
        Cow::Owned(s) => s.strip_prefix(prefix).map(|s| Cow::Owned(s.to_owned())),
    }
}

/// Bank number and owner's name of `.nv.constant4` and `.nv.constant2.kernel`.
fn constant_bank(name: &str) -> Option<(u8, Option<&str>)> {
    let rest = name.strip_prefix(".nv.constant")?;
    let (number, owner) = match rest.split_once('.') {
        Some((number, owner)) => (number, Some(owner)),
        None => (rest, None),
    };
    Some((number.parse().ok()?, owner))
}
