//! Assembling PTX with ptxas.

use std::path::Path;
use std::process::{Command, Output};

use super::find::{self, Places};
use super::{Built, CompileError, Job, Key, Tools, identity};

pub(super) fn assemble(job: &Job<'_>, tools: &Tools) -> Result<Built, CompileError> {
    let found = tools.ptxas.clone().or_else(|| find::ptxas(&Places::of_environment()));
    let path = job.path.display().to_string();
    let ptxas = found.ok_or_else(|| CompileError::NoPtxas { path: path.clone() })?;
    let program = ptxas.display().to_string();
    let fail = |error: String| CompileError::Program { program: program.clone(), error };
    let compiler = format!("ptxas {}", version(&ptxas)?);
    let mut options = vec![format!("-arch={}", job.arch), "-lineinfo".to_owned()];
    options.extend(job.options.options.iter().cloned());
    let mut key = Key::new(&compiler, job);
    key.add(identity(&ptxas).as_bytes());
    for option in &options {
        key.add(option.as_bytes());
    }
    key.add(job.source);
    let key = key.text();
    if let Some(built) = tools.cache.get(&key) {
        return Ok(built);
    }
    let folder = tempfile::tempdir().map_err(|e| fail(format!("no temporary folder: {e}")))?;
    let target = folder.path().join("kernel.cubin");
    let out = Command::new(&ptxas)
        .args(&options)
        .arg("-o")
        .arg(&target)
        .arg(job.path)
        .output()
        .map_err(|e| fail(format!("cannot be started: {e}")))?;
    let log = log(&out);
    if !out.status.success() {
        return Err(CompileError::Source { path, compiler, arch: job.arch.to_string(), log, hint: None });
    }
    let cubin = std::fs::read(&target).map_err(|e| fail(format!("wrote no result: {e}")))?;
    let built = Built { cubin, ptx: job.source.to_vec(), log, lowered: None, compiler };
    tools.cache.put(&key, &built);
    Ok(built)
}

/// What the program calls its version: `12.9.86` of `Cuda compilation tools, release 12.9, V12.9.86`.
pub(super) fn version(program: &Path) -> Result<String, CompileError> {
    let fail = |error: String| CompileError::Program { program: program.display().to_string(), error };
    let out = Command::new(program).arg("--version").output().map_err(|e| fail(format!("cannot be started: {e}")))?;
    let text = String::from_utf8_lossy(&out.stdout);
    let version = text.split_whitespace().filter_map(|w| w.strip_prefix('V')).find(|w| w.starts_with(char::is_numeric));
    version.map(str::to_owned).ok_or_else(|| fail("does not say its version; is it NVIDIA's?".into()))
}

/// What a program printed, on both streams.
pub(super) fn log(out: &Output) -> String {
    let mut text = String::from_utf8_lossy(&out.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&out.stderr));
    text.trim_end().to_owned()
}
