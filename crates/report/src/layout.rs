//! Columns of styled text.

use anstyle::{AnsiColor, Style};

/// Headings.
pub(crate) const HEAD: Style = Style::new().bold();
/// What to look at.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default().bold();
/// What is wrong.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// What is good.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Secondary.
pub(crate) const DIM: Style = Style::new().dimmed();
/// No style.
pub(crate) const PLAIN: Style = Style::new();

/// Text in a style.
pub(crate) fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Which side a column leans to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A table without lines: two blanks between columns, the last column ragged; a cell in it may have several lines.
pub(crate) struct Columns {
    align: Vec<Align>,
    rows: Vec<Vec<(Style, String)>>,
    indent: usize,
}

impl Columns {
    pub(crate) fn new(indent: usize, align: &[Align]) -> Self {
        Columns { align: align.to_vec(), rows: Vec::new(), indent }
    }

    pub(crate) fn row(&mut self, cells: Vec<(Style, String)>) {
        self.rows.push(cells);
    }

    pub(crate) fn header(&mut self, names: &[&str]) {
        self.row(names.iter().map(|n| (DIM, (*n).to_owned())).collect());
    }

    pub(crate) fn print(&self, out: &mut String) {
        let mut widths = vec![0; self.align.len()];
        for row in &self.rows {
            // The last cell of a row does not widen its column: a long remark must not push figures apart.
            for (i, (_, text)) in row.iter().enumerate().take(row.len().saturating_sub(1)) {
                if let Some(w) = widths.get_mut(i) {
                    *w = (*w).max(text.chars().count());
                }
            }
        }
        for row in &self.rows {
            let mut line = " ".repeat(self.indent);
            let mut at = self.indent;
            for (i, (style, text)) in row.iter().enumerate() {
                let width = widths.get(i).copied().unwrap_or(0);
                let pad = " ".repeat(width.saturating_sub(text.chars().count()));
                let last = i + 1 == row.len();
                let right = self.align.get(i) == Some(&Align::Right);
                if right {
                    line.push_str(&pad);
                }
                // Lines of a cell stand below each other.
                let text = text.replace('\n', &format!("\n{}", " ".repeat(at)));
                if text.is_empty() || *style == PLAIN {
                    line.push_str(&text);
                } else {
                    line.push_str(&styled(*style, &text));
                }
                if !right && !last {
                    line.push_str(&pad);
                }
                if !last {
                    line.push_str("  ");
                }
                at += width + 2;
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
}

/// Text broken at blanks so that lines stay within `width`; later lines are indented by `hang`.
pub(crate) fn wrap(text: &str, width: usize, hang: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split(' ') {
        let len = word.chars().count();
        if column > 0 && column + 1 + len > width {
            out.push('\n');
            out.push_str(&" ".repeat(hang));
            column = hang;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += len;
    }
    out
}
