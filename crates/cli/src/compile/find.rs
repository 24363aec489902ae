//! Where compilers are looked for.
//!
//! In this order: what the user names (flag, then `LANESCOPE_NVRTC`, `LANESCOPE_PTXAS`, `LANESCOPE_NVCC`); packages of the
//! active Python environment (`VIRTUAL_ENV`, `CONDA_PREFIX`, then whatever `python3` reports); `CUDA_HOME` and
//! `CUDA_PATH`; `PATH` for programs and the system's loader for libraries; `/usr/local/cuda`. Newer packages come before
//! older ones of the same place.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders of packages below `site-packages`, newest first: CUDA 13 has one for all, CUDA 12 one for each package.
const NVRTC_PACKAGES: [&str; 2] = ["nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"];
const PROGRAM_PACKAGES: [&str; 2] = ["nvidia/cu13/bin", "nvidia/cuda_nvcc/bin"];
/// Folders of libraries below a toolkit or a prefix.
const LIBRARIES: [&str; 3] = ["lib64", "lib", "targets/x86_64-linux/lib"];

/// What the environment says.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// `VIRTUAL_ENV`, `CONDA_PREFIX`.
    pub prefixes: Vec<PathBuf>,
    /// `CUDA_HOME`, `CUDA_PATH`, the conventional place.
    pub toolkits: Vec<PathBuf>,
    /// `PATH`.
    pub path: Vec<PathBuf>,
    /// Named by variables: NVRTC, ptxas, nvcc.
    pub named: [Option<PathBuf>; 3],
    /// Whether `python3` may be asked.
    pub python: bool,
}

impl Places {
    /// Of this process.
    pub fn of_environment() -> Places {
        let var = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let mut toolkits: Vec<PathBuf> = ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(|n| var(n)).collect();
        toolkits.push("/usr/local/cuda".into());
        let path = std::env::var_os("PATH").map(|p| std::env::split_paths(&p).collect()).unwrap_or_default();
        Places {
            prefixes: ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(|n| var(n)).collect(),
            toolkits,
            path,
            named: ["LANESCOPE_NVRTC", "LANESCOPE_PTXAS", "LANESCOPE_NVCC"].map(var),
            python: true,
        }
    }

    /// `site-packages` of the active environments.
    fn sites(&self) -> Vec<PathBuf> {
        let mut sites = Vec::new();
        for prefix in &self.prefixes {
            for lib in ["lib", "lib64"] {
                let versions = entries(&prefix.join(lib));
                let pythons = versions.into_iter().filter(|p| name(p).starts_with("python3"));
                sites.extend(pythons.map(|p| p.join("site-packages")).filter(|p| p.is_dir()));
            }
        }
        sites
    }

    /// Those that `python3` names. Asked last: starting Python takes longer than everything else here.
    fn python_sites(&self) -> Vec<PathBuf> {
        if !self.python {
            return Vec::new();
        }
        // -I: nothing from the current folder is imported.
        let script = "import site; print('\\n'.join(site.getsitepackages() + [site.getusersitepackages()]))";
        let Ok(out) = Command::new("python3").args(["-I", "-c", script]).output() else { return Vec::new() };
        String::from_utf8_lossy(&out.stdout).lines().map(PathBuf::from).filter(|p| p.is_absolute()).collect()
    }
}

/// NVRTC libraries to try, best first. The last ones are bare names for the system's loader.
pub fn nvrtc(places: &Places) -> Vec<PathBuf> {
    if let [Some(named), ..] = &places.named {
        return vec![named.clone()];
    }
    let in_sites = |sites: Vec<PathBuf>| -> Vec<PathBuf> {
        sites.iter().flat_map(|s| NVRTC_PACKAGES.iter().flat_map(move |p| libraries(&s.join(p)))).collect()
    };
    let mut found = in_sites(places.sites());
    for root in places.prefixes.iter().chain(&places.toolkits) {
        found.extend(LIBRARIES.iter().flat_map(|l| libraries(&root.join(l))));
    }
    if found.is_empty() {
        found = in_sites(places.python_sites());
    }
    found.extend(["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"].map(PathBuf::from));
    found
}

/// The ptxas program.
pub fn ptxas(places: &Places) -> Option<PathBuf> {
    places.named[1].clone().or_else(|| program(places, "ptxas"))
}

/// The nvcc program.
pub fn nvcc(places: &Places) -> Option<PathBuf> {
    places.named[2].clone().or_else(|| program(places, "nvcc"))
}

fn program(places: &Places, program: &str) -> Option<PathBuf> {
    let in_sites = |sites: Vec<PathBuf>| {
        sites.iter().flat_map(|s| PROGRAM_PACKAGES.map(|p| s.join(p).join(program))).find(|p| p.is_file())
    };
    let installed = places.prefixes.iter().chain(&places.toolkits).map(|r| r.join("bin")).chain(places.path.clone());
    in_sites(places.sites())
        .or_else(|| installed.map(|d| d.join(program)).find(|p| p.is_file()))
        .or_else(|| in_sites(places.python_sites()))
}

/// Folders with NVIDIA's headers that belong to a library, or to another file of the same package.
pub fn headers(library: &Path) -> Vec<PathBuf> {
    let Ok(real) = std::fs::canonicalize(library) else { return Vec::new() };
    // lib/libnvrtc.so -> the package; for a package of CUDA 12 its neighbours have the headers.
    let Some(package) = real.parent().and_then(Path::parent) else { return Vec::new() };
    let mut candidates = vec![package.join("include"), package.join("include/cccl")];
    if let Some(packages) = package.parent() {
        candidates.extend(["cuda_runtime", "cuda_cccl", "cuda_nvcc"].map(|p| packages.join(p).join("include")));
        candidates.extend([packages.join("../include"), packages.join("../include/cccl")]);
    }
    // A folder without the one header that all need is somebody else's.
    let ours = |d: &PathBuf| d.join("cuda_fp16.h").is_file() || d.join("cuda/std").is_dir() || d.join("crt").is_dir();
    candidates.into_iter().filter(ours).collect()
}

/// The libraries in a folder, newest name first.
fn libraries(folder: &Path) -> Vec<PathBuf> {
    let mut list: Vec<PathBuf> =
        entries(folder).into_iter().filter(|p| name(p).starts_with("libnvrtc.so") && p.is_file()).collect();
    list.sort_by_key(|p| std::cmp::Reverse(version(name(p))));
    // `libnvrtc.so` and `libnvrtc.so.12` are most often links to the same file.
    let mut seen = Vec::new();
    list.retain(|p| {
        let real = std::fs::canonicalize(p).unwrap_or_else(|_| p.clone());
        let new = !seen.contains(&real);
        seen.push(real);
        new
    });
    list
}

fn version(name: &str) -> Vec<u32> {
    name.split('.').filter_map(|part| part.parse().ok()).collect()
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|n| n.to_str()).unwrap_or("")
}

/// Sorted, so that the choice does not depend on the file system.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut list: Vec<PathBuf> = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    list.sort();
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(path: &Path) {
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, b"").expect("a file");
    }

    #[test]
    fn packages_come_before_toolkits_and_newer_before_older() {
        let dir = tempfile::tempdir().expect("a folder");
        let site = dir.path().join("venv/lib/python3.11/site-packages/nvidia");
        let (old, new) = (site.join("cuda_nvrtc/lib/libnvrtc.so.12"), site.join("cu13/lib/libnvrtc.so.13"));
        let toolkit = dir.path().join("cuda/lib64/libnvrtc.so.11.8.89");
        for path in [&old, &new, &toolkit, &site.join("cuda_nvrtc/lib/libnvrtc-builtins.so.12.9")] {
            touch(path);
        }
        touch(&site.join("cuda_nvcc/bin/ptxas"));
        touch(&dir.path().join("cuda/bin/ptxas"));
        touch(&dir.path().join("cuda/bin/nvcc"));
        let places = Places {
            prefixes: vec![dir.path().join("venv")],
            toolkits: vec![dir.path().join("cuda")],
            ..Places::default()
        };
        let found = nvrtc(&places);
        assert_eq!(found[..3], [new, old, toolkit]);
        assert!(found[3..].iter().all(|p| p.components().count() == 1), "{found:?}");
        assert_eq!(ptxas(&places), Some(site.join("cuda_nvcc/bin/ptxas")));
        assert_eq!(nvcc(&places), Some(dir.path().join("cuda/bin/nvcc")));
    }

    #[test]
    fn what_is_named_is_the_only_choice() {
        let places = Places { named: ["a", "b", "c"].map(|n| Some(n.into())), ..Places::default() };
        assert_eq!(nvrtc(&places), [PathBuf::from("a")]);
        assert_eq!((ptxas(&places), nvcc(&places)), (Some("b".into()), Some("c".into())));
        assert_eq!(ptxas(&Places::default()), None);
    }

    #[test]
    fn headers_lie_beside_the_library() {
        let dir = tempfile::tempdir().expect("a folder");
        let root = std::fs::canonicalize(dir.path()).expect("a folder");
        touch(&root.join("nvidia/cuda_nvrtc/lib/libnvrtc.so.12"));
        touch(&root.join("nvidia/cuda_runtime/include/cuda_fp16.h"));
        touch(&root.join("nvidia/cuda_cccl/include/cuda/std/atomic"));
        touch(&root.join("include/unrelated.h"));
        let found = headers(&root.join("nvidia/cuda_nvrtc/lib/libnvrtc.so.12"));
        assert_eq!(found, [root.join("nvidia/cuda_runtime/include"), root.join("nvidia/cuda_cccl/include")]);
    }
}
