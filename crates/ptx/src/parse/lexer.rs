//! Tokens. The lexer is asked for one token at a time and keeps nothing but its place in the text.

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

static CLASS: [u8; 256] = classes();

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

    fn at(&self, pos: usize) -> u8 {
        self.bytes.get(pos).copied().unwrap_or(0)
    }

    fn is(&self, pos: usize, class: u8) -> bool {
        CLASS[usize::from(self.at(pos))] & class != 0 && pos < self.bytes.len()
    }

    #[inline]
    fn words(&self, pos: usize) -> usize {
        let rest = self.bytes.get(pos..).unwrap_or(&[]);
        pos + rest.iter().position(|&byte| CLASS[usize::from(byte)] & WORD == 0).unwrap_or(rest.len())
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
        let rest = self.bytes.get(self.pos..).unwrap_or(&[]);
        let blanks = rest.iter().position(|&byte| CLASS[usize::from(byte)] & SPACE == 0);
        self.pos += blanks.unwrap_or(rest.len());
        if matches!(self.at(self.pos), b'/' | b'#') {
            self.trivia();
        }
        let start = self.pos;
        let Some(&byte) = self.bytes.get(start) else {
            return Token { kind: Kind::Eof, span: Span::new(start as u32, start as u32) };
        };
        let class = CLASS[usize::from(byte)];
        let kind = if class & START != 0 {
            self.pos = self.words(start + 1);
            if byte == b'%' && self.pos == start + 1 { Kind::Percent } else { Kind::Ident }
        } else if byte == b'.' && self.is(start + 1, WORD) {
            self.pos = self.dotted(start + 1);
            Kind::Dotted
        } else if class & DIGIT != 0 {
            self.number()
        } else if byte == b'"' {
            self.string();
            Kind::String
        } else {
            self.punctuation(byte)
        };
        Token { kind, span: Span::new(start as u32, self.pos as u32) }
    }

    fn number(&mut self) -> Kind {
        let start = self.pos;
        self.pos = self.words(start);
        let second = self.at(start + 1) | 0x20;
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

    fn punctuation(&mut self, byte: u8) -> Kind {
        let next = self.at(self.pos + 1);
        let pair = match (byte, next) {
            (b'<', b'<') => Some(Kind::ShiftLeft),
            (b'>', b'>') => Some(Kind::ShiftRight),
            (b'<', b'=') => Some(Kind::LessEqual),
            (b'>', b'=') => Some(Kind::GreaterEqual),
            (b'=', b'=') => Some(Kind::EqualEqual),
            (b'!', b'=') => Some(Kind::NotEqual),
            (b'&', b'&') => Some(Kind::AndAnd),
            (b'|', b'|') => Some(Kind::OrOr),
            _ => None,
        };
        if let Some(kind) = pair {
            self.pos += 2;
            return kind;
        }
        self.pos += 1;
        match byte {
            b';' => Kind::Semi,
            b',' => Kind::Comma,
            b':' => Kind::Colon,
            b'{' => Kind::LBrace,
            b'}' => Kind::RBrace,
            b'[' => Kind::LBracket,
            b']' => Kind::RBracket,
            b'(' => Kind::LParen,
            b')' => Kind::RParen,
            b'<' => Kind::Less,
            b'>' => Kind::Greater,
            b'+' => Kind::Plus,
            b'-' => Kind::Minus,
            b'*' => Kind::Star,
            b'/' => Kind::Slash,
            b'&' => Kind::Ampersand,
            b'^' => Kind::Caret,
            b'|' => Kind::Pipe,
            b'~' => Kind::Tilde,
            b'!' => Kind::Bang,
            b'=' => Kind::Equal,
            b'?' => Kind::Question,
            b'@' => Kind::At,
            _ => {
                // Never stop inside of a character.
                while self.bytes.get(self.pos).is_some_and(|byte| byte & 0xc0 == 0x80) {
                    self.pos += 1;
                }
                Kind::Unknown
            }
        }
    }
}
