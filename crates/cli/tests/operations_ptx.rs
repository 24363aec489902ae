//! Every operation of `tests/data/operations` as PTX, against the bits that an H200 gave.

#![allow(clippy::print_stdout)] // How many operations ran belongs into the test log.

mod measured;

use lanescope_ptx::lower;
use measured::{check, data, execute};

#[test]
fn as_measured() {
    let text = String::from_utf8(data("operations.ptx")).unwrap();
    let parse = lanescope_ptx::parse(&text);
    let ran = check("PTX", |op, rows| {
        let kernel = match lower::load(&parse, &op.kernel, lower::Options::default()) {
            Ok(kernel) => kernel,
            Err(errors) => return Some(Err(format!("{errors:?}"))),
        };
        Some(execute(&kernel, op, rows, |grid, block, params| {
            let geometry = lower::Geometry {
                grid,
                block,
                dynamic_shared: 0,
                shared_window: lanescope_sim::SHARED_WINDOW,
                local_window: lanescope_sim::LOCAL_WINDOW,
            };
            lower::launch_constants(&geometry, params)
        }))
    });
    assert_eq!(ran, 694);
}
