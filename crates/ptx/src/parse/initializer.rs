//! Initial values of variables, laid out as memory while they are read.

use super::Parser;
use super::expr::Value;
use super::lexer::Kind;
use super::names::Bound;
use super::operands::shorten;
use crate::diagnostic::Diagnostic;
use crate::span::Span;
use crate::tree::*;

/// Braces that are open: where they begin, where they must end, where the next value goes.
struct Level {
    start: u64,
    end: u64,
    cursor: u64,
}

/// The shape that values are laid into.
struct Shape {
    ty: Type,
    /// Bytes of what an open brace holds, from the outside in; the last is one element.
    sizes: Vec<u64>,
}

impl Shape {
    fn new(variable: &Variable<'_>) -> Self {
        let mut dims: Vec<u64> = variable.dims.iter().map(|dim| dim.unwrap_or(u64::MAX)).collect();
        if variable.vector > 1 {
            dims.push(u64::from(variable.vector));
        }
        let mut sizes = vec![u64::from(variable.ty.bytes())];
        for dim in dims.iter().rev() {
            sizes.push(sizes[sizes.len() - 1].saturating_mul(*dim));
        }
        sizes.reverse();
        Shape { ty: variable.ty, sizes }
    }

    fn element(&self) -> u64 {
        self.sizes[self.sizes.len() - 1]
    }
}

impl<'a> Parser<'a> {
    /// What follows `=`.
    pub(super) fn initializer(&mut self, variable: &Variable<'a>) -> Option<Initializer<'a>> {
        let mut initializer = Initializer::default();
        if matches!(variable.ty, Type::Texref | Type::Samplerref | Type::Surfref) {
            initializer.fields = self.fields()?;
            return Some(initializer);
        }
        let shape = Shape::new(variable);
        if shape.element() == 0 {
            self.report(Diagnostic::error(self.token.span, "a predicate cannot have an initial value"));
            return None;
        }
        let dimensions = shape.sizes.len() - 1;
        if self.token.kind != Kind::LBrace {
            if dimensions > 0 {
                self.report(Diagnostic::error(self.token.span, "the values of an array or a vector stand in braces"));
                return None;
            }
            let mut level = Level { start: 0, end: shape.sizes[0], cursor: 0 };
            self.initial_value(&shape, &mut level, &mut initializer)?;
            return Some(initializer);
        }
        let mut levels: Vec<Level> = Vec::new();
        loop {
            // A value, an opening brace, or a closing one.
            if self.token.kind == Kind::LBrace {
                let depth = levels.len();
                let Some(&size) = shape.sizes.get(depth).filter(|_| depth < dimensions) else {
                    let message = "more nested braces than the variable has dimensions";
                    self.report(Diagnostic::error(self.token.span, message));
                    return None;
                };
                let (mut start, limit) = levels.last().map_or((0, size), |level| {
                    let used = level.cursor - level.start;
                    let aligned = if size == 0 { used } else { used.div_ceil(size).saturating_mul(size) };
                    (level.start.saturating_add(aligned), level.end)
                });
                if start.saturating_add(size) > limit {
                    self.too_many();
                    start = limit;
                }
                self.bump();
                levels.push(Level { start, end: start.saturating_add(size).min(limit), cursor: start });
                if self.token.kind != Kind::RBrace {
                    continue;
                }
            } else if levels.len() < dimensions {
                let message = "the variable has more dimensions: each has braces of its own";
                self.report(Diagnostic::error(self.token.span, message));
                return None;
            } else if let Some(level) = levels.last_mut() {
                self.initial_value(&shape, level, &mut initializer)?;
            }
            // Behind a value or a closing brace.
            loop {
                if self.eat(Kind::Comma) {
                    if self.token.kind != Kind::RBrace {
                        break;
                    }
                } else if self.token.kind != Kind::RBrace {
                    self.unexpected("`,` or `}`");
                    return None;
                }
                self.bump();
                let Some(closed) = levels.pop() else { return Some(initializer) };
                match levels.last_mut() {
                    Some(level) => level.cursor = closed.end,
                    None => return Some(initializer),
                }
            }
        }
    }

    fn too_many(&mut self) {
        self.report(Diagnostic::error(self.token.span, "more initial values than the variable has elements"));
    }

    /// One value, put at the cursor of the innermost braces.
    fn initial_value(&mut self, shape: &Shape, level: &mut Level, into: &mut Initializer<'a>) -> Option<()> {
        let width = shape.element();
        if level.end.saturating_sub(level.cursor) < width {
            self.too_many();
            return None;
        }
        let start = self.token;
        let value = match start.kind {
            Kind::Ident if start.span.text(self.source) != "WARP_SZ" => None,
            Kind::Integer => {
                self.bump();
                match self.token.kind {
                    Kind::Comma | Kind::RBrace | Kind::Semi => Some(self.literal(start)?),
                    Kind::LParen => None,
                    _ => {
                        self.rewind(start);
                        Some(self.expression()?)
                    }
                }
            }
            _ => Some(self.expression()?),
        };
        let bits = match value {
            Some(value) => self.encode(shape.ty, value, start.span.to(self.previous))?,
            None => {
                let mut mask = None;
                if start.kind == Kind::Integer {
                    mask = self.literal(start)?.integer();
                    self.bump();
                }
                if shape.ty.is_float() {
                    let message = format!("an address cannot be the initial value of `.{}`", shape.ty.name());
                    self.report(Diagnostic::error(self.token.span, message));
                }
                let relocation = self.symbol_value(level.cursor, width as u8, mask)?;
                into.relocations.push(relocation);
                if start.kind == Kind::Integer {
                    self.expect(Kind::RParen, "`)`")?;
                }
                0
            }
        };
        let bytes = &bits.to_le_bytes()[..width.min(16) as usize];
        match into.pieces.last_mut() {
            Some(piece) if piece.offset + piece.bytes.len() as u64 == level.cursor => {
                piece.bytes.extend_from_slice(bytes)
            }
            _ => into.pieces.push(Piece { offset: level.cursor, bytes: bytes.to_vec() }),
        }
        level.cursor += width;
        Some(())
    }

    /// `name+4`, `generic(name)-4`
    fn symbol_value(&mut self, offset: u64, width: u8, mask: Option<u64>) -> Option<Relocation<'a>> {
        let mut name = self.expect(Kind::Ident, "a name")?;
        let generic = name.span.text(self.source) == "generic" && self.token.kind == Kind::LParen;
        let mut addend = 0;
        if generic {
            self.bump();
            name = self.expect(Kind::Ident, "a name")?;
            addend = self.offset()?;
            self.expect(Kind::RParen, "`)`")?;
        }
        addend = self.offset()?.wrapping_add(addend);
        let text = name.span.text(self.source);
        Some(Relocation { offset, width, name: text, span: name.span, target: None, addend, generic, mask })
    }

    /// The bits of a value as a type, in the low bytes.
    fn encode(&mut self, ty: Type, value: Value, span: Span) -> Option<u128> {
        let bits = match (ty, value) {
            (Type::F64, Value::Double(bits)) => Some(bits),
            (Type::F64 | Type::F32, Value::Signed(_) | Value::Unsigned(_)) => {
                let message = format!("an integer cannot be the initial value of `.{}`", ty.name());
                self.report(
                    Diagnostic::error(span, message).note("write it with a point, or as bits: `1.0`, `0f3F800000`"),
                );
                return None;
            }
            (Type::F32, Value::Single(bits)) => Some(u64::from(bits)),
            (Type::F32, Value::Double(bits)) => Some(u64::from((f64::from_bits(bits) as f32).to_bits())),
            (Type::B32, Value::Single(bits)) => Some(u64::from(bits)),
            (Type::B32, Value::Double(bits)) => Some(u64::from((f64::from_bits(bits) as f32).to_bits())),
            (Type::B64, Value::Double(bits)) => Some(bits),
            // As ptxas has it: these bits, and not the number.
            (Type::B64 | Type::F64, Value::Single(bits)) => Some(u64::from(bits)),
            (_, Value::Single(_) | Value::Double(_)) => None,
            (_, Value::Signed(value)) => {
                // Sign-extended, for types of 128 bits.
                self.fits(ty, i128::from(value), span);
                return Some(i128::from(value) as u128);
            }
            (_, Value::Unsigned(value)) => {
                self.fits(ty, i128::from(value), span);
                Some(value)
            }
        };
        if bits.is_none() {
            let message = format!("a floating-point number cannot be the initial value of `.{}`", ty.name());
            self.report(Diagnostic::error(span, message).note("write its bits as an integer"));
        }
        bits.map(u128::from)
    }

    fn fits(&mut self, ty: Type, value: i128, span: Span) {
        let bits = ty.bytes() * 8;
        if bits < 64 && !(-(1i128 << (bits - 1))..1i128 << bits).contains(&value) {
            let text = shorten(span.text(self.source));
            let message = format!("`{text}` does not fit `.{}`: its low {bits} bits are taken", ty.name());
            self.report(Diagnostic::warning(span, message));
        }
    }

    /// `{ filter_mode = nearest, addr_mode_0 = wrap }`
    fn fields(&mut self) -> Option<Vec<(&'a str, &'a str)>> {
        let mut fields = Vec::new();
        self.expect(Kind::LBrace, "`{`")?;
        while self.token.kind != Kind::RBrace {
            let name = self.expect(Kind::Ident, "the name of a field")?;
            self.expect(Kind::Equal, "`=`")?;
            if !matches!(self.token.kind, Kind::Ident | Kind::Integer | Kind::Dotted) {
                self.unexpected("a value");
                return None;
            }
            let value = self.bump();
            fields.push((name.span.text(self.source), value.span.text(self.source)));
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        self.expect(Kind::RBrace, "`}`")?;
        Some(fields)
    }

    /// What the names in initial values stand for, once everything is declared.
    pub(super) fn settle_initializers(&mut self) {
        let mut missing = Vec::new();
        let names = &self.names;
        let bodies = self.module.functions.iter_mut().filter_map(|function| function.body.as_mut());
        let locals = bodies.flat_map(|body| body.variables.iter_mut());
        for variable in self.module.variables.iter_mut().chain(locals) {
            for relocation in variable.initializer.iter_mut().flat_map(|it| it.relocations.iter_mut()) {
                let bound = names.interner.find(relocation.name).map(|name| names.binding(name).bound);
                relocation.target = match bound {
                    Some(Bound::Target(Target::Global(id))) => Some(RelocationTarget::Variable(id)),
                    Some(Bound::Target(Target::Function(id))) => Some(RelocationTarget::Function(id)),
                    _ => None,
                };
                if relocation.target.is_none() {
                    missing.push((relocation.span, relocation.name));
                }
            }
        }
        for (span, name) in missing {
            let mut error = Diagnostic::error(span, format!("`{name}` is not declared"));
            if let Some(near) = self.suggest(name, |bound| matches!(bound, Bound::Target(_))) {
                error = error.note(format!("did you mean `{near}`?"));
            }
            self.report(error);
        }
    }
}
