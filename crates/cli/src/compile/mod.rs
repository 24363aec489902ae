//! CUDA C++ and PTX to machine code, with the compilers that the user has.
//!
//! Source is compiled by NVRTC, which needs neither a toolkit nor a GPU nor a host compiler, or by nvcc; PTX is assembled
//! by ptxas. [`find`](mod@find) says where they are looked for. Results are kept in a [cache](cache) by content. What a
//! compiler prints is handed on as it is.

pub mod cache;
mod error;
pub mod find;
mod includes;
mod nvcc;
mod nvrtc;
mod ptxas;

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

pub use cache::Cache;
pub use error::CompileError;
use find::Places;

use lanescope_sass::isa::Arch;

/// Architecture for which source is compiled unless another is asked for.
pub const DEFAULT_ARCH: &str = "sm_90";

/// Which compilers to use.
#[derive(Clone, Debug, Default)]
pub struct Tools {
    /// NVRTC's library; else it is looked for.
    pub nvrtc: Option<PathBuf>,
    /// The nvcc program; else it is looked for when NVRTC will not do.
    pub nvcc: Option<PathBuf>,
    /// The ptxas program; else it is looked for.
    pub ptxas: Option<PathBuf>,
    /// Where results are kept.
    pub cache: Cache,
    /// Assemble PTX with ptxas instead of running it as PTX.
    pub via_ptxas: bool,
}

/// What a launch file says about compiling.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Options for the compiler as they are.
    pub options: Vec<String>,
    /// Folders with headers.
    pub include: Vec<PathBuf>,
}

/// What to compile or to assemble.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The file, for messages and the line table.
    pub path: &'a Path,
    /// Its text.
    pub source: &'a [u8],
    /// Architecture.
    pub arch: Arch,
    /// The launch file's options.
    pub options: &'a Options,
    /// The kernel, if one is asked for: a template's instance is generated if it has `<`.
    pub kernel: Option<&'a str>,
}

/// Machine code from a compiler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Built {
    /// The cubin.
    pub cubin: Vec<u8>,
    /// The PTX it was made from.
    pub ptx: Vec<u8>,
    /// What the compiler said: warnings and remarks.
    pub log: String,
    /// The kernel's mangled name, where its instance was generated on demand.
    pub lowered: Option<String>,
    /// Compiler and version.
    pub compiler: String,
}

/// Compiles a `.cu` file.
pub fn cuda(job: &Job<'_>, tools: &Tools) -> Result<Built, CompileError> {
    if let Some(path) = &tools.nvcc {
        return nvcc::compile(path, job, tools);
    }
    let places = Places::of_environment();
    nvrtc::compile(job, tools, &places).or_else(|error| {
        let other = match &error {
            // Host code and host headers are beyond NVRTC; nvcc has a host compiler for them.
            CompileError::Source { log, .. } => tools.nvrtc.is_none() && nvrtc::lacks_header(log),
            CompileError::NoCompiler { .. } => true,
            _ => false,
        };
        match other.then(|| find::nvcc(&places)).flatten() {
            Some(nvcc) => nvcc::compile(&nvcc, job, tools),
            None => Err(error),
        }
    })
}

/// Assembles a `.ptx` file with ptxas.
pub fn ptx(job: &Job<'_>, tools: &Tools) -> Result<Built, CompileError> {
    ptxas::assemble(job, tools)
}

/// The architecture to assemble PTX for, unless one is asked for: its own `.target` where that is `sm_90` or
/// later, so that what it uses is there.
pub fn arch_of_ptx<'a>(targets: impl IntoIterator<Item = &'a str>) -> Option<Arch> {
    targets.into_iter().filter_map(|t| t.parse::<Arch>().ok()).filter(|a| a.sm() >= 90).max()
}

/// The name of a cached result: everything that decides about it goes in.
struct Key(Sha256);

impl Key {
    fn new(compiler: &str, job: &Job<'_>) -> Key {
        let mut key = Key(Sha256::new());
        key.add(compiler.as_bytes());
        key.add(job.arch.to_string().as_bytes());
        // The line table names the file.
        let path = std::path::absolute(job.path).unwrap_or_else(|_| job.path.to_path_buf());
        key.add(path.as_os_str().as_encoded_bytes());
        key
    }

    /// Length first, so that two parts never read as one.
    fn add(&mut self, part: &[u8]) {
        self.0.update((part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    fn text(self) -> String {
        self.0.finalize().iter().map(|b| format!("{b:02x}")).collect()
    }
}

/// A file's identity for a key: its place, size and time of change.
fn identity(path: &Path) -> String {
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let meta = std::fs::metadata(&real).ok();
    let time = meta.as_ref().and_then(|m| m.modified().ok()).and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
    format!("{} {} {}", real.display(), meta.map_or(0, |m| m.len()), time.map_or(0, |t| t.as_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptx_is_assembled_for_its_own_target() {
        let arch = |targets: &[&str]| arch_of_ptx(targets.iter().copied()).map(|a| a.to_string());
        assert_eq!(arch(&["sm_100a"]).as_deref(), Some("sm_100a"));
        assert_eq!(arch(&["sm_52", "texmode_independent"]), None);
        assert_eq!(arch(&[]), None);
        assert_eq!(arch(&["sm_120", "debug"]).as_deref(), Some("sm_120"));
    }

    #[test]
    fn keys_do_not_run_together() {
        let options = Options::default();
        let job = Job {
            path: Path::new("k.cu"),
            source: b"",
            arch: Arch::from_sm(90).expect("known"),
            options: &options,
            kernel: None,
        };
        let key = |parts: &[&str]| {
            let mut key = Key::new("c", &job);
            parts.iter().for_each(|p| key.add(p.as_bytes()));
            key.text()
        };
        assert_eq!(key(&["a", "b"]), key(&["a", "b"]));
        assert_ne!(key(&["a", "b"]), key(&["ab", ""]));
        assert_ne!(key(&["a", "b"]), key(&["b", "a"]));
        assert_eq!(key(&[]).len(), 64);
    }
}
