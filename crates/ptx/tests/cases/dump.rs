//! The tree as text: names resolved, lists laid out, one line for each thing.

use std::fmt::Write;

use lanescope_ptx::tree::*;

/// Everything.
pub(crate) fn module(module: &Module<'_>) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "version {:?} targets {:?} address_size {:?} pragmas {:?}",
        module.version.map(|it| (it.major, it.minor)),
        module.targets,
        module.address_size,
        module.pragmas
    );
    for file in &module.files {
        let _ = writeln!(out, "file {} {:?} {:?} {:?}", file.index, file.path, file.timestamp, file.size);
    }
    for item in &module.items {
        let _ = match *item {
            Item::Function(id) => writeln!(out, "item function {}", module.functions[id.index()].name),
            Item::Variable(id) => writeln!(out, "item variable {}", module.variables[id.index()].name),
            Item::Section(at) => writeln!(out, "item section {}", module.sections[at as usize].name),
            Item::Alias(at) => writeln!(out, "item alias {}", module.aliases[at as usize].name),
            Item::Directive(at) => writeln!(out, "item directive {:?}", module.directives[at as usize].text),
        };
    }
    for it in &module.variables {
        variable(&mut out, module, "variable", it);
    }
    for alias in &module.aliases {
        let _ = writeln!(out, "alias {} = {} {:?}", alias.name, alias.target, alias.function);
    }
    for section in &module.sections {
        let _ = writeln!(out, "section {} {:?}", section.name, section.data);
    }
    for it in &module.functions {
        function(&mut out, module, it);
    }
    out
}

/// What survived of a damaged text.
pub(crate) fn summary(module: &Module<'_>) -> String {
    let mut out = String::new();
    for it in &module.functions {
        let Some(body) = &it.body else {
            let _ = writeln!(out, "tree: {} has no body", it.name);
            continue;
        };
        let opcodes: Vec<_> = body.instructions.iter().map(|it| module.opcode(it.opcode).text).collect();
        let labels: Vec<_> = body.labels.iter().map(|it| it.name).collect();
        let _ = writeln!(out, "tree: {} has {opcodes:?}, labels {labels:?}", it.name);
    }
    out
}

fn function(out: &mut String, module: &Module<'_>, it: &Function<'_>) {
    let _ = writeln!(out, "\n{:?} {:?} {}", it.linkage, it.kind, it.name);
    if it.tuning != Tuning::default() {
        let text = format!("{:?}", it.tuning);
        let set: Vec<_> = text
            .trim_end_matches(" }")
            .split(", ")
            .filter(|it| !it.ends_with("None") && !it.ends_with("false"))
            .collect();
        let _ = writeln!(out, "  {}", set.join(", "));
    }
    attributes(out, &it.attributes);
    for directive in &it.directives {
        let _ = writeln!(out, "  directive {:?}", directive.text);
    }
    for (what, list) in [("  return", &it.returns), ("  param", &it.params)] {
        for it in list {
            variable(out, module, what, it);
        }
    }
    let Some(body) = &it.body else { return };
    for (at, it) in body.registers.iter().enumerate() {
        let _ = writeln!(out, "  r{at} {} {}x{}", it.name, it.ty.name(), it.vector);
    }
    for it in &body.variables {
        variable(out, module, "  local", it);
    }
    for it in &body.tables {
        let _ = match &it.kind {
            TableKind::Branch(labels) => {
                let names: Vec<_> = labels.iter().map(|it| it.map_or("?", |it| body.label(it).name)).collect();
                writeln!(out, "  table {} branch {names:?}", it.name)
            }
            TableKind::Call(functions) => {
                let names: Vec<_> =
                    functions.iter().map(|it| it.map_or("?", |it| module.functions[it.index()].name)).collect();
                writeln!(out, "  table {} call {names:?}", it.name)
            }
            TableKind::Prototype(it_) => {
                let _ = writeln!(out, "  table {} prototype noreturn {}", it.name, it_.tuning.noreturn);
                for (what, list) in [("    return", &it_.returns), ("    param", &it_.params)] {
                    for it in list {
                        variable(out, module, what, it);
                    }
                }
                Ok(())
            }
        };
    }
    for it in &body.pragmas {
        let _ = writeln!(out, "  pragma {:?} before {}", it.texts, it.position);
    }
    for it in &body.directives {
        let _ = writeln!(out, "  directive {:?} before {}", it.text, it.position);
    }
    for it in &body.blocks {
        let _ = writeln!(out, "  block {}..{}", it.start, it.end);
    }
    for it in &body.locations {
        let name =
            it.function().and_then(|(label, offset)| module.debug_string(label, offset)).map(String::from_utf8_lossy);
        let _ = writeln!(out, "  loc {:?} function {:?} {name:?} at {:?}", it.point, it.function(), it.inlined_at());
    }
    for position in 0..=body.instructions.len() {
        for it in body.labels.iter().filter(|it| it.position as usize == position) {
            let _ = writeln!(out, "  {}:", it.name);
        }
        let Some(it) = body.instructions.get(position) else { break };
        let opcode = module.opcode(it.opcode);
        let guard =
            it.guard.map_or(String::new(), |it| format!("@{}r{} ", if it.negated { "!" } else { "" }, it.register.0));
        let operands: Vec<_> = body.operands_of(it).iter().map(|it| operand(module, body, &it.kind)).collect();
        let location = it.location.map_or(String::new(), |it| format!("  loc {}", it.index()));
        let name = std::iter::once(opcode.name).chain(opcode.modifiers.iter().copied()).collect::<Vec<_>>().join(".");
        let _ = writeln!(out, "    {position} {guard}{name} {}{location}", operands.join(", "));
        if opcode.name == "call" {
            let call = body.call_of(it).expect("a call has the parts of one");
            let (results, arguments) = (call.results.len(), call.arguments.len());
            let _ = writeln!(
                out,
                "      call with {results} results, {arguments} arguments, table {:?}",
                call.table.map(|it| it.name)
            );
        }
    }
}

fn attributes(out: &mut String, list: &[Attribute<'_>]) {
    for it in list {
        let _ = writeln!(out, "    attribute {} {:?}", it.name, it.values);
    }
}

fn variable(out: &mut String, module: &Module<'_>, what: &str, it: &Variable<'_>) {
    let _ =
        write!(out, "{what} {} {:?} {:?} {}x{} {:?}", it.name, it.linkage, it.space, it.ty.name(), it.vector, it.dims);
    let _ = write!(out, " size {:?} align {}", it.size(), it.alignment());
    for text in [
        it.bank.map(|it| format!(" bank {it}")),
        it.pointer.map(|it| format!(" {it:?}")),
        it.register.map(|it| format!(" {it:?}")),
    ] {
        out.push_str(&text.unwrap_or_default());
    }
    out.push('\n');
    attributes(out, &it.attributes);
    let Some(initializer) = &it.initializer else { return };
    for piece in &initializer.pieces {
        let bytes: String = piece.bytes.iter().map(|byte| format!(" {byte:02x}")).collect();
        let _ = writeln!(out, "    at {}:{bytes}", piece.offset);
    }
    for it in &initializer.relocations {
        let target = match it.target {
            Some(RelocationTarget::Variable(id)) => module.variables[id.index()].name,
            Some(RelocationTarget::Function(id)) => module.functions[id.index()].name,
            None => "?",
        };
        let _ = writeln!(
            out,
            "    at {}: {} bytes of &{target}{:+} generic {} mask {:x?}",
            it.offset, it.width, it.addend, it.generic, it.mask
        );
    }
    for (field, value) in &initializer.fields {
        let _ = writeln!(out, "    field {field} = {value}");
    }
}

fn list(module: &Module<'_>, body: &Body<'_>, list: OperandList) -> String {
    body.list(list).iter().map(|it| operand(module, body, &it.kind)).collect::<Vec<_>>().join(", ")
}

fn operand(module: &Module<'_>, body: &Body<'_>, kind: &OperandKind) -> String {
    match *kind {
        OperandKind::Register(it) => format!("r{}", it.0),
        OperandKind::Element { register, component } => format!("r{}.{component:?}", register.0),
        OperandKind::Not(it) => format!("!r{}", it.0),
        OperandKind::Special { register, component: None } => format!("{register:?}"),
        OperandKind::Special { register, component: Some(part) } => format!("{register:?}.{part:?}"),
        OperandKind::Negated { register, component: None } => format!("-r{}", register.0),
        OperandKind::Negated { register, component: Some(part) } => format!("-r{}.{part:?}", register.0),
        OperandKind::Sum { register, offset } => format!("r{}{offset:+}", register.0),
        OperandKind::Sink => "_".to_owned(),
        OperandKind::Integer(value) => (value.get() as i64).to_string(),
        OperandKind::Unsigned(value) => format!("{}u", value.get() as i64),
        OperandKind::F32(bits) => format!("f32:{bits:08x}"),
        OperandKind::F64(bits) => format!("f64:{:016x}", bits.get()),
        OperandKind::WarpSize => "WARP_SZ".to_owned(),
        OperandKind::Symbol { target, offset } => {
            let name = match target {
                Target::Global(it) => module.variables[it.index()].name.to_owned(),
                Target::Local(it) => format!("local {}", body.variable(it).name),
                Target::Parameter(it) => format!("param {it}"),
                Target::Return(it) => format!("return {it}"),
                Target::Function(it) => format!("function {}", module.functions[it.index()].name),
                Target::Label(it) => format!("label {} at {}", body.label(it).name, body.label(it).position),
                Target::Table(it) => format!("table {}", body.tables[it.index()].name),
                Target::Undefined => "undefined".to_owned(),
            };
            if offset == 0 { format!("<{name}>") } else { format!("<{name}>{offset:+}") }
        }
        OperandKind::Address(id) => {
            let address = body.address(id);
            let rest = list(module, body, address.rest);
            let comma = if rest.is_empty() { "" } else { ", " };
            let index = address.index.map_or(String::new(), |it| format!("+{}*r{}", it.scale, it.register.0));
            format!("[{}{index}{:+}{comma}{rest}]", operand(module, body, &address.base), address.offset)
        }
        OperandKind::Vector(it) => format!("{{{}}}", list(module, body, it)),
        OperandKind::List(it) => format!("({})", list(module, body, it)),
        OperandKind::Pair(it) => {
            body.list(it).iter().map(|it| operand(module, body, &it.kind)).collect::<Vec<_>>().join(" | ")
        }
        OperandKind::Invalid => "invalid".to_owned(),
    }
}
