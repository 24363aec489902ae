//! Static answers about kernels: does a branch split warps, is the synchronisation sound.
//!
//! ```no_run
//! use lanescope::check::{Settings, check};
//!
//! let report = check(&["kernel.cu".into()], &Settings::default())?;
//! for finding in report.findings() {
//!     println!("{}: {}", finding.rule, finding.message);
//! }
//! # Ok::<(), lanescope::check::CheckError>(())
//! ```

pub mod changes;
mod findings;
mod inputs;
mod points;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use lanescope_analysis::Structure;
use lanescope_analysis::lint::{self, Hazard, Input};
use lanescope_analysis::uniformity::{Facts, Uniformity};
use lanescope_ir::op::warp::{SpecialReg, WarpOp};
use lanescope_ir::{Kernel, Op};
use lanescope_report::check::{self as report, Place, Report, RulePage};

use crate::compile::Tools;
use crate::module::ModuleError;
use crate::names::demangle;
use crate::run::RunError;
use crate::sources;
use changes::Changes;
use inputs::{Code, Subject};

/// Why something cannot be checked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// A module or a kernel in it is wrong.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// A launch file is wrong.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A kernel was asked for that none of the files has.
    #[error("no file has a kernel `{name}`{}\n  kernels: {kernels}", suggest.as_ref().map(|s| format!("; did you mean `{s}`?")).unwrap_or_default())]
    NoKernel {
        /// The name asked for.
        name: String,
        /// The nearest.
        suggest: Option<String>,
        /// What there is.
        kernels: String,
    },
}

/// What to take for granted and what to look at.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Only this kernel: mangled, demangled or base name.
    pub kernel: Option<String>,
    /// Only this architecture; source is compiled for it.
    pub arch: Option<String>,
    /// Shape of the block, overriding a launch file's.
    pub block: Option<[u32; 3]>,
    /// Shape of the grid, likewise.
    pub grid: Option<[u32; 3]>,
    /// Folders with source files.
    pub sources: Vec<PathBuf>,
    /// Report only what these lines have a part in.
    pub changes: Option<Changes>,
    /// Compilers.
    pub tools: Tools,
}

/// The manual pages of all rules that a check can name.
pub fn pages() -> Vec<RulePage> {
    lint::RULES.iter().map(|r| RulePage { name: r.name, summary: r.summary, page: r.page }).collect()
}

/// Checks files: cubins, fatbins, libraries, PTX, CUDA source and launch files.
pub fn check(files: &[PathBuf], settings: &Settings) -> Result<Report, CheckError> {
    let mut subjects = Vec::new();
    let mut notes = Vec::new();
    let mut names = Vec::new();
    for file in files {
        inputs::read(file, settings, &mut subjects, &mut names, &mut notes)?;
    }
    if let (Some(name), true) = (&settings.kernel, subjects.is_empty()) {
        let suggest = crate::names::nearest(name, names.iter().map(String::as_str)).map(str::to_owned);
        names.sort();
        names.dedup();
        return Err(CheckError::NoKernel { name: name.clone(), suggest, kernels: names.join(", ") });
    }
    let mut kernels = Vec::new();
    let mut left_out = settings.changes.as_ref().map(|_| 0u64);
    for subject in &subjects {
        let mut kernel = one(subject, settings);
        if let (Some(changes), Some(left_out)) = (&settings.changes, &mut left_out) {
            let before = kernel.findings.len();
            kernel.findings.retain(|f| findings::touches(f, changes));
            *left_out += (before - kernel.findings.len()) as u64;
        }
        kernels.push(kernel);
    }
    Ok(Report { schema: report::SCHEMA, kernels, left_out, notes })
}

/// Looks at one kernel at all its levels.
fn one(subject: &Subject, settings: &Settings) -> report::Kernel {
    let mut levels = Vec::new();
    let mut found = Vec::new();
    let first = subject.codes.first().map(|c| &c.kernel);
    for code in &subject.codes {
        let places = Places::new(&code.kernel, subject, settings);
        let structure = Structure::new(&code.kernel);
        let exact = Uniformity::new(&code.kernel, &structure, &code.facts);
        // Almost every block has one dimension; what depends on that says so.
        let known = code.facts.block.is_some() || code.kernel.required_block.is_some();
        let linear = (!known).then(|| Facts { linear: true, ..code.facts.clone() });
        let assumed = linear.as_ref().map(|f| Uniformity::new(&code.kernel, &structure, f));
        let uniformity = assumed.as_ref().unwrap_or(&exact);
        let facts = linear.as_ref().unwrap_or(&code.facts);
        let input = Input { kernel: &code.kernel, structure: &structure, uniformity, facts };
        let samples = if known { Vec::new() } else { samples(code, &structure) };
        let points = points::points(&input, &exact, &samples, &code.became, &places);
        let level = code.level.name();
        let seen = if level == "ptx" { "ptx".to_owned() } else { format!("sass {}", code.kernel.arch) };
        for hazard in hazards(&input, &samples) {
            found.push(findings::Seen { level: seen.clone(), hazard, places: places.clone() });
        }
        levels.push(report::Level {
            level,
            arch: (level != "ptx").then(|| code.kernel.arch.clone()),
            compiler: code.compiler.clone(),
            points,
            notes: code.notes.iter().chain(&code.kernel.warnings).cloned().collect(),
        });
    }
    let name = first.map(|k| k.name.clone()).unwrap_or_default();
    let facts = subject.codes.first().map(|c| &c.facts);
    let required = first.and_then(|k| k.required_block);
    report::Kernel {
        input: subject.input.clone(),
        demangled: demangle(&name),
        findings: findings::merge(found, &name, subject.codes.len() > 1),
        kernel: name,
        block: facts.and_then(|f| f.block).or(required),
        grid: facts.and_then(|f| f.grid),
        levels,
    }
}

/// The analysis for blocks of known sizes, where the size is not known: what holds for all of them does not depend on it.
/// Kernels that read a second dimension of the thread's index have none.
fn samples(code: &Code, structure: &Structure) -> Vec<(Facts, Uniformity)> {
    let flat = !code.kernel.instructions.iter().any(|i| {
        matches!(&i.op, Op::Warp(WarpOp::Special { reg, .. }) if reg.iter().any(|r| {
            matches!(r, SpecialReg::Tid(1 | 2) | SpecialReg::NTid(1 | 2) | SpecialReg::TidPacked)
        }))
    });
    let most = match code.kernel.max_threads {
        0 => 1024,
        n => n.min(1024) / 32 * 32,
    };
    let sizes: &[u32] = if flat && most >= 64 { &[most, 64] } else { &[] };
    let one = |&threads: &u32| {
        let facts = Facts { block: Some([threads, 1, 1]), ..code.facts.clone() };
        let uniformity = Uniformity::new(&code.kernel, structure, &facts);
        (facts, uniformity)
    };
    sizes.iter().map(one).collect()
}

/// What the rules find; with samples, what they find for each of them.
fn hazards(input: &Input<'_>, samples: &[(Facts, Uniformity)]) -> Vec<Hazard> {
    let mut lists = samples.iter().map(|(facts, uniformity)| lint::check(&Input { facts, uniformity, ..*input }));
    let Some(mut found) = lists.next() else { return lint::check(input) };
    for other in lists {
        found.retain(|h| {
            let key = |h: &Hazard| (h.finding.rule, h.finding.inst);
            other.iter().any(|o| key(o) == key(h))
        });
    }
    found
}

/// Where instructions are, with the text of their source lines.
#[derive(Clone)]
struct Places<'a> {
    kernel: &'a Kernel,
    sources: std::rc::Rc<HashMap<u32, Vec<String>>>,
}

impl<'a> Places<'a> {
    fn new(kernel: &'a Kernel, subject: &Subject, settings: &Settings) -> Places<'a> {
        let mut dirs = settings.sources.clone();
        dirs.extend(subject.dirs.iter().cloned());
        Places { kernel, sources: std::rc::Rc::new(sources::find(kernel, &dirs)) }
    }

    fn place(&self, inst: u32) -> Place {
        let at = inst as usize;
        let location = self.kernel.source.get(at);
        let source = location.and_then(|l| {
            self.sources.get(&l.file)?.get((l.line as usize).checked_sub(1)?).map(|t| t.trim().to_owned())
        });
        Place {
            pc: self.kernel.instructions.get(at).map_or(0, |i| i.pc),
            text: self.kernel.text.get(at).cloned().unwrap_or_default(),
            file: location.map(|l| self.kernel.source.file(l).to_owned()),
            line: location.map(|l| l.line),
            source,
        }
    }
}

/// The level's code of a subject, for tests and embedders that want the analysis itself.
pub fn load(file: &Path, settings: &Settings) -> Result<Vec<(Kernel, Facts)>, CheckError> {
    let (mut subjects, mut names, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    inputs::read(file, settings, &mut subjects, &mut names, &mut notes)?;
    Ok(subjects.into_iter().flat_map(|s| s.codes).map(|Code { kernel, facts, .. }| (kernel, facts)).collect())
}
