//! Operands as slots and sources, with their types checked.

use lanescope_ir::op::LaneFn;
use lanescope_ir::op::convert::{ConvertFn, Integer};
use lanescope_ir::{Pred, PredSrc, Slot, Src};

use super::{Cx, Dst, Home, Words, words};
use crate::diagnostic::Diagnostic;
use crate::lower::fail::{Lowered, unsupported};
use crate::span::Span;
use crate::special::Special;
use crate::tree::{Component, Operand, OperandKind, Register, RegisterId, Type};

/// Whether a register of type `have` can stand for a value of type `want`, as ptxas has it: integers of one size for
/// each other, and bits for everything. A register of two halves counts as an integer. Formats without registers of
/// their own take bits alone.
pub(in crate::lower) fn fits(have: Type, want: Type, wider: bool) -> bool {
    use Type::*;
    if have == Pred || want == Pred {
        return have == want;
    }
    let number = |ty: Type| matches!(ty, U8 | U16 | U32 | U64 | S8 | S16 | S32 | S64);
    let bits = |ty: Type| matches!(ty, B8 | B16 | B32 | B64 | B128);
    let large = match want {
        Bf16 => have.bits() == 16,
        _ if wider => have.bits() >= want.bits(),
        _ => have.bits() == want.bits(),
    };
    large
        && (bits(have)
            || bits(want)
            || have == want
            || (number(want) && (number(have) || have == F16x2))
            || (matches!(want, U16x2 | S16x2) && number(have)))
}

/// Whether integers cannot stand for its values.
fn is_float(ty: Type) -> bool {
    use Type::*;
    let integer = matches!(
        ty,
        Pred | B1 | B4 | B8 | B16 | B32 | B64 | B128 | U4 | U8 | U16 | U32 | U64 | S4 | S8 | S16 | S32 | S64
    );
    !integer && !matches!(ty, U8x4 | S8x4 | U16x2 | S16x2 | B8x16)
}

/// The type of a special register.
pub(in crate::lower) fn special_type(register: Special) -> Type {
    use Special::*;
    match register {
        Clock64 | Globaltimer | Gridid | CurrentGraphExec | Pm64(_) => Type::U64,
        IsExplicitCluster => Type::Pred,
        _ => Type::U32,
    }
}

impl<'m, 'a> Cx<'m, 'a> {
    /// A special register where a value of type `want` is read.
    pub(in crate::lower) fn check_special(&self, operand: &Operand, want: Type, wider: bool) -> Lowered<()> {
        use Special::*;
        let OperandKind::Special { register, component } = operand.kind else { return Ok(()) };
        let vector =
            matches!(register, Tid | Ntid | Ctaid | Nctaid | Clusterid | Nclusterid | ClusterCtaid | ClusterNctaid);
        let name = operand.span.text(self.module.source);
        if vector && component.is_none() {
            return self.error(operand.span, format!("`{name}` is a vector; one element is needed here"));
        }
        let have = special_type(register);
        if fits(have, want, wider) {
            return Ok(());
        }
        let message =
            format!("`{name}` has type `.{}`, where `{}` needs `.{}`", have.name(), self.mods.text, want.name());
        self.error(operand.span, message)
    }

    /// Operand `i`.
    pub(in crate::lower) fn operand(&self, i: usize) -> Lowered<&'m Operand> {
        match self.ops.get(i) {
            Some(operand) => Ok(operand),
            None => self.error(self.span, format!("`{}` needs more than {} operands", self.mods.text, self.ops.len())),
        }
    }

    /// Refuses other numbers of operands.
    pub(in crate::lower) fn expect(&self, n: usize) -> Lowered<()> {
        self.expect_between(n, n)
    }

    pub(in crate::lower) fn expect_between(&self, least: usize, most: usize) -> Lowered<()> {
        let n = self.ops.len();
        if (least..=most).contains(&n) {
            return Ok(());
        }
        let wanted = if least == most { least.to_string() } else { format!("{least} to {most}") };
        let s = if most == 1 { "" } else { "s" };
        self.error(self.span, format!("`{}` takes {wanted} operand{s}, here are {n}", self.mods.text))
    }

    pub(in crate::lower) fn register(&self, id: RegisterId) -> &'m Register<'a> {
        self.body.register(id)
    }

    /// The type of a register operand or of an element of it.
    pub(in crate::lower) fn register_type(&self, operand: &Operand) -> Option<Type> {
        match operand.kind {
            OperandKind::Register(id) | OperandKind::Element { register: id, .. } | OperandKind::Not(id) => {
                Some(self.register(id).ty)
            }
            _ => None,
        }
    }

    fn check(&self, id: RegisterId, want: Type, wider: bool, span: Span) -> Lowered<()> {
        let register = self.register(id);
        if fits(register.ty, want, wider) {
            return Ok(());
        }
        let message = format!(
            "`{}` has type `.{}`, where `{}` needs `.{}`",
            register.name,
            register.ty.name(),
            self.mods.text,
            want.name()
        );
        Err(Diagnostic::error(span, message).at(self.body.declaration(register), "declared here").into())
    }

    /// First slot and number of words of a register or of an element of a vector register.
    fn slots_of(&self, operand: &Operand, want: Type, wider: bool) -> Lowered<(u16, usize)> {
        let (id, component) = match operand.kind {
            OperandKind::Register(id) => (id, None),
            OperandKind::Element { register, component } => (register, Some(component)),
            _ => return self.error(operand.span, "a register is needed here"),
        };
        self.check(id, want, wider, operand.span)?;
        let register = self.register(id);
        let Some(&Home::Slots(first)) = self.homes.get(id.index()) else {
            return self.error(operand.span, format!("`{}` is a predicate", register.name));
        };
        let n = words(register.ty);
        let element = match component {
            None if register.vector > 1 => {
                return self
                    .error(operand.span, format!("`{}` is a vector; one element is needed here", register.name));
            }
            None | Some(Component::X) => 0,
            Some(Component::Y) => 1,
            Some(Component::Z) => 2,
            Some(Component::W) => 3,
            Some(_) => return unsupported("parts of registers in video instructions"),
        };
        if element > 0 && element >= usize::from(register.vector) {
            return self.error(operand.span, format!("`{}` has no such element", register.name));
        }
        Ok((first + (n * element) as u16, n))
    }

    /// Destination words of operand `i`; those of narrow types count in their low bits only.
    pub(in crate::lower) fn dst(&self, operand: &Operand, ty: Type) -> Lowered<Dst> {
        self.dst_wide(operand, ty, false)
    }

    /// The same for instructions that may write wider registers than their type.
    pub(in crate::lower) fn dst_wide(&self, operand: &Operand, ty: Type, wider: bool) -> Lowered<Dst> {
        let mut out = [None; 4];
        if operand.kind == OperandKind::Sink {
            return Ok(out);
        }
        let (first, n) = self.slots_of(operand, ty, wider)?;
        for (i, slot) in out.iter_mut().enumerate().take(n) {
            *slot = Some(Slot(first + i as u16));
        }
        Ok(out)
    }

    /// Destination predicate.
    pub(in crate::lower) fn pdst(&self, operand: &Operand) -> Lowered<Option<Pred>> {
        match operand.kind {
            OperandKind::Sink => Ok(None),
            OperandKind::Register(id) => match self.homes.get(id.index()) {
                Some(&Home::Pred(p)) => Ok(Some(p)),
                _ => self.check(id, Type::Pred, false, operand.span).map(|()| None),
            },
            _ => self.error(operand.span, "a predicate register is needed here"),
        }
    }

    /// Source predicate, possibly negated, or a constant.
    pub(in crate::lower) fn psrc(&self, operand: &Operand) -> Lowered<PredSrc> {
        let (id, negated) = match operand.kind {
            OperandKind::Register(id) => (id, false),
            OperandKind::Not(id) => (id, true),
            OperandKind::Integer(value) | OperandKind::Unsigned(value) => {
                return Ok(if value.get() != 0 { PredSrc::TRUE } else { PredSrc::FALSE });
            }
            _ => return self.error(operand.span, "a predicate is needed here"),
        };
        match self.homes.get(id.index()) {
            Some(&Home::Pred(p)) => Ok(PredSrc { pred: Some(p), negated }),
            _ => self.check(id, Type::Pred, false, operand.span).map(|()| PredSrc::TRUE),
        }
    }

    /// Source words of a value of type `ty`.
    pub(in crate::lower) fn src(&self, operand: &Operand, ty: Type) -> Lowered<Words> {
        self.src_wide(operand, ty, false)
    }

    /// The same for instructions that may read wider registers than their type.
    pub(in crate::lower) fn src_wide(&self, operand: &Operand, ty: Type, wider: bool) -> Lowered<Words> {
        let mut out = [Src::ZERO; 4];
        let value: u64 = match operand.kind {
            OperandKind::Register(_) | OperandKind::Element { .. } => {
                let (first, n) = self.slots_of(operand, ty, wider)?;
                for (i, src) in out.iter_mut().enumerate().take(n) {
                    *src = Src::slot(Slot(first + i as u16));
                }
                return Ok(out);
            }
            OperandKind::Integer(value) | OperandKind::Unsigned(value) => {
                self.check_integer(operand, ty)?;
                value.get()
            }
            OperandKind::F32(bits) => match ty {
                Type::F64 => f64::from(f32::from_bits(bits)).to_bits(),
                Type::F32 | Type::B32 => u64::from(bits),
                _ => {
                    return self
                        .error(operand.span, format!("a number of type `.f32` where `.{}` is needed", ty.name()));
                }
            },
            OperandKind::F64(bits) => match ty {
                Type::F32 => u64::from((f64::from_bits(bits.get()) as f32).to_bits()),
                Type::F64 | Type::B64 => bits.get(),
                _ => {
                    return self
                        .error(operand.span, format!("a number of type `.f64` where `.{}` is needed", ty.name()));
                }
            },
            OperandKind::WarpSize => {
                self.check_integer(operand, ty)?;
                self.module.warp_size.into()
            }
            OperandKind::Special { .. } => {
                let message = format!("`{}` does not read special registers; `mov` does", self.mods.text);
                return self.error(operand.span, message);
            }
            OperandKind::Sum { .. } => return unsupported("a register with an offset as an operand"),
            OperandKind::Negated { .. } => return unsupported("negated operands of video instructions"),
            OperandKind::Sink => return self.error(operand.span, "`_` has no value"),
            OperandKind::Invalid => return self.error(operand.span, "this operand could not be read"),
            _ => {
                return self
                    .error(operand.span, format!("a register or a constant of type `.{}` is needed here", ty.name()));
            }
        };
        let value = if ty.bits() < 64 { value & ((1u64 << ty.bits()) - 1) } else { value };
        out[0] = Src::imm(value as u32);
        out[1] = Src::imm((value >> 32) as u32);
        if ty.bits() > 64 && matches!(operand.kind, OperandKind::Integer(_)) {
            let sign = if value >> 63 == 1 { !0 } else { 0 };
            (out[2], out[3]) = (Src::imm(sign), Src::imm(sign));
        }
        Ok(out)
    }

    fn check_integer(&self, operand: &Operand, ty: Type) -> Lowered<()> {
        if is_float(ty) {
            return self.error(operand.span, "a floating-point number is needed here, not an integer");
        }
        Ok(())
    }

    /// One word of operand `i`.
    pub(in crate::lower) fn word(&self, i: usize, ty: Type) -> Lowered<Src> {
        Ok(self.src(self.operand(i)?, ty)?[0])
    }

    /// `word` with its bits above type `ty` made those of the number.
    pub(in crate::lower) fn extended(&mut self, word: Src, ty: Type) -> Src {
        let bits = ty.bits();
        if bits >= 32 {
            return word;
        }
        if let lanescope_ir::op::SrcKind::Imm(value) = word.kind {
            let spare = 32 - bits;
            let moved = value << spare;
            return Src::imm(if ty.is_signed() { (moved as i32 >> spare) as u32 } else { moved >> spare });
        }
        let to = self.temp();
        let from = Integer { bits: bits as u8, signed: ty.is_signed() };
        let f = ConvertFn::IntToInt { from, to: Integer { bits: 32, signed: ty.is_signed() }, saturate: false };
        self.apply(LaneFn::Convert(f), [Some(to), None], &[word]);
        Src::slot(to)
    }

    /// Members of `{a, b}`, or the operand itself.
    pub(in crate::lower) fn members<'s>(&self, operand: &'s Operand) -> &'s [Operand]
    where
        'm: 's,
    {
        match operand.kind {
            OperandKind::Vector(list) => self.body.list(list),
            _ => std::slice::from_ref(operand),
        }
    }

    /// Both members of `a|b`; the second is a sink if there is one only.
    pub(in crate::lower) fn pair(&self, operand: &'m Operand) -> (&'m Operand, Option<&'m Operand>) {
        if let OperandKind::Pair(list) = operand.kind
            && let [a, b] = self.body.list(list)
        {
            return (a, Some(b));
        }
        (operand, None)
    }
}
