//! Flags about the GPU that times are estimated for.

use std::path::PathBuf;

use lanescope::gpus::Gpus;
use lanescope::run::Settings;

/// Which GPU.
#[derive(clap::Args)]
#[command(next_help_heading = "Estimating time")]
pub(super) struct Flags {
    /// The GPU that times are estimated for: H200, A100, RTX 4090 ... Default: one of the code's architecture. A name that
    /// is not known lists all that are.
    #[arg(long, value_name = "NAME")]
    gpu: Option<String>,
    /// A file with more GPUs, in the form of lanescope's own table (crates/cli/data/gpus.toml).
    #[arg(long, value_name = "FILE")]
    gpus: Option<PathBuf>,
}

impl Flags {
    /// Puts the choice into the settings of a run.
    pub(super) fn settings(&self, settings: Settings) -> anyhow::Result<Settings> {
        let gpus = match &self.gpus {
            Some(file) => Gpus::with_file(file)?,
            None => Gpus::built_in()?,
        };
        let gpu = self.gpu.as_deref().map(|name| gpus.find(name).cloned()).transpose()?;
        Ok(Settings { gpu, gpus: Some(gpus), ..settings })
    }
}
