//! The tree as PTX text again.
//!
//! [`module()`] writes what [`parse()`](crate::parse()) reads to the same tree, spans and the tables of names apart:
//! constants are folded, elements of arrays are addresses, initial values are laid out. Names that several blocks
//! share stay apart, because everything is written in the order of its spans. So the tree must be one that was read, and
//! read without diagnostics: an unknown directive is written as it stood, but on a line of its own, and what could not be
//! read is written as `?`.

mod body;
mod data;
mod operand;

use std::fmt::{self, Write};

use crate::tree::{Attribute, Function, FunctionKind, Item, Linkage, Module, Tuning};

/// A whole module.
pub fn module(module: &Module<'_>) -> String {
    let mut out = String::with_capacity(module.source.len());
    // Writing to a `String` does not fail.
    let _ = write_module(&mut out, module);
    out
}

fn write_module(out: &mut String, module: &Module<'_>) -> fmt::Result {
    if let Some(version) = module.version {
        writeln!(out, ".version {}.{}", version.major, version.minor)?;
    }
    if !module.targets.is_empty() {
        writeln!(out, ".target {}", module.targets.join(", "))?;
    }
    if let Some(size) = module.address_size {
        writeln!(out, ".address_size {size}")?;
    }
    for text in &module.pragmas {
        writeln!(out, ".pragma \"{text}\";")?;
    }
    for file in &module.files {
        write!(out, ".file {} \"{}\"", file.index, file.path)?;
        for number in file.timestamp.iter().chain(&file.size) {
            write!(out, ", {number}")?;
        }
        out.push('\n');
    }
    // A function that is declared and defined is two items: the last of them has the body.
    let mut left = vec![0u32; module.functions.len()];
    for item in &module.items {
        if let Item::Function(id) = *item
            && let Some(left) = left.get_mut(id.index())
        {
            *left += 1;
        }
    }
    for item in &module.items {
        match *item {
            Item::Variable(id) => {
                if let Some(variable) = module.variables.get(id.index()) {
                    data::variable(out, variable)?;
                    out.push_str(";\n");
                }
            }
            Item::Section(at) => {
                if let Some(section) = module.sections.get(at as usize) {
                    data::section(out, section)?;
                }
            }
            Item::Alias(at) => {
                if let Some(alias) = module.aliases.get(at as usize) {
                    writeln!(out, ".alias {}, {};", alias.name, alias.target)?;
                }
            }
            Item::Directive(at) => {
                if let Some(directive) = module.directives.get(at as usize) {
                    out.push_str(directive.text);
                    out.push('\n');
                }
            }
            Item::Function(id) => {
                let Some(function) = module.functions.get(id.index()) else { continue };
                head(out, function)?;
                left[id.index()] -= 1;
                match &function.body {
                    Some(text) if left[id.index()] == 0 => body::body(out, module, function, text)?,
                    _ => out.push_str(";\n"),
                }
            }
        }
    }
    Ok(())
}

fn linkage(linkage: Linkage) -> &'static str {
    match linkage {
        Linkage::Internal => "",
        Linkage::Visible => ".visible ",
        Linkage::Extern => ".extern ",
        Linkage::Weak => ".weak ",
        Linkage::Common => ".common ",
    }
}

fn attributes(out: &mut String, attributes: &[Attribute<'_>]) -> fmt::Result {
    if attributes.is_empty() {
        return Ok(());
    }
    out.push_str(".attribute(");
    for (at, attribute) in attributes.iter().enumerate() {
        write!(out, "{}.{}", if at > 0 { ", " } else { "" }, attribute.name)?;
        if !attribute.values.is_empty() {
            let values: Vec<String> = attribute.values.iter().map(u64::to_string).collect();
            write!(out, "({})", values.join(", "))?;
        }
    }
    out.push_str(") ");
    Ok(())
}

fn head(out: &mut String, function: &Function<'_>) -> fmt::Result {
    out.push_str(linkage(function.linkage));
    out.push_str(match function.kind {
        FunctionKind::Entry => ".entry ",
        FunctionKind::Func => ".func ",
    });
    attributes(out, &function.attributes)?;
    if !function.returns.is_empty() {
        data::parameters(out, &function.returns)?;
        out.push(' ');
    }
    out.push_str(function.name);
    data::parameters(out, &function.params)?;
    out.push('\n');
    tuning(out, &function.tuning)?;
    for directive in &function.directives {
        out.push_str(directive.text);
        out.push('\n');
    }
    Ok(())
}

fn tuning(out: &mut String, tuning: &Tuning) -> fmt::Result {
    let Tuning {
        maxntid,
        reqntid,
        reqnctapercluster,
        minnctapersm,
        maxnctapersm,
        maxnreg,
        maxclusterrank,
        abi_preserve,
        abi_preserve_control,
        noreturn,
        explicitcluster,
        blocksareclusters,
        local_maxnreg,
    } = *tuning;
    for (name, value) in [("maxntid", maxntid), ("reqntid", reqntid), ("reqnctapercluster", reqnctapercluster)] {
        if let Some([x, y, z]) = value {
            writeln!(out, ".{name} {x}, {y}, {z}")?;
        }
    }
    for (name, value) in [
        ("minnctapersm", minnctapersm),
        ("maxnctapersm", maxnctapersm),
        ("maxnreg", maxnreg),
        ("maxclusterrank", maxclusterrank),
        ("abi_preserve", abi_preserve),
        ("abi_preserve_control", abi_preserve_control),
        ("local_maxnreg", local_maxnreg),
    ] {
        if let Some(value) = value {
            writeln!(out, ".{name} {value}")?;
        }
    }
    for (name, set) in
        [("noreturn", noreturn), ("explicitcluster", explicitcluster), ("blocksareclusters", blocksareclusters)]
    {
        if set {
            writeln!(out, ".{name}")?;
        }
    }
    Ok(())
}
