//! The modifiers of an opcode, taken one by one; what is left over does not belong there.

use lanescope_ir::op::float::Rounding;

use super::fail::Lowered;
use crate::diagnostic::Diagnostic;
use crate::span::Span;
use crate::suggest;
use crate::tree::{Opcode, Type};

/// Modifiers of one instruction.
#[derive(Clone, Debug)]
pub(super) struct Mods<'a> {
    /// `add.s32`, for messages.
    pub(super) text: &'a str,
    /// `add`
    pub(super) name: &'a str,
    pub(super) span: Span,
    left: Vec<&'a str>,
    types: Vec<Type>,
}

impl<'a> Mods<'a> {
    pub(super) fn new(opcode: &Opcode<'a>, span: Span) -> Mods<'a> {
        let (mut left, mut types) = (Vec::new(), Vec::new());
        for &modifier in &opcode.modifiers {
            match Type::from_name(modifier) {
                Some(ty) => types.push(ty),
                None => left.push(modifier),
            }
        }
        let end = span.start.saturating_add(opcode.text.len() as u32);
        Mods { text: opcode.text, name: opcode.name, span: Span::new(span.start, end), left, types }
    }

    /// Whether the modifier is there; it is taken.
    pub(super) fn take(&mut self, modifier: &str) -> bool {
        let at = self.left.iter().position(|&m| m == modifier);
        if let Some(at) = at {
            self.left.remove(at);
        }
        at.is_some()
    }

    /// Takes the first modifier that `f` knows.
    pub(super) fn find<T>(&mut self, mut f: impl FnMut(&'a str) -> Option<T>) -> Option<T> {
        let (at, value) = self.left.iter().enumerate().find_map(|(at, &m)| f(m).map(|value| (at, value)))?;
        self.left.remove(at);
        Some(value)
    }

    /// Takes and drops every modifier that `f` accepts.
    pub(super) fn ignore(&mut self, f: impl Fn(&str) -> bool) {
        self.left.retain(|m| !f(m));
    }

    /// Those that are left, types apart.
    pub(super) fn left(&self) -> impl Iterator<Item = &'a str> {
        self.left.iter().copied()
    }

    /// Whether it is there; it stays.
    pub(super) fn has(&self, modifier: &str) -> bool {
        self.left.contains(&modifier)
    }

    /// The type, if there is exactly one.
    pub(super) fn ty(&self) -> Lowered<Type> {
        match self.types[..] {
            [ty] => Ok(ty),
            _ => Err(self.wrong_types(1)),
        }
    }

    /// Two types in the order of the text.
    pub(super) fn two_types(&self) -> Lowered<[Type; 2]> {
        match self.types[..] {
            [a, b] => Ok([a, b]),
            _ => Err(self.wrong_types(2)),
        }
    }

    /// All types.
    pub(super) fn types(&self) -> &[Type] {
        &self.types
    }

    fn wrong_types(&self, wanted: usize) -> super::fail::Fail {
        let s = if wanted == 1 { "" } else { "s" };
        let message = format!("`{}` needs {wanted} type{s} and has {}", self.text, self.types.len());
        let mut error = Diagnostic::error(self.span, message);
        let types = Type::ALL.iter().map(|ty| ty.name());
        if self.types.len() < wanted
            && let Some(near) = self.left.iter().find_map(|word| suggest::nearest(word, types.clone()))
        {
            error = error.note(format!("did you mean `.{near}`?"));
        }
        error.into()
    }

    /// A rounding of floats: `.rn` and so on.
    pub(super) fn rounding(&mut self) -> Option<Rounding> {
        self.find(|m| match m {
            "rn" => Some(Rounding::Nearest),
            "rz" => Some(Rounding::Zero),
            "rm" => Some(Rounding::Down),
            "rp" => Some(Rounding::Up),
            _ => None,
        })
    }

    /// Refuses what nobody took.
    pub(super) fn finish(&self, known: &[&str]) -> Lowered<()> {
        let Some(&stray) = self.left.first() else { return Ok(()) };
        let mut error = Diagnostic::error(self.span, format!("`.{stray}` does not apply to `{}` here", self.name));
        if let Some(near) = suggest::nearest(stray, known.iter().copied()) {
            error = error.note(format!("did you mean `.{near}`?"));
        }
        Err(error.into())
    }

    /// An error about a type that the instruction does not have.
    pub(super) fn bad_type<T>(&self, ty: Type) -> Lowered<T> {
        Err(Diagnostic::error(self.span, format!("`{}` has no form of type `.{}`", self.name, ty.name())).into())
    }
}
