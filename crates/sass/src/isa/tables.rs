//! The instruction tables in memory.
//!
//! Everything is flat: rows name ranges of small pools, values are nodes of a shared expression pool in
//! which a node refers only to earlier ones. Equal expressions are stored once, so all architectures
//! together need a few thousand nodes.

use super::inst::{File, FloatFormat, Sign};
use std::ops::Range;

/// Index into [`Tables::tokens`]; 0 is the empty token.
pub(super) type TokenId = u16;
/// Index into [`Tables::nodes`].
pub(super) type NodeId = u16;
/// A range of one of the pools.
pub(super) type Span = Range<u32>;

/// Adjacent bits of the encoding.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub(super) lo: u8,
    pub(super) width: u8,
}

impl Field {
    /// The field's value. The loader admits only fields of 1 to 64 bits that end within 128.
    #[inline]
    pub(super) fn of(self, raw: u128) -> u64 {
        let shifted = (raw >> (self.lo & 127)) as u64;
        shifted & (u64::MAX >> (64 - self.width.clamp(1, 64)))
    }

    /// The field's bits as a mask.
    pub(super) fn mask(self) -> u128 {
        u128::from(u64::MAX >> (64 - self.width.clamp(1, 64))) << (self.lo & 127)
    }
}

/// A field that lies in one half of the encoding, ready to be cut out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slice {
    high: bool,
    shift: u8,
    mask: u64,
}

impl Slice {
    /// `None` if the field reaches from the low into the high half.
    pub(super) fn new(field: Field) -> Option<Self> {
        let (first, last) = (field.lo, field.lo + (field.width - 1));
        (first / 64 == last / 64).then_some(Slice {
            high: first >= 64,
            shift: first % 64,
            mask: u64::MAX >> (64 - field.width),
        })
    }

    #[inline]
    pub(super) fn of(self, raw: u128) -> u64 {
        let half = if self.high { (raw >> 64) as u64 } else { raw as u64 };
        half >> (self.shift & 63) & self.mask
    }
}

/// A yes-or-no attribute; most are one bit, which needs no expression.
#[derive(Clone, Copy, Debug)]
pub(super) enum Flag {
    Never,
    Bit(Slice),
    Node(NodeId),
}

/// A sign attribute.
#[derive(Clone, Copy, Debug)]
pub(super) enum SignRule {
    None,
    Bit(Slice, Sign),
    Node(NodeId),
}

/// A numeric attribute.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Absent,
    Field(Slice),
    Node(NodeId),
}

/// A modifier.
#[derive(Clone, Copy, Debug)]
pub(super) enum Modifier {
    /// This one token if the bit is set, nothing otherwise.
    Bit(Slice, &'static str),
    Node(NodeId),
}

/// A test that is more than "these bits have these values".
#[derive(Clone, Copy, Debug)]
pub(super) enum Extra {
    /// The masked bits differ from the value.
    Differs { mask: u128, value: u128 },
    /// Whether the field is a power of two with its top bit clear.
    PowerOfTwo { field: Field, want: bool },
}

/// All of it holds: masked bits equal the value, and every extra test.
#[derive(Clone, Debug)]
pub(super) struct Conjunction {
    pub(super) mask: u128,
    pub(super) value: u128,
    pub(super) extras: Span,
}

/// What happens to a number after its fields are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Adjust {
    /// Nothing.
    None,
    /// Relative to the next instruction.
    PcRelative,
    /// The register after this one, except that all ones stay.
    NextRegister,
    /// The register two after this one, except that all ones stay.
    SecondNextRegister,
    /// Stored as 7 minus the value.
    SevenMinus,
}

/// How a value follows from the encoding.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// Always this token.
    Token(TokenId),
    /// Always this number.
    Int(i64),
    /// One unsigned field.
    Field(Slice),
    /// One or two fields, low one first.
    Number { low: Field, high: Option<Field>, signed: bool, shift: u8, adjust: Adjust },
    /// One run of bits indexes a token map. `start..start + len` of [`Tables::map_tokens`].
    Lookup { bits: Slice, start: u32, len: u32 },
    /// Several runs of bits index a token map.
    LookupRuns { runs: Span, start: u32, len: u32 },
    /// The first leaf whose conjunction holds.
    Decide(Span),
    /// Absent unless `when` yields a non-empty token.
    Optional { when: NodeId, value: NodeId },
    /// One of two values.
    If { test: u32, then: NodeId, otherwise: NodeId },
    /// A float immediate.
    Float { format: FloatFormat, lo: u8 },
    /// No rule is known for this value.
    Unknown,
}

/// A leaf of [`Node::Decide`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaf {
    pub(super) conjunction: u32,
    pub(super) token: TokenId,
}

/// A token and its parts between dots.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) text: &'static str,
    pub(super) parts: Span,
}

/// When a row applies.
#[derive(Clone, Debug)]
pub(super) enum When {
    /// The opcode alone decides.
    Always,
    /// The bits, joined, are in the set of [`Tables::set_words`].
    OneOf { runs: Span, set: Span },
    /// Any of these conjunctions holds.
    Any(Span),
}

/// Operand kinds. The order is that of `KINDS` in the xtask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Reg(File),
    Pred(File),
    Barrier,
    Scoreboard,
    Int,
    Float,
    Const,
    ConstUniform,
    Mem(&'static str),
    Desc,
    Literal,
}

/// All kinds, by their number in the blob.
pub(super) const KINDS: [Kind; 17] = [
    Kind::Reg(File::Vector),
    Kind::Reg(File::Uniform),
    Kind::Pred(File::Vector),
    Kind::Pred(File::Uniform),
    Kind::Barrier,
    Kind::Scoreboard,
    Kind::Int,
    Kind::Float,
    Kind::Const,
    Kind::ConstUniform,
    Kind::Mem(""),
    Kind::Mem("gdesc"),
    Kind::Mem("tmem"),
    Kind::Mem("idesc"),
    Kind::Mem("a"),
    Kind::Desc,
    Kind::Literal,
];

/// An operand of a row: its kind and the expressions of its attributes.
#[derive(Clone, Debug)]
pub(super) struct OperandRule {
    pub(super) kind: Kind,
    /// The main value: register number, immediate, literal.
    pub(super) value: Number,
    /// The expression behind `value`, for floats and literals.
    pub(super) content: Option<NodeId>,
    pub(super) bank: Number,
    pub(super) sign: SignRule,
    /// `!` of a predicate.
    pub(super) negated: Flag,
    pub(super) abs: Flag,
    /// Suffix inside the absolute-value bars, or anywhere if there are none.
    pub(super) inner_suffix: Option<NodeId>,
    /// Suffix outside the bars.
    pub(super) outer_suffix: Option<NodeId>,
    /// Whether it never has a suffix.
    pub(super) plain: bool,
    pub(super) reuse: Flag,
    pub(super) reg: Number,
    pub(super) reg_suffix: Option<NodeId>,
    pub(super) ureg: Number,
    pub(super) offset: Number,
    /// Descriptor or bindless-bank register.
    pub(super) desc: Number,
    /// Whether a blank separates `c[..]` from `[..]`.
    pub(super) space: Flag,
}

/// One operand form of one opcode.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// Bit set over `TABLE_ARCHS`.
    pub(super) archs: u32,
    /// Opcode bits [11:0] shifted left by one, plus bit 91.
    pub(super) key: u16,
    pub(super) mnemonic: &'static str,
    pub(super) guard_file: File,
    pub(super) when: When,
    /// Range of [`Tables::modifiers`].
    pub(super) modifiers: Span,
    /// Range of [`Tables::operands`].
    pub(super) operands: Span,
}

/// All tables.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) tokens: Vec<Token>,
    pub(super) parts: Vec<&'static str>,
    /// Token id plus one; 0 for an unknown value.
    pub(super) map_tokens: Vec<TokenId>,
    pub(super) runs: Vec<Field>,
    pub(super) extras: Vec<Extra>,
    pub(super) conjunctions: Vec<Conjunction>,
    pub(super) leaves: Vec<Leaf>,
    pub(super) nodes: Vec<Node>,
    pub(super) set_words: Vec<u64>,
    pub(super) modifiers: Vec<Modifier>,
    pub(super) operands: Vec<OperandRule>,
    pub(super) rows: Vec<Row>,
}

/// A pool's elements in `span`; empty if out of range, which the loader rules out.
#[inline]
pub(super) fn slice<'a, T>(pool: &'a [T], span: &Span) -> &'a [T] {
    pool.get(span.start as usize..span.end as usize).unwrap_or(&[])
}
