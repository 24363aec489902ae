//! The launch with its data in a new order, as files.

use std::path::{Path, PathBuf};

use lanescope_analysis::advise::permute::permute;

use super::{Advised, Moved, Trial, arguments, trial};
use crate::launch::Value;
use crate::launch::args::Data;
use crate::npy;
use crate::output::{OutputError, write_files};
use crate::run::Prepared;

/// Why there are no files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// The advice is to leave the launch as it is, or to change code.
    #[error("there is no launch to write: {why}")]
    NothingToWrite {
        /// Why.
        why: String,
    },
    /// The module cannot be read.
    #[error("cannot read {path}: {error}")]
    Module {
        /// The file.
        path: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// A file cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Writes the launch with the data that the best fix moves: a launch file, the module and the arrays, into `dir`. Gives the
/// launch file's path. Remarks about it come with it.
///
/// # Errors
/// No fix that moves data, or files that cannot be written.
pub fn emit(advised: &Advised, dir: &Path) -> Result<(PathBuf, Option<String>), EmitError> {
    let none = |why: &str| EmitError::NothingToWrite { why: why.to_owned() };
    let tried = advised.trials.iter().zip(&advised.orders).zip(&advised.advice.fixes);
    let moves = |t: &Trial| matches!(t, Trial::Same { .. } | Trial::Differs { .. });
    let mut chosen = tried.filter_map(|((t, o), f)| Some((t.as_ref()?, o.as_ref()?, f))).filter(|x| moves(x.0));
    let Some((outcome, order, fix)) = chosen.next() else {
        return Err(none("no fix that only moves data was run again"));
    };
    let arguments = arguments(&advised.prepared, &advised.ran);
    let data = permute(&arguments, &advised.layouts, order).map_err(|e| none(&e.to_string()))?;
    let again = trial::with_data(&advised.prepared, &data);
    let remark = match outcome {
        Trial::Same { moved: Moved::Data, .. } => None,
        Trial::Same { moved: Moved::Threads(why), .. } => Some(format!("its outputs are other ones: {why}")),
        Trial::Differs { what, .. } => Some(format!("its outputs are other ones: {what}")),
        Trial::Refused { .. } => None,
    };
    std::fs::create_dir_all(dir).map_err(|error| OutputError::Write { path: dir.display().to_string(), error })?;
    let files = files(&again, &fix.title, dir)?;
    let launch = dir.join("launch.toml");
    write_files(files)?;
    Ok((launch, remark))
}

/// All files with their content; the launch file last.
fn files(launch: &Prepared, title: &str, dir: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>, EmitError> {
    let file = &launch.launch;
    let source = launch.dir.join(&file.module);
    let bytes =
        std::fs::read(&source).map_err(|error| EmitError::Module { path: source.display().to_string(), error })?;
    let module = source.file_name().map_or_else(|| "module".into(), |n| n.to_string_lossy().into_owned());
    let mut out = vec![(dir.join(&module), bytes)];
    let mut text = format!("# {}\n", title.replace(['\n', '\r'], " "));
    let mut line = |s: String| {
        text.push_str(&s);
        text.push('\n');
    };
    line(format!("module = {}", quoted(&module)));
    // The name as it was resolved: a flag may have overridden the file's.
    line(format!("kernel = {}", quoted(&launch.kernel.name)));
    if launch.kernel.arch.starts_with("sm_") {
        line(format!("arch = {}", quoted(&launch.kernel.arch)));
    }
    line(format!("grid = {:?}", file.grid));
    line(format!("block = {:?}", file.block));
    line(format!("dynamic_shared = {}", file.dynamic_shared));
    if file.compile != crate::compile::Options::default() {
        let list = |items: &[String]| items.iter().map(|s| quoted(s)).collect::<Vec<_>>().join(", ");
        let include: Vec<String> = file
            .compile
            .include
            .iter()
            .map(|p| {
                let p = launch.dir.join(p);
                std::fs::canonicalize(&p).unwrap_or(p).display().to_string()
            })
            .collect();
        line(String::new());
        line("[compile]".into());
        line(format!("options = [{}]", list(&file.compile.options)));
        line(format!("include = [{}]", list(&include)));
    }
    for (i, (arg, data)) in file.args.iter().zip(&launch.data).enumerate() {
        line(String::new());
        line("[[arg]]".into());
        if let Some(name) = &arg.name {
            line(format!("name = {}", quoted(name)));
        }
        match (data, &arg.value) {
            (Data::Buffer(array), Value::Fill { dtype, len, element })
                if array.data == element.repeat(*len) && element.iter().all(|b| *b == 0) =>
            {
                line(format!("zeros = {{ dtype = \"{dtype}\", len = {len} }}"));
            }
            (Data::Buffer(array), value) => {
                let name = format!("arg{i}.npy");
                line(format!("npy = \"{name}\""));
                if let Value::Npy { dtype: Some(d), .. } = value {
                    line(format!("dtype = \"{d}\""));
                }
                out.push((dir.join(name), npy::write(array)));
            }
            (Data::Value(bytes), Value::Scalar { dtype, .. }) => match number(*dtype, bytes) {
                Some(n) => line(format!("{dtype} = {n}")),
                None => line(format!("bytes = \"{}\"", hex(bytes))),
            },
            (Data::Value(bytes), _) => line(format!("bytes = \"{}\"", hex(bytes))),
        }
    }
    out.push((dir.join("launch.toml"), text.into_bytes()));
    Ok(out)
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// A scalar as TOML has it, if that says exactly the same.
fn number(dtype: crate::dtype::Dtype, bytes: &[u8]) -> Option<String> {
    use crate::dtype::Dtype as D;
    let mut wide = [0u8; 16];
    wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
    if let Some((low, _)) = dtype.int_range() {
        let negative = low < 0 && bytes.last().is_some_and(|b| b & 0x80 != 0);
        if negative {
            wide[bytes.len()..].fill(0xff);
        }
        let n = i128::from_le_bytes(wide);
        // TOML's integers are 64 bits wide and signed.
        return i64::try_from(n).ok().map(|n| n.to_string());
    }
    let x = match dtype {
        D::F16 => half::f16::from_le_bytes(bytes.try_into().ok()?).to_f64(),
        D::Bf16 => half::bf16::from_le_bytes(bytes.try_into().ok()?).to_f64(),
        D::F32 => f32::from_le_bytes(bytes.try_into().ok()?).into(),
        _ => f64::from_le_bytes(bytes.try_into().ok()?),
    };
    (x.is_finite() && dtype.float_bytes(x) == bytes).then(|| format!("{x:?}"))
}
