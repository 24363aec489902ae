//! What stands between the braces of a function.

use super::{
    Address, AddressId, DeclarationId, Directive, FunctionId, LabelId, LocalId, LocationId, OpcodeId, Operand,
    OperandKind, OperandList, Prototype, RegisterId, Target, Type, Variable,
};
use crate::span::Span;

/// A function's body. Positions (of labels, blocks, pragmas) are indices of [`instructions`](Self::instructions); a
/// position equal to its length is the end of the body.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Body<'a> {
    /// In textual order, with nested blocks laid flat.
    pub instructions: Vec<Instruction>,
    /// Backing store of every [`OperandList`].
    pub operands: Vec<Operand>,
    /// Backing store of [`OperandKind::Address`].
    pub addresses: Vec<Address>,
    /// The registers that the text uses, and no others: `.reg .b32 %r<1000000>` costs nothing. Equal names in sibling
    /// blocks are different registers.
    pub registers: Vec<Register<'a>>,
    /// Where registers are declared: the name, or the prefix of a range. A `.reg` has one for each name.
    pub declarations: Vec<Span>,
    /// Labels in textual order.
    pub labels: Vec<Label<'a>>,
    /// `.local`, `.shared`, `.param`, ... variables declared in the body, in textual order.
    pub variables: Vec<Variable<'a>>,
    /// Branch and call targets, call prototypes.
    pub tables: Vec<Table<'a>>,
    /// `.loc` in textual order.
    pub locations: Vec<Location<'a>>,
    /// `.pragma` in textual order.
    pub pragmas: Vec<Pragma<'a>>,
    /// Directives that are not known, kept as text.
    pub directives: Vec<Directive<'a>>,
    /// Nested blocks in the order in which they open.
    pub blocks: Vec<Block>,
    /// From `{` to `}`.
    pub span: Span,
}

impl<'a> Body<'a> {
    /// The members of a list.
    pub fn list(&self, list: OperandList) -> &[Operand] {
        let start = list.start as usize;
        start.checked_add(list.len as usize).and_then(|end| self.operands.get(start..end)).unwrap_or(&[])
    }

    /// The operands of an instruction.
    pub fn operands_of(&self, instruction: &Instruction) -> &[Operand] {
        self.list(instruction.operands)
    }

    /// An address.
    pub fn address(&self, id: AddressId) -> &Address {
        &self.addresses[id.index()]
    }

    /// A register.
    pub fn register(&self, id: RegisterId) -> &Register<'a> {
        &self.registers[id.index()]
    }

    /// Where a register is declared; the prefix in a declaration of a range.
    pub fn declaration(&self, register: &Register<'_>) -> Span {
        self.declarations.get(register.declaration.index()).copied().unwrap_or_default()
    }

    /// A label.
    pub fn label(&self, id: LabelId) -> &Label<'a> {
        &self.labels[id.index()]
    }

    /// A variable of the body.
    pub fn variable(&self, id: LocalId) -> &Variable<'a> {
        &self.variables[id.index()]
    }

    /// The source position of an instruction.
    pub fn location_of(&self, instruction: &Instruction) -> Option<&Location<'a>> {
        instruction.location.and_then(|id| self.locations.get(id.index()))
    }

    /// The parts of a call: `call (results), target, (arguments), prototype`. `None` where the operands have another
    /// shape. Whether the instruction is a call, its opcode says.
    pub fn call_of(&self, instruction: &Instruction) -> Option<Call<'_>> {
        let mut rest = self.operands_of(instruction);
        let mut results: &[Operand] = &[];
        if let Some((Operand { kind: OperandKind::List(list), .. }, after)) = rest.split_first() {
            results = self.list(*list);
            rest = after;
        }
        let (target, after) = rest.split_first()?;
        rest = after;
        let mut arguments: &[Operand] = &[];
        if let Some((Operand { kind: OperandKind::List(list), .. }, after)) = rest.split_first() {
            arguments = self.list(*list);
            rest = after;
        }
        let table = match rest {
            [] => None,
            [Operand { kind: OperandKind::Symbol { target: Target::Table(table), .. }, .. }] => {
                Some(self.tables.get(table.index())?)
            }
            _ => return None,
        };
        Some(Call { results, target, arguments, table })
    }
}

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The opcode with its modifiers: one entry of [`Module::opcodes`](super::Module::opcodes) for each distinct text.
    pub opcode: OpcodeId,
    /// `@%p`
    pub guard: Option<Guard>,
    /// The operands in textual order.
    pub operands: OperandList,
    /// The `.loc` in force.
    pub location: Option<LocationId>,
    /// From the guard or opcode to the semicolon, without it.
    pub span: Span,
}

/// The guard predicate of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The register.
    pub register: RegisterId,
    /// `@!%p`
    pub negated: bool,
}

/// A register that the body uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register<'a> {
    /// Its full name, `%r12`.
    pub name: &'a str,
    /// The type of an element.
    pub ty: Type,
    /// Elements of its vector type: 1, 2, 4 or 8.
    pub vector: u8,
    /// What declares it: [`Body::declaration`] has the place.
    pub declaration: DeclarationId,
}

/// A label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label<'a> {
    /// Its name.
    pub name: &'a str,
    /// The position it marks.
    pub position: u32,
    /// Where it stands.
    pub span: Span,
}

/// A nested block, as positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The first instruction inside.
    pub start: u32,
    /// One past the last instruction inside.
    pub end: u32,
    /// From `{` to `}`.
    pub span: Span,
}

/// A labelled list that an instruction refers to.
#[derive(Clone, Debug, PartialEq)]
pub struct Table<'a> {
    /// Its label.
    pub name: &'a str,
    /// What it is.
    pub kind: TableKind<'a>,
    /// From the label to the semicolon.
    pub span: Span,
}

/// What a labelled list is.
#[derive(Clone, Debug, PartialEq)]
pub enum TableKind<'a> {
    /// `.branchtargets`; `None` for a label that is undefined (an error says so).
    Branch(Vec<Option<LabelId>>),
    /// `.calltargets`; `None` for a function that is undefined (an error says so).
    Call(Vec<Option<FunctionId>>),
    /// `.callprototype`
    Prototype(Prototype<'a>),
}

/// `.loc`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location<'a> {
    /// File, line and column.
    pub point: SourcePoint,
    /// What is said of an inlined call; few have it.
    pub inlined: Option<Box<Inlined<'a>>>,
    /// Where the directive stands.
    pub span: Span,
}

impl<'a> Location<'a> {
    /// `function_name label+offset`: the name of the inlined function in `.debug_str`; see
    /// [`Module::debug_string`](super::Module::debug_string).
    pub fn function(&self) -> Option<(&'a str, u32)> {
        self.inlined.as_ref().and_then(|it| it.function)
    }

    /// `inlined_at`: the place of the call, which is the point of an earlier `.loc`.
    pub fn inlined_at(&self) -> Option<SourcePoint> {
        self.inlined.as_ref().and_then(|it| it.at)
    }
}

/// What `.loc` says of an inlined call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inlined<'a> {
    /// `function_name`
    pub function: Option<(&'a str, u32)>,
    /// `inlined_at`
    pub at: Option<SourcePoint>,
}

/// A place in a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourcePoint {
    /// The number of a `.file`.
    pub file: u32,
    /// The line; 0 where none is known.
    pub line: u32,
    /// The column; 0 where none is known.
    pub column: u32,
}

/// `.pragma "a", "b";`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pragma<'a> {
    /// The texts between the quotation marks.
    pub texts: Vec<&'a str>,
    /// The position of the instruction that follows.
    pub position: u32,
    /// Where it stands.
    pub span: Span,
}

/// The parts of a call.
#[derive(Clone, Copy, Debug)]
pub struct Call<'b> {
    /// What takes the results: registers or `.param` variables.
    pub results: &'b [Operand],
    /// A function or a register.
    pub target: &'b Operand,
    /// Registers, constants or `.param` variables.
    pub arguments: &'b [Operand],
    /// The prototype or the list of targets of an indirect call.
    pub table: Option<&'b Table<'b>>,
}
