//! Operands.

use std::fmt::{self, Write};

use crate::special::Special;
use crate::tree::{
    AddressId, Body, Component, Function, Module, Operand, OperandKind, OperandList, RegisterId, Target,
};

/// Where the things lie that operands name.
#[derive(Clone, Copy)]
pub(super) struct Place<'p> {
    pub(super) module: &'p Module<'p>,
    pub(super) function: &'p Function<'p>,
    pub(super) body: &'p Body<'p>,
}

impl<'p> Place<'p> {
    /// `a, b`
    pub(super) fn list(self, out: &mut String, list: OperandList, between: &str) -> fmt::Result {
        for (at, operand) in self.body.list(list).iter().enumerate() {
            if at > 0 {
                out.push_str(between);
            }
            self.operand(out, operand)?;
        }
        Ok(())
    }

    fn operand(self, out: &mut String, it: &Operand) -> fmt::Result {
        let nested = |out: &mut String, [open, close]: [char; 2], list| {
            out.push(open);
            self.list(out, list, ", ")?;
            out.push(close);
            Ok(())
        };
        match it.kind {
            OperandKind::Vector(list) => nested(out, ['{', '}'], list),
            OperandKind::List(list) => nested(out, ['(', ')'], list),
            OperandKind::Pair(list) => self.list(out, list, "|"),
            OperandKind::Address(id) => self.address(out, id),
            kind => self.simple(out, kind, it.span.text(self.module.source)),
        }
    }

    fn simple(self, out: &mut String, kind: OperandKind, text: &str) -> fmt::Result {
        match kind {
            OperandKind::Register(id) => out.push_str(self.register(id)),
            OperandKind::Not(id) => write!(out, "!{}", self.register(id))?,
            OperandKind::Element { register, component } => {
                out.push_str(self.register(register));
                part(out, component, text)?;
            }
            OperandKind::Negated { register, component } => {
                write!(out, "-{}", self.register(register))?;
                if let Some(component) = component {
                    part(out, component, text)?;
                }
            }
            OperandKind::Sum { register, offset } => write!(out, "{}+{offset}", self.register(register))?,
            OperandKind::Special { register, component } => {
                match register {
                    Special::Pm(number) => write!(out, "%pm{number}")?,
                    Special::Pm64(number) => write!(out, "%pm{number}_64")?,
                    Special::Envreg(number) | Special::ReservedSmemOffset(number) => {
                        write!(out, "{}{number}", register.name())?;
                    }
                    _ => out.push_str(register.name()),
                }
                if let Some(component) = component {
                    part(out, component, text)?;
                }
            }
            OperandKind::Sink => out.push('_'),
            OperandKind::Unsigned(value) => write!(out, "{}U", value.get())?,
            // The number behind a minus sign must be one of `.s64` itself.
            OperandKind::Integer(value) if value.get() == 1 << 63 => write!(out, "(-{} - 1)", i64::MAX)?,
            OperandKind::Integer(value) => write!(out, "{}", value.get() as i64)?,
            OperandKind::F32(bits) => write!(out, "0f{bits:08X}")?,
            OperandKind::F64(bits) => write!(out, "0d{:016X}", bits.get())?,
            OperandKind::WarpSize => out.push_str("WARP_SZ"),
            OperandKind::Symbol { target, offset } => {
                out.push_str(self.target(target));
                if offset != 0 {
                    write!(out, "+{offset}")?;
                }
            }
            OperandKind::Address(_)
            | OperandKind::Vector(_)
            | OperandKind::List(_)
            | OperandKind::Pair(_)
            | OperandKind::Invalid => out.push('?'),
        }
        Ok(())
    }

    fn address(self, out: &mut String, id: AddressId) -> fmt::Result {
        let Some(it) = self.body.addresses.get(id.index()) else {
            out.push('?');
            return Ok(());
        };
        if let Some(index) = it.index {
            self.simple(out, it.base, "")?;
            write!(out, "[{}", self.register(index.register))?;
            let elements = it.offset / i64::from(index.scale.max(1));
            if elements != 0 {
                write!(out, "+{elements}")?;
            }
            out.push(']');
            return Ok(());
        }
        out.push('[');
        self.simple(out, it.base, it.base_span.text(self.module.source))?;
        if it.offset != 0 {
            write!(out, "+{}", it.offset)?;
        }
        if it.rest.len > 0 {
            out.push_str(", ");
            self.list(out, it.rest, ", ")?;
        }
        out.push(']');
        Ok(())
    }

    pub(super) fn register(self, id: RegisterId) -> &'p str {
        self.body.registers.get(id.index()).map_or("?", |it| it.name)
    }

    fn target(self, target: Target) -> &'p str {
        let name = match target {
            Target::Global(id) => self.module.variables.get(id.index()).map(|it| it.name),
            Target::Local(id) => self.body.variables.get(id.index()).map(|it| it.name),
            Target::Parameter(at) => self.function.params.get(at as usize).map(|it| it.name),
            Target::Return(at) => self.function.returns.get(at as usize).map(|it| it.name),
            Target::Function(id) => self.module.functions.get(id.index()).map(|it| it.name),
            Target::Label(id) => self.body.labels.get(id.index()).map(|it| it.name),
            Target::Table(id) => self.body.tables.get(id.index()).map(|it| it.name),
            Target::Undefined => None,
        };
        name.unwrap_or("?")
    }
}

/// `.x`; `text` is that of the operand, which has the bytes that a selector of several takes.
fn part(out: &mut String, component: Component, text: &str) -> fmt::Result {
    let name = match component {
        Component::X => "x",
        Component::Y => "y",
        Component::Z => "z",
        Component::W => "w",
        Component::B0 => "b0",
        Component::B1 => "b1",
        Component::B2 => "b2",
        Component::B3 => "b3",
        Component::H0 => "h0",
        Component::H1 => "h1",
        Component::Bytes => text.rsplit('.').next().unwrap_or("?"),
    };
    write!(out, ".{name}")
}
