//! What `check` found without running a kernel: a verdict for each branch, exit and loop, and findings with witnesses.
//!
//! The same report goes out in three ways: as text ([`text`]), as JSON (these types as they are) and as SARIF
//! ([`sarif`]), which code-scanning services read.

pub mod sarif;
mod text;

use std::collections::BTreeMap;

use lanescope_ir::Severity;
use serde::Serialize;

pub use text::text;

/// Name and version of the JSON's format.
pub const SCHEMA: &str = "lanescope.check/1";

/// Everything that was checked.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The kernels, in the order of the files.
    pub kernels: Vec<Kernel>,
    /// Findings that were left out because no changed line has a part in them; `None` if all lines count.
    pub left_out: Option<u64>,
    /// Remarks on the whole.
    pub notes: Vec<String>,
}

impl Report {
    /// All findings, kernel by kernel.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.kernels.iter().flat_map(|k| &k.findings)
    }
}

/// One kernel.
#[derive(Clone, Debug, Serialize)]
pub struct Kernel {
    /// The file it came from, as it was given.
    pub input: String,
    /// Mangled name.
    pub kernel: String,
    /// As its author wrote it.
    pub demangled: String,
    /// Threads of a block, if they were taken for granted.
    pub block: Option<[u32; 3]>,
    /// Blocks of the grid, likewise.
    pub grid: Option<[u32; 3]>,
    /// What was looked at: machine code, PTX, or both.
    pub levels: Vec<Level>,
    /// What is wrong or could be better, the gravest first.
    pub findings: Vec<Finding>,
}

/// One level of a kernel's code.
#[derive(Clone, Debug, Serialize)]
pub struct Level {
    /// `sass` or `ptx`.
    pub level: &'static str,
    /// `sm_90`; none for PTX.
    pub arch: Option<String>,
    /// Who compiled it just now, if anybody did.
    pub compiler: Option<String>,
    /// Its branches, predicated exits and loops in code order.
    pub points: Vec<Point>,
    /// Remarks: what could not be read, what was not looked at.
    pub notes: Vec<String>,
}

/// Where something is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Byte offset in its function; PTX: a running number.
    pub pc: u32,
    /// The instruction.
    pub text: String,
    /// Source file as the line table names it.
    pub file: Option<String>,
    /// Source line.
    pub line: Option<u32>,
    /// Text of the source line, if the file was found.
    pub source: Option<String>,
}

impl Place {
    /// `kernel.cu:9`, or the pc without a line table.
    pub fn short(&self) -> String {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => format!("{}:{line}", file.rsplit(['/', '\\']).next().unwrap_or(file)),
            _ => format!("pc {:#06x}", self.pc),
        }
    }
}

/// One step of a chain that explains a verdict or a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Where.
    #[serde(flatten)]
    pub place: Place,
    /// What happens there.
    pub note: String,
}

/// What kind of place can split a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A conditional branch.
    Branch,
    /// A jump or a call through a register.
    Indirect,
    /// A predicated exit or return.
    Exit,
    /// A branch that closes or leaves a loop.
    Loop,
}

impl Kind {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Branch => "branch",
            Kind::Indirect => "indirect",
            Kind::Exit => "exit",
            Kind::Loop => "loop",
        }
    }
}

/// Whether a place splits warps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// All lanes of a warp agree, whatever the data.
    Never,
    /// At most one warp splits: the one that holds the end of the data.
    LastWarp,
    /// Always the same lanes.
    ExactLanes,
    /// It depends on data.
    DataDependent,
    /// It depends on the thread's index, in a way that is not known exactly.
    LaneDependent,
}

impl Verdict {
    /// As JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Never => "never",
            Verdict::LastWarp => "last-warp",
            Verdict::ExactLanes => "exact-lanes",
            Verdict::DataDependent => "data-dependent",
            Verdict::LaneDependent => "lane-dependent",
        }
    }
}

/// A branch, a predicated exit or a loop.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// Which of them.
    pub kind: Kind,
    /// Where.
    #[serde(flatten)]
    pub place: Place,
    /// Whether it splits warps.
    pub verdict: Verdict,
    /// The verdict in words, with its reason.
    pub words: String,
    /// Lanes that take it, of each warp, if they are known exactly.
    pub lanes: Option<String>,
    /// Kernel arguments that the condition depends on.
    pub arguments: Vec<String>,
    /// PTX: what the machine code made of it.
    pub became: Option<String>,
    /// Whether it needs no attention.
    pub leave_it: bool,
    /// Why nothing needs to be done, or what the cost depends on.
    pub advice: Option<String>,
    /// How the verdict was reached, from the branch back to its sources.
    pub witness: Vec<Step>,
}

/// A figure of a finding's evidence.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[allow(missing_docs)]
pub enum Figure {
    Count(u64),
    Ratio(f64),
    Text(String),
}

/// Something that is wrong, may go wrong, or could be cheaper.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Rule name.
    pub rule: &'static str,
    /// How grave.
    #[serde(serialize_with = "severity_name")]
    pub severity: Severity,
    /// Levels at which it was seen: `sass sm_90`, `ptx`.
    pub levels: Vec<String>,
    /// Where.
    #[serde(flatten)]
    pub place: Place,
    /// What, in one or two sentences.
    pub message: String,
    /// The chain of instructions that proves it.
    pub witness: Vec<Step>,
    /// Named figures.
    pub evidence: BTreeMap<&'static str, Figure>,
    /// Stays the same when lines move: made of the rule, the kernel and the texts of the lines.
    pub fingerprint: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn severity_name<S: serde::Serializer>(severity: &Severity, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(severity.name())
}

/// What a rule's manual page says.
#[derive(Clone, Copy, Debug)]
pub struct RulePage {
    /// Name, kebab-case.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// The page.
    pub page: &'static str,
}
