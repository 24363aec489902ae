//! Flags about compilers, shared by the commands that read source.

use std::io::Write;
use std::path::PathBuf;

use clap::ValueEnum;
use lanescope::compile::{Built, Cache, Tools};

/// Where compilers are and what they are used for.
#[derive(clap::Args)]
#[command(next_help_heading = "Compiling")]
pub(super) struct Compilers {
    /// How a .ptx module is run.
    #[arg(long, value_enum, value_name = "HOW")]
    via: Option<Via>,
    /// NVRTC's library (libnvrtc.so), for .cu modules. Default: the Python environment's, then CUDA_HOME's, then
    /// the system's; LANESCOPE_NVRTC names one too.
    #[arg(long, value_name = "PATH", conflicts_with = "nvcc")]
    nvrtc: Option<PathBuf>,
    /// Compile .cu modules with this nvcc instead of NVRTC.
    #[arg(long, value_name = "PATH")]
    nvcc: Option<PathBuf>,
    /// The ptxas program; looked for like NVRTC, and in PATH.
    #[arg(long, value_name = "PATH")]
    ptxas: Option<PathBuf>,
    /// Compile again, and keep no result.
    #[arg(long)]
    no_cache: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Via {
    /// Assembled by ptxas, as machine code.
    Ptxas,
}

impl Compilers {
    pub(super) fn tools(&self) -> Tools {
        Tools {
            nvrtc: self.nvrtc.clone(),
            nvcc: self.nvcc.clone(),
            ptxas: self.ptxas.clone(),
            cache: if self.no_cache { Cache::Off } else { Cache::User },
            via_ptxas: self.via == Some(Via::Ptxas),
        }
    }
}

/// Warnings of the compiler, as it printed them.
pub(super) fn show_log(built: &Built) -> anyhow::Result<()> {
    if !built.log.is_empty() {
        writeln!(anstream::stderr(), "{}", built.log)?;
    }
    Ok(())
}
