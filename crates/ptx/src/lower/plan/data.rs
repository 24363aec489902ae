//! Addresses and initial values of variables.

use lanescope_ir::GlobalVar;

use super::{Planner, alignment, variable_size};
use crate::diagnostic::Diagnostic;
use crate::lower::launch;
use crate::tree::{Initializer, Linkage, LocalId, RelocationTarget, Space, Variable, VariableId};

/// First address of device variables.
const GLOBAL_BASE: u64 = 0x10_0000_0000;
/// What one variable may take, so that offsets fit everywhere.
const MAX_SIZE: u64 = 1 << 38;
/// Where the windows of shared and local memory begin, less a margin.
const MAX_GLOBAL: u64 = 0x6fff << 32;
/// Bytes of all initial values, each up to the last byte that is given.
const MAX_INITIAL: u64 = 1 << 30;

impl Planner<'_, '_> {
    fn error(&mut self, variable: &Variable<'_>, message: String) {
        self.plan.diagnostics.push(Diagnostic::error(variable.span, message));
    }

    /// Addresses for variables.
    pub(super) fn data(&mut self) {
        let module = self.module;
        let mut next = GLOBAL_BASE;
        let mut shared = 0u64;
        let mut open: Vec<(VariableId, u32)> = Vec::new();
        // Constants lie together, so that an address tells that it is one of theirs.
        let start = next;
        self.constants(&mut next);
        self.plan.constants = start..next;
        for (at, variable) in module.variables.iter().enumerate() {
            let id = VariableId(at as u32);
            let used = self.variables.contains(&id);
            match variable.space {
                Space::Global => {
                    if variable.linkage == Linkage::Extern {
                        if used {
                            self.error(variable, format!("`{}` is defined in another module", variable.name));
                        }
                        continue;
                    }
                    if let Some(address) = self.place_global(variable, &mut next) {
                        self.plan.module.insert(id, address);
                    }
                }
                Space::Shared if used => {
                    if variable.dims.first() == Some(&None) {
                        open.push((id, alignment(variable)));
                    } else if let Some(address) = self.place_shared(variable, &mut shared) {
                        self.plan.module.insert(id, address);
                    }
                }
                Space::Local if used => {
                    self.error(variable, format!("`{}`: a .local variable outside of a function", variable.name));
                }
                _ => {}
            }
        }
        for at in 0..self.plan.functions.len() {
            let id = self.plan.functions[at];
            let Some(body) = self.function(id).and_then(|f| f.body.as_ref()) else { continue };
            for (local, variable) in body.variables.iter().enumerate() {
                let key = (id, LocalId(local as u32));
                let address = match variable.space {
                    Space::Shared if variable.dims.first() == Some(&None) => {
                        self.error(
                            variable,
                            format!("`{}`: an open .shared array must stand outside of functions", variable.name),
                        );
                        None
                    }
                    Space::Shared => self.place_shared(variable, &mut shared),
                    Space::Global => self.place_global(variable, &mut next),
                    _ => None,
                };
                if let Some(address) = address {
                    self.plan.bodies.insert(key, address);
                }
            }
        }
        // Open arrays all begin where the static variables end.
        let align = open.iter().map(|&(_, align)| align).max().unwrap_or(1).max(16);
        let end = if open.is_empty() { shared } else { shared.next_multiple_of(u64::from(align)) };
        for (id, _) in open {
            self.plan.module.insert(id, end);
        }
        self.plan.shared_size = u32::try_from(end).unwrap_or(u32::MAX);
        self.initial_values();
    }

    /// Addresses for `.const` variables, of the module and of bodies.
    fn constants(&mut self, next: &mut u64) {
        let module = self.module;
        for (at, variable) in module.variables.iter().enumerate().filter(|(_, it)| it.space == Space::Const) {
            let id = VariableId(at as u32);
            if variable.linkage == Linkage::Extern {
                if self.variables.contains(&id) {
                    self.error(variable, format!("`{}` is defined in another module", variable.name));
                }
            } else if let Some(address) = self.place_global(variable, next) {
                self.plan.module.insert(id, address);
            }
        }
        for at in 0..self.plan.functions.len() {
            let id = self.plan.functions[at];
            let Some(body) = self.function(id).and_then(|f| f.body.as_ref()) else { continue };
            for (local, variable) in body.variables.iter().enumerate().filter(|(_, it)| it.space == Space::Const) {
                if let Some(address) = self.place_global(variable, next) {
                    self.plan.bodies.insert((id, LocalId(local as u32)), address);
                }
            }
        }
    }

    fn place_shared(&mut self, variable: &Variable<'_>, end: &mut u64) -> Option<u64> {
        let size = variable_size(variable);
        let address = end.next_multiple_of(u64::from(alignment(variable)));
        if size > u64::from(u32::MAX) || address + size > u64::from(u32::MAX) {
            self.error(variable, format!("`{}` is too large for shared memory", variable.name));
            return None;
        }
        *end = address + size;
        Some(address)
    }

    fn place_global(&mut self, variable: &Variable<'_>, next: &mut u64) -> Option<u64> {
        let size = variable_size(variable);
        if size > MAX_SIZE {
            self.error(variable, format!("`{}` is too large", variable.name));
            return None;
        }
        let address = next.next_multiple_of(256);
        // A gap behind each, so that running off its end is noticed.
        *next = address + size + 4096;
        self.initial += variable.initializer.as_ref().map_or(0, |init| init.end().min(size));
        if *next > MAX_GLOBAL || self.initial > MAX_INITIAL {
            self.error(variable, format!("`{}` and the variables before it are too large", variable.name));
            return None;
        }
        let init = variable.initializer.as_ref().map_or_else(Vec::new, |init| bytes(init, size));
        self.plan.globals.push(GlobalVar { name: variable.name.to_owned(), address, size, init });
        Some(address)
    }

    /// Puts addresses into initial values.
    fn initial_values(&mut self) {
        let module = self.module;
        for (at, variable) in module.variables.iter().enumerate() {
            let Some(&address) = self.plan.module.get(&VariableId(at as u32)) else { continue };
            let Some(init) = &variable.initializer else { continue };
            for relocation in &init.relocations {
                let value = match relocation.target {
                    Some(RelocationTarget::Function(f)) => self.plan.address_of(f),
                    Some(RelocationTarget::Variable(v)) => {
                        let shared = module.variables.get(v.index()).is_some_and(|v| v.space == Space::Shared);
                        let window = if shared && relocation.generic { launch::SHARED_WINDOW } else { 0 };
                        self.plan.module.get(&v).map(|&address| address + window)
                    }
                    None => None,
                };
                let Some(value) = value else { continue };
                let mut value = value.wrapping_add_signed(relocation.addend);
                if let Some(mask) = relocation.mask.filter(|&m| m != 0) {
                    value = (value & mask) >> mask.trailing_zeros();
                }
                let Ok(found) = self.plan.globals.binary_search_by_key(&address, |g| g.address) else { continue };
                let global = &mut self.plan.globals[found];
                let (start, width) = (relocation.offset as usize, usize::from(relocation.width.min(8)));
                let end = start.saturating_add(width);
                if end as u64 <= global.size.min(MAX_INITIAL) {
                    if global.init.len() < end {
                        global.init.resize(end, 0);
                    }
                    global.init[start..end].copy_from_slice(&value.to_le_bytes()[..width]);
                }
            }
        }
    }
}

/// The bytes of an initial value up to its last one.
fn bytes(init: &Initializer<'_>, size: u64) -> Vec<u8> {
    let mut out = Vec::new();
    for piece in &init.pieces {
        let end = piece.offset.saturating_add(piece.bytes.len() as u64);
        if end > size {
            continue;
        }
        if (out.len() as u64) < end {
            out.resize(end as usize, 0);
        }
        out[piece.offset as usize..end as usize].copy_from_slice(&piece.bytes);
    }
    out
}
