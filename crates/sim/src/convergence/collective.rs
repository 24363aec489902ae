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
    after: Vec<Group>,
}

impl Collective {
    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.members.clear();
        self.after.clear();
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

    /// `inside` end their body. Returns the lanes that go on now, and those that go on later.
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

    /// Lanes that go on when no body waits any more.
    pub(super) fn put_off(&mut self, groups: Vec<Group>) {
        for g in groups {
            match self.after.iter_mut().find(|a| a.pc == g.pc) {
                Some(a) => a.mask = a.mask | g.mask,
                None => self.after.push(g),
            }
        }
    }

    /// What runs next, if anything here does.
    pub(super) fn next(&mut self) -> Option<Group> {
        if !self.queue.is_empty() {
            return Some(self.queue.remove(0));
        }
        if self.after.is_empty() {
            return None;
        }
        Some(self.after.remove(0))
    }

    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.after.is_empty()
    }

    /// Everybody who waits here, the next to run last.
    pub(super) fn waiting(&self) -> impl Iterator<Item = Group> {
        self.after.iter().rev().chain(self.queue.iter().rev()).copied()
    }
}
