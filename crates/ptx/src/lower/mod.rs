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
mod check;
mod compare;
mod contract;
mod control;
mod convert;
mod cx;
mod fail;
mod float;
mod forms;
mod half;
mod int;
mod launch;
mod memory;
mod mods;
mod mov;
mod plan;
mod program;
mod source;
mod space;
mod tensor;
mod unsupported;
mod video;
mod warp;

use lanescope_ir::{ConstBank, Kernel, Param};

pub use launch::{Geometry, PARAM_BASE, SHARED_WINDOW, launch_constants};

use crate::diagnostic::Diagnostic;
use crate::span::Span;
use crate::tree::{Function, FunctionKind, Linkage, Module};
use crate::{Parse, suggest, table};
pub use check::{Errors, errors};
use cx::{Cx, Pool, STACK};
use fail::Lowered;
use plan::Plan;
use program::Program;

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

/// Lowers kernel `name`. Of a text with errors of the parser, all [`errors`] come back.
pub fn load(parse: &Parse<'_>, name: &str, options: Options) -> Result<Kernel, Errors> {
    let module = &parse.module;
    if !parse.is_ok() {
        return Err(errors(parse));
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
    let (id, function) = function.map_err(Errors::from)?;
    if module.address_size == Some(32) {
        let message = "32-bit addresses (`.address_size 32`) are not supported";
        return Err(Diagnostic::error(Span::default(), message).into());
    }
    let mut plan = plan::plan(module, id, options.stack);
    let mut errors = Errors::default();
    for error in std::mem::take(&mut plan.diagnostics) {
        errors.add(error);
    }
    check::head(module, &mut errors);
    unsupported::directives(module, &module.directives, &mut errors);
    let mut pool = Pool::new();
    let mut program = Program::default();
    for place in 0..plan.functions.len() {
        errors.append(program.function(module, &plan, &mut pool, place, options));
    }
    if pool.exhausted || program.steps() > MAX_STEPS {
        errors.add(Diagnostic::error(
            function.name_span,
            format!("`{name}` is too large: more than 65,000 registers or 4 million steps"),
        ));
    }
    if !errors.is_empty() {
        errors.sort();
        return Err(errors);
    }
    let mut kernel = program.finish();
    shape(&mut kernel, module, function, &plan, &pool);
    lanescope_ir::verify::verify(&kernel).map_err(|why| {
        Errors::from(Diagnostic::error(function.name_span, format!("the lowered kernel is inconsistent: {why}")))
    })?;
    Ok(kernel)
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
    forms::check(c)?;
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
        "cvta" => space::convert_address(c),
        "isspacep" => space::is_in_space(c),
        "ld" | "ldu" => memory::load(c),
        "st" => memory::store(c),
        "cp" => memory::copy_async(c),
        "createpolicy" => memory::policy(c),
        "mapa" | "getctarank" => memory::cluster_address(c),
        "atom" | "red" => atomic::lower(c),
        // Every store is visible at once, and caches are not looked at.
        "prefetch" | "prefetchu" | "applypriority" | "discard" | "membar" | "fence" | "griddepcontrol"
        | "setmaxnreg" => {
            forms::nothing(c)?;
            c.emit(lanescope_ir::Op::Nop);
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
        name if table::find(name).is_none() => unsupported::unknown(c),
        name if name.starts_with('v') => video::lower(c),
        name => fail::unsupported(unsupported::kind(name)),
    }
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
