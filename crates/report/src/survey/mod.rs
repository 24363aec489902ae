//! The survey of machine code: which opcodes steer control flow, and where lanes rejoin, by kernel and architecture.
//!
//! The counts come in ready made; here they become text, JSON (`lanescope.survey/1`), CSV, Markdown or one HTML page.

mod csv;
mod html;
mod json;
mod tables;
mod text;

use std::collections::BTreeMap;
use std::sync::Arc;

use lanescope_analysis::reconvergence::{Class, Decides, Reconvergence};
use serde::Serialize;

pub use csv::csv;
pub use html::html;
pub use tables::Show;
pub use text::{markdown, text};

/// Name and version of the JSON format. Its keys are stable: only additions keep the version.
pub const SCHEMA: &str = "lanescope.survey/1";

/// How often each opcode occurs. Names are shared between kernels.
pub type Opcodes = BTreeMap<Arc<str>, u64>;

/// Branches by where their lanes rejoin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Classes {
    /// As soon as they could.
    pub exact: u64,
    /// Later.
    pub deferred: u64,
    /// At the end only.
    pub exit: u64,
    /// Not in the regions that are open.
    pub escaped: u64,
    /// No region is open.
    pub uncovered: u64,
}

impl Classes {
    /// Counts one branch.
    pub fn count(&mut self, class: Class) {
        *match class {
            Class::Exact => &mut self.exact,
            Class::Deferred => &mut self.deferred,
            Class::Exit => &mut self.exit,
            Class::Escaped => &mut self.escaped,
            Class::Uncovered => &mut self.uncovered,
        } += 1;
    }

    /// The count of a class.
    pub fn get(&self, class: Class) -> u64 {
        match class {
            Class::Exact => self.exact,
            Class::Deferred => self.deferred,
            Class::Exit => self.exit,
            Class::Escaped => self.escaped,
            Class::Uncovered => self.uncovered,
        }
    }

    /// All of them.
    pub fn sum(&self) -> u64 {
        Class::ALL.iter().map(|&c| self.get(c)).sum()
    }

    fn add(&mut self, other: &Classes) {
        self.exact += other.exact;
        self.deferred += other.deferred;
        self.exit += other.exit;
        self.escaped += other.escaped;
        self.uncovered += other.uncovered;
    }
}

/// Branches by who decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Branches {
    /// Branches whose lanes may disagree, or of whose values nothing is known.
    #[serde(rename = "branches")]
    pub diverging: Classes,
    /// All branches where each lane decides.
    #[serde(rename = "all_branches")]
    pub all: Classes,
    /// `BRA.U`: one decision for the group; never splits.
    #[serde(rename = "group_branches")]
    pub group: Classes,
    /// `BRA.DIV` and `BRA.CONV`: tests whether the group is together.
    pub tests: Classes,
    /// Of `all`, those not proved to keep warps together by the uniformity analysis, if it was asked. A kernel that it
    /// cannot judge counts as in `diverging`.
    #[serde(rename = "unproved_branches", skip_serializing_if = "Option::is_none")]
    pub unproved: Option<Classes>,
}

impl Branches {
    /// Counts the branches of one function.
    pub fn of(found: &Reconvergence) -> Branches {
        let mut out = Branches::default();
        for b in &found.branches {
            match b.decides {
                Decides::Group => out.group.count(b.class),
                Decides::Test => out.tests.count(b.class),
                Decides::Lanes => {
                    out.all.count(b.class);
                    if b.diverges != Some(false) {
                        out.diverging.count(b.class);
                    }
                }
            }
        }
        out
    }

    fn add(&mut self, other: &Branches) {
        self.diverging.add(&other.diverging);
        self.all.add(&other.all);
        self.group.add(&other.group);
        self.tests.add(&other.tests);
        if let Some(more) = &other.unproved {
            self.unproved.get_or_insert_default().add(more);
        }
    }
}

/// Convergence regions, or tokens before sm_70.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Regions {
    /// Opened: `BSSY`, or `SSY`, `PBK` and `PCNT`.
    pub opened: u64,
    /// Of these, those whose end no path reaches.
    pub endless: u64,
    /// `SYNC`, `BRK` and `CONT` whose token is not known.
    pub unmatched: u64,
}

/// Sums over an architecture, or over a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Kernels.
    pub kernels: u64,
    /// Device functions with a section of their own.
    pub functions: u64,
    /// Kernels and functions whose control flow could not be read or followed.
    pub broken: u64,
    /// Instructions without padding.
    pub instructions: u64,
    /// Opcodes that steer control flow or convergence.
    #[serde(serialize_with = "json::opcodes")]
    pub opcodes: Opcodes,
    /// Regions.
    pub regions: Regions,
    /// Branches.
    #[serde(flatten)]
    pub branches: Branches,
    /// Kernels and functions that the uniformity analysis could not judge, if it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unjudged: Option<u64>,
}

impl Totals {
    /// Adds one kernel.
    pub fn add(&mut self, kernel: &Kernel) {
        *if kernel.kind == Kind::Kernel { &mut self.kernels } else { &mut self.functions } += 1;
        self.broken += u64::from(kernel.error.is_some());
        self.instructions += kernel.instructions;
        for (name, count) in &kernel.opcodes {
            *self.opcodes.entry(name.clone()).or_default() += count;
        }
        self.regions.opened += kernel.regions.opened;
        self.regions.endless += kernel.regions.endless;
        self.regions.unmatched += kernel.regions.unmatched;
        self.branches.add(&kernel.branches);
        if kernel.branches.unproved.is_some() {
            *self.unjudged.get_or_insert_default() += u64::from(kernel.unjudged.is_some());
        }
    }
}

/// Kernel or device function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Can be launched.
    Kernel,
    /// Called by others, in a section of its own.
    Function,
}

/// What is known of a branch's lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Taint from thread indices, atomics and local memory.
    Taint,
    /// Nothing: operands are not decoded. All branches count as diverging.
    None,
}

/// A branch, where each one is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Branch {
    /// Byte offset in the section.
    pub pc: u32,
    /// `lanes`, `group` or `test`.
    pub decides: &'static str,
    /// Whether lanes may disagree; `null` if that is not known or not asked.
    pub diverges: Option<bool>,
    /// Whether it is not proved to keep warps together, if the uniformity analysis was asked and could judge it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unproved: Option<bool>,
    /// `exact`, `deferred`, `exit`, `escaped` or `uncovered`.
    pub class: &'static str,
    /// Byte offset of the immediate post-dominator.
    pub meets_at: Option<u32>,
    /// Byte offset of the instruction where the lanes rejoin.
    pub rejoins_at: Option<u32>,
}

/// A kernel or device function.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Kernel {
    /// Mangled name.
    pub name: String,
    /// The name as its author wrote it.
    pub demangled: String,
    /// Kernel or device function.
    pub kind: Kind,
    /// Instructions without padding.
    pub instructions: u64,
    /// Opcodes that steer control flow or convergence.
    #[serde(serialize_with = "json::opcodes")]
    pub opcodes: Opcodes,
    /// Regions.
    pub regions: Regions,
    /// How `branches` tells which lanes may disagree.
    pub verdict: Verdict,
    /// Branches.
    #[serde(flatten)]
    pub branches: Branches,
    /// Why `unproved_branches` counts as `branches` do, if the uniformity analysis was asked and could not judge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unjudged: Option<String>,
    /// Each branch, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub list: Option<Vec<Branch>>,
    /// Why its control flow is not known, if so.
    pub error: Option<String>,
}

/// The code in one file for one architecture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct File {
    /// Where it is; a member of an archive behind its archive.
    pub path: String,
    /// Architecture; `null` if the file could not be read at all.
    pub arch: Option<String>,
    /// Its kernels and functions.
    pub kernels: Vec<Kernel>,
    /// Why it, or a cubin in it, could not be read.
    pub error: Option<String>,
}

/// Everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Survey {
    /// Files in the order given, folders in the order of their names.
    pub files: Vec<File>,
}

impl Survey {
    /// Sums by architecture, ascending.
    pub fn totals(&self) -> Vec<(String, Totals)> {
        self.sums(|file| file.arch.clone())
    }

    /// Sums by file and architecture, in file order.
    pub fn by_file(&self) -> Vec<(String, Totals)> {
        let mut out: Vec<(String, Totals)> = Vec::new();
        for file in &self.files {
            let Some(arch) = &file.arch else { continue };
            let name = file.path.rsplit(['/', '\\']).next().unwrap_or(&file.path);
            let mut totals = Totals::default();
            file.kernels.iter().for_each(|k| totals.add(k));
            out.push((format!("{name} {arch}"), totals));
        }
        out
    }

    /// Files, and kernels in them, that could not be read, with the reason.
    pub fn errors(&self) -> impl Iterator<Item = (String, &str)> + '_ {
        self.files.iter().flat_map(|file| {
            let own = file.error.iter().map(|e| (file.path.clone(), e.as_str()));
            let arch = file.arch.as_deref().unwrap_or_default();
            let inner = file
                .kernels
                .iter()
                .filter_map(move |k| Some((format!("{} {arch} {}", file.path, k.demangled), k.error.as_deref()?)));
            own.chain(inner)
        })
    }

    fn sums(&self, key: impl Fn(&File) -> Option<String>) -> Vec<(String, Totals)> {
        let mut sums: BTreeMap<(u32, String), Totals> = BTreeMap::new();
        for file in &self.files {
            let Some(name) = key(file) else { continue };
            let totals = sums.entry((number(&name), name)).or_default();
            file.kernels.iter().for_each(|k| totals.add(k));
        }
        sums.into_iter().map(|((_, name), totals)| (name, totals)).collect()
    }
}

/// The number in an architecture's name, so that sm_90 comes before sm_100.
fn number(arch: &str) -> u32 {
    let digits: String = arch.chars().filter(char::is_ascii_digit).take(6).collect();
    digits.parse().unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
