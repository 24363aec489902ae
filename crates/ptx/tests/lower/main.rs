//! PTX texts that are lowered and run. A case tells in comments how it is launched and what it must give:
//!
//! - `//! run NAME block=N grid=N words=N shared=N args=1,2`: launches kernel `NAME`; its first parameter is the address of
//!   a buffer of so many 32-bit words, all zero, and the others are the 64-bit numbers `args`;
//! - `//! gives AT: 1 2 0x3`: words of the buffer from index `AT` on, after the launch before it;
//! - `//! unsupported NAME: KIND`: the kernel has an instruction that is refused so;
//! - `//! error TEXT` at the end of a line: lowering the first kernel reports an error there that contains the text.
//!
//! The numbers are worked out by hand from the PTX manual.

mod mutation;

use std::path::Path;

use lanescope_ir::{Kernel, Op};
use lanescope_ptx::lower::{self, Geometry};
use lanescope_ptx::tree::FunctionKind;
use lanescope_ptx::{LineIndex, Parse};
use lanescope_sim::{GlobalMemory, LOCAL_WINDOW, Launch, Model, Options, SHARED_WINDOW};
use libtest_mimic::{Arguments, Failed, Trial};

fn number(text: &str) -> Result<u64, Failed> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse().or_else(|e| text.parse::<i64>().map(|n| n as u64).map_err(|_| e)),
    };
    parsed.map_err(|e| format!("{text}: {e}").into())
}

fn load(parse: &Parse<'_>, text: &str, name: &str) -> Result<Kernel, Failed> {
    lower::load(parse, name, lower::Options::default()).map_err(|errors| {
        let lines = LineIndex::new(text);
        let show = |d: &lanescope_ptx::Diagnostic| format!("{:?}: {}", lines.position(d.span.start), d.message);
        errors.iter().map(show).collect::<Vec<_>>().join("\n").into()
    })
}

fn run(parse: &Parse<'_>, text: &str, command: &str) -> Result<Vec<u32>, Failed> {
    let mut words = command.split_whitespace();
    let name = words.next().ok_or("a launch without a kernel")?;
    let (mut block, mut grid, mut size, mut shared, mut args) = (32, 1, 64, 0, Vec::new());
    for word in words {
        let (key, value) = word.split_once('=').ok_or("a word without `=`")?;
        match key {
            "block" => block = number(value)? as u32,
            "grid" => grid = number(value)? as u32,
            "words" => size = number(value)? as usize,
            "shared" => shared = number(value)? as u32,
            "args" => args = value.split(',').map(number).collect::<Result<_, _>>()?,
            _ => return Err(format!("unknown key {key}").into()),
        }
    }
    let kernel = load(parse, text, name)?;
    let mut memory = GlobalMemory::new();
    let out = memory.alloc("out", &vec![0; 4 * size]).map_err(|e| e.to_string())?;
    let mut params = out.to_le_bytes().to_vec();
    params.extend(args.iter().flat_map(|a: &u64| a.to_le_bytes()));
    let (grid, block) = ([grid, 1, 1], [block, 1, 1]);
    let geometry =
        Geometry { grid, block, dynamic_shared: shared, shared_window: SHARED_WINDOW, local_window: LOCAL_WINDOW };
    let bank0 = lower::launch_constants(&geometry, &params);
    let options = Options { threads: 1, model: Model::of(&kernel), ..Options::default() };
    let launch = Launch { grid, block, dynamic_shared: shared, bank0, options };
    lanescope_sim::simulate(&kernel, &launch, &mut memory, None).map_err(|e| e.to_string())?;
    let bytes = memory.read(out, 4 * size as u64).ok_or("the buffer is gone")?;
    Ok(bytes.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect())
}

fn gives(buffer: &[u32], rest: &str) -> Result<(), Failed> {
    let (at, values) = rest.split_once(':').ok_or("`gives` without `:`")?;
    let at = number(at.trim())? as usize;
    let wanted = values.split_whitespace().map(number).collect::<Result<Vec<_>, _>>()?;
    let have: Vec<u64> = buffer.iter().skip(at).take(wanted.len()).map(|&w| w.into()).collect();
    let wanted: Vec<u64> = wanted.iter().map(|w| w & 0xffff_ffff).collect();
    if have == wanted { Ok(()) } else { Err(format!("from word {at}:\nwanted {wanted:x?}\nhave   {have:x?}").into()) }
}

fn unsupported(kernel: &Kernel, kind: &str) -> Result<(), Failed> {
    let kinds: Vec<_> = kernel
        .instructions
        .iter()
        .filter_map(|i| if let Op::Unsupported(u) = &i.op { Some(format!("{}: {}", u.name, u.why)) } else { None })
        .collect();
    if kinds.iter().any(|k| k == kind) { Ok(()) } else { Err(format!("only {kinds:?} are unsupported").into()) }
}

/// Every error is announced on its line, and every announced one comes.
fn errors(parse: &Parse<'_>, text: &str) -> Result<(), Failed> {
    let lines = LineIndex::new(text);
    let mut wanted: Vec<(u32, &str)> = Vec::new();
    for (line, at) in text.lines().zip(1..) {
        if let Some((_, message)) = line.split_once("//! error ") {
            wanted.push((at, message.trim()));
        }
    }
    if wanted.is_empty() {
        return Ok(());
    }
    let kernel = parse.module.functions.iter().find(|f| f.kind == FunctionKind::Entry).ok_or("no kernel")?;
    let Err(found) = lower::load(parse, kernel.name, lower::Options::default()) else {
        return Err("no error was found".into());
    };
    for error in found.iter() {
        let line = lines.position(error.span.start).0;
        let known = wanted.iter().position(|&(at, message)| at == line && error.message.contains(message));
        match known {
            Some(i) => drop(wanted.remove(i)),
            None => return Err(format!("line {line}: unexpected error: {}", error.message).into()),
        }
    }
    if wanted.is_empty() { Ok(()) } else { Err(format!("not reported: {wanted:?}").into()) }
}

fn case(text: &str) -> Result<(), Failed> {
    let parse = lanescope_ptx::parse(text);
    if let Some(d) = parse.diagnostics.iter().find(|d| d.is_error()) {
        return Err(format!("{}: {:?}", d.message, LineIndex::new(text).position(d.span.start)).into());
    }
    errors(&parse, text)?;
    let mut buffer = Vec::new();
    for line in text.lines() {
        let Some(command) = line.strip_prefix("//! ") else { continue };
        if let Some(rest) = command.strip_prefix("run ") {
            buffer = run(&parse, text, rest)?;
        } else if let Some(rest) = command.strip_prefix("gives ") {
            gives(&buffer, rest)?;
        } else if let Some(rest) = command.strip_prefix("unsupported ") {
            let (name, kind) = rest.split_once(": ").ok_or("`unsupported` without `:`")?;
            unsupported(&load(&parse, text, name)?, kind)?;
        }
    }
    Ok(())
}

fn main() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lower/cases");
    let mut trials = Vec::new();
    for entry in std::fs::read_dir(&folder).expect("the cases") {
        let path = entry.expect("a case").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let damaged = path.clone();
        trials.push(Trial::test(format!("damaged {name}"), move || {
            let text = std::fs::read_to_string(&damaged).map_err(|e| Failed::from(e.to_string()))?;
            mutation::survive(&text, 200);
            Ok(())
        }));
        trials.push(Trial::test(name, move || {
            let text = std::fs::read_to_string(&path).map_err(|e| Failed::from(e.to_string()))?;
            case(&text)
        }));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
