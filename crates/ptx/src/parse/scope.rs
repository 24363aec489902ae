//! What a name means at a place of the text.
//!
//! Every name has a number, so its binding is found by an index. A block that closes takes its bindings back from a
//! log. Registers of a range (`%r<10>`) are made when they are first used. A label may be used before it stands, from
//! the same block or one inside of it: such uses wait in a chain for each name.

use hashbrown::{HashMap, HashSet};

use super::Parser;
use super::declarations::VariableRange;
use super::names::{Binding, Bound, NONE, Parts, UNBOUND};
use super::operands::Slot;
use crate::diagnostic::Diagnostic;
use crate::span::Span;
use crate::tree::*;

/// The depth of parameters.
const PARAMETERS: u32 = 1;
/// The depth of what stands in a body and in no block of it.
const BODY: u32 = 2;

/// Blocks nested deeper than this are read as if they were that deep.
pub(super) const MAX_DEPTH: usize = 1000;

/// The declaration of one register or of a range.
struct Declaration {
    ty: Type,
    vector: u8,
    span: Span,
    /// For a range: the prefix, how many, the depth, the range it hides.
    range: Option<(u32, u32, u32, u32)>,
}

#[derive(Default)]
struct Scope {
    /// Names that were bound to nothing before.
    fresh: Vec<u32>,
    log: Vec<(u32, Binding)>,
    ranges: Vec<(u32, u32)>,
    open: u32,
    block: Option<usize>,
}

/// A use of a name whose meaning may still come.
pub(super) struct Waiting {
    pub(super) slot: Slot,
    pub(super) name: u32,
    pub(super) span: Span,
    pub(super) what: &'static str,
    /// Found, if only in an enclosing block.
    found: bool,
    before: u32,
}

/// The function that is being read. The next one takes over its buffers.
#[derive(Default)]
pub(super) struct Frame<'a> {
    pub(super) body: Body<'a>,
    scopes: Vec<Scope>,
    /// Closed ones, for their buffers.
    spare: Vec<Scope>,
    declarations: Vec<Declaration>,
    /// For each register of a range: which and its number.
    origins: Vec<(u32, u32)>,
    generation: u32,
    /// Filled from the first range in a nested block on: only then can a register be looked up twice.
    made: HashMap<(u32, u32), RegisterId>,
    pub(super) waiting: Vec<Waiting>,
    /// Waiting uses whose operand has no place in the arena yet.
    pub(super) unplaced: Vec<u32>,
    pub(super) scratch: Vec<Operand>,
    pub(super) location: Option<LocationId>,
    /// Blocks beyond [`MAX_DEPTH`].
    pub(super) excess: usize,
    /// By the prefix and the block: the least number of a name that is declared alone, `%r7`.
    numbered: HashMap<(u32, u32), (u32, Span)>,
    reported: HashSet<u32>,
    pub(super) variable_ranges: Vec<VariableRange<'a>>,
    /// A name such as `%r01` was used.
    two_names: bool,
    /// Some range has a prefix that ends in a digit: `%r1<5>`.
    digits_in_prefix: bool,
}

/// Moves a buffer's content out at its exact size; a large one is worth more than the buffer.
fn take<T: Copy>(buffer: &mut Vec<T>) -> Vec<T> {
    if buffer.len() > 4096 {
        return std::mem::take(buffer);
    }
    let exact = buffer.as_slice().to_vec();
    buffer.clear();
    exact
}

impl<'a> Frame<'a> {
    /// The body that was read. What remains is as good as new.
    pub(super) fn finish(&mut self) -> Body<'a> {
        let declarations = self.declarations.drain(..).map(|it| it.span).collect();
        self.origins.clear();
        self.waiting.clear();
        self.unplaced.clear();
        self.scratch.clear();
        self.made.clear();
        self.reported.clear();
        self.numbered.clear();
        self.generation = 0;
        self.location = None;
        self.excess = 0;
        self.digits_in_prefix = false;
        self.two_names = false;
        let body = &mut self.body;
        Body {
            instructions: take(&mut body.instructions),
            operands: take(&mut body.operands),
            addresses: take(&mut body.addresses),
            registers: take(&mut body.registers),
            declarations,
            labels: take(&mut body.labels),
            variables: body.variables.drain(..).collect(),
            tables: std::mem::take(&mut body.tables),
            locations: body.locations.drain(..).collect(),
            pragmas: std::mem::take(&mut body.pragmas),
            directives: std::mem::take(&mut body.directives),
            blocks: take(&mut body.blocks),
            span: std::mem::take(&mut body.span),
        }
    }
    pub(super) fn depth(&self) -> u32 {
        self.scopes.len() as u32
    }

    /// Where the innermost block opens.
    pub(super) fn open(&self) -> u32 {
        self.scopes.last().map_or(0, |scope| scope.open)
    }

    pub(super) fn place_of_declaration(&self, id: DeclarationId) -> Span {
        self.declarations.get(id.index()).map_or(Span::default(), |it| it.span)
    }

    pub(super) fn position(&self) -> u32 {
        self.body.instructions.len() as u32
    }
}

impl<'a> Parser<'a> {
    pub(super) fn open_scope(&mut self, span: Span, nested: bool) {
        let position = self.frame.position();
        let block = nested.then(|| {
            self.frame.body.blocks.push(Block { start: position, end: position, span });
            self.frame.body.blocks.len() - 1
        });
        let spare = self.frame.spare.pop().unwrap_or_default();
        self.frame.scopes.push(Scope { open: span.start, block, ..spare });
    }

    pub(super) fn close_scope(&mut self, end: Span) {
        let Some(mut scope) = self.frame.scopes.pop() else { return };
        for (name, binding) in scope.log.drain(..).rev() {
            self.names.names[name as usize].binding = binding;
        }
        for name in scope.fresh.drain(..) {
            self.names.names[name as usize].binding = UNBOUND;
        }
        for (prefix, range) in scope.ranges.drain(..).rev() {
            self.names.names[prefix as usize].range = range;
        }
        if let Some(block) = scope.block.and_then(|block| self.frame.body.blocks.get_mut(block)) {
            block.end = self.frame.body.instructions.len() as u32;
            block.span = block.span.to(end);
        }
        self.frame.spare.push(scope);
    }

    /// Binds a name in the innermost block. `false` where that block has it already, which is reported.
    pub(super) fn bind(&mut self, name: u32, bound: Bound, span: Span) -> bool {
        let depth = self.frame.depth();
        let old = self.names.binding(name);
        // Parameters and what a body declares outside of its blocks are one scope.
        let same = old.depth == depth || (depth == BODY && old.depth == PARAMETERS);
        if old.bound != Bound::Nothing && same {
            self.duplicate(name, span, self.place_of(old.bound));
            return false;
        }
        self.bind_at(name, Binding { bound, depth, generation: self.frame.generation });
        true
    }

    fn bind_at(&mut self, name: u32, binding: Binding) {
        let old = std::mem::replace(&mut self.names.names[name as usize].binding, binding);
        if let Some(scope) = (binding.depth as usize).checked_sub(1).and_then(|depth| self.frame.scopes.get_mut(depth))
        {
            if old == UNBOUND {
                scope.fresh.push(name);
            } else {
                scope.log.push((name, old));
            }
        }
    }

    pub(super) fn duplicate(&mut self, name: u32, span: Span, first: Option<Span>) {
        let text = self.names.interner.name(name);
        let mut error = Diagnostic::error(span, format!("`{text}` is declared twice"));
        if let Some(first) = first {
            error = error.at(first, "first declared here");
        }
        self.report(error);
    }

    pub(super) fn place_of(&self, bound: Bound) -> Option<Span> {
        let body = &self.frame.body;
        match bound {
            Bound::Nothing | Bound::Special(_) => None,
            Bound::Declared(index) => self.frame.declarations.get(index as usize).map(|it| it.span),
            Bound::Register(id) => {
                body.registers.get(id.index()).map(|it| self.frame.place_of_declaration(it.declaration))
            }
            Bound::Target(Target::Global(id)) => self.module.variables.get(id.index()).map(|it| it.span),
            Bound::Target(Target::Function(id)) => self.module.functions.get(id.index()).map(|it| it.name_span),
            Bound::Target(Target::Local(id)) => body.variables.get(id.index()).map(|it| it.span),
            Bound::Target(Target::Label(id)) => body.labels.get(id.index()).map(|it| it.span),
            Bound::Target(Target::Table(id)) => body.tables.get(id.index()).map(|it| it.span),
            Bound::Target(Target::Parameter(_) | Target::Return(_) | Target::Undefined) => None,
        }
    }

    /// `.reg .b32 a`
    pub(super) fn declare_register(&mut self, name: u32, ty: Type, vector: u8, span: Span) {
        let index = self.frame.declarations.len() as u32;
        self.frame.declarations.push(Declaration { ty, vector, span, range: None });
        if self.apart_from_ranges(name, span) {
            self.bind(name, Bound::Declared(index), span);
        }
    }

    /// Whether a name that a block declares is none of a range of registers there; it is noted for ranges that follow.
    pub(super) fn apart_from_ranges(&mut self, name: u32, span: Span) -> bool {
        let depth = self.frame.depth();
        let text = self.names.interner.name(name);
        let prefix = text.trim_end_matches(|letter: char| letter.is_ascii_digit());
        if prefix.len() == text.len() {
            return true;
        }
        let Ok(number) = text[prefix.len()..].parse::<u32>() else { return true };
        let prefix = self.names.id(prefix);
        let range = self.frame.declarations.get(self.names.names[prefix as usize].range as usize);
        if let Some(Declaration { range: Some((_, count, at, _)), span: first, .. }) = range
            && *at == depth
            && number < *count
        {
            let first = *first;
            self.duplicate(name, span, Some(first));
            return false;
        }
        let least = self.frame.numbered.entry((prefix, self.frame.open())).or_insert((number, span));
        if number < least.0 {
            *least = (number, span);
        }
        true
    }

    /// `.reg .b32 %r<10>`
    pub(super) fn declare_range(&mut self, prefix: u32, count: u32, ty: Type, vector: u8, span: Span) {
        let depth = self.frame.depth();
        let hidden = self.names.names[prefix as usize].range;
        let old = self.frame.declarations.get(hidden as usize).and_then(|it| Some((it.range?.2, it.span)));
        if let Some((_, first)) = old.filter(|(at, _)| *at == depth) {
            self.duplicate(prefix, span, Some(first));
            return;
        }
        if let Some(&(number, single)) = self.frame.numbered.get(&(prefix, self.frame.open()))
            && number < count
        {
            let text = format!("{}{number}", self.names.interner.name(prefix));
            let error = Diagnostic::error(span, format!("`{text}` is declared twice: it is one of this range"));
            self.report(error.at(single, "first declared here"));
        }
        self.frame.digits_in_prefix |= self.names.interner.name(prefix).ends_with(|last: char| last.is_ascii_digit());
        let index = self.frame.declarations.len() as u32;
        let range = Some((prefix, count, depth, hidden));
        self.frame.declarations.push(Declaration { ty, vector, span, range });
        self.names.names[prefix as usize].range = index;
        if let Some(scope) = self.frame.scopes.last_mut() {
            scope.ranges.push((prefix, hidden));
        }
        if depth > BODY {
            if self.frame.generation == 0 && !self.frame.two_names {
                self.keep_origins();
            }
            self.frame.generation += 1;
        }
    }

    /// From here on a register of a range can be looked up anew.
    fn keep_origins(&mut self) {
        let origins = self.frame.origins.iter().enumerate().filter(|(_, origin)| origin.0 != NONE);
        self.frame.made = origins.map(|(at, &origin)| (origin, RegisterId(at as u32))).collect();
    }

    fn make_register(&mut self, name: u32, declaration: u32, origin: (u32, u32)) -> RegisterId {
        let Declaration { ty, vector, .. } = self.frame.declarations[declaration as usize];
        let id = RegisterId(self.frame.body.registers.len() as u32);
        self.frame.body.registers.push(Register {
            name: self.names.interner.name(name),
            ty,
            vector,
            declaration: DeclarationId(declaration),
        });
        self.frame.origins.push(origin);
        id
    }

    /// What a name means here. A register that is used for the first time comes into being.
    #[inline]
    pub(super) fn look_up(&mut self, name: u32) -> Bound {
        let binding = self.names.binding(name);
        if binding.generation == self.frame.generation && matches!(binding.bound, Bound::Register(_)) {
            return binding.bound;
        }
        self.look_up_anew(name, binding)
    }

    #[inline(never)]
    fn look_up_anew(&mut self, name: u32, binding: Binding) -> Bound {
        let known = binding.bound != Bound::Nothing && binding.generation == self.frame.generation;
        let bound = if known { binding.bound } else { self.look_up_range(name, binding) };
        let Bound::Declared(declaration) = bound else { return bound };
        let register = Bound::Register(self.make_register(name, declaration, (NONE, 0)));
        self.names.names[name as usize].binding.bound = register;
        register
    }

    /// The innermost of the name's own binding and of the ranges that hold it.
    fn look_up_range(&mut self, name: u32, binding: Binding) -> Bound {
        let generation = self.frame.generation;
        let Some((declaration, number, depth)) = self.range_of(name, binding.depth) else {
            // Names of the module outlive the function, and with it the generation.
            if binding.depth > 0 {
                self.names.names[name as usize].binding.generation = generation;
            }
            return binding.bound;
        };
        let origin = (declaration, number);
        // `%r01` is `%r1`: one register with two names.
        if generation == 0 && !self.frame.two_names && self.names.parts(name) == Parts::Odd {
            self.frame.two_names = true;
            self.keep_origins();
        }
        let id = match self.frame.made.get(&origin) {
            Some(&id) => id,
            None => {
                let id = self.make_register(name, declaration, origin);
                if generation > 0 || self.frame.two_names {
                    self.frame.made.insert(origin, id);
                }
                id
            }
        };
        self.bind_at(name, Binding { bound: Bound::Register(id), depth, generation });
        Bound::Register(id)
    }

    /// The innermost range deeper than `above` that holds a name, the name's number in it and its depth.
    fn range_of(&mut self, name: u32, above: u32) -> Option<(u32, u32, u32)> {
        match self.names.parts(name) {
            Parts::Whole => return None,
            Parts::Numbered(prefix, number) if !self.frame.digits_in_prefix => {
                return self.innermost(prefix, number, above);
            }
            _ => {}
        }
        let text = self.names.interner.name(name);
        let digits = text.bytes().rev().take_while(u8::is_ascii_digit).count();
        let mut best: Option<(u32, u32, u32)> = None;
        // `%r12` is the number 12 of `%r<20>`, or the number 2 of `%r1<5>`.
        let least = if self.frame.digits_in_prefix { 1 } else { digits.max(1) };
        for len in (least..=digits).rev() {
            let (prefix, number) = text.split_at(text.len() - len);
            if len > 10 {
                continue;
            }
            let Ok(number) = number.parse::<u32>() else { continue };
            let Some(prefix) = self.names.interner.find(prefix) else { continue };
            best = self.innermost(prefix, number, best.map_or(above, |(_, _, depth)| depth)).or(best);
        }
        best
    }

    /// The innermost range with a prefix, deeper than `above`, that has a number.
    fn innermost(&self, prefix: u32, number: u32, above: u32) -> Option<(u32, u32, u32)> {
        let mut index = self.names.names[prefix as usize].range;
        while let Some(Declaration { range: Some((_, count, depth, hidden)), .. }) =
            self.frame.declarations.get(index as usize)
        {
            if *depth <= above {
                return None;
            }
            if number < *count {
                return Some((index, number, *depth));
            }
            index = *hidden;
        }
        None
    }

    /// A use of a name that is no register: its target as far as it is known. If a label of an inner block can still
    /// take its place, the use waits, and its place must be told.
    pub(super) fn wait(&mut self, name: u32, span: Span, slot: Slot, what: &'static str) -> Target {
        let binding = self.names.binding(name);
        let target = match binding.bound {
            Bound::Target(target) => target,
            _ => Target::Undefined,
        };
        let found = target != Target::Undefined;
        let settled = found && binding.depth == self.frame.depth();
        if !settled && (!found || matches!(target, Target::Label(_) | Target::Table(_))) {
            let index = self.frame.waiting.len() as u32;
            let before = std::mem::replace(&mut self.names.names[name as usize].waiting, index);
            self.frame.waiting.push(Waiting { slot, name, span, what, found, before });
            if slot == Slot::Unplaced {
                self.frame.unplaced.push(index);
            }
        }
        target
    }

    /// A label or table stands here: gives it to the uses that waited for it since its block opened.
    pub(super) fn arrive(&mut self, name: u32, target: Target, span: Span) {
        if !self.bind(name, Bound::Target(target), span) {
            return;
        }
        let open = self.frame.open();
        // Entries of tables that ask for something else.
        let mut wrong = Vec::new();
        let mut index = self.names.names[name as usize].waiting;
        while let Some(waiting) = self.frame.waiting.get_mut(index as usize) {
            if waiting.span.start < open {
                break;
            }
            waiting.found = true;
            let slot = waiting.slot;
            index = waiting.before;
            if matches!(slot, Slot::Table(..)) && !(waiting.what == "label" && matches!(target, Target::Label(_))) {
                wrong.push((waiting.span, waiting.what));
            }
            slot.set(&mut self.frame.body, target);
        }
        self.names.names[name as usize].waiting = index;
        for (at, what) in wrong {
            let text = self.names.interner.name(name);
            self.report(Diagnostic::error(at, format!("`{text}` is no {what}")));
        }
    }

    /// The function is read: what is still unknown may be declared later in the module.
    pub(super) fn leave(&mut self) -> Vec<Waiting> {
        for use_ in &self.frame.waiting {
            self.names.names[use_.name as usize].waiting = NONE;
        }
        self.frame.waiting.extract_if(.., |use_| !use_.found).collect()
    }

    /// Reports a register that is not declared, once in each function.
    pub(super) fn undefined_register(&mut self, name: u32, span: Span) {
        if !self.frame.reported.insert(name) {
            return;
        }
        let text = self.names.interner.name(name);
        let mut error = Diagnostic::error(span, format!("register `{text}` is not declared"));
        let prefix = text.trim_end_matches(|digit: char| digit.is_ascii_digit());
        let range = self.names.interner.find(prefix).map(|prefix| self.names.names[prefix as usize].range);
        let declaration = range.and_then(|range| self.frame.declarations.get(range as usize));
        if let Some(Declaration { range: Some((_, count, ..)), span, .. }) = declaration
            && prefix.len() < text.len()
            && *count > 0
        {
            error = error.at(*span, format!("the range here goes from `{prefix}0` to `{prefix}{}`", count - 1));
        } else if let Some(near) =
            self.suggest(text, |bound| matches!(bound, Bound::Declared(_) | Bound::Register(_) | Bound::Special(_)))
        {
            error = error.note(format!("did you mean `{near}`?"));
        }
        self.report(error);
    }

    /// The nearest name that is bound to something fitting.
    pub(super) fn suggest(&mut self, text: &str, fits: impl Fn(Bound) -> bool) -> Option<&'a str> {
        if self.suggestions == 0 {
            return None;
        }
        self.suggestions -= 1;
        let names = (0..self.names.interner.len().min(100_000) as u32)
            .filter(|&name| fits(self.names.binding(name).bound))
            .map(|name| self.names.interner.name(name));
        crate::suggest::nearest(text, names)
    }
}
