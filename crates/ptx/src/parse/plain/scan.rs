//! What plain statements are made of: where it ends and what it says. No state, and `None` for anything unusual.

use super::super::lexer::{begins_name, is_word};
use super::super::word;
use crate::tree::{OperandKind, SourcePoint, Wide};

/// `%r<10>` or `%a`: the end of the name, the number in the brackets, and the place of the comma or semicolon.
pub(super) fn register(bytes: &[u8], at: usize) -> Option<(usize, Option<u32>, usize)> {
    if !begins_name(*bytes.get(at)?) {
        return None;
    }
    let end = word::end(bytes, at + 1);
    if bytes.get(at..end)? == b"_" || bytes.get(at..end)? == b"%" {
        return None;
    }
    let (mut count, mut behind) = (None, end);
    if bytes.get(end) == Some(&b'<') {
        let (number, close) = decimal32(bytes, end + 1)?;
        if bytes.get(close) != Some(&b'>') {
            return None;
        }
        (count, behind) = (Some(number), close + 1);
    }
    let behind = blanks(bytes, behind);
    matches!(bytes.get(behind)?, b',' | b';').then_some((end, count, behind))
}

#[inline]
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

#[inline]
pub(super) fn blanks(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|&byte| is_blank(byte)) {
        at += 1;
    }
    at
}

#[inline]
pub(super) fn white_space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// ` 1 23 5` on one line.
pub(super) fn point(bytes: &[u8], at: usize) -> Option<(SourcePoint, usize)> {
    let (file, end) = decimal32(bytes, blanks(bytes, at))?;
    let (line, end) = decimal32(bytes, blanks(bytes, end))?;
    let (column, end) = decimal32(bytes, blanks(bytes, end))?;
    Some((SourcePoint { file, line, column }, end))
}

pub(super) fn decimal32(bytes: &[u8], at: usize) -> Option<(u32, usize)> {
    let (value, end) = decimal(bytes, at)?;
    Some((u32::try_from(value).ok()?, end))
}

/// A decimal number of at most 18 digits that does not begin with a zero, and where it ends.
pub(super) fn decimal(bytes: &[u8], at: usize) -> Option<(i64, usize)> {
    let mut value = 0i64;
    let mut end = at;
    while let Some(digit @ b'0'..=b'9') = bytes.get(end) {
        if end - at == 18 {
            return None;
        }
        value = value * 10 + i64::from(digit - b'0');
        end += 1;
    }
    let plain = end == at + 1 || (end > at && bytes.get(at) != Some(&b'0'));
    (plain && !bytes.get(end).is_some_and(|&byte| is_word(byte) || byte == b'.')).then_some((value, end))
}

pub(super) fn signed(bytes: &[u8], at: usize) -> Option<(i64, usize)> {
    if bytes.get(at) == Some(&b'-') {
        let (value, end) = decimal(bytes, at + 1)?;
        return Some((-value, end));
    }
    decimal(bytes, at)
}

/// `12`, `-12`, `0x1f`, `0f3F800000`, `0d3FF0000000000000`
pub(super) fn number(bytes: &[u8], at: usize) -> Option<(OperandKind, usize)> {
    let (limit, letter) = match bytes.get(at..at + 2) {
        Some([b'0', letter @ (b'f' | b'F')]) => (8, letter | 0x20),
        Some([b'0', letter @ (b'd' | b'D')]) => (16, letter | 0x20),
        Some([b'0', letter @ (b'x' | b'X')]) => (15, letter | 0x20),
        _ => {
            let (value, end) = signed(bytes, at)?;
            return Some((OperandKind::Integer(Wide::new(value as u64)), end));
        }
    };
    let mut value = 0u64;
    let mut end = at + 2;
    while let Some(digit) = bytes.get(end).and_then(|&byte| char::from(byte).to_digit(16)) {
        if end - at - 2 == limit {
            return None;
        }
        value = value << 4 | u64::from(digit);
        end += 1;
    }
    let digits = end - at - 2;
    if bytes.get(end).is_some_and(|&byte| is_word(byte)) || digits == 0 {
        return None;
    }
    match letter {
        b'x' => Some((OperandKind::Integer(Wide::new(value)), end)),
        _ if digits < limit => None,
        b'f' => Some((OperandKind::F32(value as u32), end)),
        _ => Some((OperandKind::F64(Wide::new(value)), end)),
    }
}
