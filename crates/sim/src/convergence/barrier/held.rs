//! Lanes that wait, and for what.

use lanescope_ir::LaneMask;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    Barrier(u8),
    WarpSync { wanted: LaneMask, exclusive: bool },
    Collective { wanted: LaneMask, resume: u32 },
    Block,
}

/// Lanes that cannot run, and where they go on.
#[derive(Clone, Copy)]
pub(super) struct Held {
    pub(super) lanes: LaneMask,
    pub(super) pc: u32,
    pub(super) next: u32,
    pub(super) hold: Hold,
}

impl Held {
    /// Whether `other` waits at a WARPSYNC that is complete together with this one: a plain one matches at the same instruction,
    /// `.COLLECTIVE` anywhere.
    pub(super) fn matches(&self, other: &Held) -> bool {
        match (self.hold, other.hold) {
            (Hold::Collective { wanted: a, .. }, Hold::Collective { wanted: b, .. }) => a == b,
            (Hold::WarpSync { .. }, Hold::WarpSync { .. }) => self.hold == other.hold && self.pc == other.pc,
            _ => false,
        }
    }
}

#[derive(Clone, Default)]
pub(super) struct HeldList(Vec<Held>);

impl HeldList {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn push(&mut self, held: Held) {
        self.0.push(held);
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, Held> {
        self.0.iter()
    }

    /// The lanes of the entries that `is` names.
    pub(super) fn lanes(&self, is: impl Fn(&Held) -> bool) -> LaneMask {
        self.0.iter().filter(|h| is(h)).fold(LaneMask::EMPTY, |m, h| m | h.lanes)
    }

    /// Takes the lanes of `who` off the entries that `is` names, in the order of arrival.
    pub(super) fn take(&mut self, who: LaneMask, is: impl Fn(&Held) -> bool) -> Vec<Held> {
        let mut taken = Vec::new();
        self.0.retain_mut(|h| {
            let go = h.lanes & who;
            if is(h) && !go.is_empty() {
                taken.push(Held { lanes: go, ..*h });
                h.lanes = h.lanes - go;
            }
            !h.lanes.is_empty()
        });
        taken
    }
}
