//! No text makes the parser panic, overflow its stack, or take more than time in proportion to its length.

use arbtest::arbtest;
use lanescope_ptx::tree::*;
use lanescope_ptx::{MAX_DIAGNOSTICS, parse};

const TEXTS: [&str; 7] = [
    include_str!("data/nvrtc-12.9-lines.ptx"),
    include_str!("syntax/operands.ptx"),
    include_str!("syntax/scopes.ptx"),
    include_str!("syntax/directives.ptx"),
    include_str!("syntax/calls.ptx"),
    include_str!("syntax/initializers.ptx"),
    include_str!("errors/statements.ptx"),
];

const WORDS: [&str; 48] = [
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "<",
    ">",
    ";",
    ",",
    ":",
    "@",
    "!",
    "|",
    "+",
    "-",
    "~",
    "?",
    "=",
    "%",
    ".",
    "\"",
    "/*",
    "*/",
    "//",
    "\n",
    "#",
    "\0",
    "é",
    "%r1",
    "%r<3>",
    "0x",
    "1e",
    "0f",
    "18446744073709551616",
    ".reg .b32 ",
    ".entry k() {",
    ".branchtargets",
    ".callprototype",
    ".section x {",
    ".global .b8 a[] = {",
    "L:",
    "call (",
    "$",
    "_",
    "::",
    ".loc 1 2 3",
    "@@",
];

/// Every id of the tree has what it names, and every span is text.
fn check(text: &str) {
    let parsed = parse(text);
    let module = &parsed.module;
    assert!(parsed.diagnostics.len() <= MAX_DIAGNOSTICS);
    for diagnostic in &parsed.diagnostics {
        let spans = std::iter::once(diagnostic.span).chain(diagnostic.notes.iter().filter_map(|note| note.span));
        for span in spans {
            assert!(text.get(span.range()).is_some(), "{diagnostic:?}");
        }
    }
    for function in &module.functions {
        let Some(body) = &function.body else { continue };
        let end = body.instructions.len() as u32;
        assert!(body.labels.iter().all(|label| label.position <= end));
        assert!(body.blocks.iter().all(|block| block.start <= block.end && block.end <= end));
        for instruction in &body.instructions {
            assert!(text.get(instruction.span.range()).is_some());
            assert!(instruction.location.is_none_or(|id| id.index() < body.locations.len()));
            assert!(instruction.guard.is_none_or(|guard| guard.register.index() < body.registers.len()));
            let _ = (module.opcode(instruction.opcode), body.call_of(instruction));
            for operand in body.operands_of(instruction) {
                check_operand(&parsed, function, body, operand.kind);
            }
        }
        for table in &body.tables {
            if let TableKind::Branch(labels) = &table.kind {
                assert!(labels.iter().flatten().all(|label| label.index() < body.labels.len()));
                assert!(!parsed.is_ok() || labels.iter().all(Option::is_some));
            }
        }
    }
}

fn check_operand(parsed: &lanescope_ptx::Parse<'_>, function: &Function<'_>, body: &Body<'_>, kind: OperandKind) {
    match kind {
        OperandKind::Register(id) | OperandKind::Not(id) | OperandKind::Element { register: id, .. } => {
            assert!(id.index() < body.registers.len());
        }
        OperandKind::Symbol { target, .. } => match target {
            Target::Global(id) => assert!(id.index() < parsed.module.variables.len()),
            Target::Function(id) => assert!(id.index() < parsed.module.functions.len()),
            Target::Local(id) => assert!(id.index() < body.variables.len()),
            Target::Label(id) => assert!(id.index() < body.labels.len()),
            Target::Table(id) => assert!(id.index() < body.tables.len()),
            Target::Parameter(at) => assert!((at as usize) < function.params.len()),
            Target::Return(at) => assert!((at as usize) < function.returns.len()),
            Target::Undefined => assert!(!parsed.is_ok(), "an unresolved name without an error"),
        },
        OperandKind::Invalid => assert!(!parsed.is_ok(), "an invalid operand without an error"),
        OperandKind::Address(id) => {
            let address = body.address(id);
            check_operand(parsed, function, body, address.base);
            for operand in body.list(address.rest) {
                check_operand(parsed, function, body, operand.kind);
            }
        }
        OperandKind::Vector(list) | OperandKind::List(list) | OperandKind::Pair(list) => {
            assert_eq!(body.list(list).len(), list.len as usize);
            for operand in body.list(list) {
                check_operand(parsed, function, body, operand.kind);
            }
        }
        _ => {}
    }
}

#[test]
fn damaged_texts() {
    arbtest(|source| {
        let mut text = String::from(*source.choose(&TEXTS)?);
        // A part is enough, and lets more rounds pass.
        let start = source.choose_index(text.len())?;
        let start = (0..=start).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.drain(..start);
        text.truncate((0..=text.len().min(3000)).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0));
        for _ in 0..source.int_in_range(0..=8)? {
            let at = source.choose_index(text.len() + 1)?;
            let at = (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
            if source.arbitrary()? {
                text.insert_str(at, source.choose(&WORDS)?);
            } else if at < text.len() {
                text.remove(at);
            }
        }
        check(&text);
        Ok(())
    })
    .budget_ms(2_000);
}

#[test]
fn words_in_any_order() {
    arbtest(|source| {
        let mut text = String::from(".entry k() { .reg .b32 %r<4>;");
        for _ in 0..source.int_in_range(0..=60)? {
            text.push_str(source.choose(&WORDS)?);
            if source.arbitrary()? {
                text.push(' ');
            }
        }
        check(&text);
        Ok(())
    })
    .budget_ms(2_000);
}

#[test]
fn deep_nesting() {
    let deep = 200_000;
    for (open, close) in [
        ("{", "}"),
        ("(", ")"),
        ("[", "]"),
        ("-", ""),
        ("1?", ":2"),
        ("{ .reg .b32 %r<2>; mov.u32 %r0, %r1; L: bra L;", "}"),
    ] {
        let inside = format!("{}1{}", open.repeat(deep), close.repeat(deep));
        check(&format!(
            ".entry k() {{ .reg .b32 %r; mov.b32 %r, {inside}; {inside} ret; }} .global .b32 a = {inside};"
        ));
        check(&inside);
    }
}

#[test]
fn long_texts() {
    let many = 50_000;
    let repeated = [
        ".entry k() { .reg .pred %p; ".to_owned() + &"@%p bra FAR; ".repeat(many) + "FAR: ret; }",
        ".entry k() { ".to_owned() + &"bra NOWHERE; ".repeat(many) + "}",
        ".entry k() { ".to_owned() + &"{ .reg .b32 %r<9>; mov.u32 %r1, %r2; bra OUT; } ".repeat(many) + "OUT: }",
        ".entry k() { .reg .b32 %r<4>; ".to_owned() + &"mov.u32 %r9, %r8; ".repeat(many) + "}",
        "@".repeat(many),
        "\"".repeat(many),
        "/* ".repeat(many),
        "# \n".repeat(many),
        ".global .b32 a[] = {".to_owned() + &"{".repeat(many),
        ".global .b8 a[] = {".to_owned() + &"1, ".repeat(many) + "2};",
        ".entry k() { foo {".to_owned() + &"a, ".repeat(many) + "b}; }",
        "a: ".repeat(many),
        ".entry k() { ".to_owned() + &"a /**/ /**/ ".repeat(many),
        ".loc\n".repeat(many),
        ".section x { ".to_owned() + &"( \n".repeat(many),
    ];
    for text in repeated {
        check(&text);
    }
    let functions: String = (0..20_000).map(|at| format!(".func f{at}() {{ call f{}; ret; }}\n", at + 1)).collect();
    check(&functions);
}

#[test]
fn sizes() {
    assert_eq!(size_of::<Operand>(), 20);
    assert!(size_of::<Instruction>() <= 32);
}
