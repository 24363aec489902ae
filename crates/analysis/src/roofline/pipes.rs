//! Which execution unit an instruction goes to, and how long each is busy.

use lanescope_ir::op::LaneFn;
use lanescope_ir::op::warp::WarpOp;
use lanescope_ir::{Kernel, Op};

use super::Gpu;

/// A kind of execution unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pipe {
    /// f32 multiply-add.
    Fma,
    /// Integer multiply-add, on half of the f32 units.
    Imad,
    /// Integer add, logic, shift, compare, select.
    Alu,
    /// f64.
    Fp64,
    /// Transcendental functions, conversions, population count.
    Xu,
    /// Memory and shuffles.
    Lsu,
    /// Everything else: control, uniform instructions, barriers, tensor cores. Bounded by issue slots only.
    Other,
}

/// Warp instructions by kind of unit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PipeWork {
    /// [`Pipe::Fma`].
    pub fma: f64,
    /// [`Pipe::Imad`].
    pub imad: f64,
    /// [`Pipe::Alu`].
    pub alu: f64,
    /// [`Pipe::Fp64`].
    pub fp64: f64,
    /// [`Pipe::Xu`].
    pub xu: f64,
    /// [`Pipe::Lsu`].
    pub lsu: f64,
}

impl PipeWork {
    /// Counts `n` warp instructions.
    pub fn add(&mut self, pipe: Pipe, n: u64) {
        let slot = match pipe {
            Pipe::Fma => &mut self.fma,
            Pipe::Imad => &mut self.imad,
            Pipe::Alu => &mut self.alu,
            Pipe::Fp64 => &mut self.fp64,
            Pipe::Xu => &mut self.xu,
            Pipe::Lsu => &mut self.lsu,
            Pipe::Other => return,
        };
        *slot += n as f64;
    }

    /// The same, `factor` times.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> PipeWork {
        let PipeWork { fma, imad, alu, fp64, xu, lsu } = *self;
        PipeWork {
            fma: fma * factor,
            imad: imad * factor,
            alu: alu * factor,
            fp64: fp64 * factor,
            xu: xu * factor,
            lsu: lsu * factor,
        }
    }

    /// How many cycles of one SM the busiest unit needs for this. An instruction takes 32 lanes, active or not.
    pub fn cycles(&self, gpu: &Gpu) -> f64 {
        let l = &gpu.lanes;
        let time = |n: f64, lanes: f64| if lanes > 0.0 { n * 32.0 / lanes } else { 0.0 };
        // IMAD takes part of the f32 units away from the others.
        let fma = time(self.fma, l.fma) + time(self.imad, l.fma);
        [
            fma,
            time(self.imad, l.imad),
            time(self.alu, l.alu),
            time(self.fp64, l.fp64),
            time(self.xu, l.xu),
            time(self.lsu, l.lsu),
        ]
        .into_iter()
        .fold(0.0, f64::max)
    }
}

/// The unit that executes an instruction: by the name of a machine instruction, by the operation for PTX.
pub fn pipe(kernel: &Kernel, inst: u32) -> Pipe {
    let Some(i) = kernel.instructions.get(inst as usize) else { return Pipe::Other };
    if kernel.arch == "ptx" {
        return by_operation(&i.op);
    }
    let name = mnemonic(kernel, inst);
    let base = name.split('.').next().unwrap_or("");
    match base {
        "FFMA" | "FADD" | "FMUL" | "FFMA32I" | "FADD32I" | "FMUL32I" | "HFMA2" | "HADD2" | "HMUL2" | "HFMA2_32I" => {
            Pipe::Fma
        }
        "IMAD" | "XMAD" | "IDP" | "IDP4A" => Pipe::Imad,
        "DFMA" | "DADD" | "DMUL" | "DSETP" | "DMNMX" => Pipe::Fp64,
        "MUFU" | "F2F" | "F2I" | "I2F" | "FRND" | "I2I" | "POPC" | "FLO" | "BREV" => Pipe::Xu,
        "SHFL" => Pipe::Lsu,
        _ => match &i.op {
            Op::Memory(_) => Pipe::Lsu,
            Op::Lane(_) if !i.uniform => Pipe::Alu,
            _ => Pipe::Other,
        },
    }
}

/// The instruction's name with its modifiers, without a guard.
pub(super) fn mnemonic(kernel: &Kernel, inst: u32) -> &str {
    let text = kernel.text.get(inst as usize).map_or("", String::as_str);
    let mut words = text.split_whitespace();
    let first = words.next().unwrap_or("");
    if first.starts_with('@') { words.next().unwrap_or("") } else { first }
}

fn by_operation(op: &Op) -> Pipe {
    match op {
        Op::Lane(l) => match l.f {
            LaneFn::Float(_) | LaneFn::Half(_) => Pipe::Fma,
            LaneFn::Double(_) => Pipe::Fp64,
            LaneFn::Convert(_) => Pipe::Xu,
            LaneFn::Int(_) => Pipe::Alu,
        },
        Op::Memory(_) | Op::Warp(WarpOp::Shuffle { .. }) => Pipe::Lsu,
        _ => Pipe::Other,
    }
}
