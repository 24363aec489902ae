//! Accesses of shared memory, byte by byte: races and reads of what nobody wrote.

use super::clocks::{Clocks, Time};

/// A thread: its warp and lane.
pub(crate) type Thread = (u32, u32);

/// One access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) inst: u32,
    pub(crate) thread: Thread,
    pub(crate) time: Time,
    /// Number of the issue: accesses of one issue are not ordered among themselves, and not reported either.
    pub(crate) issue: u64,
    pub(crate) atomic: bool,
}

/// What is remembered of a byte: its last write, and the last two reads by different threads since.
#[derive(Clone, Copy, Default)]
struct Byte {
    write: Option<Access>,
    reads: [Option<Access>; 2],
    written: bool,
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Read,
    Write,
}

/// The shared memory of a block.
pub(crate) struct Shared(Vec<Byte>);

/// Two accesses that nothing orders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Race {
    pub(crate) first: Access,
    pub(crate) first_was: What,
}

/// What is wrong with an access.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) race: Option<Race>,
    /// It reads what nobody has written.
    pub(crate) unwritten: bool,
}

impl Shared {
    pub(crate) fn new(bytes: u32) -> Shared {
        Shared(vec![Byte::default(); bytes as usize])
    }

    /// Takes note of an access of some bytes. Bytes out of bounds are the engine's business.
    pub(crate) fn access(&mut self, clocks: &Clocks, at: u64, bytes: u32, a: Access, what: What) -> Verdict {
        let mut verdict = Verdict::default();
        let Ok(start) = usize::try_from(at) else { return verdict };
        let Some(cells) = start.checked_add(bytes as usize).and_then(|end| self.0.get_mut(start..end)) else {
            return verdict;
        };
        let unordered = |other: &Option<Access>| {
            other.filter(|o| {
                o.issue != a.issue
                    && o.thread != a.thread
                    && !(o.atomic && a.atomic)
                    && !clocks.before(o.thread, o.time, a.thread)
            })
        };
        for byte in cells {
            if let Some(first) = unordered(&byte.write) {
                verdict.race.get_or_insert(Race { first, first_was: What::Write });
            }
            match what {
                What::Read => {
                    verdict.unwritten |= !byte.written;
                    if byte.reads[0].is_none_or(|r| r.thread != a.thread) {
                        byte.reads[1] = byte.reads[0];
                    }
                    byte.reads[0] = Some(a);
                }
                What::Write => {
                    for first in byte.reads.iter().filter_map(unordered) {
                        verdict.race.get_or_insert(Race { first, first_was: What::Read });
                    }
                    *byte = Byte { write: Some(a), reads: [None; 2], written: true };
                }
            }
        }
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(clocks: &Clocks, inst: u32, thread: Thread) -> Access {
        Access { inst, thread, time: clocks.now(thread.0, thread.1), issue: u64::from(inst), atomic: false }
    }

    #[test]
    fn reads_of_others_writes_need_an_order() {
        let mut clocks = Clocks::new(2);
        let mut s = Shared::new(16);
        assert!(s.access(&clocks, 0, 4, access(&clocks, 1, (0, 0)), What::Read).unwritten);
        let v = s.access(&clocks, 0, 4, access(&clocks, 2, (0, 0)), What::Write);
        assert!(v.race.is_none());
        let v = s.access(&clocks, 2, 4, access(&clocks, 3, (0, 1)), What::Read);
        assert_eq!(v.race.map(|r| (r.first.inst, r.first_was)), Some((2, What::Write)));
        assert!(v.unwritten);
        clocks.join_lanes(0, 3);
        assert!(s.access(&clocks, 0, 4, access(&clocks, 4, (0, 1)), What::Read).race.is_none());
        // A write after another's read, and out of bounds.
        let v = s.access(&clocks, 0, 1, access(&clocks, 5, (1, 0)), What::Write);
        assert!(v.race.is_some());
        assert!(s.access(&clocks, 15, 4, access(&clocks, 6, (1, 0)), What::Write).race.is_none());
        assert!(s.access(&clocks, u64::MAX, 4, access(&clocks, 6, (1, 0)), What::Write).race.is_none());
    }

    #[test]
    fn atomics_do_not_race_with_each_other() {
        let clocks = Clocks::new(1);
        let mut s = Shared::new(4);
        let atomic = |inst, lane| Access { atomic: true, ..access(&clocks, inst, (0, lane)) };
        s.access(&clocks, 0, 4, atomic(1, 0), What::Write);
        assert!(s.access(&clocks, 0, 4, atomic(2, 1), What::Write).race.is_none());
        assert!(s.access(&clocks, 0, 4, access(&clocks, 3, (0, 2)), What::Read).race.is_some());
    }
}
