//! Source text for reports, where it can be found.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use lanescope_ir::Kernel;

use crate::run::Ran;

/// Larger files are no hand-written source.
const LARGEST: u64 = 8 << 20;

/// The text of the files of a launch: looked for in `folder`, beside the launch file (in `dir`) and beside its module.
pub fn of(ran: &Ran, dir: &Path, folder: Option<&Path>) -> HashMap<u32, Vec<String>> {
    let mut dirs: Vec<PathBuf> = folder.map(Path::to_path_buf).into_iter().collect();
    dirs.push(dir.to_path_buf());
    if let Some(module) = dir.join(&ran.launch().module).parent() {
        dirs.push(module.to_path_buf());
    }
    find(&ran.kernel, &dirs)
}

/// The text of the files that `kernel`'s line table names: as they are named there, or by base name in `dirs`.
pub fn find(kernel: &Kernel, dirs: &[PathBuf]) -> HashMap<u32, Vec<String>> {
    let mut found = HashMap::new();
    for (i, name) in (0u32..).zip(&kernel.source.files) {
        let base = name.rsplit(['/', '\\']).next().unwrap_or(name);
        let mut places: Vec<PathBuf> = dirs.iter().map(|d| d.join(base)).collect();
        if Path::new(name).is_absolute() && is_source(base) {
            places.push(name.into());
        }
        if let Some(text) = places.iter().find_map(|p| read(p)) {
            found.insert(i, text);
        }
    }
    found
}

/// A line table may name any file of this machine; only what looks like source is opened where it says.
fn is_source(name: &str) -> bool {
    let extension = name.rsplit_once('.').map_or("", |(_, e)| e);
    matches!(
        extension,
        "cu" | "cuh" | "h" | "hpp" | "hh" | "hxx" | "c" | "cc" | "cpp" | "cxx" | "inl" | "py" | "rs" | "jl" | "ptx"
    )
}

fn read(path: &Path) -> Option<Vec<String>> {
    let meta = std::fs::metadata(path).ok()?;
    if !meta.is_file() || meta.len() > LARGEST {
        return None;
    }
    let text = String::from_utf8(std::fs::read(path).ok()?).ok()?;
    Some(text.lines().map(|l| l.replace('\t', "    ")).collect())
}
