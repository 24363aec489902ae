//! Arguments: arrays read, buffers filled, parameters packed.

use std::path::Path;

use lanescope_ir::Kernel;

use super::{Fault, LaunchError, LaunchFile, MEMORY_LIMIT, Value, random};
use crate::npy::{self, Array};

/// The data of one argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// A buffer: the kernel gets its address.
    Buffer(Array),
    /// Bytes that go into the parameter itself.
    Value(Vec<u8>),
}

/// Reads and fills the data of all arguments. `dir` is the launch file's folder.
pub fn load(launch: &LaunchFile, dir: &Path) -> Result<Vec<Data>, LaunchError> {
    let mut total = 0u64;
    let mut out = Vec::with_capacity(launch.args.len());
    for (index, arg) in launch.args.iter().enumerate() {
        let fail = |fault| LaunchError { file: launch.file.clone(), at: arg.at, fault: Box::new(fault) };
        let data = match &arg.value {
            Value::Npy { path, dtype } => {
                let path = dir.join(path);
                let shown = path.display().to_string();
                let size = std::fs::metadata(&path).map(|m| m.len()).unwrap_or(0);
                if total.saturating_add(size) > MEMORY_LIMIT {
                    return Err(fail(Fault::TooLarge { index, bytes: size.into(), limit: MEMORY_LIMIT }));
                }
                let bytes = std::fs::read(&path).map_err(|e| {
                    fail(Fault::Read { hint: hint(&path, &e), path: shown.clone(), error: e.to_string() })
                })?;
                let array = npy::read(&bytes).map_err(|error| fail(Fault::Npy { path: shown.clone(), error }))?;
                if let Some(d) = dtype
                    && array.descr.trim_matches('\'').trim_start_matches(['<', '|', '=']) != d.numpy()[1..].to_owned()
                {
                    return Err(fail(Fault::NpyDtype { path: shown, found: array.descr, expected: d.name() }));
                }
                Data::Buffer(array)
            }
            Value::Fill { dtype, len, element } => Data::Buffer(Array {
                descr: format!("'{}'", dtype.numpy()),
                item: dtype.size(),
                shape: vec![*len as u64],
                data: element.repeat(*len),
            }),
            Value::Random { dtype, len, seed, bounds } => {
                let mut data = Vec::with_capacity(len * dtype.size());
                random::fill(&mut data, *dtype, *len, *seed, *bounds);
                Data::Buffer(Array {
                    descr: format!("'{}'", dtype.numpy()),
                    item: dtype.size(),
                    shape: vec![*len as u64],
                    data,
                })
            }
            Value::Scalar { bytes, .. } | Value::Bytes(bytes) => Data::Value(bytes.clone()),
        };
        if let Data::Buffer(a) = &data {
            total = total.saturating_add(a.data.len() as u64);
        }
        out.push(data);
    }
    Ok(out)
}

/// What to do about a file that cannot be read.
fn hint(path: &Path, error: &std::io::Error) -> String {
    if error.kind() != std::io::ErrorKind::NotFound {
        return String::new();
    }
    let names: Vec<String> = path
        .parent()
        .and_then(|d| std::fs::read_dir(d).ok())
        .into_iter()
        .flatten()
        .take(10_000)
        .filter_map(|e| e.ok()?.file_name().into_string().ok())
        .filter(|n| n.ends_with(".npy"))
        .collect();
    let wanted = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
    match crate::names::nearest(wanted, names.iter().map(String::as_str)) {
        Some(n) => format!("\n  paths are relative to the launch file; did you mean `{n}`?"),
        None => "\n  paths are relative to the launch file".into(),
    }
}

/// Checks number and sizes of the arguments against the kernel's parameters.
pub fn check(launch: &LaunchFile, kernel: &Kernel) -> Result<(), LaunchError> {
    let fail = |at, fault| Err(LaunchError { file: launch.file.clone(), at, fault: Box::new(fault) });
    let params = describe(kernel);
    let expected = kernel.params.len();
    if launch.args.len() != expected {
        let at = launch.args.get(expected).map_or(launch.kernel_at, |a| a.at);
        return fail(at, Fault::Count { found: launch.args.len(), expected, params });
    }
    for (index, (arg, param)) in launch.args.iter().zip(&kernel.params).enumerate() {
        let (what, found) = match &arg.value {
            Value::Scalar { dtype, bytes } => (format!("a scalar {dtype}"), bytes.len()),
            Value::Bytes(bytes) => ("a structure".to_owned(), bytes.len()),
            _ => ("a buffer, passed as a pointer".to_owned(), 8),
        };
        let expected = param.size as usize;
        if found != expected {
            let name = arg.name.as_ref().map(|n| format!(" ({n})")).unwrap_or_default();
            return fail(arg.at, Fault::Size { index, name, what, found, expected, params });
        }
    }
    Ok(())
}

/// The kernel's parameters, for messages.
fn describe(kernel: &Kernel) -> String {
    if kernel.params.is_empty() {
        return format!("  `{}` takes no parameters", crate::names::demangle(&kernel.name));
    }
    let mut out = format!("  parameters of `{}`:", crate::names::demangle(&kernel.name));
    for (i, p) in kernel.params.iter().enumerate() {
        let kind = match p.size {
            8 => "8 bytes: a pointer, or a 64-bit number".to_owned(),
            1 => "1 byte".to_owned(),
            n => format!("{n} bytes"),
        };
        let name = p.name.as_ref().map(|n| format!(" ({n})")).unwrap_or_default();
        out.push_str(&format!("\n    {i}{name}: {kind}"));
    }
    out
}

/// The parameter block. `words` holds for each argument its address or its bytes, as [`check`] allowed them.
pub fn pack(kernel: &Kernel, words: &[Vec<u8>]) -> Vec<u8> {
    let end = kernel.params.iter().map(|p| u64::from(p.offset) + u64::from(p.size)).max().unwrap_or(0);
    // A parameter block is at most 32764 bytes on any architecture.
    let size = end.max(kernel.param_size.into()).min(1 << 16) as usize;
    let mut block = vec![0; size];
    for (param, bytes) in kernel.params.iter().zip(words) {
        let at = param.offset as usize;
        if let Some(room) = block.get_mut(at..at.saturating_add(bytes.len())) {
            room.copy_from_slice(bytes);
        }
    }
    block
}
