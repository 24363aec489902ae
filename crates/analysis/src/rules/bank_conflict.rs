//! `bank-conflict`.

use lanescope_ir::finding::Evidence;
use lanescope_ir::{Finding, Severity};

use super::{Context, Rule};
use crate::words;

/// Passes beyond the ideal, as a share of all warp instructions, from which on one instruction is worth a word.
const SHARE: f64 = 0.01;
/// Share from which on it is a warning: an SM makes one pass a cycle, while it issues four instructions.
const MUCH: f64 = 0.1;

/// An access to shared memory that takes more passes than it has to.
pub(super) const RULE: Rule = Rule {
    name: "bank-conflict",
    summary: "an access to shared memory whose lanes meet in the same banks",
    page: "\
Shared memory has 32 banks of 4 bytes. In one pass each bank serves one word; lanes that want different words of the same
bank wait for further passes, up to 32 for one instruction. Lanes that want the same word share it. Wide accesses (8 and 16
bytes a lane) take 2 and 4 passes at best, which is no conflict.

What helps: pad rows by one element (`tile[32][33]`), swizzle the index (`x ^ y`), or change which lane takes which element,
so that the lanes of a warp fall into different banks. Passes count against a pipeline of one pass a cycle and SM; below a
tenth of the warp instructions they rarely matter.

Evidence: wavefronts, wavefronts_ideal, excess.",
    check,
};

fn check(c: &Context<'_>, out: &mut Vec<Finding>) {
    let issued = c.analysis.totals.inst_executed.max(1) as f64;
    let mut found: Vec<(u64, u32)> = Vec::new();
    for (at, n) in c.profile.counts.iter().enumerate() {
        let excess = n.shared_wavefronts.saturating_sub(n.shared_wavefronts_ideal);
        if excess as f64 >= SHARE * issued && excess > 0 {
            found.push((excess, at as u32));
        }
    }
    found.sort_by_key(|f| std::cmp::Reverse(f.0));
    for (excess, inst) in found {
        let n = c.profile.counts[inst as usize];
        out.push(Finding {
            rule: RULE.name,
            severity: if excess as f64 >= MUCH * issued { Severity::Warning } else { Severity::Info },
            inst: Some(inst),
            message: format!(
                "`{}` at {} takes {} passes through shared memory where {} would do: its lanes meet in the same banks.",
                words::text(c.kernel, inst),
                words::place(c.kernel, inst),
                words::count(n.shared_wavefronts),
                words::count(n.shared_wavefronts_ideal),
            ),
            evidence: vec![
                ("wavefronts", Evidence::Count(n.shared_wavefronts)),
                ("wavefronts_ideal", Evidence::Count(n.shared_wavefronts_ideal)),
                ("excess", Evidence::Count(excess)),
            ],
        });
    }
}
