//! Finding a kernel in a cubin, a fatbin, a library or an executable; source is compiled first.

use std::path::Path;

use lanescope_ir::Kernel;
use lanescope_ptx::lower;
use lanescope_ptx::tree::FunctionKind;
use lanescope_report::Level;
use lanescope_sass::container::{self, Entry, EntryKind, Module};
use lanescope_sass::{isa, kernel};

use crate::compile::{self, Built, CompileError, Options, Tools};
use crate::diagnostics;
use crate::names::{base_name, demangle, nearest};

/// Names listed in a message before the rest is counted.
const LISTED: usize = 12;

/// Why a module or a kernel in it cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModuleError {
    /// The file cannot be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// The file.
        path: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// The result cannot be written.
    #[error("cannot write the result")]
    Write(#[source] std::io::Error),
    /// PTX text.
    #[error("{path} is PTX, which has no machine code\n  have ptxas make some: add --via ptxas")]
    Ptx {
        /// The file.
        path: String,
    },
    /// PTX text with errors.
    #[error("{path} is not valid PTX\n{rendered}")]
    PtxErrors {
        /// The file.
        path: String,
        /// The errors with their places underlined.
        rendered: String,
    },
    /// PTX that is no text.
    #[error("{path} is no PTX: it is not UTF-8 text from byte {at} on")]
    PtxEncoding {
        /// The file.
        path: String,
        /// Where.
        at: usize,
    },
    /// A compiler could not make machine code of it.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The file's structure is broken, or it holds no GPU code.
    #[error("{path}: {error}")]
    Container {
        /// The file.
        path: String,
        /// Why.
        error: Box<container::Error>,
    },
    /// GPU code, but no machine code that could be run.
    #[error("{path} has no machine code{}: it holds {holds}", wanted.as_ref().map(|a| format!(" for {a}")).unwrap_or_default())]
    NoCode {
        /// The file.
        path: String,
        /// The architecture asked for.
        wanted: Option<String>,
        /// What it holds instead.
        holds: String,
    },
    /// Code, but nothing that could be launched.
    #[error("{path} has no kernel")]
    Empty {
        /// The file.
        path: String,
    },
    /// A name that is no architecture.
    #[error("{0}")]
    Arch(#[from] isa::ArchError),
    /// No kernel of that name.
    #[error("{path} has no kernel `{name}`{}\n  kernels: {kernels}", suggest.as_ref().map(|s| format!("; did you mean `{s}`?")).unwrap_or_default())]
    NoKernel {
        /// The file.
        path: String,
        /// The name asked for.
        name: String,
        /// The nearest.
        suggest: Option<String>,
        /// What there is.
        kernels: String,
    },
    /// No name given, or one that fits several kernels.
    #[error("{path}: {}; say which one with `kernel = \"...\"`\n  kernels: {kernels}", name.as_ref().map_or("there are several kernels".to_owned(), |n| format!("`{n}` fits several kernels")))]
    Ambiguous {
        /// The file.
        path: String,
        /// The name asked for.
        name: Option<String>,
        /// The candidates.
        kernels: String,
    },
    /// The kernel cannot be loaded.
    #[error("{path}: {error}")]
    Load {
        /// The file.
        path: String,
        /// Why.
        error: Box<kernel::LoadError>,
    },
}

/// What a module is wanted for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The kernel.
    pub kernel: Option<&'a str>,
    /// The architecture.
    pub arch: Option<&'a str>,
    /// Options for compilers.
    pub options: &'a Options,
    /// Compilers.
    pub tools: &'a Tools,
    /// Source is compiled to PTX only, and that is run.
    pub as_ptx: bool,
    /// Lanes of a warp, for PTX.
    pub warp_size: u32,
}

/// A file with machine code.
#[derive(Clone, Debug, Default)]
pub struct Code {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// How it was made, if a compiler made it just now.
    pub built: Option<Built>,
}

/// Whether a file is CUDA source by its name.
pub fn is_cuda(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "cu")
}

/// Whether a file is PTX by its name.
pub fn is_ptx(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "ptx")
}

/// Reads a file with machine code; CUDA source is compiled, PTX is assembled if that is asked for.
pub fn code(path: &Path, request: &Request<'_>) -> Result<Code, ModuleError> {
    let shown = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|error| ModuleError::Read { path: shown.clone(), error })?;
    let mut arch = request.arch.map(str::parse::<isa::Arch>).transpose()?;
    if !is_cuda(path) && !is_ptx(path) {
        return Ok(Code { bytes, built: None });
    }
    if is_ptx(path) {
        if !request.tools.via_ptxas {
            return Err(ModuleError::Ptx { path: shown });
        }
        let parsed = lanescope_ptx::parse(ptx_text(&shown, &bytes)?);
        arch = arch.or_else(|| compile::arch_of_ptx(parsed.module.targets.iter().copied()));
    }
    let arch = match arch {
        Some(arch) => arch,
        None => compile::DEFAULT_ARCH.parse()?,
    };
    let job = compile::Job { path, source: &bytes, arch, options: request.options, kernel: request.kernel };
    let mut built = if is_ptx(path) { compile::ptx(&job, request.tools)? } else { compile::cuda(&job, request.tools)? };
    let bytes = std::mem::take(&mut built.cubin);
    Ok(Code { bytes, built: Some(built) })
}

/// A kernel with where it came from.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The kernel.
    pub kernel: Kernel,
    /// Which instructions it has.
    pub level: Level,
    /// How its code was made, if a compiler made it just now.
    pub built: Option<Built>,
    /// The file's machine code; empty for PTX.
    pub code: Vec<u8>,
}

/// Loads a kernel from a file: machine code, source that is compiled, or PTX as it is.
pub fn load_file(path: &Path, request: &Request<'_>) -> Result<Loaded, ModuleError> {
    let shown = path.display().to_string();
    if is_ptx(path) && !request.tools.via_ptxas {
        let bytes = std::fs::read(path).map_err(|error| ModuleError::Read { path: shown.clone(), error })?;
        let mut kernel = load_ptx_for(&shown, &bytes, request.kernel, request.warp_size)?;
        if let Some(arch) = request.arch {
            kernel.warnings.push(format!("{arch} has no part in it: PTX runs as it is; --via ptxas assembles it"));
        }
        return Ok(Loaded { kernel, level: Level::Ptx, built: None, code: Vec::new() });
    }
    let Code { bytes, built } = code(path, request)?;
    let name = built.as_ref().and_then(|b| b.lowered.as_deref()).or(request.kernel);
    if let Some(built) = built.clone().filter(|b| request.as_ptx && is_cuda(path) && !b.ptx.is_empty()) {
        // The text is nowhere in a file.
        let shown = format!("PTX of {shown}");
        let kernel = load_ptx_for(&shown, &built.ptx, name, request.warp_size)?;
        return Ok(Loaded { kernel, level: Level::Ptx, built: Some(built), code: Vec::new() });
    }
    // A compiler made it for one architecture, letters and all.
    let arch = request.arch.filter(|_| built.is_none());
    let kernel = load(&shown, &bytes, name, arch)?;
    Ok(Loaded { kernel, level: Level::Sass, built, code: bytes })
}

pub(crate) fn ptx_text<'a>(path: &str, bytes: &'a [u8]) -> Result<&'a str, ModuleError> {
    std::str::from_utf8(bytes).map_err(|e| ModuleError::PtxEncoding { path: path.to_owned(), at: e.valid_up_to() })
}

/// Loads a kernel from PTX text.
pub fn load_ptx(path: &str, bytes: &[u8], name: Option<&str>) -> Result<Kernel, ModuleError> {
    load_ptx_for(path, bytes, name, 32)
}

/// The same for warps of `warp_size` lanes.
pub fn load_ptx_for(path: &str, bytes: &[u8], name: Option<&str>, warp_size: u32) -> Result<Kernel, ModuleError> {
    let text = ptx_text(path, bytes)?;
    let parsed = lanescope_ptx::parse_for(text, warp_size);
    let wrong = |errors: lower::Errors| ModuleError::PtxErrors {
        path: path.to_owned(),
        rendered: diagnostics::errors(path, text, &errors),
    };
    if !parsed.is_ok() {
        return Err(wrong(lower::errors(&parsed)));
    }
    let functions = parsed.module.functions.iter();
    let kernels: Vec<&str> =
        functions.filter(|f| f.kind == FunctionKind::Entry && f.body.is_some()).map(|f| f.name).collect();
    let mut found: Vec<(usize, &str)> = kernels.iter().filter_map(|k| Some((rank(k, name)?, *k))).collect();
    let best = found.iter().map(|f| f.0).min();
    found.retain(|f| Some(f.0) == best);
    match (found.as_slice(), name) {
        ([(_, mangled)], _) => lower::load(&parsed, mangled, lower::Options::default()).map_err(wrong),
        ([], Some(name)) => Err(no_kernel(path, name, kernels.into_iter().map(str::to_owned).collect())),
        ([], None) => Err(ModuleError::Empty { path: path.into() }),
        (several, _) => Err(ModuleError::Ambiguous {
            path: path.into(),
            name: name.map(str::to_owned),
            kernels: list(several.iter().map(|f| f.1.to_owned()).collect()),
        }),
    }
}

/// Loads a kernel from a file's bytes. `path` is for messages; `arch` picks one architecture out of several, else the
/// newest supported one that has the kernel is taken.
pub fn load(path: &str, bytes: &[u8], name: Option<&str>, arch: Option<&str>) -> Result<Kernel, ModuleError> {
    let container = |error| ModuleError::Container { path: path.to_owned(), error: Box::new(error) };
    let wanted = arch.map(str::parse::<isa::Arch>).transpose()?;
    let file = container::open(bytes).map_err(container)?;
    let fits = |e: &&Entry<'_>| wanted.is_none_or(|w| matches(w, arch, e.arch));
    let mut cubins: Vec<&Entry<'_>> = file.cubins().filter(fits).collect();
    if cubins.is_empty() {
        return Err(ModuleError::NoCode { path: path.into(), wanted: arch.map(str::to_owned), holds: holds(&file) });
    }
    // Newest supported first; what has no decoder comes last and is refused by the loader if nothing else fits.
    cubins.sort_by_key(|e| {
        let supported = isa::Arch::from_sm(e.arch.sm.into()).is_ok();
        (std::cmp::Reverse((supported, e.arch.sm)), e.arch.variant, e.offset)
    });
    let mut kernels: Vec<String> = Vec::new();
    let mut damaged = None;
    for same in cubins.chunk_by(|a, b| a.arch.sm == b.arch.sm) {
        let mut found: Vec<(usize, &Entry<'_>, String)> = Vec::new();
        for entry in same {
            // One damaged cubin among many must not hide the kernels of the others.
            let data = match entry.bytes() {
                Ok(data) => data,
                Err(error) => {
                    damaged.get_or_insert(error);
                    continue;
                }
            };
            let module = match Module::parse(&data) {
                Ok(module) => module,
                Err(error) => {
                    damaged.get_or_insert(error);
                    continue;
                }
            };
            for k in module.kernels() {
                if let Some(rank) = rank(&k.name, name) {
                    found.push((rank, entry, k.name.to_string()));
                }
                kernels.push(k.name.to_string());
            }
        }
        let Some(best) = found.iter().map(|f| f.0).min() else { continue };
        found.retain(|f| f.0 == best);
        found.dedup_by(|a, b| a.2 == b.2);
        if let [(_, entry, mangled)] = found.as_slice() {
            let data = entry.bytes().map_err(container)?;
            let module = Module::parse(&data).map_err(container)?;
            return kernel::load(&module, mangled)
                .map_err(|error| ModuleError::Load { path: path.to_owned(), error: Box::new(error) });
        }
        let candidates: Vec<String> = found.into_iter().map(|f| f.2).collect();
        return Err(ModuleError::Ambiguous {
            path: path.into(),
            name: name.map(str::to_owned),
            kernels: list(candidates),
        });
    }
    if let (Some(error), true) = (damaged, kernels.is_empty()) {
        return Err(container(error));
    }
    let Some(name) = name else {
        return Err(ModuleError::Empty { path: path.into() });
    };
    Err(no_kernel(path, name, kernels))
}

pub(crate) fn no_kernel(path: &str, name: &str, kernels: Vec<String>) -> ModuleError {
    let shown: Vec<String> = kernels.iter().map(|k| demangle(k)).collect();
    let bases = shown.iter().map(|s| base_name(s));
    let suggest = nearest(name, kernels.iter().map(String::as_str).chain(bases)).map(str::to_owned);
    ModuleError::NoKernel { path: path.into(), name: name.to_owned(), suggest, kernels: list(kernels) }
}

/// How well a kernel's mangled name fits what was asked for; lower is better.
fn rank(mangled: &str, wanted: Option<&str>) -> Option<usize> {
    let Some(wanted) = wanted else { return Some(0) };
    if mangled == wanted {
        return Some(0);
    }
    let demangled = demangle(mangled);
    if demangled == wanted {
        return Some(1);
    }
    // `kernel<float>` without return type and parameters.
    let bare = demangled.strip_prefix("void ").unwrap_or(&demangled);
    if bare == wanted || bare.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('(')) {
        return Some(2);
    }
    (base_name(&demangled) == wanted).then_some(3)
}

fn matches(wanted: isa::Arch, text: Option<&str>, have: container::Arch) -> bool {
    let letter = text.is_some_and(|t| t.ends_with(['a', 'f']));
    wanted.sm() == u32::from(have.sm) && (!letter || wanted.to_string() == have.to_string())
}

fn holds(file: &container::Container<'_>) -> String {
    let mut kinds: Vec<String> = file
        .entries
        .iter()
        .map(|e| match e.kind {
            EntryKind::Cubin => format!("machine code for {}", e.arch),
            EntryKind::Ptx => format!("PTX for {}", e.arch),
            EntryKind::Other(n) => format!("an entry of kind {n}"),
        })
        .collect();
    kinds.sort();
    kinds.dedup();
    kinds.join(", ")
}

fn list(mut names: Vec<String>) -> String {
    names.sort();
    names.dedup();
    if names.is_empty() {
        return "none".into();
    }
    let more = names.len().saturating_sub(LISTED);
    let mut shown: Vec<String> = names
        .iter()
        .take(LISTED)
        .map(|n| {
            let d = demangle(n);
            if d == *n { d } else { format!("{d} [{n}]") }
        })
        .collect();
    if more > 0 {
        shown.push(format!("and {more} more (lanescope disasm --list shows all)"));
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_in_four_ways() {
        let m = "_ZN2at6kernelIfEEvPT_i";
        assert_eq!(demangle(m), "void at::kernel<float>(float*, int)");
        assert_eq!(rank(m, Some(m)), Some(0));
        assert_eq!(rank(m, Some("void at::kernel<float>(float*, int)")), Some(1));
        assert_eq!(rank(m, Some("at::kernel<float>")), Some(2));
        assert_eq!(rank(m, Some("kernel")), Some(3));
        assert_eq!(rank(m, Some("at")), None);
        assert_eq!(rank(m, None), Some(0));
    }

    #[test]
    fn files_that_hold_no_code_say_what_to_do() {
        let e = load("x", b"hello", None, None).unwrap_err().to_string();
        assert!(e.starts_with("x: "), "{e}");
        let e = load("x", b"hello", None, Some("hopper")).unwrap_err().to_string();
        assert!(e.contains("'hopper' is not an architecture name"), "{e}");
    }
}
