//! Compiling with nvcc, for source with host code or where there is no NVRTC.

use std::path::Path;
use std::process::Command;

use lanescope_sass::container::{self, EntryKind};

use super::{Built, CompileError, Job, Key, Tools, identity, includes};

pub(super) fn compile(nvcc: &Path, job: &Job<'_>, tools: &Tools) -> Result<Built, CompileError> {
    let program = nvcc.display().to_string();
    let fail = |error: String| CompileError::Program { program: program.clone(), error };
    let version = super::ptxas::version(nvcc)?;
    let compiler = format!("nvcc {version}");
    let arch = job.arch.to_string();
    let number = arch.trim_start_matches("sm_");
    let mut options = vec![
        "-fatbin".to_owned(),
        // Both: the PTX says what the compiler started from.
        format!("-gencode=arch=compute_{number},code=[sm_{number},compute_{number}]"),
        "-lineinfo".to_owned(),
    ];
    options.extend(job.options.options.iter().cloned());
    options.extend(job.options.include.iter().map(|f| format!("-I{}", f.display())));
    let key = includes::of(job.path, job.source, &job.options.include).map(|headers| {
        let mut key = Key::new(&compiler, job);
        key.add(identity(nvcc).as_bytes());
        for option in &options {
            key.add(option.as_bytes());
        }
        key.add(job.source);
        for (path, text) in &headers {
            key.add(path.as_os_str().as_encoded_bytes());
            key.add(text);
        }
        key.text()
    });
    if let Some(built) = key.as_ref().and_then(|k| tools.cache.get(k)) {
        return Ok(built);
    }
    let folder = tempfile::tempdir().map_err(|e| fail(format!("no temporary folder: {e}")))?;
    let target = folder.path().join("kernel.fatbin");
    let out = Command::new(nvcc)
        .args(&options)
        .arg("-o")
        .arg(&target)
        .arg(job.path)
        .output()
        .map_err(|e| fail(format!("cannot be started: {e}")))?;
    let log = super::ptxas::log(&out);
    if !out.status.success() {
        let path = job.path.display().to_string();
        return Err(CompileError::Source { path, compiler, arch: job.arch.to_string(), log, hint: None });
    }
    let bytes = std::fs::read(&target).map_err(|e| fail(format!("wrote no result: {e}")))?;
    let file = container::open(&bytes).map_err(|e| fail(e.to_string()))?;
    let mut built = Built { log, compiler, ..Built::default() };
    for entry in &file.entries {
        let data = || entry.bytes().map(|b| b.into_owned()).map_err(|e| fail(e.to_string()));
        match entry.kind {
            EntryKind::Cubin => built.cubin = data()?,
            EntryKind::Ptx => {
                built.ptx = data()?;
                let end = built.ptx.iter().position(|&b| b == 0).unwrap_or(built.ptx.len());
                built.ptx.truncate(end);
            }
            EntryKind::Other(_) => {}
        }
    }
    if built.cubin.is_empty() {
        return Err(fail("its result has no machine code".into()));
    }
    if let Some(key) = key {
        tools.cache.put(&key, &built);
    }
    Ok(built)
}
