//! Headers of the user's own that a source includes: they decide about the result as much as the source does.
//!
//! The text is scanned for `#include` without preprocessing, so headers in branches not taken are found too; that only
//! makes a cached result less often usable. A name that comes from a macro cannot be followed: then nothing is cached.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// More files than this are no kernel of the user's own.
const MOST: usize = 2000;

/// The headers that `source` includes, directly or not, from its folder or from `folders`, with their content. `None` if
/// they cannot be told.
pub(super) fn of(path: &Path, source: &[u8], folders: &[PathBuf]) -> Option<Vec<(PathBuf, Vec<u8>)>> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let home = |p: &Path| p.parent().map(Path::to_path_buf).unwrap_or_default();
    let mut open = vec![(home(path), names(source)?)];
    while let Some((folder, names)) = open.pop() {
        for name in names {
            // Headers of the compiler's own are covered by its identity.
            let places = std::iter::once(&folder).chain(folders).map(|f| f.join(&name));
            for place in places.filter(|p| p.is_file()) {
                if !seen.insert(place.clone()) {
                    continue;
                }
                if seen.len() > MOST {
                    return None;
                }
                let text = std::fs::read(&place).ok()?;
                open.push((home(&place), self::names(&text)?));
                found.push((place, text));
            }
        }
    }
    found.sort();
    Some(found)
}

/// What a text includes; `None` if a name is not written out.
fn names(text: &[u8]) -> Option<Vec<PathBuf>> {
    let text = String::from_utf8_lossy(text);
    // A directive may go on over several lines.
    let text = text.replace("\\\r\n", "").replace("\\\n", "");
    let mut names = Vec::new();
    for line in text.lines() {
        let Some(rest) = line.trim_start().strip_prefix('#') else { continue };
        let Some(rest) = rest.trim_start().strip_prefix("include") else { continue };
        // `#include_next` and the like.
        let rest = rest.strip_prefix("_next").unwrap_or(rest).trim_start();
        let close = match rest.chars().next() {
            Some('"') => '"',
            Some('<') => '>',
            _ => return None,
        };
        let (name, _) = rest[1..].split_once(close)?;
        names.push(PathBuf::from(name));
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_headers_are_found_once() {
        let dir = tempfile::tempdir().expect("a folder");
        let at = |n: &str| dir.path().join(n);
        std::fs::create_dir_all(at("inc/deep")).expect("a folder");
        std::fs::write(at("a.h"), "#pragma once\n#  include <deep/b.h>\n").expect("written");
        std::fs::write(at("inc/deep/b.h"), "#include \"c.h\"\n#include \"../../a.h\"\n").expect("written");
        std::fs::write(at("inc/deep/c.h"), "// nothing\n").expect("written");
        let source = b"#include \"a.h\"\n#include <cuda_fp16.h>\n #include \\\n \"a.h\"\n__global__ void k() {}\n";
        let found = of(&at("k.cu"), source, &[at("inc")]).expect("names are written out");
        let names: Vec<_> = found.iter().map(|f| f.0.file_name().expect("a name").to_owned()).collect();
        assert!(["a.h", "b.h", "c.h"].iter().all(|n| names.iter().any(|m| m == n)), "{names:?}");
    }

    #[test]
    fn a_computed_name_cannot_be_followed() {
        assert_eq!(names(b"#define H \"a.h\"\n#include H\n"), None);
        assert_eq!(names(b"#include \"a.h\n"), None);
        assert_eq!(names(b"int include = 3;\n#if 0\n#endif\n"), Some(vec![]));
        assert_eq!(names(b"\xff\xfe"), Some(vec![]));
    }
}
