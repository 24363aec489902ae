//! Compiling with NVRTC.

use std::path::{Path, PathBuf};

use lanescope_gpu::nvrtc::{Nvrtc, NvrtcError, Request};

use super::find::{self, Places};
use super::{Built, CompileError, Job, Key, Tools, identity, includes};

pub(super) fn compile(job: &Job<'_>, tools: &Tools, places: &Places) -> Result<Built, CompileError> {
    let nvrtc = choose(job, tools, places)?;
    let (major, minor) = nvrtc.version();
    let compiler = format!("NVRTC {major}.{minor}");
    let name = job.path.display().to_string();
    let headers = find::headers(nvrtc.path());
    let options = options(job, &headers);
    let instances: Vec<String> = job.kernel.filter(|k| is_instance(k)).map(str::to_owned).into_iter().collect();
    let key = includes::of(job.path, job.source, &folders(&options)).map(|headers| {
        let mut key = Key::new(&compiler, job);
        key.add(identity(nvrtc.path()).as_bytes());
        for part in options.iter().chain(&instances) {
            key.add(part.as_bytes());
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
    // NVRTC reads UTF-8 and takes the line's end for a part of a broken character, the next line with it.
    let text = String::from_utf8_lossy(job.source);
    let request = Request { source: text.as_bytes(), name: &name, options: &options, instances: &instances };
    let compiled = nvrtc.compile(&request).map_err(|error| match error {
        NvrtcError::Source { log } => {
            let hint = hint(&log, major);
            CompileError::Source {
                path: name.clone(),
                compiler: compiler.clone(),
                arch: job.arch.to_string(),
                log,
                hint,
            }
        }
        other => CompileError::Nvrtc(other),
    })?;
    let built = Built {
        cubin: compiled.cubin,
        ptx: compiled.ptx,
        log: compiled.log,
        lowered: compiled.lowered.into_iter().next(),
        compiler,
    };
    if let Some(key) = key {
        tools.cache.put(&key, &built);
    }
    Ok(built)
}

/// The first library that can be loaded and knows the architecture.
fn choose(job: &Job<'_>, tools: &Tools, places: &Places) -> Result<Nvrtc, CompileError> {
    let named = tools.nvrtc.is_some() || places.named[0].is_some();
    let candidates = tools.nvrtc.clone().map_or_else(|| find::nvrtc(places), |n| vec![n]);
    let mut unsupported = None;
    for path in candidates {
        // NVRTC finds its second library beside itself only under its own name, so links are followed.
        let real = if path.components().count() > 1 { std::fs::canonicalize(&path).unwrap_or(path) } else { path };
        let nvrtc = match Nvrtc::load(&real) {
            Ok(nvrtc) => nvrtc,
            Err(error) if named => return Err(CompileError::Nvrtc(error)),
            Err(_) => continue,
        };
        let known = nvrtc.architectures().map_err(CompileError::Nvrtc)?;
        if known.iter().any(|&k| u32::try_from(k) == Ok(job.arch.sm())) {
            return Ok(nvrtc);
        }
        let (major, minor) = nvrtc.version();
        let known: Vec<String> = known.iter().map(|k| format!("sm_{k}")).collect();
        unsupported.get_or_insert(CompileError::Unsupported {
            compiler: format!("NVRTC {major}.{minor}"),
            arch: job.arch.to_string(),
            known: known.join(", "),
        });
    }
    Err(unsupported.unwrap_or_else(|| CompileError::NoCompiler { path: job.path.display().to_string() }))
}

fn options(job: &Job<'_>, headers: &[PathBuf]) -> Vec<String> {
    let mut options = vec![format!("--gpu-architecture={}", job.arch), "-lineinfo".to_owned()];
    options.extend(job.options.options.iter().cloned());
    let home = job.path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folders = std::iter::once(home).chain(job.options.include.iter().map(PathBuf::as_path));
    options.extend(folders.chain(headers.iter().map(PathBuf::as_path)).map(|f| format!("-I{}", f.display())));
    options
}

/// Folders that the options name, those of the compiler's own headers too: a file of the user's can lie there.
fn folders(options: &[String]) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let mut words = options.iter();
    while let Some(word) = words.next() {
        if word == "-I" || word == "--include-path" {
            folders.extend(words.next().map(PathBuf::from));
        } else if let Some(path) = word.strip_prefix("--include-path=").or_else(|| word.strip_prefix("-I")) {
            folders.push(path.into());
        }
    }
    folders
}

/// A kernel name that stands for a template's instance: `scan<float, 4>`.
fn is_instance(kernel: &str) -> bool {
    kernel.ends_with('>') && kernel.contains('<') && !kernel.starts_with("_Z")
}

/// The header that could not be opened. Versions word it differently.
fn missing_header(log: &str) -> Option<&str> {
    let (_, rest) = log.split_once(" open source file \"")?;
    rest.split_once('"').map(|(header, _)| header)
}

/// Whether a header is missing.
pub(super) fn lacks_header(log: &str) -> bool {
    missing_header(log).is_some()
}

/// What helps, where the compiler only says that a header is missing.
fn hint(log: &str, major: i32) -> Option<String> {
    let header = missing_header(log)?;
    let suffix = if major < 13 { "-cu12" } else { "" };
    let first = header.split('/').next().unwrap_or(header);
    Some(if ["cuda", "cub", "thrust", "nv"].contains(&first) && header.contains('/') {
        format!("that header comes with: pip install nvidia-cuda-cccl{suffix}")
    } else if first.starts_with("cuda") || first.starts_with("cooperative_groups") || first.starts_with("mma.h") {
        format!("that header comes with: pip install nvidia-cuda-runtime{suffix} nvidia-cuda-nvcc{suffix}")
    } else {
        "NVRTC compiles device code only; guard host headers and host code with #ifndef __CUDACC_RTC__, or use nvcc \
         (--nvcc PATH). Own headers: `[compile] include = [...]` in the launch file"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_read_from_all_spellings() {
        let options = ["-Ia", "-I", "b", "--include-path=c", "--include-path", "d", "-DX=1", "-I"].map(str::to_owned);
        assert_eq!(folders(&options), ["a", "b", "c", "d"].map(PathBuf::from));
    }

    #[test]
    fn instances_are_told_from_names() {
        assert!(is_instance("scan<float, 4>") && is_instance("a::b<int>"));
        assert!(!is_instance("scan") && !is_instance("_Z4scanIfEvv") && !is_instance("void scan<float>(int)"));
    }

    #[test]
    fn missing_headers_are_explained() {
        let log = |h: &str| format!("k.cu(1): catastrophic error: cannot open source file \"{h}\" (no directories)");
        assert!(hint(&log("cuda/std/atomic"), 12).is_some_and(|h| h.contains("pip install nvidia-cuda-cccl-cu12")));
        assert!(hint(&log("cuda_fp16.h"), 13).is_some_and(|h| h.contains("pip install nvidia-cuda-runtime ")));
        assert!(hint(&log("stdio.h"), 12).is_some_and(|h| h.contains("__CUDACC_RTC__")));
        assert_eq!(hint("k.cu(1): error: expected a \";\"", 12), None);
    }
}
