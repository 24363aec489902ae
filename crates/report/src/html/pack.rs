//! Compact forms of data that the page's script unfolds.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use sha2::{Digest, Sha256};

/// JSON that can stand inside a script element whatever its strings say: `<`, `>` and `&` occur in strings only, where
/// an escape means the same.
pub(super) fn script_safe(value: &impl Serialize) -> String {
    let text = serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned());
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out
}

/// What a content security policy calls a script: `sha256-` and its digest.
pub(super) fn csp_hash(script: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(script.as_bytes())))
}

/// Runs of equal values: value, length, value, length ... Straight code has the same counts over and over.
pub(super) fn runs<T: Into<u64>>(values: impl IntoIterator<Item = T>) -> Vec<u64> {
    let mut out: Vec<u64> = Vec::new();
    for v in values {
        let v: u64 = v.into();
        match out.len().checked_sub(2).and_then(|i| out.get_mut(i..)) {
            Some([last, n]) if *last == v => *n += 1,
            _ => out.extend([v, 1]),
        }
    }
    out
}

/// Ascending numbers as stretches of equal distance: first value, distance, length.
pub(super) fn stretches(values: impl IntoIterator<Item = u32>) -> Vec<(u32, i64, u32)> {
    let mut out: Vec<(u32, i64, u32)> = Vec::new();
    for v in values {
        match out.last_mut() {
            Some((first, step, n)) if *n == 1 => {
                *step = i64::from(v) - i64::from(*first);
                *n = 2;
            }
            Some((first, step, n)) if i64::from(*first) + *step * i64::from(*n) == i64::from(v) => *n += 1,
            _ => out.push((v, 0, 1)),
        }
    }
    out
}

/// Numbers in groups of seven bits, low ones first, the highest bit set in all but the last; then base64.
pub(super) fn varints(values: impl IntoIterator<Item = u64>) -> String {
    let mut bytes = Vec::new();
    for mut v in values {
        while v >= 0x80 {
            bytes.push(v as u8 | 0x80);
            v >>= 7;
        }
        bytes.push(v as u8);
    }
    STANDARD.encode(bytes)
}

/// The difference of each number to the one before, signs folded into the lowest bit.
pub(super) fn deltas(values: impl IntoIterator<Item = u32>) -> impl Iterator<Item = u64> {
    let mut before = 0i64;
    values.into_iter().map(move |v| {
        let d = i64::from(v) - std::mem::replace(&mut before, v.into());
        ((d << 1) ^ (d >> 63)) as u64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_a_script_element() {
        let hostile = ["</script><script>alert(1)</script>", "<!--", "]]>", "a&b\u{2028}"];
        let text = script_safe(&hostile);
        assert!(!text.contains(['<', '>', '&', '\u{2028}']));
        let back: Vec<String> = serde_json::from_str(&text).unwrap();
        assert_eq!(back, hostile);
    }

    #[test]
    fn runs_and_stretches() {
        assert_eq!(runs([3u64, 3, 3, 0, 5, 5]), [3, 3, 0, 1, 5, 2]);
        assert!(runs(Vec::<u64>::new()).is_empty());
        assert_eq!(stretches([0, 16, 32, 0, 16]), [(0, 16, 3), (0, 16, 2)]);
        assert_eq!(stretches([7]), [(7, 0, 1)]);
    }

    #[test]
    fn numbers_come_back() {
        arbtest::arbtest(|u| {
            let values: Vec<u32> = u.arbitrary()?;
            let bytes = STANDARD.decode(varints(deltas(values.iter().copied()))).unwrap();
            let (mut back, mut before, mut v, mut shift) = (Vec::new(), 0i64, 0u64, 0);
            for b in bytes {
                v |= u64::from(b & 0x7f) << shift;
                shift += 7;
                if b < 0x80 {
                    before += (v >> 1) as i64 ^ -((v & 1) as i64);
                    back.push(before as u32);
                    (v, shift) = (0, 0);
                }
            }
            assert_eq!(back, values);
            let stretched: Vec<u32> = stretches(values.iter().copied())
                .into_iter()
                .flat_map(|(a, step, n)| (0..n).map(move |i| (i64::from(a) + step * i64::from(i)) as u32))
                .collect();
            assert_eq!(stretched, values);
            Ok(())
        })
        .budget_ms(300);
    }
}
