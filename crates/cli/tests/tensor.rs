//! Multiplications of tiles (`tests/data/tensor`), as PTX and as machine code, against the bits that an H200 gave.
//!
//! Sums of floats depend on the chip: only sm_90 and what adds up like it is held against the H200; sm_80's machine code
//! must agree with PTX for sm_80.

#![allow(clippy::print_stdout)] // How many operations ran belongs into the test log.

use std::fmt::Write as _;
use std::path::PathBuf;

use lanescope::constants::bank0;
use lanescope::npy;
use lanescope::run::{Prepared, Settings};
use lanescope_ir::Kernel;
use lanescope_ptx::lower;
use lanescope_sass::container::{self, Module};
use lanescope_sass::kernel;
use lanescope_sim::{GlobalMemory, Launch, Model, Options};
use serde::Deserialize;

#[derive(Deserialize)]
struct Operation {
    op: String,
    a: usize,
    b: usize,
    c: usize,
    word: usize,
    tiles: usize,
    offset: usize,
    kernel: String,
}

const LANES: usize = 32;

impl Operation {
    /// Bytes of the operands.
    fn inputs(&self) -> usize {
        self.tiles * LANES * (self.a + self.b + self.c) * self.word
    }

    fn outputs(&self) -> usize {
        self.tiles * LANES * self.c * self.word
    }

    /// Whether it adds up f16, bf16, tf32 or 8-bit floats.
    fn is_float(&self) -> bool {
        ["f16", "tf32", "e4m3", "e5m2"].iter().any(|t| self.op.contains(t))
    }

    /// Whether sm_90 has no instruction for it: sequences of others come to other results in the last bit.
    fn is_substituted(&self) -> bool {
        self.op.contains("m8n8k4") && self.op.contains("f16") || self.op.contains("e4m3") || self.op.contains("e5m2")
    }

    /// The kernel as PTX.
    fn ptx(&self, target: &str) -> String {
        let (ty, all) = (if self.word == 4 { "b32" } else { "f64" }, self.a + self.b + self.c);
        let list = |name: &str, n: usize| (0..n).map(|i| format!("%{name}{i}")).collect::<Vec<_>>().join(", ");
        let mut text = format!(
            ".version 8.7\n.target {target}\n.address_size 64\n.visible .entry k(.param .u64 pi, .param .u64 po)\n{{\n\
             .reg .b64 %p<4>;\n.reg .b32 %i<4>;\n.reg .{ty} %a<{}>, %b<{}>, %c<{}>, %d<{}>;\n\
             ld.param.u64 %p0, [pi];\nld.param.u64 %p1, [po];\nmov.u32 %i0, %tid.x;\nmov.u32 %i1, %ctaid.x;\n\
             mad.lo.u32 %i0, %i1, 32, %i0;\nmad.wide.u32 %p0, %i0, {}, %p0;\nmad.wide.u32 %p1, %i0, {}, %p1;\n",
            self.a,
            self.b,
            self.c,
            self.c,
            all * self.word,
            self.c * self.word,
        );
        let registers = [("a", self.a), ("b", self.b), ("c", self.c)];
        let registers = registers.iter().flat_map(|&(name, n)| (0..n).map(move |i| format!("%{name}{i}")));
        for (at, r) in registers.enumerate() {
            writeln!(text, "ld.global.{ty} {r}, [%p0+{}];", at * self.word).unwrap();
        }
        let (a, b) = (list("a", self.a), list("b", self.b));
        let (c, d) = (list("c", self.c), list("d", self.c));
        writeln!(text, "{} {{{d}}}, {{{a}}}, {{{b}}}, {{{c}}};", self.op).unwrap();
        for i in 0..self.c {
            writeln!(text, "st.global.{ty} [%p1+{}], %d{i};", i * self.word).unwrap();
        }
        text + "ret;\n}\n"
    }
}

fn data(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/tensor").join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn execute(kernel: &Kernel, op: &Operation, inputs: &[u8]) -> Result<Vec<u8>, String> {
    let mut memory = GlobalMemory::new();
    let input = memory.alloc("in", inputs).map_err(|e| e.to_string())?;
    let output = memory.alloc("out", &vec![0; op.outputs()]).map_err(|e| e.to_string())?;
    let params: Vec<u8> = [input, output].iter().flat_map(|a| a.to_le_bytes()).collect();
    let (grid, block) = ([op.tiles as u32, 1, 1], [LANES as u32, 1, 1]);
    let bank0 = bank0(kernel, grid, block, 0, &params);
    let options = Options { threads: 1, model: Model::of(kernel), ..Options::default() };
    let launch = Launch { grid, block, dynamic_shared: 0, bank0, options };
    lanescope_sim::simulate(kernel, &launch, &mut memory, None).map_err(|e| e.to_string())?;
    memory.read(output, op.outputs() as u64).ok_or_else(|| "the output buffer is gone".to_owned())
}

fn as_ptx(op: &Operation, target: &str, inputs: &[u8]) -> Result<Vec<u8>, String> {
    let text = op.ptx(target);
    let parse = lanescope_ptx::parse(&text);
    let kernel = lower::load(&parse, "k", lower::Options::default()).map_err(|e| format!("{e:?}"))?;
    execute(&kernel, op, inputs)
}

/// `None` where there is no such instruction.
fn as_sass(module: &Module<'_>, op: &Operation, inputs: &[u8]) -> Option<Result<Vec<u8>, String>> {
    module.function(&op.kernel)?;
    let kernel = kernel::load(module, &op.kernel).map_err(|e| e.to_string());
    Some(kernel.and_then(|kernel| execute(&kernel, op, inputs)))
}

/// Runs all operations; `run` gives the result and what it must be, or nothing.
fn check(level: &str, run: impl Fn(&Operation, &[u8], &[u8]) -> Option<Result<(Vec<u8>, Vec<u8>), String>>) -> usize {
    let operations: Vec<Operation> = serde_json::from_slice(&data("tensor.json")).unwrap();
    let bytes = data("tensor.bin");
    let mut ran = 0;
    let mut failures = String::new();
    for op in &operations {
        let (inputs, rest) = bytes[op.offset..].split_at(op.inputs());
        match run(op, inputs, &rest[..op.outputs()]) {
            None => {}
            Some(Err(error)) => writeln!(failures, "{}: {error}", op.op).unwrap(),
            Some(Ok((got, wanted))) => {
                ran += 1;
                let words = got.chunks(op.word).zip(wanted.chunks(op.word));
                let wrong = words.filter(|(a, b)| a != b).count();
                if wrong > 0 || got.len() != wanted.len() {
                    writeln!(failures, "{}: {wrong} of {} words differ", op.op, wanted.len() / op.word).unwrap();
                }
            }
        }
    }
    println!("{level}: {ran} operations ran");
    assert!(failures.is_empty(), "{level}:\n{failures}");
    ran
}

#[test]
fn ptx() {
    let ran = check("PTX for sm_90", |op, inputs, measured| {
        let run = || Ok((as_ptx(op, "sm_90", inputs)?, measured.to_vec()));
        (!op.is_substituted()).then(run)
    });
    assert_eq!(ran, 69);
}

#[test]
fn what_sm_90_has_no_instruction_for_is_refused_by_name() {
    let operations: Vec<Operation> = serde_json::from_slice(&data("tensor.json")).unwrap();
    let bytes = data("tensor.bin");
    for op in operations.iter().filter(|op| op.is_substituted()) {
        let error = as_ptx(op, "sm_90", &bytes[op.offset..][..op.inputs()]).unwrap_err();
        assert!(error.contains(&op.op), "{error}");
    }
}

/// `operations` of them exist on the chip and run.
fn machine_code(sm: u16, operations: usize) {
    let file = data("tensor.fatbin");
    let container = container::open(&file).unwrap();
    let entry = container.entries.iter().find(|e| e.arch.sm == sm).unwrap();
    let cubin = entry.bytes().unwrap();
    let module = Module::parse(&cubin).unwrap();
    let ran = check(&format!("sm_{sm}"), |op, inputs, measured| {
        // Instructions of this chip, but an assembler's substitute on the H200, or the other way round.
        if op.is_substituted() && sm != 90 {
            return None;
        }
        let got = match as_sass(&module, op, inputs)? {
            Ok(got) => got,
            // Code for single bits spreads them out by an instruction that nobody has measured.
            Err(error) if sm >= 100 && op.op.contains("b1") && error.contains("MOVM.U4TO8") => return None,
            Err(error) => return Some(Err(error)),
        };
        if sm < 90 && op.is_float() {
            return Some(as_ptx(op, &format!("sm_{sm}"), inputs).map(|wanted| (got, wanted)));
        }
        Some(Ok((got, measured.to_vec())))
    });
    assert_eq!(ran, operations);
}

#[test]
fn sm_80() {
    machine_code(80, 66);
}

#[test]
fn sm_90() {
    machine_code(90, 81);
}

#[test]
fn sm_100() {
    machine_code(100, 63);
}

#[test]
fn sm_120() {
    machine_code(120, 63);
}

/// Triton's matrix products, assembled for sm_90: asynchronous copies, tiles from shared memory, their multiplication.
#[test]
fn triton() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/tensor");
    for name in ["matmul_dot", "matmul_ieee"] {
        let prepared = Prepared::open(&folder.join(name).with_extension("toml"), &Settings::default()).unwrap();
        let ran = prepared.run(None).unwrap();
        let expected = npy::read(&data(&format!("{name}.arg2.expected.npy"))).unwrap();
        assert!(ran.output(2).unwrap().unwrap().data == expected.data, "{name}");
    }
}
