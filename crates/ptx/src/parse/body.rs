//! Statements: instructions, labels, nested blocks and the directives among them.

use super::Parser;
use super::lexer::{Kind, Lexer};
use super::names::Bound;
use super::operands::{Expect, Slot, shorten};
use super::scope::MAX_DEPTH;
use super::starts_item;
use super::word::Key;
use crate::diagnostic::Diagnostic;
use crate::span::Span;
use crate::table;
use crate::tree::*;

impl<'a> Parser<'a> {
    /// From the opening brace of a function to its closing one.
    pub(super) fn body(&mut self, name: &str) {
        let open = self.bump().span;
        self.open_scope(open, false);
        let outer = self.frame.depth();
        while self.frame.depth() >= outer {
            if matches!(self.token.kind, Kind::Ident | Kind::At | Kind::Dotted) {
                self.plain_statements();
            }
            match self.token.kind {
                Kind::Semi => {
                    self.bump();
                }
                Kind::LBrace => self.open_block(),
                Kind::RBrace => {
                    let close = self.bump().span;
                    if self.frame.excess > 0 {
                        self.frame.excess -= 1;
                    } else {
                        self.close_scope(close);
                    }
                }
                Kind::Ident if self.lexer.colon_follows() => self.label(),
                Kind::Ident => self.instruction(),
                Kind::At if self.source[self.token.span.range().end..].starts_with('@') => self.line_directive(),
                Kind::At => self.instruction(),
                Kind::Dotted if !self.ends_body() => self.body_directive(),
                Kind::Eof | Kind::Dotted => {
                    let innermost = Span::new(self.frame.open(), self.frame.open() + 1);
                    let mut error = Diagnostic::error(open, format!("the body of `{name}` is never closed"));
                    if self.token.kind == Kind::Dotted {
                        error = error.at(self.token.span, "a new function or directive of the module begins here");
                    }
                    if innermost.start != open.start {
                        error = error.at(innermost, "the innermost block that is open begins here");
                    }
                    self.report(error);
                    self.frame.excess = 0;
                    while self.frame.depth() >= outer {
                        self.close_scope(self.previous);
                    }
                }
                _ => {
                    self.unexpected_start("an instruction, a label or a directive");
                    if !matches!(self.token.kind, Kind::Ident | Kind::At | Kind::Dotted) {
                        self.recover();
                    }
                }
            }
        }
        self.frame.body.span = open.to(self.previous);
    }

    fn open_block(&mut self) {
        let span = self.bump().span;
        if self.frame.depth() as usize <= MAX_DEPTH {
            self.open_scope(span, true);
            return;
        }
        if self.frame.excess == 0 {
            self.report(Diagnostic::error(span, format!("blocks nested deeper than {MAX_DEPTH}")));
        }
        self.frame.excess += 1;
    }

    /// Whether a directive of the module stands where a statement must. Variables may have a linkage in a body, too.
    fn ends_body(&self) -> bool {
        match self.text() {
            ".visible" | ".extern" | ".weak" | ".common" => {
                let mut ahead = self.lexer.clone();
                matches!(ahead.next().span.text(self.source), ".entry" | ".func")
            }
            text => starts_item(text),
        }
    }

    fn label(&mut self) {
        let token = self.bump();
        self.bump();
        let text = token.span.text(self.source);
        let name = self.names.id(text);
        if self.token.kind == Kind::Dotted
            && matches!(self.text(), ".branchtargets" | ".calltargets" | ".callprototype")
        {
            return self.table(name, token.span);
        }
        let id = LabelId(self.frame.body.labels.len() as u32);
        let position = self.frame.position();
        self.frame.body.labels.push(Label { name: text, position, span: token.span });
        self.arrive(name, Target::Label(id), token.span);
    }

    /// A labelled list of branch targets or call targets, or a prototype.
    fn table(&mut self, name: u32, label: Span) {
        let directive = self.bump().span.text(self.source);
        let id = TableId(self.frame.body.tables.len() as u32);
        let kind = match directive {
            ".callprototype" => self.prototype().map(TableKind::Prototype),
            _ => self.targets(id, directive == ".branchtargets"),
        };
        let complete = kind.is_some();
        let text = label.text(self.source);
        let kind = kind.unwrap_or(TableKind::Branch(Vec::new()));
        self.frame.body.tables.push(Table { name: text, kind, span: label.to(self.previous) });
        self.arrive(name, Target::Table(id), label);
        if complete { self.end_of_statement() } else { self.recover() }
    }

    fn targets(&mut self, table: TableId, branch: bool) -> Option<TableKind<'a>> {
        let what = if branch { "label" } else { "function" };
        let (mut labels, mut functions) = (Vec::new(), Vec::new());
        loop {
            let token = self.expect(Kind::Ident, &format!("a {what}"))?;
            let name = self.names.id(token.span.text(self.source));
            let slot = Slot::Table(table.0, labels.len().max(functions.len()) as u32);
            let target = self.wait(name, token.span, slot, what);
            match target {
                Target::Undefined => {}
                Target::Label(_) if branch => {}
                Target::Function(_) if !branch => {}
                _ => {
                    let text = token.span.text(self.source);
                    self.report(Diagnostic::error(token.span, format!("`{text}` is no {what}")));
                }
            }
            if branch {
                labels.push(if let Target::Label(label) = target { Some(label) } else { None });
            } else {
                functions.push(if let Target::Function(function) = target { Some(function) } else { None });
            }
            if !self.eat(Kind::Comma) {
                return Some(if branch { TableKind::Branch(labels) } else { TableKind::Call(functions) });
            }
        }
    }

    /// `(returns) _ (params) .noreturn`
    fn prototype(&mut self) -> Option<Prototype<'a>> {
        let mut prototype = Prototype::default();
        if self.eat(Kind::LParen) {
            prototype.returns = self.parameters()?;
        }
        self.expect(Kind::Ident, "`_`")?;
        if self.eat(Kind::LParen) {
            prototype.params = self.parameters()?;
        }
        let mut unknown = Vec::new();
        self.tuning(&mut prototype.tuning, &mut unknown);
        Some(prototype)
    }

    fn instruction(&mut self) {
        let start = self.token.span;
        let mut guard = None;
        if self.eat(Kind::At) {
            let negated = self.eat(Kind::Bang);
            let Some(token) = self.expect(Kind::Ident, "a predicate register") else { return self.recover() };
            let name = self.names.id(token.span.text(self.source));
            match self.look_up(name) {
                Bound::Register(register) => {
                    guard = Some(Guard { register, negated });
                    let Register { ty, declaration, .. } = self.frame.body.registers[register.index()];
                    if ty != Type::Pred {
                        let declaration = self.frame.place_of_declaration(declaration);
                        let text = shorten(token.span.text(self.source));
                        let message = format!("`{text}` has type `.{}`, where a guard needs `.pred`", ty.name());
                        self.report(Diagnostic::error(token.span, message).at(declaration, "declared here"));
                    }
                }
                Bound::Nothing => self.undefined_register(name, token.span),
                _ => {
                    let text = token.span.text(self.source);
                    self.report(Diagnostic::error(token.span, format!("`{text}` is no predicate register")));
                }
            }
            if self.token.kind != Kind::Ident {
                self.unexpected("an instruction");
                return self.recover();
            }
        }
        let name = self.token.span;
        let end = self.lexer.modifiers();
        self.previous = Span::new(name.start, end);
        let opcode = self.opcode(self.previous);
        if let Some((operands, last, end)) = self.plain_operands(self.source.as_bytes(), self.lexer.place(), opcode) {
            let last = if operands.len == 0 { self.previous.end } else { last as u32 };
            let span = Span::new(start.start, last);
            let location = self.frame.location;
            self.frame.body.instructions.push(Instruction { opcode, guard, operands, location, span });
            self.lexer.seek(end as u32);
            self.previous = Span::new(end as u32 - 1, end as u32);
            self.token = self.lexer.next();
            return;
        }
        self.token = self.lexer.next();
        let expect = match self.module.opcodes[opcode.index()].name {
            "call" => Expect { lists: true, ..Expect::new("function") },
            "bra" => Expect::new("label"),
            "brx" => Expect::new("table of labels"),
            "mov" | "cvta" | "isspacep" => Expect { addresses: true, ..Expect::new("name") },
            "vmad" => Expect { signs: true, ..Expect::new("name") },
            _ => Expect::new("name"),
        };
        let operands = self.operands(expect);
        let (Ok(list) | Err(list)) = operands;
        let span = start.to(self.previous);
        let location = self.frame.location;
        self.frame.body.instructions.push(Instruction { opcode, guard, operands: list, location, span });
        match operands {
            Ok(_) => self.end_of_statement(),
            Err(_) => {
                self.frame.unplaced.clear();
                self.recover();
            }
        }
    }

    /// The id of an opcode with its modifiers. The first of its kind is looked up in the table of instructions.
    pub(super) fn opcode(&mut self, span: Span) -> OpcodeId {
        let text = span.text(self.source);
        let key = Key::of(text.as_bytes(), self.opcodes.seeds);
        let id = self.opcodes.intern(key, || text);
        if (id as usize) < self.module.opcodes.len() {
            return OpcodeId(id);
        }
        let mut words = Lexer::new(text);
        let name = words.next().span.text(text);
        let mut modifiers = Vec::new();
        let mut spans = Vec::new();
        loop {
            let token = words.next();
            if token.kind != Kind::Dotted {
                break;
            }
            modifiers.push(&token.span.text(text)[1..]);
            spans.push(Span::new(span.start + token.span.start, span.start + token.span.end));
        }
        let mut known = true;
        match table::find(name) {
            None => {
                known = false;
                let at = Span::new(span.start, span.start + name.len() as u32);
                let mut warning = Diagnostic::warning(at, format!("unknown instruction `{}`", shorten(name)));
                if let Some(near) = table::nearest_name(name) {
                    warning = warning.note(format!("did you mean `{near}`?"));
                }
                self.report(warning);
            }
            Some(entry) => {
                for (modifier, at) in modifiers.iter().zip(spans) {
                    if entry.takes(modifier) {
                        continue;
                    }
                    known = false;
                    let message = format!("`{name}` has no modifier `.{}` that is known", shorten(modifier));
                    let mut warning = Diagnostic::warning(at, message);
                    if let Some(near) = entry.nearest(modifier) {
                        warning = warning.note(format!("did you mean `.{near}`?"));
                    }
                    self.report(warning);
                }
            }
        }
        self.module.opcodes.push(Opcode { text, name, modifiers, known, span });
        OpcodeId(id)
    }

    fn body_directive(&mut self) {
        match self.text() {
            ".reg" | ".local" | ".shared" | ".param" | ".const" | ".global" | ".tex" | ".sreg" | ".align"
            | ".attribute" => self.local_declaration(),
            ".extern" | ".visible" | ".weak" | ".common" => {
                self.bump();
                self.local_declaration();
            }
            ".loc" => {
                let start = self.bump().span;
                if let Some(location) = self.location(start) {
                    self.frame.location = Some(LocationId::new(self.frame.body.locations.len()));
                    self.frame.body.locations.push(location);
                    self.eat(Kind::Semi);
                } else {
                    self.skip_line();
                }
            }
            ".pragma" => {
                let start = self.bump().span;
                match self.strings() {
                    Some(texts) => {
                        let (position, span) = (self.frame.position(), start.to(self.previous));
                        self.frame.body.pragmas.push(Pragma { texts, position, span });
                        self.end_of_statement();
                    }
                    None => self.recover(),
                }
            }
            ".file" => self.file(),
            directive @ (".branchtargets" | ".calltargets" | ".callprototype") => {
                let message = format!("`{directive}` needs a label before it");
                self.report(Diagnostic::error(self.token.span, message));
                self.bump();
                self.recover();
            }
            _ => {
                let directive = self.unknown_directive();
                self.frame.body.directives.push(directive);
            }
        }
    }

    /// `1 23 5, function_name label+12, inlined_at 1 40 3`
    fn location(&mut self, start: Span) -> Option<Location<'a>> {
        let point = self.point()?;
        let mut inlined = Inlined::default();
        while self.token.kind == Kind::Comma || (self.token.kind == Kind::Ident && !self.begins_line()) {
            self.eat(Kind::Comma);
            let word = self.expect(Kind::Ident, "`function_name` or `inlined_at`")?;
            match word.span.text(self.source) {
                "function_name" => {
                    let name = self.expect(Kind::Ident, "a label of debug data")?.span.text(self.source);
                    let offset = if self.eat(Kind::Plus) { self.plain_number()? } else { 0 };
                    inlined.function = Some((name, offset));
                }
                "inlined_at" => inlined.at = Some(self.point()?),
                other => {
                    let message = format!("expected `function_name` or `inlined_at`, found `{}`", shorten(other));
                    self.report(Diagnostic::error(word.span, message));
                    return None;
                }
            }
        }
        let inlined = (inlined != Inlined::default()).then(|| Box::new(inlined));
        Some(Location { point, inlined, span: start.to(self.previous) })
    }

    /// `1 23 5`; the column may be missing.
    fn point(&mut self) -> Option<SourcePoint> {
        let file = self.plain_number()?;
        let line = self.plain_number()?;
        let column = match self.token.kind {
            Kind::Integer if !self.begins_line() => self.plain_number()?,
            _ => 0,
        };
        Some(SourcePoint { file, line, column })
    }

    /// A literal of 32 bits, where an expression would run into what follows.
    pub(super) fn plain_number(&mut self) -> Option<u32> {
        let token = self.expect(Kind::Integer, "a number")?;
        let value = self.literal(token)?.integer()?;
        let number = u32::try_from(value).ok();
        if number.is_none() {
            self.report(Diagnostic::error(token.span, "the number does not fit 32 bits"));
        }
        number
    }
}
