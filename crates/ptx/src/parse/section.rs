//! Debug data: `.section .debug_info { .b8 1, 2 ... }` as bytes, labels and references.

use super::Parser;
use super::lexer::Kind;
use crate::diagnostic::Diagnostic;
use crate::tree::{Data, Item, Reference, Section};

impl<'a> Parser<'a> {
    /// Behind `.section`.
    pub(super) fn section(&mut self) {
        let start = self.previous;
        let name = match self.token.kind {
            Kind::Dotted | Kind::Ident => self.bump().span.text(self.source),
            _ => {
                self.unexpected("the name of a section");
                return self.recover();
            }
        };
        if self.expect(Kind::LBrace, "`{`").is_none() {
            return self.recover();
        }
        let open = self.previous;
        let mut data = Data::default();
        loop {
            match self.token.kind {
                Kind::RBrace => break,
                Kind::Eof => {
                    self.report(Diagnostic::error(open, format!("section `{name}` is never closed")));
                    break;
                }
                Kind::Dotted => {
                    if self.data(&mut data).is_none() {
                        self.next_line();
                    }
                }
                Kind::Ident => {
                    let label = self.bump().span.text(self.source);
                    data.labels.push((label, data.bytes.len() as u32));
                    if self.expect(Kind::Colon, "`:`").is_none() {
                        self.next_line();
                    }
                }
                Kind::Semi => {
                    self.bump();
                }
                _ => {
                    self.unexpected("debug data");
                    self.next_line();
                }
            }
        }
        self.eat(Kind::RBrace);
        let index = self.module.sections.len() as u32;
        self.module.sections.push(Section { name, data, span: start.to(self.previous) });
        self.module.items.push(Item::Section(index));
    }

    /// Debug data has no semicolons: an error costs its line.
    fn next_line(&mut self) {
        while !matches!(self.token.kind, Kind::Eof | Kind::RBrace) && !self.begins_line() {
            self.bump();
        }
        // Nothing was taken where the bad token begins a line itself.
        if !matches!(self.token.kind, Kind::Eof | Kind::RBrace | Kind::Dotted | Kind::Ident) {
            self.bump();
        }
    }

    /// `.b8 1, 2`, `.b64 label+4`, `.b32 end-start`
    fn data(&mut self, data: &mut Data<'a>) -> Option<()> {
        let token = self.bump();
        let width = match token.span.text(self.source) {
            ".b8" => 1,
            ".b16" => 2,
            ".b32" => 4,
            ".b64" => 8,
            other => {
                let message = format!("expected `.b8`, `.b16`, `.b32` or `.b64`, found `{other}`");
                self.report(Diagnostic::error(token.span, message));
                return None;
            }
        };
        loop {
            let value = match self.token.kind {
                Kind::Ident | Kind::Dotted => {
                    let reference = self.reference(data.bytes.len() as u32, width)?;
                    data.references.push(reference);
                    0
                }
                Kind::Integer => {
                    let token = self.bump();
                    self.literal(token)?.integer()?
                }
                _ => self.integer_expression()?,
            };
            data.bytes.extend_from_slice(&value.to_le_bytes()[..usize::from(width)]);
            if !self.eat(Kind::Comma) {
                return Some(());
            }
        }
    }

    fn reference(&mut self, offset: u32, width: u8) -> Option<Reference<'a>> {
        let name = self.bump().span.text(self.source);
        let mut minus = None;
        let mut addend = 0i64;
        while matches!(self.token.kind, Kind::Plus | Kind::Minus) {
            let negative = self.bump().kind == Kind::Minus;
            if negative && minus.is_none() && self.token.kind == Kind::Ident {
                minus = Some(self.bump().span.text(self.source));
                continue;
            }
            let number = self.expect(Kind::Integer, "a number")?;
            let value = self.literal(number)?.integer()? as i64;
            addend = addend.wrapping_add(if negative { value.wrapping_neg() } else { value });
        }
        Some(Reference { offset, width, name, minus, addend })
    }
}
