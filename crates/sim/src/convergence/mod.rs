//! How the lanes of one warp split and rejoin.
//!
//! A model is a state machine over lane masks and instruction indices; it sees neither registers nor memory.
//! The engine runs the group that [`Convergence::current`] names and reports every operation that may change
//! who runs: branches, exits, barriers, and (because parked groups merge there) memory instructions.
//! The engine keeps the running group's position in a local and hands the next one over with each operation
//! as `next`, so straight-line code costs nothing here.
//!
//! [`Barrier`] is Volta and later, exactly as measured on an H200. [`Ipdom`] joins at immediate post-dominators (PTX), and
//! [`Stack`] does so strictly as a stack (before Volta); both use [`Convergence::stop_pc`]. The trait also fits a stack of
//! tokens (machine code of Pascal: [`Convergence::push_token`], [`Convergence::pop_token`]).

mod barrier;
mod collective;
mod indirect;
mod ipdom;
mod join_points;
mod joins;
mod pool;
mod stack;

use lanescope_ir::LaneMask;
use lanescope_ir::op::control::ControlOp;

pub use barrier::Barrier;
pub use ipdom::{Ipdom, PostDominator, WideIpdom};
pub use join_points::JoinPoints;
pub use stack::{Stack, WideStack};

/// Lanes that stand at one instruction and execute together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Index of the instruction they execute next.
    pub pc: u32,
    /// The lanes.
    pub mask: LaneMask,
}

/// What a WARPSYNC does once its lanes are together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMode {
    /// Plain, with a mask or `.ALL`: all go on as one group.
    Join,
    /// `.COLLECTIVE`: all go on as one group up to `ENDCOLLECTIVE`, then each arrived group goes on by itself at this instruction.
    Collective {
        /// Where.
        resume: u32,
    },
    /// `.EXCLUSIVE`: the lanes of each mask go on as a group of their own, so that the next instruction runs for exactly these.
    Exclusive,
}

/// Lanes of the executing group that name the same mask in a WARPSYNC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncPart {
    /// Executing lanes.
    pub lanes: LaneMask,
    /// Lanes they wait for; lanes that never existed or have exited are not waited for.
    pub wanted: LaneMask,
}

/// YIELD or NANOSLEEP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum YieldKind {
    /// `YIELD`
    Yield,
    /// `NANOSLEEP`
    Sleep,
}

/// A token of the Pascal stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Token {
    /// SSY, taken by SYNC.
    Sync,
    /// PBK, taken by BRK.
    Break,
    /// PCNT, taken by CONT.
    Continue,
    /// CAL or PRET, taken by RET.
    Return,
}

/// Why lanes wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// At BSYNC of this barrier, for these lanes.
    Barrier {
        /// `B0`..`B15`
        bar: u8,
        /// Lanes that hold the barrier and have not arrived.
        missing: LaneMask,
    },
    /// At WARPSYNC, for these lanes.
    WarpSync {
        /// Lanes of the mask that have not arrived.
        missing: LaneMask,
    },
    /// At a barrier of the block.
    Block,
    /// At a join of a stack or post-dominator model.
    Join,
}

/// Lanes that wait, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The lanes.
    pub lanes: LaneMask,
    /// The instruction they wait at.
    pub pc: u32,
    /// For what.
    pub why: Reason,
}

/// What becomes of a group that goes round a loop without any change while other lanes of its warp wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spins {
    /// The model takes care of progress by itself.
    Ignored,
    /// It gives way: [`Convergence::give_way`].
    GiveWay,
    /// It never ends unless another warp ends it: the launch is stopped with a report.
    Stuck,
}

/// Convergence state of one warp.
///
/// `lanes` arguments are always lanes of the running group; a model ignores others. Every operation that may end the running
/// group takes `next`, the instruction at which lanes go on that are not named or not held up. After such an operation the
/// engine asks [`current`](Convergence::current) again.
pub trait Convergence: Sized + Clone + Send {
    /// What the model must know about the kernel (join points); `()` if nothing.
    type Plan: Sync;

    /// Lanes of a warp, a multiple of 32.
    const LANES: u32 = 32;
    /// Whether the model must hear of every call and return ([`call`](Convergence::call), [`ret`](Convergence::ret)). If not,
    /// those that do not split the group are no different from jumps.
    const CALLS: bool = false;
    /// Whether lanes at different instructions can meet for an exchange: [`met`](Convergence::met).
    const MEETS: bool = false;
    /// What becomes of groups that spin.
    const SPINS: Spins = Spins::Ignored;

    /// All of `lanes` at `entry`.
    fn new(plan: &Self::Plan, lanes: LaneMask, entry: u32) -> Self;
    /// As new, keeping what is allocated. For the next block on the same warp.
    fn reset(&mut self, lanes: LaneMask, entry: u32);
    /// Whether this model knows the operation. Asked once for each instruction of a kernel before a launch; operations that
    /// are not known are refused there and never reach the model.
    fn supports(op: &ControlOp) -> bool;

    /// The running group. `None`: everybody waits or has exited.
    fn current(&self) -> Option<Group>;
    /// Lanes that have not exited.
    fn live(&self) -> LaneMask;
    /// Lanes that have exited.
    fn exited(&self) -> LaneMask;
    /// Whether some group other than the running one exists. While this is false [`memory_issued`](Convergence::memory_issued) does nothing.
    fn has_parked(&self) -> bool;
    /// Moves the running group to `pc`, without any other effect. The engine calls it before any operation below, so that the model
    /// knows which instruction is meant.
    fn set_pc(&mut self, pc: u32);
    /// An instruction at which the running group must be handed to [`arrive`](Convergence::arrive) before it is issued. Always the first of a basic block.
    fn stop_pc(&self) -> Option<u32> {
        None
    }
    /// The running group stands at [`stop_pc`](Convergence::stop_pc).
    fn arrive(&mut self) {}

    /// The running group has issued a memory instruction (after it, before the next one).
    fn memory_issued(&mut self);
    /// A branch: `taken` go to `target`, the others to `next`. True if the group split.
    fn branch(&mut self, taken: LaneMask, target: u32, next: u32) -> bool;
    /// An indirect branch, call or return: each group of `targets` (distinct `pc`, disjoint lanes) goes to its target, lanes in none of them to `next`.
    /// True if the group split.
    fn indirect(&mut self, targets: &[Group], next: u32) -> bool;
    /// A call, direct or not; as [`indirect`](Convergence::indirect). It returns to `next`.
    fn call(&mut self, targets: &[Group], next: u32) -> bool {
        self.indirect(targets, next)
    }
    /// A return; as [`indirect`](Convergence::indirect).
    fn ret(&mut self, targets: &[Group], next: u32) -> bool {
        self.indirect(targets, next)
    }
    /// `lanes` leave, the rest of the group goes on at `next`. True if both are non-empty.
    fn exit(&mut self, lanes: LaneMask, next: u32) -> bool;

    /// BSSY: `lanes` join barrier `bar`.
    fn sync_set(&mut self, bar: u8, lanes: LaneMask);
    /// BSYNC of `lanes`; the group's other lanes go on at `next`, as do those that wait once they are released.
    fn sync(&mut self, bar: u8, lanes: LaneMask, next: u32);
    /// BREAK: `lanes` leave barrier `bar`. The group goes on.
    fn break_from(&mut self, bar: u8, lanes: LaneMask);
    /// The lanes recorded in `bar` (BMOV).
    fn barrier(&self, bar: u8) -> LaneMask;
    /// BMOV to a barrier, and `.CLEAR` with the empty mask.
    fn set_barrier(&mut self, bar: u8, mask: LaneMask);

    /// Whether every live lane of `mask` is in the running group (BRA.DIV is taken if not, BRA.CONV if so).
    fn is_converged(&self, mask: LaneMask) -> bool;
    /// WARPSYNC. Lanes of the group that are in no part go on at `next`, as do the others once their lanes are together.
    fn warp_sync(&mut self, parts: &[SyncPart], mode: SyncMode, next: u32);
    /// ENDCOLLECTIVE.
    fn end_collective(&mut self, next: u32);
    /// Groups that were let go together since the last time of asking and stand before an exchange of values, each at an
    /// instruction of its own: they exchange as one, and with nobody else. Asked after every operation that may end a wait.
    fn met(&mut self) -> Vec<Vec<Group>> {
        Vec::new()
    }
    /// YIELD or NANOSLEEP; the group goes on at `next`, now or later.
    fn yield_now(&mut self, kind: YieldKind, next: u32);

    /// The running group makes no progress by itself; others of its warp may run.
    fn give_way(&mut self) {}

    /// The running group waits at a barrier of the block, on behalf of `lanes` (those whose guard holds; none: nothing happens), and with it
    /// the whole warp: no parked group runs meanwhile. It goes on at `next` when [`release_block`](Convergence::release_block) names one of its lanes.
    fn wait_block(&mut self, lanes: LaneMask, next: u32);
    /// Lanes that wait at a barrier of the block.
    fn block_waiting(&self) -> LaneMask;
    /// The barrier of the block is complete: the groups of `lanes` go on.
    fn release_block(&mut self, lanes: LaneMask);

    /// Pushes a token of `lanes` that resumes at `target` (SSY, PBK, PCNT, CAL, PRET). Only for models that support it.
    fn push_token(&mut self, token: Token, target: u32, lanes: LaneMask) {
        let _ = (token, target, lanes);
    }
    /// `lanes` wait for the nearest such token (SYNC, BRK, CONT, RET), the rest of the group goes on at `next`. Only for models that support it.
    fn pop_token(&mut self, token: Token, lanes: LaneMask, next: u32) {
        let _ = (token, lanes, next);
    }

    /// Nobody runs although lanes are live: who waits where. Also of use while others run.
    fn waiting(&self) -> Vec<Waiting>;
    /// Groups that could run but do not, the next to run last. For traces.
    fn parked(&self) -> Vec<Group>;
}
