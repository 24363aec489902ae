//! PTX and SASS side by side: what became of each PTX branch.
//!
//! The comparison comes in ready made; here it becomes text, or JSON as `lanescope.levels/1`.

use std::fmt::Write;

use lanescope_analysis::words::count;
use serde::Serialize;

use crate::layout::{Align, BAD, Columns, DIM, GOOD, HEAD, PLAIN, WARN, styled, wrap};

/// Name and version of the JSON format.
pub const SCHEMA: &str = "lanescope.levels/1";
const WIDTH: usize = 110;

/// A launch at both levels.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Mangled name.
    pub kernel: String,
    /// The name as its author wrote it.
    pub demangled: String,
    /// The machine code's compiler.
    pub compiler: String,
    /// Totals: PTX first, then one for each architecture.
    pub levels: Vec<LevelTotals>,
    /// PTX branches by source line.
    pub lines: Vec<SourceLine>,
    /// What could not be done, in words.
    pub notes: Vec<String>,
}

/// Sums over one level.
#[derive(Clone, Debug, Serialize)]
pub struct LevelTotals {
    /// `ptx` or `sass`.
    pub level: &'static str,
    /// The architecture, for SASS.
    pub arch: Option<String>,
    /// Conditional branches in the text.
    pub static_branches: u64,
    /// Counters; `null` where that level was not run.
    pub counts: Option<Counts>,
}

/// Counters of one level.
#[derive(Clone, Copy, Debug, Serialize)]
#[allow(missing_docs)] // Named as in `lanescope_ir::Totals`.
pub struct Counts {
    pub inst_executed: u64,
    pub thread_inst_executed: u64,
    pub lane_efficiency: f64,
    pub branches: u64,
    pub divergent_branches: u64,
    /// Lane slots without a lane.
    pub lanes_lost: u64,
}

/// A source line that has a branch in PTX.
#[derive(Clone, Debug, Serialize)]
pub struct SourceLine {
    /// Source file; `null` without line information.
    pub file: Option<String>,
    /// Source line.
    pub line: Option<u32>,
    /// Its text, where the file was found.
    pub text: Option<String>,
    /// Its branches in PTX.
    pub branches: Vec<Branch>,
}

/// A PTX branch and what became of it.
#[derive(Clone, Debug, Serialize)]
pub struct Branch {
    /// Line of the PTX text.
    pub ptx_line: u32,
    /// The instruction.
    pub text: String,
    /// Whether it closes a loop.
    pub back_edge: bool,
    /// Counters of the branch in PTX, if that was run.
    pub ptx: Option<Side>,
    /// What each architecture's SASS made of it.
    pub sass: Vec<Outcome>,
}

/// How often a branch was executed, and what it cost.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Side {
    /// Groups of lanes that executed it.
    pub executed: u64,
    /// Of these, groups that split.
    pub divergent: u64,
    /// Lane slots lost because of it.
    pub lanes_lost: u64,
}

/// What one architecture's SASS made of a PTX branch.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The architecture.
    pub arch: String,
    /// All that it became; most often one thing.
    pub fates: Vec<Fate>,
    /// How often the code that it decides about, or the loop's body, is there; 1 if it was not copied.
    pub copies: u64,
    /// Counters of the branches and exits it became.
    #[serde(flatten)]
    pub side: Side,
    /// Active lanes that a guard masked, summed over the instructions that it guards.
    pub predicated_off: u64,
    /// The branches and exits.
    pub instructions: Vec<Instruction>,
}

/// A SASS instruction.
#[derive(Clone, Debug, Serialize)]
pub struct Instruction {
    /// Byte offset within its function.
    pub pc: u32,
    /// Disassembly.
    pub text: String,
}

/// What a PTX branch became.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// A branch at which warps split.
    DivergentBranch,
    /// A branch at which no warp split in this launch.
    UniformBranch,
    /// A branch that was not reached in this launch.
    UnreachedBranch,
    /// A jump through a table, with other branches.
    JumpTable,
    /// A predicated EXIT.
    PredicatedExit,
    /// Instructions with a guard.
    Predicated,
    /// A select.
    Select,
    /// Its condition went into another branch's.
    Merged,
    /// Arithmetic without a predicate (a minimum, a mask, a carry).
    Arithmetic,
    /// Nothing.
    Gone,
}

impl Fate {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Fate::DivergentBranch => "divergent branch",
            Fate::UniformBranch => "uniform branch",
            Fate::UnreachedBranch => "branch, not reached",
            Fate::JumpTable => "jump table",
            Fate::PredicatedExit => "predicated EXIT",
            Fate::Predicated => "predicated",
            Fate::Select => "select",
            Fate::Merged => "merged into another branch",
            Fate::Arithmetic => "arithmetic",
            Fate::Gone => "gone",
        }
    }
}

/// The comparison as text, with ANSI styles.
pub fn text(c: &Comparison) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}  PTX and SASS side by side, by {}", styled(HEAD, &c.demangled), c.compiler);
    for note in &c.notes {
        let _ = writeln!(out, "{} {}", styled(WARN, "note:"), wrap(note, WIDTH, 6));
    }
    out.push('\n');
    totals(c, &mut out);
    if c.lines.is_empty() {
        let _ = writeln!(out, "\nThe PTX of this kernel has no conditional branch.");
    }
    for line in &c.lines {
        source_line(line, &mut out);
    }
    let legend = "lost: lane slots without a lane because of the branch. masked: active lanes that a guard switches off. \
                  PTX is what the compiler's front half wrote; the hardware executes and counts SASS.";
    let _ = writeln!(out, "\n{}", styled(DIM, &wrap(legend, WIDTH, 0)));
    out
}

fn totals(c: &Comparison, out: &mut String) {
    use Align::{Left, Right};
    let mut table = Columns::new(0, &[Left, Right, Right, Right, Right, Right]);
    table.header(&["", "branches in the text", "warp instr.", "lane efficiency", "executed branches", "divergent"]);
    for level in &c.levels {
        let name = level.arch.clone().unwrap_or_else(|| "PTX".to_owned());
        let counts = level.counts.map_or_else(
            || vec![(DIM, "not run".to_owned()), (DIM, "-".into()), (DIM, "-".into()), (DIM, "-".into())],
            |t| {
                vec![
                    (PLAIN, count(t.inst_executed)),
                    (PLAIN, format!("{:.6}", t.lane_efficiency)),
                    (PLAIN, count(t.branches)),
                    (if t.divergent_branches > 0 { WARN } else { PLAIN }, count(t.divergent_branches)),
                ]
            },
        );
        let mut row = vec![(HEAD, name), (PLAIN, count(level.static_branches))];
        row.extend(counts);
        table.row(row);
    }
    table.print(out);
}

fn source_line(line: &SourceLine, out: &mut String) {
    let place = match (&line.file, line.line) {
        (Some(file), Some(line)) => format!("{}:{line}", file.rsplit('/').next().unwrap_or(file)),
        _ => "no source line".to_owned(),
    };
    let text = line.text.as_deref().map(str::trim).unwrap_or_default();
    let _ = writeln!(out, "\n{}  {text}", styled(HEAD, &place));
    let mut table = Columns::new(2, &[Align::Left, Align::Left, Align::Left, Align::Left]);
    for branch in &line.branches {
        let kind = if branch.back_edge { "closes a loop" } else { "" };
        let side = branch.ptx.map_or(String::new(), |s| figures(&s, 0));
        let kind = if kind.is_empty() || side.is_empty() { format!("{kind}{side}") } else { format!("{kind}; {side}") };
        table.row(vec![
            (DIM, format!("PTX:{}", branch.ptx_line)),
            (PLAIN, format!("`{}`", branch.text)),
            (PLAIN, kind),
        ]);
        for o in &branch.sass {
            table.row(outcome(o));
        }
    }
    table.print(out);
}

fn outcome(o: &Outcome) -> Vec<(anstyle::Style, String)> {
    let mut words: Vec<String> = o.fates.iter().map(|f| f.words().to_owned()).collect();
    if o.copies > 1 {
        words.push(format!("unrolled, {} copies", o.copies));
    }
    let style = match o.fates.first() {
        Some(Fate::DivergentBranch) => BAD,
        Some(Fate::PredicatedExit | Fate::JumpTable) if o.side.divergent > 0 => BAD,
        Some(Fate::Predicated | Fate::Select | Fate::Gone | Fate::Arithmetic | Fate::UniformBranch) => GOOD,
        _ => PLAIN,
    };
    let shown: Vec<String> = o.instructions.iter().take(2).map(|i| format!("`{}`", i.text)).collect();
    let more = o.instructions.len().saturating_sub(shown.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let mut last = figures(&o.side, o.predicated_off);
    if !shown.is_empty() {
        let code = format!("{}{more}", shown.join(", "));
        last = if last.is_empty() { code } else { format!("{last}; {code}") };
    }
    vec![(PLAIN, format!("  {}", o.arch)), (style, words.join(", ")), (PLAIN, last)]
}

fn figures(side: &Side, predicated_off: u64) -> String {
    let mut parts = Vec::new();
    if side.executed > 0 {
        parts.push(format!("{} executed, {} split", count(side.executed), count(side.divergent)));
        parts.push(format!("{} lost", count(side.lanes_lost)));
    }
    if predicated_off > 0 {
        parts.push(format!("{} masked", count(predicated_off)));
    }
    parts.join(", ")
}
