//! The README shows what the program prints, and its first command works as written.

use std::path::Path;
use std::process::Command;

#[test]
fn the_readme_shows_real_output() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = std::fs::read_to_string(root.join("README.md")).expect("README.md");
    let (_, rest) = readme.split_once("<!-- output of: lanescope ").expect("a marked output");
    let (command, rest) = rest.split_once(" -->\n```text\n").expect("a block after the mark");
    let (shown, _) = rest.split_once("```").expect("the block ends");
    let quick = format!("cargo run --release -- {command}");
    assert!(readme.contains(&quick), "the first command is the one whose output is shown");
    let out = Command::new(env!("CARGO_BIN_EXE_lanescope"))
        .args(command.split(' '))
        .current_dir(&root)
        .output()
        .expect("the command starts");
    let printed = String::from_utf8_lossy(&out.stdout);
    assert!(printed.starts_with(shown), "README.md shows\n{shown}\nbut the program prints\n{printed}");
}
