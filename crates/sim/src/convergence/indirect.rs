//! The order in which the targets of an indirect branch run.

use super::Group;

/// Puts `groups` (distinct targets) into the order in which they run.
///
/// The target of the lowest lane is split from the rest, and the smaller of the two runs first, the lowest lane's at a tie; the
/// rest is split again in the same way when it runs. A target that was put off counts with the rest from then on.
pub(super) fn order(groups: &mut Vec<Group>) {
    groups.sort_by_key(|g| g.mask.0.trailing_zeros());
    let total: u32 = groups.iter().map(|g| g.mask.count()).sum();
    let mut late: Vec<Group> = Vec::new();
    let mut left = total;
    let mut early: Vec<Group> = Vec::with_capacity(groups.len());
    for &g in groups.iter() {
        let size = g.mask.count();
        if left - size < size && !is_last(groups, &g) {
            late.push(g);
        } else {
            left -= size;
            early.push(g);
        }
    }
    early.extend(late.into_iter().rev());
    *groups = early;
}

fn is_last(groups: &[Group], g: &Group) -> bool {
    groups.last() == Some(g)
}
