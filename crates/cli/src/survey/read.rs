//! One file: its cubins, and those of the members of a wheel.

use std::fs;
use std::io::{BufReader, Read};

use lanescope_report::survey::{File, Kernel};
use lanescope_sass::container::{self, Entry, EntryKind, Module};
use lanescope_sass::flow::FlowReader;
use rayon::prelude::*;

use super::find::{Job, Kind, failed, kind};
use super::{Context, kernel};

/// No file, and no member of a zip file, is read if it is larger.
const LARGEST: u64 = 8 << 30;
/// Complaints of one file that are told.
const MOST_ERRORS: usize = 8;

/// Surveys a file: one result for each architecture in it.
pub(super) fn file(context: &Context<'_>, job: &Job) -> Vec<File> {
    let path = job.path.display().to_string();
    if job.size > LARGEST && job.kind == Kind::Code {
        return vec![failed(&job.path, format!("{} bytes: larger than any file that is read", job.size))];
    }
    let result = match job.kind {
        Kind::Code => {
            fs::read(&job.path).map(|bytes| code(context, &path, &bytes, job.named)).map_err(|e| e.to_string())
        }
        Kind::Zip => zip(context, job),
    };
    result.unwrap_or_else(|error| vec![failed(&job.path, error)])
}

/// Members of a zip file, one after another.
fn zip(context: &Context<'_>, job: &Job) -> Result<Vec<File>, String> {
    let reader = BufReader::new(fs::File::open(&job.path).map_err(|e| e.to_string())?);
    let mut archive = zip::ZipArchive::new(reader).map_err(|e| e.to_string())?;
    let mut out = Vec::new();
    for index in 0..archive.len() {
        let mut member = match archive.by_index(index) {
            Ok(member) => member,
            Err(e) => {
                out.push(failed(&job.path, format!("member {index}: {e}")));
                continue;
            }
        };
        if !member.is_file() {
            continue;
        }
        let name = member.name().map_or_else(|_| format!("member {index}"), |n| n.into_owned());
        let path = format!("{}/{name}", job.path.display());
        let fail = |error: String| File { path: path.clone(), arch: None, kernels: Vec::new(), error: Some(error) };
        let mut bytes = Vec::new();
        if let Err(e) = (&mut member).take(8).read_to_end(&mut bytes) {
            out.push(fail(e.to_string()));
            continue;
        }
        if kind(&bytes) != Some(Kind::Code) {
            continue;
        }
        match (&mut member).take(LARGEST).read_to_end(&mut bytes) {
            Ok(n) if n as u64 == LARGEST => out.push(fail("larger than any file that is read".into())),
            Ok(_) => out.extend(code(context, &path, &bytes, false)),
            Err(e) => out.push(fail(e.to_string())),
        }
    }
    if out.is_empty() && job.named {
        return Err("there is no GPU code in this zip file".into());
    }
    Ok(out)
}

/// A cubin or a file that holds some.
fn code(context: &Context<'_>, path: &str, bytes: &[u8], named: bool) -> Vec<File> {
    let fail = |error: String| File { path: path.to_owned(), arch: None, kernels: Vec::new(), error: Some(error) };
    let file = match container::open(bytes) {
        Ok(file) => file,
        // A host program without GPU code is no news in a folder.
        Err(container::Error::NoGpuCode { .. } | container::Error::ElfLayout { .. }) if !named => return Vec::new(),
        Err(e) => return vec![fail(e.to_string())],
    };
    let mut out: Vec<File> = file.warnings.iter().take(MOST_ERRORS).map(|w| fail(w.to_string())).collect();
    let wanted = |e: &&Entry<'_>| {
        let archs = &context.request.archs;
        e.kind == EntryKind::Cubin && (archs.is_empty() || archs.contains(&e.arch.to_string()))
    };
    let entries: Vec<&Entry<'_>> = file.entries.iter().filter(wanted).collect();
    if entries.is_empty() && context.request.archs.is_empty() && named {
        out.push(fail("there is no machine code in this file, only PTX".into()));
    }
    let found: Vec<(String, Vec<Kernel>, Option<String>)> = entries.par_iter().map(|e| cubin(context, e)).collect();
    for (arch, kernels, error) in found {
        let known = out.iter().position(|f| f.arch.as_deref() == Some(arch.as_str()));
        let at = known.unwrap_or(out.len());
        if known.is_none() {
            out.push(File { path: path.to_owned(), arch: Some(arch), kernels: Vec::new(), error: None });
        }
        out[at].kernels.extend(kernels);
        let all = &mut out[at].error;
        *all = match (all.take(), error) {
            (Some(before), Some(error)) if before.len() < 1000 => Some(format!("{before}; {error}")),
            (before, error) => before.or(error),
        };
    }
    out
}

/// The kernels of one cubin.
fn cubin(context: &Context<'_>, entry: &Entry<'_>) -> (String, Vec<Kernel>, Option<String>) {
    let arch = entry.arch.to_string();
    let fail = |arch: String, e: &dyn std::fmt::Display| {
        (arch, Vec::new(), Some(format!("cubin at {:#x}: {e}", entry.offset)))
    };
    let bytes = match entry.bytes() {
        Ok(bytes) => bytes,
        Err(e) => return fail(arch, &e),
    };
    let module = match Module::parse(&bytes) {
        Ok(module) => module,
        Err(e) => return fail(arch, &e),
    };
    let arch = module.arch.to_string();
    let reader = match FlowReader::new(module.arch.sm.into()) {
        Ok(reader) => reader,
        Err(e) => return fail(arch, &e),
    };
    let kernels = module.functions.par_iter().map(|f| kernel::count(context, &reader, &module, f)).collect();
    (arch, kernels, None)
}
