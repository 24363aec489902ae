//! PTX as a [`Kernel`] of lane operations.
//!
//! [`load()`] plans a kernel with everything it reaches ([`plan`]: addresses, stack frames, the way calls work), turns
//! each instruction into one step or a few (one file a family), and puts the functions together. The steps of an
//! instruction share its text and source line; [`Kernel::continued`] tells which are not its first.
//!
//! Types and widths are checked here; what is wrong is reported with its place, all of it at once. An instruction that
//! has no meaning here becomes [`Op::Unsupported`] and is refused by name only if it is executed.
//!
//! PTX names no point where diverged lanes meet again: nothing here does either. Code addresses are 16 times the step's
//! number, from the function's base.

mod atomic;
mod compare;
mod contract;
mod control;
mod convert;
mod cx;
mod fail;
mod float;
mod half;
mod int;
mod launch;
mod memory;
mod mods;
mod mov;
mod plan;
mod source;
mod tensor;
mod unsupported;
mod video;
mod warp;

use lanescope_ir::op::control::ControlOp;
use lanescope_ir::{ConstBank, Function as IrFunction, InstId, Instruction, Kernel, Op, Param, TargetTable};

pub use launch::{Geometry, PARAM_BASE, SHARED_WINDOW, launch_constants};

use crate::diagnostic::Diagnostic;
use crate::span::Span;
use crate::tree::{Body, Function, FunctionKind, Linkage, Module};
use crate::{MAX_DIAGNOSTICS, Parse, suggest};
use cx::{Cx, Fix, Pool, STACK, Step};
use fail::{Fail, Lowered};
use plan::{CODE_BASE, CODE_STRIDE, Plan};

/// Choices that the text leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes of local memory added for recursion, calls through registers and `alloca`, whose depth is not known.
    pub stack: u32,
    /// Contracts `mul` and `add` without a rounding modifier where ptxas does, whose `--fmad` this is.
    pub contract: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { stack: 16 << 10, contract: true }
    }
}

/// Steps that one kernel may have: more would take gigabytes. So code addresses of functions stay apart, too.
const MAX_STEPS: usize = 1 << 22;

/// Lowers kernel `name` of a text that was read without errors.
pub fn load(parse: &Parse<'_>, name: &str, options: Options) -> Result<Kernel, Vec<Diagnostic>> {
    let module = &parse.module;
    if !parse.is_ok() {
        return Err(parse.diagnostics.iter().filter(|d| d.is_error()).cloned().collect());
    }
    let function = match module.function(name) {
        Some((id, function)) if function.kind == FunctionKind::Entry && function.body.is_some() => Ok((id, function)),
        Some((_, function)) if function.body.is_none() => {
            Err(Diagnostic::error(function.name_span, format!("`{name}` is declared here but not defined")))
        }
        Some((_, function)) => Err(Diagnostic::error(
            function.name_span,
            format!("`{name}` is a function, not a kernel: it cannot be launched"),
        )),
        None => {
            let mut error = Diagnostic::error(Span::default(), format!("there is no kernel `{name}` in this text"));
            let kernels = module.functions.iter().filter(|f| f.kind == FunctionKind::Entry && f.body.is_some());
            if let Some(near) = suggest::nearest(name, kernels.map(|f| f.name).take(10_000)) {
                error = error.note(format!("did you mean `{near}`?"));
            }
            Err(error)
        }
    };
    let (id, function) = function.map_err(|error| vec![error])?;
    if module.address_size == Some(32) {
        return Err(vec![Diagnostic::error(
            Span::default(),
            "32-bit addresses (`.address_size 32`) are not supported",
        )]);
    }
    let mut plan = plan::plan(module, id, options.stack);
    let mut diagnostics = std::mem::take(&mut plan.diagnostics);
    let mut pool = Pool::new();
    let mut program = Program::default();
    if diagnostics.is_empty() {
        for place in 0..plan.functions.len() {
            diagnostics.extend(program.function(module, &plan, &mut pool, place, options));
            if diagnostics.len() >= MAX_DIAGNOSTICS {
                break;
            }
        }
    }
    if pool.exhausted || program.steps() > MAX_STEPS {
        diagnostics.push(Diagnostic::error(
            function.name_span,
            format!("`{name}` is too large: more than 65,000 registers or 4 million steps"),
        ));
    }
    if !diagnostics.is_empty() {
        diagnostics.truncate(MAX_DIAGNOSTICS);
        return Err(diagnostics);
    }
    let mut kernel = program.finish();
    shape(&mut kernel, module, function, &plan, &pool);
    lanescope_ir::verify::verify(&kernel).map_err(|why| {
        vec![Diagnostic::error(function.name_span, format!("the lowered kernel is inconsistent: {why}"))]
    })?;
    Ok(kernel)
}

/// The kernel as it grows.
#[derive(Default)]
struct Program {
    kernel: Kernel,
    sources: source::Builder,
    continued: Vec<bool>,
    locations: Vec<Option<u32>>,
    /// Calls and the place of the function they go to.
    calls: Vec<(usize, usize)>,
    last_origin: Option<u32>,
}

impl Program {
    fn steps(&self) -> usize {
        self.kernel.instructions.len()
    }

    /// Lowers one function and appends it.
    fn function(
        &mut self,
        module: &Module<'_>,
        plan: &Plan,
        pool: &mut Pool,
        place: usize,
        options: Options,
    ) -> Vec<Diagnostic> {
        let Some(function) = module.functions.get(plan.functions[place].index()) else { return Vec::new() };
        let Some(body) = &function.body else { return Vec::new() };
        let Some(first) = body.instructions.first() else {
            return vec![Diagnostic::error(function.name_span, format!("`{}` has no instructions", function.name))];
        };
        let mut c = Cx::new(module, plan, pool, place, function, body, first);
        if options.contract {
            c.contraction = contract::plan(module, body);
        }
        control::enter(&mut c);
        // The first step of each instruction, and of what follows the last.
        let mut starts = Vec::with_capacity(body.instructions.len() + 1);
        for (at, instruction) in body.instructions.iter().enumerate() {
            starts.push(c.steps.len() as u32);
            let outcome = c.start(at as u32, instruction).and_then(|()| lower(&mut c));
            let start = *starts.last().unwrap_or(&0) as usize;
            if let Err(fail) = outcome {
                c.steps.truncate(start);
                match fail {
                    Fail::Error(diagnostic) => c.diagnostics.push(*diagnostic),
                    Fail::Unsupported(why) => unsupported::describe(&mut c, why),
                }
            } else if c.steps.len() == start {
                // Every instruction is issued.
                c.emit(Op::Nop);
            }
            if c.diagnostics.len() >= MAX_DIAGNOSTICS || c.pool.exhausted || c.steps.len() > MAX_STEPS {
                return c.diagnostics;
            }
        }
        starts.push(c.steps.len() as u32);
        c.origin = None;
        c.guard = lanescope_ir::PredSrc::TRUE;
        let epilogue = c.steps.len() as u32;
        let needs_end = c.steps.iter().any(|s| matches!(s.fix, Some(Fix::Epilogue)));
        let falls_off = body.labels.iter().any(|l| l.position as usize >= body.instructions.len())
            || !c.steps.last().is_some_and(|s| ends(s) && s.guard.is_true());
        if c.is_kernel() {
            if falls_off {
                c.control(ControlOp::Exit { cond: lanescope_ir::PredSrc::TRUE }, None);
            }
        } else if (needs_end || falls_off)
            && let Err(Fail::Error(diagnostic)) = control::leave(&mut c)
        {
            c.diagnostics.push(*diagnostic);
        }
        let Cx { steps, diagnostics, branches, .. } = c;
        if diagnostics.is_empty() {
            let unit = Unit { name: function.name, body, steps, branches, starts, epilogue };
            self.append(module, pool, place, unit);
        }
        diagnostics
    }

    fn append(&mut self, module: &Module<'_>, pool: &mut Pool, place: usize, unit: Unit<'_>) {
        let Unit { name, body, steps, branches, starts, epilogue } = unit;
        let base = CODE_BASE + CODE_STRIDE * place as u64;
        let first = self.steps() as u32;
        let locations = self.sources.body(module, body);
        let label = |id: crate::tree::LabelId| {
            let position = body.labels.get(id.index()).map_or(0, |l| l.position as usize);
            starts.get(position).copied().unwrap_or(epilogue)
        };
        for (at, step) in steps.into_iter().enumerate() {
            let mut op = step.op;
            let target = match step.fix {
                None => None,
                Some(Fix::Label(id)) => Some(first + label(id)),
                Some(Fix::Epilogue) => Some(first + epilogue),
                // Functions are found when all have their place.
                Some(Fix::Function(place)) => {
                    self.calls.push((first as usize + at, place));
                    None
                }
            };
            if let (Some(to), Op::Control(ControlOp::Branch { target, .. })) = (target, &mut op) {
                *target = InstId(to);
            }
            let instruction = step.origin.and_then(|i| body.instructions.get(i as usize));
            let text = match instruction {
                Some(instruction) => one_line(instruction.span.text(module.source)),
                None => format!("({} of {name})", if at < epilogue as usize { "entry" } else { "end" }),
            };
            self.continued.push(at > 0 && step.origin.is_some() && self.last_origin == step.origin);
            self.last_origin = step.origin;
            let kernel = &mut self.kernel;
            kernel.instructions.push(Instruction { pc: 16 * at as u32, guard: step.guard, uniform: false, op });
            kernel.text.push(text);
            let location =
                instruction.and_then(|i| i.location).and_then(|id| locations.get(id.index()).copied()).flatten();
            self.locations.push(location);
        }
        for (at, start, labels) in branches {
            let targets: Vec<u32> = labels.iter().map(|&id| label(id)).collect();
            for (i, &target) in targets.iter().enumerate() {
                if let Some(entry) = pool.tables.get_mut(start as usize + i) {
                    *entry = base + 16 * u64::from(target);
                }
            }
            self.kernel.targets.push(TargetTable {
                branch: InstId(first + at),
                targets: targets.into_iter().map(|t| InstId(first + t)).collect(),
            });
        }
        let len = self.steps() as u32 - first;
        self.kernel.functions.push(IrFunction {
            name: name.to_owned(),
            base,
            first: InstId(first),
            len,
            local: Vec::new(),
        });
    }

    /// The kernel with calls resolved.
    fn finish(mut self) -> Kernel {
        for (at, place) in self.calls {
            let Some(first) = self.kernel.functions.get(place).map(|f| f.first) else { continue };
            if let Op::Control(ControlOp::Call { target, .. }) = &mut self.kernel.instructions[at].op {
                *target = first;
            }
        }
        if self.continued.contains(&true) {
            self.kernel.continued = self.continued;
        }
        if self.locations.iter().any(Option::is_some) {
            self.kernel.source = self.sources.map;
            self.kernel.source.of_inst = self.locations;
        }
        self.kernel
    }
}

/// A lowered function.
struct Unit<'u> {
    name: &'u str,
    body: &'u Body<'u>,
    steps: Vec<Step>,
    branches: Vec<(u32, u32, Vec<crate::tree::LabelId>)>,
    /// The first step of each instruction, and of what follows the last.
    starts: Vec<u32>,
    epilogue: u32,
}

/// White space of any kind as one space.
fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// Lowers the instruction at hand.
fn lower(c: &mut Cx<'_, '_>) -> Lowered<()> {
    use crate::tree::Type as T;
    if let Some(at) = c.origin {
        if let Some(&fused) = c.contraction.sums.get(&at) {
            return contract::fused(c, fused);
        }
        if c.contraction.kept.contains(&at) {
            contract::keep(c)?;
        }
    }
    let types = c.mods.types();
    let first = types.first().copied();
    let is_float = matches!(first, Some(T::F32 | T::F64 | T::F32x2));
    let half = first.and_then(half::format);
    match c.mods.name {
        "add" | "sub" | "fma" | "mul" | "mad" if types.len() > 1 => fail::unsupported("arithmetic of mixed types"),
        "add" | "sub" | "mul" | "mad" | "fma" if is_float => float::arithmetic(c),
        "add" | "sub" | "mul" | "fma" => match half {
            Some(format) => half::arithmetic(c, format),
            None if c.mods.name == "mul" => int::product(c),
            None => int::sum(c),
        },
        "sad" => int::sum(c),
        "addc" | "subc" => int::carry(c),
        "mad" | "madc" | "mul24" | "mad24" => int::product(c),
        "div" if !is_float => int::divide(c),
        "rem" => int::divide(c),
        "div" | "rcp" | "sqrt" | "rsqrt" => float::divide(c),
        "sin" | "cos" | "lg2" | "ex2" | "tanh" => float::transcendental(c),
        "abs" | "neg" => match half {
            Some(format) => half::sign(c, format),
            None if is_float => float::sign(c),
            None => int::sign(c),
        },
        "min" | "max" => match half {
            Some(format) => half::extreme(c, format),
            None if is_float => float::extreme(c),
            None => int::extreme(c),
        },
        "copysign" => float::copysign(c),
        "testp" => float::test(c),
        "and" | "or" | "xor" | "not" | "cnot" => int::logic(c),
        "lop3" => int::lop3(c),
        "shl" | "shr" | "shf" | "bfe" | "bfi" | "bfind" | "clz" | "popc" | "brev" | "prmt" | "szext" | "bmsk"
        | "fns" | "dp4a" | "dp2a" => int::bits(c),
        "setp" => compare::setp(c),
        "set" => compare::set(c),
        "selp" => compare::selp(c),
        "slct" => compare::slct(c),
        "cvt" => convert::lower(c),
        "mov" => mov::lower(c),
        "cvta" => mov::convert_address(c),
        "isspacep" => mov::is_in_space(c),
        "ld" | "ldu" => memory::load(c),
        "st" => memory::store(c),
        "cp" => memory::copy_async(c),
        "createpolicy" => memory::policy(c),
        "mapa" | "getctarank" => memory::cluster_address(c),
        "atom" | "red" => atomic::lower(c),
        // Every store is visible at once, and caches are not looked at.
        "prefetch" | "prefetchu" | "applypriority" | "discard" | "membar" | "fence" | "griddepcontrol"
        | "setmaxnreg" => {
            c.emit(Op::Nop);
            Ok(())
        }
        "mma" => tensor::multiply(c),
        "ldmatrix" => tensor::load(c),
        "stmatrix" => tensor::store(c),
        "movmatrix" => tensor::transpose(c),
        "shfl" => warp::shuffle(c),
        "vote" => warp::vote(c),
        "match" => warp::matching(c),
        "redux" => warp::reduce(c),
        "activemask" => warp::active(c),
        "elect" => warp::elect(c),
        "bar" | "barrier" => warp::barrier(c),
        "bra" => control::branch(c),
        "brx" => control::branch_indexed(c),
        "call" => control::call(c),
        "ret" => control::ret(c),
        "exit" => control::exit(c),
        "alloca" | "stacksave" | "stackrestore" => control::stack(c),
        "trap" | "brkpt" | "nanosleep" | "pmevent" => control::simple(c),
        name if name.starts_with('v') => video::lower(c),
        name => fail::unsupported(unsupported::kind(name)),
    }
}

/// Whether nothing follows the step.
fn ends(step: &Step) -> bool {
    matches!(
        step.op,
        Op::Control(
            ControlOp::Exit { .. }
                | ControlOp::Return { .. }
                | ControlOp::Trap
                | ControlOp::BranchIndirect { .. }
                | ControlOp::Branch { .. }
        )
    )
}

/// What a launch needs to know.
fn shape(kernel: &mut Kernel, module: &Module<'_>, function: &Function<'_>, plan: &Plan, pool: &Pool) {
    kernel.name = function.name.to_owned();
    kernel.warp_size = module.warp_size;
    kernel.arch = "ptx".to_owned();
    kernel.slots = u16::try_from(pool.slots).unwrap_or(u16::MAX);
    kernel.preds = u16::try_from(pool.preds).unwrap_or(u16::MAX);
    let frame = &plan.frames[0];
    kernel.stack_pointer = Some((STACK, plan.local_size.saturating_sub(frame.size)));
    kernel.params = function
        .params
        .iter()
        .zip(&frame.signature.params)
        .zip(0u32..)
        .map(|((p, &(offset, size)), ordinal)| Param { ordinal, offset, size, name: Some(p.name.to_owned()) })
        .collect();
    kernel.param_size = frame.signature.size;
    kernel.param_base = (0, PARAM_BASE);
    kernel.shared_size = plan.shared_size;
    kernel.local_size = plan.local_size;
    let tuning = &function.tuning;
    kernel.max_threads = tuning.maxntid.map_or(0, |n| n.iter().fold(1u32, |a, &b| a.saturating_mul(b.max(1))));
    kernel.required_block = tuning.reqntid;
    kernel.globals = plan.globals.clone();
    if !pool.tables.is_empty() {
        let data = pool.tables.iter().flat_map(|entry| entry.to_le_bytes()).collect();
        kernel.constants = vec![ConstBank { bank: control::TABLE_BANK, data }];
    }
    kernel.externals = plan
        .externals
        .iter()
        .filter_map(|(id, &address)| Some((address, module.functions.get(id.index())?.name.to_owned())))
        .collect();
    let hidden =
        module.variables.iter().filter(|v| v.linkage == Linkage::Extern && v.space == crate::tree::Space::Global);
    kernel.warnings = hidden.map(|v| format!("variable `{}` is defined in another module", v.name)).collect();
}
