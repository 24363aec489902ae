//! Reads the binary table that `cargo xtask isa` writes.
//!
//! The format, in order; `n` is a LEB128 number, `z` a zigzag one, `f` a field as two bytes (lowest
//! bit, width):
//! * 8 bytes magic;
//! * strings: count, then length and bytes each; string 0 is empty;
//! * maps from value to token: count, then number of values and, for each, string + 1 or 0 if unknown;
//! * nodes: count, then a tag byte and its contents (see [`Loader::node`]);
//! * rows: count, then see [`Loader::row`].
//!
//! It is our own data, yet it is read with the same care as a file: a truncated or inconsistent table
//! yields `None`, never a panic.

use super::inst::{File, FloatFormat, Sign};
use super::tables::{
    Adjust, Conjunction, Extra, Field, Flag, KINDS, Leaf, Modifier, Node, NodeId, Number, OperandRule, Row, SignRule,
    Slice, Span, Tables, Token, TokenId, When,
};

const MAGIC: &[u8] = b"SASSTAB1";

/// Loads a table; `None` if it is malformed.
pub(super) fn load(bytes: &'static [u8]) -> Option<Tables> {
    let mut loader = Loader { rest: bytes.strip_prefix(MAGIC)?, maps: Vec::new(), tables: Tables::default() };
    loader.strings()?;
    loader.maps()?;
    for _ in 0..loader.count()? {
        let node = loader.node()?;
        loader.tables.nodes.push(node);
    }
    for _ in 0..loader.count()? {
        let row = loader.row()?;
        loader.tables.rows.push(row);
    }
    let sorted = loader.tables.rows.is_sorted_by_key(|row| row.key);
    (loader.rest.is_empty() && sorted).then_some(loader.tables)
}

struct Loader {
    rest: &'static [u8],
    /// Start and length of each map in `map_tokens`.
    maps: Vec<(u32, u32)>,
    tables: Tables,
}

impl Loader {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// A count of things that take at least one byte each, so never more than what is left.
    fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= self.rest.len()).then_some(count)
    }

    fn strings(&mut self) -> Option<()> {
        for _ in 0..self.count()? {
            let length = self.count()?;
            let (bytes, rest) = self.rest.split_at_checked(length)?;
            self.rest = rest;
            let text = std::str::from_utf8(bytes).ok()?;
            let start = end_of(&self.tables.parts)?;
            if !text.is_empty() {
                self.tables.parts.extend(text.split('.'));
            }
            let parts = start..end_of(&self.tables.parts)?;
            self.tables.tokens.push(Token { text, parts });
        }
        let first_is_empty = self.tables.tokens.first()?.text.is_empty();
        (first_is_empty && self.tables.tokens.len() < usize::from(TokenId::MAX)).then_some(())
    }

    fn maps(&mut self) -> Option<()> {
        for _ in 0..self.count()? {
            let start = end_of(&self.tables.map_tokens)?;
            let length = self.count()?;
            for _ in 0..length {
                let id = usize::try_from(self.number()?).ok()?;
                if id > self.tables.tokens.len() {
                    return None;
                }
                self.tables.map_tokens.push(TokenId::try_from(id).ok()?);
            }
            self.maps.push((start, u32::try_from(length).ok()?));
        }
        Some(())
    }

    fn token(&mut self) -> Option<TokenId> {
        let id = self.number()?;
        ((id as usize) < self.tables.tokens.len()).then_some(TokenId::try_from(id).ok()?)
    }

    fn text(&mut self) -> Option<&'static str> {
        let id = self.token()?;
        self.tables.tokens.get(usize::from(id)).map(|token| token.text)
    }

    /// A reference to a node that has been read already.
    fn node_id(&mut self) -> Option<NodeId> {
        let id = NodeId::try_from(self.number()?).ok()?;
        (usize::from(id) < self.tables.nodes.len()).then_some(id)
    }

    fn field(&mut self) -> Option<Field> {
        let field = Field { lo: self.byte()?, width: self.byte()? };
        let end = u32::from(field.lo) + u32::from(field.width);
        ((1..=64).contains(&field.width) && end <= 128).then_some(field)
    }

    /// Count and fields, at most 16 bits in all.
    fn runs(&mut self) -> Option<Span> {
        let start = end_of(&self.tables.runs)?;
        let mut width = 0;
        for _ in 0..self.count()? {
            let field = self.field()?;
            width += u32::from(field.width);
            self.tables.runs.push(field);
        }
        (width <= 16).then_some(start..end_of(&self.tables.runs)?)
    }

    /// Count and tests: 0 differs, 1 equals (field, value), 2 and 3 not and is a power of two (field).
    fn conjunction(&mut self) -> Option<u32> {
        let start = end_of(&self.tables.extras)?;
        let (mut mask, mut value) = (0u128, 0u128);
        for _ in 0..self.count()? {
            let tag = self.byte()?;
            let field = self.field()?;
            match tag {
                0 | 1 => {
                    let shifted = u128::from(self.number()?).checked_shl(u32::from(field.lo))?;
                    if tag == 0 {
                        let test = Extra::Differs { mask: field.mask(), value: shifted };
                        self.tables.extras.push(test);
                    } else if (value ^ shifted) & mask & field.mask() != 0 {
                        // Contradicts an earlier test; such a rule is a mistake in the sources.
                        return None;
                    } else {
                        mask |= field.mask();
                        value |= shifted;
                    }
                }
                2 | 3 => self.tables.extras.push(Extra::PowerOfTwo { field, want: tag == 3 }),
                _ => return None,
            }
        }
        let extras = start..end_of(&self.tables.extras)?;
        let id = end_of(&self.tables.conjunctions)?;
        self.tables.conjunctions.push(Conjunction { mask, value, extras });
        Some(id)
    }

    /// Tag 0 token; 1 integer (`z`); 2 number: fields, signed, shift, adjustment; 3 lookup: runs, map;
    /// 4 decision: (conjunction, token)s; 5 optional: condition, value; 6 if: conjunction, then, else;
    /// 7 float: format, lowest bit; 8 unknown.
    fn node(&mut self) -> Option<Node> {
        Some(match self.byte()? {
            0 => Node::Token(self.token()?),
            1 => {
                let zigzag = self.number()?;
                Node::Int((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
            }
            2 => self.number_node()?,
            3 => {
                let runs = self.runs()?;
                let map = usize::try_from(self.number()?).ok()?;
                let &(start, len) = self.maps.get(map)?;
                match self.tables.runs.get(runs.start as usize..runs.end as usize)? {
                    &[bits] if Slice::new(bits).is_some() => Node::Lookup { bits: Slice::new(bits)?, start, len },
                    _ => Node::LookupRuns { runs, start, len },
                }
            }
            4 => {
                let start = end_of(&self.tables.leaves)?;
                for _ in 0..self.count()? {
                    let conjunction = self.conjunction()?;
                    let token = self.token()?;
                    self.tables.leaves.push(Leaf { conjunction, token });
                }
                Node::Decide(start..end_of(&self.tables.leaves)?)
            }
            5 => Node::Optional { when: self.node_id()?, value: self.node_id()? },
            6 => Node::If { test: self.conjunction()?, then: self.node_id()?, otherwise: self.node_id()? },
            7 => {
                let format = match self.byte()? {
                    0 => FloatFormat::F32,
                    1 => FloatFormat::F64High,
                    2 => FloatFormat::F16,
                    3 => FloatFormat::Bf16,
                    _ => return None,
                };
                let lo = self.byte()?;
                (lo < 128).then_some(Node::Float { format, lo })?
            }
            8 => Node::Unknown,
            _ => return None,
        })
    }

    fn number_node(&mut self) -> Option<Node> {
        let fields = self.number()?;
        let low = self.field()?;
        let high = match fields {
            1 => None,
            2 => Some(self.field()?),
            _ => return None,
        };
        let width = u32::from(low.width) + high.map_or(0, |f| u32::from(f.width));
        let signed = self.byte()? != 0;
        let shift = self.byte()?;
        let adjust = match self.byte()? {
            0 => Adjust::None,
            1 => Adjust::PcRelative,
            2 => Adjust::NextRegister,
            3 => Adjust::SevenMinus,
            4 => Adjust::SecondNextRegister,
            _ => return None,
        };
        if width > 64 || shift > 16 {
            return None;
        }
        let plain = high.is_none() && !signed && shift == 0 && adjust == Adjust::None;
        Some(match Slice::new(low) {
            Some(slice) if plain && low.width < 64 => Node::Field(slice),
            _ => Node::Number { low, high, signed, shift, adjust },
        })
    }

    /// Architecture set, key, mnemonic, guard byte; condition (tag 0 always; 1 runs and values; 2
    /// conjunctions); modifier nodes; operands (kind byte, then attribute byte and node each).
    fn row(&mut self) -> Option<Row> {
        let archs = u32::try_from(self.number()?).ok()?;
        let key = u16::try_from(self.number()?).ok().filter(|&key| key < 1 << 13)?;
        let mnemonic = self.text()?;
        let guard_file = if self.byte()? == 0 { File::Vector } else { File::Uniform };
        let when = match self.byte()? {
            0 => When::Always,
            1 => self.one_of()?,
            2 => {
                let start = end_of(&self.tables.conjunctions)?;
                for _ in 0..self.count()? {
                    self.conjunction()?;
                }
                When::Any(start..end_of(&self.tables.conjunctions)?)
            }
            _ => return None,
        };
        let start = end_of(&self.tables.modifiers)?;
        for _ in 0..self.count()? {
            let id = self.node_id()?;
            let modifier = self.modifier(id)?;
            self.tables.modifiers.push(modifier);
        }
        let modifiers = start..end_of(&self.tables.modifiers)?;
        let start = end_of(&self.tables.operands)?;
        for _ in 0..self.count()? {
            let operand = self.operand()?;
            self.tables.operands.push(operand);
        }
        let operands = start..end_of(&self.tables.operands)?;
        Some(Row { archs, key, mnemonic, guard_file, when, modifiers, operands })
    }

    fn one_of(&mut self) -> Option<When> {
        let runs = self.runs()?;
        let fields = self.tables.runs.get(runs.start as usize..runs.end as usize)?;
        let width: u32 = fields.iter().map(|f| u32::from(f.width)).sum();
        let start = self.tables.set_words.len();
        let words = (1usize << width.min(16)).div_ceil(64);
        self.tables.set_words.resize(start + words, 0);
        for _ in 0..self.count()? {
            let value = usize::try_from(self.number()?).ok()?;
            let set = self.tables.set_words.get_mut(start..)?;
            *set.get_mut(value / 64)? |= 1 << (value % 64);
        }
        let set = u32::try_from(start).ok()?..end_of(&self.tables.set_words)?;
        Some(When::OneOf { runs, set })
    }

    fn operand(&mut self) -> Option<OperandRule> {
        let kind = *KINDS.get(usize::from(self.byte()?))?;
        let mut rule = OperandRule {
            kind,
            value: Number::Absent,
            content: None,
            bank: Number::Absent,
            sign: SignRule::None,
            negated: Flag::Never,
            abs: Flag::Never,
            inner_suffix: None,
            outer_suffix: None,
            plain: true,
            reuse: Flag::Never,
            reg: Number::Absent,
            reg_suffix: None,
            ureg: Number::Absent,
            offset: Number::Absent,
            desc: Number::Absent,
            space: Flag::Never,
        };
        for _ in 0..self.count()? {
            let attribute = self.byte()?;
            let id = self.node_id()?;
            match attribute {
                0..=3 => {
                    rule.value = self.numeric(id)?;
                    rule.content = Some(id);
                }
                4 => rule.bank = self.numeric(id)?,
                5 => {
                    rule.sign = self.sign(id)?;
                    rule.negated = self.flag(id)?;
                }
                6 => rule.abs = self.flag(id)?,
                7 => rule.inner_suffix = Some(id),
                8 => rule.outer_suffix = Some(id),
                9 => rule.reuse = self.flag(id)?,
                10 => rule.reg = self.numeric(id)?,
                11 => rule.reg_suffix = Some(id),
                12 => rule.ureg = self.numeric(id)?,
                13 => rule.offset = self.numeric(id)?,
                14 => rule.desc = self.numeric(id)?,
                15 => rule.space = self.flag(id)?,
                _ => return None,
            }
        }
        rule.plain = rule.inner_suffix.is_none() && rule.outer_suffix.is_none();
        Some(rule)
    }
}

/// Shortcuts for the commonest expressions.
impl Loader {
    fn numeric(&self, id: NodeId) -> Option<Number> {
        Some(match self.tables.nodes.get(usize::from(id))? {
            Node::Field(slice) => Number::Field(*slice),
            _ => Number::Node(id),
        })
    }

    /// The bit and the token of a map of one bit whose 0 prints nothing.
    fn single_bit(&self, id: NodeId) -> Option<(Slice, &Token)> {
        let Node::Lookup { bits, start, len: 2 } = self.tables.nodes.get(usize::from(id))? else {
            return None;
        };
        let start = *start as usize;
        let &[1, set] = self.tables.map_tokens.get(start..start + 2)? else { return None };
        let token = usize::from(set.checked_sub(1).filter(|&token| token != 0)?);
        Some((*bits, self.tables.tokens.get(token)?))
    }

    fn flag(&self, id: NodeId) -> Option<Flag> {
        Some(self.single_bit(id).map_or(Flag::Node(id), |(bit, _)| Flag::Bit(bit)))
    }

    fn sign(&self, id: NodeId) -> Option<SignRule> {
        Some(match self.single_bit(id) {
            Some((bit, token)) if token.text == "-" => SignRule::Bit(bit, Sign::Neg),
            Some((bit, token)) if token.text == "~" => SignRule::Bit(bit, Sign::Not),
            _ => SignRule::Node(id),
        })
    }

    fn modifier(&self, id: NodeId) -> Option<Modifier> {
        Some(match self.single_bit(id) {
            Some((bit, token)) if !token.text.contains('.') => Modifier::Bit(bit, token.text),
            _ => Modifier::Node(id),
        })
    }
}

fn end_of<T>(pool: &[T]) -> Option<u32> {
    u32::try_from(pool.len()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_truncated_table_is_refused() {
        let whole: &'static [u8] = super::super::decode::TABLE_BYTES;
        assert!(load(whole).is_some());
        for cut in (0..whole.len()).step_by(997) {
            assert!(load(&whole[..cut]).is_none(), "cut at {cut}");
        }
    }
}
