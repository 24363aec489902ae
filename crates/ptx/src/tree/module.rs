//! What stands at the top of the text.

use super::{Attribute, Body, Function as Fun, FunctionId, OpcodeId, Variable, VariableId};
use crate::span::Span;

/// A PTX text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Module<'a> {
    /// The text that every span and name belongs to.
    pub source: &'a str,
    /// What `WARP_SZ` is.
    pub warp_size: u32,
    /// `.version`
    pub version: Option<Version>,
    /// `.target`: architectures and platform options, of all such directives.
    pub targets: Vec<&'a str>,
    /// `.address_size`
    pub address_size: Option<u32>,
    /// `.file` in textual order.
    pub files: Vec<File<'a>>,
    /// Functions and kernels: one for each name, its definition where there is one. Only an erroneous text has more.
    pub functions: Vec<Fun<'a>>,
    /// Variables at module scope: one for each name, its definition where there is one.
    pub variables: Vec<Variable<'a>>,
    /// `.alias`
    pub aliases: Vec<Alias<'a>>,
    /// `.section`
    pub sections: Vec<Section<'a>>,
    /// Texts of `.pragma` at module scope.
    pub pragmas: Vec<&'a str>,
    /// Directives that are not known, kept as text.
    pub directives: Vec<Directive<'a>>,
    /// Each distinct opcode with its modifiers, in order of appearance.
    pub opcodes: Vec<Opcode<'a>>,
    /// What stands where, in textual order.
    pub items: Vec<Item>,
}

impl<'a> Module<'a> {
    /// A function by its name.
    pub fn function(&self, name: &str) -> Option<(FunctionId, &Fun<'a>)> {
        let index = self.functions.iter().position(|function| function.name == name)?;
        Some((FunctionId(index as u32), &self.functions[index]))
    }

    /// The number of the architecture that `.target` names: 90 for `sm_90a`.
    pub fn target(&self) -> Option<u32> {
        self.targets.iter().find_map(|target| target.strip_prefix("sm_")?.trim_end_matches(['a', 'f']).parse().ok())
    }

    /// An opcode.
    pub fn opcode(&self, id: OpcodeId) -> &Opcode<'a> {
        &self.opcodes[id.index()]
    }

    /// The path of the source file with a number.
    pub fn file(&self, index: u32) -> Option<&'a str> {
        self.files.iter().find(|file| file.index == index).map(|file| file.path)
    }

    /// The zero-terminated text at `label+offset` in the debug data, where `.loc` keeps names of inlined functions.
    pub fn debug_string(&self, label: &str, offset: u32) -> Option<&[u8]> {
        self.sections.iter().find_map(|section| {
            let &(_, start) = section.data.labels.iter().find(|(name, _)| *name == label)?;
            let bytes = section.data.bytes.get(start.checked_add(offset)? as usize..)?;
            let end = bytes.iter().position(|&byte| byte == 0)?;
            Some(&bytes[..end])
        })
    }
}

/// The PTX ISA version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the two parts of a version")]
pub struct Version {
    pub major: u32,
    pub minor: u32,
}

/// `.file 1 "a.cu", 1700000000, 1234`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File<'a> {
    /// The number that `.loc` uses.
    pub index: u32,
    /// The text between the quotation marks.
    pub path: &'a str,
    /// Its time stamp.
    pub timestamp: Option<u64>,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// Where it stands.
    pub span: Span,
}

/// Who can see a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Linkage {
    /// This module alone.
    #[default]
    Internal,
    /// `.visible`
    Visible,
    /// `.extern`
    Extern,
    /// `.weak`
    Weak,
    /// `.common`
    Common,
}

/// A kernel or a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FunctionKind {
    /// `.entry`
    Entry,
    /// `.func`
    Func,
}

/// A kernel or a function, declared or defined.
#[derive(Clone, Debug, PartialEq)]
pub struct Function<'a> {
    /// Its (mangled) name.
    pub name: &'a str,
    /// Where the name stands.
    pub name_span: Span,
    /// Kernel or function.
    pub kind: FunctionKind,
    /// `.visible`, `.extern`, ...
    pub linkage: Linkage,
    /// `.attribute(...)`
    pub attributes: Vec<Attribute<'a>>,
    /// Return parameters.
    pub returns: Vec<Variable<'a>>,
    /// Parameters.
    pub params: Vec<Variable<'a>>,
    /// Directives between the parameters and the body.
    pub tuning: Tuning,
    /// Directives there that are not known, kept as text.
    pub directives: Vec<Directive<'a>>,
    /// `None` for a declaration.
    pub body: Option<Body<'a>>,
    /// All of it.
    pub span: Span,
}

/// Performance and ABI directives of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "each is the directive of its name")]
pub struct Tuning {
    pub maxntid: Option<[u32; 3]>,
    pub reqntid: Option<[u32; 3]>,
    pub reqnctapercluster: Option<[u32; 3]>,
    pub minnctapersm: Option<u32>,
    pub maxnctapersm: Option<u32>,
    pub maxnreg: Option<u32>,
    pub maxclusterrank: Option<u32>,
    pub abi_preserve: Option<u32>,
    pub abi_preserve_control: Option<u32>,
    pub noreturn: bool,
    pub explicitcluster: bool,
    pub blocksareclusters: bool,
    /// `.unique` and later flags have no field: they are in [`Function::directives`].
    pub local_maxnreg: Option<u32>,
}

/// `.callprototype (returns) _ (params)`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prototype<'a> {
    /// Return parameters.
    pub returns: Vec<Variable<'a>>,
    /// Parameters.
    pub params: Vec<Variable<'a>>,
    /// `.noreturn` and others.
    pub tuning: Tuning,
}

/// `.alias name, aliasee;`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias<'a> {
    /// The new name, itself declared as a function.
    pub name: &'a str,
    /// What it stands for.
    pub target: &'a str,
    /// The function of that name.
    pub function: Option<FunctionId>,
    /// Where it stands.
    pub span: Span,
}

/// `.section name { data }`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section<'a> {
    /// The name with its dot.
    pub name: &'a str,
    /// What it holds.
    pub data: Data<'a>,
    /// All of it.
    pub span: Span,
}

/// Debug data, laid out as bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Data<'a> {
    /// Little-endian; zero where a reference is to be put.
    pub bytes: Vec<u8>,
    /// Labels and their offsets.
    pub labels: Vec<(&'a str, u32)>,
    /// What names a section or label instead of a number.
    pub references: Vec<Reference<'a>>,
}

/// A name among debug data: `.b64 label+4`, `.b32 end-start`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference<'a> {
    /// Where in the data.
    pub offset: u32,
    /// How many bytes.
    pub width: u8,
    /// The label or section.
    pub name: &'a str,
    /// A label to subtract.
    pub minus: Option<&'a str>,
    /// A constant to add.
    pub addend: i64,
}

/// A directive that is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directive<'a> {
    /// The name with its dot.
    pub name: &'a str,
    /// All of it, up to the semicolon, the closing brace or the end of its line.
    pub text: &'a str,
    /// Where it stands.
    pub span: Span,
    /// In a body, the position of the instruction that follows; else 0.
    pub position: u32,
}

/// An opcode with its modifiers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opcode<'a> {
    /// `ld.global.nc.v4.f32`, as it stands in the text.
    pub text: &'a str,
    /// `ld`
    pub name: &'a str,
    /// `["global", "nc", "v4", "f32"]`, each without its dot; `L2::128B` is one.
    pub modifiers: Vec<&'a str>,
    /// Whether the table of instructions has the name and every modifier. A warning was given if not.
    pub known: bool,
    /// Where it first stands.
    pub span: Span,
}

/// What stands at a place of the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// A function, by its place in [`Module::functions`].
    Function(FunctionId),
    /// A variable, by its place in [`Module::variables`].
    Variable(VariableId),
    /// By its place in [`Module::sections`].
    Section(u32),
    /// By its place in [`Module::aliases`].
    Alias(u32),
    /// By its place in [`Module::directives`].
    Directive(u32),
}
