//! `lanescope disasm`.

use std::io::Write;
use std::path::PathBuf;

use lanescope::compile::Options;
use lanescope::{disasm, module};

use super::{Format, print, print_json, tools};

/// Flags of `disasm`.
#[derive(clap::Args)]
pub(super) struct Args {
    /// A cubin, fatbin, library, executable or static library; CUDA source is compiled, PTX assembled by --via ptxas.
    file: PathBuf,
    /// List architectures and kernels instead of their code.
    #[arg(long)]
    list: bool,
    /// Only this kernel or function (mangled, demangled or base name).
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Only this architecture, such as sm_90. Source is compiled for it; for sm_90 unless it is given.
    #[arg(long, value_name = "ARCH")]
    arch: Option<String>,
    #[command(flatten)]
    tools: tools::Compilers,
    /// Show the encoding beside each instruction.
    #[arg(long)]
    hex: bool,
    /// How to print the result.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// A list of things with the name of their format.
#[derive(serde::Serialize)]
struct Document<T> {
    schema: &'static str,
    file: String,
    #[serde(flatten)]
    content: T,
}

#[derive(serde::Serialize)]
struct Entries {
    entries: Vec<disasm::Listing>,
}

#[derive(serde::Serialize)]
struct Functions {
    functions: Vec<disasm::Disassembly>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let path = args.file.display().to_string();
    let tools = args.tools.tools();
    anyhow::ensure!(
        !module::is_ptx(&args.file) || tools.via_ptxas,
        "{path} is PTX, which is text already\n  to see the machine code that ptxas makes of it: lanescope disasm --via \
         ptxas {path}"
    );
    let options = Options::default();
    let wanted = module::Request {
        kernel: args.kernel.as_deref(),
        arch: args.arch.as_deref(),
        options: &options,
        tools: &tools,
        as_ptx: false,
        warp_size: 32,
    };
    let code = module::code(&args.file, &wanted)?;
    let (bytes, built) = (code.bytes, code.built);
    if let Some(built) = &built {
        tools::show_log(built)?;
    }
    let kernel = built.and_then(|b| b.lowered).or(args.kernel.clone());
    let request = disasm::Request { kernel, arch: args.arch.clone(), hex: args.hex };
    if args.list {
        let entries = disasm::list(&path, &bytes, &request)?;
        match args.format {
            Format::Text => print(&disasm::list_text(&entries))?,
            Format::Json => {
                print_json(&Document { schema: "lanescope.listing/1", file: path, content: Entries { entries } })?;
            }
        }
        return Ok(0);
    }
    match args.format {
        Format::Text => {
            let mut out = std::io::BufWriter::new(std::io::stdout().lock());
            let mut first = true;
            disasm::disassemble(&path, &bytes, &request, |item| {
                if !std::mem::take(&mut first) {
                    out.write_all(b"\n")?;
                }
                out.write_all(disasm::text(&item, request.hex).as_bytes())
            })?;
            out.flush()?;
        }
        Format::Json => {
            let mut functions = Vec::new();
            disasm::disassemble(&path, &bytes, &request, |item| {
                functions.push(item);
                Ok(())
            })?;
            print_json(&Document { schema: "lanescope.disasm/1", file: path, content: Functions { functions } })?;
        }
    }
    Ok(0)
}
