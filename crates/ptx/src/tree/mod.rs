//! The tree of a PTX text: flat vectors with typed ids, names as slices of the source.
//!
//! A [`Module`] owns everything. What belongs to one function body lies in its [`Body`], whose ids
//! ([`RegisterId`], [`LabelId`], [`LocalId`], ...) count from zero in each body. Names are already resolved: an operand
//! holds the id of what it names, whatever blocks and register ranges the text used. Nested blocks leave no trace other
//! than that; [`Body::blocks`] has their extent for whoever prints.
//!
//! Deliberately absent: types and widths of operands are not checked, and modifiers are kept as text. Both belong to
//! the reader that gives instructions a meaning.

mod body;
mod module;
mod operand;
mod types;
mod variable;

pub use body::{
    Block, Body, Call, Guard, Inlined, Instruction, Label, Location, Pragma, Register, SourcePoint, Table, TableKind,
};
pub use module::{
    Alias, Data, Directive, File, Function, FunctionKind, Item, Linkage, Module, Opcode, Prototype, Reference, Section,
    Tuning, Version,
};
pub use operand::{Address, Component, Index, Operand, OperandKind, OperandList, Target, Wide};
pub use types::{Space, Type};
pub use variable::{Attribute, Initializer, Piece, PointerTo, Relocation, RelocationTarget, Variable};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// As an index of the vector it belongs to.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

/// Into [`Body::locations`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocationId(std::num::NonZero<u32>);

impl LocationId {
    /// From an index of the vector it belongs to.
    pub fn new(index: usize) -> Self {
        // Texts of 4 GiB, which could have so many, are refused.
        LocationId(
            u32::try_from(index + 1).ok().and_then(std::num::NonZero::new).unwrap_or(std::num::NonZero::<u32>::MAX),
        )
    }

    /// As an index of the vector it belongs to.
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

ids! {
    /// Into [`Module::functions`].
    FunctionId;
    /// Into [`Module::variables`].
    VariableId;
    /// Into [`Module::opcodes`].
    OpcodeId;
    /// Into [`Body::registers`].
    RegisterId;
    /// Into [`Body::labels`].
    LabelId;
    /// Into [`Body::variables`].
    LocalId;
    /// Into [`Body::tables`].
    TableId;
    /// Into [`Body::addresses`].
    AddressId;
    /// Into [`Body::declarations`].
    DeclarationId;
}
