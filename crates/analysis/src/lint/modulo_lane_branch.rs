//! `modulo-lane-branch`.

use lanescope_ir::finding::Evidence;
use lanescope_ir::{LaneMask, Severity};

use super::LintRule;
use super::arms::{arms, lanes};
use super::cx::{Cx, Step, chain};
use crate::words;

/// Sides shorter than this together are not worth the change.
const WORTH: u64 = 12;

/// A choice by lane that could be one by warp.
pub(super) const RULE: LintRule = LintRule {
    name: "modulo-lane-branch",
    summary: "a branch on the thread's index modulo a small number: every warp runs both sides",
    page: "\
`if (tid % 2)` splits every warp into 16 and 16 lanes, and every warp runs both sides. `if ((tid / 32) % 2)` gives as many
threads to each side, but a warp runs one side only: with sides of equal length that is half the instructions.

What helps: choose by warp instead of by lane, and let each thread find its item accordingly; or sort the items so that
the threads of a warp agree.

Instructions in loops are counted once.

Evidence: lanes_taken, period, sides, warp_instructions_now, warp_instructions_aligned.",
    check: Some(check),
};

/// The shortest period of a mask of 32 lanes, if it is 16 or less.
fn period(mask: LaneMask) -> Option<u32> {
    let m = mask.0 as u32;
    [1u32, 2, 4, 8, 16].into_iter().find(|&p| m.rotate_right(p) == m)
}

fn check(c: &mut Cx<'_>) {
    for branch in &c.uniformity.branches {
        let (Some((taken, there)), Some((jump, fall))) = (lanes(branch), arms(c, branch)) else { continue };
        let Some(p) = period(taken).filter(|&p| p > 1 && there == LaneMask::first(32)) else { continue };
        if jump.len + fall.len < WORTH {
            continue;
        }
        let now = jump.len + fall.len;
        let share = f64::from(taken.count()) / 32.0;
        let aligned = share * jump.len as f64 + (1.0 - share) * fall.len as f64;
        let message = format!(
            "{} at {} sends lanes {taken} of every warp one way and the rest the other: a pattern that repeats every {p} \
             lanes. Each warp runs both sides, {now} instructions{}; chosen by warp, (tid / 32) % {p} for tid % {p}, it \
             would be {} on average.",
            c.text(branch.inst),
            c.place(branch.inst),
            if jump.loops || fall.loops { " with loops counted once" } else { "" },
            words::amount(aligned),
        );
        let mut witness = vec![Step { inst: branch.inst, note: format!("lanes {taken} jump") }];
        witness.extend(chain(c.kernel, branch).into_iter().skip(1).take(6));
        let evidence = vec![
            ("lanes_taken", Evidence::Text(taken.to_string())),
            ("period", Evidence::Count(p.into())),
            ("sides", Evidence::Text(format!("{} and {}", jump.len, fall.len))),
            ("warp_instructions_now", Evidence::Count(now)),
            ("warp_instructions_aligned", Evidence::Ratio(aligned)),
        ];
        c.report(RULE.name, Severity::Info, branch.inst, message, witness, evidence);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods() {
        assert_eq!(period(LaneMask(0xaaaa_aaaa)), Some(2));
        assert_eq!(period(LaneMask(0x1111_1111)), Some(4));
        assert_eq!(period(LaneMask(0x00ff_00ff)), Some(16));
        assert_eq!(period(LaneMask(0x0000_ffff)), None);
        assert_eq!(period(LaneMask(1)), None);
        assert_eq!(period(LaneMask(0xffff_ffff)), Some(1));
    }
}
