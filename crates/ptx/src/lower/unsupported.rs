//! Instructions without a meaning here.

use lanescope_ir::Op;
use lanescope_ir::op::Unsupported;

use super::check::Errors;
use super::cx::Cx;
use super::fail::{self, Lowered};
use crate::diagnostic::Diagnostic;
use crate::span::Span;
use crate::table;
use crate::tree::{Directive, Module, Operand, OperandKind, Type, Version};

/// What kind of instruction it is, by its name.
pub(super) fn kind(name: &str) -> &'static str {
    match name {
        "mma" | "wmma" | "wgmma" | "tcgen05" | "ldmatrix" | "stmatrix" | "movmatrix" => "tensor core",
        "tex" | "tld4" | "txq" | "istypep" => "texture",
        "suld" | "sust" | "sured" | "suq" => "surface",
        "mbarrier" => "memory barrier object",
        "multimem" => "multicast memory",
        "tensormap" => "tensor map",
        "clusterlaunchcontrol" => "cluster launch control",
        _ if name.starts_with('v') && name.len() > 3 => "video instruction",
        _ => "no lane operation",
    }
}

/// The last version of PTX that the tables of this crate are complete for. What a text of a later one has more can be
/// right.
const LAST: Version = Version { major: 9, minor: 0 };

pub(super) fn is_later(module: &Module<'_>) -> bool {
    module.version.is_some_and(|version| version > LAST)
}

/// An instruction that the table does not have.
pub(super) fn unknown(c: &Cx<'_, '_>) -> Lowered<()> {
    if is_later(c.module) {
        return fail::unsupported("an instruction that is not known");
    }
    let name = c.mods.name;
    let span = Span::new(c.mods.span.start, c.mods.span.start.saturating_add(name.len() as u32));
    let mut error = Diagnostic::error(span, format!("there is no instruction `{name}`"));
    if let Some(near) = table::nearest_name(name) {
        error = error.note(format!("did you mean `{near}`?"));
    }
    Err(error.into())
}

/// Refuses directives that are not known: what they would change is not known either.
pub(super) fn directives(module: &Module<'_>, directives: &[Directive<'_>], errors: &mut Errors) {
    if is_later(module) {
        return;
    }
    for it in directives.iter().filter(|it| !matches!(it.name, ".pragma" | "@@")) {
        let span = Span::new(it.span.start, it.span.start.saturating_add(it.name.len() as u32));
        let mut error = Diagnostic::error(span, format!("there is no directive `{}` here", it.name));
        if let Some(near) = crate::parse::nearest_directive(it.name) {
            error = error.note(format!("did you mean `{near}`?"));
        }
        errors.add(error);
    }
}

/// Instructions that do nothing but write their first operand, so that it can be marked unknown instead.
fn only_writes(name: &str) -> bool {
    matches!(
        name,
        "mma"
            | "ldmatrix"
            | "movmatrix"
            | "tex"
            | "tld4"
            | "txq"
            | "suld"
            | "suq"
            | "istypep"
            | "cvt"
            | "slct"
            | "isspacep"
            | "fma"
            | "min"
            | "max"
    ) || (name.starts_with('v') && name != "vote")
}

/// Puts the instruction there as one that is refused if it is executed.
pub(super) fn describe(c: &mut Cx<'_, '_>, why: &'static str) {
    let (mut dst, mut pdst) = (Vec::new(), Vec::new());
    let pure = only_writes(c.mods.name);
    if pure && let Some(operand) = c.ops.first() {
        destinations(c, operand, &mut dst, &mut pdst, 0);
    }
    let name = c.mods.text.to_owned();
    c.emit(Op::Unsupported(Unsupported { name, why, dst, pdst, has_effects: !pure }));
}

fn destinations(
    c: &Cx<'_, '_>,
    operand: &Operand,
    dst: &mut Vec<lanescope_ir::Slot>,
    pdst: &mut Vec<lanescope_ir::Pred>,
    depth: u32,
) {
    match operand.kind {
        OperandKind::Vector(list) | OperandKind::Pair(list) | OperandKind::List(list) if depth < 4 => {
            for member in c.body.list(list) {
                destinations(c, member, dst, pdst, depth + 1);
            }
        }
        _ => match c.register_type(operand) {
            Some(Type::Pred) => pdst.extend(c.pdst(operand).ok().flatten()),
            Some(ty) => dst.extend(c.dst(operand, ty).ok().into_iter().flatten().flatten()),
            None => {}
        },
    }
}
