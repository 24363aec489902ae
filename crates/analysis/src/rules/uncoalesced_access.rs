//! `uncoalesced-access`.

use lanescope_ir::finding::Evidence;
use lanescope_ir::op::memory::MemoryOp;
use lanescope_ir::{Finding, Op, Severity};

use super::{Context, Rule};
use crate::words;

/// Share of a launch's sectors from which on those of one instruction are worth a word.
const SHARE: f64 = 0.05;
/// Share from which on they are a warning.
const MUCH: f64 = 0.25;
/// Sectors below which nothing is a warning.
const FEW: u64 = 10_000;

/// An access that touches more sectors than it has to.
pub(super) const RULE: Rule = Rule {
    name: "uncoalesced-access",
    summary: "an access whose lanes lie in more 32-byte sectors than they need",
    page: "\
Memory moves sectors of 32 bytes. A warp whose lanes read neighbouring words of 4 bytes needs 4 sectors; with a stride of
32 bytes or with scattered addresses it needs 32, and seven eighths of what is moved is thrown away. The ideal is what the
same lanes would touch with neighbouring addresses, never more than they do touch; both figures are those of Nsight's
columns \"L2 Theoretical Sectors Global\" and \"Ideal\". A first-level cache may still have the rest of a sector when another
lane or turn wants it; the roofline says how many sectors got past it.

What helps: let neighbouring lanes read neighbouring elements (structures of arrays, a transposed loop, one warp a row
instead of one lane a row); load a tile into shared memory in order and pick from it there; sort the indices.

Evidence: sectors, sectors_ideal, excess, share_of_sectors.",
    check,
};

fn check(c: &Context<'_>, out: &mut Vec<Finding>) {
    let all: u64 = c.profile.counts.iter().map(|n| n.sectors).fold(0, u64::saturating_add);
    let mut found: Vec<(u64, u32)> = Vec::new();
    for (at, n) in c.profile.counts.iter().enumerate() {
        let excess = n.sectors.saturating_sub(n.sectors_ideal);
        if n.sectors >= 2 * n.sectors_ideal.max(1) && excess as f64 >= SHARE * all.max(1) as f64 {
            found.push((excess, at as u32));
        }
    }
    found.sort_by_key(|f| std::cmp::Reverse(f.0));
    for (excess, inst) in found {
        let n = c.profile.counts[inst as usize];
        let share = excess as f64 / all.max(1) as f64;
        let access = match c.kernel.instructions.get(inst as usize).map(|i| &i.op) {
            Some(Op::Memory(MemoryOp::Store { .. })) => "stores",
            Some(Op::Memory(MemoryOp::Atomic { .. })) => "makes atomics",
            _ => "loads",
        };
        out.push(Finding {
            rule: RULE.name,
            severity: if share >= MUCH && all >= FEW { Severity::Warning } else { Severity::Info },
            inst: Some(inst),
            message: format!(
                "`{}` at {} {access} {} sectors where neighbouring addresses would need {}: {} of all sectors of the \
                 launch are its excess.",
                words::text(c.kernel, inst),
                words::place(c.kernel, inst),
                words::count(n.sectors),
                words::count(n.sectors_ideal),
                words::percent(share),
            ),
            evidence: vec![
                ("sectors", Evidence::Count(n.sectors)),
                ("sectors_ideal", Evidence::Count(n.sectors_ideal)),
                ("excess", Evidence::Count(excess)),
                ("share_of_sectors", Evidence::Ratio(share)),
            ],
        });
    }
}
