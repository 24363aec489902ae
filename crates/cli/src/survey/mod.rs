//! The survey of any amount of machine code: files and folders in, counts by kernel and architecture out.
//!
//! [`find`] lists the files, [`read`] takes the code out of them one by one, [`kernel`] counts. What is broken is
//! reported in its place and the rest goes on. Code is dropped as soon as it is counted.

mod find;
mod kernel;
pub mod patch;
mod proof;
mod read;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use lanescope_report::survey::{File, Survey};
use rayon::prelude::*;

use kernel::Names;

/// Files up to this size are read several at a time; larger ones one by one, with all cores on their kernels.
const SMALL: u64 = 8 << 20;
/// Small files at a time.
const BATCH: usize = 64;

/// What to survey.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Files and folders.
    pub paths: Vec<PathBuf>,
    /// Only these architectures (`sm_90`); all if empty.
    pub archs: Vec<String>,
    /// List each branch.
    pub branches: bool,
    /// Ask the uniformity analysis too, which branches keep warps together.
    pub uniformity: bool,
}

/// How far a survey is.
#[derive(Debug, Default)]
pub struct Progress {
    /// Files that are done.
    pub files: AtomicU64,
    /// Files in all.
    pub total: AtomicU64,
    /// Kernels and functions that are counted.
    pub kernels: AtomicU64,
}

struct Context<'a> {
    request: &'a Request,
    names: Names,
    progress: &'a Progress,
    tell: &'a (dyn Fn(&Progress) + Sync),
}

/// Surveys files and folders. `tell` is called now and then, from any thread.
pub fn survey(request: &Request, tell: &(dyn Fn(&Progress) + Sync)) -> Survey {
    let (jobs, mut files) = find::list(&request.paths);
    let progress = Progress::default();
    progress.total.store(jobs.len() as u64, Relaxed);
    let context = Context { request, names: Names::default(), progress: &progress, tell };
    let mut rest = jobs.as_slice();
    while let [first, ..] = rest {
        let small = rest.iter().take(BATCH).take_while(|j| j.size <= SMALL).count();
        let (now, later) = rest.split_at(small.max(1));
        rest = later;
        if small == 0 {
            files.extend(done(&context, read::file(&context, first)));
        } else {
            let found: Vec<Vec<File>> = now.par_iter().map(|job| done(&context, read::file(&context, job))).collect();
            files.extend(found.into_iter().flatten());
        }
    }
    Survey { files }
}

fn done(context: &Context<'_>, files: Vec<File>) -> Vec<File> {
    context.progress.files.fetch_add(1, Relaxed);
    (context.tell)(context.progress);
    files
}
