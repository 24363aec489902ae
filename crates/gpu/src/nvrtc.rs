//! NVRTC: CUDA C++ source to machine code and PTX.
//!
//! The library is opened from a path; its functions have had the same C signatures since CUDA 11.2, and each is looked
//! up by name before any of them is called. Options are handed on as they are given, and the compiler's log comes back
//! as it is: who knows NVRTC's messages should find them unchanged.

mod program;
mod table;

use std::path::{Path, PathBuf};

use program::Program;
use table::Table;

/// The compiler's parser recurses with the nesting of the source, and an overflow would end the whole process; the default
/// stack of a thread ends early. Memory of it that is not touched costs nothing.
const STACK: usize = 1 << 30;
/// Brackets may be nested so deep: at 2.6 kB of stack a level, as measured, far from the end.
const DEEPEST: usize = 50_000;

/// Why nothing was compiled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NvrtcError {
    /// The library cannot be opened.
    #[error("cannot load {path}: {error}")]
    Load {
        /// The file.
        path: String,
        /// What the loader said.
        error: String,
    },
    /// A function is missing: the library is older than CUDA 11.2, or none of NVRTC's.
    #[error("{path} has no function {name}: it is no NVRTC of CUDA 11.2 or later")]
    Missing {
        /// The file.
        path: String,
        /// The function.
        name: &'static str,
    },
    /// A call failed for another reason than the source.
    #[error("NVRTC failed: {call}: {error}")]
    Call {
        /// The function.
        call: &'static str,
        /// NVRTC's name of the error.
        error: String,
    },
    /// The source does not compile.
    #[error("{log}")]
    Source {
        /// The compiler's log.
        log: String,
    },
    /// The source, a name or an option has a zero byte.
    #[error("{what} has a zero byte")]
    Zero {
        /// `the source`, `an option`, ...
        what: &'static str,
    },
    /// Brackets are nested so deep that the compiler would overflow its stack.
    #[error("brackets are nested {depth} deep; the compiler's parser can do {DEEPEST}")]
    Nesting {
        /// How deep.
        depth: usize,
    },
    /// A thread for the compiler could not be started.
    #[error("cannot start a thread for the compiler: {0}")]
    Thread(std::io::Error),
}

/// What to compile.
#[derive(Clone, Debug, Default)]
pub struct Request<'a> {
    /// The text.
    pub source: &'a [u8],
    /// The file's name, for messages and the line table.
    pub name: &'a str,
    /// Options, `--gpu-architecture` included.
    pub options: &'a [String],
    /// Instances of templates to generate, such as `scan<float>`.
    pub instances: &'a [String],
}

/// What came out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compiled {
    /// Machine code; empty if the options ask for none (`--gpu-architecture=compute_90`).
    pub cubin: Vec<u8>,
    /// PTX, without the zero byte at its end.
    pub ptx: Vec<u8>,
    /// Warnings and remarks.
    pub log: String,
    /// Mangled names of the instances asked for, in their order.
    pub lowered: Vec<String>,
}

/// NVRTC, loaded.
#[derive(Debug)]
pub struct Nvrtc {
    table: Table,
    path: PathBuf,
    version: (i32, i32),
}

impl Nvrtc {
    /// Opens the library. `path` is a file, or a bare name that the system's loader looks for.
    ///
    /// Loading runs the library's initialisers: open only files that the user chose or that a package put there.
    pub fn load(path: &Path) -> Result<Nvrtc, NvrtcError> {
        let table = Table::load(path)?;
        let version = table.version()?;
        Ok(Nvrtc { table, path: path.to_path_buf(), version })
    }

    /// As it was given to [`Nvrtc::load`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// CUDA version, such as `(12, 9)`.
    pub fn version(&self) -> (i32, i32) {
        self.version
    }

    /// Architectures it compiles for, such as 90, in growing order.
    pub fn architectures(&self) -> Result<Vec<i32>, NvrtcError> {
        self.table.architectures()
    }

    /// Compiles one source text.
    pub fn compile(&self, request: &Request<'_>) -> Result<Compiled, NvrtcError> {
        let depth = nesting(request.source);
        if depth > DEEPEST {
            return Err(NvrtcError::Nesting { depth });
        }
        std::thread::scope(|scope| {
            let work = || self.compile_here(request);
            let thread = std::thread::Builder::new().name("nvrtc".into()).stack_size(STACK);
            let handle = thread.spawn_scoped(scope, work).map_err(NvrtcError::Thread)?;
            handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn compile_here(&self, request: &Request<'_>) -> Result<Compiled, NvrtcError> {
        let program = Program::new(&self.table, request.source, request.name)?;
        for instance in request.instances {
            program.add_instance(instance)?;
        }
        program.compile(request.options)?;
        Ok(Compiled {
            cubin: program.cubin()?,
            ptx: program.ptx()?,
            log: program.log()?,
            lowered: request.instances.iter().map(|i| program.lowered(i)).collect::<Result<_, _>>()?,
        })
    }
}

/// How deep brackets are nested. Those in comments and texts count too, which only matters to texts made to break it.
fn nesting(source: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0usize, 0);
    for byte in source {
        match byte {
            b'(' | b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nesting_is_counted_over_all_brackets() {
        assert_eq!(nesting(b""), 0);
        assert_eq!(nesting(b"f(a[{1}], (2))"), 3);
        assert_eq!(nesting(b")))((("), 3);
    }

    #[test]
    fn what_is_no_library_is_refused() {
        let e = Nvrtc::load(Path::new("/nowhere/libnvrtc.so")).map(|_| ()).unwrap_err().to_string();
        assert!(e.starts_with("cannot load /nowhere/libnvrtc.so: "), "{e}");
    }
}
