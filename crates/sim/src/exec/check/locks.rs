//! Locks that lanes of one warp take from each other.

use std::collections::BTreeMap;
use std::sync::Arc;

use lanescope_ir::op::memory::AtomOp;

use crate::exec::Where;
use crate::exec::mem::Addresses;
use crate::exec::program::{MemInst, MemKind, NONE};
use crate::memory::words::lanes;
use crate::rows::{Operand, Row};

/// Locks that are remembered at a time.
const KEPT: usize = 1 << 16;

/// A lock that a lane holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// The instruction that took it.
    pub(crate) inst: u32,
    /// Lanes of the same warp that tried in the same issue and did not get it.
    pub(crate) spinning: u32,
}

/// An atomic whose result is not known yet.
struct Attempt {
    inst: u32,
    exec: u32,
    at: Box<Addresses>,
    how: How,
}

/// How to tell that it took a lock.
enum How {
    /// The old value equals this one.
    Old(u32, Row),
    /// The old value is not this one.
    NotOld(u32, Row),
    /// A number other than zero.
    Number(u32),
    /// A predicate.
    Pred(u32),
}

/// Locks of one block.
pub(crate) struct Locks {
    /// The last atomic of each warp.
    open: BTreeMap<u32, Attempt>,
    /// Warp, lane and address.
    held: BTreeMap<(u32, u32, u64), Held>,
    /// For each instruction, the header of the innermost loop around it.
    loop_of: Arc<[u32]>,
}

impl Locks {
    pub(crate) fn new(loop_of: Arc<[u32]>) -> Locks {
        Locks { open: BTreeMap::new(), held: BTreeMap::new(), loop_of }
    }

    /// Lanes try to take locks, perhaps.
    pub(crate) fn attempt(
        &mut self,
        at: &Where,
        exec: u32,
        m: &MemInst,
        addresses: &Addresses,
        read: impl Fn(&Operand) -> Row,
    ) {
        let MemKind::Atomic { op, dst, pdst, predicate, src, compare, .. } = &m.kind else { return };
        let how = match op {
            AtomOp::Cas => How::Old(dst[0], read(&compare[0])),
            AtomOp::Exch => How::NotOld(dst[0], read(&src[0])),
            AtomOp::CasSpin if *predicate => How::Pred(*pdst),
            AtomOp::CasSpin => How::Number(dst[0]),
            _ => return,
        };
        self.open.insert(at.warp, Attempt { inst: at.inst, exec, at: Box::new(*addresses), how });
    }

    /// The result of a warp's last atomic is there.
    pub(crate) fn settle(&mut self, at: &Where, slot: impl Fn(u32) -> Option<Row>, pred: impl Fn(u32) -> Option<u32>) {
        let Some(a) = self.open.remove(&at.warp) else { return };
        let won = match &a.how {
            How::Old(dst, wanted) => {
                let Some(old) = slot(*dst) else { return };
                lanes(a.exec).filter(|&l| old.0[l] == wanted.0[l]).fold(0u32, |m, l| m | 1 << l)
            }
            How::NotOld(dst, new) => {
                let Some(old) = slot(*dst) else { return };
                lanes(a.exec).filter(|&l| old.0[l] != new.0[l]).fold(0u32, |m, l| m | 1 << l)
            }
            How::Number(dst) => {
                let Some(done) = slot(*dst) else { return };
                lanes(a.exec).filter(|&l| done.0[l] != 0).fold(0u32, |m, l| m | 1 << l)
            }
            How::Pred(p) => a.exec & pred(*p).unwrap_or(0),
        };
        for l in lanes(won) {
            let lost = lanes(a.exec & !won).filter(|&k| a.at[k] == a.at[l]).fold(0u32, |m, k| m | 1 << k);
            if self.held.len() < KEPT {
                self.held.insert((at.warp, l as u32, a.at[l]), Held { inst: a.inst, spinning: lost });
            }
        }
    }

    /// A lane writes to an address: if it holds the lock there, it gives it back. Only told if the loop that took it is left.
    pub(crate) fn release(&mut self, at: &Where, lane: u32, address: u64) -> Option<Held> {
        let held = *self.held.get(&(at.warp, lane, address))?;
        // Another attempt of the same instruction is no release.
        if held.inst == at.inst {
            return None;
        }
        self.held.remove(&(at.warp, lane, address));
        let of = |i: u32| self.loop_of.get(i as usize).copied().unwrap_or(NONE);
        let spins = of(held.inst);
        (spins != NONE && of(at.inst) != spins).then_some(held)
    }
}
