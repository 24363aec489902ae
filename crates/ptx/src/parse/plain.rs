//! Statements that nearly all texts are made of, read without tokens: instructions whose operands are registers, plain
//! numbers, `[register+4]`, vectors of these or a label; labels, `.loc` and declarations of registers.
//!
//! What is read here is read by the readers of tokens to the same tree. Anything else, a comment among the operands
//! included, undoes the attempt, and the reader of tokens takes the statement from its start on.

mod scan;

use self::scan::{blanks, decimal32, is_blank, number, register, signed, white_space};
use super::Parser;
use super::lexer::{begins_name, is_word};
use super::names::Bound;
use super::operands::Slot;
use super::word::{self, Key};
use crate::span::Span;
use crate::tree::*;

impl<'a> Parser<'a> {
    /// Statements from the token that is looked at on, for as long as they are plain.
    pub(super) fn plain_statements(&mut self) {
        let bytes = self.source.as_bytes();
        let first = self.token.span.start as usize;
        let (mut at, mut end) = (first, first);
        while let Some(behind) = self.plain_statement(bytes, at) {
            end = behind;
            at = white_space(bytes, behind);
        }
        if at > first {
            self.previous = Span::new(end as u32 - 1, end as u32);
            self.lexer.seek(at as u32);
            self.token = self.lexer.next();
        }
    }

    /// The end of a plain statement; `None` leaves all as it was.
    #[inline]
    fn plain_statement(&mut self, bytes: &'a [u8], first: usize) -> Option<usize> {
        let mut at = first;
        let mut guard = None;
        match *bytes.get(at)? {
            b'@' => {
                let negated = bytes.get(at + 1) == Some(&b'!');
                let name = if negated { at + 2 } else { at + 1 };
                if !begins_name(*bytes.get(name)?) {
                    return None;
                }
                let (name, end) = self.names.id_at(self.source, name);
                let Bound::Register(register) = self.look_up(name) else { return None };
                if self.frame.body.registers[register.index()].ty != Type::Pred {
                    return None;
                }
                guard = Some(Guard { register, negated });
                at = blanks(bytes, end);
            }
            b'.' => {
                return match bytes.get(at..at + 5)? {
                    b".loc " | b".loc\t" => self.plain_location(bytes, at),
                    b".reg " | b".reg\t" => self.plain_registers(bytes, at),
                    _ => None,
                };
            }
            _ => {}
        }
        let byte = *bytes.get(at)?;
        if !begins_name(byte) || byte == b'%' {
            return None;
        }
        let (key, end) = Key::opcode(bytes, at, self.opcodes.seeds);
        if bytes.get(end) == Some(&b':') {
            return if guard.is_none() { self.plain_label(bytes, at) } else { None };
        }
        // The first of its kind is for the reader of tokens, which knows where an opcode really ends.
        let opcode = OpcodeId(self.opcodes.known(&key, self.source, at, end)?);
        let (operands, last, end) = self.plain_operands(bytes, end, opcode)?;
        let span = Span::new(first as u32, last as u32);
        let location = self.frame.location;
        self.frame.body.instructions.push(Instruction { opcode, guard, operands, location, span });
        Some(end)
    }

    /// Operands up to and with the semicolon, from behind the opcode on: the list, the end of the last one and that of
    /// the semicolon. `None` leaves all as it was.
    pub(super) fn plain_operands(
        &mut self,
        bytes: &'a [u8],
        opcode_end: usize,
        opcode: OpcodeId,
    ) -> Option<(OperandList, usize, usize)> {
        let start = self.frame.body.operands.len();
        let addresses = self.frame.body.addresses.len();
        let read = self.plain_list(bytes, opcode_end, start as u32, opcode);
        if read.is_none() {
            self.frame.body.operands.truncate(start);
            self.frame.body.addresses.truncate(addresses);
        }
        read
    }

    fn plain_list(
        &mut self,
        bytes: &'a [u8],
        opcode_end: usize,
        mut start: u32,
        opcode: OpcodeId,
    ) -> Option<(OperandList, usize, usize)> {
        let mut at = opcode_end;
        if bytes.get(at) == Some(&b';') {
            return Some((OperandList { start, len: 0 }, at, at + 1));
        }
        at = blanks(bytes, at);
        loop {
            let first = at;
            let kind = match *bytes.get(at)? {
                b'%' => {
                    let (name, end) = self.names.id_at(self.source, at);
                    at = end;
                    if bytes.get(end) == Some(&b'.') {
                        let (kind, end) = self.plain_part(bytes, name, end)?;
                        at = end;
                        kind
                    } else {
                        match self.look_up(name) {
                            Bound::Register(register) => OperandKind::Register(register),
                            Bound::Special(register) => OperandKind::Special { register, component: None },
                            _ => return None,
                        }
                    }
                }
                b'[' => {
                    let (kind, end) = self.plain_address(bytes, at, start)?;
                    at = end;
                    kind
                }
                b'{' => {
                    let (list, end) = self.plain_vector(bytes, at + 1, start)?;
                    start = list.start + list.len;
                    at = end;
                    OperandKind::Vector(list)
                }
                byte => match self.plain_operand(bytes, at, byte)? {
                    (Some(kind), end) => {
                        at = end;
                        kind
                    }
                    (None, end) => return self.plain_target(bytes, at, end, start, opcode),
                },
            };
            let span = Span::new(first as u32, at as u32);
            self.frame.body.operands.push(Operand { kind, span });
            let last = at;
            let mut next = *bytes.get(at)?;
            if is_blank(next) {
                at = blanks(bytes, at + 1);
                next = *bytes.get(at)?;
            }
            match next {
                b',' => at = blanks(bytes, at + 1),
                b';' => {
                    let len = self.frame.body.operands.len() as u32 - start;
                    return Some((OperandList { start, len }, last, at + 1));
                }
                b'|' => {
                    let (end, list) = self.plain_pair(bytes, blanks(bytes, at + 1), start)?;
                    start = list.start + list.len;
                    let span = Span::new(first as u32, end as u32);
                    self.frame.body.operands.push(Operand { kind: OperandKind::Pair(list), span });
                    at = blanks(bytes, end);
                    if bytes.get(at) != Some(&b',') {
                        return None;
                    }
                    at = blanks(bytes, at + 1);
                }
                _ => return None,
            }
        }
    }

    /// A register, a number, a sink or the name of a variable; no kind for a name that may be a label.
    #[inline]
    fn plain_operand(&mut self, bytes: &'a [u8], at: usize, byte: u8) -> Option<(Option<OperandKind>, usize)> {
        if byte.is_ascii_digit() || byte == b'-' {
            let (kind, end) = number(bytes, at)?;
            return Some((Some(kind), end));
        }
        if !begins_name(byte) {
            return None;
        }
        let (name, end) = self.names.id_at(self.source, at);
        if bytes.get(end) == Some(&b'.') {
            let (kind, end) = self.plain_part(bytes, name, end)?;
            return Some((Some(kind), end));
        }
        Some(match self.look_up(name) {
            Bound::Register(register) => (Some(OperandKind::Register(register)), end),
            Bound::Special(register) => (Some(OperandKind::Special { register, component: None }), end),
            Bound::Target(
                target @ (Target::Parameter(_) | Target::Return(_) | Target::Global(_) | Target::Local(_)),
            ) if matches!(bytes.get(end), Some(b',' | b';')) => (Some(OperandKind::Symbol { target, offset: 0 }), end),
            Bound::Target(Target::Label(_)) | Bound::Nothing if byte != b'%' => {
                if end == at + 1 && byte == b'_' {
                    (Some(OperandKind::Sink), end)
                } else {
                    (None, end)
                }
            }
            _ => return None,
        })
    }

    /// `%v.x`, `%tid.x`, from the dot on.
    fn plain_part(&mut self, bytes: &[u8], name: u32, dot: usize) -> Option<(OperandKind, usize)> {
        let component = match bytes.get(dot + 1)? {
            b'x' => Component::X,
            b'y' => Component::Y,
            b'z' => Component::Z,
            b'w' => Component::W,
            _ => return None,
        };
        let end = dot + 2;
        if bytes.get(end).is_some_and(|&byte| is_word(byte) || matches!(byte, b'.' | b':')) {
            return None;
        }
        match self.look_up(name) {
            Bound::Register(register) => Some((OperandKind::Element { register, component }, end)),
            Bound::Special(register) => Some((OperandKind::Special { register, component: Some(component) }, end)),
            _ => None,
        }
    }

    /// `[register+4]` and the like, from its bracket on.
    #[inline]
    fn plain_address(&mut self, bytes: &'a [u8], first: usize, start: u32) -> Option<(OperandKind, usize)> {
        let at = first + 1;
        if !begins_name(*bytes.get(at)?) {
            return None;
        }
        let (name, mut end) = self.names.id_at(self.source, at);
        if bytes.get(end) == Some(&b'.') {
            return None;
        }
        let base = match self.look_up(name) {
            Bound::Register(register) => OperandKind::Register(register),
            Bound::Target(
                target @ (Target::Parameter(_) | Target::Return(_) | Target::Global(_) | Target::Local(_)),
            ) => OperandKind::Symbol { target, offset: 0 },
            _ => return None,
        };
        let base_span = Span::new(at as u32, end as u32);
        let mut offset = 0;
        if bytes.get(end) == Some(&b'+') {
            let (value, behind) = signed(bytes, end + 1)?;
            (offset, end) = (value, behind);
        }
        if bytes.get(end) != Some(&b']') {
            return None;
        }
        let rest = OperandList { start, len: 0 };
        let id = AddressId(self.frame.body.addresses.len() as u32);
        self.frame.body.addresses.push(Address { base, offset, index: None, rest, base_span });
        Some((OperandKind::Address(id), end + 1))
    }

    /// The members of a vector, from behind its brace on. They come to lie before the operands of the instruction.
    fn plain_vector(&mut self, bytes: &'a [u8], mut at: usize, start: u32) -> Option<(OperandList, usize)> {
        let base = self.frame.scratch.len();
        let frame = &mut self.frame;
        frame.scratch.extend(frame.body.operands.drain(start as usize..));
        let end = loop {
            at = blanks(bytes, at);
            let Some((Some(kind), end)) = bytes.get(at).and_then(|&byte| self.plain_operand(bytes, at, byte)) else {
                break None;
            };
            self.frame.body.operands.push(Operand { kind, span: Span::new(at as u32, end as u32) });
            at = blanks(bytes, end);
            match bytes.get(at) {
                Some(b',') => at += 1,
                Some(b'}') => break Some(at + 1),
                _ => break None,
            }
        };
        let frame = &mut self.frame;
        let len = frame.body.operands.len() as u32 - start;
        frame.body.operands.extend(frame.scratch.drain(base..));
        Some((OperandList { start, len }, end?))
    }

    /// The second of a pair; the first is the last operand that was read.
    fn plain_pair(&mut self, bytes: &'a [u8], at: usize, start: u32) -> Option<(usize, OperandList)> {
        let (Some(kind), end) = self.plain_operand(bytes, at, *bytes.get(at)?)? else { return None };
        let operands = &mut self.frame.body.operands;
        let first = operands.pop()?;
        // Behind a number it is an operator.
        if !matches!(first.kind, OperandKind::Register(_) | OperandKind::Sink | OperandKind::Vector(_)) {
            return None;
        }
        let second = Operand { kind, span: Span::new(at as u32, end as u32) };
        operands.splice(start as usize..start as usize, [first, second]);
        Some((end, OperandList { start, len: 2 }))
    }

    /// The label of a branch: a name that ends the instruction.
    fn plain_target(
        &mut self,
        bytes: &'a [u8],
        at: usize,
        end: usize,
        start: u32,
        opcode: OpcodeId,
    ) -> Option<(OperandList, usize, usize)> {
        let semicolon = blanks(bytes, end);
        if bytes.get(semicolon) != Some(&b';') || self.module.opcodes[opcode.index()].name != "bra" {
            return None;
        }
        let span = Span::new(at as u32, end as u32);
        let text = span.text(self.source);
        if text == "WARP_SZ" {
            return None;
        }
        let name = self.names.id(text);
        let target = self.wait(name, span, Slot::Operand(self.frame.body.operands.len() as u32), "label");
        self.frame.body.operands.push(Operand { kind: OperandKind::Symbol { target, offset: 0 }, span });
        let len = self.frame.body.operands.len() as u32 - start;
        Some((OperandList { start, len }, end, semicolon + 1))
    }

    /// A label that begins at a place, unless it may be that of a table.
    fn plain_label(&mut self, bytes: &'a [u8], at: usize) -> Option<usize> {
        let end = word::end(bytes, at);
        if bytes.get(end) != Some(&b':') || bytes.get(end + 1) == Some(&b':') {
            return None;
        }
        let next = white_space(bytes, end + 1);
        if matches!(bytes.get(next..next + 2)?, [b'/' | b'#', _] | b".b" | b".c") {
            return None;
        }
        let span = Span::new(at as u32, end as u32);
        let text = span.text(self.source);
        let name = self.names.id(text);
        let id = LabelId(self.frame.body.labels.len() as u32);
        let position = self.frame.position();
        self.frame.body.labels.push(Label { name: text, position, span });
        self.arrive(name, Target::Label(id), span);
        Some(end + 1)
    }

    /// `.loc 1 23 5, function_name label+12, inlined_at 1 40 3`
    fn plain_location(&mut self, bytes: &'a [u8], first: usize) -> Option<usize> {
        let (point, mut end) = scan::point(bytes, first + 4)?;
        let mut inlined = Inlined::default();
        let mut at = blanks(bytes, end);
        while bytes.get(at) == Some(&b',') {
            at = blanks(bytes, at + 1);
            let behind = word::end(bytes, at);
            match bytes.get(at..behind)? {
                b"function_name" => {
                    let name = blanks(bytes, behind);
                    if !begins_name(*bytes.get(name)?) || bytes[name] == b'%' {
                        return None;
                    }
                    end = word::end(bytes, name);
                    let label = self.source.get(name..end)?;
                    let mut offset = 0;
                    if bytes.get(end) == Some(&b'+') {
                        (offset, end) = decimal32(bytes, end + 1)?;
                    }
                    inlined.function = Some((label, offset));
                }
                b"inlined_at" => {
                    let (site, behind) = scan::point(bytes, behind)?;
                    (inlined.at, end) = (Some(site), behind);
                }
                _ => return None,
            }
            at = blanks(bytes, end);
        }
        if !matches!(bytes.get(at)?, b'\n' | b'\r') {
            return None;
        }
        // The directive has no end of its own.
        let next = *bytes.get(white_space(bytes, at))?;
        if !(begins_name(next) || matches!(next, b'.' | b'@' | b'{' | b'}')) {
            return None;
        }
        let inlined = (inlined != Inlined::default()).then(|| Box::new(inlined));
        let location = Location { point, inlined, span: Span::new(first as u32, end as u32) };
        self.frame.location = Some(LocationId::new(self.frame.body.locations.len()));
        self.frame.body.locations.push(location);
        Some(end)
    }

    /// `.reg .b32 %r<10>, %a;`
    fn plain_registers(&mut self, bytes: &'a [u8], first: usize) -> Option<usize> {
        let dot = blanks(bytes, first + 5);
        if bytes.get(dot) != Some(&b'.') {
            return None;
        }
        let mut at = word::end(bytes, dot + 1);
        let ty = Type::from_name(self.source.get(dot + 1..at)?).filter(|ty| ty.is_of_registers())?;
        if !matches!(bytes.get(at), Some(b' ' | b'\t')) {
            return None;
        }
        // All of them are read before the first is declared.
        let mut found = [(Span::default(), None); 8];
        let mut len = 0;
        let end = loop {
            let name = blanks(bytes, at);
            let (name_end, count, end) = register(bytes, name)?;
            *found.get_mut(len)? = (Span::new(name as u32, name_end as u32), count);
            len += 1;
            if bytes.get(end) == Some(&b';') {
                break end + 1;
            }
            at = end + 1;
        };
        for &(span, count) in found.iter().take(len) {
            let id = self.names.id(span.text(self.source));
            match count {
                Some(count) => self.declare_range(id, count, ty, 1, span),
                None => self.declare_register(id, ty, 1, span),
            }
        }
        Some(end)
    }

    /// `.param .u64 name` from its dot on, where a comma or a parenthesis follows; returns the place of that.
    pub(super) fn plain_parameter(&self, bytes: &'a [u8], first: usize) -> Option<(Type, Span, usize)> {
        let (b".param " | b".param\t") = bytes.get(first..first + 7)? else { return None };
        let dot = blanks(bytes, first + 7);
        if bytes.get(dot) != Some(&b'.') {
            return None;
        }
        let type_end = word::end(bytes, dot + 1);
        let ty = Type::from_name(self.source.get(dot + 1..type_end)?);
        let ty = ty.filter(|&ty| ty.is_of_variables() && ty != Type::Pred)?;
        let name = blanks(bytes, type_end);
        if name == type_end || !begins_name(*bytes.get(name)?) {
            return None;
        }
        let end = word::end(bytes, name + 1);
        let next = white_space(bytes, end);
        matches!(bytes.get(next)?, b',' | b')').then_some((ty, Span::new(name as u32, end as u32), next))
    }
}
