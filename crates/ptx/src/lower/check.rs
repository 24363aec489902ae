//! All that is wrong with a text at once: a parse error hides no error of types and operands elsewhere.

use super::cx::{Cx, Pool};
use super::program::body_of;
use super::{Options, plan, unsupported};
use crate::diagnostic::Diagnostic;
use crate::span::Span;
use crate::tree::{Body, FunctionId, Instruction, Module, OperandKind, OperandList, Target};
use crate::{MAX_DIAGNOSTICS, Parse};

/// Instructions that are looked at after a parse error. Each function counts with all that it reaches.
const MAX_LOOK: usize = 1 << 22;

/// Places of parse errors. What stands there has been reported.
#[derive(Default)]
pub(super) struct Broken {
    /// Sorted; none overlaps the next.
    spans: Vec<Span>,
}

impl Broken {
    fn new(parse: &Parse<'_>) -> Broken {
        let errors = parse.diagnostics.iter().filter(|it| it.is_error());
        let mut spans: Vec<Span> = Vec::new();
        for span in errors.map(|it| it.span) {
            match spans.last_mut() {
                Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
                _ => spans.push(span),
            }
        }
        Broken { spans }
    }

    /// Whether an error was found in an instruction, or next to it, or in what it names.
    pub(super) fn has(&self, body: &Body<'_>, instruction: &Instruction) -> bool {
        if self.spans.is_empty() {
            return false;
        }
        let Span { start, end } = instruction.span;
        // Behind it a semicolon may be missing.
        let first = self.spans.partition_point(|it| it.end < start);
        let near = self.spans.get(first).is_some_and(|it| it.start <= end + 1);
        near || invalid(body, instruction.operands, 0)
    }
}

fn invalid(body: &Body<'_>, list: OperandList, depth: u32) -> bool {
    body.list(list).iter().any(|operand| match operand.kind {
        OperandKind::Vector(list) | OperandKind::List(list) | OperandKind::Pair(list) if depth < 16 => {
            invalid(body, list, depth + 1)
        }
        OperandKind::Address(id) => {
            let address = body.address(id);
            is_invalid(address.base) || (depth < 16 && invalid(body, address.rest, depth + 1))
        }
        kind => is_invalid(kind),
    })
}

fn is_invalid(kind: OperandKind) -> bool {
    matches!(kind, OperandKind::Invalid | OperandKind::Symbol { target: Target::Undefined, .. })
}

/// What is wrong with a text, ordered by place. It is a slice of those that are kept: at most [`MAX_DIAGNOSTICS`] of the
/// parser and as many of lowering.
#[derive(Clone, Debug, Default)]
pub struct Errors {
    kept: Vec<Diagnostic>,
    /// How many more there are.
    pub more: usize,
}

impl Errors {
    pub(super) fn add(&mut self, error: Diagnostic) {
        if self.kept.len() < MAX_DIAGNOSTICS {
            self.kept.push(error);
        } else {
            self.more += 1;
        }
    }

    pub(super) fn append(&mut self, other: Errors) {
        self.more += other.more;
        other.kept.into_iter().for_each(|error| self.add(error));
    }

    pub(super) fn sort(&mut self) {
        self.kept.sort_by_key(|it| (it.span.start, it.span.end));
    }
}

impl From<Diagnostic> for Errors {
    fn from(error: Diagnostic) -> Errors {
        Errors { kept: vec![error], more: 0 }
    }
}

impl std::ops::Deref for Errors {
    type Target = [Diagnostic];

    fn deref(&self) -> &[Diagnostic] {
        &self.kept
    }
}

impl IntoIterator for Errors {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.kept.into_iter()
    }
}

/// Architectures up to those that PTX 9.0 knows.
const TARGETS: &[u32] = &[
    10, 11, 12, 13, 20, 21, 30, 32, 35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 82, 86, 87, 88, 89, 90, 100, 101,
    103, 110, 120, 121,
];

/// What a text says before its first function.
pub(super) fn head(module: &Module<'_>, errors: &mut Errors) {
    let start = Span::default();
    if module.version.is_none() {
        let error = Diagnostic::error(start, "the text has no `.version`");
        errors.add(error.note("it begins with the version of PTX, for instance `.version 8.0`"));
    }
    if module.targets.is_empty() {
        let error = Diagnostic::error(start, "the text has no `.target`");
        errors.add(error.note("behind the version stands the architecture, for instance `.target sm_90`"));
    }
    let mut known = false;
    for target in &module.targets {
        let number = target.strip_prefix("sm_").map(|rest| rest.strip_suffix(['a', 'f']).unwrap_or(rest));
        let architecture = number
            .and_then(|number| number.parse().ok())
            .is_some_and(|number: u32| TARGETS.contains(&number) || (number > 100 && unsupported::is_later(module)));
        let option = matches!(*target, "texmode_unified" | "texmode_independent" | "debug" | "map_f64_to_f32");
        known |= architecture;
        if architecture || option {
            continue;
        }
        // Names are parts of the source.
        let at = (target.as_ptr() as usize).saturating_sub(module.source.as_ptr() as usize) as u32;
        let span = Span::new(at, at + target.len() as u32);
        errors.add(Diagnostic::error(span, format!("there is no architecture or option `{target}`")));
        known = true;
    }
    if !known && !module.targets.is_empty() {
        errors.add(Diagnostic::error(start, "`.target` names no architecture"));
    }
}

/// All errors of a text: those of the parser and, in every function, those of lowering the instructions that could be
/// read.
pub fn errors(parse: &Parse<'_>) -> Errors {
    let module = &parse.module;
    let broken = Broken::new(parse);
    let mut found = Errors::default();
    let mut looks = 0;
    for (at, function) in module.functions.iter().enumerate() {
        unsupported::directives(module, &function.directives, &mut found);
        let Some(body) = &function.body else { continue };
        let Some(first) = body.instructions.first() else { continue };
        let plan = plan::plan(module, FunctionId(at as u32), Options::default().stack);
        let reached = plan.functions.iter().filter_map(|id| module.functions.get(id.index())?.body.as_ref());
        looks += reached.map(|body| body.instructions.len() + 1).sum::<usize>();
        if looks > MAX_LOOK {
            break;
        }
        let mut pool = Pool::new();
        let mut c = Cx::new(module, &plan, &mut pool, 0, function, body, first);
        unsupported::directives(module, &body.directives, &mut c.errors);
        body_of(&mut c, &broken);
        found.append(c.errors);
    }
    unsupported::directives(module, &module.directives, &mut found);
    head(module, &mut found);
    found.kept.extend(parse.diagnostics.iter().filter(|it| it.is_error()).cloned());
    found.more += parse.suppressed;
    found.sort();
    found
}
