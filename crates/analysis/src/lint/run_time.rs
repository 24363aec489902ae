//! Rules that only a run can check (`run --check`): their manual pages. The simulator applies them.

use super::LintRule;

/// An operation across lanes by a lane that its own mask does not name.
pub(super) const LANE_NOT_IN_MASK: LintRule = LintRule {
    name: "lane-not-in-mask",
    summary: "at run time: a lane executes an operation across lanes whose mask does not name it",
    page: "\
Each lane that executes a `_sync` operation must be in the mask that it passes. One that is not takes part or not as the
hardware likes; what it gets is undefined.

What helps: the mask must name exactly the lanes that execute the call. Take it from `__ballot_sync` before the branch.

Evidence: lanes, mask, times.",
    check: None,
};

/// Two accesses of shared memory that nothing orders.
pub(super) const SHARED_RACE: LintRule = LintRule {
    name: "shared-memory-race",
    summary: "at run time: two threads access the same shared memory, one writes, and no barrier orders them",
    page: "\
Two threads of a block access the same byte of shared memory, at least one of them writes, and between the two accesses
there is neither a barrier of the block nor, within a warp, a `__syncwarp` (or another operation that makes the lanes wait
for each other). Which comes first is not defined: the simulator has one order, hardware may have another.

The order is judged by the barriers that both threads passed, not by the time at which they ran: a race is found even if
this run went well. Accesses in one instruction are ordered only against those before and after. Atomics do not race with
each other.

What helps: `__syncthreads()` between the accesses, or `__syncwarp()` if both threads are always in one warp.

Evidence: address, first_pc, first_thread, second_thread, times.",
    check: None,
};

/// A read of shared memory that nobody has written.
pub(super) const UNWRITTEN_READ: LintRule = LintRule {
    name: "unwritten-shared-read",
    summary: "at run time: a thread reads shared memory that no thread of its block has written",
    page: "\
Shared memory holds anything when a block starts. A read of a byte that nobody wrote gives whatever the block before left
there; the simulator gives zero. Often the threads that should have written it left early, or the tile is larger than what
was filled.

What helps: write the neutral value where there is no data, and keep all threads to the barrier between filling and reading.

Evidence: address, bytes, lanes, times.",
    check: None,
};

/// Lanes that spin for a lock that a lane of their own warp holds.
pub(super) const LOCK_SPIN: LintRule = LintRule {
    name: "lock-spin",
    summary: "at run time: lanes spin for a lock while a lane of their own warp that holds it waits for them",
    page: "\
A lane took a lock with a compare-and-swap or an exchange, and others of its warp went round the loop again for it. The
winner passed the place where the warp joins only because lanes that spin are not waited for after a YIELD. Before Volta
there is no such rule, and the warp hangs; from Volta on it depends on the YIELD that the compiler put into the loop.

What helps: let one lane take the lock for the warp; or take, work and release inside one body of the loop.

Evidence: winner, spinning, times.",
    check: None,
};
