//! Variables, parameters, initial values and debug data.

use std::fmt::{self, Write};

use super::{attributes, linkage};
use crate::tree::{Initializer, Relocation, Section, Type, Variable};

/// `(.param .b32 a, .param .b32 b)`
pub(super) fn parameters(out: &mut String, list: &[Variable<'_>]) -> fmt::Result {
    out.push('(');
    for (at, parameter) in list.iter().enumerate() {
        if at > 0 {
            out.push_str(", ");
        }
        variable(out, parameter)?;
    }
    out.push(')');
    Ok(())
}

/// A declaration without its semicolon.
pub(super) fn variable(out: &mut String, it: &Variable<'_>) -> fmt::Result {
    write!(out, "{}.{}", linkage(it.linkage), it.space.name())?;
    if let Some(bank) = it.bank {
        write!(out, "[{bank}]")?;
    }
    out.push(' ');
    attributes(out, &it.attributes)?;
    if let Some(align) = it.align {
        write!(out, ".align {align} ")?;
    }
    if it.vector > 1 {
        write!(out, ".v{} ", it.vector)?;
    }
    write!(out, ".{} ", it.ty.name())?;
    if let Some(pointer) = it.pointer {
        out.push_str(".ptr ");
        if let Some(space) = pointer.space {
            write!(out, ".{} ", space.name())?;
        }
        if let Some(align) = pointer.align {
            write!(out, ".align {align} ")?;
        }
    }
    out.push_str(it.name);
    for dim in &it.dims {
        match dim {
            Some(len) => write!(out, "[{len}]")?,
            None => out.push_str("[]"),
        }
    }
    match &it.initializer {
        Some(initializer) => initial(out, it, initializer),
        None => Ok(()),
    }
}

fn initial(out: &mut String, variable: &Variable<'_>, initializer: &Initializer<'_>) -> fmt::Result {
    out.push_str(" = ");
    if matches!(variable.ty, Type::Texref | Type::Samplerref | Type::Surfref) {
        let fields: Vec<String> = initializer.fields.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        return write!(out, "{{ {} }}", fields.join(", "));
    }
    let element = u64::from(variable.ty.bytes());
    let mut sizes = vec![element];
    let vector = (variable.vector > 1).then_some(u64::from(variable.vector));
    for dim in vector.into_iter().chain(variable.dims.iter().rev().map(|dim| dim.unwrap_or(u64::MAX))) {
        sizes.push(sizes.last().map_or(0, |size| size.saturating_mul(dim)));
    }
    if element == 0 {
        return Ok(());
    }
    let mut values = Values { ty: variable.ty, initializer, piece: 0, used: 0, relocation: 0 };
    match sizes.len() {
        1 => values.value(out),
        2..=MAX_LEVELS => values.braces(out, &sizes, 0),
        _ => {
            out.push('?');
            Ok(())
        }
    }
}

/// Braces are written by recursion.
const MAX_LEVELS: usize = 64;

/// Given values in order.
struct Values<'v> {
    ty: Type,
    initializer: &'v Initializer<'v>,
    piece: usize,
    /// Bytes of the piece that are written.
    used: usize,
    relocation: usize,
}

impl Values<'_> {
    /// Where the next value lies.
    fn next(&self) -> Option<u64> {
        self.initializer.pieces.get(self.piece).map(|piece| piece.offset.saturating_add(self.used as u64))
    }

    /// What lies in the braces that open at `start`. `sizes` has what a value takes, then what each level of braces
    /// holds, from the inside out.
    fn braces(&mut self, out: &mut String, sizes: &[u64], start: u64) -> fmt::Result {
        let [inner @ .., size] = sizes else { return Ok(()) };
        let member = inner.last().copied().unwrap_or(0);
        let end = start.saturating_add(*size);
        let mut at = start;
        out.push('{');
        while let Some(next) = self.next().filter(|&next| next < end) {
            if at > start {
                out.push_str(", ");
            }
            let behind = at.saturating_add(member);
            if next >= behind {
                out.push_str("{}");
            } else if inner.len() == 1 {
                self.value(out)?;
            } else {
                self.braces(out, inner, at)?;
            }
            if behind <= at {
                break;
            }
            at = behind;
        }
        out.push('}');
        Ok(())
    }

    /// The next value.
    fn value(&mut self, out: &mut String) -> fmt::Result {
        let Some(offset) = self.next() else {
            out.push('0');
            return Ok(());
        };
        let width = self.ty.bytes() as usize;
        let mut bits = [0u8; 16];
        if let Some(piece) = self.initializer.pieces.get(self.piece) {
            for (to, from) in bits.iter_mut().zip(piece.bytes.iter().skip(self.used).take(width)) {
                *to = *from;
            }
            self.used += width.max(1);
            if self.used >= piece.bytes.len() {
                (self.piece, self.used) = (self.piece + 1, 0);
            }
        }
        if let Some(relocation) = self.initializer.relocations.get(self.relocation)
            && relocation.offset == offset
        {
            self.relocation += 1;
            return address(out, relocation);
        }
        let bits = u128::from_le_bytes(bits);
        match self.ty {
            Type::F32 => write!(out, "0f{:08X}", bits as u32),
            Type::F64 => write!(out, "0d{:016X}", bits as u64),
            _ => match u64::try_from(bits) {
                Ok(value) => write!(out, "{value}"),
                // 128 bits are written from 64 and their sign.
                Err(_) if bits as i128 == i128::from(i64::MIN) => write!(out, "(-{} - 1)", i64::MAX),
                Err(_) => write!(out, "{}", bits as i128),
            },
        }
    }
}

/// `generic(x)+4`, `0xff00(x)`
fn address(out: &mut String, it: &Relocation<'_>) -> fmt::Result {
    if let Some(mask) = it.mask {
        write!(out, "{mask:#x}(")?;
    }
    if it.generic {
        write!(out, "generic({})", it.name)?
    } else {
        out.push_str(it.name)
    }
    if it.addend != 0 {
        write!(out, "+{}", it.addend)?;
    }
    if it.mask.is_some() {
        out.push(')');
    }
    Ok(())
}

/// `.section`, with its data in lines of the kinds that assemblers take.
pub(super) fn section(out: &mut String, section: &Section<'_>) -> fmt::Result {
    writeln!(out, ".section {} {{", section.name)?;
    let data = &section.data;
    let mut labels = data.labels.iter().peekable();
    let mut references = data.references.iter().peekable();
    let mut at = 0usize;
    loop {
        while let Some((name, _)) = labels.next_if(|label| label.1 as usize <= at) {
            writeln!(out, "{name}:")?;
        }
        if at >= data.bytes.len() {
            break;
        }
        if let Some(it) = references.next_if(|it| it.offset as usize <= at) {
            write!(out, ".b{} {}", 8 * u32::from(it.width), it.name)?;
            if let Some(minus) = it.minus {
                write!(out, "-{minus}")?;
            }
            if it.addend != 0 {
                write!(out, "{:+}", it.addend)?;
            }
            out.push('\n');
            at += usize::from(it.width).max(1);
            continue;
        }
        let label = labels.peek().map_or(usize::MAX, |label| label.1 as usize);
        let reference = references.peek().map_or(usize::MAX, |it| it.offset as usize);
        let end = (at + 16).min(label).min(reference).min(data.bytes.len()).max(at + 1);
        for (i, byte) in data.bytes[at..end].iter().enumerate() {
            write!(out, "{}{byte}", if i == 0 { ".b8 " } else { "," })?;
        }
        out.push('\n');
        at = end;
    }
    out.push_str("}\n");
    Ok(())
}
