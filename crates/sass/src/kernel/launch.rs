//! Constant bank 0: what the driver passes to a kernel beside its parameters.
//!
//! Offsets as compiled code uses them. sm_70 to sm_90: block shape at 0x0, grid at 0xc, shared window at 0x18,
//! local window at 0x20, stack pointer at 0x28, dynamic shared size at 0x2c; more in docs/convergence.md. sm_100 and later: local window at
//! 0x2f8, descriptor at 0x358, block shape at 0x360, grid at 0x370, stack pointer at 0x37c. The memory descriptor
//! (0x118, 0x208, 0x358) is opaque to code and stays zero. Generic addresses of constants: [`super::mapped`].

use super::mapped::{self, Params};

/// What bank 0 depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub dynamic_shared: u32,
    /// Initial stack pointer: the size of a thread's local memory.
    pub stack_top: u32,
    /// Generic address of shared memory's byte 0; its low word is zero.
    pub shared_window: u64,
    /// Generic address of local memory's byte 0.
    pub local_window: u64,
}

/// Where parameters start when the cubin does not say.
pub(super) fn param_base(sm: u32) -> u32 {
    match sm {
        ..=89 => 0x160,
        90..=99 => 0x210,
        _ => 0x380,
    }
}

/// The image of constant bank 0: `base` is where parameters start, `params` their bytes.
pub fn launch_constants(sm: u32, launch: &Geometry, base: u32, params: &[u8]) -> Vec<u8> {
    let mut bank = vec![0; 0x400];
    let mut word = |at: usize, value: u32| bank[at..at + 4].copy_from_slice(&value.to_le_bytes());
    let (shared, local) = (launch.shared_window, launch.local_window);
    if sm < 100 {
        triple(&mut word, 0x0, launch.block);
        triple(&mut word, 0xc, launch.grid);
        word(0x18, shared as u32);
        word(0x1c, (shared >> 32) as u32);
        word(0x20, local as u32);
        word(0x24, (local >> 32) as u32);
        word(0x28, launch.stack_top);
        word(0x2c, launch.dynamic_shared);
        word(0x10c, SM_COUNT);
        word(0x114, reserved_shared(sm));
        if sm >= 90 {
            word(0x13c, reserved_shared(sm).saturating_add(launch.dynamic_shared));
            // Clusters of one block: their shape, its reciprocals, the grid in clusters, and blocks in a cluster.
            triple(&mut word, 0x144, [1; 3]);
            triple(&mut word, 0x150, [1f32.to_bits(); 3]);
            triple(&mut word, 0x15c, launch.grid);
            word(0x188, 1);
        }
    } else {
        triple(&mut word, 0x360, launch.block);
        triple(&mut word, 0x370, launch.grid);
        word(0x2f8, local as u32);
        word(0x2fc, (local >> 32) as u32);
        word(0x37c, launch.stack_top);
        // The dynamic size is read at 0x2ac - 0xa0 * cluster size; without clusters that size is 1.
        word(0x20c, launch.dynamic_shared);
        word(0x2ac, launch.dynamic_shared);
        word(0x16c, reserved_shared(sm));
        word(0x2d0, SM_COUNT);
    }
    let mut address = |at: u32, value: u64| {
        word(at as usize, value as u32);
        word(at as usize + 4, (value >> 32) as u32);
    };
    address(mapped::constants_at(sm), mapped::CONSTANTS);
    let last = (u64::from(base) + params.len() as u64).saturating_sub(1);
    match mapped::params_at(sm) {
        Params::Bank { base: at, last: end } => {
            address(at, mapped::BANK0);
            word(end as usize, last as u32);
        }
        Params::Range { first, last: end } => {
            address(first, mapped::BANK0 + u64::from(base));
            address(end, mapped::BANK0 + last);
        }
    }
    bank.resize(base as usize, 0);
    bank.extend_from_slice(params);
    bank
}

fn triple(word: &mut impl FnMut(usize, u32), at: usize, values: [u32; 3]) {
    for (i, value) in values.into_iter().enumerate() {
        word(at + 4 * i, value);
    }
}

/// Shared memory that the system takes from the start of each block's, in bytes. Code subtracts it from
/// `SR_SMEMSZ`; before sm_90 shared addresses do not count it.
pub(super) fn reserved_shared(sm: u32) -> u32 {
    if sm >= 90 { 1024 } else { 0 }
}

/// `%nsmid` as an H200 reports it. A kernel that asks gets the same answer on every architecture.
const SM_COUNT: u32 = 132;
