//! Operands. 20 bytes each, so that a text of 100 MB stays affordable.

use super::{AddressId, FunctionId, LabelId, LocalId, RegisterId, TableId, VariableId};
use crate::span::Span;
use crate::special::Special;

/// One operand, or one member of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// What it is.
    pub kind: OperandKind,
    /// Where it stands.
    pub span: Span,
}

/// A run of operands in [`Body::operands`](super::Body::operands); read it with [`Body::list`](super::Body::list).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperandList {
    /// The first.
    pub start: u32,
    /// How many.
    pub len: u32,
}

/// What an operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperandKind {
    /// `%r1`
    Register(RegisterId),
    /// `%v.x`, `%r1.b0`
    Element {
        /// The register.
        register: RegisterId,
        /// Its part.
        component: Component,
    },
    /// `!%p1`
    Not(RegisterId),
    /// `%tid.x`, `%laneid`. The table of [`Special`] has names; unknown ones are an error of the parser.
    Special {
        /// The register.
        register: Special,
        /// `.x` of it.
        component: Option<Component>,
    },
    /// `-%r1`, `-%r1.h0`: `vmad` negates a product or a summand.
    Negated {
        /// The register.
        register: RegisterId,
        /// Its part.
        component: Option<Component>,
    },
    /// `%r1+4`: a register and a constant, where a value is wanted.
    Sum {
        /// The register.
        register: RegisterId,
        /// The constant.
        offset: i32,
    },
    /// `_`
    Sink,
    /// An integer, or a constant expression folded to one, of type `.s64`: two's complement.
    Integer(Wide),
    /// The same of type `.u64` by the rules of constant expressions: a `U` suffix, or too large for `.s64`.
    Unsigned(Wide),
    /// `0f3F800000`: the bits.
    F32(u32),
    /// `0d3FF0000000000000`, `1.0`, or a folded expression: the bits. An instruction converts it to its own type.
    F64(Wide),
    /// `WARP_SZ`
    WarpSize,
    /// The address of something, or the thing itself where an instruction takes a label or a function: `var+4`, `foo`,
    /// `$L_1`, `table`.
    Symbol {
        /// What is named.
        target: Target,
        /// `+4`
        offset: i32,
    },
    /// `[...]`, in [`Body::addresses`](super::Body::addresses).
    Address(AddressId),
    /// `{a, b}`
    Vector(OperandList),
    /// `(a, b)`: the arguments or results of a call.
    List(OperandList),
    /// `a|b`: always two members, for instance `%p|%q`, `%r|%p` or `{...}|%p`; each may be a sink.
    Pair(OperandList),
    /// Something that could not be read; an error says what.
    Invalid,
}

impl OperandKind {
    /// The value of an integer.
    pub fn integer(self) -> Option<u64> {
        match self {
            OperandKind::Integer(value) | OperandKind::Unsigned(value) => Some(value.get()),
            _ => None,
        }
    }
}

/// A number of 64 bits that lies at any multiple of four bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Wide([u32; 2]);

impl Wide {
    /// From the number.
    pub fn new(value: u64) -> Self {
        Wide([value as u32, (value >> 32) as u32])
    }

    /// The number.
    pub fn get(self) -> u64 {
        u64::from(self.0[0]) | u64::from(self.0[1]) << 32
    }
}

impl std::fmt::Debug for Wide {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A variable of the module.
    Global(VariableId),
    /// A variable of the body.
    Local(LocalId),
    /// The function's parameter with this index.
    Parameter(u32),
    /// The function's return parameter with this index.
    Return(u32),
    /// A function or kernel.
    Function(FunctionId),
    /// A label of the body.
    Label(LabelId),
    /// `.branchtargets`, `.calltargets` or `.callprototype` of the body.
    Table(TableId),
    /// Not declared anywhere; an error says so. The operand's span has the name.
    Undefined,
}

/// `[base+offset, rest...]` or `base[index]`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// A register, an element of a vector register, a special register, a symbol (its offset is folded into `offset`),
    /// an integer (an absolute address), or invalid.
    pub base: OperandKind,
    /// The sum of the constant offsets, in bytes.
    pub offset: i64,
    /// `array[%r1]`: a register that is multiplied and added.
    pub index: Option<Index>,
    /// What follows the first comma: coordinates of a tensor or texture, a sampler.
    pub rest: OperandList,
    /// The base alone, for messages about it.
    pub base_span: Span,
}

/// The register in `array[%r1+2]`; its value counts without a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Index {
    /// The register.
    pub register: RegisterId,
    /// The bytes of one element; of a vector type, those of one member.
    pub scale: u32,
}

/// The part of a register that an operand selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "each is what its name in PTX says")]
pub enum Component {
    /// `.x` or `.r`
    X,
    /// `.y` or `.g`
    Y,
    /// `.z` or `.b`
    Z,
    /// `.w` or `.a`
    W,
    B0,
    B1,
    B2,
    B3,
    H0,
    H1,
    /// Byte pairs and triples of the byte permuting selectors: `.b10` is byte 1 then 0; the text in the span has it.
    Bytes,
}

impl Component {
    /// From its name without the dot.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "x" | "r" => Component::X,
            "y" | "g" => Component::Y,
            "z" | "b" => Component::Z,
            "w" | "a" => Component::W,
            "b0" => Component::B0,
            "b1" => Component::B1,
            "b2" => Component::B2,
            "b3" => Component::B3,
            "h0" => Component::H0,
            "h1" => Component::H1,
            _ => return Component::bytes(name),
        })
    }

    fn bytes(name: &str) -> Option<Self> {
        let digits = name.strip_prefix(['b', 'h'])?;
        let selects = (2..=4).contains(&digits.len()) && digits.bytes().all(|digit| (b'0'..=b'7').contains(&digit));
        selects.then_some(Component::Bytes)
    }
}
