//! One warp, several paths: they are issued one after the other.

use super::{Answer, Bar, Figure, ModelError, Unit, number, sum};
use crate::words;

/// A path through the code and the lanes that take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Instructions.
    pub length: u32,
    /// Lanes.
    pub lanes: u32,
}

/// Paths that the lanes of one warp take. Without lanes, they share the warp as evenly as it can be.
///
/// # Errors
/// No path with lanes and length, or more lanes than the warp has.
pub fn paths(list: &[(u32, Option<u32>)], width: u32) -> Result<Answer, ModelError> {
    let given: u64 = list.iter().filter_map(|p| p.1).map(u64::from).sum();
    if given > u64::from(width) {
        return Err(ModelError::TooManyLanes { lanes: given, width });
    }
    let open = list.iter().filter(|p| p.1.is_none()).count() as u32;
    let rest = width - given as u32;
    if open > rest {
        return Err(ModelError::TooManyLanes { lanes: given + u64::from(open), width });
    }
    let mut nth = 0;
    let filled: Vec<Path> = list
        .iter()
        .map(|&(length, lanes)| {
            let lanes = lanes.unwrap_or_else(|| {
                nth += 1;
                rest / open + u32::from(nth <= rest % open)
            });
            Path { length, lanes }
        })
        .collect();
    let mut answer = serial(&filled, width)?;
    if open > 0 && list.len() > 1 {
        answer.notes.push("Lanes not given were shared evenly; the slots do not depend on it.".into());
    }
    Ok(answer)
}

/// The figures of paths that run one after the other.
pub(super) fn serial(list: &[Path], width: u32) -> Result<Answer, ModelError> {
    let taken: Vec<Path> = list.iter().copied().filter(|p| p.lanes > 0 && p.length > 0).collect();
    let slots: u64 = taken.iter().map(|p| u64::from(p.length)).sum();
    let useful: u64 = taken.iter().map(|p| u64::from(p.length) * u64::from(p.lanes)).sum();
    let longest = taken.iter().map(|p| p.length).max().ok_or(ModelError::Empty { what: "path" })?;
    let (slots_f, useful_f, longest) = (slots as f64, useful as f64, f64::from(longest));
    let capacity = slots_f * f64::from(width);
    let lengths: Vec<u32> = taken.iter().map(|p| p.length).collect();
    let products: Vec<String> = taken.iter().map(|p| format!("{}*{}", p.length, p.lanes)).collect();
    let figures = vec![
        Figure {
            name: "slots",
            label: "issue slots",
            value: slots_f,
            unit: Unit::Slots,
            formula: "sum of the lengths of the paths that some lane takes",
            worked: sum(&lengths),
        },
        Figure {
            name: "useful_lane_instructions",
            label: "useful lane-instructions",
            value: useful_f,
            unit: Unit::LaneInstructions,
            formula: "sum over paths of length * lanes",
            worked: sum(&products),
        },
        Figure {
            name: "lane_efficiency",
            label: "lane efficiency",
            value: useful_f / capacity,
            unit: Unit::Share,
            formula: "useful lane-instructions / (width * slots)",
            worked: format!("{} / ({width} * {slots})", number(useful_f)),
        },
        Figure {
            name: "waste",
            label: "lane slots wasted",
            value: 1.0 - useful_f / capacity,
            unit: Unit::Share,
            formula: "1 - lane efficiency",
            worked: format!("1 - {}", words::percent(useful_f / capacity)),
        },
        Figure {
            name: "cost_factor",
            label: "cost against full warps",
            value: capacity / useful_f,
            unit: Unit::Times,
            formula: "width * slots / useful lane-instructions",
            worked: format!("{width} * {slots} / {}", number(useful_f)),
        },
        Figure {
            name: "ideal_over_serial",
            label: "ideal over serial",
            value: longest / slots_f,
            unit: Unit::Share,
            formula: "longest path / sum of the paths (as if the paths could run side by side)",
            worked: format!("{} / {slots}", number(longest)),
        },
    ];
    let bars = taken
        .iter()
        .enumerate()
        .map(|(i, p)| Bar {
            label: format!("path {}: {} instructions, {} lanes", i + 1, p.length, p.lanes),
            slots: f64::from(p.length),
            lanes: f64::from(p.lanes),
        })
        .collect();
    let shown: Vec<String> = taken.iter().map(|p| format!("{} x {} lanes", p.length, p.lanes)).collect();
    Ok(Answer {
        question: format!("One warp of {width} lanes takes {} path(s): {}", taken.len(), shown.join(", ")),
        width,
        figures,
        bars,
        notes: Vec::new(),
    })
}

/// A `ways`-way branch of equally long arms: the worst that a branch can do is one lane an arm.
///
/// # Errors
/// No way, or more ways than lanes.
pub fn ways(ways: u32, length: u32, width: u32) -> Result<Answer, ModelError> {
    if ways > width {
        return Err(ModelError::TooManyLanes { lanes: u64::from(ways), width });
    }
    paths(&vec![(length, None); ways as usize], width)
}

/// An `if` of two arms: predicated (both arms issued, always), or branched, when `lanes` of the warp take the first.
///
/// `overhead` is what a branch adds: on machine code since Volta usually BSSY, BRA and BSYNC.
///
/// # Errors
/// Two empty arms, or more lanes than the warp has.
pub fn predicate(first: u32, second: u32, lanes: u32, overhead: u32, width: u32) -> Result<Answer, ModelError> {
    if lanes > width {
        return Err(ModelError::TooManyLanes { lanes: u64::from(lanes), width });
    }
    let both = serial(&[Path { length: first, lanes }, Path { length: second, lanes: width - lanes }], width)?;
    let (a, b, c) = (f64::from(first), f64::from(second), f64::from(overhead));
    let slots = both.figure("slots").map_or(0.0, |f| f.value);
    let predicated = a + b;
    let mut figures = vec![
        Figure {
            name: "predicated_slots",
            label: "predicated",
            value: predicated,
            unit: Unit::Slots,
            formula: "a + b: both arms are issued by every warp, no branch",
            worked: format!("{first} + {second}"),
        },
        Figure {
            name: "branched_slots",
            label: "branched, this warp",
            value: slots + c,
            unit: Unit::Slots,
            formula: "the arms that some lane takes + the branch's own instructions",
            worked: format!("{} + {overhead}", number(slots)),
        },
        Figure {
            name: "uniform_slots",
            label: "branched, all lanes in the longer arm",
            value: a.max(b) + c,
            unit: Unit::Slots,
            formula: "max(a, b) + the branch's own instructions",
            worked: format!("{} + {overhead}", first.max(second)),
        },
    ];
    figures.extend(both.figures.into_iter().filter(|f| f.name == "useful_lane_instructions"));
    let useful = figures.last().map_or(0.0, |f| f.value);
    figures.push(Figure {
        name: "lane_efficiency",
        label: "lane efficiency when predicated",
        value: if predicated > 0.0 { useful / (predicated * f64::from(width)) } else { 0.0 },
        unit: Unit::Share,
        formula: "useful lane-instructions / (width * (a + b))",
        worked: format!("{} / ({width} * {})", number(useful), number(predicated)),
    });
    let verdict = if predicated < slots + c {
        "Predication issues less here."
    } else {
        "The branch issues no more than predication here."
    };
    Ok(Answer {
        question: format!("An if of {first} and {second} instructions, {lanes} of {width} lanes in the first arm"),
        width,
        figures,
        bars: both.bars,
        notes: vec![verdict.into(), "ptxas predicates short arms by itself: look at the machine code first.".into()],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(a: &Answer, name: &str) -> f64 {
        a.figure(name).unwrap().value
    }

    #[test]
    fn textbook() {
        let a = paths(&[(100, Some(1)), (5, Some(31))], 32).unwrap();
        assert_eq!(value(&a, "slots"), 105.0);
        assert_eq!(value(&a, "useful_lane_instructions"), 255.0);
        assert_eq!(a.figure("lane_efficiency").unwrap().text(), "7.6 %");
        assert!((value(&a, "cost_factor") - 13.176).abs() < 1e-3);
        let a = paths(&[(10, None), (8, None)], 32).unwrap();
        assert_eq!(value(&a, "slots"), 18.0);
        assert_eq!(a.figure("ideal_over_serial").unwrap().text(), "55.6 %");
        let a = paths(&[(20, None), (30, None), (25, None), (5, None)], 32).unwrap();
        assert_eq!((value(&a, "slots"), value(&a, "ideal_over_serial")), (80.0, 0.375));
        assert_eq!(value(&a, "lane_efficiency"), 0.25);
        let a = ways(32, 7, 32).unwrap();
        assert_eq!(value(&a, "waste"), 0.96875);
        assert_eq!(value(&ways(2, 7, 32).unwrap(), "waste"), 0.5);
        assert_eq!(value(&ways(64, 7, 64).unwrap(), "waste"), 0.984375);
    }

    #[test]
    fn refused() {
        assert!(matches!(paths(&[], 32), Err(ModelError::Empty { .. })));
        assert!(matches!(paths(&[(3, Some(0))], 32), Err(ModelError::Empty { .. })));
        assert!(matches!(paths(&[(3, Some(33))], 32), Err(ModelError::TooManyLanes { lanes: 33, .. })));
        assert!(matches!(paths(&[(3, Some(32)), (1, None)], 32), Err(ModelError::TooManyLanes { .. })));
        assert!(ways(33, 1, 32).is_err());
        assert!(paths(&[(u32::MAX, None); 32], 32).is_ok());
    }

    #[test]
    fn predication() {
        let a = predicate(3, 5, 16, 3, 32).unwrap();
        assert_eq!(value(&a, "predicated_slots"), 8.0);
        assert_eq!(value(&a, "branched_slots"), 11.0);
        let a = predicate(300, 5, 0, 3, 32).unwrap();
        assert_eq!((value(&a, "branched_slots"), value(&a, "predicated_slots")), (8.0, 305.0));
    }
}
