//! Byte ranges of the source text.

use std::ops::Range;

/// A byte range of the source text; `end` is exclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The range from `start` to `end`.
    pub fn new(start: u32, end: u32) -> Self {
        Span { start, end }
    }

    /// From the start of `self` to the end of `other`.
    pub fn to(self, other: Span) -> Self {
        Span { start: self.start, end: other.end.max(self.start) }
    }

    /// As a range for slicing.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// The text in `source`; empty where the span does not fit it.
    pub fn text(self, source: &str) -> &str {
        source.get(self.range()).unwrap_or("")
    }
}

/// Finds the line and column of byte offsets: built once per source text, then a binary search per question.
#[derive(Clone, Debug)]
pub struct LineIndex {
    starts: Vec<u32>,
}

impl LineIndex {
    /// Reads the text once.
    pub fn new(source: &str) -> Self {
        let mut starts = vec![0];
        for (at, byte) in source.bytes().enumerate() {
            if byte == b'\n' {
                starts.push(u32::try_from(at + 1).unwrap_or(u32::MAX));
            }
        }
        LineIndex { starts }
    }

    /// The 1-based line and the 1-based byte column of an offset.
    pub fn position(&self, offset: u32) -> (u32, u32) {
        let line = self.starts.partition_point(|&start| start <= offset).max(1);
        (line as u32, offset - self.starts[line - 1] + 1)
    }
}
