//! Many warps of independent items: how many paths meet in one warp, scattered or packed, and when a sort pays.

use super::{Answer, Bar, Figure, ModelError, Unit, any, number, probability, sum};
use crate::words;

/// An arm and the share of items that take it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arm {
    /// Instructions.
    pub length: u32,
    /// Share of the items, relative to the other arms' weights.
    pub weight: f64,
}

/// What a sort costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sort {
    /// Items, one a lane.
    pub items: u64,
    /// Bits of the key.
    pub key_bits: u32,
    /// Bits that a pass sorts by.
    pub radix_bits: u32,
    /// Warp instructions that a pass issues for one warp of items. An estimate that depends on the sort used.
    pub pass_cost: f64,
    /// Launches that use one sorted order.
    pub uses: u64,
}

/// A rare path among many warps: scattered over them at random, or packed into as few warps as hold it.
///
/// # Errors
/// A probability outside 0..=1, or nothing to run.
pub fn rare(p: f64, long: u32, short: u32, warps: u64, width: u32) -> Result<Answer, ModelError> {
    let p = probability(p)?;
    if warps == 0 || (long == 0 && short == 0) {
        return Err(ModelError::Empty { what: "path" });
    }
    let w = warps as f64;
    let (hit, all_rare) = (any(p, width), p.powi(width as i32));
    let (long_f, short_f) = (f64::from(long), f64::from(short));
    let scattered = w * (long_f * hit + short_f * (1.0 - all_rare));
    // Whole warps of either kind, and at most one that holds both.
    let rare_warps = w * p;
    let packed = rare_warps.ceil() * long_f + (w - rare_warps.floor()) * short_f;
    let useful = w * f64::from(width) * (p * long_f + (1.0 - p) * short_f);
    let figures = vec![
        Figure {
            name: "warps_with_rare",
            label: "warps that hold a rare lane",
            value: hit,
            unit: Unit::Share,
            formula: "1 - (1 - p)^width",
            worked: format!("1 - (1 - {p})^{width}"),
        },
        Figure {
            name: "scattered_slots",
            label: "scattered, expected",
            value: scattered,
            unit: Unit::Slots,
            formula: "warps * (long * (1 - (1 - p)^width) + short * (1 - p^width))",
            worked: format!("{warps} * ({long} * {} + {short} * {})", number(hit), number(1.0 - all_rare)),
        },
        Figure {
            name: "packed_slots",
            label: "packed",
            value: packed,
            unit: Unit::Slots,
            formula: "long * ceil(warps * p) + short * (warps - floor(warps * p))",
            worked: format!("{long} * {} + {short} * {}", number(rare_warps.ceil()), number(w - rare_warps.floor())),
        },
        Figure {
            name: "saved_slots",
            label: "saved by packing",
            value: scattered - packed,
            unit: Unit::Slots,
            formula: "scattered - packed",
            worked: format!("{} - {}", number(scattered), number(packed)),
        },
        Figure {
            name: "scattered_efficiency",
            label: "lane efficiency, scattered",
            value: useful / (scattered * f64::from(width)),
            unit: Unit::Share,
            formula: "width * warps * (p * long + (1 - p) * short) / (width * scattered slots)",
            worked: format!("{} / ({width} * {})", number(useful), number(scattered)),
        },
    ];
    let bars = vec![
        Bar { label: "scattered".into(), slots: scattered, lanes: useful / scattered },
        Bar { label: "packed".into(), slots: packed, lanes: useful / packed },
    ];
    Ok(Answer {
        question: format!(
            "{} warps of {width} lanes; a lane takes {long} instructions with probability {p}, else {short}",
            words::count(warps)
        ),
        width,
        figures,
        bars,
        notes: vec!["Scattered is an expected value for independent lanes; one launch lies around it.".into()],
    })
}

/// A switch over items in arrival order, against the same items sorted by their arm.
///
/// # Errors
/// No arm with a length and a weight, or a sort of nothing.
pub fn sort(arms: &[Arm], sort: Sort, width: u32) -> Result<Answer, ModelError> {
    let total: f64 = arms.iter().map(|a| a.weight).sum();
    if let Some(bad) = arms.iter().find(|a| !a.weight.is_finite() || a.weight < 0.0) {
        return Err(ModelError::Probability { value: bad.weight });
    }
    if !total.is_finite() || total <= 0.0 || arms.iter().all(|a| a.length == 0) || sort.radix_bits == 0 {
        return Err(ModelError::Empty { what: "path" });
    }
    if !sort.pass_cost.is_finite() || sort.pass_cost < 0.0 || sort.items == 0 || sort.uses == 0 {
        return Err(ModelError::Empty { what: "sort" });
    }
    let share = |a: &Arm| a.weight / total;
    let before: f64 = arms.iter().map(|a| f64::from(a.length) * any(share(a), width)).sum();
    let after: f64 = arms.iter().map(|a| f64::from(a.length) * share(a)).sum();
    let kinds: f64 = arms.iter().map(|a| any(share(a), width)).sum();
    let warps = sort.items.div_ceil(u64::from(width)) as f64;
    let passes = f64::from(sort.key_bits.div_ceil(sort.radix_bits));
    let one_sort = passes * sort.pass_cost;
    let saved = before - after;
    let terms: Vec<String> = arms.iter().map(|a| format!("{}*{}", a.length, number(any(share(a), width)))).collect();
    let after_terms: Vec<String> = arms.iter().map(|a| format!("{}*{}", a.length, number(share(a)))).collect();
    let net = warps * (saved * sort.uses as f64 - one_sort);
    let figures = vec![
        Figure {
            name: "paths_per_warp",
            label: "different arms in a warp, expected",
            value: kinds,
            unit: Unit::Number,
            formula: "sum over arms of 1 - (1 - share)^width",
            worked: number(kinds),
        },
        Figure {
            name: "before_slots",
            label: "slots a warp in arrival order",
            value: before,
            unit: Unit::Slots,
            formula: "sum over arms of length * (1 - (1 - share)^width)",
            worked: sum(&terms),
        },
        Figure {
            name: "after_slots",
            label: "slots a warp when sorted",
            value: after,
            unit: Unit::Slots,
            formula: "sum over arms of length * share (and at most arms - 1 warps that hold two)",
            worked: sum(&after_terms),
        },
        Figure {
            name: "sort_slots",
            label: "cost of the sort, a warp of items",
            value: one_sort,
            unit: Unit::Slots,
            formula: "ceil(key bits / radix bits) * cost of a pass",
            worked: format!("{} * {}", number(passes), number(sort.pass_cost)),
        },
        Figure {
            name: "net_slots",
            label: "saved in all",
            value: net,
            unit: Unit::Slots,
            formula: "warps * ((before - after) * uses - sort)",
            worked: format!(
                "{} * (({} - {}) * {} - {})",
                number(warps),
                number(before),
                number(after),
                sort.uses,
                number(one_sort)
            ),
        },
        Figure {
            name: "break_even_uses",
            label: "launches until the sort has paid",
            value: if saved > 0.0 { one_sort / saved } else { f64::INFINITY },
            unit: Unit::Number,
            formula: "sort / (before - after)",
            worked: format!("{} / {}", number(one_sort), number(saved)),
        },
        Figure {
            name: "break_even_length",
            label: "factor on the arms' lengths from which one use pays",
            value: if saved > 0.0 { one_sort / (saved * sort.uses as f64) } else { f64::INFINITY },
            unit: Unit::Times,
            formula: "sort / ((before - after) * uses)",
            worked: format!("{} / ({} * {})", number(one_sort), number(saved), sort.uses),
        },
    ];
    let verdict = if net > 0.0 { "The sort pays." } else { "The sort costs more than it saves." };
    Ok(Answer {
        question: format!(
            "{} items in {} arm(s), one a lane, sorted by a key of {} bits for {} launch(es)",
            words::count(sort.items),
            arms.len(),
            sort.key_bits,
            sort.uses
        ),
        width,
        figures,
        bars: vec![
            Bar { label: "arrival order".into(), slots: before, lanes: after * f64::from(width) / before },
            Bar { label: "sorted".into(), slots: after, lanes: f64::from(width) },
            Bar { label: "the sort itself, once".into(), slots: one_sort, lanes: f64::from(width) },
        ],
        notes: vec![
            verdict.into(),
            "The cost of a pass is an estimate; a sort also moves the items through memory, which is not counted here."
                .into(),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_path() {
        let a = rare(1.0 / 32.0, 100, 5, 1024, 32).unwrap();
        assert!((a.figure("warps_with_rare").unwrap().value - 0.637_940).abs() < 1e-5);
        assert_eq!(a.figure("packed_slots").unwrap().value, 32.0 * 100.0 + 992.0 * 5.0);
        let all = rare(1.0, 100, 5, 8, 32).unwrap();
        assert_eq!(all.figure("scattered_slots").unwrap().value, 800.0);
        assert_eq!(all.figure("packed_slots").unwrap().value, 800.0);
        assert_eq!(rare(0.0, 100, 5, 8, 32).unwrap().figure("scattered_slots").unwrap().value, 40.0);
        assert!(rare(1.5, 1, 1, 1, 32).is_err());
        assert!(rare(f64::NAN, 1, 1, 1, 32).is_err());
    }

    #[test]
    fn sorting() {
        let how = Sort { items: 65_536, key_bits: 5, radix_bits: 8, pass_cost: 60.0, uses: 1 };
        let arms = vec![Arm { length: 40, weight: 1.0 }; 8];
        let a = sort(&arms, how, 32).unwrap();
        let kinds = 8.0 * (1.0 - (7.0f64 / 8.0).powi(32));
        assert!((a.figure("before_slots").unwrap().value - 40.0 * kinds).abs() < 1e-9);
        assert!((a.figure("after_slots").unwrap().value - 40.0).abs() < 1e-9);
        assert!(a.figure("net_slots").unwrap().value > 0.0);
        let one = sort(&arms[..1], how, 32).unwrap();
        assert!(one.figure("break_even_uses").unwrap().value.is_infinite());
        assert!(one.figure("net_slots").unwrap().value < 0.0);
        assert!(sort(&[], how, 32).is_err());
        assert!(sort(&[Arm { length: 1, weight: -1.0 }], how, 32).is_err());
    }
}
