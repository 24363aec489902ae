//! Variables, parameters and their initial values.

use super::{FunctionId, Linkage, RegisterId, Space, Type, VariableId};
use crate::span::Span;

/// A variable or a parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable<'a> {
    /// Its name; empty for an unnamed parameter of a prototype.
    pub name: &'a str,
    /// Where the name stands.
    pub span: Span,
    /// `.visible`, `.extern`, ...
    pub linkage: Linkage,
    /// Where it lies.
    pub space: Space,
    /// `.const[3]`
    pub bank: Option<u32>,
    /// The type of an element.
    pub ty: Type,
    /// Elements of its vector type: 1, 2, 4 or 8.
    pub vector: u8,
    /// `.align 16`
    pub align: Option<u32>,
    /// Array dimensions from the left; `None` where it is open: `a[]`. Empty for a scalar.
    pub dims: Vec<Option<u64>>,
    /// `.ptr .global .align 16` of a kernel parameter.
    pub pointer: Option<PointerTo>,
    /// `.attribute(...)`
    pub attributes: Vec<Attribute<'a>>,
    /// What follows `=`.
    pub initializer: Option<Box<Initializer<'a>>>,
    /// The register, where a parameter of a `.func` with a body is one (`.func (.reg .b32 r) f (.reg .b32 a)`).
    pub register: Option<RegisterId>,
}

impl<'a> Variable<'a> {
    /// A parameter of a simple type.
    pub(crate) fn parameter(name: &'a str, ty: Type, span: Span) -> Self {
        Variable {
            name,
            span,
            linkage: Linkage::Internal,
            space: Space::Param,
            bank: None,
            ty,
            vector: 1,
            align: None,
            dims: Vec::new(),
            pointer: None,
            attributes: Vec::new(),
            initializer: None,
            register: None,
        }
    }

    /// The bytes it takes; an open dimension has the length that its initial value gives it, or none. `None` where the
    /// number does not fit 64 bits.
    pub fn size(&self) -> Option<u64> {
        let row = self.row_size()?;
        match self.dims.first() {
            None => Some(row),
            Some(Some(len)) => row.checked_mul(*len),
            Some(None) => {
                let end = self.initializer.as_ref().map_or(0, |it| it.end());
                if row == 0 { Some(0) } else { end.div_ceil(row).checked_mul(row) }
            }
        }
    }

    /// The bytes of one element of the outermost dimension.
    fn row_size(&self) -> Option<u64> {
        let element = u64::from(self.ty.bytes()) * u64::from(self.vector);
        self.dims.iter().skip(1).try_fold(element, |size, dim| size.checked_mul(dim.unwrap_or(0)))
    }

    /// The alignment in bytes: as declared, or that of the (vector) type.
    pub fn alignment(&self) -> u32 {
        self.align.unwrap_or(self.ty.bytes() * u32::from(self.vector)).max(1)
    }
}

/// What a kernel parameter points to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PointerTo {
    /// The state space; `None` is generic.
    pub space: Option<Space>,
    /// The alignment of the memory.
    pub align: Option<u32>,
}

/// One attribute: `.managed`, `.unified(1, 2)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// The name without its dot.
    pub name: &'a str,
    /// The numbers in parentheses.
    pub values: Vec<u64>,
    /// Where it stands.
    pub span: Span,
}

/// An initial value, laid out as memory. What it does not mention is zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Initializer<'a> {
    /// Bytes that are given, at growing offsets.
    pub pieces: Vec<Piece>,
    /// Addresses to be added in.
    pub relocations: Vec<Relocation<'a>>,
    /// The fields of a sampler, texture or surface: `filter_mode = nearest`.
    pub fields: Vec<(&'a str, &'a str)>,
}

impl Initializer<'_> {
    /// One past the last byte given.
    pub fn end(&self) -> u64 {
        self.pieces.last().map_or(0, |piece| piece.offset.saturating_add(piece.bytes.len() as u64))
    }
}

/// Consecutive bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// Where they begin in the variable.
    pub offset: u64,
    /// Their values, little-endian.
    pub bytes: Vec<u8>,
}

/// An address in an initial value: `generic(x)+4`, `f`, `0xff00(x)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relocation<'a> {
    /// Where in the variable.
    pub offset: u64,
    /// How many bytes are stored there.
    pub width: u8,
    /// The name.
    pub name: &'a str,
    /// Where the name stands.
    pub span: Span,
    /// What it names.
    pub target: Option<RelocationTarget>,
    /// The constant added.
    pub addend: i64,
    /// The generic address instead of that within its state space.
    pub generic: bool,
    /// Only these bits of it, shifted down to bit 0.
    pub mask: Option<u64>,
}

/// What an initial value can point to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelocationTarget {
    /// A variable of the module.
    Variable(VariableId),
    /// A function.
    Function(FunctionId),
}
