//! Lost lane slots as a flame graph: collapsed stacks for other tools, or a picture.

use std::fmt::Write;

use inferno::flamegraph::{self, Options};
use lanescope_analysis::stacks::Stack;

/// One line a stack, frames from the root separated by semicolons, then the lane slots: what flame graph tools read.
pub fn collapsed(stacks: &[Stack]) -> String {
    let mut out = String::new();
    for stack in stacks {
        let frames: Vec<String> = stack.frames.iter().map(|f| frame(f)).collect();
        let _ = writeln!(out, "{} {}", frames.join(";"), stack.lanes);
    }
    out
}

/// A self-contained SVG.
///
/// # Errors
/// What the drawing says; nothing was lost, for example.
pub fn svg(stacks: &[Stack], kernel: &str) -> Result<Vec<u8>, String> {
    let lines = collapsed(stacks);
    if lines.is_empty() {
        return Err("no lane slot was lost: there is nothing to draw".into());
    }
    let mut options = Options::default();
    options.title = format!("Lane slots lost in {kernel}: by cause, then by the line that ran without them");
    options.count_name = "lane slots".into();
    options.name_type = "Place:".into();
    // The same launch gives the same file.
    options.hash = true;
    let mut out = Vec::new();
    flamegraph::from_lines(&mut options, lines.lines(), &mut out).map_err(|e| e.to_string())?;
    Ok(out)
}

/// A frame without what separates frames and lines.
fn frame(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c == ';' {
                ','
            } else if c.is_control() {
                ' '
            } else {
                c
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_picture() {
        let stacks = [
            Stack { frames: vec!["k".into(), "predicated EXIT at a;b.cu:3".into(), "a;b.cu:9\n".into()], lanes: 40 },
            Stack { frames: vec!["k".into(), "partial warp".into(), "<a.cu>:9".into()], lanes: 2 },
        ];
        assert_eq!(collapsed(&stacks), "k;predicated EXIT at a,b.cu:3;a,b.cu:9  40\nk;partial warp;<a.cu>:9 2\n");
        let picture = String::from_utf8(svg(&stacks, "k").unwrap()).unwrap();
        assert!(picture.contains("<svg") && picture.contains("&lt;a.cu&gt;:9"));
        assert_eq!(svg(&stacks, "k").unwrap(), picture.into_bytes());
        assert!(svg(&[], "k").is_err());
    }
}
