//! Reads PTX files and prints what is wrong with them: `cargo run -p lanescope-ptx --example check -- FILE...`
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use lanescope_ptx::{LineIndex, Severity, parse};

fn main() -> std::io::Result<()> {
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path)?;
        let text = String::from_utf8_lossy(&bytes);
        let parsed = parse(&text);
        let bodies = parsed.module.functions.iter().filter_map(|function| function.body.as_ref());
        let instructions: usize = bodies.map(|body| body.instructions.len()).sum();
        println!("{path}: {} functions, {instructions} instructions", parsed.module.functions.len());
        let lines = LineIndex::new(&text);
        for diagnostic in &parsed.diagnostics {
            let (line, column) = lines.position(diagnostic.span.start);
            let severity = if diagnostic.severity == Severity::Error { "error" } else { "warning" };
            println!("{path}:{line}:{column}: {severity}: {}", diagnostic.message);
            for note in &diagnostic.notes {
                println!("  {}", note.message);
            }
        }
        if parsed.suppressed > 0 {
            println!("{path}: {} more", parsed.suppressed);
        }
    }
    Ok(())
}
