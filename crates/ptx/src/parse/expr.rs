//! Constants and constant expressions, folded while they are read.
//!
//! Integers are 64-bit, `.s64` unless a `U` suffix or their size makes them `.u64`. The rules of C apply but for what
//! ptxas does (and the tables of the PTX manual say): `~` and `%` give `.u64`, shifts count modulo 64, integers and
//! floating-point numbers do not mix.

use super::Parser;
use super::lexer::{Kind, Token};
use super::operands::shorten;
use crate::diagnostic::Diagnostic;
use crate::span::Span;

/// Expressions nested deeper than this are refused: the reader recurses.
const MAX_NESTING: u32 = 100;

/// The value of a constant expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    Signed(i64),
    Unsigned(u64),
    /// The bits of a `0f` literal, which keep their payload.
    Single(u32),
    Double(u64),
}

impl Value {
    /// Two's complement; `None` for floating-point numbers.
    pub(super) fn integer(self) -> Option<u64> {
        match self {
            Value::Signed(value) => Some(value as u64),
            Value::Unsigned(value) => Some(value),
            Value::Single(_) | Value::Double(_) => None,
        }
    }

    fn float(self) -> f64 {
        match self {
            Value::Signed(value) => value as f64,
            Value::Unsigned(value) => value as f64,
            Value::Single(bits) => f64::from(f32::from_bits(bits)),
            Value::Double(bits) => f64::from_bits(bits),
        }
    }

    fn is_float(self) -> bool {
        matches!(self, Value::Single(_) | Value::Double(_))
    }

    fn like(self, value: u64) -> Value {
        if matches!(self, Value::Unsigned(_)) { Value::Unsigned(value) } else { Value::Signed(value as i64) }
    }
}

impl<'a> Parser<'a> {
    /// A constant expression. `None` after an error, which has been reported.
    pub(super) fn expression(&mut self) -> Option<Value> {
        self.ternary(0)
    }

    /// A constant expression that is an integer.
    pub(super) fn integer_expression(&mut self) -> Option<u64> {
        let start = self.token.span;
        let value = self.expression()?;
        let integer = value.integer();
        if integer.is_none() {
            self.report(Diagnostic::error(
                start.to(self.previous),
                "expected an integer, found a floating-point number",
            ));
        }
        integer
    }

    fn ternary(&mut self, depth: u32) -> Option<Value> {
        let condition = self.binary(0, depth)?;
        if self.token.kind != Kind::Question {
            return Some(condition);
        }
        let question = self.bump();
        let condition = self.bits(question, condition)? != 0;
        let yes = self.ternary(depth + 1)?;
        self.expect(Kind::Colon, "`:`")?;
        let no = self.ternary(depth + 1)?;
        Some(if condition { yes } else { no })
    }

    /// Precedence climbing: operators that bind at least as tightly as `least`.
    fn binary(&mut self, least: u8, depth: u32) -> Option<Value> {
        let mut left = self.unary(depth)?;
        loop {
            self.split_modulo();
            let operator = self.token;
            let Some(level) = level(operator.kind).filter(|&level| level >= least) else { return Some(left) };
            self.bump();
            let right = self.binary(level + 1, depth + 1)?;
            left = self.apply(operator, left, right)?;
        }
    }

    /// `5%3`: where an operator must stand, a name that begins with `%` is the operator and what follows it.
    fn split_modulo(&mut self) {
        let start = self.token.span.start;
        if self.token.kind == Kind::Ident && self.source.as_bytes().get(start as usize) == Some(&b'%') {
            self.token = Token { kind: Kind::Percent, span: Span::new(start, start + 1) };
            self.lexer.seek(start + 1);
        }
    }

    fn unary(&mut self, depth: u32) -> Option<Value> {
        let token = self.token;
        if depth > MAX_NESTING {
            self.report(Diagnostic::error(token.span, format!("expression nested deeper than {MAX_NESTING}")));
            return None;
        }
        match token.kind {
            Kind::Integer | Kind::Float => {
                self.bump();
                self.literal(token)
            }
            Kind::Ident if token.span.text(self.source) == "WARP_SZ" => {
                self.bump();
                Some(Value::Signed(self.module.warp_size.into()))
            }
            Kind::Plus => {
                self.bump();
                self.unary(depth + 1)
            }
            Kind::Minus => {
                self.bump();
                if self.token.kind == Kind::Float
                    && matches!(self.text().as_bytes(), [b'0', b'f' | b'F' | b'd' | b'D', ..])
                {
                    let error = Diagnostic::error(token.span.to(self.token.span), "the bits of a number take no sign");
                    self.report(error.note("the sign is the highest of the bits"));
                    return None;
                }
                Some(match self.unary(depth + 1)? {
                    Value::Signed(value) => Value::Signed(value.wrapping_neg()),
                    Value::Unsigned(value) => Value::Unsigned(value.wrapping_neg()),
                    Value::Single(bits) => Value::Single(bits ^ 1 << 31),
                    Value::Double(bits) => Value::Double(bits ^ 1 << 63),
                })
            }
            Kind::Bang => {
                self.bump();
                let value = self.unary(depth + 1)?;
                let bits = self.bits(token, value)?;
                Some(Value::Signed(i64::from(bits == 0)))
            }
            Kind::Tilde => {
                self.bump();
                let value = self.unary(depth + 1)?;
                let bits = self.bits(token, value)?;
                Some(Value::Unsigned(!bits))
            }
            Kind::LParen => {
                self.bump();
                if self.token.kind == Kind::Dotted {
                    return self.cast(depth);
                }
                let value = self.ternary(depth + 1)?;
                self.expect(Kind::RParen, "`)`")?;
                Some(value)
            }
            _ => {
                self.unexpected("a constant");
                None
            }
        }
    }

    fn cast(&mut self, depth: u32) -> Option<Value> {
        let ty = self.bump();
        let unsigned = match ty.span.text(self.source) {
            ".s64" => false,
            ".u64" => true,
            other => {
                let message = format!("a constant cannot be cast to `{other}`");
                self.report(Diagnostic::error(ty.span, message).note("the casts are `(.s64)` and `(.u64)`"));
                return None;
            }
        };
        self.expect(Kind::RParen, "`)`")?;
        let value = self.unary(depth + 1)?;
        let bits = self.bits(ty, value)?;
        Some(if unsigned { Value::Unsigned(bits) } else { Value::Signed(bits as i64) })
    }

    fn bits(&mut self, operator: Token, value: Value) -> Option<u64> {
        let bits = value.integer();
        if bits.is_none() {
            let text = operator.span.text(self.source);
            self.report(Diagnostic::error(operator.span, format!("`{text}` takes integers")));
        }
        bits
    }

    fn apply(&mut self, operator: Token, left: Value, right: Value) -> Option<Value> {
        use Kind::*;
        let kind = operator.kind;
        let truth = |value: bool| Some(Value::Signed(i64::from(value)));
        if left.is_float() != right.is_float() {
            let text = operator.span.text(self.source);
            let message = format!("`{text}` takes two integers or two floating-point numbers");
            self.report(Diagnostic::error(operator.span, message));
            return None;
        }
        if left.is_float() {
            let (a, b) = (left.float(), right.float());
            let value = match kind {
                Plus => a + b,
                Minus => a - b,
                Star => a * b,
                Slash => a / b,
                Less => return truth(a < b),
                LessEqual => return truth(a <= b),
                Greater => return truth(a > b),
                GreaterEqual => return truth(a >= b),
                EqualEqual => return truth(a == b),
                NotEqual => return truth(a != b),
                _ => {
                    self.bits(operator, Value::Double(0));
                    return None;
                }
            };
            return Some(Value::Double(value.to_bits()));
        }
        let (a, b) = (left.integer()?, right.integer()?);
        match kind {
            AndAnd => return truth(a != 0 && b != 0),
            OrOr => return truth(a != 0 || b != 0),
            // The type is that of what is shifted, the distance counts modulo 64.
            ShiftLeft => return Some(left.like(a.wrapping_shl(b as u32))),
            ShiftRight => {
                return Some(match left {
                    Value::Signed(a) => Value::Signed(a.wrapping_shr(b as u32)),
                    _ => Value::Unsigned(a.wrapping_shr(b as u32)),
                });
            }
            _ => {}
        }
        let unsigned = matches!(left, Value::Unsigned(_)) || matches!(right, Value::Unsigned(_));
        let (s, t) = (a as i64, b as i64);
        let value = match kind {
            Plus => a.wrapping_add(b),
            Minus => a.wrapping_sub(b),
            Star => a.wrapping_mul(b),
            Slash | Percent if b == 0 => {
                self.report(Diagnostic::error(operator.span, "division by zero in a constant expression"));
                return None;
            }
            Slash => {
                if unsigned {
                    a / b
                } else {
                    s.wrapping_div(t) as u64
                }
            }
            // Unlike all others, the remainder never has a sign.
            Percent => return Some(Value::Unsigned(a % b)),
            Ampersand => a & b,
            Pipe => a | b,
            Caret => a ^ b,
            Less => return truth(if unsigned { a < b } else { s < t }),
            LessEqual => return truth(if unsigned { a <= b } else { s <= t }),
            Greater => return truth(if unsigned { a > b } else { s > t }),
            GreaterEqual => return truth(if unsigned { a >= b } else { s >= t }),
            EqualEqual => return truth(a == b),
            NotEqual => return truth(a != b),
            _ => return None,
        };
        Some(if unsigned { Value::Unsigned(value) } else { Value::Signed(value as i64) })
    }

    /// The value of a number.
    pub(super) fn literal(&mut self, token: Token) -> Option<Value> {
        let text = token.span.text(self.source);
        let value = if token.kind == Kind::Float { float(text) } else { integer(text) };
        let value = value.map(|value| match value {
            Some(value) => value,
            None => {
                let message = format!("`{}` does not fit 64 bits: its low 64 bits are taken", shorten(text));
                self.report(Diagnostic::warning(token.span, message));
                Value::Unsigned(low_bits(text))
            }
        });
        match value {
            Ok(value) => Some(value),
            Err(message) => {
                self.report(Diagnostic::error(token.span, message));
                None
            }
        }
    }
}

fn level(kind: Kind) -> Option<u8> {
    use Kind::*;
    Some(match kind {
        OrOr => 0,
        AndAnd => 1,
        Pipe => 2,
        Caret => 3,
        Ampersand => 4,
        EqualEqual | NotEqual => 5,
        Less | LessEqual | Greater | GreaterEqual => 6,
        ShiftLeft | ShiftRight => 7,
        Plus | Minus => 8,
        Star | Slash | Percent => 9,
        _ => return None,
    })
}

/// Digits, their radix and its name, and whether they have the suffix `U`.
fn digits(text: &str) -> (&str, u32, &'static str, bool) {
    let digits = text.strip_suffix('U');
    let unsigned = digits.is_some();
    let digits = digits.unwrap_or(text);
    let (digits, radix, name) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&digits[2..], 16, "hexadecimal"),
        [b'0', b'b' | b'B', ..] => (&digits[2..], 2, "binary"),
        [b'0', _, ..] => (&digits[1..], 8, "octal"),
        _ => (digits, 10, "decimal"),
    };
    (digits, radix, name, unsigned)
}

/// What is left of a number that is too large.
fn low_bits(text: &str) -> u64 {
    let (digits, radix, ..) = digits(text);
    let digits = digits.chars().filter_map(|digit| digit.to_digit(radix));
    digits.fold(0u64, |value, digit| value.wrapping_mul(radix.into()).wrapping_add(digit.into()))
}

/// `None` where 64 bits are not enough.
fn integer(text: &str) -> Result<Option<Value>, String> {
    // Nearly all numbers are short and decimal.
    let plain = text.len() < 19 && (text.len() == 1 || !text.starts_with('0'));
    if plain && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let value = text.bytes().fold(0, |value, byte| value * 10 + i64::from(byte - b'0'));
        return Ok(Some(Value::Signed(value)));
    }
    let (digits, radix, name, unsigned) = digits(text);
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(format!("`{}` is no {name} number", shorten(text)));
    }
    let Ok(value) = u64::from_str_radix(digits, radix) else { return Ok(None) };
    Ok(Some(match i64::try_from(value) {
        Ok(signed) if !unsigned => Value::Signed(signed),
        _ => Value::Unsigned(value),
    }))
}

fn float(text: &str) -> Result<Option<Value>, String> {
    let hex = |digits: &str, len: usize| {
        let fits = digits.len() == len && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        fits.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
    };
    match text.as_bytes() {
        [b'0', b'f' | b'F', ..] => hex(&text[2..], 8)
            .map(|bits| Some(Value::Single(bits as u32)))
            .ok_or_else(|| format!("`{}` is not 0f and eight hexadecimal digits", shorten(text))),
        [b'0', b'd' | b'D', ..] => hex(&text[2..], 16)
            .map(|bits| Some(Value::Double(bits)))
            .ok_or_else(|| format!("`{}` is not 0d and sixteen hexadecimal digits", shorten(text))),
        _ => text
            .parse::<f64>()
            .map(|value| Some(Value::Double(value.to_bits())))
            .map_err(|_| format!("`{}` is no floating-point number", shorten(text))),
    }
}
