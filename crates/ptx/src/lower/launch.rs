//! Constant bank 0 of a kernel lowered from PTX: what it needs to know of its launch, and its parameters.
//!
//! The words lie where code for sm_90 has them, so that one launch serves both: block shape at 0x0, grid at 0xc, shared
//! window at 0x18, local window at 0x20, dynamic shared size at 0x2c, parameters from 0x210.

/// Generic address of byte 0 of shared memory, as the engine has it. Initial values of variables may hold such addresses.
pub const SHARED_WINDOW: u64 = 0x7001 << 32;

/// Where parameters begin.
pub const PARAM_BASE: u32 = 0x210;
pub(super) const SHARED_WINDOW_HI: u32 = 0x1c;
pub(super) const LOCAL_WINDOW_HI: u32 = 0x24;
pub(super) const DYNAMIC_SHARED: u32 = 0x2c;

/// What bank 0 depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub dynamic_shared: u32,
    /// Generic address of shared memory's byte 0; its low word is zero.
    pub shared_window: u64,
    /// Generic address of local memory's byte 0; its low word is zero.
    pub local_window: u64,
}

/// The image of constant bank 0 with the kernel's parameters.
pub fn launch_constants(launch: &Geometry, params: &[u8]) -> Vec<u8> {
    let mut bank = vec![0; PARAM_BASE as usize];
    let mut word = |at: usize, value: u32| bank[at..at + 4].copy_from_slice(&value.to_le_bytes());
    for i in 0..3 {
        word(4 * i, launch.block[i]);
        word(0xc + 4 * i, launch.grid[i]);
    }
    word(0x18, launch.shared_window as u32);
    word(SHARED_WINDOW_HI as usize, (launch.shared_window >> 32) as u32);
    word(0x20, launch.local_window as u32);
    word(LOCAL_WINDOW_HI as usize, (launch.local_window >> 32) as u32);
    word(DYNAMIC_SHARED as usize, launch.dynamic_shared);
    bank.extend_from_slice(params);
    bank
}
