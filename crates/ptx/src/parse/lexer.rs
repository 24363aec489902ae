//! Tokens. The lexer is asked for one token at a time and keeps nothing but its place in the text.

use super::word;
use crate::span::Span;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Eof,
    /// `foo`, `%r1`, `$L__BB0_1`, `_`
    Ident,
    /// `.reg`, `.L2::128B`
    Dotted,
    Integer,
    Float,
    /// With its quotation marks; the closing one is missing where the line ended first.
    String,
    Semi,
    Comma,
    Colon,
    LBrace,
    RBrace,
    LBracket,
    RBracket,
    LParen,
    RParen,
    Less,
    Greater,
    LessEqual,
    GreaterEqual,
    ShiftLeft,
    ShiftRight,
    EqualEqual,
    NotEqual,
    AndAnd,
    OrOr,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Ampersand,
    Caret,
    Pipe,
    Tilde,
    Bang,
    Equal,
    Question,
    At,
    Unknown,
}

/// One token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) span: Span,
}

const WORD: u8 = 1;
const SPACE: u8 = 2;
const START: u8 = 4;
const DIGIT: u8 = 8;

const CLASSES: [u8; 256] = classes();
static CLASS: [u8; 256] = CLASSES;

const fn classes() -> [u8; 256] {
    let mut class = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let c = byte as u8;
        if c.is_ascii_alphabetic() || c == b'_' || c == b'$' {
            class[byte] = WORD | START;
        } else if c.is_ascii_digit() {
            class[byte] = WORD | DIGIT;
        } else if c.is_ascii_whitespace() || c == 0x0b || c == 0 {
            // Embedded texts end in zero bytes.
            class[byte] = SPACE;
        } else if c == b'%' {
            class[byte] = START;
        }
        byte += 1;
    }
    class
}

/// Whether a name can go on with this byte.
#[inline]
pub(super) fn is_word(byte: u8) -> bool {
    CLASS[usize::from(byte)] & WORD != 0
}

/// Whether a name can begin with this byte.
#[inline]
pub(super) fn begins_name(byte: u8) -> bool {
    CLASS[usize::from(byte)] & START != 0
}

/// What a token can be by its first byte.
#[derive(Clone, Copy)]
enum First {
    Word,
    Single(Kind),
    Percent,
    Dot,
    Digit,
    Quote,
    /// A comment, perhaps.
    Trivia,
    Other,
}

static FIRST: [First; 256] = firsts();

const fn firsts() -> [First; 256] {
    let mut first = [First::Other; 256];
    let mut byte = 0;
    while byte < 256 {
        first[byte] = match byte as u8 {
            b'%' => First::Percent,
            b'.' => First::Dot,
            b'"' => First::Quote,
            b'/' | b'#' => First::Trivia,
            b';' => First::Single(Kind::Semi),
            b',' => First::Single(Kind::Comma),
            b':' => First::Single(Kind::Colon),
            b'{' => First::Single(Kind::LBrace),
            b'}' => First::Single(Kind::RBrace),
            b'[' => First::Single(Kind::LBracket),
            b']' => First::Single(Kind::RBracket),
            b'(' => First::Single(Kind::LParen),
            b')' => First::Single(Kind::RParen),
            b'+' => First::Single(Kind::Plus),
            b'-' => First::Single(Kind::Minus),
            b'*' => First::Single(Kind::Star),
            b'^' => First::Single(Kind::Caret),
            b'~' => First::Single(Kind::Tilde),
            b'?' => First::Single(Kind::Question),
            b'@' => First::Single(Kind::At),
            byte if CLASSES[byte as usize] & DIGIT != 0 => First::Digit,
            byte if CLASSES[byte as usize] & START != 0 => First::Word,
            _ => First::Other,
        };
        byte += 1;
    }
    first
}

/// The place in the text.
#[derive(Clone)]
pub(super) struct Lexer<'a> {
    bytes: &'a [u8],
    pos: usize,
    /// The start of a comment that is never closed.
    pub(super) open_comment: Option<u32>,
}

impl<'a> Lexer<'a> {
    /// At the start of a text, which must be shorter than 4 GiB.
    pub(super) fn new(source: &'a str) -> Self {
        Lexer { bytes: source.as_bytes(), pos: 0, open_comment: None }
    }

    /// Goes to a place, which must be a boundary of characters.
    pub(super) fn seek(&mut self, pos: u32) {
        self.pos = (pos as usize).min(self.bytes.len());
    }

    /// The first byte that is not read yet.
    pub(super) fn place(&self) -> usize {
        self.pos
    }

    fn at(&self, pos: usize) -> u8 {
        self.bytes.get(pos).copied().unwrap_or(0)
    }

    fn is(&self, pos: usize, class: u8) -> bool {
        self.bytes.get(pos).is_some_and(|&byte| CLASS[usize::from(byte)] & class != 0)
    }

    #[inline]
    fn words(&self, pos: usize) -> usize {
        word::end(self.bytes, pos)
    }

    /// After a dot: words joined by `::`.
    fn dotted(&self, mut pos: usize) -> usize {
        loop {
            pos = self.words(pos);
            if self.at(pos) == b':' && self.at(pos + 1) == b':' && self.is(pos + 2, WORD) {
                pos += 2;
            } else {
                return pos;
            }
        }
    }

    /// Skips blanks, comments and lines of a preprocessor.
    fn trivia(&mut self) {
        loop {
            while self.is(self.pos, SPACE) {
                self.pos += 1;
            }
            match (self.at(self.pos), self.at(self.pos + 1)) {
                (b'/', b'/') => self.line(),
                (b'/', b'*') => {
                    let body = &self.bytes[self.pos + 2..];
                    match body.windows(2).position(|pair| pair == b"*/") {
                        Some(len) => self.pos += len + 4,
                        None => {
                            self.open_comment = Some(self.pos as u32);
                            self.pos = self.bytes.len();
                        }
                    }
                }
                (b'#', _) if self.line_begins() => self.line(),
                _ => return,
            }
        }
    }

    /// Whether only blanks stand before this place on its line.
    fn line_begins(&self) -> bool {
        let before = self.bytes[..self.pos].iter().rev();
        before.take_while(|&&byte| byte != b'\n').all(|&byte| CLASS[usize::from(byte)] & SPACE != 0)
    }

    /// To the end of the line.
    fn line(&mut self) {
        let rest = &self.bytes[self.pos..];
        self.pos += rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
    }

    /// The end of the line that a place is on.
    pub(super) fn line_end(&self, from: u32) -> u32 {
        let rest = self.bytes.get(from as usize..).unwrap_or(&[]);
        from + rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len()) as u32
    }

    /// Whether the next token is a colon.
    pub(super) fn colon_follows(&self) -> bool {
        match self.at(self.pos) {
            b':' => true,
            byte if CLASS[usize::from(byte)] & SPACE != 0 || byte == b'/' => {
                let mut ahead = self.clone();
                ahead.trivia();
                ahead.at(ahead.pos) == b':'
            }
            _ => false,
        }
    }

    /// Reads the modifiers that follow an opcode, blanks between them included; returns where they end.
    pub(super) fn modifiers(&mut self) -> u32 {
        let mut end = self.pos;
        loop {
            while self.at(self.pos) == b'.' && self.is(self.pos + 1, WORD) {
                self.pos = self.dotted(self.pos + 1);
                end = self.pos;
            }
            self.trivia();
            if self.at(self.pos) != b'.' || !self.is(self.pos + 1, WORD) {
                return end as u32;
            }
        }
    }

    /// The next token.
    pub(super) fn next(&mut self) -> Token {
        let mut start = self.pos;
        let byte = loop {
            let Some(&byte) = self.bytes.get(start) else {
                self.pos = start;
                return Token { kind: Kind::Eof, span: Span::new(start as u32, start as u32) };
            };
            if CLASS[usize::from(byte)] & SPACE == 0 {
                break byte;
            }
            start += 1;
        };
        self.pos = start;
        let kind = match FIRST[usize::from(byte)] {
            First::Word => {
                self.pos = self.words(start + 1);
                Kind::Ident
            }
            First::Single(kind) => {
                self.pos = start + 1;
                kind
            }
            First::Percent => {
                self.pos = self.words(start + 1);
                if self.pos == start + 1 { Kind::Percent } else { Kind::Ident }
            }
            // A dot begins a number where it does not stand behind a word: `.5`, but not the `.1d` of an opcode.
            First::Dot if self.is(start + 1, DIGIT) && !(start > 0 && self.is(start - 1, WORD)) => self.number(),
            First::Dot if self.is(start + 1, WORD) => {
                self.pos = self.dotted(start + 1);
                Kind::Dotted
            }
            First::Digit => self.number(),
            First::Quote => {
                self.string();
                Kind::String
            }
            First::Trivia => {
                self.trivia();
                if self.pos != start {
                    return self.next();
                }
                self.other(byte)
            }
            First::Dot | First::Other => self.other(byte),
        };
        Token { kind, span: Span::new(start as u32, self.pos as u32) }
    }

    fn number(&mut self) -> Kind {
        let start = self.pos;
        self.pos = self.words(start);
        let second = self.at(start + 1) | 0x20;
        // Nearly all numbers have one digit.
        if self.pos == start + 1 && self.at(self.pos) != b'.' {
            return Kind::Integer;
        }
        if self.at(start) == b'0' && self.pos > start + 1 && matches!(second, b'x' | b'b' | b'f' | b'd') {
            return if matches!(second, b'f' | b'd') { Kind::Float } else { Kind::Integer };
        }
        let mut kind = Kind::Integer;
        if self.at(self.pos) == b'.' && self.bytes[start..self.pos].iter().all(u8::is_ascii_digit) {
            self.pos = self.words(self.pos + 1);
            kind = Kind::Float;
        }
        let text = &self.bytes[start..self.pos];
        if text.iter().any(|byte| byte | 0x20 == b'e') {
            kind = Kind::Float;
            let sign = matches!(self.at(self.pos), b'+' | b'-') && self.is(self.pos + 1, DIGIT);
            if text.last().is_some_and(|byte| byte | 0x20 == b'e') && sign {
                self.pos = self.words(self.pos + 1);
            }
        }
        kind
    }

    fn string(&mut self) {
        self.pos += 1;
        while let Some(&byte) = self.bytes.get(self.pos) {
            match byte {
                b'"' => {
                    self.pos += 1;
                    return;
                }
                b'\n' => return,
                b'\\' if matches!(self.at(self.pos + 1), b'"' | b'\\') => self.pos += 2,
                _ => self.pos += 1,
            }
        }
    }

    /// Operators of one or two characters, and what is nothing.
    fn other(&mut self, byte: u8) -> Kind {
        let next = self.at(self.pos + 1);
        let (kind, len) = match (byte, next) {
            (b'<', b'<') => (Kind::ShiftLeft, 2),
            (b'>', b'>') => (Kind::ShiftRight, 2),
            (b'<', b'=') => (Kind::LessEqual, 2),
            (b'>', b'=') => (Kind::GreaterEqual, 2),
            (b'=', b'=') => (Kind::EqualEqual, 2),
            (b'!', b'=') => (Kind::NotEqual, 2),
            (b'&', b'&') => (Kind::AndAnd, 2),
            (b'|', b'|') => (Kind::OrOr, 2),
            (b'<', _) => (Kind::Less, 1),
            (b'>', _) => (Kind::Greater, 1),
            (b'=', _) => (Kind::Equal, 1),
            (b'!', _) => (Kind::Bang, 1),
            (b'&', _) => (Kind::Ampersand, 1),
            (b'|', _) => (Kind::Pipe, 1),
            (b'/', _) => (Kind::Slash, 1),
            _ => (Kind::Unknown, 1),
        };
        self.pos += len;
        if kind == Kind::Unknown {
            // Never stop inside of a character.
            while self.bytes.get(self.pos).is_some_and(|byte| byte & 0xc0 == 0x80) {
                self.pos += 1;
            }
        }
        kind
    }
}
