//! Every operation of `tests/data/operations` as PTX, against the bits that an H200 gave.

#![allow(clippy::print_stdout)] // How many operations ran belongs into the test log.

mod measured;

use lanescope_ptx::lower;
use lanescope_sass::container::{self, EntryKind};
use measured::{check, data, execute};

/// What has no operation here.
const MISSING: &[&str] = &[];

#[test]
fn first_set() {
    assert_eq!(as_measured("operations", data("operations.ptx")), 694);
}

#[test]
fn extended_set() {
    let file = data("extended.fatbin");
    let container = container::open(&file).unwrap();
    let entry = container.entries.iter().find(|e| e.kind == EntryKind::Ptx).unwrap();
    assert_eq!(as_measured("extended", entry.bytes().unwrap().into_owned()), 1823);
}

fn as_measured(set: &str, text: Vec<u8>) -> usize {
    let text = String::from_utf8(text).unwrap();
    let parse = lanescope_ptx::parse(&text);
    check(set, "PTX", MISSING, |op, rows| {
        let kernel = match lower::load(&parse, &op.kernel, lower::Options::default()) {
            Ok(kernel) => kernel,
            Err(errors) => return Some(Err(format!("{errors:?}"))),
        };
        Some(execute(&kernel, op, rows))
    })
}
