//! An answer of the closed-form model: figures with their formulas, and a small chart.

use std::fmt::Write;

use lanescope_analysis::model::{Answer, Unit};
use serde::Serialize;

use crate::layout::{Align, Columns, DIM, HEAD, PLAIN, styled};

/// Characters that the longest bar of a chart takes.
const CHART: f64 = 56.0;

/// For people.
pub fn text(answer: &Answer) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}\n", styled(HEAD, &answer.question));
    let mut table = Columns::new(2, &[Align::Left, Align::Right, Align::Left]);
    for f in &answer.figures {
        let unit = match f.unit {
            Unit::Slots => " slots",
            Unit::LaneInstructions | Unit::Share | Unit::Times | Unit::Number => "",
        };
        table.row(vec![
            (PLAIN, f.label.to_owned()),
            (HEAD, format!("{}{unit}", f.text())),
            (DIM, format!("= {}", f.worked)),
        ]);
        table.row(vec![(PLAIN, String::new()), (PLAIN, String::new()), (DIM, format!("  {}", f.formula))]);
    }
    table.print(&mut out);
    chart(answer, &mut out);
    for note in &answer.notes {
        let _ = writeln!(out, "\n{note}");
    }
    out
}

/// One bar a path: as long as its slots, filled as far as its lanes.
fn chart(answer: &Answer, out: &mut String) {
    let most = answer.bars.iter().map(|b| b.slots).fold(0.0, f64::max);
    if most <= 0.0 || answer.bars.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n  issue slots in time; \u{2588} lane works, \u{2591} lane idles");
    let mut table = Columns::new(2, &[Align::Left, Align::Left]);
    for bar in &answer.bars {
        let length = ((bar.slots / most * CHART).round() as usize).max(1);
        let busy = (bar.lanes / f64::from(answer.width) * length as f64).round() as usize;
        let busy = busy.clamp(usize::from(bar.lanes > 0.0), length);
        let cells = "\u{2588}".repeat(busy) + &"\u{2591}".repeat(length - busy);
        table.row(vec![(PLAIN, bar.label.clone()), (PLAIN, cells)]);
    }
    table.print(out);
}

/// `lanescope.model/1`: each figure with its formula.
pub fn json(answer: &Answer) -> impl Serialize + use<> {
    Document {
        schema: "lanescope.model/1",
        question: answer.question.clone(),
        warp_size: answer.width,
        figures: answer
            .figures
            .iter()
            .map(|f| Shown {
                name: f.name,
                label: f.label,
                // A factor that no number of launches reaches has no JSON number.
                value: f.value.is_finite().then_some(f.value),
                unit: match f.unit {
                    Unit::Slots => "slots",
                    Unit::LaneInstructions => "lane_instructions",
                    Unit::Share => "share",
                    Unit::Times => "factor",
                    Unit::Number => "number",
                },
                formula: f.formula,
                worked: f.worked.clone(),
            })
            .collect(),
        bars: answer.bars.iter().map(|b| Bar { label: b.label.clone(), slots: b.slots, lanes: b.lanes }).collect(),
        notes: answer.notes.clone(),
    }
}

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    question: String,
    warp_size: u32,
    figures: Vec<Shown>,
    bars: Vec<Bar>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct Shown {
    name: &'static str,
    label: &'static str,
    value: Option<f64>,
    unit: &'static str,
    formula: &'static str,
    worked: String,
}

#[derive(Serialize)]
struct Bar {
    label: String,
    slots: f64,
    lanes: f64,
}
