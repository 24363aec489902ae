//! Nested conditions: every distinct path of the warp is issued once, however deep the branch that made it.
//!
//! Written as counts of instructions in a row, branches in parentheses with an arm's lanes or probability before
//! a colon, and loops of a fixed number of turns in brackets: `10 (1/2: 20 (1/4: 40 | 20) | 30) [4: 3]`. The last
//! arm of a branch may leave its share out: it takes the rest.

use super::{Answer, Bar, Figure, ModelError, Unit, any, number};

/// How deep branches may nest.
const DEPTH: usize = 64;
/// How many parts an expression may have.
const PARTS: usize = 10_000;

/// A sequence of parts.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Seq(Vec<Part>);

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Straight(u32),
    Branch(Vec<(f64, Seq)>),
    Repeat(u32, Seq),
}

/// Reads an expression. Lanes before a colon are taken of `width`, and become shares of the lanes that get there.
///
/// # Errors
/// What cannot be read, with its column.
pub fn parse(text: &str, width: u32) -> Result<Seq, ModelError> {
    let chars: Vec<char> = text.chars().collect();
    let mut parser = Parser { chars: &chars, at: 0, parts: 0, width };
    let seq = parser.seq(0, 1.0)?;
    match parser.peek() {
        None => Ok(seq),
        Some(c) => Err(parser.fault(format!("`{c}` closes nothing or stands outside a branch"))),
    }
}

struct Parser<'a> {
    chars: &'a [char],
    at: usize,
    parts: usize,
    width: u32,
}

impl Parser<'_> {
    fn peek(&mut self) -> Option<char> {
        while self.chars.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
        self.chars.get(self.at).copied()
    }

    fn fault(&self, what: String) -> ModelError {
        ModelError::Syntax { column: self.at + 1, what }
    }

    fn eat(&mut self, want: char, whole: &str) -> Result<(), ModelError> {
        match self.peek() {
            Some(c) if c == want => {
                self.at += 1;
                Ok(())
            }
            Some(c) => Err(self.fault(format!("expected `{want}` in {whole}, found `{c}`"))),
            None => Err(self.fault(format!("the text ends, but {whole} lacks its `{want}`"))),
        }
    }

    fn decimal(&mut self) -> Result<f64, ModelError> {
        self.peek();
        let from = self.at;
        while self.chars.get(self.at).is_some_and(|c| c.is_ascii_digit() || *c == '.') {
            self.at += 1;
        }
        let text: String = self.chars.get(from..self.at).unwrap_or_default().iter().collect();
        text.parse().map_err(|_| {
            let found = self.chars.get(from).map_or("the end".into(), |c| format!("`{c}`"));
            self.fault(format!("expected a number, found {found}"))
        })
    }

    fn whole(&mut self) -> Result<u32, ModelError> {
        let from = self.at;
        let value = self.decimal()?;
        if value.fract() == 0.0 && value <= f64::from(u32::MAX) {
            return Ok(value as u32);
        }
        self.at = from;
        Err(self.fault(format!("`{value}` is no count of instructions")))
    }

    /// A sequence that a share of all lanes reaches.
    fn seq(&mut self, depth: usize, reach: f64) -> Result<Seq, ModelError> {
        if depth > DEPTH {
            return Err(self.fault(format!("branches nest more than {DEPTH} deep")));
        }
        let mut list = Vec::new();
        while let Some(c) = self.peek() {
            self.parts += 1;
            if self.parts > PARTS {
                return Err(self.fault(format!("the expression has more than {PARTS} parts")));
            }
            match c {
                '(' => list.push(self.branch(depth, reach)?),
                '[' => {
                    self.at += 1;
                    let turns = self.whole()?;
                    self.eat(':', "a loop")?;
                    let body = self.seq(depth + 1, reach)?;
                    self.eat(']', "a loop")?;
                    list.push(Part::Repeat(turns, body));
                }
                '|' | ')' | ']' => break,
                _ => list.push(Part::Straight(self.whole()?)),
            }
        }
        Ok(Seq(list))
    }

    fn branch(&mut self, depth: usize, reach: f64) -> Result<Part, ModelError> {
        let start = self.at;
        self.at += 1;
        let (mut arms, mut used, mut open) = (Vec::new(), 0.0, false);
        loop {
            let share = self.share(reach)?;
            if open {
                self.at = start;
                return Err(self.fault("only the last arm of a branch may leave its share out".into()));
            }
            open = share.is_none();
            let share = share.unwrap_or(1.0 - used).max(0.0);
            used += share;
            if used > 1.0 + 1e-9 {
                return Err(self.fault(format!("the arms of this branch have shares of {used} in all")));
            }
            arms.push((share, self.seq(depth + 1, reach * share)?));
            match self.peek() {
                Some('|') => self.at += 1,
                _ => break,
            }
        }
        self.eat(')', "a branch")?;
        if used < 1.0 - 1e-9 {
            arms.push((1.0 - used, Seq::default()));
        }
        Ok(Part::Branch(arms))
    }

    /// `1/4:`, `0.25:` or `8:`, or nothing.
    fn share(&mut self, reach: f64) -> Result<Option<f64>, ModelError> {
        self.peek();
        let (from, parts) = (self.at, self.parts);
        let Ok(first) = self.decimal() else {
            self.at = from;
            return Ok(None);
        };
        let mut value = first;
        let mut fraction = first.fract() != 0.0 || first == 0.0;
        if self.peek() == Some('/') {
            self.at += 1;
            value = first / self.decimal()?;
            fraction = true;
        }
        if self.peek() != Some(':') {
            (self.at, self.parts) = (from, parts);
            return Ok(None);
        }
        self.at += 1;
        // A whole number before the colon is a number of lanes.
        let share = if fraction { value } else { value / (f64::from(self.width) * reach) };
        if (0.0..=1.0 + 1e-9).contains(&share) {
            return Ok(Some(share.min(1.0)));
        }
        self.at = from;
        let have = f64::from(self.width) * reach;
        Err(self.fault(format!("a share of {} is not possible: {} lanes get here", number(value), number(have))))
    }
}

/// Straight code as it is reached: length over all turns, and the share of lanes.
struct Visit {
    length: f64,
    reach: f64,
}

fn visit(seq: &Seq, turns: f64, reach: f64, leaves: &mut u64, out: &mut Vec<Visit>) {
    for part in &seq.0 {
        match part {
            Part::Straight(n) => out.push(Visit { length: f64::from(*n) * turns, reach }),
            Part::Repeat(n, body) => visit(body, turns * f64::from(*n), reach, leaves, out),
            Part::Branch(arms) => {
                *leaves += arms.iter().filter(|a| a.0 > 0.0).count().saturating_sub(1) as u64;
                for (share, arm) in arms {
                    visit(arm, turns, reach * share, leaves, out);
                }
            }
        }
    }
}

/// What nested conditions cost one warp.
///
/// # Errors
/// An expression that runs nothing.
pub fn nested(seq: &Seq, width: u32) -> Result<Answer, ModelError> {
    let (mut visits, mut leaves) = (Vec::new(), 1);
    visit(seq, 1.0, 1.0, &mut leaves, &mut visits);
    visits.retain(|v| v.length > 0.0 && v.reach > 0.0);
    let w = f64::from(width);
    let all: f64 = visits.iter().map(|v| v.length).sum();
    if all == 0.0 {
        return Err(ModelError::Empty { what: "path" });
    }
    let expected: f64 = visits.iter().map(|v| v.length * any(v.reach.min(1.0), width)).sum();
    let useful: f64 = visits.iter().map(|v| v.length * v.reach * w).sum();
    // With shares that are whole lanes, every part is reached by somebody.
    let exact = visits.iter().all(|v| ((v.reach * w).round() - v.reach * w).abs() < 1e-6 && v.reach * w > 0.5);
    let slots = if exact { all } else { expected };
    let terms: Vec<String> = visits.iter().map(|v| number(v.length)).collect();
    let products: Vec<String> =
        visits.iter().map(|v| format!("{}*{}", number(v.length), number(v.reach * w))).collect();
    let mut figures = vec![
        Figure {
            name: "paths",
            label: "distinct paths",
            value: leaves as f64,
            unit: Unit::Number,
            formula: "1 + sum over branches of (arms - 1)",
            worked: number(leaves as f64),
        },
        Figure {
            name: "slots",
            label: "issue slots if every path is taken",
            value: all,
            unit: Unit::Slots,
            formula: "sum of all parts: each is issued once for the lanes that reach it",
            worked: super::sum(&terms),
        },
        Figure {
            name: "expected_slots",
            label: "expected if lanes choose independently",
            value: expected,
            unit: Unit::Slots,
            formula: "sum over parts of length * (1 - (1 - share of lanes that reach it)^width)",
            worked: number(expected),
        },
        Figure {
            name: "useful_lane_instructions",
            label: "useful lane-instructions",
            value: useful,
            unit: Unit::LaneInstructions,
            formula: "sum over parts of length * lanes that reach it",
            worked: super::sum(&products),
        },
    ];
    figures.push(Figure {
        name: "lane_efficiency",
        label: "lane efficiency",
        value: useful / (w * slots),
        unit: Unit::Share,
        formula: if exact {
            "useful lane-instructions / (width * slots)"
        } else {
            "useful lane-instructions / (width * expected slots)"
        },
        worked: format!("{} / ({width} * {})", number(useful), number(slots)),
    });
    let bars = visits
        .iter()
        .take(64)
        .map(|v| Bar {
            label: format!("{} instructions, {} lanes", number(v.length), number(v.reach * w)),
            slots: v.length,
            lanes: v.reach * w,
        })
        .collect();
    let mut notes = Vec::new();
    if !exact {
        notes.push("Some shares are not whole lanes: the efficiency is for lanes that choose independently.".into());
    }
    Ok(Answer { question: format!("One warp of {width} lanes through {leaves} path(s)"), width, figures, bars, notes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(text: &str) -> Answer {
        nested(&parse(text, 32).unwrap(), 32).unwrap()
    }

    fn value(a: &Answer, name: &str) -> f64 {
        a.figure(name).unwrap().value
    }

    #[test]
    fn nested_paths() {
        let a = ask("10 (1/2: 20 (1/4: 40 | 20) | 60)");
        assert_eq!((value(&a, "slots"), value(&a, "paths")), (150.0, 3.0));
        assert_eq!(value(&a, "useful_lane_instructions"), 320.0 + 320.0 + 160.0 + 240.0 + 960.0);
        let flat = ask("(1: 100 | 5)");
        assert_eq!((value(&flat, "slots"), value(&flat, "useful_lane_instructions")), (105.0, 255.0));
        // The lanes of an inner branch count the warp's lanes.
        let lanes = ask("(8: (4: 3 | 5) | 7)");
        assert_eq!(value(&lanes, "useful_lane_instructions"), 12.0 + 20.0 + 168.0);
        assert_eq!(value(&ask("[3: 2 (16: 5)]"), "slots"), 21.0);
        // A branch whose arms are all given leaves the rest out.
        assert_eq!(value(&ask("(1/4: 8)"), "useful_lane_instructions"), 64.0);
    }

    #[test]
    fn refused() {
        for bad in [
            "(",
            "(1/2: 3",
            "3)",
            "(2: 3 | 5 | 7)",
            "(33: 1 | 2)",
            "x",
            "1.5",
            "(1/0: 2)",
            "[: 3]",
            "(0.6: 1 | 0.6: 2)",
        ] {
            assert!(parse(bad, 32).is_err(), "{bad}");
        }
        assert!(nested(&parse("", 32).unwrap(), 32).is_err());
        let deep = "(1/2: ".repeat(100_000);
        assert!(parse(&deep, 32).is_err());
        let long = "1 ".repeat(100_000);
        assert!(parse(&long, 32).is_err());
    }
}
