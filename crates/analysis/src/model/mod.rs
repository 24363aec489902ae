//! Closed forms for what divergence costs: exact arithmetic on paths, lanes and trips, no kernel needed.
//!
//! Every answer is a list of [`Figure`]s that carry the formula they come from and the same formula with the
//! numbers put in. An issue slot is one instruction issued by one warp; a lane-instruction is one instruction
//! executed for one lane, so a slot of a full warp does `width` of them. Lengths count the instructions of the
//! paths alone, without the branch that chose them: each formula is checked against the engine on a generated
//! kernel (`crates/cli/tests/model.rs`).

mod paths;
mod population;
mod tree;
mod trips;

pub use paths::{Path, paths, predicate, ways};
pub use population::{Arm, Sort, rare, sort};
pub use tree::{Seq, nested, parse};
pub use trips::trips;

use crate::words;

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Issue slots: warp instructions.
    Slots,
    /// Instructions times lanes.
    LaneInstructions,
    /// A share of 1.
    Share,
    /// A factor.
    Times,
    /// A plain number.
    Number,
}

/// One number, where it comes from, and how it was worked out.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Stable name, snake_case.
    pub name: &'static str,
    /// The name in words.
    pub label: &'static str,
    /// The value.
    pub value: f64,
    /// What it counts.
    pub unit: Unit,
    /// The formula in symbols.
    pub formula: &'static str,
    /// The formula with the numbers in it.
    pub worked: String,
}

impl Figure {
    /// The value in the words of its unit.
    pub fn text(&self) -> String {
        match self.unit {
            Unit::Share => words::percent(self.value),
            Unit::Times => format!("{} x", words::lanes(self.value)),
            Unit::Slots | Unit::LaneInstructions | Unit::Number => number(self.value),
        }
    }
}

/// A bar of the chart: a path's length, and the lanes that work during it.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// What it is.
    pub label: String,
    /// Issue slots.
    pub slots: f64,
    /// Lanes that work, up to the width.
    pub lanes: f64,
}

/// An answer of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// What was asked, with the inputs in words.
    pub question: String,
    /// Lanes of a warp: 32, or 64 for wavefronts.
    pub width: u32,
    /// The figures, in reading order.
    pub figures: Vec<Figure>,
    /// One bar a path, in the order of issue.
    pub bars: Vec<Bar>,
    /// What to keep in mind.
    pub notes: Vec<String>,
}

impl Answer {
    /// The figure of that name.
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|f| f.name == name)
    }
}

/// A question that has no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// More lanes than a warp has.
    #[error("the paths name {lanes} lanes, a warp has {width}: give lanes that add up to at most {width}")]
    TooManyLanes {
        /// Lanes asked for.
        lanes: u64,
        /// Lanes of a warp.
        width: u32,
    },
    /// Nothing to work with.
    #[error("{what} is empty or does nothing: give at least one {what} with a length and a lane")]
    Empty {
        /// `path`, `trip count`, ...
        what: &'static str,
    },
    /// A probability outside 0..=1.
    #[error("{value} is no probability: expected 0 to 1, as `0.03` or `1/32`")]
    Probability {
        /// The value.
        value: f64,
    },
    /// An expression that cannot be read.
    #[error("column {column}: {what}\n  expected instruction counts and branches, as `10 (1/2: 20 | 5) [4: 3]`")]
    Syntax {
        /// Column, from 1, in characters.
        column: usize,
        /// What is wrong.
        what: String,
    },
}

/// A number for people: whole numbers with separators, others with up to four decimals, never shortened to one
/// that looks whole.
pub(crate) fn number(x: f64) -> String {
    if !x.is_finite() {
        return "-".into();
    }
    if x.fract() == 0.0 && x.abs() < 1e15 {
        let sign = if x < 0.0 { "-" } else { "" };
        return format!("{sign}{}", words::count(x.abs() as u64));
    }
    let digits = if x.abs() >= 1000.0 { 1 } else { 4 };
    let text = format!("{x:.digits$}");
    let trimmed = text.trim_end_matches('0');
    if trimmed.ends_with('.') { words::lanes(x) } else { trimmed.to_owned() }
}

/// `a + b + c`, shortened in the middle when it is long.
pub(crate) fn sum<T: std::fmt::Display>(parts: &[T]) -> String {
    let mut texts: Vec<String> = parts.iter().map(ToString::to_string).collect();
    if texts.len() > 12 {
        texts.splice(8..texts.len() - 2, ["...".to_owned()]);
    }
    texts.join(" + ")
}

/// Checks a probability.
pub(crate) fn probability(value: f64) -> Result<f64, ModelError> {
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err(ModelError::Probability { value }) }
}

/// Probability that at least one of `lanes` independent lanes takes a path that each takes with `p`.
pub(crate) fn any(p: f64, lanes: u32) -> f64 {
    // By logarithms, because (1 - p) loses small p.
    -f64::exp_m1(f64::from(lanes) * f64::ln_1p(-p))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(number(105.0), "105");
        assert_eq!(number(1234567.0), "1,234,567");
        assert_eq!(number(62.5), "62.5");
        assert_eq!(number(32.00001), "32.00001");
        assert_eq!(number(f64::INFINITY), "-");
        assert_eq!(sum(&[1, 2, 3]), "1 + 2 + 3");
        assert_eq!(any(1.0, 32), 1.0);
        assert_eq!(any(0.0, 32), 0.0);
        assert!((any(1.0 / 32.0, 32) - (1.0 - (31.0f64 / 32.0).powi(32))).abs() < 1e-14);
    }
}
