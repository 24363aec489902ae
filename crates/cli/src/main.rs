//! The `lanescope` command.

mod cli;
mod progress;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
