//! Names: demangling, base names, and the nearest one to a misspelt one.

use std::fmt::Write;

/// Longest symbol that is demangled; demanglers take memory out of proportion to hostile input.
const LONGEST: usize = 4096;
/// Longest demangled text.
const LONGEST_TEXT: usize = 16 * 1024;

/// The name as its author wrote it; `name` itself if it is not mangled.
pub fn demangle(name: &str) -> String {
    if name.len() > LONGEST {
        return name.to_owned();
    }
    if (name.starts_with("_R") || name.starts_with("_ZN") && name.contains("17h"))
        && let Ok(rust) = rustc_demangle::try_demangle(name)
    {
        let mut out = Limited(String::new());
        if write!(out, "{rust:#}").is_ok() {
            return out.0;
        }
    }
    if name.starts_with("_Z")
        && let Ok(symbol) = cpp_demangle::Symbol::new(name)
    {
        let mut out = Limited(String::new());
        let options = cpp_demangle::DemangleOptions::default().recursion_limit(256);
        if symbol.structured_demangle(&mut out, &options).is_ok() {
            return out.0;
        }
    }
    name.to_owned()
}

/// A string that refuses to grow past a limit.
struct Limited(String);

impl Write for Limited {
    fn write_str(&mut self, s: &str) -> std::fmt::Result {
        if self.0.len() + s.len() > LONGEST_TEXT {
            return Err(std::fmt::Error);
        }
        self.0.push_str(s);
        Ok(())
    }
}

/// The function's name alone: no return type, namespaces, template arguments or parameters.
pub fn base_name(demangled: &str) -> &str {
    let mut depth = 0usize;
    let mut start = 0;
    let mut end = demangled.len();
    // `(anonymous namespace)::` is a part of a name, not a parameter list.
    let text = demangled;
    for (i, c) in text.char_indices() {
        match c {
            '<' => {
                if depth == 0 && end == text.len() && !text[start..i].ends_with("operator") {
                    end = i;
                }
                depth += 1;
            }
            '>' => depth = depth.saturating_sub(1),
            ' ' | ':' if depth == 0 => {
                start = i + 1;
                end = text.len();
            }
            '(' if depth == 0 => {
                if text[i..].starts_with("(anonymous namespace)") {
                    depth += 1;
                    continue;
                }
                return text.get(start..i.min(end)).unwrap_or(text);
            }
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    text.get(start..end).unwrap_or(text)
}

/// The candidate most like `wanted`, if it is near enough to be a slip.
pub fn nearest<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (wanted.chars().count() / 3).max(2);
    candidates
        .into_iter()
        .map(|c| (distance(wanted, c, limit), c))
        .filter(|(d, _)| *d <= limit)
        .min_by_key(|(d, _)| *d)
        .map(|(_, c)| c)
}

/// Optimal string alignment distance (insert, delete, replace, swap neighbours), or more than `limit`.
fn distance(a: &str, b: &str, limit: usize) -> usize {
    let a: Vec<char> = a.chars().flat_map(char::to_lowercase).take(256).collect();
    let b: Vec<char> = b.chars().flat_map(char::to_lowercase).take(256).collect();
    if a.len().abs_diff(b.len()) > limit {
        return limit + 1;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut row = vec![i + 1];
        for j in 0..b.len() {
            let replace = last[j] + usize::from(a[i] != b[j]);
            let mut best = replace.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demangles() {
        assert_eq!(demangle("_Z3fooPfi"), "foo(float*, int)");
        assert_eq!(demangle("_ZN2at6native6kernelIfEEvPT_"), "void at::native::kernel<float>(float*)");
        assert_eq!(demangle("_RNvC6kernel3foo"), "kernel::foo");
        assert_eq!(demangle("_ZN6kernel3foo17h0123456789abcdefE"), "kernel::foo");
        assert_eq!(demangle("moe"), "moe");
        assert_eq!(demangle("_Zgarbage"), "_Zgarbage");
        let deep = format!("_Z1f{}i", "P".repeat(3000));
        demangle(&deep);
    }

    #[test]
    fn base_names() {
        assert_eq!(base_name("foo(float*, int)"), "foo");
        assert_eq!(base_name("void at::native::kernel<float, (int)4>(float*)"), "kernel");
        assert_eq!(base_name("void (anonymous namespace)::step<at::X<1>>(int)"), "step");
        assert_eq!(base_name("moe"), "moe");
        assert_eq!(base_name("kernel::foo"), "foo");
        assert_eq!(base_name(""), "");
    }

    #[test]
    fn nearest_names() {
        assert_eq!(nearest("tiny_fi", ["tiny_ternary", "tiny_if"]), Some("tiny_if"));
        assert_eq!(nearest("zero", ["zeros", "random"]), Some("zeros"));
        assert_eq!(nearest("completely", ["different", "things"]), None);
    }
}
