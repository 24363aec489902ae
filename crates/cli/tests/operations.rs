//! Every operation of `tests/data/operations` through real machine code of four architectures, against the
//! bits that an H200 gave.

#![allow(clippy::print_stdout)] // How many operations ran belongs into the test log.

mod measured;

use lanescope_sass::container::{self, EntryKind, Module};
use lanescope_sass::kernel;
use measured::{check, data, execute};

/// What the engine cannot do yet.
const MISSING: &[&str] = &[
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
        120 => MISSING,
        _ => &[],
    };
    check(name, &format!("sm_{sm}"), missing, |op, rows| {
        module.function(&op.kernel)?;
        let kernel = match kernel::load(&module, &op.kernel) {
            Ok(kernel) => kernel,
            Err(error) => return Some(Err(error.to_string())),
        };
        Some(execute(&kernel, op, rows))
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
