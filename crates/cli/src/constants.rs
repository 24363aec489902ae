//! What the driver would put into constant bank 0 for a launch.

use lanescope_ir::Kernel;
use lanescope_ptx::lower;
use lanescope_sass::kernel;
use lanescope_sim::{LOCAL_WINDOW, Model, SHARED_WINDOW};

/// Constant bank 0 of a launch: its shape, the engine's windows and `params`, the parameter block, where the kernel's code
/// expects them. `grid` and `block` are in blocks and threads, `dynamic_shared` in bytes.
pub fn bank0(kernel: &Kernel, grid: [u32; 3], block: [u32; 3], dynamic_shared: u32, params: &[u8]) -> Vec<u8> {
    let (shared_window, local_window) = (SHARED_WINDOW, LOCAL_WINDOW);
    if Model::of(kernel) == Model::Ipdom {
        let geometry = lower::Geometry { grid, block, dynamic_shared, shared_window, local_window };
        return lower::launch_constants(&geometry, params);
    }
    let sm = kernel.arch.trim_start_matches("sm_").trim_end_matches(['a', 'f']).parse().unwrap_or(0);
    let stack_top = kernel.local_size;
    let geometry = kernel::Geometry { grid, block, dynamic_shared, stack_top, shared_window, local_window };
    kernel::launch_constants(sm, &geometry, kernel.param_base.1, params)
}
