//! What a launch asks of the machine.

use lanescope_ir::{Kernel, Profile};

/// What a launch asks of the machine: made from a profile, or from what a fix is expected to leave of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demand {
    /// Warp instructions issued.
    pub warp_instructions: u64,
    /// Warp instructions of the warp that issues most, if it is known.
    pub longest_warp: Option<u64>,
    /// 32-byte sectors of global memory, summed over the issues of all instructions ("L2 Theoretical Sectors Global").
    pub sectors: u64,
    /// Sectors that the same lanes would need with neighbouring addresses.
    pub sectors_ideal: u64,
    /// Bytes of global memory that the launch touches at all, by whole sectors, if it is known.
    pub distinct_bytes: Option<u64>,
    /// Issues of instructions that access global memory.
    pub memory_requests: u64,
    /// Passes through shared memory.
    pub shared_wavefronts: u64,
    /// Passes that would be needed without bank conflicts.
    pub shared_wavefronts_ideal: u64,
}

impl Demand {
    /// The demand that a profile counted. What it does not hold (longest warp, distinct bytes) is left open.
    pub fn new(_kernel: &Kernel, profile: &Profile) -> Demand {
        let mut d = Demand::default();
        for c in &profile.counts {
            d.warp_instructions = d.warp_instructions.saturating_add(c.inst_executed);
            d.sectors = d.sectors.saturating_add(c.sectors);
            d.sectors_ideal = d.sectors_ideal.saturating_add(c.sectors_ideal);
            d.shared_wavefronts = d.shared_wavefronts.saturating_add(c.shared_wavefronts);
            d.shared_wavefronts_ideal = d.shared_wavefronts_ideal.saturating_add(c.shared_wavefronts_ideal);
            if c.sectors > 0 {
                d.memory_requests = d.memory_requests.saturating_add(c.inst_executed);
            }
        }
        d
    }

    /// The same demand with another number of warp instructions, for a fix that is predicted and not run: what is
    /// issued shrinks or grows in proportion, what memory has to deliver stays.
    #[must_use]
    pub fn with_warp_instructions(&self, warp_instructions: u64) -> Demand {
        let scale = |n: u64| {
            if self.warp_instructions == 0 {
                return n;
            }
            let x = u128::from(n) * u128::from(warp_instructions) / u128::from(self.warp_instructions);
            u64::try_from(x).unwrap_or(u64::MAX)
        };
        Demand {
            warp_instructions,
            longest_warp: self.longest_warp.map(scale),
            memory_requests: scale(self.memory_requests),
            shared_wavefronts: scale(self.shared_wavefronts),
            shared_wavefronts_ideal: scale(self.shared_wavefronts_ideal),
            ..self.clone()
        }
    }
}
