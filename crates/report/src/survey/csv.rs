//! One line for each kernel.

use std::fmt::Write;

use lanescope_analysis::reconvergence::Class;

use super::{Classes, Kernel, Kind, Survey};

const FIXED: [&str; 10] = [
    "path",
    "arch",
    "kind",
    "name",
    "demangled",
    "instructions",
    "regions",
    "regions_endless",
    "tokens_unmatched",
    "error",
];
/// Sets of branches; the last one only if the uniformity analysis was asked.
const SETS: [&str; 5] = ["", "all_", "group_", "tests_", "unproved_"];

/// The survey as CSV (RFC 4180): fixed columns, branches by class, then a column for each opcode that occurs.
/// A file that could not be read has a line without a kernel.
pub fn csv(survey: &Survey) -> String {
    let kernels = || survey.files.iter().flat_map(|f| &f.kernels);
    let mut opcodes: Vec<&str> = kernels().flat_map(|k| k.opcodes.keys().map(|n| &**n)).collect();
    opcodes.sort_unstable();
    opcodes.dedup();
    let asked = kernels().any(|k| k.branches.unproved.is_some());
    let sets = if asked { &SETS[..] } else { &SETS[..SETS.len() - 1] };
    let mut out = FIXED.join(",");
    for set in sets {
        for class in Class::ALL {
            let _ = write!(out, ",{set}{}", class.name());
        }
    }
    for name in &opcodes {
        let _ = write!(out, ",{name}");
    }
    out.push_str("\r\n");
    for file in &survey.files {
        let arch = file.arch.as_deref().unwrap_or_default();
        if let Some(error) = &file.error {
            let middle = ",".repeat(FIXED.len() - 2);
            let tail = ",".repeat(sets.len() * Class::ALL.len() + opcodes.len());
            let _ = write!(out, "{},{}{middle}{}{tail}\r\n", quote(&file.path), quote(arch), quote(error));
        }
        for kernel in &file.kernels {
            line(&mut out, &file.path, arch, kernel, &opcodes, asked);
        }
    }
    out
}

fn line(out: &mut String, path: &str, arch: &str, k: &Kernel, opcodes: &[&str], asked: bool) {
    let kind = if k.kind == Kind::Kernel { "kernel" } else { "function" };
    let _ = write!(out, "{},{},{kind},{},{}", quote(path), quote(arch), quote(&k.name), quote(&k.demangled));
    let r = k.regions;
    let error = k.error.as_deref().unwrap_or_default();
    let _ = write!(out, ",{},{},{},{},{}", k.instructions, r.opened, r.endless, r.unmatched, quote(error));
    let b = &k.branches;
    let sets: [Classes; 4] = [b.diverging, b.all, b.group, b.tests];
    // A kernel that cannot be read was not judged either.
    let more = asked.then(|| b.unproved.unwrap_or_default());
    for set in sets.into_iter().chain(more) {
        for class in Class::ALL {
            let _ = write!(out, ",{}", set.get(class));
        }
    }
    for name in opcodes {
        let _ = write!(out, ",{}", k.opcodes.get(*name).copied().unwrap_or(0));
    }
    out.push_str("\r\n");
}

fn quote(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}
