//! The stack of parked groups and how they merge.

use crate::convergence::Group;

/// How a group came to stand where it does. At one position, groups of different sides do not merge.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Taken,
    FallThrough,
}

#[derive(Clone, Copy)]
struct Parked {
    group: Group,
    side: Side,
}

impl Parked {
    /// Takes `other` in if the two stand at the same place.
    fn merge(&mut self, other: &Parked) -> bool {
        let same = self.group.pc == other.group.pc && self.side == other.side;
        if same {
            self.group.mask = self.group.mask | other.group.mask;
        }
        same
    }
}

#[derive(Clone, Default)]
pub(super) struct ParkedStack(Vec<Parked>);

impl ParkedStack {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn push(&mut self, group: Group, side: Side) {
        self.0.push(Parked { group, side });
    }

    pub(super) fn pop(&mut self) -> Option<Group> {
        self.0.pop().map(|p| p.group)
    }

    /// What a divergent branch does before it parks a group.
    pub(super) fn merge_adjacent(&mut self) {
        if self.0.len() > 1 {
            self.0.dedup_by(|above, below| below.merge(above));
        }
    }

    /// What a memory instruction does as the profiler instruments it.
    pub(super) fn merge_all(&mut self) {
        let mut kept = 0;
        for i in 0..self.0.len() {
            let this = self.0[i];
            if !self.0[..kept].iter_mut().any(|p| p.merge(&this)) {
                self.0[kept] = this;
                kept += 1;
            }
        }
        self.0.truncate(kept);
    }

    /// From the bottom.
    pub(super) fn groups(&self) -> impl Iterator<Item = Group> {
        self.0.iter().map(|p| p.group)
    }
}
