//! Every operation of `tests/data/operations` through real machine code of four architectures, against the
//! bits that an H200 gave.

#![allow(clippy::print_stdout)] // How many operations ran belongs into the test log.

mod measured;

use lanescope_sass::container::{self, EntryKind, Module};
use lanescope_sass::kernel;
use measured::{check, data, execute};

/// Machine code finds constant memory in the generic address space at an address that the driver puts into bank 0,
/// which is not modelled.
const MISSING: &[&str] = &[
    // Not on sm_80, where no parameter has such an address.
    "isspacep.param",
    "isspacep.global",
    "isspacep.const",
    "ld.s8@generic-const",
    "ld.u16@generic-const",
    "ld.b32@generic-const",
    "ld.b64@generic-const",
    "ld.v4.f32@generic-const",
    "ld.v2.b64@generic-const",
    "ld.v2.s16@generic-const",
    // sm_120 composes them of VIMNMX of four bytes.
    "vabsdiff4.u32.s32.s32@.all.all.all",
    "vabsdiff4.u32.u32.u32@.all.all.all",
];

fn architecture(sm: u16) {
    set("operations", sm);
    set("extended", sm);
}

fn set(name: &str, sm: u16) {
    let file = data(&format!("{name}.fatbin"));
    let container = container::open(&file).unwrap();
    let entry = container.entries.iter().find(|e| e.arch.sm == sm && e.kind == EntryKind::Cubin).unwrap();
    let cubin = entry.bytes().unwrap();
    let module = Module::parse(&cubin).unwrap();
    let missing = match sm {
        80 => &MISSING[1..10],
        120 => MISSING,
        _ => &MISSING[..10],
    };
    check(name, &format!("sm_{sm}"), missing, |op, rows| {
        module.function(&op.kernel)?;
        let kernel = match kernel::load(&module, &op.kernel) {
            Ok(kernel) => kernel,
            Err(error) => return Some(Err(error.to_string())),
        };
        Some(execute(&kernel, op, rows, |grid, block, params| {
            let geometry = kernel::Geometry {
                grid,
                block,
                dynamic_shared: 0,
                stack_top: kernel.local_size,
                shared_window: lanescope_sim::SHARED_WINDOW,
                local_window: lanescope_sim::LOCAL_WINDOW,
            };
            kernel::launch_constants(sm.into(), &geometry, kernel.param_base.1, params)
        }))
    });
}

#[test]
fn sm_80() {
    architecture(80);
}

#[test]
fn sm_90() {
    architecture(90);
}

#[test]
fn sm_100() {
    architecture(100);
}

#[test]
fn sm_120() {
    architecture(120);
}
