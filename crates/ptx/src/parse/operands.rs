//! Operands of instructions.

use super::Parser;
use super::expr::Value;
use super::lexer::{Kind, Token};
use super::names::Bound;
use crate::diagnostic::Diagnostic;
use crate::span::Span;
use crate::tree::*;

/// Lists in lists in lists: PTX needs two levels.
const MAX_NESTING: u32 = 16;

/// Where a use of a name is kept, so that its target can be written once it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    Unplaced,
    Operand(u32),
    Address(u32),
    /// An entry of a table.
    Table(u32, u32),
}

impl Slot {
    pub(super) fn set(self, body: &mut Body<'_>, new: Target) {
        let kind = match self {
            Slot::Unplaced => None,
            Slot::Operand(at) => body.operands.get_mut(at as usize).map(|operand| &mut operand.kind),
            Slot::Address(at) => body.addresses.get_mut(at as usize).map(|address| &mut address.base),
            Slot::Table(table, at) => {
                match (body.tables.get_mut(table as usize).map(|table| &mut table.kind), new) {
                    (Some(TableKind::Branch(entries)), Target::Label(label)) => {
                        if let Some(entry) = entries.get_mut(at as usize) {
                            *entry = Some(label);
                        }
                    }
                    (Some(TableKind::Call(entries)), Target::Function(function)) => {
                        if let Some(entry) = entries.get_mut(at as usize) {
                            *entry = Some(function);
                        }
                    }
                    _ => {}
                }
                None
            }
        };
        if let Some(OperandKind::Symbol { target, .. }) = kind {
            *target = new;
        }
    }
}

/// What the instruction asks of its operands.
#[derive(Clone, Copy)]
pub(super) struct Expect {
    /// Parentheses are lists (calls), not expressions.
    pub(super) lists: bool,
    /// What an unknown name is called in an error.
    pub(super) what: &'static str,
    /// `array[2]` is an address itself, not what lies there.
    pub(super) addresses: bool,
    /// Registers may have a minus sign.
    pub(super) signs: bool,
}

impl Expect {
    /// What most instructions ask for.
    pub(super) fn new(what: &'static str) -> Self {
        Expect { lists: false, what, addresses: false, signs: false }
    }
}

impl<'a> Parser<'a> {
    /// Operands up to the semicolon, which is not taken. `Err` after an error: the list has what came before it.
    pub(super) fn operands(&mut self, expect: Expect) -> Result<OperandList, OperandList> {
        let base = self.frame.scratch.len();
        if matches!(self.token.kind, Kind::Semi | Kind::RBrace | Kind::Eof) {
            return Ok(OperandList { start: self.frame.body.operands.len() as u32, len: 0 });
        }
        loop {
            let operand = self.operand(expect, 0);
            let failed = operand.is_none();
            self.frame.scratch.push(operand.unwrap_or(Operand { kind: OperandKind::Invalid, span: self.token.span }));
            if failed {
                return Err(self.drain(base));
            }
            if self.token.kind != Kind::Comma {
                return Ok(self.drain(base));
            }
            self.bump();
        }
    }

    /// Moves the operands from `base` on into the arena.
    fn drain(&mut self, base: usize) -> OperandList {
        let frame = &mut self.frame;
        let start = frame.body.operands.len() as u32;
        let members = &frame.scratch[base..];
        let len = members.len() as u32;
        if let (Some(first), false) = (members.first(), frame.unplaced.is_empty()) {
            let waiting = &mut frame.waiting;
            let from = frame.unplaced.partition_point(|&at| waiting[at as usize].span.start < first.span.start);
            let mut members = members.iter().enumerate();
            for &at in &frame.unplaced[from..] {
                let waiting = &mut waiting[at as usize];
                if let Some((at, member)) = members.find(|(_, member)| member.span.start >= waiting.span.start)
                    && member.span.start == waiting.span.start
                {
                    waiting.slot = Slot::Operand(start + at as u32);
                }
            }
            frame.unplaced.truncate(from);
        }
        frame.body.operands.extend(frame.scratch.drain(base..));
        OperandList { start, len }
    }

    /// One operand. `None` after an error.
    fn operand(&mut self, expect: Expect, depth: u32) -> Option<Operand> {
        let first = self.simple_operand(expect, depth)?;
        if self.token.kind != Kind::Pipe {
            return Some(first);
        }
        let base = self.frame.scratch.len();
        self.frame.scratch.push(first);
        self.bump();
        let second = self.simple_operand(expect, depth);
        self.frame.scratch.push(second.unwrap_or(Operand { kind: OperandKind::Invalid, span: self.token.span }));
        let list = self.drain(base);
        second?;
        Some(Operand { kind: OperandKind::Pair(list), span: first.span.to(self.previous) })
    }

    fn simple_operand(&mut self, expect: Expect, depth: u32) -> Option<Operand> {
        let token = self.token;
        let kind = match token.kind {
            Kind::Ident => return self.name(expect),
            Kind::LBrace | Kind::LParen | Kind::LBracket if depth >= MAX_NESTING => {
                self.report(Diagnostic::error(token.span, format!("operands nested deeper than {MAX_NESTING}")));
                return None;
            }
            Kind::LBrace => {
                self.open_lists += 1;
                self.bump();
                if self.token.kind == Kind::RBrace {
                    self.unexpected("an operand");
                    return None;
                }
                let list = self.members(Kind::RBrace, "`}`", expect, depth)?;
                self.open_lists -= 1;
                OperandKind::Vector(list)
            }
            Kind::LParen if expect.lists => {
                self.bump();
                OperandKind::List(self.members(Kind::RParen, "`)`", expect, depth)?)
            }
            Kind::LBracket => OperandKind::Address(self.address(depth)?),
            Kind::Bang if self.name_follows() => {
                self.bump();
                let name = self.token.span;
                let operand = self.name(expect)?;
                let OperandKind::Register(register) = operand.kind else {
                    if operand.kind != OperandKind::Invalid {
                        self.report(Diagnostic::error(name, "`!` takes a predicate register"));
                    }
                    return Some(Operand { kind: OperandKind::Invalid, span: token.span.to(self.previous) });
                };
                OperandKind::Not(register)
            }
            Kind::Minus if expect.signs && self.name_follows() => {
                self.bump();
                let name = self.token.span;
                match self.name(expect)?.kind {
                    OperandKind::Register(register) => OperandKind::Negated { register, component: None },
                    OperandKind::Element { register, component } => {
                        OperandKind::Negated { register, component: Some(component) }
                    }
                    OperandKind::Invalid => OperandKind::Invalid,
                    _ => {
                        self.report(Diagnostic::error(name, "only a register or a constant can be negated"));
                        OperandKind::Invalid
                    }
                }
            }
            Kind::Bang | Kind::Integer | Kind::Float | Kind::Plus | Kind::Minus | Kind::Tilde | Kind::LParen => {
                self.constant()?
            }
            _ => {
                self.unexpected("an operand");
                return None;
            }
        };
        Some(Operand { kind, span: token.span.to(self.previous) })
    }

    fn constant(&mut self) -> Option<OperandKind> {
        Some(match self.expression_of_operand()? {
            Value::Signed(value) => OperandKind::Integer(Wide::new(value as u64)),
            Value::Unsigned(value) => OperandKind::Unsigned(Wide::new(value)),
            Value::Single(bits) => OperandKind::F32(bits),
            Value::Double(bits) => OperandKind::F64(Wide::new(bits)),
        })
    }

    /// A plain number, as nearly all are, or an expression.
    fn expression_of_operand(&mut self) -> Option<Value> {
        let token = self.token;
        if matches!(token.kind, Kind::Integer | Kind::Float) {
            self.bump();
            if matches!(self.token.kind, Kind::Comma | Kind::Semi | Kind::RBrace | Kind::RBracket | Kind::RParen) {
                return self.literal(token);
            }
            self.rewind(token);
        }
        self.expression()
    }

    /// After the opening delimiter, up to and with the closing one.
    fn members(&mut self, close: Kind, name: &str, expect: Expect, depth: u32) -> Option<OperandList> {
        let base = self.frame.scratch.len();
        let mut complete = true;
        if self.token.kind != close {
            loop {
                let Some(operand) = self.operand(expect, depth + 1) else {
                    complete = false;
                    break;
                };
                self.frame.scratch.push(operand);
                if self.token.kind != Kind::Comma {
                    break;
                }
                self.bump();
            }
        }
        let list = self.drain(base);
        if !complete {
            return None;
        }
        self.expect(close, name)?;
        Some(list)
    }

    /// A register, a special register, a sink, `WARP_SZ`, or a symbol with an offset.
    fn name(&mut self, expect: Expect) -> Option<Operand> {
        let token = self.bump();
        let text = token.span.text(self.source);
        let kind = match text {
            "_" => OperandKind::Sink,
            "WARP_SZ" => {
                if matches!(self.token.kind, Kind::Comma | Kind::Semi | Kind::RBrace | Kind::RBracket | Kind::RParen) {
                    OperandKind::WarpSize
                } else {
                    self.rewind(token);
                    self.constant()?
                }
            }
            _ => {
                let name = self.names.id(text);
                let kind = self.named(name, token, Slot::Unplaced, expect.what)?;
                match kind {
                    OperandKind::Symbol { target, .. } if matches!(self.token.kind, Kind::Plus | Kind::Minus) => {
                        let offset = self.small_offset(token.span)?;
                        OperandKind::Symbol { target, offset }
                    }
                    OperandKind::Symbol { target, .. } if self.token.kind == Kind::LBracket => {
                        self.element(target, token.span, expect)?
                    }
                    OperandKind::Register(register) if matches!(self.token.kind, Kind::Plus | Kind::Minus) => {
                        let offset = self.small_offset(token.span)?;
                        OperandKind::Sum { register, offset }
                    }
                    kind => kind,
                }
            }
        };
        Some(Operand { kind, span: token.span.to(self.previous) })
    }

    /// `+4` behind what stands at `start`.
    fn small_offset(&mut self, start: Span) -> Option<i32> {
        let value = self.offset()?;
        let offset = i32::try_from(value).ok();
        if offset.is_none() {
            let message = format!("offset {value} does not fit 32 bits");
            self.report(Diagnostic::error(start.to(self.previous), message));
        }
        offset
    }

    /// Whether the token behind the one that is looked at is a name, and no constant's.
    fn name_follows(&self) -> bool {
        let next = self.lexer.clone().next();
        next.kind == Kind::Ident && next.span.text(self.source) != "WARP_SZ"
    }

    /// `array[2]`, `array[%r1]`, `array[%r1+2]`, at the bracket: elements, not bytes.
    fn element(&mut self, target: Target, name: Span, expect: Expect) -> Option<OperandKind> {
        let variable = match target {
            Target::Global(id) => self.module.variables.get(id.index()),
            Target::Local(id) => self.frame.body.variables.get(id.index()),
            _ => None,
        };
        // Of a vector type, too, as ptxas counts.
        let Some(scale) = variable.map(|it| it.ty.bytes()) else {
            let error = Diagnostic::error(name, "only a variable that is declared before has elements");
            self.report(error);
            return None;
        };
        self.bump();
        let register = match self.token.kind {
            Kind::Ident if self.text() != "WARP_SZ" => {
                let token = self.bump();
                let name = self.names.id(token.span.text(self.source));
                match self.look_up(name) {
                    Bound::Register(register) => Some(register),
                    _ => {
                        let text = shorten(token.span.text(self.source));
                        let message = format!("an index is a register or a constant, not `{text}`");
                        self.report(Diagnostic::error(token.span, message));
                        return None;
                    }
                }
            }
            _ => None,
        };
        let number = match register {
            Some(_) => self.offset()?,
            None => self.integer_expression()? as i64,
        };
        self.expect(Kind::RBracket, "`]`")?;
        let span = name.to(self.previous);
        let Some(offset) = number.checked_mul(scale.into()).and_then(|offset| i32::try_from(offset).ok()) else {
            self.report(Diagnostic::error(span, "the element is further than 32 bits can say"));
            return None;
        };
        if expect.addresses && register.is_none() {
            return Some(OperandKind::Symbol { target, offset });
        }
        let rest = OperandList { start: self.frame.body.operands.len() as u32, len: 0 };
        let id = AddressId(self.frame.body.addresses.len() as u32);
        self.frame.body.addresses.push(Address {
            base: OperandKind::Symbol { target, offset: 0 },
            offset: offset.into(),
            index: register.map(|register| Index { register, scale }),
            rest,
            base_span: name,
        });
        Some(OperandKind::Address(id))
    }

    /// What a name is, its component included.
    fn named(&mut self, name: u32, token: Token, slot: Slot, what: &'static str) -> Option<OperandKind> {
        let component = match self.token.kind {
            Kind::Dotted if self.token.span.start == token.span.end => {
                let part = self.bump();
                let text = part.span.text(self.source);
                let component = Component::from_name(&text[1..]);
                if component.is_none() {
                    let error = Diagnostic::error(part.span, format!("`{text}` is no part of a register"));
                    self.report(error.note("the parts are .x .y .z .w, .r .g .b .a, .b0 to .b3, .h0 and .h1"));
                    return Some(OperandKind::Invalid);
                }
                component
            }
            _ => None,
        };
        let mut bound = self.look_up(name);
        let percent = self.source.as_bytes().get(token.span.start as usize) == Some(&b'%');
        if percent
            && bound == Bound::Nothing
            && let Some(special) = crate::special::Special::from_name(self.names.interner.name(name))
        {
            bound = Bound::Special(special);
        }
        Some(match (bound, component) {
            (Bound::Register(register), None) => OperandKind::Register(register),
            (Bound::Register(register), Some(component)) => OperandKind::Element { register, component },
            (Bound::Special(register), component) => OperandKind::Special { register, component },
            (Bound::Nothing | Bound::Declared(_), _) if percent => {
                self.undefined_register(name, token.span);
                OperandKind::Invalid
            }
            (_, None) => OperandKind::Symbol { target: self.wait(name, token.span, slot, what), offset: 0 },
            (_, Some(_)) => {
                self.report(Diagnostic::error(self.previous, "only a register has parts"));
                OperandKind::Invalid
            }
        })
    }

    /// `+4`, `-4`, `+(4*2)`, in any number.
    pub(super) fn offset(&mut self) -> Option<i64> {
        let mut sum = 0i64;
        while matches!(self.token.kind, Kind::Plus | Kind::Minus) {
            let negative = self.bump().kind == Kind::Minus;
            let value = self.integer_expression()? as i64;
            sum = sum.wrapping_add(if negative { value.wrapping_neg() } else { value });
        }
        Some(sum)
    }

    fn address(&mut self, depth: u32) -> Option<AddressId> {
        self.bump();
        let token = self.token;
        // Members of the list may hold addresses of their own, so this one gets its number last.
        let waiting = self.frame.waiting.len();
        let expect = Expect::new("variable");
        let mut offset = 0;
        let base = match token.kind {
            Kind::Ident if token.span.text(self.source) != "WARP_SZ" => {
                self.bump();
                let name = self.names.id(token.span.text(self.source));
                // Placed below; the operands of the list do not touch it.
                self.named(name, token, Slot::Address(u32::MAX), expect.what)?
            }
            _ => {
                let value = self.integer_expression()?;
                OperandKind::Integer(Wide::new(value))
            }
        };
        let base_span = token.span.to(self.previous);
        if matches!(self.token.kind, Kind::Plus | Kind::Minus) {
            offset = self.offset()?;
        }
        let mut rest = OperandList { start: self.frame.body.operands.len() as u32, len: 0 };
        if self.token.kind == Kind::Comma {
            self.bump();
            rest = self.members(Kind::RBracket, "`]`", expect, depth)?;
        } else {
            self.expect(Kind::RBracket, "`]`")?;
        }
        let id = AddressId(self.frame.body.addresses.len() as u32);
        if let Some(waiting) = self.frame.waiting.get_mut(waiting)
            && waiting.slot == Slot::Address(u32::MAX)
        {
            waiting.slot = Slot::Address(id.0);
        }
        self.frame.body.addresses.push(Address { base, offset, index: None, rest, base_span });
        Some(id)
    }

    /// Something else stands where `wanted` must.
    pub(super) fn unexpected(&mut self, wanted: &str) {
        let span = self.token.span;
        // Point behind what was read rather than at the start of a later line.
        let between = self.source.get(self.previous.end as usize..span.start as usize).unwrap_or("");
        let span = if between.contains('\n') || self.token.kind == Kind::Eof {
            Span::new(self.previous.end.saturating_sub(1).max(self.previous.start), self.previous.end)
        } else {
            span
        };
        self.unexpected_at(span, wanted);
    }

    /// Nothing begins with this token, which is taken.
    pub(super) fn unexpected_start(&mut self, wanted: &str) {
        self.unexpected_at(self.token.span, wanted);
        self.bump();
    }

    fn unexpected_at(&mut self, span: Span, wanted: &str) {
        let found = match self.token.kind {
            Kind::Eof => "the end of the text".to_owned(),
            _ => format!("`{}`", shorten(self.text())),
        };
        self.report(Diagnostic::error(span, format!("expected {wanted}, found {found}")));
    }
}

/// Long texts do not belong into messages.
pub(super) fn shorten(text: &str) -> String {
    let line = text.lines().next().unwrap_or("");
    if line.chars().count() <= 40 && line.len() == text.len() {
        return text.to_owned();
    }
    let short: String = line.chars().take(40).collect();
    format!("{short}...")
}
