//! The operands that nearly all instructions have, read without tokens: registers, plain numbers, `[register+4]`.
//!
//! What is read here is read by [`super::operands`] to the same tree. Anything else, a comment or a line's end among the
//! operands included, undoes the attempt, and the reader of tokens takes the instruction from its first operand on.

use super::Parser;
use super::lexer::is_word;
use super::scope::Bound;
use crate::span::Span;
use crate::tree::*;

impl<'a> Parser<'a> {
    /// Operands up to and with the semicolon, from the lexer's place on. `None` leaves that place as it was.
    pub(super) fn plain_operands(&mut self) -> Option<OperandList> {
        let start = self.frame.body.operands.len() as u32;
        let addresses = self.frame.body.addresses.len();
        let read = self.plain_list(start);
        if read.is_none() {
            self.frame.body.operands.truncate(start as usize);
            self.frame.body.addresses.truncate(addresses);
        }
        read
    }

    fn plain_list(&mut self, start: u32) -> Option<OperandList> {
        let bytes = self.source.as_bytes();
        let mut at = self.lexer.place();
        if bytes.get(at) == Some(&b';') {
            self.lexer.seek(at as u32 + 1);
            return Some(OperandList { start, len: 0 });
        }
        loop {
            let first = at;
            let kind = match *bytes.get(at)? {
                b'[' => {
                    let (base, mut end) = self.plain_name(bytes, at + 1)?;
                    let base_span = Span::new(at as u32 + 1, end as u32);
                    let mut offset = 0;
                    if bytes.get(end) == Some(&b'+') {
                        let (value, behind) = signed(bytes, end + 1)?;
                        (offset, end) = (value, behind);
                    }
                    if bytes.get(end) != Some(&b']') {
                        return None;
                    }
                    at = end + 1;
                    let rest = OperandList { start, len: 0 };
                    let id = AddressId(self.frame.body.addresses.len() as u32);
                    self.frame.body.addresses.push(Address { base, offset, index: None, rest, base_span });
                    OperandKind::Address(id)
                }
                b'0'..=b'9' | b'-' => {
                    let (kind, end) = number(bytes, at)?;
                    at = end;
                    kind
                }
                _ => {
                    let (kind, end) = self.plain_name(bytes, at)?;
                    at = end;
                    if !matches!(kind, OperandKind::Register(_) | OperandKind::Special { .. }) {
                        return None;
                    }
                    kind
                }
            };
            let span = Span::new(first as u32, at as u32);
            self.frame.body.operands.push(Operand { kind, span });
            at = blanks(bytes, at);
            match *bytes.get(at)? {
                b',' => at = blanks(bytes, at + 1),
                b';' => {
                    self.previous = span;
                    self.lexer.seek(at as u32 + 1);
                    let len = self.frame.body.operands.len() as u32 - start;
                    return Some(OperandList { start, len });
                }
                _ => return None,
            }
        }
    }

    /// A register, a special register, or a name whose meaning cannot change any more, and where it ends.
    fn plain_name(&mut self, bytes: &[u8], at: usize) -> Option<(OperandKind, usize)> {
        let (name, end) = self.names.plain_id(self.source, at)?;
        match self.look_up(name) {
            Bound::Register(register) if bytes.get(end) != Some(&b'.') => Some((OperandKind::Register(register), end)),
            Bound::Special(register) => {
                let component = match bytes.get(end..end + 2) {
                    Some(b".x") => Some(Component::X),
                    Some(b".y") => Some(Component::Y),
                    Some(b".z") => Some(Component::Z),
                    Some([b'.', _]) => return None,
                    _ => None,
                };
                let end = if component.is_some() { end + 2 } else { end };
                let ends = !bytes.get(end).is_some_and(|&byte| is_word(byte));
                ends.then_some((OperandKind::Special { register, component }, end))
            }
            Bound::Target(
                target @ (Target::Parameter(_) | Target::Return(_) | Target::Global(_) | Target::Local(_)),
            ) if bytes.get(end) != Some(&b'.') => Some((OperandKind::Symbol { target, offset: 0 }, end)),
            _ => None,
        }
    }
}

fn blanks(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\t')) {
        at += 1;
    }
    at
}

/// A decimal number of at most 18 digits that does not begin with a zero, and where it ends.
fn decimal(bytes: &[u8], at: usize) -> Option<(i64, usize)> {
    let mut value = 0i64;
    let mut end = at;
    while let Some(digit @ b'0'..=b'9') = bytes.get(end) {
        if end - at == 18 {
            return None;
        }
        value = value * 10 + i64::from(digit - b'0');
        end += 1;
    }
    let plain = end == at + 1 || (end > at && bytes.get(at) != Some(&b'0'));
    (plain && !bytes.get(end).is_some_and(|&byte| is_word(byte) || byte == b'.')).then_some((value, end))
}

fn signed(bytes: &[u8], at: usize) -> Option<(i64, usize)> {
    if bytes.get(at) == Some(&b'-') {
        let (value, end) = decimal(bytes, at + 1)?;
        return Some((-value, end));
    }
    decimal(bytes, at)
}

/// `12`, `-12`, `0x1f`, `0f3F800000`, `0d3FF0000000000000`
fn number(bytes: &[u8], at: usize) -> Option<(OperandKind, usize)> {
    let (limit, letter) = match bytes.get(at..at + 2) {
        Some([b'0', letter @ (b'f' | b'F')]) => (8, letter | 0x20),
        Some([b'0', letter @ (b'd' | b'D')]) => (16, letter | 0x20),
        Some([b'0', letter @ (b'x' | b'X')]) => (15, letter | 0x20),
        _ => {
            let (value, end) = signed(bytes, at)?;
            return Some((OperandKind::Integer { value: value as u64, unsigned: false }, end));
        }
    };
    let mut value = 0u64;
    let mut end = at + 2;
    while let Some(digit) = bytes.get(end).and_then(|&byte| char::from(byte).to_digit(16)) {
        if end - at - 2 == limit {
            return None;
        }
        value = value << 4 | u64::from(digit);
        end += 1;
    }
    let digits = end - at - 2;
    if bytes.get(end).is_some_and(|&byte| is_word(byte)) || digits == 0 {
        return None;
    }
    match letter {
        b'x' => Some((OperandKind::Integer { value, unsigned: false }, end)),
        _ if digits < limit => None,
        b'f' => Some((OperandKind::F32(value as u32), end)),
        _ => Some((OperandKind::F64(value), end)),
    }
}
