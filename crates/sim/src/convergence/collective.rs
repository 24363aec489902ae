//! WARPSYNC.COLLECTIVE and WARPSYNC.EXCLUSIVE: code that runs once for each mask.

use super::Group;
use lanescope_ir::LaneMask;

#[derive(Clone, Copy)]
struct Member {
    lanes: LaneMask,
    resume: u32,
    /// Of the group whose arrival completed the mask.
    last: bool,
}

/// Bodies that wait for their turn, and where the lanes inside go on.
#[derive(Clone, Default)]
pub(super) struct Collective {
    queue: Vec<Group>,
    members: Vec<Member>,
}

impl Collective {
    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.members.clear();
    }

    /// Queues a body.
    pub(super) fn body(&mut self, group: Group) {
        self.queue.push(group);
    }

    /// `lanes` go on at `resume` after the body they are in.
    pub(super) fn enter(&mut self, lanes: LaneMask, resume: u32, last: bool) {
        self.forget(lanes);
        self.members.push(Member { lanes, resume, last });
    }

    /// `lanes` are no longer inside a body.
    pub(super) fn forget(&mut self, lanes: LaneMask) {
        if self.members.is_empty() {
            return;
        }
        self.members.retain_mut(|m| {
            m.lanes = m.lanes - lanes;
            !m.lanes.is_empty()
        });
    }

    /// `inside` end their body. Returns the lanes that go on now, those of the last arrival, and those that go on later.
    pub(super) fn leave(&mut self, inside: LaneMask, next: u32) -> (Vec<Group>, Vec<Group>) {
        let (mut now, mut later): (Vec<Group>, Vec<Group>) = (Vec::new(), Vec::new());
        let mut rest = inside;
        for m in &self.members {
            let mask = m.lanes & inside;
            rest = rest - mask;
            if !mask.is_empty() {
                if m.last { &mut now } else { &mut later }.push(Group { pc: m.resume, mask });
            }
        }
        if !rest.is_empty() {
            now.push(Group { pc: next, mask: rest });
        }
        self.forget(inside);
        (now, later)
    }

    /// The next body, if one waits.
    pub(super) fn next(&mut self) -> Option<Group> {
        (!self.queue.is_empty()).then(|| self.queue.remove(0))
    }

    /// The bodies that wait, the next to run last.
    pub(super) fn waiting(&self) -> impl Iterator<Item = Group> {
        self.queue.iter().rev().copied()
    }
}
