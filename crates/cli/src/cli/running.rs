//! Flags about running a launch, shared by the commands that do.

use clap::ValueEnum;
use lanescope::run::Settings;
use lanescope::sim::{Model, Unknown};

use super::gpu;

/// How to run.
#[derive(clap::Args)]
pub(super) struct Running {
    /// Threads that run blocks; the results do not depend on it. Default: all processors.
    #[arg(long, value_name = "N")]
    pub(super) threads: Option<std::num::NonZeroUsize>,
    /// Stop with an error after N warp instructions; 0 means never. Default: 10 billion.
    #[arg(long, value_name = "N")]
    pub(super) max_inst: Option<u64>,
    /// What to do at an instruction that is not implemented.
    #[arg(long, value_enum, default_value_t)]
    pub(super) unknown: OnUnknown,
    /// How lanes split and rejoin. Default: barrier for machine code, ipdom for PTX; with ipdom or stack a .cu module is
    /// run as PTX.
    #[arg(long, value_enum)]
    pub(super) model: Option<Convergence>,
    /// Lanes of a warp, 32 or 64: the wavefronts of other machines. For PTX (a .cu module is run as PTX then) that has no
    /// instruction for warps of 32 lanes: shuffles, votes, masks of lanes.
    #[arg(long, value_name = "LANES", value_parser = warp_size)]
    pub(super) warp_size: Option<u32>,
    /// Architecture to compile for, or to take from a module with several, overriding the launch file.
    /// Source is compiled for sm_90 unless something else is asked for.
    #[arg(long, value_name = "ARCH")]
    pub(super) arch: Option<String>,
    /// Kernel to run, overriding the launch file.
    #[arg(long, value_name = "NAME")]
    pub(super) kernel: Option<String>,
    #[command(flatten)]
    gpu: gpu::Flags,
}

impl Running {
    /// Settings with these flags.
    pub(super) fn settings(&self) -> anyhow::Result<Settings> {
        self.gpu.settings(Settings {
            threads: self.threads.map_or(0, Into::into),
            max_inst: self.max_inst,
            unknown: if self.unknown == OnUnknown::Poison { Unknown::Poison } else { Unknown::Stop },
            arch: self.arch.clone(),
            kernel: self.kernel.clone(),
            model: self.model.map(|m| match m {
                Convergence::Barrier => Model::Barrier,
                Convergence::Ipdom => Model::Ipdom,
                Convergence::Stack => Model::Stack,
            }),
            warp_size: self.warp_size,
            ..Settings::default()
        })
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum OnUnknown {
    /// Stop and name it.
    #[default]
    Stop,
    /// Mark its results unknown; stop only if one reaches a branch, an address or an output asked for.
    Poison,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Convergence {
    /// Convergence barriers, as machine code of Volta and later names them.
    Barrier,
    /// PTX: at immediate post-dominators, with progress for every lane.
    Ipdom,
    /// PTX on machines before Volta: the same as a stack, where lanes of a warp that wait for each other hang.
    Stack,
}

fn warp_size(text: &str) -> Result<u32, &'static str> {
    text.parse().ok().filter(|n| matches!(n, 32 | 64)).ok_or("warps have 32 lanes, or 64")
}
