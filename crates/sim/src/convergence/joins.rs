//! The joins of one warp: which lanes meet where, one inside another.

use super::join_points::NONE;
use lanescope_ir::LaneMask;

/// Joins of a warp at most. Branches alone need fewer than two for each lane; calls add one for each activation. Deeper calls
/// are followed without a join of their own: their lanes go on alone when they return.
const LIMIT: usize = 4096;

/// Lanes at one instruction that run together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Path {
    pub(super) pc: u32,
    pub(super) mask: LaneMask,
    /// The innermost join they are to reach.
    pub(super) join: u32,
    /// They went round without any change and stand back for the others.
    pub(super) spun: bool,
}

#[derive(Clone, Copy)]
struct Node {
    pc: u32,
    /// Lanes that are to meet. Those of a join inside are among them.
    wants: LaneMask,
    /// Of these, lanes that are there.
    here: LaneMask,
    parent: u32,
    /// The return of a call: lanes arrive by returning, not by passing the instruction.
    call: bool,
    /// Order of creation.
    born: u64,
}

/// A forest of joins; a lane is to reach one, then its parent, and so on.
#[derive(Clone, Default)]
pub(super) struct Joins {
    nodes: Vec<Node>,
    free: Vec<u32>,
    born: u64,
}

impl Joins {
    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        self.free.clear();
        self.born = 0;
    }

    /// A join of `wants` at `pc`, inside `parent`. If there are too many, the parent.
    pub(super) fn open(&mut self, pc: u32, wants: LaneMask, parent: u32, call: bool) -> u32 {
        self.born += 1;
        let node = Node { pc, wants, here: LaneMask::EMPTY, parent, call, born: self.born };
        if let Some(at) = self.free.pop()
            && let Some(slot) = self.nodes.get_mut(at as usize)
        {
            *slot = node;
            return at;
        }
        if self.nodes.len() >= LIMIT {
            return parent;
        }
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    fn get(&self, join: u32) -> Option<&Node> {
        self.nodes.get(join as usize)
    }

    /// The instruction at which lanes reach `join` by coming there; `NONE` for calls.
    pub(super) fn place(&self, join: u32) -> u32 {
        self.get(join).filter(|n| !n.call).map_or(NONE, |n| n.pc)
    }

    /// The innermost call around `join`, itself included, and where it returns.
    pub(super) fn call(&self, join: u32) -> Option<(u32, u32)> {
        let mut at = join;
        while let Some(n) = self.get(at) {
            if n.call {
                return Some((at, n.pc));
            }
            at = n.parent;
        }
        None
    }

    /// Lanes reach `join`. If they are the last, all go on.
    pub(super) fn arrive(&mut self, join: u32, lanes: LaneMask) -> Option<Path> {
        let node = self.nodes.get_mut(join as usize)?;
        node.here = node.here | lanes & node.wants;
        self.complete(join)
    }

    fn complete(&mut self, join: u32) -> Option<Path> {
        let node = self.nodes.get_mut(join as usize)?;
        if node.here != node.wants {
            return None;
        }
        let path = Path { pc: node.pc, mask: node.here, join: node.parent, spun: false };
        (node.wants, node.here) = (LaneMask::EMPTY, LaneMask::EMPTY);
        self.free.push(join);
        (!path.mask.is_empty()).then_some(path)
    }

    /// Running lanes will not reach the joins from `join` outwards, up to but without `until`. Joins that waited only for
    /// them are complete.
    pub(super) fn leave(&mut self, join: u32, until: u32, lanes: LaneMask, done: &mut Vec<Path>) {
        let mut at = join;
        while at != until
            && let Some(node) = self.nodes.get_mut(at as usize)
        {
            let parent = node.parent;
            node.wants = node.wants - lanes;
            done.extend(self.complete(at));
            at = parent;
        }
    }

    /// The innermost join around both.
    pub(super) fn common(&self, a: u32, b: u32) -> u32 {
        if a == b {
            return a;
        }
        let chain = |from: u32| {
            let step = |&at: &u32| self.get(at).map(|n| n.parent);
            std::iter::successors(Some(from), step).take_while(|&at| at != NONE)
        };
        let around: Vec<u32> = chain(a).collect();
        chain(b).find(|at| around.contains(at)).unwrap_or(NONE)
    }

    /// Lanes that wait at the newest join go on without those that are missing.
    pub(super) fn split_newest(&mut self) -> Option<Path> {
        let waits = |n: &&mut Node| !n.here.is_empty();
        let node = self.nodes.iter_mut().filter(waits).max_by_key(|n| n.born)?;
        let path = Path { pc: node.pc, mask: node.here, join: node.parent, spun: false };
        (node.wants, node.here) = (node.wants - node.here, LaneMask::EMPTY);
        Some(path)
    }

    /// Lanes that wait, and where.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (u32, LaneMask)> + '_ {
        self.nodes.iter().filter(|n| !n.here.is_empty()).map(|n| (n.pc, n.here))
    }
}
