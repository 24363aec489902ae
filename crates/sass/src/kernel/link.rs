//! Addresses for code and data, and relocations.
//!
//! A launch on hardware puts code, constants and variables wherever the driver likes; here they lie at fixed
//! addresses, so that a kernel that prints or compares addresses behaves the same on every run:
//! code from [`CODE_BASE`], functions of other modules from [`EXTERNAL_BASE`] (named, or played by the engine), and
//! device variables from [`GLOBAL_BASE`].

use std::collections::{HashMap, VecDeque};

use lanescope_ir::{ConstBank, GlobalVar, MappedBank};

use super::mapped;

use crate::container::{ConstantBank, Function, IndirectBranch, Module, Relocation, Result, SymbolKind};

/// First code address. Below 4 GiB, since some relocations hold 32 bits only.
pub(super) const CODE_BASE: u64 = 0x1000_0000;
/// Addresses that stand for functions that are not in the module.
pub(super) const EXTERNAL_BASE: u64 = 0x7000_0000;
/// Bytes of code that there is room for at each.
pub(super) const EXTERNAL_SIZE: u64 = 64;
/// First address of device variables.
pub(super) const GLOBAL_BASE: u64 = 0x10_0000_0000;
/// Code sections start at multiples of this.
const CODE_ALIGN: u64 = 0x1000;
/// Sections of code one kernel may pull in.
const MAX_FUNCTIONS: usize = 4096;

/// Code of one section after relocation.
pub(super) struct Image {
    pub name: String,
    pub section: usize,
    pub base: u64,
    pub text: Vec<u8>,
    /// Name, offset, size.
    pub subroutines: Vec<(String, u32, u32)>,
    pub indirect: Vec<IndirectBranch>,
}

/// A kernel with everything it can reach.
pub(super) struct Linked {
    /// The kernel's own code first.
    pub images: Vec<Image>,
    pub constants: Vec<ConstBank>,
    /// Of the constants, those whose address a relocation takes.
    pub mapped: Vec<MappedBank>,
    pub globals: Vec<GlobalVar>,
    pub externals: Vec<(u64, String)>,
    pub warnings: Vec<String>,
}

struct Linker<'m, 'a> {
    module: &'m Module<'a>,
    /// Code address by section.
    code: HashMap<usize, u64>,
    queue: VecDeque<usize>,
    next_code: u64,
    /// Data address by section (`.nv.global*` and constant banks whose address is taken).
    data: HashMap<usize, u64>,
    next_data: u64,
    externals: Vec<(u64, String)>,
    by_external: HashMap<usize, u64>,
    warnings: Vec<String>,
}

pub(super) fn link(module: &Module<'_>, kernel: &Function<'_>) -> Result<Linked> {
    let mut linker = Linker {
        module,
        code: HashMap::new(),
        queue: VecDeque::new(),
        next_code: CODE_BASE,
        data: HashMap::new(),
        next_data: GLOBAL_BASE,
        externals: Vec::new(),
        by_external: HashMap::new(),
        warnings: module.warnings.iter().map(ToString::to_string).collect(),
    };
    for global in &module.globals {
        linker.place_data(global.section, global.size, global.align);
    }
    linker.code_address(kernel.section);
    let mut images = Vec::new();
    let mut constants: HashMap<u8, Vec<u8>> = HashMap::new();
    // Module-wide banks and variables first: they may hold pointers to functions.
    for bank in &module.constants {
        let mut data = bank.data.to_vec();
        linker.relocate(bank.section, &mut data);
        constants.insert(bank.bank, data);
    }
    let mut globals = Vec::new();
    for global in &module.globals {
        let mut init = global.init.map(<[u8]>::to_vec).unwrap_or_default();
        linker.relocate(global.section, &mut init);
        linker.variables(global.section, global.size, &init, &mut globals);
    }
    while let Some(section) = linker.queue.pop_front() {
        let Some(function) = module.function_of_section(section) else { continue };
        let base = linker.code_address(section);
        let mut text = function.text.to_vec();
        linker.relocate(section, &mut text);
        // Banks 0 and 1 belong to the launch; bank 2 and up to the function.
        for bank in function.constants.iter().filter(|b| b.bank >= 2) {
            let mut data = bank.data.to_vec();
            linker.relocate(bank.section, &mut data);
            if constants.contains_key(&bank.bank) && section != kernel.section {
                linker.warnings.push(format!(
                    "constant bank {} of {} is ignored: the kernel has its own",
                    bank.bank, function.name
                ));
                continue;
            }
            constants.insert(bank.bank, data);
        }
        images.push(Image {
            name: function.name.to_string(),
            section,
            base,
            text,
            subroutines: function
                .subroutines
                .iter()
                .map(|s| (s.name.to_string(), s.offset as u32, s.size as u32))
                .collect(),
            indirect: function.indirect_branches.clone(),
        });
    }
    let mapped = linker.taken_constants();
    let mut constants: Vec<ConstBank> = constants.into_iter().map(|(bank, data)| ConstBank { bank, data }).collect();
    constants.sort_by_key(|c| c.bank);
    Ok(Linked { images, constants, mapped, globals, externals: linker.externals, warnings: linker.warnings })
}

impl Linker<'_, '_> {
    /// Code address of a text section, which will be loaded too. Bases ascend in the order of first mention, and
    /// so does the queue.
    fn code_address(&mut self, section: usize) -> u64 {
        if let Some(&base) = self.code.get(&section) {
            return base;
        }
        let base = self.next_code;
        let size = self.module.sections.get(section).map_or(0, |s| s.size);
        if self.code.len() >= MAX_FUNCTIONS || base + size >= EXTERNAL_BASE {
            self.warnings.push(format!("more than {MAX_FUNCTIONS} functions are reachable; the rest is left out"));
            return 0;
        }
        self.next_code = (base + size.max(16)).next_multiple_of(CODE_ALIGN);
        self.code.insert(section, base);
        self.queue.push_back(section);
        base
    }

    fn place_data(&mut self, section: usize, size: u64, align: u64) -> u64 {
        if let Some(&address) = self.data.get(&section) {
            return address;
        }
        let align = align.clamp(256, 1 << 16).next_power_of_two();
        let address = self.next_data.next_multiple_of(align);
        // A gap behind each section, so that running off its end is noticed.
        self.next_data = address.saturating_add(size.min(1 << 38)).saturating_add(4096);
        self.data.insert(section, address);
        address
    }

    /// The value of a symbol for relocation `relocation`, or why it has none.
    fn value(&mut self, relocation: &Relocation) -> std::result::Result<u64, String> {
        let module = self.module;
        let Some(symbol) = module.symbols.get(relocation.symbol) else {
            return Err("a symbol that is not there".into());
        };
        let Some(section) = symbol.section else {
            if symbol.name.is_empty() {
                return Ok(0);
            }
            let next = EXTERNAL_BASE + EXTERNAL_SIZE * self.externals.len() as u64;
            let address = *self.by_external.entry(relocation.symbol).or_insert(next);
            if address == next {
                self.externals.push((address, symbol.name.to_string()));
            }
            return Ok(address);
        };
        let name = module.sections.get(section).map_or("", |s| &*s.name);
        if module.function_of_section(section).is_some() {
            return Ok(self.code_address(section) + symbol.value);
        }
        if let Some(bank) = module.constants.iter().find(|c| c.section == section) {
            if relocation.kind.wants_bank() {
                return Ok(u64::from(bank.bank) << 16 | symbol.value & 0xffff);
            }
            // The address of a constant taken: constants are readable as global memory too.
            if bank.bank == 3 {
                self.data.insert(section, mapped::CONSTANTS);
                return Ok(mapped::CONSTANTS.wrapping_add(symbol.value));
            }
            return Ok(self.place_data(section, bank.data.len() as u64, 256) + symbol.value);
        }
        if let Some(bank) = module.functions.iter().flat_map(|f| &f.constants).find(|c| c.section == section) {
            return Ok(u64::from(bank.bank) << 16 | symbol.value & 0xffff);
        }
        if let Some(&address) = self.data.get(&section) {
            return Ok(address + symbol.value);
        }
        // Shared and local symbols count from the start of the block's or thread's memory.
        if name.starts_with(".nv.shared") || name.starts_with(".nv.local") || name.starts_with(".nv.reservedSmem") {
            return Ok(symbol.value);
        }
        Err(format!("symbol {} lies in {name}, which has no address here", symbol.name))
    }

    /// Applies the relocations of `section` to a copy of its bytes. What cannot be applied becomes a warning:
    /// the instruction then holds what the file holds.
    fn relocate(&mut self, section: usize, bytes: &mut [u8]) {
        let relocations = match self.module.relocations(section) {
            Ok(list) => list,
            Err(error) => {
                self.warnings.push(error.to_string());
                return;
            }
        };
        for relocation in &relocations {
            let value = match self.value(relocation) {
                Ok(value) => value.wrapping_add_signed(relocation.addend),
                Err(why) => {
                    let of = self.module.sections.get(section).map_or("?", |s| &*s.name);
                    self.warnings.push(format!("relocation at {of}+{:#x}: {why}", relocation.offset));
                    continue;
                }
            };
            if let Err(error) = self.module.apply(section, relocation, bytes, value) {
                self.warnings.push(error.to_string());
            }
        }
    }

    /// The variables of a data section; bytes that no symbol covers are kept as one unnamed variable if there are
    /// no symbols at all.
    fn variables(&self, section: usize, size: u64, init: &[u8], out: &mut Vec<GlobalVar>) {
        let Some(&base) = self.data.get(&section) else { return };
        let mut found = false;
        for symbol in self.module.symbols.iter().filter(|s| s.section == Some(section)) {
            if symbol.kind == SymbolKind::Section || symbol.size == 0 {
                continue;
            }
            let (start, end) = (symbol.value, symbol.value.saturating_add(symbol.size).min(size));
            if start >= end {
                continue;
            }
            let bytes = init.get(start as usize..(end as usize).min(init.len())).unwrap_or(&[]);
            out.push(GlobalVar {
                name: symbol.name.to_string(),
                address: base + start,
                size: end - start,
                init: bytes.to_vec(),
            });
            found = true;
        }
        if !found && size > 0 {
            let name = self.module.sections.get(section).map_or("", |s| &*s.name).to_owned();
            out.push(GlobalVar { name, address: base, size, init: init.to_vec() });
        }
    }

    /// Constant banks whose address a relocation took.
    fn taken_constants(&self) -> Vec<MappedBank> {
        let taken = |bank: &ConstantBank<'_>| {
            let address = *self.data.get(&bank.section)?;
            Some(MappedBank { bank: bank.bank, address })
        };
        self.module.constants.iter().filter_map(taken).collect()
    }
}
