//! Lines that a change adds, from a unified diff.
//!
//! Only the new side counts: a finding is on a changed line if its place, or the line of a step of its witness, was
//! added by the diff. What `diff -u`, `git diff` and `git format-patch` print is read; text around the files' parts (a
//! mail's header, `Only in ...`) is passed over, but a hunk whose lines do not add up is an error with its line.

use std::collections::{BTreeMap, BTreeSet};

/// Why a diff cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DiffError {
    /// It holds no file at all.
    #[error("{path}: no file is changed in it; a unified diff is expected, as `git diff` or `diff -u` prints it")]
    NoDiff {
        /// The diff.
        path: String,
    },
    /// A combined diff of a merge.
    #[error("{path}:{line}: a combined diff (of a merge) has no single new side; give a diff against one parent")]
    Combined {
        /// The diff.
        path: String,
        /// Line in it.
        line: usize,
    },
    /// A hunk's head that cannot be read.
    #[error("{path}:{line}: expected `@@ -LINE,COUNT +LINE,COUNT @@`, found `{found}`")]
    BadHunk {
        /// The diff.
        path: String,
        /// Line in it.
        line: usize,
        /// What is there.
        found: String,
    },
    /// A hunk before any file is named.
    #[error("{path}:{line}: a hunk before any `+++` line that names its file")]
    NoFile {
        /// The diff.
        path: String,
        /// Line in it.
        line: usize,
    },
    /// A line in a hunk that is none.
    #[error("{path}:{line}: expected a line that starts with ` `, `+` or `-`, found `{found}`")]
    BadLine {
        /// The diff.
        path: String,
        /// Line in it.
        line: usize,
        /// What is there.
        found: String,
    },
    /// The text ends inside a hunk.
    #[error("{path}:{line}: the hunk that starts here lacks {missing} lines of its new side")]
    Cut {
        /// The diff.
        path: String,
        /// Line in it where the hunk starts.
        line: usize,
        /// Lines that are missing.
        missing: u64,
    },
}

/// Added lines, by file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Paths as the diff has them, without `b/`; components in order.
    files: BTreeMap<Vec<String>, BTreeSet<u32>>,
}

/// A hunk that is being read.
struct Hunk {
    at: usize,
    old: u64,
    new: u64,
    line: u64,
}

impl Changes {
    /// Reads a diff. `path` is for messages.
    pub fn parse(path: &str, text: &str) -> Result<Changes, DiffError> {
        let mut changes = Changes::default();
        let mut file: Option<Option<Vec<String>>> = None;
        let mut hunk: Option<Hunk> = None;
        // `seen`: something that only a diff has, though it may change no line of a file that is left.
        let (mut old_is_named, mut seen) = (false, false);
        // A byte-order mark before the first line is none of it.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let last = text.bytes().filter(|&b| b == b'\n').count() + 1;
        for (at, raw) in (1..).zip(text.split('\n')) {
            let line = raw.strip_suffix('\r').unwrap_or(raw);
            if let Some(h) = hunk.as_mut().filter(|h| h.old + h.new > 0) {
                match line.as_bytes().first() {
                    Some(b'+') if h.new > 0 => {
                        if let (Some(Some(name)), Ok(n)) = (&file, u32::try_from(h.line)) {
                            changes.files.entry(name.clone()).or_default().insert(n);
                        }
                        h.new -= 1;
                        h.line = h.line.saturating_add(1);
                    }
                    Some(b'-') if h.old > 0 => h.old -= 1,
                    // Mailers strip the blank of an empty context line.
                    Some(b' ') | None if h.old > 0 && h.new > 0 => {
                        if raw.is_empty() && at == last {
                            break;
                        }
                        h.old -= 1;
                        h.new -= 1;
                        h.line = h.line.saturating_add(1);
                    }
                    // `\ No newline at end of file`, in any language.
                    Some(b'\\') => {}
                    _ => return Err(DiffError::BadLine { path: path.into(), line: at, found: shorten(line) }),
                }
                continue;
            }
            if line.starts_with("@@@") || line.starts_with("diff --cc ") || line.starts_with("diff --combined ") {
                return Err(DiffError::Combined { path: path.into(), line: at });
            }
            if line.starts_with("@@") {
                if file.is_none() {
                    return Err(DiffError::NoFile { path: path.into(), line: at });
                }
                let bad = || DiffError::BadHunk { path: path.into(), line: at, found: shorten(line) };
                hunk = Some(head(line, at).ok_or_else(bad)?);
            } else if line.starts_with("--- ") {
                (old_is_named, hunk) = (true, None);
            } else if let Some(name) = line.strip_prefix("+++ ").filter(|_| old_is_named) {
                (old_is_named, hunk, seen) = (false, None, true);
                let name = new_name(name);
                if let Some(name) = &name {
                    changes.files.entry(name.clone()).or_default();
                }
                file = Some(name);
            } else if let Some(name) = line.strip_prefix("rename to ").or(line.strip_prefix("copy to ")) {
                // A pure rename has no hunk: a changed file without changed lines.
                changes.files.entry(components(&unquote(name))).or_default();
                (file, seen) = (None, true);
            } else if line.starts_with("diff ") {
                (file, hunk, old_is_named, seen) = (None, None, false, true);
            }
        }
        if let Some(h) = hunk.filter(|h| h.new > 0) {
            return Err(DiffError::Cut { path: path.into(), line: h.at, missing: h.new });
        }
        if !seen && !text.trim().is_empty() {
            return Err(DiffError::NoDiff { path: path.into() });
        }
        Ok(changes)
    }

    /// Whether the diff added line `line` of the file that a line table calls `path`. One path must be the tail of the
    /// other, component by component: line tables have absolute paths, or bare names; diffs have paths of the repository.
    pub fn contains(&self, path: &str, line: u32) -> bool {
        let path = components(path);
        self.files.iter().any(|(name, lines)| tail(name, &path) && lines.contains(&line))
    }

    /// Number of files and of added lines.
    pub fn size(&self) -> (usize, usize) {
        (self.files.len(), self.files.values().map(BTreeSet::len).sum())
    }
}

fn tail(a: &[String], b: &[String]) -> bool {
    !a.is_empty() && !b.is_empty() && a.iter().rev().zip(b.iter().rev()).all(|(x, y)| x == y)
}

fn components(path: &str) -> Vec<String> {
    path.split(['/', '\\']).filter(|c| !c.is_empty() && *c != ".").map(str::to_owned).collect()
}

/// The path of a `+++` line; `None` for `/dev/null`.
fn new_name(text: &str) -> Option<Vec<String>> {
    let name = if text.starts_with('"') {
        unquote(text)
    } else {
        // `diff -u` puts a tab and a time behind the name.
        text.split('\t').next().unwrap_or(text).trim_end().to_owned()
    };
    if name == "/dev/null" {
        return None;
    }
    let name = name.strip_prefix("b/").or(name.strip_prefix("w/")).or(name.strip_prefix("i/")).unwrap_or(&name);
    Some(components(name))
}

/// Takes off the quotes that git puts around names with odd characters.
fn unquote(text: &str) -> String {
    let Some(inner) = text.trim_end().strip_prefix('"').and_then(|t| t.strip_suffix('"')) else {
        return text.trim_end().to_owned();
    };
    let mut out: Vec<u8> = Vec::with_capacity(inner.len());
    let mut bytes = inner.bytes().peekable();
    while let Some(b) = bytes.next() {
        if b != b'\\' {
            out.push(b);
            continue;
        }
        match bytes.next() {
            Some(b'n') => out.push(b'\n'),
            Some(b't') => out.push(b'\t'),
            Some(b'r') => out.push(b'\r'),
            Some(d @ b'0'..=b'7') => {
                let mut value = u32::from(d - b'0');
                for _ in 0..2 {
                    let Some(d @ b'0'..=b'7') = bytes.peek().copied() else { break };
                    value = value * 8 + u32::from(d - b'0');
                    bytes.next();
                }
                out.push(value as u8);
            }
            Some(other) => out.push(other),
            None => out.push(b'\\'),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// `@@ -12,3 +14,5 @@ context`
fn head(line: &str, at: usize) -> Option<Hunk> {
    let inner = line.strip_prefix("@@ -")?;
    let (ranges, _) = inner.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let range = |text: &str| -> Option<(u64, u64)> {
        match text.split_once(',') {
            Some((start, count)) => Some((number(start)?, number(count)?)),
            None => Some((number(text)?, 1)),
        }
    };
    let (_, old) = range(old)?;
    let (line, new) = range(new)?;
    Some(Hunk { at, old, new, line })
}

fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse::<u32>().ok().filter(|_| digits).map(u64::from)
}

fn shorten(line: &str) -> String {
    let mut text: String = line.chars().take(60).collect();
    if text.len() < line.len() {
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Changes {
        Changes::parse("d", text).unwrap()
    }

    #[test]
    fn added_lines_of_several_hunks_and_files() {
        let c = parse(
            "From: someone\n--- this is prose\ndiff --git a/src/k.cu b/src/k.cu\nindex 1..2 100644\n--- a/src/k.cu\n+++ \
             b/src/k.cu\n@@ -1,3 +1,4 @@ void f()\n a\n-b\n+B\n+C\n d\n@@ -10 +11,2 @@\n x\n+y\n\\ No newline at end of \
             file\ndiff --git a/old.cu b/new name.cu\nsimilarity index 90%\nrename from old.cu\nrename to new name.cu\n--- \
             a/old.cu\n+++ b/new name.cu\t\n@@ -0,0 +5 @@\n+z\n",
        );
        assert_eq!(c.size(), (2, 4));
        assert!(c.contains("/home/me/src/k.cu", 2) && c.contains("k.cu", 3) && c.contains("src\\k.cu", 12));
        assert!(!c.contains("k.cu", 1) && !c.contains("k.cu", 4) && !c.contains("other/k.cu", 2));
        assert!(c.contains("/x/new name.cu", 5) && !c.contains("old.cu", 5));
    }

    #[test]
    fn deleted_files_line_ends_and_lines_that_look_like_heads() {
        let c = parse("--- a/k.cu\r\n+++ /dev/null\r\n@@ -1,2 +0,0 @@\r\n-a\r\n-b\r\n");
        assert_eq!(c.size(), (0, 0));
        // A removed SQL comment and an added `++ x` look like a file's head.
        let c = parse("--- a/k.cu\n+++ b/k.cu\n@@ -1,2 +1,2 @@\n--- a\n+++ b\n c\n");
        assert!(c.contains("k.cu", 1) && !c.contains("k.cu", 2));
        let c = parse("--- a/k.cu\r\n+++ b/k.cu\r\n@@ -1 +1,2 @@\r\n a\r\n+b\r\n");
        assert!(c.contains("k.cu", 2));
        assert_eq!(parse("").size(), (0, 0));
        assert_eq!(parse("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n").size(), (0, 0));
    }

    #[test]
    fn quoted_names() {
        let c = parse("--- \"a/k\\303\\244.cu\"\n+++ \"b/k\\303\\244.cu\"\n@@ -0,0 +1 @@\n+a\n");
        assert!(c.contains("/p/k\u{e4}.cu", 1));
    }

    #[test]
    fn errors_name_their_line() {
        let e = |text: &str| Changes::parse("d", text).unwrap_err().to_string();
        assert!(e("hello\n").starts_with("d: no file"));
        assert!(e("--- a/k\n+++ b/k\n@@ -1,x +1 @@\n").starts_with("d:3: expected `@@"));
        assert!(e("@@ -1 +1 @@\n").starts_with("d:1: a hunk before"));
        assert!(e("--- a/k\n+++ b/k\n@@ -1,2 +1,2 @@\n a\nx\n").starts_with("d:5: expected a line"));
        assert!(e("--- a/k\n+++ b/k\n@@ -1,2 +1,2 @@\n a\n").starts_with("d:3: the hunk"));
        assert!(e("diff --cc k.cu\n").contains("combined"));
        assert!(e("--- a/k\n+++ b/k\n@@ -1 +99999999999999999999 @@\n").starts_with("d:3"));
    }

    #[test]
    fn any_text_is_read_or_refused() {
        arbtest::arbtest(|u| {
            const PARTS: &[&str] = &[
                "--- a/k\n",
                "+++ b/k\n",
                "@@ -1,2 +1,2 @@\n",
                "@@ -1 +4294967295,3 @@\n",
                "+a\n",
                "-a\n",
                " a\n",
                "\n",
                "\\ No\n",
                "rename to x\n",
                "diff --git a/x b/x\n",
                "\"\\3",
                "\r",
                "@@",
                "\u{e4}",
            ];
            let mut text = String::new();
            for _ in 0..u.int_in_range(0..=12)? {
                text.push_str(u.choose(PARTS)?);
            }
            let _ = Changes::parse("d", &text);
            Ok(())
        })
        .budget_ms(300);
    }
}
