//! Functions turned into steps, put one behind the other, and their jumps resolved.

use lanescope_ir::op::control::ControlOp;
use lanescope_ir::{Function as IrFunction, InstId, Instruction, Kernel, Op, TargetTable};

use super::check::{Broken, Errors};
use super::cx::{Cx, Fix, Pool, Step};
use super::fail::Fail;
use super::plan::{CODE_BASE, CODE_STRIDE, Plan};
use super::{MAX_STEPS, Options, contract, control, lower, source, unsupported};
use crate::diagnostic::Diagnostic;
use crate::tree::{Body, Module};

/// The kernel as it grows.
#[derive(Default)]
pub(super) struct Program {
    kernel: Kernel,
    sources: source::Builder,
    continued: Vec<bool>,
    locations: Vec<Option<u32>>,
    /// Calls and the place of the function they go to.
    calls: Vec<(usize, usize)>,
    last_origin: Option<u32>,
}

impl Program {
    pub(super) fn steps(&self) -> usize {
        self.kernel.instructions.len()
    }

    /// Lowers one function and appends it.
    pub(super) fn function(
        &mut self,
        module: &Module<'_>,
        plan: &Plan,
        pool: &mut Pool,
        place: usize,
        options: Options,
    ) -> Errors {
        let Some(function) = module.functions.get(plan.functions[place].index()) else { return Errors::default() };
        let Some(body) = &function.body else { return Errors::default() };
        let Some(first) = body.instructions.first() else {
            return Diagnostic::error(function.name_span, format!("`{}` has no instructions", function.name)).into();
        };
        let mut c = Cx::new(module, plan, pool, place, function, body, first);
        if options.contract {
            c.contraction = contract::plan(module, body);
        }
        unsupported::directives(module, &function.directives, &mut c.errors);
        unsupported::directives(module, &body.directives, &mut c.errors);
        let places = body_of(&mut c, &Broken::default());
        let Cx { steps, errors, branches, .. } = c;
        if let Some((starts, epilogue)) = places
            && errors.is_empty()
        {
            let unit = Unit { name: function.name, body, steps, branches, starts, epilogue };
            self.append(module, pool, place, unit);
        }
        errors
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
    pub(super) fn finish(mut self) -> Kernel {
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

/// Lowers all instructions of a body. Gives the first step of each instruction and of what follows the last, and the
/// place of the common way out; `None` where it gave up. Errors are in the context; what is broken already gets none.
pub(super) fn body_of(c: &mut Cx<'_, '_>, broken: &Broken) -> Option<(Vec<u32>, u32)> {
    let body = c.body;
    control::enter(c);
    // The first step of each instruction, and of what follows the last.
    let mut starts = Vec::with_capacity(body.instructions.len() + 1);
    for (at, instruction) in body.instructions.iter().enumerate() {
        starts.push(c.steps.len() as u32);
        let outcome = c.start(at as u32, instruction).and_then(|()| lower(c));
        let start = *starts.last().unwrap_or(&0) as usize;
        if let Err(fail) = outcome {
            c.steps.truncate(start);
            match fail {
                Fail::Error(_) if broken.has(body, instruction) => {}
                Fail::Error(diagnostic) => c.errors.add(*diagnostic),
                Fail::Unsupported(why) => unsupported::describe(c, why),
            }
        } else if c.steps.len() == start {
            // Every instruction is issued.
            c.emit(Op::Nop);
        }
        if c.pool.exhausted || c.steps.len() > MAX_STEPS {
            return None;
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
        && let Err(Fail::Error(diagnostic)) = control::leave(c)
    {
        c.errors.add(*diagnostic);
    }
    Some((starts, epilogue))
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
