//! SASS text of cubins, fatbins and the files that hold them.

use std::fmt::Write;

use lanescope_sass::container::{self, Compression, Entry, EntryKind, Function, LineKind, Lines, Module};
use lanescope_sass::isa::{Arch, Decoder};
use lanescope_sass::isa64;
use serde::Serialize;

use crate::module::{ModuleError, no_kernel};
use crate::names::{base_name, demangle};

/// Blanks between the address and the mnemonic.
const INDENT: usize = 19;
/// Column of the encoding.
const ENCODING: usize = 79;

/// Said of code of sm_50 to sm_62.
const NARROW: &str = "control flow is decoded in full; of other instructions only guard and name are";

/// What to show.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Only this kernel or function: mangled, demangled or base name.
    pub kernel: Option<String>,
    /// Only this architecture.
    pub arch: Option<String>,
    /// The encoding beside each instruction.
    pub hex: bool,
}

/// One cubin's worth of a listing.
#[derive(Clone, Debug, Serialize)]
pub struct Listing {
    /// Architecture.
    pub arch: String,
    /// `cubin`, `ptx` or a number.
    pub kind: String,
    /// `none`, `lz4` or `zstd`.
    pub compression: &'static str,
    /// Size in bytes once decompressed.
    pub size: u64,
    /// Its kernels and device functions.
    pub functions: Vec<FunctionLine>,
    /// Why it could not be read, if so.
    pub error: Option<String>,
}

/// One function of a listing.
#[derive(Clone, Debug, Serialize)]
pub struct FunctionLine {
    /// Mangled name.
    pub name: String,
    /// As its author wrote it.
    pub demangled: String,
    /// Whether it can be launched.
    pub kernel: bool,
    /// Instructions, padding included.
    pub instructions: usize,
    /// Registers per thread.
    pub registers: Option<u32>,
}

/// Lists the code in a file.
pub fn list(path: &str, bytes: &[u8], request: &Request) -> Result<Vec<Listing>, ModuleError> {
    let mut out = Vec::new();
    let file = open(path, bytes)?;
    for entry in chosen(&file, request)? {
        let mut item = Listing {
            arch: entry.arch.to_string(),
            kind: match entry.kind {
                EntryKind::Cubin => "cubin".into(),
                EntryKind::Ptx => "ptx".into(),
                EntryKind::Other(n) => n.to_string(),
            },
            compression: match entry.compression {
                Compression::None => "none",
                Compression::Lz4 => "lz4",
                Compression::Zstd => "zstd",
            },
            size: entry.size,
            functions: Vec::new(),
            error: None,
        };
        if entry.kind == EntryKind::Cubin {
            match functions(entry) {
                Ok(list) => item.functions = list,
                Err(e) => item.error = Some(e.to_string()),
            }
        }
        out.push(item);
    }
    Ok(out)
}

fn functions(entry: &Entry<'_>) -> Result<Vec<FunctionLine>, container::Error> {
    let data = entry.bytes()?;
    let module = Module::parse(&data)?;
    Ok(module
        .functions
        .iter()
        .map(|f| FunctionLine {
            name: f.name.to_string(),
            demangled: demangle(&f.name),
            kernel: f.is_kernel(),
            instructions: match isa64::is_narrow(module.arch.sm.into()) {
                true => isa64::Code::new(f.text).count(),
                false => f.text.len() / 16,
            },
            registers: f.registers,
        })
        .collect())
}

/// The listing as text.
pub fn list_text(list: &[Listing]) -> String {
    let mut out = String::new();
    for item in list {
        let packed = if item.compression == "none" { String::new() } else { format!(", {}", item.compression) };
        let _ = writeln!(out, "{} {}, {} bytes{packed}", item.arch, item.kind, item.size);
        if let Some(e) = &item.error {
            let _ = writeln!(out, "  cannot be read: {e}");
        }
        for f in &item.functions {
            let kind = if f.kernel { "kernel" } else { "device function" };
            let registers = f.registers.map(|r| format!(", {r} registers")).unwrap_or_default();
            let _ = writeln!(out, "  {kind} {}: {} instructions{registers}", f.demangled, f.instructions);
            if f.demangled != f.name {
                let _ = writeln!(out, "    {}", f.name);
            }
        }
    }
    out
}

/// A disassembled function.
#[derive(Clone, Debug, Serialize)]
pub struct Disassembly {
    /// Architecture.
    pub arch: String,
    /// Mangled name.
    pub name: String,
    /// As its author wrote it.
    pub demangled: String,
    /// Whether it can be launched.
    pub kernel: bool,
    /// What is left out of the text, if something is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
    /// Its instructions.
    pub instructions: Vec<Instruction>,
}

/// A disassembled instruction.
#[derive(Clone, Debug, Serialize)]
pub struct Instruction {
    /// Byte offset in its section.
    pub pc: u32,
    /// Its text; for an encoding that is not known, a `.unknown` line with the raw bits.
    pub text: String,
    /// The encoding, as two 64-bit words, low first; before sm_70 as one.
    pub raw: Vec<String>,
    /// Source file.
    pub file: Option<String>,
    /// Source line.
    pub line: Option<u32>,
}

/// Disassembles the functions of a file that were asked for, and hands them over one by one.
pub fn disassemble(
    path: &str,
    bytes: &[u8],
    request: &Request,
    mut each: impl FnMut(Disassembly) -> std::io::Result<()>,
) -> Result<usize, ModuleError> {
    let fail = |error| ModuleError::Container { path: path.to_owned(), error: Box::new(error) };
    let file = open(path, bytes)?;
    let mut shown = 0;
    let mut names = Vec::new();
    let mut cubins = 0;
    let mut first_error = None;
    for entry in chosen(&file, request)?.into_iter().filter(|e| e.kind == EntryKind::Cubin) {
        cubins += 1;
        let data = entry.bytes().map_err(fail)?;
        let module = Module::parse(&data).map_err(fail)?;
        let narrow = isa64::is_narrow(module.arch.sm.into());
        let decoder = match Arch::from_sm(module.arch.sm.into()) {
            _ if narrow => None,
            Ok(arch) => Some(
                Decoder::new(arch).map_err(|e| ModuleError::Load { path: path.into(), error: Box::new(e.into()) })?,
            ),
            Err(e) => {
                first_error.get_or_insert(ModuleError::Arch(e));
                continue;
            }
        };
        let lines = module.lines(LineKind::Source).ok();
        for f in &module.functions {
            let demangled = demangle(&f.name);
            let wanted =
                request.kernel.as_deref().is_none_or(|k| f.name == k || demangled == k || base_name(&demangled) == k);
            names.push(f.name.to_string());
            if !wanted {
                continue;
            }
            shown += 1;
            let item = Disassembly {
                arch: module.arch.to_string(),
                name: f.name.to_string(),
                demangled,
                kernel: f.is_kernel(),
                note: narrow.then_some(NARROW),
                instructions: instructions(decoder.as_ref(), f, lines.as_ref()),
            };
            each(item).map_err(ModuleError::Write)?;
        }
    }
    if shown == 0 {
        if let Some(e) = first_error {
            return Err(e);
        }
        if let (Some(name), true) = (&request.kernel, cubins > 0) {
            return Err(no_kernel(path, name, names));
        }
        let mut holds: Vec<String> = file.entries.iter().map(|e| e.arch.to_string()).collect();
        holds.sort();
        holds.dedup();
        let wanted = request.arch.clone();
        return Err(ModuleError::NoCode { path: path.into(), wanted, holds: holds.join(", ") });
    }
    Ok(shown)
}

/// The instructions of a function; without a decoder those of 64 bits.
fn instructions(decoder: Option<&Decoder>, f: &Function<'_>, lines: Option<&Lines>) -> Vec<Instruction> {
    let line = |pc: u32, text: String, raw: Vec<String>| {
        let place = lines.and_then(|l| l.frames(f.section, pc.into()).next());
        Instruction { pc, text, raw, file: place.as_ref().map(|p| p.path()), line: place.as_ref().map(|p| p.line) }
    };
    let hex = |word: u64| format!("0x{word:016x}");
    let Some(decoder) = decoder else {
        let text =
            |pc, raw| isa64::decode(pc, raw).map_or_else(|_| format!(".unknown {}", hex(raw)), |d| d.to_string());
        return isa64::Code::new(f.text).map(|(pc, raw)| line(pc, text(pc, raw), vec![hex(raw)])).collect();
    };
    let mut out = Vec::with_capacity(f.text.len() / 16);
    for (pc, word) in (0u32..).step_by(16).zip(f.text.as_chunks::<16>().0) {
        let raw = u128::from_le_bytes(*word);
        let text = match decoder.decode(pc, raw) {
            Ok(inst) => inst.to_string(),
            Err(_) => format!(".unknown 0x{raw:032x}"),
        };
        out.push(line(pc, text, vec![hex(raw as u64), hex((raw >> 64) as u64)]));
    }
    out
}

/// A function as text, source lines as comments.
pub fn text(item: &Disassembly, hex: bool) -> String {
    let mut out = String::new();
    let kind = if item.kernel { "kernel" } else { "device function" };
    let _ = writeln!(out, "// {kind} {} ({})", item.demangled, item.arch);
    if let Some(note) = item.note {
        let _ = writeln!(out, "// {note}");
    }
    let _ = writeln!(out, "{}:", item.name);
    let mut before = None;
    for i in &item.instructions {
        let place = i.file.as_ref().zip(i.line);
        if place.is_some() && place != before {
            let (file, line) = place.map_or(("", 0), |p| (p.0.as_str(), p.1));
            let _ = writeln!(out, "        // {file}:{line}");
            before = place;
        }
        // nvdisasm puts a guard into the blanks before the mnemonic.
        let guard = i.text.split_once(' ').filter(|(g, _)| g.starts_with('@')).map_or(0, |(g, _)| g.len() + 1);
        let indent = INDENT.saturating_sub(guard);
        let line = format!("        /*{:04x}*/{:indent$}{} ;", i.pc, "", i.text);
        if hex {
            let mut line = line;
            for raw in &i.raw {
                let _ = writeln!(out, "{line:ENCODING$}/* {raw} */");
                line.clear();
            }
        } else {
            let _ = writeln!(out, "{line}");
        }
    }
    out
}

fn open<'a>(path: &str, bytes: &'a [u8]) -> Result<container::Container<'a>, ModuleError> {
    container::open(bytes).map_err(|error| ModuleError::Container { path: path.to_owned(), error: Box::new(error) })
}

fn chosen<'f, 'a>(file: &'f container::Container<'a>, request: &Request) -> Result<Vec<&'f Entry<'a>>, ModuleError> {
    let Some(text) = &request.arch else { return Ok(file.entries.iter().collect()) };
    let number = text.strip_prefix("sm_").unwrap_or(text);
    let sm = match number.parse() {
        Ok(sm) if isa64::is_narrow(sm) => sm,
        _ => text.parse::<Arch>()?.sm(),
    };
    let letter = text.ends_with(['a', 'f']);
    Ok(file
        .entries
        .iter()
        .filter(|e| u32::from(e.arch.sm) == sm && (!letter || e.arch.to_string() == format!("sm_{number}")))
        .collect())
}
