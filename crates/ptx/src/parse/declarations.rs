//! Variables, registers and parameters.

use super::Parser;
use super::lexer::Kind;
use super::names::Bound;
use super::operands::shorten;
use crate::diagnostic::Diagnostic;
use crate::span::Span;
use crate::tree::*;

/// What stands before the names of a declaration.
#[derive(Clone, Debug)]
pub(super) struct Head<'a> {
    pub(super) space: Option<Space>,
    bank: Option<u32>,
    ty: Option<Type>,
    vector: u8,
    align: Option<u32>,
    pointer: Option<PointerTo>,
    pub(super) attributes: Vec<Attribute<'a>>,
    pub(super) span: Span,
}

/// `.local .b32 a<4>`: the variables `a0` to `a3`. They come into being where a name is used that nothing else
/// declares, so that the number costs nothing.
pub(super) struct VariableRange<'a> {
    /// What each is; its name is the prefix.
    pub(super) variable: Variable<'a>,
    count: u32,
    /// The function it is declared in.
    pub(super) function: Option<FunctionId>,
    /// Its block; where it opens as long as the block is read.
    pub(super) block: Span,
}

/// Looking for a name takes time in proportion to the number of ranges.
const MAX_RANGES: usize = 256;

impl VariableRange<'_> {
    /// The number of a name in the range.
    fn number(&self, name: &str) -> Option<u32> {
        let digits = name.strip_prefix(self.variable.name)?;
        let plain =
            digits.bytes().all(|digit| digit.is_ascii_digit()) && (digits.len() == 1 || !digits.starts_with('0'));
        digits.parse().ok().filter(|&number| plain && number < self.count)
    }
}

impl<'a> Parser<'a> {
    /// The variable of a range that a name used in a function means: that of the innermost block.
    pub(super) fn variable_of_range(&mut self, function: u32, name: &'a str, at: Span) -> Option<Target> {
        let holds = |range: &VariableRange<'_>| match range.function {
            None => true,
            Some(FunctionId(id)) => id == function && (range.block.start..range.block.end).contains(&at.start),
        };
        let ranges = self.variable_ranges.iter().enumerate();
        let fitting = ranges.filter(|(_, range)| range.number(name).is_some() && holds(range));
        let (index, range) = fitting.max_by_key(|(_, range)| (range.function.is_some(), range.block.start))?;
        if let Some(&target) = self.made_variables.get(&(index, name)) {
            return Some(target);
        }
        let variable = Variable { name, ..range.variable.clone() };
        let target = if range.function.is_some() {
            let variables = &mut self.module.functions.get_mut(function as usize)?.body.as_mut()?.variables;
            variables.push(variable);
            Target::Local(LocalId(variables.len() as u32 - 1))
        } else {
            let id = VariableId(self.module.variables.len() as u32);
            self.module.variables.push(variable);
            self.module.items.push(Item::Variable(id));
            Target::Global(id)
        };
        self.made_variables.insert((index, name), target);
        Some(target)
    }

    /// `.space .align N .vN .type`, in any order. Words that are not known are reported and skipped.
    pub(super) fn head(&mut self) -> Option<Head<'a>> {
        let mut head = Head {
            space: None,
            bank: None,
            ty: None,
            vector: 1,
            align: None,
            pointer: None,
            attributes: Vec::new(),
            span: self.token.span,
        };
        while self.token.kind == Kind::Dotted {
            let token = self.bump();
            let word = &token.span.text(self.source)[1..];
            if let Some(ty) = Type::from_name(word) {
                if let Some(first) = head.ty {
                    let message = format!("a second type, `.{word}` behind `.{}`", first.name());
                    self.report(Diagnostic::error(token.span, message));
                } else if !ty.is_of_variables() {
                    let error = Diagnostic::error(token.span, format!("variables cannot have type `.{word}`"));
                    let bits = ty.bits();
                    self.report(match bits {
                        8 | 16 | 32 | 64 | 128 => error.note(format!("declare the bits: `.b{bits}`")),
                        _ => error,
                    });
                }
                head.ty = Some(ty);
                continue;
            }
            if let Some(space) = Space::from_name(word) {
                match &mut head.pointer {
                    Some(pointer) => pointer.space = Some(space),
                    None => head.space = Some(space),
                }
                if self.token.kind == Kind::LBracket {
                    self.bump();
                    head.bank = Some(self.number32()?);
                    self.expect(Kind::RBracket, "`]`")?;
                }
                continue;
            }
            match word {
                "v2" => head.vector = 2,
                "v4" => head.vector = 4,
                "v8" => head.vector = 8,
                "ptr" => head.pointer = Some(PointerTo::default()),
                "align" => {
                    let at = self.token.span;
                    let align = self.number32()?;
                    if !align.is_power_of_two() {
                        self.report(Diagnostic::error(at, format!("alignment {align} is not a power of two")));
                    }
                    match &mut head.pointer {
                        Some(pointer) => pointer.align = Some(align),
                        None => head.align = Some(align),
                    }
                }
                "attribute" => head.attributes.extend(self.attributes()?),
                _ => {
                    let error = Diagnostic::error(token.span, format!("`.{word}` is no type or state space"));
                    let near = crate::suggest::nearest(word, DECLARATION_WORDS.iter().copied());
                    self.report(match near {
                        Some(near) => error.note(format!("did you mean `.{near}`?")),
                        None => error,
                    });
                }
            }
        }
        head.span = head.span.to(self.previous);
        Some(head)
    }

    /// `(.managed, .unified(1, 2))`
    pub(super) fn attributes(&mut self) -> Option<Vec<Attribute<'a>>> {
        let mut attributes = Vec::new();
        self.expect(Kind::LParen, "`(`")?;
        loop {
            let name = self.expect(Kind::Dotted, "an attribute")?;
            let mut values = Vec::new();
            if self.eat(Kind::LParen) {
                loop {
                    values.push(self.integer_expression()?);
                    if !self.eat(Kind::Comma) {
                        break;
                    }
                }
                self.expect(Kind::RParen, "`)`")?;
            }
            let span = name.span.to(self.previous);
            attributes.push(Attribute { name: &name.span.text(self.source)[1..], values, span });
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::RParen, "`)`")?;
        Some(attributes)
    }

    /// A declaration in a body, with its semicolon.
    pub(super) fn local_declaration(&mut self) {
        let done = self.head().and_then(|head| {
            if head.space == Some(Space::Reg) {
                self.registers(&head)
            } else {
                self.variables(&head, Linkage::Internal)
            }
        });
        match done {
            Some(()) => self.end_of_statement(),
            None => self.recover(),
        }
    }

    fn type_of(&mut self, head: &Head<'a>) -> Option<Type> {
        if head.ty.is_none() {
            self.report(Diagnostic::error(head.span, "the declaration has no type"));
        }
        head.ty
    }

    /// Types that a space or a vector cannot have.
    fn check_type(&mut self, head: &Head<'a>, ty: Type) {
        let registers = head.space == Some(Space::Reg);
        let opaque = matches!(ty, Type::Texref | Type::Samplerref | Type::Surfref);
        let message = if ty == Type::Pred && (!registers || head.vector > 1) {
            "predicates are single registers"
        } else if opaque && registers {
            "textures, samplers and surfaces are no registers"
        } else if head.vector > 1 && ty.bits() * u32::from(head.vector) > 128 {
            "a vector has at most 128 bits"
        } else if head.vector == 8 {
            "the vectors of variables are `.v2` and `.v4`"
        } else {
            return;
        };
        self.report(Diagnostic::error(head.span, message));
    }

    fn registers(&mut self, head: &Head<'a>) -> Option<()> {
        let ty = self.type_of(head)?;
        self.check_type(head, ty);
        // A declaration of nothing.
        if self.token.kind == Kind::Semi {
            return Some(());
        }
        loop {
            let token = self.expect(Kind::Ident, "the name of a register")?;
            if token.span.text(self.source) == "_" {
                self.report(Diagnostic::error(token.span, "`_` is what takes an unwanted result, not a name"));
                return None;
            }
            let name = self.names.id(token.span.text(self.source));
            if self.eat(Kind::Less) {
                let at = self.token.span;
                let count = self.integer_expression_in_angles()?;
                self.expect(Kind::Greater, "`>`")?;
                let count = u32::try_from(count).unwrap_or_else(|_| {
                    self.report(Diagnostic::error(at, "a range of registers has at most 4294967295"));
                    u32::MAX
                });
                self.declare_range(name, count, ty, head.vector, token.span);
            } else {
                self.declare_register(name, ty, head.vector, token.span);
            }
            if !self.eat(Kind::Comma) {
                return Some(());
            }
        }
    }

    /// The angle bracket that closes is no operator here, so only a plain number is taken.
    fn integer_expression_in_angles(&mut self) -> Option<u64> {
        let token = self.expect(Kind::Integer, "a number")?;
        self.literal(token)?.integer()
    }

    /// The names of a declaration of variables, up to the semicolon.
    pub(super) fn variables(&mut self, head: &Head<'a>, linkage: Linkage) -> Option<()> {
        let ty = self.type_of(head)?;
        self.check_type(head, ty);
        let module = self.frame.depth() == 0;
        match head.space {
            None => {
                let error = Diagnostic::error(head.span, "the declaration has no state space");
                self.report(error.note("write where it lies: `.global`, `.const`, `.shared`, ..."));
            }
            Some(Space::Local) if module => {
                self.report(Diagnostic::error(head.span, "variables in `.local` are declared in functions"));
            }
            Some(Space::SpecialReg) => {
                self.report(Diagnostic::error(head.span, "special registers are not declared"));
            }
            Some(space) if linkage == Linkage::Common && space != Space::Global => {
                self.report(Diagnostic::error(head.span, "`.common` variables lie in `.global`"));
            }
            _ => {}
        }
        // A declaration of nothing.
        if self.token.kind == Kind::Semi {
            return Some(());
        }
        loop {
            let token = self.expect(Kind::Ident, "the name of a variable")?;
            let mut variable = self.variable(head, ty, linkage, token.span);
            if self.token.kind == Kind::Less {
                self.bump();
                let count = self.integer_expression_in_angles()?;
                self.expect(Kind::Greater, "`>`")?;
                let count = u32::try_from(count).unwrap_or(u32::MAX);
                if self.variable_ranges.len() + self.frame.variable_ranges.len() == MAX_RANGES {
                    let message = format!("more than {MAX_RANGES} ranges of variables");
                    self.report(Diagnostic::error(token.span, message));
                    return None;
                }
                let block = Span::new(self.frame.open(), self.frame.open());
                self.frame.variable_ranges.push(VariableRange { variable, count, function: None, block });
                if !self.eat(Kind::Comma) {
                    return Some(());
                }
                continue;
            }
            variable.dims = self.dimensions()?;
            if self.token.kind == Kind::Equal {
                let equal = self.bump().span;
                if linkage == Linkage::Extern {
                    self.report(Diagnostic::error(equal, "an external variable cannot have an initial value"));
                } else if matches!(variable.space, Space::Shared | Space::Local | Space::Param) {
                    let message = format!("a variable in `.{}` cannot have an initial value", variable.space.name());
                    self.report(Diagnostic::error(equal, message));
                }
                variable.initializer = Some(Box::new(self.initializer(&variable)?));
            }
            let empty = |dim: &Option<u64>| matches!(dim, None | Some(0));
            if linkage != Linkage::Extern
                && variable.space != Space::Param
                && variable.initializer.is_none()
                && variable.dims.iter().any(empty)
            {
                let message = format!("`{}` has no size", shorten(variable.name));
                let error = Diagnostic::error(variable.span.to(self.previous), message);
                self.report(error.note("only an `.extern` variable or one with an initial value can leave it out"));
            }
            self.declare(variable);
            if !self.eat(Kind::Comma) {
                return Some(());
            }
        }
    }

    fn variable(&self, head: &Head<'a>, ty: Type, linkage: Linkage, span: Span) -> Variable<'a> {
        Variable {
            name: span.text(self.source),
            span,
            linkage,
            space: head.space.unwrap_or(Space::Global),
            bank: head.bank,
            ty,
            vector: head.vector,
            align: head.align,
            dims: Vec::new(),
            pointer: head.pointer,
            attributes: head.attributes.clone(),
            initializer: None,
            register: None,
        }
    }

    /// `[2][N]`, `[]`
    fn dimensions(&mut self) -> Option<Vec<Option<u64>>> {
        let mut dims = Vec::new();
        while self.eat(Kind::LBracket) {
            let open = self.previous;
            if self.token.kind == Kind::RBracket {
                if !dims.is_empty() {
                    self.report(Diagnostic::error(open.to(self.token.span), "only the first dimension can be open"));
                }
                dims.push(None);
            } else {
                dims.push(Some(self.integer_expression()?));
            }
            self.expect(Kind::RBracket, "`]`")?;
        }
        Some(dims)
    }

    fn declare(&mut self, variable: Variable<'a>) {
        if variable.size().is_none() {
            self.report(Diagnostic::error(variable.span, "the variable's size does not fit 64 bits"));
        }
        let name = self.names.id(variable.name);
        if self.frame.depth() > 0 {
            let id = LocalId(self.frame.body.variables.len() as u32);
            let span = variable.span;
            self.apart_from_ranges(name, span);
            for range in &self.frame.variable_ranges {
                if range.block.start == self.frame.open() && range.number(variable.name).is_some() {
                    let first = range.variable.span;
                    self.duplicate(name, span, Some(first));
                    break;
                }
            }
            self.frame.body.variables.push(variable);
            self.bind(name, Bound::Target(Target::Local(id)), span);
            return;
        }
        let old = match self.names.binding(name).bound {
            Bound::Target(Target::Global(id)) => Some(id),
            Bound::Nothing => None,
            other => {
                self.duplicate(name, variable.span, self.place_of(other));
                None
            }
        };
        if let Some(id) = old {
            let first = &mut self.module.variables[id.index()];
            let tentative = |it: &Variable<'_>| {
                it.linkage == Linkage::Extern || (it.linkage == Linkage::Common && it.initializer.is_none())
            };
            if tentative(first) || tentative(&variable) {
                if tentative(first) {
                    *first = variable;
                }
                return;
            }
            let first = first.span;
            self.duplicate(name, variable.span, Some(first));
        }
        let id = VariableId(self.module.variables.len() as u32);
        self.module.variables.push(variable);
        self.module.items.push(Item::Variable(id));
        if self.names.binding(name).bound == Bound::Nothing {
            self.names.bind_global(name, Bound::Target(Target::Global(id)));
        }
    }

    /// `(.param .u64 a, .reg .b32 b)`, after the opening parenthesis, with the closing one.
    pub(super) fn parameters(&mut self) -> Option<Vec<Variable<'a>>> {
        let mut params = Vec::new();
        if self.eat(Kind::RParen) {
            return Some(params);
        }
        loop {
            if self.token.kind != Kind::Dotted {
                self.unexpected("a parameter");
                return None;
            }
            if let Some((ty, span, next)) = self.plain_parameter(self.source.as_bytes(), self.token.span.start as usize)
            {
                params.push(Variable::parameter(span.text(self.source), ty, span));
                self.lexer.seek(next as u32);
                self.previous = span;
                self.token = self.lexer.next();
                if !self.eat(Kind::Comma) {
                    break;
                }
                continue;
            }
            let mut head = self.head()?;
            let ty = self.type_of(&head)?;
            head.space.get_or_insert(Space::Param);
            self.check_type(&head, ty);
            let span = if self.token.kind == Kind::Ident {
                self.bump().span
            } else {
                Span::new(self.previous.end, self.previous.end)
            };
            let mut variable = self.variable(&head, ty, Linkage::Internal, span);
            variable.space = head.space.unwrap_or(Space::Param);
            variable.dims = self.dimensions()?;
            if variable.size().is_none() {
                self.report(Diagnostic::error(variable.span, "the parameter's size does not fit 64 bits"));
            }
            params.push(variable);
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::RParen, "`)`")?;
        params.shrink_to_fit();
        Some(params)
    }

    /// A number of 32 bits.
    pub(super) fn number32(&mut self) -> Option<u32> {
        let start = self.token.span;
        let value = self.integer_expression()?;
        let number = u32::try_from(value).ok();
        if number.is_none() {
            self.report(Diagnostic::error(start.to(self.previous), "the number does not fit 32 bits"));
        }
        number
    }
}

const DECLARATION_WORDS: &[&str] = &[
    "pred",
    "b8",
    "b16",
    "b32",
    "b64",
    "b128",
    "u8",
    "u16",
    "u32",
    "u64",
    "s8",
    "s16",
    "s32",
    "s64",
    "f16",
    "f16x2",
    "bf16",
    "bf16x2",
    "f32",
    "f64",
    "texref",
    "samplerref",
    "surfref",
    "reg",
    "const",
    "global",
    "local",
    "param",
    "shared",
    "align",
    "ptr",
    "attribute",
    "v2",
    "v4",
    "v8",
];
