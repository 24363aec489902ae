//! Files that commands write: each whole or not at all.

use std::io::Write;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::npy;
use crate::run::{Ran, RunError};

/// Why a file could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// A buffer is not wholly known.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The system refused.
    #[error("cannot write {path}: {error}")]
    Write {
        /// The file or folder.
        path: String,
        /// What the system said.
        error: std::io::Error,
    },
}

/// Writes every buffer as `dir/arg<N>.npy`. Nothing appears under its name before all are written.
pub fn dump(ran: &Ran, dir: &Path) -> Result<Vec<PathBuf>, OutputError> {
    std::fs::create_dir_all(dir).map_err(|error| OutputError::Write { path: dir.display().to_string(), error })?;
    let mut files = Vec::new();
    for index in 0..ran.buffers.len() {
        if let Some(array) = ran.output(index)? {
            files.push((dir.join(format!("arg{index}.npy")), npy::write(array)));
        }
    }
    write_files(files)
}

/// Writes the buffers whose arguments have an `out`, relative to `dir`.
pub fn outs(ran: &Ran, dir: &Path) -> Result<Vec<PathBuf>, OutputError> {
    let mut files = Vec::new();
    for (index, arg) in ran.launch().args.iter().enumerate() {
        if let (Some(out), Some(array)) = (&arg.out, ran.output(index)?) {
            files.push((dir.join(out), npy::write(array)));
        }
    }
    write_files(files)
}

/// Writes one file.
pub fn write_file(path: &Path, bytes: Vec<u8>) -> Result<(), OutputError> {
    write_files(vec![(path.to_owned(), bytes)]).map(|_| ())
}

/// Writes files: nothing appears under its name before all are written.
///
/// # Errors
/// A file that the system refuses.
pub fn write_files(files: Vec<(PathBuf, Vec<u8>)>) -> Result<Vec<PathBuf>, OutputError> {
    let mut ready = Vec::new();
    for (path, bytes) in files {
        let fail = |error| OutputError::Write { path: path.display().to_string(), error };
        let dir = path.parent().filter(|d| !d.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = NamedTempFile::new_in(dir).map_err(fail)?;
        file.write_all(&bytes).and_then(|()| file.flush()).map_err(fail)?;
        share(&file).map_err(fail)?;
        ready.push((path, file));
    }
    let mut done = Vec::new();
    for (path, file) in ready {
        file.persist(&path).map_err(|e| OutputError::Write { path: path.display().to_string(), error: e.error })?;
        done.push(path);
    }
    Ok(done)
}

/// Temporary files are private; the result should have the rights of any new file.
#[cfg(unix)]
fn share(file: &NamedTempFile) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn share(_: &NamedTempFile) -> std::io::Result<()> {
    Ok(())
}
