//! What stands between the braces of a function: everything in the order of its places in the text.

use std::fmt::{self, Write};

use super::operand::Place;
use super::{data, tuning};
use crate::tree::{Body, Function, Instruction, Location, Module, Prototype, Register, SourcePoint, Table, TableKind};

/// One thing of a body, by its index.
#[derive(Clone, Copy)]
enum Event {
    Open,
    Close,
    Register(usize),
    Variable(usize),
    Label(usize),
    Table(usize),
    Location(usize),
    Pragma(usize),
    Directive(usize),
    Instruction(usize),
}

/// The body with its braces.
pub(super) fn body(out: &mut String, module: &Module<'_>, function: &Function<'_>, body: &Body<'_>) -> fmt::Result {
    let place = Place { module, function, body };
    out.push_str("{\n");
    let events = events(body);
    for (at, &(_, event)) in events.iter().enumerate() {
        match event {
            Event::Open => out.push_str("{\n"),
            Event::Close => out.push_str("}\n"),
            Event::Register(i) => {
                let before = at.checked_sub(1).and_then(|at| events.get(at));
                let first = !matches!(before, Some((_, Event::Register(j))) if same(body, i, *j));
                register(out, &body.registers[i], first)?;
                let after = events.get(at + 1);
                let last = !matches!(after, Some((_, Event::Register(j))) if same(body, i, *j));
                if last {
                    out.push_str(";\n");
                }
            }
            Event::Variable(i) => {
                data::variable(out, &body.variables[i])?;
                out.push_str(";\n");
            }
            Event::Label(i) => writeln!(out, "{}:", body.labels[i].name)?,
            Event::Table(i) => table(out, place, &body.tables[i])?,
            Event::Location(i) => location(out, &body.locations[i])?,
            Event::Pragma(i) => writeln!(out, ".pragma \"{}\";", body.pragmas[i].texts.join("\", \""))?,
            Event::Directive(i) => {
                out.push_str(body.directives[i].text);
                out.push('\n');
            }
            Event::Instruction(i) => instruction(out, place, &body.instructions[i])?,
        }
    }
    out.push_str("}\n");
    Ok(())
}

/// Whether one declaration can have two registers that stand next to each other.
fn same(body: &Body<'_>, a: usize, b: usize) -> bool {
    let (a, b) = (&body.registers[a], &body.registers[b]);
    (a.ty, a.vector) == (b.ty, b.vector)
}

fn events(body: &Body<'_>) -> Vec<(u32, Event)> {
    let mut events = Vec::with_capacity(body.instructions.len() + body.registers.len() + body.labels.len());
    // Those of parameters are declared in the head.
    let inside = |(_, register): &(usize, &Register<'_>)| body.declaration(register).start >= body.span.start;
    let registers = body.registers.iter().enumerate().filter(inside);
    events.extend(registers.map(|(i, it)| (body.declaration(it).start, Event::Register(i))));
    for block in &body.blocks {
        events.push((block.span.start, Event::Open));
        events.push((block.span.end.saturating_sub(1), Event::Close));
    }
    events.extend(body.variables.iter().enumerate().map(|(i, it)| (it.span.start, Event::Variable(i))));
    events.extend(body.labels.iter().enumerate().map(|(i, it)| (it.span.start, Event::Label(i))));
    events.extend(body.tables.iter().enumerate().map(|(i, it)| (it.span.start, Event::Table(i))));
    events.extend(body.locations.iter().enumerate().map(|(i, it)| (it.span.start, Event::Location(i))));
    events.extend(body.pragmas.iter().enumerate().map(|(i, it)| (it.span.start, Event::Pragma(i))));
    events.extend(body.directives.iter().enumerate().map(|(i, it)| (it.span.start, Event::Directive(i))));
    events.extend(body.instructions.iter().enumerate().map(|(i, it)| (it.span.start, Event::Instruction(i))));
    events.sort_by_key(|event| event.0);
    events
}

fn register(out: &mut String, it: &Register<'_>, first: bool) -> fmt::Result {
    if !first {
        return write!(out, ", {}", it.name);
    }
    out.push_str(".reg ");
    if it.vector > 1 {
        write!(out, ".v{} ", it.vector)?;
    }
    write!(out, ".{} {}", it.ty.name(), it.name)
}

fn instruction(out: &mut String, place: Place<'_>, it: &Instruction) -> fmt::Result {
    if let Some(guard) = it.guard {
        write!(out, "@{}{} ", if guard.negated { "!" } else { "" }, place.register(guard.register))?;
    }
    if let Some(opcode) = place.module.opcodes.get(it.opcode.index()) {
        out.push_str(opcode.name);
        for modifier in &opcode.modifiers {
            write!(out, ".{modifier}")?;
        }
    }
    if it.operands.len > 0 {
        out.push(' ');
    }
    place.list(out, it.operands, ", ")?;
    out.push_str(";\n");
    Ok(())
}

fn location(out: &mut String, it: &Location<'_>) -> fmt::Result {
    let point = |SourcePoint { file, line, column }| format!("{file} {line} {column}");
    write!(out, ".loc {}", point(it.point))?;
    if let Some((label, offset)) = it.function() {
        write!(out, ", function_name {label}")?;
        if offset != 0 {
            write!(out, "+{offset}")?;
        }
    }
    if let Some(at) = it.inlined_at() {
        write!(out, ", inlined_at {}", point(at))?;
    }
    out.push('\n');
    Ok(())
}

fn table(out: &mut String, place: Place<'_>, it: &Table<'_>) -> fmt::Result {
    write!(out, "{}: ", it.name)?;
    match &it.kind {
        TableKind::Branch(labels) => {
            let names = labels.iter().map(|id| id.and_then(|id| place.body.labels.get(id.index())).map(|it| it.name));
            write!(out, ".branchtargets {}", names.map(|it| it.unwrap_or("?")).collect::<Vec<_>>().join(", "))?;
        }
        TableKind::Call(functions) => {
            let functions = functions.iter().map(|id| id.and_then(|id| place.module.functions.get(id.index())));
            let names = functions.map(|it| it.map_or("?", |it| it.name));
            write!(out, ".calltargets {}", names.collect::<Vec<_>>().join(", "))?;
        }
        TableKind::Prototype(Prototype { returns, params, tuning: extra }) => {
            out.push_str(".callprototype ");
            if !returns.is_empty() {
                data::parameters(out, returns)?;
                out.push(' ');
            }
            out.push_str("_ ");
            data::parameters(out, params)?;
            out.push('\n');
            tuning(out, extra)?;
        }
    }
    out.push_str(";\n");
    Ok(())
}
