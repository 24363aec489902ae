//! From files to kernels at the levels that can be had.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use lanescope_analysis::uniformity::Facts;
use lanescope_ir::Kernel;
use lanescope_ptx::tree::FunctionKind;
use lanescope_report::Level;
use lanescope_sass::container::{self, EntryKind, Module};
use lanescope_sass::{isa, kernel};

use super::{CheckError, Settings};
use crate::compile::Options;
use crate::launch::args::Data;
use crate::levels;
use crate::module::{self, ModuleError, Request};
use crate::names::{base_name, demangle};
use crate::run::{self, Prepared};

/// Kernels of one file at most; a library can have tens of thousands.
const KERNELS: usize = 4096;

/// One kernel's code at one level.
pub(super) struct Code {
    pub(super) kernel: Kernel,
    pub(super) level: Level,
    pub(super) compiler: Option<String>,
    pub(super) facts: Facts,
    /// PTX: for a branch's instruction, what machine code made of it.
    pub(super) became: HashMap<u32, levels::Became>,
    pub(super) notes: Vec<String>,
}

/// One kernel.
pub(super) struct Subject {
    pub(super) input: String,
    /// Folders where its source may be.
    pub(super) dirs: Vec<PathBuf>,
    pub(super) codes: Vec<Code>,
}

/// Reads a file and appends its kernels. `names` gets the names of those passed over.
pub(super) fn read(
    file: &Path,
    settings: &Settings,
    out: &mut Vec<Subject>,
    names: &mut Vec<String>,
    notes: &mut Vec<String>,
) -> Result<(), CheckError> {
    if file.extension().is_some_and(|e| e == "toml") {
        return launch(file, settings, out);
    }
    let shown = file.display().to_string();
    let dirs: Vec<PathBuf> = file.parent().map(Path::to_path_buf).into_iter().collect();
    let facts = Facts { block: settings.block, grid: settings.grid, ..Facts::default() };
    let mut reading = Reading { shown, settings, facts, dirs, out, names, notes };
    if module::is_ptx(file) && !settings.tools.via_ptxas {
        let bytes = read_bytes(file)?;
        return reading.ptx(&bytes);
    }
    let options = Options::default();
    let request = Request {
        kernel: settings.kernel.as_deref(),
        arch: settings.arch.as_deref(),
        options: &options,
        tools: &settings.tools,
        as_ptx: false,
        warp_size: 32,
    };
    let code = module::code(file, &request)?;
    match code.built {
        Some(built) => reading.built(&code.bytes, &built),
        None => reading.machine_code(&code.bytes),
    }
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, ModuleError> {
    std::fs::read(path).map_err(|error| ModuleError::Read { path: path.display().to_string(), error })
}

/// Whether a kernel is the one that is asked for.
fn wanted(settings: &Settings, mangled: &str) -> bool {
    let Some(name) = settings.kernel.as_deref() else { return true };
    let demangled = demangle(mangled);
    let bare = demangled.strip_prefix("void ").unwrap_or(&demangled);
    mangled == name
        || demangled == name
        || base_name(&demangled) == name
        || bare.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('('))
}

/// A launch file: one kernel with its shape and its scalar arguments.
fn launch(file: &Path, settings: &Settings, out: &mut Vec<Subject>) -> Result<(), CheckError> {
    let run = run::Settings {
        arch: settings.arch.clone(),
        kernel: settings.kernel.clone(),
        tools: settings.tools.clone(),
        ..run::Settings::default()
    };
    let prepared = Prepared::open(file, &run)?;
    let facts_for = |kernel: &Kernel| {
        let mut facts = Facts {
            block: settings.block.or(Some(prepared.launch.block)),
            grid: settings.grid.or(Some(prepared.launch.grid)),
            dynamic_shared: Some(prepared.launch.dynamic_shared),
            ..Facts::default()
        };
        for (param, data) in kernel.params.iter().zip(&prepared.data) {
            if let Data::Value(bytes) = data {
                facts.argument(kernel, param.ordinal, bytes);
            }
        }
        facts
    };
    let module = prepared.dir.join(&prepared.launch.module);
    let mut dirs = vec![prepared.dir.clone()];
    dirs.extend(module.parent().map(Path::to_path_buf));
    let mut codes = vec![Code {
        facts: facts_for(&prepared.kernel),
        kernel: prepared.kernel.clone(),
        level: prepared.level,
        compiler: prepared.built.as_ref().map(|b| b.compiler.clone()),
        became: HashMap::new(),
        notes: Vec::new(),
    }];
    if let Some(built) = &prepared.built {
        let shown = module.with_extension("ptx").display().to_string();
        with_ptx(&shown, &prepared.code, &built.ptx, &mut codes);
        if let [sass, ptx] = codes.as_mut_slice() {
            ptx.facts = facts_for(&ptx.kernel);
            debug_assert_eq!(sass.kernel.name, ptx.kernel.name);
        }
    }
    out.push(Subject { input: file.display().to_string(), dirs, codes });
    Ok(())
}

/// Adds the level of PTX behind the machine code in `codes`.
fn with_ptx(shown: &str, cubin: &[u8], ptx: &[u8], codes: &mut Vec<Code>) {
    let Some(sass) = codes.first() else { return };
    let name = sass.kernel.name.clone();
    match module::load_ptx(shown, ptx, Some(&name)) {
        Ok(kernel) => {
            let mut notes = Vec::new();
            let became = match levels::became(&sass.kernel, cubin, &kernel, ptx) {
                Ok(became) => became,
                Err(e) => {
                    notes.push(format!("what machine code made of PTX branches is not known: {e}"));
                    HashMap::new()
                }
            };
            let facts = Facts { words: Vec::new(), ..sass.facts.clone() };
            codes.push(Code { kernel, level: Level::Ptx, compiler: None, facts, became, notes });
        }
        Err(e) => {
            if let Some(sass) = codes.first_mut() {
                sass.notes.push(format!("its PTX was not looked at: {e}"));
            }
        }
    }
}

/// One file that is being read.
struct Reading<'a> {
    shown: String,
    settings: &'a Settings,
    facts: Facts,
    dirs: Vec<PathBuf>,
    out: &'a mut Vec<Subject>,
    names: &'a mut Vec<String>,
    notes: &'a mut Vec<String>,
}

impl Reading<'_> {
    fn subject(&mut self, codes: Vec<Code>) {
        self.out.push(Subject { input: self.shown.clone(), dirs: self.dirs.clone(), codes });
    }

    /// PTX text alone.
    fn ptx(&mut self, bytes: &[u8]) -> Result<(), CheckError> {
        let text = module::ptx_text(&self.shown, bytes)?;
        let parsed = lanescope_ptx::parse(text);
        let functions = parsed.module.functions.iter();
        let kernels: Vec<String> = functions
            .filter(|f| f.kind == FunctionKind::Entry && f.body.is_some())
            .map(|f| f.name.to_owned())
            .collect();
        // Errors of the text come from loading it, so that they are shown in one way.
        if kernels.is_empty() || !parsed.is_ok() {
            module::load_ptx(&self.shown, bytes, None)?;
        }
        for name in kernels {
            if !wanted(self.settings, &name) {
                self.names.push(name);
                continue;
            }
            match module::load_ptx(&self.shown, bytes, Some(&name)) {
                Ok(kernel) => self.subject(vec![Code {
                    kernel,
                    level: Level::Ptx,
                    compiler: None,
                    facts: self.facts.clone(),
                    became: HashMap::new(),
                    notes: Vec::new(),
                }]),
                // One kernel of many that cannot be lowered must not hide the others.
                Err(e) if self.settings.kernel.is_none() => {
                    self.notes.push(format!("{} was not checked: {e}", demangle(&name)));
                }
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    /// What a compiler made just now: machine code and PTX.
    fn built(&mut self, cubin: &[u8], built: &crate::compile::Built) -> Result<(), CheckError> {
        let before = self.out.len();
        self.machine_code(cubin)?;
        let shown = Path::new(&self.shown).with_extension("ptx").display().to_string();
        for subject in &mut self.out[before..] {
            for code in &mut subject.codes {
                code.compiler = Some(built.compiler.clone());
            }
            with_ptx(&shown, cubin, &built.ptx, &mut subject.codes);
        }
        Ok(())
    }

    /// A cubin, or a file that holds cubins.
    fn machine_code(&mut self, bytes: &[u8]) -> Result<(), CheckError> {
        let shown = self.shown.clone();
        let fail = |error| ModuleError::Container { path: shown.clone(), error: Box::new(error) };
        let arch = self.settings.arch.as_deref();
        let wanted_arch = arch.map(str::parse::<isa::Arch>).transpose().map_err(ModuleError::from)?;
        let file = container::open(bytes).map_err(fail)?;
        let mut cubins: Vec<_> = file
            .entries
            .iter()
            .filter(|e| e.kind == EntryKind::Cubin)
            .filter(|e| wanted_arch.is_none_or(|w| w.sm() == u32::from(e.arch.sm)))
            .collect();
        if cubins.is_empty() {
            let mut holds: Vec<String> = file.entries.iter().map(|e| e.arch.to_string()).collect();
            holds.sort();
            holds.dedup();
            let wanted = arch.map(str::to_owned);
            return Err(ModuleError::NoCode { path: shown, wanted, holds: holds.join(", ") }.into());
        }
        // Of several builds of a kernel the newest that can be read.
        cubins.sort_by_key(|e| {
            let supported = isa::Arch::from_sm(e.arch.sm.into()).is_ok();
            (std::cmp::Reverse((supported, e.arch.sm)), e.arch.variant, e.offset)
        });
        let mut seen: std::collections::HashSet<String> = std::collections::HashSet::new();
        let (mut unsupported, mut passed) = (None, 0usize);
        let before = self.out.len();
        for entry in cubins {
            let loaded = entry.bytes().map_err(|e| e.to_string());
            let data = match loaded {
                Ok(data) => data,
                Err(e) => {
                    self.notes.push(format!("{shown}: a cubin for {} was not checked: {e}", entry.arch));
                    continue;
                }
            };
            let module = match Module::parse(&data) {
                Ok(module) => module,
                Err(e) => {
                    self.notes.push(format!("{shown}: a cubin for {} was not checked: {e}", entry.arch));
                    continue;
                }
            };
            for k in module.kernels() {
                let name = k.name.to_string();
                if !wanted(self.settings, &name) {
                    self.names.push(name);
                    continue;
                }
                if seen.contains(&name) {
                    continue;
                }
                if self.out.len() - before >= KERNELS {
                    passed += 1;
                    continue;
                }
                match kernel::load(&module, &name) {
                    Ok(kernel) => {
                        seen.insert(name);
                        self.subject(vec![Code {
                            kernel,
                            level: Level::Sass,
                            compiler: None,
                            facts: self.facts.clone(),
                            became: HashMap::new(),
                            notes: Vec::new(),
                        }]);
                    }
                    Err(error) => {
                        let error = ModuleError::Load { path: shown.clone(), error: Box::new(error) };
                        if unsupported.is_none() {
                            self.notes.push(format!("{} was not checked: {error}", demangle(&name)));
                            unsupported = Some(error);
                        }
                    }
                }
            }
        }
        if passed > 0 {
            self.notes.push(format!("{shown}: {passed} more kernels were not checked; name one with --kernel"));
        }
        match unsupported {
            Some(error) if self.out.len() == before => Err(error.into()),
            _ => Ok(()),
        }
    }
}
