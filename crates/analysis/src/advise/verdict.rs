//! The one answer: which fix, or to leave it.

use super::{Advice, Confidence, Fix, Plan, Verdict, WORTH_IT};
use crate::words;

/// Of a fix that only a run could prove.
const UNPROVED: &str =
    "The threads of this kernel pass values to each other: whether they may change places was not proved.";

/// Share of the launch by which a fix that was run again may save less than one that was not, and yet be preferred.
const NEAR: f64 = 0.1;

impl Plan {
    /// Ranks the fixes and gives the answer. `memory_bound` says, in words, that a launch with so many warp instructions
    /// would not be faster, if that is so. Fixes may change places: of each comes its place in the plan, with its order.
    #[allow(clippy::type_complexity)] // Both lists belong to the fixes.
    pub fn conclude(self, memory_bound: &dyn Fn(&Fix) -> Option<String>) -> (Advice, Vec<(usize, Option<Vec<u32>>)>) {
        let Plan { mut advice, orders, error, together, .. } = self;
        for (fix, order) in advice.fixes.iter_mut().zip(&orders) {
            if together && order.is_some() && !matches!(fix.confidence, Confidence::Confirmed | Confidence::Refuted) {
                fix.caveats.push(UNPROVED.into());
            }
        }
        let mut all: Vec<_> =
            std::mem::take(&mut advice.fixes).into_iter().zip(orders.into_iter().enumerate()).collect();
        all.sort_by_key(|(f, _)| rank(f));
        let (fixes, from): (Vec<Fix>, Vec<_>) = all.into_iter().unzip();
        advice.fixes = fixes;
        advice.verdict = verdict(&advice, error.as_deref(), memory_bound);
        advice.summary = summary(&advice);
        let caveats = caveats(&advice);
        advice.caveats.extend(caveats);
        (advice, from)
    }
}

/// Fixes in order: those that save most first, those that were refuted last.
pub(super) fn rank(fix: &Fix) -> (bool, std::cmp::Reverse<i64>, super::Method) {
    (fix.confidence == Confidence::Refuted, std::cmp::Reverse(fix.saved()), fix.method)
}

/// Warp instructions saved by one application for one launch, its own cost paid.
fn net(fix: &Fix) -> i64 {
    fix.saved().saturating_sub(i64::try_from(fix.cost.warp_instructions).unwrap_or(i64::MAX))
}

fn verdict(advice: &Advice, error: Option<&str>, memory_bound: &dyn Fn(&Fix) -> Option<String>) -> Verdict {
    if let Some(error) = error {
        return Verdict::LeaveIt {
            why: format!("first correct the synchronisation: {error}; figures of a faulty kernel are worth nothing"),
        };
    }
    let whole = advice.before as f64;
    let worth = |saved: i64| saved > 0 && saved as f64 >= WORTH_IT * whole;
    let proved = |f: &Fix| !f.caveats.iter().any(|c| c == UNPROVED);
    let stands = |f: &Fix| proved(f) && f.confidence != Confidence::Refuted && worth(f.saved());
    // What pays within one launch first; else what pays if one order serves many.
    let mut list: Vec<(usize, &Fix)> =
        advice.fixes.iter().enumerate().filter(|(_, f)| stands(f) && worth(net(f))).collect();
    if list.is_empty() {
        list = advice.fixes.iter().enumerate().filter(|(_, f)| stands(f)).collect();
    }
    let Some(most) = list.iter().map(|(_, f)| f.saved()).max() else {
        return Verdict::LeaveIt { why: nothing(advice) };
    };
    // A fix that was run again counts for more than a slightly better one that was not.
    let near = |f: &Fix| (most - f.saved()) as f64 <= NEAR * whole;
    let confirmed = |f: &Fix| f.confidence == Confidence::Confirmed && near(f);
    let best = list.iter().filter(|(_, f)| confirmed(f)).max_by_key(|(i, f)| (net(f), std::cmp::Reverse(*i)));
    let best = best.or_else(|| list.iter().find(|(_, f)| f.saved() == most));
    // Fewer warp instructions are not less time where memory decides: a fix that is surely faster goes first.
    let time = |f: &Fix| f.speedup.map(|s| (s.low, s.high));
    let best = best.map(|chosen| {
        let surely =
            |f: &Fix| matches!((time(f), time(chosen.1)), (Some((low, _)), Some((_, high))) if low > high.max(1.0));
        // What was not run is timed as if its work were spread over the blocks as before, which it need not be.
        let timed = |f: &Fix| f.confidence == Confidence::Confirmed;
        let faster = list.iter().filter(|(_, f)| timed(f) && surely(f));
        faster.max_by(|a, b| time(a.1).partial_cmp(&time(b.1)).unwrap_or(std::cmp::Ordering::Equal)).unwrap_or(chosen)
    });
    match best {
        Some((i, fix)) => match memory_bound(fix) {
            Some(why) => Verdict::LeaveIt { why },
            None => Verdict::Fix(*i),
        },
        None => Verdict::LeaveIt { why: nothing(advice) },
    }
}

/// Why nothing is worth a change.
fn nothing(advice: &Advice) -> String {
    let lost: u64 = advice.before.saturating_sub(advice.bound);
    let share = lost as f64 / advice.before.max(1) as f64;
    if share < WORTH_IT {
        return format!(
            "warps are full: of {} warp instructions full warps would need {}, so nothing can save more than {}",
            words::count(advice.before),
            words::count(advice.bound),
            words::percent(share)
        );
    }
    let open =
        |f: &&Fix| f.saved() > 0 && f.confidence != Confidence::Refuted && !f.caveats.iter().any(|c| c == UNPROVED);
    match advice.fixes.iter().find(open) {
        Some(f) => format!(
            "the best that could be found ({}) saves {} of {} warp instructions, {}",
            f.title,
            words::count(f.saved().unsigned_abs()),
            words::count(advice.before),
            words::percent(f.saved() as f64 / advice.before.max(1) as f64)
        ),
        None => {
            "no other order of the threads and no known change of the code would issue fewer warp instructions".into()
        }
    }
}

fn summary(advice: &Advice) -> String {
    match (&advice.verdict, advice.best()) {
        (Verdict::LeaveIt { why }, _) => format!("Leave it: {why}."),
        (_, Some(fix)) => {
            let saved = fix.saved();
            let mut text = format!(
                "Worth fixing: {}. It saves {} of {} warp instructions ({}), {} {}",
                fix.title,
                words::count(saved.unsigned_abs()),
                words::count(fix.before),
                words::percent(saved as f64 / fix.before.max(1) as f64),
                match fix.confidence {
                    Confidence::Confirmed => "confirmed by running it again:",
                    Confidence::Modelled => "by the model:",
                    Confidence::Estimate | Confidence::Refuted => "as an estimate:",
                },
                words::count(fix.after()),
            );
            text.push_str(&match (fix.cost.warp_instructions, fix.break_even()) {
                (0, _) | (_, None) => ".".to_owned(),
                (cost, Some(1)) => {
                    format!(". The fix itself costs about {} each time, so it pays in each launch.", words::count(cost))
                }
                (cost, Some(n)) => format!(
                    ". The fix itself costs about {}: it pays if one order serves at least {} launches.",
                    words::count(cost),
                    words::count(n)
                ),
            });
            if let Some(s) = fix.speedup.filter(|s| s.high < 1.0 + WORTH_IT) {
                text.push_str(&format!(
                    " But the launch as it is would hardly run faster for it ({:.2} to {:.2} times as fast, an estimate): \
                     see the time below.",
                    s.low, s.high
                ));
            }
            text
        }
        _ => String::new(),
    }
}

fn caveats(advice: &Advice) -> Vec<String> {
    let mut list = Vec::new();
    if advice.estimate {
        list.push("Counted on PTX: an estimate. What hardware issues only machine code tells.".to_owned());
    }
    if !advice.model.complete {
        list.push(
            "Only the first blocks were recorded by thread: predictions scale them up, and nothing was run again."
                .to_owned(),
        );
    }
    let (modelled, measured) = (advice.model.modelled as f64, advice.model.measured as f64);
    if measured > 0.0 && (modelled / measured - 1.0).abs() > 0.1 {
        list.push(format!(
            "The model by itself prices the launch as it ran at {} warp instructions; {} were counted. Predictions are \
             adjusted by that, block by block.",
            words::count(advice.model.modelled),
            words::count(advice.model.measured)
        ));
    }
    list
}
