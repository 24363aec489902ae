//! Flags and commands. Exit codes: 0 done, 1 findings at or above `--fail-on`, 2 bad input or usage.

mod advise;
mod check;
mod disasm;
mod explain;
mod gpu;
mod model;
mod run;
mod running;
mod survey;
mod tools;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

/// Exit code for bad input or usage.
const BAD_INPUT: u8 = 2;
/// Exit code for findings at or above `--fail-on`.
const FINDINGS: u8 = 1;

/// Find where a GPU kernel's warps lose lanes, without a GPU.
#[derive(Parser)]
#[command(name = "lanescope", version, about, max_term_width = 100)]
#[command(after_help = "Exit codes: 0 done, 1 findings at or above --fail-on, 2 bad input or usage.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a kernel's machine code on the CPU and report where lanes were lost, by line and by branch.
    Run(run::Args),
    /// Say what to do about the lanes a launch loses: one fix, what it saves, and whether it is worth it.
    Advise(advise::Args),
    /// Tell without running which branches split warps, and find faulty synchronisation.
    Check(check::Args),
    /// Print the SASS of a cubin, fatbin, library or executable.
    Disasm(disasm::Args),
    /// Count what steers control flow in machine code, and where lanes rejoin, by architecture.
    Survey(survey::Args),
    /// Work out what divergence costs with closed forms: paths, trips, rare paths, sorting.
    Model(model::Args),
    /// Print the manual page of a rule; without a name, list the rules.
    Explain(explain::Args),
}

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// Parses the command line and runs it.
pub(crate) fn main() -> ExitCode {
    // Clap exits with 2 for usage errors and 0 for help, as we want it.
    let result = match Cli::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Advise(args) => advise::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Disasm(args) => disasm::run(&args),
        Command::Survey(args) => survey::run(&args),
        Command::Model(args) => model::run(&args),
        Command::Explain(args) => explain::run(&args),
    };
    match result {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // A reader that went away (`| head`) is no error of ours.
            if let Some(io) = error.root_cause().downcast_ref::<std::io::Error>()
                && io.kind() == std::io::ErrorKind::BrokenPipe
            {
                return ExitCode::SUCCESS;
            }
            let style = anstyle::AnsiColor::Red.on_default().bold();
            let _ = writeln!(anstream::stderr(), "{style}error{style:#}: {error:#}");
            ExitCode::from(BAD_INPUT)
        }
    }
}

/// Writes to standard output; styles are stripped unless it is a terminal.
fn print(text: &str) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Writes one JSON value and a line end.
fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    print(&text)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn flags_are_consistent() {
        super::Cli::command().debug_assert();
    }
}
