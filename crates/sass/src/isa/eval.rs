//! Evaluates table expressions on an encoding.

use super::inst::FloatFormat;
use super::tables::{Adjust, Conjunction, Extra, Field, Node, NodeId, Span, Tables, TokenId, When, slice};

/// The table has no entry for what the bits say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unknown;

/// An encoding at an address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word {
    pub(super) raw: u128,
    pub(super) pc: u32,
}

impl Tables {
    fn join(&self, runs: &Span, raw: u128) -> usize {
        let (mut key, mut shift) = (0u64, 0u32);
        for &run in slice(&self.runs, runs) {
            key |= run.of(raw) << (shift & 63);
            shift += u32::from(run.width);
        }
        key as usize
    }

    #[inline]
    fn holds(&self, conjunction: &Conjunction, raw: u128) -> bool {
        raw & conjunction.mask == conjunction.value
            && slice(&self.extras, &conjunction.extras).iter().all(|extra| match *extra {
                Extra::Differs { mask, value } => raw & mask != value,
                Extra::PowerOfTwo { field, want } => is_power_of_two(field, raw) == want,
            })
    }

    /// Whether a row's condition holds.
    #[inline]
    pub(super) fn applies(&self, when: &When, raw: u128) -> bool {
        match when {
            When::Always => true,
            When::OneOf { runs, set } => {
                let key = self.join(runs, raw);
                let word = slice(&self.set_words, set).get(key / 64);
                word.is_some_and(|word| word >> (key % 64) & 1 == 1)
            }
            When::Any(span) => {
                let any = slice(&self.conjunctions, span);
                any.iter().any(|conjunction| self.holds(conjunction, raw))
            }
        }
    }

    /// The token a node yields.
    #[inline]
    pub(super) fn token(&self, id: NodeId, raw: u128) -> Result<TokenId, Unknown> {
        match self.nodes.get(usize::from(id)).ok_or(Unknown)? {
            Node::Lookup { bits, start, len } => self.map_entry(bits.of(raw) as usize, *start, *len),
            Node::LookupRuns { runs, start, len } => self.map_entry(self.join(runs, raw), *start, *len),
            Node::Token(token) => Ok(*token),
            Node::Decide(leaves) => slice(&self.leaves, leaves)
                .iter()
                .find(|leaf| {
                    let conjunction = self.conjunctions.get(leaf.conjunction as usize);
                    conjunction.is_some_and(|conjunction| self.holds(conjunction, raw))
                })
                .map(|leaf| leaf.token)
                .ok_or(Unknown),
            Node::If { test, then, otherwise } => {
                self.token(if self.test(*test, raw) { *then } else { *otherwise }, raw)
            }
            _ => Err(Unknown),
        }
    }

    #[inline]
    fn map_entry(&self, key: usize, start: u32, len: u32) -> Result<TokenId, Unknown> {
        let map = slice(&self.map_tokens, &(start..start.saturating_add(len)));
        map.get(key).and_then(|id| id.checked_sub(1)).ok_or(Unknown)
    }

    fn test(&self, conjunction: u32, raw: u128) -> bool {
        let conjunction = self.conjunctions.get(conjunction as usize);
        conjunction.is_some_and(|conjunction| self.holds(conjunction, raw))
    }

    /// The text of a token.
    #[inline]
    pub(super) fn text(&self, token: TokenId) -> &'static str {
        self.tokens.get(usize::from(token)).map_or("", |token| token.text)
    }

    /// The number a node yields, `None` where it is absent for these bits.
    #[inline]
    pub(super) fn number(&self, id: NodeId, word: Word) -> Result<Option<i64>, Unknown> {
        match self.nodes.get(usize::from(id)).ok_or(Unknown)? {
            Node::Field(field) => Ok(Some(field.of(word.raw) as i64)),
            Node::Number { low, high, signed, shift, adjust } => {
                number(*low, *high, *signed, *shift, *adjust, word).map(Some)
            }
            Node::Int(value) => Ok(Some(*value)),
            Node::Optional { when, value } => {
                if self.token(*when, word.raw)? == 0 {
                    return Ok(None);
                }
                self.number(*value, word)
            }
            Node::If { test, then, otherwise } => {
                self.number(if self.test(*test, word.raw) { *then } else { *otherwise }, word)
            }
            _ => Err(Unknown),
        }
    }

    /// The format and bits of a float immediate.
    pub(super) fn float(&self, id: NodeId, raw: u128) -> Result<(FloatFormat, u32), Unknown> {
        match self.nodes.get(usize::from(id)).ok_or(Unknown)? {
            Node::Float { format, lo } => {
                let bits = (raw >> (lo & 127)) as u32;
                Ok(match format {
                    FloatFormat::F32 | FloatFormat::F64High => (*format, bits),
                    FloatFormat::F16 | FloatFormat::Bf16 => (*format, bits & 0xffff),
                })
            }
            Node::If { test, then, otherwise } => {
                self.float(if self.test(*test, raw) { *then } else { *otherwise }, raw)
            }
            _ => Err(Unknown),
        }
    }
}

fn is_power_of_two(field: Field, raw: u128) -> bool {
    let value = field.of(raw);
    let top = 1u64 << (field.width.clamp(1, 64) - 1);
    value.is_power_of_two() && value != top
}

fn number(
    low: Field,
    high: Option<Field>,
    signed: bool,
    shift: u8,
    adjust: Adjust,
    word: Word,
) -> Result<i64, Unknown> {
    let mut value = u128::from(low.of(word.raw));
    let mut width = u32::from(low.width);
    if let Some(high) = high {
        value |= u128::from(high.of(word.raw)) << width;
        width += u32::from(high.width);
    }
    // The loader admits at most 64 bits shifted by at most 16, so nothing overflows in 128.
    let mut value = value as i128;
    if signed && value >> (width - 1) & 1 == 1 {
        value -= 1 << width;
    }
    value <<= shift;
    let value = match adjust {
        Adjust::None => value,
        Adjust::PcRelative => value + i128::from(word.pc) + 16,
        Adjust::NextRegister | Adjust::SecondNextRegister if value == (1 << width) - 1 => value,
        Adjust::NextRegister => value + 1,
        Adjust::SecondNextRegister => value + 2,
        Adjust::SevenMinus => 7 - value,
    };
    match u64::try_from(value) {
        // A full 64-bit immediate keeps its bits; see `Operand::Int`.
        Ok(bits) if width == 64 => Ok(bits as i64),
        _ => i64::try_from(value).map_err(|_| Unknown),
    }
}
