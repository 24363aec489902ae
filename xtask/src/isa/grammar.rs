//! The expressions of the readable tables.

use super::source::{Adjust, Conjunction, Field, Model, Operand, Rules, Test, When};
use anyhow::{Context, Result, anyhow, bail, ensure};

/// Reads from the front of a line.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    rest: &'a str,
    rules: &'a Rules,
}

/// What float formats are called, in the order of their numbers in the blob.
const FLOATS: [&str; 4] = ["f32", "f64hi", "f16", "bf16"];

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-~!._".contains(&byte)
}

impl<'a> Cursor<'a> {
    pub(super) fn new(rest: &'a str, rules: &'a Rules) -> Self {
        Cursor { rest, rules }
    }

    pub(super) fn eat(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    pub(super) fn expect(&mut self, text: &str) -> Result<()> {
        ensure!(self.eat(text), "expected {text:?} before {:?}", self.rest);
        Ok(())
    }

    pub(super) fn end(&self) -> Result<()> {
        ensure!(self.rest.trim().is_empty(), "unexpected {:?}", self.rest);
        Ok(())
    }

    /// The value `read` yields, which must take the whole line.
    pub(super) fn whole<T>(mut self, read: impl Fn(&mut Self) -> Result<T>) -> Result<T> {
        let value = read(&mut self)?;
        self.end()?;
        Ok(value)
    }

    pub(super) fn separated<T>(&mut self, by: &str, read: impl Fn(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = vec![read(self)?];
        while self.eat(by) {
            items.push(read(self)?);
        }
        Ok(items)
    }

    fn take(&mut self, wanted: impl Fn(u8) -> bool) -> &'a str {
        let length = self.rest.bytes().take_while(|&byte| wanted(byte)).count();
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    /// Decimal or `0x` hexadecimal.
    pub(super) fn number(&mut self) -> Result<u64> {
        let (digits, radix) = if self.eat("0x") {
            (self.take(|b| b.is_ascii_hexdigit()), 16)
        } else {
            (self.take(|b| b.is_ascii_digit()), 10)
        };
        u64::from_str_radix(digits, radix).with_context(|| format!("expected a number before {:?}", self.rest))
    }

    fn bit(&mut self) -> Result<u8> {
        let bit = self.number()?;
        u8::try_from(bit).ok().filter(|bit| *bit < 128).ok_or_else(|| anyhow!("no bit {bit}"))
    }

    /// A token, bare or in quotes.
    pub(super) fn token(&mut self) -> Result<String> {
        if self.eat("\"") {
            let token = self.take(|byte| byte != b'"');
            self.expect("\"")?;
            return Ok(token.to_owned());
        }
        let token = self.take(is_token_byte);
        ensure!(!token.is_empty(), "expected a token before {:?}", self.rest);
        Ok(token.to_owned())
    }

    /// `84` or `86:84`.
    fn run(&mut self) -> Result<Field> {
        let high = self.bit()?;
        let lo = if self.eat(":") { self.bit()? } else { high };
        ensure!(lo <= high, "the highest bit stands first");
        Ok(Field { lo, width: high - lo + 1 })
    }

    fn field(&mut self) -> Result<Field> {
        self.expect("[")?;
        let field = self.run()?;
        self.expect("]")?;
        Ok(field)
    }

    /// `[77:76,72]`: all bits, lowest first.
    fn bits(&mut self) -> Result<Vec<u8>> {
        self.expect("[")?;
        let runs = self.separated(",", Self::run)?;
        self.expect("]")?;
        Ok(runs.iter().rev().flat_map(|run| run.lo..run.lo + run.width).collect())
    }

    fn at_test(&self) -> bool {
        ["[", "!", "pow2"].iter().any(|start| self.rest.starts_with(start))
    }

    fn test(&mut self) -> Result<Test> {
        let negated = self.eat("!");
        if self.eat("pow2") {
            return Ok(Test::PowerOfTwo { field: self.field()?, want: !negated });
        }
        let field = self.field()?;
        if self.eat("=") {
            return Ok(Test::Equals { field, value: self.number()?, want: !negated });
        }
        if self.eat("!=") {
            return Ok(Test::Equals { field, value: self.number()?, want: negated });
        }
        ensure!(field.width == 1, "a field of several bits is compared with a value");
        Ok(Test::Equals { field, value: u64::from(!negated), want: true })
    }

    fn conjunction(&mut self) -> Result<Conjunction> {
        if self.eat("always") {
            return Ok(Vec::new());
        }
        self.separated("&", Self::test)
    }

    /// A row's condition: `BITS in VALUES` or conjunctions.
    pub(super) fn when(&mut self) -> Result<When> {
        let mut ahead = *self;
        if let Ok(bits) = ahead.bits()
            && ahead.eat(" in ")
        {
            *self = ahead;
            let ranges = self.separated(",", |cursor| {
                let first = cursor.number()?;
                let last = if cursor.eat("..") { cursor.number()? } else { first };
                Ok(first..=last)
            })?;
            return Ok(When::OneOf { bits, values: ranges.into_iter().flatten().collect() });
        }
        Ok(When::Any(self.separated(" | ", Self::conjunction)?))
    }

    pub(super) fn value(&mut self) -> Result<Model> {
        if self.eat("(") {
            return self.choice();
        }
        if self.eat("{") {
            let leaves = self.separated("; ", |cursor| {
                let conjunction = cursor.conjunction()?;
                cursor.expect(": ")?;
                Ok((conjunction, cursor.token()?))
            })?;
            self.expect("}")?;
            return Ok(Model::Decide(leaves));
        }
        if self.rest.starts_with('"') {
            return Ok(Model::Token(self.token()?));
        }
        if self.eat("pc+") {
            return self.joined(Adjust::PcRelative);
        }
        if self.rest.starts_with("7-[") {
            self.expect("7-")?;
            return self.joined(Adjust::SevenMinus);
        }
        if self.rest.starts_with('[') || self.rest.starts_with("s[") {
            return self.joined(Adjust::None);
        }
        if self.rest.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            let negative = self.eat("-");
            let magnitude = i64::try_from(self.number()?)?;
            return Ok(Model::Int(if negative { -magnitude } else { magnitude }));
        }
        self.named()
    }

    /// A float, a lookup, or the name of a rule.
    fn named(&mut self) -> Result<Model> {
        let name = self.take(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if name == "unknown" {
            return Ok(Model::Unknown);
        }
        if let Some(format) = (0u8..).zip(FLOATS).find_map(|(n, f)| (f == name).then_some(n)) {
            return Ok(Model::Float { format, lo: self.field()?.lo });
        }
        if self.rest.starts_with('[') {
            return Ok(Model::Lookup { bits: self.bits()?, map: name.to_owned() });
        }
        self.rules.get(name).cloned().with_context(|| format!("no rule {name:?} before {:?}", self.rest))
    }

    /// After `(`: `VALUE ? VALUE)` or `TEST ? VALUE : VALUE)`.
    fn choice(&mut self) -> Result<Model> {
        let model = if self.at_test() {
            let test = self.test()?;
            self.expect(" ? ")?;
            let then = Box::new(self.value()?);
            self.expect(" : ")?;
            Model::If { test, then, otherwise: Box::new(self.value()?) }
        } else {
            let when = Box::new(self.value()?);
            self.expect(" ? ")?;
            Model::Optional { when, value: Box::new(self.value()?) }
        };
        self.expect(")")?;
        Ok(model)
    }

    /// `s[81:34]:[23:16]*4+1`, without what stands before `s`.
    fn joined(&mut self, adjust: Adjust) -> Result<Model> {
        let signed = self.eat("s");
        let mut fields = self.separated(":", Self::field)?;
        fields.reverse();
        let scale = if self.eat("*") { self.number()? } else { 1 };
        ensure!(scale.is_power_of_two(), "the scale {scale} is not a power of two");
        let after = if self.eat("+1") {
            Adjust::NextRegister
        } else if self.eat("+2") {
            Adjust::SecondNextRegister
        } else {
            Adjust::None
        };
        let adjust = match (adjust, after) {
            (adjust, Adjust::None) => adjust,
            (Adjust::None, after) => after,
            _ => bail!("two adjustments"),
        };
        Ok(Model::Number { fields, signed, shift: u8::try_from(scale.trailing_zeros())?, adjust })
    }

    /// `KIND(VALUE NAME=VALUE ...)`; kinds made of several parts have no first value.
    pub(super) fn operand(&mut self) -> Result<Operand> {
        let kind = self.take(|byte| byte.is_ascii_alphabetic()).to_owned();
        self.expect("(")?;
        let main = match kind.as_str() {
            "R" | "UR" | "P" | "UP" | "B" | "SB" => Some("num"),
            "I" => Some("v"),
            "F" => Some("f"),
            "L" => Some("lit"),
            _ => None,
        };
        let mut attributes = Vec::new();
        if let Some(main) = main {
            attributes.push((main.to_owned(), self.value()?));
            self.eat(" ");
        }
        while !self.eat(")") {
            let name = self.take(|byte| byte.is_ascii_lowercase()).to_owned();
            self.expect("=")?;
            attributes.push((name, self.value()?));
            self.eat(" ");
        }
        Ok(Operand { kind, attributes })
    }
}
