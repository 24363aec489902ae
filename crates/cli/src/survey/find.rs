//! Files named on the command line, and files in folders that begin as one that may hold GPU code.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use lanescope_report::survey::File;

/// Folders within folders at most.
const DEEPEST: usize = 64;

/// First bytes of the files that are looked into.
const MAGIC: [(&[u8], Kind); 4] = [
    (b"\x7fELF", Kind::Code),
    (b"\x50\xed\x55\xba", Kind::Code),
    (b"!<arch>\n", Kind::Code),
    (b"PK\x03\x04", Kind::Zip),
];

/// How a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A cubin, fatbin, library, executable or static library.
    Code,
    /// A zip file, such as a wheel.
    Zip,
}

/// One file to survey.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) path: PathBuf,
    pub(super) size: u64,
    pub(super) kind: Kind,
    /// Whether it was named, so that having no GPU code is worth a word.
    pub(super) named: bool,
}

/// The kind that first bytes tell.
pub(super) fn kind(start: &[u8]) -> Option<Kind> {
    MAGIC.iter().find(|(magic, _)| start.starts_with(magic)).map(|m| m.1)
}

/// A file that could not be read.
pub(super) fn failed(path: &Path, error: impl std::fmt::Display) -> File {
    File { path: path.display().to_string(), arch: None, kernels: Vec::new(), error: Some(error.to_string()) }
}

/// The files to read, in order, and those that cannot be.
pub(super) fn list(paths: &[PathBuf]) -> (Vec<Job>, Vec<File>) {
    let (mut jobs, mut bad) = (Vec::new(), Vec::new());
    for path in paths {
        match fs::metadata(path) {
            Ok(m) if m.is_dir() => folder(path, 0, &mut jobs, &mut bad),
            Ok(m) if m.is_file() => match start(path) {
                // Bytes without a known start are tried all the same: the reader says best what they are not.
                Ok(bytes) => jobs.push(Job {
                    path: path.clone(),
                    size: m.len(),
                    kind: kind(&bytes).unwrap_or(Kind::Code),
                    named: true,
                }),
                Err(e) => bad.push(failed(path, e)),
            },
            Ok(_) => bad.push(failed(path, "neither a file nor a folder")),
            Err(e) => bad.push(failed(path, e)),
        }
    }
    (jobs, bad)
}

/// Symbolic links are not followed: they lead to files that are found under their own names, or round in circles.
fn folder(path: &Path, depth: usize, jobs: &mut Vec<Job>, bad: &mut Vec<File>) {
    if depth > DEEPEST {
        bad.push(failed(path, "too many folders within folders"));
        return;
    }
    let mut inside = Vec::new();
    match fs::read_dir(path) {
        Ok(entries) => {
            for entry in entries {
                match entry {
                    Ok(entry) => inside.push(entry),
                    Err(e) => bad.push(failed(path, e)),
                }
            }
        }
        Err(e) => bad.push(failed(path, e)),
    }
    inside.sort_by_key(fs::DirEntry::file_name);
    for entry in inside {
        let path = entry.path();
        match entry.metadata() {
            Ok(m) if m.is_dir() => folder(&path, depth + 1, jobs, bad),
            Ok(m) if m.is_file() => match start(&path) {
                Ok(bytes) => {
                    if let Some(kind) = kind(&bytes) {
                        jobs.push(Job { path, size: m.len(), kind, named: false });
                    }
                }
                Err(e) => bad.push(failed(&path, e)),
            },
            Ok(_) => {}
            Err(e) => bad.push(failed(&path, e)),
        }
    }
}

/// The first bytes of a file.
fn start(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(8).read_to_end(&mut bytes)?;
    Ok(bytes)
}
