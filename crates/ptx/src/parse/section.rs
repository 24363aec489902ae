//! Debug data: `.section .debug_info { .b8 1, 2 ... }` as bytes, labels and references.

use super::Parser;
use super::lexer::Kind;
use super::operands::shorten;
use crate::diagnostic::Diagnostic;
use crate::span::Span;
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
            if self.token.kind == Kind::Dotted {
                let start = self.token.span.start as usize;
                let end = plain(self.source.as_bytes(), start, &mut data.bytes);
                if end > start {
                    self.lexer.seek(end as u32);
                    self.previous = Span::new(end as u32 - 1, end as u32);
                    self.token = self.lexer.next();
                }
            }
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
            let bits = 8 * u32::from(width);
            let (signed, span) = (value as i64, self.previous);
            if bits < 64 && (signed >= 1 << bits || signed < -(1 << (bits - 1))) {
                let message =
                    format!("`{}` does not fit {bits} bits: its low ones are taken", shorten(span.text(self.source)));
                self.report(Diagnostic::warning(span, message));
            }
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

/// Nearly all of a text with debug data are lines such as `.b8 12`. Reads such lines from the dot at `start` on, for as
/// long as they have plain decimal numbers that fit, and returns the end of the last one.
fn plain(text: &[u8], start: usize, bytes: &mut Vec<u8>) -> usize {
    let mut done = start;
    let mut at = start;
    loop {
        let (width, from) = match text.get(at..) {
            Some([b'.', b'b', b'8', b' ' | b'\t', ..]) => (1, at + 4),
            Some([b'.', b'b', b'1', b'6', b' ' | b'\t', ..]) => (2, at + 5),
            Some([b'.', b'b', b'3', b'2', b' ' | b'\t', ..]) => (4, at + 5),
            Some([b'.', b'b', b'6', b'4', b' ' | b'\t', ..]) => (8, at + 5),
            _ => return done,
        };
        let keep = bytes.len();
        let Some(end) = plain_numbers(text, from, width, bytes) else {
            bytes.truncate(keep);
            return done;
        };
        at = white_space(text, end);
        while text.get(at..at + 2) == Some(b"//") {
            at += text[at..].iter().position(|&byte| byte == b'\n').unwrap_or(text.len() - at);
            at = white_space(text, at);
        }
        if text.get(at) == Some(&b',') {
            // The list goes on behind a line's end.
            bytes.truncate(keep);
            return done;
        }
        done = end;
    }
}

/// `1, 2, 3`: up to the end of the last.
fn plain_numbers(text: &[u8], mut at: usize, width: usize, bytes: &mut Vec<u8>) -> Option<usize> {
    loop {
        while matches!(text.get(at), Some(b' ' | b'\t')) {
            at += 1;
        }
        let first = at;
        let mut value = 0u64;
        while let Some(&digit @ b'0'..=b'9') = text.get(at) {
            // 18 digits do not overflow.
            if at - first == 18 {
                return None;
            }
            value = value * 10 + u64::from(digit - b'0');
            at += 1;
        }
        let octal = at - first > 1 && text[first] == b'0';
        if at == first || octal || (width < 8 && value >> (8 * width) != 0) {
            return None;
        }
        bytes.extend_from_slice(&value.to_le_bytes()[..width]);
        let end = at;
        while matches!(text.get(at), Some(b' ' | b'\t')) {
            at += 1;
        }
        match text.get(at) {
            Some(b',') => at += 1,
            Some(b'\n' | b'\r' | b'/' | b'}') => return Some(end),
            _ => return None,
        }
    }
}

fn white_space(text: &[u8], mut at: usize) -> usize {
    while matches!(text.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}
