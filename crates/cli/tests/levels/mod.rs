//! One kernel, run as PTX and as the machine code that ptxas makes of the same text.

use std::path::{Path, PathBuf};

use lanescope::compile::{self, Cache, Job, Options as CompileOptions, Tools};
use lanescope::constants::bank0;
use lanescope::launch::args;
use lanescope_ir::Kernel;
use lanescope_sass::container::Module;
use lanescope_sass::kernel;
use lanescope_sim::{GlobalMemory, Launch, Model, Options, Outcome, TraceRequest, simulate};

/// An argument.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    /// Memory with these bytes.
    Buffer(Vec<u8>),
    /// A value.
    Value(Vec<u8>),
}

/// Grid, block, dynamic shared memory, the limit of warp instructions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) grid: u32,
    pub(crate) block: u32,
    pub(crate) dynamic_shared: u32,
    pub(crate) max_inst: u64,
}

/// The folder of NVIDIA's compilers, if it is there.
pub(crate) fn oracles() -> Option<PathBuf> {
    let dir = std::env::var_os("LANESCOPE_ORACLES").map(PathBuf::from);
    let dir = dir.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracles"));
    dir.join("bin/ptxas-12.9").exists().then_some(dir)
}

/// The cubin that ptxas makes of `text`, which is written to `path`.
pub(crate) fn assemble(oracles: &Path, path: &Path, text: &str, arch: &str, flags: &[&str]) -> Result<Vec<u8>, String> {
    std::fs::write(path, text).map_err(|e| e.to_string())?;
    let tools = Tools { ptxas: Some(oracles.join("bin/ptxas-12.9")), cache: Cache::Off, ..Tools::default() };
    let options = CompileOptions { options: flags.iter().map(|f| f.to_string()).collect(), ..Default::default() };
    let arch = arch.parse().map_err(|_| format!("no architecture: {arch}"))?;
    let job = Job { path, source: text.as_bytes(), arch, options: &options, kernel: None };
    compile::ptx(&job, &tools).map(|b| b.cubin).map_err(|e| e.to_string())
}

/// Kernel `name` of a cubin.
pub(crate) fn machine_code(module: &Module<'_>, name: &str) -> Result<Kernel, String> {
    kernel::load(module, name).map_err(|e| e.to_string())
}

/// Runs a kernel and returns its buffers.
pub(crate) fn run(kernel: &Kernel, shape: Shape, inputs: &[Input]) -> Result<Vec<Vec<u8>>, String> {
    observe(kernel, shape, inputs, None).map(|o| o.1)
}

/// Runs a kernel and returns what was counted, perhaps with the steps of a warp, and its buffers.
pub(crate) fn observe(
    kernel: &Kernel,
    shape: Shape,
    inputs: &[Input],
    trace: Option<TraceRequest>,
) -> Result<(Outcome, Vec<Vec<u8>>), String> {
    let mut memory = GlobalMemory::new();
    let (mut words, mut buffers) = (Vec::new(), Vec::new());
    for (i, input) in inputs.iter().enumerate() {
        match input {
            Input::Value(bytes) => words.push(bytes.clone()),
            Input::Buffer(bytes) => {
                let at = memory.alloc(&format!("argument {i}"), bytes).map_err(|e| e.to_string())?;
                words.push(at.to_le_bytes().to_vec());
                buffers.push((at, bytes.len() as u64));
            }
        }
    }
    let (grid, block) = ([shape.grid, 1, 1], [shape.block, 1, 1]);
    let (dynamic_shared, params) = (shape.dynamic_shared, args::pack(kernel, &words));
    let model = Model::of(kernel);
    let bank0 = bank0(kernel, grid, block, dynamic_shared, &params);
    let traces = trace.into_iter().collect();
    let options = Options { threads: 1, max_inst: shape.max_inst, model, traces, ..Options::default() };
    let launch = Launch { grid, block, dynamic_shared, bank0, options };
    let outcome = simulate(kernel, &launch, &mut memory, None).map_err(|e| e.to_string())?;
    let read = |&(at, len): &(u64, u64)| memory.read(at, len).ok_or_else(|| "a buffer is gone".to_owned());
    Ok((outcome, buffers.iter().map(read).collect::<Result<_, _>>()?))
}
