//! What a person or a program reads: the terminal report, the profile JSON, the trace of a warp and
//! one branch of it told in steps, a page of HTML, PTX and SASS side by side.
//!
//! Nothing here computes: counters and findings come in, text goes out. Text carries ANSI styles; whoever prints
//! it strips them where there is no terminal (`anstream` does).

pub mod advise;
pub mod check;
pub mod flame;
pub mod html;
pub mod json;
mod layout;
pub mod levels;
pub mod model;
pub mod printed;
pub mod roofline;
pub mod survey;
#[cfg(test)]
mod testing;
pub mod text;
pub mod trace;
pub mod walk;

use std::collections::HashMap;

use lanescope_analysis::Analysis;
use lanescope_ir::{Kernel, Profile};

/// Which instructions the numbers are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// Machine code: what the hardware executes and counts.
    #[default]
    Sass,
    /// PTX: an estimate, because ptxas has yet to predicate, unroll and merge.
    Ptx,
}

impl Level {
    /// As JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            Level::Sass => "sass",
            Level::Ptx => "ptx",
        }
    }
}

/// What a report is made from.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Its counters.
    pub profile: &'a Profile,
    /// What was found out about them.
    pub analysis: &'a Analysis,
    /// The kernel's name as its author wrote it.
    pub demangled: &'a str,
    /// Where the counters come from: `sim`, `ncu`, `gpu`.
    pub source: &'a str,
    /// Which instructions the numbers are about.
    pub level: Level,
    /// The compiler that made the code just now, if one did.
    pub compiler: Option<&'a str>,
    /// Source text by index of the file, for those that were found.
    pub sources: &'a HashMap<u32, Vec<String>>,
    /// Remarks that belong on the first screen.
    pub warnings: &'a [String],
}
