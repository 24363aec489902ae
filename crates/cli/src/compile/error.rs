//! Why nothing was compiled.

use lanescope_gpu::nvrtc::NvrtcError;

/// Why nothing was compiled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// No compiler.
    #[error(
        "{path} is CUDA source, and no compiler for it was found\n  install one, no GPU and no toolkit needed:\n    pip install nvidia-cuda-nvrtc-cu12 nvidia-cuda-runtime-cu12 nvidia-cuda-cccl-cu12   (CUDA 12)\n    pip install nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cuda-cccl                  (CUDA 13)\n  or name NVRTC's library with --nvrtc PATH or LANESCOPE_NVRTC"
    )]
    NoCompiler {
        /// The source.
        path: String,
    },
    /// No assembler.
    #[error(
        "{path} is PTX, and ptxas was not found\n  install it, no GPU and no toolkit needed:\n    pip install nvidia-cuda-nvcc-cu12   (CUDA 12)\n    pip install nvidia-cuda-nvcc        (CUDA 13)\n  or name the program with --ptxas PATH or LANESCOPE_PTXAS"
    )]
    NoPtxas {
        /// The source.
        path: String,
    },
    /// NVRTC cannot be used.
    #[error("{0}")]
    Nvrtc(NvrtcError),
    /// No compiler that was found knows the architecture.
    #[error("{compiler} does not compile for {arch}\n  it knows: {known}")]
    Unsupported {
        /// Compiler and version.
        compiler: String,
        /// The architecture asked for.
        arch: String,
        /// Those it compiles for.
        known: String,
    },
    /// The source is wrong. With what the compiler printed.
    #[error("{path} does not compile ({compiler}, {arch}):\n{log}{}", hint.as_ref().map(|h| format!("\n  {h}")).unwrap_or_default())]
    Source {
        /// The source.
        path: String,
        /// Compiler and version.
        compiler: String,
        /// Architecture.
        arch: String,
        /// Its log as it is.
        log: String,
        /// What to do, where we know more than the compiler.
        hint: Option<String>,
    },
    /// A program could not be run, or did not do what it should.
    #[error("{program}: {error}")]
    Program {
        /// The program.
        program: String,
        /// What went wrong.
        error: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_install_is_said_to_the_letter() {
        let error = CompileError::NoCompiler { path: "k.cu".into() }.to_string();
        assert!(error.contains("pip install nvidia-cuda-nvrtc-cu12 "), "{error}");
        assert!(error.contains("pip install nvidia-cuda-nvrtc "), "{error}");
        let error = CompileError::NoPtxas { path: "k.ptx".into() }.to_string();
        assert!(error.contains("pip install nvidia-cuda-nvcc-cu12"), "{error}");
    }
}
