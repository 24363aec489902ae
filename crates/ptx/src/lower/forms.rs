//! What many instructions have in common: which modifiers go together, where a result can be left out.

mod table;

use std::collections::HashMap;
use std::sync::LazyLock;

use self::table::{ROWS, Row, group};
use super::cx::Cx;
use super::fail::Lowered;
use crate::diagnostic::Diagnostic;
use crate::suggest;
use crate::tree::{Operand, OperandKind, Type};

/// A place for one modifier.
struct Place {
    words: Vec<&'static str>,
    needed: bool,
}

/// A row of the table, taken apart.
struct Form {
    types: Vec<Type>,
    /// For instructions without a type.
    untyped: bool,
    places: Vec<Place>,
}

static FORMS: LazyLock<HashMap<&'static str, Vec<Form>>> = LazyLock::new(|| {
    let mut forms: HashMap<&'static str, Vec<Form>> = HashMap::new();
    for row in ROWS {
        for name in row.names.split(' ') {
            forms.entry(name).or_default().push(form(row));
        }
    }
    forms
});

fn form(row: &'static Row) -> Form {
    let words = row.types.split(' ').flat_map(|word| table::types(word).split(' '));
    let places = row.places.split(' ').filter(|place| !place.is_empty()).map(|place| {
        let needed = !place.ends_with('?');
        let words = place.trim_end_matches('?').split('|').flat_map(|word| group(word).split('|')).collect();
        Place { words, needed }
    });
    Form { types: words.filter_map(Type::from_name).collect(), untyped: row.types == "-", places: places.collect() }
}

/// How well modifiers fit a form: the place that nothing fills, or the modifier that has no place.
enum Fit<'f, 'a> {
    Whole,
    Missing(&'f Place),
    Stray(&'a str),
}

impl Form {
    fn fit<'f, 'a>(&'f self, modifiers: &[&'a str]) -> Fit<'f, 'a> {
        let mut free: Vec<&Place> = self.places.iter().collect();
        for &modifier in modifiers {
            match free.iter().position(|place| place.words.contains(&modifier)) {
                Some(at) => drop(free.remove(at)),
                None => return Fit::Stray(modifier),
            }
        }
        free.into_iter().find(|place| place.needed).map_or(Fit::Whole, Fit::Missing)
    }
}

/// Refuses an instruction that breaks a rule of these.
pub(super) fn check(c: &Cx<'_, '_>) -> Lowered<()> {
    if let Some(first) = c.ops.first() {
        sinks(c, first)?;
    }
    modifiers(c)
}

fn modifiers(c: &Cx<'_, '_>) -> Lowered<()> {
    let name = c.mods.name;
    // These have forms that are told apart later, or none here.
    let asynchronous = matches!(name, "st" | "red") && (c.mods.has("async") || c.mods.has("bulk"));
    if asynchronous || c.mods.types().len() > 1 {
        return Ok(());
    }
    of(c, name, c.mods.types().first().copied())
}

/// Refuses what no form of an instruction and a type has.
pub(super) fn of(c: &Cx<'_, '_>, name: &str, ty: Option<Type>) -> Lowered<()> {
    let Some(forms) = FORMS.get(name) else { return Ok(()) };
    let of_type = |form: &&Form| ty.map_or(form.untyped, |ty| form.types.contains(&ty));
    let mut fitting = forms.iter().filter(of_type).peekable();
    if fitting.peek().is_none() {
        return match ty {
            Some(ty) if forms.iter().all(|form| form.untyped) => {
                Err(Diagnostic::error(c.mods.span, format!("`{name}` has no type, and here is `.{}`", ty.name()))
                    .into())
            }
            Some(ty) => c.mods.bad_type(ty),
            None => c.mods.ty().map(|_| ()),
        };
    }
    let modifiers: Vec<&str> = c.mods.left().collect();
    let mut why = None;
    let mut words: Vec<&str> = Vec::new();
    for form in fitting {
        words.extend(form.places.iter().flat_map(|place| &place.words));
        match form.fit(&modifiers) {
            Fit::Whole => return Ok(()),
            fit @ Fit::Missing(_) if !matches!(why, Some(Fit::Missing(_))) => why = Some(fit),
            fit => why = why.or(Some(fit)),
        }
    }
    let kind = ty.map_or(name.to_owned(), |ty| format!("{name}.{}", ty.name()));
    let error = match why {
        Some(Fit::Missing(place)) => {
            Diagnostic::error(c.mods.span, format!("`{kind}` needs {} here", choice(&place.words)))
        }
        Some(Fit::Stray(stray)) => {
            let error = Diagnostic::error(c.mods.span, format!("`.{stray}` does not apply to `{kind}` here"));
            match suggest::nearest(stray, words.into_iter()) {
                Some(near) => error.note(format!("did you mean `.{near}`?")),
                None => error,
            }
        }
        _ => return Ok(()),
    };
    Err(error.into())
}

/// `.a`, `.b` or `.c`
fn choice(words: &[&str]) -> String {
    match words {
        [one] => format!("`.{one}`"),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(|word| format!("`.{word}`")).collect();
            format!("{} or `.{last}`", first.join(", "))
        }
        [] => String::new(),
    }
}

/// `_` as a result, or in place of one.
fn sinks(c: &Cx<'_, '_>, first: &Operand) -> Lowered<()> {
    let sink = |operand: &Operand| operand.kind == OperandKind::Sink;
    let name = c.mods.name;
    match first.kind {
        OperandKind::Sink if matches!(name, "atom" | "setp" | "lop3" | "mbarrier" | "elect") => Ok(()),
        OperandKind::Sink => c.error(first.span, format!("`{name}` must have a register for its result")),
        OperandKind::Vector(list) if c.body.list(list).iter().all(sink) => {
            c.error(first.span, "at least one element must be kept")
        }
        OperandKind::Pair(list) => {
            let [a, b] = c.body.list(list) else { return Ok(()) };
            if sink(a) && sink(b) {
                return c.error(first.span, "one of the two results must be kept");
            }
            if sink(a) && !matches!(name, "setp" | "elect" | "lop3" | "match") {
                return c.error(a.span, format!("`{name}` must have a register for its result"));
            }
            if sink(b) && !matches!(name, "setp" | "shfl" | "match") {
                return c.error(b.span, format!("`{name}` must have a predicate for its second result"));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Instructions that only caches, clocks and other blocks notice, or nothing does here: their operands are looked at.
pub(super) fn nothing(c: &mut Cx<'_, '_>) -> Lowered<()> {
    let operands = match c.mods.name {
        "applypriority" | "discard" => 2,
        "prefetch" | "prefetchu" => 1,
        "fence" if c.mods.has("tensormap::generic") && c.mods.has("acquire") => 2,
        "membar" | "fence" | "griddepcontrol" => 0,
        _ => return Ok(()),
    };
    c.expect(operands)?;
    if operands > 0 && !matches!(c.operand(0)?.kind, OperandKind::Address(_)) {
        return c.error(c.operand(0)?.span, "an address in brackets is needed here");
    }
    if operands == 2 && c.operand(1)?.kind.integer() != Some(128) {
        return c.error(c.operand(1)?.span, "the size must be 128");
    }
    Ok(())
}

/// How many bits a bit field can be told in.
const FIELD: std::ops::RangeInclusive<u64> = 0..=255;

/// Refuses a constant position or length that ptxas does.
pub(super) fn field(c: &Cx<'_, '_>, i: usize) -> Lowered<()> {
    let operand = c.operand(i)?;
    match operand.kind.integer() {
        Some(value) if !FIELD.contains(&value) => c.error(operand.span, "a position or a length is at most 255"),
        _ => Ok(()),
    }
}
