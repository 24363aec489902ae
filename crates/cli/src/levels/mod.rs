//! PTX and SASS of one launch side by side: what the compiler made of each PTX branch, and what it costs.
//!
//! Each architecture's machine code is run, and the PTX it was made from is run once. ptxas leaves a second line table in
//! a cubin, from SASS to lines of the PTX text, so nothing is guessed from source lines: [`ptx_side`] finds a branch, the
//! instructions that compute its condition and the loop it closes; [`sass_side`] follows the predicates of exactly these
//! instructions to what they guard.

mod became;
mod ptx_side;
mod sass_side;

use std::path::{Path, PathBuf};

use lanescope_analysis::Analysis;
use lanescope_report::Level;
use lanescope_report::levels::{Branch, Comparison, Counts, LevelTotals, SCHEMA, Side, SourceLine};

use crate::launch::LaunchFile;
use crate::module::{self, ModuleError};
use crate::names::demangle;
use crate::run::{Prepared, Ran, RunError, Settings};
pub use became::Became;
pub(crate) use became::became;
use ptx_side::{PtxBranch, Readers};

/// Why levels cannot be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LevelsError {
    /// A launch went wrong.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The module is no source.
    #[error(
        "{module} is neither CUDA source nor PTX: levels can be compared only where the PTX is known\n  give a .cu module, or a .ptx module with --via ptxas"
    )]
    NoSource {
        /// The module.
        module: String,
    },
    /// The PTX has faults.
    #[error(transparent)]
    Ptx(#[from] ModuleError),
    /// The cubin's lines are not those of the PTX.
    #[error("{arch}: the machine code's line table does not fit the PTX: {why}")]
    Lines {
        /// The architecture.
        arch: String,
        /// How.
        why: String,
    },
}

/// Runs a launch on each architecture, and its PTX, and compares. `archs` empty means the launch file's.
pub fn compare(path: &Path, archs: &[String], settings: &Settings) -> Result<Comparison, LevelsError> {
    let mut sides = Vec::new();
    let wanted: Vec<Option<String>> =
        if archs.is_empty() { vec![settings.arch.clone()] } else { archs.iter().cloned().map(Some).collect() };
    let mut common: Option<Common> = None;
    for arch in wanted {
        let mut settings = Settings { arch, ..settings.clone() };
        settings.tools.via_ptxas = true;
        let prepared = Prepared::open(path, &settings)?;
        let module = prepared.dir.join(&prepared.launch.module);
        let Some(built) = prepared.built.clone() else {
            return Err(LevelsError::NoSource { module: module.display().to_string() });
        };
        if common.is_none() {
            let launch = prepared.launch.clone();
            let kernel = prepared.kernel.name.clone();
            common = Some(Common {
                launch,
                dir: prepared.dir.clone(),
                module,
                kernel,
                ptx: built.ptx.clone(),
                compiler: built.compiler.clone(),
            });
        }
        let code = prepared.code.clone();
        let ran = prepared.run(None)?;
        sides.push(SassRun { code, ptx: built.ptx, ran });
    }
    let Some(common) = common else { return Err(LevelsError::NoSource { module: path.display().to_string() }) };
    let shown = common.module.with_extension("ptx").display().to_string();
    let text = module::ptx_text(&shown, &common.ptx)?;
    let parsed = lanescope_ptx::parse(text);
    let branches = ptx_side::branches(&parsed.module, &common.kernel);
    let mut notes = Vec::new();
    // Architectures can see different PTX: `__CUDA_ARCH__`, or choices of the compiler.
    let first = code_of(&common.ptx);
    for side in &sides[1..] {
        if code_of(&side.ptx) != first {
            let arch = &side.ran.kernel.arch;
            notes.push(format!(
                "the compiler wrote other PTX for {arch} than for {}; its branches are found by their text and source line",
                sides[0].ran.kernel.arch
            ));
        }
    }
    let ptx = ptx_run(&common, settings, &shown);
    if let Err(e) = &ptx {
        notes.push(format!("the PTX was not run: {e}"));
    }
    let ptx = ptx.ok();
    let ptx_map = ptx.as_ref().map(|ran| ptx_side::instructions(&parsed.module, &ran.kernel));
    let readers = ptx_side::readers(&parsed.module, &common.kernel);
    let mut rows: Vec<Branch> = branches
        .iter()
        .map(|b| Branch {
            ptx_line: b.line,
            text: b.text.clone(),
            back_edge: b.body.is_some(),
            ptx: ptx.as_ref().zip(ptx_map.as_ref()).and_then(|(ran, map)| side(ran, *map.get(&b.line)?)),
            sass: Vec::new(),
        })
        .collect();
    for run in &sides {
        let own = if code_of(&run.ptx) == first { None } else { Some(own_branches(run, &common, &shown)?) };
        let reader = sass_side::Reader::new(&run.ran, &run.code, &run.ptx)?;
        let (list, readers) = own.as_ref().map_or((&branches, &readers), |(list, readers)| (list, readers));
        let mut used = vec![false; list.len()];
        for (row, branch) in rows.iter_mut().zip(&branches) {
            // The same PTX: the same branch. Else the next one that reads alike.
            let at = match &own {
                None => list.iter().position(|b| b.line == branch.line),
                Some(_) => {
                    (0..list.len()).find(|&i| !used[i] && list[i].source == branch.source && list[i].alike(branch))
                }
            };
            if let Some(at) = at {
                used[at] = true;
                row.sass.push(reader.outcome(&list[at], list, readers));
            }
        }
    }
    let mut levels = vec![LevelTotals {
        level: Level::Ptx.name(),
        arch: None,
        static_branches: branches.len() as u64,
        counts: ptx.as_ref().map(|r| counts(&r.analysis, r)),
    }];
    levels.extend(sides.iter().map(|s| LevelTotals {
        level: Level::Sass.name(),
        arch: Some(s.ran.kernel.arch.clone()),
        static_branches: conditional(&s.ran),
        counts: Some(counts(&s.ran.analysis, &s.ran)),
    }));
    Ok(Comparison {
        schema: SCHEMA,
        demangled: demangle(&common.kernel),
        kernel: common.kernel.clone(),
        compiler: common.compiler.clone(),
        levels,
        lines: by_line(rows, &branches, &common),
        notes,
    })
}

/// What all runs share.
struct Common {
    launch: LaunchFile,
    dir: PathBuf,
    module: PathBuf,
    kernel: String,
    ptx: Vec<u8>,
    compiler: String,
}

/// One architecture's run.
struct SassRun {
    code: Vec<u8>,
    ptx: Vec<u8>,
    ran: Ran,
}

/// PTX without what names the architecture.
fn code_of(ptx: &[u8]) -> Vec<&[u8]> {
    ptx.split(|&b| b == b'\n').filter(|l| !l.starts_with(b".target") && !l.starts_with(b"//")).collect()
}

fn own_branches(run: &SassRun, common: &Common, shown: &str) -> Result<(Vec<PtxBranch>, Readers), LevelsError> {
    let parsed = lanescope_ptx::parse(module::ptx_text(shown, &run.ptx)?);
    let (module, kernel) = (&parsed.module, common.kernel.as_str());
    Ok((ptx_side::branches(module, kernel), ptx_side::readers(module, kernel)))
}

/// Runs the PTX on the same arguments.
fn ptx_run(common: &Common, settings: &Settings, shown: &str) -> Result<Ran, RunError> {
    let fail = |error| RunError::Module {
        file: common.launch.file.clone(),
        line: common.launch.module_at.line,
        error: Box::new(error),
    };
    let kernel = module::load_ptx(shown, &common.ptx, Some(&common.kernel)).map_err(fail)?;
    Prepared::of_kernel(common.launch.clone(), common.dir.clone(), kernel, Level::Ptx, settings)?.run(None)
}

/// Counters of a branch.
fn side(ran: &Ran, inst: u32) -> Option<Side> {
    let counts = ran.profile().branches.iter().find(|b| b.inst == inst)?;
    Some(Side { executed: counts.executed, divergent: counts.divergent, lanes_lost: lost(&ran.analysis, &[inst]) })
}

/// Lane slots that these branches and exits cost.
fn lost(analysis: &Analysis, insts: &[u32]) -> u64 {
    let causes = analysis.losses.causes.iter();
    causes.filter(|c| c.cause.inst().is_some_and(|i| insts.contains(&i))).map(|c| c.lanes).sum()
}

fn counts(analysis: &Analysis, ran: &Ran) -> Counts {
    let t = analysis.totals;
    Counts {
        inst_executed: t.inst_executed,
        thread_inst_executed: t.thread_inst_executed,
        lane_efficiency: t.lane_efficiency(ran.profile().shape.warp_size),
        branches: t.branches,
        divergent_branches: t.divergent_branches,
        lanes_lost: analysis.losses.lost,
    }
}

/// Conditional branches in the kernel's text.
fn conditional(ran: &Ran) -> u64 {
    let branches = ran.kernel.instructions.iter();
    branches.filter(|i| sass_side::is_branch(i) && lanescope_analysis::cfg::is_conditional(i)).count() as u64
}

/// Branches gathered by source line, in order of file and line.
fn by_line(rows: Vec<Branch>, branches: &[PtxBranch], common: &Common) -> Vec<SourceLine> {
    let mut keyed: Vec<(Option<(String, u32)>, Branch)> = branches.iter().map(|b| b.source.clone()).zip(rows).collect();
    keyed.sort_by(|a, b| (a.0.is_none(), &a.0, a.1.ptx_line).cmp(&(b.0.is_none(), &b.0, b.1.ptx_line)));
    let texts = std::fs::read_to_string(&common.module).unwrap_or_default();
    let own = common.module.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let mut lines: Vec<SourceLine> = Vec::new();
    for (key, branch) in keyed {
        let (file, line) = key.map_or((None, None), |(f, l)| (Some(f), Some(l)));
        if let Some(last) = lines.last_mut()
            && (&last.file, last.line) == (&file, line)
        {
            last.branches.push(branch);
            continue;
        }
        let is_module =
            module::is_cuda(&common.module) && file.as_ref().is_some_and(|f| f.rsplit('/').next() == Some(&own));
        let text = line.filter(|_| is_module).and_then(|l| texts.lines().nth((l as usize).checked_sub(1)?));
        lines.push(SourceLine { file, line, text: text.map(|t| t.trim().to_owned()), branches: vec![branch] });
    }
    lines
}
