//! A loop whose lanes leave at different trips: the warp goes on until the last lane is done.

use super::{Answer, Bar, Figure, ModelError, Unit, number};

/// Trip counts of the lanes of one warp, as (trips, lanes), and the instructions of the body.
///
/// # Errors
/// No lane that makes a trip, or more lanes than the warp has.
pub fn trips(list: &[(u32, u32)], body: u32, width: u32) -> Result<Answer, ModelError> {
    let lanes: u64 = list.iter().map(|t| u64::from(t.1)).sum();
    if lanes > u64::from(width) {
        return Err(ModelError::TooManyLanes { lanes, width });
    }
    let max = list.iter().filter(|t| t.1 > 0).map(|t| t.0).max().unwrap_or(0);
    if max == 0 || body == 0 {
        return Err(ModelError::Empty { what: "trip count" });
    }
    let total: f64 = list.iter().map(|t| f64::from(t.0) * f64::from(t.1)).sum();
    let (slots, capacity) = (f64::from(max) * f64::from(body), f64::from(max) * f64::from(width));
    let figures = vec![
        Figure {
            name: "max_trips",
            label: "trips of the warp",
            value: f64::from(max),
            unit: Unit::Number,
            formula: "most trips of any lane",
            worked: format!("{max}"),
        },
        Figure {
            name: "slots",
            label: "issue slots",
            value: slots,
            unit: Unit::Slots,
            formula: "most trips * body",
            worked: format!("{max} * {body}"),
        },
        Figure {
            name: "lane_trips",
            label: "trips of lanes",
            value: total,
            unit: Unit::Number,
            formula: "sum of the lanes' trips",
            worked: number(total),
        },
        Figure {
            name: "lane_efficiency",
            label: "utilisation",
            value: total / capacity,
            unit: Unit::Share,
            formula: "sum of trips / (width * most trips)",
            worked: format!("{} / ({width} * {max})", number(total)),
        },
        Figure {
            name: "balanced_slots",
            label: "slots if the trips were shared evenly",
            value: total / f64::from(width) * f64::from(body),
            unit: Unit::Slots,
            formula: "sum of trips / width * body (a lower bound: what sorting by length or splitting rows can reach)",
            worked: format!("{} / {width} * {body}", number(total)),
        },
    ];
    // One bar for each stretch of trips with the same lanes: lanes leave in the order of their trips.
    let mut ends: Vec<u32> = list.iter().filter(|t| t.1 > 0 && t.0 > 0).map(|t| t.0).collect();
    ends.sort_unstable();
    ends.dedup();
    let mut from = 0;
    let bars = ends
        .into_iter()
        .map(|to| {
            let lanes: u32 = list.iter().filter(|t| t.0 >= to).map(|t| t.1).sum();
            let bar = Bar {
                label: format!("trips {} to {to}: {lanes} lanes", from + 1),
                slots: f64::from(to - from) * f64::from(body),
                lanes: f64::from(lanes),
            };
            from = to;
            bar
        })
        .collect();
    let least = list.iter().filter(|t| t.1 > 0).map(|t| t.0).min().unwrap_or(0);
    Ok(Answer {
        question: format!("A loop of {body} instructions, {lanes} of {width} lanes, {least} to {max} trips"),
        width,
        figures,
        bars,
        notes: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unequal() {
        let a = trips(&[(20, 1), (4, 31)], 3, 32).unwrap();
        assert_eq!(a.figure("max_trips").unwrap().value, 20.0);
        assert_eq!(a.figure("slots").unwrap().value, 60.0);
        assert_eq!(a.figure("lane_efficiency").unwrap().value, 144.0 / 640.0);
        assert_eq!(a.bars.len(), 2);
        assert_eq!((a.bars[0].slots, a.bars[0].lanes, a.bars[1].slots, a.bars[1].lanes), (12.0, 32.0, 48.0, 1.0));
        let even: Vec<(u32, u32)> = (1..=32).map(|t| (t, 1)).collect();
        assert_eq!(trips(&even, 1, 32).unwrap().figure("lane_efficiency").unwrap().value, 528.0 / 1024.0);
        assert!(trips(&[(0, 32)], 1, 32).is_err());
        assert!(trips(&[(1, 33)], 1, 32).is_err());
    }
}
