//! The order in which the targets of an indirect branch run.

use super::Group;

/// Puts `groups` (distinct targets) into the order in which they run.
///
/// The targets are taken in the order of their lowest lanes. One that has at most half of the lanes not yet placed is next;
/// one that has more runs after all others.
pub(super) fn order(groups: &mut Vec<Group>) {
    groups.sort_by_key(|g| g.mask.0.trailing_zeros());
    let mut left: u32 = groups.iter().map(|g| g.mask.count()).sum();
    let mut last: Vec<Group> = Vec::new();
    groups.retain(|g| {
        let size = g.mask.count();
        let placed = 2 * size <= left;
        if placed {
            left -= size;
        } else {
            last.push(*g);
        }
        placed
    });
    groups.extend(last.into_iter().rev());
}
