//! What a kernel's `printf` printed.

use std::fmt::Write;

use serde::Serialize;

/// One call by one thread.
#[derive(Clone, Debug, Serialize)]
pub struct Printed<'a> {
    /// The block.
    pub block: [u32; 3],
    /// The thread in it.
    pub thread: [u32; 3],
    /// The text.
    pub text: &'a str,
}

/// A launch's JSON value with what it printed.
#[derive(Clone, Debug, Serialize)]
pub struct WithPrinted<'a, T> {
    /// Everything else.
    #[serde(flatten)]
    pub profile: T,
    /// What the launch costs on a GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roofline: Option<crate::roofline::Json<'a>>,
    /// Calls in order of the blocks.
    pub printf: &'a [Printed<'a>],
    /// Calls whose text did not fit into the buffer.
    pub printf_lost: u64,
}

/// The section of a report; empty if nothing was printed.
pub fn text(calls: &[Printed<'_>], lost: u64) -> String {
    let mut out = String::new();
    if calls.is_empty() && lost == 0 {
        return out;
    }
    out.push_str("\nPrinted by the kernel, block after block (hardware orders it otherwise)\n");
    for call in calls {
        // A kernel's text must not steer the terminal.
        out.extend(call.text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')));
    }
    if !out.ends_with('\n') {
        out.push('\n');
    }
    if lost > 0 {
        let s = if lost == 1 { "" } else { "s" };
        let _ = writeln!(out, "({lost} more call{s} of printf: their text did not fit into the buffer of 1 MiB)");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_of_its_own() {
        assert_eq!(text(&[], 0), "");
        let call = |text| Printed { block: [0; 3], thread: [0; 3], text };
        let out = text(&[call("a\x1b[2J"), call("b\n"), call("c")], 2);
        let (head, rest) = out.trim_start().split_once('\n').unwrap();
        assert!(head.starts_with("Printed by the kernel"));
        assert_eq!(rest, "a[2Jb\nc\n(2 more calls of printf: their text did not fit into the buffer of 1 MiB)\n");
    }
}
