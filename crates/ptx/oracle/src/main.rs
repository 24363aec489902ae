//! Counts the instructions of each function with lanescope-ptx and with ptx-syntax and says where they differ.
//! A file that ptx-syntax cannot read says nothing.
//!
//! `cargo run -- FILE...`, in this folder.

use std::process::ExitCode;

use ptx_syntax::r#type::{FunctionBody, FunctionStatement, ModuleDirective};

fn main() -> ExitCode {
    let (mut equal, mut differ, mut unread) = (0, 0, 0);
    for path in std::env::args().skip(1) {
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => {
                eprintln!("{path}: {error}");
                return ExitCode::from(2);
            }
        };
        // Its lists and blocks recurse.
        let theirs = std::thread::scope(|scope| {
            let builder = std::thread::Builder::new().stack_size(256 << 20);
            let thread = builder.spawn_scoped(scope, || ptx_syntax::parse_ptx(&text).ok().map(|it| theirs(&it.directives)));
            thread.ok().and_then(|thread| thread.join().ok()).flatten()
        });
        let Some(theirs) = theirs else {
            unread += 1;
            continue;
        };
        let parsed = lanescope_ptx::parse(&text);
        let bodies = parsed.module.functions.iter().filter_map(|function| function.body.as_ref());
        let ours: Vec<usize> = bodies.map(|body| body.instructions.len()).collect();
        let (mut a, mut b) = (ours.clone(), theirs.clone());
        // A function that was declared earlier keeps the place of its declaration.
        a.sort_unstable();
        b.sort_unstable();
        if a == b && parsed.is_ok() {
            equal += 1;
        } else {
            differ += 1;
            println!("{path}: {ours:?} here, {theirs:?} there, {} diagnostics", parsed.diagnostics.len());
        }
    }
    println!("{equal} files equal, {differ} differ, {unread} not read by ptx-syntax");
    if differ == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn theirs(directives: &[ModuleDirective]) -> Vec<usize> {
    let mut counts = Vec::new();
    for directive in directives {
        let body = match directive {
            ModuleDirective::EntryFunction { directive, .. } => &directive.body,
            ModuleDirective::FuncFunction { directive, .. } => &directive.body,
            _ => continue,
        };
        if let Some(FunctionBody { statements, .. }) = body {
            counts.push(count(statements));
        }
    }
    counts
}

fn count(statements: &[FunctionStatement]) -> usize {
    let one = |statement: &FunctionStatement| match statement {
        FunctionStatement::Instruction { .. } => 1,
        FunctionStatement::Block { statements, .. } => count(statements),
        _ => 0,
    };
    statements.iter().map(one).sum()
}
