//! `uncoalesced-access`.

use lanescope_ir::finding::Evidence;
use lanescope_ir::op::memory::MemoryOp;
use lanescope_ir::{Finding, LaneCounts, Op, Severity};

use super::{Context, Rule};
use crate::lines::{Place, place};
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

Evidence: accesses, sectors, sectors_ideal, excess, share_of_sectors.",
    check,
};

fn check(c: &Context<'_>, out: &mut Vec<Finding>) {
    let all: u64 = c.profile.counts.iter().map(|n| n.sectors).fold(0, u64::saturating_add);
    // Accesses of one line are one finding.
    let mut found: Vec<(Place, &str, Vec<u32>)> = Vec::new();
    for (at, n) in c.profile.counts.iter().enumerate() {
        if n.sectors < 2 * n.sectors_ideal.max(1) {
            continue;
        }
        let inst = at as u32;
        let access = match c.kernel.instructions.get(at).map(|i| &i.op) {
            Some(Op::Memory(MemoryOp::Store { .. })) => "store",
            Some(Op::Memory(MemoryOp::Atomic { .. })) => "atomic",
            _ => "load",
        };
        let place = match place(c.kernel, &c.analysis.structure, inst) {
            Place::Block(_) => Place::Block(inst),
            line => line,
        };
        match found.iter_mut().find(|f| f.0 == place && f.1 == access) {
            Some(f) => f.2.push(inst),
            None => found.push((place, access, vec![inst])),
        }
    }
    let sums = found.into_iter().map(|(_, access, insts)| {
        let sum = |f: fn(&LaneCounts) -> u64| insts.iter().map(|&i| f(&c.profile.counts[i as usize])).sum::<u64>();
        (sum(|n| n.sectors), sum(|n| n.sectors_ideal), access, insts)
    });
    let mut sums: Vec<_> = sums.filter(|s| (s.0 - s.1) as f64 >= SHARE * all.max(1) as f64).collect();
    sums.sort_by_key(|s| std::cmp::Reverse(s.0 - s.1));
    for (sectors, ideal, access, insts) in sums {
        let (excess, Some(&inst)) = (sectors - ideal, insts.first()) else { continue };
        let share = excess as f64 / all.max(1) as f64;
        let what = match insts.len() {
            1 => format!("The {access} `{}` at {}", words::text(c.kernel, inst), words::place(c.kernel, inst)),
            n => format!("{n} {access}s at {}", words::at_line(c.kernel, inst).unwrap_or_default()),
        };
        out.push(Finding {
            rule: RULE.name,
            severity: if share >= MUCH && all >= FEW { Severity::Warning } else { Severity::Info },
            inst: Some(inst),
            message: format!(
                "{what} touch{} {} sectors where neighbouring addresses would need {}: the excess is {} of all sectors of \
                 the launch.",
                if insts.len() == 1 { "es" } else { "" },
                words::count(sectors),
                words::count(ideal),
                words::percent(share),
            ),
            evidence: vec![
                ("accesses", Evidence::Count(insts.len() as u64)),
                ("sectors", Evidence::Count(sectors)),
                ("sectors_ideal", Evidence::Count(ideal)),
                ("excess", Evidence::Count(excess)),
                ("share_of_sectors", Evidence::Ratio(share)),
            ],
        });
    }
}
