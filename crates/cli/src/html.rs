//! The report as one HTML page, and which warps it shows over time.

use std::path::Path;

use lanescope_analysis::advise::Advice;
use lanescope_analysis::roofline::Roofline;
use lanescope_report::html::{Page, page};
use lanescope_report::trace::Trace;
use lanescope_sim::{Progress, TraceRequest};

use crate::names::demangle;
use crate::output::{OutputError, write_file};
use crate::run::{Prepared, Ran, RunError};
use crate::sources;

/// Steps of a warp that a page shows, unless something else is asked for.
pub const STEPS: usize = 20_000;

/// Warps that one page shows.
const WARPS: usize = 32;

/// Why a page could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HtmlError {
    /// The launch has no such warp.
    #[error("{flag}: there is no {what} {index}; {has}")]
    NoSuchWarp {
        /// Who asked.
        flag: &'static str,
        /// `block` or `warp`.
        what: &'static str,
        /// Which was asked for.
        index: u64,
        /// What there is.
        has: String,
    },
    /// The list of warps cannot be read.
    #[error("{flag}: expected BLOCK,WARP or several of them such as 0,0;3,1; found `{text}`")]
    NotWarps {
        /// Who asked.
        flag: &'static str,
        /// What was given.
        text: String,
    },
    /// More warps than a page shows.
    #[error("{flag}: {count} warps are too many for one page; it shows at most {WARPS}")]
    TooManyWarps {
        /// Who asked.
        flag: &'static str,
        /// How many were given.
        count: usize,
    },
    /// The second run, which traces the warp, failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The page could not be put together.
    #[error("the page cannot be made: {0}")]
    Page(String),
    /// The page could not be written.
    #[error(transparent)]
    Write(#[from] OutputError),
}

/// Checks that the launch has this warp; `flag` is who asks for it.
pub fn check(prepared: &Prepared, block: u64, warp: u32, flag: &'static str) -> Result<(), HtmlError> {
    let blocks = prepared.launch.grid.iter().fold(1u64, |n, &d| n.saturating_mul(d.into()));
    let warps = prepared.warps();
    if block >= blocks {
        return Err(HtmlError::NoSuchWarp { flag, what: "block", index: block, has: format!("the grid has {blocks}") });
    }
    if warp >= warps {
        let has = format!("a block has {warps}");
        return Err(HtmlError::NoSuchWarp { flag, what: "warp", index: warp.into(), has });
    }
    Ok(())
}

/// The warps in a list such as `0,0;3,1`: block and warp of each.
pub fn warps(prepared: &Prepared, text: &str, flag: &'static str) -> Result<Vec<(u64, u32)>, HtmlError> {
    let bad = || HtmlError::NotWarps { flag, text: text.to_owned() };
    let mut list = Vec::new();
    for item in text.split(';').map(str::trim).filter(|t| !t.is_empty()) {
        let (block, warp) = item.split_once(',').ok_or_else(bad)?;
        let found = (block.trim().parse().map_err(|_| bad())?, warp.trim().parse().map_err(|_| bad())?);
        check(prepared, found.0, found.1, flag)?;
        if !list.contains(&found) {
            list.push(found);
        }
    }
    match list.len() {
        0 => Err(bad()),
        count if count > WARPS => Err(HtmlError::TooManyWarps { flag, count }),
        _ => Ok(list),
    }
}

/// Requests to trace warps.
pub fn requests(warps: &[(u64, u32)], max_steps: usize) -> Vec<TraceRequest> {
    warps.iter().map(|&(block, warp)| TraceRequest { block, warp, max_steps }).collect()
}

/// The warp worth looking at: the one that lost most lane slots, or the one that issued most if none lost any.
pub fn worst_warp(ran: &Ran) -> (u64, u32) {
    let extremes = ran.outcome.extremes;
    let worst = extremes.most_lost.filter(|w| w.lost > 0).or(extremes.longest);
    worst.map_or((0, 0), |w| (w.block, w.warp))
}

/// Runs the launch once more with the worst warp of `ran` traced: which one that is, only a run tells.
pub fn trace_again(
    prepared: Prepared,
    ran: &Ran,
    max_steps: usize,
    progress: Option<Progress<'_>>,
) -> Result<Ran, HtmlError> {
    Ok(prepared.traced(requests(&[worst_warp(ran)], max_steps)).run(progress)?)
}

/// What a page is made from.
#[derive(Clone, Copy)]
pub struct Content<'a> {
    /// The launch.
    pub ran: &'a Ran,
    /// A run of it with traces, if `ran` has none.
    pub traced: Option<&'a Ran>,
    /// A run with the fix, with the same warps traced.
    pub after: Option<&'a Ran>,
    /// What to do about it.
    pub advice: Option<&'a Advice>,
    /// What the machine can give; worked out for the launch's GPU if it is not given.
    pub roofline: Option<&'a Roofline>,
    /// The launch file's folder.
    pub dir: &'a Path,
    /// Another folder with source files.
    pub folder: Option<&'a Path>,
}

impl<'a> Content<'a> {
    /// A launch alone.
    pub fn new(ran: &'a Ran, dir: &'a Path) -> Content<'a> {
        Content { ran, traced: None, after: None, advice: None, roofline: None, dir, folder: None }
    }
}

/// The page as text.
pub fn render(content: &Content<'_>) -> Result<String, HtmlError> {
    let ran = content.ran;
    let sources = sources::of(ran, content.dir, content.folder);
    let warnings = ran.warnings();
    let input = ran.input(&sources, &warnings);
    let before = traces(content.traced.unwrap_or(ran));
    let after = content.after.map(traces).unwrap_or_default();
    let printed: Vec<_> = ran
        .outcome
        .printed
        .iter()
        .map(|p| lanescope_report::printed::Printed { block: p.block, thread: p.thread, text: &p.text })
        .collect();
    let warps = match (content.traced, ran.outcome.extremes.most_lost) {
        (Some(_), Some(w)) if w.lost > 0 => "Of all warps, this one loses most lane slots.",
        (Some(_), _) => "No warp loses a lane slot; this one issues most.",
        (None, _) => "",
    };
    let machine = ran.roofline();
    let content = Page {
        before: &before,
        warps,
        after: &after,
        advice: content.advice,
        roofline: content.roofline.or(machine),
        printed: &printed,
        printed_lost: ran.outcome.printed_lost,
        name: &demangle,
        ..Page::new(&input)
    };
    page(&content).map_err(|e| HtmlError::Page(e.to_string()))
}

/// Writes the page, whole or not at all.
pub fn write(content: &Content<'_>, file: &Path) -> Result<(), HtmlError> {
    Ok(write_file(file, render(content)?.into_bytes())?)
}

fn traces(ran: &Ran) -> Vec<Trace> {
    ran.outcome.traces.iter().filter_map(|t| ran.trace(t.block, t.warp)).collect()
}
